//! The server (RFC 2131 section 4.3) of one link.
//!
//! Left out: relays (a message with `giaddr` is dropped and counted), addresses fixed by hand, Rapid Commit (RFC 4039),
//! DHCPFORCERENEW. An address is checked by ICMP echo before it is offered to somebody who does not hold it, as ISC's `dhcpd`
//! does unless it is told otherwise.

mod config;
mod leases;

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::net::Ipv4Addr;

use careof_base::{Instant, RandomStream};
use careof_wire::dhcp::{CLIENT_PORT, DhcpMessage, HardwareAddress, LeaseTime, MessageType, SERVER_PORT};
use careof_wire::icmp::{Echo, IcmpMessage};

pub use config::ServerConfig;

use leases::{ClientKey, Leases, Use};

use super::{ConfigError, Counters, Datagram, DropReason, Wake};
use crate::outbox::Outbox;
use crate::v4::{Transmit, TransmitPayload};

const TTL: u8 = 64;
/// Replies that wait for the server's processing time, at most.
const MAX_REPLIES: usize = 1_024;

/// Something happened that the owner may act on or write down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerEvent {
    /// An address was granted, or granted for longer.
    Leased {
        /// Which.
        address: Ipv4Addr,
        /// To whom.
        client: HardwareAddress,
        /// For how long.
        lease_time: LeaseTime,
    },
    /// A client gave an address back.
    Released {
        /// Which.
        address: Ipv4Addr,
    },
    /// Somebody whom the server did not give it to uses an address: it answered an echo, or a client has found out.
    Abandoned {
        /// Which.
        address: Ipv4Addr,
    },
    /// A message had no effect.
    Dropped {
        /// Why.
        reason: DropReason,
        /// Its IP source.
        source: Ipv4Addr,
    },
}

/// An address that has been sent an echo, and who waits for its offer.
#[derive(Debug)]
struct Probe {
    until: Instant,
    sequence: u16,
    client: ClientKey,
    discover: DhcpMessage,
}

/// Gives addresses to the clients on one link.
///
/// A sans-IO state machine. After any call of a `handle_*` method the owner polls [`DhcpServer::poll_transmit`] and
/// [`DhcpServer::poll_event`] until they return `None`, and then asks [`DhcpServer::next_timeout`] when to call
/// [`DhcpServer::handle_timeout`]. Time never goes backwards. What it remembers is bounded by its pool.
#[derive(Debug)]
pub struct DhcpServer {
    config: ServerConfig,
    leases: Leases,
    probes: BTreeMap<Ipv4Addr, Probe>,
    /// Tells the server's echoes from those of others.
    identifier: u16,
    sequence: u16,
    /// In the order in which they are due.
    replies: VecDeque<(Instant, Transmit)>,
    outbox: Outbox<Transmit, ServerEvent, Counters>,
}

impl DhcpServer {
    /// A server that has leased nothing.
    ///
    /// # Errors
    /// What is wrong with the configuration.
    pub fn new(config: ServerConfig, mut random: RandomStream) -> Result<Self, ConfigError> {
        config.check()?;
        Ok(Self {
            config,
            leases: Leases::default(),
            probes: BTreeMap::new(),
            identifier: random.next_u64() as u16,
            sequence: 0,
            replies: VecDeque::new(),
            outbox: Outbox::default(),
        })
    }

    /// The interface on the link.
    #[must_use]
    pub const fn interface(&self) -> crate::v4::InterfaceId {
        self.config.interface
    }

