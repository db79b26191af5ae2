//! The sending half: takes acknowledgements and timeouts, says what to send next.
//!
//! It keeps the books common to all variants - what is outstanding, the peer's window, the timers; round-trip
//! times are in `sampling.rs`, what to send in `transmission.rs` - and leaves the reaction to losses to
//! [`crate::recovery`].

mod advised;
mod handed_off;
mod judgement;
mod modeling;
mod replaced;
mod sampling;
mod transmission;

use alloc::boxed::Box;
use core::time::Duration;

use careof_base::Instant;
use careof_wire::{SackBlocks, SeqNumber};

use crate::Event;
use crate::bandwidth::Bandwidth;
use crate::config::{Config, IdleRestart, PartialAckTimer, ReductionBound, Variant};
use crate::congestion::{AckSample, CaState, Controller, Window};
use crate::ecn::{self, Reaction};
use crate::events::Journal;
use crate::pacing::Pacing;
use crate::persist::Persist;
use crate::recovery::dsack::Repeated;
use crate::recovery::eifel_detection::EifelDetection;
use crate::recovery::eifel_response::{Adaptation, Before};
use crate::recovery::frto::Frto;
use crate::recovery::prr::Prr;
use crate::recovery::rack_tlp::{self, RackTlp};
use crate::recovery::{self, Linux, Linux20, Vegas};
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
    /// The timestamp echoed; `None` without timestamps.
    pub(crate) echo: Option<u32>,
    /// ECE, where congestion notification is in use.
    pub(crate) echoes_congestion: bool,
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
    pub(crate) rescue_retransmission: bool,
    pub(crate) linux20_fast_retransmit: bool,
    pub(crate) prr: Option<ReductionBound>,
    pub(crate) frto: bool,
    pub(crate) eifel: bool,
    pub(crate) dsack: bool,
    pub(crate) icmp_unreachable: bool,
    pub(crate) clock_granularity: Duration,
    pub(crate) idle_restart: IdleRestart,
    pub(crate) nagle: bool,
    pub(crate) max_retransmissions: u32,
    pub(crate) user_timeout: Option<Duration>,
    pub(crate) rto_initial: Duration,
    pub(crate) rto_min: Duration,
    pub(crate) rto_max: Duration,
}

/// What an ordinary segment touches comes first, so that with ten thousand connections it is a few cache lines.
#[derive(Clone, Debug)]
#[repr(C)]
pub(crate) struct Sender {
    pub(crate) queue: SendQueue,
    pub(crate) window: Window,
    pub(crate) timer: Timer,
    /// The one segment being timed: one past its end, and when it left.
    timed: Option<(SeqNumber, Instant)>,
    /// Since when something has been outstanding without any progress.
    waiting_since: Option<Instant>,
    last_sent: Option<Instant>,
    /// Bytes of data in a full-sized segment.
    pub(crate) mss: u32,
    snd_wnd: u32,
    pub(crate) max_wnd: u32,
    wl1: SeqNumber,
    wl2: SeqNumber,
    timeouts_in_a_row: u32,
    pub(crate) duplicate_acks: u32,
    pub(crate) variant: Variant,
    pub(crate) phase: Phase,
    /// The first unacknowledged segment is to be sent again, whatever the window.
    pub(crate) resend_front: bool,
    /// A SYN waits to be sent for the first time.
    syn_wanted: bool,
    /// The handshake is complete, and nobody has said that the path is [away](Self::leave).
    may_send: bool,
    /// While the path is away: until when the sender believes that.
    pub(crate) away: Option<Instant>,
    /// Nothing paces it, no model governs it, no timer but RFC 6298's finds its losses, and it is no kernel's.
    plain: bool,
    /// The congestion control has a model of the path, which governs the window.
    modeled: bool,
    /// The first partial acknowledgement of this recovery was seen.
    pub(crate) partial_ack_seen: bool,
    pub(crate) estimator: Estimator,
    pub(crate) congestion: Controller,

