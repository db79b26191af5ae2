//! Neighbors are resolved, watched and answered.

use careof_wire::icmpv6::RouterSolicitation;
use careof_wire::ipv6::ALL_ROUTERS;

use super::*;
use crate::v6::neighbor_discovery::{Answering, DropReason, NeighborState, Resolution};

const NEIGHBOR: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 1, 0, 0, 0, 7);

#[test]
fn a_packet_for_a_neighbor_asks_for_its_link_layer_address() {
    let mut host = Host::settled();
    assert_eq!(host.nd.next_hop(NEIGHBOR), Some(NEIGHBOR), "it is on the link");
    assert_eq!(host.nd.resolve(host.now, NEIGHBOR), Resolution::Pending);
    let sent = host.sent();
    let (transmit, message) = &sent[0];
    assert_eq!((transmit.source, transmit.destination), (LINK_LOCAL, solicited_node(NEIGHBOR)));
    assert_eq!(*message, solicitation(NEIGHBOR, alloc::vec![NdOption::SourceLinkLayerAddress(HARDWARE)]));
    let message = Icmpv6Message::NeighborAdvertisement(answer(NEIGHBOR, OTHER_HARDWARE));
    host.hear(NEIGHBOR, LINK_LOCAL, &message);
    let link_layer_address = OTHER_HARDWARE;
    assert_eq!(host.events(), [Event::NeighborResolved { neighbor: NEIGHBOR, link_layer_address }]);
    assert_eq!(host.nd.resolve(host.now, NEIGHBOR), Resolution::Known(OTHER_HARDWARE));
    assert_eq!(host.nd.neighbor(NEIGHBOR).map(|entry| entry.state), Some(NeighborState::Reachable));
}

#[test]
fn a_neighbor_that_does_not_answer_three_questions_is_unreachable() {
    let mut host = Host::settled();
    let _ = host.nd.resolve(host.now, NEIGHBOR);
    host.pass(secs(3));
    assert_eq!(solicited(&host.sent()), [NEIGHBOR; 3]);
    assert_eq!(host.events(), [Event::NeighborUnreachable { neighbor: NEIGHBOR }]);
}

#[test]
fn a_neighbor_is_probed_at_its_link_layer_address() {
    let mut host = Host::settled();
    let ask = solicitation(LINK_LOCAL, alloc::vec![NdOption::SourceLinkLayerAddress(OTHER_HARDWARE)]);
    host.hear(OTHER, LINK_LOCAL, &ask);
    host.sent();
    assert_eq!(host.nd.resolve(host.now, OTHER), Resolution::Known(OTHER_HARDWARE));
    host.pass(secs(5));
    let sent = host.sent();
    assert_eq!((sent[0].0.destination, sent[0].0.link_layer_destination), (OTHER, Some(OTHER_HARDWARE)));
    // The owner's upper layers save the rest.
    host.nd.confirm_reachability(host.now, OTHER);
    host.pass(secs(3));
    assert!(host.sent().is_empty() && host.events().is_empty());
}

#[test]
fn the_time_for_upper_layers_is_the_owners_choice() {
    let mut host = Host::with(HostConfig { delay_first_probe: secs(2), ..HostConfig::mobile(HARDWARE) });
    host.nd.handle_link_up(host.now);
    host.hear_router(&advertisement(&[prefix(1)]));
    host.pass(secs(3));
    host.sent();
    assert_eq!(host.nd.resolve(host.now, ROUTER), Resolution::Known(ROUTER_HARDWARE));
    host.pass(secs(2));
    assert_eq!(solicited(&host.sent()), [ROUTER]);
}

