//! What a [`FastHandover`](super::FastHandover) is configured with, and what it tells.

use core::net::Ipv6Addr;
use core::time::Duration;

use careof_wire::icmpv6::{LinkLayerAddress, NaackStatus};
use careof_wire::mip6::{FastBindingStatus, Lifetime};

use crate::v6::{DropReason, Prefix, SecurityAssociation};
use crate::{ConfigError, InterfaceId, WallClock};

/// The configuration of a [`super::FastHandover`] (RFC 5568 section 9).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FastHandoverConfig {
    /// The node's station, the same on all its links.
    pub link_layer_address: LinkLayerAddress,
    /// How often an RtSolPr is sent again (RTSOLPR_RETRIES).
    pub solicitation_retries: u32,
    /// How often a Fast Binding Update is sent again on a link (FBU_RETRIES).
    pub update_retries: u32,
    /// The first wait for a Proxy Router Advertisement, doubled each time (section 6.1.1: twice the round trip time, or 100 ms).
    pub solicitation_timeout: Duration,
    /// The first wait for a Fast Binding Acknowledgment, doubled each time; a Handover Initiate and its answer have to fit in.
    pub update_timeout: Duration,
    /// The lifetime of the tunnel that is asked for: "of the order of tens of seconds" (section 5.6).
    pub lifetime: Lifetime,
    /// The node's time of day.
    pub clock: WallClock,
}

impl FastHandoverConfig {
    /// RFC 5568's constants; 400 ms for an acknowledgment, and tunnels of 20 s.
    #[must_use]
    pub fn new(link_layer_address: LinkLayerAddress) -> Self {
        Self {
            link_layer_address,
            solicitation_retries: 3,
            update_retries: 3,
            solicitation_timeout: Duration::from_millis(100),
            update_timeout: Duration::from_millis(400),
            lifetime: Lifetime::from_units(5),
            clock: WallClock::default(),
        }
    }

    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let in_range = |what, found: u64, low, high| {
            let fits = (low..=high).contains(&found);
            if fits { Ok(()) } else { Err(ConfigError::OutOfRange { what, found, low, high }) }
        };
        let millis = |time: Duration| time.as_millis().try_into().unwrap_or(u64::MAX);
        let (solicitation, update) = (millis(self.solicitation_timeout), millis(self.update_timeout));
        in_range("the wait for a Proxy Router Advertisement in milliseconds", solicitation, 1, 60_000)?;
        in_range("the wait for a Fast Binding Acknowledgment in milliseconds", update, 1, 60_000)?;
        in_range("the number of RtSolPr", self.solicitation_retries.into(), 0, 16)?;
        in_range("the number of Fast Binding Updates", self.update_retries.into(), 0, 16)?;
        let lifetime = self.lifetime.as_units().into();
        in_range("the lifetime of the tunnel in units of 4 s", lifetime, 1, u16::MAX.into())
    }
}

/// The access router that the node is attached to, and what they have in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CurrentRouter {
    /// The interface to its link.
    pub interface: InterfaceId,
    /// Its global address, at which tunnels begin.
    pub address: Ipv6Addr,
    /// Its link-local address.
    pub link_local: Ipv6Addr,
    /// The node's care-of address on its link: the previous one of a handover.
    pub care_of: Ipv6Addr,
    /// Their key (RFC 5269, or by configuration).
    pub security: SecurityAssociation,
}

/// What an access router has told of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RouterInfo {
    /// Its global address.
    pub address: Ipv6Addr,
    /// Its station, where it was told.
    pub link_layer_address: Option<LinkLayerAddress>,
    /// The prefix of its link.
    pub prefix: Prefix,
}

/// What is known of an access point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AccessPoint {
    /// Behind it is another access router.
    Router(RouterInfo),
    /// It is of the same link: no care-of address changes.
    SameLink,
    /// The current router knows nothing of it: the Fast Binding Update is to be sent from the new link.
    Unknown,
    /// Its router does no fast handovers.
    NoFastHandover,
}

/// Why there is no fast handover, or no longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Failure {
    /// The current router has not answered: it does no fast handovers (section 5.1).
    NoAdvertisement,
    /// The previous router has not acknowledged.
    NoAcknowledgment,
    /// It has refused.
    Refused(FastBindingStatus),
    /// The new router does not accept the address, and gives no other: the node forms one (NAACK status 1, 3 or 128). With
    /// [`super::FastHandover::configured`] it goes on.
    AddressRefused(NaackStatus),
}

/// Something happened that the owner may act on or write down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The current router has told of an access point.
    Learned {
        /// Which.
        access_point: LinkLayerAddress,
        /// What.
        known: AccessPoint,
    },
    /// The network wants the node to go to this access point at once (section 3.3). The update has been sent.
    Triggered {
        /// Which.
        access_point: LinkLayerAddress,
    },
    /// A Fast Binding Update was sent; `attempt` counts from 1 on each link.
    UpdateSent {
        /// The new care-of address.
        new: Ipv6Addr,
        /// Which try this is.
        attempt: u32,
    },
    /// The previous router sends packets on. If the node is on its link still, it may go now.
    Prepared {
        /// The new care-of address; the previous one where the node keeps it.
        new: Ipv6Addr,
    },
    /// The node has announced itself on the new link: this is its address there.
    Attached {
        /// The interface.
        interface: InterfaceId,
        /// The new care-of address.
        new: Ipv6Addr,
        /// The new router.
        router: RouterInfo,
    },
    /// The new router wants it to use another address: the one in [`Event::Attached`] is none of the node's.
    AddressReplaced {
        /// The address not to be used.
        old: Ipv6Addr,
        /// The one to use; the previous care-of address where the node keeps that.
        new: Ipv6Addr,
    },
    /// The previous router has ended the tunnel: the node is back.
    Returned,
    /// The tunnel from the previous router has ended with its lifetime.
    TunnelEnded,
    /// There is no fast handover, and the node registers as ever.
    Failed(Failure),
    /// A message had no effect.
    Dropped {
        /// Why.
        reason: DropReason,
        /// The source address of its IPv6 header.
        source: Ipv6Addr,
    },
}

/// Why it wants to be woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Wake {
    /// An RtSolPr is due.
    SolicitationDue,
    /// A Fast Binding Update is due.
    UpdateDue,
    /// The lifetime of the tunnel ends.
    TunnelLifetime,
}
