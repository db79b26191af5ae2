//! A home agent with thousands of bindings: it comes back from its store a portion a turn, and what others do to its routes costs as
//! much as they did.

use std::net::Ipv4Addr;
use std::time::Duration;

use careof_agent::{BindingStore as _, Carrier, HomeSetup, Hooks, Setup, Status};
use careof_base::RandomStream;
use careof_lab::{Error, Host, Netlink, Realm, Route, RouteKind};
use careof_mobility::v4::{
    BindingRecord, EncapsulationChoice, HomeAgentConfig, MobileNodeRecord, NtpTime, Prefix, ReplayGuard,
    ServedMobileNode,
};
use careof_wire::mip4::{
    Algorithm, AuthenticationKind, Identification, Lifetime, Message, RegistrationRequest, ReplyCode,
    RequestFlags, Spi, append_authentication,
};

use crate::support::*;

const COUNT: u32 = 5000;
/// Changes of the host that an agent makes in one turn beside what was asked for in it.
const PORTION: usize = 256;
const TABLE: u32 = 43_400;

fn node(n: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(0x0a00_0400 + n)
}

/// What was accepted last of each.
fn accepted() -> NtpTime {
    #[expect(clippy::disallowed_methods, reason = "the agent under test has the real time of day")]
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    NtpTime::from_unix(now)
}

fn record(home_address: Ipv4Addr, last: NtpTime) -> MobileNodeRecord {
    let binding = BindingRecord {
        care_of: GSM,
        lifetime: Lifetime::INFINITE,
        expires: None,
        identification: Identification(last.to_bits()),
        co_located: true,
        broadcasts: false,
        reverse_tunnel: true,
        encapsulation: EncapsulationChoice::IpInIp,
        path_id: None,
        relayed: false,
    };
    let guard = ReplayGuard::Timestamps { window: Duration::from_secs(7), last: Some(last) };
    MobileNodeRecord { home_address, bindings: vec![binding], replay: vec![(Spi(256), guard)] }
}

fn setup() -> HomeSetup {
    let served = (0..COUNT).map(|n| ServedMobileNode::new(node(n), security()));
    let home_network = Prefix::new(Ipv4Addr::new(10, 0, 0, 0), 16);
    let config = HomeAgentConfig { mobile_nodes: served.collect(), home_network, ..home_setup().config };
    HomeSetup { config, ..home_setup() }
}

/// An agent with a binding of each mobile node in its store, and when these were made.
fn open(world: &World) -> (Carrier, Memory, NtpTime) {
    let (mut store, last) = (Memory::default(), accepted());
    for n in 0..COUNT {
        store.save(&record(node(n), last)).unwrap();
    }
    (open_with(world, store.hooks()), store, last)
}

fn open_with(world: &World, hooks: Hooks) -> Carrier {
    let (clock, random) = (world.clock, RandomStream::new(7, 0, "many"));
    world.home.run(move || Carrier::open(Setup::Home(setup()), clock, random, hooks)).unwrap().unwrap()
}

fn world_or_skip() -> Option<World> {
    realm_or_skip().map(|realm: Realm| World::new(realm))
}

/// The mobile nodes to which a route leads into the tunnel.
fn routes(host: &Host) -> usize {
    let routes = host.run(|| Netlink::open()?.routes(TABLE)).unwrap().unwrap();
    routes.iter().filter(|route| route.kind == RouteKind::Unicast && route.prefix_length == 32).count()
}

/// Has turns until it is so.
#[track_caller]
fn turn_until(world: &World, carrier: &mut Carrier, what: &str, is_so: impl Fn(&Status) -> bool) -> Status {
    let begun = world.clock.now();
    loop {
        carrier.turn().unwrap();
        while carrier.poll_event().is_some() {}
        let status = carrier.status_part(None, 1);
        if is_so(&status) {
            return status;
        }
        assert!(world.clock.now() - begun < PATIENCE, "not {what}: {status:#?}");
    }
}

