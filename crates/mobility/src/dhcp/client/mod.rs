//! The client (RFC 2131 section 4.4; address conflict detection: RFC 5227 section 2.1).
//!
//! Left out: choosing between offers (the first one is taken), Rapid Commit (RFC 4039), DHCPINFORM, the defence of an
//! address in use (RFC 5227 section 2.4), and the random deviation of T1 and T2. An address that no server answers for when
//! the link comes back is looked for anew instead of used unasked (RFC 2131 section 3.2 leaves the choice): the link may
//! be another one.

mod config;
mod event;
mod lease;

use core::net::Ipv4Addr;
use core::time::Duration;

use careof_base::{Instant, RandomStream};
use careof_wire::dhcp::{CLIENT_PORT, DhcpMessage, HardwareAddress, MessageType, SERVER_PORT, code};

pub use config::{ClientConfig, ConflictCheck, Retransmission, StartDelay};
pub use event::{ArpPacket, ClientEvent, LossCause, State};
pub use lease::Lease;

use super::{ConfigError, Counters, Datagram, DropReason, Wake};
use crate::outbox::Outbox;
use crate::v4::{Transmit, TransmitPayload, is_unicast};

/// What an extension of a lease is asked for again after, at least (RFC 2131 section 4.4.5).
const LEAST_RENEWAL_INTERVAL: Duration = Duration::from_secs(60);
/// From the first announcement to the second: `ANNOUNCE_INTERVAL` (RFC 5227 section 1.1).
const ANNOUNCE_INTERVAL: Duration = Duration::from_secs(2);
const TTL: u8 = 64;
/// What is asked of a server beyond what it must tell.
const PARAMETERS: [u8; 4] = [code::SUBNET_MASK, code::ROUTER, code::RENEWAL_TIME, code::REBINDING_TIME];

/// An address that is being looked at for others that use it.
#[derive(Clone, Copy, Debug)]
struct Check {
    config: ConflictCheck,
    address: Ipv4Addr,
    sent: u32,
    next: Instant,
}

/// Asks for an address on one interface, and keeps it.
///
/// A sans-IO state machine. After any call of a `handle_*` method or of [`DhcpClient::release`] the owner polls
/// [`DhcpClient::poll_transmit`] and [`DhcpClient::poll_event`] until they return `None`, and then asks
/// [`DhcpClient::next_timeout`] when to call [`DhcpClient::handle_timeout`]. Time never goes backwards.
///
/// The address may be used from [`ClientEvent::Bound`] to [`ClientEvent::Lost`].
#[derive(Debug)]
pub struct DhcpClient {
    config: ClientConfig,
    random: RandomStream,
    state: State,
    link_up: bool,
    /// Since when an address has been looked for.
    began: Instant,
    /// Of the exchange under way.
    xid: u32,
    secs: u16,
    /// Messages sent in this state.
    sent: u32,
    /// Starts since the last address that failed.
    failures: u32,
    /// When to start, or to send again.
    timer: Option<Instant>,
    /// The address asked for, and whose offer it is.
    wanted: Option<(Ipv4Addr, Option<Ipv4Addr>)>,
    /// When the request under way was first sent.
    requested: Instant,
    /// Granted: in use, being checked, or remembered while there is no link.
    lease: Option<Lease>,
    check: Option<Check>,
    announcement: Option<Instant>,
    outbox: Outbox<Transmit, ClientEvent, Counters>,
}

impl DhcpClient {
    /// A client without an address, whose link is down.
    ///
    /// # Errors
    /// What is wrong with the configuration.
    pub fn new(config: ClientConfig, random: RandomStream) -> Result<Self, ConfigError> {
        config.check()?;
        Ok(Self {
            config,
            random,
            state: State::Init,
            link_up: false,
            began: Instant::ZERO,
            xid: 0,
            secs: 0,
            sent: 0,
            failures: 0,
            timer: None,
            wanted: None,
            requested: Instant::ZERO,
            lease: None,
            check: None,
            announcement: None,
            outbox: Outbox::default(),
        })
    }

    /// The state.
    #[must_use]
    pub const fn state(&self) -> State {
        self.state
    }

