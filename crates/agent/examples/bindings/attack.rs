//! Who attacks, and what it does to others.

use std::io::{Read as _, Write as _};
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, Ordering};

use careof_base::{Duration, RandomStream};
use careof_lab::{Clock, Host, IcmpSocket, OutgoingIcmp};
use careof_wire::icmp::{DestinationUnreachable, IcmpMessage, UnreachableCode};
use careof_wire::ipv4::Ipv4Header;
use careof_wire::protocol;

use crate::Options;
use crate::agent::{Agent, METRICS};
use crate::error::Error;
use crate::network::{AGENT, Network, care_of, home_address};
use crate::nodes::{self, Nodes, TARGET, pause};

#[expect(clippy::disallowed_types, reason = "what is measured is the real world")]
type Tcp = std::net::TcpStream;

/// Between two looks at what is due.
const STEP: Duration = Duration::from_millis(2);

/// What the attack did.
pub(crate) struct Attacked {
    /// Sent a second.
    pub(crate) forged_rate: f64,
    /// Sent a second.
    pub(crate) icmp_rate: f64,
    pub(crate) scrapes: usize,
    /// Bytes.
    pub(crate) largest_scrape: usize,
    /// Of valid registrations, sorted.
    pub(crate) latencies_ms: Vec<f64>,
    pub(crate) unanswered: usize,
    /// Processor time of the agent by time.
    pub(crate) load: f64,
}

impl Attacked {
    /// A percentile of the latencies, milliseconds; those without an answer are the longest.
    pub(crate) fn percentile(&self, part: f64) -> f64 {
        let count = self.latencies_ms.len() + self.unanswered;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a place in a list")]
        let place = ((count as f64 * part).ceil() as usize).saturating_sub(1);
        self.latencies_ms.get(place).copied().unwrap_or(f64::INFINITY)
    }
}

/// Attacks for as long as the options say.
pub(crate) fn run(
    network: &Network,
    options: &Options,
    nodes: &mut Nodes,
    agent: &Agent,
    clock: Clock,
) -> Result<Attacked, Error> {
    let stop = AtomicBool::new(false);
    let count = options.nodes;
    let socket = nodes::socket(network)?;
    let icmp = network.world.run(|| IcmpSocket::open(&[]))??;
    std::thread::scope(|scope| {
        let stop = &stop;
        let (mut serial, mut random) = (0, RandomStream::new(434, 0, "forged"));
        let forging = scope.spawn(move || {
            paced(stop, options.forged, clock, move || {
                serial += 1;
                // Where there is no room for it, it is lost.
                let _ = socket.send_to(&nodes::forged(node(&mut random, count), serial), TARGET);
            })
        });
        let mut random = RandomStream::new(434, 0, "icmp");
        let lying = scope.spawn(move || {
            paced(stop, options.icmp, clock, move || {
                let message = &unreachable(node(&mut random, count));
                let source = Ipv4Addr::UNSPECIFIED;
                let _ = icmp.send(&OutgoingIcmp {
                    interface: None,
                    source,
                    destination: AGENT,
                    ttl: 64,
                    message,
                });
            })
        });
        let scraping = scope.spawn(|| scrape_until(&network.world, stop));
        let (began, before) = (clock.now(), agent.cpu_seconds());
        let taken = nodes.move_about(clock, options.valid, Duration::from_secs_f64(options.seconds));
        let (lasted, after) = ((clock.now() - began).as_secs_f64(), agent.cpu_seconds());
        stop.store(true, Ordering::Relaxed);
        let forged = forging.join().map_err(|_| Error::Panicked)?;
        let icmp = lying.join().map_err(|_| Error::Panicked)?;
        let scrapes = scraping.join().map_err(|_| Error::Panicked)?;
        let taken = taken?;
        let mut latencies_ms: Vec<f64> =
            taken.iter().flatten().map(|latency| latency.as_secs_f64() * 1e3).collect();
        latencies_ms.sort_by(f64::total_cmp);
        Ok(Attacked {
            forged_rate: forged as f64 / lasted,
            icmp_rate: icmp as f64 / lasted,
            scrapes: scrapes.len(),
            largest_scrape: scrapes.into_iter().max().unwrap_or(0),
            unanswered: taken.len() - latencies_ms.len(),
            latencies_ms,
            load: (after? - before?) / lasted,
        })
    })
}

/// One of the mobile nodes.
fn node(random: &mut RandomStream, count: u32) -> u32 {
    u32::try_from(random.below(count.into())).unwrap_or(0)
}

/// Does something at a rate until it is to stop; how often.
fn paced(stop: &AtomicBool, rate: u32, clock: Clock, mut act: impl FnMut()) -> u64 {
    let (began, mut done) = (clock.now(), 0_u64);
    while !stop.load(Ordering::Relaxed) {
        let due = (clock.now() - began).as_secs_f64() * f64::from(rate);
        while (done as f64) < due {
            act();
            done += 1;
        }
        pause(STEP);
    }
    done
}

/// An ICMP error that looks as if a router on the way to a care-of address had sent it.
fn unreachable(node: u32) -> Vec<u8> {
    let mut quoted = Vec::new();
    let inner = Ipv4Header {
        source: Ipv4Addr::new(203, 0, 113, 9),
        destination: home_address(node),
        protocol: protocol::UDP,
        ttl: 60,
        payload_len: 1000,
        ..Ipv4Header::default()
    };
    let outer = Ipv4Header {
        source: AGENT,
        destination: care_of(node, 0),
        protocol: protocol::IP_IN_IP,
        ttl: 60,
        payload_len: 1020,
        ..Ipv4Header::default()
    };
    outer.emit(&mut quoted);
    inner.emit(&mut quoted);
    quoted.extend([0x13, 0x88, 0, 53, 3, 0xe8, 0, 0]);
    let mut message = Vec::new();
    let code = UnreachableCode::Host;
    IcmpMessage::DestinationUnreachable(DestinationUnreachable { code, next_hop_mtu: 0, quoted })
        .emit(&mut message);
    message
}

/// Reads the metrics once a second; how many bytes each time.
fn scrape_until(world: &Host, stop: &AtomicBool) -> Vec<usize> {
    let mut sizes = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        if let Ok(Ok(mut stream)) = world.run(|| Tcp::connect(METRICS)) {
            let mut answer = Vec::new();
            let asked = stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
            if asked.and_then(|()| stream.read_to_end(&mut answer)).is_ok() {
                sizes.push(answer.len());
            }
        }
        pause(Duration::from_secs(1));
    }
    sizes
}
