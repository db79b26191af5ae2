//! Every key of a configuration: what the parser accepts, and what `docs/careof-agent.md` prints.

use careof_document::section::{Dialect, Key, Section, key};

/// The keys of a root table: those of its role between those of all roles.
macro_rules! root {
    ($($key:expr),* $(,)?) => {
        &[
            key("role", "word", "required", "`\"home\"`, `\"foreign\"` or `\"mobile\"`: which agent this host is."),
            $($key,)*
            key("assist", "table or text", "`\"none\"`", "What is done for TCP connections at handovers. See `[assist]`."),
            key("host", "table", "see below", "What the agent takes of the host. See `[host]`."),
            key("control", "table", "see below", "Where `careof-agent status` asks. See `[control]`."),
            key("metrics", "table", "no metrics", "Counters for Prometheus. See `[metrics]`."),
            key("log", "table", "see below", "See `[log]`."),
        ]
    };
}

/// The keys of a table with a security association: its own, then those.
macro_rules! secured {
    ($($key:expr),* $(,)?) => {
        &[
            $($key,)*
            key("spi", "whole number", "required", "Security Parameter Index: names the association in messages. 256 or more."),
            KEY, KEY_FILE, ALGORITHM,
        ]
    };
}

const KEY: Key = key(
    "key",
    "text",
    "`key_file`",
    "The shared secret in hexadecimal digits, at least 32. A file that holds one must not be readable by everybody.",
);
const KEY_FILE: Key = key(
    "key_file",
    "path",
    "`key`",
    "A file with the shared secret in hexadecimal digits, not readable by everybody. From the directory of the \
configuration. `(umask 077; openssl rand -hex 16 > FILE)` makes one.",
);
const ALGORITHM: Key = key(
    "algorithm",
    "word",
    "`\"hmac-md5\"`",
    "`\"hmac-md5\"`, which every implementation has, or `\"hmac-sha-256\"`. The same at both ends.",
);
const REPLAY: Key = key(
    "replay",
    "word",
    "`\"timestamps\"`",
    "How old requests are told from new ones: `\"timestamps\"` takes clocks that agree, `\"nonces\"` does not.",
);
const REPLAY_WINDOW: Key =
    key("replay_window", "duration", "`\"7 s\"`", "By how much the clocks may differ with timestamps.");
const MAX_LIFETIME: Key = key(
    "max_lifetime",
    "duration or word",
    "`\"30 min\"`",
    "The longest registration granted, whole seconds up to 65534 s, or `\"infinity\"`.",
);
const REVERSE_TUNNEL: Key = key(
    "reverse_tunnel",
    "word",
    "`\"optional\"`",
    "Whether mobile nodes may send through the tunnel: `\"unavailable\"`, `\"optional\"` or `\"required\"` (RFC 3024).",
);
const ENCAPSULATIONS: Key = key(
    "encapsulations",
    "array of words",
    "all",
    "What is offered besides `\"ip-in-ip\"`: `\"minimal\"`, `\"gre\"`.",
);

pub(crate) static HOME: Section = Section {
    heading: "A home agent",
    noun: "a home agent",
    intro: "`role = \"home\"`. The agent takes the packets for its mobile nodes and sends them after them.",
    keys: root![
        key("address", "address", "required", "The home agent's own address, on an interface of this host."),
        key(
            "home_network",
            "prefix",
            "required",
            "The network of the home addresses, such as `\"192.0.2.0/24\"`."
        ),
        key(
            "delivery",
            "word",
            "`\"proxy-arp\"`",
            "How packets for the home network come here: `\"proxy-arp\"`, it is a link of this host and the agent answers \
for the nodes that are away; `\"routed\"`, routers send them here and there is no link.",
        ),
        key(
            "interface",
            "interface",
            "required",
            "The interface to the home network. Not needed with `\"routed\"`."
        ),
        MAX_LIFETIME,
        key("max_bindings", "whole number", "`100000`", "Bindings of all mobile nodes together."),
        key(
            "max_bindings_per_node",
            "whole number",
            "`4`",
            "Care-of addresses a mobile node can have at a time."
        ),
        REVERSE_TUNNEL,
        ENCAPSULATIONS,
        key("advertisements", "table or word", "every 10 s", "See `[advertisements]`, or `\"off\"`."),
        key("mobile_node", "array of tables", "required", "The mobile nodes served. See `[[mobile_node]]`."),
        key(
            "foreign_agent",
            "array of tables",
            "none",
            "Foreign agents with a key of their own. See *Peers*."
        ),
        key("store", "table", "see below", "Where bindings outlive a crash. See `[store]`."),
    ],
    elsewhere: &[
        ("mobile_nodes", "write [[mobile_node]], once for each node"),
        ("foreign_agents", "write [[foreign_agent]], once for each agent"),
        ("home_address", "home addresses are those of the [[mobile_node]] tables"),
        ("network", "write `home_network`"),
        ("proxy_arp", "write delivery = \"proxy-arp\" or delivery = \"routed\""),
        ("lifetime", "write `max_lifetime`"),
        ("home_agent", "the address of this home agent is `address`"),
        ("database", "write [store]"),
    ],
};

