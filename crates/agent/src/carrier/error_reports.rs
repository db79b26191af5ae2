//! ICMP errors about packets that a tunnel did not take (RFC 2003 sections 4 and 5).

use core::time::Duration;
use std::net::{Ipv4Addr, Ipv6Addr};

use careof_base::{Allowance, Instant, Used};
use careof_wire::icmp::{
    DestinationUnreachable, IcmpMessage, TimeExceeded, TimeExceededCode, UnreachableCode, error_is_allowed,
    quote,
};
use careof_wire::icmpv6::Icmpv6Message;
use careof_wire::ipv4::Ipv4Header;

/// An ICMP error to be sent, of IPv4 unless other types are given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ErrorReport<A = Ipv4Addr, M = IcmpMessage> {
    pub(super) source: A,
    pub(super) destination: A,
    pub(super) message: M,
}

/// An ICMP error about a segment, of the version of IP that the segment is of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SegmentReport {
    /// Over IPv4.
    V4(ErrorReport),
    /// Over IPv6.
    V6(ErrorReport<Ipv6Addr, Icmpv6Message>),
}

/// What is wrong with a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Problem {
    /// It is too long for the tunnel, and must not be fragmented; what fits is so many bytes.
    TooLong { mtu: u16 },
    /// The tunnel leads nowhere.
    Unreachable,
    /// Its time to live is used up.
    Expired,
}

/// What every node passes on whole (RFC 791 section 3.2), bytes.
const LEAST_MTU: u16 = 68;

/// The MTU that a sender is told: none below the least (RFC 1191 section 3), whatever somebody has made this agent
/// believe. 0 stays: it is not known.
pub(super) const fn tellable(mtu: u16) -> u16 {
    if 0 < mtu && mtu < LEAST_MTU { LEAST_MTU } else { mtu }
}

/// The error for the sender of `datagram`; `None` where none may be sent. `from` is the address to speak with.
pub(super) fn report(problem: Problem, from: Ipv4Addr, datagram: &[u8]) -> Option<ErrorReport> {
    let (header, payload) = Ipv4Header::parse(datagram).ok()?;
    if !error_is_allowed(&header, payload) {
        return None;
    }
    let unreachable = |code, next_hop_mtu| {
        let quoted = quote(datagram);
        IcmpMessage::DestinationUnreachable(DestinationUnreachable { code, next_hop_mtu, quoted })
    };
    let message = match problem {
        Problem::TooLong { mtu } => unreachable(UnreachableCode::FragmentationNeeded, tellable(mtu)),
        Problem::Unreachable => unreachable(UnreachableCode::Host, 0),
        Problem::Expired => {
            let quoted = quote(datagram);
            IcmpMessage::TimeExceeded(TimeExceeded { code: TimeExceededCode::InTransit, quoted })
        }
    };
    Some(ErrorReport { source: from, destination: header.source, message })
}

/// An allowance, and how much of it is used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ration {
    allowance: Allowance,
    used: Used,
}

impl Ration {
    pub(super) const fn new(at_once: u32, interval: Duration) -> Self {
        Self { allowance: Allowance::new(at_once, interval), used: Used::NOTHING }
    }

    /// Whether there is none left.
    pub(super) fn is_spent(&self, now: Instant) -> bool {
        self.used.and_one(now, self.allowance).is_none()
    }

    /// Whether one more may be; then it is taken.
    pub(super) fn allows(&mut self, now: Instant) -> bool {
        self.used.take(now, self.allowance)
    }
}

/// How many errors may be sent (RFC 1812 section 4.3.2.8): a hundred at once, and a thousand a second.
#[derive(Debug)]
pub(super) struct RateLimit {
    ration: Ration,
    /// Errors not sent.
    pub(super) suppressed: u64,
}

impl RateLimit {
    pub(super) const fn new() -> Self {
        Self { ration: Ration::new(100, Duration::from_millis(1)), suppressed: 0 }
    }

    /// Whether one more may be sent.
    pub(super) fn allows(&mut self, now: Instant) -> bool {
        let allowed = self.ration.allows(now);
        self.suppressed += u64::from(!allowed);
        allowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use careof_wire::icmp::QuotedDatagram;
    use careof_wire::protocol;

    const SENDER: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 7);
    const ENTRY: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);

    fn datagram(header: Ipv4Header) -> Vec<u8> {
        let mut bytes = Vec::new();
        let destination = Ipv4Addr::new(10, 0, 0, 7);
        Ipv4Header { source: SENDER, destination, payload_len: 100, ttl: 60, ..header }.emit(&mut bytes);
        bytes.resize(120, 1);
        bytes
    }

    #[test]
    fn the_sender_is_told_what_fits() {
        let bytes = datagram(Ipv4Header { protocol: protocol::TCP, ..Ipv4Header::default() });
        let told = report(Problem::TooLong { mtu: 1400 }, ENTRY, &bytes).unwrap();
        assert_eq!((told.source, told.destination), (ENTRY, SENDER));
        let IcmpMessage::DestinationUnreachable(message) = told.message else { panic!() };
        assert_eq!((message.code, message.next_hop_mtu), (UnreachableCode::FragmentationNeeded, 1400));
        assert_eq!(QuotedDatagram::parse(&message.quoted).unwrap().header.source, SENDER);
    }

    #[test]
    fn nobody_is_told_of_less_than_every_node_passes_on() {
        assert_eq!([0, 1, 67, 68, 1400].map(tellable), [0, 68, 68, 68, 1400]);
    }

    #[test]
    fn about_a_later_fragment_nobody_is_told() {
        let fragment = Ipv4Header { fragment_offset: 8, ..Ipv4Header::default() };
        assert_eq!(report(Problem::Unreachable, ENTRY, &datagram(fragment)), None);
        assert_eq!(report(Problem::Unreachable, ENTRY, b"no datagram"), None);
    }

    #[test]
    fn errors_are_rationed() {
        let mut limit = RateLimit::new();
        let at = Instant::from_secs(5);
        let allowed = (0..1000).filter(|_| limit.allows(at)).count();
        assert_eq!((allowed, limit.suppressed), (100, 900));
        let later = Instant::from_millis(5_010);
        assert_eq!((0..1000).filter(|_| limit.allows(later)).count(), 10);
    }
}
