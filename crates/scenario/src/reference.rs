//! Every key of the scenario file: what the parser accepts, and what `docs/scenario.md` prints.

use careof_document::section::{Dialect, Section, key};

pub(crate) mod assist;
pub(crate) mod dhcp;
pub(crate) mod discovery;
pub(crate) mod fast_handover;
pub(crate) mod flow;
pub(crate) mod link;
pub(crate) mod link_layer;
pub(crate) mod medium;
pub(crate) mod micro_mobility;
pub(crate) mod mptcp;
pub(crate) mod multipath;
pub(crate) mod node;
pub(crate) mod quic;

pub(crate) static ROOT: Section = Section {
    heading: "The file",
    noun: "a scenario",
    intro: "The keys before the first table, and the tables there are.",
    keys: &[
        key("title", "text", "the file's name", "One line that says what the scenario is."),
        key("description", "text", "empty", "What it shows, in as many lines as it needs."),
        key("duration", "duration", "required", "Length of the run, above zero."),
        key(
            "seed",
            "whole number",
            "`1`",
            "From which every random number is derived. The same file with the same seed gives the same run.",
        ),
        key(
            "stall_threshold",
            "duration",
            "`\"1 s\"`, longer on slow links",
            "The shortest silence that is counted and listed as a stall. Without it: 1 s, or twice the time that the slowest \
             link takes for a packet of its MTU, whichever is longer.",
        ),
        key(
            "ip_version",
            "whole number",
            "`4`, or `6` with `protocol = \"mobile-ipv6\"`",
            "The version of the Internet Protocol: `4` or `6`.",
        ),
        key("links", "table of links", "required", "See `[links]`. At least one."),
        key("nodes", "table of nodes", "by their names", "See `[nodes]`."),
        key("media", "table of media", "none", "See `[media]`."),
        key("mobility", "table", "nobody moves", "See `[mobility]`."),
        key("micro_mobility", "table", "none", "See `[micro_mobility]`. Needs `[mobility]` with `nodes`."),
        key("multipath", "table", "none", "See `[multipath]`. Needs `[mobility]`."),
        key("handover", "array of tables", "none", "See `[[handover]]`. Needs `[mobility]`."),
        key("flow", "array of tables", "none", "See `[[flow]]`."),
        key("assist", "table", "none", "See `[assist]`."),
    ],
    elsewhere: &[
        ("flows", "write [[flow]], once for each flow"),
        ("handovers", "write [[handover]], once for each handover"),
        ("link", "write [links]"),
        ("assists", "write [assist]"),
        ("time", "the length of the run is `duration`"),
        ("node", "write [nodes], with a key for each node"),
        ("topology", "the topology is the `between` of the links"),
    ],
};

