//! What a scenario means once everything that may be left out is filled in.

use core::net::Ipv4Addr;

use careof_base::{DataRate, Duration};
use careof_link::{Discipline, Jitter, Loss, QueueLimit, UNLIMITED_RATE};
use careof_scenario::{
    Adaptation, Burst, ClientCheck, Codec, Destination, HandoverStyle, Ladder, Law, MovementDetection, OnOff,
    QueuedFate, Role, Routing, Scenario, StartDelay, Video, Voice, Workload,
};
use careof_tcp::{Config, DelayedAck, InitialWindow, Profile, RtoEstimator, Variant};

const SMALL: &str = r#"
duration = "120 s"

[links]
wavelan = "wavelan"
gsm = { preset = "gsm-csd", queue = "50 packets" }

[mobility]

[[handover]]
at = "12 s"
from = "wavelan"
to = "gsm"

[[flow]]
from = "correspondent"
to = "mobile"
"#;

fn parse(text: &str, overrides: &[&str]) -> Scenario {
    let overrides: Vec<String> = overrides.iter().map(|&text| text.to_owned()).collect();
    Scenario::parse("folder/small.toml", text, &overrides).unwrap_or_else(|errors| panic!("{errors}"))
}

fn small(overrides: &[&str]) -> Scenario {
    parse(SMALL, overrides)
}

fn link_names(scenario: &Scenario) -> Vec<&str> {
    scenario.links.iter().map(|link| link.name.as_str()).collect()
}

fn ends<'a>(scenario: &'a Scenario, link: &str) -> [&'a str; 2] {
    scenario.link(scenario.link_named(link).unwrap()).ends.map(|end| scenario.node(end).name.as_str())
}

#[test]
fn the_example_of_the_design_is_a_scenario() {
    let text = r#"
title = "WaveLAN to GSM, mid download"
duration = "120 s"

[links]
wavelan = "wavelan"            # a preset by name, or a table that overrides one
gsm = { preset = "gsm-csd", queue = "50 packets" }

[mobility]
protocol = "mobile-ipv4"
care_of = "co-located"

[[handover]]
at = "12 s"
from = "wavelan"
to = "gsm"
style = "make-before-break"

[[flow]]
from = "correspondent"
to = "mobile"
kind = "bulk"
tcp = { variant = "reno", window = "16 KiB", rto = "linux-2.0" }

[assist]
use = ["none"]
"#;
    let scenario = parse(text, &[]);
    let tcp = &scenario.flows[0].tcp;
    assert_eq!((tcp.profile, tcp.config.variant), (Profile::Reno, Variant::Reno));
    assert_eq!((tcp.config.rto, tcp.config.receive_window), (RtoEstimator::Linux20, 16_384));
    assert_eq!(scenario.links[1].down.queue.limit, QueueLimit::Packets(50));
    assert!(scenario.assists.is_empty());
}

#[test]
fn defaults_make_the_small_file_whole() {
    let scenario = small(&[]);
    assert_eq!((scenario.title.as_str(), scenario.seed), ("small", 1));
    let mobility = scenario.mobility.as_ref().unwrap();
    assert_eq!(mobility.routing, Routing::Triangle);
    assert_eq!(mobility.movement_detection, MovementDetection::LinkTrigger);
    assert_eq!(mobility.lifetime, Some(Duration::from_secs(600)));
    assert_eq!(mobility.keep_old, None);
    assert_eq!(scenario.handovers[0].style, HandoverStyle::MakeBeforeBreak);
    assert_eq!(scenario.handovers[0].queued, QueuedFate::DrainLate);
    let flow = &scenario.flows[0];
    assert_eq!((flow.name.as_str(), flow.workload), ("flow-1", Workload::Bulk { size: None }));
    assert_eq!((flow.tcp.profile, flow.tcp.pmtu_discovery), (Profile::Linux, true));
    assert_eq!(flow.tcp.config, Config::from(Profile::Linux));
    assert_eq!((flow.start, flow.stop), (Duration::ZERO, None));
}

