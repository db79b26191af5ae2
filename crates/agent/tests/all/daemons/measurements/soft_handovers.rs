//! Soft handovers that the owner asks for, between a slow and a fast path of which nothing is configured.

use careof_base::{DataRate, Duration};
use careof_lab::set_congestion_control;

use super::transfer::{Transfer, Way};
use super::{in_turn, median, number, say, verdict};
use crate::daemons::support::{Network, law, pause, realm_or_skip};

const ONE_WAY: Duration = Duration::from_millis(50);
const QUEUE_PACKETS: u32 = 100;
/// The old and the new path, kbit/s.
const STEPS: [(u64, u64); 2] = [(256, 10_000), (2_000, 256)];
const CONTROLS: [&str; 3] = ["reno", "cubic", "bbr"];
const ASSISTS: [&str; 2] = ["default", "none"];
/// Before the first of the instants, so that the queue stands.
const WARM_UP: Duration = Duration::from_secs(6);
/// Later than that, as in the study `recovery`.
const PHASES_MS: [u64; 5] = [0, 113, 291, 437, 533];
const AFTER: Duration = Duration::from_secs(10);
/// Of the bytes without assists, at least so many in a hundred.
const LEAST_PERCENT: u64 = 95;

#[derive(Clone, Copy, Debug)]
struct Case {
    step: (u64, u64),
    way: Way,
    control: &'static str,
    assist: &'static str,
    phase_ms: u64,
}

fn cases(phases: usize) -> Vec<Case> {
    let mut cases = Vec::new();
    for step in STEPS {
        for way in Way::BOTH {
            for control in CONTROLS {
                for assist in ASSISTS {
                    let phases = PHASES_MS.iter().cycle().take(phases);
                    cases.extend(phases.map(|&phase_ms| Case { step, way, control, assist, phase_ms }));
                }
            }
        }
    }
    cases
}

#[test]
#[ignore = "takes ten minutes: make bench-soft-handovers"]
fn soft_handovers() {
    let Some(realm) = realm_or_skip(&[]) else { return };
    let cases = cases(number("RUNS", 5) as usize);
    let bytes = in_turn(number("AT_ONCE", 4), &cases, |case| {
        let path = |rate| law(DataRate::from_kilobits_per_second(rate), ONE_WAY, QUEUE_PACKETS);
        let network = Network::between(realm, 0, [path(case.step.0), path(case.step.1)]);
        for host in [&network.correspondent, &network.mobile] {
            let control = case.control;
            host.run(move || set_congestion_control(control).map(drop)).unwrap().unwrap();
        }
        let assist = format!("assist = \"{}\"\n", case.assist);
        let _home = network.start_home_agent_with(&assist);
        let mobile = network.start_mobile_node_with(&format!(
            "{assist}[[interface]]\nname = \"wlan0\"\n[[interface]]\nname = \"gsm0\"\n"
        ));
        mobile.wait_for_registration("wlan0");
        let transfer = Transfer::start(&network, case.way);
        pause(WARM_UP + Duration::from_millis(case.phase_ms));
        let at = transfer.now();
        mobile.switch("gsm0");
        pause(AFTER);
        mobile.wait_for_registration("gsm0");
        transfer.bytes_by(at + AFTER) - transfer.bytes_by(at)
    });
    let mut is_held = true;
    say(&format!(
        "{:18} {:9} {:7} {:>12} {:>12} {:>6}",
        "kbit/s", "way", "control", "default, B", "none, B", "share"
    ));
    for (old, new) in STEPS {
        for way in Way::BOTH {
            for control in CONTROLS {
                let [with, without] = ASSISTS.map(|assist| {
                    let wanted = ((old, new), way, control, assist);
                    let of = cases.iter().zip(&bytes);
                    let of =
                        of.filter(|(case, _)| (case.step, case.way, case.control, case.assist) == wanted);
                    median(&of.map(|(_, bytes)| *bytes).collect::<Vec<_>>())
                });
                let row_holds = with * 100 >= without * LEAST_PERCENT;
                let step = format!("{old} to {new}");
                let (way, share) = (way.name(), with as f64 / without.max(1) as f64);
                say(&format!(
                    "{step:18} {way:9} {control:7} {with:>12} {without:>12} {share:>6.2}  {}",
                    verdict(row_holds)
                ));
                is_held &= row_holds;
            }
        }
    }
    assert!(is_held, "fewer than {LEAST_PERCENT} % of the bytes without assists");
}
