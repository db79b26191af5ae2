//! The closed loop: model sender and model receiver over the link of the trace and its script.
//!
//! The sender's timers may be as late as the kernel's: where the next segment that no acknowledgement explains stands in
//! the trace within the interval that the timer wheel allows, the model's timer fires at that time. So may the program
//! between the kernels: an acknowledgement takes effect when it did in the trace, where that is later by no more
//! than the lateness that the trace states and what a kernel takes to answer, once for each end. Nothing else is taken from the trace but the windows of
//! a receiver that does not read.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use careof_base::Instant;
use careof_tcp::{Connection, Role, Wake};
use careof_wire::{Flags, Segment, SeqNumber};

use super::comparison::{Difference, Kind, Loop};
use super::error::Error;
use super::link::{Fate, Link, Packet, Way};
use super::open::{self, Deadline, ISS, PEER_ISS, Sent};
use super::script::Script;
use super::setup::{Setup, Write};
use super::trace::{Event, Row, Trace};

/// Two times are the same within this, a thousandth of the time since the beginning, and what the program between the
/// kernels took to notice a packet at most: each round trip begins as late as the one before was noticed.
const SAME_US: u64 = 1_000;
/// A segment that follows an acknowledgement or another segment by more than this was sent by a timer.
const CAUSED_US: u64 = 100;
/// The most acknowledgements that are looked up by their ordinals: two for each segment that there can be.
const MOST_ACKS: u32 = 20_000_000;
/// IPv4 header, bytes.
const IPV4: u64 = 20;

/// cwnd and ssthresh, segments.
type Windows = (u32, Option<u32>);

struct Flight {
    way: Way,
    segment: Segment,
    packet: Packet,
    /// Held at the far end until this many later segments have arrived.
    held: Option<u32>,
}

struct Held {
    number: u32,
    left: u32,
    segment: Segment,
}

struct Run<'a> {
    setup: &'a Setup,
    /// What the kernel sent, in order; nothing where rows are left out.
    kernel: &'a [Timed<'a>],
    link: Link,
    sender: Connection,
    receiver: Connection,
    flying: BTreeMap<(Instant, u64), Flight>,
    serial: u64,
    held: Vec<Held>,
    now: Instant,
    sent: Vec<Sent>,
    ordinal: u32,
    /// cwnd and ssthresh after the n-th acknowledgement; `None` where it was lost.
    windows: Vec<Option<Windows>>,
    /// When the application writes what it has not written yet; `None` until the connection is established.
    writes: Option<VecDeque<(Instant, u64)>>,
    /// The timer that is firing.
    firing: Option<Deadline>,
    advertised: Option<Advertised>,
    /// Of the trace's n-th acknowledgement: its number, and when the sender got it.
    noticed: Vec<Option<(u32, Instant)>>,
    late_max_us: u64,
}

/// The windows of a receiver that does not read before a time. How its kernel counts what waits in the buffer is not
/// what is compared, so they are the trace's.
struct Advertised {
    /// When it begins to read.
    reads_at: Instant,
    reads: bool,
    /// Acknowledgement numbers, and where the window that was advertised with them ends: before it reads, and after.
    edges: [Vec<(u32, u32)>; 2],
    /// The scale with which all of them can be told.
    shift: u8,
    last: Option<Segment>,
}

impl Advertised {
    fn of(trace: &Trace, setup: &Setup, script: &Script) -> Option<Self> {
        let (reads_us, _) = script.reads_from?;
        let edges = |reads: bool| {
            trace
                .rows
                .iter()
                .filter(|row| row.event == Event::Received && (row.at_us >= reads_us) == reads)
                .map(|row| (row.ack, row.ack.saturating_add(row.window)))
                .collect()
        };
        Some(Self {
            reads_at: Instant::from_micros(reads_us + setup.phase_us),
            reads: false,
            edges: [edges(false), edges(true)],
            shift: open::shift_for(trace),
            last: None,
        })
    }

    /// The window beyond this acknowledgement number, bytes.
    fn window(&self, ack: u32) -> u32 {
        let known = self.edges[usize::from(self.reads)].iter().filter(|&&(number, _)| number <= ack);
        known.map(|&(_, edge)| edge).max().unwrap_or(ack).saturating_sub(ack)
    }
}

