//! Fast Binding Updates, their acknowledgments, and refusals of the new care-of address (RFC 5568 sections 6.2.2, 6.2.3 and 6.4.6).

use core::net::Ipv6Addr;
use core::time::Duration;

use careof_base::Instant;
use careof_wire::icmpv6::{
    HandoverLinkLayerAddress, IpFields, Naack, NaackStatus, NdOption, RouterAdvertisement,
};
use careof_wire::ipv6::is_unicast_routable;
use careof_wire::mip4::Identification;
use careof_wire::mip6::{
    BindingUpdate, FastBindingAcknowledgement, FastBindingStatus, Lifetime, Message, MobilityOption,
    MobilityOptions, NtpTimestamp, SequenceNumber, UpdateFlags,
};

use super::{Event, Failure, FastHandover, Handover, Place};
use crate::InterfaceId;
use crate::v6::io::DEFAULT_HOP_LIMIT;
use crate::v6::update_rate::Retransmission;
use crate::v6::{Addresses, DropReason, ReplayProtection, Transmit, TransmitPayload, Tunnel};

/// How long after an announcement (UNA) a refusal (NAACK) is believed.
const REFUSAL_WAIT: Duration = Duration::from_secs(3);
/// How often a handover follows refusals of its address.
const MAX_REFUSALS: u32 = 3;

/// A Fast Binding Update that was sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    pub(super) sequence: SequenceNumber,
    pub(super) stamp: Option<NtpTimestamp>,
    /// The care-of address that the authenticator covers.
    pub(super) care_of: Ipv6Addr,
    pub(super) lifetime: Lifetime,
}

impl FastHandover {
    /// Sends the update, again if need be (section 6.2.2). From the new link the node then announces itself once more, too: what was lost
    /// may have been the announcement, without which the new router goes on keeping all that is for it, an acknowledgment included. (RFC 4861
    /// section 7.2.6 has nodes repeat unsolicited advertisements.)
    pub(super) fn drive_update(&mut self, now: Instant) {
        let Some(handover) = &self.handover else { return };
        let Some(retransmission) = handover.retransmission.filter(|due| due.next <= now) else { return };
        if retransmission.attempts > self.config.update_retries {
            if handover.place == Place::Previous && !handover.back {
                // It may be heard from the new link.
                if let Some(handover) = &mut self.handover {
                    handover.retransmission = None;
                }
            } else {
                self.handover = None;
            }
            return self.outbox.event(Event::Failed(Failure::NoAcknowledgment));
        }
        let new = handover.new;
        if retransmission.attempts > 0
            && let Some(Handover { place: Place::New { interface, announced }, .. }) = &mut self.handover
        {
            let interface = *interface;
            *announced = now;
            self.announce(interface, new);
        }
        self.send_update(now);
    }

    fn send_update(&mut self, now: Instant) {
        let Some(handover) = &self.handover else { return };
        let from = handover.from.clone();
        let (new, place, back) = (handover.new, handover.place, handover.back);
        self.sequence = self.sequence.next();
        let stamps = matches!(from.security.replay(), ReplayProtection::Timestamps { .. });
        let stamp =
            stamps.then(|| NtpTimestamp(self.timestamps.next(now, self.config.clock, &mut self.random).0));
        let lifetime = if back { Lifetime::ZERO } else { self.config.lifetime };
        let (interface, addresses) = match place {
            Place::Previous => (from.interface, Addresses::new(from.care_of, from.address)),
            // A node that keeps its previous address says nothing from the new link.
            Place::New { interface, .. } => (interface, Addresses::new(new, from.address)),
        };
        let addresses = addresses.with_home_address(from.care_of);
        let link_layer = HandoverLinkLayerAddress::of_mobile_node(self.config.link_layer_address);
        let mut options = MobilityOptions::new().with(MobilityOption::LinkLayerAddress(link_layer));
        if !back {
            options.push(MobilityOption::AlternateCareOfAddress(new));
        }
        if let Some(stamp) = stamp {
            options.push(MobilityOption::ReplayProtection(stamp));
        }
        let sequence = self.sequence;
        let message = Message::FastBindingUpdate(BindingUpdate {
            sequence,
            flags: UpdateFlags::ACKNOWLEDGE.with(UpdateFlags::HOME_REGISTRATION),
            lifetime,
            options,
        });
        let authorization = from.security.fast_authorization(new, from.address);
        // A handful of options fits any Mobility Header.
        let Ok(bytes) = message.emit_fast_authorized(from.care_of, from.address, &authorization) else {
            return;
        };
        let mut attempt = 0;
        if let Some(handover) = &mut self.handover {
            handover.sent = Some(Sent { sequence, stamp, care_of: new, lifetime });
            if let Some(retransmission) = &mut handover.retransmission {
                retransmission.sent(now);
                attempt = retransmission.attempts;
            }
        }
        self.outbox.transmit(Transmit {
            interface: Some(interface),
            addresses,
            hop_limit: DEFAULT_HOP_LIMIT,
            payload: TransmitPayload::Mobility(bytes),
        });
        self.outbox.event(Event::UpdateSent { new, attempt });
    }

