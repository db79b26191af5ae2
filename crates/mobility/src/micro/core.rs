//! What a router does whatever the protocol: it knows its links, admits messages and hands out others.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::net::Ipv4Addr;

use careof_base::Instant;
use careof_wire::micro::{Body, MicroMessage, verify_authenticator};

use super::Ports;
use super::candidates::candidates;
use super::config::{Role, RouterConfig, Trigger};
use super::io::{Event, Forward, MessageDrop, Outbox, PacketDrop, Transmit};
use super::security::{Freshness, NetworkKey, Stamps};
use crate::v4::Prefix;
use crate::{Change, InterfaceId};

/// Who makes a type of message, and so who signs it and where it may come from.
enum Maker {
    /// A mobile node: from the direction of the station that the message names.
    Mobile,
    /// A station: from its direction.
    Station,
    /// The neighbour below.
    Neighbour,
    /// Nobody who sends it to a router.
    Nobody,
}

const fn maker(body: &Body) -> Maker {
    match body {
        Body::Attach
        | Body::Announce { .. }
        | Body::RouteUpdate { .. }
        | Body::PagingUpdate
        | Body::PagingTeardown
        | Body::PathSetupPowerUp
        | Body::PathSetupUpdate { .. }
        | Body::Report => Maker::Mobile,
        Body::Expect { .. } | Body::PathSetupReturn { .. } => Maker::Station,
        Body::PathRefresh { .. } | Body::Join | Body::Prune => Maker::Neighbour,
        Body::Confirm => Maker::Nobody,
    }
}

/// A message that was admitted, and how it came.
pub(super) struct Received<'a> {
    pub(super) from: InterfaceId,
    /// The source address of its IP header.
    pub(super) source: Ipv4Addr,
    pub(super) message: MicroMessage,
    /// As it came: what goes on hop by hop goes on unchanged.
    pub(super) payload: &'a [u8],
}

/// Links, keys and what was not polled yet.
#[derive(Debug)]
pub(super) struct Core {
    pub(super) address: Ipv4Addr,
    role: Role,
    /// Towards the gateway, or out of the domain.
    uplink: Option<InterfaceId>,
    pub(super) below: Ports,
    pub(super) cell: Option<InterfaceId>,
    pub(super) neighbors: Vec<Ipv4Addr>,
    pub(super) domain: Prefix,
    stations: BTreeMap<Ipv4Addr, InterfaceId>,
    key: NetworkKey,
    freshness: Freshness,
    stamps: Stamps,
    pub(super) outbox: Outbox,
}

impl Core {
    pub(super) fn new(config: RouterConfig) -> Self {
        let RouterConfig { limits, clock, .. } = config;
        let stations = config
            .downlinks
            .iter()
            .flat_map(|downlink| downlink.stations.iter().map(|station| (*station, downlink.interface)));
        // Messages about a mobile node come from itself and, of those that routers make, by few ways at a time.
        let authors = limits.mobiles.saturating_mul(4);
        Self {
            address: config.address,
            role: config.role,
            uplink: config.uplink,
            below: config.downlinks.iter().map(|downlink| downlink.interface).collect(),
            cell: config.cell,
            domain: config.domain,
            stations: stations.chain(config.cell.map(|cell| (config.address, cell))).collect(),
            key: config.key,
            freshness: Freshness::new(clock, limits.window, limits.messages, authors),
            stamps: Stamps::new(clock),
            neighbors: config.neighbors,
            outbox: Outbox::default(),
        }
    }

    /// Towards the gateway; `None`: this is the gateway.
    pub(super) fn up(&self) -> Option<InterfaceId> {
        self.uplink.filter(|_| self.role != Role::Gateway)
    }

    /// Whether an interface is the one towards the gateway.
    pub(super) fn is_up(&self, interface: InterfaceId) -> bool {
        self.up() == Some(interface)
    }

    pub(super) fn is_cell(&self, interface: InterfaceId) -> bool {
        self.cell == Some(interface)
    }

    pub(super) fn cell_port(&self) -> Ports {
        self.cell.map_or(Ports::NONE, Ports::one)
    }

    /// The way to a station: the cell for the router's own, up for those it does not know. `None`: the gateway knows all there are.
    pub(super) fn direction(&self, station: Ipv4Addr) -> Option<InterfaceId> {
        self.stations.get(&station).copied().or_else(|| self.up())
    }

    /// The ways to these stations that a message about them has not come by.
    pub(super) fn directions(&self, stations: &[Ipv4Addr], from: InterfaceId) -> Ports {
        let ports: Ports = stations.iter().filter_map(|station| self.direction(*station)).collect();
        ports.without(Ports::one(from))
    }

    /// The candidates of a mobile node in the cell that says that it will go to one of `next`, and the message that has them expect it.
    /// `serves` is whether this station serves it.
    pub(super) fn announced(
        &mut self,
        now: Instant,
        received: &Received<'_>,
        trigger: Trigger,
        next: &[Ipv4Addr],
        serves: bool,
    ) -> Result<(Vec<Ipv4Addr>, Vec<u8>), MessageDrop> {
        if trigger == Trigger::None || !self.is_cell(received.from) {
            return Err(MessageDrop::NotForUs);
        }
        if !serves {
            return Err(MessageDrop::NotServing);
        }
        let candidates = candidates(trigger, self.address, &self.neighbors, next);
        if candidates.is_empty() {
            return Err(MessageDrop::WrongStation);
        }
        let body = Body::Expect { candidates: candidates.clone() };
        let payload = self.make(now, received.message.mobile, self.address, body);
        Ok((candidates, payload))
    }

