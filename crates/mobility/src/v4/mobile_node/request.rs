//! Requests: what they ask for, and how they are sent (RFC 5944 section 3.6.1).

use core::net::Ipv4Addr;

use careof_base::Instant;
use careof_wire::mip4::{
    AuthenticationKind, Extension, Lifetime, Message, PathReport, RegistrationRequest, RequestFlags,
};

use super::MobileNode;
use super::attachment::{Attachment, Interface};
use super::config::MultipathForm;
use super::registration::{Pending, Purpose};
use crate::path_watch::PathWatch;
use crate::v4::authentication;
use crate::v4::io::{DEFAULT_TTL, REGISTRATION_PORT};
use crate::v4::movement_detection::Advertised;
use crate::v4::{EncapsulationChoice, Transmit, TransmitPayload};

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
        let report = self.report(now, carrier, pending);
        // Only where something is lost does anybody repeat what was sent.
        let is_lost = report.is_some_and(|report| report.old_path_lost == Some(true));
        let received = self.received.extension().filter(|_| is_lost);
        let request = RegistrationRequest {
            flags: wishes.flags,
            lifetime: wishes.lifetime,
            home_address: self.config.home_address,
            home_agent,
            care_of_address: wishes.care_of,
            identification,
            extensions: report
                .iter()
                .map(PathReport::extension)
                .chain(received)
                .chain(self.path_extension(carrier, pending))
                .collect(),
        };
        let mut bytes = Message::Request(request).emit();
        authentication::append(&mut bytes, AuthenticationKind::MobileHome, &self.config.security);
        if wishes.encapsulating_delivery {
            Extension::EncapsulatingDeliveryStyle.emit(&mut bytes);
        }
        if let Some(notification) = self.notification(now, pending, wishes.flags, identification) {
            Extension::PreviousForeignAgent(notification).emit(&mut bytes);
        }
        if let Some(association) = agent.and_then(|agent| self.foreign_agents.get(&agent)) {
            authentication::append(&mut bytes, AuthenticationKind::MobileForeign, association);
        }
        pending.compose(wishes, agent.unwrap_or(home_agent), identification, bytes);
    }

    /// What a request through interface `index` tells of paths, if it is to.
    fn report(&self, now: Instant, index: usize, pending: &Pending) -> Option<PathReport> {
        let path = self.interfaces.get(index).filter(|_| self.config.report_paths)?.known_path();
        let registers = pending.purpose == Purpose::Register;
        Some(PathReport {
            downlink: path.downlink,
            uplink: path.uplink,
            round_trip: path.round_trip,
            old_path_lost: if registers { self.old_path_lost(index, pending.attachment) } else { None },
            repeated_for: pending.asked_for(now),
        })
    }

    /// Whether what was on its way by the path that a registration of interface `index` replaces or renews is lost, as far
    /// as can be told now.
    fn old_path_lost(&self, index: usize, attachment: Attachment) -> Option<bool> {
        // What is not to be used is only renewed.
        let index_of_old = if self.desired == Some(index) { self.active? } else { index };
        let old = self.interfaces.get(index_of_old)?;
        let Some(held) = old.held.filter(|_| old.up && old.interrupted.is_none()) else {
            return Some(true);
        };
        if index_of_old == index && held.attachment != attachment {
            // The node is elsewhere by now.
            return Some(true);
        }
        // Somebody must be able to say that the path works: the link layer or an agent that is heard - and nobody that it
        // may not.
        let in_place = self.attachment(index_of_old) == Some(held.attachment);
        let is_watched = self.config.movement.link_layer || held.attachment.agent().is_some();
        let is_sound = in_place && is_watched && !old.refresh && old.blocked.is_none();
        is_sound.then_some(false)
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
        if matches!((pending.purpose, attachment), (Purpose::Register, Attachment::Relayed { .. }))
            && self.config.multipath == Some(MultipathForm::Shake)
        {
            wishes.flags = wishes.flags.with(RequestFlags::RELAYED);
        }
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
        let several = self.config.multipath.is_some() || self.holds_another(interface);
        let simultaneous = self.keeps_others() && !repairs.alone && several;
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
        let carrier = match pending.attachment {
            // It goes by the interface in use, and so comes the reply.
            Attachment::Relayed { .. } => self.active.unwrap_or(carrier),
            _ => carrier,
        };
        self.request_leaves(self.outbox.now(), carrier);
        let Some(interface) = self.interfaces.get(carrier) else { return };
        let own = interface.held.map(|held| held.attachment);
        let source = match (pending.attachment, own) {
            (Attachment::CoLocated { care_of, .. }, _)
            | (Attachment::Relayed { .. }, Some(Attachment::CoLocated { care_of, .. })) => care_of,
            _ => self.config.home_address,
        };
        // 255 proves to a foreign agent that is to tunnel back for us that we are on its link (RFC 3024). 1 reaches a home agent
        // that is on our link, as one that is heard must be: a router that advertises in its name does not pass it on.
        let reverse = pending.flags.contains(RequestFlags::REVERSE_TUNNELING);
        let is_heard = pending.attachment == Attachment::Home
            && interface.hears_home_agent(self.config.home_network, self.home_agent);
        let ttl = if is_heard {
            1
        } else if reverse {
            255
        } else {
            DEFAULT_TTL
        };
        self.outbox.transmit(Transmit {
            interface: Some(interface.config.id),
            source,
            destination: pending.peer,
            ttl,
            payload: TransmitPayload::Udp {
                source_port: REGISTRATION_PORT,
                destination_port: REGISTRATION_PORT,
                bytes: pending.bytes.clone(),
            },
        });
    }
}
