//! Finding processes and the namespaces they are in.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use careof_lab::Clock;

/// Environment variable that marks what a test starts, and all that those start.
pub(crate) const MARK: &str = "CAREOF_LAB_TEST_MARK";

/// A shell that leaves a daemon of its own session behind, a child that ignores signals, and a program that waits.
pub(crate) const BROOD: &str = "setsid sh -c 'setsid sleep 600 & setsid sleep 601 & exit 0'; \
                     (trap '' TERM HUP INT; sleep 602) & echo ready; sleep 603";

pub(crate) fn shell(script: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", script]).stdin(Stdio::null()).stdout(Stdio::piped());
    command
}

fn numbers(path: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let entries = fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().parse::<u32>().is_ok()))
}

/// Living processes with `mark` in their environment, their command lines.
pub(crate) fn marked(mark: &str) -> Vec<String> {
    let wanted = format!("{MARK}={mark}").into_bytes();
    numbers(Path::new("/proc"))
        .filter(|process| {
            let environment = fs::read(process.join("environ")).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|variable| variable == wanted)
        })
        .map(|process| String::from_utf8_lossy(&fs::read(process.join("cmdline")).unwrap_or_default()).into())
        .collect()
}

/// Threads of this machine that are in one of `namespaces`.
pub(crate) fn threads_in(namespaces: &[PathBuf]) -> usize {
    let is_in = |task: &PathBuf| {
        ["net", "pid", "mnt"].iter().any(|kind| {
            fs::read_link(task.join("ns").join(kind)).is_ok_and(|found| namespaces.contains(&found))
        })
    };
    numbers(Path::new("/proc")).flat_map(|process| numbers(&process.join("task"))).filter(is_in).count()
}

/// Whether a process holds one of `namespaces` without being in it, by a mount or a descriptor.
pub(crate) fn is_held(namespaces: &[PathBuf]) -> bool {
    numbers(Path::new("/proc")).any(|process| {
        let mounts = fs::read_to_string(process.join("mountinfo")).unwrap_or_default();
        let mut descriptors = fs::read_dir(process.join("fd")).into_iter().flatten().flatten();
        namespaces.iter().any(|namespace| mounts.contains(&*namespace.to_string_lossy()))
            || descriptors
                .any(|known| fs::read_link(known.path()).is_ok_and(|held| namespaces.contains(&held)))
    })
}

/// Lets others work: to look is work, too, and keeps a busy machine from what is waited for.
#[expect(
    clippy::disallowed_methods,
    reason = "there is nothing that tells when other processes have come so far"
)]
fn pause() {
    std::thread::sleep(Duration::from_millis(5));
}

/// Longer than programs take to start on the busiest machine; only waited for where they do not.
const LONG_PATIENCE: Duration = Duration::from_secs(240);

/// Looks until `condition` holds, or until patience ends.
pub(crate) fn wait_until(condition: impl Fn() -> bool) -> bool {
    let clock = Clock::start();
    while !condition() {
        if clock.now().since_start() > LONG_PATIENCE {
            return false;
        }
        pause();
    }
    true
}
