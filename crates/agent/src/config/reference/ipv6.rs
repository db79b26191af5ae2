//! The keys of agents of Mobile IPv6.

use careof_document::section::{Key, Section, key};

use super::{KEY, KEY_FILE, REPLAY_WINDOW, ROLE};

/// The keys of a root table: those of its role between those of all roles.
macro_rules! root {
    ($($key:expr),* $(,)?) => {
        &[
            ROLE,
            $($key,)*
            key("host", "table", "see below", "What the agent takes of the host. See `[host]` of Mobile IPv6."),
            key("control", "table", "see below", "Where `careof-agent status` asks. See `[control]`."),
            key("metrics", "table", "no metrics", "Counters for Prometheus. See `[metrics]`."),
            key("log", "table", "see below", "See `[log]`."),
        ]
    };
}

const SPI: Key = key(
    "spi",
    "whole number",
    "required",
    "Security Parameter Index: names the association of mobile node and home agent in messages (RFC 4285). 256 or more.",
);
const ALGORITHM: Key = key(
    "algorithm",
    "word",
    "`\"hmac-sha-1\"`",
    "`\"hmac-sha-1\"` of RFC 4285, or `\"hmac-sha-256\"`, which is an extension of careof. The same at both ends.",
);
const REPLAY: Key = key(
    "replay",
    "word",
    "`\"timestamps\"`",
    "How the home agent tells new Binding Updates from recorded ones: `\"timestamps\"` needs clocks that agree. `\"sequence-numbers\"` needs \
none, but a home agent that has forgotten a mobile node accepts a recorded update. The same at both ends.",
);
const IDENTIFIER: Key = key(
    "identifier",
    "text",
    "none",
    "The network access identifier that the mobile node sends in its Binding Updates, such as `\"laptop@example.org\"` (RFC 4283). The same \
at both ends.",
);

/// What people may bring from Mobile IPv4, and why there is none over IPv6.
const NO_FOREIGN_AGENTS: &str =
    "Mobile IPv6 has no foreign agents: a mobile node has care-of addresses of its own everywhere";
const ASSIST: Key = key(
    "assist",
    "table or text",
    "`\"none\"`",
    "What is done for TCP connections at handovers. See `[assist]`.",
);
const ONE_ENCAPSULATION: &str = "Mobile IPv6 has one encapsulation, IPv6 in IPv6 (RFC 2473)";
const ALWAYS_BOTH_WAYS: &str =
    "tunnels of Mobile IPv6 always carry both directions; for the direct path write `route_optimization`";