pub(crate) static MOBILITY: Section = Section {
    heading: "`[mobility]`",
    noun: "the mobility",
    intro: "Who moves, and how it stays reachable. With this table the nodes `correspondent`, `home-agent` and `mobile` \
exist, and a link without `between` is an access link:\n\n\
- with co-located care-of addresses it joins `home-agent` and `mobile`: one machine is the home agent and has all \
access interfaces;\n\
- with foreign agents it joins `foreign-agent-NAME` and `mobile`, where NAME is the link's name;\n\
- the link named by `home` always joins `home-agent` and `mobile`.\n\n\
With co-located care-of addresses an access link may also hang on another node, by `between = [\"router\", \"mobile\"]`. Two kinds of links are \
understood where the file does not give them, as `ethernet-10m`: one called `ethernet` between `correspondent` and \
`home-agent`, and one called `NAME-backhaul` between `home-agent` and each foreign agent that no other link joins to it. \
A table of such a name without `between` changes the link that is understood: `ethernet = { delay = \"50 ms\" }`.\n\n\
Many can move: with `nodes = 100` there are `mobile-1` to `mobile-100` instead of `mobile`, and one access link with \
`between = [\"station-*\", \"mobile-*\"]`, the radio. Each mobile node has a radio of its own, rate and queues included, \
that hangs on one station at a time. The stations are nodes that other links join to the rest, and foreign agents; over IPv6 \
they are routers, each of which advertises a prefix. Mobile \
node *i* of *N* begins at station *i*, counted round; `[[handover]]` with `every` sends all of them round the stations.",
    keys: &[
        key(
            "nodes",
            "whole number",
            "one, called `mobile`",
            "How many mobile nodes there are: `mobile-1`, `mobile-2`, …, up to 20000.",
        ),
        key(
            "protocol",
            "word",
            "`\"mobile-ipv4\"`",
            "`\"mobile-ipv4\"` (RFC 5944) or `\"mobile-ipv6\"` (RFC 6275). Over IPv6 a mobile node forms its care-of \
addresses of what routers advertise (RFC 4862), and of this table `nodes`, `routing`, `leave_room`, `start`, `home`, `lifetime`, \
`advertisement_interval`, `discovery`, `movement_detection`, `algorithm`, `path_monitor`, `order`, `metered`, `leave_bad_paths`, \
`early_requests`, `route_optimization`, `map_selection`, `map_forwarding`, `duplicate_address_detection` and `fast_handover` apply. The node at the far end of each access link is a router that advertises itself there.",
        ),
        key(
            "care_of",
            "word",
            "`\"co-located\"`; with `nodes` over IPv4 `\"foreign-agent\"`",
            "`\"co-located\"`, `\"dhcp\"` (co-located too, but first to be obtained; see `[mobility.dhcp]`) or \
`\"foreign-agent\"`; with `nodes` only that.",
        ),
        key(
            "dhcp",
            "table",
            "see there",
            "How addresses are obtained with `care_of = \"dhcp\"`; see `[mobility.dhcp]`.",
        ),
        key(
            "routing",
            "word",
            "`\"triangle\"`",
            "How the mobile node's packets travel: `\"triangle\"` (straight to the destination) or \
`\"reverse-tunnel\"` (through the home agent, RFC 3024).",
        ),
        key(
            "encapsulation",
            "word",
            "`\"ip-in-ip\"`",
            "`\"ip-in-ip\"` (RFC 2003), `\"minimal\"` (RFC 2004) or `\"gre\"` (RFC 2784).",
        ),
        key(
            "leave_room",
            "true or false",
            "`true`",
            "Whether a mobile node away from home has its TCP leave room for the tunnel, in the segments it sends and in the \
size it asks for: 20 bytes with IP-in-IP. Without it flows begin with segments that the tunnel refuses, and discover their path \
MTU (RFC 1191). It holds for all flows, and for none where a flow of the mobile node's has `pmtu_discovery = false`: who asks \
for that wants to see full packets cut.",
        ),
        key(
            "path_monitor",
            "true or false",
            "`false`",
            "Whether mobile nodes watch their paths with care-of addresses of their own, by what passes in tunnels and by probes, and \
leave one in use that goes silent for another that is up and answers; one that was left is come back to by a handover only. \
`careof-agent` has it on unless told otherwise.",
        ),
        key(
            "order",
            "array of link names",
            "none",
            "Access links that are all up from the beginning, the preferred one first: the mobile node uses the first that works, leaves it for the next one when it is silent, and comes back when it has worked for 5 s. Needs `path_monitor`, and no `start`, `[[handover]]` or `nodes`.",
        ),
        key(
            "metered",
            "array of link names",
            "none",
            "Of those in `order`, the ones whose use costs something: they come after all others, whatever their place.",
        ),
        key(
            "leave_bad_paths",
            "true or false",
            "`false`",
            "With `order`, whether a path in use that is bad is left before it is silent, and come back to when it is good again: see *Bad paths* in the documentation of `careof-agent`, where it is on unless told otherwise.",
        ),
        key(
            "start",
            "link name",
            "`from` of the first handover, else the first access link",
            "The access link in use when the run begins.",
        ),
        key(
            "home",
            "link name",
            "none",
            "The access link on which the mobile node is at home and needs no tunnel.",
        ),
        key(
            "lifetime",
            "duration or `\"infinity\"`",
            "`\"600 s\"`",
            "Asked for in registrations; whole seconds, at most 65534.",
        ),
        key(
            "advertisement_interval",
            "duration",
            "`\"1 s\"`",
            "The longest time between two advertisements of an agent; below 1 s it has to be meant, see `[mobility.discovery]`.",
        ),
        key(
            "discovery",
            "table",
            "see there",
            "How the mobile node and its agents find each other; see `[mobility.discovery]`.",
        ),
        key(
            "movement_detection",
            "word",
            "`\"link-trigger\"`",
            "`\"link-trigger\"` (the link layer says so at once), `\"missed-advertisements\"` (three in a row), \
`\"lifetime\"` (of the last advertisement), `\"prefix\"` (an advertisement of another prefix) or `\"eager\"` (the node goes \
to every agent that it begins to hear; where cells overlap, before it has lost the old one). Over IPv6, in the simulator, also \
`\"unreachable-router\"`: the carrier of a link that goes stays, and the node leaves a default router that neighbor \
unreachability detection finds gone (RFC 4861 section 7.3): no confirmation for `reachable_time`, a packet to send, none for \
`delay_first_probe` after that, three probes without an answer. TCP confirms when its data is acknowledged for the first time or new \
data arrives, through the router that sends it. Who sends nothing finds out nothing. Of the neighbors on its access links the mobile \
node's are resolved and probed; all other nodes, and the mobile node with other detections, know theirs for good.",
        ),
        key(
            "algorithm",
            "word",
            "`\"hmac-md5\"`",
            "Of authentication: `\"hmac-md5\"` or `\"hmac-sha-256\"`; over IPv6 `\"hmac-sha-1\"` (RFC 4285), which is the default there, \
or `\"hmac-sha-256\"`.",
        ),
        key("replay", "word", "`\"timestamps\"`", "Replay protection: `\"timestamps\"` or `\"nonces\"`."),
        key(
            "early_requests",
            "whole number",
            "`2`; over IPv6 `0`",
            "How many registration requests, 0 to 2, the mobile node sends again within a second where packets wait for the \
registration: each after twice the least round trip that it knows and 100 ms. With `0` requests are at least 1 s apart, as RFC 2002 and RFC 5944 \
(section 3.6.3) have it, and a lost one costs that second. Over IPv6 the same of Binding Updates (RFC 6275 section 11.8), but for the first one.",
        ),
        key(
            "simultaneous_bindings",
            "true or false",
            "`false`",
            "Whether the old binding is kept (the S bit).",
        ),
        key(
            "keep_old",
            "duration or `\"until-down\"`",
            "`\"until-down\"`",
            "How long after a handover the mobile node goes on listening to the interface it left and, with simultaneous \
bindings, the home agent goes on sending copies there. With `\"until-down\"` that lasts until the interface's link goes \
down.",
        ),
        key(
            "route_optimization",
            "true or false",
            "`false`",
            "Whether the other ends of the flows run careof: the home agent tells them the care-of address, and they tunnel \
to it themselves (draft-ietf-mobileip-optim). Over IPv6 they are told by the mobile node, after the return routability procedure, \
and packets go straight both ways (RFC 6275). Assists of the home agent then run at the mobile node alone, and one of the home agent alone is refused: it would see nothing.",
        ),
        key(
            "duplicate_address_detection",
            "word",
            "`\"optimistic\"`",
            "Over IPv6, how the mobile node verifies that nobody else on a link has its care-of address: `\"optimistic\"` (it uses the \
address meanwhile, RFC 4429), `\"full\"` (it waits for the second that this takes, RFC 4862) or `\"none\"`.",
        ),
        key(
            "fast_handover",
            "true, false or table",
            "`false`",
            "Over IPv6, whether access routers hand mobile nodes over to each other (RFC 5568); see `[mobility.fast_handover]`.",
        ),
        key(
            "map_selection",
            "word",
            "`\"furthest\"`",
            "With mobility anchor points (`role = \"map\"` in `[nodes]`), which of several that are advertised a mobile node uses: `\"furthest\"` \
(RFC 5380 section 9.1), `\"highest-preference\"` or `\"nearest\"`. Where two are alike in that, the higher preference decides, or the greater \
distance. One in use is kept as long as it is advertised.",
        ),
        key(
            "map_forwarding",
            "duration or `\"off\"`",
            "`\"60 s\"`",
            "For how long a mobility anchor point that was left for another one sends packets on to the new address (RFC 5380 section 6.1): a \
multiple of 4 s.",
        ),
        key(
            "smooth_handoff",
            "true or false",
            "`false`",
            "Whether the foreign agent that the mobile node comes to tells the one it comes from, which then sends on through \
a tunnel what still arrives there (draft-ietf-mobileip-optim); at home, or with an address of its own, the node tells it itself. Needs \
`care_of = \"foreign-agent\"` and `replay = \"timestamps\"`, and not `simultaneous_bindings`.",
        ),
        key(
            "policy",
            "array of tables",
            "none",
            "The mobile policy table; the first rule that matches counts.",
        ),
    ],
    elsewhere: &[
        ("count", "write `nodes`"),
        ("mobiles", "write `nodes`"),
        (
            "stations",
            "the stations are the first end of the radio: `between = [\"station-*\", \"mobile-*\"]`",
        ),
        ("access", "access links are the [links] that have no `between` or end at \"mobile\""),
        ("advertisement", "write `advertisement_interval`"),
        ("authentication", "write `algorithm`"),
        ("tunnel", "write `encapsulation`"),
        ("reverse_tunnel", "write `routing = \"reverse-tunnel\"`"),
        ("bicast", "write `simultaneous_bindings` and `keep_old`"),
        ("smooth_handover", "write `smooth_handoff`"),
        ("fast_handovers", "write `fast_handover`"),
        ("fmipv6", "write `fast_handover`"),
        ("route_optimisation", "write `route_optimization`"),
    ],
};

