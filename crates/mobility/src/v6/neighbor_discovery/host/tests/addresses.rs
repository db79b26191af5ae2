//! Addresses are formed, verified and lost.

use careof_wire::ipv6::{ALL_MLDV2_ROUTERS, ALL_ROUTERS};

use super::*;
use crate::v6::Prefix;
use crate::v6::neighbor_discovery::{
    AddressLoss, Answering, DetectionConfig, DropReason, InterfaceIdentifiers, StableSecret,
};

fn assigned(address: Ipv6Addr, prefix: Prefix, valid: Option<u64>, optimistic: bool) -> Event {
    Event::AddressAssigned { address, prefix, valid_for: valid.map(secs), optimistic }
}

fn removed(address: Ipv6Addr, loss: AddressLoss) -> Event {
    Event::AddressRemoved { address, loss }
}

fn global_prefix() -> Prefix {
    Prefix::new(prefix(1).prefix, 64)
}

fn optimistic() -> HostConfig {
    let mut config = HostConfig::mobile(HARDWARE);
    config.detection.optimistic = true;
    config
}

fn stable() -> HostConfig {
    let interface_identifiers = InterfaceIdentifiers::Stable(StableSecret::new([7; 32]));
    HostConfig { interface_identifiers, ..HostConfig::mobile(HARDWARE) }
}

#[test]
fn the_link_local_address_is_verified_before_it_is_used() {
    let mut host = Host::mobile();
    let sent = host.sent();
    let [(report, _), (probe, _), (ask, _)] = &sent[..] else { panic!("{sent:?}") };
    assert_eq!((report.source, report.destination), (Ipv6Addr::UNSPECIFIED, ALL_MLDV2_ROUTERS));
    assert_eq!((report.hop_limit, report.router_alert), (1, true));
    let group = solicited_node(LINK_LOCAL);
    assert_eq!((probe.source, probe.destination), (Ipv6Addr::UNSPECIFIED, group));
    assert_eq!((probe.hop_limit, probe.router_alert), (255, false));
    let station = LinkLayerAddress([0x33, 0x33, 0xff, 0, 0, 0x11]);
    assert_eq!(probe.link_layer_destination, Some(station));
    assert_eq!(solicited(&sent), [LINK_LOCAL]);
    nonce_of(&sent);
    // Who has no address yet solicits from none, and tells no link-layer address.
    assert_eq!((ask.source, ask.destination), (Ipv6Addr::UNSPECIFIED, ALL_ROUTERS));
    assert!(matches!(&sent[2].1, Icmpv6Message::RouterSolicitation(message) if message.options.is_empty()));
    assert_eq!(host.state(LINK_LOCAL), Some(AddressState::Tentative));
    host.pass(Duration::from_millis(999));
    assert_eq!(host.events(), []);
    host.pass(Duration::from_millis(1));
    assert_eq!(host.events(), [assigned(LINK_LOCAL, Prefix::LINK_LOCAL, None, false)]);
    assert_eq!(host.state(LINK_LOCAL), Some(AddressState::Preferred));
    // The next solicitation comes from it, with the link-layer address.
    host.pass(secs(5));
    let sent = host.sent();
    assert_eq!(sent[0].0.source, LINK_LOCAL);
    assert!(matches!(&sent[0].1, Icmpv6Message::RouterSolicitation(message)
        if message.options == [NdOption::SourceLinkLayerAddress(HARDWARE)]));
}

#[test]
fn a_host_at_home_on_its_link_waits_a_random_time_and_a_mobile_node_does_not() {
    let mut host = Host::with(HostConfig::new(HARDWARE));
    host.nd.handle_link_up(host.now);
    assert!(host.sent().is_empty());
    host.pass(secs(1));
    assert_eq!(solicited(&host.sent()), [LINK_LOCAL]);
}

#[test]
fn a_prefix_makes_an_address_that_is_verified() {
    let mut host = Host::mobile();
    host.pass(secs(1));
    host.sent();
    host.events();
    host.hear_router(&advertisement(&[prefix(1)]));
    assert_eq!(solicited(&host.sent()), [GLOBAL]);
    host.pass(secs(1));
    let events = host.events();
    assert!(events.contains(&assigned(GLOBAL, global_prefix(), Some(86_399), false)), "{events:?}");
    // The same advertisement again is no news.
    host.hear_router(&advertisement(&[prefix(1)]));
    assert_eq!((host.events(), solicited(&host.sent())), (Vec::new(), Vec::new()));
}

