//! Voice flows: packets of RTP over UDP, which nobody acknowledges.

use careof_plan::{Ask, FlowId, Locator, RtpFlow, Side, port, workload_stream};
use careof_scenario::Workload as Traffic;
use careof_wire::protocol;
use careof_wire::udp::UdpHeader;

use crate::drop_cause::NodeDrop;
use crate::forwarding::DEFAULT_TTL;
use crate::header::Header;
use crate::packet::{Body, Origin, Packet, PacketRef};
use crate::simulation::Simulation;

/// What a voice flow has beside its ends.
pub(crate) struct VoiceFlow {
    rtp: RtpFlow,
    /// Bytes of a packet behind its RTP header.
    payload: u16,
}

impl VoiceFlow {
    pub(crate) const fn payload(&self) -> u16 {
        self.payload
    }
}

impl Simulation {
    /// What the flow `index` of the scenario has beside its ends, if it is a voice flow.
    pub(crate) fn voice_flow(&self, index: usize) -> Option<Box<VoiceFlow>> {
        let spec = &self.scenario.flows[index];
        let Traffic::Voice(voice) = &spec.workload else { return None };
        let mut random = self.stream(&workload_stream(&spec.name));
        Some(Box::new(VoiceFlow { rtp: RtpFlow::new(voice, &mut random), payload: voice.payload }))
    }

    /// Begins a voice flow: its nodes are there.
    pub(crate) fn open_voice(&mut self, id: FlowId) {
        let now = self.now;
        let nodes = self.flows[usize::from(id.0)].ends.each_ref().map(|end| end.node);
        let acceptor = self.own_address(nodes[1]);
        let opener = self.address_towards(nodes[0], acceptor, port(id, Side::Acceptor));
        let flow = &mut self.flows[usize::from(id.0)];
        (flow.ends[0].address, flow.ends[1].address) = (opener, acceptor);
        flow.opened = true;
        for index in flow.measured.into_iter().flatten() {
            self.flow_metrics[index].on_start(now);
        }
        self.note_wanted(id);
        let [from, to] = [opener, acceptor].map(|end: Locator| self.topology.address(end));
        self.trace_flow(id, Side::Opener, format_args!("{from} to {to}, RTP"), true);
        let asks = self.flows[usize::from(id.0)].workload.connected(now);
        for ask in asks.into_iter().flatten() {
            self.ask_voice(id, ask);
        }
        self.arm_flow(id);
    }

    /// The application of a voice flow sends a packet, or ends.
    pub(crate) fn ask_voice(&mut self, id: FlowId, ask: Ask) {
        match ask {
            Ask::Write(side, _) => self.send_voice(id, side),
            Ask::Close(_) | Ask::Stop(_) => {
                let flow = &mut self.flows[usize::from(id.0)];
                flow.workload.cut_short();
                for index in flow.measured.into_iter().flatten() {
                    self.flow_metrics[index].on_stop(self.now);
                }
                self.trace_flow(id, Side::Opener, format_args!("Stopped"), false);
            }
        }
    }

    fn send_voice(&mut self, id: FlowId, side: Side) {
        let flow = &self.flows[usize::from(id.0)];
        let (Some(voice), Some(index)) = (&flow.voice, flow.measured[side.index()]) else { return };
        let number = self.flow_metrics[index].on_voice_sent(self.now);
        let packet = voice.rtp.packet(number);
        let [here, there] = [&flow.ends[side.index()], &flow.ends[side.peer().index()]];
        let (node, source, destination) = (here.node, here.address, there.address);
        let ports = UdpHeader {
            source_port: port(id, side),
            destination_port: port(id, side.peer()),
            payload_len: packet.len() as u16,
        };
        let bytes = self.udp_datagram(ports, [source, destination], &packet);
        let header = Header {
            source,
            destination,
            protocol: protocol::UDP,
            ttl: DEFAULT_TTL,
            tos: 0,
            len: self.ip_header_len,
            identification: self.next_identification(node),
            dont_fragment: false,
            more_fragments: false,
            fragment_offset: 0,
            payload_len: bytes.len() as u16,
        };
        let origin = Origin {
            flow: id,
            sender: side,
            retransmission: false,
            transmission: None,
            seq: number as i64,
            ack: 0,
            option: None,
        };
        let packet = self.insert(Packet::new(header, Body::Message(bytes.into()), Some(origin)));
        self.trace_datagram(id, side, packet, true);
        self.originate(node, packet, ports.destination_port);
    }

    /// A packet of a voice flow reached the node its address belongs to.
    pub(crate) fn deliver_voice(&mut self, id: FlowId, side: Side, packet: PacketRef) {
        let arrived = &self.pool[packet];
        let (Some(origin), destination) = (arrived.origin, arrived.header.destination) else { return };
        let flow = &mut self.flows[usize::from(id.0)];
        let payload = flow.voice.as_ref().map_or(0, |voice| voice.payload());
        let end = &mut flow.ends[side.index()];
        if end.address != destination {
            let node = end.node;
            return self.drop_packet(node, packet, NodeDrop::NotForUs);
        }
        let Some(index) = flow.measured[origin.sender.index()] else { return self.consume(packet) };
        let arrived = self.flow_metrics[index].on_voice_arrival(self.now, origin.seq as u64);
        let total = arrived * u64::from(payload);
        let new = total - std::mem::replace(&mut end.received, total);
        self.trace_datagram(id, side, packet, false);
        self.consume(packet);
        if new > 0 {
            self.application_got(self.now, id, side, new, total);
        }
    }
}
