//! The mobile host's part of each protocol.

use core::net::Ipv4Addr;
use core::time::Duration;

use careof_base::Instant;
use careof_wire::micro::{Body, MicroMessage, verify_authenticator};

use super::config::{CellularHandover, CellularIp, Scheme, Trigger};
use super::io::{Counters, HostEvent, HostOutbox, HostTransmit, HostWake, MessageDrop};
use super::security::{MobileKey, Stamps};
use crate::deadline::earliest;
use crate::{ConfigError, WallClock};

/// A mobile host.
#[derive(Clone, Debug)]
pub struct HostConfig {
    /// The address that it has in the domain.
    pub address: Ipv4Addr,
    /// The key that it was given there.
    pub key: MobileKey,
    /// Its clock.
    pub clock: WallClock,
    /// The protocol of the domain.
    pub scheme: Scheme,
}

/// A message that a station has to confirm.
#[derive(Clone, Debug)]
struct Pending {
    station: Ipv4Addr,
    timestamp: u64,
    body: Body,
    again: Instant,
}

/// The mobile host's part: what it tells base stations, and when.
///
/// The owner tells it what its link layer does, and of data packets; it drains [`MobileHost::poll_transmit`] and
/// [`MobileHost::poll_event`] after each call and then asks [`MobileHost::next_timeout`].
#[derive(Debug)]
pub struct MobileHost {
    address: Ipv4Addr,
    key: MobileKey,
    scheme: Scheme,
    stamps: Stamps,
    /// Where it is.
    station: Option<Ipv4Addr>,
    /// Where the network has it, as far as it knows.
    known_at: Option<Ipv4Addr>,
    pending: Option<Pending>,
    /// When routes have to be renewed. Packets that are sent put it off, and do not touch it (`renewed`).
    refresh: Option<Instant>,
    /// When they were renewed last.
    renewed: Instant,
    /// Cellular IP: when it becomes idle, no packet coming; `None`: it is idle.
    active_until: Option<Instant>,
    outbox: HostOutbox,
}

impl MobileHost {
    /// A host that is nowhere.
    ///
    /// # Errors
    /// [`ConfigError::NotUnicast`] for an address that no host has.
    pub fn new(config: HostConfig) -> Result<Self, ConfigError> {
        let address = config.address;
        if address.is_unspecified() || address.is_multicast() || address.is_broadcast() {
            return Err(ConfigError::NotUnicast { what: "the mobile node", address: address.into() });
        }
        Ok(Self {
            address,
            key: config.key,
            scheme: config.scheme,
            stamps: Stamps::new(config.clock),
            station: None,
            known_at: None,
            pending: None,
            refresh: None,
            renewed: Instant::ZERO,
            active_until: None,
            outbox: HostOutbox::default(),
        })
    }

    /// The link layer is at `station` now, and may still be at another.
    pub fn attached(&mut self, now: Instant, station: Ipv4Addr) {
        self.outbox.called_at(now);
        let before = self.known_at;
        (self.station, self.known_at) = (Some(station), Some(station));
        match (self.scheme, before) {
            (Scheme::Blocks(_), _) => self.ask(now, station, Body::Attach),
            (Scheme::Multicast(_), _) => self.ask(now, station, Body::Report),
            (Scheme::Hawaii(hawaii), Some(old)) if old != station => {
                self.ask(now, station, Body::PathSetupUpdate { scheme: hawaii.scheme, old });
            }
            (Scheme::Hawaii(_), _) => self.ask(now, station, Body::PathSetupPowerUp),
            (Scheme::CellularIp(_), _) => self.update_cellular(now),
        }
        self.plan_refresh(now);
    }

    /// The link layer is no longer at `station`.
    pub fn detached(&mut self, now: Instant, station: Ipv4Addr) {
        self.outbox.called_at(now);
        if self.station == Some(station) {
            (self.station, self.pending, self.refresh) = (None, None, None);
        }
    }

