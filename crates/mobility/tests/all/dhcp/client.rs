//! The client (RFC 2131 section 4.4) and its conflict check (RFC 5227 section 2.1).

use std::net::Ipv4Addr;
use std::time::Duration;

use careof_base::Instant;
use careof_mobility::dhcp::{
    ArpPacket, ClientConfig, ClientEvent, ConfigError, ConflictCheck, Datagram, DhcpClient, DropReason,
    LossCause, Retransmission, StartDelay, State, Wake,
};
use careof_wire::dhcp::{CLIENT_PORT, DhcpMessage, LeaseTime, MessageType};
use proptest::prelude::*;

use super::craft::*;

const NOBODY: Ipv4Addr = Ipv4Addr::UNSPECIFIED;
const EVERYBODY: Ipv4Addr = Ipv4Addr::BROADCAST;

fn probes(client: &mut DhcpClient) -> usize {
    std::iter::from_fn(|| client.poll_event()).filter(|e| matches!(e, ClientEvent::ArpProbe { .. })).count()
}

fn checked(in_background: bool) -> ClientConfig {
    let check = ConflictCheck { in_background, ..ConflictCheck::RFC_5227 };
    ClientConfig { conflict_check: Some(check), ..plain_client() }
}

#[test]
fn the_first_message_waits_one_to_ten_seconds() {
    let mut delays = Vec::new();
    for n in 0..100 {
        let config = ClientConfig { start_delay: StartDelay::RFC_2131, ..plain_client() };
        let mut client = DhcpClient::new(config, random(&format!("client.{n}"))).unwrap();
        client.handle_link(secs(5), true);
        assert_eq!(client.state(), State::Init);
        let (at, why) = client.next_timeout().unwrap();
        assert_eq!(why, Wake::Start);
        delays.push(at - secs(5));
    }
    assert!(delays.iter().all(|delay| (1.0..=10.0).contains(&delay.as_secs_f64())));
    // Uniform: the mean of 100 is 5.5 s with a standard error of 0.26 s; four of them are allowed.
    let mean = delays.iter().sum::<Duration>().as_secs_f64() / 100.0;
    assert!((mean - 5.5).abs() < 1.04, "{mean}");
}

#[test]
fn a_discover_is_broadcast_from_nowhere_and_names_no_server() {
    let config = ClientConfig { lease_time: Some(LeaseTime::from_secs(60)), ..plain_client() };
    let mut client = started(config, secs(1));
    assert_eq!(wake(&mut client), secs(1));
    let (transmit, message) = one(&mut client);
    assert_eq!((transmit.source, transmit.destination), (NOBODY, EVERYBODY));
    assert_eq!((message.kind, message.ciaddr, message.chaddr), (MessageType::Discover, NOBODY, hardware(1)));
    assert_eq!((message.server_identifier, message.requested_address), (None, None));
    assert_eq!(message.lease_time, Some(LeaseTime::from_secs(60)));
    assert_eq!(message.parameter_requests, [1, 3, 58, 59]);
    assert_eq!(client.state(), State::Selecting);
}

#[test]
fn a_discover_without_an_offer_is_sent_again_after_4_8_16_32_64_and_64_seconds() {
    let mut client = started(plain_client(), Instant::ZERO);
    let mut last = wake(&mut client);
    let (_, first) = one(&mut client);
    for nominal in [4, 8, 16, 32, 64, 64] {
        let at = wake(&mut client);
        let (gap, nominal) = ((at - last).as_secs_f64(), f64::from(nominal));
        assert!((nominal - 1.0..=nominal + 1.0).contains(&gap), "{gap} s for {nominal} s");
        let (_, again) = one(&mut client);
        assert_eq!((again.xid, u64::from(again.secs)), (first.xid, at.since_start().as_secs()));
        last = at;
    }
}

