//! Which requests a foreign agent relays (RFC 5944 section 3.7.2.1, RFC 3024 section 4.2).

use alloc::vec::Vec;
use core::net::Ipv4Addr;

use careof_wire::mip4::{
    AuthenticationKind, Extension, Lifetime, Message, RegistrationRequest, ReplyCode, RequestFlags,
};

use super::{Claim, ForeignAgent, Origin, Room};
use crate::v4::authentication::{self, Found};
use crate::v4::unicast::is_unicast;
use crate::v4::{DropReason, Prefix, ReverseTunnel};

/// Why a request is not relayed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Refusal {
    pub(super) reason: DropReason,
    pub(super) code: ReplyCode,
    /// The lifetime for the reply, where it is not the one requested.
    pub(super) lifetime: Option<Lifetime>,
}

impl Refusal {
    const fn new(reason: DropReason, code: ReplyCode) -> Self {
        Self { reason, code, lifetime: None }
    }

    const fn poorly_formed() -> Self {
        Self::new(DropReason::PoorlyFormed, ReplyCode::ForeignPoorlyFormedRequest)
    }

    const fn not_offered(code: ReplyCode) -> Self {
        Self::new(DropReason::NotOffered, code)
    }
}

/// What is found out about a request on the way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Admitted {
    /// Where the part that belongs to the home agent ends: behind the mobile-home authentication extension.
    pub(super) end: usize,
    /// The mobile node asks for the encapsulating delivery style.
    pub(super) encapsulating_delivery: bool,
}

impl ForeignAgent {
    pub(super) fn admit(
        &self,
        origin: Origin,
        bytes: &[u8],
        message: &Message,
        request: &RegistrationRequest,
    ) -> Result<Admitted, Refusal> {
        let admitted = self.check_form(message, request)?;
        self.check_mobile_node(bytes, message, request, admitted.end)?;
        self.check_home_agent(request)?;
        if !self.admits(request) {
            return Err(prohibited());
        }
        // A deregistration takes nothing from us; it is relayed whatever it says (section 3.7).
        if !request.lifetime.is_zero() {
            self.check_claim(request)?;
            self.check_wishes(origin.ttl, request, admitted.encapsulating_delivery)?;
            // A home agent with a key has still to say that he is its.
            let claim = self.claim(request.home_address, request.home_agent, origin.station);
            check_room(self.visitors.room_for(&claim, &self.shares()))?;
        }
        let is_proven = self.mobile_nodes.contains_key(&request.home_address);
        let claim =
            Claim { is_proven, ..self.claim(request.home_address, request.home_agent, origin.station) };
        check_room(self.pending.room_for(&claim))?;
        Ok(admitted)
    }

    fn check_form(&self, message: &Message, request: &RegistrationRequest) -> Result<Admitted, Refusal> {
        let reserved = RequestFlags::RESERVED_R.with(RequestFlags::RESERVED_X);
        if request.flags.without(reserved) != request.flags || !is_unicast(request.home_address) {
            return Err(Refusal::poorly_formed());
        }
        let Found::One(place) = authentication::find(message, AuthenticationKind::MobileHome) else {
            return Err(Refusal::poorly_formed());
        };
        let mut encapsulating_delivery = false;
        for placed in message.placed_extensions() {
            if matches!(placed.extension, Extension::EncapsulatingDeliveryStyle) {
                // For us, so behind what is for the home agent; and only with T (RFC 3024 section 3.3).
                let reverse = request.flags.contains(RequestFlags::REVERSE_TUNNELING);
                if placed.offset < place.end || !reverse || encapsulating_delivery {
                    return Err(Refusal::poorly_formed());
                }
                encapsulating_delivery = true;
            }
        }
        Ok(Admitted { end: place.end, encapsulating_delivery })
    }

    fn check_mobile_node(
        &self,
        bytes: &[u8],
        message: &Message,
        request: &RegistrationRequest,
        end: usize,
    ) -> Result<(), Refusal> {
        let Some(association) = self.mobile_nodes.get(&request.home_address) else { return Ok(()) };
        let kind = AuthenticationKind::MobileForeign;
        match authentication::check(bytes, message, kind, core::iter::once(association)) {
            Ok((_, place)) if place.offset >= end => Ok(()),
            Ok(_) => Err(DropReason::MissingAuthenticator),
            Err(reason) => Err(reason),
        }
        .map_err(|reason| Refusal::new(reason, ReplyCode::ForeignMobileNodeFailedAuthentication))
    }

    /// The home agent's address may be a directed broadcast, by which a mobile node looks for one, but not
    /// one that leads nowhere or back to this host (section 3.7.2).
    fn check_home_agent(&self, request: &RegistrationRequest) -> Result<(), Refusal> {
        let address = request.home_agent;
        if is_unicast(address) && !self.is_own(address) && !self.surroundings.is_own(address) {
            return Ok(());
        }
        Err(Refusal::new(DropReason::PoorlyFormed, ReplyCode::ForeignInvalidHomeAgentAddress))
    }

