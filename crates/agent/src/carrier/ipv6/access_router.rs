//! Access router (RFC 5568): packets for mobile nodes that are between two links.
//!
//! The kernel forwards as it does without an agent. While the agent has to do with the packets for an address - they go into a tunnel, or
//! wait - a route for that address alone brings them here by the tunnel device. What goes on to the link is put back there, and a rule has
//! what comes from the device pass that route by.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv6Addr};

use careof_base::Instant;
use careof_mobility::v6::access_router::{
    AccessRouter, Action, AddressConflict, Event, PacketToken, Verdict, Way,
};
use careof_mobility::v6::{Input, Tunnel};
use careof_mobility::{ConfigError, InterfaceId};
use careof_wire::icmpv6::{IpFields, LinkLayerAddress};
use careof_wire::ipv6::Ipv6Header;

use super::agent::Agent;
use super::{Error, Ipv6AccessRouterSetup, Ipv6Carrier, routes};
use careof_lab::Route;

/// The packets that the agent keeps, and the addresses whose packets it is shown.
#[derive(Debug, Default)]
pub(super) struct Kept {
    /// No more than its buffers have room for.
    packets: BTreeMap<PacketToken, Box<[u8]>>,
    shown: BTreeSet<Ipv6Addr>,
    /// Addresses of which the agent has told something.
    concerned: BTreeSet<Ipv6Addr>,
    /// What has come by links on which the kernel does not send yet.
    early: Vec<Early>,
    /// Mobile nodes that have left, and come, with a tunnel between.
    pub(super) departures: u64,
    pub(super) arrivals: u64,
}

/// Messages of neighbor discovery that wait for their links, at most: those of some mobile nodes that come with the link.
const MOST_EARLY: usize = 64;

/// A message of neighbor discovery.
#[derive(Debug)]
struct Early {
    interface: InterfaceId,
    ip: IpFields,
    message: Box<[u8]>,
}

/// Whether each link has a name, and nothing is asked for that is not done here.
pub(super) fn check(setup: &Ipv6AccessRouterSetup) -> Result<(), Error> {
    for link in &setup.config.links {
        super::super::check_named(&setup.devices, link.interface)?;
    }
    if setup.config.address_conflict == AddressConflict::UsePrevious {
        let (one, other) = ("an access router on this host", "host routes to previous care-of addresses");
        return Err(ConfigError::Incompatible(one, other).into());
    }
    Ok(())
}

impl Ipv6Carrier {
    /// Tells the agent which link-local addresses its interfaces have.
    pub(super) fn look_for_link_local_addresses(&mut self, now: Instant) {
        let outcome = self.reading.check().and_then(|()| self.host.netlink().assigned_addresses());
        let Some(assigned) = self.reading.note(now, outcome) else { return };
        let Agent::AccessRouter(router) = &mut self.agent else { return };
        for interface in self.interfaces.named() {
            let index = interface.index();
            let own =
                assigned.iter().filter(|on| Some(on.interface) == index).find_map(|on| match on.address {
                    IpAddr::V6(address) if address.is_unicast_link_local() => Some(address),
                    _ => None,
                });
            if let Some(own) = own {
                router.set_link_local(interface.device.id, own);
            }
        }
    }

    fn access_router(&mut self) -> Option<&mut AccessRouter> {
        match &mut self.agent {
            Agent::AccessRouter(router) => Some(router),
            _ => None,
        }
    }

    /// The link layer says whether the mobile node at `care_of` is on its link.
    pub(in crate::carrier) fn note_on_link(&mut self, care_of: Ipv6Addr, is_there: bool) {
        let now = self.clock.now();
        let Some(router) = self.access_router() else { return };
        if is_there {
            router.note_attached(now, care_of);
        } else {
            router.note_detached(now, care_of);
        }
        self.kept.concerned.insert(care_of);
        self.drain(now);
    }

    /// Keeps a message that has come by a link that is not up as far as is known, until it is. With a new carrier the kernel receives at
    /// once, and sends only when it has seen to it a moment later: what is sent in between, an answer or the packets that wait for the
    /// mobile node that announces itself, is lost. Whether the message is kept; what finds no room is taken in at once.
    pub(super) fn keep_early(&mut self, interface: InterfaceId, ip: &IpFields, message: &[u8]) -> bool {
        let is_router = matches!(self.agent, Agent::AccessRouter(_));
        let is_down = self.interfaces.get(interface).is_some_and(|known| !known.is_up());
        let is_kept = is_router && is_down && self.kept.early.len() < MOST_EARLY;
        if is_kept {
            self.kept.early.push(Early { interface, ip: *ip, message: message.into() });
        }
        is_kept
    }

    /// A link is up: takes in what has come by it before.
    pub(super) fn take_early(&mut self, now: Instant, of: InterfaceId) {
        let early = std::mem::take(&mut self.kept.early);
        for Early { interface, ip, message } in early {
            if interface == of {
                self.take_icmp_message(now, interface, &ip, &message);
            } else {
                self.kept.early.push(Early { interface, ip, message });
            }
        }
    }

