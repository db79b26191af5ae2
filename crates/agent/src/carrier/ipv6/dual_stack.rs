//! What travels in IPv4, and what of IPv4 travels in IPv6 (RFC 5555): packets from and to IPv4 home addresses, and the tunnels of mobile
//! nodes on networks that have only IPv4.
//!
//! A home agent's IPv4 address is on no interface, as its address of IPv6 is: what comes for it is routed into the tunnel device. A mobile
//! node has raw sockets for its tunnels. Assists see packets of IPv6 only, whatever they travel in.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::AsFd;

use careof_assist::PathId;
use careof_base::Instant;
use careof_lab::{
    AddressOptions, AgentSocket, IpVersion, Ipv4PacketSocket, Ipv6TunnelSocket, OutgoingDatagram,
};
use careof_mobility::InterfaceId;
use careof_mobility::v6::{Addresses, Input, Ipv4HomeOutcome, Tunnel};
use careof_wire::icmp::IcmpMessage;
use careof_wire::icmpv6::Icmpv6Message;
use careof_wire::ipv4::Ipv4Header;
use careof_wire::ipv6::{Packet, Understood};
use careof_wire::mip6::{self, DSMIPV6_PORT};
use careof_wire::protocol;
use careof_wire::tunnel::{RelayedFromIpv6, decapsulate, decapsulate_ipv6_in_ipv4, nested, relay_error_ipv6};
use careof_wire::udp::UdpHeader;

use super::agent::Agent;
use super::packets::{TUNNEL_HOP_LIMIT, addresses_of, encapsulated, in_udp};
use super::tunnels::{Travel, turned};
use super::waiting::{Source, Waiting};
use super::{Error, Ipv6Carrier, Ipv6Setup, routes};

/// The source of ICMP messages of who has no IPv4 address (RFC 7600 section 4.8).
const DUMMY: Ipv4Addr = Ipv4Addr::new(192, 0, 0, 8);
/// Packets taken from one socket in one turn.
const PACKETS_A_TURN: usize = 256;

/// A mobile node's sockets for tunnels with IPv4 outside or inside.
#[derive(Debug, Default)]
pub(super) struct DualStackSockets {
    ipv6_in_ipv4: Option<Ipv4PacketSocket>,
    ipv4_in_ipv4: Option<Ipv4PacketSocket>,
    ipv4_in_ipv6: Option<Ipv6TunnelSocket>,
    udp: Option<AgentSocket>,
}

impl DualStackSockets {
    pub(super) fn open(setup: &Ipv6Setup) -> Result<Self, Error> {
        if setup.mobile().is_none() {
            return Ok(Self::default());
        }
        let takes_ipv4 = setup.takes_ipv4();
        let has_home = setup.has_ipv4_home();
        let raw = |protocol, is_wanted: bool| is_wanted.then(|| Ipv4PacketSocket::open(protocol)).transpose();
        Ok(Self {
            ipv6_in_ipv4: raw(protocol::IPV6, takes_ipv4)?,
            ipv4_in_ipv4: raw(protocol::IP_IN_IP, takes_ipv4 && has_home)?,
            ipv4_in_ipv6: has_home.then(|| Ipv6TunnelSocket::open_for(IpVersion::V4)).transpose()?,
            udp: takes_ipv4.then(|| AgentSocket::open(DSMIPV6_PORT)).transpose()?,
        })
    }

    pub(super) fn add_to(&self, waiting: &Waiting) -> Result<(), Error> {
        let sockets = [
            (Source::Ipv6InIpv4, self.ipv6_in_ipv4.as_ref().map(AsFd::as_fd)),
            (Source::Ipv4InIpv4, self.ipv4_in_ipv4.as_ref().map(AsFd::as_fd)),
            (Source::Ipv4InIpv6, self.ipv4_in_ipv6.as_ref().map(AsFd::as_fd)),
            (Source::Udp, self.udp.as_ref().map(AsFd::as_fd)),
        ];
        for (source, fd) in sockets {
            if let Some(fd) = fd {
                waiting.add(source, fd)?;
            }
        }
        Ok(())
    }
}