pub(crate) static HOME6: Section = Section {
    heading: "A home agent of Mobile IPv6",
    noun: "a home agent of Mobile IPv6",
    intro: "`role = \"home\"` with an `address` of IPv6. The agent receives the packets for mobile nodes that are away and tunnels them to their \
care-of addresses.",
    keys: root![
        key(
            "address",
            "address",
            "required",
            "The home agent's own address. No interface may have it: the agent answers for it. With `\"routed\"` routers send packets for it to this host; \
with `\"proxy-ndp\"` it is an address of the home network.",
        ),
        key(
            "home_network",
            "prefix",
            "required",
            "The network of the home addresses, such as `\"2001:db8:1::/64\"`."
        ),
        key(
            "delivery",
            "word",
            "`\"routed\"`",
            "How packets for the home network reach the agent: `\"routed\"`, routers send them here and there is no link; `\"proxy-ndp\"`, it is \
a link of this host, and the agent answers neighbor solicitations for itself and for mobile nodes that are away, after Duplicate Address \
Detection (RFC 6275 sections 10.3.1 and 10.4.1).",
        ),
        key(
            "interface",
            "interface",
            "required with `\"proxy-ndp\"`",
            "The interface to the home network. A router of that link advertises the prefix; it may be this host.",
        ),
        key(
            "ipv4_address",
            "address",
            "none",
            "The home agent's IPv4 address, at which mobile nodes reach it from networks that have only IPv4 (RFC 5555). No interface may have it: \
the agent answers for it, and routers send packets for it to this host, or it is of the home link and the agent answers ARP there. A private one is for care-of addresses of the same private network.",
        ),
        key(
            "ipv4_home_network",
            "network",
            "each address by itself",
            "The network of the IPv4 home addresses. Mobile nodes are told its length, and have it beside their address.",
        ),
        key(
            "max_lifetime",
            "duration",
            "`\"30 min\"`",
            "The longest binding granted, a multiple of 4 s, up to 262140 s."
        ),
        key("max_bindings", "whole number", "`100000`", "Bindings of all mobile nodes together."),
        key(
            "max_bindings_per_node",
            "whole number",
            "`4`",
            "Care-of addresses a mobile node can have at a time (RFC 5648)."
        ),
        key(
            "late_reverse_tunnel",
            "duration",
            "`\"5 s\"`",
            "How long the agent still accepts tunnelled packets from a care-of address after the mobile node has left it: they were queued on \
the old path. At most 60 s; `\"0 s\"`: not at all, as RFC 6275, section 10.4.5, has it.",
        ),
        key(
            "refresh_advice",
            "percent",
            "none",
            "After how much of a granted lifetime mobile nodes are advised to renew it, 1 % to 95 % (RFC 6275 section 6.2.4).",
        ),
        key(
            "prefix_advertisements",
            "true or false",
            "`false`",
            "Whether mobile nodes are told the prefixes of the home network (RFC 6275 section 10.6). These messages are not \
protected: RFC 4285, section 2, advises against them.",
        ),
        key(
            "mobile_node",
            "array of tables",
            "required",
            "The mobile nodes served. See `[[mobile_node]]` of Mobile IPv6."
        ),
        ASSIST,
        key("store", "table", "see below", "Where bindings outlive a crash. See `[store]`."),
    ],
    elsewhere: &[
        ("mobile_nodes", "write [[mobile_node]], once for each node"),
        ("home_address", "home addresses are those of the [[mobile_node]] tables"),
        ("ipv4_home_address", "write it in the [[mobile_node]] table of the node that has it"),
        ("network", "write `home_network`"),
        ("home_prefix", "write `home_network`"),
        ("lifetime", "write `max_lifetime`"),
        ("home_agent", "the address of this home agent is `address`"),
        ("database", "write [store]"),
        ("reverse_tunnel", ALWAYS_BOTH_WAYS),
        ("encapsulations", ONE_ENCAPSULATION),
        (
            "advertisements",
            "leave it out: the routers of a home network advertise themselves; mobile nodes find the home agent by asking",
        ),
        ("foreign_agent", NO_FOREIGN_AGENTS),
        (
            "route_optimization",
            "write it in the files of mobile nodes: the home agent needs no setting for it",
        ),
    ],
};

