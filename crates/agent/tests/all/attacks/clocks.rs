//! A clock of an agent's host that jumps by a year.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use crate::support::*;
use careof_agent::{Hooks, Setup, TimeOfDay};
use careof_mobility::v4::Notice;

const YEAR: i64 = 365 * 24 * 3600;

#[test]
fn a_clock_that_jumps_a_year_ahead_and_back_costs_a_few_requests() {
    let Some(realm) = realm_or_skip() else { return };
    for of_mobile_node in [true, false] {
        let world = World::new(realm);
        let offset = Arc::new(AtomicI64::new(0));
        let hooks = |jumps: bool| {
            let (offset, clock) = (Arc::clone(&offset), world.clock);
            let time_of_day: TimeOfDay = Box::new(move || {
                let jumped = if jumps { offset.load(Ordering::Relaxed) } else { 0 };
                Duration::from_secs(1_700_000_000_u64.saturating_add_signed(jumped))
                    + clock.now().since_start()
            });
            Hooks { time_of_day: Some(time_of_day), ..Hooks::default() }
        };
        let home = world.home_agent(home_setup(), hooks(!of_mobile_node));
        let mut setup = mobile_setup();
        setup.config.probe = Some(Duration::from_secs(1));
        let mobile = Running::open(&world.mobile, Setup::Mobile(setup), world.clock, hooks(of_mobile_node));
        mobile.with(|node| node.switch_to("wlan0", Notice::None)).unwrap();
        mobile.wait_registered("wlan0");
        for jump in [YEAR, 0, -YEAR, 0] {
            offset.store(jump, Ordering::Relaxed);
            let accepted = home.counter("registrations-accepted");
            let status = home.wait_until("registered several times since", |status| {
                status.counters["registrations-accepted"] >= accepted + 3
            });
            assert_eq!(status.bindings.len(), 1, "{of_mobile_node} {jump}");
            let left = status.bindings[0].left_s.unwrap();
            assert!((0.0..=1800.0).contains(&left), "{left} s left");
            mobile.wait_until("still registered", |status| status.registration.as_ref().unwrap().registered);
        }
        let denied = home.status().counters.get("denied-133").copied().unwrap_or(0);
        let accepted = home.counter("registrations-accepted");
        assert!(denied <= accepted, "{denied} denials, {accepted} registrations");
    }
}
