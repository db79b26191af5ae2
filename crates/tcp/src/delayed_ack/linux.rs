//! The receiver of today's Linux, modelled on what 6.1 does (net/ipv4/tcp_input.c, tcp_output.c, tcp_timer.c:
//! tcp_event_data_recv, tcp_measure_rcv_mss, __tcp_ack_snd_check, tcp_send_delayed_ack, tcp_cleanup_rbuf).
//!
//! It acknowledges the first segments at once, one by one ("quick ACKs": as many as half the window holds, 16 at
//! most), and again so after a pause longer than its RTO, after data it had already, and after a congestion mark. Then it
//! acknowledges when more than one full segment waits, when a pushed segment has been read, and otherwise after a delay
//! (the ATO) of 40 ms to 200 ms that follows the spacing of arrivals. A host that answers within the ATO is taken for
//! an interactive one: it is spared the quick ACKs, so that acknowledgements ride on its answers.
//!
//! While something is missing, each further segment is acknowledged at once, but with SACK only the first three times for the same
//! gap: then one acknowledgement a twentieth of the round trip, at most each millisecond, stands for up to 44
//! (`tcp_comp_sack_nr`, `tcp_comp_sack_delay_ns`; `tcp_compressed_ack_kick`).
//!
//! Jiffies are milliseconds (HZ = 1000). The application is assumed to read what arrives at once unless it is told to
//! pause. Left out: `TCP_QUICKACK`, route metrics, the rounding of timers by the wheel, and the receiver's own estimate of the round
//! trip, which compression goes by where it is less than SRTT.

use core::time::Duration;

use careof_base::Instant;
use careof_wire::SeqNumber;

use super::{Due, Received};
use crate::receive_queue::Arrival;

/// `TCP_ATO_MIN` and `TCP_DELACK_MIN`, `TCP_DELACK_MAX`, half a second: milliseconds.
const LEAST: u64 = 40;
const MOST: u64 = 200;
const HALF_A_SECOND: u64 = 500;
/// `TCP_MAX_QUICKACKS`, and the quick ACKs after a congestion mark.
const MOST_QUICK: u32 = 16;
const QUICK_AFTER_MARK: u32 = 2;
/// What a peer's segments are taken to be before one has come (`TCP_MSS_DEFAULT`).
const FIRST_GUESS: u32 = 536;
/// Smaller segments than this never count as full, whatever their flags.
const LEAST_MSS: u32 = 88;

/// Duplicate acknowledgements for a gap that leave at once (`TCP_FASTRETRANS_THRESH`).
const UNCOMPRESSED: u32 = 3;
/// As many are never held back together (`tcp_comp_sack_nr`).
const MOST_COMPRESSED: u32 = 44;
/// How long the first waits at most, and what the timer may add (`tcp_comp_sack_delay_ns`, `tcp_comp_sack_slack_ns`).
const COMPRESSION: Duration = Duration::from_millis(1);
const COMPRESSION_SLACK: Duration = Duration::from_micros(100);

/// Pushed segments among what waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Pushed {
    #[default]
    No,
    Once,
    Again,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Linux {
    /// Acknowledgements still to be sent at once.
    quick: u32,
    /// The delay, milliseconds; 0 before the first data.
    ato: u64,
    interactive: bool,
    last_arrival: u64,
    /// The size of the peer's full segments, as far as it is known, bytes.
    segment: u32,
    /// The last size seen that was none.
    odd_size: Option<u32>,
    pushed: Pushed,
    /// Bytes in order not acknowledged yet.
    waiting: u32,
    /// Something came that is to be acknowledged.
    scheduled: bool,
    /// Whether duplicate acknowledgements are compressed.
    compresses: bool,
    /// Those held back.
    compressed: u32,
    /// How many were sent while the next byte awaited was this one.
    repeated: (SeqNumber, u32),
}

impl Linux {
    pub(super) fn new() -> Self {
        Self {
            quick: 0,
            ato: 0,
            interactive: false,
            last_arrival: 0,
            segment: FIRST_GUESS,
            odd_size: None,
            pushed: Pushed::No,
            waiting: 0,
            scheduled: false,
            compresses: false,
            compressed: 0,
            repeated: (SeqNumber(0), 0),
        }
    }

    pub(super) fn compress(&mut self, on: bool) {
        self.compresses = on;
    }

    /// Whether acknowledgements are held back until the timer runs out.
    pub(super) fn is_compressing(&self) -> bool {
        self.compressed > 0
    }

    /// Something is missing and more came after it: the duplicate acknowledgement leaves at once, or when the deadline
    /// comes (`__tcp_ack_snd_check`).
    fn repeat(&mut self, now: Instant, data: &Received, present: Instant) -> (Due, Instant) {
        let at_once = self.waiting > self.segment || (self.quick > 0 && !self.interactive);
        if at_once || !self.compresses || self.compressed >= MOST_COMPRESSED || self.is_new_gap(data.nxt) {
            return (Due::Alone, present);
        }
        self.compressed += 1;
        if self.compressed > 1 {
            return (Due::No, present);
        }
        let wait = COMPRESSION.min(data.srtt.unwrap_or_default() / 20) + COMPRESSION_SLACK;
        (Due::No, present.min(now + wait))
    }

