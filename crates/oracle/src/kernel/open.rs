//! The open loop: the model's sender is fed with the acknowledgements that the kernel's got, at the same times.
//! Neither receiver nor link is modelled.
//!
//! A timer of the model that runs out waits for the kernel's, which is late by up to an eighth and a tick (the timer
//! wheel never fires early): it fires together with the kernel's next segment that no acknowledgement explains, or,
//! when the interval is over, by itself.

use std::collections::VecDeque;

use careof_base::Instant;
use careof_tcp::{ConfigError, Connection, Role, Transmission};
use careof_wire::{Flags, Segment, SeqNumber, Timestamps};

use super::comparison::{Difference, Kind, Loop};
use super::error::{Error, Problem};
use super::setup::Setup;
use super::trace::{Event, Row, Trace};

/// The model's first sequence number.
pub(super) const ISS: SeqNumber = SeqNumber(0x1000_0000);
/// The peer's.
pub(super) const PEER_ISS: SeqNumber = SeqNumber(0x2000_0000);
/// The peer's timestamp clock when the trace's shows 0.
const PEER_CLOCK: u32 = 1_000;

/// One segment that the model sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    pub(super) seq: u32,
    pub(super) len: u32,
    /// The how-manieth acknowledgement was the last before it.
    pub(super) after: usize,
    pub(super) at_us: u64,
    pub(super) retransmission: bool,
    /// The timer that sent it, where one did.
    pub(super) timer: Option<Deadline>,
}

impl Sent {
    /// What to compare of a transmission: SYNs, data and probes; `None` for mere acknowledgements.
    pub(super) fn of(out: &Transmission, after: usize, at_us: u64, timer: Option<Deadline>) -> Option<Self> {
        let segment = &out.segment;
        let compared = segment.payload_len > 0 || segment.flags.contains(Flags::SYN) || out.probe;
        compared.then(|| Self {
            seq: segment.seq.0.wrapping_sub(ISS.0),
            len: u32::from(segment.payload_len),
            after,
            at_us,
            retransmission: out.retransmission && segment.payload_len > 0,
            timer,
        })
    }
}

/// What the link's program took to notice a segment at most, microseconds.
const NOTICED_US: u64 = 500;
/// The tick by which the model rounds its timeouts, microseconds.
const MODEL_TICK_US: u64 = 1_000;
/// What an acknowledgement or a write causes leaves at once; the row may have been written this much later, and what the
/// program took to notice at most.
const SAME_US: u64 = 1_000;
/// How much earlier than the model's a kernel timer may be: rounding of its parts to ticks.
pub(super) const EARLY_US: u64 = 1_000;

/// When a timer was set and runs out, microseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Deadline {
    set_us: u64,
    due: Option<Instant>,
}

impl Deadline {
    /// Looks at the connection after something happened at `now_us`.
    pub(super) fn follow(&mut self, connection: &Connection, now_us: u64) {
        let due = connection.next_timeout().map(|(due, _)| due);
        if due != self.due {
            *self = Self { set_us: now_us, due };
        }
    }

    pub(super) fn due_us(self) -> Option<u64> {
        self.due.map(|due| due.as_nanos().div_ceil(1_000))
    }

    /// The last moment at which a kernel's timer may fire that goes by ticks of `tick_us`: the wheel is late by up to an
    /// eighth and a tick; where its ticks are longer than the model's, the timeout itself is rounded up to one.
    pub(super) fn latest_us(self, tick_us: u64) -> Option<u64> {
        let due = self.due_us()?;
        let rounding = if tick_us > MODEL_TICK_US { tick_us } else { 0 };
        Some(due + due.saturating_sub(self.set_us) / 8 + tick_us + rounding + NOTICED_US)
    }

    /// Whether a kernel's timer may fire then.
    fn allows(self, at_us: u64, tick_us: u64) -> bool {
        let (Some(due), Some(latest)) = (self.due_us(), self.latest_us(tick_us)) else { return false };
        (due.saturating_sub(EARLY_US)..=latest).contains(&at_us)
    }
}

struct Run<'a> {
    setup: &'a Setup,
    connection: Connection,
    deadline: Deadline,
    /// The timer that is firing.
    firing: Option<Deadline>,
    /// When the application writes what it has not written yet: on the model's clock, in bytes.
    writes: VecDeque<(u64, u64)>,
    /// The model's clock, microseconds; the trace's plus the phase.
    now_us: u64,
    sent: Vec<Sent>,
    acks: usize,
    shift: u8,
    first_stamp: u32,
}

