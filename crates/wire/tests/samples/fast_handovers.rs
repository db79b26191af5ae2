//! The messages of fast handovers (RFC 5568) as whole IPv6 packets.

use std::net::Ipv6Addr;

use careof_wire::icmpv6::{
    Icmpv6Message, LinkLayerAddress, Naack, NaackStatus, NdOption, NeighborAdvertisement, PrRtAdv,
    PrRtAdvCode, RouterAdvertisement, RtSolPr,
};
use careof_wire::mip6::{
    AcknowledgementFlags, AddressRole, Algorithm, BindingUpdate, FastBindingAcknowledgement,
    FastBindingAuthorization, FastBindingStatus, HandoverAcknowledge, HandoverAddress, HandoverCode,
    HandoverInitiate, HandoverLinkLayerAddress, InitiateCode, Lifetime, LinkLayerRole, Message,
    MobilityOption, MobilityOptions, SequenceNumber, Spi, UpdateFlags,
};
use careof_wire::protocol;

use super::{Samples, add, plain};

const MOBILE_NODE: LinkLayerAddress = LinkLayerAddress([2, 0, 0, 0, 0, 5]);
const ACCESS_POINT: LinkLayerAddress = LinkLayerAddress([2, 0, 0, 0, 0, 9]);
const ON_LINK: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 5);
const PREVIOUS_LINK_LOCAL: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1);
const PREVIOUS_ROUTER: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0x10, 0, 0, 0, 0, 1);
const NEW_ROUTER: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0x11, 0, 0, 0, 0, 1);
const PREVIOUS_CARE_OF: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0x10, 0, 0, 0, 0, 5);
const NEW_CARE_OF: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0x11, 0, 0, 0, 0, 5);
const OTHER_CARE_OF: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0x11, 0, 0, 0, 0, 6);

/// Adds them all.
pub(super) fn add_all(samples: &mut Samples) {
    in_mobility_headers(samples);
    in_icmpv6(samples);
}

fn in_mobility_headers(samples: &mut Samples) {
    let authorization = FastBindingAuthorization {
        spi: Spi(256),
        algorithm: Algorithm::HmacSha1,
        key: b"sixteen bytes ok",
        care_of_address: NEW_CARE_OF,
        access_router: PREVIOUS_ROUTER,
    };
    let link_layer = HandoverLinkLayerAddress::of_mobile_node(MOBILE_NODE);
    let update = Message::FastBindingUpdate(BindingUpdate {
        sequence: SequenceNumber(0x0102),
        flags: UpdateFlags::ACKNOWLEDGE.with(UpdateFlags::HOME_REGISTRATION),
        lifetime: Lifetime::from_units(10),
        options: MobilityOptions::new()
            .with(MobilityOption::AlternateCareOfAddress(NEW_CARE_OF))
            .with(MobilityOption::LinkLayerAddress(link_layer)),
    });
    let (source, destination) = (PREVIOUS_CARE_OF, PREVIOUS_ROUTER);
    let header = update.emit_fast_authorized(source, destination, &authorization).expect("short enough");
    add(samples, "fast_update", source, destination, &header);
    for status in FastBindingStatus::ALL {
        let acknowledgement = Message::FastBindingAcknowledgement(FastBindingAcknowledgement {
            status: *status,
            flags: AcknowledgementFlags::default(),
            sequence: SequenceNumber(0x0102),
            lifetime: Lifetime::from_units(9),
            options: MobilityOptions::new().with(MobilityOption::AlternateCareOfAddress(OTHER_CARE_OF)),
        });
        let (source, destination) = (PREVIOUS_ROUTER, PREVIOUS_CARE_OF);
        let header =
            acknowledgement.emit_fast_authorized(source, destination, &authorization).expect("short enough");
        add(samples, &format!("fast_acknowledgement_{}", status.number()), source, destination, &header);
    }
    let of = |role, address| MobilityOption::HandoverAddress(HandoverAddress::new(role, address));
    let initiate = Message::HandoverInitiate(HandoverInitiate {
        sequence: SequenceNumber(7),
        assign_address: false,
        buffer: true,
        code: InitiateCode::FromPreviousLink,
        options: MobilityOptions::new()
            .with(MobilityOption::LinkLayerAddress(link_layer))
            .with(of(AddressRole::OldCareOfAddress, PREVIOUS_CARE_OF))
            .with(of(AddressRole::NewCareOfAddress, NEW_CARE_OF)),
    });
    plain(samples, "handover_initiate", PREVIOUS_ROUTER, NEW_ROUTER, &initiate);
    for code in HandoverCode::ALL {
        let acknowledge = Message::HandoverAcknowledge(HandoverAcknowledge {
            sequence: SequenceNumber(7),
            code: *code,
            options: MobilityOptions::new().with(of(AddressRole::NewCareOfAddress, OTHER_CARE_OF)),
        });
        let name = format!("handover_acknowledge_{}", code.number());
        plain(samples, &name, NEW_ROUTER, PREVIOUS_ROUTER, &acknowledge);
    }
}