    /// Counts the acknowledgement; whether it is among the first for what is missing.
    fn is_new_gap(&mut self, nxt: SeqNumber) -> bool {
        if self.repeated.0 != nxt {
            self.repeated = (nxt, 0);
        }
        let first = self.repeated.1 < UNCOMPRESSED;
        self.repeated.1 += u32::from(first);
        first
    }

    /// What is owed for a segment: at once, or by the deadline, which is `present` where an acknowledgement is
    /// scheduled already.
    pub(super) fn on_data(&mut self, now: Instant, data: &Received, present: Instant) -> (Due, Instant) {
        self.scheduled = true;
        if data.arrival == Arrival::Duplicate {
            // Force a quick one, and those that follow.
            self.enter_quick(MOST_QUICK, data.window);
            return (Due::Alone, present);
        }
        if data.arrival == Arrival::OutOfOrder {
            return self.repeat(now, data, present);
        }
        self.waiting = self.waiting.saturating_add(data.len);
        self.measure(data);
        self.follow_spacing(jiffies(now), data);
        if data.marked {
            self.enter_quick(QUICK_AFTER_MARK, data.window);
        }
        if data.fin {
            self.interactive = true;
        }
        let at_once = self.waiting > self.segment
            || (self.quick > 0 && !self.interactive)
            || data.arrival == Arrival::FillsGap
            || data.islands;
        if data.islands && self.waiting <= self.segment {
            self.is_new_gap(data.nxt);
        }
        if at_once || (data.reads && self.reading_acknowledges()) {
            return (Due::Soon, present);
        }
        self.delay(now, data, present)
    }

    /// The application read what was pushed (`tcp_cleanup_rbuf`).
    fn reading_acknowledges(&self) -> bool {
        self.pushed == Pushed::Again || (self.pushed == Pushed::Once && !self.interactive)
    }

    fn delay(&self, now: Instant, data: &Received, present: Instant) -> (Due, Instant) {
        let mut ato = self.ato;
        if ato > LEAST {
            let mut most = if self.interactive || self.pushed != Pushed::No { MOST } else { HALF_A_SECOND };
            if let Some(srtt) = data.srtt {
                most = most.min(millis(srtt).max(LEAST));
            }
            ato = ato.min(most);
        }
        ato = ato.min(MOST);
        let from = jiffies(now);
        let deadline = Instant::from_millis(from.saturating_add(ato));
        if present != Instant::MAX && present <= Instant::from_millis(from.saturating_add(ato / 4)) {
            // The timer is about to run out anyhow.
            return (Due::Soon, present);
        }
        (Due::No, deadline.min(present))
    }

    fn measure(&mut self, data: &Received) {
        let last = self.odd_size.take();
        if data.len >= self.segment {
            self.segment = data.len.min(data.mss);
            if data.push && self.pushed == Pushed::No {
                self.pushed = Pushed::Once;
            }
            return;
        }
        // Not pushed and not small: the peer's segments may have become smaller.
        let might_be_full = data.len >= FIRST_GUESS || (data.len >= LEAST_MSS && !data.push && !data.fin);
        if might_be_full {
            self.odd_size = Some(data.len);
            if last == Some(data.len) {
                self.segment = data.len;
                return;
            }
        }
        self.pushed = if self.pushed == Pushed::No { Pushed::Once } else { Pushed::Again };
    }

    fn follow_spacing(&mut self, present: u64, data: &Received) {
        let gap = present.saturating_sub(self.last_arrival);
        if self.ato == 0 {
            self.more_quick(MOST_QUICK, data.window);
            self.ato = LEAST;
        } else if gap <= LEAST / 2 {
            self.ato = (self.ato >> 1) + LEAST / 2;
        } else if gap < self.ato {
            self.ato = ((self.ato >> 1) + gap).min(millis(data.rto));
        } else if gap > millis(data.rto) {
            // The sender was silent for so long that its window has restarted.
            self.more_quick(MOST_QUICK, data.window);
        }
        self.last_arrival = present;
    }

    fn more_quick(&mut self, most: u32, window: u32) {
        let fits = match window / (2 * self.segment).max(1) {
            0 => 2,
            count => count,
        };
        self.quick = self.quick.max(fits.min(most));
    }

    fn enter_quick(&mut self, most: u32, window: u32) {
        self.more_quick(most, window);
        self.interactive = false;
        self.ato = LEAST;
    }

    /// The timer ran out.
    pub(super) fn expired(&mut self, rto: Duration) {
        if self.interactive {
            self.interactive = false;
            self.ato = LEAST;
        } else {
            self.ato = (self.ato << 1).min(millis(rto));
        }
    }

    /// A segment with an acknowledgement left; with data of this end, when `data`.
    pub(super) fn sent(&mut self, now: Instant, data: bool) {
        if self.quick > 0 && self.scheduled {
            self.quick -= 1;
            if self.quick == 0 {
                self.ato = LEAST;
            }
        }
        self.scheduled = false;
        self.compressed = 0;
        self.pushed = Pushed::No;
        self.waiting = 0;
        if data && self.ato > 0 && jiffies(now).saturating_sub(self.last_arrival) < self.ato {
            self.interactive = true;
        }
    }
}

fn jiffies(at: Instant) -> u64 {
    at.as_nanos() / 1_000_000
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}
