//! A neighbor that says whatever it likes.

use super::*;
use crate::v6::neighbor_discovery::{AddressLoss, Limits};

const LIMITS: Limits = Limits { neighbors: 32, routers: 4, prefixes: 8, addresses: 6 };

fn small() -> HostConfig {
    HostConfig { limits: LIMITS, ..HostConfig::mobile(HARDWARE) }
}

#[track_caller]
fn check_bounds(host: &Host) {
    let nd = &host.nd;
    assert!(nd.neighbors() <= LIMITS.neighbors);
    assert!(nd.routers().count() <= LIMITS.routers);
    assert!(nd.prefixes() <= LIMITS.prefixes);
    // The link-local address is not made of a prefix.
    assert!(nd.addresses().count() <= LIMITS.addresses + 1);
    assert!(nd.next_timeout().is_none_or(|(at, _)| at > host.now));
}

/// A message that anybody on the link can make up.
fn forged(random: &mut RandomStream) -> (Ipv6Addr, Ipv6Addr, Icmpv6Message) {
    let mut below = |bound: u64| random.below(bound);
    let number = below(400) as u16;
    let stranger = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0x1000 + number);
    let hardware = LinkLayerAddress([2, 0, 0, 1, (number >> 8) as u8, number as u8]);
    let targets = [
        GLOBAL,
        LINK_LOCAL,
        ROUTER,
        stranger,
        Ipv6Addr::new(0x2001, 0xdb8, 0, number, 0, 0xff, 0xfe00, 0x11),
    ];
    let target = targets[below(5) as usize];
    match below(4) {
        0 => {
            let lifetime = [0, 1, 600, 9000][below(4) as usize];
            let information = PrefixInformation {
                prefix_length: [64, 64, 48, 128][below(4) as usize],
                on_link: below(4) != 0,
                autonomous: below(4) != 0,
                valid_lifetime: PrefixLifetime::from_secs([0, 1, 86_400, u32::MAX][below(4) as usize]),
                preferred_lifetime: PrefixLifetime::from_secs([0, 1, 3600][below(3) as usize]),
                ..prefix(number)
            };
            let options = alloc::vec![
                NdOption::SourceLinkLayerAddress(hardware),
                NdOption::PrefixInformation(information),
                NdOption::AdvertisementInterval(milliseconds(below(1000) as u32)),
            ];
            let message = RouterAdvertisement {
                cur_hop_limit: below(256) as u8,
                router_lifetime_secs: lifetime,
                reachable_time: milliseconds(below(3) as u32 * 30_000),
                retrans_timer: milliseconds(below(3) as u32 * 500),
                options,
                ..RouterAdvertisement::default()
            };
            (stranger, ALL_NODES, Icmpv6Message::RouterAdvertisement(message))
        }
        1 => {
            let options = alloc::vec![NdOption::SourceLinkLayerAddress(hardware)];
            (stranger, solicited_node(target), solicitation(target, options))
        }
        2 => {
            let nonce = NdOption::Nonce(Nonce::new([number as u8; 6]));
            (Ipv6Addr::UNSPECIFIED, solicited_node(target), solicitation(target, alloc::vec![nonce]))
        }
        _ => {
            let message = NeighborAdvertisement {
                router: below(2) == 0,
                solicited: false,
                override_flag: below(2) == 0,
                ..answer(target, hardware)
            };
            (stranger, ALL_NODES, Icmpv6Message::NeighborAdvertisement(message))
        }
    }
}

#[test]
fn whatever_a_neighbor_says_memory_is_bounded_and_time_goes_on() {
    let mut random = RandomStream::new(1, 0, "hostile");
    for round in 0..20 {
        let mut host = Host::with(small());
        host.nd.handle_link_up(host.now);
        for _ in 0..500 {
            let (source, destination, message) = forged(&mut random);
            host.hear(source, destination, &message);
            check_bounds(&host);
            if random.below(4) == 0 {
                let next_hop = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0x1000 + random.below(400) as u16);
                let _ = host.nd.resolve(host.now, next_hop);
                check_bounds(&host);
            }
            host.pass(Duration::from_millis(random.below(200)));
            check_bounds(&host);
            // Each message makes but a few of its own.
            assert!(host.sent().len() <= 64 && host.events().len() <= 128, "round {round}");
        }
    }
}

#[test]
fn the_router_and_the_addresses_in_use_survive_a_flood() {
    let mut host = Host::with(small());
    host.nd.handle_link_up(host.now);
    host.hear_router(&advertisement(&[prefix(1)]));
    host.pass(secs(3));
    let mut random = RandomStream::new(1, 0, "flood");
    host.events();
    for _ in 0..3000 {
        // The router is used and its answers confirm it.
        let _ = host.nd.resolve(host.now, ROUTER);
        host.nd.confirm_reachability(host.now, ROUTER);
        let (source, destination, message) = forged(&mut random);
        // Whoever forges the router's own words can have it all: RFC 3756.
        if !matches!(&message, Icmpv6Message::NeighborAdvertisement(message) if message.target == ROUTER) {
            host.hear(source, destination, &message);
        }
        host.pass(Duration::from_millis(10));
        host.sent();
        let lost = |event: &Event| {
            *event == Event::RouterLost { router: ROUTER }
                || *event == Event::AddressRemoved { address: GLOBAL, loss: AddressLoss::Expired }
        };
        assert!(!host.events().iter().any(lost));
    }
    assert!(host.nd.routers().any(|router| router == ROUTER));
    assert!(host.state(GLOBAL).is_some());
    assert!(host.nd.counters().dropped_total() > 0);
}

#[test]
fn the_same_words_have_the_same_effect() {
    let run = || {
        let mut random = RandomStream::new(3, 0, "hostile");
        let mut host = Host::with(small());
        host.nd.handle_link_up(host.now);
        let mut log = Vec::new();
        for _ in 0..300 {
            let (source, destination, message) = forged(&mut random);
            host.hear(source, destination, &message);
            host.pass(Duration::from_millis(50));
            log.extend(host.sent().into_iter().map(|(transmit, _)| transmit));
        }
        log
    };
    assert_eq!(run(), run());
}
