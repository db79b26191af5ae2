//! Packets between the tunnel device and the network, as the agents decide.

use std::fmt;
use std::net::Ipv6Addr;
use std::os::fd::AsFd;

use careof_assist::PathId;
use careof_base::Instant;
use careof_lab::{Ipv6Outer, with_left_checksum};
use careof_mobility::InterfaceId;
use careof_mobility::v6::{Addresses, Input, Transmit, Tunnel};
use careof_wire::icmpv6::{Icmpv6Message, IpFields};
use careof_wire::ipv6::{Extensions, Ipv6Header, Packet, Reassembler, ReassemblyLimits, Understood};
use careof_wire::{mip6, protocol};

use super::agent::Agent;
use super::anchor_points::Outer;
use super::dual_stack::DualStackSockets;
use super::neighbours::{ADVERTISEMENT, ERRORS};
use super::packets::{
    self, TUNNEL_HOP_LIMIT, Tunnels, addresses_of, between_home_addresses, encapsulated, is_ipv4,
};
use super::tunnels::{Travel, came_by};
use super::waiting::{Source, Waiting};
use super::{
    Error, GuardedPacket, Icmpv6Socket, Ipv6Carrier, Ipv6PacketSender, Ipv6PacketWatch, Ipv6Setup,
    Ipv6TunnelSocket, PacketGuard, errors, routes,
};
use crate::carrier::decisions::Traffic;

/// Packets taken from one source in one turn.
const PACKETS_A_TURN: usize = 256;
/// The longest packet.
pub(super) const LONGEST: usize = 65_535 + Ipv6Header::LEN as usize;
/// Home Agent Address Discovery Reply, which comes to a care-of address without a tunnel (RFC 6275 section 10.5).
const DISCOVERY_REPLY: u8 = 145;
/// ICMPv6 types that agents of Mobile IPv6 send each other (RFC 6275 sections 6.5 to 6.8).
pub(super) const MOBILE_TYPES: std::ops::RangeInclusive<u8> = 144..=147;

/// RtSolPr and PrRtAdv (RFC 5568 section 6.1), and Neighbor Advertisement (RFC 4861 section 4.4), by which mobile nodes announce themselves.
const FAST_HANDOVER: u8 = 154;
const NEIGHBOR_ADVERTISEMENT: u8 = 136;

/// What became of packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Carried {
    /// Put into tunnels.
    pub(super) tunnelled_out: Traffic,
    /// Taken out of tunnels.
    pub(super) tunnelled_in: Traffic,
    /// Sent with a Home Address option or a type 2 routing header.
    pub(super) optimised_out: u64,
    /// Received with one of them.
    pub(super) optimised_in: u64,
    /// No way for them at present.
    pub(super) no_way: u64,
    /// Out of a tunnel that is none of ours, or claiming a home address that is not theirs.
    pub(super) not_ours: u64,
    /// Nothing that can be read.
    pub(super) malformed: u64,
    /// Home agent: they had been in one of its tunnels already.
    pub(super) looping: u64,
    /// They cannot be given the headers they would need.
    pub(super) unsuitable: u64,
    /// The kernel refused to send them, or had no room.
    pub(super) refused: u64,
    /// Home agent: for itself, and of no protocol that it knows.
    pub(super) for_nobody: u64,
    /// ICMPv6 errors about packets on their way that were passed on to who had sent them.
    pub(super) errors_relayed: u64,
}

/// Fragments that wait for others.
pub(super) struct Fragments(pub(super) Reassembler);

impl Fragments {
    pub(super) const fn new(limits: ReassemblyLimits) -> Self {
        Self(Reassembler::new(limits))
    }
}

/// The same of IPv4.
pub(super) struct Ipv4Fragments(pub(super) careof_wire::ipv4::Reassembler);

impl Ipv4Fragments {
    pub(super) const fn new(limits: ReassemblyLimits) -> Self {
        Self(careof_wire::ipv4::Reassembler::new(limits))
    }
}

impl fmt::Debug for Ipv4Fragments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Ipv4Fragments").field(&self.0.fragments_waiting()).finish()
    }
}

impl fmt::Debug for Fragments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Fragments").field(&self.0.fragments_waiting()).finish()
    }
}

