//! The server (RFC 2131 section 4.3).

use std::net::Ipv4Addr;
use std::time::Duration;

use careof_base::Instant;
use careof_mobility::dhcp::{ConfigError, Datagram, DhcpServer, DropReason, ServerConfig, ServerEvent, Wake};
use careof_mobility::v4::{InterfaceId, TransmitPayload};
use careof_wire::dhcp::{DhcpMessage, LeaseTime, MessageType, SERVER_PORT};
use careof_wire::icmp::{Echo, IcmpMessage};
use proptest::prelude::*;

use super::craft::*;

const MIDDLE: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 11);

/// The echo that the server sends: where, and the message.
fn ping(server: &mut DhcpServer) -> (Ipv4Addr, Echo) {
    let transmit = server.poll_transmit().expect("an echo");
    assert_eq!((transmit.source, transmit.interface), (SERVER, Some(INTERFACE)));
    let TransmitPayload::Icmp { bytes } = &transmit.payload else { panic!("{transmit:?}") };
    let Ok(IcmpMessage::EchoRequest(echo)) = IcmpMessage::parse(bytes) else { panic!("{bytes:?}") };
    (transmit.destination, echo)
}

fn answer(server: &mut DhcpServer, now: Instant, from: Ipv4Addr, echo: Echo) {
    let mut bytes = Vec::new();
    IcmpMessage::EchoReply(echo).emit(&mut bytes);
    server.handle_icmp(now, from, &bytes);
}

#[test]
fn a_discover_is_offered_an_address_with_all_it_needs() {
    let mut server = new_server(plain_server());
    tell_server(&mut server, secs(1), &discover(1));
    let (transmit, offer) = reply(&mut server);
    assert_eq!((transmit.source, transmit.destination), (SERVER, FIRST));
    assert_eq!((offer.kind, offer.yiaddr, offer.ciaddr), (MessageType::Offer, FIRST, Ipv4Addr::UNSPECIFIED));
    assert_eq!((offer.xid, offer.chaddr), (0x101, hardware(1)));
    assert_eq!((offer.server_identifier, offer.prefix_length), (Some(SERVER), Some(24)));
    assert_eq!(offer.routers, [SERVER]);
    let times = [offer.lease_time, offer.renewal_time, offer.rebinding_time];
    assert_eq!(times, [43_200, 21_600, 37_800].map(|time| Some(LeaseTime::from_secs(time))));
}

#[test]
fn replies_are_broadcast_to_whoever_takes_no_others() {
    let mut server = new_server(plain_server());
    tell_server(&mut server, secs(1), &DhcpMessage { broadcast: true, ..discover(1) });
    let (transmit, offer) = reply(&mut server);
    assert_eq!((transmit.destination, offer.broadcast), (Ipv4Addr::BROADCAST, true));
    tell_server(&mut server, secs(1), &request(1, MIDDLE));
    let (transmit, nak) = reply(&mut server);
    assert_eq!((transmit.destination, nak.kind), (Ipv4Addr::BROADCAST, MessageType::Nak));
}

#[test]
fn an_offer_that_is_asked_for_becomes_a_lease() {
    let mut server = new_server(plain_server());
    assert_eq!(server.leases(secs(1)), 0);
    assert_eq!(lease(&mut server, secs(1), 1), FIRST);
    assert_eq!(server.leases(secs(1)), 1);
    let lease_time = LeaseTime::from_secs(43_200);
    let leased = ServerEvent::Leased { address: FIRST, client: hardware(1), lease_time };
    assert_eq!(server.poll_event(), Some(leased));
    assert_eq!(server.leases(secs(43_201)), 0);
}

#[test]
fn a_client_gets_the_time_it_asks_for_up_to_the_longest() {
    for (asked, granted) in [(60, 60), (100_000, 86_400), (u32::MAX, 86_400), (0, 43_200)] {
        let mut server = new_server(plain_server());
        let asked = Some(LeaseTime::from_secs(asked));
        tell_server(&mut server, secs(1), &DhcpMessage { lease_time: asked, ..discover(1) });
        assert_eq!(reply(&mut server).1.lease_time, Some(LeaseTime::from_secs(granted)));
    }
}