impl Ipv6Carrier {
    /// Home agent: what it needs in the host for IPv4 from the start.
    pub(super) fn install_ipv4(&mut self) -> Result<(), Error> {
        let Some(side) = self.setup.home_side().filter(|_| self.setup.is_dual_stack()) else { return Ok(()) };
        self.parameters.forward()?;
        // Where it has no address, what it says comes from another that has to be routed as its own would be: the kernel's reverse path
        // filter, even a loose one, takes nothing else from a device without an address.
        let own = self.setup.ipv4_address().unwrap_or(DUMMY);
        self.host.set_route(routes::of_ipv4_address(side.host, own, self.device));
        for address in self.setup.ipv4_home_addresses().filter(|_| side.home_link.is_none()) {
            self.host.set_route(routes::of_ipv4_home_address(side.host, address, self.device, false));
        }
        self.host.set_rule(routes::ipv4_home_addresses_rule(side.host));
        Ok(())
    }

    /// Home agent: a binding has changed.
    pub(super) fn ipv4_binding_changed(&mut self, now: Instant, home_address: Ipv6Addr) {
        let Agent::Home(agent) = &self.agent else { return };
        if let Some(address) = agent.ipv4_home_address(home_address) {
            self.ipv4_home_changed(now, address);
        }
    }

    /// Home agent with another configuration: IPv4 home addresses may be other mobile nodes'.
    pub(super) fn ipv4_homes_may_have_moved(&mut self, now: Instant) {
        for address in self.setup.ipv4_home_addresses().collect::<Vec<_>>() {
            self.ipv4_home_changed(now, address);
        }
    }

    fn ipv4_home_changed(&mut self, now: Instant, address: Ipv4Addr) {
        let Agent::Home(agent) = &self.agent else { return };
        let is_bound = !agent.ipv4_tunnels(address).is_empty();
        let route = routes::of_ipv4_home_address(self.setup.host(), address, self.device, is_bound);
        match route.table {
            // Who is at home is on the home link.
            Some(table) if !is_bound && self.home_link.is_some() => self.host.unset_route(table, address, 32),
            _ => self.host.set_route(route),
        }
        self.defend_ipv4(now, address, is_bound);
    }

    /// Mobile node: its IPv4 home address is one, or another, or none. It stays on the device while no home agent has said otherwise, so
    /// that connections do.
    pub(super) fn ipv4_home_told(&mut self, outcome: Ipv4HomeOutcome) {
        let told = match outcome {
            Ipv4HomeOutcome::Bound { address, prefix_len } => Some((address, prefix_len)),
            Ipv4HomeOutcome::Refused { .. } | Ipv4HomeOutcome::NotSupported => None,
        };
        let before = std::mem::replace(&mut self.ipv4_on_device, told);
        if before == told {
            return;
        }
        // The home network is behind the home agent: there is no way to it by itself.
        let options = AddressOptions { without_route: true, ..AddressOptions::default() };
        let netlink = self.host.netlink();
        let mut outcome = Ok(());
        if let Some((address, length)) = told {
            outcome = netlink.add_address_as(options, self.device, address.into(), length).map(drop);
        }
        if let Some((address, length)) = before {
            outcome = outcome.and(netlink.remove_address(self.device, address.into(), length).map(drop));
        }
        if outcome.is_err() {
            self.unsent += 1;
        }
    }

    /// Mobile node: has an interface carry what is of IPv4.
    pub(super) fn prepare_ipv4_interface(&mut self, id: InterfaceId, name: &str) -> Result<(), Error> {
        if self.setup.takes_ipv4() {
            self.parameters.loosen_reverse_path_filter(name)?;
            // A link that carries nothing is no way to what is on it.
            self.parameters.set(&format!("ipv4/conf/{name}/ignore_routes_with_linkdown"), "1")?;
        }
        if self.setup.has_ipv4_home() && self.at_home.link() != Some(id) {
            self.parameters.keep_home_address_quiet(name, true)?;
        }
        Ok(())
    }

    /// Mobile node: it answers ARP for its IPv4 home address on a link, or no longer.
    pub(super) fn keep_ipv4_home_quiet(&mut self, interface: InterfaceId, quiet: bool) {
        if !self.setup.has_ipv4_home() {
            return;
        }
        let Some(name) = self.interface_name(interface).map(str::to_owned) else { return };
        if self.parameters.keep_home_address_quiet(&name, quiet).is_err() {
            self.parameters.refused += 1;
        }
    }