    /// How many leases run at `now`.
    #[must_use]
    pub fn leases(&self, now: Instant) -> usize {
        self.leases.running(now)
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
    pub fn poll_event(&mut self) -> Option<ServerEvent> {
        self.outbox.poll_event()
    }

    /// When to call [`DhcpServer::handle_timeout`], and what for.
    #[must_use]
    pub fn next_timeout(&self) -> Option<(Instant, Wake)> {
        let reply = self.replies.front().map(|(at, _)| (*at, Wake::ReplyDue));
        let probe = self.probes.values().map(|probe| (probe.until, Wake::ConflictCheck)).min();
        reply.into_iter().chain(probe).min()
    }

    /// Does what is due by `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.outbox.called_at(now);
        let due = |probes: &BTreeMap<Ipv4Addr, Probe>| {
            probes.iter().find(|(_, probe)| probe.until <= now).map(|(address, _)| *address)
        };
        while let Some(address) = due(&self.probes) {
            // Nobody has answered: it is free.
            if let Some(probe) = self.probes.remove(&address) {
                self.offer(now, address, &probe.client, &probe.discover);
            }
        }
        self.send_due(now);
    }

    fn send_due(&mut self, now: Instant) {
        while self.replies.front().is_some_and(|(at, _)| *at <= now) {
            if let Some((_, reply)) = self.replies.pop_front() {
                self.outbox.transmit(reply);
            }
        }
    }

    /// A datagram has come in by the server's interface.
    pub fn handle_datagram(&mut self, now: Instant, datagram: Datagram<'_>) {
        self.outbox.called_at(now);
        self.outbox.count_received();
        if let Err(reason) = self.handle_message(now, datagram) {
            self.drop(reason, datagram.source);
        }
        self.send_due(now);
    }

    fn drop(&mut self, reason: DropReason, source: Ipv4Addr) {
        self.outbox.counters.count_drop(reason);
        self.outbox.event(ServerEvent::Dropped { reason, source });
    }

    fn handle_message(&mut self, now: Instant, datagram: Datagram<'_>) -> Result<(), DropReason> {
        if datagram.destination_port != SERVER_PORT {
            return Err(DropReason::NotForUs);
        }
        let message = DhcpMessage::parse(datagram.payload).map_err(|_| DropReason::Malformed)?;
        if message.kind.is_reply() {
            return Err(DropReason::NotForUs);
        }
        if !message.giaddr.is_unspecified() {
            return Err(DropReason::Relayed);
        }
        let client = ClientKey::of(&message)?;
        match message.kind {
            MessageType::Discover => self.handle_discover(now, client, message),
            MessageType::Request => self.handle_request(now, &client, &message),
            MessageType::Decline => self.handle_decline(now, &client, &message),
            MessageType::Release => self.handle_release(now, &client, &message),
            MessageType::Inform => self.handle_inform(now, &message),
            MessageType::Offer | MessageType::Ack | MessageType::Nak => Err(DropReason::NotForUs),
        }
    }

    fn handle_discover(
        &mut self,
        now: Instant,
        client: ClientKey,
        discover: DhcpMessage,
    ) -> Result<(), DropReason> {
        if self.replies.len() + self.probes.len() >= MAX_REPLIES {
            return Err(DropReason::TableFull);
        }
        let chosen = self.leases.choose(now, &self.config, &client, discover.requested_address);
        let address = chosen.ok_or(DropReason::NoAddress)?;
        if let Some(probe) = self.probes.get_mut(&address) {
            // The client asks again while the echo is out; the offer answers what it said last.
            probe.discover = discover;
            return Ok(());
        }
        // Whoever holds the address, or has just been offered it, would answer itself.
        let is_held = match self.leases.of(&client) {
            Some((_, Use::Leased(until) | Use::Offered(until))) => until > now,
            _ => false,
        };
        match self.config.ping_check.filter(|_| !is_held) {
            Some(wait) => {
                self.leases.give(address, &client, Use::Probed);
                self.sequence = self.sequence.wrapping_add(1);
                let until = now + wait;
                self.probes.insert(address, Probe { until, sequence: self.sequence, client, discover });
                self.ping(address);
            }
            None => self.offer(now, address, &client, &discover),
        }
        Ok(())
    }

    fn ping(&mut self, address: Ipv4Addr) {
        let mut bytes = Vec::new();
        let echo = Echo { identifier: self.identifier, sequence: self.sequence, data: Vec::new() };
        IcmpMessage::EchoRequest(echo).emit(&mut bytes);
        self.outbox.transmit(Transmit {
            interface: Some(self.config.interface),
            source: self.config.address,
            destination: address,
            ttl: TTL,
            payload: TransmitPayload::Icmp { bytes },
        });
    }

