//! The state machine around `quinn-proto`'s: one end of one connection, and the one stream that carries the flow.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use bytes::{Bytes, BytesMut};
use careof_base::{Duration, Instant, RandomStream};
use quinn_proto::{
    ClientConfig, ConnectionHandle, ConnectionId, ConnectionIdGenerator, DatagramEvent, Dir, EcnCodepoint,
    Endpoint, EndpointConfig, NoneTokenStore, ServerConfig, StreamEvent, StreamId, TimeSource, VarInt,
};

use crate::config::Config;
use crate::frames::{CID_LEN, packet_of_data};
use crate::handshake::Sessions;
use crate::keys::{NoTokens, ResetKey};
use crate::time::Origin;

/// How far an application writes ahead of what has left: enough for the next datagrams, so that little is in the buffer when it stops.
const AHEAD: u64 = 16 * 1024;

/// What is written; nobody looks at it.
static DATA: [u8; AHEAD as usize] = [0; AHEAD as usize];

/// How many packets an end remembers for a sample of the round trip.
const REMEMBERED: usize = 65_536;

/// Who an end is. Only a client can move (RFC 9000 section 9).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Opens the connection.
    Client,
    /// Accepts it.
    Server,
}

impl Role {
    /// The word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Server => "server",
        }
    }
}

/// Why a connection cannot be opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("QUIC cannot connect to {peer}: {reason}")]
pub struct OpenError {
    /// The other end.
    pub peer: SocketAddr,
    /// What `quinn-proto` says.
    pub reason: String,
}

/// A UDP payload to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// Where to.
    pub destination: SocketAddr,
    /// The two bits of explicit congestion notification in the IP header.
    pub ecn: u8,
    /// The payload.
    pub bytes: Vec<u8>,
}

/// What happened to a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The handshake is over, and data can be written.
    Connected,
    /// All that the other end had to say has come.
    PeerFinished,
    /// The server follows its client to this address.
    PeerMoved(SocketAddr),
    /// It is over, for this reason.
    Closed(String),
}

/// What an end has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Datagrams sent.
    pub sent: u64,
    /// Datagrams that came, whatever was made of them.
    pub received: u64,
    /// Datagrams that came and belong to no connection of this end.
    pub strays: u64,
    /// Packets that this end has given up for lost.
    pub lost: u64,
    /// Losses and marks after which the window was reduced.
    pub congestion_events: u64,
    /// PATH_CHALLENGE frames sent (RFC 9000 section 8.2).
    pub path_challenges: u64,
    /// PATH_RESPONSE frames that came.
    pub path_responses: u64,
    /// Times the own address changed, or the peer's.
    pub moves: u64,
}

/// The state of the sender at an instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// Congestion window, bytes.
    pub cwnd: u64,
    /// Slow start threshold, bytes; `None` where there is none.
    pub ssthresh: Option<u64>,
    /// Smoothed round-trip time.
    pub srtt: Duration,
    /// Bytes of UDP payload sent after the largest packet that was acknowledged.
    pub flight: u64,
    /// The UDP payload that the path is believed to carry.
    pub mtu: u16,
}

/// Draws bytes.
pub(crate) fn draw<const N: usize>(random: &mut RandomStream) -> [u8; N] {
    let mut bytes = [0; N];
    for chunk in bytes.chunks_mut(8) {
        chunk.copy_from_slice(&random.next_u64().to_le_bytes()[..chunk.len()]);
    }
    bytes
}

/// Connection identifiers from a stream of random numbers.
struct Identifiers(RandomStream);

impl ConnectionIdGenerator for Identifiers {
    fn generate_cid(&mut self) -> ConnectionId {
        ConnectionId::new(&draw::<CID_LEN>(&mut self.0))
    }

