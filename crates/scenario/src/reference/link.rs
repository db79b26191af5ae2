//! The keys of a link, and of the tables that are their values.

use careof_document::section::{Section, key};

pub(crate) static LINK: Section = Section {
    heading: "`[links]`",
    noun: "a link",
    intro: "Each key of this table is the name of a link (letters, digits, `-`, `_`). Its value is the name of a \
preset (`gsm = \"gsm-csd\"`), a table that changes one (`gsm = { preset = \"gsm-csd\", queue = \"50 packets\" }`), or \
a table that gives at least `rate` and `delay`.\n\n\
A link is two one-way paths. The keys without `_up` describe the direction from the first node of `between` to the \
second, called *down*; for a link to the mobile node that is the direction to the mobile node. The other direction \
is the same unless a key with `_up` says otherwise; a key without `_up` overrides both directions of a preset. All \
delays are one way: a round trip over the link takes `delay` + `delay_up`, plus the time to send the packets.\n\n\
One table can stand for many links: `left = { ..., between = [\"sender-*\", \"router\"], count = 100 }` joins `sender-1` \
to `sender-100` to `router` by links `left-1` to `left-100`. Where both ends have a `*` and links above it make fewer \
nodes for one of them than `count`, these are shared out evenly and in order: with `area-1` and `area-2` there, \
`between = [\"area-*\", \"station-*\"], count = 6` puts three stations on each.",
    keys: &[
        key("preset", "text", "none", "A link of the list below, to begin with."),
        key(
            "rate",
            "rate",
            "the preset's, else required",
            "Of the serialiser. `\"0 bit/s\"` delivers nothing; `\"unlimited\"` sends in no time.",
        ),
        key("rate_up", "rate", "`rate`", "The same, from the second node to the first."),
        key(
            "delay",
            "duration",
            "the preset's, else required",
            "One way, without the time to send the packet.",
        ),
        key("delay_up", "duration", "`delay`", "The same, from the second node to the first."),
        key(
            "jitter",
            "duration or table",
            "the preset's, else none",
            "Deviation of single packets from `delay`. A duration is the spread of a uniform jitter, to either side.",
        ),
        key("jitter_up", "duration or table", "`jitter`", "The same, from the second node to the first."),
        key(
            "loss",
            "probability or table",
            "the preset's, else `0`",
            "Of packets on the wire. A probability is that of losing each packet independently.",
        ),
        key("loss_up", "probability or table", "`loss`", "The same, from the second node to the first."),
        key(
            "queue",
            "packets, size or table",
            "the preset's, else `\"100 packets\"`",
            "Room before the serialiser, drop-tail. The packet being sent is not in the queue.",
        ),
        key("queue_up", "packets, size or table", "`queue`", "The same, from the second node to the first."),
        key(
            "trace",
            "file or table",
            "none",
            "Of rate, delay and loss by the clock, in place of those keys and of the preset's; see `trace`. `\"none\"` is none.",
        ),
        key("trace_up", "file or table", "`trace`", "The same, from the second node to the first."),
        key(
            "mtu",
            "size or bytes",
            "the preset's, else `1500`",
            "Largest IP packet, 68 to 65535 bytes, in both directions.",
        ),
        key(
            "icmp",
            "word",
            "`\"carried\"`",
            "`\"filtered\"` drops ICMP errors that would enter the link, as badly made packet filters do (destination unreachable, time exceeded, parameter \
problem, redirect, source quench; echoes and advertisements pass, and so does what is inside a tunnel): cause `icmp-filtered`.",
        ),
        key("icmp_up", "word", "`icmp`", "The same, from the second node to the first."),
        key(
            "framing",
            "`\"none\"`, `\"async-ppp\"` or table",
            "the preset's, else `\"none\"`",
            "What the link layer adds to bytes and packets, in both directions.",
        ),
        key(
            "between",
            "array of two node names",
            "required without `[mobility]`; see there",
            "The ends of the link. The nodes exist by being named here.",
        ),
        key(
            "medium",
            "name of a medium",
            "none",
            "The medium of `[media]` that the link is on. Of what else a link has, it then has only `between`, `count` and `mtu`, at most 1500 bytes.",
        ),
        key(
            "known_rate",
            "rate or `\"none\"`",
            "what the link has",
            "Access links: what the mobile node takes the rate for, in both directions, as `rate` of an interface tells `careof-agent`. \
Assists are told it. A radio's rate is rarely known: `\"none\"` is no rate and no round trip, and a wrong rate shows what a wrong \
configuration does.",
        ),
        key(
            "prefix",
            "prefix",
            "planned",
            "The network on the link: /24 over IPv4 (`\"192.0.2.0/24\"`), /64 over IPv6 (`\"2001:db8:1::/64\"`). Its ends have the addresses 1 and 2 there unless `address` in `[nodes]` gives others; a mobile \
node over IPv6 forms its own. The networks of the other links are planned from 10.0.0.0/8 and 2001:db8::/48. Not with `count`.",
        ),
        key(
            "ip_version",
            "4 or 6",
            "that of the run",
            "Access links over Mobile IPv6: with `4` the network of the link has only IPv4, as many mobile networks do. The mobile node has an \
IPv4 care-of address there, its Binding Updates travel in UDP, port 4191, and everything else as IPv6 in IPv4 (RFC 5555). Traces write that \
address as an IPv4-mapped one, `::ffff:10.0.2.2`. Needs `movement_detection = \
\"link-trigger\"`. Not with `prefix`, and not for `home`.",
        ),
        key(
            "count",
            "whole number",
            "one link",
            "Makes links `NAME-1`, `NAME-2`, …; `*` in `between` is their number. See below.",
        ),
    ],
    elsewhere: &[
        ("rtt", "delays are one way here: write half of the round-trip time as `delay`"),
        ("latency", "write `delay`, one way"),
        ("bandwidth", "write `rate`"),
        ("capacity", "write `rate`"),
        ("speed", "write `rate`"),
        ("rate_down", "`rate` is the direction down; `rate_up` the other"),
        ("delay_down", "`delay` is the direction down; `delay_up` the other"),
        ("buffer", "write `queue`"),
        ("queue_size", "write `queue`"),
        ("queue_limit", "write `queue`"),
        ("discipline", "write `queue = { limit = \"50 packets\", discipline = \"red\" }`"),
        ("reorder", "write it in the table of `jitter`: `jitter = { spread = \"2 ms\", reorder = true }`"),
        ("trace_down", "`trace` is the direction down; `trace_up` the other"),
        ("file", "write `trace`"),
        ("nodes", "write `between`"),
        ("ends", "write `between`"),
        ("copies", "write `count`"),
        ("from", "write `between = [\"a\", \"b\"]`"),
        ("to", "write `between = [\"a\", \"b\"]`"),
    ],
};

