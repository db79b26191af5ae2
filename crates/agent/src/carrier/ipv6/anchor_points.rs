//! Mobile node: what comes in a tunnel around others: of a mobility anchor point (RFC 5380 section 6.1), or of the previous access router
//! in a fast handover (RFC 5568 section 4).

use std::net::Ipv6Addr;

use careof_assist::PathId;
use careof_base::Instant;
use careof_mobility::InterfaceId;
use careof_mobility::v6::{Addresses, Input, Tunnel};
use careof_wire::{mip6, protocol};

use super::Ipv6Carrier;
use super::agent::Agent;
use super::carry::MOBILE_TYPES;
use super::packets::{Tunnels, addresses_of, between_home_addresses};
use super::tunnels::came_by;

/// An outermost tunnel.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outer {
    pub(super) tunnel: Tunnel,
    /// The address that it brings packets for: a regional or a previous care-of address.
    pub(super) address: Ipv6Addr,
    /// Whether it is a mobility anchor point's, of which the agent knows.
    pub(super) is_map: bool,
}

impl Ipv6Carrier {
    /// Tells the node of the mobility anchor points of a link.
    pub(super) fn tell_maps(&mut self, now: Instant, interface: InterfaceId) {
        let told: Vec<_> = self.routers.maps(now, interface).collect();
        for (router, maps) in told {
            self.tell_agent(now, Input::MapsFound { interface, router, maps: &maps });
        }
    }

    /// A packet for the regional, or the previous, care-of address: a tunnel of the home agent's, a packet of a correspondent node with a type 2 routing
    /// header, or a message.
    pub(super) fn take_from_outer(
        &mut self,
        now: Instant,
        interface: InterfaceId,
        Outer { tunnel: outer, address, is_map }: Outer,
        bytes: &[u8],
    ) {
        let mut whole = Vec::new();
        let Some((bytes, packet)) = self.whole(now, bytes, &mut whole) else { return };
        let source = packet.header.source;
        if packet.header.destination != address {
            return self.carried.not_ours += 1;
        }
        if packet.protocol == protocol::IPV6 {
            let inner = Some(Tunnel { entry: source, exit: address });
            let tunnels = Tunnels { inner, outer: Some(outer) };
            return self.take_innermost(now, interface, (tunnels, is_map), packet.payload);
        }
        let addresses = Addresses { map_tunnel: is_map.then_some(outer), ..addresses_of(&packet) };
        let Agent::Mobile(node) = &self.agent else { return };
        if !node.accepts_tunnels(&addresses) {
            return self.carried.not_ours += 1;
        }
        self.note_passed(now, interface, false, came_by(outer), bytes.len());
        let (message, hop_limit) = (packet.payload, packet.header.hop_limit);
        if packet.protocol == mip6::PROTOCOL {
            let input = Input::Mobility { interface, addresses, message };
            if self.fast.as_mut().is_some_and(|fast| fast.takes(now, input)) {
                return self.drain(now);
            }
            return self.tell_agent(now, input);
        }
        if addresses.type_2_routing.is_none() {
            let is_message = packet.protocol == protocol::ICMPV6;
            match message.first().filter(|_| is_message) {
                // Those of neighbor discovery have no business here.
                Some(kind) if MOBILE_TYPES.contains(kind) || *kind < 128 => {
                    self.tell_agent(now, Input::Icmp { interface, addresses, hop_limit, message });
                    self.pass_error_on(source, address, message);
                }
                _ => self.carried.not_ours += 1,
            }
            return;
        }
        if addresses.type_2_routing != self.setup.home_address() || addresses.home_address.is_some() {
            return self.carried.not_ours += 1;
        }
        self.carried.optimised_in += 1;
        if let Agent::Mobile(node) = &mut self.agent {
            node.note_correspondent(now, source);
            self.drain(now);
        }
        let mut plain = std::mem::take(&mut self.scratch);
        between_home_addresses(&packet, &mut plain);
        self.carry_in(now, PathId::Interface(interface), &plain);
        self.scratch = plain;
    }
}
