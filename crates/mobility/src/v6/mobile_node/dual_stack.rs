//! The mobile node's IPv4 home address, and the way to its home agent through IPv4 (RFC 5555 section 4.4).

use core::net::{Ipv4Addr, Ipv6Addr};

use careof_wire::mip6::{
    BindingAcknowledgement, DSMIPV6_PORT, Ipv4AddressAcknowledgement, Ipv4HomeAddress, MobilityOption,
};

use super::MobileNode;
use super::attachment::Attachment;
use super::registration::{Pending, Purpose};
use crate::InterfaceId;
use crate::v6::{Addresses, Event, Ipv4HomeOutcome, Tunnel};

/// Updates by an IPv6 care-of address without an answer, after which an IPv4 one is tried where there is one (RFC 5555 section 4.4.1).
pub(super) const SILENT_UPDATES: u32 = 3;

/// Bits of the prefix of one address.
const HOST_PREFIX: u8 = 32;

/// How to send a packet from the IPv4 home address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipv4Delivery {
    /// The interface.
    pub interface: InterfaceId,
    /// The tunnel to the home agent, through IPv6 or IPv4.
    pub tunnel: Tunnel,
    /// The router of IPv6 on that link; `None`: the tunnel's exit is on the link, no router is known, or the tunnel is through IPv4.
    pub via: Option<Ipv6Addr>,
}

/// What the node knows of its IPv4 home address.
#[derive(Debug, Default)]
pub(super) struct Ipv4Home {
    /// What the home agent has said last.
    outcome: Option<Ipv4HomeOutcome>,
    /// The home agent that knows no IPv4 home addresses.
    unaware: Option<Ipv6Addr>,
}

impl MobileNode {
    /// The IPv4 home address, as long as the home agent keeps a binding of it.
    #[must_use]
    pub fn ipv4_home_address(&self) -> Option<Ipv4Addr> {
        match self.ipv4_home.outcome {
            Some(Ipv4HomeOutcome::Bound { address, .. }) => Some(address),
            _ => None,
        }
    }

    /// What the home agent has last made of the IPv4 home address; `None`: it has not been asked.
    #[must_use]
    pub const fn ipv4_home_outcome(&self) -> Option<Ipv4HomeOutcome> {
        self.ipv4_home.outcome
    }

    /// How to send a packet from the IPv4 home address now; `None`: there is no way. At home there is none by the home agent. Cheap
    /// enough for every packet.
    #[must_use]
    pub fn ipv4_delivery(&self) -> Option<Ipv4Delivery> {
        self.ipv4_home_address()?;
        let active = self.active?;
        let interface = self.interfaces.get(active).filter(|interface| interface.up)?;
        let current = self.attachment(self.outbox.now(), active);
        let held = interface.held.filter(|held| Some(held.attachment) == current)?;
        let Attachment::Away { care_of } = held.attachment else { return None };
        let tunnel = self.tunnel_from(care_of, held.home_agent)?;
        let via = if care_of.to_ipv4_mapped().is_some() { None } else { interface.router(care_of) };
        Some(Ipv4Delivery { interface: interface.config.id, tunnel, via })
    }

    /// The tunnel from a care-of address to the home agent.
    pub(super) fn tunnel_from(&self, care_of: Ipv6Addr, home_agent: Ipv6Addr) -> Option<Tunnel> {
        match care_of.to_ipv4_mapped() {
            None => Some(Tunnel { entry: care_of, exit: home_agent }),
            Some(care_of) => Some(Tunnel::through_ipv4(care_of, self.config.home_agent_ipv4?)),
        }
    }

    /// Whether an address of an interface can be a care-of address here: of IPv4 only with a home agent to reach by it, and none that is
    /// tunnelled to.
    pub(super) fn has_use_for(&self, address: Ipv6Addr) -> bool {
        let Some(ipv4) = address.to_ipv4_mapped() else { return true };
        let known = [self.config.home_agent_ipv4, self.config.ipv4_home_address, self.ipv4_home_address()];
        self.config.home_agent_ipv4.is_some() && !known.contains(&Some(ipv4))
    }

