//! What received messages do.

use alloc::vec::Vec;
use core::net::Ipv6Addr;

use careof_base::Instant;
use careof_wire::icmpv6::{
    Icmpv6Message, IpFields, NdOption, NeighborAdvertisement, NeighborSolicitation, RouterAdvertisement,
    source_link_layer_address, target_link_layer_address,
};
use careof_wire::ipv6::ALL_NODES;

use super::{Answering, DropReason, Event, NeighborDiscovery};
use crate::v6::neighbor_discovery::autoconfiguration::AddressOrigin;
use crate::v6::neighbor_discovery::duplicate_address_detection::Heard;
use crate::v6::neighbor_discovery::optimistic::{AddressState, AddressUse};
use crate::v6::neighbor_discovery::router_discovery::RouterNews;

/// MAP options of one advertisement that are told.
const MAX_MAPS: usize = 8;

impl NeighborDiscovery {
    pub(super) fn message(&mut self, now: Instant, ip: &IpFields, bytes: &[u8]) -> Result<(), DropReason> {
        if !self.up || self.disabled {
            return Err(DropReason::InterfaceDown);
        }
        let message =
            Icmpv6Message::parse(ip.source, ip.destination, bytes).map_err(|_| DropReason::Malformed)?;
        message.check(ip).map_err(|_| DropReason::NotValid)?;
        match message {
            Icmpv6Message::RouterAdvertisement(message) => self.router_advertisement(now, ip, &message),
            Icmpv6Message::NeighborSolicitation(message) => self.neighbor_solicitation(now, ip, &message),
            Icmpv6Message::NeighborAdvertisement(message) => self.neighbor_advertisement(now, &message),
            Icmpv6Message::RouterSolicitation(message) if self.config.is_router => {
                if !ip.source.is_unspecified() {
                    let address = source_link_layer_address(&message.options);
                    let room = self.neighbors.heard(now, ip.source, address, Some(false));
                    self.note_room(room);
                }
                Ok(())
            }
            Icmpv6Message::RouterSolicitation(_) => Err(DropReason::NotForUs),
            Icmpv6Message::Redirect(_) => Err(DropReason::Redirect),
            _ => Ok(()),
        }
    }

    /// RFC 4861 section 6.3.4.
    fn router_advertisement(
        &mut self,
        now: Instant,
        ip: &IpFields,
        message: &RouterAdvertisement,
    ) -> Result<(), DropReason> {
        if self.config.is_router {
            return Err(DropReason::NotForUs);
        }
        let hop_limit = Some(message.cur_hop_limit).filter(|&limit| limit != 0);
        if hop_limit.is_some() && hop_limit != self.hop_limit {
            self.hop_limit = hop_limit;
            self.outbox.event(Event::HopLimit(message.cur_hop_limit));
        }
        if let Some(mtu) = message.mtu().filter(|&mtu| self.is_link_mtu(mtu) && Some(mtu) != self.link_mtu) {
            self.link_mtu = Some(mtu);
            self.outbox.event(Event::LinkMtu(mtu));
        }
        let (reachable, retrans) = (message.reachable_time.duration(), message.retrans_timer.duration());
        self.neighbors.set_timers(now, reachable, retrans, &mut self.random);
        let address = source_link_layer_address(&message.options);
        let room = self.neighbors.heard(now, ip.source, address, Some(true));
        self.note_room(room);

        let neighbors = &self.neighbors;
        let news = self.routers.heard(now, ip.source, message, |router| neighbors.is_in_use(router));
        let maps: Vec<_> = message.maps().take(MAX_MAPS).copied().collect();
        let is_default = message.router_lifetime_secs != 0 && news != RouterNews::NoRoom;
        match news {
            RouterNews::None => {}
            RouterNews::Found { prefixes, instead_of } => {
                if let Some(router) = instead_of {
                    self.outbox.event(Event::RouterLost { router });
                }
                self.outbox.event(Event::RouterFound { router: ip.source, prefixes });
            }
            RouterNews::Lost => self.router_lost(now, ip.source),
            RouterNews::NoRoom => self.note_room(false),
        }
        if is_default && !maps.is_empty() {
            self.outbox.event(Event::MapsFound { router: ip.source, maps });
        }
        if message.router_lifetime_secs != 0 {
            self.solicitor.found();
        }
        let knows_router =
            self.neighbors.get(ip.source).is_some_and(|entry| entry.link_layer_address.is_some());
        for prefix in message.prefixes() {
            let room = self.prefixes.heard(now, prefix);
            self.note_room(room);
            self.autoconfigure(now, prefix, knows_router, ip.destination.is_multicast());
        }
        Ok(())
    }