    /// What is granted and may be used.
    #[must_use]
    pub fn lease(&self) -> Option<&Lease> {
        self.lease.as_ref().filter(|_| self.is_bound())
    }

    /// What was received, sent and dropped.
    #[must_use]
    pub const fn counters(&self) -> &Counters {
        &self.outbox.counters
    }

    /// The next packet to send.
    pub fn poll_transmit(&mut self) -> Option<Transmit> {
        self.outbox.pop_transmit()
    }

    /// The next thing to know.
    pub fn poll_event(&mut self) -> Option<ClientEvent> {
        self.outbox.poll_event()
    }

    const fn is_bound(&self) -> bool {
        matches!(self.state, State::Bound | State::Renewing | State::Rebinding)
    }

    /// When to call [`DhcpClient::handle_timeout`], and what for.
    #[must_use]
    pub fn next_timeout(&self) -> Option<(Instant, Wake)> {
        if !self.link_up {
            return None;
        }
        let timer = if self.state == State::Init { Wake::Start } else { Wake::Retransmit };
        let lease = self.lease.filter(|_| self.is_bound() || self.state == State::Checking);
        let at = |state, at: fn(&Lease) -> Instant| {
            lease.as_ref().filter(|_| self.state == state).map(at).filter(|&at| at < Instant::MAX)
        };
        let deadlines = [
            (lease.map(|lease| lease.expires).filter(|&at| at < Instant::MAX), Wake::LeaseExpiry),
            (at(State::Bound, |lease| lease.renew_at), Wake::Renewal),
            (at(State::Renewing, |lease| lease.rebind_at), Wake::Rebinding),
            (self.timer, timer),
            (self.check.map(|check| check.next), Wake::ConflictCheck),
            (self.announcement, Wake::Announcement),
        ];
        let deadlines = deadlines.into_iter().filter_map(|(at, wake)| Some((at?, wake)));
        deadlines.min_by_key(|&(at, _)| at)
    }

