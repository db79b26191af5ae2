//! How a client behaves.

use alloc::vec::Vec;
use core::time::Duration;

use careof_base::{Instant, RandomStream};
use careof_wire::dhcp::{HardwareAddress, LeaseTime};

use super::super::ConfigError;
use crate::v4::InterfaceId;

/// A DHCP client's configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientConfig {
    /// The interface that is to get an address.
    pub interface: InterfaceId,
    /// Its link-layer address.
    pub hardware: HardwareAddress,
    /// What servers know the client by, 2 to 255 bytes; `None` is its link-layer address.
    pub client_identifier: Option<Vec<u8>>,
    /// Before the first message.
    pub start_delay: StartDelay,
    /// When messages are sent again.
    pub retransmission: Retransmission,
    /// The lease to ask for; `None` leaves it to the server.
    pub lease_time: Option<LeaseTime>,
    /// Whether replies must be broadcast, because the host takes no unicast datagram before it has an address.
    pub broadcast: bool,
    /// Whether to look by ARP if somebody else uses the address; `None` is no check.
    pub conflict_check: Option<ConflictCheck>,
    /// From a DHCPDECLINE to the next start: 10 s at least (RFC 2131 section 3.1, step 5).
    pub after_decline: Duration,
}

impl ClientConfig {
    /// A client that does all that RFC 2131 and RFC 5227 say it should.
    #[must_use]
    pub fn new(interface: InterfaceId, hardware: HardwareAddress) -> Self {
        Self {
            interface,
            hardware,
            client_identifier: None,
            start_delay: StartDelay::RFC_2131,
            retransmission: Retransmission::RFC_2131,
            lease_time: None,
            broadcast: false,
            conflict_check: Some(ConflictCheck::RFC_5227),
            after_decline: Duration::from_secs(10),
        }
    }

    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let identifier = self.client_identifier.as_ref().map_or(2, Vec::len);
        if !(2..=255).contains(&identifier) {
            return Err(ConfigError::IdentifierLength(identifier));
        }
        let StartDelay { least, most } = self.start_delay;
        if least > most {
            return Err(ConfigError::Reversed { what: "the start delay", least, most });
        }
        let Retransmission { first, spread, requests, .. } = self.retransmission;
        if spread >= first {
            return Err(ConfigError::NoBackOff { first, spread });
        }
        if requests == 0 {
            return Err(ConfigError::NoRequests);
        }
        match self.conflict_check {
            Some(ConflictCheck { probes: 0, .. }) => Err(ConfigError::NoProbes),
            Some(ConflictCheck { least, most, .. }) if least > most => {
                Err(ConfigError::Reversed { what: "the time between probes", least, most })
            }
            _ => Ok(()),
        }
    }
}

/// A random time before the first message, so that hosts that woke together do not all ask together (RFC 2131 section 4.4.1).
///
/// The RFC's 1 to 10 s are for the start of a host. Clients of mobile hosts do not wait: for RFC 4436 the host acts on its
/// link's coming up, and RFC 4039 halves the messages for the same reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StartDelay {
    /// The shortest.
    pub least: Duration,
    /// The longest.
    pub most: Duration,
}

impl StartDelay {
    /// 1 to 10 s.
    pub const RFC_2131: Self = Self { least: Duration::from_secs(1), most: Duration::from_secs(10) };
    /// None.
    pub const NONE: Self = Self { least: Duration::ZERO, most: Duration::ZERO };

    pub(super) fn draw(self, random: &mut RandomStream) -> Duration {
        between(self.least, self.most, random)
    }
}

/// When a message without a reply is sent again (RFC 2131 section 4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retransmission {
    /// From the first message to the second; it doubles from there on.
    pub first: Duration,
    /// The longest interval.
    pub longest: Duration,
    /// Each interval varies uniformly by this to either side; shorter than `first`.
    pub spread: Duration,
    /// DHCPREQUESTs without a reply before the client starts again: with 4 that is a minute (RFC 2131 section 3.1, step 5).
    pub requests: u32,
}

impl Retransmission {
    /// 4, 8, 16, 32 and 64 s, each ± 1 s; 4 requests.
    pub const RFC_2131: Self = Self {
        first: Duration::from_secs(4),
        longest: Duration::from_secs(64),
        spread: Duration::from_secs(1),
        requests: 4,
    };

    /// How long to wait for a reply to the `sent`th message.
    pub(super) fn after(self, sent: u32, random: &mut RandomStream) -> Duration {
        let nominal = self.first.saturating_mul(1 << sent.saturating_sub(1).min(16)).min(self.longest);
        let nominal = nominal.max(self.first);
        nominal.saturating_sub(self.spread) + random.duration_up_to(self.spread * 2)
    }
}

/// A check by ARP if somebody uses the address already (RFC 5227 section 2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConflictCheck {
    /// How many probes are sent, at least 1: `PROBE_NUM`.
    pub probes: u32,
    /// The first waits a random time up to this: `PROBE_WAIT`.
    pub start: Duration,
    /// From one to the next, at least: `PROBE_MIN`.
    pub least: Duration,
    /// From one to the next, at most: `PROBE_MAX`.
    pub most: Duration,
    /// How long an answer to the last one may take: `ANNOUNCE_WAIT`.
    pub last: Duration,
    /// Whether the address is used meanwhile, instead of after the check.
    pub in_background: bool,
}

impl ConflictCheck {
    /// The constants of RFC 5227 section 1.1: 4 to 7 s in all.
    pub const RFC_5227: Self = Self {
        probes: 3,
        start: Duration::from_secs(1),
        least: Duration::from_secs(1),
        most: Duration::from_secs(2),
        last: Duration::from_secs(2),
        in_background: false,
    };

    /// When to send the probe after `sent`, or with all of them sent, when the check is over.
    pub(super) fn next(&self, now: Instant, sent: u32, random: &mut RandomStream) -> Instant {
        now + match sent {
            0 => random.duration_up_to(self.start),
            sent if sent >= self.probes => self.last,
            _ => between(self.least, self.most, random),
        }
    }
}

fn between(least: Duration, most: Duration, random: &mut RandomStream) -> Duration {
    least + random.duration_up_to(most.saturating_sub(least))
}
