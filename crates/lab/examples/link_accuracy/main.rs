//! How well emulated links keep their delay and their rate on this machine.
//!
//! Two hosts, one link; round trips by ICMP echo, which the kernel answers, and rates by UDP, both timed by the
//! kernel's timestamps of arrival. Prints a table. Run it with
//! `cargo run --release -p careof-lab --example link_accuracy`; the argument `timer` chooses the other way of
//! waiting, `ordinary` forgoes real-time priority.

mod blast;
mod echo;

use std::net::Ipv4Addr;
use std::process::ExitCode;

use careof_base::{DataRate, Duration};
use careof_lab::{
    Clock, Emulator, Error, Host, InterfaceConfig, LinkReport, LinkSpec, Options, Realm, Timing,
};
use careof_link::{Config, QueueConfig, QueueLimit, UNLIMITED_RATE};

const LEFT: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
/// Room of a link's queue in packets: at 1 Gbit/s 25 ms, which a sender without priority may be late.
const QUEUE: u32 = 2048;
const RIGHT: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 2);

fn main() -> ExitCode {
    let mut options = Options::default();
    for argument in std::env::args().skip(1) {
        match argument.as_str() {
            "timer" => options.timing = Timing::Timer,
            "ordinary" => options.real_time = false,
            other => {
                eprintln!("error: unknown argument {other:?}\n  hint: timer, ordinary");
                return ExitCode::from(2);
            }
        }
    }
    match measure(options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            if let Some(remedy) = error.remedy() {
                eprintln!("  hint: {remedy}");
            }
            ExitCode::FAILURE
        }
    }
}

fn measure(options: Options) -> Result<(), Error> {
    let realm = Realm::enter()?;
    let scheduling = Lab::new(realm, options, link(UNLIMITED_RATE, 0))?.emulator.scheduling();
    println!("emulator: {:?}, {scheduling}", options.timing);
    if let Some(remedy) = scheduling.remedy() {
        println!("  hint: {remedy}");
    }

    println!("\nround trip by ICMP echo, error beyond the configured time in ms");
    println!(
        "{:<24} {:>7} {:>10} {:>8} {:>8} {:>8} {:>8} | emulator's own, mean and worst in ms",
        "link (one way)", "echoes", "configured", "median", "p90", "p99", "max"
    );
    let plan = [
        (UNLIMITED_RATE, 0, 1000, Duration::from_millis(3)),
        (UNLIMITED_RATE, 1_750, 1000, Duration::from_millis(5)),
        (DataRate::from_megabits_per_second(100), 5_000, 1000, Duration::from_millis(5)),
        (DataRate::from_megabits_per_second(2), 1_500, 1000, Duration::from_millis(5)),
        (DataRate::from_bits_per_second(9_600), 350_000, 60, Duration::from_millis(100)),
    ];
    for (rate, delay, count, interval) in plan {
        let config = link(rate, delay);
        let lab = Lab::new(realm, options, config.clone())?;
        let round_trips = echo::round_trips(&lab.left, RIGHT, count, interval)?;
        let one_way = config.delay + serialisation(rate, echo::PACKET_BYTES);
        print_delays(&config, one_way * 2, count, round_trips, &lab.report()?);
    }

    println!("\nrate by UDP, measured at the receiver from the first to the last packet");
    println!(
        "{:<24} {:>8} {:>9} {:>12} {:>12} {:>10}",
        "link (one way)", "packets", "seconds", "configured", "measured", "error"
    );
    let plan = [
        (DataRate::from_bits_per_second(9_600), 350_000, 120, 60),
        (DataRate::from_megabits_per_second(2), 1_500, 1500, 600),
        (DataRate::from_megabits_per_second(100), 5_000, 1500, 25_000),
        // Beyond what is promised; to see where it ends.
        (DataRate::from_megabits_per_second(1_000), 5_000, 1500, 250_000),
    ];
    for (rate, delay, size, packets) in plan {
        let config = link(rate, delay);
        let lab = Lab::new(realm, options, config.clone())?;
        let arrival = blast::blast(&lab.left, LEFT, &lab.right, RIGHT, rate, size, packets)?;
        print_rate(&config, &arrival, &lab.report()?);
    }
    Ok(())
}

