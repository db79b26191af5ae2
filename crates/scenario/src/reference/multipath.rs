//! The keys of `[multipath]`.

use careof_document::section::{Section, key};

pub(crate) static MULTIPATH: Section = Section {
    heading: "`[multipath]`",
    noun: "the multipath",
    intro: "Several links at once, below Mobile IPv4 with co-located care-of addresses. The mobile node registers its care-of addresses on all \
paths, and the home agent disperses the packets of one binding over them. Each packet in their tunnel is numbered within its flow, so that the \
other end can put the flow in order, and within its path. Both ends measure the paths by messages between them: round trip, transit, loss \
and rate. A path that stops answering is out within a second, and one that answers again is tried gently.\n\n\
All paths are up from the beginning, and there are no handovers. `d` and `dq` are the rules of K. Koyama, Y. Ito, H. Mineno and S. Ishihara, \
*Evaluation of Performance of TCP on Mobile IP SHAKE* (2004), section 2.5; with `uplink = \"direct\"` and `resequencer = false` the rest is \
theirs, too. The rates of the paths that `dq` wants to be told are those that the mobile node knows (`known_rate` of `[links]`); the other rules \
measure.\n\n\
On Linux hosts (`careof run --world linux`) it is the same code around the kernel's TCP: agents as in `careof-agent`, with the key of the \
registrations. A segment has arrived there, too, when the mobile node's end passes it on in its turn. To set both worlds beside each \
other take a sender that both have, `careof compare scenarios/shake/emulated-64.toml --worlds --set flow.tcp.profile=linux`: in a flow that is \
out of order much hangs on the sender, and a segment some bytes longer changes its goodput by a tenth.\n\n\
```\n\
[multipath]\n\
dispersion = \"auto\"\n\
paths = [\"lte\", { link = \"starlink\", cost = 1 }]\n\
rules = [{ port = 5060, treatment = \"duplicated\" }]\n\
```",
    keys: &[
        key(
            "dispersion",
            "word",
            "`\"auto\"`",
            "By which path a packet goes: `\"auto\"` (each flow pinned or split, by what is measured), `\"d\"` (at random, by the ratio of \
round trips), `\"dq\"` (the shortest time in a virtual queue and on the way), `\"per-flow\"`, `\"duplicate\"` (a copy by every path), \
`\"weighted\"`, `\"ecf\"` (earliest completion first), `\"blest\"` (blocking estimation), `\"earliest\"` (earliest arrival) or \
`\"overflow\"` (the cheapest path that is not full).",
        ),
        key(
            "resequencer",
            "true, false or table",
            "`true`",
            "Whether both ends put flows that have come by several paths in order. `true` is the defaults of the table.",
        ),
        key(
            "uplink",
            "word",
            "`\"dispersed\"`",
            "How the mobile node's packets travel: `\"dispersed\"` over all paths to the home agent, or `\"direct\"`, by its first path \
that works straight to the correspondent node, which is what the paper's prototype did.",
        ),
        key(
            "paths",
            "array of access links or tables",
            "all access links",
            "Which access links are paths, 2 to 8 with those that relays lend (`role = \"relay\"` of `[nodes]`), and one at least.",
        ),
        key(
            "trust",
            "word",
            "`\"keys\"`",
            "Whom the mobile node and nodes with `role = \"relay\"` believe: `\"keys\"` (those with whom they have a key in common) or `\"first-use\"` \
(the mobile node introduces a key of its own with its first request, and the relay keeps to it).",
        ),
        key(
            "rules",
            "array of tables",
            "none",
            "The first rule that fits a packet says which paths it may take, and how.",
        ),
    ],
    elsewhere: &[
        ("scheduler", "write `dispersion`"),
        ("links", "write `paths`"),
        ("reorder", "write `resequencer`"),
        ("reordering", "write `resequencer`"),
    ],
};

pub(crate) static RESEQUENCER: Section = Section {
    heading: "`resequencer` of `[multipath]`",
    noun: "the resequencer",
    intro: "What an end holds of packets that came before earlier ones of their flow. A packet is held until what is missing has come, every path \
that it could be on has passed it, or it would have come by the slowest of them.",
    keys: &[
        key(
            "packets",
            "whole number",
            "`8192`",
            "Packets of all flows, 1 to 100000; one flow may have half of them.",
        ),
        key("bytes", "size", "`\"8 MiB\"`", "Their bytes."),
        key(
            "longest_wait",
            "duration",
            "`\"500 ms\"`",
            "The longest that one is held for what a path should still bring by which nothing comes, whatever was measured.",
        ),
    ],
    elsewhere: &[("timeout", "write `longest_wait`"), ("buffer", "write `packets` and `bytes`")],
};

pub(crate) static PATH: Section = Section {
    heading: "`paths` of `[multipath]`",
    noun: "a path",
    intro: "An access link that is a path, by its name or with what is told of it: `paths = [\"wifi\", { link = \"lte\", cost = 1 }]`.",
    keys: &[
        key("link", "link name", "required", "Which access link."),
        key(
            "cost",
            "whole number",
            "`0`",
            "With `overflow`: paths that cost less are filled first. 0 to 65535.",
        ),
        key("weight", "whole number", "`1`", "With `weighted`: its share of the bytes; 0 is none."),
    ],
    elsewhere: &[
        ("name", "write `link`"),
        ("rate", "it is a key of [links], and what is known of it `known_rate`"),
    ],
};

pub(crate) static PATH_RULE: Section = Section {
    heading: "`rules` of `[multipath]`",
    noun: "a rule",
    intro: "What is wanted of certain packets. What is left out fits all.",
    keys: &[
        key(
            "to",
            "node or prefix",
            "every one",
            "The other end, such as `\"correspondent\"` or `\"10.0.0.0/8\"`.",
        ),
        key("port", "whole number", "every one", "The port there."),
        key("dscp", "whole number", "every one", "The Differentiated Services Code Point, 0 to 63."),
        key("paths", "array of link names", "all", "The paths that they may take."),
        key(
            "treatment",
            "word",
            "`\"dispersed\"`",
            "`\"dispersed\"` as `dispersion` says, `\"pinned\"` (each flow by one path) or `\"duplicated\"`.",
        ),
    ],
    elsewhere: &[("method", "write `treatment`")],
};
