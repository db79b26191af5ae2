//! Bursts, voice and films across handovers: what is sent is what the law says, and what people hear and see is what the
//! path did.

use core::time::Duration;

use careof_metrics::{Summary, summary_json};
use careof_plan::CaptureNodes;
use careof_scenario::Scenario;
use careof_sim::{Observation, Simulation};

use crate::common::{captured_at, finish};

/// A handover with a gap of 400 ms between two like links.
const HANDOVER: &str = r#"
duration = "20 s"
[links]
one = { rate = "8 Mbit/s", delay = "15 ms" }
two = { rate = "8 Mbit/s", delay = "15 ms" }
ethernet = { rate = "1 Gbit/s", delay = "10 ms" }
[mobility]
[[handover]]
at = "10 s"
from = "one"
to = "two"
style = "break-before-make"
interruption = "400 ms"
queued = "drop"
[[flow]]
name = "it"
from = "correspondent"
to = "mobile"
"#;

fn run(flow: &str, overrides: &[&str]) -> Summary {
    let overrides: Vec<String> = overrides.iter().map(|o| (*o).to_owned()).collect();
    let text = format!("{HANDOVER}{flow}");
    let scenario = Scenario::parse("x.toml", &text, &overrides).unwrap_or_else(|errors| panic!("{errors}"));
    finish(Simulation::new(scenario, "x.toml", 0, Observation::default()).unwrap()).0
}

#[test]
fn a_call_is_heard_whole_on_a_path_that_stays() {
    for version in ["mobile-ipv4", "mobile-ipv6"] {
        let protocol = format!("mobility.protocol={version}");
        let summary = run("kind = \"voice\"\nstart = \"3 s\"\nstop = \"9 s\"", &["handover=[]", &protocol]);
        let [call] = &summary.voice[..] else { panic!("{}", summary_json(&summary)) };
        assert_eq!(
            (call.packets_sent, call.packets_received, call.packets_due),
            (300, 300, 300),
            "{version}"
        );
        assert_eq!((call.packets_lost, call.packets_late, call.longest_gap), (0, 0, None), "{version}");
        // 25 ms of propagation, and 200 B and more at 8 Mbit/s.
        let delay = call.delay_mean.unwrap();
        assert!((Duration::from_micros(25_200)..Duration::from_micros(25_400)).contains(&delay), "{delay:?}");
        assert_eq!(call.mouth_to_ear, Some(delay + Duration::from_millis(80)), "{version}");
        assert!(call.mos.unwrap() > 4.3, "{version}: {:?}", call.mos);
        let [of_delay, of_jitter] = &summary.histograms[..] else { panic!("{version}") };
        assert_eq!((of_delay.samples, of_jitter.samples), (300, 299));
        assert_eq!(summary.flows[0].bytes_delivered, 300 * 160);
    }
}

#[test]
fn a_handover_is_heard_as_a_gap_as_long_as_the_packets_it_cost() {
    let summary = run("kind = \"voice\"", &[]);
    let [call] = &summary.voice[..] else { panic!("{}", summary_json(&summary)) };
    let handover = &summary.handovers[0];
    let [heard] = &call.handovers[..] else { panic!("{call:?}") };
    assert_eq!(heard.at, handover.at);
    assert_eq!(u64::from(heard.packets_missing > 0), call.bursts);
    assert_eq!(call.packets_lost + call.packets_late, heard.packets_missing, "nothing else cost any");
    assert_eq!(heard.longest_gap, Duration::from_millis(20) * heard.packets_missing as u32);
    assert_eq!(call.longest_gap, Some(heard.longest_gap));
    // Lost is what was sent while there was no path, or was under way: the registration takes a round trip more.
    let gap = handover.ready_at.unwrap() - handover.at;
    assert!(gap > Duration::from_millis(400), "{gap:?}");
    let off = heard.longest_gap.abs_diff(gap);
    assert!(
        off < Duration::from_millis(100),
        "{:?} for a path that was missing for {gap:?}",
        heard.longest_gap
    );
    assert_eq!(call.packets_sent, summary.flows[0].segments_sent);
}