pub(super) fn run(trace: &Trace, setup: &Setup) -> Result<Loop, Error> {
    let mut run = Run {
        setup,
        connection: sender(trace, setup)?,
        deadline: Deadline::default(),
        firing: None,
        writes: VecDeque::new(),
        now_us: 0,
        sent: Vec::new(),
        acks: 0,
        shift: shift_for(trace),
        first_stamp: 0,
    };
    let mut found = Loop::default();
    let mut kernel: Vec<(&Row, usize)> = Vec::new();
    let mut opened = false;
    for (index, row) in trace.rows.iter().enumerate() {
        let at_us = run.moment(trace, index);
        run.overdue(at_us);
        run.write_until(at_us, row.is_deed());
        match row.event {
            Event::Sent if row.flags.contains(Flags::SYN) && !opened => {
                opened = true;
                kernel.push((row, 0));
                run.now_us = at_us;
                run.connection.open(run.now());
                run.drain();
            }
            Event::Sent if !row.is_deed() => {}
            Event::Sent => {
                kernel.push((row, run.acks));
                while run.sent.len() < kernel.len() {
                    let Some(due) = run.deadline.due_us().filter(|&due| due <= at_us + EARLY_US) else {
                        break;
                    };
                    run.fire(due.max(at_us));
                }
            }
            Event::Received => {
                if row.flags.contains(Flags::SYN) {
                    run.take(row, at_us);
                } else {
                    run.acks += 1;
                    run.take(row, at_us);
                    compare_windows(row, &run, &mut found);
                }
            }
            Event::AckLost | Event::Released => {}
        }
    }
    compare_segments(&kernel, &run.sent, trace, setup, &mut found);
    Ok(found)
}

/// The sender's model before it opens.
pub(super) fn sender(trace: &Trace, setup: &Setup) -> Result<Connection, Error> {
    let mut sender = Connection::new(setup.sender.clone(), Role::Active, 1_000, 2_000, ISS)
        .map_err(|error| impossible(trace, &error))?;
    sender.set_seed(setup.seed);
    sender.set_cycle_starts(&setup.cycle_starts);
    Ok(sender)
}

pub(super) fn impossible(trace: &Trace, error: &ConfigError) -> Error {
    Error {
        file: trace.file.clone(),
        line: Some(trace.command_line),
        problem: Problem::NoModel(format!("these options: {error}")),
    }
}

/// The least shift with which every window of the trace can be told exactly.
pub(super) fn shift_for(trace: &Trace) -> u8 {
    let acks =
        || trace.rows.iter().filter(|row| row.event == Event::Received && !row.flags.contains(Flags::SYN));
    (0..=14).find(|shift| acks().all(|row| row.window >> shift <= 65_535)).unwrap_or(14)
}