#[test]
fn the_interface_left_is_kept_for_a_time_or_until_it_goes_down() {
    let keep_old = |value: &str| {
        let scenario = small(&[&format!("mobility.keep_old={value}")]);
        let json: serde_json::Value = serde_json::from_str(&scenario.canonical_json()).unwrap();
        (scenario.mobility.as_ref().unwrap().keep_old, json["mobility"]["keep_old_ns"].clone())
    };
    assert_eq!(keep_old("until-down"), (None, serde_json::Value::Null));
    assert_eq!(keep_old("1.5 s"), (Some(Duration::from_millis(1500)), 1_500_000_000_u64.into()));
    assert_eq!(keep_old("0 s"), (Some(Duration::ZERO), 0.into()));
    assert_eq!(small(&["mobility.keep_old=until-down"]).digest(), small(&[]).digest());
}

#[test]
fn directions_are_set_together_or_apart() {
    let gsm = |overrides: &[&str]| {
        let scenario = small(overrides);
        scenario.link(scenario.link_named("gsm").unwrap()).clone()
    };
    let both = gsm(&["links.gsm.delay=100 ms", "links.gsm.loss=1 %"]);
    assert_eq!((both.down.delay, both.up.delay), (Duration::from_millis(100), Duration::from_millis(100)));
    assert_eq!(both.down.loss, both.up.loss);
    let apart = gsm(&["links.gsm.rate_up=1 kbit/s", "links.gsm.queue_up=3 kB"]);
    assert_eq!(apart.down.rate, DataRate::from_bits_per_second(9_600));
    assert_eq!(apart.up.rate, DataRate::from_bits_per_second(1_000));
    assert_eq!(
        (apart.down.queue.limit, apart.up.queue.limit),
        (QueueLimit::Packets(50), QueueLimit::Bytes(3_000))
    );
    assert_eq!(gsm(&["links.gsm.rate=unlimited"]).up.rate, UNLIMITED_RATE);
    assert_eq!(gsm(&["links.gsm.rate=0 bit/s"]).down.rate, DataRate::ZERO);
}

#[test]
fn impairments_have_short_and_long_forms() {
    let down = |overrides: &[&str]| {
        let scenario = small(overrides);
        scenario.link(scenario.link_named("gsm").unwrap()).down.clone()
    };
    let ms = Duration::from_millis;
    assert_eq!(down(&["links.gsm.jitter=2 ms"]).jitter, Jitter::Uniform { spread: ms(2), reorder: false });
    assert_eq!(
        down(&["links.gsm.jitter={ deviation = \"2 ms\", reorder = true }"]).jitter,
        Jitter::Normal { deviation: ms(2), reorder: true }
    );
    assert_eq!(
        down(&["links.gsm.jitter={ scale = \"2 ms\", shape = 2.5 }"]).jitter,
        Jitter::Pareto { scale: ms(2), shape: 2.5, reorder: false }
    );
    assert_eq!(down(&["links.gsm.jitter=none", "links.gsm.loss=0"]).loss, Loss::None);
    assert!(matches!(down(&["links.gsm.loss=1e-3"]).loss, Loss::Bernoulli { p } if p.get() == 0.001));
    assert!(matches!(
        down(&["links.gsm.loss={ good_to_bad = 0.01, bad_to_good = \"30 %\" }"]).loss,
        Loss::GilbertElliott { loss_in_good, loss_in_bad, .. } if (loss_in_good.get(), loss_in_bad.get()) == (0.0, 1.0)
    ));
    let queue = down(&["links.gsm.queue.discipline=codel"]).queue;
    assert_eq!((queue.limit, queue.discipline), (QueueLimit::Packets(50), Discipline::CODEL));
}

#[test]
fn a_foreign_agent_and_its_link_come_with_each_access_link() {
    let scenario = small(&["mobility.care_of=foreign-agent"]);
    assert_eq!(link_names(&scenario), ["wavelan", "gsm", "ethernet", "wavelan-backhaul", "gsm-backhaul"]);
    assert_eq!(ends(&scenario, "gsm"), ["foreign-agent-gsm", "mobile"]);
    assert_eq!(ends(&scenario, "gsm-backhaul"), ["home-agent", "foreign-agent-gsm"]);
    assert_eq!(scenario.nodes.iter().filter(|node| node.role == Role::ForeignAgent).count(), 2);
}