    /// The host is about to go from where it is to one of `next`, the likeliest first; [`Scheme::lead`] says how long before. Does nothing
    /// where the protocol has no use for it.
    pub fn announce(&mut self, now: Instant, next: &[Ipv4Addr]) {
        self.outbox.called_at(now);
        let (Some(station), Some(likeliest)) = (self.station, next.first().copied()) else { return };
        match self.scheme {
            Scheme::Blocks(blocks) if blocks.trigger != Trigger::None => {
                self.send(now, station, Body::Announce { next: next.to_vec() });
            }
            Scheme::Multicast(multicast) if multicast.trigger != Trigger::None => {
                self.send(now, station, Body::Announce { next: next.to_vec() });
            }
            Scheme::CellularIp(CellularIp { handover: CellularHandover::SemiSoft { .. }, .. })
                if self.is_active(now) =>
            {
                self.send(now, likeliest, Body::RouteUpdate { semi_soft: true });
                // Until the host has moved, an update through the old station would be newer and undo it.
                self.renewed = now;
            }
            _ => {}
        }
    }

    /// The host leaves the domain, and says so: Cellular IP's paging-teardown packet. Other protocols let its routes run out.
    pub fn leave(&mut self, now: Instant) {
        self.outbox.called_at(now);
        if let (Scheme::CellularIp(_), Some(station)) = (self.scheme, self.station) {
            self.send(now, station, Body::PagingTeardown);
        }
        (self.station, self.known_at, self.pending, self.refresh, self.active_until) =
            (None, None, None, None, None);
    }

    /// A data packet comes from the host. Under Cellular IP an idle host becomes active by it, and routes are renewed by it.
    pub fn note_sent(&mut self, now: Instant) {
        self.outbox.called_at(now);
        if let Scheme::CellularIp(_) = self.scheme {
            self.become_active(now);
            self.renewed = now;
        }
    }

    /// A data packet has come to the host. Under Cellular IP an idle host becomes active by it.
    pub fn note_received(&mut self, now: Instant) {
        self.outbox.called_at(now);
        if let Scheme::CellularIp(_) = self.scheme {
            self.become_active(now);
        }
    }

    fn become_active(&mut self, now: Instant) {
        let Scheme::CellularIp(cellular) = self.scheme else { return };
        let was_active = self.is_active(now);
        self.active_until = Some(now + cellular.active_state_timeout);
        if !was_active {
            self.outbox.event(HostEvent::Active(true));
            self.update_cellular(now);
            self.plan_refresh(now);
        }
    }

    /// Whether packets to the host go straight to it: always, but for an idle host of Cellular IP.
    #[must_use]
    pub fn is_active(&self, now: Instant) -> bool {
        match self.scheme {
            Scheme::CellularIp(_) => self.active_until.is_some_and(|until| now < until),
            _ => true,
        }
    }

    /// Cellular IP: tells the station where the host is; an active one for its Route Cache, an idle one for its Paging Cache.
    fn update_cellular(&mut self, now: Instant) {
        let Some(station) = self.station else { return };
        let is_active = self.is_active(now);
        let body = if is_active { Body::RouteUpdate { semi_soft: false } } else { Body::PagingUpdate };
        self.send(now, station, body);
        self.renewed = now;
    }

    fn refresh_interval(&self, now: Instant) -> Duration {
        match self.scheme {
            Scheme::Blocks(blocks) => blocks.refresh_interval,
            Scheme::Hawaii(hawaii) => hawaii.refresh_interval,
            Scheme::Multicast(multicast) => multicast.report_interval,
            Scheme::CellularIp(cellular) if self.is_active(now) => cellular.route_update_time,
            Scheme::CellularIp(cellular) => cellular.paging_update_time,
        }
    }

    fn plan_refresh(&mut self, now: Instant) {
        self.refresh = self.station.map(|_| now + self.refresh_interval(now));
    }

    /// Sends a message, and again until the station confirms it.
    fn ask(&mut self, now: Instant, station: Ipv4Addr, body: Body) {
        let interval = match self.scheme {
            Scheme::Blocks(blocks) => blocks.retransmit_interval,
            Scheme::Hawaii(hawaii) => hawaii.retransmit_interval,
            Scheme::Multicast(multicast) => multicast.retransmit_interval,
            Scheme::CellularIp(cellular) => cellular.route_update_time,
        };
        let timestamp = self.send(now, station, body.clone());
        self.pending = Some(Pending { station, timestamp, body, again: now + interval });
    }

