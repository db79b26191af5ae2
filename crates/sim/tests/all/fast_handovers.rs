//! Fast handovers for Mobile IPv6 (RFC 5568): whole worlds.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use crate::common::finish;
use crate::random_worlds::{pick, worlds};
use careof_base::RandomStream;
use careof_metrics::Summary;
use careof_scenario::Scenario;
use careof_sim::{Observation, Simulation};
use careof_trace::Columns;

const FMIPV6: &str = include_str!("../../../../scenarios/ipv6/fmipv6.toml");

/// Three cells, whose routers are 2 ms from each other and 31 ms from the home agent; a packet takes 5 ms and more in a cell.
const CELLS: &str = r#"
    duration = "DURATION"
    [links]
    core-home = { preset = "ethernet-1g", delay = "30 ms", between = ["core", "home-agent"] }
    core-server = { preset = "ethernet-1g", delay = "5 ms", between = ["core", "correspondent"] }
    core-west = { preset = "ethernet-1g", delay = "1 ms", between = ["core", "router-west"] }
    core-east = { preset = "ethernet-1g", delay = "1 ms", between = ["core", "router-east"] }
    core-north = { preset = "ethernet-1g", delay = "1 ms", between = ["core", "router-north"] }
    west = { rate = "20 Mbit/s", delay = "5 ms", between = ["router-west", "mobile"] }
    east = { rate = "20 Mbit/s", delay = "5 ms", between = ["router-east", "mobile"] }
    north = { rate = "20 Mbit/s", delay = "5 ms", between = ["router-north", "mobile"] }
    [mobility]
    protocol = "mobile-ipv6"
    fast_handover = {}
"#;
/// A round trip from the mobile node to its router and on to the next one, and some for transmission.
const ROUND_TRIP: Duration = Duration::from_millis(16);
const GAP: Duration = Duration::from_millis(100);
const PREDICTED: &str = "notice = \"500 ms\"";
const DOWNLOAD: &str =
    "[[flow]]\nname = \"download\"\nfrom = \"correspondent\"\nto = \"mobile\"\nkind = \"bulk\"\n";
const UPLOAD: &str =
    "[[flow]]\nname = \"upload\"\nfrom = \"mobile\"\nto = \"correspondent\"\nkind = \"bulk\"\n";

/// The cells, with `count` handovers from the west to the east and back, one every 2 s, and these keys in each.
fn moves(count: u64, keys: &str, flows: &str) -> String {
    let mut text = CELLS.replace("DURATION", &format!("{} s", 2 * count + 4));
    for n in 0..count {
        // What is called off leaves the node where it is.
        let stays = keys.contains("cancelled");
        let [from, to] = if n % 2 == 0 || stays { ["west", "east"] } else { ["east", "west"] };
        let gap = if stays { String::new() } else { "interruption = \"100 ms\"\n".to_owned() };
        write!(
            text,
            "[[handover]]\nat = \"{} s\"\nfrom = \"{from}\"\nto = \"{to}\"\nstyle = \"break-before-make\"\n{gap}{keys}\n",
            2 * n + 2
        )
        .unwrap();
    }
    text + flows
}

fn run(text: &str, overrides: &[&str]) -> (Summary, Columns) {
    let overrides: Vec<String> = overrides.iter().map(|&text| text.to_owned()).collect();
    let scenario = Scenario::parse("test.toml", text, &overrides).unwrap_or_else(|errors| panic!("{errors}"));
    let observation = Observation { trace: true, ..Observation::default() };
    finish(Simulation::new(scenario, "test.toml", 0, observation).unwrap())
}

/// How often a message of this name was sent.
fn sent(events: &Columns, message: &str) -> usize {
    let [kinds, messages] = ["kind", "message"].map(|name| events.by_name(name).unwrap());
    let is_one =
        |row: &usize| kinds.text(*row) == Some("message-sent") && messages.text(*row) == Some(message);
    (0..events.rows()).filter(is_one).count()
}

