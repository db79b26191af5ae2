//! Gratuitous ARP: telling the neighbours whose an address is, twice (RFC 5944 section 4.6).

use core::time::Duration;
use std::net::Ipv4Addr;

use careof_base::Instant;
use careof_lab::{ArpOperation, ArpSender, Error};
use careof_mobility::v4::{ArpOwner, InterfaceId};

/// When an announcement is repeated. Linux ignores one about an entry that is younger than a second.
const AGAIN_AFTER: Duration = Duration::from_millis(1200);
/// Repetitions that wait; more are not repeated.
const MOST_WAITING: usize = 4096;

/// Something to announce: `address` is at `owner`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Announcement {
    pub(super) interface: InterfaceId,
    pub(super) address: Ipv4Addr,
    pub(super) owner: ArpOwner,
}

/// Announcements, and those to be repeated.
#[derive(Debug)]
pub(super) struct Announcements {
    sender: ArpSender,
    /// The earliest first, as all wait for the same time.
    waiting: std::collections::VecDeque<(Instant, Announcement)>,
    pub(super) sent: u64,
}

impl Announcements {
    pub(super) fn open() -> Result<Self, Error> {
        Ok(Self { sender: ArpSender::open()?, waiting: std::collections::VecDeque::new(), sent: 0 })
    }

    /// Sends one; the link-layer address is that of whoever has `address` from now on.
    pub(super) fn send(&mut self, index: u32, link_address: [u8; 6], address: Ipv4Addr) {
        // A request and a reply: some listen to the one, some to the other.
        for operation in [ArpOperation::Request, ArpOperation::Reply] {
            if self.sender.announce(index, link_address, address, operation).is_ok() {
                self.sent += 1;
            }
        }
    }

    /// Has it sent again later. What was to be said about the address before is not said any more.
    pub(super) fn repeat(&mut self, now: Instant, announcement: Announcement) {
        self.cancel(announcement.address);
        if self.waiting.len() < MOST_WAITING {
            self.waiting.push_back((now + AGAIN_AFTER, announcement));
        }
    }

    /// Nothing is to be said about this address any more.
    pub(super) fn cancel(&mut self, address: Ipv4Addr) {
        self.waiting.retain(|(_, waiting)| waiting.address != address);
    }

    /// One whose time has come.
    pub(super) fn due(&mut self, now: Instant) -> Option<Announcement> {
        let (at, _) = self.waiting.front()?;
        if *at > now {
            return None;
        }
        self.waiting.pop_front().map(|(_, announcement)| announcement)
    }

    pub(super) fn next_timeout(&self) -> Option<Instant> {
        self.waiting.front().map(|(at, _)| *at)
    }
}
