//! What the tests are made of: a network of hosts, daemons in it, a web server and who downloads from it.

mod capture;
mod daemon;
mod flood;
mod network;
mod snapshot;
mod web;

use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;

use careof_base::Duration;
use careof_lab::{Clock, Error, InterfaceConfig, Realm};

pub(crate) use capture::{Capture, Captured};
pub(crate) use daemon::Daemon;
pub(crate) use flood::{Flood, silent_socket};
pub(crate) use network::{
    CORRESPONDENT, FOREIGN_AGENT, HOME_ADDRESS, HOME_AGENT, Network, VISITED_INTERFACE,
};
pub(crate) use snapshot::Snapshot;
pub(crate) use web::WebServer;

/// Set where nothing may be missing: what would be skipped fails.
const REQUIRE: &str = "CAREOF_REQUIRE_LAB";

/// Longer than anything here takes on the busiest machine; only waited for in full by what fails.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// The right to make hosts, or `None` where this machine does not give it, or has not all of `programs`; that is
/// said past the test harness, which keeps what tests print that pass.
pub(crate) fn realm_or_skip(programs: &[&str]) -> Option<Realm> {
    let missing: Vec<&str> = programs.iter().copied().filter(|program| find(program).is_none()).collect();
    let realm = if missing.is_empty() {
        realm().map_err(|error| {
            let remedy = error.remedy().unwrap_or("none known");
            format!("{error}\n  hint: {remedy}")
        })
    } else {
        Err(format!("not installed: {}", missing.join(", ")))
    };
    realm.inspect_err(|reason| skip(reason)).ok()
}

/// Says that something is not tested here, and why; fails where that must not be.
pub(crate) fn skip(reason: &str) {
    let test = std::thread::current().name().unwrap_or("a test").to_owned();
    assert!(std::env::var_os(REQUIRE).is_none(), "{REQUIRE} is set, and this machine cannot do it: {reason}");
    // Nobody reads it when it cannot be written.
    let _ = writeln!(std::io::stderr().lock(), "\nskipped: {test}: {reason}");
}

fn realm() -> Result<Realm, Error> {
    let realm = Realm::enter()?;
    let host = realm.host("probe")?;
    host.attach(&InterfaceConfig::new("probe0", IpAddr::V4(Ipv4Addr::new(10, 77, 0, 1)), 24))?;
    Ok(realm)
}

/// Where a program is, as a shell would find it.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    let paths = std::env::var_os("PATH")?;
    std::env::split_paths(&paths).map(|directory| directory.join(program)).find(|path| path.is_file())
}

/// Lets time pass.
pub(crate) fn pause(duration: Duration) {
    #[expect(
        clippy::disallowed_methods,
        reason = "what is tested are other processes, in the real world's time"
    )]
    std::thread::sleep(duration);
}

/// Looks again and again until there is something; fails when patience ends.
#[track_caller]
pub(crate) fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let clock = Clock::start();
    loop {
        if let Some(found) = look() {
            return found;
        }
        let waited = clock.now().since_start();
        assert!(waited < PATIENCE, "waited {waited:?} in vain: {what}");
        pause(Duration::from_millis(20));
    }
}

/// Looks again and again until it is so; fails when patience ends.
#[track_caller]
pub(crate) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    wait_for(what, || is_so().then_some(()));
}
