//! The model that stands for the sender of a trace, and for its receiver.

use careof_tcp::{
    Config, CongestionControl, DelayedAck, HyStart, IdleRestart, InitialWindow, KernelEdition, Profile,
};

use super::error::{Error, Problem};
use super::script::{segments, switch, whole, wrong};
use super::trace::{Event, LATEST_US, Trace};

/// What a trace says of its two ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setup {
    /// `--sack`.
    pub sack: bool,
    /// Bytes of data in a full-sized segment.
    pub mss: u32,
    /// What the application writes, in order of time.
    pub writes: Vec<Write>,
    /// All of it, bytes.
    pub bytes: u64,
    /// A tick of the sender's clock, by which its timers go, microseconds.
    pub tick_us: u64,
    /// Microseconds by which the sender's clock was ahead of a whole millisecond when the trace began.
    pub phase_us: u64,
    /// The sender.
    pub sender: Config,
    /// Its peer.
    pub receiver: Config,
    /// Of what the sender leaves to chance (in which phase BBR begins its cycle).
    pub seed: u64,
    /// The phases in which BBR's cycle begins, as far as they are known; instead of those that would be drawn.
    pub cycle_starts: Vec<u8>,
}

/// One write of the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Write {
    /// Microseconds since the connection was established.
    pub after_us: u64,
    /// How much.
    pub bytes: u64,
}

/// In every trace where it can be seen, by timestamps or timers, the connection began this long after a clock tick.
const USUAL_PHASE_US: u64 = 64;

/// The sender's buffer, bytes: of fixed size, as the receiver's is, and of the receiver's size. No header says so. It shows only
/// where an application writes more at once: what did not fit is packed later, by the larger window of then. The 23 MB of
/// `sawtooth20.reno` come out alike with 4 and 8 MiB, and not with 16 MiB or a buffer that grows with the window.
const SEND_BUFFER: u32 = 8 << 20;

impl Setup {
    /// What the header of a trace says.
    ///
    /// # Errors
    /// A flag is missing or makes no sense, or no model stands for the sender.
    pub fn of(trace: &Trace) -> Result<Self, Error> {
        let fail = |problem| Error { file: trace.file.clone(), line: Some(trace.command_line), problem };
        let on = |flag: &'static str| match trace.flag(flag) {
            Some(value) => switch(flag, value).map_err(fail),
            None => Err(fail(Problem::MissingFlag(flag))),
        };
        let (sack, timestamps) = (on("sack")?, on("ts")?);
        let name = trace.flag("cc").ok_or_else(|| fail(Problem::MissingFlag("cc")))?;
        let congestion = CongestionControl::from_name(name)
            .ok_or_else(|| fail(Problem::NoModel(format!("the congestion control {name:?}"))))?;
        let sysctl = |name: &'static str| trace.sysctls.get(name).and_then(|value| value.parse::<u8>().ok());
        let set = |name, default| sysctl(name).unwrap_or(default);
        let mss = u32::from(trace.mss);
        if mss == 0 {
            let problem = Problem::BadField {
                column: "mss",
                found: "0".to_owned(),
                expected: "bytes of data in a segment",
            };
            return Err(Error { file: trace.file.clone(), line: None, problem });
        }
        let nodelay = match trace.flag("nodelay") {
            Some(value) => switch("nodelay", value).map_err(fail)?,
            None => false,
        };
        let initial_window = match trace.flag("initcwnd").map(|value| whole("initcwnd", value)) {
            None => Config::from(Profile::Linux).initial_window,
            Some(Ok(count)) if count > 0 => InitialWindow::Segments(count),
            Some(_) => {
                let found = trace.flag("initcwnd").unwrap_or_default();
                return Err(fail(wrong("initcwnd", found, "a number of segments, above 0")));
            }
        };
        let writes = writes(trace, mss)?;
        let dsack = sack && set("tcp_dsack", 1) != 0;
        let frto = set("tcp_frto", 2) != 0;
        let hystart = congestion == CongestionControl::Cubic && hystart(trace).map_err(fail)?;
        let common = Config {
            congestion,
            hystart: if hystart { HyStart::Linux } else { HyStart::Off },
            initial_window,
            nagle: !nodelay,
            // Something must tell a spurious repetition from another.
            eifel: timestamps || dsack || frto,
            // With timestamps 12 bytes of each segment are options.
            mss: trace.mtu.saturating_sub(40),
            sack,
            timestamps,
            dsack,
            rack: sack && set("tcp_recovery", 1) & 1 != 0,
            tail_loss_probe: sack && set("tcp_early_retrans", 3) >= 3,
            frto,
            duplicate_ack_threshold: set("tcp_reordering", 3),
            idle_restart: if set("tcp_slow_start_after_idle", 1) == 0 {
                IdleRestart::Off
            } else {
                IdleRestart::Decay
            },
            ecn: set("tcp_ecn", 0) == 1,
            send_buffer: Some(SEND_BUFFER),
            kernel: trace.kernel.unwrap_or(KernelEdition::V6_1),
            sack_compression: set("tcp_comp_sack_nr", 44) != 0,
            ..Config::from(Profile::Linux)
        };
        let receiver = Config {
            // A receiver that does not read has the trace's windows, and takes what they let through.
            receive_window: if trace.flag("zerowin").is_some() { ROOM } else { largest_window(trace) },
            delayed_ack: if trace.flag("quick") == Some("0") { DelayedAck::Linux } else { DelayedAck::Off },
            ..common.clone()
        };
        Ok(Self {
            sack,
            mss,
            bytes: writes.iter().map(|write| write.bytes).sum(),
            writes,
            tick_us: tick(trace),
            phase_us: phase(trace),
            sender: common,
            receiver,
            seed: 0,
            cycle_starts: Vec::new(),
        })
    }
}

