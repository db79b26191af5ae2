//! Senders that are told of handovers: who tells whom, and by which way.
//!
//! A sender on the mobile node shares its host with the mobility protocol and is told by that, at the moment at which it
//! knows. A sender at the other end is told by
//!
//! | assist | way |
//! |---|---|
//! | rto-reset, `by = "signal"` | none: at once, as if both ends shared a host. The best that the reset could do; paper 000 (7.1.5) says that there is no such way |
//! | rto-reset, `by = "option"` | an option in the next segments from the mobile node (paper 000, section 8.1) with a timeout for the new path: three times the round trip of the registration, RFC 6298's for a first measurement |
//! | tcp-cm | the ToH bit of the Binding Update to a correspondent that knows another care-of address (paper 002, section 3.1); to others a datagram to the correspondent's IP layer, over the new path, once the home agent has accepted: one for each correspondent |
//! | tcp-cm, `estimator = "link"` | the datagram to all, with what is known of the path; behind the Binding Update where there is one |
//! | tcp-ho | an option in two acknowledgements, sent at once, with the rate of the link (Wu, Chan and Ananda 2007) |
//! | demo-vegas | an option without values in the next segments, in place of the reserved bit in the TCP header that the source has (Ho, Chan and Chen 2005): how that bit is confirmed is not known |
//! | mobile-tcp | an option in the next segments (paper 002, 4.3.4) with what is known of the path |
//! | ebsn | an ICMP message from the base station (RFC 2757): the foreign agent, or over IPv6 the access router, which looks into tunnels |
//!
//! All but the first are packets or parts of packets, take their bytes, and may be late or lost.
//!
//! - *The next segments.* A receiver has nothing to send when an outage has silenced its peer. So at registration each
//!   connection sends an acknowledgement at once, as paper 002's equation 8 counts it (one way on the new path, no timeout of
//!   the peer in it). The option is in that and in the next segments, [`TIMES`] in all, so that one loss is no
//!   silence; nobody confirms it. It is left out where it does not fit beside data, and SACK blocks give way to it.
//! - *What is known* of the new path is what the mobile node knows: the rate of its link and the round trip of its
//!   registration, which is that to the home agent and of small packets. A correspondent far from the home agent
//!   has a longer one, and finds out by itself.
//! - *Who still knows the old care-of address.* With route optimisation over IPv6 a correspondent goes on sending there until it has the
//!   new binding. If it is told before, it repeats everything to the old address and waits for its timer. So tcp-cm's bit is in the
//!   Binding Update to the correspondent and in every repetition of it, or its datagram follows it by the same way; an option waits for its acknowledgement.
//! - *The path is gone* ([`Advice::Away`]) is told to senders on the mobile node alone; nobody can tell the others (paper 002,
//!   section 3.1). A make-before-break handover never says it: the old path works until the new one is registered.
//! - *A base station* notices that a transmission to a visitor failed: a packet was lost on its link, or the link is down. It tells
//!   the data's sender of each such packet; and, while its link is down and data it has seen pass is not
//!   acknowledged, again every [`base_station::PAUSE`], as it would try again to send it. After [`base_station::LONGEST`] it takes the visitor for
//!   gone; else a node that has moved on would have its peer wait for the visitor list's lifetime.
//!   What is lost has to be sent again by somebody: the timer that would do so is what EBSN stops.

mod base_station;
mod outdated;
mod response;

use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};

use careof_assist::Exception;
use careof_metrics::AssistDeed;
use careof_mobility::v6::{Addresses, Transmit, TransmitPayload};
use careof_mobility::{HandoverEvent, HandoverStyle, InterfaceId, PathProperties};
use careof_plan::{FlowId, Locator, NodeId, Plan, Side, Topology};
use careof_scenario::{AdvisedBy, Assist, Scenario, Split, TcpCm};
use careof_tcp::{Advice, Config, NewPath, RtoEstimator, State};
use careof_trace::AssistRecord;
use careof_wire::icmp::{IcmpMessage, OtherMessage, QuotedDatagram};
use careof_wire::icmpv6::{Icmpv6Message, QuotedPacket};
use careof_wire::{Flags, SackBlocks, Segment, protocol};

