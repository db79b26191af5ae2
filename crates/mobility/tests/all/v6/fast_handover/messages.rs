//! Messages of fast handovers as nodes, or who pretends to be one, would send them.

use std::net::Ipv6Addr;

use careof_base::{Duration, Instant};
use careof_mobility::v6::{Addresses, TransmitPayload};
use careof_wire::icmpv6::{
    HandoverLinkLayerAddress, Icmpv6Message, LinkLayerAddress, NdOption, NeighborAdvertisement, RtSolPr,
};
use careof_wire::mip6::{
    AcknowledgementFlags, AddressRole, Algorithm, BindingUpdate, FastBindingAcknowledgement,
    FastBindingAuthorization, FastBindingStatus, HandoverAcknowledge, HandoverAddress, HandoverCode,
    HandoverInitiate, InitiateCode, Lifetime, Message, MobileHomeAuthentication, MobilityOption,
    MobilityOptions, NtpTimestamp, SequenceNumber, Spi, UpdateFlags,
};

use super::world::*;

pub(crate) type Crafted = (Addresses, u8, TransmitPayload);

pub(crate) fn stamp(now: Instant) -> NtpTimestamp {
    NtpTimestamp(clock().at(now).to_bits())
}

/// A Fast Binding Update to router 0.
#[derive(Clone, Debug)]
pub(crate) struct Update {
    pub(crate) source: Ipv6Addr,
    pub(crate) previous: Ipv6Addr,
    pub(crate) new: Ipv6Addr,
    pub(crate) sequence: u16,
    pub(crate) units: u16,
    pub(crate) flags: UpdateFlags,
    pub(crate) stamp: Option<NtpTimestamp>,
    pub(crate) spi: Spi,
    pub(crate) key: &'static [u8],
    pub(crate) signed: bool,
    pub(crate) link_layer_address: bool,
}

impl Update {
    pub(crate) fn new(now: Instant, new: Ipv6Addr) -> Self {
        Self {
            source: care_of(0),
            previous: care_of(0),
            new,
            sequence: 1,
            units: 5,
            flags: UpdateFlags::ACKNOWLEDGE.with(UpdateFlags::HOME_REGISTRATION),
            stamp: Some(stamp(now)),
            spi: SPI,
            key: KEY,
            signed: true,
            link_layer_address: true,
        }
    }

    pub(crate) fn packet(&self) -> Crafted {
        let router = address(0);
        let addresses = Addresses::new(self.source, router).with_home_address(self.previous);
        let mut options = MobilityOptions::new().with(MobilityOption::AlternateCareOfAddress(self.new));
        if self.link_layer_address {
            let station = HandoverLinkLayerAddress::of_mobile_node(STATION);
            options.push(MobilityOption::LinkLayerAddress(station));
        }
        if let Some(stamp) = self.stamp {
            options.push(MobilityOption::ReplayProtection(stamp));
        }
        let message = Message::FastBindingUpdate(BindingUpdate {
            sequence: SequenceNumber(self.sequence),
            flags: self.flags,
            lifetime: Lifetime::from_units(self.units),
            options,
        });
        let authorization = FastBindingAuthorization {
            spi: self.spi,
            algorithm: Algorithm::HmacSha1,
            key: self.key,
            care_of_address: self.new,
            access_router: router,
        };
        let bytes = if self.signed {
            message.emit_fast_authorized(self.previous, router, &authorization)
        } else {
            message.emit(self.previous, router)
        };
        (addresses, 64, TransmitPayload::Mobility(bytes.unwrap()))
    }
}

fn between_routers(message: &Message, from: Ipv6Addr, to: Ipv6Addr, key: Option<&[u8]>) -> Crafted {
    let bytes = match key {
        Some(key) => {
            let authentication = MobileHomeAuthentication {
                spi: SPI,
                algorithm: Algorithm::HmacSha1,
                key,
                care_of_address: from,
                home_address: to,
            };
            message.emit_authenticated(from, to, &authentication)
        }
        None => message.emit(from, to),
    };
    (Addresses::new(from, to), 64, TransmitPayload::Mobility(bytes.unwrap()))
}