    /// Mobile node: the IPv4 home address that applications are to use.
    pub(super) fn ipv4_home_in_use(&self) -> Option<Ipv4Addr> {
        let Agent::Mobile(node) = &self.agent else { return None };
        node.ipv4_home_address().filter(|_| !node.is_at_home())
    }

    /// The next Identification of a header of IPv4.
    fn next_identification(&mut self) -> u16 {
        self.identification = self.identification.wrapping_add(1);
        self.identification
    }

    /// Sends a packet in a tunnel that has IPv4 outside or inside; whether the kernel took it.
    pub(super) fn send_dual_stack(&mut self, packet: &[u8], tunnel: Tunnel, interface: Option<u32>) -> bool {
        let identification = self.next_identification();
        let mut outer = std::mem::take(&mut self.scratch);
        let sent = encapsulated(packet, tunnel, identification, &mut outer).is_ok()
            && match (&self.agent, tunnel.ipv4_ends()) {
                (Agent::Home(_), _) => self.deliver(&outer),
                (_, ends) => self.send_cut(&outer, ends.is_some(), interface),
            };
        self.scratch = outer;
        sent
    }

    /// Mobile node: sends a packet that has its tunnel's header already, in fragments where the link takes no more; the kernel cuts nothing
    /// that comes whole. Whether it took everything.
    fn send_cut(&mut self, outer: &[u8], is_ipv4: bool, interface: Option<u32>) -> bool {
        let named = self.interfaces.named().iter().find(|one| one.index() == interface);
        let mtu = named.and_then(|one| one.state.as_ref()).map_or(u32::MAX, |state| state.mtu);
        let mtu = u16::try_from(mtu).unwrap_or(u16::MAX);
        let identification = self.random.next_u64() as u32;
        let sockets = &self.sockets;
        let send = |packet: &[u8]| {
            let sent = if is_ipv4 {
                // The protocol of the socket says only what it receives.
                sockets.dual_stack.ipv6_in_ipv4.as_ref().map(|socket| socket.send(packet, interface))
            } else {
                sockets.sender.as_ref().map(|sender| sender.send(packet, interface))
            };
            sent.is_some_and(|sent| sent.unwrap_or(false))
        };
        if outer.len() <= usize::from(mtu) {
            return send(outer);
        }
        let parts = if is_ipv4 {
            careof_wire::ipv4::fragment(outer, mtu).ok()
        } else {
            careof_wire::ipv6::fragment(outer, mtu, identification).ok()
        };
        parts.is_some_and(|parts| parts.iter().all(|part| send(part)))
    }

    /// Tells the sender of a packet of IPv4 what a router inside a tunnel through IPv6 has said of it (RFC 2473 section 8.3); whether there is
    /// such a packet. `own` is the address that it was sent from.
    pub(super) fn relay_ipv4_error(&mut self, error: &Icmpv6Message, own: Ipv6Addr) -> bool {
        let Ok(RelayedFromIpv6::Ipv4 { to, message }) = relay_error_ipv6(error, own) else { return false };
        let is_known = match &self.agent {
            Agent::Home(_) => self.setup.is_dual_stack(),
            Agent::Mobile(node) => node.ipv4_home_address() == Some(to),
            Agent::Correspondent(_) | Agent::AccessRouter(_) => false,
        };
        if is_known {
            self.carried.errors_relayed += 1;
            self.deliver_ipv4_icmp(to, &IcmpMessage::DestinationUnreachable(message));
        }
        true
    }

    /// Hands the host, or the network behind a home agent's host, an ICMP message.
    fn deliver_ipv4_icmp(&mut self, destination: Ipv4Addr, message: &IcmpMessage) {
        let own = self.setup.ipv4_address();
        let mut payload = Vec::new();
        message.emit(&mut payload);
        let identification = self.next_identification();
        let mut bytes = Vec::new();
        Ipv4Header {
            source: own.unwrap_or(DUMMY),
            destination,
            protocol: protocol::ICMP,
            ttl: TUNNEL_HOP_LIMIT,
            identification,
            payload_len: u16::try_from(payload.len()).unwrap_or(u16::MAX),
            ..Ipv4Header::default()
        }
        .emit(&mut bytes);
        bytes.extend(payload);
        self.deliver(&bytes);
    }

