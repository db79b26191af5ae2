//! The order in which an acknowledgement is taken (Linux 6.1, `tcp_ack`).

use core::time::Duration;

use careof_base::Instant;
use careof_wire::SeqNumber;

use super::{acked, blocks, micros, states, timers, transmit, usage};
use crate::congestion::{AckSample, CaState};
use crate::delivery_rate::RoundTrip;
use crate::events::Journal;
use crate::recovery::tail_loss_probe::{Answer, Verdict};
use crate::sender::{Ack, AckOutcome, Sender};

/// What is to be sent in answer to an acknowledgement, before new data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Again {
    Nothing,
    /// What is lost.
    Lost,
    /// New data, and what is lost only if there is none (F-RTO).
    New,
}

/// What an acknowledgement has brought to light.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct News {
    /// The segment carries data.
    data: bool,
    window_updated: bool,
    /// The kernel's header prediction lets it pass by the slow path.
    predicted: bool,
    pub(super) una_advanced: bool,
    pub(super) data_acked: bool,
    pub(super) syn_acked: bool,
    pub(super) fin: bool,
    /// Some of what was acknowledged had been sent more than once.
    pub(super) repeated_acked: bool,
    /// Something was selectively acknowledged for the first time.
    pub(super) sacked: bool,
    /// Something that was sent once, before the present state was entered, was delivered.
    pub(super) original_delivered: bool,
    pub(super) duplicate_reported: bool,
    /// The report is about the tail loss probe.
    pub(super) duplicate_of_probe: bool,
    pub(super) congestion_echoed: bool,
    /// What is now the first segment had been selectively acknowledged.
    pub(super) reneging: bool,
    pub(super) repetition_lost: bool,
    /// The timer is to start anew.
    pub(super) set_timer: bool,
    /// The receiver probably held the acknowledgement back.
    pub(super) maybe_delayed: bool,
    /// Bytes of data acknowledged.
    pub(super) bytes: u32,
    /// Segments that blocks told of.
    pub(super) sack_delivered: u32,
    /// The lowest segment that came after a higher one.
    pub(super) reordered: SeqNumber,
    /// When the first and the last segment had left that were newly sacked and sent only once, microseconds.
    pub(super) first_sacked: Option<u64>,
    pub(super) last_sacked: Option<u64>,
    /// When the newest of all that was delivered had left.
    newest_sent: Option<u64>,
    /// Round trip of the newest segment delivered that was sent once, microseconds.
    pub(super) rtt: Option<u64>,
}

impl News {
    pub(super) fn delivered_sent_at(&mut self, sent: u64) {
        self.newest_sent = self.newest_sent.max(Some(sent));
    }

    /// It says nothing but what was known.
    fn is_duplicate(&self) -> bool {
        !(self.data || self.window_updated || self.data_acked || self.syn_acked)
    }

    fn is_alarming(&self) -> bool {
        self.sacked || self.congestion_echoed || self.duplicate_reported
    }
}

/// Takes an acknowledgement of something that was sent.
pub(crate) fn on_ack(sender: &mut Sender, now: Instant, ack: &Ack<'_>, journal: &mut Journal) -> AckOutcome {
    let una_before = sender.queue.una();
    sender.linux.una = una_before;
    let outcome = if ack.ack.is_before(una_before) {
        journal.counters.old_acks_received += 1;
        take_old(sender, now, ack, una_before, journal);
        AckOutcome::Nothing
    } else {
        take(sender, now, ack, una_before, journal)
    };
    journal.revision += 1;
    if sender.has_unsent() && sender.may_send() {
        transmit::send_new(sender, now, transmit::Push::Usual);
    }
    outcome
}

/// An acknowledgement that was overtaken may still report what was not known.
fn take_old(sender: &mut Sender, now: Instant, ack: &Ack<'_>, una_before: SeqNumber, journal: &mut Journal) {
    if ack.sack.is_empty() || !sender.linux.sack {
        return;
    }
    let mut news = News::default();
    blocks::take(sender, micros(now), ack, una_before, &mut news);
    let again = states::alert(sender, now, ack, una_before, 0, &mut news, journal);
    transmit::recover(sender, now, again);
}

