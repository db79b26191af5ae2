//! Finding agents, and noticing that they are gone.

use std::time::Duration;

use careof_mobility::v4::*;
use careof_wire::icmp::{IcmpMessage, RouterAdvertisement};

use super::world::*;

fn agent_events(world: &World) -> Vec<AgentEvent> {
    let events = world.events.iter().filter_map(|(_, _, event)| match event {
        Event::Agent(event) => Some(*event),
        _ => None,
    });
    events.collect()
}

fn advertisements(world: &World, which: usize) -> Vec<(careof_base::Instant, RouterAdvertisement)> {
    let sent = world.sent.iter().filter(|(_, who, _)| *who == Who::Foreign(which));
    let parsed = sent.filter_map(|(at, _, transmit)| match &transmit.payload {
        TransmitPayload::Icmp { bytes } => match IcmpMessage::parse(bytes) {
            Ok(IcmpMessage::RouterAdvertisement(message)) => Some((*at, message)),
            other => panic!("{other:?}"),
        },
        TransmitPayload::Udp { .. } => None,
    });
    parsed.collect()
}

fn solicitations(world: &World) -> Vec<careof_base::Instant> {
    let sent = world.sent.iter().filter(|(_, who, transmit)| {
        *who == Who::Mobile && matches!(transmit.payload, TransmitPayload::Icmp { .. })
    });
    sent.map(|(at, ..)| *at).collect()
}

#[test]
fn a_solicitation_brings_an_advertisement_long_before_the_next_is_due() {
    let slow = || {
        let mut config = foreign_config(0);
        config.links[0].advertisements = AdvertiserConfig::every(Duration::from_secs(600));
        config
    };
    let mut world = World::with(mobile_config(), home_config(), [slow(), foreign_config(1)]);
    world.cells.clear();
    world.run_until(at(50_000));
    world.cells = vec![0];
    world.switch(IF_CELL);
    world.run_for(Duration::from_millis(400));
    assert!(world.mobile.is_registered());
    assert_eq!(solicitations(&world).len(), 1);
    assert!(
        world.sent.iter().all(|(.., t)| !matches!(t.payload, TransmitPayload::Icmp { .. }) || t.ttl == 1)
    );
}

#[test]
fn where_there_is_no_agent_solicitations_become_rare() {
    let mut world = World::new();
    world.cells.clear();
    world.switch(IF_CELL);
    world.run_until(at(600_000));
    let times = solicitations(&world);
    assert!((10..=17).contains(&times.len()), "{}", times.len());
    assert!(times.windows(2).all(|pair| pair[1] - pair[0] >= Duration::from_secs(1)));
    let last = times[times.len() - 1] - times[times.len() - 2];
    assert!(last >= Duration::from_secs(60));
}

#[test]
fn three_missed_advertisements_lead_to_the_next_agent() {
    let mut config = mobile_config();
    config.movement = MovementConfig { lifetime: false, prefix: false, link_layer: false, ..config.movement };
    let mut foreign = [foreign_config(0), foreign_config(1)];
    for agent in &mut foreign {
        // So long that only the missing advertisements can tell.
        agent.links[0].advertisements.lifetime = Duration::from_secs(3_000);
    }
    let mut world = World::with(config, home_config(), foreign);
    world.switch(IF_CELL);
    world.run_until(at(20_000));
    assert_eq!(world.exits(), [FA[0]]);
    world.cells = vec![1];
    world.run_until(at(25_000));
    assert_eq!(world.exits(), [FA[1]]);
    let lost = AgentEvent::Lost { interface: IF_CELL, agent: FA[0], cause: AgentLoss::MissedAdvertisements };
    assert!(agent_events(&world).contains(&lost));
    let (when, _) = world.handovers().filter(|(_, event)| event.name() == "initiated").last().unwrap();
    assert!(when > at(22_000) && when < at(24_500), "{when}");
    assert_eq!(world.phases()[3..], ["initiated", "registered", "terminated"]);
    // The old agent's visitor list knows nothing of it and runs out by itself.
    assert_eq!(world.foreign[0].deliver(HOME), Some(DOWNSTREAM));
    world.run_until(at(400_000));
    assert_eq!(world.foreign[0].deliver(HOME), None);
}