pub(super) fn run(trace: &Trace, setup: &Setup, script: &Script) -> Result<Loop, Error> {
    let kernel: Vec<Timed<'_>> = kernel_rows(trace);
    // A file that leaves rows out may leave out the SYN: `connect()` is at 0.
    let begun_us = trace.rows.first().filter(|row| row.is_deed()).map_or(0, |row| row.at_us) + setup.phase_us;
    let thinned = trace.is_thinned();
    let mut run = Run {
        setup,
        kernel: if thinned { &[] } else { &kernel },
        link: Link::new(script),
        sender: open::sender(trace, setup)?,
        receiver: Connection::new(setup.receiver.clone(), Role::Passive, 2_000, 1_000, PEER_ISS)
            .map_err(|error| open::impossible(trace, &error))?,
        flying: BTreeMap::new(),
        serial: 0,
        held: Vec::new(),
        now: Instant::from_micros(begun_us),
        sent: Vec::new(),
        ordinal: 0,
        windows: vec![None],
        writes: None,
        firing: None,
        advertised: Advertised::of(trace, setup, script),
        // One clock throughout: a host that is late for those acknowledgements alone of which a row is left meets other ties at
        // the queue than one that is always late, or never.
        noticed: if thinned { Vec::new() } else { noticed(trace, setup) },
        late_max_us: trace.late_max_us,
    };
    if run.advertised.is_some() {
        run.receiver.set_auto_read(false);
    }
    let end = Instant::from_micros(script.max_time_us + setup.phase_us);
    let mut deadline = Deadline::default();
    // The peer's SYN-ACK is repeated as late as its kernel may do it.
    let mut receiving = Deadline::default();
    let mut in_step = 0;
    run.receiver.open(run.now);
    run.sender.open(run.now);
    run.drain();
    while run.sender.acknowledged() < setup.bytes {
        deadline.follow(&run.sender, micros(run.now));
        if !thinned {
            while in_step < run.sent.len() && kernel.get(in_step).is_some_and(|k| k.is(&run.sent[in_step])) {
                in_step += 1;
            }
        }
        // The kernel's next timer, while the two have done the same so far; acknowledgements may come before it.
        let rest = if in_step == run.sent.len() { &kernel[in_step..] } else { &[] };
        let expected =
            rest.iter().find(|kernel| kernel.by_timer).map(|kernel| kernel.row.at_us + setup.phase_us);
        let timer = deadline.due_us().map(|due| {
            let latest = deadline.latest_us(setup.tick_us).unwrap_or(due);
            Instant::from_micros(expected.filter(|at| (due..=latest).contains(at)).unwrap_or(due))
        });
        receiving.follow(&run.receiver, micros(run.now));
        let acks =
            run.receiver.next_timeout().map(|(due, wake)| match (wake, receiving.latest_us(setup.tick_us)) {
                (Wake::Retransmission, Some(latest)) => Instant::from_micros(latest),
                _ => due,
            });
        let arrival = run.flying.first_key_value().map(|(&(at, _), _)| at);
        let write = run.writes.as_ref().and_then(|writes| writes.front()).map(|&(at, _)| at);
        let read = run.advertised.as_ref().filter(|found| !found.reads).map(|found| found.reads_at);
        let Some(next) = [timer, acks, arrival, write, read].into_iter().flatten().min() else { break };
        if next > end {
            break;
        }
        run.now = run.now.max(next);
        if arrival == Some(next) {
            run.arrive();
        } else if write == Some(next) {
            run.write();
        } else if read == Some(next) {
            run.read();
        } else if acks == Some(next) {
            run.receiver.handle_timeout(run.now);
        } else {
            run.firing = Some(deadline);
            run.sender.handle_timeout(run.now);
        }
        run.drain();
        run.firing = None;
    }
    Ok(compare(trace, &kernel, &run, thinned))
}

