//! What has been sent and not yet acknowledged, one record a segment, and how much waits to be sent.
//!
//! A cursor walks over the records: where it stands is `snd_nxt`. At the end of the queue, which is where it
//! mostly is, the next segment is new; pulled back to the front after a timeout it repeats what was sent, segment
//! by segment, as BSD and ns-2 do (go-back-N). The ring is reused, so a steady flow allocates nothing.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

use careof_base::Instant;
use careof_wire::{SackBlocks, SeqNumber};

use crate::delivery_rate::{DeliveryRate, Unit};
use crate::scoreboard::{Scoreboard, Watched};

/// A segment that was sent and is not acknowledged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record {
    pub(crate) seq: SeqNumber,
    /// Bytes of data.
    pub(crate) len: u16,
    pub(crate) marks: Marks,
    /// How often it was sent; saturates.
    pub(crate) transmissions: u8,
    /// When it was sent last.
    pub(crate) sent_at: Instant,
}

/// What is known of a record, as bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Marks(u8);

impl Marks {
    pub(crate) const SYN: Self = Self(1);
    pub(crate) const FIN: Self = Self(2);
    /// Selectively acknowledged.
    pub(crate) const SACKED: Self = Self(4);
    /// Presumed lost.
    pub(crate) const LOST: Self = Self(8);
    /// Sent again since it was presumed lost (at or below RFC 6675's HighRxt).
    pub(crate) const REPAIRED: Self = Self(16);
    /// Known to be lost, and not sent again since: RACK no longer looks at it ([`crate::Variant::Linux`]).
    pub(crate) const UNWATCHED: Self = Self(32);
    /// It left in one packet with the record before, which a device cut into segments ([`crate::Variant::Linux`]).
    pub(crate) const JOINED: Self = Self(64);
    /// The scoreboard's three.
    pub(crate) const SCORED: Self = Self(4 | 8 | 16);

    pub(crate) const fn has(self, mark: Self) -> bool {
        self.0 & mark.0 != 0
    }

    pub(crate) const fn set(&mut self, mark: Self) {
        self.0 |= mark.0;
    }

    pub(crate) const fn clear(&mut self, mark: Self) {
        self.0 &= !mark.0;
    }
}

impl Record {
    /// Sequence space taken: data, SYN and FIN.
    pub(crate) const fn seq_len(&self) -> u32 {
        self.len as u32 + self.marks.has(Marks::SYN) as u32 + self.marks.has(Marks::FIN) as u32
    }

    pub(crate) const fn end(&self) -> SeqNumber {
        self.seq.plus(self.seq_len())
    }

    /// Whether it is a part of the packet that `first` begins, and has the same history.
    fn continues(&self, first: &Self) -> bool {
        let history = |record: &Self| {
            let mut marks = record.marks;
            marks.clear(Marks::JOINED);
            marks.clear(Marks::FIN);
            (marks, record.transmissions, record.sent_at)
        };
        self.marks.has(Marks::JOINED) && history(self) == history(first)
    }
}

/// What a cumulative acknowledgement covered.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Acknowledged {
    /// Bytes of data.
    pub(crate) bytes: u32,
    /// When the first segment of those that were sent only once had left.
    pub(crate) sent_at: Option<Instant>,
    /// When the last segment of it had left, if that was sent only once.
    pub(crate) newest_sent_at: Option<Instant>,
    /// Some of it had been sent more than once.
    pub(crate) repeated: bool,
    pub(crate) syn: bool,
    pub(crate) fin: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fin {
    No,
    Wanted,
    Sent,
}

#[derive(Clone, Debug)]
pub(crate) struct SendQueue {
    records: VecDeque<Record>,
    /// Index of the record that is sent next; the number of records when that is a new one.
    next: usize,
    una: SeqNumber,
    /// Everything before has been sent at least once (`snd_max` in BSD, HighData in RFC 6675).
    end: SeqNumber,
    /// Bytes the application wrote that have never been sent.
    unsent: u64,
    fin: Fin,
    pub(crate) scoreboard: Scoreboard,
    /// Rates of delivery, where the congestion control wants them.
    pub(crate) delivery: Option<Box<DeliveryRate>>,
}

