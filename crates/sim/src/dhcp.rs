//! Addresses by DHCP: the mobile node's clients, and a server at the other end of each of its links.
//!
//! The messages are datagrams like any others. Links carry IP, so what a client asks its owner to do by ARP is written down
//! and crosses no link; the server at the other end, who knows whose the address is, has no answer to a probe.

use core::net::Ipv4Addr;

use careof_base::{Duration, Instant};
use careof_mobility::dhcp::{ClientEvent, Datagram, DhcpClient, DhcpServer, Lease};
use careof_mobility::v4::{Input, InterfaceAddress, InterfaceId};
use careof_plan::{DhcpPlan, InterfaceIndex, NodeId, Subnet, acquired_text};
use careof_wire::icmp::IcmpMessage;
use careof_wire::ipv4::Ipv4Header;
use careof_wire::udp::UdpHeader;
use careof_wire::{dhcp, protocol};

use crate::forwarding::DEFAULT_TTL;
use crate::header::Header;
use crate::observer::Note;
use crate::queue::Slot;
use crate::simulation::{Component, Simulation, WorldError};

/// What runs of DHCP on a node.
pub(crate) struct DhcpHost {
    clients: Vec<(InterfaceId, DhcpClient)>,
    servers: Vec<DhcpServer>,
    slot: Slot,
}

impl DhcpHost {
    fn client(&mut self, interface: InterfaceId) -> Option<&mut DhcpClient> {
        self.clients.iter_mut().find(|(id, _)| *id == interface).map(|(_, client)| client)
    }

    fn server(&mut self, interface: InterfaceId) -> Option<&mut DhcpServer> {
        self.servers.iter_mut().find(|server| server.interface() == interface)
    }

    fn next_timeout(&self) -> Option<Instant> {
        let clients = self.clients.iter().filter_map(|(_, client)| client.next_timeout());
        let servers = self.servers.iter().filter_map(DhcpServer::next_timeout);
        clients.chain(servers).map(|(at, _)| at).min()
    }
}

impl Simulation {
    /// Puts clients and servers on the nodes that have them.
    pub(crate) fn add_dhcp(&mut self) -> Result<(), WorldError> {
        for index in 0..self.nodes.len() {
            let id = NodeId(index as u16);
            let DhcpPlan { clients, servers } = careof_plan::dhcp(&self.scenario, &self.topology, id);
            if clients.is_empty() && servers.is_empty() {
                continue;
            }
            let name = self.node(id).place.name.clone();
            let stream = |what: &str, interface: InterfaceId| {
                self.stream(&format!("dhcp.{what}.{name}.{}", interface.0))
            };
            let refused = |error: careof_mobility::dhcp::ConfigError| WorldError::Agent(error.to_string());
            let clients = clients.into_iter().map(|config| {
                let interface = config.interface;
                let client = DhcpClient::new(config, stream("client", interface)).map_err(refused)?;
                Ok((interface, client))
            });
            let clients = clients.collect::<Result<_, WorldError>>()?;
            let servers = servers.into_iter().map(|config| {
                let interface = config.interface;
                DhcpServer::new(config, stream("server", interface)).map_err(refused)
            });
            let servers = servers.collect::<Result<_, WorldError>>()?;
            let slot = self.add_component(Component::Dhcp(id));
            self.node_mut(id).dhcp = Some(Box::new(DhcpHost { clients, servers, slot }));
        }
        Ok(())
    }

    /// A timer of a client or server on `node` ran out.
    pub(crate) fn dhcp_timeout(&mut self, node: NodeId) {
        let now = self.now;
        if let Some(host) = &mut self.node_mut(node).dhcp {
            host.clients.iter_mut().for_each(|(_, client)| client.handle_timeout(now));
            host.servers.iter_mut().for_each(|server| server.handle_timeout(now));
        }
        self.drive_dhcp(node);
    }

    /// The link at an interface came up or went down. Returns whether the node has to ask for its address there.
    pub(crate) fn dhcp_link(&mut self, node: NodeId, interface: InterfaceId, up: bool) -> bool {
        let now = self.now;
        let Some(client) = self.node_mut(node).dhcp.as_mut().and_then(|host| host.client(interface)) else {
            return false;
        };
        client.handle_link(now, up);
        self.drive_dhcp(node);
        true
    }

    /// Whether `node` may use its address on an interface.
    pub(crate) fn has_address(&self, node: NodeId, interface: InterfaceId) -> bool {
        let clients = self.node(node).dhcp.iter().flat_map(|host| &host.clients);
        clients.filter(|(id, _)| *id == interface).all(|(_, client)| client.lease().is_some())
    }

    /// A datagram or ICMP message reached a node. Returns whether it was for a client or server there.
    pub(crate) fn dhcp_receives(
        &mut self,
        node: NodeId,
        interface: InterfaceIndex,
        header: &Header,
        bytes: &[u8],
    ) -> bool {
        let interface = InterfaceId(interface.0);
        let header = &header.to_ipv4();
        if self.node(node).dhcp.is_none() {
            return false;
        }
        match header.protocol {
            protocol::UDP => self.dhcp_datagram(node, interface, header, bytes),
            protocol::ICMP => self.dhcp_echo(node, interface, header, bytes),
            _ => false,
        }
    }

