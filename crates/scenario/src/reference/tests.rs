//! The documentation and the parser agree.

use super::*;
use crate::Scenario;
use std::collections::BTreeSet;

const BASE: &str = r#"
    title = "x"
    duration = "120 s"
    [links]
    wifi = { rate = "1 Mbit/s", delay = "9 ms" }
    wifi2 = { rate = "2 Mbit/s", delay = "9 ms" }
    left = { preset = "lte", between = ["a", "b"] }
    [mobility]
    [[handover]]
    at = "12 s"
    from = "wifi"
    to = "wifi2"
    style = "break-before-make"
    [[flow]]
    name = "bulk"
    from = "correspondent"
    to = "mobile"
    [[flow]]
    name = "paced"
    from = "a"
    to = "b"
    kind = "paced"
    rate = "1 kbit/s"
    message = "1 B"
    [[flow]]
    name = "bursts"
    from = "a"
    to = "b"
    kind = "on-off"
    burst = "9 kB"
    pause = "9 s"
    [[flow]]
    name = "call"
    from = "a"
    to = "b"
    kind = "voice"
    [[flow]]
    name = "film"
    from = "b"
    to = "a"
    kind = "video"
    [[flow]]
    name = "asked"
    from = "a"
    to = "b"
    kind = "request-response"
    request = "1 B"
    response = "1 B"
"#;

/// The links of many mobile nodes, as an override.
macro_rules! many {
    () => {
        "links={ left = { preset = \"lte\", between = [\"a\", \"b\"] }, \
         wire = { preset = \"lte\", between = [\"home-agent\", \"station-*\"], count = 2 }, \
         radio = { preset = \"lte\", between = [\"station-*\", \"mobile-*\"] } }"
    };
}

/// Fast handovers can be had: the access links hang on routers of their own, as overrides.
macro_rules! fast {
    () => {
        "mobility.protocol=mobile-ipv6\nlinks.wifi.between=[\"west\", \"mobile\"]\n\
         links.wifi2.between=[\"east\", \"mobile\"]\n\
         links.wire={ preset = \"lte\", between = [\"home-agent\", \"west\"] }\n\
         links.wire2={ preset = \"lte\", between = [\"home-agent\", \"east\"] }\n"
    };
}

/// The digest of [`BASE`] under overrides separated by line breaks.
fn digest(overrides: &str) -> String {
    let overrides: Vec<String> = overrides.lines().map(str::to_owned).collect();
    let losses = |_: &str, _| Ok("time_s,loss\n0,0\n10,0.5\n".to_owned());
    Scenario::parse_with("x.toml", BASE, &overrides, &losses)
        .unwrap_or_else(|errors| panic!("{errors}"))
        .digest()
}

/// Keys of a node, each with what changes [`SEVERAL`].
const NODES: [Change; 5] = [
    ("role", "nodes.two=router"),
    ("home_agent", "nodes.two.home_agent=agent"),
    ("start", "nodes.two.start=two-b"),
    ("prefix", "nodes.agent={ role = \"home-agent\", prefix = \"192.0.2.0/24\" }"),
    ("address", "nodes.ha={ role = \"home-agent\", prefix = \"192.0.2.0/24\" }\nnodes.two.address=192.0.2.9"),
];

/// What gives [`SEVERAL`] a mobility anchor point, and the keys that are about it.
const ANCHOR_POINT: &str = "mobility.protocol=mobile-ipv6\n\
    links.side={ preset = \"lte\", between = [\"core\", \"anchor\"] }\n\
    links.two-c={ preset = \"lte\", between = [\"anchor\", \"two\"] }\nnodes.anchor=map";
const OF_ANCHOR_POINTS: [(&Section, &str, &str); 4] = [
    (&node::NODE, "domain", "nodes.anchor={ role = \"map\", domain = [\"core\"] }"),
    (&node::NODE, "preference", "nodes.anchor={ role = \"map\", preference = 3 }"),
    (&MOBILITY, "map_selection", "mobility.map_selection=nearest"),
    (&MOBILITY, "map_forwarding", "mobility.map_forwarding=off"),
];

/// A domain of micro-mobility.
const DOMAIN: &str = r#"
    duration = "9 s"
    [links]
    server = { preset = "lte", between = ["correspondent", "home-agent"] }
    wire = { preset = "lte", between = ["home-agent", "entrance"] }
    uplink = { preset = "lte", between = ["entrance", "gateway"] }
    cell = { preset = "lte", between = ["gateway", "station-*"], count = 3 }
    radio = { preset = "lte", between = ["station-*", "mobile-*"] }
    [mobility]
    nodes = 1
    [micro_mobility]
    protocol = "building-blocks"
    [[handover]]
    every = "3 s"
    [[flow]]
    from = "correspondent"
    to = "mobile-1"