#[test]
fn the_offer_is_asked_for_by_address_server_and_the_discovers_xid_and_seconds() {
    let mut client = started(plain_client(), Instant::ZERO);
    wake(&mut client);
    one(&mut client);
    wake(&mut client);
    let (_, discover) = one(&mut client);
    assert!(discover.secs >= 3);
    tell_client(&mut client, secs(6), &offer(&discover));
    let (transmit, request) = one(&mut client);
    assert_eq!((transmit.source, transmit.destination), (NOBODY, EVERYBODY));
    assert_eq!(request.kind, MessageType::Request);
    assert_eq!((request.requested_address, request.server_identifier), (Some(FIRST), Some(SERVER)));
    assert_eq!((request.ciaddr, request.xid, request.secs), (NOBODY, discover.xid, discover.secs));
    assert_eq!(client.state(), State::Requesting);
}

#[test]
fn a_lease_counts_from_the_request_and_is_renewed_at_half_and_rebound_at_seven_eighths_of_it() {
    let (mut client, request) = requesting(plain_client(), secs(10));
    tell_client(&mut client, secs(11), &ack(&request));
    assert_eq!(client.state(), State::Bound);
    let lease = *client.lease().unwrap();
    assert_eq!((lease.address, lease.prefix_length, lease.router), (FIRST, Some(24), Some(SERVER)));
    assert_eq!((lease.renew_at, lease.rebind_at, lease.expires), (secs(410), secs(710), secs(810)));
    assert_eq!(events(&mut client), [ClientEvent::Bound { lease, took: Duration::from_secs(1) }]);
    assert_eq!(client.next_timeout(), Some((secs(410), Wake::Renewal)));
}

#[test]
fn the_servers_t1_and_t2_count_unless_they_are_out_of_order() {
    for (t1, t2, expected) in [(100, 200, (100, 200)), (300, 200, (400, 700)), (100, 900, (400, 700))] {
        let (mut client, request) = requesting(plain_client(), Instant::ZERO);
        let told = DhcpMessage {
            renewal_time: Some(LeaseTime::from_secs(t1)),
            rebinding_time: Some(LeaseTime::from_secs(t2)),
            ..ack(&request)
        };
        tell_client(&mut client, Instant::ZERO, &told);
        let lease = client.lease().unwrap();
        assert_eq!((lease.renew_at, lease.rebind_at), (secs(expected.0), secs(expected.1)));
    }
}

#[test]
fn an_infinite_lease_is_never_renewed() {
    let (mut client, request) = requesting(plain_client(), Instant::ZERO);
    let told = DhcpMessage { lease_time: Some(LeaseTime::INFINITE), ..ack(&request) };
    tell_client(&mut client, Instant::ZERO, &told);
    assert_eq!((client.state(), client.next_timeout()), (State::Bound, None));
}

#[test]
fn a_request_without_a_reply_is_sent_four_times_in_a_minute_and_then_all_begins_anew() {
    let (mut client, request) = requesting(plain_client(), Instant::ZERO);
    for _ in 0..3 {
        wake(&mut client);
        let (_, again) = one(&mut client);
        assert_eq!(again, request);
    }
    let at = wake(&mut client).since_start().as_secs_f64();
    assert!((56.0..=64.0).contains(&at), "{at}");
    let (_, discover) = one(&mut client);
    assert_eq!(discover.kind, MessageType::Discover);
    assert_ne!(discover.xid, request.xid);
}

#[test]
fn a_nak_leads_back_to_the_beginning_at_once_and_later_each_further_time() {
    let (mut client, mut last) = requesting(plain_client(), Instant::ZERO);
    let mut now = Instant::ZERO;
    for nominal in [0.0, 4.0, 8.0, 16.0] {
        tell_client(&mut client, now, &nak(&last));
        let at = wake(&mut client);
        let gap = (at - now).as_secs_f64();
        assert!((nominal - 1.0..=nominal + 1.0).contains(&gap), "{gap} s for {nominal} s");
        let (_, discover) = one(&mut client);
        assert_eq!(discover.kind, MessageType::Discover);
        tell_client(&mut client, at, &offer(&discover));
        last = one(&mut client).1;
        now = at;
    }
}