#[test]
fn the_home_link_ends_at_the_home_agent_whatever_the_care_of_address() {
    let scenario = small(&["mobility.care_of=foreign-agent", "mobility.home=wavelan"]);
    assert_eq!(ends(&scenario, "wavelan"), ["home-agent", "mobile"]);
    assert_eq!(scenario.mobility.as_ref().unwrap().home, scenario.link_named("wavelan"));
    assert_eq!(link_names(&scenario), ["wavelan", "gsm", "ethernet", "gsm-backhaul"]);
}

#[test]
fn a_link_that_is_understood_can_be_changed() {
    let scenario = small(&["links.ethernet.delay=50 ms"]);
    let ethernet = scenario.link(scenario.link_named("ethernet").unwrap());
    assert_eq!((ethernet.down.delay, ethernet.implied), (Duration::from_millis(50), false));
    assert_eq!(ethernet.down.rate, DataRate::from_megabits_per_second(10));
    assert_eq!(ends(&scenario, "ethernet"), ["correspondent", "home-agent"]);
    assert_eq!(scenario.access_links().count(), 2);

    let scenario = small(&["mobility.care_of=foreign-agent", "links.gsm-backhaul=ethernet-1g"]);
    assert_eq!(scenario.links.iter().filter(|link| link.name == "gsm-backhaul").count(), 1);
    assert_eq!(ends(&scenario, "gsm-backhaul"), ["home-agent", "foreign-agent-gsm"]);
}

#[test]
fn nothing_is_understood_where_the_file_gives_it() {
    let scenario = small(&[
        "links.core={ preset = \"lte\", between = [\"correspondent\", \"router\"] }",
        "links.edge={ preset = \"lte\", between = [\"router\", \"home-agent\"] }",
        "links.gsm.between=[\"router\", \"mobile\"]",
    ]);
    assert_eq!(link_names(&scenario), ["wavelan", "gsm", "core", "edge"]);
    assert_eq!(scenario.node(scenario.node_named("router").unwrap()).role, Role::Host);
}

#[test]
fn two_links_of_one_foreign_agent_share_a_care_of_address() {
    let scenario = small(&[
        "mobility.care_of=foreign-agent",
        "links.gsm.between=[\"foreign-agent-wavelan\", \"mobile\"]",
    ]);
    assert!(!scenario.handovers[0].address_changes);
    assert!(small(&[]).handovers[0].address_changes);
}

#[test]
fn the_run_starts_on_the_link_that_the_first_handover_leaves() {
    let reversed = small(&["handover.from=gsm", "handover.to=wavelan"]);
    assert_eq!(reversed.mobility.as_ref().unwrap().nodes[0].start, reversed.link_named("gsm").unwrap());
    let still = small(&["handover=[]"]);
    assert_eq!(still.mobility.as_ref().unwrap().nodes[0].start, still.link_named("wavelan").unwrap());
}

#[test]
fn the_policy_table_is_resolved() {
    let scenario = small(&[
        "mobility.policy=[{ to = \"correspondent\", port = 80, method = \"regular-ip\" }, { to = \"10.0.0.0/8\", \
         method = \"reverse-tunnel\" }, { to = \"10.1.2.3\", method = \"triangle\" }]",
    ]);
    let policy = &scenario.mobility.as_ref().unwrap().policy;
    assert_eq!(policy[0].to, Destination::Node(scenario.node_named("correspondent").unwrap()));
    assert_eq!((policy[0].port, policy[0].method), (Some(80), Routing::RegularIp));
    assert_eq!(policy[1].to, Destination::Prefix { address: Ipv4Addr::new(10, 0, 0, 0), length: 8 });
    assert_eq!(policy[2].to, Destination::Prefix { address: Ipv4Addr::new(10, 1, 2, 3), length: 32 });
}

