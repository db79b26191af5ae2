//! Between the network and the TCP endpoints: segments in and out, applications, timers.

use careof_base::Instant;
use careof_metrics::SegmentRange;
use careof_plan::{Ask, FlowId, Locator, NodeId, Side, port};
use careof_tcp::Event as TcpEvent;
use careof_wire::ipv4::ecn;
use careof_wire::{Flags, SeqNumber, protocol};

use crate::drop_cause::NodeDrop;
use crate::forwarding::DEFAULT_TTL;
use crate::header::Header;
use crate::packet::{Body, Origin, PacketRef};
use crate::simulation::Simulation;

impl Simulation {
    /// Opens the connections of flows whose time has come and whose path is there.
    pub(crate) fn open_flow(&mut self, id: FlowId) {
        let now = self.now;
        let flow = &self.flows[usize::from(id.0)];
        if flow.opened
            || flow.start > now
            || flow.workload.is_past(now)
            || (flow.mobile && !flow.ends.iter().all(|end| self.is_reachable(end.node)))
        {
            return;
        }
        if flow.quic.is_some() {
            return self.open_quic(id);
        }
        if flow.voice.is_some() {
            return self.open_voice(id);
        }
        let nodes = [flow.ends[0].node, flow.ends[1].node];
        let acceptor = self.own_address(nodes[1]);
        let opener = self.address_towards(nodes[0], acceptor, port(id, Side::Acceptor));
        let flow = &mut self.flows[usize::from(id.0)];
        flow.ends[0].address = opener;
        flow.ends[1].address = acceptor;
        let ways = [self.fixed_way(nodes[0], acceptor), self.fixed_way(nodes[1], opener)];
        let flow = &mut self.flows[usize::from(id.0)];
        (flow.ends[0].way, flow.ends[1].way) = (ways[0], ways[1]);
        flow.opened = true;
        let peers = [(acceptor, Side::Acceptor), (opener, Side::Opener)];
        for (i, (peer, side)) in peers.into_iter().enumerate() {
            if let Some(mtu) = self.mtu_towards(nodes[i], peer, port(id, side)) {
                self.flows[usize::from(id.0)].ends[i].connection.limit_mtu(mtu);
            }
        }
        let flow = &mut self.flows[usize::from(id.0)];
        flow.ends[0].connection.open(now);
        for index in flow.measured.into_iter().flatten() {
            self.flow_metrics[index].on_start(now);
        }
        self.note_wanted(id);
        let [from, to] = [opener, acceptor].map(|end| self.topology.address(end));
        self.trace_flow(id, Side::Opener, format_args!("{from} to {to}"), true);
        self.pump(id, Side::Opener);
        self.arm_flow(id);
    }

    /// The flow's own timer: its start, the next message, its stop.
    pub(crate) fn flow_timeout(&mut self, id: FlowId) {
        let now = self.now;
        if !self.flows[usize::from(id.0)].opened {
            self.open_flow(id);
        } else if let Some(ask) = self.flows[usize::from(id.0)].workload.handle_timeout(now) {
            self.ask(id, ask);
        }
        self.arm_flow(id);
    }

    pub(crate) fn arm_flow(&mut self, id: FlowId) {
        let flow = &self.flows[usize::from(id.0)];
        let deadline = if flow.opened { flow.workload.next_timeout() } else { None };
        self.queue.set(flow.slot, deadline);
    }

    /// Tells the metrics what the applications of a flow want.
    pub(crate) fn note_wanted(&mut self, id: FlowId) {
        let flow = &self.flows[usize::from(id.0)];
        for (index, total) in flow.measured.into_iter().zip(flow.workload.wanted()) {
            if let Some(index) = index {
                self.flow_metrics[index].on_wanted(self.now, total);
            }
        }
    }

