//! The keys of the assists' parameters, and of exceptions, that both kinds of file know.

use careof_document::section::{Section, key};

/// Flows that no assist touches.
pub static EXCEPT: Section = Section {
    heading: "`[[assist.except]]`",
    noun: "an exception",
    intro: "Connections that no assist touches: `except = [{ prefix = \"10.0.0.0/8\", port = 22 }]`. One is meant if it has all that is given.",
    keys: &[
        key(
            "prefix",
            "prefix",
            "everybody",
            "The end that is not the mobile node, such as `\"10.0.0.0/8\"`.",
        ),
        key("port", "whole number", "every port", "TCP port of either end, 1 to 65535."),
    ],
    elsewhere: &[
        ("to", "write `prefix`"),
        ("node", "write `prefix`"),
        ("peer", "write `prefix`"),
        ("address", "write `prefix`"),
    ],
};

/// Parameters of `replay`.
pub static REPLAY: Section = Section {
    heading: "`[assist.replay]`",
    noun: "a replay",
    intro: "Copies of packets that have the wireless path ahead are kept until they are acknowledged. When a path is back, what \
the lost one owes is sent in order, before anything newer and not faster than the new path takes it.",
    keys: &[
        key("bytes", "size", "`\"4 MiB\"`", "Kept of a connection and direction."),
        key("packets", "packets or whole number", "`4096`", "Kept of a connection and direction."),
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
            "What is beyond the new path's bandwidth-delay product: `\"wait\"` (follows at the path's rate), `\"drop\"` or `\"burst\"` (there is no \
limit, all is sent at once).",
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
    elsewhere: &[("limit", "write `bytes` or `packets`"), ("memory", "write `total`")],
};

/// Parameters of `hold-last`.
pub static HOLD_LAST: Section = Section {
    heading: "`[assist.hold-last]`",
    noun: "a hold of the last packets",
    intro: "The last packets of each connection are kept and sent when a path is back: `replay` for little memory.",
    keys: &[
        key("packets", "packets or whole number", "`2`", "Kept of a connection and direction."),
        key("age", "duration", "`\"30 s\"`", "An older copy is dropped."),
    ],
    elsewhere: &[("count", "write `packets`")],
};

/// Parameters of `lcd-kick`.
pub static LCD_KICK: Section = Section {
    heading: "`[assist.lcd-kick]`",
    noun: "a kick",
    intro: "ICMP host unreachable, quoting the first unacknowledged segment: a sender with RFC 6069 takes back a back-off of its \
timer.",
    keys: &[
        key("during", "true or false", "`true`", "Whether repetitions are answered while the path is lost."),
        key("interval", "duration", "`\"250 ms\"`", "Least time between two answers to a connection."),
        key(
            "burst",
            "whole number",
            "`8`",
            "Messages to a connection when a path is back and nothing was kept for it; 0 for none.",
        ),
        key("spacing", "duration", "`\"1 ms\"`", "Between two of them."),
        key("limit", "whole number", "`100`", "Messages a second to all connections together."),
    ],
    elsewhere: &[("count", "write `burst`"), ("rate", "write `limit`")],
};

/// Parameters of `fast-retransmit`.
pub static FAST_RETRANSMIT: Section = Section {
    heading: "`[assist.fast-retransmit]`",
    noun: "a fast retransmit",
    intro: "Duplicates of the last acknowledgement, sent once on the new path after an outage, so that the sender repeats at once what is missing.",
    keys: &[
        key("acks", "whole number", "`3`", "How many."),
        key(
            "sack",
            "word",
            "`\"as-last\"`",
            "Their SACK blocks: `\"as-last\"` (which may be stale) or `\"none\"`.",
        ),
        key(
            "longest_outage",
            "duration or word",
            "`\"200 ms\"`",
            "None are sent after a longer one; or `\"any\"`.",
        ),
    ],
    elsewhere: &[("count", "write `acks`")],
};

/// Parameters of `window-clamp`.
pub static WINDOW_CLAMP: Section = Section {
    heading: "`[assist.window-clamp]`",
    noun: "a clamp",
    intro: "The advertised window is at most `factor` times the new path's bandwidth-delay product and `plus`. It never shrinks faster than data \
arrive, and while the path is unknown it is left alone. A connection that gets less by it than it did with twice that window is left alone, too, unless \
`from` is `\"always\"`.",
    keys: &[
        key("factor", "number", "`1.0`", "Multiple of the bandwidth-delay product; above 0, at most 1000."),
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

/// Parameters of `mss-clamp`.
pub static MSS_CLAMP: Section = Section {
    heading: "`[assist.mss-clamp]`",
    noun: "a clamp of the segment size",
    intro: "The maximum segment size in SYNs that pass is lowered to what fits a path of `mtu` bytes beside the tunnel's header and 40 bytes of IP and TCP; where \
`black-hole` assumes less, to that. It is never raised. Of a download the SYN of the mobile node counts, which passes the home agent with a reverse \
tunnel only.",
    keys: &[key(
        "mtu",
        "size or bytes",
        "`1500`",
        "Of the tunnel's path, the tunnel's header included; at least 128.",
    )],
    elsewhere: &[("mss", "write `mtu`: the segment size, 40 bytes and the tunnel's header")],
};

/// Parameters of `black-hole`.
pub static BLACK_HOLE: Section = Section {
    heading: "`[assist.black-hole]`",
    noun: "a watch for black holes",
    intro: "Where a router in the tunnel drops what is too large for its next link, and its ICMP message is filtered, full segments are repeated for ever. One that was repeated \
`repeats` times is sent in fragments; where that helps twice, while whole ones failed again in between, the path of this care-of address is taken to have the next smaller usual \
MTU (RFC 1191, section 7.1). The sender is told by ICMP fragmentation needed, and what it still sends too large goes in fragments, so that a transfer completes even if that is \
filtered, too. The outer datagram then lacks the DF bit that RFC 2003, section 3.1, has copied from the inner one; the datagram inside stays whole, for the tunnel's end puts it \
together. A handover begins the count anew, and sizes that got through whole are not suspected.",
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

/// The parameters of the assist `name`, if both kinds of file know it.
#[must_use]
pub fn section_of(name: &str) -> Option<&'static Section> {
    Some(match name {
        "replay" => &REPLAY,
        "hold-last" => &HOLD_LAST,
        "lcd-kick" => &LCD_KICK,
        "fast-retransmit" => &FAST_RETRANSMIT,
        "window-clamp" => &WINDOW_CLAMP,
        "mss-clamp" => &MSS_CLAMP,
        "black-hole" => &BLACK_HOLE,
        _ => return None,
    })
}
