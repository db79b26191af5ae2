//! For tests on real Linux: hosts where the machine gives them, and a loud word where it does not.
//!
//! A test that needs what a machine may lack - namespaces, TUN devices, programs - is passed over there, and says so on
//! the standard error, past the test harness, which keeps to itself what passing tests print. Where [`REQUIRE`] is set
//! nothing may be missing: such a test fails.

mod memory;

use std::io::{Write, stderr};
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::time::Duration;

use careof_lab::{BpfLack, Error, InterfaceConfig, Realm};
pub use memory::MemoryGroup;

/// The environment variable that forbids passing over.
pub const REQUIRE: &str = "CAREOF_REQUIRE_LAB";

/// The right to make hosts; `None` where this machine does not give it, or does not have all of `programs`.
///
/// # Panics
/// Instead of `None`, where [`REQUIRE`] is set.
#[must_use]
pub fn realm_or_skip(programs: &[&str]) -> Option<Realm> {
    let missing: Vec<&str> = programs.iter().copied().filter(|program| find(program).is_none()).collect();
    if !missing.is_empty() {
        skip(&format!("not installed: {}", missing.join(", ")));
        return None;
    }
    realm().inspect_err(skip_for).ok()
}

/// Passes a test over for a refusal of the lab's.
///
/// # Panics
/// Where [`REQUIRE`] is set, but for a kernel without Multipath TCP, and one that lets nobody load BPF programs: hosts do not need either, and a
/// container may forbid the latter to root.
pub fn skip_for(error: &Error) {
    let reason = format!("{error}\n  hint: {}", error.remedy().unwrap_or("none known"));
    match error {
        Error::NoMptcp { .. }
        | Error::NoToldCongestion { lack: BpfLack::Permission { .. } | BpfLack::Types, .. } => {
            pass_over(&reason)
        }
        _ => skip(&reason),
    }
}

/// Passes a test over: says that something is not tested here, and why.
///
/// # Panics
/// Where [`REQUIRE`] is set.
pub fn skip(reason: &str) {
    assert!(std::env::var_os(REQUIRE).is_none(), "{REQUIRE} is set, and this machine cannot do it: {reason}");
    pass_over(reason);
}

/// Passes a test over that was run as slowly as it can be, on a machine that was busier still: its own clocks say by how much it was
/// late, and what came of that says nothing. A machine that has all it takes may be busy, so that this holds under [`REQUIRE`], too.
pub fn pass_over_for_lateness(late: Duration) {
    pass_over(&format!("the machine was too busy: what was due was done {late:?} late"));
}

/// Says that something is not tested here, and why.
fn pass_over(reason: &str) {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a test");
    // Nobody reads it when it cannot be written.
    let _ = writeln!(stderr().lock(), "\nskipped: {test}: {reason}");
}

/// Where a program is, as a shell would find it.
#[must_use]
pub fn find(program: &str) -> Option<PathBuf> {
    let paths = std::env::var_os("PATH")?;
    std::env::split_paths(&paths).map(|directory| directory.join(program)).find(|path| path.is_file())
}

/// The right to make hosts, once a host with an interface was made.
fn realm() -> Result<Realm, Error> {
    let realm = Realm::enter()?;
    let host = realm.host("probe")?;
    host.attach(&InterfaceConfig::new("probe0", Ipv4Addr::new(10, 77, 0, 1).into(), 24))?;
    Ok(realm)
}
