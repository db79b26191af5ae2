//! What the tests are made of: a network of hosts, daemons in it, a web server and who downloads from it.

mod capture;
mod daemon;
mod flood;
mod network;
mod snapshot;
mod web;

use careof_base::Duration;
use careof_lab::Clock;

pub(crate) use capture::{Capture, Captured};
pub(crate) use careof_testbed::{MemoryGroup, find, realm_or_skip, skip};
pub(crate) use daemon::Daemon;
pub(crate) use flood::{Flood, silent_socket};
pub(crate) use network::{
    CORRESPONDENT, FOREIGN_AGENT, HOME_ADDRESS, HOME_AGENT, IN_CLUSTER, NEIGHBOUR, Network,
    VISITED_INTERFACE, foreign_configuration, key, law,
};
pub(crate) use snapshot::Snapshot;
pub(crate) use web::WebServer;

/// Longer than anything here takes on the busiest machine; only waited for in full by what fails.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

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
