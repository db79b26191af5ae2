//! Delivery rate estimation (draft-ietf-ccwg-bbr-06, 2026, section 4.1; before that
//! draft-cheng-iccrg-delivery-rate-estimation): how much was delivered between the sending of a segment and its
//! acknowledgement, and in what time.
//!
//! Each segment carries, in a ring beside the send queue's records, what had been delivered when it was sent. Only the
//! congestion controls that ask for rates pay for it ([`Unit`]). What is counted are segments, as Linux 6.1
//! does (`net/ipv4/tcp_rate.c`), or bytes of data, as the draft does. Without selective acknowledgements each duplicate
//! acknowledgement counts as a segment delivered (section 4.1.3.5.1).
//!
//! Left out: the window of 300 s in which Linux forgets the least round-trip time that makes a sample plausible; here
//! it is that of the connection, as in the draft. Only a path whose delay rose for good could notice, and it gains a
//! sample that Linux discards.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;

use careof_base::Instant;
use careof_wire::SeqNumber;

use crate::send_queue::{Marks, Record};

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Whatever its length, a segment is one.
    Segments,
    /// Bytes of data.
    Octets,
}

/// What was known when a segment left (the draft's P).
#[derive(Clone, Copy, Debug)]
struct Departure {
    delivered: u64,
    lost: u64,
    delivered_at: Instant,
    first_sent_at: Instant,
    /// Bytes in flight, the segment included.
    in_flight: u32,
    app_limited: bool,
    /// It has arrived; it is not counted again.
    arrived: bool,
    /// It is presumed lost since it was last sent.
    lost_since: bool,
}

/// A segment that was presumed lost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LostSegment {
    /// Its size in the unit.
    pub(crate) size: u64,
    /// Bytes in flight when it was sent, itself included.
    pub(crate) in_flight: u32,
    /// What was presumed lost from then on, itself included.
    pub(crate) lost: u64,
    /// It was sent when there was not enough to send.
    pub(crate) app_limited: bool,
    /// It begins where the one lost before it does not end.
    pub(crate) apart: bool,
}

/// The newest segment that this acknowledgement delivered.
#[derive(Clone, Copy, Debug)]
struct Newest {
    end: SeqNumber,
    departure: Departure,
    send_elapsed: Duration,
}

/// The round trip that an acknowledgement shows.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RoundTrip {
    pub(crate) rtt: Option<Duration>,
    /// The receiver has probably held the acknowledgement back: it is that of a lone small segment.
    pub(crate) delayed: bool,
}

/// What an acknowledgement says about rates (the draft's RS). Amounts are in the [`Unit`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct RateSample {
    /// Acknowledged or selectively acknowledged for the first time.
    pub(crate) newly_delivered: u64,
    /// Presumed lost since the last acknowledgement.
    pub(crate) newly_lost: u64,
    /// Delivered since the newest segment delivered had left; `None` when nothing was delivered.
    pub(crate) delivered: Option<u64>,
    /// In this time; `None` when it cannot be: less than any round trip.
    pub(crate) interval: Option<Duration>,
    /// Delivered in all when that segment left.
    pub(crate) prior_delivered: u64,
    /// That segment was sent when there was not enough to send.
    pub(crate) app_limited: bool,
    /// Bytes in flight when that segment had left.
    pub(crate) tx_in_flight: u32,
    /// Presumed lost since that segment had left.
    pub(crate) lost: u64,
    /// In flight before the acknowledgement.
    pub(crate) prior_in_flight: u64,
    /// Round trip of the newest segment that was sent once; without one, by timestamp.
    pub(crate) rtt: Option<Duration>,
    /// The receiver has probably held the acknowledgement back: it is that of a lone small segment.
    pub(crate) ack_delayed: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct DeliveryRate {
    unit: Unit,
    /// One for each record of the send queue.
    departures: VecDeque<Departure>,
    delivered: u64,
    lost: u64,
    delivered_at: Instant,
    first_sent_at: Instant,
    /// Until this much is delivered, samples are limited by the application; 0: they are not.
    app_limited: u64,
    min_rtt: Duration,
    /// Duplicates that stand for a delivered segment each, without selective acknowledgements.
    duplicates: u64,

    // What the acknowledgement at hand has brought.
    newest: Option<Newest>,
    delivered_before: u64,
    lost_before: u64,
    in_flight_before: u64,
    newest_acked: Option<Instant>,
    newest_sacked: Option<Instant>,
    repeated: bool,
    acked_segments: u32,
    acked_bytes: u32,
    lost_segments: Vec<LostSegment>,
    last_lost_end: Option<SeqNumber>,
}