#[test]
fn prefixes_that_make_no_address_make_none() {
    let mut host = Host::mobile();
    let good = prefix(1);
    let bad = [
        PrefixInformation { autonomous: false, ..good },
        PrefixInformation { prefix_length: 63, ..good },
        PrefixInformation { prefix: Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0), ..good },
        PrefixInformation {
            valid_lifetime: PrefixLifetime::ZERO,
            preferred_lifetime: PrefixLifetime::ZERO,
            ..good
        },
        PrefixInformation { preferred_lifetime: PrefixLifetime::INFINITE, ..good },
    ];
    host.hear_router(&advertisement(&bad));
    assert_eq!(host.nd.addresses().count(), 1);
    let mut config = HostConfig::mobile(HARDWARE);
    config.autoconfigure = false;
    let mut host = Host::with(config);
    host.nd.handle_link_up(host.now);
    host.hear_router(&advertisement(&[good]));
    assert_eq!(host.nd.addresses().count(), 1);
}

#[test]
fn another_node_that_wants_the_address_makes_it_a_duplicate() {
    for options in [Vec::new(), alloc::vec![NdOption::Nonce(Nonce::new([9; 6]))]] {
        let mut host = Host::mobile();
        host.hear_router(&advertisement(&[prefix(1)]));
        other_detects(&mut host, GLOBAL, options);
        assert!(host.events().contains(&removed(GLOBAL, AddressLoss::Duplicate)));
        assert_eq!((host.state(GLOBAL), host.nd.counters().duplicates), (None, 1));
        // The same prefix does not make the same address again.
        host.sent();
        host.hear_router(&advertisement(&[prefix(1)]));
        assert_eq!((host.state(GLOBAL), solicited(&host.sent())), (None, Vec::new()));
    }
}

#[test]
fn a_node_that_has_the_address_makes_it_a_duplicate() {
    let mut host = Host::mobile();
    host.hear_router(&advertisement(&[prefix(1)]));
    let mut message = answer(GLOBAL, OTHER_HARDWARE);
    message.solicited = false;
    host.hear(GLOBAL, ALL_NODES, &Icmpv6Message::NeighborAdvertisement(message));
    assert!(host.events().contains(&removed(GLOBAL, AddressLoss::Duplicate)));
    // For the link-local address of the hardware that means that the hardware is there twice.
    let mut message = answer(LINK_LOCAL, OTHER_HARDWARE);
    message.solicited = false;
    host.hear(LINK_LOCAL, ALL_NODES, &Icmpv6Message::NeighborAdvertisement(message));
    assert_eq!(host.events().last(), Some(&Event::InterfaceDisabled));
    assert_eq!((host.nd.addresses().count(), host.nd.next_timeout()), (0, None));
    host.sent();
    host.hear_router(&advertisement(&[prefix(2)]));
    assert_eq!(host.nd.counters().dropped(DropReason::InterfaceDown), 1);
    assert_eq!(host.nd.addresses().count(), 0);
    // On the next link it may work.
    host.nd.handle_link_up(host.now);
    assert_eq!(host.state(LINK_LOCAL), Some(AddressState::Tentative));
}

#[test]
fn a_stable_identifier_that_somebody_has_gives_way_to_others_and_then_the_prefix_is_given_up() {
    let mut host = Host::with(stable());
    host.nd.handle_link_up(host.now);
    host.hear_router(&advertisement(&[prefix(1)]));
    let address =
        |host: &Host| host.nd.addresses().map(|(own, _)| own).find(|own| global_prefix().contains(*own));
    let mut tried = Vec::new();
    while let Some(next) = address(&host) {
        assert!(!tried.contains(&next));
        tried.push(next);
        host.pass(Duration::from_millis(100));
        other_detects(&mut host, next, Vec::new());
    }
    assert_eq!(tried.len(), 4);
    host.hear_router(&advertisement(&[prefix(1)]));
    assert_eq!(address(&host), None);
    // The link-local address of such an identifier does not disable the interface.
    let link_local = host.nd.addresses().next().unwrap().0;
    other_detects(&mut host, link_local, Vec::new());
    assert!(!host.events().contains(&Event::InterfaceDisabled));
}

#[test]
fn a_probe_that_is_looped_back_is_no_duplicate() {
    let mut host = Host::mobile();
    let nonce = nonce_of(&host.sent());
    other_detects(&mut host, LINK_LOCAL, alloc::vec![NdOption::Nonce(nonce)]);
    assert_eq!(host.nd.counters().dropped(DropReason::LoopedBack), 1);
    host.pass(secs(1));
    assert_eq!(host.events(), [], "three more probes go out");
    host.pass(secs(3));
    assert_eq!(host.events(), [assigned(LINK_LOCAL, Prefix::LINK_LOCAL, None, false)]);
}

