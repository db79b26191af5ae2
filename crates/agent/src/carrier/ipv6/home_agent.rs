//! Home agent and mobility anchor point: what the host brings for their own addresses, and for mobile nodes that are away.

use std::net::Ipv6Addr;

use careof_assist::PathId;
use careof_base::Instant;
use careof_mobility::InterfaceId;
use careof_mobility::v6::{Addresses, Input, Tunnel};
use careof_wire::icmpv6::Icmpv6Message;
use careof_wire::ipv6::{Ipv6Header, Packet};
use careof_wire::{mip6, protocol};

use super::agent::Agent;
use super::packets::addresses_of;
use super::{Ipv6Carrier, errors};

impl Ipv6Carrier {
    /// Home agent: a packet for it, or for a mobile node that is away.
    pub(super) fn take_at_home_agent(&mut self, now: Instant, header: &Ipv6Header, packet: &[u8]) {
        if self.own.contains(&header.destination) {
            return self.take_for_home_agent(now, packet, None);
        }
        // Its way to the care-of address leads through a home address that is away, too: it would be wrapped for ever.
        let is_tunnelled = matches!(header.next_header, protocol::IPV6 | protocol::IP_IN_IP);
        if self.own.contains(&header.source) && is_tunnelled {
            return self.carried.looping += 1;
        }
        self.carry_out(now, header, packet)
    }

    /// Home agent: a packet for one of its addresses, which came through `tunnel` or by itself.
    pub(super) fn take_for_home_agent(&mut self, now: Instant, bytes: &[u8], tunnel: Option<Tunnel>) {
        let mut whole = Vec::new();
        let Some((_, packet)) = self.whole(now, bytes, &mut whole) else { return };
        let addresses = Addresses { tunnel, ..addresses_of(&packet) };
        let Some(side) = self.setup.home_side() else { return };
        let interface = side.interface;
        match packet.protocol {
            // No packet of IPv6 comes from there: that would pass for a tunnel through IPv4.
            protocol::IPV6 | protocol::IP_IN_IP if packet.header.source.to_ipv4_mapped().is_some() => {
                self.carried.not_ours += 1;
            }
            protocol::IPV6 if tunnel.is_none() => self.take_reverse_tunnelled(now, &packet),
            protocol::IP_IN_IP if tunnel.is_none() => {
                self.take_ipv4_reverse_tunnelled(packet.payload, packet.header.source);
            }
            mip6::PROTOCOL => {
                self.tell_traffic(addresses.real_source(), addresses.source, packet.payload);
                self.tell_agent(now, Input::Mobility { interface, addresses, message: packet.payload });
            }
            protocol::ICMPV6 => self.take_icmp_for_home_agent(now, interface, addresses, &packet),
            _ => self.carried.for_nobody += 1,
        }
    }

    /// Home agent: a packet out of a tunnel from a mobile node.
    fn take_reverse_tunnelled(&mut self, now: Instant, outer: &Packet<'_>) {
        let Ok((inner, _)) = Ipv6Header::parse(outer.payload) else { return self.carried.malformed += 1 };
        let Agent::Home(agent) = &self.agent else { return };
        if !agent.accepts_reverse_tunnel(inner.source, outer.header.source) {
            return self.carried.not_ours += 1;
        }
        let way = agent.tunnel_to(outer.header.source);
        self.note_at_home(inner.source, way, false, outer.payload.len());
        if self.own.contains(&inner.destination) {
            let tunnel = Tunnel { entry: outer.header.source, exit: outer.header.destination };
            return self.take_for_home_agent(now, outer.payload, Some(tunnel));
        }
        // To another mobile node that is away, too, the routes lead back here.
        self.carry_in(now, PathId::CareOf(outer.header.source.into()), outer.payload);
    }

    fn take_icmp_for_home_agent(
        &mut self,
        now: Instant,
        interface: InterfaceId,
        addresses: Addresses,
        packet: &Packet<'_>,
    ) {
        let (source, destination) = (packet.source(), packet.destination());
        let Ok(message) = Icmpv6Message::parse(source, destination, packet.payload) else {
            return self.carried.malformed += 1;
        };
        let own = self.own.first().copied().unwrap_or(Ipv6Addr::UNSPECIFIED);
        if self.relay_ipv4_error(&message, own) {
            return;
        }
        let (to, answer) = match message {
            Icmpv6Message::EchoRequest(echo) if !source.is_multicast() => {
                (source, Icmpv6Message::EchoReply(echo))
            }
            message => match errors::between_home_addresses(&message, own) {
                Some((to, told)) => {
                    self.note_unreachable(now, &message, &told);
                    self.carried.errors_relayed += 1;
                    (to, told)
                }
                None => {
                    let (hop_limit, message) = (packet.header.hop_limit, packet.payload);
                    return self.tell_agent(now, Input::Icmp { interface, addresses, hop_limit, message });
                }
            },
        };
        self.deliver_icmp(own, to, &answer);
    }
}