#[test]
fn the_segment_size_fits_the_links_at_the_ends_of_the_flow() {
    let mss = |overrides: &[&str]| small(overrides).flows[0].tcp.config.mss;
    assert_eq!(mss(&[]), 1460);
    assert_eq!(mss(&["links.gsm.mtu=576"]), 536);
    assert_eq!(mss(&["links.gsm.mtu=576 B", "flow.tcp.mss=400"]), 400);
    // A link in the middle is for path MTU discovery.
    assert_eq!(
        mss(&[
            "links.core={ preset = \"lte\", mtu = 576, between = [\"home-agent\", \"x\"] }",
            "links.ethernet.mtu=9000"
        ]),
        1460
    );
}

#[test]
fn tcp_is_a_profile_with_changes() {
    let config = |tcp: &str| small(&[&format!("flow.tcp={tcp}")]).flows[0].tcp.config.clone();
    assert_eq!(config("linux-2.0").variant, Variant::Linux20);
    assert_eq!(config("{ profile = \"newreno\", variant = \"sack\" }").variant, Variant::Sack);
    assert!(config("{ profile = \"newreno\", variant = \"sack\" }").sack);
    assert_eq!(config("{ delayed_ack = \"off\" }").delayed_ack, DelayedAck::Off);
    let hundred = DelayedAck::Every2 { timeout: Duration::from_millis(100) };
    assert_eq!(config("{ delayed_ack = \"100 ms\" }").delayed_ack, hundred);
    for four in ["4", "\"4 segments\""] {
        assert_eq!(
            config(&format!("{{ initial_window = {four} }}")).initial_window,
            InitialWindow::Segments(4)
        );
    }
    assert_eq!(config("{ window = \"1 MiB\", window_scaling = true }").receive_window, 1 << 20);
}

#[test]
fn workloads_are_read() {
    let workload = |lines: &str| parse(&format!("{SMALL}{lines}"), &[]).flows[0].workload;
    assert_eq!(workload("size = \"1 MB\""), Workload::Bulk { size: Some(1_000_000) });
    assert_eq!(
        workload("kind = \"paced\"\nrate = \"64 kbit/s\"\nmessage = \"160 B\""),
        Workload::Paced { rate: DataRate::from_kilobits_per_second(64), message: 160, size: None }
    );
    assert_eq!(
        workload("kind = \"request-response\"\nrequest = \"400 B\"\nresponse = \"30 kB\"\nrequests = 5"),
        Workload::RequestResponse { request: 400, response: 30_000, think: Duration::ZERO, count: Some(5) }
    );
    let call = Voice {
        codec: Some(Codec::G711),
        payload: 160,
        interval: Duration::from_millis(20),
        jitter_buffer: Duration::from_millis(60),
        impairment: Some([0.0, 25.1]),
    };
    assert_eq!(workload("kind = \"voice\""), Workload::Voice(call));
    assert_eq!(
        workload("kind = \"voice\"\ncodec = \"opus\"\njitter_buffer = \"0 s\""),
        Workload::Voice(Voice {
            codec: Some(Codec::Opus),
            payload: 80,
            jitter_buffer: Duration::ZERO,
            impairment: None,
            ..call
        })
    );
    assert_eq!(
        workload("kind = \"voice\"\npayload = \"33 B\"\ninterval = \"30 ms\"\nie = 5\nbpl = 10"),
        Workload::Voice(Voice {
            codec: None,
            payload: 33,
            interval: Duration::from_millis(30),
            impairment: Some([5.0, 10.0]),
            ..call
        })
    );
    let film = Video {
        segment: Duration::from_secs(4),
        ladder: Ladder::default(),
        buffer: Duration::from_secs(30),
        startup: Duration::from_secs(4),
        adaptation: Adaptation::Throughput,
        segments: None,
        request: 400,
    };
    assert_eq!(workload("kind = \"video\""), Workload::Video(film));
    assert_eq!((film.segment_bytes(0), film.segment_bytes(9)), (117_500, 2_900_000));
    let rates = [1, 2].map(DataRate::from_megabits_per_second);
    assert_eq!(
        workload(
            "kind = \"video\"\nsegment = \"2 s\"\nrates = [\"1 Mbit/s\", \"2 Mbit/s\"]\nlength = \"9 s\"\nadaptation = \"buffer\""
        ),
        Workload::Video(Video {
            segment: Duration::from_secs(2),
            startup: Duration::from_secs(2),
            ladder: Ladder::new(&rates).unwrap(),
            adaptation: Adaptation::Buffer,
            segments: Some(5),
            ..film
        })
    );
    let bursts = OnOff {
        burst: Burst::Bytes(500_000),
        burst_law: Law::Pareto(1.2),
        pause: Duration::from_secs(3),
        pause_law: Law::Exponential,
        size: None,
    };
    let drawn = "burst_law = \"pareto\"\nshape = 1.2\npause_law = \"exponential\"";
    assert_eq!(
        workload(&format!("kind = \"on-off\"\nburst = \"500 kB\"\npause = \"3 s\"\n{drawn}")),
        Workload::OnOff(bursts)
    );
    let burst = Burst::Time {
        span: Duration::from_secs(2),
        rate: DataRate::from_megabits_per_second(1),
        message: 1_200,
    };
    let talk = "on = \"2 s\"\nrate = \"1 Mbit/s\"\nmessage = \"1200 B\"\npause = \"3 s\"\nsize = \"9 MB\"";
    let (burst_law, pause_law) = (Law::Fixed, Law::Fixed);
    assert_eq!(
        workload(&format!("kind = \"on-off\"\n{talk}")),
        Workload::OnOff(OnOff { burst, burst_law, pause_law, size: Some(9_000_000), ..bursts })
    );
}