    pub(crate) rules: Rules,
    pub(crate) persist: Persist,
    pub(crate) pacing: Pacing,
    /// Everything before had been sent when the last recovery or timeout began.
    pub(crate) recover: SeqNumber,
    /// RFC 6675's RescueRxt; `None` is undefined.
    pub(crate) rescue: Option<SeqNumber>,
    /// Bytes sent by limited transmit for the present duplicate acknowledgements.
    pub(crate) limited: u32,
    /// Bytes that duplicates told of without SACK (NewReno with PRR).
    pub(crate) credited: u32,
    /// Proportional reduction of the recovery under way.
    pub(crate) prr: Option<Prr>,
    pub(crate) frto: Frto,
    pub(crate) eifel: EifelDetection,
    /// What held before the last recovery.
    pub(crate) before_recovery: Option<Before>,
    /// A spurious timeout has still to be seen to in the estimator.
    pub(crate) adaptation: Option<Adaptation>,
    /// Retransmissions of the last recovery.
    pub(crate) repeated: Option<Repeated>,
    pub(crate) ecn: Reaction,
    pub(crate) rack_tlp: Option<Box<RackTlp>>,
    /// While the path is away: what is left of the timer that ran then.
    suspended: Option<Duration>,
    /// What the path delivers, where that is estimated.
    bandwidth: Option<Box<Bandwidth>>,
    /// The path was replaced, and what replaced it has not been measured.
    pub(crate) replaced: Option<Box<replaced::Replaced>>,
    /// The peer has told the rate of its new link, and the threshold follows it.
    pub(crate) handed_off: Option<Box<handed_off::HandedOff>>,
    pub(crate) linux20: Box<Linux20>,
    pub(crate) vegas: Box<Vegas>,
    pub(crate) linux: Box<Linux>,
}

impl Rules {
    /// Whether something looks at acknowledgements for whether a recovery was spurious.
    pub(crate) fn judges(&self) -> bool {
        self.frto || self.eifel || self.dsack
    }
}

