//! What a machine may refuse, and that the error says what would help.
//!
//! Not under the test harness: each scene takes its process's rights or devices away for good.

use std::fs;
use std::process::{Command, ExitCode};

use careof_lab::told_congestion::{Base, Estimator};
use careof_lab::{BpfLack, Error, Realm, ToldCongestion, Tun, congestion_controls};
use nix::errno::Errno;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::sys::prctl::set_dumpable;
use nix::sys::stat::{Mode, SFlag, makedev, mknod, umask};
use nix::unistd::{Gid, Uid, setgid, setuid};

type Scene = (&'static str, fn());

const SCENES: [Scene; 8] = [
    ("a_missing_device", a_missing_device),
    ("a_device_without_a_driver", a_device_without_a_driver),
    ("a_device_that_is_roots_alone", a_device_that_is_roots_alone),
    ("an_interface_without_the_capability", an_interface_without_the_capability),
    ("no_more_namespaces", no_more_namespaces),
    ("no_user_namespaces", no_user_namespaces),
    ("programs_for_the_kernel_without_the_capability", programs_for_the_kernel_without_the_capability),
    ("a_kernel_that_does_not_describe_its_types", a_kernel_that_does_not_describe_its_types),
];

fn main() -> ExitCode {
    let wanted = std::env::args().nth(1);
    if let Some((_, scene)) = SCENES.iter().find(|(name, _)| Some(*name) == wanted.as_deref()) {
        scene();
        return ExitCode::SUCCESS;
    }
    if !Uid::effective().is_root() || unshare(CloneFlags::CLONE_NEWNET).is_err() {
        careof_testbed::skip("only root can take something away\n  hint: run the tests as root");
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

/// An empty `/dev` of this process's own; `None` where the machine does not give it.
fn own_devices() -> Option<()> {
    let none: Option<&str> = None;
    let made = unshare(CloneFlags::CLONE_NEWNS)
        .and_then(|()| mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none))
        .and_then(|()| mount(Some("tmpfs"), "/dev", Some("tmpfs"), MsFlags::empty(), none));
    made.inspect_err(|errno| careof_testbed::skip(&format!("no devices of its own: {errno}"))).ok()
}

/// Puts a character device where the TUN device belongs.
fn make_device(major: u64, minor: u64, mode: Mode) -> Option<()> {
    fs::create_dir("/dev/net").unwrap();
    umask(Mode::empty());
    mknod("/dev/net/tun", SFlag::S_IFCHR, mode, makedev(major, minor))
        .inspect_err(|errno| careof_testbed::skip(&format!("mknod: {errno}")))
        .ok()
}

fn become_ordinary() {
    setgid(Gid::from_raw(65534)).unwrap();
    setuid(Uid::from_raw(65534)).unwrap();
    // Otherwise the kernel keeps the files of /proc/self from this user.
    set_dumpable(true).unwrap();
}

fn a_missing_device() {
    let Some(()) = own_devices() else { return };
    let error = Tun::open("up0").unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot make the interface \"up0\": open(/dev/net/tun): No such file or directory"
    );
    assert!(error.remedy().is_some_and(|remedy| remedy.contains("mknod -m 0666 /dev/net/tun c 10 200")));
}

fn a_device_without_a_driver() {
    let Some(()) = own_devices() else { return };
    // A number that is nobody's.
    let Some(()) = make_device(10, 3, Mode::from_bits_truncate(0o666)) else { return };
    let error = Tun::open("up0").unwrap_err();
    assert!(matches!(error, Error::NoTunDevice { errno: Errno::ENODEV | Errno::ENXIO, .. }), "{error:?}");
    assert!(error.remedy().is_some_and(|remedy| remedy.contains("modprobe tun")));
}

fn a_device_that_is_roots_alone() {
    let Some(()) = own_devices() else { return };
    let Some(()) = make_device(10, 200, Mode::from_bits_truncate(0o600)) else { return };
    become_ordinary();
    let error = Tun::open("up0").unwrap_err();
    assert_eq!(error, Error::TunDeviceMode { interface: "up0".to_owned(), mode: 0o600 });
    assert_eq!(error.remedy(), Some("sudo chmod 0666 /dev/net/tun"));
}

fn an_interface_without_the_capability() {
    let Some(()) = own_devices() else { return };
    let Some(()) = make_device(10, 200, Mode::from_bits_truncate(0o666)) else { return };
    become_ordinary();
    let error = match Tun::open("up0") {
        Err(error @ Error::System { .. }) => error,
        other => {
            careof_testbed::skip(&format!("{other:?}"));
            return;
        }
    };
    assert_eq!(
        error.to_string(),
        "cannot make the interface \"up0\": ioctl(TUNSETIFF): Operation not permitted"
    );
    assert!(error.remedy().is_some_and(|remedy| remedy.contains("CAP_NET_ADMIN")));
}

/// The limits of a user namespace are its own.
fn no_more_namespaces() {
    become_ordinary();
    let realm = match Realm::enter() {
        Ok(realm) => realm,
        Err(error) => {
            careof_testbed::skip(&format!("{error}"));
            return;
        }
    };
    let host = realm.host("first").unwrap();
    fs::write("/proc/sys/user/max_net_namespaces", "0").unwrap();
    let error = realm.host("second").unwrap_err();
    assert_eq!(error, Error::NoNetworkNamespace { host: "second".to_owned(), errno: Errno::ENOSPC });
    assert_eq!(error.remedy(), Some("sudo sysctl -w user.max_net_namespaces=10000"));
    fs::write("/proc/sys/user/max_pid_namespaces", "0").unwrap();
    let error = host.spawn(Command::new("true")).unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot start programs in \"first\": unshare(CLONE_NEWPID | CLONE_NEWNS): No space left on device"
    );
    assert!(error.remedy().is_some_and(|remedy| remedy.contains("user.max_pid_namespaces=10000")));
    // What was refused once may be allowed later.
    fs::write("/proc/sys/user/max_pid_namespaces", "100").unwrap();
    assert!(host.spawn(Command::new("true")).unwrap().wait().unwrap().success());
}