pub(crate) static FOREIGN: Section = Section {
    heading: "A foreign agent",
    noun: "a foreign agent",
    intro: "`role = \"foreign\"`. The agent lends visiting mobile nodes its address and hands them what is tunnelled to it.",
    keys: root![
        key("address", "address", "the first of `care_of`", "The source of relayed requests."),
        key("care_of", "address or array", "required", "The care-of addresses offered, all of this host."),
        MAX_LIFETIME,
        key(
            "max_visitors",
            "whole number",
            "`1000`",
            "Visitors at a time. Of more, those with a key (`[[mobile_node]]`, or `[[home_agent]]`) take the place of those without.",
        ),
        key(
            "max_visitors_per_station",
            "whole number",
            "a quarter, and 16 at least",
            "Visitors without a key that may come from one link address. More than that behind a wireless bridge: raise it, or use keys.",
        ),
        key(
            "max_visitors_per_home_agent",
            "whole number",
            "half, and 16 at least",
            "Without `admitted_home_agents`: what of the room the visitors of a home agent without a key keep when it is full and those of others come.",
        ),
        key(
            "max_pending",
            "whole number",
            "`1000`",
            "Relayed requests waiting for their replies at a time; of more one gives up its place by lot.",
        ),
        key(
            "max_pending_per_station",
            "whole number",
            "a quarter, and 16 at least",
            "Of these, as many as may come from one link address.",
        ),
        key("pending_timeout", "duration", "`\"7 s\"`", "How long a relayed request waits for its reply."),
        key(
            "registration_required",
            "true or false",
            "`false`",
            "Whether mobile nodes with an address of their own must register through an agent, too.",
        ),
        REVERSE_TUNNEL,
        key(
            "encapsulating_delivery",
            "true or false",
            "`true`",
            "Whether visitors may tunnel what they send to the agent."
        ),
        ENCAPSULATIONS,
        key(
            "admitted",
            "array of prefixes",
            "everybody",
            "Whose mobile nodes may visit, by home address. Addresses on networks that this host is connected to are admitted only where they are named."
        ),
        key(
            "admitted_home_agents",
            "array of prefixes",
            "everybody's",
            "Whose home agents visitors may have, besides those of `[[home_agent]]`: `[]` for these only. Without it anybody on a visitors' link may name a host of his own, and so visit with any home address that is not refused."
        ),
        key("advertisements", "table", "every 10 s", "See `[advertisements]`."),
        key(
            "interface",
            "array of tables",
            "required",
            "The links with visitors. See `[[interface]]` of a foreign agent."
        ),
        key("mobile_node", "array of tables", "none", "Mobile nodes with a key of their own. See *Peers*."),
        key("home_agent", "array of tables", "none", "Home agents with a key of their own. See *Peers*."),
    ],
    elsewhere: &[
        ("interfaces", "write [[interface]], once for each link"),
        ("care_of_address", "write `care_of`"),
        ("care_of_addresses", "write `care_of`"),
        ("lifetime", "write `max_lifetime`"),
        ("store", "a foreign agent keeps nothing: its visitors register again"),
    ],
};

