//! Whatever happened before, also by liars: after the last move, and without loss from then on, everybody knows where the node is.

use careof_base::Duration;
use careof_mobility::Selection;
use careof_mobility::v6::*;
use careof_wire::icmpv6::{MapOption, PrefixLifetime};
use proptest::prelude::*;

use super::world::*;
use crate::v6::craft::{HOME, HOME_IF, care_of};
use crate::v6::world::{AT_HOME, CN, GSM, WLAN};

#[derive(Clone, Debug)]
enum Step {
    Attach(bool, u16),
    Detach(bool),
    Switch(bool),
    Release(bool),
    Deregister,
    Traffic,
    Run(u64),
    Dead(bool, bool),
    BlackHole(bool, bool),
    HomeAgentDead(bool),
    /// A router, or somebody who says he is one, tells of an anchor point.
    Tell {
        wlan: bool,
        east: bool,
        distance: u8,
        preference: u8,
        lifetime: u32,
    },
    /// Somebody repeats, or changes and repeats, what was sent.
    Repeat {
        at: usize,
        byte: usize,
        change: u8,
    },
    SetClock(i32),
}

fn step() -> impl Strategy<Value = Step> {
    let both = || (any::<bool>(), any::<bool>());
    let fields = (0_u8..16, 0_u8..16, prop_oneof![Just(0), 1_u32..400]);
    prop_oneof![
        6 => (any::<bool>(), 1_u16..7).prop_map(|(wlan, network)| Step::Attach(wlan, network)),
        2 => any::<bool>().prop_map(Step::Detach),
        2 => any::<bool>().prop_map(Step::Switch),
        1 => any::<bool>().prop_map(Step::Release),
        1 => Just(Step::Deregister),
        4 => Just(Step::Traffic),
        6 => (1_u64..3_000).prop_map(Step::Run),
        2 => (3_000_u64..100_000).prop_map(Step::Run),
        1 => both().prop_map(|(east, dead)| Step::Dead(east, dead)),
        1 => both().prop_map(|(east, hole)| Step::BlackHole(east, hole)),
        1 => any::<bool>().prop_map(Step::HomeAgentDead),
        3 => (both(), fields).prop_map(|((wlan, east), (distance, preference, lifetime))| {
            Step::Tell { wlan, east, distance, preference, lifetime }
        }),
        4 => (any::<usize>(), any::<usize>(), any::<u8>())
            .prop_map(|(at, byte, change)| Step::Repeat { at, byte, change }),
        1 => (-60..60).prop_map(Step::SetClock),
    ]
}

#[derive(Clone, Debug)]
struct Case {
    preferred: bool,
    keep_old: bool,
    eager: bool,
    forwards: bool,
    believes_link: bool,
    loss: u32,
    last: u16,
    steps: Vec<Step>,
}

fn case() -> impl Strategy<Value = Case> {
    let flags = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    let steps = prop::collection::vec(step(), 1..40);
    (flags, 0_u32..40, 1_u16..7, steps).prop_map(|(flags, loss, last, steps)| {
        let (preferred, keep_old, eager, forwards, believes_link) = flags;
        Case { preferred, keep_old, eager, forwards, believes_link, loss, last, steps }
    })
}

fn interface(wlan: bool) -> careof_mobility::InterfaceId {
    if wlan { WLAN } else { GSM }
}

fn number(east: bool) -> u16 {
    if east { EAST } else { WEST }
}

/// Somebody who has no key sends what was recorded, with a byte changed or as it was.
fn repeat(world: &mut World, at: usize, byte: usize, change: u8) {
    let Some((addresses, mut bytes)) = world.recorded.get(at % world.recorded.len().max(1)).cloned() else {
        return;
    };
    let place = byte % bytes.len();
    bytes[place] ^= change;
    crate::v6::craft::make_checksum_right(addresses, &mut bytes);
    let inner = Addresses { map_tunnel: None, ..addresses };
    let input = Input::Mobility { interface: HOME_IF, addresses: inner, message: &bytes };
    let now = world.now;
    world.home.handle_input(now, input);
    world.anchors.values_mut().for_each(|anchor| anchor.node.handle_input(now, input));
    world.forge(addresses, &bytes);
}

