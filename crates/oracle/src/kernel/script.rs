//! What the link did to the packets of a trace: the flags of its command line.

use std::time::Duration;

use super::error::{Error, Problem};
use super::trace::{LATEST_US, Trace};

/// When a change of the link begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The moment this data segment first enters the link (`seg:K`).
    Segment(u32),
}

/// Losses of data segments `first` to `last`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drop {
    /// First segment, counted from 1 by sequence number.
    pub first: u32,
    /// Last segment.
    pub last: u32,
    /// How many transmissions of each are lost.
    pub times: u32,
}

/// The link of a trace, both directions alike, and what happens to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    /// Bits per second of IP packets.
    pub rate: u64,
    /// One-way delay, microseconds.
    pub owd_us: u64,
    /// Packets the queue holds, the one being serialised among them.
    pub queue: usize,
    /// Packets do not overtake each other when the delay becomes shorter.
    pub fifo: bool,
    /// Full-sized segments that the application writes.
    pub segments: u32,
    /// The run ends then, microseconds since `connect()`.
    pub max_time_us: u64,
    /// One acknowledgement a segment (the route metric `quickack`).
    pub quick_ack: bool,
    /// `--drop k[:n],a-b[:n],...`.
    pub drops: Vec<Drop>,
    /// `--blackout seg:K,d`: nothing that enters within d us is let through.
    pub blackouts: Vec<(Cause, u64)>,
    /// `--owdstep seg:K,d`: from then on the delay is d us.
    pub delay_steps: Vec<(Cause, u64)>,
    /// `--reorder k:n`: segment k is held until n later ones have arrived.
    pub reorders: Vec<(u32, u32)>,
    /// `--spike seg:K,d`: what enters from then on arrives no sooner than d us after.
    pub spikes: Vec<(Cause, u64)>,
    /// `--ackmod n`: only every n-th acknowledgement survives.
    pub ack_modulus: Option<u32>,
    /// `--syndrop n`: the first n SYNs are lost.
    pub syn_drops: u32,
    /// `--synackdrop n`: the first n SYN-ACKs are lost.
    pub syn_ack_drops: u32,
    /// `--zerowin t,size`: nothing is read before t us, from a receive buffer of that many bytes.
    pub reads_from: Option<(u64, u32)>,
    /// `--ackdrop a-b`: these acknowledgements are lost, counted from 1.
    pub ack_drops: Vec<(u32, u32)>,
}

/// Flags that say how the sender is set, which is [`super::Setup`]'s and stands in the `# sysctl` line too, or nothing
/// about the run. `compact` files leave rows out, which shows.
const NOT_OF_THE_LINK: &[&str] = &[
    "name", "cc", "sack", "ts", "spin", "mode", "classic", "sysctl", "app", "nodelay", "initcwnd", "hystart",
    "compact",
];

impl Script {
    /// The script in a trace's command line.
    ///
    /// # Errors
    /// A flag is unknown, has a value that makes no sense, or is not there.
    pub fn of(trace: &Trace) -> Result<Self, Error> {
        let fail = |problem| Error { file: trace.file.clone(), line: Some(trace.command_line), problem };
        let needed = |flag: &'static str| match trace.flag(flag) {
            Some(value) => whole(flag, value).map_err(fail),
            None => Err(fail(Problem::MissingFlag(flag))),
        };
        let queue = usize::try_from(needed("queue")?).unwrap_or(usize::MAX);
        let mut script = Self {
            segments: segments(trace)?,
            max_time_us: needed("maxtime")?,
            ..Self::plain(needed("rate")?, Duration::from_micros(needed("owd")?), queue)
        };
        if script.rate == 0 {
            return Err(fail(wrong("rate", "0", "bits per second, above 0")));
        }
        for (flag, found, most, expected) in [
            ("maxtime", script.max_time_us, LONGEST_RUN_US, "at most an hour, in microseconds"),
            ("owd", script.owd_us, LATEST_US, "at most eleven days, in microseconds"),
        ] {
            if found > most {
                return Err(fail(wrong(flag, &found.to_string(), expected)));
            }
        }
        for (flag, value) in &trace.command {
            if !sets_the_sender(trace, flag) {
                script.take(flag, value).map_err(fail)?;
            }
        }
        Ok(script)
    }

    fn take(&mut self, flag: &str, value: &str) -> Result<(), Problem> {
        let items = value.split(',').map(str::trim).filter(|item| !item.is_empty());
        match flag {
            "rate" | "owd" | "queue" | "segs" | "maxtime" => {}
            "fifo" => self.fifo = switch(flag, value)?,
            "quick" => self.quick_ack = switch(flag, value)?,
            "drop" => {
                for item in items {
                    self.drops.push(drop_of(item)?);
                }
            }
            "blackout" => self.blackouts.push(change(flag, value)?),
            "owdstep" => self.delay_steps.push(change(flag, value)?),
            "spike" => self.spikes.push(change(flag, value)?),
            "reorder" => {
                for item in items {
                    let form = || wrong(flag, value, "k:n, a segment and how many later ones it waits for");
                    let (segment, later) = item.split_once(':').ok_or_else(form)?;
                    self.reorders.push((whole(flag, segment)?, whole(flag, later)?));
                }
            }
            "syndrop" => self.syn_drops = whole(flag, value)?,
            "synackdrop" => self.syn_ack_drops = whole(flag, value)?,
            "zerowin" => self.reads_from = Some(reading(flag, value)?),
            "ackmod" => match whole(flag, value)? {
                0 | 1 => self.ack_modulus = None,
                modulus => self.ack_modulus = Some(modulus),
            },
            "ackdrop" => {
                for item in items {
                    self.ack_drops.push(range(flag, item)?);
                }
            }
            other => return Err(Problem::UnknownFlag(format!("--{other}"))),
        }
        Ok(())
    }

    /// An undisturbed link: bits per second, one-way delay, packets that its queue holds.
    #[must_use]
    pub fn plain(rate: u64, delay: Duration, queue: usize) -> Self {
        Self {
            rate,
            owd_us: u64::try_from(delay.as_micros()).unwrap_or(u64::MAX),
            queue,
            fifo: true,
            segments: 0,
            max_time_us: u64::MAX,
            quick_ack: true,
            drops: Vec::new(),
            blackouts: Vec::new(),
            delay_steps: Vec::new(),
            reorders: Vec::new(),
            spikes: Vec::new(),
            ack_modulus: None,
            syn_drops: 0,
            syn_ack_drops: 0,
            reads_from: None,
            ack_drops: Vec::new(),
        }
    }

    /// Whether the link loses this transmission of a data segment.
    #[must_use]
    pub fn loses(&self, segment: u32, transmission: u32) -> bool {
        self.drops
            .iter()
            .any(|drop| (drop.first..=drop.last).contains(&segment) && transmission <= drop.times)
    }

    /// Whether the link loses this acknowledgement.
    #[must_use]
    pub fn loses_ack(&self, ordinal: u32) -> bool {
        self.ack_modulus.is_some_and(|modulus| !ordinal.is_multiple_of(modulus))
            || self.ack_drops.iter().any(|&(first, last)| (first..=last).contains(&ordinal))
    }
}