pub(crate) static MOBILE: Section = Section {
    heading: "A mobile node",
    noun: "a mobile node",
    intro: "`role = \"mobile\"`. This host keeps its home address wherever it is attached.",
    keys: root![
        key("home_address", "address", "required", "The address that this host keeps."),
        key("home_network", "prefix", "required", "The network it belongs to, such as `\"192.0.2.0/24\"`."),
        key("home_agent", "address", "found by asking", "The home agent."),
        key(
            "spi",
            "whole number",
            "required",
            "Security Parameter Index of the association with the home agent, 256 or more."
        ),
        KEY,
        KEY_FILE,
        ALGORITHM,
        REPLAY,
        key("lifetime", "duration", "`\"5 min\"`", "The lifetime asked for, whole seconds up to 65534 s."),
        key(
            "renew_after",
            "percent",
            "`\"75 %\"`",
            "How much of the lifetime passes before it is renewed, 1 % to 95 %."
        ),
        key(
            "probe",
            "duration",
            "none",
            "Renew at least this often, not below 1 s: how fast a link is noticed that is up and carries nothing.",
        ),
        key(
            "attempts",
            "whole number",
            "`6`",
            "Requests without a reply after which a handover has failed, and an interface is left for another one."
        ),
        key(
            "routing",
            "word",
            "`\"reverse-tunnel\"`",
            "How packets leave that no policy speaks of: `\"reverse-tunnel\"`, or `\"triangle\"`, which networks that check \
sources drop.",
        ),
        key(
            "encapsulation",
            "word",
            "`\"ip-in-ip\"`",
            "Asked for: `\"ip-in-ip\"`, `\"minimal\"` or `\"gre\"`."
        ),
        key(
            "encapsulating_delivery",
            "true or false",
            "`false`",
            "Tunnel to the foreign agent what it is to tunnel back."
        ),
        key(
            "simultaneous_bindings",
            "true or false",
            "`false`",
            "Ask for the old binding to be kept in a handover (S)."
        ),
        key("broadcasts", "true or false", "`false`", "Ask for the broadcasts of the home link (B)."),
        key(
            "report_paths",
            "true or false",
            "`false`",
            "Tell the agents, in every request, rates and round trip of the path and whether the old one is lost, and register again \
after an interruption: a vendor extension (RFC 3115) that others skip, under the enterprise number 32473, which RFC 5612 \
reserves for documentation, as none is registered for careof.",
        ),
        key(
            "selection",
            "word",
            "`\"preferred\"`",
            "Who chooses the interface: `\"preferred\"`, the node, by their order; `\"manual\"`, `careof-agent switch`.",
        ),
        key(
            "hold",
            "duration",
            "`\"5 s\"`",
            "How long a better interface must have worked before the node goes back to it."
        ),
        key(
            "keep_old",
            "duration or word",
            "`\"2 s\"`",
            "How long the interface left is listened to, or `\"until-down\"`.",
        ),
        key(
            "interface",
            "array of tables",
            "required",
            "The interfaces, the preferred one first. See `[[interface]]` of a mobile node."
        ),
        key(
            "policy",
            "array of tables",
            "none",
            "What travels in another way than `routing` says. See `[[policy]]`."
        ),
        key(
            "foreign_agent",
            "array of tables",
            "none",
            "Foreign agents with a key of their own. See *Peers*."
        ),
    ],
    elsewhere: &[
        ("interfaces", "write [[interface]], once for each, the preferred one first"),
        ("policies", "write [[policy]], once for each rule"),
        ("reverse_tunnel", "write routing = \"reverse-tunnel\""),
        ("address", "write `home_address`"),
        ("network", "write `home_network`"),
        ("care_of", "write it in the [[interface]] tables"),
        ("max_lifetime", "write `lifetime`"),
        ("preference", "the order of the [[interface]] tables is the preference"),
        ("encapsulations", "a mobile node asks for one: `encapsulation`"),
        ("store", "a mobile node keeps nothing: it registers again"),
    ],
};

