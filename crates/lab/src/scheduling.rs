//! Real-time priority for a thread that must be punctual.

use std::fmt;

use nix::errno::Errno;

/// How the kernel schedules a thread of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduling {
    /// `SCHED_FIFO`: the thread runs as soon as it can.
    RealTime,
    /// As any other thread: on a busy machine it is late by milliseconds now and then.
    Ordinary {
        /// Why not real time; `None` when it was not asked for.
        refused: Option<Errno>,
    },
}

impl Scheduling {
    /// Asks for `SCHED_FIFO` for the calling thread. A refusal is no error, but something to report.
    pub(crate) fn ask_for_real_time() -> Self {
        // Above ordinary real-time threads there are the kernel's own at 50; half of that is enough.
        let parameters = libc::sched_param { sched_priority: 25 };
        // SAFETY: the call reads `parameters`, which outlives it; 0 stands for the calling thread.
        #[expect(unsafe_code, reason = "no safe binding among our crates")]
        let result = unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters) };
        match Errno::result(result) {
            Ok(_) => Self::RealTime,
            Err(errno) => Self::Ordinary { refused: Some(errno) },
        }
    }

    /// The command that would have given real time, where it was refused.
    #[must_use]
    pub const fn remedy(&self) -> Option<&'static str> {
        match self {
            Self::Ordinary { refused: Some(_) } => {
                Some("run as root, or sudo setcap cap_sys_nice+ep on the program, or raise `ulimit -r` to 25")
            }
            _ => None,
        }
    }
}

impl fmt::Display for Scheduling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RealTime => f.write_str("SCHED_FIFO"),
            Self::Ordinary { refused: None } => f.write_str("ordinary priority"),
            Self::Ordinary { refused: Some(errno) } => {
                write!(f, "ordinary priority (SCHED_FIFO refused: {})", errno.desc())
            }
        }
    }
}