pub(crate) static POLICY: Section = Section {
    heading: "`policy`",
    noun: "a rule",
    intro: "A rule of the mobile policy table, as in MosquitoNet: \
`policy = [{ to = \"correspondent\", port = 80, method = \"regular-ip\" }]`. Packets that no rule matches travel as \
`routing` says.",
    keys: &[
        key(
            "to",
            "node name or prefix",
            "every destination",
            "`\"correspondent\"`, `\"10.0.0.0/8\"` or `\"10.1.2.3\"`.",
        ),
        key("port", "whole number", "every port", "TCP or UDP port of the destination, 1 to 65535."),
        key(
            "method",
            "word",
            "required",
            "`\"triangle\"`, `\"reverse-tunnel\"` or `\"regular-ip\"` (from the care-of address; breaks when its link goes).",
        ),
    ],
    elsewhere: &[("destination", "write `to`"), ("routing", "write `method`")],
};

pub(crate) static HANDOVER: Section = Section {
    heading: "`[[handover]]`",
    noun: "a handover",
    intro: "One table for each handover, in the order of time, or for several alike. With `make-before-break` the new link comes up at `at`, \
the old one stays up, and the new one carries data from the moment its registration is accepted. With \
`break-before-make` the old link goes down at `at` and the new one comes up after `interruption`, or what `link_layer` draws.\n\n\
A table stands for several handovers of a mobile node where `at` is a list of instants, or where it has `every`. They lead from `from` to `to` and back, \
again and again; with a list of links in `to` from one to the next, and from the last back to `from`:\n\n\
```\n[[handover]]\nevery = \"20 s\"\nfrom = \"wifi\"\nto = \"lte\"\nstyle = \"break-before-make\"\ninterruption = \"100 ms\"\n```\n\n\
The first one is at `at`, without it at `every`; the last is the last that is over before the run ends. With `spacing = \"poisson\"` each run draws their \
instants from its seed: from the beginning to the first, and from each to the next, it takes `least_spacing` and a time of the exponential distribution, \
`every` in the mean. `careof check` prints the instants of a first run, and each run tells its own in its events and in its `scenario.json`.\n\n\
Where many move (`nodes` of `[mobility]`), one table with `every` and without `at`, `from` and `to` sends each of them from \
station to station, round all of them. Mobile node *i* of *N* leaves for the first time at `every` · *i* / *N*, so that not all move at \
once. A radio serves one station at a time: these handovers break before they make, and what is in the radio is dropped. Between base stations \
of a domain (`[micro_mobility]`) they may overlap: each mobile node then has a second radio like the first (`NAME-second-1` and so on), and a \
handover leads from one to the other.",
    keys: &[
        key(
            "at",
            "duration or array of durations",
            "required without `every`",
            "Since the run began; before its end. An array stands for several handovers; with `every` it is the first one.",
        ),
        key(
            "from",
            "link name",
            "required for mobile nodes that do not go round stations",
            "The access link in use until then.",
        ),
        key(
            "to",
            "link name or array of link names",
            "as `from`",
            "The access link in use after it. An array names those that several handovers lead to one after the other.",
        ),
        key(
            "every",
            "duration",
            "none",
            "From one handover of a mobile node to its next: between the links of `from` and `to`, or round the stations.",
        ),
        key(
            "spacing",
            "word",
            "`\"even\"`",
            "With `every`, `from` and `to`: `\"even\"`, or `\"poisson\"` for drawn instants, of which `every` is the mean distance.",
        ),
        key(
            "least_spacing",
            "duration",
            "what a handover takes, or its notice",
            "With `spacing = \"poisson\"`: the least distance, below `every`.",
        ),
        key(
            "style",
            "word",
            "`\"make-before-break\"`; round stations `\"break-before-make\"`",
            "`\"make-before-break\"` or `\"break-before-make\"`; round stations only that, but in a domain: there `overlap` says which.",
        ),
        key("interruption", "duration", "`\"0 s\"`", "Time without any link; only with `break-before-make`."),
        key(
            "link_layer",
            "`\"802.11\"` or table",
            "none",
            "Only with `break-before-make`: what the time without any link is drawn from, in place of `interruption`, for each handover of a table anew. See `link_layer`.",
        ),
        key(
            "overlap",
            "duration",
            "to the end",
            "Only with `make-before-break`, or in a domain: how long both links are up; then the old one goes down as with \
`break-before-make`. A mobile node that has to find out by advertisements that it moved is not told to change, either.",
        ),
        key(
            "spread",
            "duration",
            "`\"0 s\"`",
            "With `every` round stations: up to how much later than that a handover comes, drawn for each handover anew.",
        ),
        key(
            "walk",
            "word, array of stations or file",
            "`\"round\"`",
            "With `every` in a domain: which base station is next. `\"round\"` is the next one in order. `\"random-waypoint\"` takes the base \
stations for cells along a road: each mobile node draws one, goes there through the cells between, and draws another one. An array names the \
base stations one after the other, again and again; all mobile nodes begin at its first. A name with a dot is that of a file, which has its \
own times in place of `every` and `spread`: its first line is `time_s,station`, and each one behind it, such as `12.5,station-3`, says when a \
mobile node leaves for which station. All begin at the station of the first, whenever that is, and stay at the last; lines that begin with `#` are \
comments. The name counts from the folder of the scenario, in `--set` from the folder you are in.",
        ),
        key(
            "queued",
            "word",
            "`\"drain-late\"`; round stations `\"drop\"`",
            "What becomes of packets that wait for the old link: `\"drain-late\"` (they leave over it, if need be when \
it is up again), `\"drop\"`, `\"drop-with-icmp\"` (the sender is told), `\"re-route\"` (what \
still waits when the new path is registered takes that); `\"buffer-and-forward\"` (nothing leaves over the old link any more, all of \
it takes the new path) and `\"duplicate\"` (both) are known words that no world can carry out yet.",
        ),
        key(
            "notice",
            "duration",
            "`\"0 s\"`",
            "How long before `at` the handover is announced: in the trace, and to assists that act on it.",
        ),
        key(
            "announced",
            "link name",
            "`to`",
            "The access link that is announced (it needs `notice`) where that is wrong and the mobile node turns up at `to`.",
        ),
        key(
            "cancelled",
            "true or false",
            "`false`",
            "Whether it is a false alarm: announced (it needs `notice`), it does not happen, and `from` stays in use.",
        ),
    ],
    elsewhere: &[
        ("time", "write `at`"),
        ("interval", "write `every`"),
        ("period", "write `every`"),
        ("times", "write them in `at`: `at = [\"10 s\", \"25 s\"]`"),
        ("poisson", "write `spacing = \"poisson\"` and `every`"),
        ("mean", "write `every`"),
        ("min_spacing", "write `least_spacing`"),
        ("gap", "write `interruption`"),
        ("outage", "write `interruption`"),
        ("soft", "write `style = \"make-before-break\"`"),
        ("warning", "write `notice`"),
        ("false_alarm", "write `cancelled = true`"),
        ("link", "write `from` and `to`"),
    ],
};