impl SendQueue {
    pub(crate) fn new(iss: SeqNumber) -> Self {
        Self {
            records: VecDeque::new(),
            next: 0,
            una: iss,
            end: iss,
            unsent: 0,
            fin: Fin::No,
            scoreboard: Scoreboard::new(iss),
            delivery: None,
        }
    }

    /// Measures rates of delivery from the first segment on, in `unit`.
    pub(crate) fn measure_delivery(&mut self, unit: Unit) {
        self.delivery = Some(Box::new(DeliveryRate::new(unit)));
    }

    pub(crate) fn una(&self) -> SeqNumber {
        self.una
    }

    pub(crate) fn end(&self) -> SeqNumber {
        self.end
    }

    /// `SND.NXT`: where the cursor stands.
    pub(crate) fn nxt(&self) -> SeqNumber {
        self.records.get(self.next).map_or(self.end, |record| record.seq)
    }

    /// Sequence space sent and not acknowledged, the part behind the cursor left out.
    pub(crate) fn flight(&self) -> u32 {
        self.nxt().bytes_since(self.una)
    }

    /// Sequence space sent at least once and not acknowledged.
    pub(crate) fn outstanding(&self) -> u32 {
        self.end.bytes_since(self.una)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Everything was sent and acknowledged.
    pub(crate) fn is_done(&self) -> bool {
        self.records.is_empty() && self.unsent == 0 && self.fin != Fin::Wanted
    }

    /// Whether the cursor stands at the end: the next segment is new.
    pub(crate) fn at_end(&self) -> bool {
        self.next >= self.records.len()
    }

    pub(crate) fn unsent(&self) -> u64 {
        self.unsent
    }

    pub(crate) fn write(&mut self, bytes: u64) {
        if self.fin == Fin::No {
            self.unsent = self.unsent.saturating_add(bytes);
        }
    }

    /// A FIN follows the last byte.
    pub(crate) fn finish(&mut self) {
        if self.fin == Fin::No {
            self.fin = Fin::Wanted;
        }
    }

    /// A FIN waits to be sent for the first time.
    pub(crate) fn fin_wanted(&self) -> bool {
        self.fin == Fin::Wanted
    }

    /// More may follow what was written.
    pub(crate) fn is_unfinished(&self) -> bool {
        self.fin == Fin::No
    }

    pub(crate) fn discard_unsent(&mut self) {
        self.unsent = 0;
    }

    pub(crate) fn record(&self, index: usize) -> Option<&Record> {
        self.records.get(index)
    }

    pub(crate) fn len(&self) -> usize {
        self.records.len()
    }

    pub(crate) fn record_mut(&mut self, index: usize) -> Option<&mut Record> {
        self.records.get_mut(index)
    }

    /// Index of the first record that ends after `seq`.
    pub(crate) fn index_ending_after(&self, seq: SeqNumber) -> usize {
        self.records.partition_point(|record| record.end().is_at_or_before(seq))
    }

    /// Index of the first record that begins at or after `seq`.
    pub(crate) fn index_at(&self, seq: SeqNumber) -> usize {
        self.records.partition_point(|record| record.seq.is_before(seq))
    }

    pub(crate) fn front(&self) -> Option<&Record> {
        self.records.front()
    }

    /// The record under the cursor, if it does not stand at the end.
    pub(crate) fn under_cursor(&self) -> Option<&Record> {
        self.records.get(self.next)
    }

    pub(crate) fn cursor(&self) -> usize {
        self.next
    }

    pub(crate) fn set_cursor(&mut self, index: usize) {
        self.next = index.min(self.records.len());
    }

    /// Sends the SYN for the first time.
    pub(crate) fn push_syn(&mut self, now: Instant) -> Record {
        self.push(now, 0, Marks::SYN)
    }

    /// Takes `len` bytes of what is unsent, with the FIN where they are the last.
    pub(crate) fn push_new(&mut self, now: Instant, len: u16) -> Record {
        let len = u16::try_from(self.unsent).unwrap_or(u16::MAX).min(len);
        self.take_unsent(len);
        let mut marks = Marks::default();
        if self.unsent == 0 && self.fin == Fin::Wanted {
            self.fin = Fin::Sent;
            marks = Marks::FIN;
        }
        self.push(now, len, marks)
    }

    #[inline]
    fn take_unsent(&mut self, len: u16) {
        // An endless flow stays endless.
        if self.unsent != u64::MAX {
            self.unsent -= u64::from(len);
        }
    }

    /// Takes `len` bytes of what is unsent; no FIN follows.
    #[inline]
    pub(crate) fn push_data(&mut self, now: Instant, len: u16) {
        self.take_unsent(len);
        self.push(now, len, Marks::default());
    }

    #[inline]
    fn push(&mut self, now: Instant, len: u16, marks: Marks) -> Record {
        let record = Record { seq: self.end, len, marks, transmissions: 1, sent_at: now };
        self.records.push_back(record);
        self.next = self.records.len();
        self.end = record.end();
        if self.delivery.is_some() {
            self.measure_departure(now);
        }
        record
    }

    #[inline(never)]
    fn measure_departure(&mut self, now: Instant) {
        let (idle, pipe) = (self.records.len() == 1, self.pipe());
        if let Some(delivery) = &mut self.delivery {
            delivery.sent(now, idle, pipe);
        }
    }

    /// The last record left in one packet with the one before.
    pub(crate) fn join_last(&mut self) {
        if let Some(last) = self.records.back_mut() {
            last.marks.set(Marks::JOINED);
        }
    }

    /// Packets in all, as they left.
    pub(crate) fn packets(&self) -> usize {
        self.records.iter().filter(|record| !record.marks.has(Marks::JOINED)).count()
    }

    /// How many records from `index` on are one packet still: they left together, and whatever happened to one happened to all.
    pub(crate) fn packet_at(&self, index: usize) -> usize {
        let Some(first) = self.records.get(index) else { return 0 };
        let others = self.records.range(index + 1..);
        1 + others.take_while(|record| record.continues(first)).count()
    }

    /// Whether record `index` is a packet of its own at `now`: it left alone, or since then something has happened to it alone.
    pub(crate) fn is_lone(&self, index: usize, now: Instant) -> bool {
        let Some(record) = self.records.get(index) else { return false };
        let before = index.checked_sub(1).and_then(|index| self.records.get(index));
        // The segments of one packet that are sent again together are one packet still.
        let joined = |before: &Record| {
            record.continues(before) || record.marks.has(Marks::JOINED) && before.sent_at == now
        };
        !before.is_some_and(joined) && self.packet_at(index) == 1
    }

    /// Makes the record after `index` a part of it and returns it as it was; the scoreboard is not told.
    pub(crate) fn absorb_next(&mut self, index: usize) -> Option<Record> {
        let next = *self.records.get(index + 1)?;
        let record = self.records.get_mut(index)?;
        record.len = record.len.checked_add(next.len)?;
        record.marks.clear(Marks::JOINED);
        if next.marks.has(Marks::FIN) {
            record.marks.set(Marks::FIN);
        }
        self.records.remove(index + 1);
        if let Some(after) = self.records.get_mut(index + 1) {
            after.marks.clear(Marks::JOINED);
        }
        if self.next > index + 1 {
            self.next -= 1;
        }
        if let Some(delivery) = &mut self.delivery {
            delivery.absorbed(index + 1);
        }
        Some(next)
    }

    /// Notes that record `index` is sent again and returns it.
    pub(crate) fn resend(&mut self, index: usize, now: Instant) -> Option<Record> {
        let pipe = self.pipe();
        let record = self.records.get_mut(index)?;
        record.transmissions = record.transmissions.saturating_add(1);
        record.sent_at = now;
        if let Some(delivery) = &mut self.delivery {
            delivery.resent(index, now, pipe);
        }
        Some(*record)
    }

    /// Marks record `index` as sent again since it was presumed lost.
    pub(crate) fn mark_repaired(&mut self, index: usize) {
        if let Some(record) = self.records.get_mut(index) {
            self.scoreboard.mark_repaired(record);
        }
    }

    /// Removes the front record if `ack` covers all of it. To be followed by [`Self::acknowledge_part`].
    #[inline]
    pub(crate) fn pop_acknowledged(&mut self, ack: SeqNumber) -> Option<Record> {
        if self.records.front()?.end().is_after(ack) {
            return None;
        }
        let record = self.pop_front()?;
        if record.marks.has(Marks::SCORED) {
            self.scoreboard.forget(record.marks, record.seq_len());
        }
        Some(record)
    }

    /// Removes the front record; the scoreboard is not told.
    #[inline]
    pub(crate) fn pop_front(&mut self) -> Option<Record> {
        let record = self.records.pop_front()?;
        self.next = self.next.saturating_sub(1);
        self.una = record.end();
        if self.delivery.is_some() {
            self.measure_arrival(&record);
        }
        Some(record)
    }

    #[inline(never)]
    fn measure_arrival(&mut self, record: &Record) {
        if let Some(delivery) = &mut self.delivery {
            delivery.acknowledged(record);
        }
    }

    /// Takes `ack`, which lies within what was sent, and returns what it covered.
    #[inline]
    pub(crate) fn acknowledge(&mut self, ack: SeqNumber) -> Acknowledged {
        let mut done = Acknowledged::default();
        let mut gone = 0;
        while let Some(&record) = self.records.front()
            && record.end().is_at_or_before(ack)
        {
            self.records.pop_front();
            gone += 1;
            self.una = record.end();
            if self.delivery.is_some() {
                self.measure_arrival(&record);
            }
            if record.marks != Marks::default() {
                done.syn |= record.marks.has(Marks::SYN);
                done.fin |= record.marks.has(Marks::FIN);
                self.scoreboard.forget(record.marks, record.seq_len());
            }
            done.bytes += u32::from(record.len);
            let once = record.transmissions == 1;
            done.newest_sent_at = once.then_some(record.sent_at);
            done.repeated |= !once;
            if done.sent_at.is_none() {
                done.sent_at = done.newest_sent_at;
            }
        }
        self.next = self.next.saturating_sub(gone);
        if self.una == ack {
            self.scoreboard.popped(ack);
        } else {
            done.bytes += self.acknowledge_part(ack);
        }
        done
    }

    /// [`Self::acknowledge`] where the records carry data alone and nobody asks when they left: the bytes covered.
    #[inline]
    pub(crate) fn acknowledge_data(&mut self, ack: SeqNumber) -> u32 {
        let bytes = ack.bytes_since(self.una);
        while let Some(record) = self.records.front()
            && self.una.plus(u32::from(record.len)).is_at_or_before(ack)
        {
            self.una = self.una.plus(u32::from(record.len));
            self.records.pop_front();
        }
        self.next = self.records.len();
        if self.una != ack {
            self.trim_front(ack);
        }
        self.scoreboard.popped(ack);
        bytes
    }

    /// Cuts off the part of the front record that `ack` covers, after all that it covers whole; returns its bytes.
    pub(crate) fn acknowledge_part(&mut self, ack: SeqNumber) -> u32 {
        let part = self.trim_front(ack);
        if part > 0
            && let Some(record) = self.records.front().filter(|record| record.marks.has(Marks::SCORED))
        {
            self.scoreboard.forget(record.marks, part);
        }
        self.scoreboard.popped(self.una);
        part
    }

    /// As [`Self::acknowledge_part`]; the scoreboard is not told.
    pub(crate) fn trim_front(&mut self, ack: SeqNumber) -> u32 {
        let Some(record) = self.records.front_mut() else { return 0 };
        let part = ack.bytes_since(record.seq);
        let Ok(bytes) = u16::try_from(part) else { return 0 };
        if bytes == 0 || bytes > record.len {
            return 0;
        }
        record.seq = ack;
        record.len -= bytes;
        self.una = ack;
        if let Some(delivery) = &mut self.delivery {
            delivery.acknowledged_part(part);
        }
        part
    }

    /// Takes the SACK blocks of an acknowledgement in; returns the bytes not reported before.
    pub(crate) fn selectively_acknowledge(&mut self, blocks: &SackBlocks, mss: u32, threshold: u32) -> u32 {
        let mut seen = Watched { records: &mut self.records, delivery: self.delivery.as_deref_mut() };
        self.scoreboard.update(&mut seen, self.una, self.end, blocks, mss, threshold)
    }

    /// After a timeout: forgets all selective acknowledgements and presumes everything lost (RFC 2018 section 8).
    pub(crate) fn presume_all_lost(&mut self) {
        self.note_losses(self.records.len());
        self.scoreboard.presume_all_lost(&mut self.records, self.una, self.end);
    }

    /// Tells who measures delivery which records are marked as lost and were not sent again since.
    pub(crate) fn note_marked_losses(&mut self) {
        if let Some(delivery) = &mut self.delivery {
            for (index, record) in self.records.iter().enumerate() {
                if record.marks.has(Marks::LOST) && !record.marks.has(Marks::REPAIRED) {
                    delivery.presumed_lost(index, record);
                }
            }
        }
    }

    /// Tells who measures delivery that record `index` was selectively acknowledged.
    pub(crate) fn note_arrival(&mut self, index: usize) {
        if let (Some(delivery), Some(record)) = (&mut self.delivery, self.records.get(index)) {
            delivery.selectively_acknowledged(index, record);
        }
    }

    /// Tells who measures delivery that the first `count` records that have not arrived are presumed lost.
    pub(crate) fn note_losses(&mut self, count: usize) {
        if let Some(delivery) = &mut self.delivery {
            for (index, record) in self.records.iter().enumerate().take(count) {
                delivery.presumed_lost(index, record);
            }
        }
    }

    /// Presumes record `index` lost, also if it was sent again (RFC 8985).
    pub(crate) fn presume_lost(&mut self, index: usize) {
        if let Some(record) = self.records.get_mut(index) {
            self.scoreboard.presume_lost(record);
        }
    }

    /// Index of the first record that is presumed lost and was not sent again since.
    pub(crate) fn first_lost(&self) -> Option<usize> {
        let waits = |record: &Record| {
            record.marks.has(Marks::LOST)
                && !record.marks.has(Marks::REPAIRED)
                && !record.marks.has(Marks::SACKED)
        };
        self.records.iter().position(waits)
    }

    /// What was sent again is on its way like anything else.
    pub(crate) fn forget_repaired(&mut self) {
        for record in &mut self.records {
            if record.marks.has(Marks::REPAIRED) && !record.marks.has(Marks::SACKED) {
                self.scoreboard.forget(record.marks, record.seq_len());
                record.marks.clear(Marks::REPAIRED);
                record.marks.clear(Marks::LOST);
            }
        }
    }

    /// After a timeout that was spurious: nothing is presumed lost.
    pub(crate) fn presume_none_lost(&mut self) {
        self.scoreboard.presume_none_lost(&mut self.records, self.una);
    }

    /// After recovery: forgets what was repaired.
    pub(crate) fn end_of_recovery(&mut self) {
        self.scoreboard.end_of_recovery(&mut self.records, self.una);
    }

    /// RFC 6675's pipe: octets believed to be on their way.
    pub(crate) fn pipe(&self) -> u32 {
        self.scoreboard.pipe(self.outstanding())
    }

    /// Cuts packets of segments with more than `mss` bytes anew; returns whether there were any.
    pub(crate) fn split_larger_than(&mut self, mss: u16) -> bool {
        let mss = mss.max(1);
        if self.records.iter().all(|record| record.len <= mss) {
            return false;
        }
        let nxt = self.nxt();
        let mut pieces = VecDeque::with_capacity(self.records.len() * 2);
        let mut counts = Vec::with_capacity(self.records.len());
        let mut index = 0;
        while let Some(&first) = self.records.get(index) {
            let mut packet = if first.len > mss { self.packet_at(index) } else { 1 };
            let bytes_of = |packet| {
                self.records.range(index..index + packet).map(|record| u32::from(record.len)).sum::<u32>()
            };
            // After a part of it was acknowledged, a packet may have fewer segments than records: these are cut one by one.
            if bytes_of(packet).div_ceil(u32::from(mss)) < packet as u32 {
                packet = 1;
            }
            let last = self.records[index + packet - 1];
            let before = pieces.len();
            cut(&mut pieces, first, bytes_of(packet), mss);
            if let Some(end) = pieces.back_mut()
                && last.marks.has(Marks::FIN)
            {
                end.marks.set(Marks::FIN);
            }
            // Whatever is known of a segment is known of the pieces in its place; the last has those beyond.
            counts.extend(core::iter::repeat_n(1, packet - 1));
            counts.push(pieces.len() - before + 1 - packet);
            index += packet;
        }
        if let Some(delivery) = &mut self.delivery {
            delivery.split(&counts);
        }
        self.records = pieces;
        self.next = self.records.iter().take_while(|record| record.seq.is_before(nxt)).count();
        self.scoreboard.reindex(&self.records);
        true
    }

    /// Checks the counters against their definition.
    #[cfg(test)]
    pub(crate) fn check(&self) {
        self.scoreboard.check(&self.records);
        self.check_order();
    }

    #[cfg(test)]
    pub(crate) fn check_order(&self) {
        let mut seq = self.una;
        for record in &self.records {
            assert_eq!(record.seq, seq);
            seq = record.end();
        }
        assert_eq!(seq, self.end);
        assert!(self.next <= self.records.len());
        assert!(self.delivery.as_ref().is_none_or(|delivery| delivery.len() == self.records.len()));
    }
}

/// Adds the segments of a packet of `bytes` bytes that begins with `first`, which are of `mss` bytes but for the last.
fn cut(pieces: &mut VecDeque<Record>, first: Record, bytes: u32, mss: u16) {
    let mut piece = first;
    piece.marks.clear(Marks::FIN);
    let mut rest = bytes;
    loop {
        piece.len = u16::try_from(rest).unwrap_or(u16::MAX).min(mss);
        pieces.push_back(piece);
        rest -= u32::from(piece.len);
        if rest == 0 {
            return;
        }
        piece.seq = piece.seq.plus(u32::from(piece.len));
        piece.marks.set(Marks::JOINED);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Instant = Instant::ZERO;

    fn queue_of(segments: u16, len: u16) -> SendQueue {
        let mut queue = SendQueue::new(SeqNumber(u32::MAX - 2_000));
        queue.write(u64::from(segments) * u64::from(len));
        for _ in 0..segments {
            queue.push_new(NOW, len);
        }
        queue
    }

    #[test]
    fn the_fin_rides_on_the_last_segment() {
        let mut queue = SendQueue::new(SeqNumber(0));
        queue.write(150);
        queue.finish();
        assert!(!queue.push_new(NOW, 100).marks.has(Marks::FIN));
        let last = queue.push_new(NOW, 100);
        assert_eq!((last.len, last.marks), (50, Marks::FIN));
        assert_eq!(queue.end(), SeqNumber(151));
        assert!(queue.acknowledge(SeqNumber(151)).fin);
        assert!(queue.is_empty());
    }

    #[test]
    fn an_acknowledgement_past_the_cursor_takes_it_along() {
        let mut queue = queue_of(5, 1_000);
        queue.set_cursor(0);
        assert_eq!(queue.flight(), 0);
        queue.acknowledge(queue.una().plus(3_000));
        assert_eq!((queue.nxt(), queue.flight()), (queue.una(), 0));
        assert_eq!(queue.outstanding(), 2_000);
        queue.check();
    }

    #[test]
    fn an_acknowledgement_in_the_middle_of_a_segment_shortens_it() {
        let mut queue = queue_of(2, 1_000);
        let done = queue.acknowledge(queue.una().plus(1_400));
        assert_eq!(done.bytes, 1_400);
        assert_eq!(queue.front().map(|r| r.len), Some(600));
        queue.check();
    }

    #[test]
    fn segments_are_cut_when_the_path_narrows() {
        let mut queue = queue_of(2, 1_000);
        assert!(!queue.split_larger_than(1_000));
        assert!(queue.split_larger_than(400));
        let lens: alloc::vec::Vec<u16> = queue.records.iter().map(|r| r.len).collect();
        assert_eq!(lens, [400, 400, 200, 400, 400, 200]);
        assert!(queue.at_end());
        queue.check();
    }

    #[test]
    fn a_packet_is_cut_as_a_whole_when_the_path_narrows() {
        let mut queue = SendQueue::new(SeqNumber(0));
        queue.write(7 * 1_448);
        for segment in 0..7 {
            queue.push_new(NOW, 1_448);
            if segment != 0 && segment != 5 {
                queue.join_last();
            }
        }
        // The third of five has arrived: what is on either side of it is a packet of its own.
        queue.record_mut(2).unwrap().marks.set(Marks::UNWATCHED);
        assert_eq!([0, 2, 3, 5].map(|index| queue.packet_at(index)), [2, 1, 2, 2]);
        assert!(queue.split_larger_than(1_428));
        let lens: alloc::vec::Vec<u16> = queue.records.iter().map(|r| r.len).collect();
        assert_eq!(lens, [1_428, 1_428, 40, 1_428, 20, 1_428, 1_428, 40, 1_428, 1_428, 40]);
        queue.check_order();
    }
}
