//! `quic` of a flow.

use super::{Section, key};

pub(crate) static QUIC: Section = Section {
    heading: "`quic`",
    noun: "a QUIC",
    intro: "QUIC (RFC 9000) of a flow, the same at both ends: congestion control by name (`quic = \"cubic\"`) or a table (`quic = { \
migration = true }`). The protocol is that of the library `quinn-proto`, on the simulator's time. One bidirectional stream carries the flow, in UDP \
datagrams with DF. The mobile node is the client where one end is one, else `from`: only a client can move; who sends is another matter.\n\n\
**Nothing is encrypted.** Handshake messages have the usual sizes, and each packet ends in a checksum of 16 bytes where the tag of \
the cipher would be. Assists act on TCP and leave QUIC alone.",
    keys: &[
        key(
            "congestion",
            "word",
            "`\"cubic\"`",
            "Congestion control, as the library has it: `\"new-reno\"`, `\"cubic\"` or, on Linux hosts, `\"bbr\"`, whose random \
numbers cannot be repeated.",
        ),
        key(
            "migration",
            "true or false",
            "false",
            "Whether the mobile node uses its own address on the link that it is on, without Mobile IP, and takes the connection \
along when that changes (RFC 9000, section 9). Otherwise the flow has the home address, and Mobile IP does it. It needs Mobile IPv4 with \
`care_of = \"co-located\"` or `\"dhcp\"`.",
        ),
        key(
            "initial_mtu",
            "size or bytes",
            "1200",
            "UDP payload of the first packets, at least 1200 bytes and at most what fits the links at the flow's ends.",
        ),
        key(
            "mtu_discovery",
            "true or false",
            "true",
            "Probes for larger datagrams, up to a UDP payload of 1452 bytes (RFC 9000, section 14.3).",
        ),
        key("window", "size", "1250000 B", "Receive window of the stream: the most that may be on its way."),
        key(
            "idle_timeout",
            "duration",
            "`\"30 s\"`",
            "After so long without a sign of life an end drops the connection (RFC 9000, section 10.1).",
        ),
    ],
    elsewhere: &[
        ("variant", "write `congestion`"),
        ("profile", "write `congestion`"),
        ("mss", "write `initial_mtu`"),
        ("mtu", "write `initial_mtu`"),
    ],
};
