//! Agents that may take hardly more memory than they have, flooded.

use std::collections::BTreeSet;
use std::fs;
use std::net::Ipv4Addr;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use super::storms::Over;
use crate::daemons::support::{
    CORRESPONDENT, Daemon, FOREIGN_AGENT, Flood, HOME_AGENT, MemoryGroup, Network, VISITED_INTERFACE,
    foreign_configuration, key, realm_or_skip, wait_until,
};
use crate::support::Udp;
use crate::support::ethernet::ip;
use crate::support::registration::identification;
use careof_base::RandomStream;
use careof_lab::Host;
use careof_wire::mip4::{
    Algorithm, AuthenticationKind, Identification, Lifetime, Message, RegistrationRequest, RequestFlags, Spi,
    append_authentication,
};

/// What an agent may take beyond what it has, bytes of address space.
const ROOM: u64 = 8 << 20;
/// The same in bytes of memory.
const CGROUP_ROOM: u64 = 4 << 20;

/// Bounds the memory of a running agent.
fn confine(agent: &Daemon) {
    let id = agent.id();
    let about = fs::read_to_string(format!("/proc/{id}/status")).unwrap();
    let size = about.lines().find_map(|line| line.strip_prefix("VmSize:")).unwrap();
    let kilobytes: u64 = size.trim().trim_end_matches(" kB").parse().unwrap();
    let limit = kilobytes * 1024 + ROOM;
    let mut command = Command::new("prlimit");
    command.args([format!("--pid={id}"), format!("--as={limit}")]);
    assert!(command.status().unwrap().success());
}

/// Requests of mobile nodes that do not exist, for home agents that do not exist, by way of a foreign agent.
fn pretend_to_visit(host: &Host, is_over: &'static AtomicBool, sent: &'static AtomicU64) {
    host.run(move || {
        let socket = Udp::bind((Ipv4Addr::new(172, 16, 0, 66), 0)).unwrap();
        let mut random = RandomStream::new(1, 0, "visitors");
        let mut any = |network: u32| Ipv4Addr::from_bits(network | random.next_u64() as u32 >> 8);
        while !is_over.load(Ordering::Relaxed) {
            let request = RegistrationRequest {
                flags: RequestFlags::default(),
                lifetime: Lifetime::from_secs(1000),
                home_address: any(0x0b00_0000),
                home_agent: any(0x0c00_0000),
                care_of_address: FOREIGN_AGENT,
                identification: Identification(sent.load(Ordering::Relaxed)),
                extensions: Vec::new(),
            };
            let mut bytes = Message::Request(request).emit();
            let (kind, algorithm) = (AuthenticationKind::MobileHome, Algorithm::HmacMd5);
            append_authentication(&mut bytes, kind, Spi(256), algorithm, b"nobody checks it");
            // The kernel may have no room for it; it counts as sent all the same.
            let _ = socket.send_to(&bytes, (Ipv4Addr::new(172, 16, 0, 1), 434));
            sent.fetch_add(1, Ordering::Relaxed);
        }
    })
    .unwrap();
}

#[test]
fn agents_that_may_take_no_more_memory_go_on_when_they_are_flooded() {
    static IS_OVER: AtomicBool = AtomicBool::new(false);
    static SENT: AtomicU64 = AtomicU64::new(0);
    let Some(realm) = realm_or_skip(&["prlimit"]) else { return };
    let mut network = Network::new(realm);
    network.add_foreign_agent();
    let home = network.start_home_agent();
    let foreign = network.start_foreign_agent();
    let mobile = network.start_mobile_node_with(&visiting());
    mobile.wait_for_registration(VISITED_INTERFACE);
    for agent in [&home, &foreign, &mobile] {
        confine(agent);
    }
    flood_all(&network, [home, foreign, mobile], &IS_OVER, &SENT);
}

/// The interfaces of a mobile node that prefers to visit.
fn visiting() -> String {
    let visiting = format!("[[interface]]\nname = \"{VISITED_INTERFACE}\"\ncare_of = \"foreign-agent\"\n");
    format!("{visiting}[[interface]]\nname = \"wlan0\"\n")
}

/// Floods a home agent, a foreign agent and a mobile node that visits it; they go on.
fn flood_all(
    network: &Network,
    [mut home, mut foreign, mut mobile]: [Daemon; 3],
    is_over: &'static AtomicBool,
    sent: &'static AtomicU64,
) {
    // From the same link as the visitor: the link is a cable, and the stranger is on its other end.
    assert!(ip(&network.mobile, "address add 172.16.0.66/24 dev visit0"));
    std::thread::scope(|scope| {
        let _over = Over(is_over);
        scope.spawn(|| pretend_to_visit(&network.mobile, is_over, sent));
        let floods = [HOME_AGENT, network.wlan.address]
            .map(|target| Flood::start(&network.correspondent, target, 10_000));
        wait_until("all have sent much", || {
            floods.iter().all(|flood| flood.sent() > 100_000) && sent.load(Ordering::Relaxed) > 100_000
        });
    });
    for agent in [&mut home, &mut foreign, &mut mobile] {
        agent.assert_running();
        assert!(agent.counter("messages-received") > 100, "{}", agent.status());
    }
    assert!(foreign.counters("dropped") > 0 && home.counters("dropped") > 0);
    mobile.wait_for_registration(VISITED_INTERFACE);
    network.set_carrier(&network.wlan, false);
    network.set_carrier(&network.wlan, true);
    assert_eq!(home.bindings(), 1);
}