impl DeliveryRate {
    pub(crate) fn new(unit: Unit) -> Self {
        Self {
            unit,
            departures: VecDeque::new(),
            delivered: 0,
            lost: 0,
            delivered_at: Instant::ZERO,
            first_sent_at: Instant::ZERO,
            app_limited: 0,
            min_rtt: Duration::MAX,
            duplicates: 0,
            newest: None,
            delivered_before: 0,
            lost_before: 0,
            in_flight_before: 0,
            newest_acked: None,
            newest_sacked: None,
            repeated: false,
            acked_segments: 0,
            acked_bytes: 0,
            lost_segments: Vec::new(),
            last_lost_end: None,
        }
    }

    /// Bytes of data that an amount of one stands for, with segments of `mss` bytes.
    pub(crate) fn bytes_of_unit(&self, mss: u32) -> u64 {
        match self.unit {
            Unit::Segments => u64::from(mss),
            Unit::Octets => 1,
        }
    }

    fn size(&self, record: &Record) -> u64 {
        match self.unit {
            Unit::Segments => 1,
            Unit::Octets => u64::from(record.len),
        }
    }

    fn amount(&self, bytes: u32, segments: u32) -> u64 {
        match self.unit {
            Unit::Segments => u64::from(segments),
            Unit::Octets => u64::from(bytes),
        }
    }

    /// Delivered in all.
    pub(crate) fn delivered(&self) -> u64 {
        self.delivered
    }

    /// When something was last delivered; when the last idle time ended, if that is later.
    pub(crate) fn delivered_at(&self) -> Instant {
        self.delivered_at
    }

    /// Presumed lost in all.
    pub(crate) fn lost(&self) -> u64 {
        self.lost
    }

    /// Least round-trip time of the connection; [`Duration::MAX`] before the first.
    pub(crate) fn min_rtt(&self) -> Duration {
        self.min_rtt
    }

    /// The path is another.
    pub(crate) fn forget_min_rtt(&mut self) {
        self.min_rtt = Duration::MAX;
    }

    pub(crate) fn is_app_limited(&self) -> bool {
        self.app_limited != 0
    }

    /// Samples of what is sent from now on, until what is in flight is delivered, are limited by the application.
    pub(crate) fn mark_app_limited(&mut self, bytes_in_flight: u32, segments_in_flight: u32) {
        let in_flight = self.amount(bytes_in_flight, segments_in_flight);
        self.app_limited = (self.delivered + in_flight).max(1);
    }

    /// Where segments are counted, loss recovery has its own totals of what was delivered and lost, which count.
    pub(crate) fn set_totals(&mut self, delivered: u64, lost: u64) {
        if self.unit == Unit::Segments {
            self.delivered = delivered;
            self.lost = lost;
        }
    }

    /// Duplicates that stand for segments delivered beyond the first unacknowledged one.
    pub(crate) fn duplicates(&self) -> u64 {
        self.duplicates
    }

    // ---- what is sent

    fn departure(&mut self, now: Instant, idle: bool, in_flight: u32) -> Departure {
        if idle {
            self.first_sent_at = now;
            self.delivered_at = now;
        }
        Departure {
            delivered: self.delivered,
            lost: self.lost,
            delivered_at: self.delivered_at,
            first_sent_at: self.first_sent_at,
            in_flight,
            app_limited: self.is_app_limited(),
            arrived: false,
            lost_since: false,
        }
    }

    /// A new segment leaves; `idle`: nothing else is outstanding. `in_flight` bytes count it in.
    pub(crate) fn sent(&mut self, now: Instant, idle: bool, in_flight: u32) {
        let departure = self.departure(now, idle, in_flight);
        self.departures.push_back(departure);
    }