fn no_user_namespaces() {
    become_ordinary();
    if unshare(CloneFlags::CLONE_NEWUSER).is_err() {
        careof_testbed::skip("no user namespace to be refused in");
        return;
    }
    // Nobody is mapped: this user has no capability outside, and its limit is its own to set.
    fs::write("/proc/sys/user/max_user_namespaces", "0").unwrap();
    let error = careof_lab::capabilities::keep_only(&[]).and_then(|()| Realm::enter().map(drop)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot make a user namespace: unshare(CLONE_NEWUSER): No space left on device \
         (user.max_user_namespaces = 0)"
    );
    assert_eq!(error.remedy(), Some("sudo sysctl -w user.max_user_namespaces=10000, or run as root"));
}

fn programs_for_the_kernel_without_the_capability() {
    let before = congestion_controls().unwrap();
    become_ordinary();
    let error = ToldCongestion::register(Base::Cubic, Estimator::Westwood, true).unwrap_err();
    assert!(
        matches!(error, Error::NoToldCongestion { base: "cubic", lack: BpfLack::Permission { .. } }),
        "{error}"
    );
    assert!(
        error
            .to_string()
            .starts_with("cannot tell the kernel's TCP of handovers (cubic): bpf(BPF_MAP_CREATE): ")
    );
    assert!(
        error.remedy().is_some_and(|remedy| remedy.contains("run as root") && remedy.contains("simulator"))
    );
    assert_eq!(congestion_controls().unwrap(), before, "nothing else is changed");
}

fn a_kernel_that_does_not_describe_its_types() {
    let none: Option<&str> = None;
    let hidden = unshare(CloneFlags::CLONE_NEWNS)
        .and_then(|()| mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none))
        .and_then(|()| mount(Some("tmpfs"), "/sys/kernel", Some("tmpfs"), MsFlags::empty(), none));
    if let Err(errno) = hidden {
        return careof_testbed::skip(&format!("the kernel's files cannot be hidden: {errno}"));
    }
    let error = ToldCongestion::register(Base::Reno, Estimator::Westwood, true).unwrap_err();
    assert_eq!(error, Error::NoToldCongestion { base: "reno", lack: BpfLack::Types });
    assert!(error.remedy().is_some_and(|remedy| remedy.contains("CONFIG_DEBUG_INFO_BTF=y")));
}
