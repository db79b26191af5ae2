//! The lab without root: a user namespace, made by an ordinary user in a process of one thread.
//!
//! Started as root this becomes user 65534 first, with a TUN device of its own that everybody may open, whatever the mode
//! of the machine's. Not under the test harness, whose threads are in the way.

mod support;

use std::process::ExitCode;

use careof_lab::{Error, Realm, congestion_controls, set_congestion_control};
use careof_link::Config;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::sys::prctl::set_dumpable;
use nix::sys::stat::{Mode, SFlag, makedev, mknod, umask};
use nix::unistd::{Gid, Uid, setgid, setuid};
use support::processes::{BROOD, MARK, marked, shell, wait_until};
use support::{Pair, SILENCE, next, realm_or_skip};

fn main() -> ExitCode {
    if Uid::effective().is_root() {
        // Dumpable again: otherwise the kernel keeps the files of /proc/self from this user.
        let become_ordinary = || {
            lend_tun_device()?;
            setgid(Gid::from_raw(65534))?;
            setuid(Uid::from_raw(65534))?;
            set_dumpable(true)
        };
        if let Err(errno) = become_ordinary() {
            careof_testbed::skip(&format!("cannot become an ordinary user: {errno}"));
            return ExitCode::SUCCESS;
        }
    }
    a_process_of_several_threads_is_told_so();
    let Some(realm) = realm_or_skip() else { return ExitCode::SUCCESS };
    packets_cross(realm);
    programs_end_with_their_host(realm);
    any_congestion_control_can_be_chosen(realm);
    an_idle_emulator_takes_no_processor_time(realm);
    println!("test an_ordinary_user_has_a_lab ... ok");
    ExitCode::SUCCESS
}

/// Lays a device of mode 0666 over `/dev/net/tun`, for this process alone.
fn lend_tun_device() -> nix::Result<()> {
    unshare(CloneFlags::CLONE_NEWNS)?;
    mount(None::<&str>, "/", None::<&str>, MsFlags::MS_REC | MsFlags::MS_PRIVATE, None::<&str>)?;
    mount(Some("tmpfs"), "/dev/net", Some("tmpfs"), MsFlags::empty(), None::<&str>)?;
    let usual = umask(Mode::empty());
    let made = mknod("/dev/net/tun", SFlag::S_IFCHR, Mode::from_bits_truncate(0o666), makedev(10, 200));
    umask(usual);
    made
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

fn any_congestion_control_can_be_chosen(realm: Realm) {
    let host = realm.host("any").unwrap();
    for control in host.run(congestion_controls).unwrap().unwrap().available {
        let name = control.as_str().to_owned();
        let chosen = host.run(move || set_congestion_control(&name)).unwrap().unwrap();
        println!("{control} by {chosen:?}");
    }
}

fn programs_end_with_their_host(realm: Realm) {
    let host = realm.host("parent").unwrap();
    let mark = format!("{}-ordinary", std::process::id());
    let mut command = shell(BROOD);
    command.env(MARK, &mark);
    let mut child = host.spawn(command).unwrap();
    assert!(wait_until(|| marked(&mark).len() >= 5), "{:?}", marked(&mark));
    drop(host);
    assert!(!child.wait().unwrap().success());
    assert!(wait_until(|| marked(&mark).is_empty()), "{:?}", marked(&mark));
}

/// Here because this process has no other emulator whose time would be counted.
fn an_idle_emulator_takes_no_processor_time(realm: Realm) {
    let pair = Pair::new(realm, &Config::default());
    let (left, right) = pair.sockets();
    left.send(b"something").unwrap();
    assert!(next(&right).is_some());
    // An interface that is gone makes its device readable for ever; that must not keep the emulator busy.
    support::remove_interface(&pair.right);
    let before = emulator_ticks();
    right.set_read_timeout(Some(SILENCE * 3)).unwrap();
    assert_eq!(next(&right), None);
    // 300 ms are 30 ticks.
    assert!(emulator_ticks() - before < 5);
}

/// Processor time of the thread "link emulator", in ticks of 10 ms.
fn emulator_ticks() -> u64 {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    let stats = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("stat")).ok());
    let stat = stats.into_iter().find(|stat| stat.contains("(link emulator)")).unwrap();
    // Behind the name: state, ten numbers, then time in user mode and in the kernel.
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    fields[11..13].iter().map(|ticks| ticks.parse::<u64>().unwrap()).sum()
}
