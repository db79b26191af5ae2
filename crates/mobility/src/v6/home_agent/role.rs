//! As what a node keeps bindings: as a home agent, or as a mobility anchor point, which is a local one (RFC 5380 section 6.2).

use alloc::vec::Vec;
use core::net::Ipv6Addr;

use careof_wire::mip6::{BindingStatus, Lifetime, UpdateFlags};

use super::registration::{Refusal, Request};
use crate::v6::{DropReason, Prefix};

/// What a node keeps bindings of.
#[derive(Clone, Debug)]
pub(in crate::v6) enum Role {
    /// Home addresses (RFC 6275).
    HomeAgent,
    /// Regional care-of addresses (RFC 5380).
    AnchorPoint(OnLinkAddresses),
}

/// The on-link care-of addresses that a mobility anchor point binds.
#[derive(Clone, Debug, Default)]
pub(in crate::v6) struct OnLinkAddresses {
    /// The prefixes of the links in its domain; empty: any address is of its domain.
    pub(in crate::v6) domain: Vec<Prefix>,
    /// Those of links in other domains, to which it sends on the packets of mobile nodes that have left.
    pub(in crate::v6) neighbors: Vec<Prefix>,
    /// For how long it does so.
    pub(in crate::v6) forwarding: Lifetime,
}

impl OnLinkAddresses {
    /// Whether `address` is of a link outside the domain, by what is configured.
    fn is_outside(&self, address: Ipv6Addr) -> bool {
        !self.domain.is_empty() && !self.domain.iter().any(|prefix| prefix.contains(address))
    }
}

impl Role {
    /// Whether an update with these flags asks for a binding of this node's kind. A Binding Update to a mobility anchor point has M and
    /// not H (RFC 5380 section 4); to a home agent M means nothing (section 6.3).
    pub(super) fn is_addressed(&self, flags: UpdateFlags) -> bool {
        let is_home = flags.contains(UpdateFlags::HOME_REGISTRATION);
        match self {
            Self::HomeAgent => is_home,
            Self::AnchorPoint(_) => flags.contains(UpdateFlags::MAP_REGISTRATION) && !is_home,
        }
    }

    pub(super) const fn is_home_agent(&self) -> bool {
        matches!(self, Self::HomeAgent)
    }

    /// Whether the care-of address may be bound (RFC 5380 sections 6.1, 6.2 and 8). `is_known`: the mobile node has a binding here.
    pub(super) fn check_care_of(&self, request: &Request, is_known: bool) -> Result<(), Refusal> {
        let Self::AnchorPoint(rules) = self else { return Ok(()) };
        let care_of = request.care_of;
        // The mobile node has proved that it can send from there, as far as its network filters.
        if request.addresses.source != care_of {
            return Err((DropReason::PoorlyFormed, BindingStatus::InvalidCareOfAddress));
        }
        let forwards = is_known && rules.neighbors.iter().any(|prefix| prefix.contains(care_of));
        if rules.is_outside(care_of) && !forwards {
            return Err((DropReason::NotOffered, BindingStatus::AdministrativelyProhibited));
        }
        Ok(())
    }

    /// The longest lifetime of a binding of `care_of`, of those up to `longest`.
    pub(super) fn longest(&self, care_of: Ipv6Addr, longest: Lifetime) -> Lifetime {
        match self {
            Self::AnchorPoint(rules) if rules.is_outside(care_of) => longest.min(rules.forwarding),
            _ => longest,
        }
    }
}
