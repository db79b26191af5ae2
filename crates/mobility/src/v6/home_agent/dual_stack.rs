//! IPv4 home addresses and care-of addresses at a home agent (RFC 5555 section 4.5).

use alloc::vec::Vec;
use core::net::{Ipv4Addr, Ipv6Addr};

use careof_wire::ipv6::is_unicast_routable;
use careof_wire::mip6::{
    BindingStatus, DSMIPV6_NAT_REFRESH_SECS, Ipv4AddressAcknowledgement, Ipv4AddressStatus, Ipv4HomeAddress,
    MobilityOption, NatDetection, UpdateFlags,
};

use super::HomeAgent;
use super::bindings::tunnel_to;
use super::registration::{Refusal, Request};
use crate::v6::dual_stack::{is_behind_nat, is_ipv4_care_of, is_unicast_ipv4};
use crate::v6::{DropReason, Tunnel};

/// IPv4 Home Address options of an update that are answered. A mobile node has use for two: one for an address, one for a prefix
/// (RFC 5555 section 3.1.1).
pub(super) const MAX_IPV4_HOMES: usize = 4;

/// Bits of the prefix of one address.
const HOST_PREFIX: u8 = 32;

impl HomeAgent {
    /// The home agent's IPv4 address.
    #[must_use]
    pub const fn ipv4_address(&self) -> Option<Ipv4Addr> {
        self.config.ipv4_address
    }

    /// The tunnel to a care-of address, registered or not.
    #[must_use]
    pub fn tunnel_to(&self, care_of: Ipv6Addr) -> Tunnel {
        tunnel_to(care_of, (self.config.address, self.config.ipv4_address))
    }

    /// The IPv4 home address of a mobile node that is served here, bound or not.
    #[must_use]
    pub fn ipv4_home_address(&self, home_address: Ipv6Addr) -> Option<Ipv4Addr> {
        self.nodes.get(&home_address)?.ipv4_home_address
    }

    /// The tunnels to the current care-of addresses of the mobile node with this IPv4 home address, the newest last; empty when it
    /// is not bound. Cheap enough for every packet.
    #[must_use]
    pub fn ipv4_tunnels(&self, ipv4_home_address: Ipv4Addr) -> &[Tunnel] {
        let Some(&home_address) = self.ipv4_homes.get(&ipv4_home_address) else { return &[] };
        let newest = self.bindings.of(home_address).last();
        if newest.is_some_and(|binding| binding.ipv4_home_address.is_some()) {
            self.bindings.tunnels(home_address)
        } else {
            &[]
        }
    }

    /// Whether a packet from `ipv4_home_address` may come through a tunnel that begins at `tunnel_source`, IPv4-mapped or not: as
    /// [`HomeAgent::accepts_reverse_tunnel`].
    #[must_use]
    pub fn accepts_ipv4_reverse_tunnel(&self, ipv4_home_address: Ipv4Addr, tunnel_source: Ipv6Addr) -> bool {
        let home_address = self.ipv4_homes.get(&ipv4_home_address);
        home_address.is_some_and(|home_address| self.accepts_reverse_tunnel(*home_address, tunnel_source))
    }

    /// Whether a packet in a tunnel through IPv4 with these ends is for this home agent.
    pub(super) fn is_ipv4_way(&self, (entry, exit): (Ipv4Addr, Ipv4Addr)) -> bool {
        self.config.ipv4_address == Some(exit) && is_unicast_ipv4(entry)
    }

    /// Whether packets tunnelled to `care_of` go to a node elsewhere. A tunnel to ourselves, or to a home address, whose packets
    /// are tunnelled in turn, would never end. A private address is somewhere only in the home agent's own private network.
    pub(super) fn can_be_care_of(&self, care_of: Ipv6Addr) -> bool {
        let Some(ipv4) = care_of.to_ipv4_mapped() else {
            let leads_back = care_of == self.config.address || self.nodes.contains_key(&care_of);
            // RFC 5380 section 6.1: a regional care-of address is not bound as one of a link.
            let is_regional = !self.role.is_home_agent() && self.prefixes.contains(care_of);
            return is_unicast_routable(care_of) && !leads_back && !is_regional;
        };
        let Some(own) = self.config.ipv4_address else { return false };
        let leads_back = ipv4 == own || self.ipv4_homes.contains_key(&ipv4);
        let is_elsewhere = is_behind_nat(ipv4) && !is_behind_nat(own);
        is_ipv4_care_of(care_of) && !leads_back && !is_elsewhere
    }

