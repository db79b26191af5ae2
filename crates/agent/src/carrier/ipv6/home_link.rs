//! Home agent: the link of its home network (RFC 6275 sections 10.3.1 and 10.4.1).
//!
//! The kernel answers neighbor solicitations for the agent's own addresses and for those of mobile nodes that are away, as a proxy, and
//! routes what comes for them into the tunnel device. Detecting duplicates and telling the neighbours is done here.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd, BorrowedFd};

use careof_base::Instant;
use careof_lab::Ipv6LinkSender;
use careof_mobility::InterfaceId;
use careof_mobility::v4::ArpOwner;
use careof_mobility::v6::{HomeRegistration, Input, NeighborEvent, Prefix};
use careof_wire::icmpv6::{Icmpv6Message, IpFields, Nonce};
use careof_wire::ipv6::solicited_node;

use super::agent::Agent;
use super::detection::{Detections, solicitation};
use super::unsolicited::{Announcements, advertise};
use super::{Error, Icmpv6Socket, Ipv6Carrier, Ipv6Setup, routes};
use crate::carrier::announcements::{Announcement, Announcements as GratuitousArp};

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
    ipv4: Option<Ipv4Defence>,
}

/// IPv4 addresses for which the home agent answers on its home link (RFC 5555 section 4.5).
#[derive(Debug)]
struct Ipv4Defence {
    /// Its own, for as long as it is there.
    own: Option<Ipv4Addr>,
    /// Home addresses of mobile nodes that are away.
    homes: BTreeSet<Ipv4Addr>,
    announcements: GratuitousArp,
}

impl Ipv4Defence {
    fn addresses(&self) -> impl Iterator<Item = Ipv4Addr> + '_ {
        self.own.into_iter().chain(self.homes.iter().copied())
    }
}

/// The home link of a home agent that has one.
pub(super) fn open(setup: &Ipv6Setup) -> Result<Option<HomeLink>, Error> {
    let is_dual_stack = setup.is_dual_stack();
    let Some(device) = setup.home_side().and_then(|side| side.home_link) else { return Ok(None) };
    let own = setup.ipv4_address();
    let ipv4 = || {
        let announcements = GratuitousArp::open()?;
        Ok::<_, Error>(Ipv4Defence { own, homes: BTreeSet::new(), announcements })
    };
    Ok(Some(HomeLink {
        id: device.id,
        icmp: Icmpv6Socket::open(&[SOLICITATION, ADVERTISEMENT])?,
        sender: None,
        detections: Detections::default(),
        announcements: Announcements::default(),
        ipv4: is_dual_stack.then(ipv4).transpose()?,
    }))
}

impl HomeLink {
    pub(super) fn next_timeout(&self, now: Instant) -> Option<Instant> {
        let arp = self.ipv4.as_ref().and_then(|ipv4| ipv4.announcements.next_timeout(now));
        [self.detections.next_timeout(), self.announcements.next_timeout(), arp].into_iter().flatten().min()
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
        let (Some(link), Some(side), Agent::Home(agent)) =
            (&mut self.home_link, self.setup.home_side(), &self.agent)
        else {
            return Ok(());
        };
        // Should it be gone again, it is told.
        link.sender = Ipv6LinkSender::open(index).ok();
        for route in routes::onto_home_link(&side, index) {
            self.host.set_route(route);
        }
        if link.ipv4.is_some() {
            self.parameters.set(&format!("ipv4/neigh/{name}/proxy_delay"), "0")?;
        }
        let own = &self.own;
        let ipv4_homes: BTreeSet<Ipv4Addr> = self.setup.ipv4_home_addresses().collect();
        let is_wanted = |address| match address {
            IpAddr::V6(address) if own.contains(&address) => Some(true),
            IpAddr::V6(address) => agent.serves(address).then(|| !agent.tunnels(address).is_empty()),
            IpAddr::V4(address) if agent.ipv4_address() == Some(address) => Some(true),
            IpAddr::V4(address) => {
                ipv4_homes.contains(&address).then(|| !agent.ipv4_tunnels(address).is_empty())
            }
        };
        self.host.take_over_proxies(index, is_wanted);
        let defended: Vec<Ipv6Addr> =
            own.iter().copied().chain(agent.bindings().flat_map(defended)).collect();
        self.host.is_unhurried = true;
        for address in defended {
            self.host.set_proxy(index, address);
        }
        for address in link.ipv4.iter().flat_map(Ipv4Defence::addresses) {
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
        let interface = link.id;
        if let Some(ipv4) = &mut link.ipv4 {
            for address in ipv4.addresses().collect::<Vec<_>>() {
                ipv4.announcements.put_off(Announcement { interface, address, owner: ArpOwner::Sender });
            }
        }
    }

    /// Home agent: answers ARP for an IPv4 home address, or no longer.
    pub(super) fn defend_ipv4(&mut self, now: Instant, address: Ipv4Addr, is_bound: bool) {
        let there = self.home_link_index();
        let Some(link) = &mut self.home_link else { return };
        let interface = link.id;
        let Some(ipv4) = &mut link.ipv4 else { return };
        if !is_bound {
            ipv4.announcements.cancel(address);
            if ipv4.homes.remove(&address)
                && let Some((index, _)) = there
            {
                self.host.unset_proxy(index, address);
            }
            return;
        }
        if !ipv4.homes.insert(address) {
            return;
        }
        let announcement = Announcement { interface, address, owner: ArpOwner::Sender };
        if let Some((index, _)) = there {
            self.host.set_proxy(index, address);
        }
        match there {
            Some((index, Some(own))) if !self.host.is_unhurried => {
                ipv4.announcements.announce(self.host.netlink(), (index, own), announcement);
                ipv4.announcements.repeat(now, announcement);
            }
            _ => ipv4.announcements.put_off(announcement),
        }
    }

    /// Home agent: gratuitous ARP that is due.
    fn announce_ipv4(&mut self, now: Instant) {
        let there = self.home_link_index();
        for _ in 0..A_TURN {
            // Not before packets for who is announced find their way.
            let is_settled = !self.host.is_settling();
            let Some(ipv4) = self.home_link.as_mut().and_then(|link| link.ipv4.as_mut()) else { break };
            let Some(announcement) = ipv4.announcements.due(now, is_settled) else { break };
            if let Some((index, Some(own))) = there {
                ipv4.announcements.announce(self.host.netlink(), (index, own), announcement);
            }
        }
    }

    /// Home agent: gratuitous ARP messages that have been sent.
    pub(super) fn ipv4_announcements_sent(&self) -> u64 {
        let ipv4 = self.home_link.as_ref().and_then(|link| link.ipv4.as_ref());
        ipv4.map_or(0, |ipv4| ipv4.announcements.sent)
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
        self.announce_ipv4(now);
        self.advertise_home_address(now);
    }
}