/// How often this phase of a handover was noted.
fn noted(events: &Columns, phase: &str) -> usize {
    let [kinds, causes] = ["kind", "cause"].map(|name| events.by_name(name).unwrap());
    let is_one = |row: &usize| kinds.text(*row) == Some("handover") && causes.text(*row) == Some(phase);
    (0..events.rows()).filter(is_one).count()
}

fn dropped(summary: &Summary) -> BTreeMap<&str, u64> {
    summary.packets.dropped.iter().map(|(cause, count)| (cause.as_str(), *count)).collect()
}

/// From the new link's being up to the path's being ready, of each handover.
fn until_ready(summary: &Summary) -> Vec<Duration> {
    let of = |handover: &careof_metrics::HandoverSummary| handover.ready_at.unwrap() - (handover.at + GAP);
    summary.handovers.iter().map(of).collect()
}

fn median(mut spans: Vec<Duration>) -> Duration {
    spans.sort_unstable();
    spans[spans.len() / 2]
}

/// The longest silences of the flows around the handovers.
fn silences(summary: &Summary) -> Vec<Duration> {
    let flows = summary.handovers.iter().flat_map(|handover| &handover.flows);
    flows.filter_map(|flow| flow.longest_silence).collect()
}

/// Of the flows around the handovers: segments sent again, and those that came out of order.
fn troubles(summary: &Summary) -> (u64, u64) {
    let flows = summary.handovers.iter().flat_map(|handover| &handover.flows);
    flows.fold((0, 0), |(again, late), flow| {
        (again + flow.segments_retransmitted, late + flow.out_of_order_arrivals)
    })
}

/// Bulk flows whose window fits the queues.
fn windowed(flow: &str) -> String {
    format!("{flow}tcp = \"sack\"\n")
}

/// The same without a trace.
fn summary(text: &str, overrides: &[&str]) -> Summary {
    let overrides: Vec<String> = overrides.iter().map(|&text| text.to_owned()).collect();
    let scenario = Scenario::parse("test.toml", text, &overrides).unwrap_or_else(|errors| panic!("{errors}"));
    finish(Simulation::new(scenario, "test.toml", 0, Observation::default()).unwrap()).0
}

/// RFC 5568 section 3, as the example has it: announced, without warning, and called off.
#[test]
fn the_messages_of_each_kind_of_handover_are_those_of_the_rfc() {
    let (summary, events) = run(FMIPV6, &[]);
    let [first, second] = &summary.handovers[..] else { panic!("{} handovers", summary.handovers.len()) };
    // The path is ready with the link where it was prepared, and by way of both routers where it was not.
    let took = [first, second].map(|handover| handover.ready_at.unwrap() - (handover.at + GAP));
    assert_eq!(took[0], Duration::ZERO);
    assert!((Duration::from_millis(14)..Duration::from_millis(20)).contains(&took[1]), "{took:?}");
    // The one that is called off is asked for and taken back, and its tunnel is confirmed on both links.
    let counts =
        ["FastBindingUpdate", "HandoverInitiate", "HandoverAcknowledge", "FastBindingAcknowledgment"];
    assert_eq!(counts.map(|message| sent(&events, message)), [4, 3, 3, 6]);
    assert_eq!(
        ["tunnel-begun", "arrived", "returned", "never-came"].map(|phase| noted(&events, phase)),
        [3, 1, 1, 1]
    );
    // Who has come to a link asks what is near it.
    assert_eq!(["RtSolPr", "PrRtAdv"].map(|message| sent(&events, message)), [3, 3]);
    assert_eq!(sent(&events, "Malformed"), 0);
    let plain = run(FMIPV6, &["mobility.fast_handover=false"]).0;
    for (fast, plain) in summary.handovers.iter().zip(&plain.handovers) {
        let silence = |of: &careof_metrics::HandoverSummary| of.flows[0].longest_silence.unwrap();
        assert!(silence(fast) + Duration::from_millis(100) < silence(plain), "{fast:?} {plain:?}");
    }
}

