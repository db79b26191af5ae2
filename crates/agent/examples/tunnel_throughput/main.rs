//! How many bits a second go through a tunnel between two agents on this machine.
//!
//! One TCP connection of the kernel, through home agent and mobile node in user space, beside what the kernel
//! alone does and beside the simplest forwarder in user space, turn by turn in one run:
//!
//! - `router`: sender, veth, router, veth, receiver; the kernel forwards.
//! - `tunnel`: sender, veth, home agent, veth, mobile node, registered, each driven by a thread; acknowledgements
//!   come back through the tunnel.
//! - `tunnel-plain`: the same, with tunnel devices that have no offloads.
//! - `forwarder`: sender, TUN device, one thread that copies packet by packet, TUN device, receiver.
//!
//! Run it with `cargo run --release -p careof-agent --example tunnel_throughput -- [--json] [--seconds S]
//! [--rounds N] [--only CASE]`.

mod carriers;
mod error;
mod forwarder;
mod topology;
mod transfer;

use std::process::ExitCode;

use careof_base::Duration;
use careof_lab::Realm;
use error::Error;
use topology::Case;
use transfer::Measured;

struct Options {
    json: bool,
    seconds: f64,
    rounds: usize,
    only: Option<Case>,
}

fn main() -> ExitCode {
    let options = match parse(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(problem) => {
            eprintln!(
                "error: {problem}\n  hint: --json, --seconds S, --rounds N, --only router|tunnel|tunnel-plain|forwarder"
            );
            return ExitCode::from(2);
        }
    };
    match measure(&options) {
        Ok(results) if options.json => print_json(&results),
        Ok(results) => print_table(&results),
        Err(error) => {
            eprintln!("error: {error}");
            if let Some(remedy) = error.remedy() {
                eprintln!("  hint: {remedy}");
            }
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Options, String> {
    let mut options = Options { json: false, seconds: 2.0, rounds: 3, only: None };
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or_else(|| format!("{argument} needs a value"));
        match argument.as_str() {
            "--json" => options.json = true,
            "--seconds" => {
                let text = value()?;
                options.seconds = text
                    .parse()
                    .ok()
                    .filter(|seconds: &f64| (0.1..=3600.0).contains(seconds))
                    .ok_or_else(|| format!("{text:?} is no time in seconds"))?;
            }
            "--rounds" => {
                let text = value()?;
                options.rounds =
                    text.parse().ok().filter(|&n| n > 0).ok_or_else(|| format!("{text:?} is no number"))?;
            }
            "--only" => {
                let text = value()?;
                let named = Case::ALL.into_iter().find(|case| case.name() == text);
                options.only = Some(named.ok_or_else(|| format!("{text:?} is no case"))?);
            }
            other => return Err(format!("unknown argument {other:?}")),
        }
    }
    Ok(options)
}

/// The cases in turn, round by round, so that what else the machine does meets them all.
fn measure(options: &Options) -> Result<Vec<(Case, Vec<Measured>)>, Error> {
    let realm = Realm::enter()?;
    let cases = Case::ALL.into_iter().filter(|case| options.only.is_none_or(|only| only == *case));
    let mut results: Vec<_> = cases.map(|case| (case, Vec::new())).collect();
    for _ in 0..options.rounds {
        for (case, measured) in &mut results {
            let mut topology = case.build(realm)?;
            measured.push(transfer::run(&mut topology, Duration::from_secs_f64(options.seconds))?);
        }
    }
    Ok(results)
}

/// The round in the middle.
fn median(measured: &[Measured]) -> Option<&Measured> {
    let mut sorted: Vec<_> = measured.iter().collect();
    sorted.sort_by(|a, b| a.gigabits_per_second.total_cmp(&b.gigabits_per_second));
    sorted.get(sorted.len() / 2).copied()
}

fn rate_of(results: &[(Case, Vec<Measured>)], case: Case) -> Option<f64> {
    let (_, measured) = results.iter().find(|(found, _)| *found == case)?;
    Some(median(measured)?.gigabits_per_second)
}

fn print_table(results: &[(Case, Vec<Measured>)]) {
    println!(
        "{:<14}{:>9}{:>12}{:>15}{:>18}  rounds, Gbit/s",
        "case", "Gbit/s", "of router", "of forwarder", "retransmissions"
    );
    for (case, measured) in results {
        let Some(middle) = median(measured) else { continue };
        let ratio = |to| {
            let rate = rate_of(results, to).map(|rate| middle.gigabits_per_second / rate);
            rate.map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}"))
        };
        let rounds: Vec<_> = measured.iter().map(|one| format!("{:.2}", one.gigabits_per_second)).collect();
        println!(
            "{:<14}{:>9.2}{:>12}{:>15}{:>18}  {}",
            case.name(),
            middle.gigabits_per_second,
            ratio(Case::Router),
            ratio(Case::Forwarder),
            middle.retransmissions,
            rounds.join(" "),
        );
        for line in &middle.notes {
            println!("    {line}");
        }
    }
}

fn print_json(results: &[(Case, Vec<Measured>)]) {
    let rows = results.iter().filter_map(|(case, measured)| {
        let middle = median(measured)?;
        let rounds: Vec<_> = measured.iter().map(|one| format!("{:.4}", one.gigabits_per_second)).collect();
        Some(format!(
            "  {{\"case\": \"{}\", \"gigabits_per_second\": {:.4}, \"retransmissions\": {}, \"rounds\": [{}]}}",
            case.name(),
            middle.gigabits_per_second,
            middle.retransmissions,
            rounds.join(", ")
        ))
    });
    println!("[\n{}\n]", rows.collect::<Vec<_>>().join(",\n"));
}