    fn cid_len(&self) -> usize {
        CID_LEN
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}

/// A calendar that stands still: only tokens, of which there are none, have dates.
struct NoCalendar;

impl TimeSource for NoCalendar {
    fn now(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH
    }
}

/// One end of a connection. Its stream is bidirectional; whoever writes first opens it.
pub struct Connection {
    origin: Origin,
    role: Role,
    peer: SocketAddr,
    endpoint: Endpoint,
    client: Option<ClientConfig>,
    connection: Option<(ConnectionHandle, quinn_proto::Connection)>,
    stream: Option<StreamId>,
    /// What the application has written in all; `u64::MAX` is without end.
    asked: u64,
    /// What of it the stream has taken.
    written: u64,
    /// Stream bytes that have left at least once.
    left: u64,
    closing: bool,
    finished: bool,
    finish_acknowledged: bool,
    peer_finished: bool,
    received: u64,
    /// When packets of data left that ask for an acknowledgement, and how long they are, by number, from the largest acknowledged on.
    on_the_way: BTreeMap<u64, (Instant, u64)>,
    /// Their bytes together.
    flight: u64,
    latest_rtt: Option<Duration>,
    rtt_samples: u64,
    /// The number of the last packet of data that left.
    last_number: u64,
    /// Answers that belong to no connection.
    outbox: VecDeque<Datagram>,
    events: VecDeque<Event>,
    counters: Counters,
}

impl Connection {
    /// An end that will speak to `peer`. Of the streams of random numbers each end needs its own.
    #[must_use]
    pub fn new(config: &Config, role: Role, peer: SocketAddr, mut random: RandomStream) -> Self {
        let mut endpoint = EndpointConfig::new(Arc::new(ResetKey(random.next_u64())));
        let identifiers = Mutex::new(random.clone());
        endpoint
            .rng_seed(Some(draw(&mut random)))
            .cid_generator(move || {
                let stream = identifiers.lock().unwrap_or_else(PoisonError::into_inner).clone();
                Box::new(Identifiers(stream))
            })
            // Bits that mean nothing: whoever reads a capture is not helped by them.
            .grease_quic_bit(false);
        let transport = Arc::new(config.transport());
        let sessions = Sessions::new(&mut random);
        let (client, server) = match role {
            Role::Client => {
                let first: [u8; CID_LEN] = draw(&mut random);
                let mut client = ClientConfig::new(sessions);
                client
                    .transport_config(transport)
                    .token_store(Arc::new(NoneTokenStore))
                    .initial_dst_cid_provider(Arc::new(move || ConnectionId::new(&first)));
                (Some(client), None)
            }
            Role::Server => {
                let mut server = ServerConfig::new(sessions, Arc::new(NoTokens));
                server
                    .transport_config(transport)
                    .migration(config.migration)
                    .time_source(Arc::new(NoCalendar));
                (None, Some(Arc::new(server)))
            }
        };
        Self {
            origin: Origin::new(),
            role,
            peer,
            endpoint: Endpoint::new(Arc::new(endpoint), server, config.mtu_discovery, None),
            client,
            connection: None,
            stream: None,
            asked: 0,
            written: 0,
            left: 0,
            closing: false,
            finished: false,
            finish_acknowledged: false,
            peer_finished: false,
            received: 0,
            on_the_way: BTreeMap::new(),
            flight: 0,
            latest_rtt: None,
            rtt_samples: 0,
            last_number: 0,
            outbox: VecDeque::new(),
            events: VecDeque::new(),
            counters: Counters::default(),
        }
    }

    /// A client opens the connection, once; a server waits for it.
    ///
    /// # Errors
    /// Nobody can be connected to at the peer's address.
    pub fn open(&mut self, now: Instant) -> Result<(), OpenError> {
        let Some(client) = self.client.take() else { return Ok(()) };
        let opened = self.endpoint.connect(self.origin.at(now), client, self.peer, "careof.example");
        let peer = self.peer;
        self.connection = Some(opened.map_err(|error| OpenError { peer, reason: error.to_string() })?);
        Ok(())
    }

