//! `split`: a relay at the home agent makes two connections of one (I-TCP, Bakre and Badrinath 1995; RFC 3135 section 2.4).
//!
//! It answers the opener in the acceptor's name as soon as the SYN comes, and opens a connection of its own to the acceptor in
//! the opener's name; addresses and ports stay those of the real ends, which notice nothing. What one of its two [halves](Half)
//! has received in order, the other sends. A FIN follows all data that came before it; a reset, or a connection that
//! cannot be made or is given up, resets the other at once.
//!
//! - *What it holds* of a direction is what it has acknowledged to the one side and the other has not yet acknowledged to it. It
//!   is never more than `buffer`, for what the window of the receiving half leaves open is what there is room for.
//! - *An acknowledgement says that the relay has the data*, not that the receiver has (RFC 3135 section 4.1.3; RFC 2757 section
//!   4.10.1). A sender that has seen its last byte and its FIN acknowledged is done, whatever becomes of what the relay holds.
//! - *Sequence numbers*: a half begins with the number of the end in whose name it speaks, so that a byte has one number in a trace
//!   wherever it is seen. A relay that answers before it has heard the acceptor could not know it; nothing depends on it.
//! - *The other assists of the agent* stand between the relay and the mobile node: they see what goes there and what comes from
//!   there, and the relay is the peer of which they know.
//! - *ICMP errors* about a segment that the agent would send on to an end, or that pass on their way there, are about a segment
//!   of the relay's: what the ends themselves send ends here.

use careof_assist::{Exception, Towards};
use careof_metrics::SegmentRange;
use careof_plan::{FlowId, Locator, NodeId, Side, Unwrapped, port};
use careof_scenario::{Assist, AssistPlace, Split};
use careof_tcp::{Config, Connection, Event as TcpEvent, Role};
use careof_trace::{AssistRecord, TcpState};
use careof_wire::icmp::{IcmpMessage, QuotedDatagram, UnreachableCode};
use careof_wire::icmpv6::{Icmpv6Message, QuotedPacket};
use careof_wire::ipv4::ecn;
use careof_wire::{Flags, SeqNumber, protocol};

use crate::agents::Agent;
use crate::forwarding::DEFAULT_TTL;
use crate::header::Header;
use crate::mobile_ipv6::{is_unreachable, mtu_for_segment};
use crate::packet::{Body, Origin, PacketRef};
use crate::queue::Slot;
use crate::simulation::{Component, Simulation};

/// The relays of a run, all on one node.
pub(crate) struct Relays {
    node: NodeId,
    except: Vec<Exception>,
    /// By flow; `None` for those that are left alone.
    flows: Vec<Option<Box<Relay>>>,
}

/// What stands between the ends of a flow.
struct Relay {
    /// By the side that a half talks to.
    halves: [Half; 2],
    /// Bytes that it may hold of a direction.
    buffer: u64,
    /// It has seen the opener's SYN.
    is_open: bool,
    /// Both connections are over, and that was told.
    is_over: bool,
    /// [`Simulation::drive_relay`] is under way.
    is_driven: bool,
}

/// One end of a connection with one of the real ends, in the name of the other.
pub(crate) struct Half {
    pub(crate) connection: Connection,
    slot: Slot,
    /// Its own sequence numbers, unwrapped.
    sent_seq: Unwrapped,
    /// The shift of the windows that it advertises, once its SYN has left.
    pub(crate) window_shift: u8,
    /// Whether its packets carry DF and listen to ICMP "fragmentation needed".
    pmtu_discovery: bool,
    /// Whether the trace shows it: of two halves on one node that of the wireless path.
    pub(crate) is_traced: bool,
    /// Bytes of the other half's that were given to it to send.
    written: u64,
    /// Its handshake is complete.
    is_connected: bool,
    /// Its peer has sent everything that it will.
    peer_closed: bool,
    /// Its own FIN follows what was written.
    is_closed: bool,
    /// What the relay held of the data that came by it when the trace last told, and what is the next to be told.
    told: u64,
    /// What the trace last said of the connection.
    pub(crate) traced: Option<TcpState>,
    /// The connection's revision when the trace last looked.
    pub(crate) traced_revision: Option<u64>,
}