#[test]
fn the_server_works_on_each_reply_for_its_processing_time() {
    let mut server = new_server(ServerConfig { processing: millis(30), ..plain_server() });
    tell_server(&mut server, secs(1), &discover(1));
    assert!(replies(&mut server).is_empty());
    let due = secs(1) + millis(30);
    assert_eq!(server.next_timeout(), Some((due, Wake::ReplyDue)));
    server.handle_timeout(due);
    assert_eq!(reply(&mut server).1.kind, MessageType::Offer);
}

#[test]
fn an_address_is_offered_when_nobody_has_answered_an_echo_for_a_second() {
    let config = ServerConfig::new(INTERFACE, SERVER, 24, FIRST, LAST);
    assert_eq!(config.ping_check, Some(Duration::from_secs(1)), "as dhcpd does");
    let mut server = new_server(config);
    tell_server(&mut server, secs(1), &discover(1));
    assert_eq!(ping(&mut server).0, FIRST);
    assert_eq!(server.next_timeout(), Some((secs(2), Wake::ConflictCheck)));
    // What is said meanwhile counts, and sends no further echo.
    tell_server(&mut server, secs(1), &DhcpMessage { secs: 4, xid: 0x777, ..discover(1) });
    assert_eq!(server.poll_transmit(), None);
    server.handle_timeout(secs(2));
    let (_, offer) = reply(&mut server);
    assert_eq!((offer.yiaddr, offer.xid), (FIRST, 0x777));
}

#[test]
fn an_address_that_answers_is_left_alone_and_another_one_tried() {
    let mut server = new_server(ServerConfig { ping_check: Some(millis(500)), ..plain_server() });
    tell_server(&mut server, secs(1), &discover(1));
    let (address, echo) = ping(&mut server);
    // Another's answer, and one to another echo, say nothing.
    answer(&mut server, secs(1), LAST, echo.clone());
    answer(&mut server, secs(1), FIRST, Echo { sequence: echo.sequence ^ 1, ..echo.clone() });
    assert_eq!(server.counters().dropped(DropReason::Unexpected), 2);
    answer(&mut server, secs(1) + millis(400), address, echo);
    assert_eq!(ping(&mut server).0, MIDDLE);
    server.handle_timeout(secs(1) + millis(900));
    assert_eq!(reply(&mut server).1.yiaddr, MIDDLE);
    // Nobody gets it for a day.
    let mut others = [2, 3].map(|n| {
        tell_server(&mut server, secs(5), &discover(n));
        std::iter::from_fn(|| server.poll_transmit()).map(|transmit| transmit.destination).collect::<Vec<_>>()
    });
    others.sort();
    assert_eq!(others, [vec![], vec![LAST]]);
    assert_eq!(server.counters().dropped(DropReason::NoAddress), 1);
}

#[test]
fn a_client_that_holds_an_address_is_offered_it_without_an_echo() {
    let mut server = new_server(ServerConfig { ping_check: Some(millis(500)), ..plain_server() });
    tell_server(&mut server, secs(1), &discover(1));
    ping(&mut server);
    server.handle_timeout(secs(2));
    reply(&mut server);
    tell_server(&mut server, secs(2), &request(1, FIRST));
    reply(&mut server);
    tell_server(&mut server, secs(9), &discover(1));
    assert_eq!(reply(&mut server).1.yiaddr, FIRST);
    assert_eq!(server.leases(secs(9)), 1, "an offer does not end a lease");
}

