//! Flows over QUIC: between the network and their endpoints. What TCP's packets pay for it is nothing: a flow over QUIC has its packets and
//! its timers apart.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use careof_metrics::{FlowMetrics, SegmentRange, Transmission};
use careof_plan::{Ask, FlowId, Locator, NodeId, Side, client_of, migrates, port};
use careof_quic::{Connection, Event, Role, StreamRange, packet_of_data};
use careof_trace::TcpState;
use careof_wire::protocol;
use careof_wire::udp::UdpHeader;

use crate::agents::Agent;
use crate::drop_cause::NodeDrop;
use crate::forwarding::DEFAULT_TTL;
use crate::header::Header;
use crate::packet::{Body, Origin, Packet, PacketRef};
use crate::queue::Slot;
use crate::simulation::{Component, Simulation};

/// Of how many datagrams it is remembered what they carry: as many as the metrics remember transmissions.
const REMEMBERED: usize = 16_384;

/// The endpoints of a flow over QUIC.
pub(crate) struct QuicFlow {
    pub(crate) ends: [QuicEnd; 2],
    /// Which of them opens the connection.
    client: Side,
    /// Whether the client uses its node's own address on the link that it is on.
    migrates: bool,
}

/// One endpoint.
pub(crate) struct QuicEnd {
    pub(crate) connection: Connection,
    slot: Slot,
    /// Samples of the round trip told so far.
    rtt_samples: u64,
    /// Stream bytes that have left at least once.
    left: u64,
    /// Datagrams sent.
    serial: i64,
    /// By their number, what data those that were sent last carry.
    sent: BTreeMap<i64, Vec<(StreamRange, Option<Transmission>)>>,
    traced: Option<TcpState>,
}

/// What the metrics call a range of a stream.
const fn segment(range: &StreamRange) -> SegmentRange {
    SegmentRange::of_bytes(range.start, range.end)
}

impl QuicFlow {
    pub(crate) fn end(&mut self, side: Side) -> &mut QuicEnd {
        &mut self.ends[side.index()]
    }
}

impl Simulation {
    /// The endpoints of the flow `index` of the scenario, if it is one over QUIC.
    pub(crate) fn quic_flow(&mut self, index: usize, nodes: [NodeId; 2]) -> Option<Box<QuicFlow>> {
        let spec = &self.scenario.flows[index];
        let config = spec.quic.as_ref()?.config.clone();
        let (client, migrates, name) = (client_of(&self.scenario, spec), migrates(spec), spec.name.clone());
        let id = FlowId(index as u16);
        let ends = Side::BOTH.map(|side| {
            let role = if side == client { Role::Client } else { Role::Server };
            let random = self.stream(&format!("flow.{name}.quic.{}", role.name()));
            let peer = self.socket(self.own_address(nodes[side.peer().index()]), port(id, side.peer()));
            QuicEnd {
                connection: Connection::new(&config, role, peer, random),
                slot: self.add_component(Component::Quic(id, side)),
                rtt_samples: 0,
                left: 0,
                serial: 0,
                sent: BTreeMap::new(),
                traced: None,
            }
        });
        Some(Box::new(QuicFlow { ends, client, migrates }))
    }

    fn socket(&self, address: Locator, port: u16) -> SocketAddr {
        SocketAddr::new(self.topology.address(address), port)
    }

    fn quic(&mut self, id: FlowId) -> Option<&mut QuicFlow> {
        self.flows.get_mut(usize::from(id.0))?.quic.as_deref_mut()
    }

