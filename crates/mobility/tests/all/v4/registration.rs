//! Registering, renewing, deregistering.

use std::time::Duration;

use careof_mobility::v4::*;
use careof_wire::mip4::{Algorithm, Identification, Lifetime, Message, ReplyCode, RequestFlags, Spi};

use super::world::*;

fn requests(world: &World) -> Vec<(careof_base::Instant, careof_wire::mip4::RegistrationRequest, Transmit)> {
    let messages = world.messages(Who::Mobile).into_iter();
    let requests = messages.map(|(at, message, transmit)| match message {
        Message::Request(request) => (at, request, transmit),
        other => panic!("a mobile node sends requests, not {other:?}"),
    });
    requests.collect()
}

#[test]
fn a_co_located_address_is_registered_directly() {
    let mut world = World::new();
    world.switch(IF_WLAN);
    world.run_until(at(100));
    assert_eq!(world.exits(), [WLAN]);
    assert!(world.mobile.is_registered() && !world.mobile.is_at_home());
    assert_eq!(world.mobile.care_of_address(), Some(WLAN));
    let (_, request, transmit) = requests(&world).remove(0);
    assert!(request.flags.contains(RequestFlags::DECAPSULATION_BY_MOBILE_NODE));
    assert_eq!((transmit.source, transmit.destination, transmit.interface), (WLAN, HA, Some(IF_WLAN)));
    assert_eq!(world.mobile.path(IF_WLAN).round_trip, Some(Duration::from_millis(10)));
    let on = ArpEvent::Proxy { home_address: HOME, interface: DOWNSTREAM, on: true };
    let gratuitous =
        ArpEvent::Gratuitous { home_address: HOME, interface: DOWNSTREAM, owner: ArpOwner::Sender };
    assert_eq!(world.arps(Who::Home), [on, gratuitous]);
}

#[test]
fn a_foreign_agent_relays_and_delivers() {
    let mut world = World::new();
    world.switch(IF_CELL);
    world.run_until(at(2_000));
    assert_eq!(world.exits(), [FA[0]]);
    assert_eq!(world.foreign[0].deliver(HOME), Some(DOWNSTREAM));
    assert_eq!(world.foreign[0].reverse_tunnel(HOME), None);
    let (_, request, transmit) = requests(&world).remove(0);
    assert_eq!((request.care_of_address, request.flags), (FA[0], RequestFlags::default()));
    assert_eq!((transmit.source, transmit.destination), (HOME, FA[0]));
    let delivery = world.mobile.delivery(CORRESPONDENT, Some(80)).unwrap();
    assert_eq!(
        (delivery.method, delivery.source, delivery.via),
        (DeliveryMethod::Triangle, HOME, Some(FA[0]))
    );
    assert_eq!(world.foreign[0].pending_requests(), 0);
}

#[test]
fn the_policy_table_decides_how_packets_travel() {
    let entry = |destination, port, method| PolicyEntry { destination, port, method };
    let mut config = mobile_config();
    config.policy = PolicyTable::new(
        DeliveryMethod::ReverseTunnel,
        [
            entry(Prefix::ALL, Some(80), DeliveryMethod::RegularIp),
            entry(Prefix::host(CORRESPONDENT), None, DeliveryMethod::Triangle),
        ],
    );
    let mut world = World::with(config, home_config(), [foreign_config(0), foreign_config(1)]);
    assert_eq!(world.mobile.delivery(CORRESPONDENT, None), None);
    world.switch(IF_WLAN);
    world.run_until(at(100));
    let elsewhere = std::net::Ipv4Addr::new(172, 16, 0, 1);
    let web = world.mobile.delivery(elsewhere, Some(80)).unwrap();
    assert_eq!((web.method, web.source, web.tunnel), (DeliveryMethod::RegularIp, WLAN, None));
    let shell = world.mobile.delivery(elsewhere, Some(22)).unwrap();
    assert_eq!((shell.method, shell.source), (DeliveryMethod::ReverseTunnel, HOME));
    let tunnel = shell.tunnel.unwrap();
    assert_eq!((tunnel.entry, tunnel.exit), (WLAN, HA));
    assert!(world.home.accepts_reverse_tunnel(HOME, WLAN));
    assert!(!world.home.accepts_reverse_tunnel(HOME, GSM));
    let direct = world.mobile.delivery(CORRESPONDENT, Some(22)).unwrap();
    assert_eq!((direct.method, direct.source, direct.tunnel), (DeliveryMethod::Triangle, HOME, None));
    let on_link = std::net::Ipv4Addr::new(192, 0, 2, 33);
    assert_eq!(world.mobile.delivery(on_link, Some(80)).unwrap().via, None);
    // Reverse tunnelling was asked for, which takes a TTL of 255.
    assert_eq!(requests(&world)[0].2.ttl, 255);
}