    pub(super) fn handle_acknowledgement(
        &mut self,
        now: Instant,
        addresses: Addresses,
        bytes: &[u8],
        acknowledgement: &FastBindingAcknowledgement,
    ) {
        let source = addresses.source;
        let Some(handover) = &mut self.handover else {
            return self.drop(DropReason::UnexpectedAnswer, source);
        };
        let Some(sent) = handover.sent.filter(|sent| sent.sequence == acknowledgement.sequence) else {
            return self.drop(DropReason::UnexpectedAnswer, source);
        };
        if source != handover.from.address {
            return self.drop(DropReason::UnexpectedSource, source);
        }
        let security = &handover.from.security;
        let Some(data) = acknowledgement.options.fast_authorization_data() else {
            return self.drop(DropReason::MissingAuthenticator, source);
        };
        if data.spi() != security.spi() {
            return self.drop(DropReason::UnknownSpi, source);
        }
        if !security.fast_authorization(sent.care_of, handover.from.address).verify(bytes) {
            return self.drop(DropReason::BadAuthenticator, source);
        }
        let told = acknowledgement.options.replay_protection();
        if !acknowledgement.status.is_accepted() && told != sent.stamp {
            // The clocks differ, and this is the router's.
            if let (Some(sent), Some(told)) = (sent.stamp, told)
                && sent.low() == told.low()
            {
                self.timestamps.resynchronize(Identification(sent.0), Identification(told.0));
                return self.send_update(now);
            }
            return self.drop(DropReason::Replayed, source);
        }
        if told != sent.stamp {
            return self.drop(DropReason::Replayed, source);
        }
        if handover.retransmission.is_none() && handover.tunnel.is_some() {
            // The one that was sent to the other address.
            return;
        }
        handover.retransmission = None;
        if !acknowledgement.status.is_accepted() {
            self.handover = None;
            self.outbox.counters.count_refusal(acknowledgement.status.number());
            return self.outbox.event(Event::Failed(Failure::Refused(acknowledgement.status)));
        }
        self.outbox.counters.count_accepted();
        if sent.lifetime.is_zero() {
            self.handover = None;
            return self.outbox.event(Event::Returned);
        }
        let other = acknowledgement.options.alternate_care_of_address();
        let other = other.filter(|address| {
            acknowledgement.status == FastBindingStatus::AcceptedWithOtherAddress
                && is_unicast_routable(*address)
        });
        let new = other.unwrap_or(sent.care_of);
        let end = now + acknowledgement.lifetime.min(sent.lifetime).duration();
        handover.tunnel = Some((end, Tunnel { entry: handover.from.address, exit: new }));
        let old = core::mem::replace(&mut handover.new, new);
        let is_there = matches!(handover.place, Place::New { .. });
        self.outbox.event(Event::Prepared { new });
        if is_there && old != new {
            self.outbox.event(Event::AddressReplaced { old, new });
        }
    }

    /// The new router says that the announced address is not to be used (section 6.4.6).
    pub(super) fn handle_refusal(
        &mut self,
        now: Instant,
        interface: InterfaceId,
        ip: &IpFields,
        advertisement: &RouterAdvertisement,
    ) {
        let naack = advertisement.options.iter().find_map(|option| match option {
            NdOption::Naack(naack) => Some(*naack),
            _ => None,
        });
        let Some(Naack { status, address }) = naack else { return };
        self.outbox.count_received();
        let Some(handover) = &mut self.handover else {
            return self.drop(DropReason::UnexpectedAnswer, ip.source);
        };
        let Place::New { interface: place, announced } = handover.place else {
            return self.drop(DropReason::UnexpectedAnswer, ip.source);
        };
        let is_expected = place == interface
            && ip.destination == handover.new
            && now <= announced + REFUSAL_WAIT
            && handover.refusals < MAX_REFUSALS;
        if !is_expected {
            return self.drop(DropReason::UnexpectedAnswer, ip.source);
        }
        handover.refusals += 1;
        let old = handover.new;
        let router = handover.to;
        let of_link = |address: &Ipv6Addr| {
            is_unicast_routable(*address) && router.is_some_and(|router| router.prefix.contains(*address))
        };
        let supplied = match status {
            NaackStatus::UseSuppliedAddress => address.filter(of_link),
            NaackStatus::UsePreviousAddress => {
                // "in which case the MN MUST NOT send any more FBUs" (section 4).
                let new = handover.from.care_of;
                handover.new = new;
                handover.retransmission = None;
                self.announce(interface, new);
                return self.outbox.event(Event::AddressReplaced { old, new });
            }
            _ => None,
        };
        let Some(new) = supplied else {
            handover.retransmission = None;
            return self.outbox.event(Event::Failed(Failure::AddressRefused(status)));
        };
        handover.new = new;
        // "it MUST use it and send an FBU using the new CoA" (section 4); what the previous router sends on already leads there when it is
        // this router that has assigned the address.
        let leads_there = handover.tunnel.is_some_and(|(_, tunnel)| tunnel.exit == new);
        let retransmission = Retransmission::begin(now, self.config.update_timeout, Duration::MAX);
        self.announce(interface, new);
        self.outbox.event(Event::AddressReplaced { old, new });
        if let Some(handover) = &mut self.handover
            && !leads_there
        {
            handover.tunnel = None;
            handover.retransmission = Some(retransmission);
            self.drive_update(now);
        }
    }
}
