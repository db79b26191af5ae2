//! The keys of `[micro_mobility]`.

use careof_document::section::{Section, key};

pub(crate) static MICRO_MOBILITY: Section = Section {
    heading: "`[micro_mobility]`",
    noun: "the micro-mobility",
    intro: "A domain of micro-mobility below Mobile IPv4. The nodes behind `gateway`, towards the base stations, are a tree of routers that follow \
the mobile nodes themselves. The gateway is the foreign agent: mobile nodes register its address with their home agent once, and no move \
inside the domain is told outside. To Mobile IP the domain is one link.\n\n\
It needs `nodes` in `[mobility]`; the base stations are the first end of the radio, `between = [\"station-*\", \"mobile-*\"]`. With it \
`[[handover]]` with `every` also has `overlap` and `walk`.\n\n\
On Linux hosts a domain has one mobile node and at most eight base stations: `scenarios/micromobility/seven-hosts-*.toml`. Every router there is a host \
whose kernel forwards nothing, and the counts of the second radio are those of the first.\n\n\
`building-blocks` is what the named protocols are made of, each mechanism set by itself: G. Bhaskara and A. Helmy, *TCP over Micro Mobility \
Protocols: A Systematic Ripple Effect Analysis*, section II C. The domain has host routes, one for each mobile node; when the mobile node has \
come to another base station, the routers on the way up to where the old and the new way meet change theirs. The other protocols follow \
their drafts: Cellular IP (draft-ietf-mobileip-cellularip-00), HAWAII (draft-ietf-mobileip-hawaii-01) and multicast-based mobility, M&M \
(A. Helmy, M. Jaseemuddin, G. Bhaskara). All messages are authenticated.\n\n\
```\n\
[micro_mobility]\n\
protocol = \"building-blocks\"\n\
gateway = \"core\"\n\
trigger = \"source\"\n\
lead = \"200 ms\"\n\
buffer = { packets = 64 }\n\
```",
    keys: &[
        key(
            "protocol",
            "word",
            "required",
            "`\"building-blocks\"`, `\"cellular-ip\"`, `\"hawaii\"` or `\"multicast\"`.",
        ),
        key(
            "handover",
            "word",
            "`\"hard\"`",
            "Of Cellular IP: `\"hard\"` (the mobile node tells the network from the new base station) or `\"semi-soft\"` (it does so `lead` before, \
and the network sends to both base stations until it has come). With `\"semi-soft\"` it has a second radio, as with `overlap`.",
        ),
        key(
            "delay",
            "duration",
            "`\"0 s\"`",
            "Of a semi-soft handover: how much later packets leave for the new base station than for the old one (the delay device of the crossover \
router, which holds 50 packets).",
        ),
        key(
            "scheme",
            "word",
            "`\"unf\"`",
            "Of HAWAII: `\"msf\"` (multiple stream forwarding) or `\"ssf\"` (single stream forwarding), where the old base station sends on what comes \
for the mobile node, or `\"unf\"` (unicast non-forwarding) or `\"mnf\"` (multicast non-forwarding: to both for a short time).",
        ),
        key(
            "gateway",
            "node name",
            "`\"gateway\"`",
            "Where the domain begins: every way from a base station to the home agent leads through this node.",
        ),
        key(
            "advertisement_interval",
            "duration",
            "`\"0 s\"`",
            "From one advertisement of a base station to its next. Each base station has instants of its own, which are drawn, and a mobile node that \
has come to it notices by the first one that it hears, and tells the network then. `\"0 s\"`: its link layer tells it at once. Whether it is there \
is known to the base station from its link layer. Advertisements take no time on the air.",
        ),
        key(
            "trigger",
            "word",
            "`\"none\"`",
            "Who tells the network of a handover before it: `\"none\"` (nobody: the handover is reactive), `\"source\"` (the base station that is \
left names the one that is entered), `\"path\"` (it sends a list of candidates) or `\"no-path\"` (no list: all base stations are candidates). \
From the trigger on the domain sends the packets for the mobile node to the base station where it is and to the candidates.",
        ),
        key(
            "car_set",
            "whole number or `\"all\"`",
            "`1` with `source`, else `\"all\"`",
            "The size of the candidate access router set, with a trigger: the base station that the mobile node goes to and its nearest \
neighbours in the order of the base stations.",
        ),
        key(
            "lead",
            "duration",
            "`\"100 ms\"`",
            "How long before the handover the trigger comes. A handover that follows another one sooner is announced as soon as the mobile \
node is there.",
        ),
        key(
            "buffer",
            "true, false or table",
            "`false`",
            "What a base station does with packets for a mobile node that is not there yet, or with `forward` not there any longer: keep them, or drop them. \
`true` is the defaults of the table.",
        ),
        key(
            "bicast",
            "duration",
            "`\"0 s\"`",
            "For how long, once the mobile node has come to another base station, its packets go to the one before as well; of M&M, how long that \
base station stays in the group.",
        ),
        key(
            "forward",
            "duration",
            "`\"0 s\"`",
            "For how long the base station that was left sends on what still comes for the mobile node once it is told where that is; what comes \
before it keeps in its `buffer`. Not with `bicast`.",
        ),
    ],
    elsewhere: &[
        ("candidates", "write `car_set`"),
        ("buffering", "write `buffer`"),
        ("root", "write `gateway`"),
        ("reactive", "write `forward`"),
        ("nodes", "write it in [mobility]"),
    ],
};

pub(crate) static BUFFER: Section = Section {
    heading: "`buffer` of `[micro_mobility]`",
    noun: "the buffer",
    intro: "What a base station keeps for one mobile node that has not come yet.",
    keys: &[
        key("packets", "whole number", "`256`", "Packets, 1 to 100000."),
        key("bytes", "size", "`\"384 kB\"`", "Their bytes."),
        key("age", "duration", "`\"5 s\"`", "How long a packet is kept, at most 10 min."),
        key(
            "when_full",
            "word",
            "`\"drop-oldest\"`",
            "Which packet goes when it is full: `\"drop-oldest\"` or `\"drop-tail\"`, the one that comes.",
        ),
    ],
    elsewhere: &[("limit", "write `packets` and `bytes`"), ("size", "write `packets` and `bytes`")],
};