impl Relay {
    fn half(&mut self, facing: Side) -> &mut Half {
        &mut self.halves[facing.index()]
    }

    /// What came by the half that faces `from` and has not been acknowledged to the other.
    fn held(&self, from: Side) -> u64 {
        let [taken, given] = [from, from.peer()].map(|side| &self.halves[side.index()].connection);
        taken.received().saturating_sub(given.acknowledged())
    }

    /// Gives what came by the half that faces `from` to the other, its FIN after it, and opens the window as far as there is
    /// room.
    fn pass_on(&mut self, from: Side) {
        let held = self.held(from);
        let (received, peer_closed) = {
            let half = &mut self.halves[from.index()];
            // The window is the connection's own or what there is room for, whichever is less.
            let window = u64::from(half.connection.config().receive_window);
            let unread = held.saturating_sub(self.buffer - window.min(self.buffer));
            let excess = half.connection.available().saturating_sub(unread);
            if excess > 0 {
                half.connection.read(excess);
            }
            (half.connection.received(), half.peer_closed)
        };
        let half = self.half(from.peer());
        if !half.is_connected || half.connection.is_closed() {
            return;
        }
        if received > half.written {
            half.connection.write(received - half.written);
            half.written = received;
        }
        if peer_closed && !half.is_closed {
            half.is_closed = true;
            half.connection.close();
        }
    }
}

/// What an ICMP error says of a segment.
enum Said {
    /// The next hop takes packets of so many bytes.
    Mtu(u16),
    /// There is no way for the segment with this sequence number.
    Unreachable(SeqNumber),
    /// Nothing that TCP reacts to.
    Nothing,
}

/// The relay's TCP: the window is at most what it can hold.
fn configured(config: &Config, buffer: u64) -> Config {
    let window = config.receive_window.min(u32::try_from(buffer).unwrap_or(u32::MAX));
    // A multiple of the unit in which the window field counts, so that rounding never promises more.
    let shift = (0..14).find(|shift| window >> shift <= 0xffff).unwrap_or(14);
    Config { receive_window: (window >> shift << shift).max(1), ..config.clone() }
}

impl Simulation {
    /// Sets the relays of `split` up, where it is used. After the flows.
    pub(crate) fn add_relays(&mut self) {
        let at_the_agent = |assist: &Assist| match assist {
            Assist::Split(split) if split.at == AssistPlace::HomeAgent => Some(split.clone()),
            _ => None,
        };
        let is_home_agent = |node: &NodeId| match &self.node(*node).agent {
            Agent::Home(_) => true,
            Agent::Ipv6(host) => host.is_home_agent(),
            _ => false,
        };
        let split = self.scenario.assists.iter().find_map(at_the_agent);
        let node = (0..self.nodes.len()).map(|index| NodeId(index as u16)).find(is_home_agent);
        let (Some(split), Some(node)) = (split, node) else { return };
        let except = careof_plan::exceptions(&self.scenario, &self.topology);
        let ids: Vec<FlowId> = (0..self.flows.len()).map(|index| FlowId(index as u16)).collect();
        let flows = ids.into_iter().map(|id| self.relay(&split, node, id).map(Box::new)).collect();
        self.relays = Some(Box::new(Relays { node, except, flows }));
    }

