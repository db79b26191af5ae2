//! Emulated links between TUN devices.
//!
//! One thread carries every link: it waits in one `epoll` for packets, for the next deadline of any link or medium, and
//! for orders. What a packet meets on its way is `careof_link`'s business, the same code as in the simulator; here
//! are only the buffers that its tokens stand for, and the clock.

mod event_loop;
mod medium;
mod path;
mod slab;
mod tap;

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Builder, JoinHandle};

use careof_base::{Duration, Instant, RandomStream};
use careof_link::{Config, Counters, Fate, Medium, MediumConfig, StationId};
use nix::errno::Errno;
use nix::sys::eventfd::{EfdFlags, EventFd};

use crate::clock::Clock;
use crate::error::Error;
use crate::scheduling::Scheduling;
use crate::tun::Tun;
use event_loop::{EventLoop, Order};
use medium::{OnMedium, SharedMedium};
use path::{Path, Way, own_link};

pub use tap::{Passage, Sighting, Sightings, Tap, TapConfig};

/// How the emulator waits for a deadline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Timing {
    /// Sleep until shortly before, then look again and again until it is time: a few microseconds late in the
    /// mean, at the price of processor time, up to 60 µs a deadline.
    #[default]
    Hybrid,
    /// Sleep until the deadline: about 50 µs late, and no processor time.
    Timer,
}

/// How an emulator runs.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// How it waits.
    pub timing: Timing,
    /// Whether to ask for real-time priority; see [`Emulator::scheduling`] for the answer.
    pub real_time: bool,
    /// The seed of the run's random streams.
    pub seed: u64,
    /// The number of the repetition.
    pub run: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self { timing: Timing::Hybrid, real_time: true, seed: 1, run: 0 }
    }
}

/// A link to be emulated: two devices and what lies between them.
#[derive(Debug)]
pub struct LinkSpec {
    /// Its name, which its random streams are derived from as in the simulator.
    pub name: String,
    /// The device at one end.
    pub a: Tun,
    /// The device at the other end.
    pub b: Tun,
    /// What packets from `a` to `b` meet.
    pub forward: Config,
    /// What packets from `b` to `a` meet.
    pub backward: Config,
}

/// Half-duplex Ethernet to be emulated, which links share.
#[derive(Clone, Debug)]
pub struct MediumSpec {
    /// Its name, which its random streams are derived from as in the simulator.
    pub name: String,
    /// Its laws.
    pub config: MediumConfig,
    /// The names of its stations, in the order of their [`StationId`]s.
    pub stations: Vec<String>,
}

/// A medium of an emulator. It means nothing to another emulator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MediumId(u32);

/// A link between two stations of a medium.
///
/// On one cable there is one way from a station to another: of several links between the same two, the one that was added first carries
/// what is sent by any of them.
#[derive(Debug)]
pub struct SharedLinkSpec {
    /// Its name.
    pub name: String,
    /// The medium.
    pub medium: MediumId,
    /// The station at either end.
    pub stations: [StationId; 2],
    /// The device at one end.
    pub a: Tun,
    /// The device at the other end.
    pub b: Tun,
    /// Whether what is sent by the devices is for this link. If not, only shortcuts lead over it, and the devices, which it hands
    /// packets to, are clones of those of the stations' other links.
    pub is_read: bool,
}

/// By which way of its station a packet leaves that is for certain addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shortcut {
    /// An address of the network.
    pub network: IpAddr,
    /// How many of its bits count, at most as many as it has.
    pub prefix_length: u8,
    /// The way: from the same station over the same medium.
    pub by: (LinkId, Direction),
}

/// A link of an emulator. It means nothing to another emulator. By default the first one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct LinkId(u32);

/// One direction of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Direction {
    /// From [`LinkSpec::a`] to [`LinkSpec::b`].
    Forward,
    /// From [`LinkSpec::b`] to [`LinkSpec::a`].
    Backward,
}

impl Direction {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Forward, Self::Backward];
}

/// Two paths a link: forward, backward.
const fn number_of(link: LinkId, direction: Direction) -> usize {
    link.0 as usize * 2 + matches!(direction, Direction::Backward) as usize
}

