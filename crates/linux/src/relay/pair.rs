//! Two connections that are one for their ends.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use careof_lab::{TcpOption, TcpQueues};
use careof_plan::Side;
use nix::errno::Errno;
use nix::libc;
use nix::poll::{PollFd, PollFlags};
use nix::sys::socket::{MsgFlags, Shutdown, getsockopt, recv, send, setsockopt, shutdown, sockopt};

/// Bytes moved at a time.
const CHUNK: usize = 64 * 1024;
/// Chunks of one direction in a row, before others have their turn.
const IN_A_ROW: usize = 16;

/// How far one direction is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// Everything that was there is on its way.
    Hungry,
    /// The receiving side's socket takes no more.
    Full,
    /// The sending side's FIN has followed its data.
    Ended,
}

/// The relay's two connections: with the opener, and with the acceptor.
pub(super) struct Pair {
    sockets: [OwnedFd; 2],
    /// The window clamps, for the kernel forgets them.
    clamps: [Option<TcpOption>; 2],
    /// By the side that sends.
    ways: [Way; 2],
    is_connected: bool,
    /// Nothing can be sent or received on it any more, so there is nothing to wait for but room at the other.
    is_shut: [bool; 2],
    was_reset: bool,
    /// Bytes that were carried, by the side that sent them.
    carried: [u64; 2],
    /// What is told when it changes: eighths of what may be held, by the side that sent it.
    told: [u64; 2],
    /// Bytes of a direction that may be held.
    room: u64,
    news: Vec<News>,
    buffer: Vec<u8>,
}

