//! The connection: who calls, and whom it passes the call to.

use alloc::boxed::Box;
use core::time::Duration;

use careof_base::{DataRate, Instant};
use careof_wire::{Segment, SeqNumber};

use crate::config::{Config, ConfigError, Variant};
use crate::delayed_ack::Due;
use crate::ecn::{Echo, Negotiation};
use crate::events::{Event, Journal};
use crate::output::Reply;
use crate::receiver::Receiver;
use crate::recovery;
use crate::sender::Sender;
use crate::snapshot::{PathModel, Snapshot};
use crate::state::State;
use crate::timer::Timer;
use crate::timestamps::TimestampState;
use crate::{Counters, MIN_MSS};

/// Timeouts in a row after which the path is in doubt (RFC 1122 section 4.2.3.5).
const R1: u32 = 3;
/// What nearly every path carries (RFC 4821 section 7.2).
const BASE_MSS: u16 = 1024;
/// Bytes of a TCP header without options.
const TCP_HEADER_LEN: u16 = 20;

/// Which side opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Sends the SYN.
    Active,
    /// Waits for one.
    Passive,
}

/// Why a connection wants to be woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Wake {
    /// Something sent is not acknowledged.
    Retransmission,
    /// What was sent may be lost, or needs a probe (RFC 8985).
    LossDetection,
    /// An acknowledgement was held back.
    DelayedAck,
    /// The peer's window is closed.
    Persist,
    /// The next segment's time has not come: the sender paces.
    Pacing,
    /// A closed connection has answered late segments for long enough.
    TimeWait,
}

/// A segment to put on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmission {
    /// The segment.
    pub segment: Segment,
    /// It repeats data, a SYN or a FIN that was sent before.
    pub retransmission: bool,
    /// It probes a closed window.
    pub probe: bool,
    /// The packet is to be marked as ECN-capable, ECT(0) (RFC 3168 section 5).
    pub ecn_capable: bool,
}

/// What there is to know of a [`Transmission`] besides its segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sending {
    /// [`Segment::header_len`] of the segment.
    pub header_len: u16,
    /// See [`Transmission::retransmission`].
    pub retransmission: bool,
    /// See [`Transmission::probe`].
    pub probe: bool,
    /// See [`Transmission::ecn_capable`].
    pub ecn_capable: bool,
}

impl Transmission {
    /// Writes the segment to its place.
    pub(crate) fn put(&self, place: &mut Segment) -> Sending {
        *place = self.segment;
        let &Self { segment, retransmission, probe, ecn_capable } = self;
        Sending { header_len: segment.header_len(), retransmission, probe, ecn_capable }
    }
}

/// One end of a TCP connection (RFC 9293), without sockets and clocks.
///
/// The owner hands in what happens - [`open`](Self::open), [`handle_segment`](Self::handle_segment),
/// [`handle_timeout`](Self::handle_timeout), the application's [`write`](Self::write),
/// [`read`](Self::read) and [`close`](Self::close), [`path_mtu_changed`](Self::path_mtu_changed) and
/// [`icmp_unreachable`](Self::icmp_unreachable) - and
/// after each such call
///
/// 1. takes events from [`poll_event`](Self::poll_event) until it answers `None`: what happened, before what is
///    done about it,
/// 2. takes segments from [`poll_transmit`](Self::poll_transmit) until it answers `None`,
/// 3. asks [`next_timeout`](Self::next_timeout) when to call `handle_timeout` at the latest.
///
/// The deadline comes last because a timer may be set by sending; segments are all taken because
/// an acknowledgement that was not taken merges with the next, so that a peer counting duplicates would see fewer. `now` must not go back. A wake-up that comes too
/// early, or for a timer that was moved since, does nothing.
///
/// As long as something is outstanding or waits to be sent and the peer has to act, some timer is running.
///
/// What an ordinary segment touches comes first, so that with ten thousand connections it is a few cache lines.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Connection {
    /// Nothing but the ordinary is under way, see [`crate::ordinary`].
    pub(crate) ordinary: bool,
    /// It never takes the ordinary way, for comparison.
    #[cfg(test)]
    pub(crate) always_general: bool,
    pub(crate) state: State,
    /// The peer's window field counts in units of two to this power.
    pub(crate) peer_shift: u8,
    pub(crate) role: Role,
    pub(crate) local_port: u16,
    pub(crate) remote_port: u16,
    pub(crate) journal: Journal,
    pub(crate) receiver: Receiver,
    pub(crate) sender: Sender,

    pub(crate) timestamps: TimestampState,
    /// Both sides offered window scaling.
    pub(crate) scaling: bool,
    /// Both sides offered selective acknowledgements.
    pub(crate) sack: bool,
    pub(crate) ecn: Negotiation,
    pub(crate) echo: Echo,
    /// The largest segment the path and the peer take, data and options, bytes.
    pub(crate) segment_limit: u16,
    pub(crate) time_wait: Timer,
    /// A segment to send outside of the stream.
    pub(crate) reply: Option<Reply>,
    pub(crate) config: Box<Config>,
}