pub(crate) static MOBILE6: Section = Section {
    heading: "A mobile node of Mobile IPv6",
    noun: "a mobile node of Mobile IPv6",
    intro: "`role = \"mobile\"` with a `home_address` of IPv6. This host keeps its home address wherever it is attached. Its care-of addresses are \
those that the kernel forms from router advertisements, or that are configured by hand; with `ipv4_home_agent` those of IPv4 as well, on links \
without any of IPv6.",
    keys: root![
        key("home_address", "address", "required", "The address that this host keeps."),
        key(
            "home_network",
            "prefix",
            "required",
            "The network it belongs to, such as `\"2001:db8:1::/64\"`."
        ),
        key(
            "home_agent",
            "address",
            "found by asking",
            "The home agent. Without it the node asks its home network (RFC 6275 section 11.4.1)."
        ),
        key(
            "ipv4_home_agent",
            "address",
            "none",
            "The IPv4 address of that home agent: the node then uses interfaces that have only an IPv4 address, too, and IPv6 travels in IPv4 \
there (RFC 5555). A NAT on the way cannot be traversed: the home agent finds it and refuses.",
        ),
        key(
            "ipv4_home_address",
            "address",
            "none",
            "An IPv4 address that this host keeps, too, as the home agent's `[[mobile_node]]` has it; `\"0.0.0.0\"`: whichever it has there. The \
packets of its connections go through the home agent.",
        ),
        SPI,
        KEY,
        KEY_FILE,
        ALGORITHM,
        REPLAY,
        IDENTIFIER,
        key(
            "lifetime",
            "duration",
            "`\"5 min\"`",
            "The lifetime asked for, a multiple of 4 s, up to 262140 s."
        ),
        key(
            "renew_after",
            "percent",
            "`\"75 %\"`",
            "How much of the lifetime passes before it is renewed, 1 % to 95 %."
        ),
        key(
            "attempts",
            "whole number",
            "`6`",
            "After so many Binding Updates without an acknowledgement a handover has failed, and the node tries another interface. Each update \
waits twice as long as the one before, starting with 1 s: 2 take 3 s, 3 take 7 s, 6 take 63 s. Without another interface the node never \
gives up.",
        ),
        key(
            "early_requests",
            "whole number",
            "`2`",
            "Binding Updates, 0 to 2, that are sent to the home agent again early where packets wait for a registration: at a handover, on a \
link or a path that is back, not the first one. See *Lost requests*.",
        ),
        key(
            "route_optimization",
            "true or false",
            "`false`",
            "Whether the node registers its care-of address with correspondent nodes, so that packets take the direct path both ways (RFC 6275 \
section 11.7.2). The messages for it are not protected between mobile node and home agent: RFC 4285, section 2, advises against it.",
        ),
        key(
            "simultaneous_bindings",
            "true or false",
            "`false`",
            "Ask for the old binding to be kept in a handover (RFC 5648)."
        ),
        key(
            "optimistic_detection",
            "true or false",
            "`true`",
            "Whether the kernel may use a care-of address while it still verifies that nobody else on the link has it (RFC 4429: `optimistic_dad` \
and `use_optimistic` of the interfaces). Otherwise every handover waits a second or more for that.",
        ),
        key(
            "report_paths",
            "true or false",
            "`true`",
            "Tell the home agent, in every update, rates and round trip of the path and whether the old one is lost, and register again \
after an interruption: a vendor option that is skipped by who does not know it (RFC 5094), under the enterprise number 32473, which RFC \
5612 reserves for documentation, as none is registered for careof.",
        ),
        key(
            "path_monitor",
            "true or false",
            "`true`",
            "Watch the paths through interfaces: by what passes there, and by probes where nothing does, about 9 bytes a second for each idle \
path, and 1 % of what passes and 40 bytes a second at most otherwise. A path in use by which nothing comes for longer than usual, and over \
which seven probes stay without answer, is silent: after 0.6 to 1.4 s at round trips of 20 to 300 ms. With `\"preferred\"` it is left for \
another one that answers. The home agent must know the probes (experimental messages of RFC 5096, authenticated like Binding Updates); \
one that does not discards them, and updates alone tell, as without. At home nothing is watched.",
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
            "Who chooses the interface: `\"preferred\"`, the node, by the order of the tables; `\"manual\"`, `careof-agent switch`: the node uses \
none before the first call.",
        ),
        key(
            "movement_detection",
            "word",
            "`\"link-trigger\"`",
            "By what the node notices that it has moved: `\"link-trigger\"`, its links and router advertisements; `\"unreachable-router\"`, also \
that the kernel finds the router of a link unreachable, whose carrier is there (neighbor unreachability detection, RFC 4861 section 7.3, \
RFC 6275 section 11.5.1), on links of Ethernet. The kernel's times are `net.ipv6.neigh.INTERFACE.*`: something has to be sent, and with \
its defaults a router that is gone is left 8 s after a packet that comes 15 s to 45 s after the last answer. A router that advertises \
itself again is one again.",
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
            "How long the node still accepts packets on the interface that it left, or `\"until-down\"`.",
        ),
        ASSIST,
        key(
            "interface",
            "array of tables",
            "required",
            "The interfaces, the preferred one first. See `[[interface]]` of Mobile IPv6."
        ),
        key(
            "map",
            "array of tables",
            "none",
            "The mobility anchor points that the node uses where routers advertise them (RFC 5380). See `[[map]]` and *Mobility anchor points*.",
        ),
        key(
            "map_selection",
            "word",
            "`\"furthest\"`",
            "Which of several is used: `\"furthest\"`, the most distant one, which is left least often (RFC 5380 section 9.1); \
`\"highest-preference\"`, the one that routers prefer; `\"nearest\"`. Of equals the one that the other criterion chooses.",
        ),
        key(
            "map_attempts",
            "whole number",
            "`3`",
            "Binding Updates without an acknowledgement, to a mobility anchor point or through it, after which it is left for another one or for \
none. It is tried again after 30 s, each time after twice as long, up to 16 minutes.",
        ),
        key(
            "map_forwarding",
            "duration or word",
            "`\"60 s\"`",
            "For how long a mobility anchor point that was left for another one is told where to send packets on (RFC 5380 section 6.1), a multiple of 4 s; `\"off\"`: it is not told.",
        ),
    ],
    elsewhere: &[
        ("interfaces", "write [[interface]], once for each, the preferred one first"),
        ("address", "write `home_address`"),
        ("ipv4_address", "write `ipv4_home_address` or `ipv4_home_agent`"),
        ("network", "write `home_network`"),
        ("home_prefix", "write `home_network`"),
        ("care_of", "leave it out: care-of addresses are those of the interfaces"),
        ("replay_window", "write it in the home agent's file: only the home agent judges timestamps"),
        ("max_lifetime", "write `lifetime`"),
        ("preference", "the order of the [[interface]] tables is the preference"),
        ("store", "leave it out: a mobile node keeps nothing, it registers again"),
        ("route_optimisation", "write `route_optimization`"),
        ("routing", ALWAYS_BOTH_WAYS),
        ("reverse_tunnel", ALWAYS_BOTH_WAYS),
        ("policy", ALWAYS_BOTH_WAYS),
        ("encapsulation", ONE_ENCAPSULATION),
        ("encapsulations", ONE_ENCAPSULATION),
        ("encapsulating_delivery", NO_FOREIGN_AGENTS),
        ("foreign_agent", NO_FOREIGN_AGENTS),
        ("broadcasts", "IPv6 has no broadcasts"),
        ("probe", "leave it out: `path_monitor` finds that a path is silent"),
        ("anchor_point", "write [[map]], once for each mobility anchor point"),
        ("maps", "write [[map]], once for each mobility anchor point"),
        ("map_preference", "write map_selection = \"highest-preference\""),
    ],
};

