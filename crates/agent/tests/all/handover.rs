//! A kernel's TCP connection moves between links without noticing more than a pause.

use std::io::{Read, Write};
use std::time::Duration;

use crate::support::*;
use careof_agent::Hooks;
use careof_mobility::v4::{DeliveryMethod, Notice, PolicyTable};

#[test]
fn a_connection_survives_a_handover_between_two_links() {
    let Some(realm) = realm_or_skip() else { return };
    for method in [DeliveryMethod::Triangle, DeliveryMethod::ReverseTunnel] {
        let world = World::new(realm);
        let before = state_of(&world.mobile);
        let unreachable = ProtocolUnreachable::listen(&world.home);
        let home = world.home_agent(home_setup(), Hooks::default());
        let mut setup = mobile_setup();
        setup.config.policy = PolicyTable::new(method, []);
        let mobile = world.mobile_node(setup);
        mobile.with(|node| node.switch_to("wlan0", Notice::None)).unwrap();
        mobile.wait_registered("wlan0");

        // The mobile node fetches from the correspondent.
        let sent = pattern(3_000_000);
        let listener = world.correspondent.run(|| Listener::bind((CORRESPONDENT, 80))).unwrap().unwrap();
        let server = start({
            let sent = sent.clone();
            move || {
                let (mut peer, from) = listener.accept().unwrap();
                peer.write_all(&sent).unwrap();
                from.ip()
            }
        });
        let mut client = world.mobile.run(|| Tcp::connect((CORRESPONDENT, 80))).unwrap().unwrap();
        client.set_read_timeout(Some(PATIENCE)).unwrap();
        assert_eq!(client.local_addr().unwrap().ip(), HOME);
        let mut got = vec![0; 300_000];
        client.read_exact(&mut got).unwrap();

        for interface in ["gsm0", "wlan0", "gsm0"] {
            mobile.with(move |node| node.switch_to(interface, Notice::None)).unwrap();
            mobile.wait_registered(interface);
            let old = if interface == "gsm0" { "wlan0" } else { "gsm0" };
            mobile.with(move |node| node.release(old)).unwrap();
            let start = got.len();
            got.resize(start + 300_000, 0);
            client.read_exact(&mut got[start..]).unwrap();
        }
        client.read_to_end(&mut got).unwrap();
        assert_eq!(server.join().unwrap(), HOME);
        assert!(got == sent, "what arrived is what was sent");

        let status = mobile.status();
        let tunnel = &status.tunnels[0];
        assert!(tunnel.packets_in > 2000, "{tunnel:?}");
        assert_eq!(tunnel.packets_out > 0, method == DeliveryMethod::ReverseTunnel, "{tunnel:?}");
        assert_eq!(status.handovers.len(), 4);
        assert_eq!(unreachable.heard(), 0);
        home.close().unwrap();
        mobile.close().unwrap();
        assert_eq!(difference(&before, &state_of(&world.mobile)), [""; 0], "everything is as it was");
        drop(world);
    }
}

#[test]
fn a_connection_to_the_mobile_node_survives_the_end_of_its_link() {
    let Some(realm) = realm_or_skip() else { return };
    let world = World::new(realm);
    let _home = world.home_agent(home_setup(), Hooks::default());
    let mut setup = mobile_setup();
    setup.config.selection = careof_mobility::v4::Selection::Preferred { hold: Duration::from_millis(500) };
    let mobile = world.mobile_node(setup);
    mobile.wait_registered("wlan0");
    let listener = world.mobile.run(|| Listener::bind((HOME, 80))).unwrap().unwrap();
    let sent = pattern(1_000_000);
    let received = receive_all(listener);
    let mut client = connect_home(&world, 80);
    client.write_all(&sent[..200_000]).unwrap();
    set_interface(&world.mobile, "wlan0", false);
    mobile.wait_registered("gsm0");
    client.write_all(&sent[200_000..]).unwrap();
    drop(client);
    assert!(received.join().unwrap() == sent);
    // The kernel took the routes of the link away, its default route for good.
    set_interface(&world.mobile, "wlan0", true);
    default_route(&world.mobile, "wlan0", Some(100));
    mobile.wait_registered("wlan0");
    let status = mobile.status();
    assert_eq!(status.handovers.len(), 3, "{:#?}", status.handovers);
}
