//! Base stations that tell senders of a bad state of their link (EBSN, RFC 2757).

use core::time::Duration;
use std::collections::BTreeMap;

use careof_base::Instant;
use careof_link::DropCause;
use careof_mobility::InterfaceId;
use careof_plan::{FlowId, Interface, Locator, NodeId, OneWayId, Route, Topology};
use careof_wire::icmp::{IcmpMessage, OtherMessage, quote_segment};
use careof_wire::icmpv6::{self, Icmpv6Message};
use careof_wire::{Flags, IpHeader, SeqNumber};

use super::{BAD_STATE, ICMP_EXPERIMENT, ICMPV6_EXPERIMENT, Senders};
use crate::agents::Agent;
use crate::drop_cause::Cause;
use crate::header::Header;
use crate::packet::{Body, Packet, PacketRef};
use crate::queue::Slot;
use crate::simulation::{Node, Simulation};

/// Between two messages of a base station about a flow while its link is down: ns-2's least timeout of a base station
/// that sends again itself (`SNOOP_MIN_TIMO`).
pub(super) const PAUSE: Duration = Duration::from_millis(100);
/// How long a base station whose link is down does so; our own choice.
pub(super) const LONGEST: Duration = Duration::from_secs(5);

/// A base station.
pub(super) struct Station {
    slot: Slot,
    /// Links that are down, and until when it cares.
    down: BTreeMap<u16, Instant>,
    /// What passes towards visitors, by flow and sender.
    watched: BTreeMap<(FlowId, usize), Watched>,
}

/// Data towards a visitor.
struct Watched {
    header: Header,
    /// Where the packet itself goes: to the visitor, or over IPv6 to the end of its tunnel.
    towards: Locator,
    ports: (u16, u16),
    seq: SeqNumber,
    /// End of the data that passed, and what was acknowledged of it.
    end: i64,
    acknowledged: i64,
}

impl Station {
    pub(super) const fn new(slot: Slot) -> Self {
        Self { slot, down: BTreeMap::new(), watched: BTreeMap::new() }
    }

    fn next_timeout(&self, now: Instant) -> Option<Instant> {
        self.down.values().any(|until| *until > now).then(|| now + PAUSE)
    }
}

impl Simulation {
    /// Whether mobile nodes come to it: a foreign agent, or over IPv6 an access router.
    pub(super) fn is_base_station(&self, id: NodeId) -> bool {
        match &self.node(id).agent {
            Agent::Foreign(_) => true,
            Agent::Ipv6(_) => careof_plan::is_access_router(&self.topology, id),
            _ => false,
        }
    }

    /// A base station sees a packet pass on its way.
    pub(crate) fn station_sees(&mut self, node: NodeId, packet: PacketRef) {
        let Some(station) = self.senders.as_mut().and_then(|senders| senders.stations.get_mut(&node.0))
        else {
            return;
        };
        let Packet { header, body: Body::Tcp(segment), origin: Some(origin), .. } = &self.pool[packet] else {
            return;
        };
        // Over IPv6 it looks into the tunnel, whose end the visitor is.
        let towards = self.pool[packet].outermost().destination;
        if segment.payload_len > 0
            && visitors_interface(&self.nodes[usize::from(node.0)], &self.topology, towards).is_some()
        {
            let end = origin.seq + i64::from(segment.seq_len());
            let watched =
                station.watched.entry((origin.flow, origin.sender.index())).or_insert_with(|| Watched {
                    header: *header,
                    towards,
                    ports: (segment.source_port, segment.destination_port),
                    seq: segment.seq,
                    end,
                    acknowledged: origin.seq,
                });
            watched.end = watched.end.max(end);
            (watched.header, watched.towards, watched.seq) = (*header, towards, segment.seq);
        }
        if segment.flags.contains(Flags::ACK)
            && let Some(data) = station.watched.get_mut(&(origin.flow, origin.sender.peer().index()))
        {
            data.acknowledged = data.acknowledged.max(origin.ack);
        }
    }

    /// A base station notices what its link does.
    pub(crate) fn station_link(&mut self, node: NodeId, interface: InterfaceId, up: bool) {
        let now = self.now;
        let Some(station) = self.senders.as_mut().and_then(|senders| senders.stations.get_mut(&node.0))
        else {
            return;
        };
        if up {
            station.down.remove(&interface.0);
        } else {
            station.down.insert(interface.0, now + LONGEST);
        }
        let (slot, next) = (station.slot, station.next_timeout(now));
        self.queue.set(slot, next);
        if !up {
            self.tell_of_bad_state(node);
        }
    }

