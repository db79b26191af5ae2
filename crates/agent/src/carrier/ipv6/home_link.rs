//! Home agent: the link of its home network (RFC 6275 sections 10.3.1 and 10.4.1).
//!
//! The kernel answers neighbor solicitations for the agent's own addresses and for those of mobile nodes that are away, as a proxy, and
//! routes what comes for them into the tunnel device. Detecting duplicates and telling the neighbours is done here.

use std::net::{IpAddr, Ipv6Addr};
use std::os::fd::{AsFd, BorrowedFd};

use careof_base::Instant;
use careof_lab::Ipv6LinkSender;
use careof_mobility::InterfaceId;
use careof_mobility::v6::{HomeRegistration, Input, NeighborEvent, Prefix};
use careof_wire::icmpv6::{Icmpv6Message, IpFields, Nonce};
use careof_wire::ipv6::solicited_node;

use super::agent::Agent;
use super::detection::{Detections, solicitation};
use super::unsolicited::{Announcements, advertise};
use super::{Error, Icmpv6Socket, Ipv6Carrier, Ipv6Setup, routes};

/// Neighbor Solicitation and Neighbor Advertisement (RFC 4861 sections 4.3 and 4.4).
const SOLICITATION: u8 = 135;
const ADVERTISEMENT: u8 = 136;
/// Messages of neighbours taken in one turn, and advertisements sent.
const A_TURN: usize = 256;
/// No Neighbor Solicitation or Advertisement is as long; what is cut off is found malformed.
const LONGEST: usize = 2048;

/// The link of the home network, beside what the kernel does there.
#[derive(Debug)]
pub(super) struct HomeLink {
    id: InterfaceId,
    icmp: Icmpv6Socket,
    /// While the interface exists.
    sender: Option<Ipv6LinkSender>,
    detections: Detections,
    announcements: Announcements,
}

/// The home link of a home agent that has one.
pub(super) fn open(setup: &Ipv6Setup) -> Result<Option<HomeLink>, Error> {
    let Ipv6Setup::Home(setup) = setup else { return Ok(None) };
    let Some(device) = &setup.home_link else { return Ok(None) };
    Ok(Some(HomeLink {
        id: device.id,
        icmp: Icmpv6Socket::open(&[SOLICITATION, ADVERTISEMENT])?,
        sender: None,
        detections: Detections::default(),
        announcements: Announcements::default(),
    }))
}

impl HomeLink {
    pub(super) fn next_timeout(&self) -> Option<Instant> {
        self.detections.next_timeout().into_iter().chain(self.announcements.next_timeout()).min()
    }

    /// Sends a packet to a neighbour; whether the kernel took it.
    pub(super) fn send(&self, packet: &[u8]) -> bool {
        self.sender.as_ref().is_some_and(|sender| sender.send(packet).unwrap_or(false))
    }
}

impl AsFd for HomeLink {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.icmp.as_fd()
    }
}

/// The addresses that are defended for a binding: the home address, and with L the link-local address that belongs to it.
fn defended(binding: &HomeRegistration) -> impl Iterator<Item = Ipv6Addr> + use<> {
    let home_address = binding.home_address;
    let link_local = binding.link_local.then(|| Prefix::LINK_LOCAL.with_interface_of(home_address));
    std::iter::once(home_address).chain(link_local)
}

impl Ipv6Carrier {
    /// Does what the agent asks for in neighbor discovery.
    pub(super) fn neighbor_event(&mut self, now: Instant, event: NeighborEvent) {
        match event {
            NeighborEvent::DetectDuplicate { interface, address, wait } => {
                self.detect_duplicate(now, interface, address, wait);
            }
            NeighborEvent::Proxy { address, on, .. } => self.proxy(address, on),
            NeighborEvent::Answer { interface, address, on } => self.answer(interface, address, on),
            NeighborEvent::Advertise { address, .. } => match &mut self.home_link {
                Some(link) => link.announcements.begin(now, address),
                None => self.at_home.announce(now, address),
            },
        }
    }

    /// Its number in the kernel, and its link-layer address, while it exists.
    fn home_link_index(&self) -> Option<(u32, Option<[u8; 6]>)> {
        let interface = self.interfaces.get(self.home_link.as_ref()?.id)?;
        interface.state.as_ref().map(|state| (state.index, state.link_address))
    }

    fn detect_duplicate(
        &mut self,
        now: Instant,
        interface: InterfaceId,
        address: Ipv6Addr,
        wait: std::time::Duration,
    ) {
        let is_up = self.interfaces.get(interface).is_some_and(super::super::interfaces::Interface::is_up);
        let index = self.home_link_index().map(|(index, _)| index);
        let (Some(link), Some(index), true) = (&mut self.home_link, index, is_up) else {
            // There is no link, or nobody on it that could have the address.
            let input = Input::DuplicateAddressDetection { interface, address, unique: true };
            return self.agent.handle_input(now, input);
        };
        let [_, _, nonce @ ..] = self.random.next_u64().to_be_bytes();
        let nonce: [u8; Nonce::MIN_LEN] = nonce;
        // Who detects at the same time asks this group (RFC 4862 section 5.4.2). Claims come to all nodes.
        let _ = link.icmp.join(solicited_node(address), index);
        if link.send(&solicitation(address, nonce)) {
            link.detections.begin(now, address, wait, nonce);
        } else {
            // The agent does not hear of it, and the mobile node asks again.
            self.unsent += 1;
        }
    }

