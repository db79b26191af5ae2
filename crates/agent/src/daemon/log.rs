//! The log: one line an event to standard error, as text or JSON.

use std::io::{self, IsTerminal as _};

use tracing::level_filters::LevelFilter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::registry::Registry;
use tracing_subscriber::reload::{self, Handle};
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{Layer, fmt};

use crate::config::{Format, Level};

/// The log of this process.
#[derive(Clone, Debug)]
pub(crate) struct Log {
    level: Handle<LevelFilter, Registry>,
}

const fn filter(level: Level) -> LevelFilter {
    match level {
        Level::Error => LevelFilter::ERROR,
        Level::Warn => LevelFilter::WARN,
        Level::Info => LevelFilter::INFO,
        Level::Debug => LevelFilter::DEBUG,
    }
}

/// Whether standard error is `stream`, as systemd writes it: device and inode (systemd.exec(5)). A variable that was
/// inherited from a service says nothing about a file that the log was sent to since.
fn is_stderr(stream: &str) -> bool {
    nix::sys::stat::fstat(io::stderr())
        .is_ok_and(|about| stream == format!("{}:{}", about.st_dev, about.st_ino))
}

impl Log {
    /// Begins to log. There is one log a process: a second one changes nothing.
    pub(crate) fn start(level: Level, format: Format) -> Self {
        let (filter, handle) = reload::Layer::new(filter(level));
        // The journal has its own clock.
        let journal = std::env::var("JOURNAL_STREAM").is_ok_and(|stream| is_stderr(&stream));
        let colour =
            io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        let base = fmt::layer().with_target(false).with_writer(io::stderr).with_ansi(colour);
        // A log that cannot be written is no reason to panic.
        let base = base.log_internal_errors(false);
        let lines: Box<dyn Layer<_> + Send + Sync> = match (format, journal) {
            (Format::Text, false) => base.boxed(),
            (Format::Text, true) => base.without_time().boxed(),
            (Format::Json, _) => {
                base.json().flatten_event(true).with_current_span(false).with_span_list(false).boxed()
            }
        };
        // Fails where a test has started one already.
        let _ = tracing_subscriber::registry().with(filter).with(lines).try_init();
        Self { level: handle }
    }

    /// Changes what is important enough.
    pub(crate) fn set_level(&self, level: Level) {
        // Fails where another log was there first, which then has its own level.
        let _ = self.level.reload(filter(level));
    }
}
