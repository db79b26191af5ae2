//! The keys of `link_layer` of `[[handover]]`.

use careof_document::section::{Section, key};

pub(crate) static LINK_LAYER: Section = Section {
    heading: "`link_layer` of `[[handover]]`",
    noun: "the link layer of a handover",
    intro: "How long a handover of 802.11 leaves the mobile node without a link, with `link_layer = \"802.11\"` or this table in place of \
`interruption`:\n\n\
```\n\
[[handover]]\n\
at = \"15 s\"\n\
from = \"wifi-1\"\n\
to = \"wifi-2\"\n\
style = \"break-before-make\"\n\
link_layer = { scan = \"active\", min_channel_time = \"20 ms\", max_channel_time = \"40 ms\" }\n\
```\n\n\
The handover has the parts that Mishra, Shin and Arbaugh found (\"An Empirical Analysis of the IEEE 802.11 MAC Layer Handoff Process\", 2003): the \
mobile node notices that its access point is gone, looks for others, authenticates and reassociates. Each run draws them anew from its seed. \
With `scan = \"active\"` the mobile node is on each channel for `max_channel_time` if somebody answers there, and for `min_channel_time` if not. The new \
access point answers on one of them; on each of the others somebody does with the chance `answering`. With `scan = \"passive\"` it is on each channel \
for `beacon_interval`. Authentication and reassociation are a frame each way at 1 Mbit/s, after DIFS and a back-off from the first window, with \
its acknowledgement, on a channel where nobody else sends: 2.3 and 2.7 ms in the mean. Nothing of it is on the air of a medium of `[media]`.\n\n\
Where you know how long a part lasts, give its length in place of what makes it: `detection_time`, `scan_time`, `authentication_time` and \
`reassociation_time`, each a duration or a distribution (see `TIME` of `link_layer`):\n\n\
```\n\
[[handover]]\n\
every = \"20 s\"\n\
link_layer = { scan_time = { mean = \"350 ms\", deviation = \"60 ms\" }, reassociation_time = { min = \"2 ms\", max = \"8 ms\" } }\n\
```\n\n\
No distribution of Mishra, Shin and Arbaugh is built in. What is known of their figures here is that the scan takes more than 90 % of a handover, and that \
handovers of one card differ much, as do those of different cards; the lengths above are examples, not theirs.",
    keys: &[
        key("kind", "word", "`\"802.11\"`", "`\"802.11\"`."),
        key(
            "scan",
            "word",
            "`\"active\"`",
            "`\"active\"` (probe requests), `\"passive\"` (beacons) or `\"none\"` (the mobile node knows where to go).",
        ),
        key(
            "channels",
            "whole number",
            "`11`",
            "Channels that are looked at, 1 to 14: 11 are those of 2.4 GHz in the United States.",
        ),
        key(
            "answering",
            "probability",
            "2 of the other channels",
            "Chance that somebody answers on a channel other than that of the new access point. Three channels of 2.4 GHz do not overlap.",
        ),
        key(
            "min_channel_time",
            "duration",
            "`\"1 ms\"`",
            "Time on a silent channel. The defaults of this key and the next are what Velayos and Karlsson advise to (\"Techniques to Reduce the IEEE 802.11b \
Handoff Time\", 2004); cards of that time took many times as long. Give both or none.",
        ),
        key("max_channel_time", "duration", "`\"10.24 ms\"`", "Time on a channel where somebody answers."),
        key(
            "beacon_interval",
            "duration",
            "`\"102.4 ms\"`",
            "Between two beacons of an access point; the default is 100 time units of 1024 us.",
        ),
        key(
            "lost_beacons",
            "whole number",
            "`0`",
            "Beacons in a row that are missed until the access point is taken for gone, up to 255. They begin anywhere between two beacons. `0` is a \
mobile node that leaves by itself.",
        ),
        key(
            "answer",
            "duration",
            "`\"0 s\"`",
            "What an access point thinks about each request before it answers.",
        ),
        key(
            "detection_time",
            "duration or table",
            "none",
            "How long the mobile node takes to notice that its access point is gone, in place of `lost_beacons`.",
        ),
        key(
            "scan_time",
            "duration or table",
            "none",
            "How long the scan takes, in place of `scan`, `channels`, `answering` and the times of channels.",
        ),
        key(
            "authentication_time",
            "duration or table",
            "none",
            "How long authentication takes, in place of its two frames.",
        ),
        key(
            "reassociation_time",
            "duration or table",
            "none",
            "How long reassociation takes, in place of its two frames.",
        ),
    ],
    elsewhere: &[
        ("interruption", "it follows from what is here"),
        ("dwell", "write `min_channel_time` and `max_channel_time`"),
        ("beacon_loss", "write `lost_beacons`"),
    ],
};

pub(crate) static PHASE: Section = Section {
    heading: "`TIME` of `link_layer`",
    noun: "the length of a part of a handover",
    intro: "How long a part of a handover of 802.11 lasts, drawn for each handover anew, as a table of `link_layer` in place of a duration: either `min` and \
`max`, or `mean` and `deviation`. `TIME` is `detection_time`, `scan_time`, `authentication_time` or `reassociation_time`.",
    keys: &[
        key(
            "min",
            "duration",
            "required without `mean`",
            "The shortest. All lengths from here to `max` are as likely.",
        ),
        key("max", "duration", "required with `min`", "The longest."),
        key(
            "mean",
            "duration",
            "required without `min`",
            "Mean of a normal distribution, of which lengths below zero and more than three deviations off are drawn again.",
        ),
        key("deviation", "duration", "required with `mean`", "Its standard deviation."),
    ],
    elsewhere: &[
        ("least", "write `min`"),
        ("most", "write `max`"),
        ("stddev", "write `deviation`"),
        (
            "distribution",
            "it follows from the keys: `min` and `max` are uniform, `mean` and `deviation` normal",
        ),
    ],
};