#[test]
fn a_path_that_is_longer_for_good_is_heard_again_after_a_second() {
    let summary = run("kind = \"voice\"", &["links.two.delay=300 ms", "handover.interruption=0 s"]);
    let [call] = &summary.voice[..] else { panic!("{}", summary_json(&summary)) };
    assert_eq!(call.restarts, 1, "{call:?}");
    assert!(call.longest_gap.unwrap() > Duration::from_secs(1), "{call:?}");
    assert!(call.packets_late >= 45, "{call:?}");
}

#[test]
fn a_film_stands_still_when_the_path_is_gone_for_longer_than_the_buffer_lasts() {
    let flow = "kind = \"video\"\nsegment = \"1 s\"\nbuffer = \"4 s\"";
    let ends = ["flow.from=mobile", "flow.to=correspondent", "duration=40 s"];
    let short = run(flow, &ends);
    let [seen] = &short.video[..] else { panic!("{}", summary_json(&short)) };
    assert_eq!(seen.rebufferings, 0, "{seen:?}");
    assert!(seen.startup_delay.is_some() && seen.mean_rate_bps.unwrap() > 1e6, "{seen:?}");
    assert!(seen.played > Duration::from_secs(35), "{seen:?}");
    let long = run(flow, &[ends[0], ends[1], ends[2], "handover.interruption=9 s"]);
    let [seen] = &long.video[..] else { panic!("{}", summary_json(&long)) };
    assert!(seen.rebufferings >= 1 && seen.rebuffering > Duration::from_secs(4), "{seen:?}");
    let all = seen.startup_delay.unwrap() + seen.played + seen.rebuffering;
    assert!(all <= Duration::from_secs(40), "{all:?}");
    let delivered = &long.flows[0];
    assert_eq!((delivered.name.as_str(), delivered.from.as_str()), ("it", "correspondent"));
    assert_eq!(long.flows[1].bytes_delivered % 400, 0, "requests are whole");
}

#[test]
fn either_way_of_adaptation_and_either_transport_plays_a_film_to_its_end() {
    for adaptation in ["throughput", "buffer"] {
        for transport in ["", "quic = \"cubic\""] {
            let flow = format!(
                "kind = \"video\"\nsegment = \"1 s\"\nlength = \"12 s\"\nbuffer = \"6 s\"\nadaptation = \"{adaptation}\"\n{transport}"
            );
            let summary = run(&flow, &["flow.from=mobile", "flow.to=correspondent", "duration=40 s"]);
            let [seen] = &summary.video[..] else { panic!("{}", summary_json(&summary)) };
            assert_eq!(
                (seen.segments, seen.played.as_secs()),
                (12, 12),
                "{adaptation} {transport}: {seen:?}"
            );
            assert!(summary.flows[0].complete, "{adaptation} {transport}");
        }
    }
}

#[test]
fn a_film_that_is_all_there_is_left_when_it_stops() {
    for transport in ["", "quic = \"cubic\""] {
        let flow = format!(
            "kind = \"video\"\nsegment = \"1 s\"\nlength = \"9 s\"\nrates = [\"1 Mbit/s\"]\nstop = \"6 s\"\n{transport}"
        );
        let summary = run(&flow, &["flow.from=mobile", "flow.to=correspondent", "handover=[]"]);
        let [seen] = &summary.video[..] else { panic!("{}", summary_json(&summary)) };
        let began = seen.startup_delay.unwrap();
        assert_eq!((seen.segments, summary.flows[0].complete), (9, true), "{transport}: {seen:?}");
        // It is opened when there is a path, and established a round trip later.
        assert!(seen.played + began < Duration::from_secs(6), "{transport}: {seen:?}");
        assert_eq!(seen.played + seen.buffered, Duration::from_secs(9), "{transport}: {seen:?}");
    }
}

