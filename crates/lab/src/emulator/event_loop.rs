//! The emulator's thread: one `epoll`, one timer, no lock.

use std::collections::BTreeMap;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};

use careof_base::{Duration, Instant};
use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::eventfd::EventFd;
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};

use super::path::{Device, Path};
use super::slab::Slab;
use super::tap::TapWriter;
use super::{Change, Direction, LinkId, LinkReport, Timing};
use crate::clock::Clock;
use crate::error::Error;

/// What the thread is asked to do.
pub(super) enum Order {
    AddLink { name: String, paths: [Box<Path>; 2], reply: Sender<Result<u32, Error>> },
    Apply { changes: Vec<Change>, reply: Sender<Result<Instant, Error>> },
    Schedule { at: Instant, changes: Vec<Change>, reply: Sender<Result<(), Error>> },
    Tap(Box<TapWriter>, Sender<()>),
    Report(Sender<Vec<LinkReport>>),
    ReportAt(Instant, Sender<Vec<LinkReport>>),
    Stop,
}

/// What is done at an instant.
enum Act {
    Apply(Vec<Change>),
    /// The last look: the tap sees nothing afterwards.
    Report(Sender<Vec<LinkReport>>),
}

/// With [`Timing::Hybrid`], how long before a deadline sleeping ends: a sleep is late by less than this nearly
/// always.
const EARLY: Duration = Duration::from_micros(60);

/// Events that are not a path's number.
const TIMER: u64 = u64::MAX;
const BELL: u64 = u64::MAX - 1;

/// Larger than any IP packet.
const BUFFER_BYTES: usize = 1 << 16;

/// Everything the thread owns.
///
/// A turn of the loop: wait; take packets from devices that have some, and orders; then poll every link whose
/// deadline has passed. Whoever touches a link also delivers from it, so that its deadline is always current.
pub(super) struct EventLoop {
    clock: Clock,
    timing: Timing,
    epoll: Epoll,
    timer: TimerFd,
    /// What the timer is set to.
    alarm: Option<Instant>,
    bell: Arc<EventFd>,
    inbox: Receiver<Order>,
    /// Changes to come, by instant and, of one instant, in the order in which they were asked for.
    script: BTreeMap<(Instant, u64), Act>,
    scheduled: u64,
    slab: Slab,
    tap: Option<TapWriter>,
    buffer: Box<[u8]>,
    names: Vec<String>,
    /// Two a link: forward, backward. What one reads is written to the other's device.
    #[expect(clippy::vec_box, reason = "a path is moved once a link, not when the list grows")]
    paths: Vec<Box<Path>>,
}