/// Whether a flag is one of those above, or is named after a sysctl of the trace (`--frto` after `tcp_frto`).
fn sets_the_sender(trace: &Trace, flag: &str) -> bool {
    let name = flag.replace('-', "_");
    NOT_OF_THE_LINK.contains(&flag)
        || trace.sysctls.contains_key(&name)
        || trace.sysctls.contains_key(&format!("tcp_{name}"))
}

/// The longest run, microseconds, and the most segments: what a closed loop can be asked for.
const LONGEST_RUN_US: u64 = 3_600_000_000;
const MOST_SEGMENTS: u32 = 10_000_000;

/// Full-sized segments that the application writes: both loops need it.
pub(super) fn segments(trace: &Trace) -> Result<u32, Error> {
    let fail = |problem| Error { file: trace.file.clone(), line: Some(trace.command_line), problem };
    let value = trace.flag("segs").ok_or_else(|| fail(Problem::MissingFlag("segs")))?;
    match whole("segs", value).map_err(fail)? {
        count if count <= MOST_SEGMENTS => Ok(count),
        _ => Err(fail(wrong("segs", value, "at most 10000000 segments"))),
    }
}

/// `t,size`: when the reader begins, and the bytes of the receive buffer.
fn reading(flag: &str, text: &str) -> Result<(u64, u32), Problem> {
    let form =
        || wrong(flag, text, "t,size: microseconds until the reader begins, bytes of the receive buffer");
    let (at, size) = text.split_once(',').ok_or_else(form)?;
    match (whole(flag, at)?, whole(flag, size)?) {
        (at, size) if at <= LATEST_US && size > 0 => Ok((at, size)),
        _ => Err(form()),
    }
}

pub(super) fn wrong(flag: &str, found: &str, expected: &'static str) -> Problem {
    Problem::BadFlag { flag: format!("--{flag}"), found: found.to_owned(), expected }
}

pub(super) fn whole<T: TryFrom<u64>>(flag: &str, text: &str) -> Result<T, Problem> {
    let value = text.trim().parse::<u64>().ok().and_then(|value| T::try_from(value).ok());
    value.ok_or_else(|| wrong(flag, text, "a whole number that fits"))
}

/// A flag that is on or off.
pub(super) fn switch(flag: &str, text: &str) -> Result<bool, Problem> {
    match text {
        "0" => Ok(false),
        "1" => Ok(true),
        _ => Err(wrong(flag, text, "0 or 1")),
    }
}

fn range(flag: &str, text: &str) -> Result<(u32, u32), Problem> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    Ok((whole(flag, first)?, whole(flag, last)?))
}

fn drop_of(text: &str) -> Result<Drop, Problem> {
    let (segments, times) = match text.split_once(':') {
        Some((segments, times)) => (segments, whole("drop", times)?),
        None => (text, 1),
    };
    let (first, last) = range("drop", segments)?;
    Ok(Drop { first, last, times })
}

fn change(flag: &str, text: &str) -> Result<(Cause, u64), Problem> {
    let form = || wrong(flag, text, "seg:K,d with d in microseconds");
    let (cause, span) = text.split_once(',').ok_or_else(form)?;
    let segment = cause.trim().strip_prefix("seg:").ok_or_else(form)?;
    match whole(flag, span)? {
        span if span <= LATEST_US => Ok((Cause::Segment(whole(flag, segment)?), span)),
        _ => Err(form()),
    }
}