"#;
const ANNOUNCED: &str = "micro_mobility.trigger=source";
const KEPT: &str = "micro_mobility.trigger=source\nmicro_mobility.buffer=true";
const SEMI_SOFT: &str = "micro_mobility.protocol=cellular-ip\nmicro_mobility.handover=semi-soft";
/// Key, what is there without it, and what it is.
const OF_DOMAINS: [(&Section, &str, &str, &str); 18] = [
    (&micro_mobility::MICRO_MOBILITY, "protocol", "", "micro_mobility.protocol=hawaii"),
    (&micro_mobility::MICRO_MOBILITY, "handover", "micro_mobility.protocol=cellular-ip", SEMI_SOFT),
    (&micro_mobility::MICRO_MOBILITY, "delay", SEMI_SOFT, "micro_mobility.delay=20 ms"),
    (
        &micro_mobility::MICRO_MOBILITY,
        "scheme",
        "micro_mobility.protocol=hawaii",
        "micro_mobility.scheme=msf",
    ),
    (&micro_mobility::MICRO_MOBILITY, "gateway", "", "micro_mobility.gateway=entrance"),
    (&micro_mobility::MICRO_MOBILITY, "trigger", "", ANNOUNCED),
    (&micro_mobility::MICRO_MOBILITY, "car_set", "micro_mobility.trigger=path", "micro_mobility.car_set=2"),
    (
        &micro_mobility::MICRO_MOBILITY,
        "advertisement_interval",
        "",
        "micro_mobility.advertisement_interval=1 s",
    ),
    (&micro_mobility::MICRO_MOBILITY, "lead", ANNOUNCED, "micro_mobility.lead=200 ms"),
    (&micro_mobility::MICRO_MOBILITY, "buffer", ANNOUNCED, "micro_mobility.buffer=true"),
    (&micro_mobility::MICRO_MOBILITY, "bicast", "", "micro_mobility.bicast=1 s"),
    (&micro_mobility::MICRO_MOBILITY, "forward", "", "micro_mobility.forward=1 s"),
    (&micro_mobility::BUFFER, "packets", KEPT, "micro_mobility.buffer={ packets = 64 }"),
    (&micro_mobility::BUFFER, "bytes", KEPT, "micro_mobility.buffer={ bytes = \"9 kB\" }"),
    (&micro_mobility::BUFFER, "age", KEPT, "micro_mobility.buffer={ age = \"1 s\" }"),
    (&micro_mobility::BUFFER, "when_full", KEPT, "micro_mobility.buffer={ when_full = \"drop-tail\" }"),
    (&HANDOVER, "spread", "", "handover.spread=1 s"),
    (&HANDOVER, "walk", "", "handover.walk=random-waypoint"),
];

/// Two home agents and two mobile nodes.
const SEVERAL: &str = r#"
    duration = "9 s"
    [nodes]
    agent = "home-agent"
    ha = "home-agent"
    one = { role = "mobile", home_agent = "ha" }
    two = { role = "mobile", home_agent = "ha" }
    [links]
    wire = { preset = "lte", between = ["core", "ha"] }
    wire-2 = { preset = "lte", between = ["core", "agent"] }
    server = { preset = "lte", between = ["core", "correspondent"] }
    one-a = { preset = "lte", between = ["core", "one"] }
    two-a = { preset = "lte", between = ["core", "two"] }
    two-b = { preset = "lte", between = ["core", "two"] }
    [mobility]
    [[flow]]
    from = "correspondent"
    to = "one"
"#;

/// A key and the overrides, on lines, that make it mean something.
type Change = (&'static str, &'static str);

/// Two links at once.
const MULTIPATH: &str = r#"
    duration = "9 s"
    [links]
    wifi = "lte"
    cell = "lte"
    [mobility]
    [multipath]
    [[flow]]
    from = "correspondent"
    to = "mobile"
"#;
const OF_MULTIPATH: [(&Section, &str, &str); 16] = [
    (&multipath::MULTIPATH, "dispersion", "multipath.dispersion=dq"),
    (&multipath::MULTIPATH, "resequencer", "multipath.resequencer=false"),
    (&multipath::MULTIPATH, "uplink", "multipath.uplink=direct"),
    (&multipath::MULTIPATH, "paths", "multipath.paths=[\"cell\", \"wifi\"]"),
    (&multipath::MULTIPATH, "rules", "multipath.rules=[{ treatment = \"pinned\" }]"),
    (&multipath::RESEQUENCER, "packets", "multipath.resequencer={ packets = 99 }"),
    (&multipath::RESEQUENCER, "bytes", "multipath.resequencer={ bytes = \"99 kB\" }"),
    (&multipath::RESEQUENCER, "longest_wait", "multipath.resequencer={ longest_wait = \"99 ms\" }"),
    (&multipath::PATH, "link", "multipath.paths=[{ link = \"cell\" }, { link = \"wifi\" }]"),
    (&multipath::PATH, "cost", "multipath.paths=[\"wifi\", { link = \"cell\", cost = 9 }]"),
    (&multipath::PATH, "weight", "multipath.paths=[\"wifi\", { link = \"cell\", weight = 9 }]"),
    (&multipath::PATH_RULE, "to", "multipath.rules=[{ to = \"correspondent\" }]"),
    (&multipath::PATH_RULE, "port", "multipath.rules=[{ port = 9 }]"),
    (&multipath::PATH_RULE, "dscp", "multipath.rules=[{ dscp = 9 }]"),
    (&multipath::PATH_RULE, "paths", "multipath.rules=[{ paths = [\"cell\"] }]"),
    (&multipath::PATH_RULE, "treatment", "multipath.rules=[{ treatment = \"duplicated\" }]"),
];

const RELAYS: &str = r#"
    duration = "9 s"
    [nodes]
    neighbour = { role = "relay", vanishes = "4 s" }
    [links]
    ethernet = "ethernet-100m"
    own = "lte"
    lent = { preset = "lte", between = ["home-agent", "neighbour"] }
    cluster = { preset = "ethernet-100m", between = ["neighbour", "mobile"] }
    [mobility]
    [multipath]
    [[flow]]
    from = "correspondent"
    to = "mobile"
