//! The assists of agents of Mobile IPv6: which way packets go, and how they go on when they were kept.

use core::net::{IpAddr, Ipv6Addr};

use careof_assist::{PathId, Towards};
use careof_mobility::PathProperties;
use careof_mobility::v6::Delivery;
use careof_plan::{NodeId, Route};
use careof_wire::ReceivedData;

use super::{AnyMobile, Ipv6Host, Ipv6Role};
use crate::agents::Agent;
use crate::header::Header;
use crate::packet::PacketRef;
use crate::passage::Passage;
use crate::simulation::Simulation;

impl Ipv6Host {
    /// Whether tunnels to mobile nodes begin here.
    pub(crate) const fn has_bindings(&self) -> bool {
        matches!(self.role, Ipv6Role::Home(_) | Ipv6Role::AnchorPoint(_))
    }

    pub(crate) const fn is_home_agent(&self) -> bool {
        matches!(self.role, Ipv6Role::Home(_))
    }

    /// Home agent: the paths to a mobile node, and what it reported of them.
    pub(crate) fn paths_to(&self, home_address: Ipv6Addr) -> Vec<(PathId, PathProperties)> {
        let Ipv6Role::Home(agent) = &self.role else { return Vec::new() };
        let known = |binding: &careof_mobility::v6::HomeRegistration| {
            binding.path.map(PathProperties::from).unwrap_or_default()
        };
        let bindings = agent.bindings_of(home_address).iter();
        bindings.map(|binding| (PathId::CareOf(binding.care_of.into()), known(binding))).collect()
    }

    /// Mobile node: the correspondents that send to a care-of address it has left.
    pub(crate) fn outdated_correspondents(&self) -> Vec<IpAddr> {
        self.mobile().map(AnyMobile::outdated_correspondents).unwrap_or_default()
    }

    /// Mobile node: what an update that it may send now says of its flows.
    pub(crate) fn set_received_data(&mut self, received: ReceivedData) {
        if let Ipv6Role::Mobile(mobile) = &mut self.role {
            mobile.set_received_data(received);
        }
    }
}

impl Simulation {
    /// [`Simulation::direction`], of a packet with this header.
    pub(crate) fn ipv6_direction(
        &self,
        node: NodeId,
        host: &Ipv6Host,
        header: &Header,
    ) -> Option<(Towards, Option<PathId>)> {
        let (to, from) = (header.destination, header.source);
        match &host.role {
            Ipv6Role::Home(agent) => {
                if agent.serves(self.address_v6(to)) {
                    let last = host.tunnels.get(&to).and_then(|tunnels| tunnels.last());
                    let path = last.map(|passage| PathId::CareOf(self.address_v6(passage.exit).into()));
                    return Some((Towards::Mobile, path));
                }
                agent.serves(self.address_v6(from)).then_some((Towards::Peer, None))
            }
            Ipv6Role::Mobile(_) | Ipv6Role::HierarchicalMobile(_) => {
                let mobile = host.mobile()?;
                let path = mobile.active_interface().map(PathId::Interface);
                match (self.is_home_address_of(node, to), self.is_home_address_of(node, from)) {
                    (true, _) => Some((Towards::Mobile, path)),
                    (_, true) => Some((Towards::Peer, path)),
                    _ => None,
                }
            }
            Ipv6Role::None
            | Ipv6Role::AnchorPoint(_)
            | Ipv6Role::Correspondent(_)
            | Ipv6Role::AccessRouter(_) => None,
        }
    }

    /// Sends a packet on that was kept, as if it went on now; `false` when there is no such way.
    pub(crate) fn send_stored_ipv6(
        &mut self,
        node: NodeId,
        towards: Towards,
        via: Option<PathId>,
        packet: PacketRef,
        port: u16,
    ) -> bool {
        let destination = self.pool[packet].header.destination;
        let address = self.address_v6(destination);
        // A mobility anchor point sees packets in the tunnel of the home agent.
        let exit = self.pool[packet].outermost().destination;
        let route = self.node(node).place.route(exit);
        let Agent::Ipv6(host) = &self.node(node).agent else { return false };
        match (&host.role, towards, via) {
            (Ipv6Role::Mobile(_) | Ipv6Role::HierarchicalMobile(_), _, via) => {
                let Some(mobile) = host.mobile() else { return false };
                let back = || {
                    host.way_back(address).map(|(delivery, _, interface)| Delivery { interface, ..delivery })
                };
                let Some(delivery) = mobile.delivery(address).or_else(back) else { return false };
                match via.filter(|path| *path != PathId::Interface(delivery.interface)) {
                    None => self.originate_on(node, packet, port),
                    Some(PathId::Interface(interface)) if delivery.addresses.tunnel.is_none() => {
                        self.send_to_next_hop(node, interface, packet);
                    }
                    // The tunnel begins at the new path's address.
                    Some(_) => return false,
                }
            }
            (Ipv6Role::Home(agent), Towards::Mobile, Some(PathId::CareOf(IpAddr::V6(exit)))) => {
                // What drains late goes where the mobile node was, as far as anything is known of it still.
                if host.tunnels.get(&destination).is_none_or(Vec::is_empty) {
                    return false;
                }
                let passage = self.tunnel_passage(agent.tunnel_to(exit));
                self.encapsulate(node, packet, passage);
            }
            (Ipv6Role::AnchorPoint(_), Towards::Mobile, via) if exit != destination => {
                let Some(bound) = host.tunnels.get(&exit).and_then(|tunnels| tunnels.last()).copied() else {
                    return false;
                };
                let Some(PathId::CareOf(IpAddr::V6(care_of))) = via else {
                    self.encapsulate(node, packet, bound);
                    return true;
                };
                let passage = Passage { exit: self.locate(care_of), ..bound };
                self.encapsulate(node, packet, passage);
            }
            (Ipv6Role::Home(_), Towards::Mobile, None) => {
                if host.tunnels.get(&destination).is_none_or(Vec::is_empty) && route == Route::Home {
                    return false;
                }
                self.forward_on(node, packet, route);
            }
            _ => self.forward_on(node, packet, route),
        }
        true
    }
}