    /// Record `index` leaves again; `in_flight` bytes count it in.
    pub(crate) fn resent(&mut self, index: usize, now: Instant, in_flight: u32) {
        let departure = self.departure(now, false, in_flight);
        if let Some(slot) = self.departures.get_mut(index) {
            let arrived = slot.arrived;
            *slot = Departure { arrived, ..departure };
        }
    }

    /// Record `index` was cut into `pieces`.
    pub(crate) fn split(&mut self, pieces: &[usize]) {
        let old = core::mem::take(&mut self.departures);
        for (departure, &count) in old.into_iter().zip(pieces) {
            self.departures.extend(core::iter::repeat_n(departure, count));
        }
    }

    /// Record `index` has become a part of the one before.
    pub(crate) fn absorbed(&mut self, index: usize) {
        self.departures.remove(index);
    }

    // ---- what an acknowledgement says

    /// An acknowledgement arrives while so much is in flight.
    pub(crate) fn begin(&mut self, bytes_in_flight: u32, segments_in_flight: u32) {
        self.newest = None;
        self.delivered_before = self.delivered;
        if self.unit == Unit::Segments {
            // What a timer marked in between is no loss of this acknowledgement's (`tcp_ack`).
            self.lost_before = self.lost;
        }
        self.in_flight_before = self.amount(bytes_in_flight, segments_in_flight);
        self.newest_acked = None;
        self.newest_sacked = None;
        self.repeated = false;
        self.acked_segments = 0;
        self.acked_bytes = 0;
    }

    /// The first record is acknowledged.
    pub(crate) fn acknowledged(&mut self, record: &Record) {
        let Some(departure) = self.departures.pop_front() else { return };
        self.acked_segments += 1;
        self.acked_bytes = self.acked_bytes.saturating_add(u32::from(record.len));
        if record.transmissions > 1 {
            self.repeated = true;
        } else if !departure.arrived {
            self.newest_acked = Some(record.sent_at);
        }
        self.arrived(record, &departure);
    }

    /// `bytes` at the beginning of the first record are acknowledged.
    pub(crate) fn acknowledged_part(&mut self, bytes: u32) {
        if self.unit == Unit::Octets && self.departures.front().is_some_and(|departure| !departure.arrived) {
            self.delivered += u64::from(bytes);
        }
    }

    /// Record `index` is selectively acknowledged.
    pub(crate) fn selectively_acknowledged(&mut self, index: usize, record: &Record) {
        let Some(departure) = self.departures.get_mut(index) else { return };
        let before = *departure;
        departure.arrived = true;
        if record.transmissions == 1 && !before.arrived {
            self.newest_sacked = self.newest_sacked.max(Some(record.sent_at));
        }
        self.arrived(record, &before);
    }

    /// A duplicate acknowledgement without selective acknowledgements; at most `others` segments can have caused one.
    pub(crate) fn duplicate(&mut self, others: u64, mss: u32) {
        if self.duplicates < others {
            self.duplicates += 1;
            self.delivered += self.amount(mss, 1);
        }
    }

    /// Segments were acknowledged, without selective acknowledgements: what duplicates have told of is not
    /// delivered twice.
    pub(crate) fn settle_duplicates(&mut self, mss: u32) {
        if self.duplicates == 0 {
            return;
        }
        let segment = self.amount(mss, 1);
        // The first of the acknowledged segments was the one missing.
        let told = self.duplicates.min(u64::from(self.acked_segments.saturating_sub(1)));
        self.duplicates -= told;
        self.delivered = self.delivered.saturating_sub(told * segment).max(self.delivered_before);
    }

    /// Everything up to the loss is repaired, or given up: duplicates begin anew.
    pub(crate) fn forget_duplicates(&mut self) {
        self.duplicates = 0;
    }