#[test]
fn bursts_of_some_time_have_the_rate_they_were_given() {
    let flow = "kind = \"on-off\"\non = \"50 ms\"\nrate = \"64 kbit/s\"\nmessage = \"160 B\"\npause = \"50 ms\"\nstart = \"2 s\"";
    let summary = run(flow, &["handover=[]"]);
    // Half of 18 s at 64 kbit/s, less what the handshake took and what is on its way at the end: not 100 ms in all.
    let delivered = summary.flows[0].bytes_delivered;
    assert!((71_200..=72_160).contains(&delivered), "{delivered}");
}

#[test]
fn the_same_seed_gives_the_same_bursts_and_another_one_others() {
    let flow = "kind = \"on-off\"\nburst = \"30 kB\"\nburst_law = \"pareto\"\npause = \"500 ms\"\npause_law = \"exponential\"";
    let [first, again, other] = ["seed=1", "seed=1", "seed=2"].map(|seed| run(flow, &[seed]));
    assert_eq!(summary_json(&first), summary_json(&again));
    assert_ne!(first.flows[0].bytes_delivered, other.flows[0].bytes_delivered);
    assert!(first.flows[0].bytes_delivered > 100_000);
}

#[test]
fn packets_of_a_call_are_captured_as_rtp() {
    let directory = tempfile::tempdir().unwrap();
    let text = format!("{HANDOVER}kind = \"voice\"\nstop = \"8 s\"");
    let scenario = Scenario::parse("x.toml", &text, &[]).unwrap_or_else(|errors| panic!("{errors}"));
    let observation = captured_at(directory.path(), &scenario, &CaptureNodes::FlowEnds);
    let (summary, _) = finish(Simulation::new(scenario, "x.toml", 0, observation).unwrap());
    let file = directory.path().join("mobile.pcapng");
    // Read as RTP by somebody else: the codec, and no packet out of its place.
    let shown = std::process::Command::new("tshark")
        .args(["-r", file.to_str().unwrap(), "-d", "udp.port==5001,rtp", "-Y", "rtp", "-T", "fields"])
        .args(["-e", "rtp.p_type", "-e", "rtp.seq", "-e", "rtp.timestamp"])
        .output();
    let Ok(shown) = shown else { return };
    let rows: Vec<Vec<u64>> = String::from_utf8(shown.stdout)
        .unwrap()
        .lines()
        .map(|line| line.split('\t').map(|field| field.parse().unwrap()).collect())
        .collect();
    assert_eq!(rows.len() as u64, summary.voice[0].packets_received);
    assert!(rows.iter().all(|row| row[0] == 0), "PCMU");
    for pair in rows.windows(2) {
        assert_eq!((pair[1][1] + 65_536 - pair[0][1]) % 65_536, 1);
        assert_eq!((pair[1][2] + (1 << 32) - pair[0][2]) % (1 << 32), 160);
    }
}

/// `cargo test -p careof-sim --test all ready_scenario_of_workloads -- --nocapture` prints its summary.
#[test]
fn the_ready_scenario_of_workloads_is_heard_and_seen() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/workloads.toml");
    let scenario =
        Scenario::load(std::path::Path::new(path), &[]).unwrap_or_else(|errors| panic!("{errors}"));
    let (summary, _) =
        finish(Simulation::new(scenario, "workloads.toml", 0, Observation::default()).unwrap());
    println!("{}", summary_json(&summary));
    assert_eq!((summary.voice.len(), summary.video.len(), summary.histograms.len()), (2, 1, 10));
    for call in &summary.voice {
        assert_eq!(call.packets_sent, summary.flows[0].segments_sent);
        assert_eq!(call.handovers.len(), 2);
        assert!(call.handovers[0].packets_missing > call.handovers[1].packets_missing, "{call:?}");
    }
    assert!(summary.video[0].played > Duration::from_secs(40));
}
