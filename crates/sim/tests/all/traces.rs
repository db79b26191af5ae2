//! Worlds whose links go by traces, those of `scenarios/` and, where they are there, recorded ones.

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::balanced;
use careof_base::{Duration, Instant};
use careof_metrics::{LinkSummary, Summary};
use careof_scenario::{NamedIn, Scenario};
use careof_sim::{Observation, Simulation};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn run(scenario: Scenario) -> Summary {
    let mut simulation = Simulation::new(scenario, "test.toml", 0, Observation::default()).unwrap();
    simulation.advance(Instant::MAX).unwrap();
    balanced(simulation.finish().unwrap())
}

fn ready(name: &str, overrides: &[&str]) -> Summary {
    let overrides: Vec<String> = overrides.iter().map(|&text| text.to_owned()).collect();
    let scenario = Scenario::load(&root().join("scenarios").join(name), &overrides);
    run(scenario.unwrap_or_else(|errors| panic!("{errors}")))
}

fn with_files(text: &str, files: &[(&str, String)]) -> Scenario {
    let read = |name: &str, _: NamedIn| {
        let found = files.iter().find(|(file, _)| *file == name);
        found.map(|(_, text)| text.clone()).ok_or_else(|| "there is no such file".to_owned())
    };
    Scenario::parse_with("test.toml", text, &[], &read).unwrap_or_else(|errors| panic!("{errors}"))
}

fn link<'a>(summary: &'a Summary, name: &str) -> &'a LinkSummary {
    summary.links.iter().find(|link| link.name == name).unwrap_or_else(|| panic!("no link {name}"))
}

/// A download over `links`, with what more the scenario has.
fn download(duration: &str, links: &str, more: &str) -> String {
    format!(
        "duration = \"{duration}\"\n[links]\nethernet = \"ethernet-1g\"\n{links}\n[mobility]\nrouting = \"reverse-tunnel\"\n{more}\n[[flow]]\n\
         from = \"correspondent\"\nto = \"mobile\"\ntcp = {{ profile = \"linux\", window = \"1 MiB\" }}\n"
    )
}

#[test]
fn a_run_over_a_constant_trace_is_the_run_over_the_constant_link() {
    let handover = "[[handover]]\nat = \"4 s\"\nfrom = \"wifi\"\nto = \"gsm\"\nstyle = \"break-before-make\"\n\
                    interruption = \"300 ms\"\nqueued = \"drop\"\n";
    let text = |wifi: &str| download("12 s", &format!("gsm = \"gsm-csd\"\nwifi = {wifi}"), handover);
    let constant = with_files(&text("{ rate = \"3 Mbit/s\", delay = \"7 ms\", loss = \"0.5 %\" }"), &[]);
    let file = "time_s,rate_mbit_s,delay_ms,loss\n0,3,7,0.005\n0.7,3,7,0.005\n1.9,3,7,0.005\n".to_owned();
    let traced = with_files(&text("{ trace = \"constant.csv\" }"), &[("constant.csv", file)]);
    assert_ne!(constant.digest(), traced.digest());
    let (constant, traced) = (run(constant), run(traced));
    assert!(link(&constant, "wifi.down").dropped_packets.values().sum::<u64>() > 0);
    assert_eq!(constant.digest, traced.digest);
    assert_eq!(link(&constant, "wifi.down"), link(&traced, "wifi.down"));
}

#[test]
fn a_download_outlives_an_outage_of_a_trace_and_fills_what_is_there() {
    let file = "time_s,rate_mbit_s\n0,8\n5,0\n11,8\n20,8\n".to_owned();
    let text = download("20 s", "cell = { rate = \"1 Mbit/s\", delay = \"20 ms\", trace = \"x.csv\" }", "");
    let text = text.replace("rate = \"1 Mbit/s\", ", "");
    let summary = run(with_files(&text, &[("x.csv", file)]));
    let cell = link(&summary, "cell.down");
    // 8 Mbit/s for 14 s.
    let most = 14_000_000;
    assert!((most / 2..most).contains(&cell.delivered_bytes), "{} of {most}", cell.delivered_bytes);
    let used = cell.utilisation.unwrap();
    assert!((used - cell.delivered_bytes as f64 / 14e6).abs() < 1e-6, "{used}");
}

#[test]
fn every_scenario_with_a_trace_runs_and_moves_data_where_there_is_coverage() {
    for (name, overrides, least_mbit) in [
        ("wifi-walk.toml", &[][..], 300.0),
        ("lte-to-lte.toml", &[], 400.0),
        ("5g-to-lte.toml", &["duration=45 s"], 400.0),
        ("starlink.toml", &["duration=40 s"], 200.0),
        ("ferry.toml", &[], 20.0),
    ] {
        let summary = ready(name, overrides);
        let mbit = summary.flows[0].bytes_delivered as f64 * 8.0 / 1e6;
        assert!(mbit > least_mbit, "{name}: {mbit} Mbit");
        for link in &summary.links {
            assert!(
                link.utilisation.is_none_or(|used| used <= 1.0),
                "{name}: {} {:?}",
                link.name,
                link.utilisation
            );
        }
    }
}

