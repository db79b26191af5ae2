//! Whatever happened before: after the last move, and without loss from then on, everybody knows where the node is.

use careof_base::Duration;
use careof_mobility::Selection;
use careof_mobility::v6::*;
use careof_wire::mip6::Lifetime;
use proptest::prelude::*;

use super::craft::*;
use super::world::*;

const SECOND: Duration = Duration::from_secs(1);

#[derive(Clone, Debug)]
enum Step {
    Attach(bool, u16),
    Detach(bool),
    Switch(bool),
    Deregister,
    Traffic,
    Run(u64),
    /// The correspondent node makes new nonces.
    NewNonce,
    /// The correspondent node is restarted.
    Forget,
    HomeAgentDead(bool),
    SetClock(i32),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (any::<bool>(), 1_u16..6).prop_map(|(wlan, network)| Step::Attach(wlan, network)),
        2 => any::<bool>().prop_map(Step::Detach),
        2 => any::<bool>().prop_map(Step::Switch),
        1 => Just(Step::Deregister),
        4 => Just(Step::Traffic),
        6 => (1_u64..3_000).prop_map(Step::Run),
        2 => (3_000_u64..100_000).prop_map(Step::Run),
        1 => Just(Step::NewNonce),
        1 => Just(Step::Forget),
        1 => any::<bool>().prop_map(Step::HomeAgentDead),
        1 => (-60..60).prop_map(Step::SetClock),
    ]
}

#[derive(Clone, Debug)]
struct Case {
    by_sequence: bool,
    multiple_care_of: bool,
    keep_old: bool,
    eager: bool,
    loss: u32,
    jitter: u64,
    last: u16,
    steps: Vec<Step>,
}

fn case() -> impl Strategy<Value = Case> {
    let steps = prop::collection::vec(step(), 1..40);
    let flags = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    (flags, 0_u32..50, 0_u64..2_000, 1_u16..6, steps).prop_map(|(flags, loss, jitter, last, steps)| {
        let (by_sequence, multiple_care_of, keep_old, eager) = flags;
        Case { by_sequence, multiple_care_of, keep_old, eager, loss, jitter, last, steps }
    })
}

fn interface(wlan: bool) -> careof_mobility::InterfaceId {
    if wlan { WLAN } else { GSM }
}

fn check_bounds(world: &World) {
    assert!(world.home.binding_count() <= 4 && world.mobile.correspondent_count() <= 64);
}

fn run(case: &Case) {
    let security = if case.by_sequence { sequence_numbers() } else { timestamps() };
    let mobile = MobileNodeConfig {
        selection: Selection::Preferred { hold: SECOND },
        multiple_care_of: case.multiple_care_of,
        keep_old: case.keep_old.then_some(SECOND * 2),
        movement: MovementConfig { eager: case.eager, ..MovementConfig::default() },
        lifetime: Lifetime::from_units(50),
        ..node(security.clone())
    };
    let mut world = World::new(mobile, config(security));
    world.faults = Faults {
        loss: f64::from(case.loss) / 100.0,
        duplicate: 0.1,
        jitter: Duration::from_millis(case.jitter),
    };
    let mut number = 0;
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
            Step::Deregister => world.mobile.deregister(world.now),
            Step::Traffic => {
                number += 1;
                world.send_down(number);
                let _ = world.send_up(number);
            }
            Step::Run(millis) => world.run(Duration::from_millis(millis)),
            Step::NewNonce => world.peer.nonce += 1,
            Step::Forget => world.peer.bindings.clear(),
            Step::HomeAgentDead(dead) => world.home_is_dead = dead,
            Step::SetClock(seconds) => {
                let span = Duration::from_secs(seconds.unsigned_abs().into());
                let stepped = if seconds < 0 { clock().behind_by(span) } else { clock().ahead_by(span) };
                world.mobile.set_clock(stepped);
            }
        }
        check_bounds(&world);
    }
    // The last move, to one network alone.
    world.home_is_dead = false;
    world.detach(WLAN);
    world.detach(GSM);
    world.attach(WLAN, case.last);
    world.switch_to(WLAN);
    world.run(Duration::from_secs(5));
    world.faults = Faults::NONE;
    for _ in 0..100 {
        number += 1;
        world.send_down(number);
        let _ = world.send_up(number);
        world.run(SECOND * 10);
        check_bounds(&world);
    }
    let at_home = case.last == AT_HOME;
    let expected = (!at_home).then(|| care_of(case.last));
    assert_eq!(world.tunnelled_to().last().copied(), expected, "the home agent");
    assert_eq!(world.tunnelled_to().len(), usize::from(!at_home));
    assert_eq!((world.mobile.is_at_home(), world.mobile.care_of()), (at_home, expected), "the node itself");
    assert_eq!(world.proxied.is_empty(), at_home);
    world.peer.now = world.now;
    let peer = world.peer.care_of(HOME);
    assert!(peer.is_none() || peer == expected, "the correspondent node: {peer:?}");
    assert_eq!(world.mobile.optimized_route(CN), peer);
    // Packets arrive both ways.
    let (up, down) = (world.peer.data.len(), world.data.len());
    assert!(world.send_up(u64::MAX));
    world.send_down(u64::MAX);
    world.run(SECOND);
    assert_eq!((world.peer.data.len(), world.data.len()), (up + 1, down + 1));
    // Every handover that began has ended, one way or the other.
    let mut open = false;
    for event in world.handovers() {
        match event {
            HandoverEvent::Initiated { .. } => {
                assert!(!open, "two at once");
                open = true;
            }
            HandoverEvent::Registered { .. } => open = false,
            HandoverEvent::Failed { .. } => {
                assert!(open, "nothing to fail");
                open = false;
            }
            _ => {}
        }
    }
    assert!(!open);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn after_the_last_move_everybody_knows_where_the_node_is(case in case()) {
        run(&case);
    }
}