pub(crate) static JITTER: Section = Section {
    heading: "`jitter`",
    noun: "a jitter",
    intro: "The table form of a link's `jitter` and `jitter_up`.",
    keys: &[
        key("kind", "word", "by the other keys", "`\"none\"`, `\"uniform\"`, `\"normal\"` or `\"pareto\"`."),
        key(
            "spread",
            "duration",
            "required for uniform",
            "Largest deviation to either side, at most the delay.",
        ),
        key("deviation", "duration", "required for normal", "Standard deviation around the delay."),
        key(
            "scale",
            "duration",
            "required for pareto",
            "Scale of what is added to the delay: `scale` · (X − 1) with P(X > x) = x^−`shape`.",
        ),
        key("shape", "number", "required for pareto", "Tail index, above 1."),
        key(
            "reorder",
            "true or false",
            "`false`",
            "Whether packets may overtake each other. If not, a packet waits for the one sent before it.",
        ),
    ],
    elsewhere: &[
        ("distribution", "write `kind`"),
        ("stddev", "write `deviation`"),
        ("range", "write `spread`"),
    ],
};

pub(crate) static LOSS: Section = Section {
    heading: "`loss`",
    noun: "a loss",
    intro: "The table form of a link's `loss` and `loss_up`.",
    keys: &[
        key("kind", "word", "by the other keys", "`\"none\"`, `\"bernoulli\"` or `\"gilbert-elliott\"`."),
        key("p", "probability", "required for bernoulli", "Of losing a packet, each independently."),
        key(
            "good_to_bad",
            "probability",
            "required for gilbert-elliott",
            "That the packet after one in the good state meets the bad state.",
        ),
        key(
            "bad_to_good",
            "probability",
            "required for gilbert-elliott",
            "That the packet after one in the bad state meets the good state; bursts last 1/`bad_to_good` packets.",
        ),
        key("loss_in_good", "probability", "`0`", "Of losing a packet in the good state."),
        key("loss_in_bad", "probability", "`1`", "Of losing a packet in the bad state."),
    ],
    elsewhere: &[("probability", "write `p`"), ("rate", "write `p`")],
};