    /// Sends a message; its timestamp.
    fn send(&mut self, now: Instant, station: Ipv4Addr, body: Body) -> u64 {
        let timestamp = self.stamps.next(now);
        let message = MicroMessage { mobile: self.address, station, origin: self.address, timestamp, body };
        let payload = self.key.sign(&message);
        self.outbox.transmit(HostTransmit { station, payload });
        timestamp
    }

    /// Takes in the UDP payload of a message from `station`.
    pub fn handle_message(&mut self, now: Instant, station: Ipv4Addr, payload: &[u8]) {
        self.outbox.called_at(now);
        self.outbox.count_received();
        match self.check(station, payload) {
            Ok(()) => {
                self.pending = None;
                self.outbox.event(HostEvent::Confirmed { station });
            }
            Err(reason) => self.outbox.drop(reason, station),
        }
    }

    /// Whether it confirms what is pending.
    fn check(&self, station: Ipv4Addr, payload: &[u8]) -> Result<(), MessageDrop> {
        let message = MicroMessage::parse(payload).map_err(|_| MessageDrop::Malformed)?;
        if message.body != Body::Confirm || message.mobile != self.address {
            return Err(MessageDrop::NotForUs);
        }
        if message.station != station || message.origin != station {
            return Err(MessageDrop::WrongStation);
        }
        if !verify_authenticator(payload, self.key.bytes()) {
            return Err(MessageDrop::BadAuthenticator);
        }
        let is_pending =
            |pending: &Pending| pending.station == station && pending.timestamp == message.timestamp;
        if self.pending.as_ref().is_some_and(is_pending) { Ok(()) } else { Err(MessageDrop::Unexpected) }
    }

    /// The next message to send.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<HostTransmit> {
        self.outbox.poll_transmit(now)
    }

    /// The next thing to know.
    pub fn poll_event(&mut self) -> Option<HostEvent> {
        self.outbox.poll_event()
    }

    /// When to call [`MobileHost::handle_timeout`], and what for.
    #[must_use]
    pub fn next_timeout(&self) -> Option<(Instant, HostWake)> {
        let again = self.pending.as_ref().map(|pending| (pending.again, HostWake::Retransmit));
        let refresh = self.refresh.map(|at| (at, HostWake::Refresh));
        let idle = self.active_until.map(|at| (at, HostWake::Idle));
        earliest(earliest(again, refresh), idle)
    }

    /// Does what is due by `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.outbox.called_at(now);
        if self.active_until.is_some_and(|until| until <= now) {
            self.active_until = None;
            self.outbox.event(HostEvent::Active(false));
            // The network looks for it in its Paging Caches from now on.
            self.update_cellular(now);
            self.plan_refresh(now);
        }
        if self.refresh.is_some_and(|at| at <= now) {
            self.renew(now);
        }
        if let Some(pending) = self.pending.take_if(|pending| pending.again <= now) {
            self.ask(now, pending.station, pending.body);
        }
    }

    fn renew(&mut self, now: Instant) {
        let Some(station) = self.station else { return self.refresh = None };
        match self.scheme {
            // What is pending is repeated anyway.
            _ if self.pending.is_some() => {}
            Scheme::Blocks(_) => self.ask(now, station, Body::Attach),
            Scheme::Multicast(_) => self.ask(now, station, Body::Report),
            Scheme::Hawaii(_) => self.ask(now, station, Body::PathSetupPowerUp),
            Scheme::CellularIp(_) => {
                let at = self.renewed + self.refresh_interval(now);
                if now < at {
                    return self.refresh = Some(at);
                }
                self.update_cellular(now);
            }
        }
        self.plan_refresh(now);
    }

    /// What was received, sent and dropped.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.outbox.counters
    }
}

#[cfg(test)]
mod tests {
    use super::super::config::Blocks;
    use super::super::security::NetworkKey;
    use super::*;