    fn arrived(&mut self, record: &Record, departure: &Departure) {
        if departure.arrived {
            return;
        }
        self.delivered += self.size(record);
        let newer = self.newest.is_none_or(|newest| {
            record.sent_at > self.first_sent_at
                || (record.sent_at == self.first_sent_at && record.end().is_after(newest.end))
        });
        if newer {
            self.first_sent_at = record.sent_at;
            self.newest = Some(Newest {
                end: record.end(),
                departure: *departure,
                send_elapsed: record.sent_at - departure.first_sent_at,
            });
        }
    }

    /// Record `index` is presumed lost.
    pub(crate) fn presumed_lost(&mut self, index: usize, record: &Record) {
        let size = self.size(record);
        let Some(departure) = self.departures.get_mut(index) else { return };
        if departure.arrived || departure.lost_since || record.marks.has(Marks::SYN) {
            return;
        }
        departure.lost_since = true;
        self.lost += size;
        self.lost_segments.push(LostSegment {
            size,
            in_flight: departure.in_flight,
            lost: self.lost.saturating_sub(departure.lost),
            app_limited: departure.app_limited,
            apart: self.last_lost_end != Some(record.seq),
        });
        self.last_lost_end = Some(record.end());
    }

    /// The losses found since the last call of [`Self::forget_lost_segments`].
    pub(crate) fn lost_segments(&self) -> &[LostSegment] {
        &self.lost_segments
    }

    /// The losses were looked at.
    pub(crate) fn forget_lost_segments(&mut self) {
        self.lost_segments.clear();
    }

    /// The round trip that the acknowledgement shows: of the newest segment that was sent once, or by timestamp.
    pub(crate) fn round_trip(&self, now: Instant, echoed: Option<Duration>, mss: u32) -> RoundTrip {
        // A lone segment that is smaller than others, and nothing else acknowledged meanwhile.
        let lone = self.newest_acked.is_some()
            && self.newest_sacked.is_none()
            && self.acked_segments == 1
            && self.acked_bytes < mss;
        let since = self.newest.map(|newest| self.delivered.saturating_sub(newest.departure.delivered));
        let alone = self.amount(self.acked_bytes, 1);
        let acked = if self.repeated { None } else { self.newest_acked };
        let rtt = self.newest_sacked.or(acked).map(|sent_at| now - sent_at);
        RoundTrip {
            rtt: rtt.or(if self.newest.is_some() { echoed } else { None }),
            delayed: lone && since == Some(alone),
        }
    }

    /// The acknowledgement was taken in: its sample.
    pub(crate) fn sample(&mut self, now: Instant, round_trip: RoundTrip) -> RateSample {
        if self.app_limited != 0 && self.delivered > self.app_limited {
            self.app_limited = 0;
        }
        // Loss recovery's totals may be a little behind what was counted here while the acknowledgement was taken.
        let newly_delivered = self.delivered.saturating_sub(self.delivered_before);
        if newly_delivered > 0 {
            self.delivered_at = now;
        }
        let newly_lost = self.lost.saturating_sub(self.lost_before);
        self.lost_before = self.lost;
        let RoundTrip { rtt, delayed: ack_delayed } = round_trip;
        if let Some(rtt) = rtt
            && !(ack_delayed && rtt > self.min_rtt)
        {
            self.min_rtt = self.min_rtt.min(rtt);
        }
        let since = self.newest.map(|newest| self.delivered.saturating_sub(newest.departure.delivered));
        let interval = self.newest.and_then(|newest| {
            let interval = newest.send_elapsed.max(now - newest.departure.delivered_at);
            let possible = !interval.is_zero() && (self.min_rtt == Duration::MAX || interval >= self.min_rtt);
            possible.then_some(interval)
        });
        let departure = self.newest.map(|newest| newest.departure);
        RateSample {
            newly_delivered,
            newly_lost,
            delivered: since,
            interval,
            prior_delivered: departure.map_or(0, |departure| departure.delivered),
            app_limited: departure.is_some_and(|departure| departure.app_limited),
            tx_in_flight: departure.map_or(0, |departure| departure.in_flight),
            lost: departure.map_or(0, |departure| self.lost.saturating_sub(departure.lost)),
            prior_in_flight: self.in_flight_before,
            rtt,
            ack_delayed,
        }
    }

    /// Departures kept, for the send queue's check.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.departures.len()
    }
}