pub(crate) static TCP: Section = Section {
    heading: "`tcp`",
    noun: "a TCP",
    intro: "TCP of a flow, the same at both ends: the name of a profile (`tcp = \"linux-2.0\"`) or a table that changes \
one (`tcp = { profile = \"linux-2.0\", window = \"16 KiB\" }`).\n\n\
On Linux hosts the TCP is the kernel's, and the models stand for its nearest settings: `linux` for the kernel as it \
comes, `sack` for its SACK with Reno, the others for its `legacy` profile with Reno. What a kernel cannot do is an error \
there; what only a kernel has (`variant = \"kernel\"`, a `congestion` no model has, the profiles `modern` and `legacy`) is \
an error in the simulator.",
    keys: &[
        key(
            "profile",
            "word",
            "the profile called like `variant`; without both `\"linux\"`",
            "What to begin with: `\"tahoe\"`, `\"reno\"`, `\"newreno\"`, `\"sack\"`, `\"vegas\"` (as papers and ns-2 mean them), \
`\"linux-2.0\"` or `\"linux\"` (today's, with its defaults); on Linux hosts also \
the kernel's own, `\"modern\"` (as it comes) or `\"legacy\"` (what the 1990s did not have is off: SACK, timestamps, F-RTO, \
RACK, tail loss probes).",
        ),
        key(
            "variant",
            "word",
            "the profile's",
            "Loss recovery: `\"tahoe\"`, `\"reno\"`, `\"newreno\"`, `\"sack\"`, `\"vegas\"`, `\"linux-2.0\"` or `\"linux\"`; on Linux \
hosts also `\"kernel\"`.",
        ),
        key(
            "congestion",
            "word or name",
            "the profile's; kernel: `\"cubic\"`, `\"reno\"` with the profile `legacy`",
            "Congestion control: `\"reno\"`, `\"cubic\"`, `\"vegas\"`, `\"westwood\"`, `\"bbr\"` or `\"bbr3\"`, in the kernel's edition with \
variant `linux` and by its RFC or paper otherwise. On Linux hosts (`careof run --world linux`) whatever the machine has.",
        ),
        key(
            "hystart",
            "word",
            "the profile's",
            "An early end of slow start with Reno and CUBIC: `\"off\"`, `\"linux\"` (by delay or ACK train; with the variant `linux` part of CUBIC only) or `\"hystart++\"` (RFC 9406).",
        ),
        key(
            "pacing",
            "true or false",
            "false",
            "Whether segments leave evenly instead of in bursts, at a rate that follows the window: twice the window a round trip early \
in slow start, 1.2 times later (Linux's `fq`). Congestion control by `\"bbr\"` and `\"bbr3\"` paces in any case, at its own rate.",
        ),
        key(
            "rto",
            "word",
            "the profile's",
            "Estimator: `\"rfc6298\"`, `\"linux\"`, `\"linux-2.0\"` or `\"bsd\"`.",
        ),
        key("rto_initial", "duration", "the estimator's", "RTO before the first measurement."),
        key("rto_min", "duration", "the estimator's", "Least RTO."),
        key("rto_max", "duration", "the estimator's", "Greatest RTO, back-off included."),
        key("clock_granularity", "duration", "the profile's", "Clock grain G of the `rfc6298` estimator."),
        key(
            "window",
            "size",
            "the profile's",
            "Receive buffer: the most that is advertised. Above 65535 B it needs `window_scaling`.",
        ),
        key("window_scaling", "true or false", "the profile's", "RFC 7323."),
        key(
            "mss",
            "size or bytes",
            "what fits the links at the flow's ends",
            "Largest segment, 88 bytes to their MTU less 40.",
        ),
        key("timestamps", "true or false", "the profile's", "RFC 7323."),
        key(
            "sack",
            "true or false",
            "the profile's; on with variant `sack`",
            "RFC 2018. Off, it takes `dsack`, `sack_compression`, `rack` and `tail_loss_probe` with it.",
        ),
        key("dsack", "true or false", "the profile's", "Report duplicates, and use such reports (RFC 2883)."),
        key(
            "sack_compression",
            "true or false",
            "the profile's",
            "With `delayed_ack = \"linux\"` a receiver sends the first three duplicate ACKs for a gap at once, then one \
             a twentieth of the round trip, at most each millisecond (`tcp_comp_sack_nr` = 44 of Linux, and 0 where it is off).",
        ),
        key("prr", "true or false", "the profile's", "Proportional rate reduction in a recovery (RFC 9937)."),
        key(
            "reduction_bound",
            "word",
            "the profile's",
            "How far PRR may catch up: `\"rfc9937\"`, or RFC 6937's `\"conservative\"` (CRB) or `\"slow-start\"` (SSRB).",
        ),
        key("rack", "true or false", "the profile's", "Losses by time as well (RFC 8985); needs SACK."),
        key(
            "tail_loss_probe",
            "true or false",
            "the profile's",
            "Probes for a lost tail (RFC 8985, section 7).",
        ),
        key("frto", "true or false", "the profile's", "Spurious timeouts are noticed by F-RTO (RFC 5682)."),
        key(
            "eifel",
            "true or false",
            "the profile's",
            "Spurious recoveries are noticed by timestamps and undone (RFC 3522, RFC 4015).",
        ),
        key("ecn", "true or false", "the profile's", "Explicit congestion notification (RFC 3168)."),
        key(
            "icmp_unreachable",
            "true or false",
            "the profile's",
            "ICMP unreachable during an outage takes back one back-off (RFC 6069).",
        ),
        key(
            "user_timeout",
            "duration",
            "none",
            "How long data may stay unacknowledged before the connection is given up (RFC 5482).",
        ),
        key("limited_transmit", "true or false", "the profile's", "RFC 3042."),
        key(
            "careful",
            "true or false",
            "the profile's",
            "Whether duplicate ACKs of data sent before the last recovery start none (RFC 6582).",
        ),
        key("duplicate_ack_threshold", "whole number", "the profile's", "Duplicate ACKs that mean a loss."),
        key(
            "partial_ack_timer",
            "word",
            "the profile's",
            "newreno: `\"impatient\"` or `\"slow-but-steady\"` (RFC 6582, section 4).",
        ),
        key(
            "burst_guard",
            "true or false",
            "the profile's",
            "newreno: whether recovery ends with cwnd = min(ssthresh, FlightSize + SMSS) (RFC 6582, section 3.2 step 3).",
        ),
        key(
            "rescue_retransmission",
            "true or false",
            "the profile's",
            "sack: whether the last segment is repeated once where nothing else can be sent (RFC 6675, NextSeg rule 4).",
        ),
        key(
            "linux20_fast_retransmit",
            "true or false",
            "the profile's",
            "linux-2.0: whether pure duplicate ACKs start a fast retransmit; those hosts meant to, and did not.",
        ),
        key(
            "delayed_ack",
            "duration or word",
            "the profile's",
            "Longest delay of an ACK, at most 500 ms; `\"off\"`, `\"linux\"` or `\"linux-2.0\"`.",
        ),
        key(
            "initial_window",
            "segments or word",
            "the profile's",
            "`\"rfc5681\"`, `\"rfc6928\"` or a number, such as `\"4 segments\"`.",
        ),
        key("initial_ssthresh", "size", "none", "First slow start threshold, at least a segment."),
        key("max_cwnd", "size", "none", "Congestion window never exceeded, at least a segment."),
        key(
            "ack_counting",
            "segments or word",
            "the profile's",
            "Slow start: `\"per-ack\"`, or by bytes, at most so many segments an ACK (RFC 3465), as `\"2 segments\"`.",
        ),
        key(
            "window_validation",
            "true or false",
            "the profile's",
            "Whether the congestion window grows only while it is used (RFC 7661).",
        ),
        key(
            "limited_transmit_counts",
            "true or false",
            "the profile's",
            "Whether segments of limited transmit count when the window is halved.",
        ),
        key(
            "idle_restart",
            "word",
            "the profile's",
            "After silence: `\"off\"`, `\"initial-window\"` or `\"decay\"`.",
        ),
        key(
            "kernel",
            "word",
            "`\"6.18\"`",
            "The release of Linux whose sender the variant `linux` is, where releases differ: `\"6.1\"` or `\"6.18\"`. From 6.10 on a packet in the \
send queue takes from the one behind it what may leave with it at once, so that fewer small segments leave and the window is filled to its last segment, \
and a FIN waits for the congestion window. On Linux hosts the kernel is what it is.",
        ),
        key(
            "timer_hz",
            "whole number",
            "none",
            "Ticks a second of the kernel (`CONFIG_HZ`: 250 or 1000 mostly) by whose timer wheel the retransmission timer of the variant `linux` fires: late by a \
tick up to 62 ticks, beyond by up to an eighth of its time. Without it the timer fires at its millisecond. 100 to 1000. On Linux hosts the kernel is what it is.",
        ),
        key(
            "mtu_probing",
            "true or false",
            "`false`",
            "After three timeouts in a row segments of at most 1024 bytes are tried, then ever smaller ones, as where a path swallows large packets and nobody says so (RFC 4821; \
`tcp_mtu_probing` of Linux, which also searches for larger ones later: that is not modelled).",
        ),
        key("nagle", "true or false", "the profile's", "RFC 896."),
        key(
            "max_retransmissions",
            "whole number",
            "the profile's",
            "Timeouts in a row before the connection is given up.",
        ),
        key(
            "pmtu_discovery",
            "true or false",
            "`true`",
            "Packets carry DF, and ICMP \"fragmentation needed\" shrinks the segments (RFC 1191). On Linux hosts the mobile node also \
             leaves room for the tunnel in its segments and asks for such, unless a flow of its has `false`: then packets that are \
             too long in the tunnel are cut there.",
        ),
    ],
    elsewhere: &[
        ("receive_window", "write `window`"),
        ("rwnd", "write `window`"),
        ("congestion_control", "write `congestion`"),
        ("tlp", "write `tail_loss_probe`"),
        ("slow_start", "write `hystart`"),
        ("cwnd", "write `initial_window` or `max_cwnd`"),
        ("iw", "write `initial_window`"),
        ("ssthresh", "write `initial_ssthresh`"),
        ("dupthresh", "write `duplicate_ack_threshold`"),
    ],
};