/// A change of one direction of a link while packets are on their way; see `careof_link::Link` for what becomes
/// of them.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// Other laws. A link on a medium has none of its own.
    Reconfigure {
        /// The link.
        link: LinkId,
        /// The direction.
        direction: Direction,
        /// What packets meet from now on.
        config: Config,
    },
    /// Down. On a medium the station at the direction's beginning leaves the cable: it neither sends nor receives.
    SetDown {
        /// The link.
        link: LinkId,
        /// The direction.
        direction: Direction,
        /// What becomes of packets in the queue - on a medium the station's - and of those offered while the link is down.
        queued: Fate,
        /// What becomes of packets being sent and on the wire.
        in_flight: Fate,
    },
    /// Up again.
    SetUp {
        /// The link.
        link: LinkId,
        /// The direction.
        direction: Direction,
    },
    /// The packets in the queue are dropped; the link stays as it is.
    DropQueue {
        /// The link.
        link: LinkId,
        /// The direction.
        direction: Direction,
    },
    /// The packets in the queue go another way: they are offered, oldest first, to another path.
    MoveQueue {
        /// The link and direction whose queue is emptied.
        from: (LinkId, Direction),
        /// Where its packets go.
        to: (LinkId, Direction),
    },
    /// On a medium, packets that a host sends by a link go straight to whom they are for, as Ethernet's address resolution
    /// brings about; in place of what was said of that link before. What no shortcut is for takes the link. Of several, the longest
    /// prefix counts.
    SetShortcuts {
        /// The link that the host's routes lead over.
        link: LinkId,
        /// The direction.
        direction: Direction,
        /// What else its packets take.
        shortcuts: Vec<Shortcut>,
    },
}

/// How late packets were handed over, beyond what their link says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lateness {
    /// Packets handed over.
    pub deliveries: u64,
    /// Sum of their latenesses.
    pub total: Duration,
    /// The worst of them.
    pub worst: Duration,
}

impl Lateness {
    /// Mean lateness of a packet; zero when there were none.
    #[must_use]
    pub fn mean(&self) -> Duration {
        let nanos = self.total.as_nanos() / u128::from(self.deliveries.max(1));
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    fn note(&mut self, lateness: Duration) {
        self.deliveries += 1;
        self.total = self.total.saturating_add(lateness);
        self.worst = self.worst.max(lateness);
    }
}

/// What became of the packets of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DirectionReport {
    /// Packets read from a device of the sending end, and sent this way.
    pub received: u64,
    /// Packets that came from the queue of another path ([`Change::MoveQueue`]).
    pub moved_in: u64,
    /// Packets dropped because the emulator held as many as it can.
    pub no_buffer: u64,
    /// Packets dropped from the queue ([`Change::DropQueue`]); they are among those the link calls drained.
    pub dropped_from_queue: u64,
    /// What the link counted.
    pub link: Counters,
    /// The longest queue that a packet found or made on entering: most packets, most bytes.
    pub longest_queue: (u32, u64),
    /// Packets in the queue.
    pub queued: u64,
    /// Packets being sent and on the wire.
    pub in_flight: u64,
    /// Packets written to the receiving end's device.
    pub written: u64,
    /// Packets that arrived and were refused by the receiving end's device, which is down or gone.
    pub refused: u64,
    /// Whether the link is up.
    pub is_up: bool,
    /// How late packets were handed over.
    pub lateness: Lateness,
}

impl DirectionReport {
    /// Whether every packet is accounted for.
    #[must_use]
    pub fn is_conserved(&self) -> bool {
        let link = &self.link;
        let dropped: u64 = link.dropped.iter().sum();
        self.received + self.moved_in == self.no_buffer + link.offered
            && link.offered == link.delivered + dropped + link.drained + self.queued + self.in_flight
            && link.delivered == self.written + self.refused
            && self.dropped_from_queue <= link.drained
    }
}

/// What became of the packets of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkReport {
    /// The link's name.
    pub name: String,
    /// From `a` to `b`.
    pub forward: DirectionReport,
    /// From `b` to `a`.
    pub backward: DirectionReport,
}

