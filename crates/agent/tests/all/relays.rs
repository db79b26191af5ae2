//! The link of a neighbour who is not as good as he says, with the kernel's TCP.

use std::io::Write;
use std::net::Ipv4Addr;
use std::os::fd::AsFd;

use crate::multipath::{books_balance, has_paths, home, mobile};
use crate::support::*;
use careof_agent::{Carrier, ClusterSetup, Hooks, MobileSetup, RelayFaults, RelaySetup, Status, spoil_relay};
use careof_base::{DataRate, Duration, Probability, RandomStream};
use careof_lab::{Host, IcmpSocket, OutgoingIcmp};
use careof_link::Config;
use careof_mobility::multipath::Scheduler;
use careof_mobility::multipath::alliance::{RelayConfig, Trust};
use careof_mobility::v4::{InterfaceConfig, InterfaceId, MultipathForm, Notice, Prefix};
use careof_wire::icmp::{DestinationUnreachable, IcmpMessage, UnreachableCode};
use careof_wire::ipv4::Ipv4Header;
use careof_wire::protocol;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

/// It uses the neighbour's link from the first packet on; `auto` would keep to one path as long as that carries the flow.
const SCHEDULER: Scheduler = Scheduler::EarliestArrival;
const OUTSIDE: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 2);
const RELAY: Ipv4Addr = Ipv4Addr::new(172, 16, 9, 1);
const IN_CLUSTER: Ipv4Addr = Ipv4Addr::new(172, 16, 9, 2);

fn relay_setup(rate: Option<DataRate>) -> RelaySetup {
    let config = RelayConfig {
        cluster: Ipv4Addr::UNSPECIFIED,
        cluster_network: Prefix::ALL,
        outside: Ipv4Addr::UNSPECIFIED,
        downlink: rate,
        uplink: rate,
        cost: 0,
        clients: 1,
        client_rate: None,
        client_bytes: None,
        longest: Duration::from_secs(60),
        trust: Trust::FirstUse,
    };
    RelaySetup { config, cluster: "cluster0".to_owned(), link: "lent0".to_owned() }
}

/// With one link of its own, and a cluster.
fn mobile_in_cluster() -> MobileSetup {
    let mut setup = mobile(MultipathForm::Shake, SCHEDULER);
    setup.config.interfaces.truncate(1);
    setup.devices.truncate(1);
    setup.config.interfaces.push(InterfaceConfig { relay: true, ..InterfaceConfig::new(InterfaceId(1)) });
    setup.multipath.cluster = Some(ClusterSetup {
        interface: "cluster0".to_owned(),
        highest_cost: u16::MAX,
        lifetime: Duration::from_secs(60),
        trust: Trust::FirstUse,
    });
    setup
}

/// The neighbour's host, with its link to the home agent's.
fn neighbour(world: &World, realm: careof_lab::Realm, lent: &Config) -> Host {
    let host = realm.host("neighbour").unwrap();
    let home_end = (&world.home, "lent0", Ipv4Addr::new(203, 0, 113, 1));
    add_link(&world.emulator, "lent", lent, [home_end, (&host, "lent0", OUTSIDE)]);
    let air = Config { delay: Duration::from_millis(1), ..Config::default() };
    let ends = [(&host, "cluster0", RELAY), (&world.mobile, "cluster0", IN_CLUSTER)];
    add_link(&world.emulator, "cluster", &air, ends);
    default_route(&host, "lent0", None);
    host
}

/// What came to the relay was passed on or dropped for a cause.
fn assert_relay_balances(status: &Status) {
    let count = |name: &str| status.counters.get(name).copied().unwrap_or_default();
    let relay = status.relay.as_ref().unwrap();
    let dropped: u64 = ["no-ally", "would-loop", "over-rate", "not-home-agent", "ttl-expired"]
        .map(|cause| count(&format!("dropped-relay-{cause}")))
        .into_iter()
        .sum();
    let others: u64 = ["malformed", "not-ours", "no-way", "not-queued", "dropped-on-purpose"]
        .map(|name| count(&format!("packets-{name}")))
        .iter()
        .sum();
    let passed: u64 = relay.relayed_packets.iter().sum();
    assert_eq!(count("relay-packets-received"), dropped + others + passed, "{status:#?}");
}