use crate::agents::Agent;
use crate::forwarding::DEFAULT_TTL;
use crate::handover_option::{HandoverOption, OptionRef, Says};
use crate::header::Header;
use crate::packet::{Body, Packet, PacketRef};
use crate::simulation::{Component, Simulation};

use base_station::Station;
use response::Response;

/// Segments of a connection that carry the option of a handover.
const TIMES: u8 = 3;
/// The two duplicate acknowledgements of TCP-HO.
const TWICE: u8 = 2;

/// An ICMP type for experiments (RFC 4727 section 4), an informational one of ICMPv6 (RFC 4443 section 2.1), and their codes here.
const ICMP_EXPERIMENT: u8 = 253;
const ICMPV6_EXPERIMENT: u8 = 200;
const BAD_STATE: u8 = 0;
const END_OF_HANDOVER: u8 = 1;

/// Room for options in a TCP header.
const MOST_OPTIONS: u16 = 40;

/// What is told in this run, and to whom.
pub(crate) struct Senders {
    response: Option<Response>,
    except: Vec<Exception>,
    /// By mobile node.
    mobiles: BTreeMap<u16, Teller>,
    /// By base station.
    stations: BTreeMap<u16, Station>,
    /// All that were made.
    options: Vec<HandoverOption>,
}

/// A mobile node.
#[derive(Default)]
struct Teller {
    /// Its connections.
    ends: Vec<(FlowId, Side)>,
    /// Handovers so far, modulo 256.
    handovers: u8,
    /// What its segments carry.
    option: Option<OptionRef>,
    /// Its senders were told that the path is gone.
    is_away: bool,
    /// What its peers are told of the path in use.
    path: PathProperties,
    /// Correspondents that know another care-of address: they are told when they know the new one.
    outdated: BTreeSet<Locator>,
    /// Correspondents whose acknowledgement of an update has come, and whose agent is about to say so.
    acknowledged: BTreeSet<Locator>,
}

impl Simulation {
    /// Sets up who is told of handovers, where somebody is to be. After the flows.
    pub(crate) fn add_senders(&mut self) {
        let response = self.scenario.assists.iter().find_map(|assist| match assist {
            Assist::RtoReset(reset) => {
                Some(Response::RtoReset { slow_start: reset.slow_start, by: reset.by })
            }
            Assist::TcpCm(manager) => {
                let TcpCm { resend, suspend, estimator } = *manager;
                Some(Response::TcpCm { resend, suspend, estimator: estimator.in_tcp() })
            }
            Assist::MobileTcp => Some(Response::MobileTcp),
            Assist::TcpHo => Some(Response::TcpHo),
            Assist::DemoVegas => Some(Response::DemoVegas),
            _ => None,
        });
        let has_stations = self.scenario.assists.contains(&Assist::Ebsn);
        if self.topology.homes.first().is_none() || !(response.is_some() || has_stations) {
            return;
        }
        let except = careof_plan::exceptions(&self.scenario, &self.topology);
        let mut senders = Senders {
            response,
            except,
            mobiles: BTreeMap::new(),
            stations: BTreeMap::new(),
            options: Vec::new(),
        };
        for (flow, id) in self.flows.iter().zip(0..) {
            for side in Side::BOTH {
                let node = flow.ends[side.index()].node;
                if response.is_some() && self.topology.homes.index(node).is_some() {
                    senders.mobiles.entry(node.0).or_default().ends.push((FlowId(id), side));
                }
            }
        }
        if let Some(Response::TcpCm { estimator: Some(estimator), .. }) = response {
            let told: Vec<(FlowId, Side)> =
                senders.mobiles.values().flat_map(|teller| teller.ends.iter().copied()).collect();
            for (id, side) in told {
                let key = self.flow_key(id, side);
                if !senders.except.iter().any(|exception| exception.covers(&key)) {
                    let peer = self.flows[usize::from(id.0)].end(side.peer());
                    peer.connection.estimate_bandwidth(estimator);
                }
            }
        }
        for index in 0..self.nodes.len() {
            let id = NodeId(index as u16);
            if has_stations && self.is_base_station(id) {
                let slot = self.add_component(Component::Station(id));
                let station = Station::new(slot);
                senders.stations.insert(id.0, station);
            }
        }
        self.senders = Some(Box::new(senders));
    }