pub(crate) static MOBILE_NODE: Section = Section {
    heading: "`[[mobile_node]]` of a home agent",
    noun: "a mobile node's table",
    intro: "A mobile node served. Two tables with the same `home_address` and different `spi` are two keys of one node, for \
the time in which it changes from one to the other.",
    keys: secured![
        key("home_address", "address", "required", "Its home address."),
        key(
            "permitted",
            "true or false",
            "`true`",
            "Whether it may register; otherwise requests are denied with code 129, and the bindings that it has end when FILE is read."
        ),
        REPLAY,
        REPLAY_WINDOW,
    ],
    elsewhere: &[
        ("address", "write `home_address`"),
        ("name", "a mobile node is known by its `home_address`"),
    ],
};

pub(crate) static PEER: Section = Section {
    heading: "Peers: `[[foreign_agent]]`, `[[home_agent]]`, and `[[mobile_node]]` of a foreign agent",
    noun: "a peer",
    intro: "An agent or node whose messages carry an authenticator of their own.",
    keys: secured![key("address", "address", "required", "Its address; for a mobile node the home address.")],
    elsewhere: &[("home_address", "write `address`")],
};

pub(crate) static FOREIGN_INTERFACE: Section = Section {
    heading: "`[[interface]]` of a foreign agent",
    noun: "a foreign agent's interface",
    intro: "A link on which mobile nodes visit.",
    keys: &[
        key("name", "interface", "required", "Its name, such as `\"wlan0\"`."),
        key(
            "address",
            "address",
            "required",
            "The agent's address there: where visitors send their requests.",
        ),
        key("advertisements", "table", "those of the file", "See `[advertisements]`."),
    ],
    elsewhere: &[("interface", "write `name`"), ("device", "write `name`")],
};

pub(crate) static MOBILE_INTERFACE: Section = Section {
    heading: "`[[interface]]` of a mobile node",
    noun: "a mobile node's interface",
    intro: "A way to the network. It may come and go, and its address with it: whatever configures it - a DHCP client, PPP, a \
person - the agent notices.",
    keys: &[
        key("name", "interface", "required", "Its name, such as `\"wlan0\"`."),
        key(
            "care_of",
            "word",
            "`\"co-located\"`",
            "`\"co-located\"`, the interface's own address; `\"foreign-agent\"`, that of an agent heard there; \
`\"prefer-co-located\"` and `\"prefer-foreign-agent\"` take the other one where the first is missing.",
        ),
        key(
            "round_trip",
            "duration",
            "unknown",
            "Round-trip time over it: unanswered requests wait longer than that.",
        ),
        key(
            "rate",
            "rate",
            "unknown",
            "Its rate towards this host, for those who listen to handovers, and for `report_paths`.",
        ),
        key("rate_up", "rate", "`rate`", "Its rate from this host."),
    ],
    elsewhere: &[
        ("interface", "write `name`"),
        ("device", "write `name`"),
        ("preference", "the order of the tables is the preference"),
        ("delay", "write `round_trip`, the time there and back"),
    ],
};

pub(crate) static POLICY: Section = Section {
    heading: "`[[policy]]`",
    noun: "a policy",
    intro: "What travels in another way than `routing` says. The longest prefix wins, and among equal ones the rule with a port.",
    keys: &[
        key("to", "prefix", "everywhere", "The destination, such as `\"10.0.0.0/8\"` or a single address."),
        key("port", "whole number", "any", "The destination's TCP or UDP port."),
        key(
            "method",
            "word",
            "required",
            "`\"reverse-tunnel\"`, `\"triangle\"`, or `\"regular-ip\"`: from the care-of address, which does not survive a move.",
        ),
    ],
    elsewhere: &[("destination", "write `to`"), ("routing", "write `method`")],
};