    /// Opens the connection of a flow over QUIC: the nodes are there.
    pub(crate) fn open_quic(&mut self, id: FlowId) {
        let now = self.now;
        let nodes = self.flows[usize::from(id.0)].ends.each_ref().map(|end| end.node);
        let Some(quic) = self.quic(id) else { return };
        let (client, moves) = (quic.client, quic.migrates);
        let mut addresses = nodes.map(|node| self.own_address(node));
        let towards = (addresses[client.peer().index()], port(id, client.peer()));
        let mover = nodes[client.index()];
        addresses[client.index()] = if moves {
            // Without an address there is nothing to open a connection from; it comes with the next registration.
            let Some(own) = self.local_address(mover, towards) else { return };
            own
        } else {
            self.address_towards(mover, towards.0, towards.1)
        };
        let flow = &mut self.flows[usize::from(id.0)];
        (flow.ends[0].address, flow.ends[1].address) = (addresses[0], addresses[1]);
        flow.opened = true;
        for index in flow.measured.into_iter().flatten() {
            self.flow_metrics[index].on_start(now);
        }
        self.note_wanted(id);
        let [from, to] = addresses.map(|end| self.topology.address(end));
        self.trace_flow(id, Side::Opener, format_args!("{from} to {to}, QUIC"), true);
        let opened = self.quic(id).map(|quic| quic.end(client).connection.open(now));
        if let Some(Err(error)) = opened {
            self.trace_flow(id, client, format_args!("{error}"), false);
        }
        self.quic_pump(id, client);
        self.arm_flow(id);
    }

    /// The address from which a mobile node's own packets leave that are none of Mobile IP's business; `None` while it has none.
    fn local_address(&self, node: NodeId, (peer, port): (Locator, u16)) -> Option<Locator> {
        let Agent::Mobile(mobile) = &self.node(node).agent else { return None };
        mobile.delivery(peer.to_ipv4(), Some(port)).map(|delivery| delivery.source.into())
    }

    /// Something happened to a mobile node's agent: connections that move with its address follow.
    pub(crate) fn follow_address(&mut self, node: NodeId) {
        let now = self.now;
        for index in 0..self.migrating.len() {
            let id = self.migrating[index];
            let flow = &self.flows[usize::from(id.0)];
            let Some(quic) = &flow.quic else { continue };
            let (client, before) = (quic.client, flow.ends[quic.client.index()].address);
            if !flow.opened || flow.ends[client.index()].node != node {
                continue;
            }
            let peer = (flow.ends[client.peer().index()].address, port(id, client.peer()));
            let Some(own) = self.local_address(node, peer).filter(|own| *own != before) else { continue };
            let flow = &mut self.flows[usize::from(id.0)];
            flow.end(client).address = own;
            if let Some(quic) = &mut flow.quic {
                quic.end(client).connection.address_changed(now);
            }
            self.quic_pump(id, client);
        }
    }

    /// An application of a flow over QUIC asks something of its connection.
    pub(crate) fn ask_quic(&mut self, id: FlowId, ask: Ask) {
        let Some(quic) = self.quic(id) else { return };
        let side = match ask {
            Ask::Write(side, bytes) => {
                quic.end(side).connection.write(bytes);
                self.note_wanted(id);
                side
            }
            Ask::Close(side) => {
                quic.end(side).connection.close();
                side
            }
            Ask::Stop(side) => {
                let connection = &mut quic.end(side).connection;
                let unsent = connection.unsent() > 0;
                connection.discard_unsent();
                connection.close();
                let flow = &mut self.flows[usize::from(id.0)];
                if unsent || flow.workload.is_endless() {
                    flow.workload.cut_short();
                }
                for index in flow.measured.into_iter().flatten() {
                    self.flow_metrics[index].on_stop(self.now);
                }
                side
            }
        };
        self.quic_pump(id, side);
    }

    /// A timer of an endpoint ran out.
    pub(crate) fn quic_timeout(&mut self, id: FlowId, side: Side) {
        let now = self.now;
        if let Some(quic) = self.quic(id) {
            quic.end(side).connection.handle_timeout(now);
            self.quic_pump(id, side);
        }
    }

