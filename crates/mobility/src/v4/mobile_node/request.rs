//! Requests: what they ask for, and how they are sent (RFC 5944 section 3.6.1).

use alloc::vec::Vec;
use core::net::Ipv4Addr;

use careof_base::Instant;
use careof_wire::mip4::{
    AuthenticationKind, Extension, Lifetime, Message, RegistrationRequest, RequestFlags,
};

use super::MobileNode;
use super::attachment::{Attachment, Interface};
use super::registration::{Pending, Purpose};
use crate::v4::authentication;
use crate::v4::io::{DEFAULT_TTL, REGISTRATION_PORT};
use crate::v4::movement_detection::Advertised;
use crate::v4::{EncapsulationChoice, Transmit, TransmitPayload};

/// What a request asks for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wishes {
    pub(super) flags: RequestFlags,
    pub(super) care_of: Ipv4Addr,
    pub(super) lifetime: Lifetime,
    pub(super) encapsulating_delivery: bool,
}

impl MobileNode {
    /// Writes a request anew, with a new Identification.
    pub(super) fn compose(&mut self, now: Instant, carrier: usize, pending: &mut Pending) {
        let Some(interface) = self.interfaces.get(carrier) else { return };
        let wishes = self.wishes(interface, pending);
        // Asking the whole home network finds a home agent that is not known (section 3.6.1.2).
        let everybody = self.config.home_network.directed_broadcast().unwrap_or(Ipv4Addr::BROADCAST);
        let home_agent = self.home_agent.unwrap_or(everybody);
        let agent = pending.attachment.agent();
        let identification = self.identifications.next(now, self.config.clock, &mut self.random);
        let request = RegistrationRequest {
            flags: wishes.flags,
            lifetime: wishes.lifetime,
            home_address: self.config.home_address,
            home_agent,
            care_of_address: wishes.care_of,
            identification,
            extensions: Vec::new(),
        };
        let mut bytes = Message::Request(request).emit();
        authentication::append(&mut bytes, AuthenticationKind::MobileHome, &self.config.security);
        if wishes.encapsulating_delivery {
            Extension::EncapsulatingDeliveryStyle.emit(&mut bytes);
        }
        if let Some(association) = agent.and_then(|agent| self.foreign_agents.get(&agent)) {
            authentication::append(&mut bytes, AuthenticationKind::MobileForeign, association);
        }
        pending.compose(wishes, agent.unwrap_or(home_agent), identification, bytes);
    }

    fn wishes(&self, interface: &Interface, pending: &Pending) -> Wishes {
        let attachment = pending.attachment;
        let mut wishes = match (pending.purpose, attachment.care_of()) {
            (Purpose::Register, Some(care_of)) => self.wishes_abroad(interface, attachment, care_of),
            // The end of all bindings is asked for with the home address as care-of address.
            (purpose, _) => Wishes {
                flags: RequestFlags::default(),
                care_of: match purpose {
                    Purpose::Release { care_of } => care_of,
                    Purpose::Register | Purpose::Farewell => self.config.home_address,
                },
                lifetime: Lifetime::ZERO,
                encapsulating_delivery: false,
            },
        };
        if matches!(attachment, Attachment::CoLocated { .. }) {
            wishes.flags = wishes.flags.with(RequestFlags::DECAPSULATION_BY_MOBILE_NODE);
        }
        wishes
    }

    /// What is asked for with a care-of address, given what agents have said and denied so far.
    fn wishes_abroad(&self, interface: &Interface, attachment: Attachment, care_of: Ipv4Addr) -> Wishes {
        let repairs = interface.repairs;
        let agent = attachment.agent().and_then(|agent| interface.agents.get(agent));
        let advertised = agent.map(|agent| &agent.advertised);
        let limits = [advertised.map(|a| a.registration_lifetime), repairs.lifetime];
        let lifetime = limits.into_iter().flatten().fold(self.config.lifetime, Lifetime::min);

        // With an address of our own, tunnels do not end at the agent.
        let tunnels_end_at = advertised.filter(|_| matches!(attachment, Attachment::ForeignAgent { .. }));
        let choice = self.config.encapsulation;
        let offered = |advertised: &Advertised| advertised.offers(choice);
        let choice = if repairs.ip_in_ip || !tunnels_end_at.is_none_or(offered) {
            EncapsulationChoice::IpInIp
        } else {
            choice
        };
        let reverse_offered = tunnels_end_at.is_none_or(|advertised| advertised.reverse_tunneling);
        let reverse = self.wants_reverse_tunnel(reverse_offered) || repairs.reverse_tunnel;
        let simultaneous = self.config.simultaneous && !repairs.alone && self.holds_another(interface);
        let mut flags = RequestFlags::default();
        for (wanted, flag) in [
            (simultaneous, RequestFlags::SIMULTANEOUS_BINDINGS),
            (self.config.broadcasts, RequestFlags::BROADCAST),
            (reverse, RequestFlags::REVERSE_TUNNELING),
            (choice == EncapsulationChoice::Minimal, RequestFlags::MINIMAL_ENCAPSULATION),
            (choice == EncapsulationChoice::Gre, RequestFlags::GRE),
        ] {
            if wanted {
                flags = flags.with(flag);
            }
        }
        let by_agent = matches!(attachment, Attachment::ForeignAgent { .. });
        let encapsulating_delivery =
            reverse && by_agent && self.config.encapsulating_delivery && !repairs.direct_delivery;
        Wishes { flags, care_of, lifetime, encapsulating_delivery }
    }

    /// Whether another interface holds a binding.
    fn holds_another(&self, than: &Interface) -> bool {
        self.interfaces.iter().any(|other| {
            let held = other.held.and_then(|held| held.attachment.care_of());
            other.config.id != than.config.id && held.is_some()
        })
    }

    pub(super) fn transmit_request(&mut self, carrier: usize, pending: &Pending) {
        let Some(interface) = self.interfaces.get(carrier) else { return };
        let source = match pending.attachment {
            Attachment::CoLocated { care_of, .. } => care_of,
            Attachment::Home | Attachment::ForeignAgent { .. } => self.config.home_address,
        };
        // 255 proves to a foreign agent that is to tunnel back for us that we are on its link (RFC 3024).
        let reverse = pending.flags.contains(RequestFlags::REVERSE_TUNNELING);
        self.outbox.transmit(Transmit {
            interface: Some(interface.config.id),
            source,
            destination: pending.peer,
            ttl: if reverse { 255 } else { DEFAULT_TTL },
            payload: TransmitPayload::Udp {
                source_port: REGISTRATION_PORT,
                destination_port: REGISTRATION_PORT,
                bytes: pending.bytes.clone(),
            },
        });
    }
}