/// The claim of predictive handovers: a hundred, and nothing is lost, repeated or out of order.
#[test]
fn a_hundred_predicted_handovers_lose_no_packet() {
    for flow in [DOWNLOAD, UPLOAD] {
        let text = moves(100, PREDICTED, &windowed(flow));
        let summary = summary(&text, &[]);
        assert_eq!(summary.handovers.len(), 100);
        assert!(until_ready(&summary).iter().all(|took| took.is_zero()));
        // What the mobile node would send while it has no link is for its own TCP to send again.
        let (mut dropped, late) = (dropped(&summary), troubles(&summary).1);
        let of_its_own = dropped.remove("no-route").unwrap_or_default();
        // Of the flow's data nothing is; a router advertisement or an acknowledgement may be in the air when the link goes.
        let in_the_air = dropped.remove("link-down").unwrap_or_default();
        assert_eq!((dropped, late), (BTreeMap::new(), 0), "{flow}");
        assert!(in_the_air <= 5, "{in_the_air}");
        assert!(of_its_own <= if flow == DOWNLOAD { 100 } else { 4_500 }, "{of_its_own}");
        if flow == DOWNLOAD {
            assert_eq!(troubles(&summary), (0, 0));
            // The gap, what went to the new router before it, and a round trip for acknowledgements.
            let longest = silences(&summary).into_iter().max().unwrap();
            assert!(longest < GAP + Duration::from_millis(50 + 90 + 16), "{longest:?}");
        }
        let discarded = summary.mobility.unwrap().discarded;
        assert_eq!(discarded, BTreeMap::new(), "{flow}");
    }
}

/// The router that was left keeps what comes for a mobile node that the link layer says is gone.
#[test]
fn a_handover_without_warning_loses_what_was_in_the_cell_and_nothing_else() {
    let text = moves(20, "queued = \"drop\"", &windowed(DOWNLOAD));
    let fast = summary(&text, &[]);
    assert!(until_ready(&fast).iter().all(|took| *took < ROUND_TRIP + Duration::from_millis(4)), "{fast:?}");
    let (mut dropped, plain) = (dropped(&fast), summary(&text, &["mobility.fast_handover=false"]));
    let in_the_cell: u64 =
        ["link-down", "handover", "no-route"].into_iter().filter_map(|cause| dropped.remove(cause)).sum();
    assert_eq!(dropped, BTreeMap::new());
    assert!(in_the_cell < 20 * 15, "{in_the_cell}");
    assert!(median(silences(&fast)) + Duration::from_millis(50) < median(silences(&plain)));
    assert!(fast.flows[0].bytes_delivered > plain.flows[0].bytes_delivered);
}

/// What goes to the wrong router is lost, from a round trip by way of it after the update until the mobile node is somewhere else; there it
/// has its path sooner than without fast handovers.
#[test]
fn a_wrong_prediction_costs_no_more_than_plain_mobile_ipv6_and_the_time_it_was_ahead() {
    let wrong = format!("{PREDICTED}\nannounced = \"north\"");
    for flow in [DOWNLOAD, UPLOAD] {
        let text = moves(6, &wrong, flow);
        for delay in ["1 ms", "30 ms", "100 ms"] {
            let away = format!("links.core-home.delay={delay}");
            for seed in ["seed=1", "seed=2"] {
                let fast = summary(&text, &[&away, seed]);
                let plain = summary(&text, &[&away, seed, "mobility.fast_handover=false"]);
                let ahead = Duration::from_millis(50) + ROUND_TRIP;
                let [longer, shorter] = [&fast, &plain].map(|summary| median(silences(summary)));
                assert!(longer <= shorter + ahead, "{flow} {delay} {seed}: {longer:?}, {shorter:?}");
                let [ready, without] = [&fast, &plain].map(|summary| median(until_ready(summary)));
                assert!(
                    ready < without && ready < Duration::from_millis(60),
                    "{delay}: {ready:?} {without:?}"
                );
            }
        }
    }
}

