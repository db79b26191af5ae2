//! What kernel parameters were before the agent set them, in a file beside the control socket: it outlives a crash,
//! and a restart of the host makes it worthless.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use nix::libc::O_NOFOLLOW;
use serde::{Deserialize, Serialize};

use crate::{ParameterChange, ParameterLog, StoreError};

/// The first line: of what host the others speak.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Host {
    /// Another one after each start of the host.
    boot: String,
    /// The network namespace.
    namespace: u64,
}

/// The other lines.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Change {
    name: String,
    before: String,
    set: String,
}

/// Lines of JSON, one a change. It is only appended to: whatever interrupts that spoils the last line, no more.
#[derive(Debug)]
pub(crate) struct ParameterFile {
    path: PathBuf,
    /// Held open: the right to open it may be given up.
    file: File,
    here: Host,
}

impl ParameterFile {
    /// Where it is for an agent with that control socket.
    pub(crate) fn beside(socket: &Path) -> PathBuf {
        socket.with_extension("parameters")
    }

    /// Opens the file, and makes it if there is none.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let here = Host {
            boot: fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned(),
            namespace: fs::metadata("/proc/thread-self/ns/net")?.ino(),
        };
        let file = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .mode(0o600)
            .custom_flags(O_NOFOLLOW)
            .open(path)?;
        Ok(Self { path: path.to_owned(), file, here })
    }

    fn failed(&self, doing: &str, error: &io::Error) -> StoreError {
        StoreError(format!("cannot {doing} {}: {error}", self.path.display()))
    }

    fn append(&mut self, line: &impl Serialize) -> io::Result<()> {
        let mut line = serde_json::to_vec(line)?;
        line.push(b'\n');
        let before = self.file.metadata()?.len();
        // At once, so that a kill leaves all of it or nothing.
        self.file.write_all(&line).inspect_err(|_| {
            // Of half a line nothing more than that it is one could be said.
            let _ = self.file.set_len(before);
        })
    }

    fn read(&mut self) -> io::Result<Vec<ParameterChange>> {
        let mut bytes = Vec::new();
        self.file.rewind()?;
        self.file.read_to_end(&mut bytes)?;
        let mut lines = bytes.split_inclusive(|byte| *byte == b'\n').filter(|line| line.ends_with(b"\n"));
        let host = lines.next().and_then(|line| serde_json::from_slice::<Host>(line).ok());
        if host.as_ref() != Some(&self.here) {
            self.file.set_len(0)?;
            let here = self.here.clone();
            self.append(&here)?;
            return Ok(Vec::new());
        }
        let changes = lines.map_while(|line| serde_json::from_slice::<Change>(line).ok());
        let changes = changes.map(|Change { name, before, set }| ParameterChange { name, before, set });
        let changes: Vec<_> = changes.collect();
        if !bytes.ends_with(b"\n") {
            let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
            self.file.set_len(whole as u64)?;
        }
        Ok(changes)
    }
}

impl ParameterLog for ParameterFile {
    fn note(&mut self, change: &ParameterChange) -> Result<(), StoreError> {
        let ParameterChange { name, before, set } = change.clone();
        // A file that could not be begun when it was opened.
        if self.file.metadata().is_ok_and(|about| about.len() == 0) {
            let here = self.here.clone();
            self.append(&here).map_err(|error| self.failed("write to", &error))?;
        }
        self.append(&Change { name, before, set }).map_err(|error| self.failed("write to", &error))
    }

    fn load(&mut self) -> Result<Vec<ParameterChange>, StoreError> {
        self.read().map_err(|error| self.failed("read", &error))
    }

    fn clear(&mut self) -> Result<(), StoreError> {
        self.file.set_len(0).map_err(|error| self.failed("empty", &error))?;
        // An empty one says as much as none.
        let _ = fs::remove_file(&self.path);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(name: &str) -> ParameterChange {
        ParameterChange { name: name.to_owned(), before: "0".to_owned(), set: "1".to_owned() }
    }

    #[test]
    fn what_was_noted_is_there_for_the_next_life_until_it_is_cleared() {
        let directory = tempfile::tempdir().unwrap();
        let path = ParameterFile::beside(&directory.path().join("home.sock"));
        assert_eq!(path, directory.path().join("home.parameters"));
        let mut file = ParameterFile::open(&path).unwrap();
        assert_eq!(file.load(), Ok(vec![]));
        for name in ["ipv4/a", "ipv4/b"] {
            file.note(&change(name)).unwrap();
        }
        let mut file = ParameterFile::open(&path).unwrap();
        assert_eq!(file.load(), Ok(vec![change("ipv4/a"), change("ipv4/b")]));
        file.clear().unwrap();
        assert!(!path.exists());
        assert_eq!(ParameterFile::open(&path).unwrap().load(), Ok(vec![]));
    }

    #[test]
    fn half_a_line_is_cut_off() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x.parameters");
        let mut file = ParameterFile::open(&path).unwrap();
        file.load().unwrap();
        file.note(&change("ipv4/a")).unwrap();
        file.file.write_all(b"{\"name\":\"ipv4/").unwrap();
        let mut file = ParameterFile::open(&path).unwrap();
        assert_eq!(file.load(), Ok(vec![change("ipv4/a")]));
        file.note(&change("ipv4/b")).unwrap();
        assert_eq!(ParameterFile::open(&path).unwrap().load(), Ok(vec![change("ipv4/a"), change("ipv4/b")]));
    }

    #[test]
    fn what_is_of_another_boot_or_namespace_or_nonsense_counts_for_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x.parameters");
        let mut file = ParameterFile::open(&path).unwrap();
        file.load().unwrap();
        file.note(&change("ipv4/a")).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        for other in [text.replace("\"boot\":\"", "\"boot\":\"7"), "\0\0\n\n".to_owned(), "{}".to_owned()] {
            fs::write(&path, other).unwrap();
            let mut file = ParameterFile::open(&path).unwrap();
            assert_eq!(file.load(), Ok(vec![]));
            file.note(&change("ipv4/c")).unwrap();
            assert_eq!(ParameterFile::open(&path).unwrap().load(), Ok(vec![change("ipv4/c")]));
        }
    }
}
