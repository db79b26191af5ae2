//! Links that go by a trace: which file, what comes from it, and what is wrong with it.

use std::fs;
use std::path::{Path, PathBuf};

use careof_base::{DataRate, Duration, Instant, Probability};
use careof_link::Loss;
use careof_scenario::{Link, NamedIn, Scenario, ScenarioErrors};

/// A walk of 20 s: 20 Mbit/s, then 5, then nothing.
const WALK: &str = "# made up\ntime_s,rate_mbit_s,delay_ms\n0,20,3\n5,5,9\n10,0,9\n";
const LOSSES: &str = "time_s,loss\n0,0\n9,0.3\n";
const STAMPS: &str = "1\n1\n3\n4\n";

fn files(name: &str, _: NamedIn) -> Result<String, String> {
    match name {
        "walk.csv" | "walks/walk.csv" => Ok(WALK.to_owned()),
        "losses.csv" => Ok(LOSSES.to_owned()),
        "cell.down" => Ok(STAMPS.to_owned()),
        _ => Err("there is no such file".to_owned()),
    }
}

fn parse(link: &str, overrides: &[&str]) -> Result<Scenario, ScenarioErrors> {
    let text = format!(
        "duration = \"60 s\"\n[links]\nwifi = {link}\n[mobility]\n[[flow]]\nfrom = \"correspondent\"\nto = \"mobile\"\n"
    );
    let overrides: Vec<String> = overrides.iter().map(|&text| text.to_owned()).collect();
    Scenario::parse_with("scenarios/x.toml", &text, &overrides, &files)
}

fn link(link: &str) -> Link {
    parse(link, &[]).unwrap_or_else(|errors| panic!("{errors}")).links[0].clone()
}

fn error(link: &str) -> String {
    parse(link, &[]).expect_err(link).to_string()
}

fn megabits(rate: u64) -> DataRate {
    DataRate::from_megabits_per_second(rate)
}

#[test]
fn what_a_trace_says_comes_instead_of_what_the_preset_says() {
    let link = link("{ preset = \"wifi-good\", trace = \"walk.csv\" }");
    for direction in [&link.down, &link.up] {
        let trace = direction.trace.as_ref().unwrap();
        assert_eq!(trace.period(), Duration::from_secs(15));
        // 20 Mbit/s for 5 s, 5 for 5 s and 0 for 5 s; 3 ms for 5 s, 9 ms for 10 s.
        assert_eq!(direction.rate, DataRate::from_bits_per_second(8_333_333));
        assert_eq!(direction.delay, Duration::from_millis(9));
        assert_eq!(direction.bits_by(Instant::from_secs(20)), 225_000_000);
        assert!(matches!(direction.loss, Loss::Bernoulli { .. }), "the loss of the preset stays");
    }
    assert_eq!(link.traces[0], link.traces[1]);
    assert_eq!(link.traces[0].as_ref().unwrap().file, "walk.csv");
}

#[test]
fn a_trace_with_all_of_it_needs_no_preset_and_the_directions_may_differ() {
    let link = link(
        "{ trace = \"walk.csv\", trace_up = \"cell.down\", delay_up = \"7 ms\", queue = \"9 packets\" }",
    );
    assert_eq!(link.up.rate, megabits(12));
    assert_eq!(link.up.delay, Duration::from_millis(7));
    assert_eq!(link.down.delay, Duration::from_millis(9));
    assert_eq!(link.up.queue, link.down.queue);
}

#[test]
fn one_direction_can_be_without() {
    let down =
        link("{ preset = \"lte\", trace = \"walk.csv\", trace_up = \"none\", rate_up = \"3 Mbit/s\" }");
    assert_eq!((down.up.rate, &down.up.trace, &down.traces[1]), (megabits(3), &None, &None));
    assert!(down.down.trace.is_some());
    let up = link("{ rate = \"3 Mbit/s\", delay = \"5 ms\", trace_up = \"walk.csv\" }");
    assert_eq!((up.down.rate, &up.down.trace), (megabits(3), &None));
    assert!(up.up.trace.is_some());
}

#[test]
fn losses_become_their_mean_for_who_asks_for_one_number() {
    let link = link("{ preset = \"lte\", trace = \"losses.csv\" }");
    assert_eq!((link.down.rate, link.down.delay), (megabits(12), Duration::from_micros(17_500)));
    assert_eq!(link.down.loss, Loss::Bernoulli { p: Probability::new(0.15).unwrap() });
}

#[test]
fn a_run_can_begin_anywhere_in_it() {
    let link = link("{ preset = \"lte\", trace = { file = \"walk.csv\", start = \"22 s\" } }");
    let trace = link.down.trace.as_ref().unwrap();
    assert_eq!(trace.start(), Duration::from_secs(7));
    assert_eq!(trace.bits_by(Instant::from_secs(4)), Some(15_000_000));
}