    /// The relay of a flow; `None` where nobody moves, or the agent is an end itself.
    fn relay(&mut self, split: &Split, node: NodeId, id: FlowId) -> Option<Relay> {
        let spec = &self.scenario.flows[usize::from(id.0)];
        let ends = Side::BOTH.map(|side| self.flows[usize::from(id.0)].ends[side.index()].node);
        let moves = ends.map(|end| self.topology.homes.index(end).is_some());
        if !spec.is_over_tcp() || moves == [false, false] || ends.contains(&node) {
            return None;
        }
        let of_the_flow = spec.tcp.clone();
        let mut random = self.stream(&format!("flow.{}.iss", spec.name));
        let numbers = Side::BOTH.map(|_| SeqNumber(random.next_u64() as u32));
        let halves = Side::BOTH.map(|facing| {
            let own = split.tcp.as_deref().filter(|_| moves[facing.index()]);
            let tcp = own.unwrap_or(&of_the_flow);
            let role = if facing == Side::Opener { Role::Passive } else { Role::Active };
            let iss = numbers[facing.peer().index()];
            let (local, remote) = (port(id, facing.peer()), port(id, facing));
            let config = configured(&tcp.config, split.buffer);
            let config = Config { ip_header_len: self.ip_header_len, ..config };
            let connection = Connection::new(config, role, local, remote, iss);
            let mut connection =
                connection.unwrap_or_else(|error| unreachable!("the scenario checked this: {error}"));
            connection.set_auto_read(false);
            Half {
                connection,
                slot: self.add_component(Component::Relay(id, facing)),
                sent_seq: Unwrapped::from(iss),
                window_shift: 0,
                pmtu_discovery: tcp.pmtu_discovery,
                is_traced: moves[facing.index()] && (facing == Side::Acceptor || moves != [true, true]),
                written: 0,
                is_connected: false,
                peer_closed: false,
                is_closed: false,
                told: 0,
                traced: None,
                traced_revision: None,
            }
        });
        Some(Relay { halves, buffer: split.buffer, is_open: false, is_over: false, is_driven: false })
    }

    fn relay_of(&self, id: FlowId) -> Option<&Relay> {
        self.relays.as_ref()?.flows.get(usize::from(id.0))?.as_deref()
    }

    fn relay_mut(&mut self, id: FlowId) -> Option<&mut Relay> {
        self.relays.as_mut()?.flows.get_mut(usize::from(id.0))?.as_deref_mut()
    }

    /// The half of an open relay that talks to `facing`.
    pub(crate) fn half(&self, id: FlowId, facing: Side) -> Option<&Half> {
        self.relay_of(id).filter(|relay| relay.is_open).map(|relay| &relay.halves[facing.index()])
    }

    /// The same, to write down what the trace said of it.
    pub(crate) fn half_mut(&mut self, id: FlowId, facing: Side) -> Option<&mut Half> {
        self.relay_mut(id).filter(|relay| relay.is_open).map(|relay| relay.half(facing))
    }

    /// Where the relays are.
    pub(crate) fn relay_node(&self) -> Option<NodeId> {
        self.relays.as_ref().map(|relays| relays.node)
    }

    /// A packet is about to be forwarded by a node with relays; whether it ends there.
    pub(crate) fn relay_takes(&mut self, node: NodeId, packet: PacketRef) -> bool {
        let passing = &self.pool[packet];
        if self.relay_node() != Some(node) || passing.outer.is_some() {
            return false;
        }
        let Some(origin) = passing.origin else { return self.relay_overhears(node, packet) };
        let Some((towards, path)) = self.direction(node, packet) else { return false };
        if !self.relay_of(origin.flow).is_some_and(|relay| relay.is_open) && !self.open_relay(packet, towards)
        {
            return false;
        }
        let header = self.pool[packet].header;
        let packet = if header.is_fragment() {
            match self.reassemble(node, &header, packet) {
                Some(whole) => whole,
                None => return true,
            }
        } else {
            packet
        };
        if towards == Towards::Mobile || self.show(node, towards, path, packet) {
            self.deliver_to_relay(packet);
        }
        self.drive_assist(node);
        true
    }

    /// Opens the relay of a flow if `packet` is its opener's SYN and it is not to be left alone.
    fn open_relay(&mut self, packet: PacketRef, towards: Towards) -> bool {
        let now = self.now;
        let opening = &self.pool[packet];
        let (Body::Tcp(segment), Some(origin)) = (&opening.body, opening.origin) else { return false };
        let is_syn = segment.flags.contains(Flags::SYN) && !segment.flags.contains(Flags::ACK);
        if !is_syn || origin.sender != Side::Opener {
            return false;
        }
        let mobile = if towards == Towards::Mobile { Side::Acceptor } else { Side::Opener };
        let key = self.flow_key(origin.flow, mobile);
        let Some(relays) = &mut self.relays else { return false };
        let is_excepted = relays.except.iter().any(|exception| exception.covers(&key));
        let Some(Some(relay)) = relays.flows.get_mut(usize::from(origin.flow.0)).filter(|_| !is_excepted)
        else {
            return false;
        };
        relay.is_open = true;
        relay.halves.iter_mut().for_each(|half| half.connection.open(now));
        self.tell_of_relay(origin.flow, "open", 0);
        true
    }