    /// The application writes `bytes` more; `u64::MAX` is without end.
    pub fn write(&mut self, bytes: u64) {
        self.asked = self.asked.saturating_add(bytes);
    }

    /// No more will be written.
    pub fn close(&mut self) {
        self.closing = true;
    }

    /// Takes back what the stream has not taken yet: all but the last 16 KiB of what has not left.
    pub fn discard_unsent(&mut self) {
        self.asked = self.written;
    }

    /// Bytes written that have not left yet.
    #[must_use]
    pub fn unsent(&self) -> u64 {
        self.asked.saturating_sub(self.left)
    }

    /// Bytes that came in order.
    #[must_use]
    pub fn received(&self) -> u64 {
        self.received
    }

    /// Whether this end has a connection whose handshake is over and which nobody has closed.
    #[must_use]
    pub fn is_established(&self) -> bool {
        self.connection.as_ref().is_some_and(|(_, inner)| !inner.is_handshaking() && !inner.is_closed())
    }

    /// The own address has changed: a client says so to its server from the new one, with another connection identifier, and begins anew to
    /// learn what the path can take (RFC 9000 sections 9.2, 9.4 and 9.5). A server stays where it is.
    pub fn address_changed(&mut self, now: Instant) {
        let at = self.origin.at(now);
        if let (Role::Client, Some((_, inner))) = (self.role, &mut self.connection)
            && !inner.is_closed()
        {
            self.counters.moves += 1;
            inner.path_changed(at);
            inner.local_address_changed();
            self.drain(now);
        }
    }

    /// A UDP payload came from `source`, with these bits of explicit congestion notification.
    pub fn handle_datagram(&mut self, now: Instant, source: SocketAddr, ecn: u8, payload: &[u8]) {
        let at = self.origin.at(now);
        self.counters.received += 1;
        let mut answer = Vec::new();
        let event = self.endpoint.handle(
            at,
            source,
            None,
            EcnCodepoint::from_bits(ecn),
            BytesMut::from(payload),
            &mut answer,
        );
        match event {
            Some(DatagramEvent::NewConnection(incoming))
                if self.connection.is_none() && self.role == Role::Server =>
            {
                match self.endpoint.accept(incoming, at, &mut answer, None) {
                    Ok(accepted) => {
                        self.peer = source;
                        self.connection = Some(accepted);
                    }
                    Err(error) => {
                        self.counters.strays += 1;
                        self.answer(error.response, answer);
                    }
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) => {
                self.counters.strays += 1;
                self.endpoint.ignore(incoming);
            }
            Some(DatagramEvent::ConnectionEvent(handle, event)) => match &mut self.connection {
                Some((own, inner)) if *own == handle => {
                    self.note_acknowledged(now, payload);
                    if let Some((_, inner)) = &mut self.connection {
                        inner.handle_event(event);
                    }
                }
                _ => self.counters.strays += 1,
            },
            Some(DatagramEvent::Response(transmit)) => {
                self.counters.strays += 1;
                self.answer(Some(transmit), answer);
            }
            None => self.counters.strays += 1,
        }
        self.drain(now);
    }

    fn answer(&mut self, transmit: Option<quinn_proto::Transmit>, mut bytes: Vec<u8>) {
        if let Some(transmit) = transmit {
            bytes.truncate(transmit.size);
            let ecn = transmit.ecn.map_or(0, |ecn| ecn as u8);
            self.outbox.push_back(Datagram { destination: transmit.destination, ecn, bytes });
        }
    }

    /// Takes a sample of the round trip (RFC 9002 section 5.1): of the largest packet that is acknowledged, if it is so for the first time.
    fn note_acknowledged(&mut self, now: Instant, payload: &[u8]) {
        let Some(largest) = packet_of_data(payload).and_then(|packet| packet.largest_acknowledged) else {
            return;
        };
        let later = self.on_the_way.split_off(&largest.saturating_add(1));
        let acknowledged = std::mem::replace(&mut self.on_the_way, later);
        self.flight -= acknowledged.values().map(|(_, len)| len).sum::<u64>();
        if let Some((number, (sent, _))) = acknowledged.last_key_value()
            && *number == largest
        {
            self.latest_rtt = Some(now.saturating_duration_since(*sent));
            self.rtt_samples += 1;
        }
    }

    /// When [`Connection::handle_timeout`] wants to be called.
    pub fn next_timeout(&mut self) -> Option<Instant> {
        let at = self.connection.as_mut().and_then(|(_, inner)| inner.poll_timeout())?;
        Some(self.origin.back(at))
    }

    /// A timer may have run out.
    pub fn handle_timeout(&mut self, now: Instant) {
        let at = self.origin.at(now);
        if let Some((_, inner)) = &mut self.connection {
            inner.handle_timeout(at);
            self.drain(now);
        }
    }

    /// The next datagram to send.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Datagram> {
        if let Some(answer) = self.outbox.pop_front() {
            self.counters.sent += 1;
            return Some(answer);
        }
        self.fill_stream();
        let at = self.origin.at(now);
        let (_, inner) = self.connection.as_mut()?;
        let mut bytes = Vec::new();
        let transmit = inner.poll_transmit(at, 1, &mut bytes);
        // Identifiers to hand out can be needed for a packet that was just made.
        self.drain(now);
        let transmit = transmit?;
        bytes.truncate(transmit.size);
        self.note_sent(now, &bytes);
        self.counters.sent += 1;
        let ecn = transmit.ecn.map_or(0, |ecn| ecn as u8);
        Some(Datagram { destination: transmit.destination, ecn, bytes })
    }