    /// What is no segment reached the node its address belongs to: a datagram of QUIC, a packet of voice, or nothing that anybody there can read.
    #[cold]
    pub(crate) fn deliver_datagram(&mut self, node: NodeId, packet: PacketRef) {
        let now = self.now;
        let arrived = &self.pool[packet];
        let (Body::Message(bytes), Some(origin)) = (&arrived.body, arrived.origin) else {
            return self.drop_packet(node, packet, NodeDrop::Malformed);
        };
        let (id, side, header) = (origin.flow, origin.sender.peer(), arrived.header);
        let flow = &self.flows[usize::from(id.0)];
        if flow.voice.is_some() && flow.ends[side.index()].node == node {
            return self.deliver_voice(id, side, packet);
        }
        let bytes = bytes.clone();
        let source = self.topology.address(header.source);
        let flow = &mut self.flows[usize::from(id.0)];
        let address = flow.ends[side.index()].address;
        let (Some(quic), true) = (&mut flow.quic, flow.ends[side.index()].node == node) else {
            return self.drop_packet(node, packet, NodeDrop::NotForUs);
        };
        if address != header.destination {
            // A host that has left an address has no socket there any more.
            return self.drop_packet(node, packet, NodeDrop::NotForUs);
        }
        let Some(payload) = bytes.get(usize::from(UdpHeader::LEN)..) else {
            return self.drop_packet(node, packet, NodeDrop::Malformed);
        };
        if let (Some(index), Some(carried)) =
            (flow.measured[origin.sender.index()], quic.end(origin.sender).sent.get(&origin.seq))
        {
            for (range, transmission) in carried {
                if let Some(transmission) = transmission {
                    self.flow_metrics[index].on_segment_arrival(segment(range), *transmission);
                }
            }
        }
        let source = SocketAddr::new(source, port(id, origin.sender));
        quic.end(side).connection.handle_datagram(now, source, header.tos & 3, payload);
        self.trace_datagram(id, side, packet, false);
        self.consume(packet);
        self.quic_pump(id, side);
    }

    /// Drains an endpoint after anything happened to it.
    fn quic_pump(&mut self, id: FlowId, side: Side) {
        loop {
            while let Some(event) = self.quic(id).and_then(|quic| quic.end(side).connection.poll_event()) {
                self.quic_event(id, side, event);
            }
            self.quic_deliver(id, side);
            while self.send_datagram(id, side) {}
            if !self.quic(id).is_some_and(|quic| quic.end(side).connection.has_events()) {
                break;
            }
        }
        let Some(quic) = self.quic(id) else { return };
        let end = quic.end(side);
        let (samples, rtt) = end.connection.rtt();
        let is_new = std::mem::replace(&mut end.rtt_samples, samples) != samples;
        let (slot, next) = (end.slot, end.connection.next_timeout());
        self.queue.set(slot, next);
        if let (Some(index), true, Some(rtt)) =
            (self.flows[usize::from(id.0)].measured[side.index()], is_new, rtt)
        {
            self.flow_metrics[index].on_rtt_sample(rtt);
        }
        self.trace_quic_state(id, side);
    }

    fn quic_event(&mut self, id: FlowId, side: Side, event: Event) {
        match event {
            Event::Connected if side == Side::Opener => {
                let asks = self.flows[usize::from(id.0)].workload.connected(self.now);
                for ask in asks.into_iter().flatten() {
                    self.ask_quic(id, ask);
                }
                self.arm_flow(id);
            }
            Event::PeerFinished => {
                let flow = &self.flows[usize::from(id.0)];
                if let (Some(index), false) =
                    (flow.measured[side.peer().index()], flow.workload.was_cut_short())
                {
                    // What came with the last datagram is delivered before its end is.
                    self.quic_deliver(id, side);
                    self.flow_metrics[index].on_complete();
                }
                self.ask_quic(id, Ask::Close(side));
            }
            Event::Closed(reason) => self.trace_flow(id, side, format_args!("{reason}"), false),
            Event::Connected | Event::PeerMoved(_) => {}
        }
    }

    /// Hands what came in order to the application.
    fn quic_deliver(&mut self, id: FlowId, side: Side) {
        let Some(total) = self.quic(id).map(|quic| quic.end(side).connection.received()) else { return };
        let received = &mut self.flows[usize::from(id.0)].end(side).received;
        if *received != total {
            let new = total - std::mem::replace(received, total);
            self.application_got(self.now, id, side, new, total);
        }
    }