#[test]
fn a_foreign_agent_tunnels_back_in_either_delivery_style() {
    for encapsulating in [false, true] {
        let mut config = mobile_config();
        config.reverse_tunnel = true;
        config.encapsulating_delivery = encapsulating;
        config.policy = PolicyTable::new(DeliveryMethod::ReverseTunnel, []);
        let mut world = World::with(config, home_config(), [foreign_config(0), foreign_config(1)]);
        world.switch(IF_CELL);
        world.run_until(at(2_000));
        let back = world.foreign[0].reverse_tunnel(HOME).unwrap();
        assert_eq!((back.entry, back.exit), (FA[0], HA));
        assert_eq!(world.foreign[0].visitor(HOME).unwrap().encapsulating_delivery, encapsulating);
        let delivery = world.mobile.delivery(CORRESPONDENT, None).unwrap();
        assert_eq!(delivery.method, DeliveryMethod::ReverseTunnel);
        assert_eq!(delivery.tunnel.map(|tunnel| tunnel.exit), encapsulating.then_some(FA[0]));
        assert!(world.home.accepts_reverse_tunnel(HOME, FA[0]));
    }
}

#[test]
fn lost_requests_are_sent_again_after_one_second_then_two_then_four() {
    let mut world =
        World::with(to_the_letter(mobile_config()), home_config(), [foreign_config(0), foreign_config(1)]);
    world.lose = Box::new(|from, _| from == Who::Mobile);
    world.switch(IF_WLAN);
    world.run_until(at(20_000));
    let times = world.request_times();
    assert_eq!(times, [at(0), at(1_000), at(3_000), at(7_000), at(15_000)]);
    let identifications: Vec<_> = requests(&world).iter().map(|(_, r, _)| r.identification).collect();
    assert!(identifications.windows(2).all(|pair| pair[0] < pair[1]), "each has a new Identification");
    world.lose = Box::new(|_, _| false);
    world.run_until(at(32_000));
    assert_eq!(world.exits(), [WLAN]);
    assert_eq!(world.request_times().len(), 6);
}

#[test]
fn the_first_wait_is_twice_the_round_trip_and_100_ms_on_a_slow_path() {
    let mut config = mobile_config();
    config.interfaces[1].path.round_trip = Some(Duration::from_millis(1_400));
    let mut world = World::with(config, home_config(), [foreign_config(0), foreign_config(1)]);
    world.lose = Box::new(|from, _| from == Who::Mobile);
    world.switch(IF_GSM);
    world.run_until(at(5_000));
    assert_eq!(world.request_times(), [at(0), at(2_900)]);
}

#[test]
fn half_of_all_packets_lost_only_takes_longer() {
    for seed in 0..20 {
        let mut random = careof_base::RandomStream::new(seed, 0, "loss");
        let mut world = World::new();
        world.lose = Box::new(move |_, _| random.unit() < 0.5);
        world.switch(IF_CELL);
        world.run_until(at(200_000));
        assert!(world.mobile.is_registered(), "seed {seed}");
        assert_eq!(world.exits(), [FA[0]], "seed {seed}");
    }
}

#[test]
fn a_registration_is_renewed_before_it_expires() {
    let mut config = mobile_config();
    config.lifetime = Lifetime::from_secs(20);
    for interface in [IF_WLAN, IF_CELL] {
        let mut world = World::with(config.clone(), home_config(), [foreign_config(0), foreign_config(1)]);
        world.switch(interface);
        world.run_until(at(200_000));
        let bindings = world.events.iter().filter_map(|(_, _, event)| match event {
            Event::Binding(change) => Some(change.change),
            _ => None,
        });
        let changes: Vec<_> = bindings.collect();
        assert!(changes.iter().filter(|&&change| change == Change::Updated).count() >= 20);
        assert!(!changes.contains(&Change::Expired) && !changes.contains(&Change::Removed));
        assert!(world.request_times().len() <= 16, "{interface:?}");
        assert_eq!(world.phases(), ["initiated", "registered", "terminated"]);
    }
}