#[test]
fn a_handover_that_is_called_off_costs_what_has_gone_to_the_new_router() {
    let voice = "[[flow]]\nname = \"voice\"\nfrom = \"correspondent\"\nto = \"mobile\"\nkind = \"paced\"\n\
                 rate = \"64 kbit/s\"\nmessage = \"160 B\"\n";
    let text = moves(20, &format!("{PREDICTED}\ncancelled = true"), voice);
    let (summary, events) = run(&text, &[]);
    assert_eq!((noted(&events, "returned"), noted(&events, "never-came")), (20, 20));
    assert_eq!(sent(&events, "BindingUpdate"), 1);
    let dropped = dropped(&summary);
    // 50 ms and a round trip of one packet each 20 ms.
    assert!((20..=20 * 4).contains(&dropped["buffer-expired"]) && dropped.len() == 1, "{dropped:?}");
    assert!(summary.flows[0].bytes_delivered > 345_000, "{}", summary.flows[0].bytes_delivered);
}

#[test]
fn a_full_buffer_drops_the_oldest_and_no_buffer_everything() {
    for (packets, cause) in [("4", "buffer-full"), ("0", "not-there-yet")] {
        for keys in [PREDICTED, ""] {
            let set = format!("mobility.fast_handover.buffer_packets={packets}");
            let (summary, events) = run(&moves(4, keys, &windowed(DOWNLOAD)), &[&set]);
            assert!(dropped(&summary)[cause] > 4 * 10, "{packets} {keys}: {:?}", summary.packets.dropped);
            assert!(summary.flows[0].bytes_delivered > 300_000);
            assert_eq!(noted(&events, "buffering") > 0, packets == "4");
        }
    }
    // Bytes bound it as well.
    let bytes = &["mobility.fast_handover.buffer_bytes=6 kB"];
    assert!(dropped(&summary(&moves(4, PREDICTED, &windowed(DOWNLOAD)), bytes))["buffer-full"] > 40);
}

/// The update is lost with the link, or what it led to is: the mobile node sends another from the new link, or none.
#[test]
fn a_mobile_node_that_stays_away_for_long_finds_its_way_back() {
    for keys in
        [PREDICTED, "", "notice = \"1 ms\"", "notice = \"7 ms\"", "notice = \"9 ms\"", "notice = \"13 ms\""]
    {
        let text = moves(1, keys, &windowed(DOWNLOAD)).replace("\"100 ms\"", "\"3 s\"");
        let (summary, events) = run(&text, &["duration=20 s"]);
        let [handover] = &summary.handovers[..] else { panic!("{keys}") };
        assert!(
            handover.ready_at.is_some_and(|at| at < handover.at + Duration::from_millis(3_200)),
            "{keys}"
        );
        // After PROXY_ND_LIFETIME nobody keeps anything for it.
        assert!(dropped(&summary).get("buffer-expired").is_some_and(|count| *count > 10), "{keys}");
        assert!(summary.flows[0].bytes_delivered > 4_000_000, "{keys}: {}", summary.flows[0].bytes_delivered);
        assert_eq!(sent(&events, "Malformed"), 0);
    }
}

#[test]
fn a_mobile_node_that_turns_back_before_it_is_registered_is_reached_where_it_is() {
    for (there, back) in
        [(PREDICTED, "notice = \"20 ms\""), ("", ""), (PREDICTED, ""), ("", "notice = \"20 ms\"")]
    {
        let handover = |at: &str, from: &str, to: &str, keys: &str| {
            format!(
                "[[handover]]\nat = \"{at}\"\nfrom = \"{from}\"\nto = \"{to}\"\nstyle = \"break-before-make\"\ninterruption = \"20 ms\"\nqueued = \"drop\"\n{keys}\n"
            )
        };
        let text = CELLS.replace("DURATION", "30 s")
            + &handover("4 s", "west", "east", there)
            + &handover("4060 ms", "east", "west", back)
            + &handover("10 s", "west", "east", there)
            + &handover("10400 ms", "east", "west", back)
            + &handover("10800 ms", "west", "north", back)
            + &handover("11200 ms", "north", "east", back)
            + &windowed(DOWNLOAD);
        let summary = summary(&text, &[]);
        let longest = silences(&summary).into_iter().max().unwrap();
        // A tunnel back and forth costs a timeout of TCP at worst.
        assert!(longest < Duration::from_millis(1_500), "{there} {back}: {longest:?}");
        assert!(summary.handovers.last().is_some_and(|last| last.ready_at.is_some()));
        assert!(summary.flows[0].bytes_delivered > 8_000_000, "{}", summary.flows[0].bytes_delivered);
    }
}