    /// Whether a packet from the mobile node's side ends at the relay: the node is the peer in its place.
    pub(crate) fn is_for_relay(&self, node: NodeId, packet: PacketRef, towards: Towards) -> bool {
        let origin = self.pool[packet].origin.filter(|_| towards == Towards::Peer);
        self.relay_node() == Some(node)
            && origin.is_some_and(|origin| self.half(origin.flow, Side::Opener).is_some())
    }

    /// Whether segments from this address and port are a relay's.
    pub(crate) fn is_relays_own(&self, node: NodeId, source: (Locator, u16)) -> bool {
        let of_flow = |(id, side): (FlowId, Side)| self.half(id, side.peer()).is_some();
        self.relay_node() == Some(node) && self.sender_of(source).is_some_and(of_flow)
    }

    /// A segment reached the relay of its flow.
    pub(crate) fn deliver_to_relay(&mut self, packet: PacketRef) {
        let now = self.now;
        let arrived = &self.pool[packet];
        let (Body::Tcp(segment), Some(origin)) = (&arrived.body, arrived.origin) else { return };
        let (segment, marked) = (*segment, arrived.header.congestion_experienced());
        let (id, facing) = (origin.flow, origin.sender);
        // For the sender it has arrived.
        if let Some(transmission) = origin.transmission
            && let Some(index) = self.flows[usize::from(id.0)].measured[facing.index()]
        {
            let range = SegmentRange { seq: origin.seq, end: origin.seq + i64::from(segment.seq_len()) };
            self.flow_metrics[index].on_segment_arrival(range, transmission);
        }
        if let Some(relay) = self.relay_mut(id) {
            let half = relay.half(facing);
            half.connection.handle_packet(now, &segment, marked);
            let is_traced = half.is_traced;
            if is_traced {
                self.trace_relay_segment(id, facing, packet, false);
            }
        }
        self.consume(packet);
        self.drive_relay(id);
    }

    /// A timer of a half ran out.
    pub(crate) fn relay_timeout(&mut self, id: FlowId, facing: Side) {
        let now = self.now;
        if let Some(relay) = self.relay_mut(id) {
            relay.half(facing).connection.handle_timeout(now);
        }
        self.drive_relay(id);
    }

    /// Drains both halves after anything happened to one: events, data for the other, segments, timers. What happens to them
    /// meanwhile, such as that a segment of theirs is too large, is seen to by the call that is under way.
    fn drive_relay(&mut self, id: FlowId) {
        match self.relay_mut(id) {
            Some(relay) if !relay.is_driven => relay.is_driven = true,
            _ => return,
        }
        loop {
            for facing in Side::BOTH {
                self.take_relay_events(id, facing);
            }
            if let Some(relay) = self.relay_mut(id) {
                Side::BOTH.into_iter().for_each(|from| relay.pass_on(from));
            }
            let mut is_quiet = true;
            for facing in Side::BOTH {
                while self.send_for_relay(id, facing) {
                    is_quiet = false;
                }
            }
            if is_quiet && self.relay_of(id).is_none_or(|relay| !has_events(relay)) {
                break;
            }
        }
        for facing in Side::BOTH {
            self.trace_relay_state(id, facing);
            self.tell_what_is_held(id, facing);
            let half = self.relay_of(id).map(|relay| &relay.halves[facing.index()]);
            let due = half.map(|half| (half.slot, half.connection.next_timeout().map(|(at, _)| at)));
            if let Some((slot, deadline)) = due {
                self.queue.set(slot, deadline);
            }
        }
        let Some(relay) = self.relay_mut(id) else { return };
        relay.is_driven = false;
        let is_over = relay.halves.iter().all(|half| half.connection.is_closed());
        if is_over && !relay.is_over {
            relay.is_over = true;
            let passed = relay.halves.iter().map(|half| half.connection.acknowledged()).sum();
            self.tell_of_relay(id, "close", passed);
        }
    }

