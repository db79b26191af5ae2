//! What the current router tells of access points and of the routers behind them: RtSolPr and PrRtAdv (RFC 5568 section 6.1).

use alloc::vec::Vec;
use core::net::Ipv6Addr;
use core::time::Duration;

use careof_base::Instant;
use careof_wire::icmpv6::{
    AddressRole, HandoverLinkLayerAddress, Icmpv6Message, LinkLayerAddress, LinkLayerRole, NdOption, PrRtAdv,
    PrRtAdvCode, RtSolPr,
};
use careof_wire::ipv6::is_unicast_routable;

use super::{AccessPoint, Event, Failure, FastHandover, RouterInfo};
use crate::InterfaceId;
use crate::v6::update_rate::Retransmission;
use crate::v6::{DropReason, Prefix};

/// Access points that are remembered; the oldest make room.
const MAX_ACCESS_POINTS: usize = 64;

/// A question about access points that has had no answer.
#[derive(Clone, Debug)]
pub(super) struct Question {
    pub(super) identifier: u16,
    pub(super) access_points: Vec<LinkLayerAddress>,
    pub(super) retransmission: Retransmission,
}

impl FastHandover {
    /// Asks the current router what is behind these access points; of none, behind all nearby. It answers by [`Event::Learned`].
    pub fn discover(&mut self, now: Instant, access_points: &[LinkLayerAddress]) {
        self.outbox.called_at(now);
        if self.current.is_none() {
            return;
        }
        let identifier = (self.random.next_u64() >> 48) as u16;
        let access_points = access_points.iter().copied().take(MAX_ACCESS_POINTS).collect();
        let retransmission = Retransmission::begin(
            self.solicitations.earliest(now),
            self.config.solicitation_timeout,
            Duration::MAX,
        );
        self.question = Some(Question { identifier, access_points, retransmission });
        self.drive_question(now);
    }

    /// What is known of an access point.
    #[must_use]
    pub fn access_point(&self, access_point: LinkLayerAddress) -> Option<AccessPoint> {
        self.access_points.get(&access_point).copied()
    }

    /// The new care-of address behind an access point: its prefix with the interface identifier of the present one.
    #[must_use]
    pub fn prospective(&self, access_point: LinkLayerAddress) -> Option<Ipv6Addr> {
        let Some(AccessPoint::Router(info)) = self.access_point(access_point) else { return None };
        Some(info.prefix.with_interface_of(self.current.as_ref()?.care_of))
    }

    /// Sends the question, again if need be (section 6.1.1).
    pub(super) fn drive_question(&mut self, now: Instant) {
        let Some(current) = &self.current else { return };
        let (interface, source, destination) = (current.interface, current.care_of, current.link_local);
        let Some(question) = self.question.as_mut().filter(|question| question.retransmission.next <= now)
        else {
            return;
        };
        if question.retransmission.attempts > self.config.solicitation_retries {
            self.question = None;
            return self.outbox.event(Event::Failed(Failure::NoAdvertisement));
        }
        let earliest = self.solicitations.earliest(now);
        if earliest > now {
            // MAX_RTSOLPR_RATE.
            question.retransmission.next = earliest;
            return;
        }
        self.solicitations.spend(now);
        question.retransmission.sent(now);
        let own =
            HandoverLinkLayerAddress { role: LinkLayerRole::Source, address: self.config.link_layer_address };
        let mut asked: Vec<HandoverLinkLayerAddress> = question
            .access_points
            .iter()
            .map(|address| HandoverLinkLayerAddress {
                role: LinkLayerRole::NewAccessPoint,
                address: *address,
            })
            .collect();
        if asked.is_empty() {
            asked.push(HandoverLinkLayerAddress::WILDCARD);
        }
        let options = core::iter::once(own).chain(asked).map(NdOption::HandoverLinkLayerAddress).collect();
        let message = Icmpv6Message::RtSolPr(RtSolPr { identifier: question.identifier, options });
        self.send_icmp(interface, source, destination, &message);
    }