pub(crate) static ANCHOR_POINT: Section = Section {
    heading: "A mobility anchor point",
    noun: "a mobility anchor point",
    intro: "`role = \"anchor-point\"` (RFC 5380): a local home agent. A mobile node in its domain has a regional care-of address here, the only one that \
its home agent and correspondent nodes know, and tells the anchor point its address on the link that it visits. So a movement within the domain \
takes one message and its answer, as far as here. See *Mobility anchor points*.",
    keys: root![
        key(
            "address",
            "address",
            "required",
            "The anchor point's own address, as access routers advertise it. No interface may have it: the agent answers for it. It is of `network`, whose \
first 64 bits regional care-of addresses share with it.",
        ),
        key(
            "network",
            "prefix",
            "required",
            "The network of the regional care-of addresses, such as `\"2001:db8:5::/64\"`. None of the links of the domain has it."
        ),
        key(
            "delivery",
            "word",
            "`\"routed\"`",
            "How packets for that network reach the agent: `\"routed\"`, routers send them here and there is no link; `\"proxy-ndp\"`, it is a link of \
this host, as with a home agent.",
        ),
        key("interface", "interface", "required with `\"proxy-ndp\"`", "The interface to that link."),
        key(
            "domain",
            "array of prefixes",
            "everywhere",
            "The networks of the links from which mobile nodes may register; others are refused with status 129 (RFC 5380 section 6.2).",
        ),
        key(
            "neighbors",
            "array of prefixes",
            "none",
            "Networks of links in other domains to which packets are sent on for mobile nodes that have left (RFC 5380 section 8).",
        ),
        key("forwarding", "duration", "`\"60 s\"`", "For how long they are at most, a multiple of 4 s."),
        key(
            "max_lifetime",
            "duration",
            "`\"30 min\"`",
            "The longest binding granted, a multiple of 4 s, up to 262140 s."
        ),
        key("max_bindings", "whole number", "`100000`", "Bindings of all mobile nodes together."),
        key(
            "late_reverse_tunnel",
            "duration",
            "`\"5 s\"`",
            "How long the agent still accepts tunnelled packets from an address that the mobile node has left. At most 60 s.",
        ),
        key(
            "refresh_advice",
            "percent",
            "none",
            "After how much of a granted lifetime mobile nodes are advised to renew it, 1 % to 95 %.",
        ),
        key(
            "mobile_node",
            "array of tables",
            "required",
            "The mobile nodes served. See `[[mobile_node]]` of a mobility anchor point."
        ),
        key(
            "assist",
            "table or text",
            "`\"none\"`",
            "What is done for TCP connections at handovers, as at a home agent, which does not hear of movements within the domain. See `[assist]`.",
        ),
        key("store", "table", "see below", "Where bindings outlive a crash. See `[store]`."),
    ],
    elsewhere: &[
        ("home_network", "write `network`: the regional care-of addresses are of it"),
        ("mobile_nodes", "write [[mobile_node]], once for each node"),
        ("regional_address", "regional addresses are those of the [[mobile_node]] tables"),
        ("home_agent", "a mobility anchor point knows no home agents"),
        ("lifetime", "write `max_lifetime`"),
        ("database", "write [store]"),
        ("ipv4_address", "a mobility anchor point has no IPv4: write it in the home agent's file"),
        ("max_bindings_per_node", "leave it out: a mobile node has one address at a mobility anchor point"),
        ("route_optimization", "write it in the files of mobile nodes"),
    ],
};