    fn ask(&mut self, id: FlowId, ask: Ask) {
        let flow = &mut self.flows[usize::from(id.0)];
        if flow.quic.is_some() {
            return self.ask_quic(id, ask);
        }
        if flow.voice.is_some() {
            return self.ask_voice(id, ask);
        }
        let side = match ask {
            Ask::Write(side, bytes) => {
                flow.end(side).connection.write(bytes);
                self.note_wanted(id);
                side
            }
            Ask::Close(side) => {
                flow.end(side).connection.close();
                side
            }
            Ask::Stop(side) => {
                if flow.end(side).connection.unsent() > 0 || flow.workload.is_endless() {
                    flow.workload.cut_short();
                }
                let connection = &mut flow.end(side).connection;
                connection.discard_unsent();
                connection.close();
                for index in flow.measured.into_iter().flatten() {
                    self.flow_metrics[index].on_stop(self.now);
                }
                side
            }
        };
        self.pump(id, side);
    }

    /// A connection's timer ran out.
    pub(crate) fn connection_timeout(&mut self, id: FlowId, side: Side) {
        let now = self.now;
        self.flows[usize::from(id.0)].end(side).connection.handle_timeout(now);
        self.pump(id, side);
    }

    /// A segment reached the node its address belongs to.
    #[inline]
    pub(crate) fn deliver_segment(&mut self, node: NodeId, packet: PacketRef) {
        let arrived = &self.pool[packet];
        let (Body::Tcp(segment), Some(origin)) = (&arrived.body, &arrived.origin) else {
            return self.deliver_datagram(node, packet);
        };
        let (id, side) = (origin.flow, origin.sender.peer());
        let flow = &mut self.flows[usize::from(id.0)];
        let end = &mut flow.ends[side.index()];
        if end.node != node {
            return self.drop_packet(node, packet, NodeDrop::NotForUs);
        }
        if let Some(transmission) = origin.transmission
            && let Some(index) = flow.measured[origin.sender.index()]
        {
            let range = SegmentRange { seq: origin.seq, end: origin.seq + i64::from(segment.seq_len()) };
            self.flow_metrics[index].on_segment_arrival(range, transmission);
        }
        let option = origin.option;
        end.connection.handle_packet(self.now, segment, arrived.header.congestion_experienced());
        self.trace_segment_received(id, side, packet);
        self.consume(packet);
        if let Some(option) = option {
            self.hear_option(id, side, option);
        }
        self.drain(id, side);
    }

    /// Drains a connection after anything happened to it: events, data for the application, segments, timer.
    #[inline(never)]
    pub(crate) fn pump(&mut self, id: FlowId, side: Side) {
        self.drain(id, side);
    }

    /// [`Self::pump`], in one piece with what calls it.
    #[inline(always)]
    fn drain(&mut self, id: FlowId, side: Side) {
        let now = self.now;
        let end = self.flows[usize::from(id.0)].end(side);
        if end.connection.has_events() {
            self.take_tcp_events(id, side);
            return self.pump(id, side);
        }
        if end.connection.received() != end.received {
            self.hand_over_data(now, id, side);
        }
        while self.send_segment(id, side) {}
        let end = self.flows[usize::from(id.0)].end(side);
        self.queue.set(end.slot, end.connection.next_timeout().map(|(at, _)| at));
        let counters = end.connection.counters();
        if counters.duplicate_acks_received != end.duplicate_acks || counters.rtt_samples != end.rtt_samples {
            self.count_at_sender(id, side);
        }
        self.trace_tcp_state(id, side);
    }

    #[cold]
    fn take_tcp_events(&mut self, id: FlowId, side: Side) {
        while let Some(event) = self.flows[usize::from(id.0)].end(side).connection.poll_event() {
            self.tcp_event(id, side, event);
        }
    }