fn ask(socket: &Udp, home_address: Ipv4Addr, identification: NtpTime) {
    let request = RegistrationRequest {
        flags: RequestFlags::DECAPSULATION_BY_MOBILE_NODE,
        lifetime: Lifetime::from_secs(600),
        home_address,
        home_agent: HA,
        care_of_address: WLAN,
        identification: Identification(identification.to_bits()),
        extensions: Vec::new(),
    };
    let mut bytes = Message::Request(request).emit();
    let key = b"0123456789abcdef";
    append_authentication(&mut bytes, AuthenticationKind::MobileHome, Spi(256), Algorithm::HmacMd5, key);
    socket.send_to(&bytes, (HA, 434)).unwrap();
}

/// What it is answered, by an agent that has to be given its turns.
fn answer(world: &World, carrier: &mut Carrier, socket: &Udp) -> ReplyCode {
    socket.set_nonblocking(true).unwrap();
    let (begun, mut buffer) = (world.clock.now(), [0; 1500]);
    loop {
        if let Ok(length) = socket.recv(&mut buffer) {
            match Message::parse(&buffer[..length]).unwrap() {
                Message::Reply(reply) => return reply.code,
                other => panic!("{other:?}"),
            }
        }
        assert!(world.clock.now() - begun < PATIENCE, "no answer");
        // So that what was sent is there, however busy the machine is: a turn is a portion.
        sleep(Duration::from_millis(10));
        carrier.turn().unwrap();
    }
}

#[test]
fn a_restarted_home_agent_serves_while_the_routes_of_its_bindings_come_back_in_portions() {
    let Some(world) = world_or_skip() else { return };
    let (mut carrier, store, last) = open(&world);
    let status = carrier.status();
    assert_eq!((status.binding_count, status.bindings.len()), (COUNT as usize, COUNT as usize));
    assert!(carrier.is_restoring(), "the first portion is not everything");
    assert!(status.host_changes_pending >= COUNT as usize - PORTION, "{}", status.host_changes_pending);
    let dumps = status.counters["host-dumps"];
    assert!(dumps < 200, "{dumps} lists were asked for: one a route?");

    // The last in every order: its route comes last, and what is known of it counts at once.
    let socket = world.home.run(|| Udp::bind((HA, 0))).unwrap().unwrap();
    ask(&socket, node(COUNT - 1), last);
    assert_eq!(answer(&world, &mut carrier, &socket).number(), 133, "what was accepted before is not again");
    ask(&socket, node(COUNT - 1), accepted());
    assert_eq!(answer(&world, &mut carrier, &socket).number(), 0);
    assert!(carrier.is_restoring(), "it was answered before everything was back");
    let moved = store.records().into_iter().find(|record| record.home_address == node(COUNT - 1)).unwrap();
    assert_eq!(moved.bindings[0].care_of, WLAN);

    while carrier.is_restoring() {
        let before = carrier.status_part(None, 1).host_changes_pending;
        carrier.turn().unwrap();
        while carrier.poll_event().is_some() {}
        let after = carrier.status_part(None, 1).host_changes_pending;
        assert!(before - after <= PORTION, "{before} {after}");
    }
    let status = carrier.status();
    assert_eq!((routes(&world.home), status.host_changes_pending), (COUNT as usize, 0));
    let counted = |name: &str| status.counters[name];
    assert_eq!(counted("host-dumps"), dumps, "nothing had to be looked up");
    assert_eq!((counted("network-overruns"), counted("host-refusals")), (0, 0));
    assert_eq!((counted("bindings-restored"), counted("bindings-saved")), (COUNT.into(), 1));
    carrier.close().unwrap();
}