impl Sender {
    pub(crate) fn new(config: &Config, iss: SeqNumber) -> Self {
        let congestion = Controller::new(config, u64::from(iss.0));
        let mut queue = SendQueue::new(iss);
        let model = congestion.rate_unit();
        if let Some(unit) = model {
            queue.measure_delivery(unit);
        }
        Self {
            queue,
            window: Window::new(config),
            congestion,
            estimator: Estimator::new(config),
            timer: Timer::default(),
            persist: Persist::default(),
            pacing: Pacing::new(config.pacing || model.is_some()),
            variant: config.variant,
            linux20: Box::new(Linux20::new(config, iss)),
            vegas: Box::new(Vegas::new(iss)),
            linux: Box::new(Linux::new(config, iss)),
            rules: Rules {
                limited_transmit: config.limited_transmit,
                limited_transmit_counts: config.limited_transmit_counts,
                careful: config.careful,
                threshold: u32::from(config.duplicate_ack_threshold),
                slow_but_steady: config.partial_ack_timer == PartialAckTimer::SlowButSteady,
                burst_guard: config.burst_guard,
                rescue_retransmission: config.rescue_retransmission,
                linux20_fast_retransmit: config.linux20_fast_retransmit,
                prr: config.prr.then_some(config.reduction_bound),
                frto: config.frto,
                eifel: config.eifel,
                dsack: config.dsack,
                icmp_unreachable: config.icmp_unreachable,
                clock_granularity: config.clock_granularity,
                idle_restart: config.idle_restart,
                nagle: config.nagle,
                max_retransmissions: config.max_retransmissions,
                user_timeout: config.user_timeout,
                rto_initial: config.effective_rto_initial(),
                rto_min: config.effective_rto_min(),
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
            prr: None,
            credited: 0,
            frto: Frto::Off,
            eifel: EifelDetection::default(),
            before_recovery: None,
            adaptation: None,
            repeated: None,
            ecn: Reaction::default(),
            rack_tlp: RackTlp::new(config, iss).map(Box::new),
            waiting_since: None,
            timed: None,
            snd_wnd: 0,
            max_wnd: 0,
            wl1: SeqNumber(0),
            wl2: iss,
            timeouts_in_a_row: 0,
            last_sent: None,
            syn_wanted: false,
            may_send: false,
            away: None,
            modeled: model.is_some(),
            bandwidth: None,
            replaced: None,
            handed_off: None,
            suspended: None,
            plain: !config.pacing
                && model.is_none()
                && !config.rack
                && !matches!(config.variant, Variant::Linux | Variant::Linux20),
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
        self.linux.negotiated(sack);
        if self.variant == Variant::Sack && !sack {
            self.variant = Variant::NewReno;
            self.rack_tlp = None;
        }
    }

    /// The peer's initial window.
    pub(crate) fn set_peer_window(&mut self, seq: SeqNumber, window: u32) {
        self.snd_wnd = window;
        self.max_wnd = self.max_wnd.max(window);
        self.wl1 = seq;
    }

    /// The handshake is complete.
    pub(crate) fn connected(&mut self, now: Instant, syn_repeated: bool) {
        self.may_send = true;
        self.estimator.connected(syn_repeated);
        self.congestion.begin(now, self.queue.end());
        if let Some(bandwidth) = &mut self.bandwidth {
            bandwidth.begin(now, self.queue.una());
        }
        if self.variant == Variant::Linux {
            recovery::linux::begin(self, now);
        }
        self.begin_model(now);
    }

    pub(crate) fn syn_repeated(&self) -> bool {
        self.queue.front().is_some_and(|syn| syn.marks.has(Marks::SYN) && syn.transmissions > 1)
    }

    /// Nothing is outstanding, nothing is to be sent and nothing is remembered that could make it send: the sending half
    /// of a connection that only receives.
    pub(crate) fn is_silent(&self) -> bool {
        self.plain
            && self.may_send
            && self.queue.is_done()
            && self.phase == Phase::Open
            && !self.resend_front
            && !self.syn_wanted
            && !self.persist.is_busy()
            && self.prr.is_none()
            && self.frto == Frto::Off
    }

    /// Nothing paces it, no model governs it, no timer but RFC 6298's finds its losses, and it is no kernel's.
    pub(crate) fn is_plain(&self) -> bool {
        self.plain && !self.syn_wanted
    }

    /// The handshake is complete, and the path is not away.
    pub(crate) fn may_send(&self) -> bool {
        self.may_send
    }

    /// Something waits to be sent for the first time.
    pub(crate) fn has_unsent(&self) -> bool {
        self.queue.unsent() > 0 || self.queue.fin_wanted()
    }

    /// The application wrote or closed.
    pub(crate) fn wake(&mut self) {
        self.linux.wake();
    }

    /// Right edge of the peer's window.
    pub(crate) fn window_edge(&self) -> SeqNumber {
        self.queue.una().plus(self.snd_wnd)
    }

    /// The timeouts since data was last acknowledged, whichever sender it is.
    pub(crate) fn timeouts_so_far(&self) -> u32 {
        if self.variant == Variant::Linux { self.linux.timeouts() } else { self.timeouts_in_a_row }
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
            Variant::Linux => {
                let in_flight = self.linux.in_flight(&self.queue).saturating_mul(self.mss);
                in_flight.min(self.queue.outstanding().saturating_mul(2))
            }
            Variant::Tahoe | Variant::Reno | Variant::NewReno | Variant::Vegas => self.flight_before_cursor(),
        }
    }

    /// What is outstanding before the cursor. Where a model governs the window, duplicates do not inflate it: what they
    /// tell of is not in flight.
    pub(crate) fn flight_before_cursor(&self) -> u32 {
        let flight = self.queue.flight();
        let Some(delivery) = self.queue.delivery.as_ref().filter(|_| self.modeled) else { return flight };
        let arrived = u32::try_from(delivery.duplicates()).unwrap_or(u32::MAX);
        flight.saturating_sub(arrived.saturating_mul(self.mss))
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

    /// Whether RACK is what finds losses.
    pub(crate) fn finds_losses_by_time(&self) -> bool {
        self.rack_tlp.as_ref().is_some_and(|state| state.finds_losses())
    }

    /// A loss: the threshold falls to what the congestion control leaves of the window, or of `flight` bytes.
    pub(crate) fn lower_threshold(&mut self, flight: u32) {
        let threshold = self.congestion.ssthresh_after_loss(&self.window, flight);
        self.window.set_ssthresh(threshold);
    }

    // ---- acknowledgements

    /// Takes the acknowledgement in a segment that repeats the last one to a sender that [is silent](Self::is_silent), and
    /// reports nothing: all it can tell is the window.
    pub(crate) fn on_repetition(&mut self, seq: SeqNumber, ack: SeqNumber, window: u32) {
        if self.is_news(seq, ack) {
            self.set_window(seq, ack, window);
        }
    }

    /// Takes the acknowledgement of a segment.
    pub(crate) fn on_ack(&mut self, now: Instant, ack: &Ack<'_>, journal: &mut Journal) -> AckOutcome {
        if ack.ack.is_after(self.queue.end()) {
            journal.counters.dropped_ack_of_unsent += 1;
            return AckOutcome::OfUnsent;
        }
        if self.variant == Variant::Linux {
            return recovery::linux::on_ack(self, now, ack, journal);
        }
        if ack.ack.is_before(self.queue.una()) {
            journal.counters.old_acks_received += 1;
            return AckOutcome::Nothing;
        }
        if self.rack_tlp.is_some() {
            rack_tlp::before_ack(self, now, ack);
        }
        let before = self.begin_ack();
        let (standing, phase) = (self.standing(), self.phase);
        let (window_before, cwnd_before) = (self.snd_wnd, self.window.cwnd());
        self.update_window(now, ack);
        let same_window = self.snd_wnd == window_before;
        let sacked = if self.variant == Variant::Sack && !ack.sack.is_empty() {
            // Where losses are found by time, no number of blocks means one.
            let threshold = if self.finds_losses_by_time() { u32::MAX } else { self.rules.threshold };
            self.queue.selectively_acknowledge(ack.sack, self.mss, threshold)
        } else {
            0
        };
        let outcome = if ack.ack == self.queue.una() {
            let duplicate = ack.pure && same_window && !self.queue.is_empty();
            journal.counters.duplicate_acks_received += u64::from(duplicate);
            if duplicate || sacked > 0 {
                let sample = self.ack_sample(now, 0, None, 0);
                self.note_ack(&sample);
                self.congestion.on_ack(&mut self.window, &sample);
            }
            self.on_no_progress(now, ack, duplicate, sacked, journal);
            if self.rules.judges() {
                self.judge_duplicate(ack, duplicate, sacked, journal);
            }
            AckOutcome::Nothing
        } else {
            let done = self.on_progress(now, ack, journal);
            if self.rules.judges() {
                self.judge_advance(ack, done.bytes, journal);
            }
            AckOutcome::New { fin: done.fin }
        };
        if self.rack_tlp.is_some() {
            rack_tlp::after_ack(self, now, ack, sacked, phase, journal);
        }
        if ack.echoes_congestion {
            ecn::on_echo(self, cwnd_before, journal);
        }
        if self.prr.is_some() {
            self.reduce_in_proportion(&standing);
        }
        if self.phase != phase {
            self.congestion.on_state(self.phase.into(), now, self.queue.end());
        }
        self.finish_ack(now, ack, before, outcome != AckOutcome::Nothing);
        journal.revision += 1;
        outcome
    }

    /// RFC 9293 section 3.10.7.4: only an acknowledgement that is not older than the last changes the window.
    fn update_window(&mut self, now: Instant, ack: &Ack<'_>) {
        if self.is_news(ack.seq, ack.ack) {
            self.set_window(ack.seq, ack.ack, ack.window);
        }
        self.settle_persist(now);
    }

    fn is_news(&self, seq: SeqNumber, ack: SeqNumber) -> bool {
        self.wl1.is_before(seq) || (self.wl1 == seq && self.wl2.is_at_or_before(ack))
    }

    /// Linux's rule (6.1, `tcp_may_update_window`): the window follows an acknowledgement that advances or comes with
    /// newer data, and otherwise only grows. Returns whether it was followed.
    pub(crate) fn follow_window(&mut self, now: Instant, ack: &Ack<'_>) -> bool {
        let follows = ack.ack.is_after(self.queue.una())
            || ack.seq.is_after(self.wl1)
            || ack.seq == self.wl1 && ack.window > self.snd_wnd;
        if follows {
            self.set_window(ack.seq, ack.ack, ack.window);
        }
        self.settle_persist(now);
        follows
    }

    fn set_window(&mut self, seq: SeqNumber, ack: SeqNumber, window: u32) {
        self.snd_wnd = window;
        self.max_wnd = self.max_wnd.max(window);
        self.wl1 = seq;
        self.wl2 = ack;
    }

    /// The peer was heard: an open window need not be probed.
    fn settle_persist(&mut self, now: Instant) {
        if self.persist.timer().is_armed() {
            if self.snd_wnd > 0 {
                self.persist.stop();
            } else {
                self.persist.heard();
                if self.variant == Variant::Linux && self.queue.is_empty() {
                    // `tcp_ack_probe`: Linux counts from the answer, not from the probe.
                    self.persist.restart(now, self.estimator.rto(), self.rules.rto_max);
                }
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
        let others = self.queue.len().saturating_sub(1) as u64;
        if duplicate
            && self.variant != Variant::Sack
            && let Some(delivery) = &mut self.queue.delivery
        {
            delivery.duplicate(others, self.mss);
        }
        match self.variant {
            Variant::Linux20 => {
                recovery::linux20::on_ack(self, now, ack, journal);
            }
            // RFC 6675 section 2: with SACK an acknowledgement is a duplicate if it reports something new.
            Variant::Sack if sacked > 0 => recovery::sack::on_duplicate_ack(self, now, sacked, journal),
            Variant::Sack => {}
            _ if !duplicate => {}
            Variant::Tahoe => recovery::tahoe::on_duplicate_ack(self, now, journal),
            Variant::Vegas => recovery::vegas::on_duplicate_ack(self, now, journal),
            // It takes acknowledgements by itself.
            Variant::Linux => {}
            Variant::Reno => recovery::reno::on_duplicate_ack(self, now, journal),
            Variant::NewReno => recovery::newreno::on_duplicate_ack(self, now, journal),
        }
    }

    fn on_progress(&mut self, now: Instant, ack: &Ack<'_>, journal: &mut Journal) -> Acknowledged {
        if self.variant == Variant::Linux20 {
            self.progressed(now, ack.ack);
            let flight = self.queue.outstanding();
            let done = recovery::linux20::on_ack(self, now, ack, journal);
            let rtt = done.newest_sent_at.filter(|_| !done.repeated).map(|sent_at| now - sent_at);
            let sample = self.ack_sample(now, done.bytes, rtt, flight);
            self.note_ack(&sample);
            return done;
        }
        self.advance(now, ack.ack, ack.echoed_rtt, journal)
    }

    fn progressed(&mut self, now: Instant, ack: SeqNumber) {
        self.timeouts_in_a_row = 0;
        self.waiting_since = (ack != self.queue.end()).then_some(now);
        self.resend_front = false;
    }

    /// Something new is acknowledged, all up to `ack`.
    #[inline(never)]
    pub(crate) fn advance(
        &mut self,
        now: Instant,
        ack: SeqNumber,
        echoed_rtt: Option<Duration>,
        journal: &mut Journal,
    ) -> Acknowledged {
        self.progressed(now, ack);
        let flight = self.queue.outstanding();
        if self.estimator.sampling() == Sampling::EverySegment {
            self.sample_every_segment(now, ack, journal);
        }
        let done = self.queue.acknowledge(ack);
        if let Some(delivery) = &mut self.queue.delivery {
            delivery.settle_duplicates(self.mss);
        }
        journal.counters.bytes_acked += u64::from(done.bytes);
        self.sample(now, ack, echoed_rtt, &done, flight, journal);
        let rtt = done.newest_sent_at.filter(|_| !done.repeated).map(|sent_at| now - sent_at);
        let acknowledged = self.ack_sample(now, done.bytes, rtt, flight);
        self.note_ack(&acknowledged);
        self.congestion.on_ack(&mut self.window, &acknowledged);
        let duplicates = core::mem::take(&mut self.duplicate_acks);
        self.limited = 0;
        let keep_timer = match self.variant {
            Variant::Tahoe | Variant::Linux20 | Variant::Linux => {
                recovery::tahoe::on_new_ack(self, &acknowledged)
            }
            Variant::Vegas => {
                recovery::vegas::on_new_ack(self, now, &done, duplicates);
                false
            }
            Variant::Reno => recovery::reno::on_new_ack(self, &acknowledged),
            Variant::NewReno => recovery::newreno::on_new_ack(self, &acknowledged),
            Variant::Sack => recovery::sack::on_new_ack(self, &acknowledged),
        };
        if !keep_timer || self.queue.is_empty() {
            self.restart_timer(now);
        }
        done
    }

    /// [`Self::advance`] in the [ordinary](crate::ordinary) case, without looking at the clock where nobody asks for the
    /// time.
    #[inline]
    pub(crate) fn advance_ordinarily(&mut self, now: Instant, ack: SeqNumber, journal: &mut Journal) {
        let awaited = matches!(self.timed, Some((end, _)) if ack.is_at_or_after(end));
        if awaited || self.estimator.sampling() != Sampling::OneAtATime || !self.congestion.goes_by_amount() {
            self.advance(now, ack, None, journal);
            return;
        }
        self.progressed(now, ack);
        let flight = self.queue.outstanding();
        let bytes = self.queue.acknowledge_data(ack);
        journal.counters.bytes_acked += u64::from(bytes);
        if self.window.may_grow(flight) {
            self.congestion.grow_by(&mut self.window, bytes);
        }
        if self.variant == Variant::Sack && ack.is_at_or_after(self.recover) {
            self.queue.end_of_recovery();
        }
        self.restart_timer(now);
    }

    /// The timer is for what is outstanding now, if anything is.
    #[inline]
    fn restart_timer(&mut self, now: Instant) {
        if self.queue.is_empty() {
            self.timer.stop();
        } else {
            self.timer.arm(self.estimator.deadline(now));
        }
    }

    /// An acknowledgement of `acked` bytes, `flight` being outstanding before it, for the congestion control.
    fn ack_sample(&self, now: Instant, acked: u32, rtt: Option<Duration>, flight: u32) -> AckSample {
        AckSample {
            now,
            acked,
            delivered: 0,
            rtt,
            srtt: self.estimator.srtt(),
            una: self.queue.una(),
            nxt: self.queue.end(),
            window_limited: acked > 0 && self.window.may_grow(flight),
            predicted: false,
        }
    }

    // ---- timers

    /// The retransmission timer ran out. Returns `false` when the connection is to be given up.
    pub(crate) fn on_timeout(&mut self, now: Instant, journal: &mut Journal) -> bool {
        if self.away.is_some() && !self.return_unbidden(now) {
            return true;
        }
        if self.variant == Variant::Linux {
            return recovery::linux::on_timer(self, now, journal);
        }
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
        if self.timeouts_in_a_row > self.rules.max_retransmissions || self.user_timeout_is_over(now) {
            return false;
        }
        self.stop_timing();
        if self.variant != Variant::Linux {
            self.check_app_limited();
        }
        recovery::on_timeout(self, now);
        self.congestion.on_state(CaState::Loss, now, self.queue.end());
        self.finish_timeout(now);
        self.estimator.back_off();
        self.timer.arm(self.estimator.deadline(now));
        true
    }

    /// The persist timer ran out. Returns `false` when the connection is to be given up.
    pub(crate) fn on_persist(&mut self, now: Instant) -> bool {
        let unanswered = self.persist.expired(now, self.estimator.rto(), self.rules.rto_max);
        let silence = self.persist.silence(now);
        unanswered <= self.rules.max_retransmissions
            && self.rules.user_timeout.is_none_or(|most| unanswered < 2 || silence < most)
    }

    /// RFC 9293 section 3.8.3, RFC 5482: data has waited for an acknowledgement for too long. Asked when the
    /// retransmission timer runs out, so the connection ends with the first expiry at or after it.
    fn user_timeout_is_over(&self, now: Instant) -> bool {
        self.rules
            .user_timeout
            .is_some_and(|most| self.waiting_since.is_some_and(|since| now - since >= most))
    }

    /// Stops the timer, whatever it runs for.
    pub(crate) fn stop_timer(&mut self) {
        self.timer.stop();
        self.linux.forget_purpose();
    }

    pub(crate) fn stop_timers(&mut self) {
        self.away = None;
        self.stop_timer();
        self.persist.stop();
        self.pacing.stop();
        self.linux.stop();
        if let Some(state) = &mut self.rack_tlp {
            state.stop();
        }
    }

    /// The path takes segments of at most `mss` bytes of data now: what is larger is cut and sent again
    /// (RFC 1191 section 6.5; no sign of congestion, so the window stays).
    pub(crate) fn shrink_mss(&mut self, now: Instant, mss: u32) {
        self.mss = mss;
        self.window.set_mss(mss);
        if self.variant == Variant::Linux {
            recovery::linux::path_narrowed(self, now, u16::try_from(mss).unwrap_or(u16::MAX));
        } else if self.queue.split_larger_than(u16::try_from(mss).unwrap_or(u16::MAX)) {
            recovery::send_all_again(self);
            self.stop_timing();
        }
    }
}

#[cfg(test)]
impl Sender {
    /// Checks the books against their definitions.
    pub(crate) fn check(&self) {
        if self.variant == Variant::Linux {
            self.queue.check_order();
            self.linux.check(&self.queue);
        } else {
            self.queue.check();
        }
    }
}
