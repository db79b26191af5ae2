//! Handover Initiate and Handover Acknowledge between access routers: how they are made, and known to be a neighbor's.

use alloc::vec::Vec;
use core::net::Ipv6Addr;

use careof_base::Instant;
use careof_wire::mip4::Identification;
use careof_wire::mip6::{
    HandoverAcknowledge, HandoverInitiate, Message, MobilityOption, MobilityOptions, NtpTimestamp,
};

use super::AccessRouter;
use super::config::{NeighborRouter, RouterSecurity};
use crate::NtpTime;
use crate::v6::authentication;
use crate::v6::io::DEFAULT_HOP_LIMIT;
use crate::v6::{Addresses, DropReason, ReplayProtection, TransmitPayload};

/// The message with a timestamp, which its neighbor wants where they have a key.
fn stamped(message: Message, stamp: Option<NtpTimestamp>) -> Message {
    let with = |options: MobilityOptions| match stamp {
        Some(stamp) => options.with(MobilityOption::ReplayProtection(stamp)),
        None => options,
    };
    match message {
        Message::HandoverInitiate(initiate) => {
            let options = with(initiate.options);
            Message::HandoverInitiate(HandoverInitiate { options, ..initiate })
        }
        Message::HandoverAcknowledge(acknowledge) => {
            let options = with(acknowledge.options);
            Message::HandoverAcknowledge(HandoverAcknowledge { options, ..acknowledge })
        }
        other => other,
    }
}

impl NeighborRouter {
    /// The time of day for a message to this neighbor, where it wants one.
    pub(super) fn stamp(&self, clock: NtpTime) -> Option<NtpTimestamp> {
        match &self.security {
            RouterSecurity::Keyed(association)
                if matches!(association.replay(), ReplayProtection::Timestamps { .. }) =>
            {
                Some(NtpTimestamp(clock.to_bits()))
            }
            RouterSecurity::Keyed(_) | RouterSecurity::Ipsec => None,
        }
    }
}

impl AccessRouter {
    /// Sends a message to a neighbor from one of the router's addresses.
    pub(super) fn send_to_router(
        &mut self,
        neighbor: usize,
        source: Ipv6Addr,
        message: Message,
        stamp: Option<NtpTimestamp>,
    ) {
        let Some(router) = self.config.neighbors.get(neighbor) else { return };
        let destination = router.address;
        let message = stamped(message, stamp);
        let bytes = match &router.security {
            // The authenticator covers both ends, so that nothing comes back as if it were the other's.
            RouterSecurity::Keyed(association) => message.emit_authenticated(
                source,
                destination,
                &association.authentication(source, destination),
            ),
            RouterSecurity::Ipsec => message.emit(source, destination),
        };
        let bytes: Vec<u8> = match bytes {
            Ok(bytes) => bytes,
            // A handful of options fits any Mobility Header.
            Err(_) => return,
        };
        self.outbox.packet(crate::v6::Transmit {
            interface: None,
            addresses: Addresses::new(source, destination),
            hop_limit: DEFAULT_HOP_LIMIT,
            payload: TransmitPayload::Mobility(bytes),
        });
    }

    /// The neighbor that a message is from, if it is.
    pub(super) fn authentic_router(
        &self,
        addresses: Addresses,
        bytes: &[u8],
        options: &MobilityOptions,
    ) -> Result<usize, DropReason> {
        let (source, destination) = (addresses.source, addresses.destination);
        if addresses.home_address.is_some() {
            return Err(DropReason::PoorlyFormed);
        }
        let (number, router) = self.config.neighbor(source).ok_or(DropReason::UnexpectedSource)?;
        match &router.security {
            RouterSecurity::Keyed(association) => {
                let associations = core::iter::once(association);
                authentication::check(bytes, options, associations, source, destination)?;
            }
            RouterSecurity::Ipsec => {}
        }
        Ok(number)
    }

    /// Whether the timestamp of an authentic Handover Initiate is near enough, and later than `last`; returns it.
    pub(super) fn fresh_stamp(
        &mut self,
        now: Instant,
        neighbor: usize,
        stamp: Option<NtpTimestamp>,
        last: Option<NtpTime>,
    ) -> Result<Option<NtpTime>, DropReason> {
        let Some(router) = self.config.neighbors.get(neighbor) else {
            return Err(DropReason::UnexpectedSource);
        };
        let RouterSecurity::Keyed(association) = &router.security else { return Ok(None) };
        let ReplayProtection::Timestamps { window } = association.replay() else { return Ok(None) };
        let stamp = stamp.ok_or(DropReason::Replayed)?;
        let mut guard = crate::ReplayGuard::Timestamps { window, last };
        let clock = self.config.clock.at(now);
        let verdict = guard.check(Identification(stamp.0), clock, &mut self.random);
        verdict.outcome.map_err(|_| DropReason::Replayed)?;
        Ok(Some(NtpTime::from_bits(stamp.0)))
    }
}