#[test]
fn the_end_of_an_advertisement_lifetime_leads_to_the_next_agent() {
    let mut config = mobile_config();
    config.movement = MovementConfig { missed_advertisements: None, prefix: false, ..config.movement };
    let mut world = World::with(config, home_config(), [foreign_config(0), foreign_config(1)]);
    world.switch(IF_CELL);
    world.run_until(at(20_000));
    world.cells = vec![1];
    world.run_until(at(25_000));
    assert_eq!(world.exits(), [FA[1]]);
    let lost = AgentEvent::Lost { interface: IF_CELL, agent: FA[0], cause: AgentLoss::LifetimeExpired };
    assert!(agent_events(&world).contains(&lost));
}

#[test]
fn another_prefix_is_enough_to_move_at_once() {
    let mut world = World::new();
    world.switch(IF_CELL);
    world.run_until(at(20_000));
    world.cells = vec![1];
    world.run_until(at(21_100));
    assert_eq!(world.exits(), [FA[1]]);
    let moved = AgentEvent::PrefixChanged { interface: IF_CELL, agent: FA[1] };
    assert!(agent_events(&world).contains(&moved));
}

#[test]
fn without_prefixes_the_node_stays_with_its_agent_as_long_as_it_is_heard() {
    let mut foreign = [foreign_config(0), foreign_config(1)];
    for agent in &mut foreign {
        agent.links[0].advertisements.prefix_length = None;
    }
    let mut world = World::with(mobile_config(), home_config(), foreign);
    world.switch(IF_CELL);
    world.run_until(at(10_000));
    world.cells = vec![0, 1];
    world.run_until(at(60_000));
    assert_eq!(world.exits(), [FA[0]]);
    assert_eq!(world.request_times().len(), 1);
}

#[test]
fn the_link_layer_says_it_first() {
    let mut foreign = [foreign_config(0), foreign_config(1)];
    for agent in &mut foreign {
        agent.links[0].advertisements = AdvertiserConfig::every(Duration::from_secs(60));
    }
    let mut world = World::with(mobile_config(), home_config(), foreign);
    world.switch(IF_CELL);
    world.run_until(at(20_000));
    assert_eq!(world.exits(), [FA[0]]);
    world.link(IF_CELL, false);
    world.cells = vec![1];
    world.run_until(at(20_050));
    world.link(IF_CELL, true);
    world.run_until(at(20_400));
    assert_eq!(world.exits(), [FA[1]], "a solicitation was answered");
}

#[test]
fn an_agent_that_was_restarted_is_registered_with_again() {
    let mut world = World::new();
    world.switch(IF_CELL);
    world.run_until(at(20_000));
    let stream = careof_base::RandomStream::new(9, 0, "restarted");
    world.foreign[0] = ForeignAgent::new(world.now, foreign_config(0), stream).unwrap();
    assert_eq!(world.foreign[0].deliver(HOME), None);
    world.run_until(at(22_500));
    assert!(agent_events(&world).contains(&AgentEvent::Rebooted { interface: IF_CELL, agent: FA[0] }));
    assert_eq!(world.foreign[0].deliver(HOME), Some(DOWNSTREAM));
    assert_eq!(world.phases(), ["initiated", "registered", "terminated"], "it has not moved");
}

