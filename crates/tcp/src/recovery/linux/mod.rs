//! The sender of today's Linux, as of 6.1 (`net/ipv4/tcp_input.c`, `tcp_output.c`, `tcp_recovery.c`, `tcp_timer.c`): a
//! machine of five states over marks, one set a segment.
//!
//! Everything is counted in whole segments: sacked, lost, sent again; what is in flight follows. Without selective
//! acknowledgements each duplicate stands for a segment that was. A file holds one idea: `ack.rs` the order in which
//! an acknowledgement is taken, `blocks.rs` and `acked.rs` what it covers, `states.rs` the machine, `losses.rs` how
//! losses are found, `timeout.rs` and `frto.rs` what a timeout does and how it proves spurious, `undo.rs` what is taken
//! back, `reordering.rs` the degree of reordering, `packets.rs`, `send_buffer.rs` and `transmit.rs` what leaves, `collapse.rs` how small segments are joined, `usage.rs` when a window counts as used,
//! `timers.rs` the one timer.
//!
//! Left out: MTU probing, Fast Open, small queues (what leaves is on the wire at once), thin-stream timeouts. The timer wheel's
//! lateness is left out as well: a timer runs out at the tick it is set to (HZ = 1000), where a kernel may take an
//! eighth longer. Segments that leave together are one packet in the kernel until they are split; here each has its own marks,
//! which comes to the same, and is marked as [joined](crate::send_queue::Marks::JOINED) to the one before, which matters when the
//! path narrows.

mod ack;
mod acked;
mod blocks;
mod collapse;
mod frto;
mod losses;
mod min_rtt;
mod packets;
mod reordering;
mod send_buffer;
mod states;
mod timeout;
mod timers;
mod transmit;
mod undo;
mod usage;
mod wheel;

use alloc::collections::VecDeque;

use careof_base::Instant;
use careof_wire::SeqNumber;

use super::prr::Prr;
use super::rack::Rack;
use super::tail_loss_probe::TailLossProbe;
use crate::config::{Config, KernelEdition, ReductionBound};
use crate::congestion::CaState;
use crate::send_queue::SendQueue;
use crate::sender::{Outgoing, Sender};
use crate::snapshot::Phase;

pub(crate) use ack::on_ack;
pub(crate) use timeout::{path_narrowed, path_replaced};
pub(crate) use timers::{expect_timeout, on_syn_sent, on_timer, on_unreachable, restart as restart_timer};
pub(crate) use transmit::{next, on_pacing_timer, on_probe_data_sent, repeat_lost};

use min_rtt::MinRtt;
use packets::Packets;
use timers::Pending;
use undo::Undo;
use usage::Usage;
use wheel::Wheel;

/// The reordering degree never grows beyond this (`tcp_max_reordering`).
const MOST_REORDERING: u32 = 300;