#[test]
fn an_agent_that_ends_while_it_restores_leaves_nothing() {
    let Some(world) = world_or_skip() else { return };
    let before = state_of(&world.home);
    let (carrier, store, _) = open(&world);
    assert!(carrier.is_restoring());
    carrier.close().unwrap();
    // It stays for a moment where another test of this process starts a child just then.
    let begun = world.clock.now();
    while !difference(&before, &state_of(&world.home)).is_empty() {
        assert!(world.clock.now() - begun < PATIENCE, "{:#?}", difference(&before, &state_of(&world.home)));
        sleep(Duration::from_millis(5));
    }
    assert_eq!(store.records().len(), COUNT as usize);
}

#[test]
fn a_route_that_somebody_removes_is_put_back() {
    let Some(world) = world_or_skip() else { return };
    let (mut carrier, _store, _) = open(&world);
    let settled = |status: &Status| status.host_changes_pending == 0;
    let before = turn_until(&world, &mut carrier, "restored", settled);
    assert_eq!(remove(&world.home, 0..5), COUNT as usize - 5);
    let begun = world.clock.now();
    while routes(&world.home) < COUNT as usize {
        assert!(world.clock.now() - begun < PATIENCE, "{} routes", routes(&world.home));
        carrier.turn().unwrap();
        sleep(Duration::from_millis(1));
    }
    let after = turn_until(&world, &mut carrier, "settled", settled);
    let counted = |status: &Status, name: &str| status.counters[name];
    assert_eq!(counted(&after, "network-overruns"), 0);
    assert_eq!(counted(&after, "host-dumps"), counted(&before, "host-dumps"));
    carrier.close().unwrap();
}

/// Somebody removes routes of the agent; how many are left.
fn remove(host: &Host, which: std::ops::Range<u32>) -> usize {
    let removed = host.run(move || {
        let mut netlink = Netlink::open()?;
        let routes = netlink.routes(TABLE)?;
        let is_of = |route: &&Route| which.clone().any(|n| route.destination == node(n));
        for route in routes.iter().filter(is_of) {
            netlink.remove_route(route)?;
        }
        Ok::<_, Error>(())
    });
    removed.unwrap().unwrap();
    routes(host)
}

#[test]
fn after_changes_that_came_too_fast_everything_is_put_in_again_without_a_look_at_each_route() {
    let Some(world) = world_or_skip() else { return };
    let (mut carrier, _store, _) = open(&world);
    let settled = |status: &Status| status.host_changes_pending == 0;
    let before = turn_until(&world, &mut carrier, "restored", settled);
    // Nobody reads meanwhile, so what happens afterwards is not told.
    world.home.run(|| change_too_often(&mut Netlink::open()?)).unwrap().unwrap();
    assert_eq!(remove(&world.home, 100..150), COUNT as usize - 50);
    turn_until(&world, &mut carrier, "overrun", |status| status.counters["network-overruns"] > 0);
    let after = turn_until(&world, &mut carrier, "settled", settled);
    assert_eq!(routes(&world.home), COUNT as usize);
    let since = |name: &str| after.counters[name] - before.counters[name];
    // Interfaces and addresses are listed anew for each portion of news, routes never.
    let (dumps, overruns) = (since("host-dumps"), since("network-overruns"));
    assert!(dumps < 1000, "{dumps} lists for {COUNT} routes and {overruns} overruns");
    assert_eq!(since("host-refusals"), 0);
    carrier.close().unwrap();
}

#[test]
fn a_status_is_told_in_parts() {
    let Some(world) = world_or_skip() else { return };
    let (carrier, _store, _) = open(&world);
    let whole = carrier.status();
    let (mut from, mut bindings, mut parts) = (None, Vec::new(), 0);
    loop {
        let part = carrier.status_part(from, 700);
        assert!(part.bindings.len() <= 700 && part.binding_count == COUNT as usize);
        bindings.extend(part.bindings.into_iter().map(|binding| binding.home_address));
        parts += 1;
        from = part.next;
        if from.is_none() {
            break;
        }
    }
    let all: Vec<_> = whole.bindings.iter().map(|binding| binding.home_address).collect();
    assert_eq!((parts, bindings), (8, all));
    carrier.close().unwrap();
}