#[test]
fn t1_asks_the_server_alone_and_t2_everybody_each_again_after_half_of_what_is_left() {
    let mut client = bound(plain_client(), Instant::ZERO);
    assert_eq!(wake(&mut client), secs(400));
    assert_eq!(client.state(), State::Renewing);
    let (transmit, request) = one(&mut client);
    assert_eq!((transmit.source, transmit.destination), (FIRST, SERVER));
    assert_eq!((request.ciaddr, request.requested_address, request.server_identifier), (FIRST, None, None));
    // 300 s are left to T2, then 150, then 75; half of that is less than a minute.
    assert_eq!(wake(&mut client), secs(550));
    assert_eq!(one(&mut client).1.xid, request.xid);
    assert_eq!(wake(&mut client), secs(625));
    one(&mut client);
    assert_eq!(wake(&mut client), secs(685));
    one(&mut client);
    assert_eq!(wake(&mut client), secs(700));
    assert_eq!(client.state(), State::Rebinding);
    let (transmit, request) = one(&mut client);
    assert_eq!((transmit.source, transmit.destination, request.ciaddr), (FIRST, EVERYBODY, FIRST));
    assert_eq!(wake(&mut client), secs(760));
    one(&mut client);
    assert_eq!(client.next_timeout(), Some((secs(800), Wake::LeaseExpiry)));
}

#[test]
fn an_ack_renews_the_lease_without_a_break() {
    let mut client = bound(plain_client(), Instant::ZERO);
    wake(&mut client);
    let (_, request) = one(&mut client);
    tell_client(&mut client, secs(401), &ack(&request));
    let lease = *client.lease().unwrap();
    assert_eq!((client.state(), lease.expires), (State::Bound, secs(1200)));
    assert_eq!(events(&mut client), [ClientEvent::Renewed { lease }]);
}

#[test]
fn an_address_whose_lease_ends_is_lost_and_looked_for_anew() {
    let mut client = bound(plain_client(), Instant::ZERO);
    while client.lease().is_some() {
        wake(&mut client);
    }
    let lost = ClientEvent::Lost { address: FIRST, cause: LossCause::Expired };
    assert_eq!(events(&mut client), [lost]);
    assert_eq!(client.state(), State::Selecting);
    let (_, last) = sent_by_client(&mut client).pop().unwrap();
    assert_eq!(last.kind, MessageType::Discover);
}

#[test]
fn a_nak_to_a_renewal_takes_the_address_away() {
    let mut client = bound(plain_client(), Instant::ZERO);
    wake(&mut client);
    let (_, request) = one(&mut client);
    tell_client(&mut client, secs(401), &nak(&request));
    assert_eq!(events(&mut client), [ClientEvent::Lost { address: FIRST, cause: LossCause::Nak }]);
    assert_eq!(client.state(), State::Init);
}

#[test]
fn a_client_that_comes_back_asks_for_the_address_it_had() {
    let mut client = bound(plain_client(), Instant::ZERO);
    client.handle_link(secs(50), false);
    assert_eq!(events(&mut client), [ClientEvent::Lost { address: FIRST, cause: LossCause::LinkDown }]);
    assert_eq!((client.state(), client.next_timeout()), (State::InitReboot, None));
    client.handle_link(secs(60), true);
    assert_eq!(client.state(), State::Rebooting);
    let (transmit, request) = one(&mut client);
    assert_eq!((transmit.source, transmit.destination), (NOBODY, EVERYBODY));
    assert_eq!((request.kind, request.requested_address), (MessageType::Request, Some(FIRST)));
    assert_eq!((request.server_identifier, request.ciaddr), (None, NOBODY));
    tell_client(&mut client, secs(61), &ack(&request));
    let lease = *client.lease().unwrap();
    assert_eq!(events(&mut client), [ClientEvent::Bound { lease, took: Duration::from_secs(1) }]);
    assert_eq!(lease.expires, secs(860));
}