/// The sockets of an agent, beside its tunnel device. A home agent has none.
#[derive(Debug, Default)]
pub(super) struct Sockets {
    /// Mobile node.
    pub(super) tunnel: Option<Ipv6TunnelSocket>,
    pub(super) sender: Option<Ipv6PacketSender>,
    pub(super) watch: Option<Ipv6PacketWatch>,
    pub(super) icmp: Option<Icmpv6Socket>,
    pub(super) dual_stack: DualStackSockets,
    _guard: Option<PacketGuard>,
}

impl Sockets {
    pub(super) fn open(setup: &Ipv6Setup) -> Result<Self, Error> {
        let options = setup.host();
        let guard = |packets: &[GuardedPacket]| PacketGuard::open(&options.tunnel_device, packets);
        Ok(match setup {
            Ipv6Setup::Home(_) | Ipv6Setup::AnchorPoint(_) => Self::default(),
            Ipv6Setup::Mobile(_) | Ipv6Setup::HierarchicalMobile(_) => Self {
                tunnel: Some(Ipv6TunnelSocket::open()?),
                sender: Some(Ipv6PacketSender::open(None)?),
                // First, so that nothing is kept from the kernel that nobody sees.
                watch: Some(Ipv6PacketWatch::open()?),
                icmp: Some(Icmpv6Socket::open(
                    &[&[ADVERTISEMENT, DISCOVERY_REPLY, FAST_HANDOVER], &ERRORS[..]].concat(),
                )?),
                dual_stack: DualStackSockets::open(setup)?,
                _guard: Some(guard(&[GuardedPacket::Type2Routing, GuardedPacket::MobilityHeader])?),
            },
            Ipv6Setup::AccessRouter(_) => Self {
                tunnel: Some(Ipv6TunnelSocket::open()?),
                // What it says itself goes on to the link, also while packets for there are shown.
                sender: Some(Ipv6PacketSender::open(Some(routes::mark(options)))?),
                watch: Some(Ipv6PacketWatch::open()?),
                icmp: Some(Icmpv6Socket::open(&[FAST_HANDOVER, NEIGHBOR_ADVERTISEMENT])?),
                dual_stack: DualStackSockets::default(),
                _guard: Some(guard(&[GuardedPacket::HomeAddressOption, GuardedPacket::MobilityHeader])?),
            },
            Ipv6Setup::Correspondent(_) => Self {
                tunnel: None,
                sender: Some(Ipv6PacketSender::open(Some(routes::mark(options)))?),
                watch: Some(Ipv6PacketWatch::open()?),
                icmp: Some(Icmpv6Socket::open(&ERRORS)?),
                dual_stack: DualStackSockets::default(),
                _guard: Some(guard(&[GuardedPacket::HomeAddressOption, GuardedPacket::MobilityHeader])?),
            },
        })
    }

    pub(super) fn add_to(&self, waiting: &Waiting) -> Result<(), Error> {
        if let Some(tunnel) = &self.tunnel {
            waiting.add(Source::Tunnel, tunnel.as_fd())?;
        }
        if let Some(watch) = &self.watch {
            waiting.add(Source::Watch, watch.as_fd())?;
        }
        if let Some(icmp) = &self.icmp {
            waiting.add(Source::Icmp, icmp.as_fd())?;
        }
        self.dual_stack.add_to(waiting)
    }
}

impl Ipv6Carrier {
    /// Sends what the agent has to say.
    pub(super) fn send(&mut self, now: Instant, transmit: &Transmit) {
        let Ok(packet) = packets::emit(transmit) else { return self.unsent += 1 };
        // The mobile node is at home, where routes may not lead yet.
        if let (Some(link), Some(_), None) = (&self.home_link, transmit.interface, transmit.addresses.tunnel)
        {
            if !link.send(&packet) {
                self.unsent += 1;
            }
            return;
        }
        let interface = match transmit.interface {
            // A home agent leaves it to the routes, which it is behind.
            Some(id) if !matches!(self.agent, Agent::Home(_)) => match self.interfaces.index_of(id) {
                Some(index) => Some(index),
                // It is gone, and there is nobody to tell.
                None => return self.unsent += 1,
            },
            _ => None,
        };
        let tunnels = Tunnels::of(&transmit.addresses);
        let sent = match (transmit.addresses.udp_port, transmit.addresses.ipv4_tunnel()) {
            (Some(port), Some(ends)) => self.send_in_udp(&packet, ends, port, interface),
            _ => self.send_through(&packet, tunnels, interface),
        };
        match (sent, transmit.interface, tunnels.outermost()) {
            (false, ..) => self.unsent += 1,
            // What is in UDP the home agent takes for itself.
            (true, Some(id), Some(tunnel)) if transmit.addresses.udp_port.is_none() => {
                self.note_passed(now, id, true, Travel::Tunnelled(tunnel), packet.len());
            }
            _ => {}
        }
    }

