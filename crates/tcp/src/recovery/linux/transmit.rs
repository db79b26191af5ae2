//! What leaves: lost segments first, then new ones, as far as the window goes (Linux 6.1, `tcp_xmit_retransmit_queue`,
//! `tcp_write_xmit`, `tcp_tso_should_defer`; where 6.18 differs, [`KernelEdition`] says so).
//!
//! The kernel sends up to so many segments at once that a millisecond's worth at the present rate is one packet to it.
//! That is visible where it waits for more room rather than send a small packet.

use careof_base::Instant;

use super::ack::Again;
use super::packets::Head;
use super::{collapse, micros, send_buffer, timers, usage};
use crate::config::KernelEdition;
use crate::congestion::{CaState, Controller};
use crate::send_queue::Marks;
use crate::sender::{Outgoing, Sender};

/// Largest packet that is cut into segments by the device, bytes (`sk_gso_max_size`).
pub(super) const LARGEST_PACKET: u64 = 65_215;
/// Least segments in a packet, where there is room (`tcp_min_tso_segs`).
const LEAST_SEGMENTS: u32 = 2;
/// A packet smaller than this part of the window may wait for more room (`tcp_tso_win_divisor`).
const WINDOW_DIVISOR: u64 = 3;
/// It waits only if something was sent this recently, and only if the next acknowledgement is this near.
const PATIENCE: u64 = 1_000;
/// Sizes for which the least window of a peer counts (`TCP_MSS_DEFAULT`, least data in a segment).
const DEFAULT_MSS: u32 = 536;
const LEAST_MSS: u32 = 48;

/// What makes new data leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Push {
    /// There is some.
    Usual,
    /// There is some, and Nagle's algorithm is not asked.
    Now,
    /// The application has filled the first packet: a piece of it.
    One,
    /// A tail loss probe: one packet, whatever the congestion window says.
    Probe,
}

/// The next segment that was decided on.
pub(crate) fn next(sender: &mut Sender, now: Instant) -> Option<Outgoing> {
    // What is written before the handshake is over is packed when the size of a segment is known.
    let asked = sender.may_send() && sender.linux.outbox.is_empty();
    if asked && core::mem::take(&mut sender.linux.push) && sender.has_unsent() {
        send_new(sender, now, Push::Usual);
    }
    sender.linux.outbox.pop_front()
}

/// The time of the next packet has come (`tcp_tsq_write`).
pub(crate) fn on_pacing_timer(sender: &mut Sender, now: Instant) {
    if !sender.may_send() {
        return;
    }
    let linux = &sender.linux;
    if linux.lost_out > linux.retrans_out && sender.window.segments() > linux.in_flight(&sender.queue) {
        repeat_lost(sender, now);
    }
    send_new(sender, now, Push::Usual);
}

/// A segment was sent to probe the window, and carries `len` bytes of the first packet (`tcp_write_wakeup`).
pub(crate) fn on_probe_data_sent(sender: &mut Sender, now: Instant, len: u16) {
    sender.linux.packets.sent(u32::from(len));
    sender.linux.last_sent = now;
    timers::rearm(sender, now);
}

/// What an acknowledgement lets leave before new data (`tcp_xmit_recovery`).
pub(super) fn recover(sender: &mut Sender, now: Instant, again: Again) {
    match again {
        Again::Nothing => return,
        // The path is away.
        _ if !sender.may_send() => return,
        Again::Lost => {}
        Again::New => {
            send_new(sender, now, Push::Now);
            if sender.queue.end().is_after(sender.linux.high_seq) {
                return;
            }
            sender.linux.frto = false;
        }
    }
    repeat_lost(sender, now);
}

/// Sends what is lost again, lowest first.
pub(crate) fn repeat_lost(sender: &mut Sender, now: Instant) {
    if !sender.may_send() {
        return;
    }
    let mut index = sender.queue.index_at(sender.linux.resend_from);
    let mut head_repeated = false;
    while let Some(record) = sender.queue.record(index) {
        let record = *record;
        if !sender.pacing.allows(now) {
            sender.pacing.wait();
            break;
        }
        sender.linux.resend_from = record.seq;
        let in_flight = sender.linux.in_flight(&sender.queue);
        if sender.window.segments() <= in_flight || sender.linux.retrans_out >= sender.linux.lost_out {
            break;
        }
        if record.marks.has(Marks::LOST) && !record.marks.has(Marks::REPAIRED) {
            if !repeat(sender, index, now) {
                break;
            }
            if sender.linux.is_reducing() {
                sender.linux.prr.sent(1);
            }
            head_repeated |= index == 0 && !timers::waits_for_reordering(sender);
        }
        index += 1;
    }
    if head_repeated {
        timers::start_rto(sender, now);
    }
}