fn take(
    sender: &mut Sender,
    now: Instant,
    ack: &Ack<'_>,
    una_before: SeqNumber,
    journal: &mut Journal,
) -> AckOutcome {
    let mut news = News {
        data: !ack.pure,
        congestion_echoed: ack.echoes_congestion,
        predicted: is_predicted(sender, ack),
        ..News::default()
    };
    let idle = sender.queue.is_empty();
    let (delivered, lost) = (sender.linux.delivered, sender.linux.lost);
    sender.begin_linux_ack();
    if ack.ack.is_after(una_before) {
        news.una_advanced = true;
        sender.linux.timeouts = 0;
    }
    let highest_before = sender.linux.highest_sacked();
    let offered = sender.snd_wnd();
    news.window_updated = sender.follow_window(now, ack);
    if sender.snd_wnd() != offered && sender.linux.packets.head().is_some() {
        usage::restart_after_idle(sender, now);
    }
    sender.linux.una = ack.ack;
    if !ack.sack.is_empty() && sender.linux.sack {
        blocks::take(sender, micros(now), ack, una_before, &mut news);
        sender.linux.delivered += u64::from(news.sack_delivered);
    }
    sender.linux.heard_at = now;
    if idle {
        tell_idle_congestion_control(sender, now, &news);
        // A report may still show that the last reduction was for nothing.
        if news.duplicate_reported {
            states::alert(sender, now, ack, una_before, 0, &mut news, journal);
        }
        on_probe_answer(sender, now, ack, &news);
        return AckOutcome::Nothing;
    }
    acked::take(sender, now, ack, (una_before, highest_before), &mut news, journal);
    sender.linux.rack.adapt(micros(now), news.newest_sent);
    tell_congestion_control(sender, now, &news, delivered);
    on_probe_answer(sender, now, ack, &news);
    if news.is_duplicate() || news.is_alarming() || sender.linux.state != CaState::Open {
        journal.counters.duplicate_acks_received += u64::from(news.is_duplicate() && !news.una_advanced);
        let duplicate = !news.una_advanced && news.is_duplicate() && !news.duplicate_reported;
        let again = states::alert(sender, now, ack, una_before, u32::from(duplicate), &mut news, journal);
        finish(sender, now, again, &news, (delivered, lost));
    } else {
        finish(sender, now, Again::Nothing, &news, (delivered, lost));
    }
    sender.duplicate_acks = sender.linux.duplicates();
    if news.una_advanced { AckOutcome::New { fin: news.fin } } else { AckOutcome::Nothing }
}

/// The timer, the window, and what is sent again, in this order.
fn finish(sender: &mut Sender, now: Instant, again: Again, news: &News, before: (u64, u64)) {
    if news.set_timer {
        timers::set(sender, now);
    }
    let delivered = u32::try_from(sender.linux.delivered - before.0).unwrap_or(u32::MAX);
    let lost = sender.linux.lost - before.1;
    if sender.queue.delivery.is_some() {
        let rtt = news.rtt.map(Duration::from_micros);
        sender.finish_linux_ack(now, RoundTrip { rtt, delayed: news.maybe_delayed });
    }
    if sender.is_modeled() {
        // The model has set the window.
    } else if sender.linux.is_reducing() {
        states::reduce(sender, delivered, lost, news.una_advanced);
    } else if may_grow(sender, news) {
        let sample = sample(sender, now, news, delivered);
        sender.congestion.grow(&mut sender.window, &sample);
        sender.linux.usage.stamp(now);
    }
    sender.pace_by_window();
    transmit::recover(sender, now, again);
}

/// Whether the window may grow by this acknowledgement (`tcp_may_raise_cwnd`).
fn may_grow(sender: &Sender, news: &News) -> bool {
    let linux = &sender.linux;
    if linux.reordering > linux.usual_reordering {
        news.data_acked || news.syn_acked || news.sacked
    } else {
        news.data_acked
    }
}

/// What the kernel's header prediction expects (`tcp_rcv_established`): the usual header, with the window known, while the
/// connection is open on this side.
fn is_predicted(sender: &Sender, ack: &Ack<'_>) -> bool {
    (ack.pure || ack.has_data)
        && ack.sack.is_empty()
        && !ack.echoes_congestion
        && ack.window == sender.snd_wnd()
        && sender.may_send()
        && sender.queue.is_unfinished()
}

fn sample(sender: &Sender, now: Instant, news: &News, delivered: u32) -> AckSample {
    AckSample {
        now,
        acked: news.bytes,
        delivered,
        rtt: news.rtt.map(Duration::from_micros),
        srtt: sender.estimator.srtt(),
        una: sender.linux.una,
        nxt: sender.queue.end(),
        window_limited: usage::is_limited(sender),
        predicted: news.predicted,
    }
}

fn tell_congestion_control(sender: &mut Sender, now: Instant, news: &News, delivered_before: u64) {
    let delivered = u32::try_from(sender.linux.delivered - delivered_before).unwrap_or(u32::MAX);
    let sample = sample(sender, now, news, delivered);
    sender.note_ack(&sample);
    sender.congestion.on_ack(&mut sender.window, &sample);
}

/// Expected data that acknowledges nothing is not even looked at for its acknowledgement.
fn tell_idle_congestion_control(sender: &mut Sender, now: Instant, news: &News) {
    if !(news.predicted && news.data) {
        let sample = sample(sender, now, news, 0);
        sender.congestion.on_idle_ack(&sender.window, &sample);
    }
}

/// What the acknowledgement says about the tail loss probe: a probe that repaired a loss reduces the window
/// (`tcp_process_tlp_ack`).
fn on_probe_answer(sender: &mut Sender, now: Instant, ack: &Ack<'_>, news: &News) {
    let answer = Answer {
        ack: ack.ack,
        reports_probe: news.duplicate_of_probe,
        bare_duplicate: !news.una_advanced && news.is_duplicate() && !news.sacked,
    };
    if sender.linux.probe.on_ack(answer) == Verdict::Repaired {
        states::begin_reduction(sender);
        states::set(sender, now, CaState::Cwr);
        states::end_reduction(sender, now);
        states::keep_open(sender, now);
    }
}
