//! Several care-of addresses at a time (RFC 5648): both ways are open while the mobile node changes from one to the other.

use std::net::Ipv6Addr;

use careof_lab::Ipv6PacketSender;
use careof_mobility::{Notice, Selection};
use careof_wire::ipv6::{Extensions, Ipv6Header, Packet};
use careof_wire::protocol;

use super::network::*;
use crate::support::{Listener, PATIENCE, Running, Tcp, pattern, realm_or_skip, receive_all};
use std::io::Write;

fn care_of_addresses(home: &Running) -> Vec<Ipv6Addr> {
    status(home).bindings.into_iter().map(|binding| binding.care_of).collect()
}

/// A packet of the mobile node's in a tunnel from one of its care-of addresses.
fn tunnelled_from(care_of: Ipv6Addr) -> Vec<u8> {
    let packet = |source, destination, next_header, payload: &[u8]| {
        let header = Ipv6Header { source, destination, hop_limit: 64, ..Ipv6Header::default() };
        let mut bytes = Vec::new();
        Packet::emit(&header, &Extensions::NONE, next_header, payload, &mut bytes).unwrap();
        bytes
    };
    packet(care_of, HA, protocol::IPV6, &packet(HOME, CORRESPONDENT, protocol::UDP, &[7; 16]))
}

#[test]
fn both_care_of_addresses_are_bound_until_the_old_one_is_released() {
    for links in [Links::Ethernet, Links::Ipv4Only] {
        let Some(realm) = realm_or_skip() else { return };
        let network = Network::with(realm, links);
        let is_ipv4 = links == Links::Ipv4Only;
        wait_for_addresses_of(&network.mobile, if is_ipv4 { &[WLAN] } else { &[WLAN, GSM] });
        let before = [&network.home, &network.mobile].map(state_of);
        let home = network.dual_stack_home_agent();
        let mut setup = network.dual_stack_mobile_setup();
        setup.config.multiple_care_of = true;
        setup.config.selection = Selection::Manual;
        let mobile = network.mobile_node(setup);
        let switch_to = |interface: &'static str| {
            mobile.with(move |node| node.switch_to(interface, Notice::None)).unwrap();
            wait_registered(&mobile, interface).registration.unwrap().care_of.unwrap()
        };
        let old = switch_to("wlan0");
        assert!(WLAN.contains(old));
        let listener = network.mobile.run(|| Listener::bind((HOME, 80))).unwrap().unwrap();
        let received = receive_all(listener);
        let mut client = network.correspondent.run(|| Tcp::connect((HOME, 80))).unwrap().unwrap();
        client.set_write_timeout(Some(PATIENCE)).unwrap();
        let sent = pattern(900_000);
        let mut parts = sent.chunks(300_000);
        let mut send_part = || client.write_all(parts.next().unwrap()).unwrap();
        send_part();

        let new = switch_to("gsm0");
        assert!(if is_ipv4 { new == CARE_OF_IPV4.to_ipv6_mapped() } else { GSM.contains(new) }, "{new}");
        wait_until(&home, "told of both", |status| status.bindings.len() == 2);
        let mut bound = care_of_addresses(&home);
        bound.sort_unstable();
        let mut expected = vec![old, new];
        expected.sort_unstable();
        assert_eq!(bound, expected);
        send_part();
        // What comes by the old one is as good as what comes by the new one.
        let taken = |name: &str| status(&home).counters[name];
        let strange = taken("packets-not-ours");
        let send = move || Ipv6PacketSender::open(None)?.send(&tunnelled_from(old), None);
        let earlier = taken("packets-tunnelled-in");
        assert!(network.mobile.run(send).unwrap().unwrap());
        wait_until(&home, "sent to by the old address", |_| taken("packets-tunnelled-in") > earlier);

        mobile.with(|node| node.release("wlan0")).unwrap();
        wait_until(&home, "told of one", |status| status.bindings.len() == 1);
        assert_eq!(care_of_addresses(&home), [new]);
        send_part();
        drop(client);
        assert!(received.join().unwrap() == sent, "{links:?}: what arrived is what was sent");
        assert_eq!(taken("packets-not-ours"), strange);
        mobile.close().unwrap();
        home.close().unwrap();
        for (host, before) in [&network.home, &network.mobile].into_iter().zip(&before) {
            assert_as_it_was(host, before);
        }
    }
}
