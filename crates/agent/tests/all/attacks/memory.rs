//! Agents that may take hardly more memory than they have, flooded.

use std::fs;
use std::net::Ipv4Addr;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::storms::Over;
use crate::daemons::support::{
    Daemon, FOREIGN_AGENT, Flood, HOME_AGENT, Network, VISITED_INTERFACE, realm_or_skip, wait_until,
};
use crate::support::Udp;
use crate::support::ethernet::ip;
use careof_base::RandomStream;
use careof_lab::Host;
use careof_wire::mip4::{
    Algorithm, AuthenticationKind, Identification, Lifetime, Message, RegistrationRequest, RequestFlags, Spi,
    append_authentication,
};

/// What an agent may take beyond what it has, bytes of address space.
const ROOM: u64 = 8 << 20;

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
    let mut home = network.start_home_agent();
    let mut foreign = network.start_foreign_agent();
    let visiting = format!("[[interface]]\nname = \"{VISITED_INTERFACE}\"\ncare_of = \"foreign-agent\"\n");
    let interfaces = format!("{visiting}[[interface]]\nname = \"wlan0\"\n");
    let mut mobile = network.start_mobile_node_with(&interfaces);
    mobile.wait_for_registration(VISITED_INTERFACE);
    // From the same link as the visitor: the link is a cable, and the stranger is on its other end.
    assert!(ip(&network.mobile, "address add 172.16.0.66/24 dev visit0"));
    for agent in [&home, &foreign, &mobile] {
        confine(agent);
    }

    std::thread::scope(|scope| {
        let _over = Over(&IS_OVER);
        scope.spawn(|| pretend_to_visit(&network.mobile, &IS_OVER, &SENT));
        let floods = [HOME_AGENT, network.wlan.address]
            .map(|target| Flood::start(&network.correspondent, target, 10_000));
        wait_until("all have sent much", || {
            floods.iter().all(|flood| flood.sent() > 100_000) && SENT.load(Ordering::Relaxed) > 100_000
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