#[test]
fn the_digest_covers_the_content_and_not_the_folder() {
    let digest = |link: &str| parse(link, &[]).unwrap().digest();
    let walk = digest("{ preset = \"lte\", trace = \"walk.csv\" }");
    assert_eq!(walk, digest("{ preset = \"lte\", trace = { file = \"walks/walk.csv\", start = \"15 s\" } }"));
    assert_ne!(walk, digest("\"lte\""));
    let other =
        |name: &str, _: NamedIn| files(name, NamedIn::Text).map(|text| text.replace("5,5,9", "5,5,8"));
    let text =
        "duration = \"60 s\"\n[links]\nwifi = { preset = \"lte\", trace = \"walk.csv\" }\n[mobility]\n";
    let [one, two] = [
        Scenario::parse_with("x", text, &[], &files).unwrap(),
        Scenario::parse_with("x", text, &[], &other).unwrap(),
    ];
    assert_ne!(one.digest(), two.digest());
}

#[test]
fn a_value_said_twice_is_refused() {
    assert_eq!(
        error("{ trace = \"walk.csv\", rate = \"1 Mbit/s\" }"),
        "error: scenarios/x.toml:3:37: links.wifi.rate: found \"1 Mbit/s\"; the trace of this direction has its rate\n  \
         hint: leave one of them out; trace_up = \"none\" keeps the direction up without a trace"
    );
    assert!(error("{ trace = \"walk.csv\", delay_up = \"1 ms\" }").contains("links.wifi.delay_up"));
    assert!(error("{ preset = \"lte\", trace = \"losses.csv\", loss = 0.1 }").contains("has its loss"));
    assert!(
        error("{ trace = \"walk.csv\", jitter = \"4 ms\" }")
            .contains("lower the jitter to \"3 ms\", the least")
    );
}

#[test]
fn what_is_missing_is_named() {
    let losses = error("{ trace = \"losses.csv\" }");
    assert!(
        losses.contains("links.wifi.rate: found nothing; the direction down has its rate neither"),
        "{losses}"
    );
    assert!(error("{ trace = \"cell.down\" }").contains("links.wifi.delay: found nothing"));
    assert!(error("{ trace_up = \"walk.csv\" }").contains("the direction down"));
    assert!(error("{ trace = { start = \"1 s\" } }").contains("links.wifi.trace.file: found nothing"));
    assert_eq!(
        error("{ preset = \"lte\", trace = \"wlak.csv\" }"),
        "error: scenarios/x.toml:3:34: links.wifi.trace: found \"wlak.csv\"; there is no such file\n  \
         hint: its name counts from the folder of the scenario"
    );
}

#[test]
fn a_mistake_in_the_file_is_told_with_file_line_and_value() {
    let broken = |_: &str, _: NamedIn| Ok("time_s,rate_mbit_s\n0,5\n1,-3\n".to_owned());
    let text =
        "duration = \"60 s\"\n[links]\nwifi = { preset = \"lte\", trace = \"t/walk.csv\" }\n[mobility]\n";
    assert_eq!(
        Scenario::parse_with("x.toml", text, &[], &broken).unwrap_err().to_string(),
        "error: x.toml:3:34: links.wifi.trace: found \"-3\" as rate_mbit_s in t/walk.csv, line 3; it is a number from 0 \
         to 1000000"
    );
}

#[test]
fn what_is_no_file_with_a_length_is_not_read() {
    let text = "duration = \"60 s\"\n[links]\nwifi = { preset = \"lte\", trace = \"FILE\" }\n[mobility]\n";
    for (file, told) in [
        ("/dev/zero", "a trace is a file"),
        ("/proc/self/status", "found nothing"),
        ("/proc/kmsg", "found nothing"),
    ] {
        let error =
            Scenario::parse_beside("x.toml", &text.replace("FILE", file), &[]).unwrap_err().to_string();
        assert!(error.contains(told), "{file}: {error}");
    }
}

#[test]
fn a_text_alone_names_no_files() {
    let text =
        "duration = \"60 s\"\n[links]\nwifi = { preset = \"lte\", trace = \"walk.csv\" }\n[mobility]\n";
    let error = Scenario::parse("x.toml", text, &[]).unwrap_err().to_string();
    assert!(error.contains("no file can be read here"), "{error}");
}

#[test]
fn names_count_from_the_folder_of_the_scenario_and_those_of_overrides_from_here() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("traces-beside");
    fs::create_dir_all(folder.join("traces")).unwrap();
    fs::write(folder.join("traces/walk.csv"), WALK).unwrap();
    let file = folder.join("x.toml");
    let text = "duration = \"60 s\"\n[links]\nwifi = { preset = \"lte\", trace = \"traces/walk.csv\" }\n[mobility]\n";
    fs::write(&file, text).unwrap();
    let beside = Scenario::load(&file, &[]).unwrap_or_else(|errors| panic!("{errors}"));

    let absolute = folder.join("traces/walk.csv");
    let given = |path: &Path| vec![format!("links.wifi.trace={}", path.display())];
    let by_override = Scenario::load(&file, &given(&absolute)).unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!(beside.digest(), by_override.digest());
    let error = Scenario::load(&file, &given(Path::new("traces/walk.csv"))).unwrap_err().to_string();
    assert!(error.contains("there is no such file") && error.contains("the folder you are in"), "{error}");
    assert!(Scenario::load(&file, &given(&folder)).unwrap_err().to_string().contains("a trace is a file"));
}