    /// A base station tries again to send what its visitors have not acknowledged.
    pub(crate) fn station_timeout(&mut self, node: NodeId) {
        self.tell_of_bad_state(node);
        let now = self.now;
        if let Some(station) = self.senders.as_ref().and_then(|senders| senders.stations.get(&node.0)) {
            let (slot, next) = (station.slot, station.next_timeout(now));
            self.queue.set(slot, next);
        }
    }

    fn tell_of_bad_state(&mut self, node: NodeId) {
        let now = self.now;
        let Some(station) = self.senders.as_ref().and_then(|senders| senders.stations.get(&node.0)) else {
            return;
        };
        let is_behind = |towards| {
            let interface = visitors_interface(self.node(node), &self.topology, towards);
            interface
                .is_some_and(|interface| station.down.get(&interface.0).is_some_and(|&until| until > now))
        };
        let owed: Vec<_> = station
            .watched
            .values()
            .filter(|data| data.end > data.acknowledged && is_behind(data.towards))
            .map(|data| (data.header, data.ports, data.seq))
            .collect();
        for (header, ports, seq) in owed {
            self.send_bad_state(node, &header, ports, seq);
        }
    }

    /// A link dropped a packet: where that is a base station's own, it knows that a transmission failed.
    #[cold]
    pub(crate) fn transmission_failed(&mut self, way: OneWayId, packet: PacketRef, cause: Cause) {
        let node = self.links[way.0 as usize].from;
        let is_station = self.senders.as_ref().is_some_and(|senders| senders.stations.contains_key(&node.0));
        if !is_station
            || !matches!(cause, Cause::Link(DropCause::Loss | DropCause::RetryLimit | DropCause::LinkDown))
        {
            return;
        }
        let Packet { header, body: Body::Tcp(segment), outer, .. } = &self.pool[packet] else { return };
        if outer.is_some() && !header.is_ipv6() {
            return;
        }
        let (header, segment) = (*header, *segment);
        let visitor = self.links[way.0 as usize].to;
        if segment.payload_len > 0 && self.is_home_address_of(visitor, header.destination) {
            let ports = (segment.source_port, segment.destination_port);
            self.send_bad_state(node, &header, ports, segment.seq);
        }
    }

    /// Explicit bad state notification: an ICMP message to the data's sender that quotes the packet, as an error would.
    fn send_bad_state(&mut self, node: NodeId, quoted: &Header, ports: (u16, u16), seq: SeqNumber) {
        let Some((id, side)) = self.sender_of((quoted.source, ports.0)) else { return };
        let key = self.flow_key(id, side.peer());
        let is_excepted = |senders: &Senders| senders.except.iter().any(|exception| exception.covers(&key));
        if self.senders.as_ref().is_some_and(|senders| is_excepted(senders)) {
            return;
        }
        let (kind, body) = match quoted.to_ip(&self.topology.plan) {
            IpHeader::V4(quoted) => (ICMP_EXPERIMENT, quote_segment(&quoted, ports, seq)),
            IpHeader::V6(quoted) => (ICMPV6_EXPERIMENT, icmpv6::quote_segment(&quoted, ports, seq)),
        };
        let bytes = body.len() as u64 + 8 + u64::from(self.ip_header_len);
        let message = OtherMessage { kind, code: BAD_STATE, rest_of_header: [0; 4], body };
        self.trace_advice(node, id, "bad-state", 1, bytes);
        if quoted.is_ipv6() {
            self.send_icmpv6(node, quoted.source, &Icmpv6Message::Other(message));
        } else {
            self.send_icmp(node, quoted.source, &IcmpMessage::Other(message));
        }
    }
}

/// The interface of a base station by which it sends packets on `towards` one of its visitors; `None` for others.
fn visitors_interface(station: &Node, topology: &Topology, towards: Locator) -> Option<InterfaceId> {
    match &station.agent {
        Agent::Foreign(agent) => agent.deliver(towards.to_ipv4()),
        Agent::Ipv6(_) => {
            let Route::Via(interface) = station.place.route(towards) else { return None };
            let is_behind = |link: &Interface| topology.homes.index(link.peer).is_some();
            let link = station.place.interfaces.get(usize::from(interface.0));
            // Behind the wired interfaces is the cell.
            link.is_none_or(is_behind).then_some(InterfaceId(interface.0))
        }
        _ => None,
    }
}