#[test]
fn a_roll_over_of_the_sequence_is_no_restart() {
    let mut foreign = foreign_config(0);
    foreign.links[0].advertisements = AdvertiserConfig {
        rate_limit: Duration::from_millis(1),
        lifetime: Duration::from_secs(1),
        registration_lifetime: careof_wire::mip4::Lifetime::INFINITE,
        ..AdvertiserConfig::every(Duration::from_millis(100))
    };
    foreign.max_lifetime = careof_wire::mip4::Lifetime::INFINITE;
    let mut config = mobile_config();
    config.lifetime = careof_wire::mip4::Lifetime::INFINITE;
    let home = HomeAgentConfig {
        max_lifetime: careof_wire::mip4::Lifetime::INFINITE,
        advertisements: None,
        ..home_config()
    };
    let mut quiet = foreign_config(1);
    quiet.links[0].advertisements = AdvertiserConfig::every(Duration::from_secs(1_000));
    let mut world = World::with(config, home, [foreign, quiet]);
    world.switch(IF_CELL);
    // About 68,000 advertisements.
    world.run_until(at(6_000_000));
    let sequences: Vec<_> =
        advertisements(&world, 0).iter().map(|(_, m)| m.mobility_agent().unwrap().sequence).collect();
    assert!(sequences.len() > 66_000);
    assert!(sequences.windows(2).any(|pair| pair == [0xffff, 256]));
    assert_eq!(world.request_times().len(), 1);
    assert!(!agent_events(&world).iter().any(|event| matches!(event, AgentEvent::Rebooted { .. })));
}

#[test]
fn a_full_agent_says_that_it_is_busy_and_keeps_the_visitors_it_has() {
    let mut foreign = foreign_config(0);
    foreign.max_visitors = 1;
    let mut world = World::with(mobile_config(), home_config(), [foreign, foreign_config(1)]);
    world.switch(IF_CELL);
    world.run_until(at(400_000));
    let busy = |message: &RouterAdvertisement| {
        message.mobility_agent().unwrap().flags.contains(careof_wire::icmp::AgentFlags::BUSY)
    };
    let advertised = advertisements(&world, 0);
    assert!(!busy(&advertised[0].1) && busy(&advertised[10].1));
    assert!(world.mobile.is_registered(), "renewed although busy");
}

#[test]
fn at_home_its_home_agent_is_recognised() {
    let mut config = mobile_config();
    // No address of its own on the home link: the advertisement must tell.
    config.interfaces[3].address = None;
    config.interfaces[3].care_of = CareOfChoice::ForeignAgent;
    let mut world = World::with(config, home_config(), [foreign_config(0), foreign_config(1)]);
    world.switch(IF_WLAN);
    world.run_until(at(1_000));
    world.link(IF_HOME, true);
    world.switch(IF_HOME);
    world.run_until(at(16_000));
    assert!(world.mobile.is_at_home());
    let delivery = world.mobile.delivery(std::net::Ipv4Addr::new(172, 16, 0, 1), None).unwrap();
    assert_eq!((delivery.source, delivery.via), (HOME, Some(HA)));
    assert_eq!(world.mobile.delivery(CORRESPONDENT, None).unwrap().via, None);
}

#[test]
fn with_a_co_located_address_registration_goes_through_an_agent_that_demands_it() {
    let mut config = mobile_config();
    config.interfaces[2].care_of = CareOfChoice::PreferCoLocated;
    let care_of = std::net::Ipv4Addr::new(203, 0, 113, 66);
    config.interfaces[2].address =
        Some(InterfaceAddress { address: care_of, prefix_length: 25, gateway: Some(FA[0]) });
    let mut foreign = foreign_config(0);
    foreign.registration_required = true;
    let mut world = World::with(config, home_config(), [foreign, foreign_config(1)]);
    // The agent has been heard before the node registers.
    world.run_until(at(3_000));
    world.switch(IF_CELL);
    world.run_until(at(4_000));
    assert_eq!(world.exits(), [care_of]);
    let (_, _, transmit) = world.messages(Who::Mobile).remove(0);
    assert_eq!((transmit.source, transmit.destination), (care_of, FA[0]));
    assert!(world.foreign[0].visitor(HOME).unwrap().co_located);
    assert_eq!(world.foreign[0].deliver(HOME), None, "it decapsulates itself");
}