impl EventLoop {
    pub(super) fn new(
        clock: Clock,
        timing: Timing,
        inbox: Receiver<Order>,
        bell: Arc<EventFd>,
    ) -> Result<Self, Error> {
        let failed = |call| move |errno| Error::system("start the link emulator", call, errno);
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).map_err(failed("epoll_create1"))?;
        let flags = TimerFlags::TFD_CLOEXEC | TimerFlags::TFD_NONBLOCK;
        let timer = TimerFd::new(ClockId::CLOCK_BOOTTIME, flags).map_err(failed("timerfd_create"))?;
        let readable = |data| EpollEvent::new(EpollFlags::EPOLLIN, data);
        epoll.add(&timer, readable(TIMER)).map_err(failed("epoll_ctl"))?;
        epoll.add(&*bell, readable(BELL)).map_err(failed("epoll_ctl"))?;
        Ok(Self {
            clock,
            timing,
            epoll,
            timer,
            alarm: None,
            bell,
            inbox,
            script: BTreeMap::new(),
            scheduled: 0,
            slab: Slab::default(),
            tap: None,
            buffer: vec![0; BUFFER_BYTES].into_boxed_slice(),
            names: Vec::new(),
            paths: Vec::new(),
        })
    }

    /// Runs until it is told to stop, or cannot wait any more.
    pub(super) fn run(&mut self) {
        let mut events = [EpollEvent::empty(); 32];
        loop {
            let handed_over = self.tap.as_mut().is_none_or(TapWriter::hand_over);
            let timeout = self.set_alarm(handed_over);
            let ready = match self.epoll.wait(&mut events, timeout) {
                Ok(ready) => ready,
                Err(Errno::EINTR) => 0,
                Err(_) => return,
            };
            for event in events.iter().take(ready) {
                match event.data() {
                    TIMER => self.silence_timer(),
                    BELL => {
                        if !self.obey() {
                            return;
                        }
                    }
                    path => self.receive(path as usize),
                }
            }
            self.follow_script();
            self.deliver_due();
        }
    }

    /// How long to wait: not at all, or until something comes, of which the timer may be one. While the tap has
    /// something to hand over, that is tried again soon.
    fn set_alarm(&mut self, handed_over: bool) -> EpollTimeout {
        let idle = if handed_over { EpollTimeout::NONE } else { EpollTimeout::from(1_u8) };
        let deadlines = self.paths.iter().filter_map(|path| path.deadline);
        let changes = self.script.first_key_value().map(|((at, _), _)| *at);
        let Some(deadline) = deadlines.chain(changes).min() else { return idle };
        let alarm = match self.timing {
            Timing::Hybrid => deadline.saturating_sub(EARLY),
            Timing::Timer => deadline,
        };
        if alarm <= self.clock.now() {
            // Time is up, or so nearly that a sleep would miss it: look what else there is and come back.
            return EpollTimeout::ZERO;
        }
        if self.alarm != Some(alarm) {
            let at = Expiration::OneShot(TimeSpec::from_duration(self.clock.boot_time_at(alarm)));
            if self.timer.set(at, TimerSetTimeFlags::TFD_TIMER_ABSTIME).is_err() {
                // A timer that cannot be set, which the kernel has no reason for: coarse waiting instead.
                return EpollTimeout::from(1_u8);
            }
            self.alarm = Some(alarm);
        }
        idle
    }

    /// Reads the timer, which is readable until then. It fails only if it has been set anew meanwhile.
    fn silence_timer(&mut self) {
        let _ = self.timer.wait();
        self.alarm = None;
    }

    fn receive(&mut self, index: usize) {
        let Some(path) = self.paths.get_mut(index) else { return };
        if path.receive(self.clock, &mut self.slab, &mut self.tap, &mut self.buffer) == Device::Gone {
            // Its interface was removed. Deregistering fails only when it is not registered.
            let _ = self.epoll.delete(&path.device);
        }
        self.deliver(index);
    }

    fn deliver_due(&mut self) {
        let now = self.clock.now();
        for index in 0..self.paths.len() {
            if self.paths.get(index).and_then(|path| path.deadline).is_some_and(|deadline| deadline <= now) {
                self.deliver(index);
            }
        }
    }

    fn deliver(&mut self, index: usize) {
        if let Ok([path, far]) = self.paths.get_disjoint_mut([index, index ^ 1]) {
            path.deliver(self.clock, &mut self.slab, &mut self.tap, &far.device);
        }
    }

    /// Does what it was told; `false` when it was told to stop, or nobody is left to tell it anything.
    fn obey(&mut self) -> bool {
        // The bell is rung after an order was sent: read it first, so that no order is slept over.
        let _ = self.bell.read();
        loop {
            use std::sync::mpsc::TryRecvError;
            // Whoever asked waits for the answer; if not, it is of no consequence.
            match self.inbox.try_recv() {
                Ok(Order::AddLink { name, paths, reply }) => {
                    let _ = reply.send(self.add_link(name, paths));
                }
                Ok(Order::Apply { changes, reply }) => {
                    let _ = reply.send(self.apply(changes));
                }
                Ok(Order::Schedule { at, changes, reply }) => {
                    let _ = reply.send(self.schedule(at, changes));
                }
                Ok(Order::Tap(tap, reply)) => {
                    self.tap = Some(*tap);
                    let _ = reply.send(());
                }
                Ok(Order::Report(reply)) => {
                    if let Some(tap) = &mut self.tap {
                        tap.hand_over_now();
                    }
                    let _ = reply.send(self.report());
                }
                Ok(Order::ReportAt(at, reply)) => self.act_at(at, Act::Report(reply)),
                Err(TryRecvError::Empty) => return true,
                Ok(Order::Stop) | Err(TryRecvError::Disconnected) => return false,
            }
        }
    }

    fn add_link(&mut self, name: String, mut paths: [Box<Path>; 2]) -> Result<u32, Error> {
        let first = self.paths.len();
        // Links count from 0, two paths each; memory ends before u32 does.
        let link = u32::try_from(first / 2).map_err(|_| Error::NoSuchLink)?;
        let devices = paths.each_ref().map(|path| &path.device);
        register(&self.epoll, devices, first as u64)
            .map_err(|errno| Error::system(format!("add the link {name:?}"), "epoll_ctl", errno))?;
        for (path, direction) in paths.iter_mut().zip(Direction::ALL) {
            path.place = (LinkId(link), direction);
        }
        self.names.push(name);
        self.paths.extend(paths);
        Ok(link)
    }

    fn index_of(&self, link: LinkId, direction: Direction) -> Result<usize, Error> {
        let index = link.0 as usize * 2 + usize::from(direction == Direction::Backward);
        if index < self.paths.len() { Ok(index) } else { Err(Error::NoSuchLink) }
    }

    fn apply(&mut self, changes: Vec<Change>) -> Result<Instant, Error> {
        self.check(&changes)?;
        let now = self.clock.now();
        for change in changes {
            self.make(now, change)?;
        }
        for index in 0..self.paths.len() {
            self.deliver(index);
        }
        Ok(now)
    }

    fn schedule(&mut self, at: Instant, changes: Vec<Change>) -> Result<(), Error> {
        self.check(&changes)?;
        self.act_at(at, Act::Apply(changes));
        Ok(())
    }

    fn act_at(&mut self, at: Instant, act: Act) {
        self.script.insert((at, self.scheduled), act);
        self.scheduled += 1;
    }

    /// Makes the changes whose time has come.
    fn follow_script(&mut self) {
        while let Some(next) = self.script.first_entry()
            && next.key().0 <= self.clock.now()
        {
            match next.remove() {
                // They were checked, and links only ever become more.
                Act::Apply(changes) => {
                    let _ = self.apply(changes);
                }
                Act::Report(reply) => {
                    for index in 0..self.paths.len() {
                        self.deliver(index);
                    }
                    if let Some(mut tap) = self.tap.take() {
                        tap.hand_over_now();
                    }
                    let _ = reply.send(self.report());
                }
            }
        }
    }

    /// Whether every link that is to be changed exists.
    fn check(&self, changes: &[Change]) -> Result<(), Error> {
        for change in changes {
            match change {
                Change::Reconfigure { link, direction, .. }
                | Change::SetDown { link, direction, .. }
                | Change::SetUp { link, direction }
                | Change::DropQueue { link, direction } => {
                    self.index_of(*link, *direction)?;
                }
                Change::MoveQueue { from, to } => {
                    self.index_of(from.0, from.1)?;
                    self.index_of(to.0, to.1)?;
                }
            }
        }
        Ok(())
    }

    fn make(&mut self, now: Instant, change: Change) -> Result<(), Error> {
        match change {
            Change::Reconfigure { link, direction, config } => {
                self.path(link, direction)?.link.reconfigure(now, config);
            }
            Change::SetDown { link, direction, queued, in_flight } => {
                self.path(link, direction)?.link.set_down(now, queued, in_flight);
            }
            Change::SetUp { link, direction } => self.path(link, direction)?.link.set_up(now),
            Change::MoveQueue { from, to } => {
                let to = self.index_of(to.0, to.1)?;
                let from = self.index_of(from.0, from.1)?;
                let Some(path) = self.paths.get_mut(from) else { return Err(Error::NoSuchLink) };
                let packets = path.take_queue(now, &self.slab, &mut self.tap);
                for token in packets {
                    if let Some(path) = self.paths.get_mut(to) {
                        path.take_over(now, &mut self.slab, &mut self.tap, token);
                    }
                }
            }
            Change::DropQueue { link, direction } => {
                let index = self.index_of(link, direction)?;
                if let Some(path) = self.paths.get_mut(index) {
                    path.drop_queue(now, &mut self.slab, &mut self.tap);
                }
            }
        }
        Ok(())
    }

    fn path(&mut self, link: LinkId, direction: Direction) -> Result<&mut Path, Error> {
        let index = self.index_of(link, direction)?;
        self.paths.get_mut(index).map(AsMut::as_mut).ok_or(Error::NoSuchLink)
    }

    fn report(&self) -> Vec<LinkReport> {
        let (pairs, _) = self.paths.as_chunks::<2>();
        let links = self.names.iter().zip(pairs);
        links
            .map(|(name, [forward, backward])| LinkReport {
                name: name.clone(),
                forward: forward.report(),
                backward: backward.report(),
            })
            .collect()
    }
}

