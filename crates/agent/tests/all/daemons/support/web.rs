//! A real web server, and real downloads from it.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use careof_lab::Host;
use sha2::{Digest as _, Sha256};

use super::{CORRESPONDENT, wait_for, wait_until};

const PORT: u16 = 8000;

/// `python3 -m http.server` on the correspondent.
#[derive(Debug)]
pub(crate) struct WebServer {
    directory: PathBuf,
    log: PathBuf,
    _child: Child,
}

impl WebServer {
    /// Starts it and waits until it serves. It ends with its host.
    pub(crate) fn start(host: &Host, directory: &Path) -> Self {
        let (root, log) = (directory.join("www"), directory.join("www.log"));
        fs::create_dir(&root).unwrap();
        let written = File::create(&log).unwrap();
        let mut command = Command::new("python3");
        command
            .args(["-u", "-m", "http.server", "--bind", &CORRESPONDENT.to_string(), "--directory"])
            .arg(&root)
            .arg(PORT.to_string())
            .stdin(Stdio::null())
            .stdout(written.try_clone().unwrap())
            .stderr(written);
        let mut child = host.spawn(command).unwrap();
        wait_until("the web server serves", || {
            assert!(child.try_wait().unwrap().is_none(), "{}", fs::read_to_string(&log).unwrap());
            fs::read_to_string(&log).unwrap().contains("Serving HTTP")
        });
        Self { directory: root, log, _child: child }
    }

    /// Serves a file of so many bytes, of which no two parts are alike.
    pub(crate) fn offer(&self, name: &str, bytes: usize) {
        let mut content = Vec::with_capacity(bytes + 64);
        let mut position: u64 = 0;
        while content.len() < bytes {
            content.extend(Sha256::digest(position.to_be_bytes()));
            position += 1;
        }
        content.truncate(bytes);
        fs::write(self.directory.join(name), content).unwrap();
    }

    /// Its log: a line a request, with the client's address in front.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap()
    }

    /// Downloads a file to `host`, all at once.
    #[track_caller]
    pub(crate) fn fetch(&self, host: &Host, name: &str) {
        self.download(host, name).finish();
    }

    /// Begins to download a file to `host`.
    pub(crate) fn download(&self, host: &Host, name: &str) -> Download {
        self.download_slowly(host, name, "1G")
    }

    /// Begins to download a file to `host`, at so many bytes a second as `curl` writes them.
    pub(crate) fn download_slowly(&self, host: &Host, name: &str, rate: &str) -> Download {
        let into = self.directory.with_file_name(format!("got-{name}"));
        let _ = fs::remove_file(&into);
        let mut command = Command::new("curl");
        command
            .args([
                "--silent",
                "--show-error",
                "--fail",
                "--no-buffer",
                "--max-time",
                "120",
                "--noproxy",
                "*",
            ])
            .args(["--limit-rate", rate])
            .arg("--output")
            .arg(&into)
            .arg(format!("http://{CORRESPONDENT}:{PORT}/{name}"))
            .stdin(Stdio::null())
            .stderr(Stdio::piped());
        let child = host.spawn(command).unwrap();
        Download { original: self.directory.join(name), into, child: Some(child) }
    }
}

/// A `curl` at work.
#[derive(Debug)]
pub(crate) struct Download {
    original: PathBuf,
    into: PathBuf,
    child: Option<Child>,
}

impl Download {
    /// Bytes so far.
    pub(crate) fn bytes(&self) -> u64 {
        fs::metadata(&self.into).map_or(0, |file| file.len())
    }

    /// Fails when it has ended.
    #[track_caller]
    pub(crate) fn assert_going_on(&mut self) {
        let child = self.child.as_mut().unwrap();
        assert!(child.try_wait().unwrap().is_none(), "the download ended, after {} bytes", self.bytes());
    }

    /// Waits until so many more bytes are there than now.
    #[track_caller]
    pub(crate) fn wait_for_bytes(&mut self, more: u64) {
        let wanted = self.bytes() + more;
        wait_until(&format!("{more} more bytes"), || {
            self.assert_going_on();
            self.bytes() >= wanted
        });
    }

    /// Waits for the end; the file must be the one that was served.
    #[track_caller]
    pub(crate) fn finish(mut self) {
        let mut child = self.child.take().unwrap();
        let status = wait_for("the download ends", || child.try_wait().unwrap());
        let told = child.wait_with_output().map(|output| output.stderr).unwrap_or_default();
        let bytes = self.bytes();
        assert!(status.success(), "curl: {status} after {bytes} bytes: {}", String::from_utf8_lossy(&told));
        let digest = |path: &Path| Sha256::digest(fs::read(path).unwrap());
        assert_eq!(digest(&self.into), digest(&self.original), "{bytes} bytes, not those served");
    }
}

impl Drop for Download {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            // It may have ended by itself.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