    /// An ICMP message to the server has come in by its interface: the answer to its echo, or what is none of its business.
    pub fn handle_icmp(&mut self, now: Instant, source: Ipv4Addr, message: &[u8]) {
        self.outbox.called_at(now);
        self.outbox.count_received();
        let (identifier, sequence) = match IcmpMessage::parse(message) {
            Ok(IcmpMessage::EchoReply(echo)) => (echo.identifier, echo.sequence),
            Ok(_) => return self.drop(DropReason::NotForUs, source),
            Err(_) => return self.drop(DropReason::Malformed, source),
        };
        let answers = |probe: &Probe| identifier == self.identifier && sequence == probe.sequence;
        if !self.probes.get(&source).is_some_and(answers) {
            return self.drop(DropReason::Unexpected, source);
        }
        let Some(probe) = self.probes.remove(&source) else { return };
        self.leases.abandon(source, now + self.config.abandoned_hold);
        self.outbox.event(ServerEvent::Abandoned { address: source });
        if let Err(reason) = self.handle_discover(now, probe.client, probe.discover) {
            self.drop(reason, source);
        }
        self.send_due(now);
    }

    fn offer(&mut self, now: Instant, address: Ipv4Addr, client: &ClientKey, discover: &DhcpMessage) {
        let held = match self.leases.of(client) {
            // An offer does not shorten what the client has.
            Some((held, used @ Use::Leased(until))) if held == address && until > now => Some(used),
            _ => None,
        };
        let used = held.unwrap_or(Use::Offered(now + self.config.offer_hold));
        self.leases.give(address, client, used);
        let offer = DhcpMessage {
            yiaddr: address,
            lease_time: Some(self.config.granted(discover.lease_time)),
            ..self.parameters(MessageType::Offer, discover)
        };
        self.reply(now, discover, offer);
    }

    /// RFC 2131 section 4.3.2.
    fn handle_request(
        &mut self,
        now: Instant,
        client: &ClientKey,
        request: &DhcpMessage,
    ) -> Result<(), DropReason> {
        let held = self.leases.of(client);
        // A client that has an address says so itself; one that asks for an address names it.
        let address = match (request.ciaddr.is_unspecified(), request.requested_address) {
            (true, Some(address)) => address,
            (true, None) => return Err(DropReason::Incomplete),
            (false, _) => request.ciaddr,
        };
        match request.server_identifier {
            Some(server) if server != self.config.address => {
                if let Some((offered, Use::Offered(_))) = held {
                    self.leases.give(offered, client, Use::Free(now));
                }
                return Err(DropReason::OtherServer);
            }
            Some(_) => {}
            // What this server knows nothing of may be another one's, unless it cannot be anybody's here.
            None if !self.config.network().contains(address) => {
                self.nak(now, request);
                return Ok(());
            }
            None if held.is_none() => return Err(DropReason::UnknownClient),
            None => {}
        }
        match held {
            Some((offered, Use::Offered(_) | Use::Leased(_) | Use::Free(_))) if offered == address => {
                self.grant(now, address, client, request);
            }
            _ => self.nak(now, request),
        }
        Ok(())
    }

    fn grant(&mut self, now: Instant, address: Ipv4Addr, client: &ClientKey, request: &DhcpMessage) {
        let lease_time = self.config.granted(request.lease_time);
        let until = lease_time.duration().map_or(Instant::MAX, |span| now + span);
        self.leases.give(address, client, Use::Leased(until));
        self.outbox.event(ServerEvent::Leased { address, client: request.chaddr, lease_time });
        let ack = DhcpMessage {
            ciaddr: request.ciaddr,
            yiaddr: address,
            lease_time: Some(lease_time),
            ..self.parameters(MessageType::Ack, request)
        };
        self.reply(now, request, ack);
    }