    fn admits(&self, request: &RegistrationRequest) -> bool {
        let lists = |list: &Option<Vec<Prefix>>, address| {
            list.as_ref().is_none_or(|prefixes| prefixes.iter().any(|prefix| prefix.contains(address)))
        };
        lists(&self.config.admitted, request.home_address)
            && (self.home_agents.contains_key(&request.home_agent)
                || lists(&self.config.admitted_home_agents, request.home_agent))
    }

    /// Whether somebody may claim this home address: neither an address that packets of this host's own need, nor that of a
    /// visitor of another home agent. The home agent that the request names is no proof, for it may be the claimant's own host.
    fn check_claim(&self, request: &RegistrationRequest) -> Result<(), Refusal> {
        let home_address = request.home_address;
        let is_agents = self.is_own(home_address)
            || self.surroundings.is_own(home_address)
            || self.is_home_agent(home_address, request);
        let is_near = self.surroundings.is_near(home_address);
        if is_agents
            || (is_near && self.config.admitted.is_none())
            || self.takes_over(home_address, request.home_agent)
        {
            return Err(prohibited());
        }
        Ok(())
    }

    /// Whether the address is that of a home agent: of one that is known here, of a visitor's, or of this request's own.
    fn is_home_agent(&self, address: Ipv4Addr, request: &RegistrationRequest) -> bool {
        let listed = self.config.admitted_home_agents.iter().flatten();
        address == request.home_agent
            || self.home_agents.contains_key(&address)
            || listed.into_iter().any(|prefix| *prefix == Prefix::host(address))
            || self.visitors.is_home_agent(address)
    }

    /// Whether a registration by this home agent would replace or remove a visitor of another one without a proof: the mobile node's
    /// own (section 3.7.2.1), or that of the home agent, by which its replies are checked (section 3.7.3.1).
    pub(super) fn takes_over(&self, home_address: Ipv4Addr, home_agent: Ipv4Addr) -> bool {
        let is_proved =
            self.mobile_nodes.contains_key(&home_address) || self.home_agents.contains_key(&home_agent);
        let present = self.visitors.get(home_address);
        !is_proved && present.is_some_and(|visitor| visitor.home_agent != home_agent)
    }

    fn check_wishes(
        &self,
        ttl: u8,
        request: &RegistrationRequest,
        encapsulating_delivery: bool,
    ) -> Result<(), Refusal> {
        if request.lifetime > self.config.max_lifetime {
            let too_long = Refusal::not_offered(ReplyCode::ForeignRequestedLifetimeTooLong);
            return Err(Refusal { lifetime: Some(self.config.max_lifetime), ..too_long });
        }
        let wants = |flag| request.flags.contains(flag);
        if wants(RequestFlags::DECAPSULATION_BY_MOBILE_NODE) {
            // Its tunnels do not end here.
            return Ok(());
        }
        if !self.config.care_of_addresses.contains(&request.care_of_address) {
            return Err(Refusal::new(DropReason::PoorlyFormed, ReplyCode::ForeignInvalidCareOfAddress));
        }
        let lacks_minimal = wants(RequestFlags::MINIMAL_ENCAPSULATION) && !self.config.minimal_encapsulation;
        let lacks_gre = wants(RequestFlags::GRE) && !self.config.gre;
        // Whichever of the two the home agent chose, it must end here.
        if lacks_minimal || lacks_gre {
            return Err(Refusal::not_offered(ReplyCode::ForeignEncapsulationUnavailable));
        }
        match (self.config.reverse_tunnel, wants(RequestFlags::REVERSE_TUNNELING)) {
            (ReverseTunnel::Unavailable, true) => {
                Err(Refusal::not_offered(ReplyCode::ForeignReverseTunnelUnavailable))
            }
            (ReverseTunnel::Required, false) => {
                Err(Refusal::not_offered(ReplyCode::ForeignReverseTunnelMandatory))
            }
            // Only from this link, lest somebody far away has us tunnel for them (RFC 3024 section 4.2).
            (_, true) if ttl != 255 => {
                Err(Refusal::new(DropReason::WrongTtl, ReplyCode::ForeignMobileNodeTooDistant))
            }
            (_, true) if encapsulating_delivery && !self.config.encapsulating_delivery => {
                Err(Refusal::not_offered(ReplyCode::ForeignDeliveryStyleNotSupported))
            }
            _ => Ok(()),
        }
    }
}

const fn prohibited() -> Refusal {
    Refusal::not_offered(ReplyCode::ForeignAdministrativelyProhibited)
}

const fn check_room(room: Room) -> Result<(), Refusal> {
    let reason = match room {
        Room::Free | Room::InsteadOf(_) => return Ok(()),
        Room::None => DropReason::TableFull,
        Room::OverShare => DropReason::OverShare,
    };
    Err(Refusal::new(reason, ReplyCode::ForeignInsufficientResources))
}
