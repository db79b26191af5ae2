//! The keys of `[assist]` and of what is in it.

use careof_document::section::{Section, key};

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
best where the acknowledgements come back through the tunnel, too. What the mobile node's `report_paths` tells is used: how \
fast a path is, whether the old one is lost, and what arrived of the flows before it was. Only TCP is touched, no fragments; where IP or TCP options are not understood (TCP MD5, \
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
