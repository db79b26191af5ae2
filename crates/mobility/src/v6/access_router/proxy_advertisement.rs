//! What the router tells of its neighbors: RtSolPr and PrRtAdv (RFC 5568 sections 4 and 6.1).

use alloc::vec::Vec;
use core::net::Ipv6Addr;
use core::time::Duration;

use careof_base::{Allowance, Instant};
use careof_wire::icmpv6::{
    AddressRole, HOP_LIMIT, HandoverAddress, HandoverLinkLayerAddress, Icmpv6Message, LinkLayerAddress,
    LinkLayerRole, NdOption, PrRtAdv, PrRtAdvCode, RtSolPr,
};

use super::AccessRouter;
use super::config::{AccessLink, NeighborRouter};
use crate::InterfaceId;
use crate::v6::{Addresses, DropReason, TransmitPayload};

/// Answers to all on the links together: who asks has proved nothing. One mobile node asks three times a second at most
/// (MAX_RTSOLPR_RATE).
const ANSWERS: Allowance = Allowance::new(64, Duration::from_millis(10));
/// Bytes of options that an advertisement can have without exceeding the least MTU of IPv6: 1280 less the headers (section 4: "without
/// exceeding the link MTU").
const ROOM: usize = 1280 - 40 - 8;
/// Bytes of what is said of one access point: two link-layer addresses of 16, an address and a prefix of 24.
const TUPLE: usize = 16 + 16 + 24 + 24;
/// Access points of which one advertisement tells, the sender's own link-layer address being another 16 bytes.
const MAX_TUPLES: usize = (ROOM - 16) / TUPLE;

/// What is known of an access point.
enum Known<'a> {
    Router(&'a NeighborRouter),
    CurrentInterface,
    NoFastHandover,
    Nothing,
}

impl AccessRouter {
    pub(super) fn handle_solicitation(
        &mut self,
        now: Instant,
        interface: InterfaceId,
        source: Ipv6Addr,
        solicitation: &RtSolPr,
    ) {
        if source.is_unspecified() || source.is_multicast() {
            return self.outbox.drop(DropReason::NotValid, source);
        }
        let Some(link) = self.config.link(interface) else {
            return self.outbox.drop(DropReason::NotForUs, source);
        };
        let mut asked = Vec::new();
        let mut wildcard = false;
        for option in &solicitation.options {
            match option {
                NdOption::HandoverLinkLayerAddress(option) if option.role == LinkLayerRole::Wildcard => {
                    wildcard = true;
                }
                NdOption::HandoverLinkLayerAddress(option)
                    if option.role == LinkLayerRole::NewAccessPoint && asked.len() < MAX_TUPLES =>
                {
                    asked.push(option.address);
                }
                _ => {}
            }
        }
        // "When a wildcard is used ... no other New Access Point LLA options must be present" (section 6.1.1).
        if wildcard != asked.is_empty() {
            return self.outbox.drop(DropReason::PoorlyFormed, source);
        }
        if wildcard {
            let known = self.config.neighbors.iter().filter(|router| router.fast_handover);
            asked = known.flat_map(|router| router.access_points.iter().copied()).take(MAX_TUPLES).collect();
        }
        let told = asked.iter().map(|access_point| (*access_point, self.known(link, *access_point)));
        let told: Vec<_> = told.collect();
        let routers = told.iter().filter(|(_, known)| matches!(known, Known::Router(_))).count();
        let code = match routers {
            0 => PrRtAdvCode::NoNewRouter,
            some if some == told.len() => PrRtAdvCode::Solicited,
            _ => PrRtAdvCode::SomeNewRouters,
        };
        let mut options = source_option(link);
        told.iter().for_each(|(access_point, known)| tell(*access_point, known, &mut options));
        if !self.proxy_advertisements.take(now, ANSWERS) {
            self.outbox.counters.count_suppressed_answer();
            return self.outbox.drop(DropReason::OverRation, source);
        }
        let answer = PrRtAdv { code, identifier: solicitation.identifier, options };
        self.advertise(interface, source, answer);
    }