/// The trace's acknowledgements by their ordinals, and when they had their effect: when what they caused left, or when the
/// sender got them.
fn noticed(trace: &Trace, setup: &Setup) -> Vec<Option<(u32, Instant)>> {
    let mut found = Vec::new();
    for (index, row) in trace.rows.iter().enumerate().filter(|(_, row)| row.event == Event::Received) {
        // Ordinals count what arrives: there are not more of them than rows, but where rows are left out.
        let Some(ordinal) = row.ordinal.filter(|&ordinal| ordinal <= MOST_ACKS) else { continue };
        let next = trace.rows.get(index + 1);
        let caused = next.filter(|next| next.is_data() && next.at_us <= row.at_us + CAUSED_US);
        let at_us = caused.map_or(row.at_us, |caused| caused.at_us) + setup.phase_us;
        let ordinal = ordinal as usize;
        if ordinal >= found.len() {
            found.resize(ordinal + 1, None);
        }
        found[ordinal] = Some((row.ack, Instant::from_micros(at_us)));
    }
    found
}

fn micros(at: Instant) -> u64 {
    at.as_nanos() / 1_000
}

/// A data row of the trace.
struct Timed<'a> {
    row: &'a Row,
    /// No acknowledgement explains it.
    by_timer: bool,
}

impl Timed<'_> {
    fn is(&self, sent: &Sent) -> bool {
        (self.row.seq, self.row.len) == (sent.seq, sent.len)
    }

    fn again(&self) -> bool {
        self.row.transmission.unwrap_or(1) > 1
    }
}

fn kernel_rows(trace: &Trace) -> Vec<Timed<'_>> {
    let mut before = 0;
    let mut found = Vec::new();
    for row in &trace.rows {
        if row.is_deed() {
            found.push(Timed { row, by_timer: row.at_us > before + CAUSED_US });
        }
        if matches!(row.event, Event::Sent | Event::Received) {
            before = row.at_us;
        }
    }
    found
}