/// Mechanisms that can be switched off.
#[derive(Clone, Copy, Debug)]
struct Switches {
    prr: bool,
    bound: ReductionBound,
    rack: bool,
    tail_loss_probe: bool,
    frto: bool,
    undo_by_timestamps: bool,
    dsack: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Linux {
    switches: Switches,
    kernel: KernelEdition,
    /// Both sides offered selective acknowledgements.
    sack: bool,
    state: CaState,

    /// `SND.UNA`; ahead of the queue's while an acknowledgement is being taken.
    una: SeqNumber,
    /// Segments that arrived out of order: marked so, or as many as duplicates told of.
    sacked_out: u32,
    lost_out: u32,
    /// Segments sent again of which the repetition is still believed to be on its way.
    retrans_out: u32,
    /// End of the highest segment sacked, where `sacked_out` is not 0.
    highest_sacked: SeqNumber,
    /// The blocks of the last acknowledgement: what lies in them has been looked at.
    known_blocks: [(SeqNumber, SeqNumber); 4],
    /// No segment that is lost and not sent again begins before this.
    resend_from: SeqNumber,
    /// Segments below are sacked, sent again or known to be lost: RACK need not look at them among those sent once.
    watch_from: SeqNumber,
    /// Segments sent again, when and which, in this order: RACK looks at them as well. Old entries may be stale.
    sent_again: VecDeque<(u64, SeqNumber)>,
    /// Where the counting of what was sacked stands without RACK: up to where, and how many were below.
    counted_to: Option<(SeqNumber, u32)>,

    /// Delivered in all, segments; duplicates by D-SACK count.
    delivered: u64,
    /// Presumed lost in all, segments.
    lost: u64,
    /// Sent again in all, segments.
    total_retrans: u64,
    /// Duplicates that D-SACK reported.
    duplicates_reported: u64,

    /// Segments by which a later one may come earlier (`tp->reordering`).
    reordering: u32,
    /// Its first value (`tcp_reordering`).
    usual_reordering: u32,
    reordering_seen: bool,

    /// Everything before had been sent when the state was entered.
    high_seq: SeqNumber,
    /// Threshold before the reduction, segments; 0 where it is not to be taken back.
    prior_ssthresh: u32,
    /// Window before the reduction, segments.
    prior_cwnd: u32,
    prr: Prr,
    undo: Undo,
    /// F-RTO is under way.
    frto: bool,
    /// Timeouts since anything new was acknowledged.
    timeouts: u32,
    /// The receiver has thrown away what it had reported.
    reneged: bool,
    rack: Rack,
    probe: TailLossProbe,
    min_rtt: MinRtt,

    pending: Pending,
    /// The deadline that a timer was set to when it ran out last, and when the peer was heard last.
    heard_at: Instant,
    usage: Usage,
    /// When data was sent last.
    last_sent: Instant,
    /// The end of the last small segment (Minshall's rule for Nagle's algorithm).
    small_end: Option<SeqNumber>,
    /// The end of the last segment sent while nothing else was outstanding.
    lone_end: Option<SeqNumber>,
    packets: Packets,
    /// The wheel that the timer runs by, if that is looked at.
    wheel: Option<Wheel>,
    /// Bytes of the send buffer, if that is of fixed size.
    send_buffer: Option<u32>,
    /// What was decided to send and has not been taken.
    outbox: VecDeque<Outgoing>,
    /// The application or the handshake has made something to send.
    push: bool,
}

fn micros(at: Instant) -> u64 {
    at.as_nanos() / 1_000
}

impl Linux {
    /// Timeouts since something was acknowledged.
    pub(crate) const fn timeouts(&self) -> u32 {
        self.timeouts
    }

    pub(crate) fn new(config: &Config, iss: SeqNumber) -> Self {
        let usual_reordering = u32::from(config.duplicate_ack_threshold);
        Self {
            switches: Switches {
                prr: config.prr,
                bound: config.reduction_bound,
                rack: config.rack,
                tail_loss_probe: config.tail_loss_probe,
                frto: config.frto,
                undo_by_timestamps: config.eifel,
                dsack: config.dsack,
            },
            kernel: config.kernel,
            sack: false,
            state: CaState::Open,
            una: iss,
            sacked_out: 0,
            lost_out: 0,
            retrans_out: 0,
            highest_sacked: iss,
            known_blocks: [(iss, iss); 4],
            resend_from: iss,
            watch_from: iss,
            sent_again: VecDeque::new(),
            counted_to: None,
            delivered: 0,
            lost: 0,
            total_retrans: 0,
            duplicates_reported: 0,
            reordering: usual_reordering,
            usual_reordering,
            reordering_seen: false,
            high_seq: iss,
            prior_ssthresh: 0,
            prior_cwnd: 0,
            prr: Prr::new(config.reduction_bound, 0, 0),
            undo: Undo::default(),
            frto: false,
            timeouts: 0,
            reneged: false,
            rack: Rack::new(),
            probe: TailLossProbe::default(),
            min_rtt: MinRtt::default(),
            pending: Pending::Nothing,
            heard_at: Instant::ZERO,
            usage: Usage::new(iss),
            last_sent: Instant::ZERO,
            small_end: None,
            lone_end: None,
            packets: Packets::default(),
            wheel: config.timer_hz.and_then(Wheel::new),
            send_buffer: config.send_buffer,
            outbox: VecDeque::new(),
            push: false,
        }
    }

    /// The peer's SYN told whether it takes part in selective acknowledgements.
    pub(crate) fn negotiated(&mut self, sack: bool) {
        self.sack = sack;
    }

    /// The application wrote or closed.
    pub(crate) fn wake(&mut self) {
        self.push = true;
    }