fn link(rate: DataRate, delay_micros: u64) -> Config {
    let queue = QueueConfig { limit: QueueLimit::Packets(QUEUE), ..QueueConfig::default() };
    Config { rate, delay: Duration::from_micros(delay_micros), queue, ..Config::default() }
}

fn serialisation(rate: DataRate, bytes: u32) -> Duration {
    if rate == UNLIMITED_RATE {
        return Duration::ZERO;
    }
    rate.time_for_bits(u64::from(bytes) * 8).unwrap_or_default()
}

/// Two hosts and the link that is measured.
struct Lab {
    emulator: Emulator,
    left: Host,
    right: Host,
}

impl Lab {
    fn new(realm: Realm, options: Options, config: Config) -> Result<Self, Error> {
        let (left, right) = (realm.host("left")?, realm.host("right")?);
        let emulator = Emulator::start(Clock::start(), options)?;
        emulator.add_link(LinkSpec {
            name: "measured".to_owned(),
            a: left.attach(&InterfaceConfig::new("link0", LEFT.into(), 24))?,
            b: right.attach(&InterfaceConfig::new("link0", RIGHT.into(), 24))?,
            forward: config.clone(),
            backward: config,
        })?;
        Ok(Self { emulator, left, right })
    }

    fn report(&self) -> Result<LinkReport, Error> {
        Ok(self.emulator.report()?.swap_remove(0))
    }
}

fn name(config: &Config) -> String {
    let rate = if config.rate == UNLIMITED_RATE { "no rate".to_owned() } else { config.rate.to_string() };
    format!("{rate}, {} ms", millis(config.delay))
}

fn millis(span: Duration) -> f64 {
    span.as_secs_f64() * 1e3
}

fn print_delays(
    config: &Config,
    expected: Duration,
    sent: u16,
    mut round_trips: Vec<Duration>,
    report: &LinkReport,
) {
    round_trips.sort_unstable();
    let at = |quantile: f64| {
        let place = (round_trips.len().saturating_sub(1)) as f64 * quantile;
        round_trips
            .get(place.round() as usize)
            .map_or(f64::NAN, |round_trip| millis(*round_trip) - millis(expected))
    };
    println!(
        "{:<24} {:>3}/{:<4} {:>9.3} {:>+8.3} {:>+8.3} {:>+8.3} {:>+8.3} | {:.3} {:.3}{}",
        name(config),
        round_trips.len(),
        sent,
        millis(expected),
        at(0.5),
        at(0.9),
        at(0.99),
        at(1.0),
        millis(report.forward.lateness.mean()),
        millis(report.forward.lateness.worst),
        account(report),
    );
}

fn print_rate(config: &Config, arrival: &blast::Arrival, report: &LinkReport) {
    let seconds = arrival.span.as_secs_f64();
    let measured = (arrival.packets.saturating_sub(1) * arrival.packet_bytes * 8) as f64 / seconds;
    let configured = config.rate.bits_per_second() as f64;
    println!(
        "{:<24} {:>8} {:>9.3} {:>12} {:>12.1} {:>+9.4} %{}",
        name(config),
        arrival.packets,
        seconds,
        configured,
        measured,
        (measured / configured - 1.0) * 100.0,
        account(report),
    );
    if arrival.packets != report.forward.written {
        println!("  {} packets were lost behind the link", report.forward.written - arrival.packets);
    }
}

/// A remark where packets are not accounted for.
fn account(report: &LinkReport) -> &'static str {
    if report.forward.is_conserved() && report.backward.is_conserved() { "" } else { "  NOT CONSERVED" }
}
