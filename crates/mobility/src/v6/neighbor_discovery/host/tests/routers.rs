//! Routers and prefixes are found, and lost.

use careof_wire::icmpv6::{MapOption, Redirect, RouterPreference};

use super::*;
use crate::v6::Prefix;
use crate::v6::neighbor_discovery::{DropReason, Resolution};

const FAR: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xffff, 0, 0, 0, 0, 1);

fn router_solicitations(sent: &[Sent]) -> usize {
    sent.iter().filter(|(_, message)| matches!(message, Icmpv6Message::RouterSolicitation(_))).count()
}

#[test]
fn a_router_and_its_prefixes_are_told_once() {
    let mut host = Host::mobile();
    host.hear_router(&advertisement(&[prefix(1), prefix(2)]));
    let prefixes: Vec<_> = [1, 2].map(|number| Prefix::new(prefix(number).prefix, 64)).to_vec();
    assert!(host.events().contains(&Event::RouterFound { router: ROUTER, prefixes }));
    host.hear_router(&advertisement(&[prefix(1), prefix(2)]));
    assert!(!host.events().iter().any(|event| matches!(event, Event::RouterFound { .. })));
    assert_eq!(host.nd.next_hop(FAR), Some(ROUTER));
    let neighbor = Ipv6Addr::new(0x2001, 0xdb8, 0, 2, 0, 0, 0, 9);
    assert_eq!(host.nd.next_hop(neighbor), Some(neighbor));
    // It ends the solicitations.
    host.sent();
    host.pass(secs(600));
    assert_eq!(router_solicitations(&host.sent()), 0);
}

#[test]
fn what_routers_say_of_the_link_is_told_when_it_changes() {
    let mut host = Host::mobile();
    let mut message = advertisement(&[]);
    message.options.push(NdOption::Mtu(1400));
    host.hear_router(&message);
    let events = host.events();
    assert!(events.contains(&Event::HopLimit(64)) && events.contains(&Event::LinkMtu(1400)));
    message.cur_hop_limit = 0;
    for mtu in [1400, 1279, 1501] {
        message.options.pop();
        message.options.push(NdOption::Mtu(mtu));
        host.hear_router(&message);
        assert_eq!(host.events(), [], "{mtu}");
    }
    // RetransTimer governs detection from then on.
    message.retrans_timer = milliseconds(200);
    message.options.push(NdOption::PrefixInformation(prefix(1)));
    host.hear_router(&message);
    host.pass(Duration::from_millis(200));
    assert_eq!(host.state(GLOBAL), Some(AddressState::Preferred));
}

#[test]
fn a_router_with_lifetime_zero_is_none_and_the_node_goes_on_asking() {
    let mut host = Host::mobile();
    let none = RouterAdvertisement { router_lifetime_secs: 0, ..advertisement(&[prefix(1)]) };
    host.hear_router(&none);
    assert_eq!((host.nd.routers().count(), host.nd.next_hop(FAR)), (0, None));
    host.sent();
    host.pass(secs(20));
    assert!(router_solicitations(&host.sent()) >= 2);
    // Its prefixes count all the same.
    assert_eq!(host.state(GLOBAL), Some(AddressState::Preferred));
    host.hear_router(&advertisement(&[]));
    host.events();
    host.hear_router(&none);
    assert_eq!(host.events(), [Event::RouterLost { router: ROUTER }]);
}

/// RFC 5380 section 7.1: each advertisement is told, for lifetimes begin anew with it.
#[test]
fn what_routers_say_of_mobility_anchor_points_is_told_behind_the_router() {
    let mut host = Host::mobile();
    let map = |number| MapOption {
        distance: 2,
        preference: 1,
        allocates_address: false,
        valid_lifetime: PrefixLifetime::from_secs(60),
        address: Ipv6Addr::new(0x2001, 0xdb8, 9, 0, 0, 0, 0, number),
    };
    let mut message = advertisement(&[prefix(1)]);
    message.options.extend((0..100).map(|number| NdOption::Map(map(number))));
    host.hear_router(&message);
    let events = host.events();
    let told = Event::MapsFound { router: ROUTER, maps: (0..8).map(map).collect() };
    let at = events.iter().position(|event| *event == told).expect("the first eight");
    assert!(matches!(events[at - 1], Event::RouterFound { router: ROUTER, .. }));
    host.hear_router(&message);
    assert_eq!(host.events(), [told]);
    // Who is no default router is nobody to believe.
    host.hear_router(&RouterAdvertisement { router_lifetime_secs: 0, ..message });
    assert_eq!(host.events(), [Event::RouterLost { router: ROUTER }]);
}