#[test]
fn addresses_are_chosen_as_held_then_as_wished_then_unused_then_longest_free() {
    let mut server = new_server(plain_server());
    let wish = |n, address| DhcpMessage { requested_address: Some(address), ..discover(n) };
    tell_server(&mut server, secs(1), &wish(1, MIDDLE));
    assert_eq!(reply(&mut server).1.yiaddr, MIDDLE, "as wished");
    tell_server(&mut server, secs(1), &wish(2, MIDDLE));
    assert_eq!(reply(&mut server).1.yiaddr, FIRST, "not another's");
    tell_server(&mut server, secs(1), &wish(3, Ipv4Addr::new(198, 51, 100, 9)));
    assert_eq!(reply(&mut server).1.yiaddr, LAST, "unused before free");
    tell_server(&mut server, secs(2), &discover(4));
    assert_eq!(dropped_by(&mut server), [DropReason::NoAddress]);
    tell_server(&mut server, secs(3), &request(3, LAST));
    reply(&mut server);
    // The offers of 1 and 2 lapse after two minutes.
    tell_server(&mut server, secs(121), &discover(4));
    assert_eq!(reply(&mut server).1.yiaddr, FIRST);
    tell_server(&mut server, secs(122), &discover(3));
    assert_eq!(reply(&mut server).1.yiaddr, LAST, "as held");
}

#[test]
fn a_request_for_another_server_takes_the_offer_back() {
    let mut server = new_server(ServerConfig { last: FIRST, ..plain_server() });
    tell_server(&mut server, secs(1), &discover(1));
    reply(&mut server);
    let elsewhere = DhcpMessage { server_identifier: Some(LAST), ..request(1, LAST) };
    tell_server(&mut server, secs(2), &elsewhere);
    assert_eq!(dropped_by(&mut server), [DropReason::OtherServer]);
    tell_server(&mut server, secs(3), &discover(2));
    assert_eq!(reply(&mut server).1.yiaddr, FIRST);
}

#[test]
fn a_client_that_comes_back_is_confirmed_or_refused_or_left_to_others() {
    let mut server = new_server(plain_server());
    lease(&mut server, secs(1), 1);
    let back = |n, address| DhcpMessage { server_identifier: None, ..request(n, address) };
    tell_server(&mut server, secs(9), &back(1, FIRST));
    let (transmit, ack) = reply(&mut server);
    assert_eq!((ack.kind, ack.yiaddr, transmit.destination), (MessageType::Ack, FIRST, FIRST));
    tell_server(&mut server, secs(9), &back(1, LAST));
    assert_eq!(reply(&mut server).1.kind, MessageType::Nak, "not what it had");
    tell_server(&mut server, secs(9), &back(2, LAST));
    assert!(replies(&mut server).is_empty());
    assert_eq!(server.counters().dropped(DropReason::UnknownClient), 1);
    tell_server(&mut server, secs(9), &back(2, Ipv4Addr::new(198, 51, 100, 9)));
    assert_eq!(reply(&mut server).1.kind, MessageType::Nak, "it is on the wrong network");
}

#[test]
fn a_renewal_is_answered_to_the_address_that_is_renewed() {
    let mut server = new_server(plain_server());
    lease(&mut server, secs(1), 1);
    let renewal = DhcpMessage { ciaddr: FIRST, ..DhcpMessage::new(MessageType::Request, 5, hardware(1)) };
    tell_server(&mut server, secs(40_000), &renewal);
    let (transmit, ack) = reply(&mut server);
    assert_eq!((transmit.destination, ack.ciaddr, ack.yiaddr), (FIRST, FIRST, FIRST));
    assert_eq!(server.leases(secs(80_000)), 1);
}