#[test]
fn who_asks_for_an_address_is_answered_and_remembered() {
    let mut host = Host::settled();
    let ask = solicitation(GLOBAL, alloc::vec![NdOption::SourceLinkLayerAddress(OTHER_HARDWARE)]);
    host.hear(OTHER, solicited_node(GLOBAL), &ask);
    let answers = advertised(host.sent());
    let (transmit, message) = &answers[0];
    assert_eq!((transmit.source, transmit.destination), (GLOBAL, OTHER));
    assert_eq!(transmit.link_layer_destination, Some(OTHER_HARDWARE));
    assert_eq!(*message, answer(GLOBAL, HARDWARE));
    assert_eq!(host.nd.neighbor(OTHER).map(|entry| entry.state), Some(NeighborState::Stale));
    // Duplicate address detection of another node is answered to all.
    other_detects(&mut host, GLOBAL, Vec::new());
    let answers = advertised(host.sent());
    assert_eq!(answers[0].0.destination, ALL_NODES);
    assert!(!answers[0].1.solicited && answers[0].1.override_flag);
    // An address of somebody else is nobody's business here.
    let ask = solicitation(NEIGHBOR, Vec::new());
    host.hear(OTHER, solicited_node(NEIGHBOR), &ask);
    assert!(host.sent().is_empty());
    assert_eq!(host.nd.counters().dropped(DropReason::NotForUs), 1);
}

#[test]
fn an_address_that_comes_home_is_advertised_three_times() {
    let mut host = Host::settled();
    let home = Ipv6Addr::new(0x2001, 0xdb8, 0, 1, 0, 0, 0, 0x77);
    for (answering, source) in [(Answering::Own, home), (Answering::Proxy, LINK_LOCAL)] {
        host.nd.answer(home, Some(answering));
        host.nd.advertise(host.now, home);
        host.pass(secs(10));
        let advertised = advertised(host.sent());
        assert_eq!(advertised.len(), 3);
        for (transmit, message) in advertised {
            assert_eq!((transmit.source, transmit.destination), (source, ALL_NODES));
            assert!(message.override_flag && !message.solicited && !message.router);
            assert_eq!(message.options, [NdOption::TargetLinkLayerAddress(HARDWARE)]);
        }
    }
    let ask = solicitation(home, alloc::vec![NdOption::SourceLinkLayerAddress(OTHER_HARDWARE)]);
    host.hear(OTHER, solicited_node(home), &ask);
    let answers = advertised(host.sent());
    assert!(!answers[0].1.override_flag, "a proxy gives preference to the node itself");
    host.nd.answer(home, Some(Answering::Own));
    host.hear(OTHER, solicited_node(home), &ask);
    assert!(advertised(host.sent())[0].1.override_flag);
}

#[test]
fn a_router_says_so_and_hears_hosts_but_not_routers() {
    let mut config = HostConfig::mobile(HARDWARE);
    config.is_router = true;
    let mut host = Host::with(config);
    host.nd.handle_link_up(host.now);
    host.pass(secs(10));
    let sent = host.sent();
    assert!(!sent.iter().any(|(_, message)| matches!(message, Icmpv6Message::RouterSolicitation(_))));
    host.hear_router(&advertisement(&[prefix(1)]));
    assert_eq!((host.nd.routers().count(), host.nd.addresses().count()), (0, 1));
    let options = alloc::vec![NdOption::SourceLinkLayerAddress(OTHER_HARDWARE)];
    let message = Icmpv6Message::RouterSolicitation(RouterSolicitation { options });
    host.hear(OTHER, ALL_ROUTERS, &message);
    let entry = host.nd.neighbor(OTHER).unwrap();
    assert_eq!((entry.state, entry.is_router), (NeighborState::Stale, false));
    host.hear(OTHER, LINK_LOCAL, &solicitation(LINK_LOCAL, Vec::new()));
    assert!(advertised(host.sent())[0].1.router);
    // A host discards solicitations for routers.
    let mut host = Host::settled();
    host.hear(OTHER, ALL_ROUTERS, &message);
    assert_eq!(host.nd.counters().dropped(DropReason::NotForUs), 1);
}

#[test]
fn a_group_needs_no_resolution() {
    let mut host = Host::settled();
    let station = LinkLayerAddress([0x33, 0x33, 0, 0, 0, 1]);
    assert_eq!(host.nd.next_hop(ALL_NODES), Some(ALL_NODES));
    assert_eq!(host.nd.resolve(host.now, ALL_NODES), Resolution::Known(station));
    host.nd.handle_link_down(host.now);
    assert_eq!(host.nd.resolve(host.now, ALL_NODES), Resolution::Impossible);
}