impl Connection {
    /// A closed connection. `iss` is its initial sequence number.
    ///
    /// # Errors
    /// What [`Config::check`] finds.
    pub fn new(
        config: Config,
        role: Role,
        local_port: u16,
        remote_port: u16,
        iss: SeqNumber,
    ) -> Result<Self, ConfigError> {
        config.check()?;
        Ok(Self {
            sender: Sender::new(&config, iss),
            receiver: Receiver::new(&config),
            role,
            local_port,
            remote_port,
            state: State::Closed,
            timestamps: TimestampState::default(),
            peer_shift: 0,
            scaling: false,
            sack: false,
            ecn: Negotiation::default(),
            echo: Echo::default(),
            segment_limit: config.mss,
            time_wait: Timer::default(),
            reply: None,
            journal: Journal::default(),
            ordinary: false,
            #[cfg(test)]
            always_general: false,
            config: Box::new(config),
        })
    }

    /// A timer may have run out.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.ordinary = false;
        if self.receiver.acks.timer().is_due(now) {
            self.receiver.acks.expired(self.sender.estimator.rto());
        }
        recovery::rack_tlp::on_timer(&mut self.sender, now, &mut self.journal);
        if self.config.mtu_probing && self.sender.timer.is_due(now) {
            self.try_smaller_segments(now);
        }
        if self.sender.timer.is_due(now) && !self.sender.on_timeout(now, &mut self.journal) {
            self.finish(Event::GivenUp);
        }
        if self.sender.persist.timer().is_due(now) && !self.sender.on_persist(now) {
            self.finish(Event::GivenUp);
        }
        self.sender.on_pacing_timeout(now);
        if self.time_wait.is_due(now) {
            self.finish(Event::Closed);
        }
        self.after_input();
    }

    /// When to call [`handle_timeout`](Self::handle_timeout) at the latest, and what for. `None`: not until
    /// something else happens.
    #[must_use]
    #[inline]
    pub fn next_timeout(&self) -> Option<(Instant, Wake)> {
        let (repetition, acknowledgement) =
            (self.sender.timer.deadline(), self.receiver.acks.timer().deadline());
        if !self.ordinary {
            return self.next_of_all_timeouts();
        }
        // No other timer runs.
        let first = if acknowledgement < repetition {
            (acknowledgement, Wake::DelayedAck)
        } else {
            (repetition, Wake::Retransmission)
        };
        (first.0 != Instant::MAX).then_some(first)
    }

    fn next_of_all_timeouts(&self) -> Option<(Instant, Wake)> {
        let losses = self.sender.rack_tlp.as_ref().map_or(Instant::MAX, |state| state.timer().deadline());
        let mut first = (losses, Wake::LossDetection);
        for (deadline, wake) in [
            (self.sender.timer.deadline(), Wake::Retransmission),
            (self.receiver.acks.timer().deadline(), Wake::DelayedAck),
            (self.sender.persist.timer().deadline(), Wake::Persist),
            (self.sender.pacing.timer().deadline(), Wake::Pacing),
            (self.time_wait.deadline(), Wake::TimeWait),
        ] {
            if deadline < first.0 {
                first = (deadline, wake);
            }
        }
        (first.0 != Instant::MAX).then_some(first)
    }

    /// What happened since the last call, oldest first.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.journal.events.pop_front()
    }

    /// Whether [`poll_event`](Self::poll_event) has something to say.
    #[must_use]
    pub fn has_events(&self) -> bool {
        !self.journal.events.is_empty()
    }

    /// The application writes `bytes` bytes; `u64::MAX` never run out, nor can what follows them. Ignored after
    /// [`close`](Self::close).
    pub fn write(&mut self, bytes: u64) {
        self.ordinary = false;
        self.sender.check_app_limited();
        self.sender.queue.write(bytes);
        if bytes > 0 {
            self.sender.wake();
        }
        self.after_input();
    }

    /// Bytes written that have not been sent once.
    #[must_use]
    pub fn unsent(&self) -> u64 {
        self.sender.queue.unsent()
    }

    /// The application takes back what it has written and what has not been sent once.
    pub fn discard_unsent(&mut self) {
        self.sender.queue.discard_unsent();
        self.after_input();
    }

    /// The application has nothing more to send: a FIN follows what was written.
    pub fn close(&mut self) {
        self.ordinary = false;
        match self.state {
            State::Listen => self.finish(Event::Closed),
            State::SynSent if self.sender.queue.unsent() == 0 => self.finish(Event::Closed),
            State::Closed => {}
            _ => {
                self.sender.queue.finish();
                self.sender.wake();
            }
        }
        self.after_input();
    }

    /// Ends the connection at once with a reset.
    pub fn abort(&mut self) {
        self.ordinary = false;
        let tell_peer =
            self.state.is_synchronized() && self.state != State::TimeWait || self.state == State::SynReceived;
        if self.state != State::Closed {
            self.finish(Event::Closed);
        }
        if tell_peer {
            self.reply = Some(Reply::Reset { seq: self.sender.queue.end(), ack: Some(self.receiver.nxt()) });
        }
        self.after_input();
    }

    /// Whether what arrives in order is read at once (it is, to begin with).
    pub fn set_auto_read(&mut self, on: bool) {
        self.ordinary = false;
        self.receiver.set_auto_read(on);
    }

    /// The application reads up to `bytes` bytes; returns how many there were.
    pub fn read(&mut self, bytes: u64) -> u64 {
        self.ordinary = false;
        self.receiver.read(bytes)
    }

    /// Bytes in order that the application has not read.
    #[must_use]
    pub fn available(&self) -> u64 {
        self.receiver.available()
    }

    /// Bytes that have arrived in order since the beginning, read or not.
    #[must_use]
    pub fn received(&self) -> u64 {
        self.receiver.received()
    }

    /// Bytes that the peer has acknowledged since the beginning.
    #[must_use]
    pub fn acknowledged(&self) -> u64 {
        self.journal.counters.bytes_acked
    }

    /// Next sequence number expected from the peer (`RCV.NXT`).
    #[must_use]
    pub fn rcv_nxt(&self) -> SeqNumber {
        self.receiver.nxt()
    }

    /// Whether the byte with the peer's sequence number `seq` has arrived, in order or not.
    #[must_use]
    pub fn has_received(&self, seq: SeqNumber) -> bool {
        !matches!(self.state, State::Closed | State::Listen | State::SynSent) && self.receiver.queue.has(seq)
    }

    /// Before the connection opens: this host's way to the peer takes datagrams of `mtu` bytes at most, as the interface or the route
    /// says. What is announced and what is sent are no longer than that (RFC 9293 section 3.7.1).
    pub fn limit_mtu(&mut self, mtu: u16) {
        let mss = self.segment_within(mtu);
        if matches!(self.state, State::Closed | State::Listen) && mss < self.segment_limit {
            self.config.mss = mss;
            self.segment_limit = mss;
            self.receiver.window.limit_segments(mss.into());
        }
    }

    /// What datagrams of `mtu` bytes leave for the data and options of a segment.
    fn segment_within(&self, mtu: u16) -> u16 {
        let headers = u16::from(self.config.ip_header_len) + TCP_HEADER_LEN;
        mtu.saturating_sub(headers).max(MIN_MSS)
    }

    /// The path takes datagrams of `mtu` bytes at most (ICMP fragmentation needed, RFC 1191): segments become
    /// smaller, and what no longer fits is sent again. A greater `mtu` than before changes nothing.
    pub fn path_mtu_changed(&mut self, now: Instant, mtu: u16) {
        let limit = self.segment_within(mtu);
        self.ordinary = false;
        if limit < self.segment_limit {
            self.limit_segments(now, limit);
        }
        self.after_input();
    }

    /// The timer runs out once more: if it has done so often, large segments may be what does not get through.
    fn try_smaller_segments(&mut self, now: Instant) {
        if !self.state.is_synchronized() || self.sender.timeouts_so_far() < R1 {
            return;
        }
        let limit = if self.segment_limit > BASE_MSS { BASE_MSS } else { self.segment_limit / 2 };
        let limit = limit.max(MIN_MSS);
        if limit < self.segment_limit {
            self.limit_segments(now, limit);
        }
    }

    fn limit_segments(&mut self, now: Instant, limit: u16) {
        self.segment_limit = limit;
        if self.state != State::Closed {
            self.sender.shrink_mss(now, self.effective_mss());
        }
        self.journal.revision += 1;
    }

    /// An ICMP message said that the peer cannot be reached: network or host unreachable (codes 0 and 1), for a segment
    /// of this connection with sequence number `quoted`. It ends nothing; with
    /// [`Config::icmp_unreachable`] it takes a back-off of the timer back (RFC 6069).
    pub fn icmp_unreachable(&mut self, now: Instant, quoted: SeqNumber) {
        self.ordinary = false;
        if self.state == State::Closed {
            return;
        }
        if recovery::icmp_unreachable::on_message(&mut self.sender, now, quoted) {
            self.handle_timeout(now);
        }
        self.journal.revision += 1;
        self.after_input();
    }

    /// Bytes of data in a full-sized segment: what is left of the limit beside the timestamps (RFC 6691).
    pub(crate) fn effective_mss(&self) -> u32 {
        u32::from(self.segment_limit) - if self.timestamps.on { 12 } else { 0 }
    }

    /// State of the connection.
    #[must_use]
    pub fn state(&self) -> State {
        self.state
    }

    /// Whether the handshake is complete and neither side has closed.
    #[must_use]
    pub fn is_established(&self) -> bool {
        self.state == State::Established
    }

    /// Whether there is no connection: before it opens, and after it ended in any way.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.state == State::Closed
    }

    /// The configuration it was made with.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The loss recovery in use: [`Variant::Sack`] becomes [`Variant::NewReno`] when the peer offers no
    /// selective acknowledgements.
    #[must_use]
    pub fn variant(&self) -> Variant {
        self.sender.variant
    }

    /// Totals.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.journal.counters
    }

    /// The last round-trip sample; [`Counters::rtt_samples`] tells whether there was a new one.
    #[must_use]
    pub fn latest_rtt(&self) -> Option<Duration> {
        self.journal.latest_rtt
    }

    /// A number that changes whenever [`snapshot`](Self::snapshot) may have changed.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.journal.revision
    }

    /// The state of the sender.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let sender = &self.sender;
        let (cwnd, ssthresh) = sender.control();
        Snapshot {
            state: self.state,
            phase: sender.phase,
            cwnd,
            ssthresh,
            flight: sender.flight(),
            pacing_rate: sender
                .pacing
                .limit()
                .map(|bytes| DataRate::from_bits_per_second(bytes.saturating_mul(8))),
            snd_wnd: sender.snd_wnd(),
            mss: sender.mss,
            srtt: sender.estimator.srtt(),
            rttvar: sender.estimator.rttvar(),
            rto: sender.estimator.rto(),
            backoff: sender.estimator.backoff(),
            duplicate_acks: sender.duplicate_acks,
            snd_una: sender.queue.una(),
            snd_nxt: sender.queue.nxt(),
        }
    }

    /// What the congestion control believes about the path, where it has a model of it.
    #[must_use]
    pub fn path_model(&self) -> Option<PathModel> {
        self.sender.congestion.model(self.sender.mss)
    }

    /// Where congestion control leaves something to chance ([`crate::CongestionControl::Bbr`]: in which phase a cycle
    /// begins), it comes of `seed`; without this call, of the initial sequence number.
    pub fn set_seed(&mut self, seed: u64) {
        self.sender.congestion.set_seed(seed);
    }

    /// With [`crate::CongestionControl::Bbr`]: in which phases of its eight the cycle of pacing gains begins (0 probes, 1
    /// drains, 2 to 7 cruise), one for each time that it enters the steady state, instead of drawn ones. When these
    /// are used up it draws again.
    pub fn set_cycle_starts(&mut self, starts: &[u8]) {
        self.sender.congestion.set_cycle_starts(starts);
    }

    /// There is no connection any more.
    pub(crate) fn finish(&mut self, event: Event) {
        self.state = State::Closed;
        self.sender.stop_timers();
        self.sender.queue.discard_unsent();
        self.receiver.acks.stop();
        self.time_wait.stop();
        self.journal.revision += 1;
        self.journal.tell(event);
    }

    /// Both sides have closed: late segments are answered for a while.
    pub(crate) fn enter_time_wait(&mut self, now: Instant) {
        self.state = State::TimeWait;
        self.sender.stop_timers();
        self.time_wait.arm(now + self.config.time_wait);
    }

    /// An acknowledgement of a segment that was not taken.
    pub(crate) fn acknowledge_at_once(&mut self) {
        self.receiver.acks.owe(Due::Alone);
    }
}
