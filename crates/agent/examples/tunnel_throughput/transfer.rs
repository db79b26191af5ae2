//! One TCP connection, as fast as it goes.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::Builder;

use careof_base::Duration;
use careof_lab::{Clock, Host};
use nix::errno::Errno;

use crate::error::Error;
use crate::topology::Topology;

#[expect(clippy::disallowed_types, reason = "the kernel's TCP is what is measured with")]
type TcpListener = std::net::TcpListener;
#[expect(clippy::disallowed_types, reason = "the kernel's TCP is what is measured with")]
type TcpStream = std::net::TcpStream;

const PORT: u16 = 5_001;
const CHUNK: usize = 256 << 10;
/// Before the measurement starts: the connection finds its rate.
const WARM_UP: Duration = Duration::from_millis(500);

/// What came of one round.
pub(crate) struct Measured {
    pub(crate) gigabits_per_second: f64,
    /// Of the sender's host, whole connection.
    pub(crate) retransmissions: u64,
    /// What the agents said.
    pub(crate) notes: Vec<String>,
}

pub(crate) fn run(topology: &mut Topology, span: Duration) -> Result<Measured, Error> {
    let received = Arc::new(AtomicU64::new(0));
    let done = Arc::new(AtomicBool::new(false));
    let listener = topology.receiver.run(move || TcpListener::bind((Ipv4Addr::UNSPECIFIED, PORT)))?;
    let listener = listener.map_err(failed("bind"))?;
    let address = topology.address;
    let stream = topology.sender.run(move || TcpStream::connect((address, PORT)))?;
    let stream = stream.map_err(failed("connect"))?;
    let (incoming, _) = listener.accept().map_err(failed("accept"))?;

    let spawn = |name: &str, work: Box<dyn FnOnce() -> io::Result<()> + Send>| {
        Builder::new().name(name.to_owned()).spawn(work).map_err(failed("clone"))
    };
    let reader = spawn(
        "receiver",
        Box::new({
            let received = received.clone();
            move || drain(incoming, &received)
        }),
    )?;
    let writer = spawn(
        "sender",
        Box::new({
            let done = done.clone();
            move || fill(stream, &done)
        }),
    )?;

    let clock = Clock::start();
    sleep(WARM_UP);
    let (start, before) = (clock.now(), received.load(Ordering::Relaxed));
    sleep(span);
    let (end, after) = (clock.now(), received.load(Ordering::Relaxed));
    done.store(true, Ordering::Relaxed);
    let retransmissions = retransmissions(&topology.sender)?;
    // They end with the connection; what they met is in the rate.
    let _ = (writer.join(), reader.join());
    let bits = after.saturating_sub(before) as f64 * 8.0;
    let gigabits_per_second = bits / (end - start).as_secs_f64() / 1e9;
    Ok(Measured { gigabits_per_second, retransmissions, notes: topology.stop()? })
}

fn fill(mut stream: TcpStream, done: &AtomicBool) -> io::Result<()> {
    let chunk = vec![0x5a; CHUNK];
    while !done.load(Ordering::Relaxed) {
        stream.write_all(&chunk)?;
    }
    stream.shutdown(Shutdown::Both)
}

fn drain(mut stream: TcpStream, received: &AtomicU64) -> io::Result<()> {
    let mut chunk = vec![0; CHUNK];
    loop {
        match stream.read(&mut chunk)? {
            0 => return Ok(()),
            len => received.fetch_add(len as u64, Ordering::Relaxed),
        };
    }
}

/// Segments that a host's TCP has sent again (`RetransSegs` of /proc/net/snmp).
fn retransmissions(host: &Host) -> Result<u64, Error> {
    let text = host.run(|| std::fs::read_to_string("/proc/thread-self/net/snmp"))?.map_err(failed("read"))?;
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("Tcp:"));
    let (Some(names), Some(values)) = (lines.next(), lines.next()) else { return Ok(0) };
    let pairs = names.split_whitespace().zip(values.split_whitespace());
    let found = pairs.into_iter().find_map(|(name, value)| (name == "RetransSegs").then_some(value));
    Ok(found.and_then(|value| value.parse().ok()).unwrap_or(0))
}

#[expect(clippy::disallowed_methods, reason = "the measurement takes as long as it takes")]
pub(crate) fn sleep(span: Duration) {
    std::thread::sleep(span);
}

pub(crate) fn failed(call: &'static str) -> impl Fn(io::Error) -> careof_lab::Error {
    move |error| careof_lab::Error::System {
        doing: "measure a connection".to_owned(),
        call,
        errno: error.raw_os_error().map_or(Errno::EIO, Errno::from_raw),
    }
}