"#;
const OF_RELAYS: [(&Section, &str, &str); 9] = [
    (&multipath::MULTIPATH, "trust", "multipath.trust=first-use"),
    (&node::NODE, "cost", "nodes.neighbour.cost=9"),
    (&node::NODE, "claims", "nodes.neighbour.claims=9 Mbit/s"),
    (&node::NODE, "client_rate", "nodes.neighbour.client_rate=9 Mbit/s"),
    (&node::NODE, "client_bytes", "nodes.neighbour.client_bytes=9 MB"),
    (&node::NODE, "longest", "nodes.neighbour.longest=9 s"),
    (&node::NODE, "drops", "nodes.neighbour.drops=0.9"),
    (&node::NODE, "vanishes", "nodes.neighbour.vanishes=3 s"),
    (&node::NODE, "returns", "nodes.neighbour.returns=8 s"),
];

/// For each section: where a table of it stands, and a change for each key.
fn changes() -> Vec<(&'static Section, &'static str, Vec<Change>)> {
    vec![
        (
            &ROOT,
            "",
            vec![
                ("title", "title=y"),
                ("description", "description=z"),
                ("duration", "duration=121 s"),
                ("seed", "seed=2"),
                ("stall_threshold", "stall_threshold=2 s"),
                ("links", "links.extra={ preset = \"lte\", between = [\"a\", \"c\"] }"),
                (
                    "media",
                    "media.lan={ rate = \"9 Mbit/s\", delay = \"1 us\" }\nlinks.extra={ medium=\"lan\", between=[\"a\", \"c\"] }",
                ),
                ("mobility", "mobility={ routing = \"reverse-tunnel\" }"),
                ("handover", "handover=[]"),
                ("flow", "flow=[]"),
                ("assist", "assist=replay"),
            ],
        ),
        (
            &link::LINK,
            "links.wifi.",
            vec![
                ("preset", "preset=gsm-csd"),
                ("count", "count=2\nlinks.wifi.between=[\"a\", \"c-*\"]\nhandover=[]"),
                ("prefix", "prefix=192.0.2.0/24"),
                ("rate", "rate=7 kbit/s"),
                ("rate_up", "rate_up=7 kbit/s"),
                ("delay", "delay=8 ms"),
                ("delay_up", "delay_up=8 ms"),
                ("jitter", "jitter=1 ms"),
                ("jitter_up", "jitter_up=1 ms"),
                ("loss", "loss=0.1"),
                ("loss_up", "loss_up=1 %"),
                ("queue", "queue=7 packets"),
                ("queue_up", "queue_up=7 kB"),
                ("trace", "trace=losses.csv"),
                ("trace_up", "trace_up=losses.csv"),
                ("mtu", "mtu=1400"),
                ("icmp", "icmp=filtered"),
                ("icmp_up", "icmp_up=filtered"),
                ("framing", "framing=async-ppp"),
                ("known_rate", "known_rate=none"),
                ("ip_version", "ip_version=4\nmobility.protocol=mobile-ipv6"),
                (
                    "medium",
                    "medium=\"lan\"\nlinks.wifi={}\nlinks.wifi.medium=\"lan\"\nmedia.lan={ rate = \"9 Mbit/s\", delay = \"1 us\" }",
                ),
                (
                    "between",
                    "between=[\"foreign\", \"mobile\"]\nlinks.f={ preset=\"lte\", between=[\"home-agent\", \"foreign\"] }",
                ),
            ],
        ),
        (
            &medium::MEDIUM,
            "media.lan={ rate = \"9 Mbit/s\", delay = \"1 us\" }\nlinks.extra={ medium=\"lan\", between=[\"a\", \"c\"] }\nmedia.lan.",
            vec![("rate", "rate=10 Mbit/s"), ("delay", "delay=2 us"), ("queue", "queue=7 packets")],
        ),
        (
            &medium::MEDIUM,
            "media.air={ kind = \"802.11b\" }\nlinks.extra={ medium=\"air\", between=[\"a\", \"c\"] }\nmedia.air.",
            vec![
                ("kind", "kind=802.11g"),
                ("rate", "rate=5.5 Mbit/s"),
                ("delay", "delay=2 us"),
                ("preamble", "preamble=short"),
                ("protection", "protection=true\nmedia.air.kind=802.11g"),
                ("control_rate", "control_rate=11 Mbit/s"),
                ("rts_threshold", "rts_threshold=500 B"),
                ("short_retry_limit", "short_retry_limit=5"),
                ("long_retry_limit", "long_retry_limit=5"),
                ("loss", "loss=1 %"),
            ],
        ),
        (
            &link::JITTER,
            "links.wifi.jitter.",
            vec![
                ("kind", "kind=uniform\nlinks.wifi.jitter.spread=2 ms"),
                ("spread", "spread=1 ms"),
                ("deviation", "deviation=1 ms"),
                ("scale", "scale=1 ms\nlinks.wifi.jitter.shape=2"),
                ("shape", "shape=3.5\nlinks.wifi.jitter.scale=1 ms"),
                ("reorder", "reorder=true\nlinks.wifi.jitter.spread=1 ms"),
            ],
        ),
        (
            &link::LOSS,
            "links.wifi.loss.",
            vec![
                ("kind", "kind=bernoulli\nlinks.wifi.loss.p=0.5"),
                ("p", "p=0.1"),
                ("good_to_bad", "good_to_bad=0.1\nlinks.wifi.loss.bad_to_good=0.2"),
                ("bad_to_good", "bad_to_good=0.1\nlinks.wifi.loss.good_to_bad=0.2"),
                (
                    "loss_in_good",
                    "loss_in_good=0.1\nlinks.wifi.loss={ good_to_bad=0.1, bad_to_good=0.1, loss_in_good=0.5 }",
                ),
                (
                    "loss_in_bad",
                    "loss_in_bad=0.1\nlinks.wifi.loss={ good_to_bad=0.1, bad_to_good=0.1, loss_in_bad=0.5 }",
                ),
            ],
        ),
        (
            &link::QUEUE,
            "links.wifi.queue.",
            vec![
                ("limit", "limit=50 packets"),
                ("discipline", "discipline=red"),
                ("ecn", "ecn=true\nlinks.wifi.queue.discipline=codel"),
                ("min_threshold", "min_threshold=6 packets\nlinks.wifi.queue.discipline=red"),
                ("max_threshold", "max_threshold=16 packets\nlinks.wifi.queue.discipline=red"),
                ("max_probability", "max_probability=0.2\nlinks.wifi.queue.discipline=red"),
                ("weight", "weight=0.003\nlinks.wifi.queue.discipline=red"),
                ("gentle", "gentle=false\nlinks.wifi.queue.discipline=red"),
                ("mean_packet", "mean_packet=600\nlinks.wifi.queue.discipline=red"),
                ("target", "target=6 ms\nlinks.wifi.queue.discipline=codel"),
                ("interval", "interval=90 ms\nlinks.wifi.queue.discipline=codel"),
            ],
        ),
        (&link::TRACE, "links.wifi.trace.", vec![("file", "file=losses.csv")]),
        (&link::TRACE, "links.wifi.trace=losses.csv\nlinks.wifi.trace.", vec![("start", "start=1 s")]),
        (
            &link::FRAMING,
            "links.wifi.framing.",
            vec![("bits_per_byte", "bits_per_byte=9"), ("overhead", "overhead=9")],
        ),
        (
            &MOBILITY,
            "mobility.",
            vec![
                ("nodes", concat!("nodes=2\nhandover=[]\nflow.bulk.to=mobile-*\n", many!())),
                ("protocol", "protocol=mobile-ipv6"),
                ("care_of", "care_of=foreign-agent"),
                ("dhcp", "dhcp={ probes = 2 }\nmobility.care_of=dhcp"),
                ("routing", "routing=reverse-tunnel"),
                ("encapsulation", "encapsulation=gre"),
                ("leave_room", "leave_room=false"),
                ("path_monitor", "path_monitor=true"),
                ("order", "order=[\"wifi2\"]\nhandover=[]\nmobility.path_monitor=true"),
                (
                    "metered",
                    "metered=[\"wifi2\"]\nmobility.order=[\"wifi\", \"wifi2\"]\nhandover=[]\nmobility.path_monitor=true",
                ),
                (
                    "leave_bad_paths",
                    "leave_bad_paths=true\nmobility.order=[\"wifi\", \"wifi2\"]\nhandover=[]\nmobility.path_monitor=true",
                ),
                ("start", "start=wifi2\nhandover=[]"),
                ("home", "home=wifi"),
                ("lifetime", "lifetime=infinity"),
                ("advertisement_interval", "advertisement_interval=2 s"),
                ("discovery", "discovery={ missed = 2 }"),
                ("movement_detection", "movement_detection=prefix"),
                ("algorithm", "algorithm=hmac-sha-256"),
                ("replay", "replay=nonces"),
                ("early_requests", "early_requests=0"),
                ("simultaneous_bindings", "simultaneous_bindings=true"),
                ("keep_old", "keep_old=2 s"),
                ("route_optimization", "route_optimization=true"),
                ("smooth_handoff", "smooth_handoff=true\nmobility.care_of=foreign-agent"),
                ("policy", "policy=[{ method = \"triangle\" }]"),
            ],
        ),
        (
            &MOBILITY,
            "mobility.protocol=mobile-ipv6\nmobility.",
            vec![("duplicate_address_detection", "duplicate_address_detection=full")],
        ),
        (&MOBILITY, concat!(fast!(), "mobility."), vec![("fast_handover", "fast_handover=true")]),
        (
            &fast_handover::FAST_HANDOVER,
            concat!(fast!(), "mobility.fast_handover={}\nmobility.fast_handover."),
            vec![
                ("buffer_packets", "buffer_packets=0"),
                ("buffer_bytes", "buffer_bytes=9 kB"),
                ("release_percent", "release_percent=100"),
                ("copies", "copies=true"),
                ("prepare_ahead", "prepare_ahead=9 ms"),
                ("proxy_lifetime", "proxy_lifetime=9 s"),
                ("lifetime", "lifetime=8 s"),
            ],
        ),
        (
            &discovery::DISCOVERY,
            "mobility.discovery.",
            vec![
                ("least_interval", "least_interval=900 ms"),
                ("missed", "missed=2"),
                ("margin", "margin=0"),
                ("solicitation", "solicitation=false"),
                ("on_link_up", "on_link_up=false"),
                ("response_delay", "response_delay=1 s"),
                ("prefix", "prefix=false"),
                (
                    "above_recommended_rate",
                    "above_recommended_rate=true\nmobility.advertisement_interval=9 ms",
                ),
            ],
        ),
        (
            &discovery::DISCOVERY,
            "mobility.protocol=mobile-ipv6\nmobility.movement_detection=unreachable-router\nmobility.discovery.",
            vec![
                ("router_lifetime", "router_lifetime=9 s"),
                ("reachable_time", "reachable_time=9 s"),
                ("retrans_timer", "retrans_timer=9 s"),
                ("delay_first_probe", "delay_first_probe=9 s"),
            ],
        ),
        (
            &dhcp::DHCP,
            "mobility.care_of=dhcp\nmobility.dhcp.",
            vec![
                ("client_check", "client_check=background"),
                ("probes", "probes=2"),
                ("server_check", "server_check=none"),
                ("start_delay", "start_delay=rfc-2131"),
                ("lease", "lease=60 s"),
                ("processing", "processing=5 ms"),
            ],
        ),
        (
            &POLICY,
            "mobility.policy=[{ method = \"triangle\" }]\nmobility.policy.",
            vec![("to", "to=10.0.0.0/8"), ("port", "port=80"), ("method", "method=regular-ip")],
        ),
        (
            &link_layer::LINK_LAYER,
            "handover.style=break-before-make\nhandover.link_layer={}\nhandover.link_layer.",
            vec![
                ("scan", "scan=passive"),
                ("channels", "channels=14"),
                ("answering", "answering=30 %"),
                ("min_channel_time", "min_channel_time=5 ms\nhandover.link_layer.max_channel_time=10.24 ms"),
                ("max_channel_time", "max_channel_time=15 ms\nhandover.link_layer.min_channel_time=1 ms"),
                ("beacon_interval", "beacon_interval=200 ms"),
                ("lost_beacons", "lost_beacons=3"),
                ("answer", "answer=1 ms"),
                ("detection_time", "detection_time=300 ms"),
                ("scan_time", "scan_time=300 ms"),
                ("authentication_time", "authentication_time=3 ms"),
                ("reassociation_time", "reassociation_time=3 ms"),
            ],
        ),
        (
            &link_layer::PHASE,
            "handover.style=break-before-make\nhandover.link_layer={ scan_time = { min = \"100 ms\", max = \"300 ms\" } }\n\
             handover.link_layer.scan_time.",
            vec![("min", "min=200 ms"), ("max", "max=400 ms")],
        ),
        (
            &link_layer::PHASE,
            "handover.style=break-before-make\nhandover.link_layer={ scan_time = { mean = \"300 ms\", deviation = \"10 ms\" } }\n\
             handover.link_layer.scan_time.",
            vec![("mean", "mean=200 ms"), ("deviation", "deviation=20 ms")],
        ),
        (
            &HANDOVER,
            "handover.",
            vec![
                ("at", "at=13 s"),
                (
                    "spacing",
                    "every=10 s\nhandover=[{ every = \"10 s\", from = \"wifi\", to = \"wifi2\", spacing = \"poisson\" }]",
                ),
                (
                    "least_spacing",
                    "every=10 s\nhandover=[{ every = \"10 s\", from = \"wifi\", to = \"wifi2\", spacing = \"poisson\", least_spacing = \"2 s\" }]",
                ),
                (
                    "every",
                    concat!(
                        "every=10 s\nhandover=[{ every = \"10 s\" }]\nmobility.nodes=2\nflow.bulk.to=mobile-*\n",
                        many!()
                    ),
                ),
                ("from", "from=wifi2\nhandover.to=wifi"),
                ("to", "to=wifi3\nlinks.wifi3=lte"),
                ("style", "style=make-before-break"),
                ("interruption", "interruption=1 s"),
                ("link_layer", "link_layer=\"802.11\"\nhandover.style=break-before-make"),
                ("queued", "queued=drop"),
                ("notice", "notice=1 s"),
                ("overlap", "overlap=1 s\nhandover.style=make-before-break"),
                ("announced", "announced=wifi3\nhandover.notice=1 s\nlinks.wifi3=lte"),
                ("cancelled", "cancelled=true\nhandover.notice=1 s"),
            ],
        ),
        (
            &flow::FLOW,
            "flow.",
            vec![
                ("name", "bulk.name=other"),
                ("from", "bulk.from=home-agent"),
                ("to", "bulk.to=home-agent"),
                (
                    "kind",
                    "bulk={ from = \"a\", to = \"b\", kind = \"paced\", rate = \"2 kbit/s\", message = \"2 B\" }",
                ),
                ("size", "bulk.size=1 MB"),
                ("start", "bulk.start=1 s"),
                ("stop", "bulk.stop=2 s"),
                ("request", "asked.request=2 B"),
                ("response", "asked.response=2 B"),
                ("think", "asked.think=2 s"),
                ("requests", "asked.requests=2"),
                ("count", "bulk.count=2"),
                ("rate", "paced.rate=2 kbit/s"),
                ("message", "paced.message=2 B"),
                ("segment", "film.segment=2 s"),
                ("rates", "film.rates=[\"1 Mbit/s\", \"2 Mbit/s\"]"),
                ("buffer", "film.buffer=9 s"),
                ("startup", "film.startup=9 s"),
                ("adaptation", "film.adaptation=buffer"),
                ("length", "film.length=9 s"),
                ("codec", "call.codec=g729"),
                (
                    "payload",
                    "call={ from = \"a\", to = \"b\", kind = \"voice\", payload = \"9 B\", interval = \"20 ms\" }",
                ),
                (
                    "interval",
                    "call={ from = \"a\", to = \"b\", kind = \"voice\", payload = \"160 B\", interval = \"9 ms\" }",
                ),
                ("jitter_buffer", "call.jitter_buffer=9 ms"),
                ("ie", "call.ie=9"),
                ("bpl", "call.bpl=9"),
                ("burst", "bursts.burst=2 B"),
                (
                    "on",
                    "bursts={ from = \"a\", to = \"b\", kind = \"on-off\", on = \"2 s\", rate = \"2 kbit/s\", message = \"2 B\", pause = \"9 s\" }",
                ),
                ("pause", "bursts.pause=2 s"),
                ("burst_law", "bursts.burst_law=exponential"),
                ("pause_law", "bursts.pause_law=pareto"),
                ("shape", "bursts.shape=2\nflow.bursts.pause_law=pareto"),
                ("command", "bulk={ from = \"a\", to = \"b\", command = \"curl {b}\" }"),
                (
                    "server",
                    "bulk={ from = \"a\", to = \"b\", command = \"curl\", server = [\"ncat\", \"-l\"] }",
                ),
                ("link", "bulk={ from = \"a\", to = \"b\", kind = \"probe\", link = \"left\" }"),
                ("tcp", "bulk.tcp=reno"),
                ("quic", "bulk.quic=cubic"),
                ("mptcp", "bulk.mptcp=true"),
            ],
        ),
        (
            &quic::QUIC,
            "flow.bulk.quic.congestion=cubic\nflow.bulk.quic.",
            vec![
                ("congestion", "congestion=new-reno"),
                ("migration", "migration=true"),
                ("initial_mtu", "initial_mtu=1400"),
                ("mtu_discovery", "mtu_discovery=false"),
                ("window", "window=1 MB"),
                ("idle_timeout", "idle_timeout=5 s"),
            ],
        ),
        (
            &mptcp::MPTCP,
            "flow.bulk.mptcp.enabled=true\nflow.bulk.mptcp.",
            vec![
                ("enabled", "enabled=false"),
                ("scheduler", "scheduler=bpf_red"),
                ("subflows", "subflows=3"),
                ("backup", "backup=wifi2"),
                ("fullmesh", "fullmesh=true"),
                ("stale_loss_count", "stale_loss_count=2"),
            ],
        ),
        (
            &TCP,
            "flow.bulk.tcp.profile=sack\nflow.bulk.tcp.",
            vec![
                ("profile", "profile=tahoe"),
                ("variant", "variant=reno"),
                ("congestion", "congestion=cubic"),
                ("rto", "rto=bsd"),
                ("rto_initial", "rto_initial=2 s"),
                ("rto_min", "rto_min=2 s"),
                ("rto_max", "rto_max=50 s"),
                ("clock_granularity", "clock_granularity=2 ms"),
                ("window", "window=1 KiB"),
                ("window_scaling", "window_scaling=true"),
                ("mss", "mss=536"),
                ("timestamps", "timestamps=true"),
                ("sack", "sack=true\nflow.bulk.tcp.profile=reno"),
                ("hystart", "hystart=linux"),
                ("pacing", "pacing=true"),
                ("dsack", "dsack=true"),
                ("sack_compression", "sack_compression=true"),
                ("timer_hz", "timer_hz=250"),
                ("prr", "prr=true"),
                ("reduction_bound", "reduction_bound=conservative"),
                ("rack", "rack=true"),
                ("tail_loss_probe", "tail_loss_probe=true"),
                ("frto", "frto=true"),
                ("eifel", "eifel=true\nflow.bulk.tcp.timestamps=true"),
                ("ecn", "ecn=true"),
                ("icmp_unreachable", "icmp_unreachable=true"),
                ("user_timeout", "user_timeout=3 s"),
                ("limited_transmit", "limited_transmit=false"),
                ("careful", "careful=false"),
                ("duplicate_ack_threshold", "duplicate_ack_threshold=4"),
                ("partial_ack_timer", "partial_ack_timer=slow-but-steady"),
                ("burst_guard", "burst_guard=false"),
                ("rescue_retransmission", "rescue_retransmission=true"),
                ("linux20_fast_retransmit", "linux20_fast_retransmit=true"),
                ("delayed_ack", "delayed_ack=off"),
                ("initial_window", "initial_window=1 segment"),
                ("initial_ssthresh", "initial_ssthresh=8 KiB"),
                ("max_cwnd", "max_cwnd=8 KiB"),
                ("ack_counting", "ack_counting=2 segments"),
                ("window_validation", "window_validation=true"),
                ("limited_transmit_counts", "limited_transmit_counts=true"),
                ("idle_restart", "idle_restart=off"),
                ("kernel", "kernel=\"6.1\""),
                ("mtu_probing", "mtu_probing=true"),
                ("nagle", "nagle=false"),
                ("max_retransmissions", "max_retransmissions=3"),
                ("pmtu_discovery", "pmtu_discovery=false"),
            ],
        ),
    ]
}