#[test]
fn nothing_comes_over_the_walk_where_it_has_no_coverage() {
    // The walk is without a rate from 60 to 66 s, and nobody leaves it here.
    let alone = ["handover=[]", "duration=66 s"];
    let until = |end: &str| ready("wifi-walk.toml", &[alone[0], &format!("duration={end}")]);
    let (before, after) = (until("60.1 s"), until("66 s"));
    let delivered = |summary: &Summary| link(summary, "wifi.down").delivered_bytes;
    assert_eq!(delivered(&before), delivered(&after));
    assert!(delivered(&ready("wifi-walk.toml", &[alone[0], "duration=80 s"])) > delivered(&after));
}

/// A folder of recorded traces; `None`, with a word about it, where there is none.
fn recorded(folder: &str) -> Option<PathBuf> {
    let path = root().join("../shared/traces").join(folder);
    if !path.is_dir() {
        println!("skipped: there is no {}", path.display());
        return None;
    }
    Some(path)
}

#[test]
fn a_download_fills_mahimahis_recorded_lte_and_no_more() {
    let Some(folder) = recorded("mahimahi") else { return };
    let file = |name: &str| fs::read_to_string(folder.join(name)).unwrap();
    let links = "lte = { preset = \"lte\", trace = \"down\", trace_up = \"up\" }";
    let files = [("down", file("Verizon-LTE-short.down")), ("up", file("Verizon-LTE-short.up"))];
    let scenario = with_files(&download("140 s", links, ""), &files);
    // Mahimahi's own figure for the file, in check_traces.py beside it: 5.028 Mbit/s.
    let down = &scenario.links[0].down;
    assert!((down.rate.bits_per_second() as f64 / 1e6 - 5.028).abs() < 0.001, "{}", down.rate);
    assert_eq!(down.bits_by(Instant::ZERO + Duration::from_secs(14)) % 12_000, 0);
    let summary = run(scenario);
    let lte = link(&summary, "lte.down");
    let used = lte.utilisation.unwrap();
    // A sender without loss but of a full queue keeps a queue of 100 packets from running dry most of the time.
    assert!((0.75..=1.0).contains(&used), "{used}");
}

#[test]
fn paired_walks_out_of_wifi_carry_on_over_the_cellular_link_of_the_same_place() {
    let Some(folder) = recorded("wifi-cellular") else { return };
    // The handover comes when a walk has had two dead seconds in a row, or at 60 s.
    for walk in 1..=5 {
        let rates = |kind: &str| -> Vec<f64> {
            let text = fs::read_to_string(folder.join(format!("7_{walk}_{kind}.csv"))).unwrap();
            let bytes = |line: &str| line.split_once(',').unwrap().1.trim().parse::<f64>().unwrap();
            text.lines().map(|line| bytes(line) * 8.0 / 1e6).collect()
        };
        let trace = |rates: &[f64]| {
            let rows = rates.iter().enumerate().map(|(second, rate)| format!("{second},{rate}\n"));
            format!("time_s,rate_mbit_s\n{}", rows.collect::<String>())
        };
        let (wifi, cellular) = (rates("wifi"), rates("cellular"));
        let dead = wifi.windows(2).position(|pair| pair[0] < 1.0 && pair[1] < 1.0).unwrap_or(58) + 2;
        let links = "wifi = { preset = \"wifi-good\", trace = \"wifi\" }\nlte = { preset = \"lte\", trace = \"lte\" }";
        let handover = format!(
            "[[handover]]\nat = \"{dead} s\"\nfrom = \"wifi\"\nto = \"lte\"\nstyle = \"make-before-break\"\n"
        );
        let files = [("wifi", trace(&wifi)), ("lte", trace(&cellular))];
        let summary = run(with_files(&download("100 s", links, &handover), &files));
        let (wifi_link, lte_link) = (link(&summary, "wifi.down"), link(&summary, "lte.down"));
        assert!(wifi_link.utilisation.unwrap() < 1.0 && lte_link.utilisation.unwrap() < 1.0);
        let most: f64 = cellular[dead..].iter().sum();
        let carried = lte_link.delivered_bytes as f64 * 8.0 / 1e6;
        println!("walk {walk}: {carried} of {most} Mbit");
        // A sender without assists may sit on a timer that has backed off on the dying Wi-Fi.
        assert!(carried < most && carried > most / 3.0, "walk {walk}: {carried} of {most} Mbit");
    }
}