    pub(super) fn handle_proxy_advertisement(
        &mut self,
        now: Instant,
        interface: InterfaceId,
        source: Ipv6Addr,
        advertisement: &PrRtAdv,
    ) {
        let is_current = self
            .current
            .as_ref()
            .is_some_and(|current| current.interface == interface && current.link_local == source);
        if !is_current {
            return self.drop(DropReason::UnexpectedSource, source);
        }
        let asked =
            self.question.as_ref().is_some_and(|question| question.identifier == advertisement.identifier);
        let unsolicited =
            matches!(advertisement.code, PrRtAdvCode::HandoverTrigger | PrRtAdvCode::Unsolicited)
                && advertisement.identifier == 0;
        match advertisement.code {
            PrRtAdvCode::UseDhcp | PrRtAdvCode::Unknown(_) => {
                return self.drop(DropReason::NotOffered, source);
            }
            _ if !asked && !unsolicited => return self.drop(DropReason::UnexpectedAnswer, source),
            _ => {}
        }
        if asked {
            self.question = None;
        }
        let (tuples, given) = tuples(&advertisement.options);
        for (access_point, known) in &tuples {
            self.learn(*access_point, *known);
        }
        if let (PrRtAdvCode::HandoverTrigger, Some((access_point, _))) = (advertisement.code, tuples.first())
        {
            // "If a PrRtAdv message carries an NCoA, the MN MUST use it" (section 5.2).
            let new = given.or_else(|| self.prospective(*access_point));
            if self.prepare_as(now, *access_point, new) {
                self.outbox.event(Event::Triggered { access_point: *access_point });
            }
        }
    }

    fn learn(&mut self, access_point: LinkLayerAddress, known: AccessPoint) {
        if self.access_points.insert(access_point, known).is_none() {
            self.told.push(access_point);
            if self.told.len() > MAX_ACCESS_POINTS {
                let oldest = self.told.remove(0);
                self.access_points.remove(&oldest);
            }
        }
        self.outbox.event(Event::Learned { access_point, known });
    }
}

/// What is said of each access point, and the new care-of address where one is given (section 6.1.2). What follows an access point is about
/// its router, up to the next.
fn tuples(options: &[NdOption]) -> (Vec<(LinkLayerAddress, AccessPoint)>, Option<Ipv6Addr>) {
    #[derive(Default)]
    struct Told {
        station: Option<LinkLayerAddress>,
        address: Option<Ipv6Addr>,
        prefix: Option<Prefix>,
    }
    fn end(of: Option<LinkLayerAddress>, told: &Told, tuples: &mut Vec<(LinkLayerAddress, AccessPoint)>) {
        let (Some(access_point), Some(address)) = (of, told.address) else { return };
        // "when this prefix is the same as what is used in the New Router's IP Address option, the Prefix Information option need not be
        // present".
        let prefix = told.prefix.unwrap_or(Prefix::new(address, 64));
        let info = RouterInfo { address, link_layer_address: told.station, prefix };
        tuples.push((access_point, AccessPoint::Router(info)));
    }
    let (mut all, mut given) = (Vec::new(), None);
    let (mut of, mut told) = (None, Told::default());
    for option in options {
        match option {
            NdOption::HandoverLinkLayerAddress(HandoverLinkLayerAddress { role, address }) => {
                let known = match role {
                    LinkLayerRole::NewAccessRouter => {
                        told.station = Some(*address);
                        continue;
                    }
                    LinkLayerRole::NewAccessPoint => None,
                    LinkLayerRole::CurrentInterface => Some(AccessPoint::SameLink),
                    LinkLayerRole::NoPrefixInformation => Some(AccessPoint::Unknown),
                    LinkLayerRole::NoFastHandover => Some(AccessPoint::NoFastHandover),
                    _ => continue,
                };
                end(of, &told, &mut all);
                told = Told::default();
                of = known.is_none().then_some(*address);
                all.extend(known.map(|known| (*address, known)));
            }
            NdOption::HandoverAddress(option) if is_unicast_routable(option.address) => match option.role {
                AddressRole::NewAccessRouter => told.address = Some(option.address),
                AddressRole::NewAccessRouterPrefix => {
                    told.prefix = Some(Prefix::new(option.address, option.prefix_len()));
                }
                AddressRole::NewCareOfAddress => given = Some(option.address),
                _ => {}
            },
            _ => {}
        }
        if all.len() >= MAX_ACCESS_POINTS {
            break;
        }
    }
    end(of, &told, &mut all);
    (all, given)
}
