//! Every key of a configuration: what the parser accepts, and what `docs/careof-agent.md` prints.

mod assist;
mod cluster;
mod ipv6;

use careof_document::section::{Dialect, Key, Section, key};

pub(crate) use assist::*;
pub(crate) use cluster::*;
pub(crate) use ipv6::*;

/// The keys of a root table: those of its role between those of all roles.
macro_rules! root {
    ($($key:expr),* $(,)?) => {
        &[
            ROLE,
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

const ROLE: Key = key(
    "role",
    "word",
    "required",
    "`\"home\"`, `\"foreign\"`, `\"mobile\"`, `\"correspondent\"`, `\"anchor-point\"` or `\"relay\"`: which agent this host is.",
);
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
        key(
            "late_reverse_tunnel",
            "duration",
            "`\"5 s\"`",
            "How long packets are taken that a mobile node has sent into its tunnel from a care-of address that it has left since: \
those in the queue of the path that it left. At most 60 s; `\"0 s\"`: not at all, as RFC 3024, section 4.4, has it.",
        ),
        ENCAPSULATIONS,
        MULTIPATH_OF_ALL,
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
            "Renew at least this often, not below 1 s: with `attempts`, how fast a link is noticed that is up and carries nothing. Some \
200 bytes each time.",
        ),
        key(
            "attempts",
            "whole number",
            "`6`",
            "Requests without a reply, early ones not counted, after which a handover has failed, and an interface is left for another one. \
Each waits twice as long as the one before, from 1 s on: 2 take 3 s, 3 take 7 s, 6 take 63 s; early ones come on top. Without \
another interface the node never gives up.",
        ),
        key(
            "early_requests",
            "whole number",
            "`2`",
            "Requests, 0 to 2, that are sent again early where packets wait for a registration: at a handover, on a link that came or came \
back. See *Lost requests*; `0` is RFC 5944 to the letter.",
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
        MULTIPATH_OF_ALL,
        key("broadcasts", "true or false", "`false`", "Ask for the broadcasts of the home link (B)."),
        key(
            "report_paths",
            "true or false",
            "`true`",
            "Tell the agents, in every request, rates and round trip of the path and whether the old one is lost, and register again \
after an interruption: 24 bytes, a vendor extension of the kind that is skipped by who does not know it (type 134, RFC 3115), under \
the enterprise number 32473, which RFC 5612 reserves for documentation, as none is registered for careof. With assists, a request that \
says that the old path is lost has a second one, of 10 bytes and 16 for each of up to eight flows: how far their data have been received.",
        ),
        key(
            "path_monitor",
            "true or false",
            "`true`",
            "Watch the paths through interfaces with care-of addresses of their own: by what passes in tunnels, and by probes where \
nothing does, about 7 bytes a second for each idle path, and 1 % of what passes and 40 bytes a second at most otherwise. A path in \
use by which nothing comes for longer than usual, and over which seven probes stay without answer, is silent: after 0.6 to 1.4 s \
at round trips of 20 to 300 ms. With `\"preferred\"` it is left for another one that answers. The home agent must know the probes \
(experimental messages of RFC 4064, authenticated like registrations); one that does not ignores them, and registrations alone \
tell, as without. What leaves without a tunnel (`\"triangle\"`) is not seen, only what comes back; a path by a foreign agent is not \
watched, and used when no other can say that it works.",
        ),
        key(
            "leave_bad_paths",
            "true or false",
            "`true`",
            "With `path_monitor` and `\"preferred\"`: leave a path in use that is bad, not silent, for another one that is known to carry \
more and is clearly better, and come back when it is good again. See *Bad paths*.",
        ),
        key(
            "selection",
            "word",
            "`\"preferred\"`",
            "Who chooses the interface: `\"preferred\"`, the node, by their order; `\"manual\"`, `careof-agent switch`: until it was called \
once, none is used.",
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
            "Its rate towards this host, for those who listen to handovers, for `report_paths`, and for `leave_bad_paths`.",
        ),
        key("rate_up", "rate", "`rate`", "Its rate from this host."),
        key(
            "cost",
            "word",
            "`\"free\"`",
            "`\"metered\"`: its use costs something. It comes after all that are free, whatever the order, and is used when none of them works \
or hardly anything gets through. See *Bad paths*.",
        ),
    ],
    elsewhere: &[
        ("interface", "write `name`"),
        ("device", "write `name`"),
        ("preference", "the order of the tables is the preference"),
        ("metered", "write cost = \"metered\""),
        ("delay", "write `round_trip`, the time there and back"),
    ],
};

const DISPERSION: Key = key(
    "dispersion",
    "word",
    "`\"auto\"`",
    "How packets that leave here choose their path. `\"auto\"` keeps a flow on one path as long as that carries it, and splits it \
where that was measured to bring more; `\"per-flow\"` never splits one; `\"earliest-arrival\"` takes the path by which a packet is \
predicted to arrive first; `\"overflow\"` fills free interfaces before metered ones; `\"duplicate\"` sends a copy by each path; \
`\"ecf\"`, `\"blest\"`, and `\"d\"` and `\"dq\"` of SHAKE are for comparison.",
);
const WAIT: Key = key(
    "wait",
    "duration",
    "`\"500 ms\"`",
    "The longest that a packet that has come waits for earlier ones of its flow on a path by which nothing comes meanwhile; less where \
the paths are known to be less far apart. At most 1 s; `\"0 s\"`: not at all.",
);
const BUFFER: Key =
    key("buffer", "size or bytes", "`\"8 MiB\"`", "What may wait at a time, for each mobile node.");
const RULE: Key =
    key("rule", "array of tables", "none", "What certain flows get instead. See `[[multipath.rule]]`.");
const MULTIPATH_OF_ALL: Key = key(
    "multipath",
    "table",
    "one path at a time",
    "All interfaces of a mobile node at once. See `[multipath]`.",
);

pub(crate) static MULTIPATH: Section = Section {
    heading: "`[multipath]` of a home agent",
    noun: "the paths of mobile nodes",
    intro: "Packets for a mobile node that registers several addresses as paths are dispersed over them. Both ends need the table, and \
be careof: packets carry a header of its own. The messages about paths are UDP from and to port 1021, and packets are of protocol 47, which a \
firewall between both has to let through.",
    keys: &[DISPERSION, WAIT, BUFFER, RULE],
    elsewhere: &[("registration", "the mobile node chooses how it registers its paths")],
};

pub(crate) static MOBILE_MULTIPATH: Section = Section {
    heading: "`[multipath]` of a mobile node",
    noun: "the paths of a mobile node",
    intro: "The addresses of all interfaces are registered at once, and packets are dispersed over them both ways. A path that stops \
answering is left within a second, what was on it is sent again by the others, and it is tried again when it answers. An interface with the \
address of a foreign agent is no path. A home agent without `[multipath]` gets one address, as without this table.",
    keys: &[
        key(
            "registration",
            "word",
            "`\"shake\"`",
            "How paths are registered: `\"shake\"`, simultaneous bindings with the number of the path in a vendor extension; \
`\"rfc-7629\"`, with its Multipath extension.",
        ),
        DISPERSION,
        WAIT,
        BUFFER,
        RULE,
        key("cluster", "table", "none", "The links of neighbours. See `[multipath.cluster]`."),
    ],
    elsewhere: &[("relay", "write [multipath.cluster]"), ("relays", "write [multipath.cluster]")],
};

pub(crate) static MULTIPATH_RULE: Section = Section {
    heading: "`[[multipath.rule]]`",
    noun: "a rule for several paths",
    intro: "The first rule that fits a packet counts. A key that is left out fits every packet. Paths are numbered from 0 in the order of \
the mobile node's `[[interface]]` tables, at both ends.",
    keys: &[
        key("to", "prefix", "any", "The network of the correspondent node."),
        key("port", "whole number", "any", "The correspondent node's port of TCP or UDP."),
        key("protocol", "word", "any", "`\"tcp\"`, `\"udp\"` or `\"icmp\"`."),
        key("dscp", "whole number", "any", "The Differentiated Services Code Point, 0 to 63."),
        key("paths", "array of whole numbers", "all", "The paths that such packets may take."),
        key(
            "treatment",
            "word",
            "`\"dispersed\"`",
            "`\"dispersed\"` as `dispersion` says; `\"pinned\"` to one path as long as that works; `\"duplicated\"`, a copy by each path.",
        ),
    ],
    elsewhere: &[],
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
pub(crate) static SECTIONS: [&Section; 39] = [
    &HOME,
    &FOREIGN,
    &MOBILE,
    &MOBILE_NODE,
    &PEER,
    &FOREIGN_INTERFACE,
    &MOBILE_INTERFACE,
    &POLICY,
    &MULTIPATH,
    &MOBILE_MULTIPATH,
    &MULTIPATH_RULE,
    &CLUSTER,
    &CLUSTER_RELAY,
    &RELAY,
    &RELAY_CLIENT,
    &ADVERTISEMENTS,
    &ASSIST,
    &assists::EXCEPT,
    &assists::REPLAY,
    &assists::HOLD_LAST,
    &assists::LCD_KICK,
    &assists::FAST_RETRANSMIT,
    &assists::WINDOW_CLAMP,
    &assists::MSS_CLAMP,
    &assists::BLACK_HOLE,
    &HOST,
    &CONTROL,
    &METRICS,
    &LOG,
    &STORE,
    &HOME6,
    &MOBILE6,
    &CORRESPONDENT,
    &ANCHOR_POINT,
    &MOBILE_NODE6,
    &REGIONAL_NODE6,
    &MOBILE_INTERFACE6,
    &MAP6,
    &HOST6,
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
