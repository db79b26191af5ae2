//! The sending half: takes acknowledgements and timeouts, says what to send next.
//!
//! It keeps the books common to all variants - what is outstanding, the peer's window, the timers; round-trip
//! times are in `sampling.rs`, what to send in `transmission.rs` - and leaves the reaction to losses to
//! [`crate::recovery`].

mod sampling;
mod transmission;

use core::time::Duration;

use careof_base::Instant;
use careof_wire::{SackBlocks, SeqNumber};

use crate::Event;
use crate::config::{Config, IdleRestart, PartialAckTimer, Variant};
use crate::congestion::Window;
use crate::events::Journal;
use crate::persist::Persist;
use crate::recovery::{self, Linux20};
use crate::rto::{Estimator, Sampling};
use crate::send_queue::{Acknowledged, Marks, SendQueue};
use crate::snapshot::Phase;
use crate::timer::Timer;

/// What the sender wants on the wire.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outgoing {
    pub(crate) seq: SeqNumber,
    pub(crate) len: u16,
    pub(crate) marks: Marks,
    pub(crate) retransmission: bool,
    pub(crate) probe: bool,
    /// It leaves nothing to send behind.
    pub(crate) push: bool,
}

/// The acknowledgement in a segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ack<'a> {
    pub(crate) seq: SeqNumber,
    pub(crate) ack: SeqNumber,
    /// Advertised window, bytes.
    pub(crate) window: u32,
    /// The segment carries neither data nor SYN nor FIN.
    pub(crate) pure: bool,
    /// The segment carries data.
    pub(crate) has_data: bool,
    pub(crate) sack: &'a SackBlocks,
    /// Round-trip time by the timestamp echoed.
    pub(crate) echoed_rtt: Option<Duration>,
}

/// What became of an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AckOutcome {
    /// It covers something that was never sent.
    OfUnsent,
    /// It says nothing new.
    Nothing,
    /// It covers something new; whether the FIN is part of it.
    New { fin: bool },
}

/// The switches the sender looks at, copied from the configuration.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    pub(crate) limited_transmit: bool,
    pub(crate) limited_transmit_counts: bool,
    pub(crate) careful: bool,
    pub(crate) threshold: u32,
    pub(crate) slow_but_steady: bool,
    pub(crate) burst_guard: bool,
    pub(crate) linux20_fast_retransmit: bool,
    idle_restart: IdleRestart,
    nagle: bool,
    max_retransmissions: u32,
    rto_max: Duration,
}

#[derive(Clone, Debug)]
pub(crate) struct Sender {
    pub(crate) queue: SendQueue,
    pub(crate) window: Window,
    pub(crate) estimator: Estimator,
    pub(crate) timer: Timer,
    pub(crate) persist: Persist,
    pub(crate) variant: Variant,
    pub(crate) linux20: Linux20,
    pub(crate) rules: Rules,
    pub(crate) phase: Phase,
    /// Bytes of data in a full-sized segment.
    pub(crate) mss: u32,
    pub(crate) duplicate_acks: u32,
    /// Everything before had been sent when the last recovery or timeout began.
    pub(crate) recover: SeqNumber,
    /// The first unacknowledged segment is to be sent again, whatever the window.
    pub(crate) resend_front: bool,
    /// The first partial acknowledgement of this recovery was seen.
    pub(crate) partial_ack_seen: bool,
    /// RFC 6675's RescueRxt; `None` is undefined.
    pub(crate) rescue: Option<SeqNumber>,
    /// Bytes sent by limited transmit for the present duplicate acknowledgements.
    pub(crate) limited: u32,
    /// The one segment being timed: one past its end, and when it left.
    timed: Option<(SeqNumber, Instant)>,
    snd_wnd: u32,
    max_wnd: u32,
    wl1: SeqNumber,
    wl2: SeqNumber,
    timeouts_in_a_row: u32,
    last_sent: Option<Instant>,
    /// A SYN waits to be sent for the first time.
    syn_wanted: bool,
    established: bool,
}