    /// A packet for an address whose packets the agent is shown.
    pub(super) fn take_at_access_router(&mut self, now: Instant, header: &Ipv6Header, packet: &[u8]) {
        let Some(router) = self.access_router() else { return };
        let len = u32::try_from(packet.len()).unwrap_or(u32::MAX);
        match router.handle_packet(now, header.destination, len) {
            Verdict::Pass(way) => self.send_by(way, packet),
            Verdict::PassAndKeep(token) => {
                self.kept.packets.insert(token, packet.into());
                self.send_by(Way::Link, packet);
            }
            Verdict::Hold(token) => drop(self.kept.packets.insert(token, packet.into())),
            // The agent has counted it.
            Verdict::Drop => {}
        }
        self.drain(now);
    }

    fn send_by(&mut self, way: Way, packet: &[u8]) {
        let sent = match way {
            Way::Link => self.deliver(packet),
            Way::Tunnel(tunnel) => {
                let sent = self.send_packet(packet, Some(tunnel), None);
                if sent {
                    self.carried.tunnelled_out.note(1, packet.len() as u64);
                }
                sent
            }
        };
        if !sent {
            self.carried.refused += 1;
        }
    }

    /// A packet in a tunnel that ends here: a mobile node that was handed over sends from its previous care-of address.
    pub(super) fn take_out_at_access_router(&mut self, tunnel: Tunnel, bytes: &[u8]) {
        let Ok((inner, _)) = Ipv6Header::parse(bytes) else { return self.carried.malformed += 1 };
        let Agent::AccessRouter(router) = &self.agent else { return };
        if !router.accepts_reverse_tunnel(inner.source, tunnel.entry) {
            return self.carried.not_ours += 1;
        }
        self.carried.tunnelled_in.note(1, bytes.len() as u64);
        self.deliver(bytes);
    }

    /// Takes out what an access router has to tell and wants done; whether there was anything.
    pub(super) fn drain_access_router(&mut self, now: Instant) -> bool {
        let mut any = false;
        while let Some(event) = self.access_router().and_then(AccessRouter::poll_event) {
            any = true;
            self.access_router_event(now, event);
        }
        while let Some(action) = self.access_router().and_then(|router| router.poll_action(now)) {
            any = true;
            let (Action::Release { token, .. } | Action::Discard { token, .. }) = action;
            let Some(packet) = self.kept.packets.remove(&token) else { continue };
            if let Action::Release { way, .. } = action {
                self.send_by(way, &packet);
            }
        }
        self.show_what_is_concerned();
        any
    }

    fn access_router_event(&mut self, now: Instant, event: Event) {
        match event {
            Event::UpdateReceived { previous, .. } | Event::Refused { previous, .. } => {
                self.kept.concerned.insert(previous);
            }
            Event::TunnelBegun { previous, .. } => {
                self.kept.departures += 1;
                self.kept.concerned.insert(previous);
            }
            Event::TunnelEnded { previous, .. } => {
                self.kept.concerned.insert(previous);
            }
            Event::Initiated { new, .. } => {
                self.kept.concerned.insert(new);
            }
            Event::Arrived { interface, address, link_layer_address } => {
                self.kept.arrivals += 1;
                self.kept.concerned.insert(address);
                self.learn_neighbour(interface, address, link_layer_address);
            }
            Event::NeverCame { address } | Event::HostRouteEnded { address } => {
                self.kept.concerned.insert(address);
            }
            // The kernel detects nothing on behalf of others.
            Event::DetectDuplicate { interface, address, .. } => {
                let input = Input::DuplicateAddressDetection { interface, address, unique: true };
                self.agent.handle_input(now, input);
            }
            Event::Proxy { interface, address, on } => {
                if let Some(index) = self.interfaces.index_of(interface) {
                    if on {
                        self.host.set_proxy(index, address);
                    } else {
                        self.host.unset_proxy(index, address);
                    }
                }
            }
            // The agent counts what it drops.
            Event::Dropped { .. } => {}
        }
    }

    /// A mobile node has announced itself (RFC 5568 section 4: the neighbor cache has an entry in state STALE from then on). The kernel
    /// ignores an announcement of somebody it does not know, and would have to ask before the first packet goes to the link.
    fn learn_neighbour(&mut self, interface: InterfaceId, address: Ipv6Addr, station: LinkLayerAddress) {
        let state = self.interfaces.get(interface).and_then(|known| known.state.as_ref());
        let index = state.filter(|state| state.link_address.is_some()).map(|state| state.index);
        if let Some(index) = index {
            self.host.learn_neighbour(index, address, station.0);
        }
    }

    /// Has packets for an address come here exactly as long as the agent has to do with them.
    fn show_what_is_concerned(&mut self) {
        let Agent::AccessRouter(router) = &self.agent else { return };
        let concerned = std::mem::take(&mut self.kept.concerned);
        let changed: Vec<(Ipv6Addr, bool)> = concerned
            .iter()
            .chain(&self.kept.shown)
            .map(|address| (*address, router.sees_to(*address)))
            .filter(|(address, is_shown)| self.kept.shown.contains(address) != *is_shown)
            .collect();
        for (address, is_shown) in changed {
            // A tunnel fragments what is too long for it: whoever sends need not hear of a detour that is over in a moment.
            let route = Route { mtu: None, ..routes::into_device(self.setup.host(), address, self.device) };
            if is_shown {
                self.kept.shown.insert(address);
                self.host.set_route(route);
            } else if let Some(table) = route.table {
                self.kept.shown.remove(&address);
                self.host.unset_route(table, address, route.prefix_length);
            }
        }
    }
}