/// `--app at:bytes,...`, `at` in microseconds since the connection was established, -1 being at once; without it all
/// `--segs` segments at once.
fn writes(trace: &Trace, mss: u32) -> Result<Vec<Write>, Error> {
    let Some(text) = trace.flag("app") else {
        return Ok(vec![Write { after_us: 0, bytes: u64::from(segments(trace)?) * u64::from(mss) }]);
    };
    let form = || Error {
        file: trace.file.clone(),
        line: Some(trace.command_line),
        problem: wrong("app", text, "at:bytes,...: microseconds in order, -1 for at once, and bytes"),
    };
    let mut found: Vec<Write> = Vec::new();
    for item in text.split(',').map(str::trim).filter(|item| !item.is_empty()) {
        let (at, bytes) = item.split_once(':').ok_or_else(form)?;
        let after_us = if at == "-1" { 0 } else { whole("app", at).map_err(|_| form())? };
        let bytes: u64 = whole("app", bytes).map_err(|_| form())?;
        let before = found.last().map_or(0, |write| write.after_us);
        if after_us < before || after_us > LATEST_US || bytes > MOST_BYTES {
            return Err(form());
        }
        found.push(Write { after_us, bytes });
    }
    if found.is_empty() { Err(form()) } else { Ok(found) }
}

/// The most that one write may be, bytes.
const MOST_BYTES: u64 = 1 << 40;

/// Whether CUBIC's HyStart is on: `--hystart`, or the word `cubic-nohs` in the trace's name, for a module parameter that
/// no command line sets.
fn hystart(trace: &Trace) -> Result<bool, Problem> {
    match trace.flag("hystart") {
        Some(value) => switch("hystart", value),
        None => Ok(!trace.name.split('.').any(|word| word == "cubic-nohs")),
    }
}

/// The sender's tick: the longest usual one of which all timeouts that it told are multiples.
fn tick(trace: &Trace) -> u64 {
    let timeouts = || trace.rows.iter().filter_map(|row| row.state.as_ref().map(|state| state.rto_us));
    [10_000, 4_000].into_iter().find(|&tick| timeouts().all(|rto| rto.is_multiple_of(tick))).unwrap_or(1_000)
}

/// The largest window the receiver advertised.
fn largest_window(trace: &Trace) -> u32 {
    let windows = trace.rows.iter().filter(|row| row.event == Event::Received).map(|row| row.window);
    windows.max().unwrap_or(65_535).max(1)
}

/// Of a receive buffer that takes whatever comes, bytes.
const ROOM: u32 = 1 << 23;

/// By how much the sender's clock was ahead of a whole millisecond at t = 0: the middle of those phases that explain
/// the most `tsval`.
fn phase(trace: &Trace) -> u64 {
    let stamps: Vec<(u64, u32)> = trace
        .rows
        .iter()
        .filter(|row| row.event == Event::Sent)
        .filter_map(|row| Some((row.at_us, row.timestamps?.0)))
        .collect();
    let Some(&(first, _)) = stamps.first() else { return USUAL_PHASE_US };
    let explained = |phase: u64| {
        let ms = |at: u64| (at + phase) / 1000;
        stamps.iter().filter(|&&(at, value)| ms(at) - ms(first) == u64::from(value)).count()
    };
    let scores: Vec<(u64, usize)> = (0..1000).step_by(4).map(|phase| (phase, explained(phase))).collect();
    let Some(best) = scores.iter().map(|&(_, score)| score).max() else { return USUAL_PHASE_US };
    let good: Vec<u64> =
        scores.iter().filter(|&&(_, score)| score == best).map(|&(phase, _)| phase).collect();
    if good.contains(&USUAL_PHASE_US) { USUAL_PHASE_US } else { good[good.len() / 2] }
}