#[test]
fn an_address_refused_or_over_when_the_client_comes_back_is_looked_for_anew() {
    let mut client = bound(plain_client(), Instant::ZERO);
    client.handle_link(secs(50), false);
    client.handle_link(secs(60), true);
    let (_, request) = one(&mut client);
    tell_client(&mut client, secs(61), &nak(&request));
    wake(&mut client);
    assert_eq!(one(&mut client).1.kind, MessageType::Discover);
    let mut client = bound(plain_client(), Instant::ZERO);
    client.handle_link(secs(50), false);
    client.handle_link(secs(800), true);
    wake(&mut client);
    assert_eq!(one(&mut client).1.kind, MessageType::Discover);
}

#[test]
fn nothing_is_sent_and_nothing_due_while_the_link_is_down() {
    let mut client = started(plain_client(), Instant::ZERO);
    wake(&mut client);
    one(&mut client);
    client.handle_link(secs(1), false);
    assert_eq!((client.state(), client.next_timeout()), (State::Init, None));
    client.handle_timeout(secs(100));
    assert!(sent_by_client(&mut client).is_empty());
}

#[test]
fn an_address_given_back_is_told_to_its_server() {
    let mut client = bound(plain_client(), Instant::ZERO);
    client.release(secs(9));
    let (transmit, message) = one(&mut client);
    assert_eq!((transmit.source, transmit.destination), (FIRST, SERVER));
    assert_eq!((message.kind, message.ciaddr), (MessageType::Release, FIRST));
    assert_eq!((message.server_identifier, message.requested_address), (Some(SERVER), None));
    assert_eq!(events(&mut client), [ClientEvent::Lost { address: FIRST, cause: LossCause::Released }]);
    assert_eq!((client.state(), client.next_timeout()), (State::Init, None));
}

#[test]
fn the_conflict_check_of_rfc_5227_takes_four_to_seven_seconds_before_the_address_is_used() {
    let mut spans = Vec::new();
    for n in 0..100 {
        let start = Instant::from_millis(10_000 * n);
        let (mut client, request) = requesting_as(&format!("client.{n}"), checked(false), start);
        tell_client(&mut client, start, &ack(&request));
        assert_eq!((client.state(), client.lease()), (State::Checking, None));
        let mut probed = Vec::new();
        while client.lease().is_none() {
            let at = wake(&mut client);
            if probes(&mut client) > 0 {
                probed.push(at - start);
            }
        }
        assert_eq!(probed.len(), 3);
        assert!(probed[0] <= millis(1_000));
        for pair in probed.windows(2) {
            assert!((millis(1_000)..=millis(2_000)).contains(&(pair[1] - pair[0])));
        }
        spans.push(probed[2] + millis(2_000));
    }
    assert!(spans.iter().all(|span| (millis(4_000)..=millis(7_000)).contains(span)));
    // Three uniform draws over a second each: the mean of 100 sums is 5.5 s, its standard error 50 ms.
    let mean = spans.iter().sum::<Duration>().as_secs_f64() / 100.0;
    assert!((mean - 5.5).abs() < 0.2, "{mean}");
}

#[test]
fn an_address_checked_in_the_background_is_used_at_once_and_probed_all_the_same() {
    let (mut client, request) = requesting(checked(true), Instant::ZERO);
    tell_client(&mut client, secs(1), &ack(&request));
    let bound = |event: &ClientEvent| matches!(event, ClientEvent::Bound { .. });
    assert_eq!(events(&mut client).iter().filter(|event| bound(event)).count(), 1);
    let mut found = 0;
    while client.next_timeout().is_some_and(|(_, wake)| wake == Wake::ConflictCheck) {
        wake(&mut client);
        found += probes(&mut client);
    }
    assert_eq!((found, client.state()), (3, State::Bound));
}