    /// A phase of a handover of a mobile node: its own senders are told, and those of its peers.
    pub(crate) fn advise_handover<A, C>(&mut self, node: NodeId, event: &HandoverEvent<A, C>) {
        let Some(senders) = &mut self.senders else { return };
        let agent = &self.nodes[usize::from(node.0)].agent;
        let (Some(response), Some((_, active))) = (senders.response, agent.is_registered_by()) else {
            return;
        };
        let Some(teller) = senders.mobiles.get_mut(&node.0) else { return };
        match *event {
            HandoverEvent::LinkDown { interface } | HandoverEvent::PathSilent { interface, .. }
                if active == Some(interface) =>
            {
                self.leave(node);
            }
            HandoverEvent::Initiated { style: HandoverStyle::BreakBeforeMake, .. } => self.leave(node),
            HandoverEvent::Registered { new, round_trip, .. } => {
                teller.is_away = false;
                teller.handovers = teller.handovers.wrapping_add(1);
                let path = PathProperties { round_trip: Some(new.round_trip.unwrap_or(round_trip)), ..new };
                teller.path = path;
                let outdated = self.await_correspondents(node);
                self.tell_own(node, path);
                self.tell_peers(node, response, |peer| !outdated.contains(&peer));
            }
            // The path that was lost is there again, and registered.
            HandoverEvent::LinkUp { .. }
            | HandoverEvent::PathAnswers { .. }
            | HandoverEvent::Failed { .. }
                if teller.is_away =>
            {
                self.come_back(node);
            }
            _ => {}
        }
    }

    /// Neighbor unreachability detection says that the router of a mobile node's interface is gone, or a router is there.
    pub(crate) fn advise_router(&mut self, node: NodeId, interface: InterfaceId, is_there: bool) {
        let Some((_, Some(active))) = self.nodes[usize::from(node.0)].agent.is_registered_by() else {
            return;
        };
        if active == interface {
            if is_there { self.come_back(node) } else { self.leave(node) }
        }
    }

    /// The path that was lost may be there again: if it is, and registered, senders on the mobile node go on.
    fn come_back(&mut self, node: NodeId) {
        let agent = &self.nodes[usize::from(node.0)].agent;
        let teller = self.senders.as_mut().and_then(|senders| senders.mobiles.get_mut(&node.0));
        let (Some(teller), Some((true, Some(active)))) =
            (teller.filter(|teller| teller.is_away), agent.is_registered_by())
        else {
            return;
        };
        let is_there = |&(id, side): &(FlowId, Side)| {
            let peer = self.flows[usize::from(id.0)].ends[side.peer().index()].address;
            agent.has_way(&self.topology, peer)
        };
        if teller.ends.first().is_some_and(is_there) {
            teller.is_away = false;
            let path = agent.path(active);
            self.tell_own(node, path);
        }
    }

    /// The path is gone: senders on the mobile node wait.
    fn leave(&mut self, node: NodeId) {
        let Some(senders) = &mut self.senders else { return };
        let (Some(response), Some(teller)) = (senders.response, senders.mobiles.get_mut(&node.0)) else {
            return;
        };
        if response.suspends() && !teller.is_away {
            teller.is_away = true;
            for (flow, side) in self.connections_of(node) {
                self.advise(flow, side, &[Advice::Away]);
            }
        }
    }

    /// Senders on the mobile node learn of the path in use.
    fn tell_own(&mut self, node: NodeId, path: PathProperties) {
        let Some(response) = self.senders.as_ref().and_then(|senders| senders.response) else { return };
        let path = NewPath { rate: path.uplink, round_trip: path.round_trip };
        for (flow, side) in self.connections_of(node) {
            if let Some(advice) = response.own_arrival(path) {
                self.advise(flow, side, &[advice]);
            }
        }
    }

