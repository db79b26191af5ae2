//! What a cumulative acknowledgement covers, and the round trips it shows (Linux 6.1, `tcp_clean_rtx_queue`,
//! `tcp_ack_update_rtt`).

use core::time::Duration;

use careof_base::Instant;
use careof_wire::SeqNumber;

use super::ack::News;
use super::{micros, outstanding};
use crate::events::Journal;
use crate::rto::Sample;
use crate::send_queue::Marks;
use crate::sender::{Ack, Sender};

/// Takes what `sender.linux.una` covers off the queue. `highest_before` is the end of what was sacked before this
/// acknowledgement, `una_before` what was unacknowledged.
pub(super) fn take(
    sender: &mut Sender,
    now: Instant,
    ack: &Ack<'_>,
    (una_before, highest_before): (SeqNumber, SeqNumber),
    news: &mut News,
    journal: &mut Journal,
) {
    let linux = &mut sender.linux;
    let queue = &mut sender.queue;
    let now_us = micros(now);
    let sacked_before = linux.sacked_out;
    let mut low = queue.end();
    let (mut first, mut last) = (None, None);
    let mut acked = 0_u32;
    while let Some(head) = queue.front().filter(|head| !head.end().is_after(linux.una)) {
        let record = *head;
        let sent = micros(record.sent_at);
        if record.transmissions > 1 {
            if record.marks.has(Marks::REPAIRED) {
                linux.retrans_out -= 1;
            }
            news.repeated_acked = true;
        } else if !record.marks.has(Marks::SACKED) {
            first.get_or_insert(sent);
            last = Some(sent);
            if record.seq.is_before(low) {
                low = record.seq;
            }
            news.original_delivered |= !record.end().is_after(linux.high_seq);
        }
        if record.marks.has(Marks::SACKED) {
            if linux.sack {
                linux.sacked_out -= 1;
            }
        } else if linux.sack {
            linux.delivered += 1;
            if !linux.is_spurious(ack, &record) {
                let repeated = record.transmissions > 1;
                linux.rack.delivered(now_us, sent, record.end(), repeated, linux.min_rtt.get());
            }
        }
        if record.marks.has(Marks::LOST) {
            linux.lost_out -= 1;
        }
        news.delivered_sent_at(sent);
        news.bytes += u32::from(record.len);
        news.fin |= record.marks.has(Marks::FIN);
        acked += 1;
        if record.marks.has(Marks::SYN) {
            news.syn_acked = true;
            linux.undo.first_stamp = None;
        } else {
            news.data_acked = true;
        }
        queue.pop_front();
    }
    news.bytes += queue.trim_front(linux.una);
    journal.counters.bytes_acked += u64::from(news.bytes);
    if let Some((to, count)) = linux.counted_to {
        let gone = sacked_before - linux.sacked_out;
        linux.counted_to = to.is_after(linux.una).then(|| (to, count.saturating_sub(gone)));
    }
    news.reneging = queue.front().is_some_and(|head| head.marks.has(Marks::SACKED));

    // Karn's algorithm: nothing that was sent again is timed, but by its timestamp.
    let mut round_trip = None;
    if let (Some(first), Some(last)) = (first, last)
        && !news.repeated_acked
    {
        round_trip = Some(now_us.saturating_sub(first));
        news.rtt = Some(now_us.saturating_sub(last));
        news.maybe_delayed = acked == 1
            && sacked_before == 0
            && linux.una.bytes_since(una_before) < sender.mss
            && linux.lone_end == Some(linux.una)
            && !news.syn_acked;
    }
    let by_sack = news.first_sacked.map(|first| now_us.saturating_sub(first));
    if let Some(last) = news.last_sacked {
        news.rtt = Some(now_us.saturating_sub(last));
    }
    let mut sample = round_trip.or(by_sack);
    if sample.is_none() && (news.data_acked || news.syn_acked) {
        sample = ack.echoed_rtt.map(|rtt| rtt.as_micros().max(1_000) as u64);
        news.rtt = sample.or(news.rtt);
    }
    if let Some(rtt) = sample {
        let newest = news.rtt.unwrap_or(rtt);
        if !(news.maybe_delayed && newest > linux.min_rtt.get()) {
            linux.min_rtt.take(now, if newest == 0 { 1_000 } else { newest });
        }
        let rtt = Duration::from_micros(rtt);
        journal.sampled(rtt);
        sender.estimator.sample(&Sample {
            sent_at: now.saturating_sub(rtt),
            now,
            snd_una: linux.una,
            snd_nxt: queue.end(),
            expected: queue.outstanding().div_ceil(sender.mss.saturating_mul(2).max(1)).max(1),
            cwnd_segments: sender.window.segments(),
        });
    }

    if news.data_acked || news.syn_acked {
        news.set_timer = true;
        if linux.sack {
            if low.is_before(highest_before) {
                linux.check_reordering(low, sender.mss);
            }
        } else {
            linux.uncount_duplicates(queue, acked);
            // What was repeated may hide that the rest came of it.
            news.original_delivered &= !news.repeated_acked;
        }
    } else if let (Some(rtt), Some(head)) = (by_sack, queue.front())
        && sample.is_some()
    {
        // Data sent after the head was sent last has arrived: the timer does not start anew for it.
        news.set_timer |= rtt > now_us.saturating_sub(micros(head.sent_at));
    }
    debug_assert!(linux.lost_out <= outstanding(queue));
}