#[test]
fn without_a_check_nothing_is_probed_and_the_address_announced_once() {
    let (mut client, request) = requesting(plain_client(), Instant::ZERO);
    tell_client(&mut client, secs(1), &ack(&request));
    let told: Vec<_> = std::iter::from_fn(|| client.poll_event()).collect();
    let announced = ClientEvent::ArpAnnouncement { address: FIRST };
    assert_eq!(told.iter().filter(|event| **event == announced).count(), 1);
    assert_eq!(client.next_timeout(), Some((secs(400), Wake::Renewal)));
}

#[test]
fn an_address_in_use_is_declined_and_looked_for_again_after_ten_seconds() {
    for in_background in [false, true] {
        // Whoever has the address answers, and whoever is about to take it asks for it.
        for (sender, target) in [(FIRST, NOBODY), (NOBODY, FIRST)] {
            let (mut client, request) = requesting(checked(in_background), Instant::ZERO);
            tell_client(&mut client, secs(1), &ack(&request));
            wake(&mut client);
            events(&mut client);
            let now = secs(3);
            client.handle_arp(now, ArpPacket { sender_hardware: hardware(9), sender, target });
            let (transmit, message) = one(&mut client);
            assert_eq!((transmit.source, transmit.destination), (NOBODY, EVERYBODY));
            assert_eq!((message.kind, message.ciaddr), (MessageType::Decline, NOBODY));
            assert_eq!((message.requested_address, message.server_identifier), (Some(FIRST), Some(SERVER)));
            assert_eq!((message.lease_time, message.parameter_requests.len()), (None, 0));
            let mut expected = vec![ClientEvent::Conflict { address: FIRST, other: hardware(9) }];
            if in_background {
                expected.push(ClientEvent::Lost { address: FIRST, cause: LossCause::Conflict });
            }
            assert_eq!(events(&mut client), expected);
            assert_eq!(wake(&mut client), secs(13));
            assert_eq!(one(&mut client).1.kind, MessageType::Discover);
        }
    }
}

#[test]
fn its_own_arp_packets_and_those_about_others_are_no_conflict() {
    let (mut client, request) = requesting(checked(false), Instant::ZERO);
    tell_client(&mut client, secs(1), &ack(&request));
    for (n, sender, target) in [(1, NOBODY, FIRST), (9, LAST, FIRST), (9, NOBODY, LAST)] {
        client.handle_arp(secs(2), ArpPacket { sender_hardware: hardware(n), sender, target });
    }
    assert_eq!(client.state(), State::Checking);
}

#[test]
fn what_is_not_for_the_client_in_its_state_is_counted_and_changes_nothing() {
    let (mut client, request) = requesting(plain_client(), Instant::ZERO);
    let of_another = DhcpMessage { chaddr: hardware(2), ..ack(&request) };
    let earlier = DhcpMessage { xid: request.xid ^ 1, ..ack(&request) };
    let other_server = DhcpMessage { server_identifier: Some(LAST), ..ack(&request) };
    let without_server = DhcpMessage { server_identifier: None, ..ack(&request) };
    let without_time = DhcpMessage { lease_time: None, ..ack(&request) };
    let other_address = DhcpMessage { yiaddr: LAST, ..ack(&request) };
    let nak_of_another = DhcpMessage { server_identifier: Some(LAST), ..nak(&request) };
    for (message, reason) in [
        (of_another, DropReason::WrongTransaction),
        (earlier, DropReason::WrongTransaction),
        (other_server, DropReason::OtherServer),
        (nak_of_another, DropReason::OtherServer),
        (without_server, DropReason::Incomplete),
        (without_time, DropReason::Incomplete),
        (other_address, DropReason::BadAddress),
        (offer(&request), DropReason::Unexpected),
        (request.clone(), DropReason::NotForUs),
    ] {
        let before = client.counters().dropped(reason);
        tell_client(&mut client, Instant::ZERO, &message);
        assert_eq!(client.counters().dropped(reason), before + 1, "{reason:?}");
        assert_eq!(client.state(), State::Requesting);
    }
    for (destination_port, payload, reason) in
        [(CLIENT_PORT, &[1; 300][..], DropReason::Malformed), (67, &[][..], DropReason::NotForUs)]
    {
        let before = client.counters().dropped(reason);
        client.handle_datagram(Instant::ZERO, Datagram { source: SERVER, destination_port, payload });
        assert_eq!(client.counters().dropped(reason), before + 1);
    }
    let counters = client.counters();
    assert_eq!(counters.received, counters.dropped_total() + 1, "all but the offer");
    tell_client(&mut client, Instant::ZERO, &ack(&request));
    assert_eq!(client.state(), State::Bound);
}

