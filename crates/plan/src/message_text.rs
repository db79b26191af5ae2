//! Signalling messages in a line of words, for traces.

use core::net::Ipv4Addr;

use careof_mobility::multipath::PATH_PORT;
use careof_mobility::multipath::alliance::CLUSTER_PORT;
use careof_wire::dhcp::{self, DhcpMessage};
use careof_wire::icmp::{IcmpMessage, RouterAdvertisement};
use careof_wire::ipv4::Ipv4Header;
use careof_wire::mip4::{
    BindingAcknowledge, BindingUpdate, Message, PathProbeKind, RegistrationReply, RegistrationRequest,
};
use careof_wire::protocol;
use careof_wire::shake::{Alliance, PathFeedback, ShakeMessage};
use careof_wire::udp::UdpHeader;

/// The name and the gist of a signalling datagram.
pub fn describe(header: &Ipv4Header, payload: &[u8]) -> (&'static str, String) {
    match header.protocol {
        protocol::UDP => match UdpHeader::parse(header.source, header.destination, payload) {
            Ok((udp, payload)) if is_dhcp(udp.destination_port) => match DhcpMessage::parse(payload) {
                Ok(message) => (message.kind.name(), dhcp_text(&message)),
                Err(error) => ("Malformed", error.to_string()),
            },
            Ok((udp, payload)) if [PATH_PORT, CLUSTER_PORT].contains(&udp.destination_port) => {
                match ShakeMessage::parse(payload) {
                    Ok(received) => shake_text(&received.message),
                    Err(error) => ("Malformed", error.to_string()),
                }
            }
            Ok((_, payload)) => match Message::parse(payload) {
                Ok(Message::Request(request)) => ("RegistrationRequest", request_text(&request)),
                Ok(Message::Reply(reply)) => ("RegistrationReply", reply_text(&reply)),
                Ok(Message::BindingWarning(warning)) => {
                    ("BindingWarning", format!("home {}, target {}", warning.home_address, warning.target))
                }
                Ok(Message::BindingRequest(request)) => (
                    "BindingRequest",
                    format!("home {}, id {:016x}", request.home_address, request.identification.0),
                ),
                Ok(Message::BindingUpdate(update)) => ("BindingUpdate", update_text(&update)),
                Ok(Message::BindingAcknowledge(acknowledge)) => {
                    ("BindingAcknowledge", acknowledge_text(&acknowledge))
                }
                Ok(Message::PathProbe(probe)) => {
                    let name = match probe.kind {
                        PathProbeKind::Probe => "PathProbe",
                        PathProbeKind::Answer => "PathProbeAnswer",
                    };
                    (name, format!("home {}, number {}", probe.home_address, probe.sequence))
                }
                Err(error) => ("Malformed", error.to_string()),
            },
            Err(error) => ("Malformed", error.to_string()),
        },
        protocol::ICMP => match IcmpMessage::parse(payload) {
            Ok(message) => icmp_text(&message),
            Err(error) => ("Malformed", error.to_string()),
        },
        other => ("Unknown", format!("protocol {other}")),
    }
}

fn request_text(request: &RegistrationRequest) -> String {
    let care_of = if request.lifetime.is_zero() {
        format!("deregister {}", request.care_of_address)
    } else {
        format!("care-of {} for {} s", request.care_of_address, request.lifetime.as_secs())
    };
    format!(
        "home {} {care_of}, flags {}, id {:016x}",
        request.home_address, request.flags, request.identification.0
    )
}

fn reply_text(reply: &RegistrationReply) -> String {
    format!(
        "{} ({}), home {} for {} s, id {:016x}",
        reply.code,
        reply.code.number(),
        reply.home_address,
        reply.lifetime.as_secs(),
        reply.identification.0
    )
}

fn update_text(update: &BindingUpdate) -> String {
    let what = if update.forgets() {
        "forget".to_owned()
    } else {
        format!("care-of {} for {}", update.care_of_address, update.lifetime)
    };
    let identification = update.identification.map_or_else(String::new, |id| format!(", id {:016x}", id.0));
    format!("home {} {what}{identification}", update.home_address)
}

