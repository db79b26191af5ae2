//! How a home agent does with many bindings on this machine: how fast they are registered, how soon it serves again after
//! `kill -9`, and how long a registration takes while others attack it.
//!
//! Two hosts on an Ethernet: the daemon `careof-agent`, and who registers in the name of all its mobile nodes, each with a
//! care-of address of its own. One run goes through this:
//!
//! 1. `registering`: every mobile node once, as fast as the agent answers.
//! 2. `restart`: the daemon is killed and started again. Meanwhile a mobile node asks every 20 ms.
//! 3. `attack`: forged registrations and forged ICMP errors about tunnels at the rates given and a scrape of the metrics a second,
//!    beside valid registrations.
//!
//! Run it with `make bench-bindings`, or with `cargo build --release -p careof-agent` and
//! `cargo run --release -p careof-agent --example bindings -- [--json] [--nodes N] [--seconds S] [--forged N] [--icmp N]
//! [--valid N] [--proxy-arp] [--agent PROGRAM]`.

mod agent;
mod attack;
mod error;
mod network;
mod nodes;

use std::path::PathBuf;
use std::process::ExitCode;

use agent::Agent;
use attack::Attacked;
use careof_base::Duration;
use careof_lab::Clock;
use error::Error;
use network::Network;
use nodes::Nodes;

/// What is measured.
pub(crate) struct Options {
    json: bool,
    /// Mobile nodes.
    pub(crate) nodes: u32,
    /// For how long it is attacked.
    pub(crate) seconds: f64,
    /// Forged registrations a second.
    pub(crate) forged: u32,
    /// Forged ICMP errors a second.
    pub(crate) icmp: u32,
    /// Valid registrations a second beside them.
    pub(crate) valid: u32,
    /// Whether the home network is a link, on which the agent answers ARP, instead of routed to it.
    pub(crate) proxy_arp: bool,
    /// The daemon.
    pub(crate) agent: PathBuf,
}

struct Results {
    start_s: f64,
    registering_s: f64,
    registering_cpu_s: f64,
    answered_s: f64,
    ready_s: f64,
    routes: usize,
    restart_cpu_s: f64,
    status_s: f64,
    attacked: Attacked,
    peak_mib: f64,
    end_s: f64,
}

fn main() -> ExitCode {
    let options = match parse(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(problem) => {
            eprintln!(
                "error: {problem}\n  hint: --json, --nodes N, --seconds S, --forged N, --icmp N, --valid N, --proxy-arp, --agent PROGRAM"
            );
            return ExitCode::from(2);
        }
    };
    match measure(&options) {
        Ok(results) if options.json => print_json(&options, &results),
        Ok(results) => print_table(&options, &results),
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
    // Beside this program's directory, where cargo puts it.
    let beside = std::env::current_exe().unwrap_or_default();
    let beside =
        beside.parent().and_then(|examples| examples.parent()).map(|target| target.join("careof-agent"));
    let mut options = Options {
        json: false,
        nodes: 100_000,
        seconds: 10.0,
        forged: 20_000,
        icmp: 1000,
        valid: 200,
        proxy_arp: false,
        agent: beside.unwrap_or_default(),
    };
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or_else(|| format!("{argument} needs a value"));
        let number = |text: String, most: u32| {
            text.parse()
                .ok()
                .filter(|number: &u32| *number <= most)
                .ok_or_else(|| format!("{text:?} is no number to {most}"))
        };
        match argument.as_str() {
            "--json" => options.json = true,
            "--proxy-arp" => options.proxy_arp = true,
            "--agent" => options.agent = value()?.into(),
            "--nodes" => options.nodes = number(value()?, network::MOST_NODES)?.max(1),
            "--forged" => options.forged = number(value()?, 1_000_000)?,
            "--icmp" => options.icmp = number(value()?, 1_000_000)?,
            "--valid" => options.valid = number(value()?, 100_000)?.max(1),
            "--seconds" => options.seconds = f64::from(number(value()?, 3600)?),
            other => return Err(format!("unknown argument {other:?}")),
        }
    }
    Ok(options)
}

fn seconds(since: Duration) -> f64 {
    since.as_secs_f64()
}