    /// How an update by `care_of` travels.
    pub(super) fn way_away(&self, care_of: Ipv6Addr, home_agent: Ipv6Addr) -> Addresses {
        let home_address = self.config.home_address;
        match (care_of.to_ipv4_mapped(), self.config.home_agent_ipv4) {
            // Sections 4.2 and 4.4.2: the home address is the source, and UDP lets the home agent look for a NAT.
            (Some(care_of), Some(ipv4)) => Addresses::new(home_address, home_agent)
                .through(Tunnel::through_ipv4(care_of, ipv4))
                .in_udp(DSMIPV6_PORT),
            _ => Addresses::new(care_of, home_agent).with_home_address(home_address),
        }
    }

    /// Whether an acknowledgement has come back by the way of an update by `care_of`.
    pub(super) fn is_way_back(&self, care_of: Ipv6Addr, addresses: &Addresses) -> bool {
        let home_address = self.config.home_address;
        match (care_of.to_ipv4_mapped(), self.config.home_agent_ipv4) {
            (Some(care_of), Some(ipv4)) => {
                addresses.tunnel == Some(Tunnel::through_ipv4(ipv4, care_of))
                    && addresses.real_destination() == home_address
            }
            _ => addresses.type_2_routing == Some(home_address),
        }
    }

    /// The option that asks for the IPv4 home address, in an update to `home_agent`.
    pub(super) fn ipv4_home_option(&self, home_agent: Ipv6Addr, pending: &Pending) -> Option<MobilityOption> {
        let is_away = matches!(pending.attachment, Attachment::Away { .. });
        if pending.purpose != Purpose::Register || !is_away || self.ipv4_home.unaware == Some(home_agent) {
            return None;
        }
        let configured = self.config.ipv4_home_address?;
        let address = self.ipv4_home_address().unwrap_or(configured);
        // The home network is not the node's own, whatever its length (section 3.1.1).
        Ipv4HomeAddress::new(address, HOST_PREFIX, false).map(MobilityOption::Ipv4HomeAddress)
    }

    /// Takes in what an accepting acknowledgement says of the IPv4 home address that its update asked for.
    pub(super) fn take_ipv4_answer(&mut self, pending: &Pending, acknowledgement: &BindingAcknowledgement) {
        let (true, Attachment::Away { .. }) = (pending.asks_ipv4_home, pending.attachment) else { return };
        let mut answers = acknowledgement.options.ipv4_address_acknowledgements();
        let configured = self.config.ipv4_home_address.unwrap_or(Ipv4Addr::UNSPECIFIED);
        let outcome = match answers.next() {
            None => {
                self.ipv4_home.unaware = pending.peer;
                Ipv4HomeOutcome::NotSupported
            }
            Some(answer) => outcome_of(answer, configured),
        };
        self.set_ipv4_outcome(Some(outcome));
    }

    /// Nothing is bound any more.
    pub(super) fn forget_ipv4_home(&mut self) {
        self.ipv4_home.outcome = None;
    }

    fn set_ipv4_outcome(&mut self, outcome: Option<Ipv4HomeOutcome>) {
        if self.ipv4_home.outcome == outcome {
            return;
        }
        self.ipv4_home.outcome = outcome;
        if let Some(outcome) = outcome {
            self.outbox.event(Event::Ipv4HomeAddress { outcome });
        }
    }
}

/// What an answer means; one for another address than was asked for is none.
fn outcome_of(answer: &Ipv4AddressAcknowledgement, asked: Ipv4Addr) -> Ipv4HomeOutcome {
    use careof_wire::mip6::Ipv4AddressStatus;
    let (status, address) = (answer.status(), answer.address());
    if !status.is_success() {
        return Ipv4HomeOutcome::Refused { status };
    }
    let is_asked = asked.is_unspecified() || asked == address;
    if !is_asked || !crate::v6::dual_stack::is_unicast_ipv4(address) {
        return Ipv4HomeOutcome::Refused { status: Ipv4AddressStatus::InvalidAddress };
    }
    // A length of zero is none.
    let prefix_len = if answer.prefix_len() == 0 { HOST_PREFIX } else { answer.prefix_len() };
    Ipv4HomeOutcome::Bound { address, prefix_len }
}
