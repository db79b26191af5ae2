//! What became of every packet offered to a link.

use core::fmt;

/// Why a packet was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DropCause {
    /// There was no room in the queue, or a reconfiguration took the room away.
    QueueFull,
    /// Random early detection chose the packet on arrival.
    RedEarly,
    /// CoDel chose the packet at the head of the queue.
    CoDel,
    /// Lost on the wire.
    Loss,
    /// The link was down, or went down with the packet in it.
    LinkDown,
    /// The packet is larger than the MTU.
    MtuExceeded,
    /// A station on a shared medium gave its frame up after [`ATTEMPT_LIMIT`](crate::ATTEMPT_LIMIT) collisions.
    ExcessiveCollisions,
    /// A station on 802.11 gave its frame up after as many transmissions as
    /// [`DcfConfig`](crate::DcfConfig) allows, because of collisions or damage.
    RetryLimit,
    /// An ICMP error that the link filters ([`Config::filters_icmp`](crate::Config::filters_icmp)).
    IcmpFiltered,
}

impl DropCause {
    /// How many causes there are.
    pub const COUNT: usize = 9;

    /// Every cause, in the order of [`Counters::dropped`].
    pub const ALL: [Self; Self::COUNT] = [
        Self::QueueFull,
        Self::RedEarly,
        Self::CoDel,
        Self::Loss,
        Self::LinkDown,
        Self::MtuExceeded,
        Self::ExcessiveCollisions,
        Self::RetryLimit,
        Self::IcmpFiltered,
    ];

    /// Place of this cause in [`Counters::dropped`].
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// The name in traces and tables: `queue-full`, `red-early`, `codel`, `loss`, `link-down`, `mtu-exceeded`,
    /// `excessive-collisions`, `retry-limit`, `icmp-filtered`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::QueueFull => "queue-full",
            Self::RedEarly => "red-early",
            Self::CoDel => "codel",
            Self::Loss => "loss",
            Self::LinkDown => "link-down",
            Self::MtuExceeded => "mtu-exceeded",
            Self::ExcessiveCollisions => "excessive-collisions",
            Self::RetryLimit => "retry-limit",
            Self::IcmpFiltered => "icmp-filtered",
        }
    }
}

impl fmt::Display for DropCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Packets by their fate.
///
/// After every call on a link, `offered` = `delivered` + the sum of `dropped` + `drained` + packets in the
/// queue + packets in flight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets handed to [`Link::enqueue`](crate::Link::enqueue), refused ones included.
    pub offered: u64,
    /// IP bytes of the offered packets.
    pub offered_bytes: u64,
    /// Packets handed out at the far end.
    pub delivered: u64,
    /// IP bytes of the delivered packets.
    pub delivered_bytes: u64,
    /// Packets taken back out of the queue by [`Link::drain_queue`](crate::Link::drain_queue).
    pub drained: u64,
    /// Packets marked instead of being dropped (RFC 3168). What became of them is counted like of any other.
    pub marked: u64,
    /// Packets dropped, by [`DropCause::index`]. A packet counts from the moment its drop is decided or, when
    /// lost on the wire, from the moment it would have arrived.
    pub dropped: [u64; DropCause::COUNT],
}

impl Counters {
    /// Packets dropped for `cause`.
    #[must_use]
    pub const fn dropped_by(&self, cause: DropCause) -> u64 {
        self.dropped[cause.index()]
    }

    /// Packets dropped for any cause.
    #[must_use]
    pub fn dropped_total(&self) -> u64 {
        self.dropped.iter().sum()
    }

    pub(crate) fn count_drop(&mut self, cause: DropCause) {
        self.dropped[cause.index()] += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cause_has_its_own_place_and_name() {
        for (place, cause) in DropCause::ALL.into_iter().enumerate() {
            assert_eq!(cause.index(), place);
            assert_eq!(DropCause::ALL.iter().filter(|other| other.name() == cause.name()).count(), 1);
        }
    }
}