    fn note_sent(&mut self, now: Instant, bytes: &[u8]) {
        let Some(packet) = packet_of_data(bytes) else { return };
        self.left = packet.data.iter().map(|range| range.end).fold(self.left, u64::max);
        // Numbers grow, and carry at least their low 8 bits; less than half of what they can tell apart is on the way (RFC 9000
        // appendix A.2), so that the next number with these bits is meant.
        let bits = 8 * u32::from(packet.number_len);
        let modulus = 1_u64 << bits;
        let ahead = u64::from(packet.number).wrapping_sub(self.last_number + 1) & (modulus - 1);
        let number = self.last_number + 1 + ahead;
        let first = self.last_number == 0 && packet.number == 0;
        let number = if first { 0 } else { number };
        self.last_number = number;
        if packet.elicits_ack && self.on_the_way.len() < REMEMBERED {
            self.on_the_way.insert(number, (now, bytes.len() as u64));
            self.flight += bytes.len() as u64;
        }
    }

    /// Hands the stream what the application has written, and its end.
    fn fill_stream(&mut self) {
        let Some((_, inner)) = &mut self.connection else { return };
        if inner.is_handshaking() || inner.is_closed() || (self.asked == 0 && !self.closing) {
            return;
        }
        if self.stream.is_none() {
            self.stream = inner.streams().open(Dir::Bi);
        }
        let Some(id) = self.stream else { return };
        let mut stream = inner.send_stream(id);
        while self.written < self.asked && self.written < self.left + AHEAD {
            let room = (self.asked - self.written).min(self.left + AHEAD - self.written);
            let piece = Bytes::from_static(&DATA).slice(..room as usize);
            match stream.write_chunks(&mut [piece]) {
                Ok(taken) if taken.bytes > 0 => self.written += taken.bytes as u64,
                // Flow control, or the other end wants no more: the peer says when.
                _ => break,
            }
        }
        if self.closing && !self.finished && self.written == self.asked {
            // It fails on a stream that was stopped, which is over, too.
            self.finish_acknowledged = stream.finish().is_err();
            self.finished = true;
        }
    }

