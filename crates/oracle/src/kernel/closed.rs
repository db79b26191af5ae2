//! The closed loop: model sender and model receiver over the link of the trace and its script.
//!
//! The sender's timers may be as late as the kernel's: where the next segment that no acknowledgement explains stands in
//! the trace within the interval that the timer wheel allows, the model's timer fires at that time. Nothing else is
//! taken from the trace.

use std::collections::BTreeMap;

use careof_base::Instant;
use careof_tcp::{Connection, Role};
use careof_wire::{Flags, Segment};

use super::comparison::{Difference, Kind, Loop};
use super::error::Error;
use super::link::{Fate, Link, Packet, Way};
use super::open::{self, Deadline, ISS, PEER_ISS, Sent};
use super::script::Script;
use super::setup::Setup;
use super::trace::{Event, Row, Trace};

/// Two times are the same within this, and a thousandth of the time since the beginning: the program between the
/// kernels noticed each packet a little late.
const SAME_US: u64 = 1_000;
/// A segment that follows an acknowledgement or another segment by more than this was sent by a timer.
const CAUSED_US: u64 = 100;
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
    written: bool,
}

pub(super) fn run(trace: &Trace, setup: &Setup, script: &Script) -> Result<Loop, Error> {
    let kernel: Vec<Timed<'_>> = kernel_rows(trace);
    let begun_us = trace.rows.first().map_or(0, |row| row.at_us) + setup.phase_us;
    let mut run = Run {
        setup,
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
        written: false,
    };
    let end = Instant::from_micros(script.max_time_us + setup.phase_us);
    let thinned = trace.is_thinned();
    let mut deadline = Deadline::default();
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
            let latest = deadline.latest_us().unwrap_or(due);
            Instant::from_micros(expected.filter(|at| (due..=latest).contains(at)).unwrap_or(due))
        });
        let acks = run.receiver.next_timeout().map(|(due, _)| due);
        let arrival = run.flying.first_key_value().map(|(&(at, _), _)| at.max(run.link.nothing_before()));
        let Some(next) = [timer, acks, arrival].into_iter().flatten().min() else { break };
        if next > end {
            break;
        }
        run.now = run.now.max(next);
        if arrival == Some(next) {
            run.arrive();
        } else if acks == Some(next) {
            run.receiver.handle_timeout(run.now);
        } else {
            run.sender.handle_timeout(run.now);
        }
        run.drain();
    }
    Ok(compare(trace, &kernel, &run, thinned))
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
        if row.is_data() {
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
        if !self.written && self.sender.is_established() {
            self.written = true;
            self.sender.write(self.setup.bytes);
        }
        while let Some(out) = self.sender.poll_transmit(self.now) {
            let segment = out.segment;
            let (seq, len) = (segment.seq.0.wrapping_sub(ISS.0), u32::from(segment.payload_len));
            let packet = if len == 0 {
                Packet::Handshake
            } else {
                self.sent.push(Sent {
                    seq,
                    len,
                    after: 0,
                    at_us: micros(self.now).saturating_sub(self.setup.phase_us),
                    retransmission: out.retransmission,
                });
                Packet::Data(seq.wrapping_sub(1) / self.setup.mss + 1)
            };
            self.launch(Way::Forth, segment, packet);
        }
        while let Some(out) = self.receiver.poll_transmit(self.now) {
            let packet = if out.segment.flags.contains(Flags::SYN) {
                Packet::Handshake
            } else {
                self.ordinal += 1;
                self.windows.push(None);
                Packet::Ack(self.ordinal)
            };
            self.launch(Way::Back, out.segment, packet);
        }
    }

    fn launch(&mut self, way: Way, segment: Segment, packet: Packet) {
        let bytes = IPV4 + u64::from(segment.header_len()) + u64::from(segment.payload_len);
        let (at, held) = match self.link.enter(self.now, way, packet, bytes) {
            Fate::Arrives(at) => (at, None),
            Fate::Held(at, later) => (at, Some(later)),
            Fate::Dropped | Fate::Black | Fate::QueueFull => return,
        };
        self.serial += 1;
        self.flying.insert((at, self.serial), Flight { way, segment, packet, held });
    }

    fn arrive(&mut self) {
        let Some((_, flight)) = self.flying.pop_first() else { return };
        match (flight.way, flight.packet, flight.held) {
            (Way::Forth, Packet::Data(number), Some(left)) => {
                self.held.push(Held { number, left, segment: flight.segment });
            }
            (Way::Forth, packet, _) => {
                self.receiver.handle_segment(self.now, &flight.segment);
                if let Packet::Data(number) = packet {
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
        let same = theirs_us.abs_diff(ours_us) <= SAME_US + theirs_us / 1_000;
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