    /// Sends a whole packet, in its tunnels if there are any; whether the kernel took it.
    pub(super) fn send_through(&mut self, packet: &[u8], tunnels: Tunnels, interface: Option<u32>) -> bool {
        let Some(inner) = tunnels.nested() else {
            return self.send_packet(packet, tunnels.outermost(), interface);
        };
        let mut nested = std::mem::take(&mut self.nested);
        let sent = encapsulated(packet, inner, 0, &mut nested).is_ok()
            && self.send_packet(&nested, tunnels.outer, interface);
        self.nested = nested;
        sent
    }

    /// Sends a whole packet, in a tunnel if there is one; whether the kernel took it.
    pub(super) fn send_packet(
        &mut self,
        packet: &[u8],
        tunnel: Option<Tunnel>,
        interface: Option<u32>,
    ) -> bool {
        if let Some(tunnel) = tunnel.filter(|tunnel| tunnel.ipv4_ends().is_some() || is_ipv4(packet)) {
            return self.send_dual_stack(packet, tunnel, interface);
        }
        let traffic_class = || Ipv6Header::parse_start(packet).map_or(0, |(header, _)| header.traffic_class);
        match (tunnel, &self.sockets.tunnel, &self.sockets.sender) {
            (Some(Tunnel { entry, exit }), Some(socket), _) => {
                let outer = Ipv6Outer {
                    source: entry,
                    destination: exit,
                    hop_limit: TUNNEL_HOP_LIMIT,
                    traffic_class: traffic_class(),
                    interface,
                };
                socket.send(&outer, packet).unwrap_or(false)
            }
            (None, _, Some(sender)) => sender.send(packet, interface).unwrap_or(false),
            (None, _, None) => self.deliver(packet),
            (Some(tunnel), None, _) => {
                let mut outer = std::mem::take(&mut self.scratch);
                let sent = encapsulated(packet, tunnel, 0, &mut outer).is_ok() && self.deliver(&outer);
                self.scratch = outer;
                sent
            }
        }
    }

    /// Hands a packet to the host, or by way of a home agent's host to the network. What the host does not take the device counts.
    pub(super) fn deliver(&mut self, packet: &[u8]) -> bool {
        self.tun.send(packet).and_then(|()| self.tun.flush()).is_ok()
    }

    /// What the host has sent into the device.
    pub(super) fn take_own(&mut self, now: Instant) -> Result<(), Error> {
        let Some(mut frame) = self.frame.take() else { return Ok(()) };
        let mut outcome = Ok(());
        for _ in 0..PACKETS_A_TURN {
            match self.tun.receive(&mut frame) {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => {
                    outcome = Err(error.into());
                    break;
                }
            }
            let packet = frame.bytes();
            if is_ipv4(packet) {
                self.take_own_ipv4(now, packet);
                continue;
            }
            let Ok((header, _)) = Ipv6Header::parse(packet) else {
                self.carried.malformed += 1;
                continue;
            };
            match self.agent {
                Agent::Home(_) => self.take_at_home_agent(now, &header, packet),
                Agent::AccessRouter(_) => self.take_at_access_router(now, &header, packet),
                Agent::Mobile(_) | Agent::Correspondent(_) => self.carry_out(now, &header, packet),
            }
            self.drive_assists(now);
        }
        self.frame = Some(frame);
        outcome
    }

    /// Mobile node: packets out of tunnels.
    pub(super) fn take_tunnelled(&mut self, now: Instant) -> Result<(), Error> {
        let Some(socket) = self.sockets.tunnel.take() else { return Ok(()) };
        let mut buffer = std::mem::take(&mut self.buffer);
        for _ in 0..PACKETS_A_TURN {
            match socket.receive(&mut buffer) {
                Ok(Some(tunnelled)) => {
                    let tunnel = Tunnel { entry: tunnelled.source, exit: tunnelled.destination };
                    self.take_out(now, tunnelled.interface, tunnel, tunnelled.packet);
                }
                Ok(None) => break,
                Err(_) => {
                    self.unreadable += 1;
                    break;
                }
            }
        }
        self.sockets.tunnel = Some(socket);
        self.buffer = buffer;
        self.drive_assists(now);
        Ok(())
    }