#[test]
fn a_bad_neighbour_costs_no_byte_of_a_connection() {
    let Some(realm) = realm_or_skip() else { return };
    let half = Probability::new(0.5).unwrap();
    let fast = Some(DataRate::from_megabits_per_second(100));
    let none = RelayFaults::default();
    for (what, claims, faults) in [
        ("good", None, none),
        ("drops half", None, RelayFaults { drops: half, ..none }),
        ("drops everything", None, RelayFaults { drops: Probability::ONE, ..none }),
        ("repeats everything", None, RelayFaults { repeats: 2, ..none }),
        ("claims a fivefold rate", fast, none),
    ] {
        let link = |delay| Config {
            rate: DataRate::from_megabits_per_second(20),
            delay: Duration::from_millis(delay),
            ..Config::default()
        };
        let world = World::with(realm, &link(5), &link(20));
        let host = neighbour(&world, realm, &link(10));
        let before = [state_of(&world.mobile), state_of(&host)];
        // What it repeats is seen only if something goes through it, which the quickest path may spare.
        let scheduler = if faults.repeats > 0 { Scheduler::Weighted } else { SCHEDULER };
        let home = world.home_agent(home(scheduler), Hooks::default());
        let relay = Running::open(&host, relay_setup(claims), world.clock, Hooks::default());
        let mobile = world.mobile_node(mobile_in_cluster());
        mobile.with(|node| node.switch_to("wlan0", Notice::None)).unwrap();
        mobile.wait_until("both paths", |status| has_paths(status, 2));
        home.wait_until("both paths", |status| has_paths(status, 2));
        // It was well-behaved until now.
        relay.with(move |relay| spoil_relay(relay, faults, RandomStream::new(7, 0, "faults")));

        let sent = pattern(3_000_000);
        let listener = world.mobile.run(|| Listener::bind((HOME, 80))).unwrap().unwrap();
        let begun = world.clock.now();
        let received = receive_all(listener);
        let mut client = connect_home(&world, 80);
        client.write_all(&sent).unwrap();
        drop(client);
        assert!(received.join().unwrap() == sent, "{what}: what arrived is what was sent");
        let took = world.clock.now().saturating_duration_since(begun);
        let (at_home, at_mobile, at_relay) = (home.status(), mobile.status(), relay.status());
        for status in [&at_home, &at_mobile] {
            books_balance(status);
        }
        assert_relay_balances(&at_relay);
        let several = &at_mobile.multipath[0];
        println!(
            "{what}: {:.2} s, {} duplicates, {} replayed by the home agent, relayed {:?}",
            took.as_secs_f64(),
            several.duplicates,
            at_home.multipath[0].replayed,
            at_relay.relay.as_ref().unwrap().relayed_packets,
        );
        if faults.repeats > 0 {
            assert!(several.duplicates > 0, "{several:#?}");
        }
        if faults.drops == Probability::ONE {
            mobile.wait_until("the relay is left", |status| {
                status.cluster.as_ref().is_some_and(|cluster| cluster.relays.is_empty())
            });
        }
        home.close().unwrap();
        mobile.close().unwrap();
        relay.close().unwrap();
        for (host, before) in [(&world.mobile, &before[0]), (&host, &before[1])] {
            assert_eq!(difference(before, &state_of(host)), [""; 0], "everything is as it was");
        }
    }
}

/// That nobody takes packets of the tunnel at the home agent, as a host says where the daemon was stopped, or as anybody can say.
fn nobody_takes_tunnels() -> Vec<u8> {
    let mut quoted = Vec::new();
    let (source, destination, protocol) = (OUTSIDE, HA, protocol::IP_IN_IP);
    Ipv4Header { source, destination, protocol, payload_len: 500, ..Ipv4Header::default() }.emit(&mut quoted);
    quoted.extend([0x45; 8]);
    let code = UnreachableCode::Protocol;
    let mut bytes = Vec::new();
    let message = DestinationUnreachable { code, next_hop_mtu: 0, quoted };
    IcmpMessage::DestinationUnreachable(message).emit(&mut bytes);
    bytes
}

#[test]
fn a_relay_that_is_told_of_an_error_takes_it_and_rests() {
    let Some(realm) = realm_or_skip() else { return };
    let world = World::new(realm);
    let host = neighbour(&world, realm, &Config::default());
    let (setup, clock) = (relay_setup(None), world.clock);
    let random = RandomStream::new(7, 0, "relay");
    let mut relay = host.run(move || Carrier::open(setup, clock, random, Hooks::default())).unwrap().unwrap();
    let errors = world.home.run(|| IcmpSocket::open(&[3])).unwrap().unwrap();
    let message = nobody_takes_tunnels();
    let (source, destination) = (Ipv4Addr::new(203, 0, 113, 1), OUTSIDE);
    errors.send(&OutgoingIcmp { interface: None, source, destination, ttl: 64, message: &message }).unwrap();
    let is_ready = |relay: &Carrier, timeout: PollTimeout| {
        poll(&mut [PollFd::new(relay.as_fd(), PollFlags::POLLIN)], timeout).unwrap() > 0
    };
    let begun = clock.now();
    while relay.status().counters["errors-received"] == 0 {
        assert!(clock.now().saturating_duration_since(begun) < PATIENCE, "{:#?}", relay.status());
        is_ready(&relay, PollTimeout::from(100_u8));
        relay.turn().unwrap();
    }
    // Other things may be due meanwhile, such as an advertisement, but not without end.
    let rests = (0..1000).any(|_| {
        relay.turn().unwrap();
        !is_ready(&relay, PollTimeout::ZERO)
    });
    assert!(rests, "it is busy for ever");
    relay.close().unwrap();
}