impl LinkReport {
    /// One direction's.
    #[must_use]
    pub const fn direction(&self, direction: Direction) -> &DirectionReport {
        match direction {
            Direction::Forward => &self.forward,
            Direction::Backward => &self.backward,
        }
    }
}

/// A running emulator. Dropping it ends its thread and closes its devices, which removes their interfaces.
#[derive(Debug)]
pub struct Emulator {
    orders: Sender<Order>,
    bell: Arc<EventFd>,
    /// Nanoseconds, written by the thread.
    lateness: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
    scheduling: Scheduling,
    options: Options,
    clock: Clock,
}

impl Emulator {
    /// Starts an emulator that has no links yet.
    ///
    /// # Errors
    /// [`Error::System`] naming the call that refused a thread or a descriptor.
    pub fn start(clock: Clock, options: Options) -> Result<Self, Error> {
        let failed = |call| move |errno| Error::system("start the link emulator", call, errno);
        let bell = EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK);
        let bell = Arc::new(bell.map_err(failed("eventfd"))?);
        let lateness = Arc::new(AtomicU64::new(0));
        let (orders, inbox) = channel();
        let (ready, is_ready) = channel();
        let mut event_loop =
            EventLoop::new(clock, options.timing, inbox, Arc::clone(&bell), Arc::clone(&lateness))?;
        let run = move || {
            let scheduling = if options.real_time {
                Scheduling::ask_for_real_time()
            } else {
                Scheduling::Ordinary { refused: None }
            };
            if ready.send(scheduling).is_ok() {
                event_loop.run();
            }
        };
        let thread = Builder::new()
            .name("link emulator".to_owned())
            .spawn(run)
            .map_err(|error| failed("clone")(error.raw_os_error().map_or(Errno::EAGAIN, Errno::from_raw)))?;
        let scheduling = is_ready.recv().map_err(|_| Error::EmulatorGone)?;
        Ok(Self { orders, bell, lateness, thread: Some(thread), scheduling, options, clock })
    }

    /// How the kernel schedules the emulator.
    #[must_use]
    pub const fn scheduling(&self) -> Scheduling {
        self.scheduling
    }

    /// By how much the thread was late at most so far with what was due: a packet at a link's far end, or a change.
    #[must_use]
    pub fn lateness(&self) -> Duration {
        Duration::from_nanos(self.lateness.load(Ordering::Relaxed))
    }

    /// The clock that its instants are of.
    #[must_use]
    pub const fn clock(&self) -> Clock {
        self.clock
    }

    /// Adds a link, up from now on.
    ///
    /// # Errors
    /// [`Error::LinkConfig`], [`Error::EmulatorGone`], or [`Error::System`] naming `epoll_ctl`.
    pub fn add_link(&self, spec: LinkSpec) -> Result<LinkId, Error> {
        for config in [&spec.forward, &spec.backward] {
            check(&spec.name, config)?;
        }
        let LinkSpec { name, a, b, forward, backward } = spec;
        let path = |device: Tun, direction: &str, config: Config| {
            let stream = |user: &str| self.stream(&format!("link.{name}.{direction}.{user}"));
            Box::new(Path::new(device, own_link(config, stream)))
        };
        // The simulator's words for the two directions, so that the same seed draws the same losses.
        let paths = [path(a, "down", forward), path(b, "up", backward)];
        self.ask(|reply| Order::AddLink { name, paths, is_read: true, reply })?.map(LinkId)
    }

    /// Adds a medium, with nobody on it yet.
    ///
    /// # Errors
    /// [`Error::MediumConfig`] or [`Error::EmulatorGone`].
    pub fn add_medium(&self, spec: MediumSpec) -> Result<MediumId, Error> {
        let MediumSpec { name, config, stations } = spec;
        config.check().map_err(|problem| Error::MediumConfig { medium: name.clone(), problem })?;
        // The simulator's names, so that the same seed draws the same back-offs.
        let stream = |user: &str| self.stream(&format!("medium.{name}.{user}"));
        let queues: Vec<_> = stations.iter().map(|station| stream(&format!("{station}.queue"))).collect();
        let shared = SharedMedium::new(Medium::new(config, stream("backoff"), stream("loss"), queues));
        self.ask(|reply| Order::AddMedium(Box::new(shared), reply)).map(MediumId)
    }

    /// Adds a link on a medium.
    ///
    /// # Errors
    /// [`Error::NoSuchStation`], [`Error::EmulatorGone`], or [`Error::System`] naming `epoll_ctl`.
    pub fn add_shared_link(&self, spec: SharedLinkSpec) -> Result<LinkId, Error> {
        let SharedLinkSpec { name, medium, stations: [first, second], a, b, is_read } = spec;
        let path = |device, from, to| {
            Box::new(Path::new(device, Way::Medium(OnMedium::new(medium.0 as usize, from, to))))
        };
        let paths = [path(a, first, second), path(b, second, first)];
        self.ask(|reply| Order::AddLink { name, paths, is_read, reply })?.map(LinkId)
    }

    fn stream(&self, name: &str) -> RandomStream {
        RandomStream::new(self.options.seed, self.options.run, name)
    }

    /// Makes changes, all at one instant, which is returned.
    ///
    /// # Errors
    /// [`Error::NoSuchLink`], [`Error::LinkConfig`], [`Error::LawsOfMedium`] or [`Error::NoShortcut`], and nothing has been changed;
    /// [`Error::EmulatorGone`].
    pub fn apply(&self, changes: Vec<Change>) -> Result<Instant, Error> {
        check_all(&changes)?;
        self.ask(|reply| Order::Apply { changes, reply })?
    }

    /// Leaves changes with the emulator, which makes them at `at` by itself, as punctually as it delivers packets;
    /// at once when that is past. Changes of one instant are made in the order in which they were scheduled.
    ///
    /// # Errors
    /// As [`Emulator::apply`], when nothing is scheduled.
    pub fn schedule(&self, at: Instant, changes: Vec<Change>) -> Result<(), Error> {
        check_all(&changes)?;
        self.ask(|reply| Order::Schedule { at, changes, reply })?
    }

    /// Shows every packet at both ends of every link from now on, in place of a tap there was before.
    ///
    /// # Errors
    /// [`Error::EmulatorGone`].
    pub fn tap(&self, config: TapConfig) -> Result<Tap, Error> {
        let (writer, tap) = tap::tap(config);
        self.ask(|reply| Order::Tap(Box::new(writer), reply))?;
        Ok(tap)
    }

    /// What became of the packets of every link so far, in the order in which the links were added.
    ///
    /// # Errors
    /// [`Error::EmulatorGone`].
    pub fn report(&self) -> Result<Vec<LinkReport>, Error> {
        self.ask(Order::Report)
    }

    /// As [`Emulator::report`], but of what happened before `at`, and given then. A tap sees nothing that happens
    /// afterwards, so that what it saw and what is reported are the same packets.
    ///
    /// # Errors
    /// [`Error::EmulatorGone`].
    pub fn report_at(&self, at: Instant) -> Result<Receiver<Vec<LinkReport>>, Error> {
        let (reply, answer) = channel();
        self.orders.send(Order::ReportAt(at, reply)).map_err(|_| Error::EmulatorGone)?;
        self.ring();
        Ok(answer)
    }

    fn ask<T>(&self, order: impl FnOnce(Sender<T>) -> Order) -> Result<T, Error> {
        let (reply, answer) = channel();
        self.orders.send(order(reply)).map_err(|_| Error::EmulatorGone)?;
        self.ring();
        answer.recv().map_err(|_| Error::EmulatorGone)
    }

    /// Wakes the thread. The write fails only when the counter is full, and then the thread is awake.
    fn ring(&self) {
        let _ = self.bell.write(1);
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        // When the thread has ended by itself there is nobody to tell.
        let _ = self.orders.send(Order::Stop);
        self.ring();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn check_all(changes: &[Change]) -> Result<(), Error> {
    for change in changes {
        if let Change::Reconfigure { link, config, .. } = change {
            check(&format!("number {}", link.0), config)?;
        }
    }
    Ok(())
}

fn check(link: &str, config: &Config) -> Result<(), Error> {
    config.check().map_err(|problem| Error::LinkConfig { link: link.to_owned(), problem })
}
