//! Whatever arrives, nothing breaks and nothing grows without bound.

use std::net::Ipv4Addr;
use std::time::Duration;

use careof_mobility::v4::*;
use careof_wire::icmp::IcmpMessage;
use careof_wire::mip4::{AuthenticationKind, Message};
use proptest::prelude::*;

use super::craft::sign;
use super::world::*;

/// Bytes that are nearly messages: emitted ones with changes, signed or not, or plain noise.
fn nearly_message() -> impl Strategy<Value = Vec<u8>> {
    let noise = proptest::collection::vec(any::<u8>(), 0..80);
    let kinds = prop_oneof![2 => Just(1u8), 2 => Just(3u8), 1 => 16u8..=19];
    let fixed = (kinds, proptest::collection::vec(any::<u8>(), 24), any::<[bool; 5]>());
    let message = fixed.prop_map(|(kind, mut bytes, [ours, known, foreign, home, cut])| {
        bytes[0] = kind;
        if ours {
            bytes[4..8].copy_from_slice(&HOME.octets());
        }
        if known {
            bytes[8..12].copy_from_slice(&HA.octets());
        }
        if foreign {
            bytes[12..16].copy_from_slice(&FA[0].octets());
        }
        if kind == 18 {
            bytes[1] |= 0x40;
        }
        bytes.truncate(match kind {
            1 => 24,
            16 => 12,
            17 | 19 => 16,
            _ => 20,
        });
        if home && kind < 16 {
            sign(&mut bytes, AuthenticationKind::MobileHome, &security());
        } else if home {
            sign(&mut bytes, AuthenticationKind::RouteOptimization, &security());
        }
        if cut {
            bytes.pop();
        }
        bytes
    });
    prop_oneof![noise, message]
}

/// ICMP with a right checksum and little else.
fn nearly_icmp() -> impl Strategy<Value = Vec<u8>> {
    let kinds = prop_oneof![Just(3u8), Just(9u8), Just(10u8), Just(11u8), any::<u8>()];
    (kinds, proptest::collection::vec(any::<u8>(), 7..60), any::<bool>()).prop_map(|(kind, rest, agent)| {
        let mut bytes = vec![kind, 0, 0, 0];
        bytes.extend(&rest);
        if agent && kind == 9 {
            bytes.truncate(8);
            bytes[4..6].copy_from_slice(&[0, 2]);
            bytes.extend([16, 10]);
            bytes.extend(rest.iter().copied().cycle().take(10));
        }
        let sum = bytes
            .chunks(2)
            .map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0)))
            .sum::<u32>();
        let sum = (sum & 0xffff) + (sum >> 16);
        let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
        bytes[2..4].copy_from_slice(&sum.to_be_bytes());
        bytes
    })
}

#[derive(Clone, Debug)]
enum Step {
    Packet { to: Who, interface: u16, source: u8, ttl: u8, udp: bool, bytes: Vec<u8> },
    Link { interface: u16, up: bool },
    Address { interface: u16, last: Option<u8> },
    Switch(u16),
    Release(u16),
    Leave,
    Wait(u32),
}

fn step() -> impl Strategy<Value = Step> {
    let who = prop_oneof![Just(Who::Mobile), Just(Who::Home), Just(Who::Foreign(0))];
    let ttl = prop_oneof![Just(1u8), Just(64), Just(255)];
    let packet = (who, 0u16..5, any::<u8>(), ttl, nearly_message(), nearly_icmp(), any::<bool>()).prop_map(
        |(to, interface, source, ttl, message, icmp, udp)| Step::Packet {
            to,
            interface,
            source,
            ttl,
            udp,
            bytes: if udp { message } else { icmp },
        },
    );
    prop_oneof![
        8 => packet,
        1 => (0u16..4, any::<bool>()).prop_map(|(interface, up)| Step::Link { interface, up }),
        1 => (0u16..4, proptest::option::of(any::<u8>()))
            .prop_map(|(interface, last)| Step::Address { interface, last }),
        1 => (0u16..4).prop_map(Step::Switch),
        1 => (0u16..4).prop_map(Step::Release),
        1 => Just(Step::Leave),
        2 => (0u32..20_000).prop_map(Step::Wait),
    ]
}

fn source(selector: u8) -> Ipv4Addr {
    let known = [HOME, HA, WLAN, GSM, FA[0], FA[1], Ipv4Addr::UNSPECIFIED, Ipv4Addr::BROADCAST];
    known.get(usize::from(selector)).copied().unwrap_or(Ipv4Addr::new(100, 64, 0, selector))
}

