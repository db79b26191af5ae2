//! One connection on a bench: the evaluation plays its peer, and keeps the time.

use std::time::Duration;

use careof_base::Instant;
use careof_tcp::{Config, Connection, DelayedAck, Event, InitialWindow, Role, Transmission, Wake};
use careof_wire::{Flags, Segment, SeqNumber, Timestamps};

use super::Outcome;

const ISS: SeqNumber = SeqNumber(1 << 30);
const PEER_ISS: SeqNumber = SeqNumber(1 << 29);
/// Bytes of data in a segment.
pub(super) const MSS: u32 = 1_000;

/// A configuration for the bench: segments of 1000 bytes, no delayed acknowledgements, an RTO floor out of the way.
pub(super) fn plain() -> Config {
    Config {
        mss: MSS as u16,
        rto_min: Some(Duration::from_millis(1)),
        delayed_ack: DelayedAck::Off,
        initial_window: InitialWindow::Segments(1),
        window_validation: false,
        window_scaling: true,
        receive_window: 1 << 24,
        nagle: false,
        ..Config::default()
    }
}

/// A segment in short, sequence numbers relative to the first byte.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Out {
    pub(super) at: Instant,
    pub(super) seq: u32,
    pub(super) len: u32,
    pub(super) again: bool,
    pub(super) ack: u32,
    pub(super) sack: Vec<(u32, u32)>,
    pub(super) probe: bool,
}

pub(super) struct Bench {
    pub(super) connection: Connection,
    pub(super) now: Instant,
    pub(super) events: Vec<Event>,
    window: u32,
    shift: u8,
    /// The last TSval of the connection.
    stamp: Option<u32>,
    started: Instant,
}

impl Bench {
    /// A connection whose handshake took `rtt`.
    pub(super) fn connected(config: Config, rtt: Duration) -> Result<Self, Outcome> {
        let mut bench = Self::syn_sent(config)?;
        bench.now += rtt;
        bench.answer();
        // The window of the SYN-ACK was not scaled: without an update the first duplicate would be one.
        bench.hear(0, &[]);
        Ok(bench)
    }

    /// A connection whose SYN has left.
    pub(super) fn syn_sent(config: Config) -> Result<Self, Outcome> {
        let now = Instant::from_secs(10);
        let mut connection = Connection::new(config, Role::Active, 1, 2, ISS)
            .map_err(|error| Outcome::NotRun(error.to_string()))?;
        connection.open(now);
        let mut bench = Self {
            connection,
            now,
            events: Vec::new(),
            window: 1 << 24,
            shift: 9,
            stamp: None,
            started: now,
        };
        bench.take();
        Ok(bench)
    }

    /// The SYN-ACK arrives; the acknowledgement of it leaves.
    pub(super) fn answer(&mut self) {
        let config = self.connection.config();
        let mut reply = self.blank();
        reply.seq = PEER_ISS;
        reply.ack = ISS.plus(1);
        reply.flags = Flags::SYN.with(Flags::ACK);
        reply.window = u16::MAX;
        reply.mss = Some(config.mss);
        reply.window_scale = config.window_scaling.then_some(self.shift);
        reply.sack_permitted = config.sack;
        if !config.window_scaling {
            (self.window, self.shift) = (65_535, 0);
        }
        self.deliver(&reply);
        self.take();
    }

    /// The SYN-ACK arrives with this window field and this shift.
    pub(super) fn answer_with(&mut self, window: u16, shift: u8) {
        let mut reply = self.blank();
        reply.seq = PEER_ISS;
        reply.ack = ISS.plus(1);
        reply.flags = Flags::SYN.with(Flags::ACK);
        reply.window = window;
        reply.window_scale = Some(shift);
        self.deliver(&reply);
        self.take();
    }

    /// Data of the peer.
    pub(super) fn blank_data(&self, seq: u32, len: u32) -> Segment {
        Segment {
            seq: PEER_ISS.plus(1 + seq),
            ack: self.connection.snapshot().snd_nxt,
            payload_len: len as u16,
            ..self.blank()
        }
    }

    /// The right edge of the window that a segment advertises, relative to the peer's first byte; it is not scaled.
    pub(super) fn edge(&self, segment: &Segment) -> u32 {
        segment.ack.0.wrapping_sub(PEER_ISS.plus(1).0) + u32::from(segment.window)
    }

    /// Milliseconds since the bench began.
    pub(super) fn ms(&self) -> f64 {
        (self.now - self.started).as_secs_f64() * 1e3
    }

    /// Goes on without letting timers run out.
    pub(super) fn wait(&mut self, span: Duration) {
        self.now += span;
    }

    /// Goes on; what timers send on the way is returned.
    pub(super) fn run(&mut self, span: Duration) -> Vec<Out> {
        let end = self.now + span;
        let mut sent = Vec::new();
        while let Some((at, _)) = self.connection.next_timeout().filter(|&(at, _)| at <= end) {
            self.now = self.now.max(at);
            self.connection.handle_timeout(self.now);
            sent.extend(self.take());
        }
        self.now = end;
        sent
    }

