//! What the agents of `careof-agent try` read and write.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use nix::unistd::mkdtemp;

use super::{Failure, unwritten, went_wrong};

const CONFIGURATIONS: [(&str, &str); 2] = [
    ("home.toml", include_str!("../../../../../examples/try-it/home.toml")),
    ("mobile.toml", include_str!("../../../../../examples/try-it/mobile.toml")),
];

/// A directory that only its owner can read. Dropped, it keeps the logs and configurations, and nothing secret.
pub(super) struct Files(PathBuf);

impl Files {
    /// Makes it below `TMPDIR`, with both configurations and a key.
    pub(super) fn make() -> Result<Self, Failure> {
        let template = std::env::temp_dir().join("careof-try-XXXXXX");
        let directory = mkdtemp(&template).map_err(|errno| unwritten(&template, &errno.into()))?;
        let files = Self(directory);
        for name in ["keys", "store"] {
            let path = files.0.join(name);
            fs::create_dir(&path).map_err(|error| unwritten(&path, &error))?;
        }
        let mut key = [0; 16];
        let random = File::open("/dev/urandom").and_then(|mut random| random.read_exact(&mut key));
        random.map_err(|error| went_wrong("make a key", &error))?;
        let digits: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
        files.write("keys/mobile", &digits)?;
        for (name, text) in CONFIGURATIONS {
            files.write(name, text)?;
        }
        Ok(files)
    }

    pub(super) fn directory(&self) -> &Path {
        &self.0
    }

    pub(super) fn configuration(&self, agent: &str) -> PathBuf {
        self.0.join(format!("{agent}.toml"))
    }

    pub(super) fn socket(&self, agent: &str) -> PathBuf {
        self.0.join(format!("{agent}.sock"))
    }

    /// The log of an agent, to be written.
    pub(super) fn log(&self, agent: &str) -> Result<File, Failure> {
        let path = self.0.join(format!("{agent}.log"));
        File::create(&path).map_err(|error| unwritten(&path, &error))
    }

    fn write(&self, name: &str, text: &str) -> Result<(), Failure> {
        let path = self.0.join(name);
        let file = File::options().write(true).create_new(true).mode(0o600).open(&path);
        file.and_then(|mut file| file.write_all(text.as_bytes())).map_err(|error| unwritten(&path, &error))
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        // What cannot be removed is in a directory that nobody else can read.
        for entry in fs::read_dir(&self.0).into_iter().flatten().flatten() {
            let path = entry.path();
            let is_kept = path.extension().is_some_and(|extension| extension == "log" || extension == "toml");
            if !is_kept {
                let _ = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::config::Configuration;

    #[test]
    fn both_configurations_are_good_and_no_key_is_left() {
        let files = Files::make().unwrap();
        let directory = files.directory().to_owned();
        for agent in ["home", "mobile"] {
            let configuration = Configuration::load(&files.configuration(agent)).unwrap();
            assert_eq!(configuration.service.control, files.socket(agent));
        }
        let key = directory.join("keys/mobile");
        assert_eq!(fs::metadata(&key).unwrap().permissions().mode() & 0o777, 0o600);
        drop(files.log("home").unwrap());
        fs::write(directory.join("home.sock"), "").unwrap();
        drop(files);
        let mut left: Vec<_> =
            fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["home.log", "home.toml", "mobile.toml"]);
        fs::remove_dir_all(directory).unwrap();
    }
}
