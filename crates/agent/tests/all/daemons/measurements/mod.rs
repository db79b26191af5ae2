//! Measurements of what daemons promise between real hosts. Each takes minutes, wants a machine with nothing else to do, and has a
//! command of its own in the Makefile; it prints a table and fails where the promise is not held.
//!
//! `RUNS`, `MINUTES`, `SPAN` (seconds) and `AT_ONCE` in the environment say how much of it is done, and how much at the same time.

mod multipath;
mod paths;
mod soft_handovers;
mod transfer;

use std::io::Write as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use careof_base::{DataRate, Duration};
use careof_link::Config;

use super::support::law;

/// A number that the environment may give.
fn number(name: &str, unless_given: u32) -> u32 {
    let Ok(text) = std::env::var(name) else { return unless_given };
    match text.parse() {
        Ok(number) if number > 0 => number,
        _ => panic!("{name}={text}: a whole number above zero is needed"),
    }
}

/// Carries out all of `work`, several pieces at a time; returns what they came to in their order.
fn in_turn<T: Sync, R: Send>(at_once: u32, work: &[T], carry_out: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let results: Vec<Mutex<Option<R>>> = work.iter().map(|_| Mutex::new(None)).collect();
    std::thread::scope(|scope| {
        for _ in 0..at_once {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(piece) = work.get(index) else { break };
                    let result = carry_out(piece);
                    *results[index].lock().unwrap() = Some(result);
                }
            });
        }
    });
    results.into_iter().map(|result| result.into_inner().unwrap().expect("all were carried out")).collect()
}

/// A link with room for a bandwidth-delay product in its queue, 25 packets at least.
fn link(megabits: u64, round_trip: Duration) -> Config {
    let product = megabits * 1_000_000 / 8 * round_trip.as_millis() as u64 / 1000 / 1500;
    law(DataRate::from_megabits_per_second(megabits), round_trip / 2, u32::try_from(product).unwrap().max(25))
}

/// The value in the middle; of an even number of values the lower one of the two.
fn median<T: Ord + Copy>(values: &[T]) -> T {
    let mut ordered = values.to_vec();
    ordered.sort_unstable();
    ordered[(ordered.len() - 1) / 2]
}

/// Tells whoever waits, past the test harness.
fn say(line: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}

/// The verdict on a row of a table.
const fn verdict(is_held: bool) -> &'static str {
    if is_held { "held" } else { "NOT HELD" }
}
