//! Threads that carry out the runs of a grid.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::grid::Grid;

/// Threads at work on the runs of a grid. Their records come in the order in which runs end.
///
/// Dropping it abandons what is not done.
pub struct Crew {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

struct Shared {
    state: Mutex<State>,
    all_done: Condvar,
    stop: AtomicBool,
}

struct State {
    numbers: Box<dyn Iterator<Item = u64> + Send>,
    records: VecDeque<String>,
    at_work: usize,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Crew {
    /// Begins with the runs of these numbers on `jobs` threads; on as many as there are cores to be used without it.
    #[must_use]
    pub fn start(
        grid: &Arc<Grid>,
        numbers: impl Iterator<Item = u64> + Send + 'static,
        jobs: Option<usize>,
    ) -> Self {
        let jobs = jobs.unwrap_or_else(|| thread::available_parallelism().map_or(1, usize::from)).max(1);
        let state = State { numbers: Box::new(numbers), records: VecDeque::new(), at_work: jobs };
        let shared = Arc::new(Shared {
            state: Mutex::new(state),
            all_done: Condvar::new(),
            stop: AtomicBool::new(false),
        });
        let mut threads = Vec::with_capacity(jobs);
        for _ in 0..jobs {
            let (mine, grid) = (Arc::clone(&shared), Arc::clone(grid));
            let thread = thread::Builder::new().name("sweep".to_owned()).spawn(move || work(&mine, &grid));
            match thread {
                Ok(thread) => threads.push(thread),
                // With fewer threads it takes longer; without any the caller is one.
                Err(_) => shared.lock().at_work -= 1,
            }
        }
        if threads.is_empty() {
            shared.lock().at_work = 1;
            work(&shared, grid);
        }
        Self { shared, threads }
    }

    /// The records of the runs that ended since the last call. Returns when all are done, or after `patience`.
    #[must_use]
    pub fn take(&self, patience: Duration) -> Vec<String> {
        let state = self.shared.lock();
        let waited = self.shared.all_done.wait_timeout_while(state, patience, |state| state.at_work > 0);
        waited.unwrap_or_else(PoisonError::into_inner).0.records.drain(..).collect()
    }

    /// Whether nothing more is to be done, and no record is left to take.
    #[must_use]
    pub fn is_done(&self) -> bool {
        let state = self.shared.lock();
        state.at_work == 0 && state.records.is_empty()
    }

    /// Abandons the runs under way and begins no other. What is done can still be taken.
    pub fn stop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // Its panics were caught; there is nothing to learn from one in its own few lines.
            let _ = thread.join();
        }
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        self.stop();
    }
}

fn work(shared: &Shared, grid: &Grid) {
    let stop = || shared.stop.load(Ordering::Relaxed);
    while !stop() {
        let next = shared.lock().numbers.next();
        let Some(number) = next else { break };
        if let Some(record) = grid.record(number, &stop) {
            shared.lock().records.push_back(record);
        }
    }
    let mut state = shared.lock();
    state.at_work -= 1;
    if state.at_work == 0 {
        shared.all_done.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCENARIO: &str = r#"
duration = "2 s"
[links]
wavelan = { preset = "wavelan", loss = "5 %" }
[mobility]
protocol = "mobile-ipv4"
[[flow]]
from = "correspondent"
to = "mobile"
kind = "bulk"
"#;

    fn records(jobs: usize, varied: &str, repeat: u64) -> Vec<String> {
        let grid = Arc::new(Grid::new("x", SCENARIO, &[], None, &[varied.to_owned()], repeat).unwrap());
        let crew = Crew::start(&grid, grid.numbers(), Some(jobs));
        let mut records = Vec::new();
        while !crew.is_done() {
            records.extend(crew.take(Duration::from_millis(1)));
        }
        records.sort();
        records
    }

    #[test]
    fn the_records_do_not_hang_on_how_many_work() {
        let alone = records(1, "flow.tcp.variant=reno,nonsense,sack", 5);
        assert_eq!(alone.len(), 15);
        assert_eq!(alone, records(4, "flow.tcp.variant=reno,nonsense,sack", 5));
        assert_eq!(alone.iter().filter(|record| record.contains("nonsense")).count(), 5);
    }

    #[test]
    fn a_crew_that_is_stopped_keeps_what_is_done() {
        let varied = ["duration=1 s,100000 s".to_owned()];
        let grid = Arc::new(Grid::new("x", SCENARIO, &[], None, &varied, 1).unwrap());
        let mut crew = Crew::start(&grid, grid.numbers(), Some(1));
        let mut first = Vec::new();
        while first.is_empty() {
            first = crew.take(Duration::from_millis(1));
        }
        crew.stop();
        assert!(crew.take(Duration::ZERO).is_empty());
        assert!(crew.is_done());
        assert_eq!(first.len(), 1);
    }

    #[test]
    fn more_hands_than_runs_do_no_harm() {
        assert_eq!(records(8, "flow.tcp.mss=536", 2).len(), 2);
    }
}