impl Run<'_> {
    /// Takes what both ends want to send.
    fn drain(&mut self) {
        while self.sender.poll_event().is_some() {}
        while self.receiver.poll_event().is_some() {}
        if self.writes.is_none() && self.sender.is_established() {
            let at = |write: &Write| self.now + Duration::from_micros(write.after_us);
            self.writes = Some(self.setup.writes.iter().map(|write| (at(write), write.bytes)).collect());
            self.write();
        }
        while let Some(out) = self.sender.poll_transmit(self.now) {
            let segment = out.segment;
            let (seq, len) = (segment.seq.0.wrapping_sub(ISS.0), u32::from(segment.payload_len));
            let at_us = micros(self.now).saturating_sub(self.setup.phase_us);
            let sent = Sent::of(&out, 0, at_us, self.firing);
            let at = sent.map_or(self.now, |sent| self.leaves(&sent));
            self.sent.extend(sent);
            let (before, mss) = (seq.wrapping_sub(1), self.setup.mss);
            let packet = match (segment.flags.contains(Flags::SYN), len) {
                (true, _) => Packet::Syn,
                (false, 0) => Packet::Handshake,
                _ if before.is_multiple_of(mss) => Packet::Data(before / mss + 1),
                _ => Packet::Part(before / mss + 1, seq),
            };
            self.launch(at, Way::Forth, segment, packet);
        }
        while let Some(out) = self.receiver.poll_transmit(self.now) {
            if out.segment.flags.contains(Flags::SYN) {
                let mut segment = out.segment;
                if let Some(advertised) = &self.advertised {
                    segment.window_scale = Some(advertised.shift);
                }
                self.launch(self.now, Way::Back, segment, Packet::SynAck);
            } else {
                self.acknowledge(out.segment);
            }
        }
    }

    /// The receiver's acknowledgement, numbered; of a receiver that does not read, with the trace's window.
    fn acknowledge(&mut self, mut segment: Segment) {
        if let Some(advertised) = &mut self.advertised {
            let window = advertised.window(segment.ack.0.wrapping_sub(ISS.0)) >> advertised.shift;
            segment.window = u16::try_from(window).unwrap_or(u16::MAX);
            advertised.last = Some(segment);
        }
        self.ordinal += 1;
        self.windows.push(None);
        self.launch(self.now, Way::Back, segment, Packet::Ack(self.ordinal));
    }

    /// The application writes what is due.
    fn write(&mut self) {
        let Some(writes) = &mut self.writes else { return };
        while let Some(&(_, bytes)) = writes.front().filter(|&&(at, _)| at <= self.now) {
            writes.pop_front();
            self.sender.write(bytes);
        }
    }

    /// The receiver begins to read, and tells that its window is open.
    fn read(&mut self) {
        self.receiver.set_auto_read(true);
        self.receiver.read(u64::MAX);
        while self.receiver.poll_transmit(self.now).is_some() {}
        let Some(advertised) = &mut self.advertised else { return };
        advertised.reads = true;
        if let Some(mut update) = advertised.last {
            if let Some(stamps) = &mut update.timestamps {
                stamps.value = stamps.value.max((micros(self.now) / 1_000 + 1) as u32);
            }
            self.acknowledge(update);
        }
    }

    /// When a segment enters the link: the kernel takes some time for each, the model none. Where the trace's next one is the
    /// same, and as late as that may be, it enters when that did.
    fn leaves(&self, sent: &Sent) -> Instant {
        let Some(next) = self.kernel.get(self.sent.len()).filter(|next| next.is(sent)) else {
            return self.now;
        };
        let at = Instant::from_micros(next.row.at_us + self.setup.phase_us);
        let latest = self.now + Duration::from_micros(CAUSED_US);
        if (self.now..=latest).contains(&at) { at } else { self.now }
    }

    fn launch(&mut self, entry: Instant, way: Way, segment: Segment, packet: Packet) {
        let bytes = IPV4 + u64::from(segment.header_len()) + u64::from(segment.payload_len);
        let (at, held) = match self.link.enter(entry, way, packet, bytes) {
            Fate::Arrives(at) => (at, None),
            Fate::Held(at, later) => (at, Some(later)),
            Fate::Dropped | Fate::Black | Fate::QueueFull => return,
        };
        let at = if way == Way::Back { self.noticed(packet, segment.ack, at) } else { at };
        self.serial += 1;
        self.flying.insert((at, self.serial), Flight { way, segment, packet, held });
    }

    /// When the sender gets an acknowledgement that arrives at `at`: where the trace's of this number acknowledges the same, when
    /// it was noticed there.
    fn noticed(&self, packet: Packet, ack: SeqNumber, at: Instant) -> Instant {
        let Packet::Ack(ordinal) = packet else { return at };
        let Some(&Some((number, noticed))) = self.noticed.get(ordinal as usize) else { return at };
        let latest = at + Duration::from_micros(2 * (self.late_max_us + CAUSED_US));
        if number == ack.0.wrapping_sub(ISS.0) && (at..=latest).contains(&noticed) { noticed } else { at }
    }

    fn arrive(&mut self) {
        let Some((_, flight)) = self.flying.pop_first() else { return };
        match (flight.way, flight.packet, flight.held) {
            (Way::Forth, Packet::Data(number) | Packet::Part(number, _), Some(left)) => {
                self.held.push(Held { number, left, segment: flight.segment });
            }
            (Way::Forth, packet, _) => {
                self.receiver.handle_segment(self.now, &flight.segment);
                if let Packet::Data(number) | Packet::Part(number, _) = packet {
                    self.release(number);
                }
            }
            (Way::Back, packet, _) => {
                self.sender.handle_segment(self.now, &flight.segment);
                self.drain();
                if let Packet::Ack(ordinal) = packet {
                    self.windows[ordinal as usize] = Some(open::windows(&self.sender));
                }
            }
        }
    }

    /// A segment has arrived: those that waited for it follow.
    fn release(&mut self, number: u32) {
        for held in &mut self.held {
            held.left -= u32::from(held.number < number && held.left > 0);
        }
        let mut index = 0;
        while index < self.held.len() {
            if self.held[index].left > 0 {
                index += 1;
                continue;
            }
            self.drain();
            let held = self.held.remove(index);
            self.receiver.handle_segment(self.now, &held.segment);
        }
    }
}