#[test]
fn an_address_given_back_is_free_and_one_declined_is_not() {
    let mut server = new_server(ServerConfig { last: FIRST, ..plain_server() });
    lease(&mut server, secs(1), 1);
    let release = DhcpMessage {
        ciaddr: FIRST,
        server_identifier: Some(SERVER),
        ..DhcpMessage::new(MessageType::Release, 5, hardware(1))
    };
    tell_server(&mut server, secs(2), &release);
    assert_eq!(lease(&mut server, secs(3), 2), FIRST);
    let decline = DhcpMessage { kind: MessageType::Decline, ..request(2, FIRST) };
    tell_server(&mut server, secs(4), &decline);
    tell_server(&mut server, secs(5), &discover(3));
    let told: Vec<_> = std::iter::from_fn(|| server.poll_event()).collect();
    assert!(told.contains(&ServerEvent::Released { address: FIRST }));
    assert!(told.contains(&ServerEvent::Abandoned { address: FIRST }));
    assert_eq!(server.counters().dropped(DropReason::NoAddress), 1);
    // A day later it may be tried again.
    assert_eq!(lease(&mut server, secs(4 + 86_400), 3), FIRST);
}

#[test]
fn nobody_gives_back_or_declines_what_is_anothers() {
    let mut server = new_server(plain_server());
    lease(&mut server, secs(1), 1);
    lease(&mut server, secs(1), 2);
    let about = |kind, n, address| DhcpMessage {
        kind,
        ciaddr: if kind == MessageType::Release { address } else { Ipv4Addr::UNSPECIFIED },
        ..request(n, address)
    };
    for kind in [MessageType::Release, MessageType::Decline] {
        for (n, server_identifier, reason) in [
            (2, Some(SERVER), DropReason::BadAddress),
            (9, Some(SERVER), DropReason::UnknownClient),
            (1, Some(LAST), DropReason::OtherServer),
            (1, None, DropReason::Incomplete),
        ] {
            let before = server.counters().dropped(reason);
            tell_server(&mut server, secs(2), &DhcpMessage { server_identifier, ..about(kind, n, FIRST) });
            assert_eq!(server.counters().dropped(reason), before + 1, "{kind} {reason:?}");
        }
    }
    assert_eq!(server.leases(secs(2)), 2);
}

#[test]
fn an_inform_gets_parameters_and_no_lease() {
    let mut server = new_server(plain_server());
    let own = Ipv4Addr::new(192, 0, 2, 200);
    let inform = DhcpMessage { ciaddr: own, ..DhcpMessage::new(MessageType::Inform, 5, hardware(1)) };
    tell_server(&mut server, secs(1), &inform);
    let (transmit, ack) = reply(&mut server);
    assert_eq!((transmit.destination, ack.kind, ack.yiaddr), (own, MessageType::Ack, Ipv4Addr::UNSPECIFIED));
    assert_eq!((ack.lease_time, ack.renewal_time, ack.prefix_length), (None, None, Some(24)));
}

#[test]
fn a_client_is_known_by_its_identifier_whatever_its_hardware() {
    let mut server = new_server(plain_server());
    let named = |n| DhcpMessage { client_identifier: Some(vec![0, 7]), ..discover(n) };
    tell_server(&mut server, secs(1), &named(1));
    assert_eq!(reply(&mut server).1.yiaddr, FIRST);
    tell_server(&mut server, secs(1), &named(2));
    assert_eq!(reply(&mut server).1.yiaddr, FIRST);
    tell_server(&mut server, secs(1), &discover(1));
    assert_eq!(reply(&mut server).1.yiaddr, MIDDLE);
}

#[test]
fn what_the_server_cannot_use_is_counted() {
    let mut server = new_server(plain_server());
    let relayed = DhcpMessage { giaddr: LAST, ..discover(1) };
    let long_name = DhcpMessage { client_identifier: Some(vec![0; 256]), ..discover(1) };
    let nothing = DhcpMessage { requested_address: None, ..request(1, FIRST) };
    let reply = DhcpMessage { kind: MessageType::Offer, ..discover(1) };
    for (message, reason) in [
        (relayed, DropReason::Relayed),
        (long_name, DropReason::TableFull),
        (nothing, DropReason::Incomplete),
        (reply, DropReason::NotForUs),
    ] {
        tell_server(&mut server, secs(1), &message);
        assert_eq!(dropped_by(&mut server), [reason]);
    }
    for (destination_port, reason) in [(SERVER_PORT, DropReason::Malformed), (68, DropReason::NotForUs)] {
        server.handle_datagram(secs(1), Datagram { source: LAST, destination_port, payload: &[1; 241] });
        assert_eq!(dropped_by(&mut server), [reason]);
    }
    server.handle_icmp(secs(1), LAST, &[0; 3]);
    assert_eq!(dropped_by(&mut server), [DropReason::Malformed]);
    assert!(replies(&mut server).is_empty());
    assert_eq!(server.counters().received, server.counters().dropped_total());
}