#[test]
fn unnamed_flows_are_numbered_around_the_named_ones() {
    let more = "name = \"flow-2\"\n[[flow]]\nfrom = \"mobile\"\nto = \"correspondent\"\n";
    let scenario = parse(&format!("{SMALL}{more}"), &[]);
    let names: Vec<_> = scenario.flows.iter().map(|flow| flow.name.as_str()).collect();
    assert_eq!(names, ["flow-2", "flow-3"]);
}

#[test]
fn a_break_before_make_handover_states_its_five_things() {
    let scenario = small(&[
        "handover.style=break-before-make",
        "handover.interruption=3 s",
        "handover.queued=drop-with-icmp",
        "handover.notice=500 ms",
    ]);
    let handover = &scenario.handovers[0];
    assert_eq!(handover.style, HandoverStyle::BreakBeforeMake);
    assert_eq!(handover.interruption, Duration::from_secs(3));
    assert_eq!((handover.queued, handover.notice), (QueuedFate::DropWithIcmp, Duration::from_millis(500)));
}

#[test]
fn the_digest_names_what_is_run_and_not_how_it_is_written() {
    let digest = small(&[]).digest();
    assert_eq!(digest.len(), 64);
    let commented = format!("# a comment\n{}", SMALL.replace("\"120 s\"", "'2 min' # the same"));
    assert_eq!(parse(&commented, &[]).digest(), digest);
    assert_eq!(small(&["links.gsm.rate=0.0096 Mbit/s", "seed=1"]).digest(), digest);
    assert_ne!(small(&["seed=2"]).digest(), digest);
    assert_ne!(small(&["links.gsm.queue=51 packets"]).digest(), digest);
}

