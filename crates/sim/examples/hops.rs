//! Runs scenarios and nothing else, for a profiler to look at: no interpreter, no trace, no report.
//!
//! `cargo run --release -p careof-sim --example hops -- scenarios/bench/dumbbell1.toml [--set KEY=VALUE]...`

use std::path::Path;
use std::process::ExitCode;

use careof_base::Instant;
use careof_scenario::Scenario;
use careof_sim::{Observation, Simulation};

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let Some(file) = words.next() else {
        eprintln!("usage: hops FILE [--set KEY=VALUE]...");
        return ExitCode::from(2);
    };
    let overrides: Vec<String> = words.filter(|word| word != "--set").collect();
    match run(&file, &overrides) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

fn run(file: &str, overrides: &[String]) -> Result<(), String> {
    let scenario = Scenario::load(Path::new(file), overrides).map_err(|error| error.to_string())?;
    let mut simulation =
        Simulation::new(scenario, file, 0, Observation::default()).map_err(|error| error.to_string())?;
    simulation.advance(Instant::MAX).map_err(|error| error.to_string())?;
    let summary = simulation.finish().map_err(|error| error.to_string())?;
    let broken: Vec<_> = summary.conservation.iter().filter(|(_, difference)| **difference != 0).collect();
    println!(
        "{} packet-hops, {} events, digest {}{}",
        simulation.packet_hops(),
        simulation.events(),
        summary.digest,
        if broken.is_empty() { String::new() } else { format!(", NOT CONSERVED: {broken:?}") }
    );
    Ok(())
}