    /// Sends what an agent says in UDP and IPv4; whether the kernel took it.
    pub(super) fn send_in_udp(
        &mut self,
        packet: &[u8],
        (entry, exit): (Ipv4Addr, Ipv4Addr),
        port: u16,
        interface: Option<u32>,
    ) -> bool {
        if let Some(socket) = &self.sockets.dual_stack.udp {
            let datagram = OutgoingDatagram {
                interface,
                source: entry,
                destination: exit,
                destination_port: DSMIPV6_PORT,
                ttl: TUNNEL_HOP_LIMIT,
                payload: packet,
            };
            return socket.send(&datagram).is_ok();
        }
        let identification = self.next_identification();
        let mut outer = std::mem::take(&mut self.scratch);
        let sent =
            in_udp(packet, (entry, exit), port, identification, &mut outer).is_ok() && self.deliver(&outer);
        self.scratch = outer;
        sent
    }

    /// What the host has sent into the device of IPv4.
    pub(super) fn take_own_ipv4(&mut self, now: Instant, packet: &[u8]) {
        let Ok((header, _)) = Ipv4Header::parse(packet) else { return self.carried.malformed += 1 };
        let way = match &self.agent {
            Agent::Home(agent) => {
                let own = self.setup.ipv4_address();
                if own == Some(header.destination) {
                    return self.take_ipv4_for_home_agent(now, packet);
                }
                // Its way to the care-of address leads through a home address that is away, too: it would be wrapped for ever.
                let is_own = |source: Ipv4Addr| own == Some(source);
                if is_own(header.source) || nested(packet).any(|outer| is_own(outer.source)) {
                    return self.carried.looping += 1;
                }
                agent.ipv4_tunnels(header.destination).last().map(|tunnel| (*tunnel, None))
            }
            Agent::Mobile(node) => {
                let is_ours =
                    node.ipv4_home_address() == Some(header.source) && !header.destination.is_multicast();
                let delivery = node.ipv4_delivery().filter(|_| is_ours);
                delivery.map(|delivery| (delivery.tunnel, Some(delivery.interface)))
            }
            Agent::Correspondent(_) | Agent::AccessRouter(_) => None,
        };
        let Some((tunnel, by)) = way else { return self.carried.no_way += 1 };
        let interface = by.and_then(|id| self.interfaces.index_of(id));
        if !self.send_dual_stack(packet, tunnel, interface) {
            return self.carried.refused += 1;
        }
        match by {
            Some(by) => self.note_passed(now, by, true, Travel::Ipv4(tunnel), packet.len()),
            None => self.carried.tunnelled_out.note(1, packet.len() as u64),
        }
    }

    /// Home agent: a packet for its IPv4 address.
    fn take_ipv4_for_home_agent(&mut self, now: Instant, bytes: &[u8]) {
        let whole;
        let mut bytes = bytes;
        if Ipv4Header::parse(bytes).is_ok_and(|(header, _)| header.is_fragment()) {
            match self.ipv4_fragments.0.handle_fragment(now, bytes) {
                Ok(Some(put_together)) => whole = put_together,
                Ok(None) => return,
                Err(_) => return self.carried.malformed += 1,
            }
            bytes = &whole;
        }
        let Ok((header, payload)) = Ipv4Header::parse(bytes) else { return self.carried.malformed += 1 };
        let tunnel = Tunnel::through_ipv4(header.source, header.destination);
        match header.protocol {
            protocol::IPV6 => match decapsulate_ipv6_in_ipv4(bytes) {
                Ok(inner) => self.take_ipv6_from_ipv4(now, inner.packet, tunnel, None),
                Err(_) => self.carried.malformed += 1,
            },
            protocol::IP_IN_IP => match decapsulate(bytes) {
                Ok(inner) => self.take_ipv4_reverse_tunnelled(&inner.datagram, tunnel.entry),
                Err(_) => self.carried.malformed += 1,
            },
            protocol::UDP => match UdpHeader::parse(header.source, header.destination, payload) {
                Ok((udp, inner)) if udp.destination_port == DSMIPV6_PORT => {
                    self.take_ipv6_from_ipv4(now, inner, tunnel, Some(udp.source_port));
                }
                Ok(_) => self.carried.for_nobody += 1,
                Err(_) => self.carried.malformed += 1,
            },
            protocol::ICMP => match IcmpMessage::parse(payload) {
                Ok(IcmpMessage::EchoRequest(echo)) if !header.source.is_multicast() => {
                    self.deliver_ipv4_icmp(header.source, &IcmpMessage::EchoReply(echo));
                }
                // Packets in tunnels through IPv4 may be fragmented, so there is nothing to learn of them.
                Ok(_) => {}
                Err(_) => self.carried.malformed += 1,
            },
            _ => self.carried.for_nobody += 1,
        }
    }

