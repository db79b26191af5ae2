//! What an agent of Mobile IPv6 tells.

use std::net::Ipv6Addr;

use careof_base::Instant;
use careof_mobility::v6::{
    CorrespondentChanged, DropReason, Event, Ipv4HomeOutcome, NeighborEvent, RegistrationEvent,
    RegistrationStep,
};
use careof_mobility::{Change, InterfaceId};
use careof_wire::mip6::BindingStatus;

use super::{Reporter, millis};
use crate::Carrier;

impl Reporter {
    /// As [`Reporter::event`], of an agent of Mobile IPv6.
    pub(in crate::daemon) fn ipv6_event(&mut self, now: Instant, carrier: &Carrier, event: &Event) {
        let name = |id: InterfaceId| carrier.interface_name(id).unwrap_or("?");
        match event {
            Event::Handover(event) => self.handover(now, &name, event, BindingStatus::number),
            Event::Binding(event) => {
                let addresses = (event.home_address.into(), event.care_of.into());
                self.binding(now, addresses, event.id.map(|id| id.0), &event.lifetime, event.change);
            }
            Event::Correspondent(event) => self.correspondent(now, event),
            Event::Neighbor(event) => self.neighbor(now, event),
            Event::Registration(event) => self.ipv6_registration(now, &name, event),
            // A local TCP has no way to be told.
            Event::ReverseTunnelEnded { .. } | Event::HandoverEnded { .. } => {}
            Event::HomeAgentsFound { home_agents } => {
                line!(self, now, INFO, "home-agents", home_agents = %list(home_agents), "Home agents found");
            }
            Event::HomePrefixes { prefixes } => {
                let prefixes: Vec<String> =
                    prefixes.iter().map(|one| format!("{}/{}", one.prefix, one.prefix_length)).collect();
                let prefixes = prefixes.join(", ");
                line!(self, now, INFO, "home-prefixes", prefixes, "Prefixes of the home network learned");
            }
            Event::HomeAddressLost { home_address } => {
                line!(
                    self, now, ERROR, "home-address", %home_address,
                    "Another node on the home link has the home address: it is not used again"
                );
            }
            Event::Ipv4HomeAddress { outcome } => self.ipv4_home_address(now, *outcome),
            Event::Dropped { reason, source } => {
                let hint = match reason {
                    DropReason::NatOnPath => Some(
                        "there is a NAT between the mobile node and its home agent, which cannot be traversed",
                    ),
                    DropReason::BadAuthenticator => {
                        Some("the key or algorithm of the other end is another one")
                    }
                    DropReason::UnknownSpi => Some("the other end uses an SPI that is not configured here"),
                    DropReason::Replayed => {
                        Some("the clocks of both ends are to agree, or replay = \"sequence-numbers\"")
                    }
                    _ => None,
                };
                line!(self, now, WARN, "dropped", cause = reason.name(), %source, hint, "Message dropped");
            }
        }
    }

    fn ipv4_home_address(&mut self, now: Instant, outcome: Ipv4HomeOutcome) {
        match outcome {
            Ipv4HomeOutcome::Bound { address, prefix_len } => {
                line!(self, now, INFO, "ipv4-home-address", %address, prefix_len, "IPv4 home address bound");
            }
            Ipv4HomeOutcome::Refused { status } => {
                let (status, meaning) = (status.number(), status);
                line!(self, now, WARN, "ipv4-home-address", status, %meaning, "IPv4 home address refused");
            }
            Ipv4HomeOutcome::NotSupported => {
                line!(
                    self,
                    now,
                    WARN,
                    "ipv4-home-address",
                    "The home agent knows no IPv4 home addresses: it is not asked again"
                );
            }
        }
    }

    fn correspondent(&mut self, now: Instant, event: &CorrespondentChanged) {
        let CorrespondentChanged { correspondent, care_of, lifetime, change } = event;
        match change {
            Change::Created => {
                line!(self, now, INFO, "route", %correspondent, %care_of, %lifetime, "Route optimised");
            }
            Change::Updated => {
                line!(self, now, DEBUG, "route-updated", %correspondent, %care_of, %lifetime, "Optimised route renewed");
            }
            Change::Removed | Change::Expired => {
                line!(self, now, INFO, "route", %correspondent, %care_of, "Optimised route ended");
            }
        }
    }

    fn neighbor(&mut self, now: Instant, event: &NeighborEvent) {
        match event {
            NeighborEvent::DetectDuplicate { address, .. } => {
                line!(self, now, DEBUG, "neighbor", %address, "Duplicate Address Detection");
            }
            NeighborEvent::Proxy { address, on, .. } => {
                line!(self, now, DEBUG, "neighbor", %address, on, "Proxy for a home address");
            }
            NeighborEvent::Answer { address, on, .. } => {
                line!(self, now, DEBUG, "neighbor", %address, on, "Answers for the home address");
            }
            NeighborEvent::Advertise { address, .. } => {
                line!(self, now, DEBUG, "neighbor", %address, "Unsolicited neighbor advertisement");
            }
        }
    }

    fn ipv6_registration<'n>(
        &mut self,
        now: Instant,
        name: &dyn Fn(InterfaceId) -> &'n str,
        event: &RegistrationEvent,
    ) {
        let RegistrationEvent { step, home_address, care_of, peer, lifetime, sequence, interface } = event;
        let (interface, sequence) = (interface.map(name), sequence.0);
        match *step {
            RegistrationStep::UpdateSent { attempt } => line!(
                self, now, DEBUG, "update", %home_address, %care_of, %peer, %lifetime, sequence, interface, attempt,
                "Binding Update sent"
            ),
            RegistrationStep::UpdateReceived => line!(
                self, now, DEBUG, "update", %home_address, %care_of, %lifetime, sequence, "Binding Update received"
            ),
            RegistrationStep::AcknowledgementSent { status } if status.is_accepted() => line!(
                self, now, DEBUG, "acknowledgement", %home_address, %care_of, %lifetime, sequence,
                status = status.number(), "Binding Acknowledgement sent"
            ),
            RegistrationStep::AcknowledgementSent { status } => line!(
                self, now, WARN, "refused", %home_address, %care_of, sequence, status = status.number(),
                reason = %status, "Binding Update refused"
            ),
            RegistrationStep::Accepted { status, round_trip } => line!(
                self, now, DEBUG, "accepted", %home_address, %care_of, %peer, %lifetime, interface,
                status = status.number(), round_trip_ms = millis(round_trip), "Binding Update accepted"
            ),
            RegistrationStep::Refused { status, round_trip } => line!(
                self, now, WARN, "refused", %home_address, %care_of, %peer, interface, status = status.number(),
                reason = %status, round_trip_ms = millis(round_trip), "Binding Update refused"
            ),
            RegistrationStep::TimedOut { attempt } => line!(
                self, now, WARN, "timed-out", %home_address, %care_of, %peer, interface, attempt,
                "Binding Update unanswered"
            ),
        }
    }
}

fn list(addresses: &[Ipv6Addr]) -> String {
    addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