/// Something to tell of a pair: what, and how many bytes of data it is about.
pub(super) type News = (&'static str, u64);

/// Changes of what is held are told by so much of what may be.
const EIGHTHS: u64 = 8;

impl Pair {
    /// A connection that was accepted, and one that is being opened.
    /// Up to `room` bytes of a direction are held in them.
    pub(super) fn new(sockets: [OwnedFd; 2], clamps: [Option<TcpOption>; 2], room: u32) -> Self {
        Self {
            sockets,
            clamps,
            ways: [Way::Hungry; 2],
            is_connected: false,
            is_shut: [false; 2],
            was_reset: false,
            carried: [0; 2],
            told: [0; 2],
            room: room.into(),
            news: vec![("open", 0)],
            buffer: vec![0; CHUNK],
        }
    }

    pub(super) const fn socket(&self, side: Side) -> &OwnedFd {
        &self.sockets[side.index()]
    }

    /// Whether nothing is left to be done.
    pub(super) fn is_over(&self) -> bool {
        self.was_reset || self.ways == [Way::Ended; 2]
    }

    /// Whether it ended by a reset.
    pub(super) const fn was_reset(&self) -> bool {
        self.was_reset
    }

    /// Takes what is to be told.
    pub(super) fn take_news(&mut self) -> Vec<News> {
        std::mem::take(&mut self.news)
    }

    /// Bytes that `side` has sent, that its socket has acknowledged, and that the other side has not acknowledged.
    fn held(&self, side: Side) -> u64 {
        let queues = |side: Side| TcpQueues::of(self.socket(side).as_fd()).unwrap_or_default();
        // A SYN is no data.
        let sent = if self.is_connected { queues(side.peer()).unacknowledged } else { 0 };
        u64::from(queues(side).unread) + u64::from(sent)
    }

    /// What to wait for at the connection with `side`, if anything.
    pub(super) fn awaits(&self, side: Side) -> Option<PollFd<'_>> {
        let mut events = PollFlags::empty();
        if self.is_connected {
            if self.ways[side.index()] == Way::Hungry {
                events |= PollFlags::POLLIN;
            }
            if self.ways[side.peer().index()] == Way::Full {
                events |= PollFlags::POLLOUT;
            }
        } else if side == Side::Acceptor {
            events |= PollFlags::POLLOUT;
        }
        // A reset is noticed although nothing is waited for, but what is shut would say so again and again.
        let is_waited_for = !events.is_empty() || !self.is_shut[side.index()];
        is_waited_for.then(|| PollFd::new(self.socket(side).as_fd(), events))
    }

    /// Does what can be done, the sockets' `flags` being these.
    pub(super) fn handle(&mut self, flags: [PollFlags; 2]) {
        if flags.iter().all(PollFlags::is_empty) {
            return;
        }
        let was_connected = self.is_connected;
        if !self.is_connected && flags[Side::Acceptor.index()].intersects(PollFlags::POLLOUT) {
            // Refused, or never answered: POLLERR says so too.
            self.is_connected = !flags[Side::Acceptor.index()].contains(PollFlags::POLLERR);
        }
        if Side::BOTH.into_iter().any(|side| self.has_failed(side, flags[side.index()])) {
            return self.reset();
        }
        for side in Side::BOTH {
            self.is_shut[side.index()] |= flags[side.index()].contains(PollFlags::POLLHUP);
        }
        if !self.is_connected {
            return;
        }
        for side in Side::BOTH {
            let [from, to] = [side, side.peer()].map(|side| flags[side.index()]);
            let can_go_on = match self.ways[side.index()] {
                // The opener may have sent before the acceptor was there.
                Way::Hungry => !from.is_empty() || !was_connected,
                Way::Full => !to.is_empty(),
                Way::Ended => false,
            };
            if can_go_on && self.carry(side).is_err() {
                return self.reset();
            }
            let held = self.held(side);
            let eighths = held * EIGHTHS / self.room.max(1);
            if std::mem::replace(&mut self.told[side.index()], eighths) != eighths {
                self.news.push(("hold", held));
            }
        }
        if self.ways == [Way::Ended; 2] {
            self.news.push(("close", self.carried.iter().sum()));
        }
    }

    /// Whether the connection with `side` was reset, refused or given up by the kernel.
    fn has_failed(&self, side: Side, flags: PollFlags) -> bool {
        flags.contains(PollFlags::POLLERR)
            && getsockopt(self.socket(side), sockopt::SocketError).is_ok_and(|error| error != 0)
    }

    /// How much more the socket with `side` may be given: the half of what may be held that is behind the relay. The kernel
    /// fills a packet of up to 64 KiB before it looks whether there is room for it.
    fn room_behind(&self, side: Side) -> usize {
        let queues = TcpQueues::of(self.socket(side).as_fd()).unwrap_or_default();
        let room = (self.room / 2).saturating_sub(queues.unacknowledged.into());
        usize::try_from(room).unwrap_or(usize::MAX)
    }

    /// Carries what `side` has sent to the other side. Nothing is taken from one socket that the other did not take.
    fn carry(&mut self, side: Side) -> Result<(), Errno> {
        let way = side.index();
        let [from, to] = [side, side.peer()].map(|side| self.sockets[side.index()].as_raw_fd());
        self.ways[way] = Way::Hungry;
        for _ in 0..IN_A_ROW {
            let there = match recv(from, &mut self.buffer, MsgFlags::MSG_PEEK) {
                Ok(0) => {
                    self.ways[way] = Way::Ended;
                    return shutdown(to, Shutdown::Write);
                }
                Ok(there) => there,
                Err(Errno::EAGAIN) => return Ok(()),
                Err(Errno::EINTR) => continue,
                Err(errno) => return Err(errno),
            };
            // A socket that is full by this is so by the kernel's measure, which counts more than data, and says when it is not.
            let room = self.room_behind(side.peer());
            let arrived = self.buffer.get(..there.min(room)).unwrap_or_default();
            let taken = match send(to, arrived, MsgFlags::MSG_NOSIGNAL) {
                Ok(taken) => taken,
                Err(Errno::EAGAIN) => 0,
                Err(Errno::EINTR) => continue,
                Err(errno) => return Err(errno),
            };
            if taken > 0 {
                self.carried[way] += taken as u64;
                self.drop_from(side, taken)?;
            }
            if taken < there {
                self.ways[way] = Way::Full;
                return Ok(());
            }
        }
        Ok(())
    }

    /// Takes bytes that were sent on out of the socket with `side`, which opens the window to it.
    fn drop_from(&mut self, side: Side, mut count: usize) -> Result<(), Errno> {
        let socket = &self.sockets[side.index()];
        while count > 0 {
            let room = self.buffer.get_mut(..count).unwrap_or_default();
            // tcp(7): with MSG_TRUNC they are not copied.
            match recv(socket.as_raw_fd(), room, MsgFlags::MSG_TRUNC) {
                // They were there; that they are not would break the stream.
                Ok(0) => return Err(Errno::EIO),
                Ok(dropped) => count = count.saturating_sub(dropped),
                Err(Errno::EINTR) => {}
                Err(errno) => return Err(errno),
            }
        }
        if let Some(clamp) = self.clamps[side.index()] {
            // It was set before; a connection that is gone is noticed elsewhere.
            let _ = clamp.set(socket.as_fd());
        }
        Ok(())
    }

    /// One connection has failed: the other end is told by a reset, as it would have been by the first, when this pair is
    /// dropped.
    pub(super) fn reset(&mut self) {
        self.was_reset = true;
        let lost = Side::BOTH.map(|side| self.held(side)).iter().sum();
        self.news.push(("reset", lost));
        for socket in &self.sockets {
            // With this, closing resets; where it fails the connection is gone already.
            let at_once = libc::linger { l_onoff: 1, l_linger: 0 };
            let _ = setsockopt(socket, sockopt::Linger, &at_once);
        }
    }
}
