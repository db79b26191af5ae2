//! What to send next: the order of things, both windows, small segments, probes, idle time.

use careof_base::Instant;

use super::{Outgoing, Sender};
use crate::config::{IdleRestart, Variant};
use crate::events::Journal;
use crate::recovery;
use crate::recovery::frto::Frto;
use crate::send_queue::{Marks, Record};
use crate::snapshot::Phase;

impl Sender {
    /// The next thing to send, if anything may be sent now.
    pub(crate) fn poll(&mut self, now: Instant, journal: &mut Journal) -> Option<Outgoing> {
        if self.is_silent() {
            return None;
        }
        let classic = self.variant != Variant::Linux;
        let idle = classic && self.is_modeled() && self.flight() == 0;
        let sent = self.choose(now);
        match &sent {
            Some(out) => {
                if classic {
                    self.pace(now, out.len, idle);
                }
                self.account(now, out, journal);
            }
            None => self.settle(now),
        }
        sent
    }

    #[inline(always)]
    fn choose(&mut self, now: Instant) -> Option<Outgoing> {
        if self.syn_wanted {
            self.syn_wanted = false;
            let syn = self.queue.push_syn(now);
            return Some(self.first(&syn));
        }
        let paced = self.may_send && self.variant != Variant::Linux && !self.persist.probe;
        if paced && !self.pacing.allows(now) {
            if self.has_more() {
                self.pacing.wait();
            }
            return None;
        }
        if self.resend_front && self.away.is_none() {
            self.resend_front = false;
            return self.resend(0, now);
        }
        if !self.may_send {
            if self.away.is_some() {
                return self.stay_silent();
            }
            // Only the SYN can be outstanding, and only a timeout puts the cursor on it.
            return match self.variant {
                Variant::Linux20 => recovery::linux20::resend(self, now),
                Variant::Linux => recovery::linux::next(self, now),
                _ => self.go_back_n(now),
            };
        }
        if self.persist.probe {
            self.persist.probe = false;
            return Some(self.probe(now));
        }
        if self.rack_tlp.is_some()
            && let Some(out) = recovery::rack_tlp::next(self, now)
        {
            return Some(out);
        }
        if self.frto != Frto::Off
            && let Some(out) = recovery::frto::next(self, now)
        {
            return Some(out);
        }
        match self.variant {
            Variant::Linux => recovery::linux::next(self, now),
            Variant::Vegas if recovery::vegas::holds_back(self) => None,
            Variant::Tahoe | Variant::Reno | Variant::NewReno | Variant::Vegas => {
                self.go_back_n(now).or_else(|| self.new_after_cursor(now))
            }
            Variant::Sack => recovery::sack::next(self, now),
            Variant::Linux20 => recovery::linux20::next(self, now),
        }
    }

    /// Whether there is anything that could be sent if the windows were open.
    fn has_more(&self) -> bool {
        self.resend_front
            || self.phase != Phase::Open
            || !self.queue.at_end()
            || self.queue.unsent() > 0
            || self.queue.fin_wanted()
    }

    /// The segment under the cursor, within both windows; the first one whatever they say.
    fn go_back_n(&mut self, now: Instant) -> Option<Outgoing> {
        let record = self.queue.under_cursor()?;
        let flight = self.flight_before_cursor();
        let open = self.window.cwnd().min(self.snd_wnd).saturating_sub(flight);
        if flight > 0 && record.seq_len() > open {
            return None;
        }
        let index = self.queue.cursor();
        self.queue.set_cursor(index + 1);
        self.resend(index, now)
    }

    fn new_after_cursor(&mut self, now: Instant) -> Option<Outgoing> {
        if !self.queue.at_end() {
            return None;
        }
        let mut flight = self.flight_before_cursor();
        if self.prr.is_some() {
            flight = flight.saturating_sub(self.credited);
        }
        let limited = self.rules.limited_transmit
            && !self.modeled
            && self.phase == Phase::Open
            && (1..self.rules.threshold).contains(&self.duplicate_acks);
        let allowance = if limited { self.duplicate_acks * self.mss } else { 0 };
        let before = self.window.cwnd().saturating_sub(flight);
        let sent = self.new_segment(now, flight, allowance)?;
        if u32::from(sent.len) > before {
            self.limited += u32::from(sent.len);
        }
        Some(sent)
    }

    /// New data, if `pipe` bytes leave room in the congestion window (made larger by `allowance`), the peer's
    /// window takes it, and it is not too small to be sent yet (RFC 9293 sections 3.7.4 and 3.8.6.2.1).
    pub(crate) fn new_segment(&mut self, now: Instant, pipe: u32, allowance: u32) -> Option<Outgoing> {
        let unsent = self.queue.unsent();
        if unsent == 0 {
            return self.queue.fin_wanted().then(|| {
                let fin = self.queue.push_new(now, 0);
                self.first(&fin)
            });
        }
        let outstanding = self.queue.outstanding();
        if outstanding == 0 {
            if let Some(last_sent) = self.last_sent {
                self.congestion.on_transmission_start(now, last_sent, self.queue.end());
            }
            self.restart_after_idle(now);
        }
        let len = self.new_data(unsent, outstanding, pipe, allowance)?;
        let record = self.queue.push_new(now, len);
        Some(self.first(&record))
    }