    /// RFC 4861 section 7.2.3, RFC 4862 section 5.4.3, RFC 4429 section 3.3, RFC 7527 section 4.2.
    fn neighbor_solicitation(
        &mut self,
        now: Instant,
        ip: &IpFields,
        message: &NeighborSolicitation,
    ) -> Result<(), DropReason> {
        let target = message.target;
        let is_detection = ip.source.is_unspecified();
        let state = self.addresses.get(target).map(|entry| entry.state(now));
        let under_detection = matches!(state, Some(AddressState::Tentative | AddressState::Optimistic));
        if under_detection && is_detection {
            let Some(entry) = self.addresses.get_mut(target) else { return Err(DropReason::NotForUs) };
            let heard = entry.detection.as_mut().map(|detection| detection.heard(message.nonce()));
            if heard == Some(Heard::Own) {
                return Err(DropReason::LoopedBack);
            }
            self.duplicate(now, target);
            return Ok(());
        }
        let own = self.addresses.get(target).filter(|entry| entry.origin != AddressOrigin::Probed);
        let answering = self.answering.get(&target).copied();
        let (answers, overrides) = match (own, answering) {
            (Some(entry), _) => {
                (entry.permits(now, AddressUse::AnswerToUnicast), entry.permits(now, AddressUse::Override))
            }
            (None, Some(Answering::Own)) => (true, true),
            (None, Some(Answering::Proxy)) => (true, false),
            (None, None) => (false, false),
        };
        if !answers {
            return Err(DropReason::NotForUs);
        }
        let is_proxy = own.is_none() && answering == Some(Answering::Proxy);
        let address = source_link_layer_address(&message.options);
        if !is_detection {
            let room = self.neighbors.heard(now, ip.source, address, None);
            self.note_room(room);
        }
        let answer = NeighborAdvertisement {
            router: self.config.is_router && !is_proxy,
            solicited: !is_detection,
            override_flag: overrides,
            target,
            options: alloc::vec![NdOption::TargetLinkLayerAddress(self.config.link_layer_address)],
        };
        let source = if is_proxy { self.soliciting_address(now).unwrap_or(target) } else { target };
        let destination = if is_detection { ALL_NODES } else { ip.source };
        let cached = self.neighbors.get(ip.source).and_then(|entry| entry.link_layer_address);
        let message = Icmpv6Message::NeighborAdvertisement(answer);
        self.send(source, destination, address.or(cached), &message);
        Ok(())
    }

    /// RFC 4861 section 7.2.5, RFC 4862 section 5.4.4.
    fn neighbor_advertisement(
        &mut self,
        now: Instant,
        message: &NeighborAdvertisement,
    ) -> Result<(), DropReason> {
        let target: Ipv6Addr = message.target;
        match self.addresses.get(target) {
            Some(entry) if entry.detection.is_some() => {
                self.duplicate(now, target);
                return Ok(());
            }
            // Somebody claims an address that was verified: what to do is beyond the scope of RFC 4862.
            Some(_) => return Err(DropReason::NotForUs),
            None => {}
        }
        let flags = (message.router, message.solicited, message.override_flag);
        self.neighbors.advertisement(now, target, flags, target_link_layer_address(&message.options));
        Ok(())
    }
}
