//! The keys of `[mobility.fast_handover]`.

use careof_document::section::{Section, key};

pub(crate) static FAST_HANDOVER: Section = Section {
    heading: "`[mobility.fast_handover]`",
    noun: "the fast handovers",
    intro: "Fast handovers for Mobile IPv6 (RFC 5568), with `fast_handover = true` or this table. The first end of each access link is an \
access router, the link its access point, and all access routers know each other. The mobile node asks its router what is behind other \
access points when it has registered there. A `[[handover]]` with `notice` is predictive: `prepare_ahead` before it, or at its notice if that \
is later, the mobile node has its router send packets on to the new one, which keeps them until the mobile node has come. Without `notice` it \
is reactive: the mobile node asks for the tunnel when it is on the new link. The link layer tells the previous router that the mobile node has \
left, and the router keeps packets for it from then on. In the new link the mobile node uses its care-of address at once, and a packet \
of its own takes the tunnel to the previous router until its home agent has acknowledged the Binding Update. A prediction that does not come true is a \
handover with `announced` or `cancelled`: what has gone to the wrong router until then is lost.",
    keys: &[
        key(
            "buffer_packets",
            "whole number",
            "`256`",
            "Packets that an access router keeps for one mobile node, up to 100000; the oldest makes room. `0` is no buffer.",
        ),
        key("buffer_bytes", "size", "`\"384 kB\"`", "Their bytes."),
        key(
            "release_percent",
            "whole number",
            "`200`",
            "How fast they go on behind the first five, in percent of the rate at which they came, 1 to 10000.",
        ),
        key(
            "copies",
            "true or false",
            "`false`",
            "Whether the previous router keeps copies of what it still sends to the old link, from the Fast Binding Update until the \
tunnel begins, and sends them through the tunnel: what the mobile node has received comes twice.",
        ),
        key(
            "prepare_ahead",
            "duration",
            "`\"50 ms\"`",
            "How long before a handover with a longer `notice` the Fast Binding Update is sent. It should be a round trip from the \
mobile node through both routers: what comes earlier waits longer, or is lost if the prediction is wrong.",
        ),
        key(
            "proxy_lifetime",
            "duration",
            "`\"1500 ms\"`",
            "How long the new router waits for the mobile node and keeps its packets (PROXY_ND_LIFETIME), at most 10 min.",
        ),
        key(
            "lifetime",
            "duration",
            "`\"20 s\"`",
            "The lifetime of the tunnel between the routers, a multiple of 4 s.",
        ),
    ],
    elsewhere: &[
        ("buffer", "write `buffer_packets` and `buffer_bytes`"),
        ("packets", "write `buffer_packets`"),
        ("bytes", "write `buffer_bytes`"),
        ("buffer_and_forward", "write `copies`"),
        ("tunnel_lifetime", "write `lifetime`"),
        ("wait", "write `proxy_lifetime`"),
    ],
};
