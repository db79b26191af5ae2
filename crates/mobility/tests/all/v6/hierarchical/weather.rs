//! Whatever happened before, also by liars: after the last move, and without loss from then on, everybody knows where the node is.

use careof_base::RandomStream;
use proptest::prelude::*;

use super::model::{Case, Step, case_of, run};
use super::world::*;

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

fn case() -> impl Strategy<Value = Case> {
    let flags = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    let steps = prop::collection::vec(step(), 1..40);
    (flags, 0_u32..40, 1_u16..7, steps).prop_map(|(flags, loss, last, steps)| {
        let (preferred, keep_old, eager, forwards, believes_link) = flags;
        Case { preferred, keep_old, eager, forwards, believes_link, loss, last, steps }
    })
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

/// The bytes that a fuzzer chooses lead to all kinds of steps.
#[test]
fn bytes_stand_for_every_kind_of_step() {
    let mut random = RandomStream::new(1, 0, "weather");
    let mut kinds = std::collections::BTreeSet::new();
    for _ in 0..20 {
        let bytes: Vec<u8> = (0..203).map(|_| random.next_u64() as u8).collect();
        let case = case_of(&bytes);
        assert_eq!(case.steps.len(), 40);
        let name = |step: &Step| format!("{step:?}").split(['(', ' ']).next().map(str::to_owned);
        kinds.extend(case.steps.iter().filter_map(name));
        run(&case);
    }
    assert_eq!(kinds.len(), 13, "{kinds:?}");
    assert!(case_of(&[]).steps.is_empty());
}

/// A case that was found by fuzzing: the bindings are renewed while the node moves within the domain.
#[test]
fn renewals_that_fall_together_with_a_movement_are_no_news_of_it() {
    run(&case_of(&[0xff, 0xf7, 0x20, 0x0, 0x4f, 0x0, 0x92, 0x0, 0x6f, 0x4, 0xa8, 0x91, 0xf6]));
}