    /// The next timer runs out; what it sends is returned.
    pub(super) fn expire(&mut self) -> Result<(Wake, Vec<Out>), Outcome> {
        let (at, wake) = self.connection.next_timeout().ok_or("no timer runs".to_owned())?;
        self.now = self.now.max(at);
        self.connection.handle_timeout(self.now);
        Ok((wake, self.take()))
    }

    /// The application writes full segments; what leaves is returned.
    pub(super) fn write(&mut self, segments: u32) -> Vec<Out> {
        self.connection.write(u64::from(segments) * u64::from(MSS));
        self.take()
    }

    fn blank(&self) -> Segment {
        let value = (self.now.as_nanos() / 1_000_000) as u32;
        Segment {
            source_port: 2,
            destination_port: 1,
            seq: PEER_ISS.plus(1),
            flags: Flags::ACK,
            window: u16::try_from(self.window >> self.shift).unwrap_or(u16::MAX),
            timestamps: self.stamp.map(|echo| Timestamps { value, echo }),
            ..Segment::default()
        }
    }

    /// The window that the peer advertises from now on, bytes.
    pub(super) fn set_window(&mut self, bytes: u32) {
        self.window = bytes;
    }

    /// An acknowledgement of whole segments arrives, with SACK blocks in segments; nothing is asked of the connection.
    pub(super) fn hear(&mut self, segments: u32, blocks: &[(u32, u32)]) {
        let mut ack = self.blank();
        ack.ack = ISS.plus(1 + segments * MSS);
        for &(left, right) in blocks {
            ack.sack.push(ISS.plus(1 + left * MSS), ISS.plus(1 + right * MSS));
        }
        self.deliver(&ack);
    }

    /// The same; what the connection sends then is returned.
    pub(super) fn ack(&mut self, segments: u32, blocks: &[(u32, u32)]) -> Vec<Out> {
        self.hear(segments, blocks);
        self.take()
    }

    /// Data of the peer arrives; what the connection answers is returned.
    pub(super) fn data(&mut self, seq: u32, len: u32) -> Vec<Out> {
        let segment = self.blank_data(seq, len);
        self.deliver(&segment);
        self.take()
    }

    /// Any segment arrives, after `change`.
    pub(super) fn deliver_changed(&mut self, change: impl FnOnce(&mut Segment)) -> Vec<Out> {
        let mut segment = self.blank();
        segment.ack = self.connection.snapshot().snd_una;
        change(&mut segment);
        self.deliver(&segment);
        self.take()
    }

    fn deliver(&mut self, segment: &Segment) {
        self.connection.handle_segment(self.now, segment);
    }

    /// The next segment that the connection wants to send.
    pub(super) fn take_one(&mut self) -> Option<Out> {
        while let Some(event) = self.connection.poll_event() {
            self.events.push(event);
        }
        let out = self.connection.poll_transmit(self.now)?;
        Some(self.note(&out))
    }

    /// All of them.
    pub(super) fn take(&mut self) -> Vec<Out> {
        let mut sent = Vec::new();
        while let Some(out) = self.take_one() {
            sent.push(out);
            if sent.len() > 100_000 {
                break;
            }
        }
        sent
    }

    fn note(&mut self, out: &Transmission) -> Out {
        let segment = &out.segment;
        self.stamp = segment.timestamps.map(|stamps| stamps.value).or(self.stamp);
        let relative = |seq: SeqNumber, base: SeqNumber| seq.0.wrapping_sub(base.plus(1).0);
        Out {
            at: self.now,
            seq: relative(segment.seq, ISS),
            len: u32::from(segment.payload_len),
            again: out.retransmission,
            ack: relative(segment.ack, PEER_ISS),
            sack: segment
                .sack
                .as_slice()
                .iter()
                .map(|block| (relative(block.0, PEER_ISS), relative(block.1, PEER_ISS)))
                .collect(),
            probe: out.probe,
        }
    }

    /// The last TSval of the connection.
    pub(super) fn stamp(&self) -> u32 {
        self.stamp.unwrap_or(0)
    }

    /// cwnd in segments.
    pub(super) fn cwnd(&self) -> f64 {
        f64::from(self.connection.snapshot().cwnd) / f64::from(MSS)
    }

    /// ssthresh in segments.
    pub(super) fn ssthresh(&self) -> f64 {
        f64::from(self.connection.snapshot().ssthresh) / f64::from(MSS)
    }

    /// The timeout in force, ms.
    pub(super) fn rto(&self) -> f64 {
        self.connection.snapshot().rto.as_secs_f64() * 1e3
    }
}

/// Numbers of the segments sent, from 0, retransmissions only.
pub(super) fn repeated(sent: &[Out]) -> Vec<u32> {
    sent.iter().filter(|out| out.again && out.len > 0).map(|out| out.seq / MSS).collect()
}

/// Numbers of the segments sent for the first time, from 0.
pub(super) fn new(sent: &[Out]) -> Vec<u32> {
    sent.iter().filter(|out| !out.again && out.len > 0).map(|out| out.seq / MSS).collect()
}
