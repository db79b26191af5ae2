//! What it is all for: a connection lives on, whatever happens below it.

use careof_base::Duration;

use super::support::{HOME_ADDRESS, Network, pause, realm_or_skip};

#[test]
fn a_download_survives_ten_handovers_and_two_deaths_of_the_home_agent() {
    let Some(realm) = realm_or_skip(&["curl", "python3"]) else { return };
    let network = Network::new(realm);
    let web = network.web_server();
    // More than both links carry while all of this happens.
    web.offer("film", 24_000_000);
    let mut home = network.start_home_agent();
    let mobile = network.start_mobile_node();
    mobile.wait_for_registration("wlan0");

    let mut download = web.download(&network.mobile, "film");
    let (wlan, gsm) = (&network.wlan, &network.gsm);
    for round in 0..5 {
        download.wait_for_bytes(100_000);
        // The link in use breaks, in the ways in which links break.
        match round % 3 {
            0 => network.set_carrier(wlan, false),
            1 => network.set_address(wlan, false),
            _ => network.set_up(wlan, false),
        }
        if round == 1 {
            // Amid the handover, so that the request finds nobody.
            home.kill();
            pause(Duration::from_millis(300));
            home.start_again(&network.home);
        }
        mobile.wait_for_registration("gsm0");
        download.wait_for_bytes(50_000);
        if round == 3 {
            // While packets flow.
            home.kill();
            pause(Duration::from_millis(300));
            home.start_again(&network.home);
            assert_eq!(home.bindings(), 1, "the binding is there before the mobile node asks again");
            download.wait_for_bytes(20_000);
        }
        // The better link is back, and taken before the other is left.
        match round % 3 {
            0 => network.set_carrier(wlan, true),
            1 => network.set_address(wlan, true),
            _ => network.set_up(wlan, true),
        }
        mobile.wait_for_registration("wlan0");
    }
    download.wait_for_bytes(20_000);
    // Ten handovers are behind it, and the rest may come quickly. The last one leaves a link that is down in the end.
    network.set_carrier(gsm, false);
    network.hurry();
    download.finish();

    let requests = web.log();
    assert!(requests.contains(&format!("{HOME_ADDRESS} - - ")), "not from the home address: {requests}");
    assert_eq!(requests.matches("\"GET /film").count(), 1, "one connection: {requests}");
    let log = mobile.log();
    let registered = log.matches("Handover registered from=").count();
    assert!(registered >= 10, "{registered} handovers");
    for style in ["break-before-make", "make-before-break"] {
        assert!(log.contains(&format!("style=\"{style}\"")), "none was {style}");
    }
}
