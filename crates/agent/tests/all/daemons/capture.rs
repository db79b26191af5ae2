//! What is on the wire while agents are at work: nothing that another reader takes for damaged, and no host that says it
//! does not know the tunnel's protocol.

use careof_lab::IcmpSocket;

use super::support::{Capture, Captured, Daemon, Network, find, realm_or_skip, skip};

/// ICMP destination unreachable, and its code for a protocol that nobody takes.
const UNREACHABLE: u8 = 3;
const PROTOCOL: u8 = 2;

/// What no frame may be. Checksums of TCP and UDP are left to the interface, which a capture comes before.
const MALFORMED: &str = "_ws.malformed || ip.checksum.status == \"Bad\" || icmp.checksum.status == \"Bad\"";

#[test]
fn no_host_says_protocol_unreachable_and_no_frame_is_malformed() {
    let Some(realm) = realm_or_skip(&["curl", "python3"]) else { return };
    let network = Network::new(realm);
    let hosts = [&network.correspondent, &network.home, &network.mobile];
    let listeners = hosts.map(|host| host.run(|| IcmpSocket::open(&[UNREACHABLE])).unwrap().unwrap());
    let captures: Option<Vec<Capture>> = find("tshark").is_some().then(|| {
        let places = [("home0", &network.router), ("wlan0-r", &network.router), ("gsm0-r", &network.router)];
        places.map(|(interface, host)| Capture::start(host, interface, network.directory())).into()
    });
    let web = network.web_server();
    web.offer("film", 300_000);
    let mut home = network.start_home_agent();
    let mut mobile = network.start_mobile_node();
    a_life(&network, &mut mobile, || web.fetch(&network.mobile, "film"));
    home.terminate();

    for (host, listener) in hosts.iter().zip(&listeners) {
        let mut buffer = [0; 2048];
        while let Some(datagram) = listener.receive(&mut buffer).unwrap() {
            let code = datagram.message.get(1).copied();
            assert_ne!(code, Some(PROTOCOL), "{:?} told {}", datagram.source, host.name());
        }
    }
    let Some(captures) = captures else {
        return skip("tshark is not installed: nobody else reads the packets");
    };
    let files: Vec<Captured> = captures.into_iter().map(Capture::finish).collect();
    for file in &files {
        for nothing in [MALFORMED, "icmp.type == 3 && icmp.code == 2"] {
            let found = file.frames(nothing);
            assert!(found.is_empty(), "{nothing}:\n{found}");
        }
    }
    for what in ["mip.type == 1", "mip.type == 3", "ip.proto == 4 && tcp"] {
        let found: usize = files.iter().map(|file| file.frames(what).lines().count()).sum();
        assert!(found > 2, "{found} frames of {what}");
    }
}

/// Registration, a download, a handover and back, another, and the end.
fn a_life(network: &Network, mobile: &mut Daemon, fetch: impl Fn()) {
    mobile.wait_for_registration("wlan0");
    fetch();
    network.set_carrier(&network.wlan, false);
    mobile.wait_for_registration("gsm0");
    fetch();
    network.set_carrier(&network.wlan, true);
    mobile.wait_for_registration("wlan0");
    fetch();
    mobile.terminate();
}
