//! ICMPv6 errors: what they say of segments and tunnels, and those that routers send.

use careof_plan::{Locator, NodeId};
use careof_wire::icmpv6::{
    DestinationUnreachable, Icmpv6Message, PacketTooBig, QuotedPacket, UnreachableCode,
};
use careof_wire::ipv6::Ipv6Header;
use careof_wire::protocol;
use careof_wire::tunnel::{RelayedFromIpv6, relay_error_ipv6};

use crate::forwarding::DEFAULT_TTL;
use crate::simulation::Simulation;

/// Whether there is no way to the destination, as far as TCP is concerned (RFC 6069).
pub(crate) const fn is_unreachable(code: UnreachableCode) -> bool {
    matches!(code, UnreachableCode::NoRoute | UnreachableCode::Address)
}

/// What the next hop takes of a TCP segment and its IPv6 header: what extension headers take is not for the segment.
pub(crate) fn mtu_for_segment(error: &PacketTooBig, quoted: &QuotedPacket<'_>) -> u16 {
    let extensions = quoted.payload_offset.saturating_sub(usize::from(Ipv6Header::LEN));
    mtu_of(error).saturating_sub(u16::try_from(extensions).unwrap_or(u16::MAX))
}

fn mtu_of(error: &PacketTooBig) -> u16 {
    u16::try_from(error.mtu).unwrap_or(u16::MAX)
}

impl Simulation {
    /// An ICMPv6 error may be about a segment of this node, or about a tunnel that begins here.
    pub(super) fn icmpv6_error(&mut self, node: NodeId, message: &Icmpv6Message) {
        let quoted = match message {
            Icmpv6Message::DestinationUnreachable(error) => &error.quoted,
            Icmpv6Message::PacketTooBig(error) => &error.quoted,
            Icmpv6Message::TimeExceeded(error) => &error.quoted,
            _ => return,
        };
        let Ok(quoted) = QuotedPacket::parse(quoted) else {
            self.malformed_messages += 1;
            return;
        };
        if let Some(ports) = quoted.ports() {
            let source = (self.locate(quoted.source), ports.source_port);
            match (message, ports.seq) {
                (Icmpv6Message::PacketTooBig(error), _) => {
                    self.path_mtu_changed(source, mtu_for_segment(error, &quoted));
                }
                (Icmpv6Message::DestinationUnreachable(error), Some(seq)) if is_unreachable(error.code) => {
                    self.destination_unreachable(source, seq);
                }
                _ => {}
            }
            return;
        }
        let entry = quoted.header.source;
        if !self.is_own(node, self.locate(entry)) {
            return;
        }
        if let Icmpv6Message::PacketTooBig(error) = message {
            let exit = self.locate(quoted.header.destination);
            // A tunnel takes the least MTU whole, in fragments if it must (RFC 2473 section 7.1).
            self.tunnel_mtu_learnt(node, exit, mtu_of(error).max(Ipv6Header::MIN_MTU));
        }
        if let Icmpv6Message::DestinationUnreachable(error) = message
            && is_unreachable(error.code)
        {
            self.assist_unreachable(node, quoted.header.destination.into());
        }
        if let Ok(RelayedFromIpv6::Ipv6 { to, message }) = relay_error_ipv6(message, entry) {
            let to = self.locate(to);
            self.send_icmpv6(node, to, &message);
        }
    }

    /// Sends an ICMPv6 message from `node`.
    pub(crate) fn send_icmpv6(&mut self, node: NodeId, to: Locator, message: &Icmpv6Message) {
        if self.relays.is_some() && self.relay_hears_icmpv6(node, message) {
            return;
        }
        let source = self.source_address(node, to);
        let mut bytes = Vec::new();
        message.emit(self.address_v6(source), self.address_v6(to), &mut bytes);
        self.send_message(node, None, (source, to), DEFAULT_TTL, protocol::ICMPV6, bytes);
    }

    /// Tells the sender of a packet over IPv6 that the next link is too narrow for it.
    pub(crate) fn tell_too_big(&mut self, node: NodeId, to: Locator, quoted: Vec<u8>, mtu: u16) {
        let mtu = u32::from(mtu.max(Ipv6Header::MIN_MTU));
        self.send_icmpv6(node, to, &Icmpv6Message::PacketTooBig(PacketTooBig { mtu, quoted }));
    }

    /// Tells the sender of a packet over IPv6 that it cannot be delivered.
    pub(crate) fn tell_unreachable(&mut self, node: NodeId, to: Locator, quoted: Vec<u8>) {
        let error = DestinationUnreachable { code: UnreachableCode::Address, quoted };
        self.send_icmpv6(node, to, &Icmpv6Message::DestinationUnreachable(error));
    }
}
