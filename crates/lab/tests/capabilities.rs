//! Giving up capabilities: what is left, and that nothing comes back.
//!
//! Not under the test harness: the process must have one thread. Each scene is a process of its own, since what is
//! given up is gone.

use std::collections::BTreeMap;
use std::process::{Command, ExitCode};

use careof_lab::capabilities::{Capability, keep_only};
use careof_lab::{Error, Netlink};
use nix::errno::Errno;
use nix::sched::{CloneFlags, unshare};
use nix::sys::socket::{AddressFamily, SockFlag, SockProtocol, SockType, socket};
use nix::unistd::{Gid, Uid, setgid, setuid};

const NET_ADMIN_AND_RAW: u64 = 1 << 12 | 1 << 13;

type Scene = (&'static str, fn());

const SCENES: [Scene; 4] = [
    ("only_what_is_kept_is_left", only_what_is_kept_is_left),
    ("a_program_gets_nothing_back", a_program_gets_nothing_back),
    ("other_threads_are_refused", other_threads_are_refused),
    ("what_is_missing_cannot_be_kept", what_is_missing_cannot_be_kept),
];

fn main() -> ExitCode {
    let wanted = std::env::args().nth(1);
    if let Some((_, scene)) = SCENES.iter().find(|(name, _)| Some(*name) == wanted.as_deref()) {
        scene();
        return ExitCode::SUCCESS;
    }
    if !Uid::effective().is_root() || unshare(CloneFlags::CLONE_NEWNET).is_err() {
        careof_testbed::skip("only root has capabilities to give up\n  hint: run the tests as root");
        return ExitCode::SUCCESS;
    }
    let mut all_passed = true;
    for (name, _) in SCENES {
        let passed = Command::new(std::env::current_exe().unwrap()).arg(name).status().unwrap().success();
        println!("test {name} ... {}", if passed { "ok" } else { "FAILED" });
        all_passed &= passed;
    }
    if all_passed { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The capability sets in the text of a `/proc/PID/status`.
fn sets(status: &str) -> BTreeMap<&str, u64> {
    let lines = status.lines().filter_map(|line| line.strip_prefix("Cap"));
    lines
        .filter_map(|line| {
            let (name, set) = line.split_once(":\t")?;
            Some((name, u64::from_str_radix(set, 16).ok()?))
        })
        .collect()
}

fn only_what_is_kept_is_left() {
    // The network's owner is whoever makes it; this one's is still the machine's root.
    unshare(CloneFlags::CLONE_NEWNET).unwrap();
    keep_only(&[Capability::NetAdmin, Capability::NetRaw]).unwrap();
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let expected = BTreeMap::from([
        ("Inh", 0),
        ("Prm", NET_ADMIN_AND_RAW),
        ("Eff", NET_ADMIN_AND_RAW),
        ("Bnd", NET_ADMIN_AND_RAW),
        ("Amb", 0),
    ]);
    assert_eq!(sets(&status), expected);
    assert!(status.contains("NoNewPrivs:\t1"));
    assert_eq!(Capability::NetRaw.is_effective(), Ok(true));
    assert_eq!(Capability::SysAdmin.is_effective(), Ok(false));

    let mut netlink = Netlink::open().unwrap();
    let loopback = netlink.index_of("lo").unwrap();
    netlink.set_up(loopback).unwrap();
    netlink.add_address(loopback, "192.0.2.1".parse().unwrap(), 32).unwrap();
    let raw = socket(AddressFamily::Inet, SockType::Raw, SockFlag::empty(), SockProtocol::Icmp);
    assert!(raw.is_ok());
    assert_eq!(unshare(CloneFlags::CLONE_NEWNS), Err(Errno::EPERM));
    // What is gone cannot be kept a second time.
    keep_only(&[Capability::NetRaw]).unwrap();
    let error = keep_only(&[Capability::NetAdmin]).unwrap_err();
    assert_eq!(error, Error::MissingCapability { capability: "CAP_NET_ADMIN" });
    assert_eq!(error.to_string(), "the capability CAP_NET_ADMIN is missing");
    assert!(error.remedy().is_some_and(|remedy| remedy.contains("setcap cap_net_admin")));
}

fn a_program_gets_nothing_back() {
    keep_only(&[Capability::NetAdmin, Capability::NetRaw]).unwrap();
    let output = Command::new("cat").arg("/proc/self/status").output().unwrap();
    let status = String::from_utf8(output.stdout).unwrap();
    let sets = sets(&status);
    assert_eq!(sets.len(), 5, "{status}");
    for (name, set) in sets {
        assert_eq!(set & !NET_ADMIN_AND_RAW, 0, "{name}");
    }
    // A thread of its own has no more than it either.
    let thread = std::thread::Builder::new().spawn(|| std::fs::read_to_string("/proc/thread-self/status"));
    let status = thread.unwrap().join().unwrap().unwrap();
    assert_eq!(self::sets(&status)["Prm"], NET_ADMIN_AND_RAW);
}

fn other_threads_are_refused() {
    let (release, wait) = std::sync::mpsc::channel::<()>();
    let thread = std::thread::Builder::new().spawn(move || wait.recv()).unwrap();
    let before = std::fs::read_to_string("/proc/self/status").unwrap();
    let error = keep_only(&[]).unwrap_err();
    assert_eq!(error, Error::CapabilitiesOfThreads { threads: 2 });
    assert!(error.remedy().is_some());
    let after = std::fs::read_to_string("/proc/self/status").unwrap();
    assert_eq!(sets(&before), sets(&after));
    drop(release);
    let _ = thread.join();
}

fn what_is_missing_cannot_be_kept() {
    setgid(Gid::from_raw(65534)).unwrap();
    setuid(Uid::from_raw(65534)).unwrap();
    let error = keep_only(&[Capability::NetRaw]).unwrap_err();
    assert_eq!(error, Error::MissingCapability { capability: "CAP_NET_RAW" });
    // Whoever has nothing can still promise to get nothing.
    keep_only(&[]).unwrap();
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
    assert!(status.contains("NoNewPrivs:\t1"));
}