fn in_icmpv6(samples: &mut Samples) {
    let link_layer =
        |role, address| NdOption::HandoverLinkLayerAddress(HandoverLinkLayerAddress { role, address });
    let solicitation = Icmpv6Message::RtSolPr(RtSolPr {
        identifier: 0x0304,
        options: vec![
            link_layer(LinkLayerRole::Source, MOBILE_NODE),
            link_layer(LinkLayerRole::NewAccessPoint, ACCESS_POINT),
        ],
    });
    icmpv6(samples, "rt_sol_pr", ON_LINK, PREVIOUS_LINK_LOCAL, &solicitation);
    let prefix = HandoverAddress::with_prefix_len(AddressRole::NewAccessRouterPrefix, NEW_ROUTER, 64);
    let advertisement = Icmpv6Message::PrRtAdv(PrRtAdv {
        code: PrRtAdvCode::Solicited,
        identifier: 0x0304,
        options: vec![
            link_layer(LinkLayerRole::NewAccessPoint, ACCESS_POINT),
            link_layer(LinkLayerRole::NewAccessRouter, LinkLayerAddress([2, 0, 0, 0, 0, 11])),
            NdOption::HandoverAddress(HandoverAddress::new(AddressRole::NewAccessRouter, NEW_ROUTER)),
            NdOption::HandoverAddress(prefix.expect("64 bits")),
        ],
    });
    icmpv6(samples, "pr_rt_adv", PREVIOUS_LINK_LOCAL, ON_LINK, &advertisement);
    let announcement = Icmpv6Message::NeighborAdvertisement(NeighborAdvertisement {
        router: false,
        solicited: false,
        override_flag: false,
        target: NEW_CARE_OF,
        options: vec![NdOption::TargetLinkLayerAddress(MOBILE_NODE)],
    });
    icmpv6(samples, "unsolicited_advertisement", NEW_CARE_OF, careof_wire::ipv6::ALL_NODES, &announcement);
    for (name, status, address) in [
        ("naack", NaackStatus::ConfigureAddress, None),
        ("naack_with_address", NaackStatus::UseSuppliedAddress, Some(OTHER_CARE_OF)),
    ] {
        let refusal = Icmpv6Message::RouterAdvertisement(RouterAdvertisement {
            router_lifetime_secs: 30,
            options: vec![NdOption::Naack(Naack { status, address })],
            ..RouterAdvertisement::default()
        });
        icmpv6(samples, name, PREVIOUS_LINK_LOCAL, NEW_CARE_OF, &refusal);
    }
}

/// Adds an ICMPv6 message behind an IPv6 header of hop limit 255.
fn icmpv6(
    samples: &mut Samples,
    name: &str,
    source: Ipv6Addr,
    destination: Ipv6Addr,
    message: &Icmpv6Message,
) {
    let mut payload = Vec::new();
    message.emit(source, destination, &mut payload);
    let len = (payload.len() as u16).to_be_bytes();
    let ipv6 = [0x60, 0, 0, 0, len[0], len[1], protocol::ICMPV6, 255];
    let packet = [&ipv6[..], &source.octets(), &destination.octets(), &payload].concat();
    samples.push((name.to_owned(), packet));
}