impl Sender {
    pub(crate) fn new(config: &Config, iss: SeqNumber) -> Self {
        Self {
            queue: SendQueue::new(iss),
            window: Window::new(config),
            estimator: Estimator::new(config),
            timer: Timer::default(),
            persist: Persist::default(),
            variant: config.variant,
            linux20: Linux20::new(config, iss),
            rules: Rules {
                limited_transmit: config.limited_transmit,
                limited_transmit_counts: config.limited_transmit_counts,
                careful: config.careful,
                threshold: u32::from(config.duplicate_ack_threshold),
                slow_but_steady: config.partial_ack_timer == PartialAckTimer::SlowButSteady,
                burst_guard: config.burst_guard,
                linux20_fast_retransmit: config.linux20_fast_retransmit,
                idle_restart: config.idle_restart,
                nagle: config.nagle,
                max_retransmissions: config.max_retransmissions,
                rto_max: config.effective_rto_max(),
            },
            phase: Phase::Open,
            mss: u32::from(config.mss),
            duplicate_acks: 0,
            recover: iss,
            resend_front: false,
            partial_ack_seen: false,
            rescue: None,
            limited: 0,
            timed: None,
            snd_wnd: 0,
            max_wnd: 0,
            wl1: SeqNumber(0),
            wl2: iss,
            timeouts_in_a_row: 0,
            last_sent: None,
            syn_wanted: false,
            established: false,
        }
    }

    pub(crate) fn want_syn(&mut self) {
        self.syn_wanted = true;
    }

    /// The peer's SYN told its options: the segment size is known, and with it the window.
    pub(crate) fn negotiated(&mut self, config: &Config, mss: u32, sack: bool) {
        self.mss = mss;
        let syn_repeated = self.queue.front().is_some_and(|syn| syn.transmissions > 1);
        self.window.begin(config, mss, syn_repeated);
        if self.variant == Variant::Sack && !sack {
            self.variant = Variant::NewReno;
        }
    }

    /// The peer's initial window.
    pub(crate) fn set_peer_window(&mut self, seq: SeqNumber, window: u32) {
        self.snd_wnd = window;
        self.max_wnd = self.max_wnd.max(window);
        self.wl1 = seq;
    }

    /// The handshake is complete.
    pub(crate) fn connected(&mut self, syn_repeated: bool) {
        self.established = true;
        self.estimator.connected(syn_repeated);
    }

    pub(crate) fn syn_repeated(&self) -> bool {
        self.queue.front().is_some_and(|syn| syn.marks.has(Marks::SYN) && syn.transmissions > 1)
    }

    pub(crate) fn timeouts_in_a_row(&self) -> u32 {
        self.timeouts_in_a_row
    }

    pub(crate) fn snd_wnd(&self) -> u32 {
        self.snd_wnd
    }

    /// Bytes believed to be on their way.
    pub(crate) fn flight(&self) -> u32 {
        match self.variant {
            Variant::Sack => self.queue.pipe(),
            Variant::Linux20 => self.queue.outstanding(),
            Variant::Tahoe | Variant::Reno | Variant::NewReno => self.queue.flight(),
        }
    }

    /// FlightSize for halving the window (RFC 5681 section 3.2 step 2).
    pub(crate) fn flight_to_halve(&self) -> u32 {
        let flight = match self.variant {
            Variant::Sack if self.phase == Phase::Loss => self.queue.pipe(),
            Variant::Sack => self.queue.outstanding(),
            _ => self.queue.flight(),
        };
        if self.rules.limited_transmit_counts { flight } else { flight.saturating_sub(self.limited) }
    }

    // ---- acknowledgements

    /// Takes the acknowledgement of a segment.
    pub(crate) fn on_ack(&mut self, now: Instant, ack: &Ack<'_>, journal: &mut Journal) -> AckOutcome {
        if ack.ack.is_after(self.queue.end()) {
            journal.counters.dropped_ack_of_unsent += 1;
            return AckOutcome::OfUnsent;
        }
        if ack.ack.is_before(self.queue.una()) {
            journal.counters.old_acks_received += 1;
            return AckOutcome::Nothing;
        }
        let window_before = self.snd_wnd;
        self.update_window(ack);
        let same_window = self.snd_wnd == window_before;
        let sacked = if self.variant == Variant::Sack && !ack.sack.is_empty() {
            self.queue.selectively_acknowledge(ack.sack, self.mss, self.rules.threshold)
        } else {
            0
        };
        let outcome = if ack.ack == self.queue.una() {
            let duplicate = ack.pure && same_window && !self.queue.is_empty();
            journal.counters.duplicate_acks_received += u64::from(duplicate);
            self.on_no_progress(now, ack, duplicate, sacked, journal);
            AckOutcome::Nothing
        } else {
            let done = self.on_progress(now, ack, journal);
            AckOutcome::New { fin: done.fin }
        };
        journal.revision += 1;
        outcome
    }