    fn dhcp_datagram(
        &mut self,
        node: NodeId,
        interface: InterfaceId,
        header: &Ipv4Header,
        bytes: &[u8],
    ) -> bool {
        let now = self.now;
        // What cannot be read is counted where all such datagrams are.
        let Ok((udp, payload)) = UdpHeader::parse(header.source, header.destination, bytes) else {
            return false;
        };
        let Some(host) = &mut self.node_mut(node).dhcp else { return false };
        let destination_port = udp.destination_port;
        let datagram = Datagram { source: header.source, destination_port, payload };
        match destination_port {
            dhcp::CLIENT_PORT => match host.client(interface) {
                Some(client) => client.handle_datagram(now, datagram),
                None => return false,
            },
            dhcp::SERVER_PORT => match host.server(interface) {
                Some(server) => server.handle_datagram(now, datagram),
                None => return false,
            },
            _ => return false,
        }
        self.drive_dhcp(node);
        true
    }

    /// An echo for an address that a client holds is answered, and one for an address that nobody has yet is not; an answer is
    /// the server's.
    fn dhcp_echo(&mut self, node: NodeId, interface: InterfaceId, header: &Ipv4Header, bytes: &[u8]) -> bool {
        let now = self.now;
        let Some(host) = &mut self.node_mut(node).dhcp else { return false };
        match (IcmpMessage::parse(bytes), host.client(interface).map(|client| client.lease().copied())) {
            (Ok(IcmpMessage::EchoRequest(echo)), Some(lease)) => {
                if lease.is_some_and(|lease| lease.address == header.destination) {
                    self.answer_echo(node, interface, header, IcmpMessage::EchoReply(echo));
                }
                true
            }
            (Ok(IcmpMessage::EchoReply(_)), _) => match host.server(interface) {
                Some(server) => {
                    server.handle_icmp(now, header.source, bytes);
                    self.drive_dhcp(node);
                    true
                }
                None => false,
            },
            _ => false,
        }
    }

    fn answer_echo(
        &mut self,
        node: NodeId,
        interface: InterfaceId,
        request: &Ipv4Header,
        reply: IcmpMessage,
    ) {
        let mut bytes = Vec::new();
        reply.emit(&mut bytes);
        let (source, destination) = (request.destination, request.source);
        let interface = Some(InterfaceIndex(interface.0));
        let addresses = (source.into(), destination.into());
        self.send_message(node, interface, addresses, DEFAULT_TTL, protocol::ICMP, bytes);
    }

    /// Drains the clients and servers of a node: messages, events, timer.
    fn drive_dhcp(&mut self, node: NodeId) {
        loop {
            let Some(host) = &mut self.node_mut(node).dhcp else { return };
            let transmit = host
                .clients
                .iter_mut()
                .find_map(|(_, client)| client.poll_transmit())
                .or_else(|| host.servers.iter_mut().find_map(DhcpServer::poll_transmit));
            if let Some(transmit) = transmit {
                self.send_for_agent(node, transmit);
                continue;
            }
            let poll = |(id, client): &mut (InterfaceId, DhcpClient)| Some((*id, client.poll_event()?));
            if let Some((interface, event)) = host.clients.iter_mut().find_map(poll) {
                self.dhcp_event(node, interface, event);
                continue;
            }
            // The messages are in the trace, and the server counts what it drops.
            if !host.servers.iter_mut().any(|server| server.poll_event().is_some()) {
                let (slot, deadline) = (host.slot, host.next_timeout());
                self.queue.set(slot, deadline);
                return;
            }
        }
    }

    fn dhcp_event(&mut self, node: NodeId, interface: InterfaceId, event: ClientEvent) {
        let arp = |what, address: Ipv4Addr| Some((Note::Arp(what), address));
        let noted = match event {
            ClientEvent::Bound { lease, took } => {
                return self.address_acquired(node, interface, &lease, took);
            }
            ClientEvent::Lost { address, cause } => {
                let way = self.way_of(node, interface);
                self.note(
                    node,
                    way,
                    Note::Handover("address-lost"),
                    format_args!("{address}: {}", cause.name()),
                );
                return self.agent_input(node, Input::AddressChanged { interface, address: None });
            }
            ClientEvent::ArpProbe { address } => arp("probe", address),
            ClientEvent::ArpAnnouncement { address } => arp("announcement", address),
            ClientEvent::Conflict { address, .. } => arp("conflict", address),
            ClientEvent::State(_) | ClientEvent::Renewed { .. } | ClientEvent::Dropped { .. } => None,
        };
        if let Some((note, address)) = noted {
            let way = self.way_of(node, interface);
            self.note(node, way, note, format_args!("{address}"));
        }
    }

    /// The mobile node has an address on a link, and can register it.
    fn address_acquired(&mut self, node: NodeId, interface: InterfaceId, lease: &Lease, took: Duration) {
        let way = self.way_of(node, interface);
        let text = acquired_text(lease, took);
        self.note(node, way, Note::Handover("address-acquired"), format_args!("{text}"));
        self.handover_has_address(node, interface);
        let address = InterfaceAddress {
            address: lease.address,
            prefix_length: lease.prefix_length.unwrap_or(Subnet::PREFIX_LEN),
            gateway: lease.router,
        };
        self.agent_input(node, Input::AddressChanged { interface, address: Some(address) });
        self.settle_in_place(node, interface);
    }
}