/// Sends segment `index` again in the course of a recovery. Returns whether it left.
pub(super) fn repeat(sender: &mut Sender, index: usize, now: Instant) -> bool {
    let sent = send_again(sender, index, now);
    let linux = &mut sender.linux;
    if sent && let Some(record) = sender.queue.record_mut(index) {
        if !record.marks.has(Marks::REPAIRED) {
            linux.retrans_out += 1;
        }
        record.marks.set(Marks::REPAIRED);
    }
    linux.undo.first_stamp.get_or_insert(crate::timestamps::clock(now));
    linux.undo.outstanding = Some(linux.undo.outstanding.unwrap_or(0) + 1);
    sent
}

/// Sends segment `index` again. Returns whether it left: it does not where the receiver's window has shrunk below it.
pub(super) fn send_again(sender: &mut Sender, index: usize, now: Instant) -> bool {
    let Some(record) = sender.queue.record(index) else { return false };
    if index > 0 && !sender.window_edge().is_after(record.seq) {
        return false;
    }
    collapse::join_following(sender, index, now);
    announce(sender, now);
    let Some(out) = sender.resend(index, now) else { return false };
    sender.pacing.on_sent(now, out.len);
    sender.pacing.end_burst();
    if let Some(record) = sender.queue.record_mut(index) {
        record.marks.clear(Marks::UNWATCHED);
    }
    let linux = &mut sender.linux;
    linux.watch_again(micros(now), out.seq);
    linux.total_retrans += 1;
    linux.last_sent = now;
    linux.outbox.push_back(out);
    true
}

/// Something leaves: congestion control learns when it begins anew.
fn announce(sender: &mut Sender, now: Instant) {
    if sender.linux.in_flight(&sender.queue) == 0 {
        let last = sender.linux.last_sent;
        sender.congestion.on_transmission_start(now, last, sender.queue.end());
        sender.with_model(now, Controller::on_model_transmission_start);
    }
}

/// Segments that make a packet (`tcp_tso_autosize`).
fn packet_segments(sender: &Sender, mss: u32) -> u32 {
    let mss = u64::from(mss.max(1));
    let Some(rate) = sender.pacing.rate() else {
        return LEAST_SEGMENTS.max((LARGEST_PACKET / mss) as u32);
    };
    // Near receivers get larger packets.
    let shift = sender.linux.min_rtt.get() >> 9;
    let near = if shift < 32 { LARGEST_PACKET >> shift } else { 0 };
    let bytes = ((rate >> 10) + near).min(LARGEST_PACKET);
    let least = sender.congestion.least_quantum(rate).unwrap_or(LEAST_SEGMENTS);
    least.max((bytes / mss) as u32)
}

/// Bytes of data in a segment: at most half of the largest window the peer has offered
/// (`tcp_bound_to_half_wnd`).
fn segment_size(sender: &Sender) -> u32 {
    let offered = sender.max_wnd;
    let bound = if offered > DEFAULT_MSS { offered / 2 } else { offered };
    if bound > 0 && sender.mss > bound { bound.max(LEAST_MSS).min(sender.mss) } else { sender.mss }
}

/// Bytes that the application's data is packed by (`tcp_xmit_size_goal`).
fn packet_goal(sender: &Sender, mss: u32) -> u32 {
    let half = sender.max_wnd / 2;
    let largest =
        (LARGEST_PACKET as u32).min(if sender.max_wnd > DEFAULT_MSS { half } else { sender.max_wnd });
    (largest / mss * mss).max(mss)
}

/// The next new segment fits into the receiver's window.
pub(super) fn next_fits(sender: &mut Sender, now: Instant) -> bool {
    pack(sender, now, false);
    sender.has_unsent() && first_segment_fits(sender, segment_size(sender))
}