    pub(super) fn take_out(&mut self, now: Instant, index: u32, tunnel: Tunnel, bytes: &[u8]) {
        let interface = self.interfaces.id_of(index);
        if matches!(self.agent, Agent::AccessRouter(_)) {
            return self.take_out_at_access_router(tunnel, bytes);
        }
        // What the previous access router sends on may come by a link where nothing is registered yet.
        if let Some(previous) = self.fast.as_ref().and_then(|fast| fast.previous_behind(tunnel.entry)) {
            let outer = Outer { tunnel, address: previous, is_map: false };
            return self.take_from_outer(now, interface, outer, bytes);
        }
        let Agent::Mobile(node) = &self.agent else { return };
        if !node.listens_on(interface) {
            return self.carried.not_ours += 1;
        }
        if let Some(address) = node.regional_behind(tunnel.entry) {
            return self.take_from_outer(now, interface, Outer { tunnel, address, is_map: true }, bytes);
        }
        self.take_innermost(now, interface, (Tunnels::one(tunnel), true), bytes);
    }

    /// Mobile node: what was in all of the tunnels.
    pub(super) fn take_innermost(
        &mut self,
        now: Instant,
        interface: InterfaceId,
        (tunnels, is_map): (Tunnels, bool),
        bytes: &[u8],
    ) {
        let (Agent::Mobile(node), Some(home_address)) = (&self.agent, self.setup.home_address()) else {
            return;
        };
        let Ok(packet) = Packet::parse(bytes, Understood::PLAIN_IPV6) else {
            return self.carried.malformed += 1;
        };
        let Tunnels { inner, outer } = tunnels;
        let map_tunnel = outer.filter(|_| is_map);
        let addresses = Addresses { tunnel: inner, map_tunnel, ..addresses_of(&packet) };
        if packet.header.destination != home_address || !node.accepts_tunnels(&addresses) {
            return self.carried.not_ours += 1;
        }
        let message = packet.payload;
        let kind = message.first().copied().unwrap_or(0);
        let is_fragment = packet.fragment.is_some_and(|fragment| !fragment.is_atomic());
        if let Some(tunnel) = tunnels.outermost() {
            self.note_passed(now, interface, false, came_by(tunnel), bytes.len());
        }
        let Agent::Mobile(node) = &mut self.agent else { return };
        match packet.protocol {
            mip6::PROTOCOL if !is_fragment => {
                return self.tell_agent(now, Input::Mobility { interface, addresses, message });
            }
            protocol::ICMPV6 if !is_fragment && MOBILE_TYPES.contains(&kind) => {
                let hop_limit = packet.header.hop_limit;
                return self.tell_agent(now, Input::Icmp { interface, addresses, hop_limit, message });
            }
            _ => {}
        }
        // Who sends through the home agent does not know where the node is (RFC 6275 section 11.7.2).
        node.note_correspondent(now, packet.header.source);
        self.drain(now);
        // What the kernel has put together goes on as one; on its way in nothing is kept.
        let completed = with_left_checksum(bytes);
        self.carry_in(now, PathId::Interface(interface), completed.as_deref().unwrap_or(bytes));
    }

