//! Everything a carrier of Mobile IPv6 waits for, as one descriptor.

use std::os::fd::{AsFd, BorrowedFd};

use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};

use crate::carrier::alarm::failed;

/// What can be waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    Timer,
    Monitor,
    Device,
    Tunnel,
    Watch,
    Icmp,
    HomeLink,
    /// Tunnels with IPv4 inside or outside, and messages in UDP.
    Ipv6InIpv4,
    Ipv4InIpv4,
    Ipv4InIpv6,
    Udp,
}

impl Source {
    const ALL: [Self; 11] = [
        Self::Timer,
        Self::Monitor,
        Self::Device,
        Self::Tunnel,
        Self::Watch,
        Self::Icmp,
        Self::HomeLink,
        Self::Ipv6InIpv4,
        Self::Ipv4InIpv4,
        Self::Ipv4InIpv6,
        Self::Udp,
    ];
}

/// What is ready.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Ready([bool; Source::ALL.len()]);

impl Ready {
    pub(super) const fn has(self, source: Source) -> bool {
        self.0[source as usize]
    }
}

#[derive(Debug)]
pub(super) struct Waiting {
    epoll: Epoll,
}

impl Waiting {
    pub(super) fn new() -> Result<Self, careof_lab::Error> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).map_err(failed("epoll_create1"))?;
        Ok(Self { epoll })
    }

    /// Waits for this, too.
    pub(super) fn add(&self, source: Source, fd: BorrowedFd<'_>) -> Result<(), careof_lab::Error> {
        let event = EpollEvent::new(EpollFlags::EPOLLIN, source as u64);
        self.epoll.add(fd, event).map_err(failed("epoll_ctl"))
    }

    /// What is ready now.
    pub(super) fn ready(&self) -> Result<Ready, careof_lab::Error> {
        let mut events = [EpollEvent::empty(); Source::ALL.len()];
        let count = loop {
            match self.epoll.wait(&mut events, EpollTimeout::ZERO) {
                Err(Errno::EINTR) => {}
                outcome => break outcome.map_err(failed("epoll_wait"))?,
            }
        };
        let mut ready = Ready::default();
        for event in events.iter().take(count) {
            let place = usize::try_from(event.data()).ok().and_then(|token| ready.0.get_mut(token));
            if let Some(is_ready) = place {
                *is_ready = true;
            }
        }
        Ok(ready)
    }
}

impl AsFd for Waiting {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.0.as_fd()
    }
}