const SWAP: &str = r#"
    duration = "24 s"
    [nodes]
    home-agent = "home-agent"
    one = "mobile"
    two = "mobile"
    [links]
    core-home = { preset = "ethernet-1g", delay = "30 ms", between = ["core", "home-agent"] }
    core-server = { preset = "ethernet-1g", delay = "5 ms", between = ["core", "correspondent"] }
    core-west = { preset = "ethernet-1g", delay = "1 ms", between = ["core", "router-west"] }
    core-east = { preset = "ethernet-1g", delay = "1 ms", between = ["core", "router-east"] }
    one-west = { rate = "20 Mbit/s", delay = "5 ms", between = ["router-west", "one"] }
    one-east = { rate = "20 Mbit/s", delay = "5 ms", between = ["router-east", "one"] }
    two-west = { rate = "20 Mbit/s", delay = "5 ms", between = ["router-west", "two"] }
    two-east = { rate = "20 Mbit/s", delay = "5 ms", between = ["router-east", "two"] }
    [mobility]
    protocol = "mobile-ipv6"
    fast_handover = {}
"#;

#[test]
fn two_mobile_nodes_that_swap_cells_lose_no_packet() {
    let mut text = SWAP.replace("two = \"mobile\"", "two = { role = \"mobile\", start = \"two-east\" }");
    for n in 0..10 {
        let [from, to] = if n % 2 == 0 { ["west", "east"] } else { ["east", "west"] };
        for (node, [from, to]) in [("one", [from, to]), ("two", [to, from])] {
            write!(
                text,
                "[[handover]]\nat = \"{} s\"\nfrom = \"{node}-{from}\"\nto = \"{node}-{to}\"\nstyle = \"break-before-make\"\n\
                 interruption = \"100 ms\"\n{PREDICTED}\n",
                2 * n + 2
            )
            .unwrap();
        }
    }
    for node in ["one", "two"] {
        text += &windowed(DOWNLOAD).replace("download", node).replace("\"mobile\"", &format!("\"{node}\""));
    }
    let summary = summary(&text, &[]);
    assert_eq!(summary.handovers.len(), 20);
    assert!(until_ready(&summary).iter().all(|took| took.is_zero()));
    let mut dropped = dropped(&summary);
    // Acknowledgements, and advertisements of routers.
    dropped.retain(|cause, count| !["no-route", "link-down"].contains(cause) || *count > 20);
    assert_eq!((dropped, troubles(&summary)), (BTreeMap::new(), (0, 0)));
    assert!(summary.flows.iter().all(|flow| flow.bytes_delivered > 7_000_000));
}

#[test]
fn packets_on_optimised_routes_are_handed_over_as_well() {
    for flow in [DOWNLOAD, UPLOAD] {
        let text = moves(20, PREDICTED, &windowed(flow));
        let fast = summary(&text, &["mobility.route_optimization=true"]);
        let plain = summary(&text, &["mobility.route_optimization=true", "mobility.fast_handover=false"]);
        assert!(until_ready(&fast).iter().all(|took| took.is_zero()));
        assert!(median(silences(&fast)) + Duration::from_millis(50) < median(silences(&plain)));
        let mut dropped = dropped(&fast);
        dropped.remove("no-route");
        dropped.retain(|cause, count| *cause != "link-down" || *count > 5);
        assert_eq!(dropped, BTreeMap::new(), "{flow}");
        assert_eq!(troubles(&fast).0 > 0, flow == UPLOAD);
    }
}

