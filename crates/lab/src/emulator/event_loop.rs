//! The emulator's thread: one `epoll`, one timer, no lock.

use std::collections::BTreeMap;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender};

use careof_base::{Duration, Instant};
use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::eventfd::EventFd;
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};

use super::medium::{OnMedium, SharedMedium, address_bits};
use super::path::{Common, Device, Path, Way};
use super::tap::TapWriter;
use super::{Change, Direction, LinkId, LinkReport, Shortcut, Timing, number_of};
use crate::clock::Clock;
use crate::error::Error;

/// What the thread is asked to do.
pub(super) enum Order {
    AddMedium(Box<SharedMedium>, Sender<u32>),
    /// `is_read`: what is sent by the devices is for this link.
    AddLink {
        name: String,
        paths: [Box<Path>; 2],
        is_read: bool,
        reply: Sender<Result<u32, Error>>,
    },
    Apply {
        changes: Vec<Change>,
        reply: Sender<Result<Instant, Error>>,
    },
    Schedule {
        at: Instant,
        changes: Vec<Change>,
        reply: Sender<Result<(), Error>>,
    },
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

/// Packets taken from a device before the others, and the deadlines, have their turn.
const PACKETS_A_TURN: u32 = 32;

/// Larger than any IP packet.
const BUFFER_BYTES: usize = 1 << 16;

/// Everything the thread owns.
///
/// A turn of the loop: wait; take packets from devices that have some, and orders; then poll every link and medium whose
/// deadline has passed. Whoever touches one also delivers from it, so that its deadline is always current.
pub(super) struct EventLoop {
    clock: Clock,
    timing: Timing,
    epoll: Epoll,
    timer: TimerFd,
    /// What the timer is set to.
    alarm: Option<Instant>,
    /// What the thread waits for next.
    due: Option<Instant>,
    /// By how many nanoseconds it was late at most.
    lateness: Arc<AtomicU64>,
    bell: Arc<EventFd>,
    inbox: Receiver<Order>,
    /// Changes to come, by instant and, of one instant, in the order in which they were asked for.
    script: BTreeMap<(Instant, u64), Act>,
    scheduled: u64,
    common: Common,
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
        lateness: Arc<AtomicU64>,
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
            due: None,
            lateness,
            bell,
            inbox,
            script: BTreeMap::new(),
            scheduled: 0,
            common: Common::default(),
            buffer: vec![0; BUFFER_BYTES].into_boxed_slice(),
            names: Vec::new(),
            paths: Vec::new(),
        })
    }

    /// Runs until it is told to stop, or cannot wait any more.
    pub(super) fn run(&mut self) {
        let mut events = [EpollEvent::empty(); 32];
        loop {
            let handed_over = self.common.tap.as_mut().is_none_or(TapWriter::hand_over);
            let timeout = self.set_alarm(handed_over);
            let ready = match self.epoll.wait(&mut events, timeout) {
                Ok(ready) => ready,
                Err(Errno::EINTR) => 0,
                Err(_) => return,
            };
            self.note_lateness();
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
        let links = self.paths.iter().filter_map(|path| path.deadline);
        let media = self.common.media.iter().filter_map(|shared| shared.deadline);
        let changes = self.script.first_key_value().map(|((at, _), _)| *at);
        self.due = links.chain(media).chain(changes).min();
        let Some(deadline) = self.due else { return idle };
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

    /// Remembers by how much what was waited for is late, if by more than anything before.
    fn note_lateness(&self) {
        let late = self.due.map_or(Duration::ZERO, |due| self.clock.now().saturating_duration_since(due));
        let nanos = u64::try_from(late.as_nanos()).unwrap_or(u64::MAX);
        // A number for people: nothing else depends on its order.
        self.lateness.fetch_max(nanos, Ordering::Relaxed);
    }

    /// Reads the timer, which is readable until then. It fails only if it has been set anew meanwhile.
    fn silence_timer(&mut self) {
        let _ = self.timer.wait();
        self.alarm = None;
    }

    fn receive(&mut self, index: usize) {
        for _ in 0..PACKETS_A_TURN {
            let Some(path) = self.paths.get(index) else { return };
            let length = match path.read(&mut self.buffer) {
                Device::Packet(length) => length,
                Device::Silent => break,
                Device::Gone => {
                    // Deregistering fails only when it is not registered.
                    let _ = self.epoll.delete(&path.device);
                    break;
                }
            };
            let packet = self.buffer.get(..length).unwrap_or_default();
            let taken = path.path_of(&self.common, packet);
            if let Some(path) = self.paths.get_mut(taken) {
                path.take_in(self.clock.now(), &mut self.common, packet);
            }
        }
        self.deliver(index);
    }

    fn deliver_due(&mut self) {
        let now = self.clock.now();
        let is_due = |deadline: Option<Instant>| deadline.is_some_and(|deadline| deadline <= now);
        for index in 0..self.paths.len() {
            if self.paths.get(index).is_some_and(|path| is_due(path.deadline)) {
                self.deliver(index);
            }
        }
        for medium in 0..self.common.media.len() {
            if self.common.media.get(medium).is_some_and(|shared| is_due(shared.deadline)) {
                self.deliver_on_medium(medium);
            }
        }
    }

    /// Delivers what has arrived on a path, and on its medium.
    fn deliver(&mut self, index: usize) {
        let Ok([path, far]) = self.paths.get_disjoint_mut([index, index ^ 1]) else { return };
        match &path.way {
            Way::Link(_) => path.deliver(self.clock, &mut self.common, &far.device),
            Way::Medium(on) => {
                let medium = on.medium;
                self.deliver_on_medium(medium);
            }
        }
    }

    fn deliver_on_medium(&mut self, medium: usize) {
        let mut now = self.clock.now();
        while let Some((index, token, crossed)) =
            self.common.media.get_mut(medium).and_then(|shared| shared.poll(now))
        {
            if let Ok([path, far]) = self.paths.get_disjoint_mut([index, index ^ 1]) {
                path.end(now, &mut self.common, token, crossed, &far.device);
            }
            now = self.clock.now();
        }
    }

    fn deliver_everything(&mut self) {
        for index in 0..self.paths.len() {
            if self.paths.get(index).is_some_and(|path| matches!(path.way, Way::Link(_))) {
                self.deliver(index);
            }
        }
        for medium in 0..self.common.media.len() {
            self.deliver_on_medium(medium);
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
                Ok(Order::AddMedium(medium, reply)) => {
                    self.common.media.push(*medium);
                    // Memory ends before u32 does.
                    let number = u32::try_from(self.common.media.len() - 1).unwrap_or(u32::MAX);
                    let _ = reply.send(number);
                }
                Ok(Order::AddLink { name, paths, is_read, reply }) => {
                    let _ = reply.send(self.add_link(name, paths, is_read));
                }
                Ok(Order::Apply { changes, reply }) => {
                    let _ = reply.send(self.apply(changes));
                }
                Ok(Order::Schedule { at, changes, reply }) => {
                    let _ = reply.send(self.schedule(at, changes));
                }
                Ok(Order::Tap(tap, reply)) => {
                    self.common.tap = Some(*tap);
                    let _ = reply.send(());
                }
                Ok(Order::Report(reply)) => {
                    if let Some(tap) = &mut self.common.tap {
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

    fn add_link(&mut self, name: String, mut paths: [Box<Path>; 2], is_read: bool) -> Result<u32, Error> {
        let first = self.paths.len();
        // Links count from 0, two paths each; memory ends before u32 does.
        let link = u32::try_from(first / 2).map_err(|_| Error::NoSuchLink)?;
        for path in &paths {
            if let Way::Medium(on) = &path.way
                && !self.common.media.get(on.medium).is_some_and(|shared| on.fits(shared))
            {
                return Err(Error::NoSuchStation { link: name });
            }
        }
        if is_read {
            let devices = paths.each_ref().map(|path| &path.device);
            register(&self.epoll, devices, first as u64)
                .map_err(|errno| Error::system(format!("add the link {name:?}"), "epoll_ctl", errno))?;
        }
        for ((path, direction), number) in paths.iter_mut().zip(Direction::ALL).zip(first..) {
            path.place = (LinkId(link), direction);
            if let Way::Medium(on) = &path.way
                && let Some(shared) = self.common.media.get_mut(on.medium)
            {
                shared.add(on, number);
            }
        }
        self.names.push(name);
        self.paths.extend(paths);
        Ok(link)
    }

    fn index_of(&self, link: LinkId, direction: Direction) -> Result<usize, Error> {
        let index = number_of(link, direction);
        if index < self.paths.len() { Ok(index) } else { Err(Error::NoSuchLink) }
    }

    /// The path that `link` and `direction` are, on a medium.
    fn on_medium(&self, link: LinkId, direction: Direction) -> Result<&OnMedium, Error> {
        match self.paths.get(number_of(link, direction)).map(|path| &path.way) {
            Some(Way::Medium(on)) => Ok(on),
            Some(Way::Link(_)) => Err(Error::NoShortcut),
            None => Err(Error::NoSuchLink),
        }
    }

    fn apply(&mut self, changes: Vec<Change>) -> Result<Instant, Error> {
        self.check(&changes)?;
        let now = self.clock.now();
        for change in changes {
            self.make(now, change)?;
        }
        self.deliver_everything();
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
                    self.deliver_everything();
                    if let Some(mut tap) = self.common.tap.take() {
                        tap.hand_over_now();
                    }
                    let _ = reply.send(self.report());
                }
            }
        }
    }

    /// Whether every link that is to be changed exists, and can be changed so.
    fn check(&self, changes: &[Change]) -> Result<(), Error> {
        for change in changes {
            match change {
                Change::Reconfigure { link, direction, .. } => {
                    let index = self.index_of(*link, *direction)?;
                    if self.paths.get(index).is_some_and(|path| matches!(path.way, Way::Medium(_))) {
                        return Err(Error::LawsOfMedium);
                    }
                }
                Change::SetDown { link, direction, .. }
                | Change::SetUp { link, direction }
                | Change::DropQueue { link, direction } => {
                    self.index_of(*link, *direction)?;
                }
                Change::MoveQueue { from, to } => {
                    self.index_of(from.0, from.1)?;
                    self.index_of(to.0, to.1)?;
                }
                Change::SetShortcuts { link, direction, shortcuts } => {
                    let on = self.on_medium(*link, *direction)?;
                    for shortcut in shortcuts {
                        let by = self.on_medium(shortcut.by.0, shortcut.by.1)?;
                        if !on.begins_like(by) || shortcut.prefix_length > address_bits(shortcut.network) {
                            return Err(Error::NoShortcut);
                        }
                    }
                }
            }
        }
        Ok(())
    }

    fn make(&mut self, now: Instant, change: Change) -> Result<(), Error> {
        match change {
            Change::Reconfigure { link, direction, config } => {
                self.path(link, direction)?.0.reconfigure(now, config)?;
            }
            Change::SetDown { link, direction, queued, in_flight } => {
                let (path, common) = self.path(link, direction)?;
                path.set_down(now, common, queued, in_flight);
            }
            Change::SetUp { link, direction } => {
                let (path, common) = self.path(link, direction)?;
                path.set_up(now, common);
            }
            Change::MoveQueue { from, to } => {
                let (path, common) = self.path(from.0, from.1)?;
                let packets = path.take_queue(now, common);
                let to = self.index_of(to.0, to.1)?;
                for token in packets {
                    let packet = self.common.slab.packet(token);
                    let taken = self.paths.get(to).map_or(to, |path| path.path_of(&self.common, packet));
                    if let Some(path) = self.paths.get_mut(taken) {
                        path.take_over(now, &mut self.common, token);
                    }
                }
            }
            Change::DropQueue { link, direction } => {
                let (path, common) = self.path(link, direction)?;
                path.drop_queue(now, common);
            }
            Change::SetShortcuts { link, direction, shortcuts } => {
                if let Way::Medium(on) = &mut self.path(link, direction)?.0.way {
                    let paths = shortcuts.iter().map(|shortcut| {
                        let Shortcut { network, prefix_length, by } = *shortcut;
                        (network, prefix_length, number_of(by.0, by.1))
                    });
                    on.set_shortcuts(paths);
                }
            }
        }
        Ok(())
    }

    fn path(&mut self, link: LinkId, direction: Direction) -> Result<(&mut Path, &mut Common), Error> {
        let index = self.index_of(link, direction)?;
        let path = self.paths.get_mut(index).map(AsMut::as_mut).ok_or(Error::NoSuchLink)?;
        Ok((path, &mut self.common))
    }

    fn report(&self) -> Vec<LinkReport> {
        let (pairs, _) = self.paths.as_chunks::<2>();
        let links = self.names.iter().zip(pairs);
        links
            .map(|(name, [forward, backward])| LinkReport {
                name: name.clone(),
                forward: forward.report(&self.common.media),
                backward: backward.report(&self.common.media),
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