fn measure(options: &Options) -> Result<Results, Error> {
    let network = Network::build(options)?;
    let clock = Clock::start();
    let mut nodes = Nodes::open(&network, options.nodes)?;

    let began = clock.now();
    let agent = Agent::start(&network, options)?;
    agent.wait_ready()?;
    let start_s = seconds(clock.now() - began);

    let (began, cpu) = (clock.now(), agent.cpu_seconds()?);
    nodes.register_all(clock)?;
    let registering_s = seconds(clock.now() - began);
    let registering_cpu_s = agent.cpu_seconds()? - cpu;

    agent.kill()?;
    let began = clock.now();
    let agent = Agent::start(&network, options)?;
    let answered_s = seconds(nodes.ask_until_answered(clock)? - began);
    agent.wait_ready()?;
    let ready_s = seconds(clock.now() - began);
    let (restart_cpu_s, routes) = (agent.cpu_seconds()?, network.routes()?);

    let began = clock.now();
    agent.status()?;
    let status_s = seconds(clock.now() - began);

    let attacked = attack::run(&network, options, &mut nodes, &agent, clock)?;
    let peak_mib = agent.peak_mib()?;
    let began = clock.now();
    agent.terminate()?;
    let end_s = seconds(clock.now() - began);
    Ok(Results {
        start_s,
        registering_s,
        registering_cpu_s,
        answered_s,
        ready_s,
        routes,
        restart_cpu_s,
        status_s,
        attacked,
        peak_mib,
        end_s,
    })
}

fn print_table(options: &Options, results: &Results) {
    let Results { attacked, .. } = results;
    let rate = f64::from(options.nodes) / results.registering_s;
    let delivery = if options.proxy_arp { "proxy ARP" } else { "routed" };
    println!("{} mobile nodes, {delivery}", options.nodes);
    println!("start, without bindings   ready after {:.2} s", results.start_s);
    println!(
        "registering               {rate:.0} a second ({:.2} s), {:.0} us of processor time each",
        results.registering_s,
        results.registering_cpu_s * 1e6 / f64::from(options.nodes)
    );
    println!(
        "restart after kill -9     first answer {:.2} s, ready {:.2} s, {} routes, {:.2} s of processor time",
        results.answered_s, results.ready_s, results.routes, results.restart_cpu_s
    );
    println!("careof-agent status       {:.2} s", results.status_s);
    println!(
        "attack, {:.0} s              {:.0} forged registrations a second, {:.0} forged ICMP errors, {} scrapes of {} bytes at most",
        options.seconds, attacked.forged_rate, attacked.icmp_rate, attacked.scrapes, attacked.largest_scrape
    );
    println!(
        "  {} valid registrations  p50 {:.2} ms, p99 {:.2} ms, longest {:.2} ms, {} unanswered; {:.0} % of a processor",
        attacked.latencies_ms.len() + attacked.unanswered,
        attacked.percentile(0.5),
        attacked.percentile(0.99),
        attacked.percentile(1.0),
        attacked.unanswered,
        attacked.load * 100.0
    );
    println!("end on SIGTERM            {:.2} s; memory at most {:.0} MiB", results.end_s, results.peak_mib);
}

fn print_json(options: &Options, results: &Results) {
    let Results { attacked, .. } = results;
    let figures = serde_json::json!({
        "nodes": options.nodes,
        "proxy_arp": options.proxy_arp,
        "start_s": results.start_s,
        "registrations_per_second": f64::from(options.nodes) / results.registering_s,
        "registering_cpu_s": results.registering_cpu_s,
        "restart_first_answer_s": results.answered_s,
        "restart_ready_s": results.ready_s,
        "restart_cpu_s": results.restart_cpu_s,
        "routes": results.routes,
        "status_s": results.status_s,
        "forged_per_second": attacked.forged_rate,
        "icmp_per_second": attacked.icmp_rate,
        "scrapes": attacked.scrapes,
        "largest_scrape_bytes": attacked.largest_scrape,
        "valid": attacked.latencies_ms.len(),
        "unanswered": attacked.unanswered,
        "p50_ms": attacked.percentile(0.5),
        "p99_ms": attacked.percentile(0.99),
        "longest_ms": attacked.percentile(1.0),
        "attack_load": attacked.load,
        "peak_mib": results.peak_mib,
        "end_s": results.end_s,
    });
    println!("{figures:#}");
}