#[test]
fn a_configuration_that_cannot_work_is_refused() {
    let refused = |config: ClientConfig| DhcpClient::new(config, random("client")).unwrap_err();
    let (least, most) = (millis(2), millis(1));
    let config = ClientConfig { start_delay: StartDelay { least, most }, ..plain_client() };
    assert_eq!(refused(config), ConfigError::Reversed { what: "the start delay", least, most });
    let config = ClientConfig { client_identifier: Some(vec![1]), ..plain_client() };
    assert_eq!(refused(config), ConfigError::IdentifierLength(1));
    let check = ConflictCheck { probes: 0, ..ConflictCheck::RFC_5227 };
    let config = ClientConfig { conflict_check: Some(check), ..plain_client() };
    assert_eq!(refused(config), ConfigError::NoProbes);
    let retransmission = Retransmission { spread: Duration::from_secs(4), ..Retransmission::RFC_2131 };
    let config = ClientConfig { retransmission, ..plain_client() };
    assert!(matches!(refused(config), ConfigError::NoBackOff { .. }));
    let retransmission = Retransmission { requests: 0, ..Retransmission::RFC_2131 };
    let config = ClientConfig { retransmission, ..plain_client() };
    assert_eq!(refused(config), ConfigError::NoRequests);
}

proptest! {
    /// Whatever comes whenever: no panic, never two timers at one instant for ever, and what is handed in is accounted for.
    #[test]
    fn whatever_comes_is_survived(
        steps in prop::collection::vec((0_u8..9, 0_u64..100_000, any::<u32>()), 0..60),
        in_background in any::<bool>(),
    ) {
        let mut client = DhcpClient::new(checked(in_background), random("client")).unwrap();
        let mut now = Instant::ZERO;
        let mut last = DhcpMessage::new(MessageType::Discover, 0, hardware(1));
        let mut accepted = 0;
        for (what, wait, value) in steps {
            now += millis(wait);
            let before = (client.counters().received, client.counters().dropped_total());
            match what {
                0 => client.handle_link(now, value & 1 == 0),
                1 | 2 => tell_client(&mut client, now, &offer(&last)),
                3 | 4 => tell_client(&mut client, now, &ack(&last)),
                5 => tell_client(&mut client, now, &nak(&last)),
                6 => {
                    let time = LeaseTime::from_secs(value);
                    tell_client(&mut client, now, &DhcpMessage { lease_time: Some(time), ..ack(&last) });
                }
                7 => {
                    let arp = ArpPacket { sender_hardware: hardware(9), sender: FIRST, target: NOBODY };
                    client.handle_arp(now, arp);
                }
                _ => client.release(now),
            }
            let after = (client.counters().received, client.counters().dropped_total());
            accepted += (after.0 - before.0) - (after.1 - before.1);
            client.handle_timeout(now);
            prop_assert!(client.next_timeout().is_none_or(|(at, _)| at > now), "due, and not done");
            for (_, message) in sent_by_client(&mut client) {
                last = message;
            }
            let usable = matches!(client.state(), State::Bound | State::Renewing | State::Rebinding);
            prop_assert_eq!(client.lease().is_some(), usable);
            events(&mut client);
        }
        prop_assert_eq!(client.counters().received, client.counters().dropped_total() + accepted);
    }
}