fn first_segment_fits(sender: &Sender, mss: u32) -> bool {
    let first = sender.linux.packets.head().map_or(0, |head| head.len.min(mss));
    first == 0 || !sender.queue.end().plus(first).is_after(sender.window_edge())
}

/// Packs what the application has written. With `send`, pieces leave on the way, as they do when it writes.
fn pack(sender: &mut Sender, now: Instant, send: bool) {
    if sender.linux.packets.is_outgrown(sender.max_wnd) {
        pack_anew(sender);
    }
    let unsent = sender.queue.unsent();
    let mut missing = sender.linux.packets.missing(unsent);
    if missing == 0 {
        return;
    }
    let mss = segment_size(sender);
    let goal = packet_goal(sender, mss);
    usage::restart_after_idle(sender, now);
    while send && missing > 0 {
        let (taken, full) = sender.linux.packets.fill(missing, goal);
        missing -= taken;
        if !full || missing == 0 {
            return;
        }
        let before = sender.queue.end();
        if sender.linux.packets.force(sender.max_wnd / 2) {
            send_packets(sender, now, Push::Now);
        } else if sender.linux.packets.head().is_some_and(|head| head.last) {
            send_packets(sender, now, Push::One);
        }
        if sender.queue.end() == before {
            break;
        }
    }
    let half = sender.max_wnd / 2;
    sender.linux.packets.fill_all(missing, goal, half);
}

/// The path takes smaller segments, or the peer's window larger packets: what the application would not have written yet, for
/// want of room in the send buffer, is packed by their size.
pub(super) fn pack_anew(sender: &mut Sender) {
    let segments = sender.window.segments().max(sender.linux.reordering + 1);
    let size = match sender.linux.send_buffer {
        Some(fixed) => u64::from(fixed),
        None => send_buffer::size(segments, sender.mss),
    };
    let used = send_buffer::used(sender.queue.outstanding(), sender.queue.packets());
    sender.linux.packets.keep(size.saturating_sub(used));
}

/// Sends new data.
pub(super) fn send_new(sender: &mut Sender, now: Instant, push: Push) {
    pack(sender, now, push == Push::Usual);
    send_packets(sender, now, push);
}

fn send_packets(sender: &mut Sender, now: Instant, push: Push) {
    let mss = segment_size(sender);
    let most = packet_segments(sender, mss);
    sender.pacing.set_quantum(most);
    let one = matches!(push, Push::One | Push::Probe);
    let (mut sent, mut limited) = (0, false);
    while sender.has_unsent() {
        if !sender.pacing.allows(now) {
            sender.pacing.wait();
            break;
        }
        // Without one the application is still writing.
        let Some(mut head) = next_packet(sender) else { break };
        let cwnd = sender.window.segments();
        let in_flight = sender.linux.in_flight(&sender.queue);
        let old = sender.linux.kernel == KernelEdition::V6_1;
        let quota = if old && head.len <= mss && head.last && ends_stream(sender) {
            1
        } else if in_flight < cwnd {
            (cwnd - in_flight).min((cwnd >> 1).max(1))
        } else if push == Push::Probe {
            1
        } else {
            break;
        };
        let quota = quota.min(most);
        if !old {
            sender.linux.packets.grow(mss.saturating_mul(quota).saturating_sub(head.len));
            head = next_packet(sender).unwrap_or(head);
        }
        let small = head.len <= mss;
        if !first_segment_fits(sender, mss) {
            break;
        }
        if small {
            if head.len < mss && head.last && push == Push::Usual && is_held(sender) {
                break;
            }
        } else if !one && waits_for_room(sender, now, most, head, &mut limited) {
            break;
        }
        let len = if small { head.len } else { piece(sender, mss, quota, head, push) };
        sent += send_packet(sender, now, mss, len);
        sender.pacing.end_burst();
        if one {
            break;
        }
    }
    limited |= sender.linux.in_flight(&sender.queue) >= sender.window.segments();
    if sent > 0 || limited {
        usage::validate(sender, now, limited);
    }
    if sent > 0 {
        if sender.linux.is_reducing() {
            sender.linux.prr.sent(sent);
        }
        if push != Push::Probe {
            timers::schedule_probe(sender, now, false);
        }
    }
}

