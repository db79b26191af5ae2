//! Clocks that jump by a year, both ways.

use std::time::Duration;

use careof_mobility::v4::*;
use careof_wire::mip4::Lifetime;

use super::world::*;

const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);

/// A mobile node that renews a registration of a minute.
fn renewing() -> World {
    let mobile = MobileNodeConfig { lifetime: Lifetime::from_secs(60), ..mobile_config() };
    let mut world = World::with(mobile, home_config(), [foreign_config(0), foreign_config(1)]);
    world.switch(IF_WLAN);
    world.run_until(at(100_000));
    assert_eq!(world.exits(), [WLAN]);
    world
}

/// Lets ten minutes pass, in which the mobile node must never be without its binding.
#[track_caller]
fn stays_registered(world: &mut World) {
    let (denied, accepted) = (world.denials().len(), world.home.counters().accepted);
    for _ in 0..600 {
        world.run_for(Duration::from_secs(1));
        assert_eq!(world.exits(), [WLAN], "at {}", world.now);
        assert!(world.mobile.is_registered(), "at {}", world.now);
    }
    let (denied, accepted) = (world.denials().len() - denied, world.home.counters().accepted - accepted);
    assert!(accepted >= 10, "{accepted} registrations in ten minutes");
    // Each of them may take a word about the time, and one two.
    assert!(denied as u64 <= accepted + 2, "{denied} denials for {accepted} registrations");
}

/// What was heard on the way is sent again: nothing comes of it.
#[track_caller]
fn takes_no_replay(world: &mut World) {
    world.switch(IF_GSM);
    world.run_for(Duration::from_secs(10));
    assert_eq!(world.exits(), [GSM]);
    let accepted = world.home.counters().accepted;
    for (_, _, recorded) in world.messages(Who::Mobile) {
        world.inject(Who::Home, UPSTREAM, recorded);
    }
    assert_eq!((world.exits(), world.home.counters().accepted), (vec![GSM], accepted));
}

#[test]
fn a_home_agent_whose_clock_jumps_ahead_and_back_serves_on_and_takes_no_replay() {
    let mut world = renewing();
    world.home.set_clock(clock().ahead_by(YEAR));
    stays_registered(&mut world);
    world.home.set_clock(clock());
    stays_registered(&mut world);
    takes_no_replay(&mut world);
}

#[test]
fn a_home_agent_whose_clock_jumps_back_and_ahead_serves_on_and_takes_no_replay() {
    let mut world = renewing();
    world.home.set_clock(clock().behind_by(YEAR));
    stays_registered(&mut world);
    world.home.set_clock(clock());
    stays_registered(&mut world);
    takes_no_replay(&mut world);
}

#[test]
fn a_mobile_node_whose_clock_jumps_learns_the_time_from_its_home_agent() {
    for first in [clock().ahead_by(YEAR), clock().behind_by(YEAR)] {
        let mut world = renewing();
        world.mobile.set_clock(first);
        stays_registered(&mut world);
        world.mobile.set_clock(clock());
        stays_registered(&mut world);
        takes_no_replay(&mut world);
    }
}

#[test]
fn lifetimes_do_not_follow_the_time_of_day() {
    let mut world = renewing();
    let expires = |world: &World| world.home.bindings().map(|binding| binding.expires).collect::<Vec<_>>();
    let before = expires(&world);
    for clock in [clock().ahead_by(YEAR), clock().behind_by(YEAR)] {
        world.home.set_clock(clock);
        world.run_for(Duration::from_millis(1));
        assert_eq!(expires(&world), before);
    }
    world.lose = Box::new(|from, _| from == Who::Mobile);
    world.run_until(before[0]);
    world.run_for(Duration::from_millis(1));
    assert!(world.exits().is_empty());
}