    fn take_relay_events(&mut self, id: FlowId, facing: Side) {
        while let Some(half) = self.half_mut(id, facing)
            && let Some(event) = half.connection.poll_event()
        {
            match event {
                TcpEvent::Connected => half.is_connected = true,
                TcpEvent::PeerClosed => half.peer_closed = true,
                TcpEvent::Reset | TcpEvent::GivenUp => {
                    let other = self.half_mut(id, facing.peer());
                    let was_open = other.is_some_and(|other| {
                        let was_open = !other.connection.is_closed();
                        other.connection.abort();
                        was_open
                    });
                    if was_open {
                        let lost = self
                            .relay_of(id)
                            .map_or(0, |relay| relay.held(facing) + relay.held(facing.peer()));
                        self.tell_of_relay(id, "reset", lost);
                    }
                }
                TcpEvent::Timeout { seq, .. } if half.is_traced => {
                    let seq = half.sent_seq.of(seq);
                    self.trace_relay_timeout(id, facing, seq);
                }
                TcpEvent::Timeout { .. }
                | TcpEvent::FastRetransmit { .. }
                | TcpEvent::PathMeasured { .. }
                | TcpEvent::Closed => {}
            }
        }
    }

    /// Sends the next segment of a half; `false` when it has none.
    fn send_for_relay(&mut self, id: FlowId, facing: Side) -> bool {
        let now = self.now;
        let Some(relays) = &mut self.relays else { return false };
        let node = relays.node;
        let Some(Some(relay)) = relays.flows.get_mut(usize::from(id.0)) else { return false };
        let half = relay.half(facing);
        let Some(sent) = half.connection.poll_transmit(now) else { return false };
        let segment = sent.segment;
        if let Some(shift) = segment.window_scale {
            half.window_shift = shift;
        }
        let (seq, is_traced) = (half.sent_seq.follow(segment.seq), half.is_traced);
        let dont_fragment = half.pmtu_discovery;
        let ends = &self.flows[usize::from(id.0)].ends;
        let (to, from) = (&ends[facing.index()], &ends[facing.peer().index()]);
        let ack = if segment.flags.contains(Flags::ACK) { to.sent_seq.of(segment.ack) } else { 0 };
        let (source, destination) = (from.address, to.address);
        let header = Header {
            source,
            destination,
            protocol: protocol::TCP,
            ttl: DEFAULT_TTL,
            tos: if sent.ecn_capable { ecn::CAPABLE } else { 0 },
            len: self.ip_header_len,
            identification: self.next_identification(node),
            dont_fragment,
            more_fragments: false,
            fragment_offset: 0,
            payload_len: segment.header_len() + segment.payload_len,
        };
        let origin = Origin {
            flow: id,
            sender: facing.peer(),
            retransmission: sent.retransmission,
            // What the metrics count is what the real sender does.
            transmission: None,
            seq,
            ack,
            option: None,
        };
        let packet = crate::packet::Packet::new(header, Body::Tcp(segment), Some(origin));
        let packet = self.insert(packet);
        if is_traced {
            self.trace_relay_segment(id, facing, packet, true);
        }
        let goes_on = match self.direction(node, packet) {
            Some((Towards::Mobile, path)) => self.show(node, Towards::Mobile, path, packet),
            _ => true,
        };
        if goes_on {
            let route = self.node(node).place.route(destination);
            self.forward_on(node, packet, route);
        }
        self.drive_assist(node);
        true
    }