    /// Whether the care-of address is of the network that the update came through (section 4.2).
    pub(super) fn check_network(&self, request: &Request) -> Result<(), Refusal> {
        let invalid = Err((DropReason::PoorlyFormed, BindingStatus::InvalidCareOfAddress));
        match (request.outer_source(), request.care_of.to_ipv4_mapped()) {
            (None, None) => Ok(()),
            // Neither can be proved to be where the mobile node is.
            (None, Some(_)) | (Some(_), None) => invalid,
            (Some(outer), Some(care_of)) if outer == care_of => Ok(()),
            (Some(_), Some(_)) => Err((DropReason::NatOnPath, BindingStatus::AdministrativelyProhibited)),
        }
    }

    /// Whether the update asks for an encapsulation that there is.
    pub(super) fn check_encapsulation(request: &Request) -> Result<(), Refusal> {
        if request.has(UpdateFlags::FORCE_UDP_ENCAPSULATION) {
            return Err((DropReason::NotOffered, BindingStatus::AdministrativelyProhibited));
        }
        Ok(())
    }

    /// What becomes of an IPv4 home address that is asked for (section 3.2.1).
    fn answer_ipv4_home(
        &self,
        home_address: Ipv6Addr,
        asked: &Ipv4HomeAddress,
    ) -> Ipv4AddressAcknowledgement {
        let own = self.ipv4_home_address(home_address);
        let wanted = asked.address();
        // The home network's length is that of an address, and not of a prefix that belongs to the mobile node.
        let lengths = [HOST_PREFIX, self.config.ipv4_home_prefix_len];
        let status = if asked.prefix_requested() || !lengths.contains(&asked.prefix_len()) {
            Ipv4AddressStatus::PrefixAllocationUnauthorized
        } else if wanted.is_unspecified() {
            match own {
                Some(_) => Ipv4AddressStatus::Success,
                None => Ipv4AddressStatus::DynamicAssignmentNotAvailable,
            }
        } else if !is_unicast_ipv4(wanted) {
            Ipv4AddressStatus::InvalidAddress
        } else if own == Some(wanted) {
            Ipv4AddressStatus::Success
        } else {
            Ipv4AddressStatus::IncorrectHomeAddress
        };
        let address = own.filter(|_| status.is_success()).unwrap_or(wanted);
        Ipv4AddressAcknowledgement::new(status, address, self.config.ipv4_home_prefix_len)
            .unwrap_or_else(|| Ipv4AddressAcknowledgement::of_address(status, address))
    }

    /// The answers to all IPv4 home addresses that an update asks for.
    pub(super) fn ipv4_answers<'a>(
        &'a self,
        request: &'a Request,
    ) -> impl Iterator<Item = Ipv4AddressAcknowledgement> + 'a {
        request.ipv4_homes.iter().map(|asked| self.answer_ipv4_home(request.home_address, asked))
    }

    /// The IPv4 home address that an update binds.
    pub(super) fn ipv4_home_to_bind(&self, request: &Request) -> Option<Ipv4Addr> {
        let bound = self.ipv4_answers(request).find(|answer| answer.status().is_success());
        bound.map(|answer| answer.address())
    }
}

impl Request {
    /// Where the update came from, if that was through IPv4.
    pub(super) fn outer_source(&self) -> Option<Ipv4Addr> {
        self.addresses.ipv4_tunnel().map(|(entry, _)| entry)
    }

    /// What the acknowledgement of an update in UDP says of NATs (section 3.2.2).
    pub(super) fn nat_detection(&self) -> Option<MobilityOption> {
        self.addresses.udp_port?;
        let has_nat = self.outer_source() != self.care_of.to_ipv4_mapped();
        let refresh_time = if has_nat { DSMIPV6_NAT_REFRESH_SECS } else { NatDetection::NO_NAT };
        Some(MobilityOption::NatDetection(NatDetection { udp_encapsulation_required: false, refresh_time }))
    }
}

/// The IPv4 home addresses that are answered of those that an update asks for.
pub(super) fn asked_for<'a>(options: impl Iterator<Item = &'a Ipv4HomeAddress>) -> Vec<Ipv4HomeAddress> {
    options.take(MAX_IPV4_HOMES).copied().collect()
}