/// The packet that leaves next; a FIN is one without data.
fn next_packet(sender: &Sender) -> Option<Head> {
    let fin = || (sender.queue.unsent() == 0).then_some(Head { len: 0, last: true });
    sender.linux.packets.head().or_else(fin)
}

/// Bytes of the first packet that leave at once, at most `segments` full segments (`tcp_mss_split_point`).
fn piece(sender: &Sender, mss: u32, segments: u32, head: Head, push: Push) -> u32 {
    let offered = sender.window_edge().bytes_since(sender.queue.end());
    let most = mss.saturating_mul(segments);
    let needed = head.len.min(offered);
    if most <= needed || !head.last && most <= offered {
        return most.min(head.len);
    }
    let rest = needed % mss;
    if rest > 0 && needed > rest && push == Push::Usual && is_held(sender) { needed - rest } else { needed }
}

/// The last packet carries a FIN.
fn ends_stream(sender: &Sender) -> bool {
    sender.queue.fin_wanted() && sender.linux.packets.packed() == sender.queue.unsent()
}

/// Nagle's algorithm with Minshall's change: a small segment waits while another is unacknowledged. A FIN does not
/// wait.
fn is_held(sender: &Sender) -> bool {
    let linux = &sender.linux;
    sender.rules.nagle
        && !ends_stream(sender)
        && !sender.queue.is_empty()
        && linux.small_end.is_some_and(|end| end.is_after(linux.una) && !end.is_after(sender.queue.end()))
}

/// A packet smaller than it could be waits, where the next acknowledgement will soon make room.
fn waits_for_room(sender: &Sender, now: Instant, most: u32, head: Head, limited: &mut bool) -> bool {
    let linux = &sender.linux;
    let now_us = micros(now);
    let sent = sender.pacing.stamp().unwrap_or(linux.last_sent);
    if linux.state >= CaState::Recovery || now_us.saturating_sub(micros(sent)) > PATIENCE {
        return false;
    }
    let mss = u64::from(sender.mss);
    let cwnd = sender.window.segments();
    let in_flight = linux.in_flight(&sender.queue);
    let offered = u64::from(sender.window_edge().bytes_since(sender.queue.end()));
    let room = u64::from(cwnd.saturating_sub(in_flight)) * mss;
    let limit = offered.min(room);
    let len = u64::from(head.len);
    let share = u64::from(sender.snd_wnd()).min(u64::from(cwnd) * mss) / WINDOW_DIVISOR;
    if limit >= u64::from(most) * mss || !head.last && limit >= len || limit >= share {
        return false;
    }
    let Some(first) = sender.queue.front() else { return false };
    let srtt = sender.estimator.srtt().map_or(0, |srtt| u64::try_from(srtt.as_micros()).unwrap_or(u64::MAX));
    let expected = micros(first.sent_at).saturating_add(srtt);
    if expected > now_us.saturating_add((srtt / 2).min(PATIENCE)) {
        return false;
    }
    if room < offered {
        if room <= len {
            *limited = true;
            return true;
        }
    } else if offered <= len {
        return true;
    }
    !(head.last && ends_stream(sender))
}

/// Sends `len` bytes of the first packet, cut into segments; returns how many. Without bytes it is a FIN.
fn send_packet(sender: &mut Sender, now: Instant, mss: u32, len: u32) -> u32 {
    let mut sent = 0;
    let mut left = len;
    loop {
        announce(sender, now);
        let alone = sender.queue.is_empty();
        let size = left.min(mss);
        let mut out = sender.send_new_record(now, u16::try_from(size).unwrap_or(u16::MAX));
        // A packet of several segments ends with a push.
        out.push |= sent > 0 && left == size;
        out.push |= sender.linux.packets.sent(size);
        sender.pacing.on_sent(now, out.len);
        let end = sender.queue.end();
        if sent > 0 {
            sender.queue.join_last();
        }
        let linux = &mut sender.linux;
        if alone {
            linux.lone_end = Some(end);
        }
        if size < mss && size > 0 {
            linux.small_end = Some(end);
        }
        linux.last_sent = now;
        linux.outbox.push_back(out);
        sent += 1;
        if alone || timers::waits_for_probe(sender) {
            timers::rearm(sender, now);
        }
        left -= size;
        if left == 0 {
            return sent;
        }
    }
}