#[test]
fn the_json_is_resolved_and_names_its_units() {
    let scenario = small(&[]);
    let json: serde_json::Value = serde_json::from_str(&scenario.canonical_json()).unwrap();
    assert_eq!(json["duration_ns"], 120_000_000_000_u64);
    assert_eq!(json["links"][1]["down"]["rate_bps"], 9_600);
    assert_eq!(json["links"][1]["between"], serde_json::json!(["home-agent", "mobile"]));
    assert_eq!(json["links"][2]["implied"], true);
    assert_eq!(json["mobility"]["start"], "wavelan");
    assert_eq!(json["handovers"][0]["to"], "gsm");
    assert_eq!(json["flows"][0]["tcp"]["mss_bytes"], 1460);
    assert_eq!(json["assists"], serde_json::json!([]));
    assert_eq!(serde_json::to_string(&scenario).unwrap(), scenario.canonical_json());
    // Keys stand in the order of meaning, not of the alphabet.
    assert!(
        scenario.canonical_json().starts_with("{\"title\":\"small\",\"description\":\"\",\"duration_ns\":")
    );
}

#[test]
fn every_part_of_the_tcp_configuration_is_in_the_json() {
    let switches =
        "ecn = true, pacing = true, icmp_unreachable = true, user_timeout = \"3 s\", timer_hz = 250";
    let scenario = small(&[&format!("flow.tcp={{ profile = \"linux\", {switches} }}")]);
    let json: serde_json::Value = serde_json::from_str(&scenario.canonical_json()).unwrap();
    let mut names: Vec<&str> =
        json["flows"][0]["tcp"].as_object().unwrap().keys().map(String::as_str).collect();
    names.retain(|name| !["profile", "pmtu_discovery"].contains(name));
    let debug = format!("{:?}", careof_tcp::Config::default());
    // `receive_window` is `window` in the file; `rto_evidence` is a parameter of the assist `rto-fast-decrease`, and there;
    // `send_buffer` is for senders of traces: a scenario's grows with the window, as a host's does; `ip_header_len` follows from
    // `ip_version`.
    let missing: Vec<_> = debug
        .split(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == ':'))
        .filter_map(|word| word.strip_suffix(':'))
        .filter(|field| {
            !["timeout", "limit", "receive_window", "rto_evidence", "send_buffer", "ip_header_len"]
                .contains(field)
        })
        .filter(|field| !names.iter().any(|name| name.starts_with(field)))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn what_works_by_sack_goes_with_it() {
    let config = |tcp: &str| small(&[&format!("flow.tcp={tcp}")]).flows[0].tcp.config.clone();
    let with = config("{ profile = \"linux\" }");
    assert!(with.sack && with.dsack && with.rack && with.tail_loss_probe);
    let without = config("{ profile = \"linux\", sack = false }");
    assert!(!(without.sack || without.dsack || without.rack || without.tail_loss_probe));
    assert!(without.frto && without.eifel && without.prr);
}

#[test]
fn a_byte_order_mark_is_no_error() {
    assert_eq!(parse(&format!("\u{feff}{SMALL}"), &[]).digest(), small(&[]).digest());
}

#[test]
fn programs_are_split_into_words_and_know_nodes() {
    let text = r#"
        duration = "1 s"
        [links]
        wire = { rate = "1 Mbit/s", delay = "1 ms", between = ["a", "b"] }
        [[flow]]
        from = "a"
        to = "b"
        command = "curl -w '%{http_code} done' \"http://{b}:80/\" ''"
        server = ["python3", "-m", "http.server"]
        [[flow]]
        name = "measured"
        from = "b"
        to = "a"
        kind = "probe"
    "#;
    let scenario = Scenario::parse("x.toml", text, &[]).unwrap();
    let programs = scenario.flows[0].programs.as_ref().unwrap();
    assert_eq!(programs.command, ["curl", "-w", "%{http_code} done", "http://{b}:80/", ""]);
    assert_eq!(programs.server.as_ref().unwrap()[2], "http.server");
    let filled: Vec<_> = programs
        .command
        .iter()
        .map(|word| {
            careof_scenario::Programs::fill(word, |node| (node == "b").then(|| "10.0.1.2".to_owned()))
        })
        .collect();
    assert_eq!(filled[2], Ok("%{http_code} done".to_owned()));
    assert_eq!(filled[3], Ok("http://10.0.1.2:80/".to_owned()));
    assert_eq!(
        scenario.flows[1].workload,
        careof_scenario::Workload::Probe { link: careof_scenario::LinkId(0) }
    );
}