#[test]
fn agents_in_memory_cgroups_that_are_nearly_full_go_on_when_they_are_flooded() {
    static IS_OVER: AtomicBool = AtomicBool::new(false);
    static SENT: AtomicU64 = AtomicU64::new(0);
    let Some(realm) = realm_or_skip(&[]) else { return };
    let groups = ["home", "foreign", "mobile"].map(MemoryGroup::new_or_skip);
    let [Some(of_home), Some(of_foreign), Some(of_mobile)] = groups else { return };
    let mut network = Network::new(realm);
    network.add_foreign_agent();
    let start =
        |group, host, name, text: &str| Daemon::start_in(group, host, network.directory(), name, text);
    let home = start(&of_home, &network.home, "home", &network.home_configuration(""));
    let foreign = start(&of_foreign, network.foreign(), "foreign", &foreign_configuration());
    let mobile = start(&of_mobile, &network.mobile, "mobile", &Network::mobile_configuration(&visiting()));
    mobile.wait_for_registration(VISITED_INTERFACE);
    let groups = [of_home, of_foreign, of_mobile];
    for group in &groups {
        group.limit(Some(group.used() + CGROUP_ROOM));
    }
    flood_all(&network, [home, foreign, mobile], &IS_OVER, &SENT);
    assert_eq!(groups.map(|group| group.ended()), [0; 3]);
}

/// Mobile nodes of a home agent whose memory they use up.
const NODES: u32 = 10_000;

fn node(n: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(0x0a80_0000 + n)
}

/// Asks for a binding of each of some mobile nodes, until all have one or nothing is heard any more; enters who has.
fn register(socket: &Udp, nodes: std::ops::Range<u32>, promised: &mut BTreeSet<Ipv4Addr>) {
    socket.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    for _ in 0..10 {
        for home_address in nodes.clone().map(node).filter(|node| !promised.contains(node)) {
            let request = RegistrationRequest {
                flags: RequestFlags::DECAPSULATION_BY_MOBILE_NODE,
                lifetime: Lifetime::INFINITE,
                home_address,
                home_agent: HOME_AGENT,
                care_of_address: CORRESPONDENT,
                identification: identification(),
                extensions: Vec::new(),
            };
            let mut bytes = Message::Request(request).emit();
            let (kind, algorithm) = (AuthenticationKind::MobileHome, Algorithm::HmacMd5);
            append_authentication(&mut bytes, kind, Spi(256), algorithm, &key());
            // It may have ended.
            let _ = socket.send_to(&bytes, (HOME_AGENT, 434));
        }
        let mut buffer = [0; 1000];
        while !nodes.clone().all(|n| promised.contains(&node(n)))
            && let Ok(len) = socket.recv(&mut buffer)
        {
            if let Ok(Message::Reply(reply)) = Message::parse(&buffer[..len])
                && reply.code.is_accepted()
            {
                promised.insert(reply.home_address);
            }
        }
        if nodes.clone().all(|n| promised.contains(&node(n))) {
            return;
        }
    }
}

#[test]
fn a_home_agent_that_its_memory_cgroup_has_ended_comes_back_with_every_binding_it_promised() {
    let Some(realm) = realm_or_skip(&[]) else { return };
    let Some(group) = MemoryGroup::new_or_skip("full") else { return };
    let network = Network::new(realm);
    let mut configuration = network.home_configuration("max_lifetime = \"infinity\"\ndelivery = \"routed\"");
    configuration = configuration.replace("192.0.2.0/24", "10.128.0.0/16");
    let (before, _) = configuration.split_once("[[mobile_node]]").unwrap();
    configuration = before.to_owned();
    for n in 0..NODES {
        let key = u128::from_be_bytes(key());
        let table = "[[mobile_node]]\nhome_address =";
        configuration += &format!("{table} \"{}\"\nspi = 256\nkey = \"{key:032x}\"\n", node(n));
    }
    let (host, directory) = (&network.home, network.directory());
    let mut home = Daemon::start_in(&group, host, directory, "home", &configuration);
    group.limit(Some(group.used() + 256 * 1024));
    let socket = network.correspondent.run(|| Udp::bind((CORRESPONDENT, 0))).unwrap().unwrap();
    let mut promised = BTreeSet::new();
    for first in (0..NODES).step_by(100) {
        register(&socket, first..first + 100, &mut promised);
        if !home.is_running() {
            break;
        }
    }
    assert_eq!((home.is_running(), group.ended()), (false, 1), "after {} bindings", promised.len());
    assert!(!promised.is_empty());
    group.limit(None);
    home.start_again(host);
    let status = home.status();
    let bindings: BTreeSet<Ipv4Addr> = status["bindings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|binding| binding["home_address"].as_str().unwrap().parse().unwrap())
        .collect();
    assert!(promised.is_subset(&bindings), "{} of {}", bindings.len(), promised.len());
    let mut more = BTreeSet::new();
    register(&socket, NODES - 1..NODES, &mut more);
    assert_eq!(more.len(), 1);
}