/// The same for the assists, each in use before.
fn changes_of_assists() -> Vec<(&'static Section, &'static str, Vec<Change>)> {
    vec![
        (
            &assist::ASSIST,
            "handover.notice=1 s\nassist.use=replay+freeze\nassist.",
            vec![
                ("use", "use=replay"),
                ("except", "except=[{ port = 22 }]"),
                ("replay", "replay={ age = \"1 s\" }"),
                ("hold-last", "hold-last={ age = \"1 s\" }\nassist.use=hold-last"),
                ("lcd-kick", "lcd-kick={ burst = 1 }\nassist.use=lcd-kick"),
                ("freeze", "freeze={ acks = 1 }"),
                ("fast-retransmit", "fast-retransmit={ acks = 1 }\nassist.use=fast-retransmit"),
                ("ack-hold", "ack-hold={ bytes = 2 }\nassist.use=ack-hold"),
                ("window-clamp", "window-clamp={ factor = 2 }\nassist.use=window-clamp"),
                ("path-queue", "path-queue={ margin = 0 }\nassist.use=path-queue"),
                ("buffer-forward", "buffer-forward={ limit = 1 }\nassist.use=buffer-forward"),
                ("snoop", "snoop={ packets = 1 }\nassist.use=snoop\nmobility.care_of=foreign-agent"),
                ("split", "split={ buffer = \"1 KiB\" }\nassist.use=split\nmobility.routing=reverse-tunnel"),
                ("rto-reset", "rto-reset={ by = \"option\" }\nassist.use=rto-reset"),
                ("tcp-cm", "tcp-cm={ resend = false }\nassist.use=tcp-cm"),
                ("rto-fast-decrease", "rto-fast-decrease={ samples = 1 }\nassist.use=rto-fast-decrease"),
                ("mss-clamp", "mss-clamp={ mtu = 1400 }\nassist.use=mss-clamp"),
                ("black-hole", "black-hole={ repeats = 1 }\nassist.use=black-hole"),
            ],
        ),
        (
            &assist::EXCEPT,
            "assist.use=replay\nassist.except=[{ port = 22, prefix = \"10.0.0.0/8\" }]\nassist.except.",
            vec![("prefix", "prefix=correspondent"), ("port", "port=23")],
        ),
        (
            &assist::REPLAY,
            "assist.use=replay\nassist.replay.",
            vec![
                ("at", "at=home-agent"),
                ("bytes", "bytes=1 MiB"),
                ("packets", "packets=4097"),
                ("total", "total=65 MiB"),
                ("flows", "flows=1"),
                ("age", "age=1 s"),
                ("keep", "keep=newest"),
                ("rest", "rest=drop"),
                ("wait", "wait=0 s"),
                ("duplicates", "duplicates=pass"),
                ("patience", "patience=0"),
            ],
        ),
        (
            &assist::HOLD_LAST,
            "assist.use=hold-last\nassist.hold-last.",
            vec![("packets", "packets=3 packets"), ("age", "age=1 s")],
        ),
        (
            &assist::LCD_KICK,
            "assist.use=lcd-kick\nassist.lcd-kick.",
            vec![
                ("during", "during=false"),
                ("interval", "interval=1 s"),
                ("burst", "burst=0"),
                ("spacing", "spacing=0 s"),
                ("limit", "limit=1"),
            ],
        ),
        (
            &assist::FREEZE,
            "handover.notice=1 s\nassist.use=freeze\nassist.freeze.",
            vec![("warning", "warning=400 ms"), ("acks", "acks=1"), ("patience", "patience=0 s")],
        ),
        (
            &assist::FAST_RETRANSMIT,
            "assist.use=fast-retransmit\nassist.fast-retransmit.",
            vec![("acks", "acks=4"), ("sack", "sack=none"), ("longest_outage", "longest_outage=any")],
        ),
        (
            &assist::ACK_HOLD,
            "handover.notice=1 s\nassist.use=ack-hold\nassist.ack-hold.",
            vec![("bytes", "bytes=1460"), ("from", "from=always"), ("longest", "longest=1 s")],
        ),
        (
            &assist::WINDOW_CLAMP,
            "assist.use=window-clamp\nassist.window-clamp.",
            vec![
                ("at", "at=mobile"),
                ("factor", "factor=1.5"),
                ("plus", "plus=2 segments"),
                ("from", "from=always"),
            ],
        ),
        (
            &assist::MSS_CLAMP,
            "assist.use=mss-clamp\nassist.mss-clamp.",
            vec![("at", "at=mobile"), ("mtu", "mtu=1400")],
        ),
        (
            &assist::BLACK_HOLE,
            "assist.use=black-hole\nassist.black-hole.",
            vec![("at", "at=home-agent+mobile"), ("repeats", "repeats=3"), ("lifetime", "lifetime=1 s")],
        ),
        (
            &assist::PATH_QUEUE,
            "assist.use=path-queue\nassist.path-queue.",
            vec![
                ("limit", "limit=30 kB"),
                ("discipline", "discipline=drop-tail"),
                ("margin", "margin=4 %"),
                ("at_handover", "at_handover=drop"),
            ],
        ),
        (
            &assist::BUFFER_FORWARD,
            "assist.use=buffer-forward\nassist.buffer-forward.",
            vec![("limit", "limit=65"), ("begin", "begin=link-down")],
        ),
        (
            &assist::SNOOP,
            "mobility.care_of=foreign-agent\nassist.use=snoop\nassist.snoop.",
            vec![("packets", "packets=65"), ("least_timeout", "least_timeout=1 s")],
        ),
        (
            &assist::SPLIT,
            "mobility.care_of=foreign-agent\nmobility.routing=reverse-tunnel\nassist.use=split\nassist.split.",
            vec![("at", "at=foreign-agent"), ("buffer", "buffer=64 KiB"), ("tcp", "tcp=reno")],
        ),
        (
            &assist::RTO_RESET,
            "assist.use=rto-reset\nassist.rto-reset.",
            vec![("slow_start", "slow_start=true"), ("by", "by=option")],
        ),
        (
            &assist::TCP_CM,
            "assist.use=tcp-cm\nassist.tcp-cm.",
            vec![("resend", "resend=false"), ("suspend", "suspend=false"), ("estimator", "estimator=link")],
        ),
        (
            &assist::RTO_FAST_DECREASE,
            "assist.use=rto-fast-decrease\nassist.rto-fast-decrease.",
            vec![("samples", "samples=5")],
        ),
    ]
}