pub(crate) static QUEUE: Section = Section {
    heading: "`queue`",
    noun: "a queue",
    intro: "The table form of a link's `queue` and `queue_up`.",
    keys: &[
        key("limit", "packets or size", "the preset's, else `\"100 packets\"`", "What never fits."),
        key(
            "discipline",
            "word",
            "the preset's, else `\"drop-tail\"`",
            "`\"drop-tail\"`, `\"red\"` or `\"codel\"`.",
        ),
        key(
            "ecn",
            "true or false",
            "`false`",
            "RED, CoDel: mark the packets of flows with `ecn` instead of dropping them (RFC 3168).",
        ),
        key(
            "min_threshold",
            "packets",
            "`\"5 packets\"`",
            "RED: average queue below which nothing is dropped.",
        ),
        key("max_threshold", "packets", "`\"15 packets\"`", "RED: average queue of `max_probability`."),
        key("max_probability", "probability", "`0.1`", "RED: of a drop, just below `max_threshold`."),
        key("weight", "number", "`0.002`", "RED: of one packet's sample in the average."),
        key(
            "gentle",
            "true or false",
            "`true`",
            "RED: beyond `max_threshold` let the probability rise to 1 at twice that, instead of dropping everything.",
        ),
        key(
            "mean_packet",
            "size or bytes",
            "`500`",
            "RED: size of the packets that an idle link is taken to have sent.",
        ),
        key("target", "duration", "`\"5 ms\"`", "CoDel: acceptable standing delay."),
        key("interval", "duration", "`\"100 ms\"`", "CoDel: a round trip of most flows."),
    ],
    elsewhere: &[
        ("size", "write `limit`"),
        ("kind", "write `discipline`"),
        ("packets", "write `limit = \"50 packets\"`"),
    ],
};

pub(crate) static TRACE: Section = Section {
    heading: "`trace`",
    noun: "a trace",
    intro: "The file of a link's `trace` and `trace_up`, or a table that says where in it the link begins. A name in the \
scenario counts from the scenario's folder, one in `--set` from the folder you are in:\n\n\
```\n\
wifi = { preset = \"wifi-good\", trace = \"traces/wifi-walk.csv\" }\n\
careof run scenarios/lte-to-lte.toml --set links.west.trace=../shared/traces/mahimahi/Verizon-LTE-short.down \\\n\
    --set links.west.trace_up=../shared/traces/mahimahi/Verizon-LTE-short.up\n\
```\n\n\
The trace begins with the run, goes on while the link is down, and repeats at its end. Lines that begin with `#` are \
comments. At most 64 MiB of a file are read, and an error about one shows numbers only: a scenario may name any file that whoever runs \
it may read. The file has one of two forms:\n\n\
- **A series**: a line with the names of columns - `time_s`, and one or more of `rate_mbit_s`, `delay_ms` (one way) and \
`loss` (probability) - and a row for each change. A row holds until the next one's time, the last for as long as the one \
before it; the first is at 0; an empty cell is the one above it. A packet that is being sent when the rate changes keeps \
what was sent of it, and stands still while the rate is 0. Its delay is that of the row in which its last bit is sent, \
its loss that of the row in which its first is; without `reorder` in `jitter` no packet overtakes another where the delay \
falls.\n\
- **Opportunities to deliver**, as Mahimahi's `mm-link` takes them: a whole number of milliseconds a line, at which 1500 bytes \
leave at once; a number that stands twice is two. What a packet leaves of an opportunity, the ones behind it use, and a packet \
that finds too little goes on with the next; what nothing waits for is gone. The last number is where the trace repeats.\n\n\
Columns a trace does not have are the keys' or the preset's. Where one number stands for the link - in the summary's path \
properties, in what agents are told of an interface, in `rate_bps` and `delay_ns` of the resolved scenario - it is the \
trace's mean rate, median delay and mean loss over time. The digest of a scenario covers the content of its traces.",
    keys: &[
        key("file", "text", "required", "The file."),
        key("start", "duration", "`\"0 s\"`", "Where in the trace the run begins."),
    ],
    elsewhere: &[
        ("name", "write `file`"),
        ("path", "write `file`"),
        ("offset", "write `start`"),
        ("from", "write `start`"),
    ],
};

pub(crate) static FRAMING: Section = Section {
    heading: "`framing`",
    noun: "a framing",
    intro: "The table form of a link's `framing`. A packet of *n* bytes takes (*n* + `overhead`) · `bits_per_byte` bits. \
`\"async-ppp\"` stands for 10 bits a byte and 7 bytes a packet (RFC 1662: one flag, address, control, two of protocol, \
two of check sequence; the flag that ends a frame begins the next; no escapes).",
    keys: &[
        key("bits_per_byte", "whole number", "`8`", "8 to 16: 8 plain, 10 with a start and a stop bit."),
        key("overhead", "size or bytes", "`0`", "Of header and trailer of each packet."),
    ],
    elsewhere: &[],
};