pub(crate) static CORRESPONDENT: Section = Section {
    heading: "A correspondent node of Mobile IPv6",
    noun: "a correspondent node",
    intro: "`role = \"correspondent\"`. This host takes part in route optimisation (RFC 6275 section 9): it learns the care-of addresses of the \
mobile nodes that it talks to, and packets take the direct path both ways. It needs no key: a mobile node proves that it receives at its \
home address and at its care-of address.",
    keys: root![
        key(
            "address",
            "address",
            "required",
            "The address of this host by which mobile nodes know it, on one of its interfaces. A host with several runs an agent for each.",
        ),
        key(
            "max_mobile_nodes",
            "whole number",
            "`1000`",
            "Mobile nodes whose bindings are kept at a time. Packets of others go through their home agents."
        ),
        key(
            "max_mobile_nodes_per_site",
            "whole number",
            "a quarter, and 16 at least",
            "How many of them may have home addresses of one site (the first 48 bits)."
        ),
        key(
            "max_bindings_per_node",
            "whole number",
            "`4`",
            "Care-of addresses a mobile node can have at a time (RFC 5648)."
        ),
        key(
            "max_lifetime",
            "duration",
            "`\"420 s\"`",
            "The longest that a binding is kept, a multiple of 4 s, up to 420 s (RFC 6275 section 12)."
        ),
    ],
    elsewhere: &[
        (
            "home_address",
            "a correspondent node has an `address`; home addresses are those of mobile nodes, which tell it by themselves",
        ),
        ("home_agent", "a correspondent node has no home agent"),
        ("home_network", "a correspondent node has no home network"),
        ("interface", "leave it out: the host's routes lead to mobile nodes"),
        (
            "mobile_node",
            "leave it out: mobile nodes prove by themselves who they are (RFC 6275 section 5.2.5)",
        ),
        ("spi", "leave it out: mobile nodes prove by themselves who they are (RFC 6275 section 5.2.5)"),
        ("key", "leave it out: mobile nodes prove by themselves who they are (RFC 6275 section 5.2.5)"),
        ("key_file", "leave it out: mobile nodes prove by themselves who they are (RFC 6275 section 5.2.5)"),
        ("lifetime", "write `max_lifetime`"),
        ("route_optimization", "leave it out: it is what this role is for"),
        ("max_bindings", "write `max_mobile_nodes`"),
        ("store", "leave it out: a correspondent node keeps nothing, mobile nodes tell it again"),
        ("assist", "assists run at home agents and mobile nodes"),
    ],
};

pub(crate) static MOBILE_NODE6: Section = Section {
    heading: "`[[mobile_node]]` of Mobile IPv6",
    noun: "the table of a mobile node of Mobile IPv6",
    intro: "A mobile node served by a home agent. Two tables with the same `home_address` and different `spi` are two keys of one node, for \
the time in which it changes from one to the other.",
    keys: &[
        key("home_address", "address", "required", "Its home address."),
        key(
            "ipv4_home_address",
            "address",
            "none",
            "An IPv4 address that is bound, too, when it asks for it (RFC 5555). Packets for it come as `delivery` says: with `\"proxy-ndp\"` the agent \
answers ARP for it while the node is away.",
        ),
        key(
            "permitted",
            "true or false",
            "`true`",
            "Whether it may register; otherwise updates are refused with status 129, and the bindings that it has end when FILE is read.",
        ),
        SPI,
        KEY,
        KEY_FILE,
        ALGORITHM,
        REPLAY,
        REPLAY_WINDOW,
        IDENTIFIER,
    ],
    elsewhere: &[
        ("address", "write `home_address`"),
        ("name", "a mobile node is known by its `home_address`, and may have an `identifier`"),
    ],
};

