//! Several links at once in figures: those of the paper on SHAKE, and the pairs of paths that a bonding VPN has published.
//!
//! They print tables and hold nothing: `cargo test -p careof-sim --test all multipath_tables -- --ignored --nocapture`, with `SEEDS=30` for
//! as many runs of each point, of which the median counts. `RULES=earliest,dq` has the profiles with these rules as well, with and without
//! (in brackets) a resequencer, `PROFILE=rtt_40` one of them, `REORDER=1` jitter that changes the order within a path, `TCP=bbr` another TCP.

use std::path::Path;

use crate::common::finish;
use careof_scenario::Scenario;
use careof_sim::{Observation, Simulation};

fn seeds() -> u64 {
    std::env::var("SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(3)
}

/// Goodput of all flows together in kbit/s, median of the seeds.
fn goodput(scenario: impl Fn(&[String]) -> Scenario, words: &[String]) -> f64 {
    let mut all: Vec<f64> = (1..=seeds())
        .map(|seed| {
            let words: Vec<String> = words.iter().cloned().chain([format!("seed={seed}")]).collect();
            let simulation = Simulation::new(scenario(&words), "x.toml", 0, Observation::default()).unwrap();
            let (summary, _) = finish(simulation);
            assert!(summary.conservation.values().all(|difference| *difference == 0), "{words:?}");
            summary.flows.iter().map(|flow| flow.goodput_bps).sum::<f64>() / 1000.0
        })
        .collect();
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}

fn shipped(name: &str, words: &[String]) -> Scenario {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/shake").join(name);
    Scenario::load(&file, words).unwrap_or_else(|errors| panic!("{errors}"))
}

const LINKS: [&str; 3] = ["first", "second", "third"];

/// The first so many of the three links, with so much jitter.
fn links(count: usize, jitter_ms: u64) -> Vec<String> {
    let mut words = Vec::new();
    if jitter_ms > 0 {
        let jitter = |link| format!("links.{link}.jitter={{ spread = \"{jitter_ms} ms\", reorder = true }}");
        words.extend(LINKS.map(jitter));
    }
    let used: Vec<String> = LINKS[..count].iter().map(|link| format!("\"{link}\"")).collect();
    // One path is a rule that names one: the tunnel and its headers stay.
    if count == 1 {
        words.push("multipath.rules=[{ paths = [\"first\"] }]".to_owned());
    } else {
        words.push(format!("multipath.paths=[{}]", used.join(", ")));
    }
    words
}

fn with(mut words: Vec<String>, more: &[&str]) -> Vec<String> {
    words.extend(more.iter().map(|word| (*word).to_owned()));
    words
}

#[test]
#[ignore = "prints a table"]
fn the_papers_emulated_network() {
    for rate in ["64", "128", "384"] {
        let file = format!("emulated-{rate}.toml");
        for dispersion in ["d", "dq"] {
            for jitter in [0, 50, 100] {
                let word = format!("multipath.dispersion={dispersion}");
                let points: Vec<String> = (1..=3)
                    .map(|count| goodput(|w| shipped(&file, w), &with(links(count, jitter), &[&word])))
                    .map(|kbit| format!("{kbit:6.0}"))
                    .collect();
                println!("{rate:>4} kbit/s {dispersion:>2} jitter {jitter:>3}: {}", points.join(" "));
            }
        }
    }
}

#[test]
#[ignore = "prints a table"]
fn the_papers_emulated_network_with_what_its_authors_left_open() {
    for (name, words) in [
        ("paper", &[][..]),
        ("small buffer", &["flow.tcp.window=65535 B", "flow.tcp.window_scaling=false"]),
        ("resequencer", &["multipath.resequencer=true"]),
        ("uplink", &["multipath.uplink=dispersed"]),
        ("both", &["multipath.resequencer=true", "multipath.uplink=dispersed"]),
        ("auto", &["multipath.dispersion=auto", "multipath.resequencer=true", "multipath.uplink=dispersed"]),
        ("per-flow", &["multipath.dispersion=per-flow"]),
        ("linux", &["flow.tcp=linux"]),
        ("linux, both", &["flow.tcp=linux", "multipath.resequencer=true", "multipath.uplink=dispersed"]),
    ] {
        for jitter in [0, 50, 100] {
            let points: Vec<String> = (1..=3)
                .map(|count| goodput(|w| shipped("emulated-384.toml", w), &with(links(count, jitter), words)))
                .map(|kbit| format!("{kbit:6.0}"))
                .collect();
            println!("{name:>14} jitter {jitter:>3}: {}", points.join(" "));
        }
    }
}

#[test]
#[ignore = "prints a table"]
fn several_flows_at_once() {
    let flow = |n: usize| {
        format!(
            "{{ name = \"f{n}\", from = \"correspondent\", to = \"mobile\", start = \"3 s\", \
             tcp = {{ profile = \"sack\", window = \"256000 B\", window_scaling = true }} }}"
        )
    };
    for file in ["emulated-384.toml", "foma.toml"] {
        for jitter in [0, 100] {
            let points: Vec<String> = (1..=4)
                .map(|count| {
                    let flows: Vec<String> = (1..=count).map(flow).collect();
                    let word = format!("flow=[{}]", flows.join(", "));
                    goodput(|w| shipped(file, w), &with(links(3, jitter), &[&word]))
                })
                .map(|kbit| format!("{kbit:6.0}"))
                .collect();
            println!("{file} jitter {jitter:>3}, flows 1 to 4: {}", points.join(" "));
        }
    }
    let foma: Vec<String> = (1..=3)
        .map(|count| format!("{:6.0}", goodput(|w| shipped("foma.toml", w), &links(count, 0))))
        .collect();
    println!("foma.toml, links 1 to 3: {}", foma.join(" "));
}

/// Name, and both paths: Mbit/s, one-way delay and its standard deviation in milliseconds, loss in per cent. mp0rta/mqvpn,
/// docs/report/2026-06-18-reorder-only-datagram-multipath-connect-ip-en.md, commit 81dc060.
type Profile = (&'static str, [(u32, u32, u32, f64); 2]);
const PROFILES: [Profile; 16] = [
    ("baseline", [(50, 20, 0, 0.0), (50, 20, 0, 0.0)]),
    ("rtt_40", [(50, 20, 0, 0.0), (50, 40, 0, 0.0)]),
    ("rtt_70", [(50, 20, 0, 0.0), (50, 70, 0, 0.0)]),
    ("rtt_120", [(50, 20, 0, 0.0), (50, 120, 0, 0.0)]),
    ("rtt_320", [(50, 20, 0, 0.0), (50, 320, 0, 0.0)]),
    ("jit_5", [(50, 20, 5, 0.0), (50, 20, 5, 0.0)]),
    ("jit_20", [(50, 20, 20, 0.0), (50, 20, 20, 0.0)]),
    ("loss_05", [(50, 20, 0, 0.5), (50, 20, 0, 0.5)]),
    ("loss_2", [(50, 20, 0, 2.0), (50, 20, 0, 2.0)]),
    ("bw_4to1", [(50, 20, 0, 0.0), (12, 20, 0, 0.0)]),
    ("bw_10to1", [(100, 20, 0, 0.0), (10, 20, 0, 0.0)]),
    ("dual_lte", [(40, 30, 5, 0.5), (25, 45, 8, 0.5)]),
    ("fiber_lte", [(300, 8, 0, 0.0), (30, 40, 8, 0.5)]),
    ("lte_starlink", [(40, 35, 8, 0.0), (100, 50, 25, 1.0)]),
    ("lte_geo", [(40, 35, 0, 0.0), (20, 320, 20, 0.5)]),
    ("congested", [(20, 50, 20, 2.0), (15, 60, 25, 2.0)]),
];

#[test]
#[ignore = "prints a table"]
fn the_sixteen_profiles() {
    let only = std::env::var("PROFILE").ok();
    let reorder = std::env::var("REORDER").is_ok();
    let congestion = std::env::var("TCP").unwrap_or_else(|_| "cubic".to_owned());
    for (name, paths) in PROFILES.into_iter().filter(|(name, _)| only.as_ref().is_none_or(|one| one == name))
    {
        let link = |(rate, delay, jitter, loss): (u32, u32, u32, f64)| {
            let jitter = match jitter {
                0 => String::new(),
                ms => format!(
                    "jitter = {{ kind = \"normal\", deviation = \"{ms} ms\", reorder = {reorder} }}, "
                ),
            };
            format!(
                "{{ rate = \"{rate} Mbit/s\", delay = \"{delay} ms\", {jitter}loss = \"{loss} %\", queue = \"1000 packets\" }}"
            )
        };
        let text = format!(
            "duration = \"33 s\"\n[links]\nethernet = \"ethernet-1g\"\na = {}\nb = {}\n[mobility]\n[multipath]\n\
             [[flow]]\nfrom = \"correspondent\"\nto = \"mobile\"\nstart = \"3 s\"\ntcp = {{ profile = \"linux\", congestion = {congestion:?} }}\n",
            link(paths[0]),
            link(paths[1])
        );
        let parse = |words: &[String]| {
            Scenario::parse("x.toml", &text, words).unwrap_or_else(|errors| panic!("{errors}"))
        };
        let of = |words: &[&str]| goodput(parse, &with(Vec::new(), words)) / 1000.0;
        let [a, b] = ["a", "b"].map(|link| of(&[&format!("multipath.rules=[{{ paths = [\"{link}\"] }}]")]));
        let auto = of(&[]);
        let (best, sum) = (a.max(b), a + b);
        print!(
            "{name:13} {a:6.1} {b:6.1} auto {auto:6.1} = {:.2} of the best, {:.2} of the sum",
            auto / best,
            auto / sum
        );
        // Four rules more make a long run.
        let rules = std::env::var("RULES").unwrap_or_default();
        for rule in rules.split(',').filter(|rule| !rule.is_empty()) {
            let word = format!("multipath.dispersion={rule}");
            print!("; {rule} {:.1}", of(&[&word]));
            print!(" ({:.1})", of(&[&word, "multipath.resequencer=false"]));
        }
        println!();
    }
}