fn check(world: &World) {
    assert!(world.home.binding_count() <= 1 && world.mobile.correspondent_count() <= 64);
    assert!(world.anchors.values().all(|anchor| anchor.node.binding_count() <= 1));
    // Nobody but the node has a key: what is bound are its addresses.
    let own = |address: &std::net::Ipv6Addr| (1..7).any(|number| care_of(number) == *address);
    assert!(world.bound_at_home().iter().all(|a| own(a) || [regional(WEST), regional(EAST)].contains(a)));
    assert!([WEST, EAST].iter().all(|number| world.bound_at(*number).iter().all(own)));
}

fn run(case: &Case) {
    let mut config = mobile_config();
    if case.preferred {
        config.node.selection = Selection::Preferred { hold: SECOND };
    }
    config.node.keep_old = case.keep_old.then_some(SECOND * 2);
    config.node.movement.eager = case.eager;
    config.node.movement.link_layer = case.believes_link;
    config.forwarding = config.forwarding.filter(|_| case.forwards);
    let mut world = World::new(config);
    world.loss = f64::from(case.loss) / 100.0;
    let mut packet = 0;
    for step in &case.steps {
        match *step {
            Step::Attach(wlan, network) => {
                world.detach(interface(wlan));
                // No two interfaces on one network: they would have one address.
                if !world.networks.values().any(|other| *other == network) {
                    world.attach(interface(wlan), network);
                }
            }
            Step::Detach(wlan) => world.detach(interface(wlan)),
            Step::Switch(wlan) => world.switch_to(interface(wlan)),
            Step::Release(wlan) => world.mobile.release(world.now, interface(wlan)),
            Step::Deregister => world.mobile.deregister(world.now),
            Step::Traffic => {
                packet += 1;
                world.send_down(packet);
                let _ = world.send_up(packet);
            }
            Step::Run(millis) => world.run(Duration::from_millis(millis)),
            Step::Dead(east, dead) => world.anchor(number(east)).dead = dead,
            Step::BlackHole(east, hole) => world.anchor(number(east)).black_hole = hole,
            Step::HomeAgentDead(dead) => world.home_is_dead = dead,
            Step::Tell { wlan, east, distance, preference, lifetime } => {
                let valid_lifetime = PrefixLifetime::from_secs(lifetime);
                let map = MapOption { valid_lifetime, ..option(number(east), distance, preference) };
                world.advertise(interface(wlan), &[map]);
            }
            Step::Repeat { at, byte, change } => repeat(&mut world, at, byte, change),
            Step::SetClock(seconds) => {
                let span = Duration::from_secs(seconds.unsigned_abs().into());
                let clock = crate::v6::craft::clock();
                let stepped = if seconds < 0 { clock.behind_by(span) } else { clock.ahead_by(span) };
                world.mobile.set_clock(stepped);
            }
        }
        world.run(Duration::ZERO);
        check(&world);
    }
    // The last move, to one network alone; everybody does what he should.
    world.home_is_dead = false;
    for anchor in world.anchors.values_mut() {
        (anchor.dead, anchor.black_hole) = (false, false);
    }
    world.detach(WLAN);
    world.detach(GSM);
    world.attach(WLAN, case.last);
    world.switch_to(WLAN);
    world.run(Duration::from_secs(5));
    world.loss = 0.0;
    // As long as an anchor point is barred at the most.
    for _ in 0..150 {
        packet += 1;
        world.send_down(packet);
        let _ = world.send_up(packet);
        world.run(SECOND * 10);
        check(&world);
    }
    let at_home = case.last == AT_HOME;
    let anchor = match case.last {
        2 | 3 => Some(vec![WEST]),
        BORDER => Some(vec![WEST, EAST]),
        EAST_LINK => Some(vec![EAST]),
        _ => None,
    };
    let bound = world.bound_at_home();
    match &anchor {
        Some(anchors) => {
            let used = anchors.iter().find(|number| bound == [regional(**number)]);
            let used = used.unwrap_or_else(|| panic!("the home agent: {bound:?}"));
            assert_eq!(world.bound_at(*used), [care_of(case.last)], "the anchor point");
            assert_eq!(world.mobile.map(), Some((map(*used), care_of(case.last))), "the node itself");
        }
        None if at_home => assert!(bound.is_empty() && world.mobile.is_at_home(), "{bound:?}"),
        None => assert_eq!((bound, world.mobile.map()), (vec![care_of(case.last)], None)),
    }
    world.peer.now = world.now;
    let peer = world.peer.care_of(HOME);
    assert!(peer.is_none() || peer == world.mobile.care_of(), "the correspondent node: {peer:?}");
    assert_eq!(world.mobile.optimized_route(CN), peer);
    world.check_both_ways();
    // Every handover that began has ended, one way or the other.
    let mut open = false;
    for event in world.handovers_since(careof_base::Instant::ZERO) {
        match event {
            HandoverEvent::Initiated { .. } => {
                assert!(!open, "two at once");
                open = true;
            }
            HandoverEvent::Registered { .. } | HandoverEvent::Failed { .. } => {
                assert!(open, "nothing to end: {event:?}");
                open = false;
            }
            _ => {}
        }
    }
    assert!(!open);
    // From here on a movement within the domain concerns nobody else.
    if anchor.as_deref() == Some(&[WEST]) {
        let moved = world.now;
        world.move_to(5 - case.last);
        world.run(SECOND * 3);
        let asked = world.asked_since(moved);
        assert!(asked.iter().all(|(to, _)| *to == map(WEST)) && asked.len() == 1, "{asked:?}");
        world.check_both_ways();
    }
}