/// Has both devices of a link waited for, as `first` and the number behind it, or neither.
fn register<Fd: AsFd>(epoll: &Epoll, [a, b]: [Fd; 2], first: u64) -> Result<(), Errno> {
    epoll.add(&a, EpollEvent::new(EpollFlags::EPOLLIN, first))?;
    epoll.add(&b, EpollEvent::new(EpollFlags::EPOLLIN, first + 1)).inspect_err(|_| {
        // Closing is not enough: a device is in the epoll until its last descriptor is closed, and the owner may have
        // a clone. It would be ready for ever, and nobody would read it. Deregistering what is registered succeeds.
        let _ = epoll.delete(&a);
    })
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn a_device_of_a_link_that_failed_is_waited_for_no_longer_although_a_clone_is_open() {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).unwrap();
        let plain = || File::open("/proc/self/exe").unwrap();
        let bell = EventFd::from_value(1).unwrap();
        let device = File::from(bell.as_fd().try_clone_to_owned().unwrap());
        // A plain file cannot be waited for.
        assert_eq!(register(&epoll, [&device, &plain()], 0), Err(Errno::EPERM));
        drop(device);
        let mut events = [EpollEvent::empty(); 2];
        assert_eq!(epoll.wait(&mut events, EpollTimeout::ZERO), Ok(0), "the bell still rings");
    }
}