    /// Home agent: a packet of IPv6 that came in IPv4.
    fn take_ipv6_from_ipv4(&mut self, now: Instant, inner: &[u8], tunnel: Tunnel, udp_port: Option<u16>) {
        let Ok(packet) = Packet::parse(inner, Understood::MOBILE_IPV6) else {
            return self.carried.malformed += 1;
        };
        let is_whole = packet.fragment.is_none_or(|fragment| fragment.is_atomic());
        let is_for_us = self.own.first() == Some(&packet.header.destination);
        let (Some(side), Agent::Home(agent)) = (self.setup.home_side(), &self.agent) else { return };
        if is_for_us && is_whole && packet.protocol == mip6::PROTOCOL {
            let addresses = Addresses { udp_port, ..addresses_of(&packet).through(tunnel) };
            let interface = side.interface;
            self.tell_traffic(addresses.real_source(), tunnel.entry, packet.payload);
            return self.tell_agent(now, Input::Mobility { interface, addresses, message: packet.payload });
        }
        // Without a NAT nothing else is in UDP.
        if udp_port.is_some() || !agent.accepts_reverse_tunnel(packet.header.source, tunnel.entry) {
            return self.carried.not_ours += 1;
        }
        let way = agent.tunnel_to(tunnel.entry);
        self.note_at_home(packet.header.source, way, false, inner.len());
        if self.own.contains(&packet.header.destination) {
            return self.take_for_home_agent(now, inner, Some(tunnel));
        }
        self.carry_in(now, PathId::CareOf(IpAddr::V6(tunnel.entry)), inner);
    }

    /// Home agent: a packet from an IPv4 home address, out of a tunnel that begins at `entry`.
    pub(super) fn take_ipv4_reverse_tunnelled(&mut self, inner: &[u8], entry: Ipv6Addr) {
        let Ok((header, _)) = Ipv4Header::parse(inner) else { return self.carried.malformed += 1 };
        let Agent::Home(agent) = &self.agent else { return };
        if !agent.accepts_ipv4_reverse_tunnel(header.source, entry) {
            return self.carried.not_ours += 1;
        }
        self.carried.tunnelled_in.note(1, inner.len() as u64);
        if self.setup.ipv4_address() == Some(header.destination) {
            return self.carried.for_nobody += 1;
        }
        self.deliver(inner);
    }

    /// Mobile node: packets out of tunnels of IPv6 in IPv4.
    pub(super) fn take_ipv6_in_ipv4(&mut self, now: Instant) {
        let Some(socket) = self.sockets.dual_stack.ipv6_in_ipv4.take() else { return };
        let mut buffer = std::mem::take(&mut self.buffer);
        for _ in 0..PACKETS_A_TURN {
            match socket.receive(&mut buffer) {
                Ok(Some(packet)) => match decapsulate_ipv6_in_ipv4(packet.bytes) {
                    Ok(inner) => {
                        let tunnel = Tunnel::through_ipv4(inner.outer.source, inner.outer.destination);
                        self.take_out(now, packet.interface, tunnel, inner.packet);
                    }
                    Err(_) => self.carried.malformed += 1,
                },
                Ok(None) => break,
                Err(_) => {
                    self.unreadable += 1;
                    break;
                }
            }
        }
        self.sockets.dual_stack.ipv6_in_ipv4 = Some(socket);
        self.buffer = buffer;
        self.drive_assists(now);
    }

