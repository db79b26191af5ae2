//! The ways of packets of mobile nodes through this host, past the assists.

use std::net::IpAddr;

use careof_assist::PathId;
use careof_base::Instant;
use careof_mobility::v6::Addresses;
use careof_wire::ipv6::{Ipv6Header, fragment};

use super::agent::Agent;
use super::behind::Inside;
use super::packets::{Tunnels, encapsulated, with_addresses};
use super::tunnels::Travel;
use super::{Ipv6Carrier, Ipv6Setup};
use crate::carrier::assists::{Heading, Shown};
use crate::carrier::tunnel_entry::{Way, fragments};

impl Ipv6Carrier {
    /// A packet of this host, or on its way through a home agent, leaves as the agent says, as far as the assists let it.
    pub(super) fn carry_out(&mut self, now: Instant, header: &Ipv6Header, packet: &[u8]) {
        let mut way = Way::PRESENT;
        let mut shown = std::mem::take(&mut self.shown);
        let mut packet = packet;
        if let Some(Inside { header: inside, at }) = self.followed_inside(header, packet) {
            shown.clear();
            shown.extend_from_slice(packet);
            let path = self.present_path(&inside);
            let outcome = self.show(now, Heading::Out, path, shown.get_mut(at..).unwrap_or_default());
            if outcome == Shown::Stays {
                self.shown = shown;
                return;
            }
            way.fragments = fragments(outcome);
            packet = &shown;
        }
        if !self.put_out(now, way, header, packet) {
            self.carried.no_way += 1;
        }
        self.shown = shown;
    }

    /// Sends a packet as the agent says, by this way of several; whether there is such a way.
    pub(super) fn put_out(&mut self, now: Instant, way: Way, header: &Ipv6Header, packet: &[u8]) -> bool {
        match &self.agent {
            Agent::Home(_) => self.put_in_tunnel(way, header, packet),
            Agent::Mobile(_) | Agent::Correspondent(_) => self.put_out_own(now, way, header, packet),
            // Its packets go another way.
            Agent::AccessRouter(_) => false,
        }
    }

    /// Mobile node and correspondent node: [`Self::put_out`].
    fn put_out_own(&mut self, now: Instant, way: Way, header: &Ipv6Header, packet: &[u8]) -> bool {
        let (addresses, by) = match (&mut self.agent, &self.setup) {
            (Agent::Mobile(node), _) => {
                let is_ours =
                    self.setup.home_address() == Some(header.source) && !header.destination.is_multicast();
                let present = is_ours.then(|| node.delivery(header.destination)).flatten();
                let back = || {
                    let fast = self.fast.as_ref().filter(|_| is_ours)?;
                    fast.way_back(node, header.destination)
                };
                let Some(delivery) = present.or_else(back) else { return false };
                // The tunnel, or the straight way, begins at the address of the path in use.
                if way.via.is_some_and(|via| via != PathId::Interface(delivery.interface)) {
                    return false;
                }
                (delivery.addresses, Some(delivery.interface))
            }
            (Agent::Correspondent(node), Ipv6Setup::Correspondent(setup)) => {
                if header.source != setup.config.address {
                    return false;
                }
                let plain = Addresses::new(header.source, header.destination);
                let addresses = match node.care_of_address(header.destination) {
                    Some(care_of) => {
                        Addresses::new(header.source, care_of).with_type_2_routing(header.destination)
                    }
                    None => plain,
                };
                (addresses, None)
            }
            _ => return false,
        };
        let interface = by.and_then(|id| self.interfaces.index_of(id));
        let is_optimised = addresses.home_address.is_some() || addresses.type_2_routing.is_some();
        let sent = if is_optimised {
            let mut optimised = std::mem::take(&mut self.scratch);
            let outcome = with_addresses(packet, &addresses, &mut optimised);
            let tunnels = Tunnels::of(&addresses);
            let sent = outcome.is_ok() && self.send_in(way.fragments, &optimised, tunnels, interface);
            self.scratch = optimised;
            if outcome.is_err() {
                self.carried.unsuitable += 1;
                return true;
            }
            sent
        } else {
            self.send_in(way.fragments, packet, Tunnels::of(&addresses), interface)
        };
        let travel = match (sent, is_optimised, Tunnels::of(&addresses).outermost()) {
            (false, ..) => {
                self.carried.refused += 1;
                return true;
            }
            (true, true, tunnel) => {
                self.carried.optimised_out += 1;
                tunnel.map_or(Travel::Straight, Travel::Tunnelled)
            }
            (true, false, Some(tunnel)) => Travel::Tunnelled(tunnel),
            (true, false, None) => return true,
        };
        if let Some(by) = by {
            self.note_passed(now, by, true, travel, packet.len());
        }
        true
    }

    /// Home agent: [`Self::put_out`].
    pub(super) fn put_in_tunnel(&mut self, way: Way, header: &Ipv6Header, packet: &[u8]) -> bool {
        let Agent::Home(agent) = &self.agent else { return false };
        // The newest; of several any will do (RFC 5648 section 6.1).
        let Some(&present) = agent.tunnels(header.destination).last() else { return false };
        let tunnel = match way.via {
            None => present,
            // What drains late goes where the mobile node was, as far as anything is known of it still.
            Some(PathId::CareOf(IpAddr::V6(exit))) => agent.tunnel_to(exit),
            Some(_) => return false,
        };
        if self.send_in(way.fragments, packet, Tunnels::one(tunnel), None) {
            self.note_at_home(header.destination, tunnel, true, packet.len());
        } else {
            self.carried.refused += 1;
        }
        true
    }

    /// As [`Self::send_through`], in fragments of at most so many bytes if that is said.
    fn send_in(
        &mut self,
        longest: Option<u16>,
        packet: &[u8],
        tunnels: Tunnels,
        interface: Option<u32>,
    ) -> bool {
        // Through IPv4 the assists have nothing cut: routers there do so.
        let is_ipv4 = tunnels.outermost().is_some_and(|tunnel| tunnel.ipv4_ends().is_some());
        let Some(longest) = longest.filter(|_| !is_ipv4) else {
            return self.send_through(packet, tunnels, interface);
        };
        // The kernel fragments by what it knows of the path, which is too much here.
        let (mut outer, mut inside) = (packet.to_vec(), Vec::new());
        for tunnel in tunnels.inner.into_iter().chain(tunnels.outer) {
            std::mem::swap(&mut outer, &mut inside);
            if encapsulated(&inside, tunnel, 0, &mut outer).is_err() {
                return false;
            }
        }
        let identification = self.random.next_u64() as u32;
        let Ok(fragments) = fragment(&outer, longest, identification) else { return false };
        fragments.iter().all(|fragment| self.send_packet(fragment, None, interface))
    }

    /// A packet that came from where the mobile node is, by `path`, goes to the host, as far as the assists let it.
    pub(super) fn carry_in(&mut self, now: Instant, path: PathId, packet: &[u8]) {
        if self.assists.is_none() {
            self.deliver(packet);
            return;
        }
        let at = self.learn_inside(now, packet);
        let mut shown = std::mem::take(&mut self.shown);
        shown.clear();
        shown.extend_from_slice(packet);
        let inside = shown.get_mut(at..).unwrap_or_default();
        if self.show(now, Heading::In, Some(path), inside) != Shown::Stays {
            self.deliver(&shown);
        }
        self.shown = shown;
        self.follow_assists(now);
    }
}
