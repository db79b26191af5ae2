//! The daemon with thousands of bindings in its store.

use careof_mobility::v4::{BindingRecord, EncapsulationChoice, ReplayGuard};

use super::*;

const COUNT: u32 = 5000;
const TABLE: u32 = 43_400;

fn node(n: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(0x0a00_0000 + n + 1)
}

/// A configuration with all of them, and a store that has a binding of each.
fn prepare(place: &Place) {
    let mut text = format!(
        "role = \"home\"\naddress = \"{AGENT}\"\nhome_network = \"10.0.0.0/16\"\ndelivery = \"routed\"\n\
         control = {{ socket = \"home.sock\" }}\nstore = {{ directory = \".\" }}\nmetrics = {{ listen = \"127.0.0.1:0\" }}\n"
    );
    for n in 0..COUNT {
        text.push_str(&format!(
            "[[mobile_node]]\nhome_address = \"{}\"\nspi = 256\nkey = \"{KEY}\"\n",
            node(n)
        ));
    }
    fs::write(place.path("home.toml"), text).unwrap();
    fs::set_permissions(place.path("home.toml"), fs::Permissions::from_mode(0o600)).unwrap();
    let records: Vec<_> = (0..COUNT)
        .map(|n| MobileNodeRecord {
            home_address: node(n),
            bindings: vec![BindingRecord {
                care_of: Ipv4Addr::from_bits(0xac10_0001 + n),
                lifetime: Lifetime::INFINITE,
                expires: None,
                identification: Identification(1),
                co_located: true,
                broadcasts: false,
                reverse_tunnel: false,
                encapsulation: EncapsulationChoice::IpInIp,
                path_id: None,
                relayed: false,
            }],
            replay: vec![(
                Spi(256),
                ReplayGuard::Timestamps { window: Duration::from_secs(7), last: Some(NtpTime::from_bits(1)) },
            )],
        })
        .collect();
    Store::open(&place.path("home.redb")).unwrap().save_all(&records).unwrap();
}

fn routes(place: &Place) -> usize {
    let routes = place.host.run(|| Netlink::open()?.routes(TABLE)).unwrap().unwrap();
    routes.iter().filter(|route| route.prefix_length == 32).count()
}

/// The answer to a line on the control socket.
fn asked(place: &Place, line: &str) -> Value {
    let mut stream = UnixStream::connect(place.path("home.sock")).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(line.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    serde_json::from_str(&answer).unwrap()
}

#[test]
fn an_agent_is_ready_when_what_it_had_is_back_and_tells_of_much_in_parts() {
    let Some(place) = place_or_skip() else { return };
    prepare(&place);
    let listener = UnixDatagram::bind(place.path("notify")).unwrap();
    listener.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut buffer = [0; 256];
    // Twice: the second time after a crash.
    let mut agent = None;
    for _ in 0..2 {
        drop(agent.take());
        let mut command = careof_agent();
        command.env("NOTIFY_SOCKET", place.path("notify"));
        agent = Some(Agent { place: &place, child: place.launch_with(command) });
        let length = listener.recv(&mut buffer).unwrap();
        assert_eq!(&buffer[..length], b"READY=1\n");
        assert_eq!(routes(&place), COUNT as usize, "ready means ready");
    }
    let mut agent = agent.unwrap();
    let status = agent.status();
    assert_eq!((agent.bindings(), status["binding_count"].as_u64()), (COUNT as usize, Some(COUNT.into())));
    assert_eq!(status["tunnels"].as_array().unwrap().len(), COUNT as usize);
    assert_eq!((&status["next"], &status["counters"]["network-overruns"]), (&Value::Null, &0.into()));

    let part = &asked(&place, "{\"command\":\"status\"}\n")["ok"];
    assert_eq!(part["bindings"].as_array().unwrap().len(), 1000);
    assert_eq!(part["next"].as_str().unwrap(), node(1000).to_string());
    let from = format!("{{\"command\":\"status\",\"from\":\"{}\"}}\n", node(COUNT - 2));
    let last = &asked(&place, &from)["ok"];
    assert_eq!((last["bindings"].as_array().unwrap().len(), &last["next"]), (2, &Value::Null));

    let metrics = get(&place, agent.metrics(), "/metrics");
    assert!(metrics.contains(&format!("careof_bindings {COUNT}.0\n")), "{metrics}");
    assert!(metrics.contains("careof_tunnelled_packets_total{direction=\"out\"} 0\n"), "{metrics}");
    assert!(metrics.len() < 64 * 1024, "{} bytes for {COUNT} bindings", metrics.len());
    assert!(agent.end(Signal::SIGTERM).success());
}

#[test]
fn an_agent_that_is_asked_to_end_as_soon_as_it_listens_ends_in_order() {
    let Some(place) = place_or_skip() else { return };
    let rules = || place.host.run(|| Netlink::open()?.rules()).unwrap().unwrap();
    let before = rules();
    prepare(&place);
    for _ in 0..2 {
        let mut agent = Agent { place: &place, child: place.launch() };
        wait_until("it listens", || UnixStream::connect(place.path("home.sock")).is_ok());
        assert!(agent.end(Signal::SIGTERM).success());
        assert_eq!((rules(), routes(&place)), (before.clone(), 0));
    }
}