impl Run<'_> {
    fn now(&self) -> Instant {
        Instant::from_micros(self.now_us)
    }

    /// The row's time on the model's clock. Where the kernel put a timestamp on what this row shows or causes, the
    /// model is in the same millisecond: the row was written a little after the timestamp was.
    fn moment(&self, trace: &Trace, index: usize) -> u64 {
        let row = &trace.rows[index];
        let at_us = row.at_us + self.setup.phase_us;
        let caused = match row.event {
            Event::Sent => Some(row),
            Event::Received => trace
                .rows
                .get(index + 1)
                .filter(|next| next.event == Event::Sent && next.at_us <= row.at_us + CAUSED_US),
            _ => None,
        };
        let stamp = caused.and_then(|row| row.timestamps).map(|stamps| u64::from(stamps.0));
        let begun = stamp.map(|stamp| (stamp + self.first_ms(trace)) * 1_000);
        let within = begun.map_or(at_us, |begun| at_us.clamp(begun, begun + 999));
        within.max(self.now_us)
    }

    fn first_ms(&self, trace: &Trace) -> u64 {
        let first = trace.rows.first().map_or(0, |row| row.at_us);
        (first + self.setup.phase_us) / 1_000
    }

    fn drain(&mut self) {
        let now = self.now();
        while self.connection.poll_event().is_some() {}
        while let Some(out) = self.connection.poll_transmit(now) {
            let segment = out.segment;
            if segment.flags.contains(Flags::SYN)
                && let Some(stamps) = segment.timestamps
            {
                self.first_stamp = stamps.value;
            }
            let at_us = self.now_us.saturating_sub(self.setup.phase_us);
            self.sent.extend(Sent::of(&out, self.acks, at_us, self.firing));
        }
        self.deadline.follow(&self.connection, self.now_us);
    }

    /// Fires what the kernel's timers would have fired before `until_us` at the latest.
    fn overdue(&mut self, until_us: u64) {
        // A timer that is set again to the same deadline would never let go.
        for _ in 0..64 {
            let latest = self.deadline.latest_us(self.setup.tick_us);
            let (Some(due), Some(latest)) = (self.deadline.due_us(), latest) else { return };
            if latest >= until_us {
                return;
            }
            self.fire(due);
        }
    }

    /// The application's writes up to now. It wakes up a little late: where the kernel sends something then, it may be that
    /// the write is what it waited for.
    fn write_until(&mut self, at_us: u64, kernel_sends: bool) {
        while let Some(&(due, bytes)) = self.writes.front().filter(|&&(due, _)| due <= at_us) {
            self.writes.pop_front();
            let late = kernel_sends && at_us - due <= LATE_WRITE_US + due / 1_000;
            self.now_us = self.now_us.max(if late { at_us } else { due });
            self.connection.write(bytes);
            self.drain();
        }
    }

    fn fire(&mut self, at_us: u64) {
        self.now_us = self.now_us.max(at_us);
        self.firing = Some(self.deadline);
        self.connection.handle_timeout(self.now());
        self.drain();
        self.firing = None;
    }

    fn take(&mut self, row: &Row, at_us: u64) {
        self.now_us = at_us;
        let is_syn = row.flags.contains(Flags::SYN);
        let shift = if is_syn { 0 } else { self.shift };
        let mut segment = Segment {
            source_port: 2_000,
            destination_port: 1_000,
            seq: PEER_ISS.plus(row.seq),
            ack: ISS.plus(row.ack),
            flags: row.flags,
            window: u16::try_from(row.window >> shift).unwrap_or(u16::MAX),
            timestamps: row.timestamps.map(|(value, echo)| Timestamps {
                value: PEER_CLOCK.wrapping_add(value),
                echo: self.first_stamp.wrapping_add(echo),
            }),
            payload_len: u16::try_from(row.len).unwrap_or(u16::MAX),
            ..Segment::default()
        };
        for &(left, right) in row.sack.as_slice() {
            segment.sack.push(ISS.plus(left.0), ISS.plus(right.0));
        }
        if is_syn {
            segment.mss = Some(self.setup.sender.mss);
            segment.window_scale = Some(self.shift);
            segment.sack_permitted = self.setup.sack;
        }
        self.connection.handle_segment(self.now(), &segment);
        if is_syn {
            self.writes =
                self.setup.writes.iter().map(|write| (at_us + write.after_us, write.bytes)).collect();
            // The send buffer takes whatever is written.
            self.write_until(at_us, false);
        }
        self.drain();
    }
}

/// How late the application may wake up, beyond a thousandth of the time: it sleeps in steps of a clock.
const LATE_WRITE_US: u64 = 1_000;

/// What an acknowledgement causes follows it within this time.
const CAUSED_US: u64 = 100;

fn compare_windows(row: &Row, run: &Run<'_>, found: &mut Loop) {
    let Some(state) = &row.state else { return };
    let ours = windows(&run.connection);
    let kernel = (state.cwnd, state.ssthresh);
    found.window.count(ours == kernel);
    if ours != kernel {
        found.note(Difference {
            kind: Kind::Window,
            line: row.line,
            at_us: row.at_us,
            kernel: format!("had {}", in_words(kernel)),
            model: format!("had {}", in_words(ours)),
        });
    }
}

/// cwnd and ssthresh of a model, segments.
pub(super) fn windows(connection: &Connection) -> (u32, Option<u32>) {
    let state = connection.snapshot();
    let threshold =
        (state.ssthresh / state.mss < 0x7fff_ffff / state.mss).then_some(state.ssthresh / state.mss);
    (state.cwnd / state.mss, threshold)
}

