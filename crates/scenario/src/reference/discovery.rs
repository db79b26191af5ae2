//! The keys of `[mobility.discovery]`.

use careof_document::section::{Section, key};

pub(crate) static DISCOVERY: Section = Section {
    heading: "`[mobility.discovery]`",
    noun: "the discovery",
    intro: "How mobile nodes and agents find each other (RFC 5944, section 2; RFC 1256). Agents advertise themselves at random \
times between `least_interval` and `advertisement_interval`; whoever hears no agent on a link asks for one. With \
`movement_detection = \"missed-advertisements\"` or `\"eager\"` an agent is lost when `missed` of its advertisements in a row have \
stayed away, by the interval observed between them, and `margin` more: regular advertisements need no margin, random ones may \
be late. With `\"unreachable-router\"` it is unreachable by neighbor unreachability detection (RFC 4861 section 7.3), which the last four \
keys are about.",
    keys: &[
        key(
            "least_interval",
            "duration",
            "three quarters of `advertisement_interval`",
            "The shortest time between two advertisements; as long as `advertisement_interval`, they come like a clock.",
        ),
        key(
            "missed",
            "whole number",
            "`3`",
            "Advertisements in a row that stay away until their agent is lost.",
        ),
        key(
            "margin",
            "probability",
            "`\"50 %\"`",
            "How much later than due the last of them may be, as a part of the interval observed.",
        ),
        key(
            "solicitation",
            "true or false",
            "`true`",
            "Whether the mobile node asks for an agent on a link that came up, instead of waiting for an advertisement.",
        ),
        key(
            "on_link_up",
            "true or false",
            "`true`",
            "Whether an agent advertises itself when its access link comes up, as if it were asked.",
        ),
        key(
            "response_delay",
            "duration",
            "`\"100 ms\"`",
            "An agent answers who asks after a random time up to this (RFC 1256 has 2 s, for links with many agents).",
        ),
        key(
            "prefix",
            "true or false",
            "`true`",
            "Whether advertisements tell the prefix of their link: 4 of their 52 bytes.",
        ),
        key(
            "above_recommended_rate",
            "true or false",
            "`false`",
            "Whether an `advertisement_interval` below 1 s is meant: RFC 5944 calls one advertisement a second the reasonable \
maximum.",
        ),
        key(
            "router_lifetime",
            "duration",
            "`\"1800 s\"`",
            "How long a router stays one for who does not hear it again, at least `advertisement_interval`; whole seconds. By `\"unreachable-router\"` \
only, as the next three; with the other detections it is three advertisement intervals.",
        ),
        key(
            "reachable_time",
            "duration",
            "`\"30 s\"`",
            "How long the mobile node takes its router for reachable after a confirmation, half as much more or less, drawn at random: \
ReachableTime, which routers advertise.",
        ),
        key(
            "retrans_timer",
            "duration",
            "`\"1 s\"`",
            "The time between two probes, of which three are sent, and between two questions for a link-layer address: RetransTimer, \
which routers advertise.",
        ),
        key(
            "delay_first_probe",
            "duration",
            "`\"5 s\"`",
            "How long TCP has to confirm, from the first packet sent to a router that is not known to be reachable any more, before the \
router is probed: DELAY_FIRST_PROBE_TIME.",
        ),
    ],
    elsewhere: &[
        ("interval", "write `advertisement_interval` in [mobility], or `least_interval`"),
        ("jitter", "write `least_interval`"),
        ("count", "write `missed`"),
        ("max_response_delay", "write `response_delay`"),
        ("delay_first_probe_time", "write `delay_first_probe`"),
        ("base_reachable_time", "write `reachable_time`"),
    ],
};
