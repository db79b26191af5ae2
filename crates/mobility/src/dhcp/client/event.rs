//! What a client is in, is told, and tells.

use core::fmt;
use core::net::Ipv4Addr;
use core::time::Duration;

use careof_wire::dhcp::HardwareAddress;

use super::super::DropReason;
use super::Lease;

/// The states of a client (RFC 2131 figure 5), and one between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// Without an address, and about to look for one as soon as there is a link.
    Init,
    /// A DHCPDISCOVER is out.
    Selecting,
    /// A server's offer is asked for.
    Requesting,
    /// The server has granted the address, and the client looks whether it is free; figure 5 has this on the way from
    /// REQUESTING and REBOOTING to BOUND.
    Checking,
    /// The address is the client's.
    Bound,
    /// T1 has passed: the server is asked for more time.
    Renewing,
    /// T2 has passed: any server is asked for more time.
    Rebinding,
    /// Without a link, but with an address that may still be good.
    InitReboot,
    /// That address is asked for.
    Rebooting,
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Init => "INIT",
            Self::Selecting => "SELECTING",
            Self::Requesting => "REQUESTING",
            Self::Checking => "CHECKING",
            Self::Bound => "BOUND",
            Self::Renewing => "RENEWING",
            Self::Rebinding => "REBINDING",
            Self::InitReboot => "INIT-REBOOT",
            Self::Rebooting => "REBOOTING",
        })
    }
}

/// An ARP packet that was seen on the link, request or reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArpPacket {
    /// Its sender hardware address.
    pub sender_hardware: HardwareAddress,
    /// Its sender protocol address; unspecified in a probe.
    pub sender: Ipv4Addr,
    /// Its target protocol address.
    pub target: Ipv4Addr,
}

/// Something happened that the owner may act on or write down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientEvent {
    /// The client went to another state.
    State(State),
    /// The address can be used from now on.
    Bound {
        /// What was granted.
        lease: Lease,
        /// Time since the link came up, or since the address before it was lost.
        took: Duration,
    },
    /// The lease was renewed.
    Renewed {
        /// What was granted.
        lease: Lease,
    },
    /// The address must not be used any longer.
    Lost {
        /// Which.
        address: Ipv4Addr,
        /// Why.
        cause: LossCause,
    },
    /// The owner is to send an ARP probe for `address`: a request with an unspecified sender (RFC 5227 section 2.1.1).
    ArpProbe {
        /// Which.
        address: Ipv4Addr,
    },
    /// The owner is to announce by ARP that `address` is the client's (RFC 5227 section 2.3).
    ArpAnnouncement {
        /// Which.
        address: Ipv4Addr,
    },
    /// Somebody else uses the address that was granted: the server has been told.
    Conflict {
        /// Which.
        address: Ipv4Addr,
        /// Who.
        other: HardwareAddress,
    },
    /// A message had no effect.
    Dropped {
        /// Why.
        reason: DropReason,
        /// Its IP source.
        source: Ipv4Addr,
    },
}

/// Why an address must not be used any longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LossCause {
    /// The lease has ended.
    Expired,
    /// A server said that it is not the client's.
    Nak,
    /// Somebody else uses it.
    Conflict,
    /// The link went down; the address is asked for again when it is back.
    LinkDown,
    /// The owner gave it back.
    Released,
}

impl LossCause {
    /// The name in traces.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Expired => "expired",
            Self::Nak => "nak",
            Self::Conflict => "conflict",
            Self::LinkDown => "link-down",
            Self::Released => "released",
        }
    }
}