pub(super) fn in_words((cwnd, ssthresh): (u32, Option<u32>)) -> String {
    ssthresh.map_or_else(
        || format!("cwnd {cwnd}, ssthresh none"),
        |ssthresh| format!("cwnd {cwnd}, ssthresh {ssthresh}"),
    )
}

/// The sequences of segments, side by side.
fn compare_segments(
    kernel: &[(&Row, usize)],
    model: &[Sent],
    trace: &Trace,
    setup: &Setup,
    found: &mut Loop,
) {
    let mut theirs: Vec<(u32, u32)> = Vec::new();
    for (row, _) in kernel.iter().filter(|(row, _)| row.transmission.unwrap_or(1) > 1) {
        theirs.push((row.seq, row.len));
    }
    let mut ours: Vec<(u32, u32)> =
        model.iter().filter(|s| s.retransmission).map(|s| (s.seq, s.len)).collect();
    found.retransmissions = (theirs.len(), ours.len());
    theirs.sort_unstable();
    ours.sort_unstable();
    found.same_segments = theirs == ours;
    found.same_order = kernel.len() == model.len();
    for index in 0..kernel.len().max(model.len()) {
        let (theirs, ours) = (kernel.get(index), model.get(index));
        let same =
            theirs.zip(ours).is_some_and(|((row, _), sent)| (row.seq, row.len) == (sent.seq, sent.len));
        if !same {
            found.same_order = false;
            found.note(segment_difference(theirs, ours, kernel, setup));
            break;
        }
        let (Some(&(row, after)), Some(sent)) = (theirs, ours) else { break };
        found.moments.count(sent.after == after);
        if sent.after != after {
            found.note(Difference {
                kind: Kind::Moment,
                line: row.line,
                at_us: row.at_us,
                kernel: format!("sent {} after ACK {after}", segment(row.seq, row.len, setup)),
                model: format!("sent it after ACK {}", sent.after),
            });
        }
        let same_time = match sent.timer {
            Some(timer) => timer.allows(row.at_us + setup.phase_us, setup.tick_us),
            None => row.at_us.abs_diff(sent.at_us) <= SAME_US + trace.late_max_us,
        };
        found.times.count(same_time);
        if !same_time {
            let due = sent.timer.and_then(Deadline::due_us).map(|due| due.saturating_sub(setup.phase_us));
            found.note(Difference {
                kind: Kind::Time,
                line: row.line,
                at_us: row.at_us,
                kernel: format!("sent {} then", segment(row.seq, row.len, setup)),
                model: match due {
                    Some(due) => format!("has a timer that is due at {:.6} s", due as f64 / 1e6),
                    None => format!("sent it at {:.6} s", sent.at_us as f64 / 1e6),
                },
            });
        }
    }
}

fn segment_difference(
    theirs: Option<&(&Row, usize)>,
    ours: Option<&Sent>,
    kernel: &[(&Row, usize)],
    setup: &Setup,
) -> Difference {
    let place = theirs.or(kernel.last());
    let says = |seq, len, after, again: bool| {
        let again = if again { " again" } else { "" };
        format!("sent {}{again} after ACK {after}", segment(seq, len, setup))
    };
    Difference {
        kind: Kind::Segment,
        line: place.map_or(0, |(row, _)| row.line),
        at_us: place.map_or(0, |(row, _)| row.at_us),
        kernel: theirs.map_or_else(
            || "sent nothing more".to_owned(),
            |(row, after)| says(row.seq, row.len, *after, row.transmission.unwrap_or(1) > 1),
        ),
        model: ours.map_or_else(
            || "sent nothing more".to_owned(),
            |sent| {
                let words = says(sent.seq, sent.len, sent.after, sent.retransmission);
                format!("{words} at {:.6} s", sent.at_us as f64 / 1e6)
            },
        ),
    }
}

/// A segment in words: its number where it is a full one.
pub(super) fn segment(seq: u32, len: u32, setup: &Setup) -> String {
    let before = seq.wrapping_sub(1);
    if (seq, len) == (0, 0) {
        return "the SYN".to_owned();
    }
    if len == setup.mss && before.is_multiple_of(setup.mss) {
        format!("segment {}", before / setup.mss + 1)
    } else {
        format!("{len} bytes at {seq}")
    }
}