/// The home agent's assists are told that nothing is lost.
#[test]
fn assists_and_fast_handovers_are_not_worse_together() {
    for keys in [PREDICTED, "queued = \"drop\""] {
        for rate in ["3 Mbit/s", "10 Mbit/s", "30 Mbit/s"] {
            let cells = ["west", "east"].map(|link| format!("links.{link}.rate={rate}"));
            let text = moves(10, keys, &windowed(DOWNLOAD));
            let [without, with] = ["assist=none", "assist=default"].map(|assist| {
                let summary = summary(&text, &[&cells[0], &cells[1], assist]);
                summary.flows[0].bytes_delivered
            });
            assert!(with * 100 >= without * 97, "{keys} {rate}: {with} with, {without} without");
        }
    }
}

/// What the mobile node sends from the new link goes through its former router, long before it is registered.
#[test]
fn an_upload_from_a_full_queue_is_not_repeated_that_access_routers_have_brought_on() {
    for keys in [PREDICTED, "notice = \"500 ms\"\nqueued = \"drop\""] {
        for flows in [UPLOAD.to_owned(), windowed(UPLOAD)] {
            let text = moves(12, keys, &flows);
            let [without, with] = ["assist=none", "assist=default"].map(|assist| summary(&text, &[assist]));
            let bytes = |summary: &Summary| summary.flows[0].bytes_delivered;
            let (without, with) = (bytes(&without), bytes(&with));
            assert!(with * 100 >= without * 97, "{keys} {flows}: {with} with, {without} without");
        }
    }
}

#[test]
fn the_same_scenario_gives_the_same_run() {
    let text = moves(6, PREDICTED, &(windowed(DOWNLOAD) + &windowed(UPLOAD)));
    let [one, other] = [(); 2].map(|()| summary(&text, &["mobility.fast_handover.copies=true"]));
    assert_eq!(one.digest, other.digest);
}