#[test]
fn two_nodes_that_want_one_address_at_once_both_find_out() {
    let mut hosts = [Host::mobile(), Host::mobile()];
    // The same hardware, but not the same random numbers.
    hosts[1].nd =
        NeighborDiscovery::new(HostConfig::mobile(HARDWARE), RandomStream::new(2, 0, "host").into());
    hosts[1].nd.handle_link_up(Instant::ZERO);
    let sent: Vec<_> = hosts.iter_mut().map(Host::sent).collect();
    for (host, sent) in hosts.iter_mut().rev().zip(&sent) {
        for (transmit, message) in sent {
            if matches!(message, Icmpv6Message::NeighborSolicitation(_)) {
                host.hear(transmit.source, transmit.destination, message);
            }
        }
        assert_eq!(host.events().last(), Some(&Event::InterfaceDisabled));
    }
}

#[test]
fn nobody_is_answered_for_a_tentative_address() {
    let mut host = Host::mobile();
    host.sent();
    let ask = solicitation(LINK_LOCAL, alloc::vec![NdOption::SourceLinkLayerAddress(OTHER_HARDWARE)]);
    host.hear(OTHER, solicited_node(LINK_LOCAL), &ask);
    assert!(host.sent().is_empty());
    assert_eq!(host.nd.counters().dropped(DropReason::NotForUs), 1);
    assert_eq!(host.nd.neighbors(), 0, "nor is anything remembered of who asked");
}

#[test]
fn an_optimistic_address_is_used_at_once_and_with_care() {
    let mut host = Host::with(optimistic());
    host.nd.handle_link_up(host.now);
    host.hear_router(&advertisement(&[prefix(1)]));
    assert!(host.events().contains(&assigned(GLOBAL, global_prefix(), Some(86_400), true)));
    assert_eq!(host.state(GLOBAL), Some(AddressState::Optimistic));
    assert_eq!(host.state(LINK_LOCAL), Some(AddressState::Tentative), "the router was not known then");
    host.sent();
    // It answers, but overrides nobody.
    let ask = solicitation(GLOBAL, alloc::vec![NdOption::SourceLinkLayerAddress(OTHER_HARDWARE)]);
    host.hear(OTHER, solicited_node(GLOBAL), &ask);
    let answers = advertised(host.sent());
    assert_eq!(answers.len(), 1);
    assert!(answers[0].1.solicited && !answers[0].1.override_flag);
    // It asks nobody.
    let neighbor = Ipv6Addr::new(0x2001, 0xdb8, 0, 1, 0, 0, 0, 7);
    assert_eq!(host.nd.resolve(host.now, neighbor), crate::v6::neighbor_discovery::Resolution::Impossible);
    assert!(solicited(&host.sent()).is_empty());
    host.pass(secs(1));
    assert!(host.events().contains(&assigned(GLOBAL, global_prefix(), Some(86_399), false)));
    assert_eq!(host.state(GLOBAL), Some(AddressState::Preferred));
}

#[test]
fn an_optimistic_address_that_somebody_wants_or_has_is_lost() {
    for has in [false, true] {
        let mut host = Host::with(optimistic());
        host.nd.handle_link_up(host.now);
        host.hear_router(&advertisement(&[prefix(1)]));
        if has {
            let message = answer(GLOBAL, OTHER_HARDWARE);
            let message = NeighborAdvertisement { solicited: false, ..message };
            host.hear(GLOBAL, ALL_NODES, &Icmpv6Message::NeighborAdvertisement(message));
        } else {
            other_detects(&mut host, GLOBAL, Vec::new());
        }
        assert!(host.events().contains(&removed(GLOBAL, AddressLoss::Duplicate)));
        assert!(advertised(host.sent()).is_empty());
    }
}

#[test]
fn without_the_link_layer_address_of_the_router_no_address_is_optimistic() {
    let mut host = Host::with(optimistic());
    host.nd.handle_link_up(host.now);
    let mut message = advertisement(&[prefix(1)]);
    message.options.remove(0);
    host.hear_router(&message);
    assert_eq!(host.state(GLOBAL), Some(AddressState::Tentative));
}

#[test]
fn without_detection_an_address_is_used_at_once() {
    let mut config = HostConfig::new(HARDWARE);
    config.detection = DetectionConfig { transmits: 0, ..DetectionConfig::default() };
    let mut host = Host::with(config);
    host.nd.handle_link_up(host.now);
    assert_eq!(host.state(LINK_LOCAL), Some(AddressState::Preferred));
    assert!(solicited(&host.sent()).is_empty());
}

#[test]
fn an_address_is_deprecated_and_then_expires() {
    let mut host = Host::mobile();
    let lifetimes = |valid, preferred| PrefixInformation {
        valid_lifetime: PrefixLifetime::from_secs(valid),
        preferred_lifetime: PrefixLifetime::from_secs(preferred),
        ..prefix(1)
    };
    host.hear_router(&advertisement(&[lifetimes(100, 50)]));
    host.pass(secs(49));
    host.events();
    host.pass(secs(1));
    assert_eq!(host.events(), [Event::AddressDeprecated { address: GLOBAL }]);
    assert_eq!(host.state(GLOBAL), Some(AddressState::Deprecated));
    // A router can prefer it again, and prolong it.
    host.hear_router(&advertisement(&[lifetimes(300, 50)]));
    assert_eq!(host.state(GLOBAL), Some(AddressState::Preferred));
    assert_eq!(host.events(), [assigned(GLOBAL, global_prefix(), Some(300), false)]);
    host.pass(secs(50));
    assert_eq!(host.events(), [Event::AddressDeprecated { address: GLOBAL }]);
    host.pass(secs(250));
    assert_eq!(host.events(), [removed(GLOBAL, AddressLoss::Expired)]);
    assert_eq!(host.state(GLOBAL), None);
}