    /// How much of `unsent` bytes may leave in the next segment; see [`Self::new_segment`].
    #[inline]
    pub(crate) fn new_data(&self, unsent: u64, outstanding: u32, pipe: u32, allowance: u32) -> Option<u16> {
        let whole = unsent.min(u64::from(self.mss)) as u32;
        if pipe > 0 && pipe.saturating_add(whole) > self.window.cwnd().saturating_add(allowance) {
            return None;
        }
        let offered = self.snd_wnd.saturating_sub(outstanding);
        let len = if whole <= offered {
            whole
        } else if offered > 0 && offered >= self.max_wnd / 2 && self.variant != Variant::Linux20 {
            offered
        } else {
            return None;
        };
        let last = u64::from(len) == unsent && self.queue.fin_wanted();
        if len < self.mss && self.rules.nagle && outstanding > 0 && !last {
            return None;
        }
        Some(len as u16)
    }

    /// New data left while something was outstanding, and nothing is special about it.
    #[inline]
    pub(crate) fn note_departure(&mut self, now: Instant) {
        self.time_segment(now);
        self.last_sent = Some(now);
        self.waiting_since.get_or_insert(now);
        if !self.timer.is_armed() {
            self.timer.arm(self.estimator.deadline(now));
        }
    }

    /// What was sent last is timed, unless something else is.
    fn time_segment(&mut self, now: Instant) {
        if self.timed.is_none() {
            self.timed = Some((self.queue.end(), now));
        }
    }

    /// RFC 5681 section 4.1, RFC 2861: a window that was not used for an RTO says nothing about the path.
    fn restart_after_idle(&mut self, now: Instant) {
        let Some(last) = self.last_sent else { return };
        let idle = now - last;
        let rto = self.estimator.rto();
        if idle <= rto || self.variant == Variant::Linux20 || self.modeled {
            return;
        }
        let (cwnd, initial) = (self.window.cwnd(), self.window.initial());
        match self.rules.idle_restart {
            IdleRestart::Off => {}
            IdleRestart::InitialWindow => self.window.set(cwnd.min(initial)),
            IdleRestart::Decay => {
                let halvings = (idle.as_nanos() / rto.as_nanos().max(1)).min(31) as u32;
                if self.window.ssthresh() != u32::MAX {
                    self.window.set_ssthresh(self.window.ssthresh().max(cwnd / 4 * 3));
                }
                self.window.set((cwnd >> halvings).max(cwnd.min(initial)));
            }
        }
        self.last_sent = None;
    }

    /// Sends `len` bytes of what has not been sent.
    pub(crate) fn send_new_record(&mut self, now: Instant, len: u16) -> Outgoing {
        let record = self.queue.push_new(now, len);
        self.first(&record)
    }

    pub(crate) fn idle_restart(&self) -> IdleRestart {
        self.rules.idle_restart
    }

    /// A probe of the peer's window: what fits, or an empty segment that must be answered.
    fn probe(&mut self, now: Instant) -> Outgoing {
        let fits = self.snd_wnd.saturating_sub(self.queue.outstanding());
        let len = u16::try_from(fits.min(self.mss)).unwrap_or(u16::MAX);
        if len > 0 && self.queue.unsent() > 0 {
            let record = self.queue.push_new(now, len);
            let first = self.first(&record);
            return Outgoing { probe: true, push: first.push || self.variant == Variant::Linux, ..first };
        }
        Outgoing {
            seq: self.queue.una().minus(1),
            len: 0,
            marks: Marks::default(),
            retransmission: false,
            probe: true,
            push: false,
        }
    }

    fn first(&self, record: &Record) -> Outgoing {
        Outgoing {
            seq: record.seq,
            len: record.len,
            marks: record.marks,
            retransmission: false,
            probe: false,
            push: self.queue.unsent() == 0,
        }
    }

    /// Sends record `index` again.
    pub(crate) fn resend(&mut self, index: usize, now: Instant) -> Option<Outgoing> {
        let record = self.queue.resend(index, now)?;
        self.stop_timing();
        Some(Outgoing { retransmission: true, ..self.first(&record) })
    }

    fn account(&mut self, now: Instant, out: &Outgoing, journal: &mut Journal) {
        let counters = &mut journal.counters;
        counters.bytes_sent += u64::from(out.len);
        counters.window_probes += u64::from(out.probe);
        journal.revision += 1;
        if out.retransmission {
            counters.segments_retransmitted += 1;
            counters.bytes_retransmitted += u64::from(out.len);
        } else if !out.probe {
            self.time_segment(now);
        }
        if let Some(prr) = &mut self.prr {
            prr.sent(u32::from(out.len));
        }
        if out.retransmission && self.variant != Variant::Linux && self.rules.judges() {
            self.note_retransmission(now, out);
        }
        if self.queue.is_empty() {
            return;
        }
        self.last_sent = Some(now);
        self.waiting_since.get_or_insert(now);
        if self.variant == Variant::Linux {
            if out.marks.has(Marks::SYN) && !out.retransmission {
                recovery::linux::on_syn_sent(self, now);
            } else if out.probe {
                recovery::linux::on_probe_data_sent(self, now, out.len);
            }
        } else if self.variant == Variant::Linux20 && !out.retransmission {
            if let Some(front) = self.queue.front() {
                self.timer.arm(self.estimator.deadline_of_segment(front.sent_at, now));
            }
        } else if !self.timer.is_armed() {
            self.timer.arm(self.estimator.deadline(now));
        }
        if self.rack_tlp.is_some() && !out.retransmission && !out.marks.has(Marks::SYN) {
            recovery::rack_tlp::arm_probe(self, now);
        }
        if self.persist.timer().is_armed() {
            self.persist.stop();
        }
    }

    /// Nothing can be sent: sees to it that something will wake the connection.
    fn settle(&mut self, now: Instant) {
        self.pacing.end_burst();
        let blocked = self.may_send && self.queue.is_empty() && self.queue.unsent() > 0;
        if blocked && !self.persist.timer().is_armed() {
            self.persist.start(now, self.estimator.rto());
        }
    }
}
