//! A transfer between two hosts that has no end, and when what of it arrived.

use std::io::{ErrorKind, Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use careof_base::{Duration, Instant};
use careof_lab::Clock;

use crate::daemons::support::{CORRESPONDENT, Network};
use crate::support::{Listener, Tcp, pattern, start};

const PORT: u16 = 5001;
/// How often both ends look whether it is over.
const LOOK: Duration = Duration::from_millis(100);

/// Which way it goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Download,
    Upload,
}

impl Way {
    pub(super) const BOTH: [Self; 2] = [Self::Download, Self::Upload];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Download => "download",
            Self::Upload => "upload",
        }
    }
}

/// A transfer that goes on until it is dropped.
pub(super) struct Transfer {
    clock: Clock,
    /// When how many bytes were there.
    arrivals: Arc<Mutex<Vec<(Instant, u64)>>>,
    is_over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Transfer {
    /// Begins one between the mobile node's home address and the correspondent.
    pub(super) fn start(network: &Network, way: Way) -> Self {
        let listener = network.correspondent.run(|| Listener::bind((CORRESPONDENT, PORT))).unwrap().unwrap();
        let client = network.mobile.run(|| Tcp::connect((CORRESPONDENT, PORT))).unwrap().unwrap();
        let server = listener.accept().unwrap().0;
        let (sender, receiver) = match way {
            Way::Download => (server, client),
            Way::Upload => (client, server),
        };
        let clock = Clock::start();
        let (arrivals, is_over) = (Arc::<Mutex<Vec<_>>>::default(), Arc::<AtomicBool>::default());
        let threads = vec![
            start({
                let is_over = Arc::clone(&is_over);
                move || send(sender, &is_over)
            }),
            start({
                let (arrivals, is_over) = (Arc::clone(&arrivals), Arc::clone(&is_over));
                move || receive(receiver, clock, &arrivals, &is_over)
            }),
        ];
        Self { clock, arrivals, is_over, threads }
    }

    pub(super) fn now(&self) -> Instant {
        self.clock.now()
    }

    /// Bytes that have arrived by then.
    pub(super) fn bytes_by(&self, at: Instant) -> u64 {
        let arrivals = self.arrivals.lock().unwrap();
        let before = arrivals.partition_point(|(arrived, _)| *arrived <= at);
        before.checked_sub(1).map_or(0, |last| arrivals[last].1)
    }

    /// The longest time between `from` and `to` in which nothing came.
    pub(super) fn longest_silence(&self, from: Instant, to: Instant) -> Option<Duration> {
        let arrivals = self.arrivals.lock().unwrap();
        let times = arrivals.iter().map(|(arrived, _)| *arrived);
        let within: Vec<Instant> = times.filter(|arrived| (from..=to).contains(arrived)).collect();
        let ends = within.iter().copied().chain([to]);
        std::iter::once(from).chain(within.iter().copied()).zip(ends).map(|(begin, end)| end - begin).max()
    }

    /// When something came for the first time after `at`.
    pub(super) fn first_after(&self, at: Instant) -> Option<Instant> {
        let arrivals = self.arrivals.lock().unwrap();
        arrivals.get(arrivals.partition_point(|(arrived, _)| *arrived <= at)).map(|(arrived, _)| *arrived)
    }

    /// The end of the longest time from `since` on without anything new; `None` if that has not ended.
    pub(super) fn end_of_longest_silence(&self, since: Instant) -> Option<Instant> {
        let now = self.now();
        let arrivals = self.arrivals.lock().unwrap();
        let later = &arrivals[arrivals.partition_point(|(arrived, _)| *arrived <= since)..];
        let ends = later.iter().map(|(arrived, _)| *arrived);
        let begins = std::iter::once(since).chain(ends.clone());
        let (length, end) = begins.zip(ends).map(|(begin, end)| (end - begin, end)).max()?;
        let last = later.last().map_or(since, |(arrived, _)| *arrived);
        (now.saturating_duration_since(last) <= length).then_some(end)
    }
}

impl Drop for Transfer {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn is_worth_another_try(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

fn send(mut stream: Tcp, is_over: &AtomicBool) {
    stream.set_write_timeout(Some(LOOK)).unwrap();
    let data = pattern(1 << 16);
    while !is_over.load(Ordering::Relaxed) {
        match stream.write(&data) {
            Ok(_) => {}
            Err(error) if is_worth_another_try(&error) => {}
            // The receiver may see sooner that it is over.
            Err(error) if !is_over.load(Ordering::Relaxed) => return eprintln!("the sender: {error}"),
            Err(_) => return,
        }
    }
}

fn receive(mut stream: Tcp, clock: Clock, arrivals: &Mutex<Vec<(Instant, u64)>>, is_over: &AtomicBool) {
    stream.set_read_timeout(Some(LOOK)).unwrap();
    let (mut buffer, mut bytes) = (vec![0; 1 << 16], 0);
    while !is_over.load(Ordering::Relaxed) {
        match stream.read(&mut buffer) {
            Ok(0) => return,
            Ok(length) => {
                bytes += length as u64;
                arrivals.lock().unwrap().push((clock.now(), bytes));
            }
            Err(error) if is_worth_another_try(&error) => {}
            Err(error) if !is_over.load(Ordering::Relaxed) => return eprintln!("the receiver: {error}"),
            Err(_) => return,
        }
    }
}