    /// Senders to the mobile node, of those who are meant, are told of the path in use.
    fn tell_peers(&mut self, node: NodeId, response: Response, is_meant: impl Fn(Locator) -> bool) {
        let Some(path) = self.told_path(node) else { return };
        match response {
            // Nothing is sent: it needs no way to the mobile node.
            Response::RtoReset { by: AdvisedBy::Signal, .. } => {
                for (flow, side) in self.connections_of(node) {
                    if let Some(advice) = response.peers_arrival(path) {
                        self.advise(flow, side.peer(), &[advice]);
                    }
                }
            }
            Response::RtoReset { slow_start, by: AdvisedBy::Option } => {
                // RFC 6298 section 2.2: SRTT = R, RTTVAR = R/2, RTO = SRTT + 4 RTTVAR.
                let rto = path.round_trip.unwrap_or_default() * 3;
                self.tell_by_option(node, Says::rto(rto, slow_start), (1, TIMES), is_meant);
            }
            Response::MobileTcp => self.tell_by_option(node, Says::path(&path), (1, TIMES), is_meant),
            Response::TcpHo => {
                let told = NewPath { rate: path.rate, round_trip: None };
                self.tell_by_option(node, Says::path(&told), (TWICE, TWICE), is_meant);
            }
            Response::DemoVegas => self.tell_by_option(node, Says::Moved, (1, TIMES), is_meant),
            Response::TcpCm { .. } => {
                for (flow, peer) in self.peers_of(node) {
                    if is_meant(peer) {
                        let home = self.own_address(node);
                        self.tell_by_datagram(node, flow, [home, peer], None);
                    }
                }
            }
        }
    }

    /// What the peers of a mobile node are told of its path.
    fn told_path(&self, node: NodeId) -> Option<NewPath> {
        let PathProperties { downlink: rate, round_trip, .. } =
            self.senders.as_ref()?.mobiles.get(&node.0)?.path;
        Some(NewPath { rate, round_trip })
    }

    /// The hosts at the other ends of a mobile node's connections, each once, with a flow to it.
    fn peers_of(&self, node: NodeId) -> Vec<(FlowId, Locator)> {
        let mut peers: Vec<(FlowId, Locator)> = Vec::new();
        for (flow, side) in self.connections_of(node) {
            let peer = self.flows[usize::from(flow.0)].ends[side.peer().index()].address;
            if peers.iter().all(|(_, known)| *known != peer) {
                peers.push((flow, peer));
            }
        }
        peers
    }

    /// The connections of a mobile node that a handover concerns: established, by its home address, and not excepted.
    fn connections_of(&self, node: NodeId) -> Vec<(FlowId, Side)> {
        let Some(senders) = &self.senders else { return Vec::new() };
        let ends = senders.mobiles.get(&node.0).map_or(&[][..], |teller| &teller.ends);
        let concerns = |&(id, side): &(FlowId, Side)| {
            let flow = &self.flows[usize::from(id.0)];
            let end = &flow.ends[side.index()];
            let state = end.connection.snapshot().state;
            let key = self.flow_key(id, side);
            flow.opened
                && state.is_synchronized()
                && state != State::TimeWait
                && self.is_home_address_of(node, end.address)
                && !senders.except.iter().any(|exception| exception.covers(&key))
        };
        ends.iter().copied().filter(concerns).collect()
    }

    /// In `times` segments, of which the first are so many acknowledgements `at_once`.
    fn tell_by_option(
        &mut self,
        node: NodeId,
        says: Says,
        (at_once, times): (u8, u8),
        is_meant: impl Fn(Locator) -> bool,
    ) {
        let Some(senders) = &mut self.senders else { return };
        let Some(teller) = senders.mobiles.get_mut(&node.0) else { return };
        let option = HandoverOption { handover: teller.handovers, says };
        teller.option = OptionRef::at(senders.options.len());
        senders.options.push(option);
        self.bytes.options.push(option.bytes());
        self.observer.add_option(option.bytes());
        for (flow, side) in self.connections_of(node) {
            if !is_meant(self.flows[usize::from(flow.0)].ends[side.peer().index()].address) {
                continue;
            }
            self.flows[usize::from(flow.0)].end(side).tells = times;
            for _ in 0..at_once {
                self.flows[usize::from(flow.0)].end(side).connection.acknowledge();
                self.pump(flow, side);
            }
        }
    }

