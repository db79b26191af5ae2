//! How long a link takes for a packet: `cargo run --release -p careof-link --example packet_rate [NAME]`.
//!
//! A closed loop keeps the link busy with a queue, as a bulk flow does: each delivery offers the next packet.

use careof_base::{DataRate, Duration, Instant, Probability, RandomStream};
use careof_link::{Config, Discipline, Jitter, Link, Loss, Output, QueueConfig, QueueLimit, RedConfig};

const PACKETS: u64 = 20_000_000;

#[expect(clippy::disallowed_methods, reason = "a benchmark measures the real clock")]
fn measure(name: &str, config: Config, window: u32) {
    if std::env::args().nth(1).is_some_and(|only| only != name) {
        return;
    }
    let stream = |user| RandomStream::new(1, 0, user);
    let mut link = Link::new(config, stream("loss"), stream("jitter"), stream("queue"));
    let started = std::time::Instant::now();
    let mut now = Instant::ZERO;
    for packet in 0..window {
        let _ = link.enqueue(now, packet, 1500);
    }
    let mut outputs = 0_u64;
    let mut wakes = 0_u64;
    while outputs < PACKETS {
        while let Some(output) = link.poll(now) {
            outputs += 1;
            let (Output::Delivered { packet, .. } | Output::Dropped { packet, .. }) = output;
            let mut refused = link.enqueue(now, packet, 1500).is_err();
            while refused {
                outputs += 1;
                refused = link.enqueue(now, packet, 1500).is_err();
            }
        }
        let Some(next) = link.next_timeout() else { break };
        now = next;
        wakes += 1;
    }
    let nanos = started.elapsed().as_secs_f64() * 1e9 / outputs as f64;
    println!("{name:24} {nanos:6.1} ns a packet, {:.2} wake-ups", wakes as f64 / outputs as f64);
}

fn main() {
    let base = Config {
        rate: DataRate::from_megabits_per_second(10),
        delay: Duration::from_millis(20),
        queue: QueueConfig { limit: QueueLimit::Packets(100), ..QueueConfig::default() },
        ..Config::default()
    };
    let p = |value| Probability::new(value).expect("a probability");
    let spread = Duration::from_millis(5);
    let queue = |discipline| QueueConfig { discipline, ..QueueConfig::default() };
    measure("plain", base.clone(), 60);
    measure("plain, no queue", base.clone(), 1);
    measure("bernoulli", Config { loss: Loss::Bernoulli { p: p(0.01) }, ..base.clone() }, 60);
    measure("jitter", Config { jitter: Jitter::Uniform { spread, reorder: false }, ..base.clone() }, 60);
    measure(
        "jitter, reordering",
        Config { jitter: Jitter::Uniform { spread, reorder: true }, ..base.clone() },
        60,
    );
    measure("red", Config { queue: queue(Discipline::Red(RedConfig::default())), ..base.clone() }, 22);
    measure("codel", Config { queue: queue(Discipline::CODEL), ..base }, 60);
}
