//! What can happen to a hierarchical mobile node, also by liars, and what must be true whatever did.

use careof_base::Duration;
use careof_mobility::Selection;
use careof_mobility::v6::*;
use careof_wire::icmpv6::{MapOption, PrefixLifetime};

use super::world::*;
use crate::v6::craft::{HOME, HOME_IF, care_of};
use crate::v6::world::{AT_HOME, CN, GSM, WLAN};

#[derive(Clone, Debug)]
pub(super) enum Step {
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

#[derive(Clone, Debug)]
pub(super) struct Case {
    pub(super) preferred: bool,
    pub(super) keep_old: bool,
    pub(super) eager: bool,
    pub(super) forwards: bool,
    pub(super) believes_link: bool,
    pub(super) loss: u32,
    pub(super) last: u16,
    pub(super) steps: Vec<Step>,
}

/// The case that bytes stand for: the first three say how the node is configured, each five that follow are a step. The end holds for
/// nodes that see few losses; they are fewer than four in ten.
pub(super) fn case_of(bytes: &[u8]) -> Case {
    let [flags, loss, last] = bytes.first_chunk().copied().unwrap_or_default();
    let flag = |bit: u8| flags >> bit & 1 != 0;
    let steps = bytes.get(3..).unwrap_or_default().as_chunks::<5>().0.iter().take(40);
    Case {
        preferred: flag(0),
        keep_old: flag(1),
        eager: flag(2),
        forwards: flag(3),
        believes_link: flag(4),
        loss: u32::from(loss % 40),
        last: 1 + u16::from(last % 6),
        steps: steps.map(|step| step_of(*step)).collect(),
    }
}

fn step_of([what, a, b, c, d]: [u8; 5]) -> Step {
    let number = u16::from_be_bytes([b, c]);
    let (first, second) = (a & 1 != 0, a & 2 != 0);
    match what % 24 {
        0..=3 => Step::Attach(first, 1 + number % 6),
        4 => Step::Detach(first),
        5 | 6 => Step::Switch(first),
        7 => Step::Release(first),
        8 => Step::Deregister,
        9..=11 => Step::Traffic,
        12..=14 => Step::Run(1 + u64::from(number % 3_000)),
        15 => Step::Run(3_000 + u64::from(number) * 97_000 / 65_536),
        16 => Step::Dead(first, second),
        17 => Step::BlackHole(first, second),
        18 => Step::HomeAgentDead(first),
        19 | 20 => {
            let lifetime = if c % 2 == 0 { 0 } else { 1 + u32::from(d) * 399 / 255 };
            Step::Tell { wlan: first, east: second, distance: b % 16, preference: b / 16, lifetime }
        }
        21 | 22 => Step::Repeat { at: number.into(), byte: d.into(), change: a },
        _ => Step::SetClock(i32::from(b % 120) - 60),
    }
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

/// Lets happen what the case says, and checks at the end that everybody knows where the node is.
pub(super) fn run(case: &Case) {
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
        let renews = world.mobile.next_timeout().is_some_and(|(at, _)| at <= moved + SECOND * 3);
        world.move_to(5 - case.last);
        world.run(SECOND * 3);
        let asked = world.asked_since(moved);
        // What was due meanwhile anyhow is no news of the movement.
        let is_local = asked.iter().all(|(to, _)| *to == map(WEST)) && asked.len() == 1;
        assert!(is_local || renews, "{asked:?}");
        assert_eq!(world.bound_at_home(), [regional(WEST)]);
        world.check_both_ways();
    }
}