    /// A packet that has arrived, put together in `whole` if it came in fragments; `None` where some are missing, or where it cannot be read,
    /// which is counted.
    pub(super) fn whole<'a>(
        &mut self,
        now: Instant,
        bytes: &'a [u8],
        whole: &'a mut Vec<u8>,
    ) -> Option<(&'a [u8], Packet<'a>)> {
        let mut bytes = bytes;
        let mut parsed = Packet::parse(bytes, Understood::MOBILE_IPV6);
        if matches!(&parsed, Ok(packet) if packet.fragment.is_some_and(|fragment| !fragment.is_atomic())) {
            match self.fragments.0.handle_fragment(now, bytes) {
                Ok(put_together) => *whole = put_together?,
                Err(_) => {
                    self.carried.malformed += 1;
                    return None;
                }
            }
            bytes = whole;
            parsed = Packet::parse(bytes, Understood::MOBILE_IPV6);
        }
        match parsed {
            Ok(packet) => Some((bytes, packet)),
            Err(_) => {
                self.carried.malformed += 1;
                None
            }
        }
    }

    /// Mobile node and correspondent node: packets with headers of Mobile IPv6.
    pub(super) fn take_watched(&mut self, now: Instant) -> Result<(), Error> {
        let Some(watch) = self.sockets.watch.take() else { return Ok(()) };
        let mut buffer = std::mem::take(&mut self.buffer);
        for _ in 0..PACKETS_A_TURN {
            match watch.receive(&mut buffer) {
                Ok(Some(seen)) => self.take_seen(now, seen.interface, seen.packet),
                Ok(None) => break,
                Err(_) => {
                    self.unreadable += 1;
                    break;
                }
            }
        }
        self.sockets.watch = Some(watch);
        self.buffer = buffer;
        self.drive_assists(now);
        Ok(())
    }

    fn take_seen(&mut self, now: Instant, index: u32, bytes: &[u8]) {
        // What the device itself hands to the host has been here already.
        if index == self.device {
            return;
        }
        // A router sees what it forwards, too: only what is for this host is looked at.
        let is_for_us = match (&self.setup, Ipv6Header::parse_start(bytes)) {
            (Ipv6Setup::Correspondent(setup), Ok((header, _))) => header.destination == setup.config.address,
            (Ipv6Setup::AccessRouter(setup), Ok((header, _))) => {
                setup.config.links.iter().any(|link| link.address == header.destination)
            }
            (setup, Ok((header, _))) if setup.mobile().is_some() => {
                self.has_address(index, header.destination)
            }
            _ => false,
        };
        if !is_for_us {
            return;
        }
        let mut whole = Vec::new();
        let Some((bytes, packet)) = self.whole(now, bytes, &mut whole) else { return };
        let addresses = addresses_of(&packet);
        let interface = self.interfaces.id_of(index);
        if packet.protocol == mip6::PROTOCOL {
            let input = Input::Mobility { interface, addresses, message: packet.payload };
            if self.fast.as_mut().is_some_and(|fast| fast.takes(now, input)) {
                return self.drain(now);
            }
            return self.tell_agent(now, input);
        }
        let is_taken = match (&mut self.agent, self.setup.home_address()) {
            // With destination options alone the kernel deals with it.
            (Agent::Mobile(_), _) if addresses.type_2_routing.is_none() => return,
            (Agent::Correspondent(_), _) if addresses.home_address.is_none() => return,
            // The routing header has none but the home address (RFC 6275 section 11.3.3), and a Home Address option would be for the
            // correspondent node that the mobile node is not.
            (Agent::Mobile(node), home_address) => {
                addresses.type_2_routing == home_address
                    && addresses.home_address.is_none()
                    && node.listens_on(interface)
            }
            (Agent::Correspondent(node), _) => {
                let is_taken = node.accepts_home_address_option(now, &addresses, packet.protocol);
                self.drain(now);
                is_taken && addresses.type_2_routing.is_none()
            }
            (Agent::Home(_) | Agent::AccessRouter(_), _) => false,
        };
        if !is_taken {
            return self.carried.not_ours += 1;
        }
        self.carried.optimised_in += 1;
        self.note_passed(now, interface, false, Travel::Straight, bytes.len());
        if let Agent::Mobile(node) = &mut self.agent {
            node.note_correspondent(now, addresses.source);
            self.drain(now);
        }
        let mut plain = std::mem::take(&mut self.scratch);
        between_home_addresses(&packet, &mut plain);
        self.carry_in(now, PathId::Interface(interface), &plain);
        self.scratch = plain;
    }

    /// Whether an interface of the mobile node has this address.
    fn has_address(&self, index: u32, address: Ipv6Addr) -> bool {
        let mut named = self.interfaces.named().iter();
        let interface = named.find(|interface| interface.index() == Some(index));
        interface.is_some_and(|interface| {
            let id = interface.device.id;
            let is_home = self.at_home.link() == Some(id) && self.setup.home_address() == Some(address);
            is_home || self.addresses.of(id).any(|own| own == address)
        })
    }

    /// Router advertisements, answers of home agents that were asked for, and errors about what was sent.
    pub(super) fn take_icmp(&mut self, now: Instant) -> Result<(), Error> {
        let Some(icmp) = self.sockets.icmp.take() else { return Ok(()) };
        let mut buffer = std::mem::take(&mut self.buffer);
        for _ in 0..PACKETS_A_TURN {
            let datagram = match icmp.receive(&mut buffer) {
                Ok(Some(datagram)) => datagram,
                Ok(None) => break,
                Err(_) => {
                    self.unreadable += 1;
                    break;
                }
            };
            let interface = self.interfaces.id_of(datagram.interface);
            let (source, destination) = (datagram.source, datagram.destination);
            let ip = IpFields { source, destination, hop_limit: datagram.hop_limit };
            if !self.keep_early(interface, &ip, datagram.message) {
                self.take_icmp_message(now, interface, &ip, datagram.message);
            }
        }
        self.sockets.icmp = Some(icmp);
        self.buffer = buffer;
        Ok(())
    }

    pub(super) fn take_icmp_message(
        &mut self,
        now: Instant,
        interface: InterfaceId,
        ip: &IpFields,
        message: &[u8],
    ) {
        let &IpFields { source, destination, hop_limit } = ip;
        let addresses = Addresses::new(source, destination);
        let input = Input::Icmp { interface, addresses, hop_limit, message };
        let kind = message.first().copied();
        if let Some(fast) = self.fast.as_mut().filter(|_| matches!(kind, Some(ADVERTISEMENT | FAST_HANDOVER)))
        {
            fast.hear(now, input);
            self.drain(now);
        }
        if kind == Some(ADVERTISEMENT) {
            self.take_advertisement(now, interface, ip, message);
        } else if kind != Some(FAST_HANDOVER) || matches!(self.agent, Agent::AccessRouter(_)) {
            self.tell_agent(now, input);
            self.pass_error_on(source, destination, message);
        }
    }

    /// Mobile node and correspondent node: the host's own TCP hears of an error about what the agent has made of its packets.
    pub(super) fn pass_error_on(&mut self, source: Ipv6Addr, destination: Ipv6Addr, message: &[u8]) {
        let Ok(error) = Icmpv6Message::parse(source, destination, message) else { return };
        if self.relay_ipv4_error(&error, destination) {
            return;
        }
        let Some((mut to, mut told)) = errors::between_home_addresses(&error, destination) else { return };
        if let Agent::Mobile(node) = &self.agent
            && node.hierarchical().is_some_and(|node| node.regional_address() == Some(to))
        {
            // It is about a tunnel to the mobility anchor point. What was in there had been given its headers here, too.
            let Some(inside) = errors::between_home_addresses(&told, to) else { return };
            (to, told) = inside;
        }
        let own = match &self.setup {
            Ipv6Setup::Correspondent(setup) => setup.config.address,
            setup => match setup.home_address() {
                Some(home_address) => home_address,
                None => return,
            },
        };
        if to == own {
            self.carried.errors_relayed += 1;
            self.deliver_icmp(source, to, &told);
        }
    }

    /// Hands the host, or the network behind a home agent's host, an ICMPv6 message.
    pub(super) fn deliver_icmp(&mut self, source: Ipv6Addr, destination: Ipv6Addr, message: &Icmpv6Message) {
        let mut payload = Vec::new();
        message.emit(source, destination, &mut payload);
        let header = Ipv6Header { source, destination, ..Ipv6Header::default() };
        let mut bytes = Vec::new();
        if Packet::emit(&header, &Extensions::NONE, protocol::ICMPV6, &payload, &mut bytes).is_ok() {
            self.deliver(&bytes);
        }
    }

    /// Mobile node: a router advertises itself.
    fn take_advertisement(&mut self, now: Instant, interface: InterfaceId, ip: &IpFields, message: &[u8]) {
        // One that is not up as far as is known: the news may be on its way.
        let is_ours = self.interfaces.get(interface).is_some();
        let parsed = Icmpv6Message::parse(ip.source, ip.destination, message);
        let Ok(Icmpv6Message::RouterAdvertisement(advertisement)) = parsed else { return };
        if !is_ours || advertisement.check(ip).is_err() {
            return;
        }
        if advertisement.router_lifetime_secs != 0 {
            self.solicitations.end(interface);
        }
        let change = self.routers.heard(now, interface, ip.source, &advertisement);
        if !matches!(self.setup, Ipv6Setup::HierarchicalMobile(_)) {
            let is_new = change.is_some();
            self.tell_routers(now, change.into_iter().collect());
            if is_new {
                self.fast_router_heard(now, interface);
            }
            return;
        }
        let is_new = change.is_some();
        if let Some(change) = change {
            self.tell_router(now, change);
        }
        self.tell_maps(now, interface);
        if is_new {
            self.read_addresses(now);
        }
    }

    /// Fragments that became part of nothing.
    pub(super) const fn fragments_dropped(&self) -> u64 {
        let counters = self.fragments.0.counters();
        counters.dropped_duplicate
            + counters.dropped_inconsistent
            + counters.dropped_no_room
            + counters.dropped_timeout
            + counters.dropped_malformed
    }
}