/// All sections in the order of the documentation.
pub(crate) static SECTIONS: [&Section; 43] = [
    &ROOT,
    &link::LINK,
    &node::NODE,
    &medium::MEDIUM,
    &link::JITTER,
    &link::LOSS,
    &link::QUEUE,
    &link::TRACE,
    &link::FRAMING,
    &MOBILITY,
    &dhcp::DHCP,
    &discovery::DISCOVERY,
    &fast_handover::FAST_HANDOVER,
    &POLICY,
    &micro_mobility::MICRO_MOBILITY,
    &micro_mobility::BUFFER,
    &multipath::MULTIPATH,
    &multipath::RESEQUENCER,
    &multipath::PATH,
    &multipath::PATH_RULE,
    &HANDOVER,
    &link_layer::LINK_LAYER,
    &link_layer::PHASE,
    &flow::FLOW,
    &TCP,
    &quic::QUIC,
    &mptcp::MPTCP,
    &assist::ASSIST,
    &assist::EXCEPT,
    &assist::REPLAY,
    &assist::HOLD_LAST,
    &assist::LCD_KICK,
    &assist::FREEZE,
    &assist::FAST_RETRANSMIT,
    &assist::ACK_HOLD,
    &assist::WINDOW_CLAMP,
    &assist::PATH_QUEUE,
    &assist::BUFFER_FORWARD,
    &assist::SNOOP,
    &assist::SPLIT,
    &assist::RTO_RESET,
    &assist::TCP_CM,
    &assist::RTO_FAST_DECREASE,
];

/// What messages say about scenarios.
pub(crate) static DIALECT: Dialect = Dialect {
    noun: "a scenario",
    sections: &SECTIONS,
    examples: "ready scenarios are in scenarios/",
    given_twice: "a key is given once; a table is opened once, but [[flow]] and [[handover]] once for each",
    override_example: "seed=7 or links.gsm.delay=\"300 ms\"",
    largest_mib: 4,
    long_form,
};

/// Where a value may be written short, the key that the short form stands for: `gsm = "gsm-csd"` is
/// `gsm = { preset = "gsm-csd" }`.
fn long_form(keys: &[&str]) -> Option<&'static str> {
    match keys {
        ["assist"] => Some("use"),
        ["links", _] => Some("preset"),
        ["links", _, "queue" | "queue_up"] | ["media", _, "queue"] => Some("limit"),
        ["links", _, "jitter" | "jitter_up"] => Some("spread"),
        ["links", _, "loss" | "loss_up"] => Some("p"),
        ["links", _, "trace" | "trace_up"] => Some("file"),
        ["flow", _, "quic"] => Some("congestion"),
        ["flow", _, "mptcp"] => Some("enabled"),
        ["flow", _, "tcp"] | ["assist", "split", "tcp"] => Some("profile"),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
