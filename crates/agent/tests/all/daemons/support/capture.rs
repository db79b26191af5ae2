//! What is on a wire, read by somebody else.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use careof_lab::Host;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::{wait_for, wait_until};

/// A `tshark` that writes what passes an interface to a file.
#[derive(Debug)]
pub(crate) struct Capture {
    child: Child,
    file: PathBuf,
}

impl Capture {
    pub(crate) fn start(host: &Host, interface: &str, directory: &Path) -> Self {
        let file = directory.join(format!("{interface}.pcapng"));
        let log = File::create(directory.join(format!("{interface}.tshark"))).unwrap();
        let mut command = Command::new("tshark");
        command.args(["-q", "-i", interface, "-w"]).arg(&file);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let mut child = host.spawn(command).unwrap();
        wait_until("tshark captures", || {
            let log = fs::read_to_string(directory.join(format!("{interface}.tshark"))).unwrap();
            assert!(child.try_wait().unwrap().is_none(), "{log}");
            log.contains("Capturing on") && file.metadata().is_ok_and(|file| file.len() > 0)
        });
        Self { child, file }
    }

    /// Ends it.
    pub(crate) fn finish(mut self) -> Captured {
        kill(Pid::from_raw(self.child.id().try_into().unwrap()), Signal::SIGINT).unwrap();
        wait_for("tshark ends", || self.child.try_wait().unwrap());
        Captured(self.file.clone())
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        // It has ended by itself when all went well.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What was captured.
#[derive(Debug)]
pub(crate) struct Captured(PathBuf);

impl Captured {
    /// The frames that match a filter, a line each.
    pub(crate) fn frames(&self, filter: &str) -> String {
        // A packet is seen on its way to the home agent and on its way on; that is no connection out of order. What TCP carries is
        // bytes of a test, in which now and then a dissector sees a message of its own that is malformed.
        let opaque = ["-d", "tcp.port==1-65535,data", "-o", "tcp.desegment_tcp_streams:FALSE"];
        let options = ["-o", "ip.check_checksum:TRUE", "-Y", filter];
        let output =
            Command::new("tshark").arg("-r").arg(&self.0).args(opaque).args(options).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }
}