    fn tcp_event(&mut self, id: FlowId, side: Side, event: TcpEvent) {
        let now = self.now;
        match event {
            TcpEvent::Connected if side == Side::Opener => {
                let asks = self.flows[usize::from(id.0)].workload.connected(now);
                for ask in asks.into_iter().flatten() {
                    self.ask(id, ask);
                }
                self.arm_flow(id);
            }
            TcpEvent::PathMeasured { bandwidth, .. } => {
                let flow = &self.flows[usize::from(id.0)];
                if let Some((index, rate)) = flow.measured[side.index()].zip(bandwidth) {
                    self.flow_metrics[index].on_bandwidth_estimate(rate);
                }
                let node = self.flows[usize::from(id.0)].ends[side.index()].node;
                self.trace_advice(node, id, "measured", 0, 0);
            }
            TcpEvent::Timeout { seq, .. } => {
                let flow = &self.flows[usize::from(id.0)];
                let seq = flow.ends[side.index()].sent_seq.of(seq);
                if let Some(index) = flow.measured[side.index()] {
                    self.flow_metrics[index].on_timeout(seq);
                }
                self.trace_timeout(id, side, seq);
            }
            TcpEvent::PeerClosed => {
                // Everything the other end had to send has come, unless the scenario stopped it half-way; and
                // the application has nothing more to say.
                let flow = &self.flows[usize::from(id.0)];
                if let (Some(index), false) =
                    (flow.measured[side.peer().index()], flow.workload.was_cut_short())
                {
                    self.flow_metrics[index].on_complete();
                }
                self.ask(id, Ask::Close(side));
            }
            TcpEvent::Closed | TcpEvent::Reset | TcpEvent::GivenUp => {
                self.trace_flow(id, side, format_args!("{event:?}"), false);
            }
            TcpEvent::Connected | TcpEvent::FastRetransmit { .. } => {}
        }
    }

    #[inline(always)]
    fn hand_over_data(&mut self, now: Instant, id: FlowId, side: Side) {
        let flow = &mut self.flows[usize::from(id.0)];
        let end = &mut flow.ends[side.index()];
        let total = end.connection.received();
        let new = total - end.received;
        end.received = total;
        self.application_got(now, id, side, new, total);
    }

    /// The application at `side` has got `new` bytes more, which makes `total`.
    #[inline(always)]
    pub(crate) fn application_got(&mut self, now: Instant, id: FlowId, side: Side, new: u64, total: u64) {
        let flow = &self.flows[usize::from(id.0)];
        if let Some(index) = flow.measured[side.peer().index()] {
            self.flow_metrics[index].on_delivered(now, total);
            match (flow.roamer, &mut self.fleet) {
                (Some(mobile), Some(fleet)) => fleet.metrics.on_delivered(mobile as usize, now),
                _ => self.script.metrics.on_delivered(now, index, new),
            }
        }
        self.trace_delivered(id, side, total);
        let workload = &mut self.flows[usize::from(id.0)].workload;
        if workload.is_dialogue() {
            if let Some(ask) = workload.received(now, side, total) {
                self.ask(id, ask);
            }
            self.arm_flow(id);
        }
    }

    /// Tells the metrics what the endpoint has counted since the last time.
    #[inline(never)]
    fn count_at_sender(&mut self, id: FlowId, side: Side) {
        let flow = &mut self.flows[usize::from(id.0)];
        let end = &mut flow.ends[side.index()];
        let counters = end.connection.counters();
        let duplicates = counters.duplicate_acks_received - end.duplicate_acks;
        let samples = counters.rtt_samples - end.rtt_samples;
        end.duplicate_acks += duplicates;
        end.rtt_samples += samples;
        if let Some(index) = flow.measured[side.index()] {
            let metrics = &mut self.flow_metrics[index];
            for _ in 0..duplicates {
                metrics.on_duplicate_ack();
            }
            // An acknowledgement can give several samples; the last one stands for the others.
            if let (1.., Some(rtt)) = (samples, end.connection.latest_rtt()) {
                metrics.on_rtt_sample(rtt);
            }
        }
    }