#[test]
fn nobody_ends_an_address_by_a_forged_advertisement() {
    let mut host = Host::settled();
    let forged = PrefixInformation {
        valid_lifetime: PrefixLifetime::ZERO,
        preferred_lifetime: PrefixLifetime::ZERO,
        ..prefix(1)
    };
    host.hear_router(&advertisement(&[forged]));
    assert_eq!(host.state(GLOBAL), Some(AddressState::Deprecated));
    let events = host.events();
    assert!(events.contains(&assigned(GLOBAL, global_prefix(), Some(7200), false)), "{events:?}");
    // The next true one puts it right.
    host.hear_router(&advertisement(&[prefix(1)]));
    assert_eq!(host.state(GLOBAL), Some(AddressState::Preferred));
    assert_eq!(host.events(), [assigned(GLOBAL, global_prefix(), Some(86_400), false)]);
}

#[test]
fn with_the_link_go_its_addresses_and_those_of_the_owner_are_verified_on_the_next() {
    let mut host = Host::settled();
    let own = Ipv6Addr::new(0x2001, 0xdb8, 7, 0, 0, 0, 0, 1);
    host.nd.add_address(host.now, own, Prefix::new(own, 64));
    host.pass(secs(2));
    assert_eq!(host.events(), [assigned(own, Prefix::new(own, 64), None, false)]);
    host.nd.handle_link_down(host.now);
    let events = host.events();
    for address in [LINK_LOCAL, GLOBAL, own] {
        assert!(events.contains(&removed(address, AddressLoss::LinkLost)), "{address}");
    }
    assert!(events.contains(&Event::RouterLost { router: ROUTER }));
    assert_eq!(host.nd.next_timeout(), None);
    host.sent();
    host.nd.handle_link_up(host.now);
    assert_eq!(host.state(own), Some(AddressState::Tentative));
    assert!(solicited(&host.sent()).contains(&own));
    host.nd.remove_address(host.now, own);
    assert_eq!(host.events(), [removed(own, AddressLoss::Removed)]);
}

#[test]
fn the_owner_is_told_whether_an_address_is_another_node_s() {
    let home = Ipv6Addr::new(0x2001, 0xdb8, 0, 1, 0, 0, 0, 0x77);
    let done = |unique| [Event::DetectionDone { address: home, unique }];
    let mut host = Host::settled();
    host.nd.detect_duplicate(host.now, home, Duration::from_millis(500));
    assert_eq!(solicited(&host.sent()), [home]);
    host.pass(Duration::from_millis(499));
    assert_eq!(host.events(), []);
    host.pass(Duration::from_millis(1));
    assert_eq!(host.events(), done(true));
    host.nd.detect_duplicate(host.now, home, secs(1));
    assert!(host.nd.addresses().all(|(own, _)| own != home), "it is not the node's own");
    let message = NeighborAdvertisement { solicited: false, ..answer(home, OTHER_HARDWARE) };
    host.hear(home, ALL_NODES, &Icmpv6Message::NeighborAdvertisement(message));
    assert_eq!(host.events(), done(false));
    host.nd.detect_duplicate(host.now, GLOBAL, secs(1));
    assert_eq!(host.events(), [Event::DetectionDone { address: GLOBAL, unique: false }]);
    host.nd.detect_duplicate(host.now, home, secs(1));
    host.nd.handle_link_down(host.now);
    assert!(host.events().contains(&done(false)[0]));
}

#[test]
fn a_home_agent_defends_the_address_that_it_stands_in_for() {
    let home = Ipv6Addr::new(0x2001, 0xdb8, 0, 1, 0, 0, 0, 0x77);
    let mut host = Host::settled();
    host.nd.answer(home, Some(Answering::Proxy));
    other_detects(&mut host, home, Vec::new());
    let answers = advertised(host.sent());
    let (transmit, message) = &answers[0];
    assert_eq!((transmit.source, transmit.destination), (LINK_LOCAL, ALL_NODES));
    assert!(!message.solicited && !message.router && !message.override_flag);
    assert_eq!(message.target, home);
    host.nd.answer(home, None);
    other_detects(&mut host, home, Vec::new());
    assert!(advertised(host.sent()).is_empty());
}
