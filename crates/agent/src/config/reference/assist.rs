//! The keys of `[assist]` and of what is in it.

pub(crate) use careof_assist_file::sections as assists;
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
| `window-clamp` | Lowers the advertised window to what keeps the new path busy. | all agents |\n\
| `mss-clamp` | Lowers the segment size in SYNs to what fits the tunnel. | all agents |\n\
| `black-hole` | Finds a tunnel that swallows large packets where ICMP is filtered, and crosses it in fragments. | all agents |\n\n\
A home or foreign agent does it for downloads, a mobile node for uploads and by the acknowledgements it sends. It acts on packets that \
pass the tunnel device: a mobile node therefore needs `routing = \"reverse-tunnel\"`, also in `[[policy]]`; at a home agent replay is \
best where the acknowledgements come back through the tunnel, too. What the mobile node's `report_paths` tells is used: how \
fast a path is, whether the old one is lost, and what arrived of the flows before it was. Only TCP is touched, no fragments; where IP or TCP options are not understood (TCP MD5, \
TCP-AO, Multipath TCP), packets are at most sent again as they were. `window-clamp` follows what a replay has measured of the path, and otherwise the path's `rate` and `round_trip` (keys of `[[interface]]`; `report_paths` tells them to the home agent); while neither is known, nothing is changed. \
`careof-agent status` shows what was done for which connection; `black-holes` counts what `black-hole` has found.",
    keys: &[
        key(
            "use",
            "array of words, or text",
            "`\"none\"`",
            "The assists. `\"default\"` stands for `replay`, `lcd-kick` and `window-clamp`.",
        ),
        key("except", "array of tables", "none", "Connections that are left alone; see `[[assist.except]]`."),
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