    /// A segment leaves of an end that has something to say: it carries the option, if there is room.
    #[cold]
    pub(crate) fn add_option(&mut self, id: FlowId, side: Side, packet: PacketRef) {
        let Some(senders) = &self.senders else { return };
        let end = &self.flows[usize::from(id.0)].ends[side.index()];
        let (node, mss) = (end.node, end.connection.snapshot().mss);
        let Some(number) = senders.mobiles.get(&node.0).and_then(|teller| teller.option) else { return };
        let len = self.bytes.options[number.index()].len() as u16;
        let told = &mut self.pool[packet];
        let (Body::Tcp(segment), Some(origin)) = (&mut told.body, &mut told.origin) else { return };
        let is_of_the_stream = !segment.flags.contains(Flags::SYN) && !segment.flags.contains(Flags::RST);
        if !is_of_the_stream || !make_room(segment, len, mss) {
            return;
        }
        origin.option = Some(number);
        told.header.payload_len = segment.header_len() + len + segment.payload_len;
        self.pool.rewrite(packet);
        self.flows[usize::from(id.0)].end(side).tells -= 1;
        self.trace_advice(node, id, "tell", 1, len.into());
    }

    /// A segment with an option has reached an end.
    #[cold]
    pub(crate) fn hear_option(&mut self, id: FlowId, side: Side, number: OptionRef) {
        let Some(option) = self.senders.as_ref().and_then(|senders| senders.options.get(number.index()))
        else {
            return;
        };
        let option = *option;
        self.hear(id, side, option);
    }

    /// An end is told something, once.
    fn hear(&mut self, id: FlowId, side: Side, told: HandoverOption) {
        let Some(response) = self.senders.as_ref().and_then(|senders| senders.response) else { return };
        let end = self.flows[usize::from(id.0)].end(side);
        if told.handover.wrapping_sub(end.heard) as i8 <= 0 {
            return;
        }
        end.heard = told.handover;
        match told.says {
            Says::Rto { micros, slow_start } => {
                let rto = Advice::SetRto(Duration::from_micros(micros.into()));
                let advice = [Advice::ResetRto { slow_start }, rto];
                self.advise(id, side, if slow_start { &advice } else { &advice[1..] });
            }
            Says::Path { .. } | Says::Moved => {
                if let Some(advice) = response.peers_arrival(told.says.new_path()) {
                    self.advise(id, side, &[advice]);
                }
            }
        }
    }

    /// The mobile node tells a correspondent, by a datagram of its own, that a handover has ended: by its usual way from its home address
    /// (first of the `ends`), or as its agent's messages go.
    fn tell_by_datagram(
        &mut self,
        node: NodeId,
        flow: FlowId,
        [source, destination]: [Locator; 2],
        way: Option<(Option<InterfaceId>, Addresses)>,
    ) {
        let (Some(senders), Some(path)) = (&self.senders, self.told_path(node)) else { return };
        let handover = senders.mobiles.get(&node.0).map_or(0, |teller| teller.handovers);
        let mut body = Vec::new();
        Says::path(&path).emit(&mut body);
        let rest_of_header = [handover, 0, 0, 0];
        let is_ipv6 = matches!(self.node(node).agent, Agent::Ipv6(_));
        let kind = if is_ipv6 { ICMPV6_EXPERIMENT } else { ICMP_EXPERIMENT };
        let message = OtherMessage { kind, code: END_OF_HANDOVER, rest_of_header, body };
        let mut payload = Vec::new();
        if is_ipv6 {
            let ends = [source, destination].map(|end| self.bytes.address_v6(end));
            Icmpv6Message::Other(message).emit(ends[0], ends[1], &mut payload);
        } else {
            IcmpMessage::Other(message).emit(&mut payload);
        }
        let payload_len = payload.len() as u16;
        let header = Header {
            source,
            destination,
            protocol: if is_ipv6 { protocol::ICMPV6 } else { protocol::ICMP },
            ttl: DEFAULT_TTL,
            len: self.ip_header_len,
            identification: self.next_identification(node),
            payload_len,
            dont_fragment: is_ipv6,
            ..Header::default()
        };
        let bytes = header.total_len().into();
        if let Some((interface, addresses)) = way {
            self.trace_advice(node, flow, "tell", 1, bytes);
            let payload = TransmitPayload::Icmp(payload);
            let transmit = Transmit { interface, addresses, hop_limit: DEFAULT_TTL, payload };
            return self.send_for_ipv6_agent(node, transmit);
        }
        let body = Body::Message(payload.into());
        let packet = self.insert(Packet::new(header, body, None));
        self.trace_message(node, packet, true);
        self.trace_advice(node, flow, "tell", 1, bytes);
        self.originate(node, packet, 0);
    }