    const STATION: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 3);
    const OTHER: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 4);
    const HOST: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 1);

    fn key() -> MobileKey {
        NetworkKey::new(*b"network").unwrap().mobile_key(HOST)
    }

    fn host() -> MobileHost {
        let scheme = Scheme::Blocks(Blocks::default());
        let config = HostConfig { address: HOST, key: key(), clock: WallClock::default(), scheme };
        MobileHost::new(config).unwrap()
    }

    fn sent(host: &mut MobileHost, now: Instant) -> MicroMessage {
        let transmit = host.poll_transmit(now).expect("a message");
        assert_eq!((transmit.station, host.poll_transmit(now)), (STATION, None));
        MicroMessage::parse(&transmit.payload).unwrap()
    }

    fn confirmation(timestamp: u64) -> MicroMessage {
        MicroMessage { mobile: HOST, station: STATION, origin: STATION, timestamp, body: Body::Confirm }
    }

    #[test]
    fn a_message_is_repeated_with_a_later_timestamp_until_it_is_confirmed() {
        let mut host = host();
        host.attached(Instant::ZERO, STATION);
        let first = sent(&mut host, Instant::ZERO);
        let (again, wake) = host.next_timeout().unwrap();
        assert_eq!((again, wake), (Instant::from_secs(1), HostWake::Retransmit));
        host.handle_timeout(again);
        let second = sent(&mut host, again);
        assert!(second.timestamp > first.timestamp && second.body == first.body);
        host.handle_message(again, STATION, &key().sign(&confirmation(second.timestamp)));
        assert_eq!(host.poll_event(), Some(HostEvent::Confirmed { station: STATION }));
        assert_eq!(host.next_timeout(), Some((Instant::from_secs(3), HostWake::Refresh)));
    }

    #[test]
    fn what_does_not_confirm_the_latest_message_is_counted_and_changes_nothing() {
        let mut host = host();
        let now = Instant::ZERO;
        host.attached(now, STATION);
        let message = confirmation(sent(&mut host, now).timestamp);
        let another = MicroMessage { timestamp: message.timestamp + 1, ..message.clone() };
        let other = MicroMessage { mobile: OTHER, ..message.clone() };
        for (station, payload, reason) in [
            (STATION, key().sign(&message)[1..].to_vec(), MessageDrop::Malformed),
            (STATION, message.emit(b"guess"), MessageDrop::BadAuthenticator),
            (STATION, key().sign(&another), MessageDrop::Unexpected),
            (STATION, key().sign(&other), MessageDrop::NotForUs),
            (OTHER, key().sign(&message), MessageDrop::WrongStation),
        ] {
            host.handle_message(now, station, &payload);
            assert_eq!(host.counters().messages_dropped(reason), 1, "{reason:?}");
            assert_eq!(host.poll_event(), Some(HostEvent::Dropped { reason, source: station }));
        }
        host.handle_message(now, STATION, &key().sign(&message));
        host.handle_message(now, STATION, &key().sign(&message));
        assert_eq!(
            host.counters().messages_dropped(MessageDrop::Unexpected),
            2,
            "a confirmation counts once"
        );
    }

    #[test]
    fn a_host_that_has_left_sends_nothing() {
        let mut host = host();
        host.attached(Instant::ZERO, STATION);
        let _first = sent(&mut host, Instant::ZERO);
        host.detached(Instant::ZERO, OTHER);
        assert!(host.next_timeout().is_some(), "it has not left this one");
        host.detached(Instant::ZERO, STATION);
        host.announce(Instant::ZERO, &[OTHER]);
        assert_eq!((host.next_timeout(), host.poll_transmit(Instant::ZERO)), (None, None));
    }

    #[test]
    fn an_address_that_no_host_has_is_refused() {
        let config = HostConfig {
            address: Ipv4Addr::BROADCAST,
            key: key(),
            clock: WallClock::default(),
            scheme: Scheme::Blocks(Blocks::default()),
        };
        assert!(matches!(MobileHost::new(config), Err(ConfigError::NotUnicast { .. })));
    }
}
