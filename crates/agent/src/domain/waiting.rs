//! What is waited for, as one descriptor: packets of all links, and a time.

use std::os::fd::{AsFd, BorrowedFd};

use careof_base::Instant;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};

use crate::Error;
use crate::carrier::alarm::{Alarm, failed};

#[derive(Debug)]
pub(super) struct Waiting {
    epoll: Epoll,
    alarm: Alarm,
}

impl Waiting {
    pub(super) fn new<'f>(fds: impl Iterator<Item = BorrowedFd<'f>>) -> Result<Self, Error> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).map_err(failed("epoll_create1"))?;
        let alarm = Alarm::new()?;
        let flags = EpollFlags::EPOLLIN;
        epoll.add(alarm.as_fd(), EpollEvent::new(flags, 0)).map_err(failed("epoll_ctl"))?;
        for (token, fd) in (1..).zip(fds) {
            epoll.add(fd, EpollEvent::new(flags, token)).map_err(failed("epoll_ctl"))?;
        }
        Ok(Self { epoll, alarm })
    }

    /// The time that was waited for has come.
    pub(super) fn has_come(&mut self) {
        self.alarm.acknowledge();
    }

    pub(super) fn arm(&mut self, now: Instant, next: Option<Instant>) -> Result<(), Error> {
        Ok(self.alarm.arm(now, next)?)
    }
}

impl AsFd for Waiting {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.0.as_fd()
    }
}
