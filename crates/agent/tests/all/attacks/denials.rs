//! Requests that prove nothing, in masses: each denial that they provoke goes to whomever their source names.

use std::net::Ipv4Addr;
use std::time::Duration;

use crate::support::*;
use careof_agent::{Hooks, Setup, TimeOfDay};
use careof_mobility::v4::Notice;
use careof_wire::mip4::{
    Algorithm, AuthenticationKind, Identification, Lifetime, Message, RegistrationRequest, RequestFlags, Spi,
    append_authentication,
};

#[test]
fn a_home_agent_is_no_reflector_and_still_mends_a_mobile_nodes_clock() {
    let Some(realm) = realm_or_skip() else { return };
    let world = World::with(realm, &fast(), &fast());
    let home = world.home_agent(home_setup(), Hooks::default());
    let victim = udp(&world.correspondent, CORRESPONDENT, 0);
    victim.set_nonblocking(true).unwrap();
    let request = RegistrationRequest {
        flags: RequestFlags::default(),
        lifetime: Lifetime::from_secs(600),
        home_address: HOME,
        home_agent: HA,
        care_of_address: Ipv4Addr::new(192, 0, 2, 66),
        identification: Identification(7),
        extensions: Vec::new(),
    };
    let unsigned = Message::Request(request).emit();
    let mut request = unsigned.clone();
    let (kind, algorithm) = (AuthenticationKind::MobileHome, Algorithm::HmacMd5);
    append_authentication(&mut request, kind, Spi(256), algorithm, b"not its key");
    let mut heard = 0;
    let mut listen = || {
        let mut buffer = [0; 1000];
        while let Ok((len, _)) = victim.recv_from(&mut buffer) {
            assert!(matches!(Message::parse(&buffer[..len]), Ok(Message::Reply(_))));
            heard += 1;
        }
        heard
    };
    // What is not signed at all has no answer (RFC 5944 section 3.8.2.1).
    while home.counter("dropped-missing-authenticator") < 100 {
        victim.send_to(&unsigned, (HA, 434)).unwrap();
        sleep(Duration::from_millis(1));
    }
    sleep(SILENCE);
    assert_eq!((listen(), home.counter("denials-suppressed")), (0, 0));
    let asked = || home.counter("dropped-bad-authenticator");
    // As many as it takes in, not as many as are sent: the kernel may have no room for some.
    while asked() < 10_000 {
        for _ in 0..200 {
            let _ = victim.send_to(&request, (HA, 434));
        }
        listen();
    }
    let clock = world.clock;
    let late: TimeOfDay = Box::new(move || Duration::from_secs(1_600_000_000) + clock.now().since_start());
    let hooks = Hooks { time_of_day: Some(late), ..Hooks::default() };
    let mobile = Running::open(&world.mobile, Setup::Mobile(mobile_setup()), world.clock, hooks);
    mobile.with(|node| node.switch_to("wlan0", Notice::None)).unwrap();
    for _ in 0..20 {
        for _ in 0..200 {
            let _ = victim.send_to(&request, (HA, 434));
        }
        listen();
    }
    mobile.wait_registered("wlan0");
    assert!(home.counter("denied-133") > 0);
    let counters = home.status().counters;
    let [asked, suppressed, denied] =
        ["dropped-bad-authenticator", "denials-suppressed", "denied-131"].map(|name| counters[name]);
    assert!(suppressed > 0 && suppressed + denied == asked, "{suppressed} + {denied}, of {asked}");
    assert!(listen() <= denied);
    // A hundred at once and twenty a second: whoever takes ten times as long as that is not flooded.
    assert!(denied < 5_000, "{denied} of {asked} answered");
}

/// A link that takes what comes.
fn fast() -> careof_link::Config {
    let limit = careof_link::QueueLimit::Packets(10_000);
    let queue = careof_link::QueueConfig { limit, ..careof_link::QueueConfig::default() };
    careof_link::Config { delay: Duration::from_millis(1), queue, ..careof_link::Config::default() }
}
