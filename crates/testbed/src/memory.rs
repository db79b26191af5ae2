//! Groups of processes that may have so much memory together (cgroups).

use std::fs;
use std::path::{Path, PathBuf};

use crate::pass_over;

/// Where groups are mounted.
const MOUNTED: &str = "/sys/fs/cgroup";

/// A memory cgroup of either version, which goes with this when nobody is in it any more.
#[derive(Debug)]
pub struct MemoryGroup {
    directory: PathBuf,
    is_unified: bool,
}

impl MemoryGroup {
    /// A group without a limit; `None` where this machine gives none. With version 1 it is below that of this process, whose
    /// limits count for it; with version 2 beside it. Hosts do not need it: where [`REQUIRE`](crate::REQUIRE) is set it may be missing,
    /// too, as in a container that has its cgroups read-only.
    #[must_use]
    pub fn new_or_skip(name: &str) -> Option<Self> {
        Self::new(name).inspect_err(|reason| pass_over(reason)).ok()
    }

    fn new(name: &str) -> Result<Self, String> {
        let groups =
            fs::read_to_string("/proc/self/cgroup").map_err(|error| format!("no cgroups: {error}"))?;
        let (parent, is_unified) =
            parent_of(&groups).ok_or("no memory cgroup is above this process in /proc/self/cgroup")?;
        let directory = parent.join(format!("careof-test-{}-{name}", std::process::id()));
        fs::create_dir(&directory).map_err(|error| {
            format!("cannot make a memory cgroup {}: {error}\n  hint: run as root", directory.display())
        })?;
        let group = Self { directory, is_unified };
        if !group.limit_file().exists() {
            return Err(format!("cgroups in {} do not limit memory", parent.display()));
        }
        Ok(group)
    }

    fn limit_file(&self) -> PathBuf {
        self.directory.join(if self.is_unified { "memory.max" } else { "memory.limit_in_bytes" })
    }

    /// The file into which the numbers of its members are written.
    #[must_use]
    pub fn members(&self) -> PathBuf {
        self.directory.join("cgroup.procs")
    }

    /// What its members have, bytes: theirs alone, page cache, and what the kernel keeps for them.
    ///
    /// # Panics
    /// When the kernel does not say so.
    #[must_use]
    pub fn used(&self) -> u64 {
        let file = if self.is_unified { "memory.current" } else { "memory.usage_in_bytes" };
        let text = fs::read_to_string(self.directory.join(file)).expect("a memory cgroup says what it uses");
        text.trim().parse().expect("a number of bytes")
    }

    /// Bounds it to so many bytes; `None`: no more.
    ///
    /// # Panics
    /// When the kernel refuses that.
    pub fn limit(&self, bytes: Option<u64>) {
        let nothing = if self.is_unified { "max" } else { "-1" };
        let limit = bytes.map_or(nothing.to_owned(), |bytes| bytes.to_string());
        fs::write(self.limit_file(), limit).expect("a memory cgroup takes a limit");
    }

    /// How many processes the kernel has ended because of the limit.
    ///
    /// # Panics
    /// When it does not say so.
    #[must_use]
    pub fn ended(&self) -> u64 {
        let file = if self.is_unified { "memory.events" } else { "memory.oom_control" };
        let text = fs::read_to_string(self.directory.join(file)).expect("a memory cgroup counts");
        let count = text.lines().find_map(|line| line.strip_prefix("oom_kill "));
        count.and_then(|count| count.parse().ok()).expect("a number of processes")
    }
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        // Where somebody is in it still, it stays; it limits nobody else.
        let _ = fs::remove_dir(&self.directory);
    }
}

/// In which directory a group can be made, by what `/proc/self/cgroup` says; and whether it is of version 2.
fn parent_of(groups: &str) -> Option<(PathBuf, bool)> {
    let mut unified = None;
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) = (parts.next(), parts.next(), parts.next()) else {
            continue;
        };
        let below = path.trim_start_matches('/');
        if controllers.split(',').any(|controller| controller == "memory") {
            return Some((Path::new(MOUNTED).join("memory").join(below), false));
        }
        if controllers.is_empty() {
            // A group with processes cannot have others below that limit memory; beside it they can.
            unified = Path::new(MOUNTED)
                .join(below)
                .parent()
                .filter(|parent| parent.starts_with(MOUNTED))
                .map(Path::to_path_buf);
        }
    }
    Some((unified?, true))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_made_below_one_of_version_1_and_beside_one_of_version_2() {
        let found =
            |groups: &str| parent_of(groups).map(|(parent, unified)| (parent.display().to_string(), unified));
        let below = |path: &str, unified| Some((format!("/sys/fs/cgroup/{path}"), unified));
        assert_eq!(found("9:name=systemd:/\n4:cpu,memory:/a/b\n0::/\n"), below("memory/a/b", false));
        assert_eq!(found("0::/user.slice/session-1.scope\n"), below("user.slice", true));
        assert_eq!(found("0::/init.scope\n"), Some(("/sys/fs/cgroup".to_owned(), true)));
        assert_eq!((found("0::/\n"), found("")), (None, None));
    }
}