    fn known(&self, link: &AccessLink, access_point: LinkLayerAddress) -> Known<'_> {
        if link.access_points.contains(&access_point) {
            return Known::CurrentInterface;
        }
        let has = |router: &&NeighborRouter| router.access_points.contains(&access_point);
        match self.config.neighbors.iter().find(has) {
            Some(router) if router.fast_handover => Known::Router(router),
            Some(_) => Known::NoFastHandover,
            None => Known::Nothing,
        }
    }

    /// The network wants the mobile node at `destination`, on the link of `interface`, to go to `access_point`: an unsolicited
    /// advertisement tells it (section 3.3), and gives it `new_care_of` where there is one. Packets go on to its link until its Fast
    /// Binding Update comes. Gives `false`, and tells nobody, when nothing is known of the access point or the interface.
    pub fn trigger_handover(
        &mut self,
        now: Instant,
        interface: InterfaceId,
        destination: Ipv6Addr,
        access_point: LinkLayerAddress,
        new_care_of: Option<Ipv6Addr>,
    ) -> bool {
        self.outbox.called_at(now);
        let Some(link) = self.config.link(interface) else { return false };
        let known = self.known(link, access_point);
        let Known::Router(_) = known else { return false };
        let mut options = source_option(link);
        tell(access_point, &known, &mut options);
        let new = new_care_of.map(|address| HandoverAddress::new(AddressRole::NewCareOfAddress, address));
        options.extend(new.map(NdOption::HandoverAddress));
        self.advertise(
            interface,
            destination,
            PrRtAdv { code: PrRtAdvCode::HandoverTrigger, identifier: 0, options },
        );
        true
    }

    fn advertise(&mut self, interface: InterfaceId, destination: Ipv6Addr, advertisement: PrRtAdv) {
        let Some(link) = self.config.link(interface) else { return };
        let source = link.link_local;
        let mut bytes = Vec::new();
        Icmpv6Message::PrRtAdv(advertisement).emit(source, destination, &mut bytes);
        self.outbox.packet(crate::v6::Transmit {
            interface: Some(interface),
            addresses: Addresses::new(source, destination),
            hop_limit: HOP_LIMIT,
            payload: TransmitPayload::Icmp(bytes),
        });
    }
}

fn source_option(link: &AccessLink) -> Vec<NdOption> {
    let (role, address) = (LinkLayerRole::Source, link.link_layer_address);
    alloc::vec![NdOption::HandoverLinkLayerAddress(HandoverLinkLayerAddress { role, address })]
}

/// Appends what is known of an access point, in the order of section 6.1.2.
fn tell(access_point: LinkLayerAddress, known: &Known<'_>, options: &mut Vec<NdOption>) {
    let mut link_layer = |role, address| {
        options.push(NdOption::HandoverLinkLayerAddress(HandoverLinkLayerAddress { role, address }));
    };
    match known {
        Known::Router(router) => {
            link_layer(LinkLayerRole::NewAccessPoint, access_point);
            link_layer(LinkLayerRole::NewAccessRouter, router.link_layer_address);
            let address = HandoverAddress::new(AddressRole::NewAccessRouter, router.address);
            options.push(NdOption::HandoverAddress(address));
            let (prefix, length) = (router.prefix.address(), router.prefix.length());
            let prefix = HandoverAddress::with_prefix_len(AddressRole::NewAccessRouterPrefix, prefix, length);
            options.extend(prefix.map(NdOption::HandoverAddress));
        }
        Known::CurrentInterface => link_layer(LinkLayerRole::CurrentInterface, access_point),
        Known::NoFastHandover => link_layer(LinkLayerRole::NoFastHandover, access_point),
        Known::Nothing => link_layer(LinkLayerRole::NoPrefixInformation, access_point),
    }
}