/// A Handover Initiate from router 0 to router 1.
#[derive(Clone, Debug)]
pub(crate) struct Initiate {
    pub(crate) from: Ipv6Addr,
    pub(crate) to: Ipv6Addr,
    pub(crate) previous: Ipv6Addr,
    pub(crate) new: Ipv6Addr,
    pub(crate) station: LinkLayerAddress,
    pub(crate) sequence: u16,
    pub(crate) code: InitiateCode,
    pub(crate) stamp: Option<NtpTimestamp>,
    pub(crate) key: Option<&'static [u8]>,
}

impl Initiate {
    pub(crate) fn new(now: Instant, previous: Ipv6Addr, new: Ipv6Addr) -> Self {
        Self {
            from: address(0),
            to: address(1),
            previous,
            new,
            station: STATION,
            sequence: 1,
            code: InitiateCode::FromPreviousLink,
            stamp: Some(stamp(now)),
            key: Some(ROUTER_KEY),
        }
    }

    pub(crate) fn packet(&self) -> Crafted {
        let of = |role, address| MobilityOption::HandoverAddress(HandoverAddress::new(role, address));
        let station = HandoverLinkLayerAddress::of_mobile_node(self.station);
        let mut options = MobilityOptions::new()
            .with(MobilityOption::LinkLayerAddress(station))
            .with(of(AddressRole::OldCareOfAddress, self.previous))
            .with(of(AddressRole::NewCareOfAddress, self.new));
        if let Some(stamp) = self.stamp {
            options.push(MobilityOption::ReplayProtection(stamp));
        }
        let message = Message::HandoverInitiate(HandoverInitiate {
            sequence: SequenceNumber(self.sequence),
            assign_address: false,
            buffer: true,
            code: self.code,
            options,
        });
        between_routers(&message, self.from, self.to, self.key)
    }
}

/// A Handover Acknowledge from router 1 to router 0.
pub(crate) fn acknowledge(
    sequence: u16,
    code: HandoverCode,
    stamp: Option<NtpTimestamp>,
    key: Option<&[u8]>,
) -> Crafted {
    let options = stamp.map(MobilityOption::ReplayProtection).into_iter().collect();
    let message = Message::HandoverAcknowledge(HandoverAcknowledge {
        sequence: SequenceNumber(sequence),
        code,
        options,
    });
    between_routers(&message, address(1), address(0), key)
}

/// A Fast Binding Acknowledgment from router 0.
pub(crate) fn fast_acknowledgement(
    sequence: SequenceNumber,
    status: FastBindingStatus,
    stamp: Option<NtpTimestamp>,
    (new, key): (Ipv6Addr, &[u8]),
) -> Crafted {
    let message = Message::FastBindingAcknowledgement(FastBindingAcknowledgement {
        status,
        flags: AcknowledgementFlags::default(),
        sequence,
        lifetime: Lifetime::from_units(5),
        options: stamp.map(MobilityOption::ReplayProtection).into_iter().collect(),
    });
    let authorization = FastBindingAuthorization {
        spi: SPI,
        algorithm: Algorithm::HmacSha1,
        key,
        care_of_address: new,
        access_router: address(0),
    };
    let bytes = message.emit_fast_authorized(address(0), care_of(0), &authorization).unwrap();
    (Addresses::new(address(0), care_of(0)), 64, TransmitPayload::Mobility(bytes))
}

pub(crate) fn icmp(source: Ipv6Addr, destination: Ipv6Addr, message: &Icmpv6Message) -> Crafted {
    let mut bytes = Vec::new();
    message.emit(source, destination, &mut bytes);
    (Addresses::new(source, destination), 255, TransmitPayload::Icmp(bytes))
}

/// An announcement (UNA) of an address by a station.
pub(crate) fn announcement(address: Ipv6Addr, station: LinkLayerAddress) -> Crafted {
    let message = Icmpv6Message::NeighborAdvertisement(NeighborAdvertisement {
        router: false,
        solicited: false,
        override_flag: false,
        target: address,
        options: vec![NdOption::TargetLinkLayerAddress(station)],
    });
    icmp(address, careof_wire::ipv6::ALL_NODES, &message)
}

/// An RtSolPr to router 0.
pub(crate) fn solicitation(source: Ipv6Addr, asked: Vec<HandoverLinkLayerAddress>) -> Crafted {
    let options = asked.into_iter().map(NdOption::HandoverLinkLayerAddress).collect();
    icmp(source, link_local(0), &Icmpv6Message::RtSolPr(RtSolPr { identifier: 7, options }))
}

/// Long after everything that was asked for is over.
pub(crate) const LATER: Duration = Duration::from_secs(100);