fn compare(trace: &Trace, kernel: &[Timed<'_>], run: &Run<'_>, thinned: bool) -> Loop {
    let mut found = Loop::default();
    let ours_again: Vec<&Sent> = run.sent.iter().filter(|sent| sent.retransmission).collect();
    let theirs_again: Vec<&Timed<'_>> = kernel.iter().filter(|kernel| kernel.again()).collect();
    let mut ours: Vec<(u32, u32)> = ours_again.iter().map(|sent| (sent.seq, sent.len)).collect();
    let mut theirs: Vec<(u32, u32)> = theirs_again.iter().map(|k| (k.row.seq, k.row.len)).collect();
    found.retransmissions = (theirs.len(), ours.len());
    ours.sort_unstable();
    theirs.sort_unstable();
    found.same_segments = ours == theirs;
    // A thinned trace has all retransmissions, but not all new segments.
    let (theirs, ours): (Vec<&Timed<'_>>, Vec<&Sent>) = if thinned {
        (theirs_again, ours_again)
    } else {
        (kernel.iter().collect(), run.sent.iter().collect())
    };
    found.same_order = theirs.len() == ours.len();
    for index in 0..theirs.len().max(ours.len()) {
        let (kernel, sent) = (theirs.get(index).copied(), ours.get(index).copied());
        let (Some(kernel), Some(sent)) = (kernel, sent) else {
            found.same_order = false;
            found.note(other_segment(kernel, sent, &theirs, run.setup));
            break;
        };
        if !kernel.is(sent) {
            found.same_order = false;
            found.note(other_segment(Some(kernel), Some(sent), &theirs, run.setup));
            break;
        }
        let (theirs_us, ours_us) = (kernel.row.at_us, sent.at_us);
        let same = theirs_us.abs_diff(ours_us) <= SAME_US + theirs_us / 1_000 + trace.late_max_us;
        found.times.count(same);
        if !same {
            found.note(Difference {
                kind: Kind::Time,
                line: kernel.row.line,
                at_us: theirs_us,
                kernel: format!("sent {} then", open::segment(sent.seq, sent.len, run.setup)),
                model: format!("sent it at {:.6} s", ours_us as f64 / 1e6),
            });
        }
    }
    compare_windows(trace, run, &mut found);
    found
}

fn other_segment(
    kernel: Option<&Timed<'_>>,
    sent: Option<&Sent>,
    all: &[&Timed<'_>],
    setup: &Setup,
) -> Difference {
    let place = kernel.or(all.last().copied()).map(|kernel| kernel.row);
    let nothing = || "sent nothing more".to_owned();
    Difference {
        kind: Kind::Segment,
        line: place.map_or(0, |row| row.line),
        at_us: place.map_or(0, |row| row.at_us),
        kernel: kernel.map_or_else(nothing, |kernel| {
            let again = if kernel.again() { " again" } else { "" };
            format!("sent {}{again}", open::segment(kernel.row.seq, kernel.row.len, setup))
        }),
        model: sent.map_or_else(nothing, |sent| {
            let again = if sent.retransmission { " again" } else { "" };
            let what = open::segment(sent.seq, sent.len, setup);
            format!("sent {what}{again} at {:.6} s", sent.at_us as f64 / 1e6)
        }),
    }
}

fn compare_windows(trace: &Trace, run: &Run<'_>, found: &mut Loop) {
    for row in trace.rows.iter().filter(|row| row.event == Event::Received) {
        let (Some(state), Some(ordinal)) = (&row.state, row.ordinal) else { continue };
        let kernel = (state.cwnd, state.ssthresh);
        let ours = run.windows.get(ordinal as usize).copied().flatten();
        found.window.count(ours == Some(kernel));
        if ours != Some(kernel) {
            found.note(Difference {
                kind: Kind::Window,
                line: row.line,
                at_us: row.at_us,
                kernel: format!("had {} after ACK {ordinal}", open::in_words(kernel)),
                model: ours.map_or_else(
                    || "never got that acknowledgement".to_owned(),
                    |ours| format!("had {}", open::in_words(ours)),
                ),
            });
        }
    }
}