    /// Sends the next datagram of an endpoint; `false` when it has none.
    fn send_datagram(&mut self, id: FlowId, side: Side) -> bool {
        let now = self.now;
        let Some(datagram) = self.quic(id).and_then(|quic| quic.end(side).connection.poll_transmit(now))
        else {
            return false;
        };
        let flow = &mut self.flows[usize::from(id.0)];
        let (node, source, measured) =
            (flow.ends[side.index()].node, flow.ends[side.index()].address, flow.measured[side.index()]);
        let Some(quic) = &mut flow.quic else { return false };
        let end = quic.end(side);
        let data = packet_of_data(&datagram.bytes).map(|packet| packet.data).unwrap_or_default();
        let is_repeated = |range: &StreamRange| range.start < end.left;
        let retransmission = data.iter().any(is_repeated);
        let carried: Vec<_> = data
            .iter()
            .map(|range| {
                let metrics = measured.map(|index| &mut self.flow_metrics[index]);
                let sent = |metrics: &mut FlowMetrics| {
                    metrics.on_segment_sent(now, segment(range), is_repeated(range))
                };
                (*range, metrics.map(sent))
            })
            .collect();
        end.left = data.iter().map(|range| range.end).fold(end.left, u64::max);
        end.serial += 1;
        let seq = end.serial;
        if !carried.is_empty() {
            end.sent.insert(seq, carried);
            if end.sent.len() > REMEMBERED {
                end.sent.pop_first();
            }
        }
        let payload_len = datagram.bytes.len() as u16;
        let ports = UdpHeader {
            source_port: port(id, side),
            destination_port: datagram.destination.port(),
            payload_len,
        };
        let destination = self.topology.plan.locate(datagram.destination.ip());
        let bytes = self.udp_datagram(ports, [source, destination], &datagram.bytes);
        let header = Header {
            source,
            destination,
            protocol: protocol::UDP,
            ttl: DEFAULT_TTL,
            tos: datagram.ecn,
            len: self.ip_header_len,
            identification: self.next_identification(node),
            // RFC 9000 section 14: datagrams are not fragmented.
            dont_fragment: true,
            more_fragments: false,
            fragment_offset: 0,
            payload_len: bytes.len() as u16,
        };
        let origin =
            Origin { flow: id, sender: side, retransmission, transmission: None, seq, ack: 0, option: None };
        let packet = self.insert(Packet::new(header, Body::Message(bytes.into()), Some(origin)));
        self.trace_datagram(id, side, packet, true);
        self.originate(node, packet, ports.destination_port);
        true
    }

    /// A UDP datagram between `ends`, sender first.
    pub(crate) fn udp_datagram(&self, ports: UdpHeader, ends: [Locator; 2], payload: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(payload.len() + usize::from(UdpHeader::LEN));
        match ends.map(|end| self.topology.address(end)) {
            [IpAddr::V4(from), IpAddr::V4(to)] => ports.emit(from, to, payload, &mut bytes),
            addresses => {
                // As for segments: over IPv6 a network that has only IPv4 is known by mapped addresses.
                let [from, to] = addresses.map(|end| match end {
                    IpAddr::V6(address) => address,
                    IpAddr::V4(address) => address.to_ipv6_mapped(),
                });
                ports.emit(from, to, payload, &mut bytes);
            }
        }
        bytes
    }

    /// What data the datagram behind `packet` carries, in stream bytes: where it begins, and how much there is.
    pub(crate) fn carried(&self, packet: PacketRef) -> Option<(i64, u32)> {
        let origin = self.pool[packet].origin?;
        let flow = self.flows.get(usize::from(origin.flow.0))?;
        if let Some(voice) = &flow.voice {
            return Some((origin.seq * i64::from(voice.payload()), voice.payload().into()));
        }
        let quic = flow.quic.as_ref()?;
        let carried = quic.ends[origin.sender.index()].sent.get(&origin.seq)?;
        let len = carried.iter().map(|(range, _)| (range.end - range.start) as u32).sum();
        Some((carried.first()?.0.start as i64, len))
    }

    /// The state of an endpoint as the trace has it.
    pub(crate) fn quic_state(&mut self, id: FlowId, side: Side) -> Option<TcpState> {
        let end = self.quic(id)?.end(side);
        let state = end.connection.snapshot()?;
        let state = TcpState {
            cwnd_bytes: state.cwnd.min(u64::from(u32::MAX)) as u32,
            ssthresh_bytes: state.ssthresh.and_then(|bytes| u32::try_from(bytes).ok()),
            flight_bytes: state.flight.min(u64::from(u32::MAX)) as u32,
            srtt: (end.rtt_samples > 0).then_some(state.srtt),
            // The library tells neither.
            rttvar: None,
            rto: None,
        };
        (end.traced.replace(state) != Some(state)).then_some(state)
    }
}