#[test]
fn without_renewal_everybody_forgets_when_the_lifetime_ends() {
    let mut config = mobile_config();
    config.lifetime = Lifetime::from_secs(20);
    let mut world = World::with(config, home_config(), [foreign_config(0), foreign_config(1)]);
    world.switch(IF_CELL);
    world.run_until(at(2_000));
    let registered = world.request_times()[0];
    world.lose = Box::new(|from, transmit| {
        from == Who::Mobile && matches!(transmit.payload, TransmitPayload::Udp { .. })
    });
    world.run_until(registered + Duration::from_millis(19_999));
    assert!(!world.exits().is_empty() && world.mobile.is_registered());
    world.run_until(registered + Duration::from_millis(20_000));
    assert!(!world.mobile.is_registered(), "the node's clock began with its request");
    assert!(!world.exits().is_empty(), "the home agent's with the request's arrival");
    world.run_for(Duration::from_millis(20));
    assert!(world.exits().is_empty());
    assert_eq!(world.foreign[0].deliver(HOME), None);
    assert_eq!(world.mobile.delivery(CORRESPONDENT, None), None);
    let off = ArpEvent::Proxy { home_address: HOME, interface: DOWNSTREAM, on: false };
    assert_eq!(world.arps(Who::Home).last(), Some(&off));
    // And when the network is back, so is the node.
    world.lose = Box::new(|_, _| false);
    world.run_for(Duration::from_secs(40));
    assert_eq!(world.exits(), [FA[0]]);
}

#[test]
fn at_home_the_node_deregisters_after_it_has_announced_itself() {
    let mut world = World::new();
    world.switch(IF_WLAN);
    world.run_until(at(1_000));
    world.link(IF_HOME, true);
    world.switch(IF_HOME);
    let announced = world.arps(Who::Mobile);
    assert_eq!(
        announced,
        [
            ArpEvent::Answer { home_address: HOME, on: false },
            ArpEvent::Answer { home_address: HOME, on: true },
            ArpEvent::Gratuitous { home_address: HOME, interface: IF_HOME, owner: ArpOwner::Sender },
        ]
    );
    world.run_for(Duration::from_secs(1));
    assert!(world.exits().is_empty() && world.mobile.is_at_home());
    let (_, request, transmit) = requests(&world).pop().unwrap();
    assert!(request.lifetime.is_zero() && request.care_of_address == HOME);
    assert_eq!((transmit.source, transmit.destination), (HOME, HA));
    let by_home = world.arps(Who::Home);
    assert_eq!(
        by_home[by_home.len() - 2..],
        [
            ArpEvent::Proxy { home_address: HOME, interface: DOWNSTREAM, on: false },
            ArpEvent::Gratuitous { home_address: HOME, interface: DOWNSTREAM, owner: ArpOwner::MobileNode },
        ]
    );
    let delivery = world.mobile.delivery(CORRESPONDENT, None).unwrap();
    assert_eq!((delivery.method, delivery.source, delivery.tunnel), (DeliveryMethod::RegularIp, HOME, None));
    // There is nothing to renew.
    let quiet = world.request_times().len();
    world.run_for(Duration::from_secs(3_000));
    assert_eq!(world.request_times().len(), quiet);
}

#[test]
fn the_end_of_service_deregisters_from_abroad() {
    for interface in [IF_WLAN, IF_CELL] {
        let mut world = World::new();
        world.switch(interface);
        world.run_until(at(2_000));
        world.command(|node, now| node.deregister(now));
        world.run_for(Duration::from_secs(1));
        assert!(world.exits().is_empty() && !world.mobile.is_registered());
        assert_eq!(world.foreign[0].deliver(HOME), None);
        let by_home = world.arps(Who::Home);
        assert_eq!(
            by_home.last(),
            Some(&ArpEvent::Proxy { home_address: HOME, interface: DOWNSTREAM, on: false })
        );
        let sent = world.request_times().len();
        world.run_for(Duration::from_secs(1_000));
        assert_eq!(world.request_times().len(), sent, "nothing more");
        world.switch(interface);
        world.run_for(Duration::from_secs(5));
        assert!(world.mobile.is_registered(), "until it is wanted again");
    }
}

#[test]
fn who_changes_its_mind_while_the_farewell_is_under_way_registers_again() {
    let mut world = World::new();
    world.switch(IF_WLAN);
    world.run_until(at(1_000));
    world.command(|node, now| node.deregister(now));
    world.run_until(at(1_003));
    world.command(|node, now| node.deregister(now));
    world.switch(IF_WLAN);
    world.run_until(at(5_000));
    assert_eq!(world.exits(), [WLAN]);
    assert!(world.mobile.is_registered());
}

#[test]
fn a_home_agent_that_never_answers_a_farewell_does_not_hold_the_node_up() {
    let mut world = World::new();
    world.switch(IF_WLAN);
    world.run_until(at(1_000));
    world.lose = Box::new(|_, _| true);
    world.command(|node, now| node.deregister(now));
    world.run_for(Duration::from_secs(60));
    assert!(!world.mobile.is_registered());
    assert_eq!(world.mobile.next_timeout().map(|(_, wake)| wake), None);
}