#[test]
fn a_router_that_does_not_answer_probes_is_lost_and_others_are_asked_for() {
    let mut host = Host::settled();
    assert_eq!(host.nd.resolve(host.now, ROUTER), Resolution::Known(ROUTER_HARDWARE));
    host.pass(secs(8));
    let events = host.events();
    assert!(events.contains(&Event::NeighborUnreachable { neighbor: ROUTER }));
    assert!(events.contains(&Event::RouterLost { router: ROUTER }));
    assert_eq!(router_solicitations(&host.sent()), 1);
    assert_eq!(host.nd.next_hop(FAR), None);
    host.hear_router(&advertisement(&[prefix(1)]));
    assert!(host.events().iter().any(|event| matches!(event, Event::RouterFound { .. })));
}

#[test]
fn a_router_whose_advertisements_are_missing_is_lost() {
    let mut host = Host::mobile();
    let mut message = advertisement(&[prefix(1)]);
    message.options.push(NdOption::AdvertisementInterval(milliseconds(90)));
    host.hear_router(&message);
    host.events();
    for _ in 0..20 {
        host.pass(Duration::from_millis(70));
        host.hear_router(&message);
    }
    assert!(!host.events().iter().any(|event| matches!(event, Event::RouterLost { .. })));
    host.pass(Duration::from_millis(269));
    assert!(host.events().is_empty());
    host.pass(Duration::from_millis(1));
    assert_eq!(host.events(), [Event::RouterLost { router: ROUTER }]);
    // A host that does not move waits for the lifetime.
    let mut host = Host::with(HostConfig::new(HARDWARE));
    host.nd.handle_link_up(host.now);
    host.hear_router(&message);
    host.events();
    host.pass(secs(1799));
    assert!(!host.events().iter().any(|event| matches!(event, Event::RouterLost { .. })));
    host.pass(secs(1));
    assert_eq!(host.events(), [Event::RouterLost { router: ROUTER }]);
}

#[test]
fn a_router_that_becomes_a_host_is_lost() {
    let mut host = Host::settled();
    let message = NeighborAdvertisement { solicited: false, ..answer(ROUTER, ROUTER_HARDWARE) };
    host.hear(ROUTER, ALL_NODES, &Icmpv6Message::NeighborAdvertisement(message));
    assert_eq!(host.events(), [Event::RouterLost { router: ROUTER }]);
}

#[test]
fn the_preferred_router_is_chosen_while_it_is_reachable() {
    let mut host = Host::settled();
    let mut message = advertisement(&[]);
    message.preference = RouterPreference::High;
    message.options = alloc::vec![NdOption::SourceLinkLayerAddress(OTHER_HARDWARE)];
    host.hear(OTHER, ALL_NODES, &Icmpv6Message::RouterAdvertisement(message));
    assert_eq!(host.nd.next_hop(FAR), Some(OTHER));
    let _ = host.nd.resolve(host.now, OTHER);
    host.pass(secs(8));
    assert_eq!(host.nd.next_hop(FAR), Some(ROUTER));
}

#[test]
fn advertisements_from_other_links_and_redirects_change_nothing() {
    let mut host = Host::settled();
    let message = Icmpv6Message::RouterAdvertisement(advertisement(&[prefix(9)]));
    host.hear_as(&IpFields { source: OTHER, destination: ALL_NODES, hop_limit: 254 }, &message);
    host.hear(FAR, ALL_NODES, &message);
    assert_eq!(host.nd.counters().dropped(DropReason::NotValid), 2);
    let redirect = Redirect { target: OTHER, destination: FAR, options: Vec::new() };
    host.hear(ROUTER, GLOBAL, &Icmpv6Message::Redirect(redirect));
    assert_eq!(host.nd.counters().dropped(DropReason::Redirect), 1);
    assert_eq!((host.nd.next_hop(FAR), host.nd.prefixes()), (Some(ROUTER), 1));
    assert!(host.events().is_empty());
    let ip = IpFields { source: ROUTER, destination: ALL_NODES, hop_limit: 255 };
    host.nd.handle_message(host.now, &ip, &[134, 0, 0, 0]);
    assert_eq!(host.nd.counters().dropped(DropReason::Malformed), 1);
}