    /// Mobile node: packets out of tunnels of IPv4 in IPv4.
    pub(super) fn take_ipv4_in_ipv4(&mut self, now: Instant) {
        let Some(socket) = self.sockets.dual_stack.ipv4_in_ipv4.take() else { return };
        let mut buffer = std::mem::take(&mut self.buffer);
        for _ in 0..PACKETS_A_TURN {
            match socket.receive(&mut buffer) {
                Ok(Some(packet)) => match decapsulate(packet.bytes) {
                    Ok(inner) => {
                        let tunnel = Tunnel::through_ipv4(inner.outer.source, inner.outer.destination);
                        self.take_out_ipv4(now, packet.interface, tunnel, &inner.datagram);
                    }
                    Err(_) => self.carried.malformed += 1,
                },
                Ok(None) => break,
                Err(_) => {
                    self.unreadable += 1;
                    break;
                }
            }
        }
        self.sockets.dual_stack.ipv4_in_ipv4 = Some(socket);
        self.buffer = buffer;
    }

    /// Mobile node: packets out of tunnels of IPv4 in IPv6.
    pub(super) fn take_ipv4_in_ipv6(&mut self, now: Instant) {
        let Some(socket) = self.sockets.dual_stack.ipv4_in_ipv6.take() else { return };
        let mut buffer = std::mem::take(&mut self.buffer);
        for _ in 0..PACKETS_A_TURN {
            match socket.receive(&mut buffer) {
                Ok(Some(packet)) => {
                    let tunnel = Tunnel { entry: packet.source, exit: packet.destination };
                    self.take_out_ipv4(now, packet.interface, tunnel, packet.packet);
                }
                Ok(None) => break,
                Err(_) => {
                    self.unreadable += 1;
                    break;
                }
            }
        }
        self.sockets.dual_stack.ipv4_in_ipv6 = Some(socket);
        self.buffer = buffer;
    }

    fn take_out_ipv4(&mut self, now: Instant, index: u32, tunnel: Tunnel, bytes: &[u8]) {
        let interface = self.interfaces.id_of(index);
        let Agent::Mobile(node) = &self.agent else { return };
        let Ok((header, _)) = Ipv4Header::parse(bytes) else { return self.carried.malformed += 1 };
        let is_ours = node.ipv4_home_address() == Some(header.destination);
        if !is_ours || !node.accepts_tunnel_from(tunnel.entry) || !node.listens_on(interface) {
            return self.carried.not_ours += 1;
        }
        self.note_passed(now, interface, false, Travel::Ipv4(turned(tunnel)), bytes.len());
        self.deliver(bytes);
    }

    /// Mobile node: messages of its home agent in UDP.
    pub(super) fn take_udp(&mut self, now: Instant) {
        let Some(socket) = self.sockets.dual_stack.udp.take() else { return };
        let mut buffer = std::mem::take(&mut self.buffer);
        for _ in 0..PACKETS_A_TURN {
            match socket.receive(&mut buffer) {
                Ok(Some(datagram)) => {
                    let tunnel = Tunnel::through_ipv4(datagram.source, datagram.destination);
                    self.take_message_in_udp(now, datagram.interface, tunnel, datagram.payload);
                }
                Ok(None) => break,
                Err(_) => {
                    self.unreadable += 1;
                    break;
                }
            }
        }
        self.sockets.dual_stack.udp = Some(socket);
        self.buffer = buffer;
    }

    fn take_message_in_udp(&mut self, now: Instant, index: u32, tunnel: Tunnel, bytes: &[u8]) {
        let interface = self.interfaces.id_of(index);
        let (Agent::Mobile(node), Some(home_address)) = (&self.agent, self.setup.home_address()) else {
            return;
        };
        let Ok(packet) = Packet::parse(bytes, Understood::MOBILE_IPV6) else {
            return self.carried.malformed += 1;
        };
        let is_whole = packet.fragment.is_none_or(|fragment| fragment.is_atomic());
        // Without a NAT nothing else is in UDP.
        let is_message = is_whole && packet.protocol == mip6::PROTOCOL;
        let is_ours = packet.header.destination == home_address && node.accepts_tunnel_from(tunnel.entry);
        if !is_message || !is_ours {
            return self.carried.not_ours += 1;
        }
        let addresses = addresses_of(&packet).through(tunnel).in_udp(DSMIPV6_PORT);
        self.tell_agent(now, Input::Mobility { interface, addresses, message: packet.payload });
    }
}