    /// The next thing that happened.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Whether anything happened.
    #[must_use]
    pub fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    /// Brings endpoint, connection and stream to where they have nothing more to say to each other.
    fn drain(&mut self, now: Instant) {
        let at = self.origin.at(now);
        loop {
            let Some((handle, inner)) = &mut self.connection else { return };
            let handle = *handle;
            if let Some(event) = inner.poll_endpoint_events() {
                let is_drained = event.is_drained();
                if let Some(event) = self.endpoint.handle_event(handle, event) {
                    inner.handle_event(event);
                }
                if is_drained {
                    self.note_lost();
                    self.connection = None;
                }
                continue;
            }
            if inner.remote_address() != self.peer {
                self.peer = inner.remote_address();
                self.counters.moves += 1;
                self.events.push_back(Event::PeerMoved(self.peer));
                continue;
            }
            match inner.poll() {
                Some(quinn_proto::Event::Connected) => self.events.push_back(Event::Connected),
                Some(quinn_proto::Event::ConnectionLost { reason }) => {
                    self.events.push_back(Event::Closed(reason.to_string()));
                }
                Some(quinn_proto::Event::Stream(event)) => self.stream_event(event),
                Some(_) => {}
                None => break,
            }
        }
        self.read();
        // Who opened the connection ends it, when both have said all they had to say.
        if let (Role::Client, true, true, Some((_, inner))) =
            (self.role, self.finish_acknowledged, self.peer_finished, &mut self.connection)
            && !inner.is_closed()
        {
            inner.close(at, VarInt::from_u32(0), Bytes::new());
            self.events.push_back(Event::Closed("done".to_owned()));
        }
    }

    fn stream_event(&mut self, event: StreamEvent) {
        match event {
            StreamEvent::Opened { dir: Dir::Bi } => {
                if let Some((_, inner)) = &mut self.connection
                    && let Some(id) = inner.streams().accept(Dir::Bi)
                {
                    self.stream.get_or_insert(id);
                }
            }
            StreamEvent::Finished { .. } | StreamEvent::Stopped { .. } => self.finish_acknowledged = true,
            _ => {}
        }
    }

    /// Takes what came in order.
    fn read(&mut self) {
        let (Some((_, inner)), Some(id)) = (&mut self.connection, self.stream) else { return };
        if self.peer_finished {
            return;
        }
        let mut stream = inner.recv_stream(id);
        let Ok(mut chunks) = stream.read(true) else { return };
        loop {
            match chunks.next(usize::MAX) {
                Ok(Some(chunk)) => self.received += chunk.bytes.len() as u64,
                Ok(None) => {
                    self.peer_finished = true;
                    self.events.push_back(Event::PeerFinished);
                    break;
                }
                Err(_) => break,
            }
        }
        // Whether a larger window is to be told is asked of the connection anyway.
        let _ = chunks.finalize();
    }

    fn note_lost(&mut self) {
        self.counters = self.counters();
    }

    /// What it has counted.
    #[must_use]
    pub fn counters(&self) -> Counters {
        let Some((_, inner)) = &self.connection else { return self.counters };
        let stats = inner.stats();
        Counters {
            lost: stats.path.lost_packets,
            congestion_events: stats.path.congestion_events,
            path_challenges: stats.frame_tx.path_challenge,
            path_responses: stats.frame_rx.path_response,
            ..self.counters
        }
    }

    /// How many samples of the round trip were taken, and the last.
    #[must_use]
    pub fn rtt(&self) -> (u64, Option<Duration>) {
        (self.rtt_samples, self.latest_rtt)
    }

    /// The state of the sender; `None` without a connection.
    #[must_use]
    pub fn snapshot(&self) -> Option<Snapshot> {
        let (_, inner) = self.connection.as_ref()?;
        let metrics = inner.congestion_state().metrics();
        Some(Snapshot {
            cwnd: metrics.congestion_window,
            ssthresh: metrics.ssthresh.filter(|ssthresh| *ssthresh != u64::MAX),
            srtt: inner.rtt(),
            flight: self.flight,
            mtu: inner.current_mtu(),
        })
    }
}