pub(crate) static ADVERTISEMENTS: Section = Section {
    heading: "`[advertisements]`",
    noun: "the advertisements",
    intro: "How an agent makes itself heard (RFC 5944 section 2.3).",
    keys: &[
        key(
            "interval",
            "duration",
            "`\"10 s\"`",
            "The longest time between two; the shortest is three quarters of it.",
        ),
        key(
            "above_recommended_rate",
            "true or false",
            "`false`",
            "Whether an `interval` below 1 s, down to 10 ms, is meant: RFC 5944 calls one advertisement a second the reasonable maximum.",
        ),
        key(
            "lifetime",
            "duration",
            "three intervals",
            "For how long one is valid, whole seconds, at least three intervals.",
        ),
        key(
            "registration_lifetime",
            "duration or word",
            "`max_lifetime`",
            "The longest registration offered, at most `max_lifetime`.",
        ),
        key(
            "destination",
            "word",
            "`\"multicast\"`",
            "`\"multicast\"` (224.0.0.1) or `\"broadcast\"` (255.255.255.255).",
        ),
        key(
            "default_router",
            "true or false",
            "`true`",
            "Whether the agent offers itself as a router (RFC 1256).",
        ),
    ],
    elsewhere: &[
        ("period", "write `interval`"),
        ("max_interval", "write `interval`"),
        ("min_interval", "write `interval`"),
    ],
};

pub(crate) static ASSIST: Section = Section {
    heading: "`[assist]`",
    noun: "the assists",
    intro: "What the agent does for the TCP connections whose packets it carries, so that they go on sooner after a handover. Nothing \
unless it is asked for. The ends of the connections need not know of it. `assist = \"default\"` is short for `[assist]` with \
`use = \"default\"`.\n\n\
| assist | what it does | at |\n|---|---|---|\n\
| `replay` | Keeps copies of what is unacknowledged and, when a path is back, sends in order what the lost one owes. | all agents |\n\
| `hold-last` | The same with the last packets of a flow. | all agents |\n\
| `lcd-kick` | Takes back the sender's timer by ICMP host unreachable (RFC 6069). | all agents |\n\
| `fast-retransmit` | Repeats the last acknowledgement on the new path. | mobile node |\n\
| `window-clamp` | Lowers the advertised window to the new path's bandwidth-delay product. | mobile node |\n\
| `mss-clamp` | Lowers the segment size in SYNs to what fits the tunnel. | all agents |\n\
| `black-hole` | Finds a tunnel that swallows large packets where ICMP is filtered, and crosses it in fragments. | all agents |\n\n\
A home or foreign agent does it for downloads, a mobile node for uploads and by the acknowledgements it sends. It acts on packets that \
pass the tunnel device: a mobile node therefore needs `routing = \"reverse-tunnel\"`, also in `[[policy]]`; at a home agent replay is \
best where the acknowledgements come back through the tunnel, too. What the mobile node's `report_paths` tells of a path is used: how \
fast it is, and whether the old one is lost. Only TCP is touched, no fragments; where IP or TCP options are not understood (TCP MD5, \
TCP-AO, Multipath TCP), packets are at most sent again as they were. `careof-agent status` shows what was done for which connection.",
    keys: &[
        key(
            "use",
            "array of words, or text",
            "`\"none\"`",
            "The assists. `\"default\"` stands for `replay`, `lcd-kick` and, on a mobile node, `window-clamp`.",
        ),
        key(
            "except",
            "array of tables",
            "none",
            "Connections that are left alone: `except = [{ prefix = \"10.0.0.0/8\", port = 22 }]`.",
        ),
        key("replay", "table", "see below", "Parameters of `replay`."),
        key("hold-last", "table", "see below", "Parameters of `hold-last`."),
        key("lcd-kick", "table", "see below", "Parameters of `lcd-kick`."),
        key("fast-retransmit", "table", "see below", "Parameters of `fast-retransmit`."),
        key("window-clamp", "table", "see below", "Parameters of `window-clamp`."),
        key("mss-clamp", "table", "see below", "Parameters of `mss-clamp`."),
        key("black-hole", "table", "see below", "Parameters of `black-hole`."),
    ],
    elsewhere: &[("name", "write `use`"), ("names", "write `use`"), ("exclude", "write `except`")],
};

