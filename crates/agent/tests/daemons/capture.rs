//! What is on the wire while agents are at work: nothing that another reader takes for damaged, and no host that says it
//! does not know the tunnel's protocol.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use careof_lab::{Host, IcmpSocket};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::support::{Daemon, Network, find, realm_or_skip, skip, wait_for, wait_until};

/// ICMP destination unreachable, and its code for a protocol that nobody takes.
const UNREACHABLE: u8 = 3;
const PROTOCOL: u8 = 2;

#[test]
fn no_host_says_protocol_unreachable_and_no_frame_is_malformed() {
    let Some(realm) = realm_or_skip(&["curl", "python3"]) else { return };
    let network = Network::new(realm);
    let hosts = [&network.correspondent, &network.home, &network.mobile];
    let listeners = hosts.map(|host| host.run(|| IcmpSocket::open(&[UNREACHABLE])).unwrap().unwrap());
    let captures: Option<Vec<Capture>> = find("tshark").is_some().then(|| {
        let places = [("home0", &network.router), ("wlan0-r", &network.router), ("gsm0-r", &network.router)];
        places.map(|(interface, host)| Capture::start(host, interface, network.directory())).into()
    });
    let web = network.web_server();
    web.offer("film", 300_000);
    let mut home = network.start_home_agent();
    let mut mobile = network.start_mobile_node();
    a_life(&network, &mut mobile, || web.fetch(&network.mobile, "film"));
    home.terminate();

    for (host, listener) in hosts.iter().zip(&listeners) {
        let mut buffer = [0; 2048];
        while let Some(datagram) = listener.receive(&mut buffer).unwrap() {
            let code = datagram.message.get(1).copied();
            assert_ne!(code, Some(PROTOCOL), "{:?} told {}", datagram.source, host.name());
        }
    }
    let Some(captures) = captures else {
        return skip("tshark is not installed: nobody else reads the packets");
    };
    let files: Vec<PathBuf> = captures.into_iter().map(Capture::finish).collect();
    for file in &files {
        let malformed = read(file, "_ws.malformed || _ws.expert.severity == error");
        assert!(malformed.is_empty(), "{malformed}");
        let unknown = read(file, "icmp.type == 3 && icmp.code == 2");
        assert!(unknown.is_empty(), "{unknown}");
    }
    for what in ["mip.type == 1", "mip.type == 3", "ip.proto == 4 && tcp"] {
        let found: usize = files.iter().map(|file| read(file, what).lines().count()).sum();
        assert!(found > 2, "{found} frames of {what}");
    }
}

/// Registration, a download, a handover and back, another, and the end.
fn a_life(network: &Network, mobile: &mut Daemon, fetch: impl Fn()) {
    mobile.wait_for_registration("wlan0");
    fetch();
    network.set_carrier(&network.wlan, false);
    mobile.wait_for_registration("gsm0");
    fetch();
    network.set_carrier(&network.wlan, true);
    mobile.wait_for_registration("wlan0");
    fetch();
    mobile.terminate();
}

/// A `tshark` that writes what passes an interface to a file.
struct Capture {
    child: Child,
    file: PathBuf,
}

impl Capture {
    fn start(host: &Host, interface: &str, directory: &Path) -> Self {
        let file = directory.join(format!("{interface}.pcapng"));
        let log = std::fs::File::create(directory.join(format!("{interface}.tshark"))).unwrap();
        let mut command = Command::new("tshark");
        command.args(["-q", "-i", interface, "-w"]).arg(&file);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let mut child = host.spawn(command).unwrap();
        wait_until("tshark captures", || {
            let log = std::fs::read_to_string(directory.join(format!("{interface}.tshark"))).unwrap();
            assert!(child.try_wait().unwrap().is_none(), "{log}");
            log.contains("Capturing on") && file.metadata().is_ok_and(|file| file.len() > 0)
        });
        Self { child, file }
    }

    fn finish(mut self) -> PathBuf {
        kill(Pid::from_raw(self.child.id().try_into().unwrap()), Signal::SIGINT).unwrap();
        wait_for("tshark ends", || self.child.try_wait().unwrap());
        self.file
    }
}

/// The frames of a file that match a filter, a line each.
fn read(file: &Path, filter: &str) -> String {
    let output = Command::new("tshark").arg("-r").arg(file).args(["-Y", filter]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}