    /// RFC 9293 section 3.10.7.4: only an acknowledgement that is not older than the last changes the window.
    fn update_window(&mut self, ack: &Ack<'_>) {
        let newer = self.wl1.is_before(ack.seq) || (self.wl1 == ack.seq && self.wl2.is_at_or_before(ack.ack));
        if newer {
            self.snd_wnd = ack.window;
            self.max_wnd = self.max_wnd.max(ack.window);
            self.wl1 = ack.seq;
            self.wl2 = ack.ack;
        }
        if self.persist.timer().is_armed() {
            if self.snd_wnd > 0 {
                self.persist.stop();
            } else {
                self.persist.heard();
            }
        }
    }

    fn on_no_progress(
        &mut self,
        now: Instant,
        ack: &Ack<'_>,
        duplicate: bool,
        sacked: u32,
        journal: &mut Journal,
    ) {
        match self.variant {
            Variant::Linux20 => {
                recovery::linux20::on_ack(self, now, ack, journal);
            }
            // RFC 6675 section 2: with SACK an acknowledgement is a duplicate if it reports something new.
            Variant::Sack if sacked > 0 => recovery::sack::on_duplicate_ack(self, now, journal),
            Variant::Sack => {}
            _ if !duplicate => {}
            Variant::Tahoe => recovery::tahoe::on_duplicate_ack(self, now, journal),
            Variant::Reno => recovery::reno::on_duplicate_ack(self, now, journal),
            Variant::NewReno => recovery::newreno::on_duplicate_ack(self, now, journal),
        }
    }

    fn on_progress(&mut self, now: Instant, ack: &Ack<'_>, journal: &mut Journal) -> Acknowledged {
        self.timeouts_in_a_row = 0;
        self.resend_front = false;
        if self.variant == Variant::Linux20 {
            return recovery::linux20::on_ack(self, now, ack, journal);
        }
        let flight = self.queue.outstanding();
        if self.estimator.sampling() == Sampling::EverySegment {
            self.sample_every_segment(now, ack.ack, journal);
        }
        let done = self.queue.acknowledge(ack.ack);
        journal.counters.bytes_acked += u64::from(done.bytes);
        self.sample(now, ack, &done, flight, journal);
        let keep_timer = match self.variant {
            Variant::Tahoe | Variant::Linux20 => recovery::tahoe::on_new_ack(self, done.bytes, flight),
            Variant::Reno => recovery::reno::on_new_ack(self, done.bytes, flight),
            Variant::NewReno => recovery::newreno::on_new_ack(self, done.bytes, flight),
            Variant::Sack => recovery::sack::on_new_ack(self, done.bytes, flight),
        };
        self.duplicate_acks = 0;
        self.limited = 0;
        if self.queue.is_empty() {
            self.timer.stop();
        } else if !keep_timer {
            self.timer.arm(self.estimator.deadline(now));
        }
        done
    }

    // ---- timers

    /// The retransmission timer ran out. Returns `false` when the connection is to be given up.
    pub(crate) fn on_timeout(&mut self, now: Instant, journal: &mut Journal) -> bool {
        self.timer.stop();
        if self.queue.is_empty() {
            return true;
        }
        journal.counters.timeouts += 1;
        journal.revision += 1;
        self.timeouts_in_a_row = self.timeouts_in_a_row.saturating_add(1);
        journal.tell(Event::Timeout {
            seq: self.queue.una(),
            backoff: self.timeouts_in_a_row,
            rto: self.estimator.rto(),
        });
        if self.timeouts_in_a_row > self.rules.max_retransmissions {
            return false;
        }
        self.stop_timing();
        recovery::on_timeout(self);
        self.estimator.back_off();
        self.timer.arm(self.estimator.deadline(now));
        true
    }

    /// The persist timer ran out. Returns `false` when the connection is to be given up.
    pub(crate) fn on_persist(&mut self, now: Instant) -> bool {
        let unanswered = self.persist.expired(now, self.estimator.rto(), self.rules.rto_max);
        unanswered <= self.rules.max_retransmissions
    }

    pub(crate) fn stop_timers(&mut self) {
        self.timer.stop();
        self.persist.stop();
    }

    /// The path takes segments of at most `mss` bytes of data now: what is larger is cut and sent again
    /// (RFC 1191 section 6.5; no sign of congestion, so the window stays).
    pub(crate) fn shrink_mss(&mut self, mss: u32) {
        self.mss = mss;
        self.window.set_mss(mss);
        if self.queue.split_larger_than(u16::try_from(mss).unwrap_or(u16::MAX)) {
            recovery::send_all_again(self);
            self.stop_timing();
        }
    }
}
