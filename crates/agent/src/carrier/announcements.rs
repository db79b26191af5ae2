//! Gratuitous ARP: telling the neighbours whose an address is, twice (RFC 5944 section 4.6).

use core::time::Duration;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use careof_base::Instant;
use careof_lab::{ArpOperation, ArpSender, Error, Netlink};
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
    waiting: Waiting,
    pub(super) sent: u64,
}

/// What is still to be announced, of each address one thing.
#[derive(Debug, Default)]
struct Waiting {
    /// To be repeated, the earliest first.
    repeated: BTreeMap<(Instant, Ipv4Addr), Announcement>,
    /// When what is repeated is due.
    due: BTreeMap<Ipv4Addr, Instant>,
    /// To be sent when there is time.
    put_off: BTreeMap<Ipv4Addr, Announcement>,
}

impl Waiting {
    fn repeat(&mut self, now: Instant, announcement: Announcement) {
        let address = announcement.address;
        self.cancel(address);
        if self.repeated.len() < MOST_WAITING {
            self.due.insert(address, now + AGAIN_AFTER);
            self.repeated.insert((now + AGAIN_AFTER, address), announcement);
        }
    }

    fn cancel(&mut self, address: Ipv4Addr) {
        self.put_off.remove(&address);
        if let Some(at) = self.due.remove(&address) {
            self.repeated.remove(&(at, address));
        }
    }

    fn due(&mut self, now: Instant, has_time: bool) -> Option<Announcement> {
        if let Some(first) = self.repeated.first_entry().filter(|first| first.key().0 <= now) {
            let announcement = first.remove();
            self.due.remove(&announcement.address);
            return Some(announcement);
        }
        let (_, announcement) = has_time.then(|| self.put_off.pop_first()).flatten()?;
        self.repeat(now, announcement);
        Some(announcement)
    }

    fn next_timeout(&self, now: Instant) -> Option<Instant> {
        if !self.put_off.is_empty() {
            return Some(now);
        }
        self.repeated.first_key_value().map(|((at, _), _)| *at)
    }
}

impl Announcements {
    pub(super) fn open() -> Result<Self, Error> {
        Ok(Self { sender: ArpSender::open()?, waiting: Waiting::default(), sent: 0 })
    }

    /// Tells the neighbours of a link, given by its interface's number and link-layer address, whose an address is.
    pub(super) fn announce(
        &mut self,
        netlink: &mut Netlink,
        (index, own): (u32, [u8; 6]),
        announcement: Announcement,
    ) {
        let address = announcement.address;
        let link_address = match announcement.owner {
            ArpOwner::Sender => Some(own),
            // As the kernel has learnt it when the node asked for us; when it is not known, the node's own announcement must do.
            ArpOwner::MobileNode => {
                let known = netlink.neighbour(index, address).ok().flatten();
                known.and_then(|neighbour| neighbour.link_address)
            }
        };
        if let Some(link_address) = link_address {
            self.send(index, link_address, address);
        }
    }

    /// Sends one; the link-layer address is that of whoever has `address` from now on.
    fn send(&mut self, index: u32, link_address: [u8; 6], address: Ipv4Addr) {
        // A request and a reply: some listen to the one, some to the other.
        for operation in [ArpOperation::Request, ArpOperation::Reply] {
            if self.sender.announce(index, link_address, address, operation).is_ok() {
                self.sent += 1;
            }
        }
    }

    /// Has it sent again later. What was to be said about the address before is not said any more.
    pub(super) fn repeat(&mut self, now: Instant, announcement: Announcement) {
        self.waiting.repeat(now, announcement);
    }

    /// Has one of many sent when there is time, and again later.
    pub(super) fn put_off(&mut self, announcement: Announcement) {
        self.waiting.cancel(announcement.address);
        self.waiting.put_off.insert(announcement.address, announcement);
    }

    /// Nothing is to be said about this address any more.
    pub(super) fn cancel(&mut self, address: Ipv4Addr) {
        self.waiting.cancel(address);
    }

    /// One whose time has come, or for which there is time.
    pub(super) fn due(&mut self, now: Instant, has_time: bool) -> Option<Announcement> {
        self.waiting.due(now, has_time)
    }

    /// When [`Announcements::due`] has one.
    pub(super) fn next_timeout(&self, now: Instant) -> Option<Instant> {
        self.waiting.next_timeout(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(last: u8) -> Announcement {
        let (interface, owner) = (InterfaceId(0), ArpOwner::Sender);
        Announcement { interface, address: Ipv4Addr::new(10, 0, 0, last), owner }
    }

    #[test]
    fn of_an_address_the_latest_is_said_and_in_order() {
        let mut waiting = Waiting::default();
        let now = Instant::from_secs(5);
        waiting.repeat(now, of(1));
        waiting.repeat(now + Duration::from_millis(1), of(2));
        // Again, later: the first is not said any more.
        waiting.repeat(now + Duration::from_millis(2), of(1));
        waiting.repeat(now, of(3));
        waiting.cancel(of(3).address);
        assert_eq!(waiting.next_timeout(now), Some(now + AGAIN_AFTER + Duration::from_millis(1)));
        let later = now + AGAIN_AFTER * 2;
        assert_eq!(waiting.due(now, true), None);
        assert_eq!([waiting.due(later, true), waiting.due(later, true)], [Some(of(2)), Some(of(1))]);
        assert_eq!((waiting.due(later, true), waiting.next_timeout(later)), (None, None));
    }

    #[test]
    fn what_is_put_off_waits_until_there_is_time_and_is_repeated() {
        let mut waiting = Waiting::default();
        let now = Instant::from_secs(5);
        waiting.put_off.insert(of(1).address, of(1));
        assert_eq!((waiting.due(now, false), waiting.next_timeout(now)), (None, Some(now)));
        assert_eq!(waiting.due(now, true), Some(of(1)));
        assert_eq!((waiting.due(now, true), waiting.next_timeout(now)), (None, Some(now + AGAIN_AFTER)));
        assert_eq!(waiting.due(now + AGAIN_AFTER, true), Some(of(1)));
        assert_eq!(waiting.next_timeout(now), None);
    }

    #[test]
    fn repetitions_are_bounded() {
        let mut waiting = Waiting::default();
        for n in 0..2 * MOST_WAITING as u32 {
            let address = Ipv4Addr::from_bits(0x0a00_0000 + n);
            waiting.repeat(Instant::ZERO, Announcement { address, ..of(0) });
        }
        assert_eq!((waiting.repeated.len(), waiting.due.len()), (MOST_WAITING, MOST_WAITING));
    }
}