#[test]
fn the_home_agent_may_lower_the_lifetime_and_never_raises_it() {
    let home = HomeAgentConfig { max_lifetime: Lifetime::from_secs(60), ..home_config() };
    let mut world = World::with(mobile_config(), home, [foreign_config(0), foreign_config(1)]);
    world.switch(IF_WLAN);
    world.run_until(at(1_000));
    assert_eq!(world.granted(), Some(Lifetime::from_secs(60)));
    world.run_until(at(46_000));
    assert_eq!(world.request_times()[1], at(45_000), "three quarters of what was granted");
    let mut world = World::new();
    world.switch(IF_WLAN);
    world.run_until(at(1_000));
    assert_eq!(world.granted(), Some(Lifetime::from_secs(300)));
}

#[test]
fn an_infinite_registration_needs_no_renewal() {
    let mut config = mobile_config();
    config.lifetime = Lifetime::INFINITE;
    let home = HomeAgentConfig { max_lifetime: Lifetime::INFINITE, ..home_config() };
    let mut world = World::with(config, home, [foreign_config(0), foreign_config(1)]);
    world.switch(IF_WLAN);
    world.run_until(at(100_000_000));
    assert_eq!(world.request_times().len(), 1);
    assert_eq!(world.exits(), [WLAN]);
}

#[test]
fn a_foreign_agent_that_finds_the_lifetime_too_long_is_asked_for_less() {
    let mut foreign = foreign_config(0);
    // It advertises more than it accepts.
    foreign.max_lifetime = Lifetime::from_secs(30);
    let mut world = World::with(mobile_config(), home_config(), [foreign, foreign_config(1)]);
    world.switch(IF_CELL);
    world.run_until(at(3_000));
    assert_eq!(world.denials(), [ReplyCode::ForeignRequestedLifetimeTooLong]);
    assert_eq!(world.granted(), Some(Lifetime::from_secs(30)));
    world.run_until(at(100_000));
    assert_eq!(world.denials().len(), 1, "it remembers");
}

#[test]
fn what_agents_insist_on_is_done() {
    let home = HomeAgentConfig {
        reverse_tunnel: ReverseTunnel::Required,
        gre: false,
        minimal_encapsulation: false,
        ..home_config()
    };
    let mut config = mobile_config();
    config.encapsulation = EncapsulationChoice::Gre;
    let mut world = World::with(config, home, [foreign_config(0), foreign_config(1)]);
    world.switch(IF_WLAN);
    world.run_until(at(3_000));
    assert_eq!(
        world.denials(),
        [ReplyCode::HomeReverseTunnelMandatory, ReplyCode::HomeEncapsulationUnavailable]
    );
    assert_eq!(world.exits(), [WLAN]);

    let mut foreign = foreign_config(0);
    foreign.reverse_tunnel = ReverseTunnel::Required;
    foreign.encapsulating_delivery = false;
    let mut config = mobile_config();
    config.encapsulating_delivery = true;
    let mut world = World::with(config, home_config(), [foreign, foreign_config(1)]);
    world.switch(IF_CELL);
    world.run_until(at(3_000));
    assert_eq!(
        world.denials(),
        [ReplyCode::ForeignReverseTunnelMandatory, ReplyCode::ForeignDeliveryStyleNotSupported]
    );
    assert!(world.foreign[0].reverse_tunnel(HOME).is_some());
}

#[test]
fn an_unknown_home_agent_is_found_by_asking_the_home_network() {
    let mut config = mobile_config();
    config.home_agent = None;
    for interface in [IF_WLAN, IF_CELL] {
        let mut world = World::with(config.clone(), home_config(), [foreign_config(0), foreign_config(1)]);
        world.switch(interface);
        world.run_until(at(3_000));
        assert_eq!(world.denials(), [ReplyCode::HomeUnknownHomeAgentAddress]);
        assert_eq!(world.mobile.home_agent(), Some(HA));
        assert!(world.mobile.is_registered(), "{interface:?}");
    }
}

#[test]
fn a_wrong_clock_is_corrected_by_one_denial() {
    for (ahead, behind) in [(86_400, 0), (0, 86_400), (8, 0), (0, 1_000_000_000)] {
        let mut config = mobile_config();
        config.clock = clock().ahead_by(Duration::from_secs(ahead)).behind_by(Duration::from_secs(behind));
        let mut world = World::with(config, home_config(), [foreign_config(0), foreign_config(1)]);
        world.switch(IF_WLAN);
        world.run_until(at(50));
        assert_eq!(world.denials(), [ReplyCode::HomeIdentificationMismatch]);
        assert_eq!(world.exits(), [WLAN], "at once, not after a second");
        world.run_until(at(2_000_000));
        assert_eq!(world.denials().len(), 1);
    }
}

