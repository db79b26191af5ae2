//! Signalling messages over IPv6 in a line of words, for traces.

use core::net::Ipv6Addr;

use careof_wire::icmpv6::Icmpv6Message;
use careof_wire::mip6::{BindingUpdate, Message, PathProbeKind};
use careof_wire::protocol;

/// The name and the gist of a signalling packet; the addresses are those that its checksum covers.
#[must_use]
pub fn describe_ipv6(
    source: Ipv6Addr,
    destination: Ipv6Addr,
    protocol: u8,
    payload: &[u8],
) -> (&'static str, String) {
    match protocol {
        protocol::MOBILITY_HEADER => match Message::parse(source, destination, payload) {
            Ok(message) => mobility(&message),
            Err(error) => ("Malformed", error.to_string()),
        },
        protocol::ICMPV6 => match Icmpv6Message::parse(source, destination, payload) {
            Ok(message) => icmpv6(&message),
            Err(error) => ("Malformed", error.to_string()),
        },
        other => ("Unknown", format!("protocol {other}")),
    }
}

fn mobility(message: &Message) -> (&'static str, String) {
    match message {
        Message::BindingRefreshRequest(_) => ("BindingRefreshRequest", String::new()),
        Message::HomeTestInit(_) => ("HomeTestInit", String::new()),
        Message::CareOfTestInit(_) => ("CareOfTestInit", String::new()),
        Message::HomeTest(_) => ("HomeTest", String::new()),
        Message::CareOfTest(_) => ("CareOfTest", String::new()),
        Message::BindingUpdate(update) => ("BindingUpdate", update_text(update)),
        Message::FastBindingUpdate(update) => ("FastBindingUpdate", update_text(update)),
        Message::FastBindingAcknowledgement(answer) => (
            "FastBindingAcknowledgment",
            format!("{} for {}, number {}", answer.status, answer.lifetime, answer.sequence),
        ),
        Message::HandoverInitiate(initiate) => {
            ("HandoverInitiate", format!("{}, number {}", initiate.code, initiate.sequence))
        }
        Message::HandoverAcknowledge(answer) => {
            ("HandoverAcknowledge", format!("{}, number {}", answer.code, answer.sequence))
        }
        Message::BindingAcknowledgement(answer) => (
            "BindingAcknowledgement",
            format!("{} for {}, number {}", answer.status, answer.lifetime, answer.sequence),
        ),
        Message::BindingError(error) => {
            ("BindingError", format!("{:?}, home {}", error.status, error.home_address))
        }
        Message::PathProbe(probe) => {
            let name = match probe.kind {
                PathProbeKind::Probe => "PathProbe",
                PathProbeKind::Answer => "PathProbeAnswer",
            };
            (name, format!("home {}, number {}", probe.home_address, probe.sequence))
        }
        Message::Unknown(_) => ("MobilityHeader", "of a type that is not known here".to_owned()),
    }
}

/// The gist of a Binding Update or Fast Binding Update.
fn update_text(update: &BindingUpdate) -> String {
    let care_of = update
        .options
        .alternate_care_of_address()
        .map_or_else(String::new, |address| format!(" at {address}"));
    let what = if update.lifetime.is_zero() {
        format!("delete{care_of}")
    } else {
        format!("for {}{care_of}", update.lifetime)
    };
    format!("{what}, flags {}, number {}", update.flags, update.sequence)
}

fn icmpv6(message: &Icmpv6Message) -> (&'static str, String) {
    match message {
        Icmpv6Message::DestinationUnreachable(error) => {
            ("DestinationUnreachable", format!("{:?}", error.code))
        }
        Icmpv6Message::PacketTooBig(error) => ("PacketTooBig", format!("next hop {} bytes", error.mtu)),
        Icmpv6Message::TimeExceeded(error) => ("TimeExceeded", format!("{:?}", error.code)),
        Icmpv6Message::ParameterProblem(error) => {
            ("ParameterProblem", format!("{:?} at byte {}", error.code, error.pointer))
        }
        Icmpv6Message::EchoRequest(_) => ("EchoRequest", String::new()),
        Icmpv6Message::EchoReply(_) => ("EchoReply", String::new()),
        Icmpv6Message::MulticastListenerReportV1(_)
        | Icmpv6Message::MulticastListenerDone(_)
        | Icmpv6Message::MulticastListenerReport(_) => ("MulticastListenerReport", String::new()),
        Icmpv6Message::RouterSolicitation(_) => ("RouterSolicitation", String::new()),
        Icmpv6Message::RouterAdvertisement(advertisement) => {
            let prefixes: Vec<String> = advertisement
                .prefixes()
                .map(|prefix| format!("{}/{}", prefix.prefix, prefix.prefix_length))
                .collect();
            let lifetime = advertisement.router_lifetime_secs;
            ("RouterAdvertisement", format!("lifetime {lifetime} s, prefixes {}", prefixes.join(" ")))
        }
        Icmpv6Message::NeighborSolicitation(question) => {
            ("NeighborSolicitation", format!("target {}", question.target))
        }
        Icmpv6Message::NeighborAdvertisement(answer) => {
            ("NeighborAdvertisement", format!("target {}", answer.target))
        }
        Icmpv6Message::Redirect(_) => ("Redirect", String::new()),
        Icmpv6Message::HomeAgentAddressDiscoveryRequest(_) => {
            ("HomeAgentAddressDiscoveryRequest", String::new())
        }
        Icmpv6Message::HomeAgentAddressDiscoveryReply(_) => ("HomeAgentAddressDiscoveryReply", String::new()),
        Icmpv6Message::MobilePrefixSolicitation(_) => ("MobilePrefixSolicitation", String::new()),
        Icmpv6Message::MobilePrefixAdvertisement(_) => ("MobilePrefixAdvertisement", String::new()),
        Icmpv6Message::RtSolPr(question) => ("RtSolPr", format!("number {}", question.identifier)),
        Icmpv6Message::PrRtAdv(answer) => {
            ("PrRtAdv", format!("{}, number {}", answer.code, answer.identifier))
        }
        Icmpv6Message::Other(other) => ("Icmpv6", format!("type {} code {}", other.kind, other.code)),
    }
}