    /// What becomes of a packet that no host route is for; `None`: it is for a mobile node of the domain, and host routes say.
    pub(super) fn out_of_domain(&self, from: InterfaceId, destination: Ipv4Addr) -> Option<Forward> {
        if self.domain.contains(destination) {
            return None;
        }
        Some(match self.uplink {
            Some(uplink) if uplink != from => Forward::To(Ports::one(uplink)),
            Some(_) => Forward::Drop(PacketDrop::NotOfDomain),
            None => Forward::Drop(PacketDrop::NoRoute),
        })
    }

    /// What becomes of a packet for a mobile node that these ports lead to. It does not go back to where it came from: where there is no
    /// other way, it goes up, so that in a tree it finds the next router that knows another.
    pub(super) fn forward(&self, from: InterfaceId, ports: Ports) -> Forward {
        let ports = ports.without(Ports::one(from));
        if !ports.is_empty() {
            return Forward::To(ports);
        }
        match self.up() {
            Some(up) if up != from => Forward::To(Ports::one(up)),
            _ => Forward::Drop(PacketDrop::NoRoute),
        }
    }

    /// Reads a message and checks who made it, by which way it came and that it is no replay. What is not right is counted.
    pub(super) fn admit<'a>(
        &mut self,
        now: Instant,
        from: InterfaceId,
        source: Ipv4Addr,
        payload: &'a [u8],
    ) -> Option<Received<'a>> {
        self.outbox.count_received();
        match self.check(now, from, source, payload) {
            Ok(message) => Some(Received { from, source, message, payload }),
            Err(reason) => {
                self.outbox.drop(reason, source);
                None
            }
        }
    }

    fn check(
        &mut self,
        now: Instant,
        from: InterfaceId,
        source: Ipv4Addr,
        payload: &[u8],
    ) -> Result<MicroMessage, MessageDrop> {
        let is_cell = self.is_cell(from);
        if !is_cell && !self.is_up(from) && !self.below.contains(from) {
            return Err(MessageDrop::WrongInterface);
        }
        let message = MicroMessage::parse(payload).map_err(|_| MessageDrop::Malformed)?;
        let MicroMessage { mobile, station, origin, .. } = message;
        if !matches!(message.body, Body::PathRefresh { .. }) && !self.domain.contains(mobile) {
            return Err(MessageDrop::NotOfDomain);
        }
        let came_from = |station| self.direction(station) == Some(from);
        let (is_right_way, is_signed) = match maker(&message.body) {
            Maker::Mobile => {
                if origin != mobile || is_cell && source != mobile {
                    return Err(MessageDrop::WrongSource);
                }
                let key = self.key.mobile_key(mobile);
                (came_from(station), verify_authenticator(payload, key.bytes()))
            }
            _ if is_cell => return Err(MessageDrop::WrongInterface),
            Maker::Station => (came_from(origin), verify_authenticator(payload, self.key.bytes())),
            Maker::Neighbour if self.below.contains(from) => {
                (true, verify_authenticator(payload, self.key.bytes()))
            }
            Maker::Neighbour => return Err(MessageDrop::WrongInterface),
            Maker::Nobody => return Err(MessageDrop::NotForUs),
        };
        if !is_right_way {
            return Err(MessageDrop::WrongStation);
        }
        if !is_signed {
            return Err(MessageDrop::BadAuthenticator);
        }
        self.freshness.check(now, (origin, mobile), message.timestamp, is_cell)?;
        Ok(message)
    }

    /// Counts an admitted message that had no effect.
    pub(super) fn refuse(&mut self, received: &Received<'_>, reason: MessageDrop) {
        self.outbox.drop(reason, received.source);
    }

    /// Sends a message to the routers at the other ends of these links.
    pub(super) fn send(&mut self, ports: Ports, payload: &[u8]) {
        for interface in ports.without(self.cell_port()).iter() {
            self.outbox.transmit(Transmit { interface, mobile: None, payload: payload.to_vec() });
        }
    }

    /// Sends a message towards the gateway, unless this is it.
    pub(super) fn send_up(&mut self, payload: &[u8]) {
        self.send(self.up().map_or(Ports::NONE, Ports::one), payload);
    }

    /// A message of this router's own about `mobile`.
    pub(super) fn make(&mut self, now: Instant, mobile: Ipv4Addr, station: Ipv4Addr, body: Body) -> Vec<u8> {
        let timestamp = self.stamps.next(now);
        let message = MicroMessage { mobile, station, origin: self.address, timestamp, body };
        message.emit(self.key.bytes())
    }

    /// Tells the mobile node in the cell that its message with this timestamp was accepted.
    pub(super) fn confirm(&mut self, mobile: Ipv4Addr, timestamp: u64) {
        let Some(interface) = self.cell else { return };
        let station = self.address;
        let message = MicroMessage { mobile, station, origin: station, timestamp, body: Body::Confirm };
        let payload = self.key.mobile_key(mobile).sign(&message);
        self.outbox.transmit(Transmit { interface, mobile: Some(mobile), payload });
    }

    pub(super) fn route_event(&mut self, mobile: Ipv4Addr, ports: Ports, change: Change) {
        self.outbox.event(Event::RouteChanged { mobile, ports, change });
    }

    /// Tells of a route that led to `before` and leads to `after`, if that is news.
    pub(super) fn route_set(&mut self, mobile: Ipv4Addr, before: Option<Ports>, after: Ports) {
        match before {
            None => self.route_event(mobile, after, Change::Created),
            Some(before) if before != after => self.route_event(mobile, after, Change::Updated),
            Some(_) => {}
        }
    }

    /// How many authors of messages are remembered.
    pub(super) fn authors(&self) -> usize {
        self.freshness.len()
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.freshness.deadline()
    }

    pub(super) fn expire(&mut self, now: Instant) {
        self.freshness.expire(now);
    }
}