#[test]
fn a_clock_step_on_either_side_is_survived() {
    let mut config = mobile_config();
    config.lifetime = Lifetime::from_secs(20);
    let mut world = World::with(config, home_config(), [foreign_config(0), foreign_config(1)]);
    world.switch(IF_WLAN);
    world.run_until(at(1_000));
    let hour = Duration::from_secs(3600);
    for (home, mobile) in [
        (clock().ahead_by(hour), clock()),
        (clock().behind_by(hour), clock()),
        (clock().behind_by(hour), clock().ahead_by(hour)),
        (clock(), clock().behind_by(hour)),
    ] {
        world.home.set_clock(home);
        world.mobile.set_clock(mobile);
        world.run_for(Duration::from_secs(100));
        assert_eq!(world.exits(), [WLAN]);
    }
    assert!(
        world.events.iter().all(|(_, _, e)| !matches!(e, Event::Binding(b) if b.change == Change::Expired))
    );
}

#[test]
fn nonces_work_and_survive_lost_replies() {
    let nonces =
        SecurityAssociation::new(Spi(300), Algorithm::HmacSha256, KEY, ReplayProtection::Nonces).unwrap();
    let mut config = mobile_config();
    config.security = nonces.clone();
    config.lifetime = Lifetime::from_secs(20);
    let mut home = home_config();
    home.mobile_nodes[0].security.push(nonces);
    let mut world = World::with(config, home, [foreign_config(0), foreign_config(1)]);
    let mut lost = 0;
    world.lose = Box::new(move |from, transmit| {
        // The reply to the second request, and some requests.
        let udp = matches!(transmit.payload, TransmitPayload::Udp { .. });
        lost += u32::from(udp);
        udp && (from == Who::Home && lost == 4 || from == Who::Mobile && lost % 7 == 0)
    });
    world.switch(IF_WLAN);
    world.run_until(at(300_000));
    assert_eq!(world.exits(), [WLAN]);
    assert!(world.denials().iter().all(|&code| code == ReplyCode::HomeIdentificationMismatch));
    assert!((1..=4).contains(&world.denials().len()), "{:?}", world.denials());
    assert!(world.home.counters().accepted >= 15);
}

#[test]
fn with_nonces_an_unanswered_request_is_sent_again_unchanged() {
    let nonces =
        SecurityAssociation::new(Spi(300), Algorithm::HmacMd5, KEY, ReplayProtection::Nonces).unwrap();
    let mut config = to_the_letter(mobile_config());
    config.security = nonces;
    let mut world = World::with(config, home_config(), [foreign_config(0), foreign_config(1)]);
    world.lose = Box::new(|_, _| true);
    world.switch(IF_WLAN);
    world.run_until(at(4_000));
    let sent: Vec<Identification> = requests(&world).iter().map(|(_, r, _)| r.identification).collect();
    assert_eq!(sent.len(), 3);
    assert!(sent.iter().all(|&identification| identification == sent[0]));
}

#[test]
fn a_home_agent_started_again_carries_on() {
    let mut world = World::new();
    world.switch(IF_WLAN);
    world.run_until(at(10_000));
    let record = world.home.record(world.now, HOME).unwrap();
    let replay = world.messages(Who::Mobile)[0].2.clone();

    let stream = careof_base::RandomStream::new(8, 0, "restarted");
    world.home = HomeAgent::new(world.now, home_config(), stream).unwrap();
    assert!(world.home.restore(world.now, &record));
    assert_eq!(world.exits(), [WLAN]);
    let left = world.home.next_timeout().unwrap();
    assert!(left.0 < at(12_000) || left.1 == Wake::BindingLifetime);
    world.inject(Who::Home, UPSTREAM, replay);
    assert_eq!(world.home.counters().denied(133), 1, "what was accepted before is not accepted again");
    world.run_until(at(290_000));
    assert_eq!(world.exits(), [WLAN], "renewed in time");

    let late = at(900_000);
    let mut stale =
        HomeAgent::new(late, home_config(), careof_base::RandomStream::new(8, 0, "late")).unwrap();
    assert!(stale.restore(late, &record));
    assert!(stale.tunnels(HOME).is_empty(), "its lifetime has ended meanwhile");
}