#[test]
fn every_documented_key_means_something() {
    // The first depends on who moves, and the second has one value only.
    let mut seen: BTreeSet<(&str, &str)> =
        [(ROOT.heading, "ip_version"), (link_layer::LINK_LAYER.heading, "kind")].into();
    let fixed = |version: &str| {
        let text = "duration = \"9 s\"\n[links]\nleft = { preset = \"lte\", between = [\"a\", \"b\"] }\n";
        Scenario::parse("x.toml", text, &[format!("ip_version={version}")]).unwrap().digest()
    };
    assert_ne!(fixed("4"), fixed("6"));
    let lan = "media.lan={ rate = \"9 Mbit/s\", delay = \"1 us\" }\nlinks.extra={ medium=\"lan\", between=[\"a\", \"c\"] }";
    assert_eq!(digest(&format!("{lan}\nmedia.lan.kind=csma-cd")), digest(lan));
    assert_eq!(digest("mobility.protocol=mobile-ipv4\nassist.use=[\"none\"]\nassist=none"), digest(""));
    for (section, path, keys) in changes().into_iter().chain(changes_of_assists()) {
        // What a path sets before its last line is there without the change, too.
        let before = digest(path.rsplit_once('\n').map_or("", |(before, _)| before));
        for (key, change) in keys {
            let changed = digest(&format!("{path}{change}"));
            assert!(changed != before, "{} {key}: {path}{change}", section.heading);
            assert!(section.keys.iter().any(|known| known.name == key), "{key}");
            seen.insert((section.heading, key));
        }
    }
    // What several nodes do needs a network of theirs.
    seen.insert((ROOT.heading, "nodes"));
    let several = |change: &str| {
        let change: Vec<String> = change.lines().map(str::to_owned).collect();
        Scenario::parse("x.toml", SEVERAL, &change).unwrap_or_else(|errors| panic!("{errors}")).digest()
    };
    for (key, change) in NODES {
        let before = change.rsplit_once('\n').map_or("", |(before, _)| before);
        assert_ne!(several(change), several(before), "{key}");
        seen.insert((node::NODE.heading, key));
    }
    for (section, key, change) in OF_ANCHOR_POINTS {
        assert_ne!(several(&format!("{ANCHOR_POINT}\n{change}")), several(ANCHOR_POINT), "{key}");
        seen.insert((section.heading, key));
    }
    let domain = |changes: &[&str]| {
        let changes: Vec<String> =
            changes.iter().flat_map(|change| change.lines()).map(str::to_owned).collect();
        Scenario::parse("x.toml", DOMAIN, &changes).unwrap_or_else(|errors| panic!("{errors}")).digest()
    };
    let none = DOMAIN.replace("[micro_mobility]\n    protocol = \"building-blocks\"\n", "");
    assert_ne!(domain(&[]), Scenario::parse("x.toml", &none, &[]).unwrap().digest());
    seen.insert((ROOT.heading, "micro_mobility"));
    for (section, key, before, change) in OF_DOMAINS {
        assert_ne!(domain(&[before, change]), domain(&[before]), "{key}");
        seen.insert((section.heading, key));
    }
    let digest = |text: &str, change: &[&str]| {
        let change: Vec<String> = change.iter().map(|one| (*one).to_owned()).collect();
        Scenario::parse("x.toml", text, &change).unwrap_or_else(|errors| panic!("{errors}")).digest()
    };
    let at_once = |change: &[&str]| digest(MULTIPATH, change);
    let one_by_one = MULTIPATH.replace("[multipath]", "");
    assert_ne!(at_once(&[]), Scenario::parse("x.toml", &one_by_one, &[]).unwrap().digest());
    seen.insert((ROOT.heading, "multipath"));
    for (section, key, change) in OF_MULTIPATH {
        let rule = "multipath.rules=[{}]";
        let before: &[&str] = if section.heading == multipath::PATH_RULE.heading { &[rule] } else { &[] };
        assert_ne!(at_once(&[change]), at_once(before), "{key}");
        seen.insert((section.heading, key));
    }
    for (section, key, change) in OF_RELAYS {
        assert_ne!(digest(RELAYS, &[change]), digest(RELAYS, &[]), "{key}");
        seen.insert((section.heading, key));
    }
    for section in SECTIONS {
        for key in section.keys {
            assert!(
                seen.contains(&(section.heading, key.name)),
                "{} {} is not tested",
                section.heading,
                key.name
            );
        }
    }
}

#[test]
fn every_assist_is_documented() {
    for name in careof_assist_file::NAMES {
        assert!(assist::ASSIST.intro.contains(&format!("\n| `{name}` | ")), "{name}");
        let is_key = assist::ASSIST.keys.iter().any(|key| key.name == name);
        assert_eq!(assist::section_of(name).is_some(), is_key, "{name}");
    }
}