    /// The connection is over.
    pub(crate) fn stop(&mut self) {
        self.outbox.clear();
        self.packets.clear();
        self.pending = Pending::Nothing;
    }

    /// Segments believed to be on their way (`tcp_packets_in_flight`).
    pub(crate) fn in_flight(&self, queue: &SendQueue) -> u32 {
        (outstanding(queue) + self.retrans_out).saturating_sub(self.sacked_out + self.lost_out)
    }

    pub(crate) fn state(&self) -> CaState {
        self.state
    }

    /// Both sides take part in selective acknowledgements.
    pub(crate) fn is_selective(&self) -> bool {
        self.sack
    }

    /// Everything lost was sent again.
    pub(crate) fn is_repaired(&self) -> bool {
        self.lost_out <= self.retrans_out
    }

    /// Segments delivered and presumed lost in all.
    pub(crate) fn totals(&self) -> (u64, u64) {
        (self.delivered, self.lost)
    }

    /// Duplicate acknowledgements counted, without selective ones.
    pub(crate) fn duplicates(&self) -> u32 {
        if self.sack { 0 } else { self.sacked_out }
    }

    pub(crate) fn phase(&self) -> Phase {
        match self.state {
            CaState::Open | CaState::Disorder | CaState::Cwr => Phase::Open,
            CaState::Recovery => Phase::FastRecovery,
            CaState::Loss => Phase::Loss,
        }
    }

    /// `tcp_highest_sack_seq`.
    fn highest_sacked(&self) -> SeqNumber {
        if self.sack && self.sacked_out > 0 { self.highest_sacked } else { self.una }
    }

    /// The window is being reduced (`tcp_in_cwnd_reduction`).
    pub(crate) fn is_reducing(&self) -> bool {
        matches!(self.state, CaState::Cwr | CaState::Recovery)
    }

    /// No reduction is taken back any more.
    pub(crate) fn forget_undo(&mut self) {
        self.prior_ssthresh = 0;
        self.undo.marker = None;
    }

    /// The window was set by something else than its use.
    pub(crate) fn window_changed(&mut self, now: Instant) {
        self.usage.begin(now);
    }

    /// `queue` was emptied of marks or filled with other records: no hint holds.
    fn forget_hints(&mut self, queue: &SendQueue) {
        self.resend_from = queue.una();
        self.watch_from = queue.una();
        self.counted_to = None;
    }

    /// Checks the sums against the marks.
    #[cfg(test)]
    pub(crate) fn check(&self, queue: &SendQueue) {
        use crate::send_queue::Marks;
        let count = |mark| {
            let marked = (0..queue.len()).filter(|&index| queue.record(index).unwrap().marks.has(mark));
            u32::try_from(marked.count()).unwrap()
        };
        if self.sack {
            assert_eq!(self.sacked_out, count(Marks::SACKED));
        }
        assert_eq!(self.lost_out, count(Marks::LOST));
        assert_eq!(self.retrans_out, count(Marks::REPAIRED));
        assert!(self.sacked_out + self.lost_out <= outstanding(queue), "{self:?}");
        for index in 0..queue.len() {
            let record = queue.record(index).unwrap();
            assert!(!(record.marks.has(Marks::SACKED) && record.marks.has(Marks::LOST)));
            let to_resend = record.marks.has(Marks::LOST) && !record.marks.has(Marks::REPAIRED);
            assert!(!to_resend || !record.seq.is_before(self.resend_from), "{record:?} {self:?}");
        }
    }
}

/// Segments sent and not acknowledged (`tp->packets_out`).
fn outstanding(queue: &SendQueue) -> u32 {
    u32::try_from(queue.len()).unwrap_or(u32::MAX)
}

/// The handshake is complete: the window begins anew (`tcp_init_transfer`).
pub(crate) fn begin(sender: &mut Sender, now: Instant) {
    let linux = &mut sender.linux;
    let initial = sender.window.initial() / sender.mss.max(1);
    // One repetition may be the timer's fault, which begins with only a second.
    sender.window.set_segments(if linux.total_retrans > 1 { 1 } else { initial.max(1) });
    linux.state = CaState::Open;
    linux.una = sender.queue.una();
    linux.last_sent = now;
    linux.usage.stamp(now);
    linux.push = true;
    sender.phase = linux.phase();
}