/// A case that was found: the owner changes its mind before anything is known of where it wanted to go.
#[test]
fn a_handover_to_nowhere_that_is_taken_back_ends() {
    let early = vec![Step::Attach(true, 3), Step::Switch(true), Step::Switch(false), Step::Run(20)];
    let late = vec![Step::Switch(true), Step::Attach(true, 3), Step::Run(1040), Step::Switch(false)];
    let (preferred, keep_old, eager, forwards) = (false, false, false, false);
    for (believes_link, steps) in [(false, &early), (true, &early), (false, &late), (true, &late)] {
        for last in [2, PLAIN_LINK] {
            let steps = steps.clone();
            run(&Case { preferred, keep_old, eager, forwards, believes_link, loss: 0, last, steps });
        }
    }
}

/// Another one: a home agent that is gone, and an interface that is taken for working because nothing says that it does not.
#[test]
fn a_handover_that_failed_for_want_of_a_home_agent_is_begun_again() {
    let wait = Step::Run(63_000);
    let first = [Step::Attach(false, 1), Step::Run(40), Step::HomeAgentDead(true), Step::Detach(false)];
    let steps = [&first[..], &[Step::Attach(true, 1), wait]].concat();
    let (keep_old, eager, forwards) = (false, false, false);
    for (preferred, believes_link) in [(true, false), (true, true), (false, false)] {
        let steps = if preferred {
            steps.clone()
        } else {
            [&[Step::Switch(false)], &steps[..5], &[Step::Switch(true)], &steps[5..]].concat()
        };
        for last in [PLAIN_LINK, 3] {
            let steps = steps.clone();
            run(&Case { preferred, keep_old, eager, forwards, believes_link, loss: 0, last, steps });
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn after_the_last_move_everybody_knows_where_the_node_is(case in case()) {
        run(&case);
    }
}