    /// An ICMP error passes on its way to an end; whether it ends here.
    fn relay_overhears(&mut self, node: NodeId, packet: PacketRef) -> bool {
        let passing = &self.pool[packet];
        let Body::Message(bytes) = &passing.body else { return false };
        let header = passing.header;
        if header.is_fragment() {
            return false;
        }
        let bytes = bytes.clone();
        let hears = match header.protocol {
            protocol::ICMP => {
                IcmpMessage::parse(&bytes).is_ok_and(|message| self.relay_hears(node, &message))
            }
            protocol::ICMPV6 => {
                let [source, destination] =
                    [header.source, header.destination].map(|end| self.bytes.address_v6(end));
                Icmpv6Message::parse(source, destination, &bytes)
                    .is_ok_and(|message| self.relay_hears_icmpv6(node, &message))
            }
            _ => false,
        };
        if hears {
            self.consume(packet);
        }
        hears
    }

    /// An ICMP error is about to leave `node` for an end; whether it is about a segment of a relay, which has heard it then.
    pub(crate) fn relay_hears(&mut self, node: NodeId, message: &IcmpMessage) -> bool {
        let IcmpMessage::DestinationUnreachable(error) = message else { return false };
        let Ok(quoted) = QuotedDatagram::parse(&error.quoted) else { return false };
        let Some(ports) = quoted.ports() else { return false };
        let said = match (error.code, ports.seq) {
            (UnreachableCode::FragmentationNeeded, _) => Said::Mtu(error.next_hop_mtu),
            (UnreachableCode::Net | UnreachableCode::Host, Some(seq)) => Said::Unreachable(seq),
            _ => Said::Nothing,
        };
        self.relay_is_told(node, (quoted.header.source.into(), ports.source_port), said)
    }

    /// The same, of an ICMPv6 error.
    pub(crate) fn relay_hears_icmpv6(&mut self, node: NodeId, message: &Icmpv6Message) -> bool {
        let quoted = match message {
            Icmpv6Message::DestinationUnreachable(error) => &error.quoted,
            Icmpv6Message::PacketTooBig(error) => &error.quoted,
            _ => return false,
        };
        let Ok(quoted) = QuotedPacket::parse(quoted) else { return false };
        let Some(ports) = quoted.ports() else { return false };
        let said = match (message, ports.seq) {
            (Icmpv6Message::PacketTooBig(error), _) => Said::Mtu(mtu_for_segment(error, &quoted)),
            (Icmpv6Message::DestinationUnreachable(error), Some(seq)) if is_unreachable(error.code) => {
                Said::Unreachable(seq)
            }
            _ => Said::Nothing,
        };
        self.relay_is_told(node, (self.topology.plan.locate(quoted.source.into()), ports.source_port), said)
    }

    /// An ICMP error is about a segment from this address and port; whether that is a relay's, which has heard it then.
    fn relay_is_told(&mut self, node: NodeId, source: (Locator, u16), said: Said) -> bool {
        let now = self.now;
        if !self.is_relays_own(node, source) {
            return false;
        }
        let Some((id, side)) = self.sender_of(source) else { return false };
        let Some(half) = self.half_mut(id, side.peer()) else { return false };
        match said {
            Said::Mtu(mtu) if half.pmtu_discovery => half.connection.path_mtu_changed(now, mtu),
            Said::Unreachable(seq) => half.connection.icmp_unreachable(now, seq),
            Said::Mtu(_) | Said::Nothing => {}
        }
        self.drive_relay(id);
        true
    }

    /// The trace says what the relay holds, in eighths of what it may.
    fn tell_what_is_held(&mut self, id: FlowId, from: Side) {
        let Some(relay) = self.relay_mut(id) else { return };
        let (held, step) = (relay.held(from), (relay.buffer / 8).max(1));
        let half = relay.half(from);
        if held / step != half.told / step {
            half.told = held;
            self.tell_of_relay(id, "hold", held);
        }
    }

    fn tell_of_relay(&mut self, id: FlowId, what: &'static str, bytes: u64) {
        if let Some(node) = self.relay_node() {
            self.trace_assist(node, id, AssistRecord { assist: "split", what, packets: 0, bytes });
        }
    }
}

fn has_events(relay: &Relay) -> bool {
    relay.halves.iter().any(|half| half.connection.has_events())
}