pub(crate) static ASSIST_EXCEPT: Section = Section {
    heading: "`[[assist.except]]`",
    noun: "an exception",
    intro: "Connections that no assist touches: those that match all that is given.",
    keys: &[
        key("prefix", "prefix", "everybody", "The correspondent, such as `\"10.0.0.0/8\"`."),
        key("port", "whole number", "every port", "TCP port of either end, 1 to 65535."),
    ],
    elsewhere: &[("to", "write `prefix`"), ("peer", "write `prefix`"), ("address", "write `prefix`")],
};

pub(crate) static ASSIST_REPLAY: Section = Section {
    heading: "`[assist.replay]`",
    noun: "a replay",
    intro: "Copies of packets that have the wireless path ahead are kept until they are acknowledged. When a path is back, what the lost \
one owes is sent in order, before anything newer and not faster than the new path takes it.",
    keys: &[
        key("bytes", "size", "`\"4 MiB\"`", "Kept of a connection and direction."),
        key("packets", "whole number", "`4096`", "Kept of a connection and direction."),
        key("total", "size", "`\"64 MiB\"`", "Kept of all connections; at least `bytes`."),
        key(
            "flows",
            "whole number",
            "`4096`",
            "Connections followed at a time; of more those make room whose ends were not both heard, of the mobile node with most of them.",
        ),
        key("age", "duration", "`\"30 s\"`", "An older copy is dropped."),
        key(
            "keep",
            "word",
            "`\"oldest\"`",
            "What stays of a connection where there is no room for all: `\"oldest\"` or `\"newest\"`.",
        ),
        key(
            "rest",
            "word",
            "`\"wait\"`",
            "What is beyond the new path's bandwidth-delay product: `\"wait\"` (follows at the path's rate), `\"drop\"` or `\"burst\"` \
(all is sent at once).",
        ),
        key(
            "wait",
            "duration",
            "`\"300 s\"`",
            "Longest time for which packets may wait for a slow path; of what would take longer the newest is dropped.",
        ),
        key(
            "duplicates",
            "word",
            "`\"swallow\"`",
            "The sender's repetitions of what waits or is on its way: `\"swallow\"` or `\"pass\"`.",
        ),
        key(
            "patience",
            "whole number",
            "`1`",
            "Round trips that the old path gets, where it is not known to be lost, before what it owes is sent again.",
        ),
    ],
    elsewhere: &[("limit", "write `bytes`"), ("memory", "write `total`")],
};

pub(crate) static ASSIST_HOLD_LAST: Section = Section {
    heading: "`[assist.hold-last]`",
    noun: "a hold of the last packets",
    intro: "The last packets of each connection are kept and sent when a path is back: `replay` for little memory.",
    keys: &[
        key("packets", "whole number", "`2`", "Kept of a connection and direction."),
        key("age", "duration", "`\"30 s\"`", "An older copy is dropped."),
    ],
    elsewhere: &[("count", "write `packets`")],
};

pub(crate) static ASSIST_LCD_KICK: Section = Section {
    heading: "`[assist.lcd-kick]`",
    noun: "a kick",
    intro: "ICMP host unreachable, quoting the first unacknowledged segment: a sender with RFC 6069 takes back a back-off of its timer.",
    keys: &[
        key("during", "true or false", "`true`", "Whether repetitions are answered while the path is lost."),
        key("interval", "duration", "`\"250 ms\"`", "Least time between two answers to a connection."),
        key(
            "burst",
            "whole number",
            "`8`",
            "Messages to a connection when a path is back and nothing was kept for it.",
        ),
        key("spacing", "duration", "`\"1 ms\"`", "Between two of them."),
        key("limit", "whole number", "`100`", "Messages a second to all connections together."),
    ],
    elsewhere: &[("count", "write `burst`"), ("rate", "write `limit`")],
};

pub(crate) static ASSIST_FAST_RETRANSMIT: Section = Section {
    heading: "`[assist.fast-retransmit]`",
    noun: "a fast retransmit",
    intro: "On the new path the last acknowledgement is sent a few times, so that the sender repeats what is missing at once.",
    keys: &[
        key("acks", "whole number", "`3`", "How many."),
        key(
            "longest_outage",
            "duration or word",
            "`\"200 ms\"`",
            "None after a longer outage; or `\"any\"`.",
        ),
    ],
    elsewhere: &[("count", "write `acks`")],
};