    /// An ICMP message that is for senders has reached `node`.
    pub(crate) fn hear_message(&mut self, node: NodeId, header: &Header, message: &OtherMessage) {
        if message.kind == ICMP_EXPERIMENT {
            let about = |_: &Plan, quoted: &[u8]| {
                let quoted = QuotedDatagram::parse(quoted).ok()?;
                Some((quoted.header.source.into(), quoted.ports().map(|ports| ports.source_port)))
            };
            self.hear_experiment(node, header, message, about);
        }
    }

    /// The same, of an ICMPv6 message.
    pub(crate) fn hear_icmpv6_message(&mut self, node: NodeId, header: &Header, message: &OtherMessage) {
        if message.kind == ICMPV6_EXPERIMENT {
            let about = |plan: &Plan, quoted: &[u8]| {
                let quoted = QuotedPacket::parse(quoted).ok()?;
                Some((plan.locate(quoted.source.into()), quoted.ports().map(|ports| ports.source_port)))
            };
            self.hear_experiment(node, header, message, about);
        }
    }

    /// What a message of either version says; `about` reads the source of what it quotes, and the port there.
    fn hear_experiment(
        &mut self,
        node: NodeId,
        header: &Header,
        message: &OtherMessage,
        about: impl FnOnce(&Plan, &[u8]) -> Option<(Locator, Option<u16>)>,
    ) {
        if self.senders.is_none() {
            return;
        }
        match message.code {
            BAD_STATE => {
                let Some((source, port)) = about(&self.topology.plan, &message.body) else {
                    self.malformed_messages += 1;
                    return;
                };
                if let Some(port) = port
                    && let Some((id, side)) = self.sender_of((source, port))
                    && self.flows[usize::from(id.0)].ends[side.index()].node == node
                {
                    self.advise(id, side, &[Advice::Rearm]);
                }
            }
            END_OF_HANDOVER => {
                let Some(says) = Says::parse_path(&message.body) else {
                    self.malformed_messages += 1;
                    return;
                };
                let told = HandoverOption { handover: message.rest_of_header[0], says };
                for index in 0..self.flows.len() {
                    let flow = &self.flows[index];
                    let is_meant = |side: &Side| {
                        let (end, peer) = (&flow.ends[side.index()], &flow.ends[side.peer().index()]);
                        flow.opened
                            && end.node == node
                            && end.address == header.destination
                            && peer.address == header.source
                    };
                    if let Some(side) = Side::BOTH.into_iter().find(is_meant) {
                        self.hear(FlowId(index as u16), side, told);
                    }
                }
            }
            _ => {}
        }
    }

    /// An end is told something, and does what it then can.
    fn advise(&mut self, id: FlowId, side: Side, advice: &[Advice]) {
        let now = self.now;
        let end = self.flows[usize::from(id.0)].end(side);
        let state = end.connection.snapshot().state;
        if !state.is_synchronized() || state == State::TimeWait {
            return;
        }
        let node = end.node;
        for one in advice {
            end.connection.advise(now, one);
        }
        self.count_deed_of(id, side, AssistDeed::Advised);
        if let Some(last) = advice.last() {
            self.trace_advice(node, id, name(last), 0, 0);
        }
        self.pump(id, side);
    }