#[test]
fn programs_have_the_kernels_tcp_as_it_comes_unless_told_otherwise() {
    let profile = |tcp: &str| {
        let text = format!(
            "duration = \"1 s\"\n[links]\nwire = {{ rate = \"1 Mbit/s\", delay = \"1 ms\", between = [\"a\", \"b\"] }}\n\
             [[flow]]\nfrom = \"a\"\nto = \"b\"\ncommand = \"true\"\n{tcp}\n"
        );
        let flow = Scenario::parse("x.toml", &text, &[]).unwrap().flows.remove(0);
        flow.tcp.kernel.and_then(|kernel| kernel.profile)
    };
    assert_eq!(profile(""), Some(careof_scenario::KernelProfile::Modern));
    assert_eq!(profile("tcp = \"legacy\""), Some(careof_scenario::KernelProfile::Legacy));
    assert_eq!(profile("tcp = \"reno\""), None);
}

#[test]
fn a_kernels_tcp_is_asked_for_by_what_no_model_has() {
    use careof_scenario::KernelProfile;
    let kernel = |tcp: &str| {
        let text = format!(
            "duration = \"1 s\"\n[links]\nwire = {{ rate = \"1 Mbit/s\", delay = \"1 ms\", between = [\"a\", \"b\"] }}\n\
             [[flow]]\nfrom = \"a\"\nto = \"b\"\ntcp = {tcp}\n"
        );
        let scenario = Scenario::parse("x.toml", &text, &[]).unwrap_or_else(|errors| panic!("{errors}"));
        scenario.flows[0]
            .tcp
            .kernel
            .clone()
            .map(|kernel| (kernel.profile, kernel.congestion, kernel.asked_by.0))
    };
    let modern = Some(KernelProfile::Modern);
    assert_eq!(kernel("\"reno\""), None);
    assert_eq!(kernel("{ variant = \"kernel\" }"), Some((modern, None, "variant")));
    assert_eq!(kernel("\"legacy\""), Some((Some(KernelProfile::Legacy), None, "profile")));
    let bbr = Some("bbr".to_owned());
    assert_eq!(kernel("{ variant = \"kernel\", congestion = \"bbr\" }"), Some((modern, bbr, "variant")));
    let dctcp = Some("dctcp".to_owned());
    assert_eq!(kernel("{ congestion = \"dctcp\" }"), Some((modern, dctcp.clone(), "congestion")));
    assert_eq!(kernel("{ profile = \"sack\", congestion = \"dctcp\" }"), Some((None, dctcp, "congestion")));
    assert_eq!(kernel("{ congestion = \"cubic\" }"), None, "models have it too");
}

#[test]
fn an_address_is_asked_for_with_both_checks_unless_the_file_says_otherwise() {
    let dhcp = |overrides: &[&str]| {
        let overrides = [&["mobility.care_of=dhcp"], overrides].concat();
        small(&overrides).mobility.and_then(|mobility| mobility.dhcp).expect("an address has to be asked for")
    };
    let default = dhcp(&[]);
    assert_eq!((default.client_check, default.probes), (ClientCheck::BeforeUse, 3));
    assert_eq!(default.server_check, Some(Duration::from_secs(1)));
    assert_eq!(default.start_delay.range(), (Duration::ZERO, Duration::ZERO));
    assert_eq!(default.lease, Some(Duration::from_secs(43_200)));
    let given = dhcp(&[
        "mobility.dhcp.client_check=none",
        "mobility.dhcp.server_check=none",
        "mobility.dhcp.start_delay=rfc-2131",
        "mobility.dhcp.lease=infinity",
        "mobility.dhcp.processing=5 ms",
    ]);
    assert_eq!((given.client_check, given.server_check, given.lease), (ClientCheck::None, None, None));
    assert_eq!(given.start_delay, StartDelay::Rfc2131);
    assert_eq!(given.processing, Duration::from_millis(5));
    assert_eq!(small(&[]).mobility.and_then(|mobility| mobility.dhcp), None);
}