fn acknowledge_text(acknowledge: &BindingAcknowledge) -> String {
    let outcome = if acknowledge.negative { "refused" } else { "done" };
    format!("{outcome}, home {}, id {:016x}", acknowledge.home_address, acknowledge.identification.0)
}

fn shake_text(message: &ShakeMessage) -> (&'static str, String) {
    match message {
        ShakeMessage::Advertisement(lends) => {
            let willing = if lends.willing { "willing" } else { "not willing" };
            let text =
                format!("{willing}, link {}, cost {}, {} places", lends.outside, lends.cost, lends.clients);
            ("ClusterAdvertisement", text)
        }
        ShakeMessage::Request(alliance) => ("AllianceRequest", alliance_text(alliance)),
        ShakeMessage::Reply(alliance) => ("AllianceReply", alliance_text(alliance)),
        ShakeMessage::Withdrawal(alliance) => ("AllianceWithdrawal", alliance_text(alliance)),
        ShakeMessage::Feedback(feedback) => ("PathFeedback", feedback_text(feedback)),
    }
}

fn alliance_text(alliance: &Alliance) -> String {
    let Alliance { code, lifetime, home_address, relay, .. } = alliance;
    format!("{code}, home {home_address}, relay {relay}, lifetime {lifetime} s")
}

fn feedback_text(feedback: &PathFeedback) -> String {
    let PathFeedback { path, answer, packets, bytes, late, .. } = feedback;
    let kind = if *answer { "answer" } else { "probe" };
    format!("path {path}, {kind}, {packets} packets with {bytes} bytes came by it, {late} late")
}

const fn is_dhcp(port: u16) -> bool {
    port == dhcp::SERVER_PORT || port == dhcp::CLIENT_PORT
}

fn dhcp_text(message: &DhcpMessage) -> String {
    let mut text = format!("client {}, xid {:08x}", message.chaddr, message.xid);
    let address = |address: Ipv4Addr| (!address.is_unspecified()).then_some(address);
    for (what, address) in [
        ("has", address(message.ciaddr)),
        ("gets", address(message.yiaddr)),
        ("asks for", message.requested_address),
        ("server", message.server_identifier),
    ] {
        if let Some(address) = address {
            text.push_str(&format!(", {what} {address}"));
        }
    }
    if let Some(lease_time) = message.lease_time {
        text.push_str(&format!(", for {lease_time}"));
    }
    text
}

fn icmp_text(message: &IcmpMessage) -> (&'static str, String) {
    match message {
        IcmpMessage::RouterAdvertisement(advertisement) => match advertisement.mobility_agent() {
            Some(_) => ("AgentAdvertisement", advertisement_text(advertisement)),
            None => ("RouterAdvertisement", advertisement_text(advertisement)),
        },
        IcmpMessage::RouterSolicitation(_) => ("AgentSolicitation", String::new()),
        IcmpMessage::DestinationUnreachable(error) if error.next_hop_mtu > 0 => {
            ("DestinationUnreachable", format!("{}, next hop {} bytes", error.code, error.next_hop_mtu))
        }
        IcmpMessage::DestinationUnreachable(error) => ("DestinationUnreachable", error.code.to_string()),
        IcmpMessage::TimeExceeded(error) => ("TimeExceeded", error.code.to_string()),
        IcmpMessage::EchoRequest(_) => ("EchoRequest", String::new()),
        IcmpMessage::EchoReply(_) => ("EchoReply", String::new()),
        IcmpMessage::Other(other) => ("Icmp", format!("type {} code {}", other.kind, other.code)),
    }
}

fn advertisement_text(advertisement: &RouterAdvertisement) -> String {
    let lifetime = format!("lifetime {} s", advertisement.lifetime_secs);
    match advertisement.mobility_agent() {
        Some(agent) => format!(
            "{lifetime}, sequence {}, care-of {:?}, registration {} s",
            agent.sequence,
            agent.care_of_addresses,
            agent.registration_lifetime.as_secs()
        ),
        None => lifetime,
    }
}