pub(crate) static ASSIST_WINDOW_CLAMP: Section = Section {
    heading: "`[assist.window-clamp]`",
    noun: "a window clamp",
    intro: "Needs an `[[interface]]` with `rate` and `round_trip`; without, nothing is changed.",
    keys: &[
        key("factor", "number", "`1.0`", "Multiple of the bandwidth-delay product."),
        key("plus", "segments", "`\"1 segment\"`", "On top of the product."),
        key(
            "from",
            "word",
            "`\"slower\"`",
            "`\"slower\"` (for connections that come from a faster path) or `\"always\"`.",
        ),
    ],
    elsewhere: &[("segments", "write `plus`")],
};

pub(crate) static ASSIST_MSS_CLAMP: Section = Section {
    heading: "`[assist.mss-clamp]`",
    noun: "a clamp of the segment size",
    intro: "The maximum segment size in SYNs is lowered to what fits a path of `mtu` bytes beside the tunnel's header and 40 bytes of IP and TCP. Of a download the SYN \
of the mobile node counts: configure it there, or at the home agent with a reverse tunnel.",
    keys: &[key(
        "mtu",
        "size or bytes",
        "`1500`",
        "Of the tunnel's path, the tunnel's header included; at least 128.",
    )],
    elsewhere: &[("mss", "write `mtu`: the segment size, 40 bytes and the tunnel's header")],
};

pub(crate) static ASSIST_BLACK_HOLE: Section = Section {
    heading: "`[assist.black-hole]`",
    noun: "a watch for black holes",
    intro: "A segment that is repeated over and over, though nothing says that it is too large, is sent in fragments; where that helps twice, and whole ones failed in between, the path is \
taken to have the next smaller usual MTU (RFC 1191, section 7.1). The sender is told by ICMP, and what it still sends too large goes in fragments. The outer datagram then lacks the DF \
bit that RFC 2003, section 3.1, has copied from the inner one, which stays whole. `careof-agent status` shows what was done for which connection, `black-holes` counts them.",
    keys: &[
        key(
            "repeats",
            "whole number",
            "`2`",
            "How often a segment is repeated whole before fragments are tried.",
        ),
        key(
            "lifetime",
            "duration",
            "`\"600 s\"`",
            "How long a smaller MTU is believed; then larger packets are tried again.",
        ),
    ],
    elsewhere: &[("age", "write `lifetime`")],
};

const PATH_MTU_FLOOR: &str = "What ICMP errors that may be made up bring the MTU of a tunnel's path down to, at least 576: those that do not quote \
the Identification that an outer datagram had. Longer ones than such an error says then leave without DF, and a path that is really as narrow \
carries them in fragments. An error that quotes it is believed; `errors-unproven` counts the others.";

pub(crate) static HOST: Section = Section {
    heading: "`[host]`",
    noun: "the host's part",
    intro: "What the agent takes of the host. Two agents on one host need different devices, tables and priorities.",
    keys: &[
        key("tunnel_device", "interface", "`\"careof0\"`", "The tunnel's TUN device, which the agent makes."),
        key("tunnel_mtu", "size or bytes", "`\"1480 B\"`", "Its MTU."),
        key("path_mtu_floor", "size or bytes", "`\"1280 B\"`", PATH_MTU_FLOOR),
        key(
            "offloads",
            "true or false",
            "`true`",
            "Whether it takes TCP's segments from the kernel, and hands them to it, before they are cut into packets. Without, \
it is slower, and a capture on the device has every packet as it is in the tunnel.",
        ),
        key(
            "first_table",
            "whole number",
            "`43400`",
            "The first of the 64 routing tables that belong to the agent.",
        ),
        key(
            "first_priority",
            "whole number",
            "`4340`",
            "The first of the 10000 priorities of routing rules among which its own are. Rules of others there are left alone.",
        ),
        key(
            "set_kernel_parameters",
            "true or false",
            "`true`",
            "Whether the agent sets the kernel parameters it needs, and sets them back when it ends.",
        ),
    ],
    elsewhere: &[
        ("tunnel", "write `tunnel_device`"),
        ("mtu", "write `tunnel_mtu`"),
        ("table", "write `first_table`"),
    ],
};

