//! A client and a server on one link: how long an address takes.

use std::time::Duration;

use careof_base::Instant;
use careof_mobility::dhcp::{
    ClientConfig, ClientEvent, ConflictCheck, Datagram, DhcpClient, DhcpServer, ServerConfig,
};
use careof_mobility::v4::{Transmit, TransmitPayload};

use super::craft::*;

/// One way.
const DELAY: Duration = Duration::from_millis(10);

/// Runs both until the client has an address; returns how long that took.
fn acquire(client: &mut DhcpClient, server: &mut DhcpServer, start: Instant) -> Duration {
    let mut on_the_way: Vec<(Instant, bool, Transmit)> = Vec::new();
    client.handle_link(start, true);
    let mut now = start;
    loop {
        on_the_way.extend(std::iter::from_fn(|| client.poll_transmit()).map(|t| (now + DELAY, true, t)));
        on_the_way.extend(std::iter::from_fn(|| server.poll_transmit()).map(|t| (now + DELAY, false, t)));
        while let Some(event) = client.poll_event() {
            if let ClientEvent::Bound { took, .. } = event {
                assert_eq!(took, now - start);
                return took;
            }
        }
        let timers = [client.next_timeout(), server.next_timeout()].into_iter().flatten().map(|(at, _)| at);
        now = timers.chain(on_the_way.iter().map(|(at, ..)| *at)).min().expect("something goes on");
        assert!(now < start + Duration::from_secs(600), "it gets nowhere");
        let (arrived, others) = on_the_way.into_iter().partition(|(at, ..)| *at <= now);
        on_the_way = others;
        let arrived: Vec<(Instant, bool, Transmit)> = arrived;
        for (_, to_server, Transmit { source, payload, .. }) in arrived {
            // An echo finds nobody.
            let TransmitPayload::Udp { destination_port, bytes, .. } = payload else { continue };
            let datagram = Datagram { source, destination_port, payload: &bytes };
            if to_server {
                server.handle_datagram(now, datagram);
            } else {
                client.handle_datagram(now, datagram);
            }
        }
        client.handle_timeout(now);
        server.handle_timeout(now);
    }
}

#[test]
fn an_address_takes_two_round_trips_and_what_the_checks_add() {
    let round_trips = DELAY * 4;
    for (client_check, server_check) in [(false, false), (true, false), (false, true), (true, true)] {
        let conflict_check = client_check.then_some(ConflictCheck::RFC_5227);
        let ping_check = server_check.then_some(Duration::from_secs(1));
        let mut client =
            DhcpClient::new(ClientConfig { conflict_check, ..plain_client() }, random("client")).unwrap();
        let mut server = new_server(ServerConfig { ping_check, ..plain_server() });
        let took = acquire(&mut client, &mut server, secs(1));
        let rest = took - round_trips - ping_check.unwrap_or_default();
        if client_check {
            assert!((secs(4)..=secs(7)).contains(&(Instant::ZERO + rest)), "{rest:?}");
        } else {
            assert_eq!(rest, Duration::ZERO);
        }
    }
}

#[test]
fn an_address_that_the_client_had_takes_one_round_trip_and_no_echo() {
    let mut client = DhcpClient::new(plain_client(), random("client")).unwrap();
    let mut server = new_server(ServerConfig { ping_check: Some(millis(1_000)), ..plain_server() });
    assert_eq!(acquire(&mut client, &mut server, secs(1)), DELAY * 4 + millis(1_000));
    client.handle_link(secs(60), false);
    assert_eq!(acquire(&mut client, &mut server, secs(70)), DELAY * 2);
}
