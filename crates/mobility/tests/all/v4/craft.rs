//! Requests and replies made by hand.

use std::net::Ipv4Addr;

use careof_base::Instant;
use careof_mobility::v4::*;
use careof_wire::mip4::{
    AuthenticationKind, Extension, Identification, Lifetime, Message, RegistrationReply, RegistrationRequest,
    ReplyCode, RequestFlags, append_authentication,
};

use super::world::*;

/// A request, and how it is signed and sent.
#[derive(Clone, Debug)]
pub(crate) struct Craft {
    pub(crate) request: RegistrationRequest,
    pub(crate) security: Option<SecurityAssociation>,
    /// What follows the mobile-home authentication extension.
    pub(crate) delivery_style: bool,
    pub(crate) foreign: Option<(AuthenticationKind, SecurityAssociation)>,
    pub(crate) source: Ipv4Addr,
    pub(crate) destination: Ipv4Addr,
    pub(crate) ttl: u8,
}

impl Craft {
    /// A good request for [`WLAN`], co-located, with the time of `now`.
    pub(crate) fn new(now: Instant) -> Self {
        let request = RegistrationRequest {
            flags: RequestFlags::DECAPSULATION_BY_MOBILE_NODE,
            lifetime: Lifetime::from_secs(100),
            home_address: HOME,
            home_agent: HA,
            care_of_address: WLAN,
            identification: Identification(clock().at(now).to_bits()),
            extensions: Vec::new(),
        };
        Self {
            request,
            security: Some(security()),
            delivery_style: false,
            foreign: None,
            source: WLAN,
            destination: HA,
            ttl: 64,
        }
    }

    /// A good request for the care-of address of foreign agent 0, to it.
    pub(crate) fn to_foreign_agent(now: Instant) -> Self {
        let mut craft = Self::new(now);
        craft.request.flags = RequestFlags::default();
        craft.request.care_of_address = FA[0];
        Self { source: HOME, destination: FA[0], ..craft }
    }

    pub(crate) fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    pub(crate) fn flag(&mut self, flag: RequestFlags) {
        self.request.flags = self.request.flags.with(flag);
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut bytes = Message::Request(self.request.clone()).emit();
        if let Some(security) = &self.security {
            sign(&mut bytes, AuthenticationKind::MobileHome, security);
        }
        if self.delivery_style {
            Extension::EncapsulatingDeliveryStyle.emit(&mut bytes);
        }
        if let Some((kind, security)) = &self.foreign {
            sign(&mut bytes, *kind, security);
        }
        bytes
    }

    pub(crate) fn transmit(&self) -> Transmit {
        udp(self.source, self.destination, self.ttl, self.bytes())
    }
}

pub(crate) fn sign(bytes: &mut Vec<u8>, kind: AuthenticationKind, security: &SecurityAssociation) {
    append_authentication(bytes, kind, security.spi(), security.algorithm(), security.key());
}

pub(crate) fn udp(source: Ipv4Addr, destination: Ipv4Addr, ttl: u8, bytes: Vec<u8>) -> Transmit {
    let payload = TransmitPayload::Udp { source_port: 434, destination_port: 434, bytes };
    Transmit { interface: None, source, destination, ttl, payload }
}

/// A reply to `request`, signed by the home agent.
pub(crate) fn reply(request: &RegistrationRequest, code: ReplyCode) -> Vec<u8> {
    let reply = RegistrationReply {
        code,
        lifetime: request.lifetime,
        home_address: request.home_address,
        home_agent: request.home_agent,
        identification: request.identification,
        extensions: Vec::new(),
    };
    let mut bytes = Message::Reply(reply).emit();
    sign(&mut bytes, AuthenticationKind::MobileHome, &security());
    bytes
}

/// The last reply in `sent`.
pub(crate) fn last_reply(sent: &[Transmit]) -> Option<RegistrationReply> {
    let mut replies =
        sent.iter().rev().filter_map(|transmit| match Message::parse(transmit.payload.bytes()) {
            Ok(Message::Reply(reply)) => Some(reply),
            _ => None,
        });
    replies.next()
}