    pub(crate) fn trace_advice(
        &mut self,
        node: NodeId,
        id: FlowId,
        what: &'static str,
        packets: u32,
        bytes: u64,
    ) {
        let response = self.senders.as_ref().and_then(|senders| senders.response);
        let assist = match what {
            "rearm" | "bad-state" => "ebsn",
            _ => response.map_or("ebsn", Response::name),
        };
        self.trace_assist(node, id, AssistRecord { assist, what, packets, bytes });
    }
}

/// Gives senders the estimator of `rto-fast-decrease`, where that is used, within the bounds of the one they had.
pub(crate) fn change_senders(scenario: &mut Scenario, topology: &Topology) {
    let samples = scenario.assists.iter().find_map(|assist| match assist {
        Assist::RtoFastDecrease(decrease) => Some(decrease.samples),
        _ => None,
    });
    let Some(samples) = samples else { return };
    let except = careof_plan::exceptions(scenario, topology);
    for index in 0..scenario.flows.len() {
        let flow = &scenario.flows[index];
        let address = |node: careof_scenario::NodeId| {
            let node = topology.find(&scenario.node(node).name);
            (node, node.map_or(Locator::NOWHERE, |node| topology.address_of(node)))
        };
        let ends = [address(flow.from), address(flow.to)];
        let moves = |(node, _): (Option<NodeId>, Locator)| {
            node.is_some_and(|node| topology.homes.index(node).is_some())
        };
        let mobile = if moves(ends[1]) { Side::Acceptor } else { Side::Opener };
        let id = FlowId(index as u16);
        let key = careof_plan::flow_key(id, mobile, ends.map(|(_, address)| topology.address(address)));
        if except.iter().any(|exception| exception.covers(&key)) {
            continue;
        }
        decrease_fast(&mut scenario.flows[index].tcp.config, samples);
    }
    // A relay has no flows that are excepted.
    for assist in &mut scenario.assists {
        if let Assist::Split(Split { tcp: Some(tcp), .. }) = assist {
            decrease_fast(&mut tcp.config, samples);
        }
    }
}

fn decrease_fast(config: &mut Config, samples: u32) {
    config.rto_initial = Some(config.effective_rto_initial());
    config.rto_min = Some(config.effective_rto_min());
    config.rto_max = Some(config.effective_rto_max());
    config.rto = RtoEstimator::FastDecrease;
    config.rto_evidence = samples;
}

/// Makes room for an option of `len` bytes: SACK blocks give way, data does not.
fn make_room(segment: &mut Segment, len: u16, mss: u32) -> bool {
    let all = segment.sack;
    let mut blocks = all.as_slice().len();
    loop {
        let options = segment.header_len() - Segment::HEADER_LEN + len;
        let sack = segment.header_len() - Segment { sack: SackBlocks::EMPTY, ..*segment }.header_len();
        let fits = u32::from(segment.payload_len) + u32::from(len + sack) <= mss;
        if options <= MOST_OPTIONS && (fits || segment.payload_len == 0) {
            return true;
        }
        if blocks == 0 {
            segment.sack = all;
            return false;
        }
        blocks -= 1;
        segment.sack = SackBlocks::EMPTY;
        for &(left, right) in &all.as_slice()[..blocks] {
            segment.sack.push(left, right);
        }
    }
}

/// The name in traces.
const fn name(advice: &Advice) -> &'static str {
    match advice {
        Advice::ResetRto { .. } => "reset-rto",
        Advice::SetRto(_) => "set-rto",
        Advice::Rearm => "rearm",
        Advice::Away => "away",
        Advice::Back(_) => "back",
        Advice::Moved(_) => "moved",
        Advice::Resume => "resume",
        Advice::Replaced { .. } => "replaced",
        Advice::HandedOff(_) => "handed-off",
        Advice::MeasureBaseRtt => "measure-base-rtt",
    }
}