#[test]
fn a_pool_that_cannot_be_leased_is_refused() {
    let refused = |first, last| {
        let config = ServerConfig::new(InterfaceId(0), SERVER, 24, first, last);
        DhcpServer::new(config, random("server")).unwrap_err()
    };
    assert_eq!(refused(LAST, FIRST), ConfigError::EmptyPool { first: LAST, last: FIRST });
    let outside = Ipv4Addr::new(192, 0, 3, 9);
    assert!(matches!(refused(FIRST, outside), ConfigError::BadPool { address, .. } if address == outside));
    assert!(matches!(refused(SERVER, LAST), ConfigError::BadPool { address: SERVER, .. }));
    let broadcast = Ipv4Addr::new(192, 0, 2, 255);
    assert!(
        matches!(refused(FIRST, broadcast), ConfigError::BadPool { address, .. } if address == broadcast)
    );
    let (first, last) = (Ipv4Addr::new(10, 1, 0, 0), Ipv4Addr::new(10, 2, 0, 0));
    let config = ServerConfig::new(InterfaceId(0), Ipv4Addr::new(10, 0, 0, 1), 8, first, last);
    let error = DhcpServer::new(config, random("server")).unwrap_err();
    assert_eq!(error, ConfigError::LargePool { found: 65_537, most: 65_536 });
    let config = ServerConfig { lease_time: LeaseTime::from_secs(0), ..plain_server() };
    assert_eq!(DhcpServer::new(config, random("server")).unwrap_err(), ConfigError::NoLease);
}

proptest! {
    /// Whatever clients ask for: nobody is granted what another holds.
    #[test]
    fn no_address_is_two_clients(
        steps in prop::collection::vec((0_u8..5, 1_u8..7, 9_u8..14, 0_u64..50_000), 0..80),
        check in any::<bool>(),
    ) {
        let ping_check = check.then_some(millis(500));
        let lease_time = LeaseTime::from_secs(60);
        let mut server = new_server(ServerConfig { ping_check, lease_time, ..plain_server() });
        let mut now = Instant::ZERO;
        let mut held: Vec<(Ipv4Addr, u8, Instant)> = Vec::new();
        for (what, n, host, wait) in steps {
            now += millis(wait);
            server.handle_timeout(now);
            let address = Ipv4Addr::new(192, 0, 2, host);
            let message = match what {
                0 => DhcpMessage { requested_address: Some(address), ..discover(n) },
                1 => request(n, address),
                2 => DhcpMessage { server_identifier: None, ..request(n, address) },
                3 => DhcpMessage { ciaddr: address, ..DhcpMessage::new(MessageType::Request, 1, hardware(n)) },
                _ => DhcpMessage { kind: MessageType::Release, ciaddr: address, ..request(n, address) },
            };
            tell_server(&mut server, now, &message);
            while let Some(event) = server.poll_event() {
                match event {
                    ServerEvent::Leased { address, client, lease_time } => {
                        prop_assert!((FIRST..=LAST).contains(&address));
                        let n = client.bytes()[5];
                        held.retain(|&(at, holder, until)| until > now && !(at == address && holder == n));
                        prop_assert!(held.iter().all(|&(at, ..)| at != address), "{address} is held");
                        held.push((address, n, now + lease_time.duration().unwrap()));
                    }
                    ServerEvent::Released { address } => held.retain(|&(at, ..)| at != address),
                    _ => {}
                }
            }
            while server.poll_transmit().is_some() {}
        }
    }
}