pub(crate) static CONTROL: Section = Section {
    heading: "`[control]`",
    noun: "the control socket",
    intro: "A unix socket that `careof-agent status` asks. Its mode is 0660.",
    keys: &[key(
        "socket",
        "path",
        "`/run/careof/NAME.sock`",
        "Where it is; `NAME` is that of the file without `.toml`.",
    )],
    elsewhere: &[("path", "write `socket`")],
};

pub(crate) static METRICS: Section = Section {
    heading: "`[metrics]`",
    noun: "the metrics",
    intro: "Counters for Prometheus, at `http://ADDRESS/metrics`. Whoever reaches the address can read them, home addresses \
included.",
    keys: &[
        key("listen", "address and port", "`\"127.0.0.1:9434\"`", "Where to listen: a loopback address."),
        key("allow_remote", "true or false", "`false`", "Whether `listen` may be another address."),
        key(
            "tunnels_up_to",
            "whole number",
            "`1000`",
            "While tunnels are of at most so many mobile nodes, each has `careof_tunnel_packets_total` and `careof_tunnel_bytes_total` of \
its own; `0`: never. The sums, `careof_tunnelled_...`, are always there. At most 10000.",
        ),
    ],
    elsewhere: &[("address", "write `listen`"), ("port", "write listen = \"127.0.0.1:PORT\"")],
};

pub(crate) static LOG: Section = Section {
    heading: "`[log]`",
    noun: "the log",
    intro: "One line an event, to standard error.",
    keys: &[
        key("level", "word", "`\"info\"`", "`\"error\"`, `\"warn\"`, `\"info\"` or `\"debug\"`."),
        key("format", "word", "`\"text\"`", "`\"text\"` or `\"json\"`. Read at the start only."),
    ],
    elsewhere: &[("file", "the log goes to standard error; systemd keeps it in its journal")],
};

pub(crate) static STORE: Section = Section {
    heading: "`[store]`",
    noun: "the store",
    intro: "What a home agent must not forget: bindings, so that connections live on when it is started again, and what it has \
accepted, so that it cannot be replayed. It is written before the reply leaves. Where that fails, as on a full disk, the agent goes \
on, since to refuse would break connections; it says so in log, `status` and `careof_bindings_unsaved`, and tries again every 5 s. \
A crash in that time would lose what is not written.",
    keys: &[key(
        "directory",
        "path",
        "`/var/lib/careof`",
        "Where it is, in a file called like the configuration, `NAME.redb`.",
    )],
    elsewhere: &[("path", "write `directory`"), ("file", "write `directory`")],
};

/// All sections in the order of the documentation.
pub(crate) static SECTIONS: [&Section; 23] = [
    &HOME,
    &FOREIGN,
    &MOBILE,
    &MOBILE_NODE,
    &PEER,
    &FOREIGN_INTERFACE,
    &MOBILE_INTERFACE,
    &POLICY,
    &ADVERTISEMENTS,
    &ASSIST,
    &ASSIST_EXCEPT,
    &ASSIST_REPLAY,
    &ASSIST_HOLD_LAST,
    &ASSIST_LCD_KICK,
    &ASSIST_FAST_RETRANSMIT,
    &ASSIST_WINDOW_CLAMP,
    &ASSIST_MSS_CLAMP,
    &ASSIST_BLACK_HOLE,
    &HOST,
    &CONTROL,
    &METRICS,
    &LOG,
    &STORE,
];

/// What messages say about configurations.
pub(crate) static DIALECT: Dialect = Dialect {
    noun: "a configuration",
    sections: &SECTIONS,
    examples: "ready configurations are in examples/",
    given_twice: "a key is given once; a table is opened once, but those in double brackets once for each",
    override_example: "log.level=debug",
    // Of a home agent some hundred bytes a mobile node.
    largest_mib: 32,
    long_form: |_| None,
};