fn take(world: &mut World, step: Step) {
    match step {
        Step::Packet { to, interface, source: selector, ttl, udp, bytes } => {
            let payload = if udp {
                TransmitPayload::Udp { source_port: 434, destination_port: 434, bytes }
            } else {
                TransmitPayload::Icmp { bytes }
            };
            let transmit =
                Transmit { interface: None, source: source(selector), destination: HA, ttl, payload };
            let interface = InterfaceId(interface % 4);
            world.inject(to, interface, transmit);
        }
        Step::Link { interface, up } => world.link(InterfaceId(interface), up),
        Step::Address { interface, last } => {
            let address = last.map(|last| own(Ipv4Addr::new(192, 0, 2, last)));
            world.input(Input::AddressChanged { interface: InterfaceId(interface), address });
        }
        Step::Switch(interface) => world.switch(InterfaceId(interface)),
        Step::Release(interface) => world.command(|node, now| node.release(now, InterfaceId(interface))),
        Step::Leave => world.command(|node, now| node.deregister(now)),
        Step::Wait(millis) => world.run_for(Duration::from_millis(millis.into())),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn no_sequence_of_packets_and_events_breaks_anything(
        steps in proptest::collection::vec(step(), 1..60), automatic in any::<bool>(),
    ) {
        let mut config = mobile_config();
        config.simultaneous = automatic;
        config.interfaces[2].care_of = CareOfChoice::PreferForeignAgent;
        if automatic {
            config.selection = Selection::Preferred { hold: Duration::from_secs(2) };
        }
        let mut foreign = foreign_config(0);
        foreign.max_pending = 5;
        foreign.max_visitors = 2;
        let mut home = home_config();
        if automatic {
            config.smooth_handoff = true;
            config.foreign_agents = vec![PeerSecurity { address: FA[0], security: security() }];
            foreign.smooth_handoff = true;
            foreign.clock = clock();
            foreign.mobile_nodes = vec![PeerSecurity { address: HOME, security: security() }];
            home.correspondents = vec![PeerSecurity { address: CORRESPONDENT, security: security() }];
        }
        let mut world = World::with(config, home, [foreign, foreign_config(1)]);
        for step in steps {
            take(&mut world, step);
            let now = world.now;
            world.home.tunnelled(now, HOME, CORRESPONDENT);
            let _ = world.foreign[0].pass_on(now, HOME, CORRESPONDENT);
            prop_assert!(world.foreign[0].departed().count() <= 2);
            prop_assert!(world.foreign[0].pending_requests() <= 5);
            prop_assert!(world.foreign[0].visitors().count() <= 2);
            prop_assert!(world.home.bindings().count() <= 4);
        }
        // And afterwards everything still works.
        for interface in [IF_HOME, IF_CELL] {
            world.link(interface, false);
        }
        world.input(Input::AddressChanged { interface: IF_GSM, address: Some(own(GSM)) });
        world.link(IF_GSM, true);
        world.switch(IF_GSM);
        world.run_for(Duration::from_secs(120));
        prop_assert!(world.mobile.is_registered());
        if automatic {
            prop_assert!(world.exits().contains(&GSM), "{:?}", world.exits());
        } else {
            prop_assert_eq!(world.exits(), [GSM]);
        }
    }

    #[test]
    fn whatever_is_dropped_is_counted(bytes in nearly_message()) {
        let mut world = World::new();
        let payload = TransmitPayload::Udp { source_port: 434, destination_port: 434, bytes: bytes.clone() };
        let transmit = Transmit { interface: None, source: CORRESPONDENT, destination: HA, ttl: 64, payload };
        world.inject(Who::Home, UPSTREAM, transmit.clone());
        world.inject(Who::Foreign(0), DOWNSTREAM, transmit.clone());
        world.inject(Who::Mobile, IF_WLAN, transmit);
        prop_assert_eq!(world.mobile.counters().dropped_total(), 1);
        let parsed = Message::parse(&bytes).is_ok();
        let home = world.home.counters();
        prop_assert!(home.dropped_total() + home.accepted == 1);
        let foreign = world.foreign[0].counters();
        prop_assert!(foreign.dropped_total() as usize + world.foreign[0].pending_requests() == 1);
        if !parsed {
            prop_assert_eq!(home.dropped_total(), 1);
        }
    }

    #[test]
    fn noise_in_icmp_is_survived(bytes in nearly_icmp(), raw in proptest::collection::vec(any::<u8>(), 0..40)) {
        let mut world = World::new();
        for bytes in [bytes, raw] {
            let readable = IcmpMessage::parse(&bytes).is_ok();
            for (to, interface) in [(Who::Home, DOWNSTREAM), (Who::Foreign(0), DOWNSTREAM), (Who::Mobile, IF_CELL)] {
                let payload = TransmitPayload::Icmp { bytes: bytes.clone() };
                let source = CORRESPONDENT;
                world.inject(to, interface, Transmit { interface: None, source, destination: ALL_SYSTEMS, ttl: 1, payload });
            }
            if !readable {
                prop_assert!(world.home.counters().dropped_total() >= 1);
            }
        }
    }
}

#[test]
fn ten_seconds_of_10_000_datagrams_a_second_change_nothing() {
    let mut world = World::new();
    world.switch(IF_CELL);
    world.run_until(at(3_000));
    let mut random = careof_base::RandomStream::new(3, 0, "garbage");
    let (home, foreign) = (world.exits(), world.foreign[0].deliver(HOME));
    for turn in 0..100_000u32 {
        let bytes: Vec<u8> = (0..random.below(60)).map(|_| random.next_u64() as u8).collect();
        let payload = TransmitPayload::Udp { source_port: 434, destination_port: 434, bytes };
        let transmit = Transmit { interface: None, source: CORRESPONDENT, destination: HA, ttl: 64, payload };
        let to = [Who::Home, Who::Foreign(0), Who::Mobile][turn as usize % 3];
        let interface = if to == Who::Mobile { IF_CELL } else { DOWNSTREAM };
        world.inject(to, interface, transmit);
        world.events.clear();
        if turn % 100 == 0 {
            world.run_for(Duration::from_millis(10));
        }
    }
    assert_eq!((world.exits(), world.foreign[0].deliver(HOME)), (home, foreign));
    assert!(world.mobile.counters().dropped_total() >= 33_333);
    world.run_for(Duration::from_secs(600));
    assert!(world.mobile.is_registered());
}