    /// Tells the agent what has come of a detection.
    fn detection_done(&mut self, now: Instant, address: Ipv6Addr, unique: bool) {
        let index = self.home_link_index().map(|(index, _)| index);
        let Some(link) = &self.home_link else { return };
        let (interface, group) = (link.id, solicited_node(address));
        if let Some(index) = index.filter(|_| !link.detections.needs(group)) {
            let _ = link.icmp.leave(group, index);
        }
        self.tell_agent(now, Input::DuplicateAddressDetection { interface, address, unique });
    }

    /// Home agent: answers for an address, or no longer.
    fn proxy(&mut self, address: Ipv6Addr, on: bool) {
        let Some((index, _)) = self.home_link_index() else { return };
        if on {
            self.host.set_proxy(index, address);
        } else {
            self.host.unset_proxy(index, address);
            if let Some(link) = &mut self.home_link {
                link.announcements.cancel(address);
            }
        }
    }

    /// Home agent with another configuration: mobile nodes may have lost their bindings by that.
    pub(super) fn proxy_no_longer_unless_bound(&mut self, home_address: Ipv6Addr) {
        if let Agent::Home(agent) = &self.agent
            && agent.bindings_of(home_address).is_empty()
        {
            self.proxy(home_address, false);
            self.proxy(Prefix::LINK_LOCAL.with_interface_of(home_address), false);
        }
    }

    /// The interface to the home network exists: everything wanted on it is put there.
    pub(super) fn home_link_appeared(&mut self, id: InterfaceId) -> Result<(), Error> {
        let Some((index, _)) = self.home_link_index() else { return Ok(()) };
        let name = self.interface_name(id).unwrap_or_default().to_owned();
        self.parameters.set(&format!("ipv6/conf/{name}/proxy_ndp"), "1")?;
        // Answers for others are put off by up to 0.8 s without this.
        self.parameters.set(&format!("ipv6/neigh/{name}/proxy_delay"), "0")?;
        let (Some(link), Ipv6Setup::Home(setup), Agent::Home(agent)) =
            (&mut self.home_link, &self.setup, &self.agent)
        else {
            return Ok(());
        };
        // Should it be gone again, it is told.
        link.sender = Ipv6LinkSender::open(index).ok();
        for route in routes::onto_home_link(setup, index) {
            self.host.set_route(route);
        }
        let own = &self.own;
        let is_wanted = |address| match address {
            IpAddr::V6(address) if own.contains(&address) => Some(true),
            IpAddr::V6(address) => agent.serves(address).then(|| !agent.tunnels(address).is_empty()),
            IpAddr::V4(_) => None,
        };
        self.host.take_over_proxies(index, is_wanted);
        let defended: Vec<Ipv6Addr> =
            own.iter().copied().chain(agent.bindings().flat_map(defended)).collect();
        self.host.is_unhurried = true;
        for address in defended {
            self.host.set_proxy(index, address);
        }
        self.host.is_unhurried = false;
        Ok(())
    }

    /// Home agent: the link carries packets again, and its neighbours may have heard otherwise meanwhile.
    pub(super) fn advertise_all(&mut self, now: Instant) {
        let (Some(link), Agent::Home(agent)) = (&mut self.home_link, &self.agent) else { return };
        // Its own address, but not those that it shares with other home agents.
        let own = self.own.first().copied();
        for address in own.into_iter().chain(agent.bindings().flat_map(defended)) {
            link.announcements.begin(now, address);
        }
    }

    /// Home agent: what neighbours say about addresses in question.
    pub(super) fn take_neighbours(&mut self, now: Instant) {
        let index = self.home_link_index().map(|(index, _)| index);
        let mut buffer = [0; LONGEST];
        for _ in 0..A_TURN {
            let Some(link) = &mut self.home_link else { return };
            let datagram = match link.icmp.receive(&mut buffer) {
                Ok(Some(datagram)) => datagram,
                Ok(None) => return,
                Err(_) => return self.unreadable += 1,
            };
            if Some(datagram.interface) != index {
                continue;
            }
            let (source, destination) = (datagram.source, datagram.destination);
            let ip = IpFields { source, destination, hop_limit: datagram.hop_limit };
            let parsed = Icmpv6Message::parse(source, destination, datagram.message);
            let Ok(message) = parsed else { continue };
            if message.check(&ip).is_err() {
                continue;
            }
            if let Some(address) = link.detections.heard(source, &message) {
                self.detection_done(now, address, false);
            }
        }
    }

    /// Does what is due on the home link.
    pub(super) fn wake_neighbours(&mut self, now: Instant) {
        while let Some(address) = self.home_link.as_mut().and_then(|link| link.detections.pop_unique(now)) {
            self.detection_done(now, address, true);
        }
        let there = self.home_link_index();
        for _ in 0..A_TURN {
            let Some(link) = &mut self.home_link else { break };
            let Some(address) = link.announcements.due(now) else { break };
            if let Some((index, link_address)) = there
                && !advertise(&link.icmp, index, address, link_address)
            {
                self.unsent += 1;
            }
        }
        self.advertise_home_address(now);
    }
}
