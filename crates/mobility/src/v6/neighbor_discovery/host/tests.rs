//! One interface, and whatever speaks on its link.

use alloc::vec::Vec;
use core::net::Ipv6Addr;
use core::time::Duration;

use careof_base::{Instant, RandomStream};
use careof_wire::icmpv6::{
    Icmpv6Message, IpFields, LinkLayerAddress, Milliseconds, NdOption, NeighborAdvertisement,
    NeighborSolicitation, Nonce, PrefixInformation, PrefixLifetime, RouterAdvertisement,
};
use careof_wire::ipv6::{ALL_NODES, solicited_node};

use super::{HostConfig, NeighborDiscovery};
use crate::v6::neighbor_discovery::{AddressState, Event, Transmit};

mod addresses;
mod hostile;
mod neighbors;
mod routers;

const HARDWARE: LinkLayerAddress = LinkLayerAddress([0x02, 0, 0, 0, 0, 0x11]);
const LINK_LOCAL: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0x00ff, 0xfe00, 0x0011);
const GLOBAL: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 1, 0, 0x00ff, 0xfe00, 0x0011);
const ROUTER: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1);
const ROUTER_HARDWARE: LinkLayerAddress = LinkLayerAddress([0x02, 0, 0, 0, 0, 1]);
const OTHER: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0x99);
const OTHER_HARDWARE: LinkLayerAddress = LinkLayerAddress([0x02, 0, 0, 0, 0, 0x99]);

/// A message as it was sent, and how.
type Sent = (Transmit, Icmpv6Message);

struct Host {
    nd: NeighborDiscovery,
    now: Instant,
}

impl Host {
    fn with(config: HostConfig) -> Self {
        let random = RandomStream::new(1, 0, "host").into();
        Self { nd: NeighborDiscovery::new(config, random), now: Instant::ZERO }
    }

    /// A mobile node that has come to the link.
    fn mobile() -> Self {
        let mut host = Self::with(HostConfig::mobile(HARDWARE));
        host.nd.handle_link_up(host.now);
        host
    }

    /// One whose addresses have been verified, and that knows the router.
    fn settled() -> Self {
        let mut host = Self::mobile();
        host.hear_router(&advertisement(&[prefix(1)]));
        host.pass(Duration::from_secs(3));
        host.sent();
        host.events();
        host
    }

    fn sent(&mut self) -> Vec<Sent> {
        let parse = |transmit: Transmit| {
            let message = Icmpv6Message::parse(transmit.source, transmit.destination, &transmit.message);
            (transmit, message.expect("a message"))
        };
        core::iter::from_fn(|| self.nd.poll_transmit(self.now)).map(parse).collect()
    }

    fn events(&mut self) -> Vec<Event> {
        core::iter::from_fn(|| self.nd.poll_event()).collect()
    }

    fn hear(&mut self, source: Ipv6Addr, destination: Ipv6Addr, message: &Icmpv6Message) {
        let ip = IpFields { source, destination, hop_limit: 255 };
        self.hear_as(&ip, message);
    }

    fn hear_as(&mut self, ip: &IpFields, message: &Icmpv6Message) {
        let mut bytes = Vec::new();
        message.emit(ip.source, ip.destination, &mut bytes);
        self.nd.handle_message(self.now, ip, &bytes);
        // Whatever was said, nothing is due any more.
        assert!(self.nd.next_timeout().is_none_or(|(at, _)| at > self.now));
    }

    fn hear_router(&mut self, message: &RouterAdvertisement) {
        self.hear(ROUTER, ALL_NODES, &Icmpv6Message::RouterAdvertisement(message.clone()));
    }

    /// Lets time pass, and does what is due meanwhile.
    fn pass(&mut self, span: Duration) {
        let until = self.now + span;
        while let Some((due, _)) = self.nd.next_timeout().filter(|(due, _)| *due <= until) {
            self.now = due;
            self.nd.handle_timeout(due);
            assert!(self.nd.next_timeout().is_none_or(|(next, _)| next > due), "what was due is done");
        }
        self.now = until;
        self.nd.handle_timeout(until);
    }

    fn state(&self, address: Ipv6Addr) -> Option<AddressState> {
        self.nd.addresses().find(|(own, _)| *own == address).map(|(_, state)| state)
    }
}

fn prefix(number: u16) -> PrefixInformation {
    PrefixInformation {
        prefix_length: 64,
        on_link: true,
        autonomous: true,
        router_address: false,
        valid_lifetime: PrefixLifetime::from_secs(86_400),
        preferred_lifetime: PrefixLifetime::from_secs(14_400),
        prefix: Ipv6Addr::new(0x2001, 0xdb8, 0, number, 0, 0, 0, 0),
    }
}

fn advertisement(prefixes: &[PrefixInformation]) -> RouterAdvertisement {
    let source = NdOption::SourceLinkLayerAddress(ROUTER_HARDWARE);
    let prefixes = prefixes.iter().copied().map(NdOption::PrefixInformation);
    RouterAdvertisement {
        cur_hop_limit: 64,
        router_lifetime_secs: 1800,
        options: [source].into_iter().chain(prefixes).collect(),
        ..RouterAdvertisement::default()
    }
}

fn solicitation(target: Ipv6Addr, options: Vec<NdOption>) -> Icmpv6Message {
    Icmpv6Message::NeighborSolicitation(NeighborSolicitation { target, options })
}

fn answer(target: Ipv6Addr, hardware: LinkLayerAddress) -> NeighborAdvertisement {
    NeighborAdvertisement {
        router: false,
        solicited: true,
        override_flag: true,
        target,
        options: alloc::vec![NdOption::TargetLinkLayerAddress(hardware)],
    }
}

/// The targets of the solicitations that were sent.
fn solicited(sent: &[Sent]) -> Vec<Ipv6Addr> {
    let target = |(_, message): &Sent| match message {
        Icmpv6Message::NeighborSolicitation(message) => Some(message.target),
        _ => None,
    };
    sent.iter().filter_map(target).collect()
}

/// The advertisements that were sent.
fn advertised(sent: Vec<Sent>) -> Vec<(Transmit, NeighborAdvertisement)> {
    let advertisement = |(transmit, message)| match message {
        Icmpv6Message::NeighborAdvertisement(message) => Some((transmit, message)),
        _ => None,
    };
    sent.into_iter().filter_map(advertisement).collect()
}

fn nonce_of(sent: &[Sent]) -> Nonce {
    let nonce = |(_, message): &Sent| match message {
        Icmpv6Message::NeighborSolicitation(message) => message.nonce().cloned(),
        _ => None,
    };
    sent.iter().find_map(nonce).expect("a solicitation with a nonce")
}

/// Another node's duplicate address detection for `target`.
fn other_detects(host: &mut Host, target: Ipv6Addr, options: Vec<NdOption>) {
    host.hear(Ipv6Addr::UNSPECIFIED, solicited_node(target), &solicitation(target, options));
}

const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

const fn milliseconds(millis: u32) -> Milliseconds {
    Milliseconds(millis)
}