    /// Sends the next segment of an end; `false` when it has none.
    #[inline(always)]
    fn send_segment(&mut self, id: FlowId, side: Side) -> bool {
        let flow = &mut self.flows[usize::from(id.0)];
        let end = &mut flow.ends[side.index()];
        let mut place = None;
        let (pool, taken) = (&mut self.pool, &mut place);
        let sending =
            end.connection.poll_transmit_into(self.now, move || taken.insert(pool.take_place()).segment());
        let (Some(sending), Some(mut place)) = (sending, place) else { return false };
        let segment = place.segment();
        let seq = end.sent_seq.follow(segment.seq);
        if let Some(shift) = segment.window_scale {
            end.window_shift = shift;
        }
        let mut number = None;
        if let (Some(index), 1..) = (flow.measured[side.index()], segment.seq_len()) {
            let range = SegmentRange { seq, end: seq + i64::from(segment.seq_len()) };
            number = Some(self.flow_metrics[index].on_segment_sent(self.now, range, sending.retransmission));
        }
        let (node, way, source, port) = (end.node, end.way, end.address, segment.destination_port);
        let tells = end.tells;
        let peer = &flow.ends[side.peer().index()];
        let ack = if segment.flags.contains(Flags::ACK) { peer.sent_seq.of(segment.ack) } else { 0 };
        let here = &mut self.nodes[usize::from(node.0)];
        let header = Header {
            source,
            destination: peer.address,
            protocol: protocol::TCP,
            ttl: DEFAULT_TTL,
            tos: if sending.ecn_capable { ecn::CAPABLE } else { 0 },
            len: self.ip_header_len,
            identification: here.next_identification(),
            dont_fragment: flow.pmtu_discovery,
            more_fragments: false,
            fragment_offset: 0,
            payload_len: sending.header_len + segment.payload_len,
        };
        let origin = Origin {
            flow: id,
            sender: side,
            retransmission: sending.retransmission,
            transmission: number,
            seq,
            ack,
            option: None,
        };
        let packet = place.store(&header, &origin);
        if tells > 0 {
            self.add_option(id, side, packet);
        }
        self.trace_segment_sent(id, side, packet);
        match way {
            // Whoever has something to tell moves, and has no such way.
            Some(way) => self.transmit_sized(node, way, packet, header.total_len().into()),
            None => self.originate(node, packet, port),
        }
        true
    }

    /// A router could not forward a packet of a flow without fragmenting it (RFC 1191).
    pub(crate) fn path_mtu_changed(&mut self, source: (Locator, u16), mtu: u16) {
        let now = self.now;
        if let Some((id, side)) = self.sender_of(source)
            && self.flows[usize::from(id.0)].pmtu_discovery
        {
            self.flows[usize::from(id.0)].end(side).connection.path_mtu_changed(now, mtu);
            self.pump(id, side);
        }
    }

    /// A router knows no way for a segment that begins at `seq` (network or host unreachable, RFC 6069).
    pub(crate) fn destination_unreachable(&mut self, source: (Locator, u16), seq: SeqNumber) {
        let now = self.now;
        if let Some((id, side)) = self.sender_of(source) {
            self.flows[usize::from(id.0)].end(side).connection.icmp_unreachable(now, seq);
            self.pump(id, side);
        }
    }

    /// The end of a flow that sends from this address and port.
    pub(crate) fn sender_of(&self, (source, source_port): (Locator, u16)) -> Option<(FlowId, Side)> {
        // A port names its flow, so that there is nothing to search among many.
        let candidate = |side: Side| {
            let id = FlowId(source_port.wrapping_sub(port(FlowId(0), side)));
            let flow = self.flows.get(usize::from(id.0))?;
            (flow.ends[side.index()].address == source).then_some((id, side))
        };
        Side::BOTH.into_iter().filter_map(candidate).min_by_key(|(id, _)| *id)
    }
}