pub(crate) static REGIONAL_NODE6: Section = Section {
    heading: "`[[mobile_node]]` of a mobility anchor point",
    noun: "the table of a mobile node of a mobility anchor point",
    intro: "A mobile node served by a mobility anchor point. Two tables with the same `regional_address` and different `spi` are two keys of one node.",
    keys: &[
        key(
            "regional_address",
            "address",
            "required",
            "Its regional care-of address: `regional_address` of the mobile node's `[[map]]`, or where that says nothing the first 64 bits of the anchor \
point's address and the last 64 of the home address.",
        ),
        key("permitted", "true or false", "`true`", "Whether it may register, as at a home agent."),
        SPI,
        KEY,
        KEY_FILE,
        ALGORITHM,
        REPLAY,
        REPLAY_WINDOW,
        IDENTIFIER,
    ],
    elsewhere: &[
        ("address", "write `regional_address`"),
        ("home_address", "write `regional_address`: a mobility anchor point does not know home addresses"),
    ],
};

pub(crate) static MAP6: Section = Section {
    heading: "`[[map]]`",
    noun: "the table of a mobility anchor point",
    intro: "A mobility anchor point that a mobile node has a key for. Others that routers tell of are not used.",
    keys: &[
        key("address", "address", "required", "Its address, as routers advertise it."),
        key(
            "regional_address",
            "address",
            "formed",
            "The mobile node's regional care-of address there. Without it the first 64 bits of `address` and the last 64 of the home address.",
        ),
        SPI,
        KEY,
        KEY_FILE,
        ALGORITHM,
        REPLAY,
    ],
    elsewhere: &[
        ("home_address", "write `regional_address`"),
        ("replay_window", "write it in the anchor point's file: only that judges timestamps"),
        ("preference", "routers tell the preference"),
        ("distance", "routers tell the distance"),
    ],
};

pub(crate) static MOBILE_INTERFACE6: Section = Section {
    heading: "`[[interface]]` of Mobile IPv6",
    noun: "an interface of Mobile IPv6",
    intro: "A mobile node's way to the network. It may come and go, and its addresses with it. The newest of them that can be used is the \
care-of address.",
    keys: &[
        key("name", "interface", "required", "Its name, such as `\"wlan0\"`."),
        key(
            "round_trip",
            "duration",
            "unknown",
            "Round-trip time over it, for `report_paths`, until one was measured.",
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
        ("care_of", "leave it out: the care-of address is one of the interface's own"),
        ("dhcp", "leave it out: whatever gives the interface an address, the agent notices"),
    ],
};

pub(crate) static HOST6: Section = Section {
    heading: "`[host]` of Mobile IPv6",
    noun: "the host's part of Mobile IPv6",
    intro: "What the agent takes of the host. Two agents of Mobile IPv6 on one host need different devices, tables and priorities; the defaults \
differ from those of Mobile IPv4.",
    keys: &[
        key(
            "tunnel_device",
            "interface",
            "`\"careof6\"`",
            "The TUN device of tunnels and optimised routes, which the agent makes.",
        ),
        key(
            "tunnel_mtu",
            "size or bytes",
            "`\"1460 B\"`",
            "The MTU of the routes into it, 1280 bytes at least: 1460 leaves room for a second IPv6 header on a link of 1500. On a mobile node with \
`[[map]]` `\"1420 B\"`, for two.",
        ),
        key(
            "first_table",
            "whole number",
            "`43500`",
            "The first of the 64 routing tables that belong to the agent.",
        ),
        key(
            "first_priority",
            "whole number",
            "`4340`",
            "The first of the 10000 priorities of routing rules of IPv6 among which its own are. Rules of others there are left alone.",
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
        (
            "path_mtu_floor",
            "leave it out: IPv6 carries 1280 bytes everywhere, and no error brings a path below that",
        ),
        ("offloads", "leave it out: the device of Mobile IPv6 takes packets one by one"),
    ],
};
