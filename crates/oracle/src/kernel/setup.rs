//! The model that stands for the sender of a trace, and for its receiver.

use careof_tcp::{Config, CongestionControl, DelayedAck, HyStart, IdleRestart, Profile};

use super::error::{Error, Problem};
use super::script::{segments, switch};
use super::trace::{Event, Trace};

/// What a trace says of its two ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setup {
    /// `--sack`.
    pub sack: bool,
    /// Bytes of data in a full-sized segment.
    pub mss: u32,
    /// Bytes the application writes.
    pub bytes: u64,
    /// Microseconds by which the sender's clock was ahead of a whole millisecond when the trace began.
    pub phase_us: u64,
    /// The sender.
    pub sender: Config,
    /// Its peer.
    pub receiver: Config,
    /// Of what the sender leaves to chance (in which phase BBR begins its cycle).
    pub seed: u64,
}

/// In every trace where it can be seen, by timestamps or timers, the connection began this long after a clock tick.
const USUAL_PHASE_US: u64 = 64;

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
        let common = Config {
            congestion,
            hystart: if congestion == CongestionControl::Cubic { HyStart::Linux } else { HyStart::Off },
            // With timestamps 12 bytes of each segment are options.
            mss: trace.mtu.saturating_sub(40),
            sack,
            timestamps,
            dsack: sack && set("tcp_dsack", 1) != 0,
            rack: sack && set("tcp_recovery", 1) & 1 != 0,
            tail_loss_probe: sack && set("tcp_early_retrans", 3) >= 3,
            frto: set("tcp_frto", 2) != 0,
            duplicate_ack_threshold: set("tcp_reordering", 3),
            idle_restart: if set("tcp_slow_start_after_idle", 1) == 0 {
                IdleRestart::Off
            } else {
                IdleRestart::Decay
            },
            ecn: set("tcp_ecn", 0) == 1,
            ..Config::from(Profile::Linux)
        };
        let receiver = Config {
            receive_window: largest_window(trace),
            delayed_ack: if trace.flag("quick") == Some("0") { DelayedAck::Linux } else { DelayedAck::Off },
            ..common.clone()
        };
        Ok(Self {
            sack,
            mss,
            bytes: u64::from(segments(trace)?) * u64::from(mss),
            phase_us: phase(trace),
            sender: common,
            receiver,
            seed: 0,
        })
    }
}

/// The largest window the receiver advertised.
fn largest_window(trace: &Trace) -> u32 {
    let windows = trace.rows.iter().filter(|row| row.event == Event::Received).map(|row| row.window);
    windows.max().unwrap_or(65_535).max(1)
}

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