/// Three cells, and moves among them that are announced, or not, or wrongly.
fn by_chance(world: u64) -> String {
    let random = &mut RandomStream::new(world, 0, "random fast handovers");
    let mut text = CELLS.replace("DURATION", "20 s").replace("core-home = ", "core-home-of-old = ");
    let mut cells = String::new();
    for cell in ["west", "east", "north"] {
        let rate = pick(random, &["64 kbit/s", "1 Mbit/s", "20 Mbit/s"]);
        let delay = pick(random, &["1 ms", "20 ms", "200 ms"]);
        let loss = pick(random, &["0.0", "0.0", "0.01", "0.2"]);
        let mtu = pick(random, &["1280", "1500", "9000"]);
        let queue = pick(random, &["3 packets", "100 packets"]);
        let jitter = pick(random, &["\"0 ms\"", "{ kind = \"uniform\", spread = \"1 ms\", reorder = true }"]);
        writeln!(
            cells,
            "{cell} = {{ rate = \"{rate}\", delay = \"{delay}\", loss = {loss}, mtu = \"{mtu} B\", queue = \"{queue}\", \
             jitter = {jitter}, between = [\"router-{cell}\", \"mobile\"] }}"
        )
        .unwrap();
    }
    let home = pick(random, &["1 ms", "30 ms", "200 ms"]);
    let begin = text.find("    west = {").unwrap();
    let end = text.find("    [mobility]").unwrap();
    text.replace_range(begin..end, &cells);
    text = text.replacen("core-home-of-old = ", "core-home = ", 1).replacen("30 ms", home, 1);
    let keys = [
        format!("buffer_packets = {}", pick(random, &["0", "3", "256"])),
        format!("copies = {}", pick(random, &["true", "false"])),
        format!("release_percent = {}", pick(random, &["100", "200", "10000"])),
        format!("prepare_ahead = \"{}\"", pick(random, &["1 ms", "50 ms", "1 s"])),
        format!("proxy_lifetime = \"{}\"", pick(random, &["100 ms", "1500 ms"])),
        format!("lifetime = \"{}\"", pick(random, &["4 s", "20 s"])),
    ];
    text = text.replacen("fast_handover = {}", &format!("fast_handover = {{ {} }}", keys.join(", ")), 1);
    for key in ["route_optimization", "path_monitor"] {
        writeln!(text, "{key} = {}", pick(random, &["true", "false"])).unwrap();
    }
    let detection = pick(random, &["optimistic", "full", "none"]);
    writeln!(text, "duplicate_address_detection = \"{detection}\"").unwrap();
    let (mut current, mut at) = ("west", 2_000);
    while at < 16_000 {
        let others: Vec<&str> =
            ["west", "east", "north"].into_iter().filter(|cell| *cell != current).collect();
        let to = pick(random, &others);
        let wrong = others.iter().find(|cell| **cell != to).unwrap();
        let notice = pick(random, &["1 ms", "30 ms", "700 ms"]);
        let style = pick(random, &["break-before-make", "break-before-make", "make-before-break"]);
        writeln!(
            text,
            "[[handover]]\nat = \"{at} ms\"\nfrom = \"{current}\"\nto = \"{to}\"\nstyle = \"{style}\""
        )
        .unwrap();
        let mut gap = 0;
        match random.below(4) {
            0 => {}
            1 => writeln!(text, "notice = \"{notice}\"").unwrap(),
            2 => writeln!(text, "notice = \"{notice}\"\nannounced = \"{wrong}\"").unwrap(),
            _ => writeln!(text, "notice = \"{notice}\"\ncancelled = true").unwrap(),
        }
        if !text.ends_with("cancelled = true\n") {
            if style == "break-before-make" {
                gap = random.below(800);
                writeln!(text, "interruption = \"{gap} ms\"").unwrap();
            }
            writeln!(text, "queued = \"{}\"", pick(random, &["drain-late", "drop", "drop-with-icmp"]))
                .unwrap();
            current = to;
        }
        at += gap + 1 + random.below(2_500);
    }
    for (flow, ends) in [
        ("one", "from = \"correspondent\"\nto = \"mobile\""),
        ("two", "from = \"mobile\"\nto = \"correspondent\""),
    ] {
        let kind = pick(
            random,
            &["bulk\"", "bulk\"\nsize = \"50 kB\"", "paced\"\nrate = \"64 kbit/s\"\nmessage = \"160 B\""],
        );
        writeln!(text, "[[flow]]\nname = \"{flow}\"\n{ends}\nkind = \"{kind}").unwrap();
    }
    if !text.contains("route_optimization = true") {
        let assist = pick(random, &["none", "default", "replay+lcd-kick", "tcp-cm", "rto-reset"]);
        writeln!(text, "[assist]\nuse = \"{assist}\"").unwrap();
    }
    text
}

#[test]
fn no_world_of_fast_handovers_panics_or_loses_a_packet_in_silence() {
    let mut kept = 0;
    for world in worlds(150, &[]) {
        let text = by_chance(world);
        let scenario =
            Scenario::parse("world.toml", &text, &[]).unwrap_or_else(|errors| panic!("{errors}\n{text}"));
        let observation = Observation { trace: world.is_multiple_of(3), ..Observation::default() };
        let mut simulation = Simulation::new(scenario, "world.toml", 0, observation)
            .unwrap_or_else(|error| panic!("{error}\n{text}"));
        simulation.advance(careof_base::Instant::MAX).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let summary = simulation.finish().unwrap();
        let unbalanced: Vec<_> = summary.conservation.iter().filter(|(_, n)| **n != 0).collect();
        assert!(unbalanced.is_empty(), "{unbalanced:?}\n{text}");
        let sane = |of: &careof_metrics::HandoverSummary| {
            of.ready_at.is_none_or(|ready| of.at <= ready && ready <= of.until)
        };
        assert!(summary.handovers.iter().all(sane), "{:?}\n{text}", summary.handovers);
        // Whatever has happened, the mobile node is reached in the end.
        let ends_well = !text.contains("loss = 0.2") && !text.contains("64 kbit/s\", delay");
        assert!(!ends_well || summary.flows.iter().any(|flow| flow.bytes_delivered > 0), "{text}");
        kept += summary.packets.dropped.get("buffer-full").copied().unwrap_or_default();
    }
    assert!(kept > 0);
}
