//! What Binding Updates tell the home agent of paths and of what was received by them, in options of ours (RFC 5094).

use careof_base::Instant;
use careof_wire::mip6::{MobilityOptions, PathReport, ReceivedData, ToldPath};

use super::MobileNode;
use super::attachment::Attachment;
use super::registration::{Pending, Purpose};
use crate::{InterfaceId, PathProperties};

impl MobileNode {
    /// How far this node's TCP flows have come. An update that says that the old path is lost tells it to the home agent, which then
    /// need not repeat what has arrived. To be called ahead of every input and timeout that may lead to an update.
    pub fn set_received_data(&mut self, received: ReceivedData) {
        self.received = received;
    }

    /// Whether access routers send on what is under way to the care-of address that the node leaves (RFC 5568): updates then do not say
    /// that it is lost. To be called ahead of the input that leads to the update.
    pub const fn set_forwarded(&mut self, forwarded: bool) {
        self.forwarded = forwarded;
    }

    /// What is known of the path through `interface`, configured or measured.
    #[must_use]
    pub fn path_properties(&self, interface: InterfaceId) -> PathProperties {
        self.path_of(self.index(interface))
    }

    /// Adds what an update through interface `carrier` tells of paths, if it is to; it has the number that was given out last.
    pub(super) fn report(
        &self,
        now: Instant,
        carrier: usize,
        pending: &mut Pending,
        options: &mut MobilityOptions,
    ) {
        let Some(interface) = self.interfaces.get(carrier).filter(|_| self.config.report_paths) else {
            return;
        };
        let (begun, first) = *pending.begun.get_or_insert((now, self.sequence));
        let registers = pending.purpose == Purpose::Register;
        let path = interface.known_path();
        let report = PathReport {
            downlink: path.downlink,
            uplink: path.uplink,
            round_trip: path.round_trip,
            old_path_lost: registers.then(|| self.old_path_lost(now, carrier, pending.attachment)).flatten(),
            repeated_for: now.saturating_duration_since(begun),
        };
        options.push(ToldPath { report, first }.option());
        // Only where something is lost does anybody repeat what was sent.
        if report.old_path_lost == Some(true)
            && let Some(received) = self.received.option()
        {
            options.push(received);
        }
    }

    /// Whether what was on its way by the path that a registration of interface `index` replaces or renews is lost, as far
    /// as can be told now.
    fn old_path_lost(&self, now: Instant, index: usize, attachment: Attachment) -> Option<bool> {
        if self.forwarded {
            return Some(false);
        }
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
        // Somebody must be able to say that the path works: the link layer or a router that is heard - and nobody that it may not.
        let in_place = self.attachment(now, index_of_old) == Some(held.attachment);
        let is_watched = self.config.movement.link_layer || old.is_routed();
        let is_sound = in_place && is_watched && !old.refresh && old.blocked.is_none();
        is_sound.then_some(false)
    }
}
