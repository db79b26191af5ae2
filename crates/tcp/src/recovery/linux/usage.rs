//! When the window counts as used, and what becomes of one that is not (RFC 2861 and 7661 as Linux 6.1 has them:
//! `tcp_cwnd_validate`, `tcp_is_cwnd_limited`, `tcp_cwnd_application_limited`, `tcp_cwnd_restart`).

use careof_base::Instant;
use careof_wire::SeqNumber;

use super::{outstanding, states};
use crate::config::IdleRestart;
use crate::congestion::CaState;
use crate::sender::Sender;
use crate::timer::Ticks;

#[derive(Clone, Debug)]
pub(super) struct Usage {
    /// The window held the sender back in the present round trip.
    limited: bool,
    /// Most segments outstanding in it, where the window did not.
    most: u32,
    /// Its end.
    until: SeqNumber,
    /// Most segments outstanding since the window was last used to the full.
    used: u32,
    /// When the window was last used or changed.
    stamp: Instant,
}

impl Usage {
    pub(super) fn new(iss: SeqNumber) -> Self {
        Self { limited: false, most: 0, until: iss, used: 0, stamp: Instant::ZERO }
    }

    /// The window is another: nothing is known of its use.
    pub(super) fn begin(&mut self, now: Instant) {
        (self.limited, self.most, self.used) = (false, 0, 0);
        self.stamp(now);
    }

    pub(super) fn stamp(&mut self, now: Instant) {
        self.stamp = now;
    }
}

fn ticks(at: Instant) -> u64 {
    Ticks::MILLISECONDS.at(at)
}

fn rto(sender: &Sender) -> u64 {
    Ticks::MILLISECONDS.count_in(sender.estimator.rto())
}

/// Whether the window may grow: it holds the sender back, or in slow start is at most twice what was used.
pub(super) fn is_limited(sender: &Sender) -> bool {
    let usage = &sender.linux.usage;
    usage.limited || sender.window.in_slow_start() && sender.window.segments() < usage.most.saturating_mul(2)
}

/// Something was sent, or the window did not let it.
pub(super) fn validate(sender: &mut Sender, now: Instant, limited: bool) {
    let outstanding = outstanding(&sender.queue);
    let una = sender.linux.una;
    let usage = &mut sender.linux.usage;
    if !una.is_before(usage.until) || limited || !usage.limited && outstanding > usage.most {
        usage.limited = limited;
        usage.most = outstanding;
        usage.until = sender.queue.end();
    }
    if is_limited(sender) {
        sender.linux.usage.used = 0;
        sender.linux.usage.stamp = now;
        return;
    }
    let usage = &mut sender.linux.usage;
    usage.used = usage.used.max(outstanding);
    let since = ticks(now) - ticks(usage.stamp).min(ticks(now));
    if sender.idle_restart() != IdleRestart::Off && since >= rto(sender) && !sender.is_modeled() {
        give_up_unused(sender, now);
    }
}

/// The window was not used to the full for an RTO: half of what was not used is given up.
fn give_up_unused(sender: &mut Sender, now: Instant) {
    if sender.linux.state == CaState::Open {
        let initial = sender.window.initial() / sender.mss.max(1);
        let used = sender.linux.usage.used.max(initial);
        let cwnd = sender.window.segments();
        if used < cwnd {
            let threshold = states::current_threshold(sender);
            sender.window.set_ssthresh_segments(threshold);
            sender.window.set_segments((cwnd + used) >> 1);
        }
        sender.linux.usage.used = 0;
    }
    sender.linux.usage.stamp = now;
}

/// The application writes, or the peer's window changes while something waits: a window that rested for longer than an RTO
/// is halved for each, if nothing is outstanding (`tcp_slow_start_after_idle_check`).
pub(super) fn restart_after_idle(sender: &mut Sender, now: Instant) {
    if !sender.queue.is_empty() {
        return;
    }
    let mut idle = ticks(now) - ticks(sender.linux.last_sent).min(ticks(now));
    let rto = rto(sender).max(1);
    if sender.idle_restart() == IdleRestart::Off || idle <= rto || sender.is_modeled() {
        return;
    }
    let threshold = states::current_threshold(sender);
    sender.window.set_ssthresh_segments(threshold);
    let mut cwnd = sender.window.segments();
    let restart = (sender.window.initial() / sender.mss.max(1)).min(cwnd);
    if sender.idle_restart() == IdleRestart::InitialWindow {
        cwnd = restart;
    }
    while idle > rto && cwnd > restart {
        idle -= rto;
        cwnd >>= 1;
    }
    sender.window.set_segments(cwnd.max(restart));
    sender.linux.usage.stamp = now;
    sender.linux.usage.used = 0;
}