    fn nak(&mut self, now: Instant, request: &DhcpMessage) {
        let nak = DhcpMessage {
            broadcast: request.broadcast,
            server_identifier: Some(self.config.address),
            ..DhcpMessage::new(MessageType::Nak, request.xid, request.chaddr)
        };
        self.reply(now, request, nak);
    }

    fn handle_decline(
        &mut self,
        now: Instant,
        client: &ClientKey,
        decline: &DhcpMessage,
    ) -> Result<(), DropReason> {
        let address = decline.requested_address.ok_or(DropReason::Incomplete)?;
        self.concerns(client, address, decline)?;
        self.leases.abandon(address, now + self.config.abandoned_hold);
        self.outbox.event(ServerEvent::Abandoned { address });
        Ok(())
    }

    fn handle_release(
        &mut self,
        now: Instant,
        client: &ClientKey,
        release: &DhcpMessage,
    ) -> Result<(), DropReason> {
        let address = release.ciaddr;
        self.concerns(client, address, release)?;
        // It is the client's again if it comes back before somebody needs it (section 4.3.4).
        self.leases.give(address, client, Use::Free(now));
        self.outbox.event(ServerEvent::Released { address });
        Ok(())
    }

    /// Whether a message is about a lease that this server gave to its client.
    fn concerns(
        &self,
        client: &ClientKey,
        address: Ipv4Addr,
        message: &DhcpMessage,
    ) -> Result<(), DropReason> {
        match (message.server_identifier, self.leases.of(client)) {
            (None, _) => Err(DropReason::Incomplete),
            (Some(server), _) if server != self.config.address => Err(DropReason::OtherServer),
            (_, Some((held, Use::Leased(_)))) if held == address => Ok(()),
            (_, Some(_)) => Err(DropReason::BadAddress),
            (_, None) => Err(DropReason::UnknownClient),
        }
    }

    /// Parameters for a client that has an address from elsewhere (section 4.3.5).
    fn handle_inform(&mut self, now: Instant, inform: &DhcpMessage) -> Result<(), DropReason> {
        if !self.config.network().contains(inform.ciaddr) {
            return Err(DropReason::BadAddress);
        }
        let mut ack = self.parameters(MessageType::Ack, inform);
        ack.ciaddr = inform.ciaddr;
        (ack.renewal_time, ack.rebinding_time) = (None, None);
        self.reply(now, inform, ack);
        Ok(())
    }

    /// What every client is told, in answer to `to`.
    fn parameters(&self, kind: MessageType, to: &DhcpMessage) -> DhcpMessage {
        let lease_time = self.config.granted(to.lease_time);
        // An infinite lease has no steps.
        let part = |eighths| lease_time.duration().map(|_| lease_time.eighths(eighths));
        DhcpMessage {
            broadcast: to.broadcast,
            prefix_length: Some(self.config.prefix_length),
            routers: self.config.routers.clone(),
            server_identifier: Some(self.config.address),
            renewal_time: part(4),
            rebinding_time: part(7),
            ..DhcpMessage::new(kind, to.xid, to.chaddr)
        }
    }

    /// Sends a reply where its client can receive it (section 4.1), once the server has worked on it.
    fn reply(&mut self, now: Instant, to: &DhcpMessage, reply: DhcpMessage) {
        if self.replies.len() >= MAX_REPLIES {
            return self.drop(DropReason::TableFull, to.ciaddr);
        }
        let destination = if reply.kind == MessageType::Nak {
            Ipv4Addr::BROADCAST
        } else if !to.ciaddr.is_unspecified() {
            to.ciaddr
        } else if to.broadcast {
            Ipv4Addr::BROADCAST
        } else {
            reply.yiaddr
        };
        let transmit = Transmit {
            interface: Some(self.config.interface),
            source: self.config.address,
            destination,
            ttl: TTL,
            payload: TransmitPayload::Udp {
                source_port: SERVER_PORT,
                destination_port: CLIENT_PORT,
                bytes: reply.emit(),
            },
        };
        self.replies.push_back((now + self.config.processing, transmit));
    }
}