    /// Does what is due by `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.outbox.called_at(now);
        // Each wake leads on to a later one, or to another state.
        while let Some((_, wake)) = self.next_timeout().filter(|&(at, _)| at <= now) {
            match wake {
                Wake::LeaseExpiry => self.lose(now, LossCause::Expired),
                Wake::Renewal => self.extend(now, State::Renewing),
                Wake::Rebinding => self.extend(now, State::Rebinding),
                Wake::ConflictCheck => self.check_on(now),
                Wake::Announcement => {
                    self.announcement = None;
                    self.announce();
                }
                Wake::Start | Wake::Retransmit | Wake::ReplyDue => self.timer_ran_out(now),
            }
        }
    }

    fn timer_ran_out(&mut self, now: Instant) {
        self.timer = None;
        match self.state {
            State::Init => {
                self.enter(State::Selecting);
                self.begin_exchange(now);
                self.discover(now);
            }
            State::Selecting => self.discover(now),
            State::Requesting | State::Rebooting if self.sent >= self.config.retransmission.requests => {
                self.lease = None;
                self.start_again(now, Duration::ZERO);
            }
            State::Requesting | State::Rebooting => self.request(now),
            State::Renewing | State::Rebinding => self.request_extension(now),
            State::Checking | State::Bound | State::InitReboot => {}
        }
    }

    /// The link layer says whether the interface can carry packets.
    pub fn handle_link(&mut self, now: Instant, up: bool) {
        self.outbox.called_at(now);
        if self.link_up == up {
            return;
        }
        self.link_up = up;
        if !up {
            if let Some(lease) = self.lease().copied() {
                self.lost(lease.address, LossCause::LinkDown);
            }
            self.rest();
            let state = if self.lease.is_some() { State::InitReboot } else { State::Init };
            return self.enter(state);
        }
        self.began = now;
        self.failures = 0;
        match self.lease.filter(|lease| lease.expires > now) {
            Some(lease) => {
                self.wanted = Some((lease.address, None));
                self.enter(State::Rebooting);
                self.begin_exchange(now);
                self.request(now);
            }
            None => {
                self.lease = None;
                self.start(now, Duration::ZERO);
            }
        }
    }

    /// Gives the address back (RFC 2131 section 4.4.6), and does nothing more until the link has been down and up again.
    pub fn release(&mut self, now: Instant) {
        self.outbox.called_at(now);
        if let Some(lease) = self.lease().copied() {
            self.begin_exchange(now);
            let message = DhcpMessage {
                ciaddr: lease.address,
                server_identifier: Some(lease.server),
                ..self.message(MessageType::Release)
            };
            self.send(lease.address, lease.server, &message);
            self.lost(lease.address, LossCause::Released);
        }
        self.lease = None;
        self.rest();
        self.enter(State::Init);
    }

    /// A datagram has come in by the client's interface.
    pub fn handle_datagram(&mut self, now: Instant, datagram: Datagram<'_>) {
        self.outbox.called_at(now);
        self.outbox.count_received();
        if let Err(reason) = self.handle_message(now, datagram) {
            self.outbox.counters.count_drop(reason);
            self.outbox.event(ClientEvent::Dropped { reason, source: datagram.source });
        }
    }

    fn handle_message(&mut self, now: Instant, datagram: Datagram<'_>) -> Result<(), DropReason> {
        if datagram.destination_port != CLIENT_PORT {
            return Err(DropReason::NotForUs);
        }
        let message = DhcpMessage::parse(datagram.payload).map_err(|_| DropReason::Malformed)?;
        if !message.kind.is_reply() {
            return Err(DropReason::NotForUs);
        }
        if message.xid != self.xid || message.chaddr != self.config.hardware {
            return Err(DropReason::WrongTransaction);
        }
        let server = message.server_identifier.ok_or(DropReason::Incomplete)?;
        match (self.state, message.kind) {
            (State::Selecting, MessageType::Offer) => self.handle_offer(now, &message, server),
            (State::Requesting | State::Rebooting, MessageType::Ack) => {
                self.handle_grant(now, &message, server)
            }
            (State::Renewing | State::Rebinding, MessageType::Ack) => self.handle_extension(&message, server),
            (State::Requesting | State::Rebooting | State::Renewing | State::Rebinding, MessageType::Nak) => {
                self.handle_nak(now, server)
            }
            _ => Err(DropReason::Unexpected),
        }
    }

    fn handle_offer(
        &mut self,
        now: Instant,
        offer: &DhcpMessage,
        server: Ipv4Addr,
    ) -> Result<(), DropReason> {
        offer.lease_time.ok_or(DropReason::Incomplete)?;
        if !is_unicast(offer.yiaddr) {
            return Err(DropReason::BadAddress);
        }
        self.wanted = Some((offer.yiaddr, Some(server)));
        self.enter(State::Requesting);
        self.request(now);
        Ok(())
    }

    /// What the ACK of an exchange grants, if it is what was asked for.
    fn granted(&self, ack: &DhcpMessage, server: Ipv4Addr) -> Result<Lease, DropReason> {
        let lease_time = ack.lease_time.ok_or(DropReason::Incomplete)?;
        let (address, from) = self.wanted.ok_or(DropReason::Unexpected)?;
        if from.is_some_and(|from| from != server) {
            return Err(DropReason::OtherServer);
        }
        if ack.yiaddr != address || lease_time.as_secs() == 0 {
            return Err(DropReason::BadAddress);
        }
        Ok(Lease::new(self.requested, ack, server, lease_time))
    }

    fn handle_grant(&mut self, now: Instant, ack: &DhcpMessage, server: Ipv4Addr) -> Result<(), DropReason> {
        let lease = self.granted(ack, server)?;
        self.lease = Some(lease);
        self.timer = None;
        self.check = self.config.conflict_check.map(|config| Check {
            config,
            address: lease.address,
            sent: 0,
            next: config.next(now, 0, &mut self.random),
        });
        match self.config.conflict_check {
            Some(check) if !check.in_background => self.enter(State::Checking),
            _ => self.bind(now),
        }
        Ok(())
    }

    fn bind(&mut self, now: Instant) {
        let Some(lease) = self.lease else { return };
        self.failures = 0;
        self.enter(State::Bound);
        self.outbox.event(ClientEvent::Bound { lease, took: now - self.began });
        // RFC 5227 section 2.3 has two announcements, after its check; RFC 2131 section 4.4.1 one.
        self.announce();
        let is_checked = self.config.conflict_check.is_some_and(|check| !check.in_background);
        self.announcement = is_checked.then(|| now + ANNOUNCE_INTERVAL);
    }

    fn announce(&mut self) {
        if let Some(lease) = self.lease {
            self.outbox.event(ClientEvent::ArpAnnouncement { address: lease.address });
        }
    }

    fn handle_extension(&mut self, ack: &DhcpMessage, server: Ipv4Addr) -> Result<(), DropReason> {
        let lease = self.granted(ack, server)?;
        self.lease = Some(lease);
        self.timer = None;
        self.enter(State::Bound);
        self.outbox.event(ClientEvent::Renewed { lease });
        Ok(())
    }

    fn handle_nak(&mut self, now: Instant, server: Ipv4Addr) -> Result<(), DropReason> {
        if self.wanted.is_some_and(|(_, from)| from.is_some_and(|from| from != server)) {
            return Err(DropReason::OtherServer);
        }
        if self.is_bound() {
            self.lose(now, LossCause::Nak);
        } else {
            self.lease = None;
            self.start_again(now, Duration::ZERO);
        }
        Ok(())
    }

    /// An ARP packet was seen on the link.
    pub fn handle_arp(&mut self, now: Instant, arp: ArpPacket) {
        self.outbox.called_at(now);
        let Some(Check { address, .. }) = self.check else { return };
        // RFC 5227 section 2.1.1: somebody else uses the address, or is about to.
        let uses = arp.sender == address;
        let probes = arp.sender.is_unspecified() && arp.target == address;
        if arp.sender_hardware != self.config.hardware && (uses || probes) {
            self.decline(now, arp.sender_hardware);
        }
    }

    fn decline(&mut self, now: Instant, other: HardwareAddress) {
        let Some(lease) = self.lease else { return };
        self.outbox.event(ClientEvent::Conflict { address: lease.address, other });
        if self.is_bound() {
            self.lost(lease.address, LossCause::Conflict);
        }
        self.begin_exchange(now);
        let message = DhcpMessage {
            requested_address: Some(lease.address),
            server_identifier: Some(lease.server),
            ..self.message(MessageType::Decline)
        };
        self.send(Ipv4Addr::UNSPECIFIED, Ipv4Addr::BROADCAST, &message);
        self.lease = None;
        self.start_again(now, self.config.after_decline);
    }

    /// The next probe is due, or the check is over.
    fn check_on(&mut self, now: Instant) {
        let Some(mut check) = self.check else { return };
        if check.sent < check.config.probes {
            check.sent += 1;
            check.next = check.config.next(now, check.sent, &mut self.random);
            self.check = Some(check);
            return self.outbox.event(ClientEvent::ArpProbe { address: check.address });
        }
        self.check = None;
        if self.state == State::Checking {
            self.bind(now);
        }
    }

    /// The address in use is gone; another one is looked for.
    fn lose(&mut self, now: Instant, cause: LossCause) {
        let was_bound = self.is_bound();
        if let Some(lease) = self.lease.take().filter(|_| was_bound) {
            self.began = now;
            self.lost(lease.address, cause);
        }
        self.start_again(now, Duration::ZERO);
    }

    fn lost(&mut self, address: Ipv4Addr, cause: LossCause) {
        self.outbox.event(ClientEvent::Lost { address, cause });
    }

    /// Nothing is under way any longer.
    fn rest(&mut self) {
        self.timer = None;
        self.check = None;
        self.announcement = None;
        self.wanted = None;
    }

    /// Begins with INIT again: at once the first time, and ever later while nothing comes of it.
    fn start_again(&mut self, now: Instant, after: Duration) {
        let wait = match self.failures {
            0 => Duration::ZERO,
            failures => self.config.retransmission.after(failures, &mut self.random),
        };
        self.failures = self.failures.saturating_add(1);
        self.start(now, after.max(wait));
    }

    /// Begins with INIT, not before `after` has passed.
    fn start(&mut self, now: Instant, after: Duration) {
        self.rest();
        self.enter(State::Init);
        let delay = self.config.start_delay.draw(&mut self.random);
        self.timer = Some(now + delay.max(after));
    }

    fn enter(&mut self, state: State) {
        self.sent = 0;
        if self.state != state {
            self.state = state;
            self.outbox.event(ClientEvent::State(state));
        }
    }

    /// Draws a transaction ID and stops the client's clock for the messages under it.
    fn begin_exchange(&mut self, now: Instant) {
        self.xid = self.random.next_u64() as u32;
        self.secs = u16::try_from((now - self.began).as_secs()).unwrap_or(u16::MAX);
    }

    fn discover(&mut self, now: Instant) {
        self.secs = u16::try_from((now - self.began).as_secs()).unwrap_or(u16::MAX);
        let message = DhcpMessage {
            lease_time: self.config.lease_time,
            parameter_requests: PARAMETERS.to_vec(),
            ..self.message(MessageType::Discover)
        };
        self.send_and_wait(now, &message);
    }

    /// Asks for the address offered or remembered (RFC 2131 table 5). The seconds are those of the DHCPDISCOVER (section
    /// 4.4.1).
    fn request(&mut self, now: Instant) {
        let Some((address, server)) = self.wanted else { return };
        if self.sent == 0 {
            self.requested = now;
        }
        let message = DhcpMessage {
            requested_address: Some(address),
            server_identifier: server,
            lease_time: self.config.lease_time,
            parameter_requests: PARAMETERS.to_vec(),
            ..self.message(MessageType::Request)
        };
        self.send_and_wait(now, &message);
    }

    fn send_and_wait(&mut self, now: Instant, message: &DhcpMessage) {
        self.send(Ipv4Addr::UNSPECIFIED, Ipv4Addr::BROADCAST, message);
        self.sent = self.sent.saturating_add(1);
        self.timer = Some(now + self.config.retransmission.after(self.sent, &mut self.random));
    }

    /// T1 or T2 has passed.
    fn extend(&mut self, now: Instant, state: State) {
        let Some(lease) = self.lease else { return };
        self.enter(state);
        self.wanted = Some((lease.address, (state == State::Renewing).then_some(lease.server)));
        self.began = now;
        self.begin_exchange(now);
        self.request_extension(now);
    }

    /// Asks for more time (RFC 2131 section 4.4.5), again after half of what is left, but not within a minute.
    fn request_extension(&mut self, now: Instant) {
        let Some(lease) = self.lease else { return };
        let (destination, until) = match self.state {
            State::Renewing => (lease.server, lease.rebind_at),
            _ => (Ipv4Addr::BROADCAST, lease.expires),
        };
        if self.sent == 0 {
            self.requested = now;
        }
        self.sent = self.sent.saturating_add(1);
        let message = DhcpMessage {
            ciaddr: lease.address,
            lease_time: self.config.lease_time,
            parameter_requests: PARAMETERS.to_vec(),
            ..self.message(MessageType::Request)
        };
        self.send(lease.address, destination, &message);
        let again = now + (until.saturating_duration_since(now) / 2).max(LEAST_RENEWAL_INTERVAL);
        self.timer = Some(again).filter(|&again| again < until);
    }

    fn message(&self, kind: MessageType) -> DhcpMessage {
        DhcpMessage {
            secs: self.secs,
            broadcast: self.config.broadcast,
            client_identifier: self.config.client_identifier.clone(),
            ..DhcpMessage::new(kind, self.xid, self.config.hardware)
        }
    }

    fn send(&mut self, source: Ipv4Addr, destination: Ipv4Addr, message: &DhcpMessage) {
        self.outbox.transmit(Transmit {
            interface: Some(self.config.interface),
            source,
            destination,
            ttl: TTL,
            payload: TransmitPayload::Udp {
                source_port: CLIENT_PORT,
                destination_port: SERVER_PORT,
                bytes: message.emit(),
            },
        });
    }
}
