//! The lab without root: a user namespace, made by an ordinary user in a process of one thread.
//!
//! Started as root this becomes user 65534 first. Not under the test harness, whose threads are in the way.

mod support;

use std::process::ExitCode;

use careof_lab::{Error, Realm};
use careof_link::Config;
use nix::sys::prctl::set_dumpable;
use nix::unistd::{Gid, Uid, setgid, setuid};
use support::{Pair, next, realm_or_skip};

fn main() -> ExitCode {
    if Uid::effective().is_root() {
        // Dumpable again: otherwise the kernel keeps the files of /proc/self from this user.
        let become_ordinary = || {
            setgid(Gid::from_raw(65534))?;
            setuid(Uid::from_raw(65534))?;
            set_dumpable(true)
        };
        if let Err(errno) = become_ordinary() {
            eprintln!("skipped: cannot become an ordinary user: {errno}");
            return ExitCode::SUCCESS;
        }
    }
    a_process_of_several_threads_is_told_so();
    let Some(realm) = realm_or_skip() else { return ExitCode::SUCCESS };
    packets_cross(realm);
    println!("test an_ordinary_user_has_a_lab ... ok");
    ExitCode::SUCCESS
}

fn a_process_of_several_threads_is_told_so() {
    let (release, wait) = std::sync::mpsc::channel::<()>();
    let thread = std::thread::Builder::new().spawn(move || wait.recv()).unwrap();
    let error = Realm::enter().unwrap_err();
    assert_eq!(error, Error::SeveralThreads { threads: 2 });
    assert!(error.remedy().is_some());
    drop(release);
    let _ = thread.join();
    // The thread is joined a moment before the kernel has forgotten it.
    while std::fs::read_dir("/proc/self/task").unwrap().count() > 1 {}
}

fn packets_cross(realm: Realm) {
    assert!(realm.has_own_users());
    let pair = Pair::new(realm, &Config::default());
    println!("the emulator has {}", pair.emulator.scheduling());
    let (left, right) = pair.sockets();
    left.send(b"without root").unwrap();
    assert_eq!(next(&right).as_deref(), Some(&b"without root"[..]));
    assert!(pair.report().forward.is_conserved());
}
