//! How many bits a second one TCP connection of the kernel gets through a home agent and a mobile node on this
//! machine: the agents themselves, as `careof-agent` runs them, each in a thread of its own.
//!
//! ```text
//! correspondent 10.9.0.2 --- veth --- home agent --- veth --- mobile node 192.0.2.7, home address 10.0.0.7
//! ```
//!
//! Data goes to the mobile node, acknowledgements come back by the reverse tunnel. The cases `router`, `tunnel` and
//! `forwarder` of careof-lab's `tunnel_throughput` are to be set beside it.
//!
//! Run it with `cargo run --release -p careof-agent --example agents_throughput -- [--json] [--seconds S]
//! [--rounds N]`.

use std::error::Error;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Shutdown};
use std::os::fd::AsFd;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use careof_agent::{Carrier, Device, HomeNetwork, HomeSetup, Hooks, HostOptions, MobileSetup, Setup};
use careof_base::RandomStream;
use careof_lab::{Clock, Host, Netlink, Realm, Route, set_sysctl};
use careof_mobility::v4::{
    DeliveryMethod, HomeAgentConfig, InterfaceConfig, InterfaceId, MobileNodeConfig, Notice, PolicyTable,
    Prefix, SecurityAssociation, ServedMobileNode,
};
use careof_wire::mip4::Spi;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

const HOME: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 7);
const HA: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const PORT: u16 = 5001;

#[expect(clippy::disallowed_types, reason = "the kernel's TCP is what is measured with")]
type TcpListener = std::net::TcpListener;
#[expect(clippy::disallowed_types, reason = "the kernel's TCP is what is measured with")]
type TcpStream = std::net::TcpStream;

fn main() -> ExitCode {
    match measure() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            if let Some(remedy) =
                error.downcast_ref::<careof_lab::Error>().and_then(careof_lab::Error::remedy)
            {
                eprintln!("  hint: {remedy}");
            }
            ExitCode::FAILURE
        }
    }
}

fn measure() -> Outcome<()> {
    let (mut json, mut seconds, mut rounds) = (false, 2.0, 3usize);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or(format!("{argument} needs a value"));
        match argument.as_str() {
            "--json" => json = true,
            "--seconds" => seconds = value()?.parse()?,
            "--rounds" => rounds = value()?.parse()?,
            other => return Err(format!("{other}: --json, --seconds S, --rounds N").into()),
        }
    }
    let realm = Realm::enter()?;
    let span = Duration::try_from_secs_f64(seconds)?;
    let mut rates = (0..rounds.max(1)).map(|_| round(realm, span)).collect::<Outcome<Vec<f64>>>()?;
    rates.sort_by(f64::total_cmp);
    let median = rates[rates.len() / 2];
    if json {
        println!("[{{\"case\": \"agents\", \"gigabits_per_second\": {median:.3}}}]");
    } else {
        println!("agents: {median:.2} Gbit/s (median of {rates:.2?})");
    }
    Ok(())
}

/// One connection through agents made for it.
fn round(realm: Realm, span: Duration) -> Outcome<f64> {
    let hosts = ["correspondent", "home", "mobile"].map(|name| realm.host(name));
    let [correspondent, home, mobile] = hosts;
    let (correspondent, home, mobile) = (correspondent?, home?, mobile?);
    for host in [&correspondent, &home, &mobile] {
        // Where it is not allowed, the default does.
        let _ = host.run(|| set_sysctl("net.ipv4.tcp_congestion_control", "cubic"))?;
    }
    cable("up0", (&correspondent, [10, 9, 0, 2]), (&home, [10, 9, 0, 1]))?;
    cable("wlan0", (&home, [192, 0, 2, 1]), (&mobile, [192, 0, 2, 7]))?;
    default_by(&correspondent, "up0", [10, 9, 0, 1])?;
    default_by(&mobile, "wlan0", [192, 0, 2, 1])?;
    home.run(|| {
        let mut netlink = Netlink::open()?;
        let loopback = netlink.index_of("lo")?;
        netlink.add_address(loopback, HA.into(), 32)
    })??;
    let clock = Clock::start();
    let stop = Arc::new(AtomicBool::new(false));
    let agent = start(&home, Setup::Home(home_setup()?), clock, &stop, |_| Ok(()))?;
    let switch = |node: &mut Carrier| node.switch_to("wlan0", Notice::None);
    let node = start(&mobile, Setup::Mobile(mobile_setup()?), clock, &stop, switch)?;

    let listener = mobile.run(|| TcpListener::bind((Ipv4Addr::UNSPECIFIED, PORT)))??;
    let stream = connect(&correspondent)?;
    let (incoming, _) = listener.accept()?;
    let received = Arc::new(AtomicU64::new(0));
    let ends = [stream.try_clone()?, incoming.try_clone()?];
    let reader = {
        let received = Arc::clone(&received);
        thread(move || drain(incoming, &received))
    };
    let writer = thread(move || fill(stream));
    sleep(Duration::from_millis(500));
    let (begun, before) = (clock.now(), received.load(Ordering::Relaxed));
    sleep(span);
    let (ended, after) = (clock.now(), received.load(Ordering::Relaxed));
    for end in ends {
        // Ends whoever waits in it.
        let _ = end.shutdown(Shutdown::Both);
    }
    let _ = (writer.join(), reader.join());
    stop.store(true, Ordering::Relaxed);
    let _ = (agent.join(), node.join());
    Ok((after - before) as f64 * 8.0 / (ended - begun).as_secs_f64() / 1e9)
}

/// A cable between two hosts, its ends called the same, with an address of a /24 each.
fn cable(name: &'static str, a: (&Host, [u8; 4]), b: (&Host, [u8; 4])) -> Outcome<()> {
    let there = b.0.namespace()?;
    a.0.run(move || Netlink::open()?.add_veth(name, name, there.as_fd()))??;
    for (host, address) in [a, b] {
        host.run(move || {
            let mut netlink = Netlink::open()?;
            let index = netlink.index_of(name)?;
            netlink.add_address(index, IpAddr::from(address), 24)?;
            netlink.set_up(index)
        })??;
    }
    Ok(())
}

fn default_by(host: &Host, name: &'static str, via: [u8; 4]) -> Outcome<()> {
    host.run(move || {
        let mut netlink = Netlink::open()?;
        let through = Route::default_through(netlink.index_of(name)?, IpAddr::V4(Ipv4Addr::UNSPECIFIED));
        netlink.set_route(&Route { via: Some(IpAddr::from(via)), ..through })
    })??;
    Ok(())
}

fn security() -> Outcome<SecurityAssociation> {
    Ok(SecurityAssociation::hmac_md5(Spi(256), b"0123456789abcdef")?)
}

fn home_setup() -> Outcome<HomeSetup> {
    Ok(HomeSetup {
        config: HomeAgentConfig {
            mobile_nodes: vec![ServedMobileNode::new(HOME, security()?)],
            advertisements: None,
            ..HomeAgentConfig::new(HA, Prefix::new(HA, 24), InterfaceId(0))
        },
        devices: vec![Device::new(0, "up0")],
        home_network: HomeNetwork::Routed,
        host: HostOptions::default(),
    })
}

fn mobile_setup() -> Outcome<MobileSetup> {
    let interfaces = vec![InterfaceConfig::new(InterfaceId(0))];
    Ok(MobileSetup {
        config: MobileNodeConfig {
            policy: PolicyTable::new(DeliveryMethod::ReverseTunnel, []),
            ..MobileNodeConfig::new(HOME, Prefix::new(HA, 24), HA, security()?, interfaces)
        },
        devices: vec![Device::new(0, "wlan0")],
        host: HostOptions::default(),
    })
}

/// Opens an agent in `host`, and carries it in a thread until `stop`.
fn start(
    host: &Host,
    setup: Setup,
    clock: Clock,
    stop: &Arc<AtomicBool>,
    first: impl FnOnce(&mut Carrier) -> Result<(), careof_agent::Error>,
) -> Outcome<JoinHandle<()>> {
    let random = RandomStream::new(1, 0, host.name());
    let mut carrier = host.run(move || Carrier::open(setup, clock, random, Hooks::default()))??;
    first(&mut carrier)?;
    let stop = Arc::clone(stop);
    Ok(thread(move || {
        while !stop.load(Ordering::Relaxed) {
            let ready =
                poll(&mut [PollFd::new(carrier.as_fd(), PollFlags::POLLIN)], PollTimeout::from(100u8));
            if let Err(error) = ready
                .map_err(|errno| errno.to_string())
                .and_then(|_| carrier.turn().map_err(|error| error.to_string()))
            {
                return eprintln!("error: {error}");
            }
            while carrier.poll_event().is_some() {}
        }
    }))
}

/// A connection to the home address, as soon as there is a way.
fn connect(host: &Host) -> Outcome<TcpStream> {
    let mut attempts = 0;
    loop {
        match host.run(|| TcpStream::connect((HOME, PORT)))? {
            Err(_) if attempts < 100 => attempts += 1,
            outcome => return Ok(outcome?),
        }
        sleep(Duration::from_millis(50));
    }
}

fn fill(mut stream: TcpStream) {
    let chunk = vec![0x5a; 256 << 10];
    while stream.write_all(&chunk).is_ok() {}
}

fn drain(mut stream: TcpStream, received: &AtomicU64) {
    let mut chunk = vec![0; 256 << 10];
    while let Ok(len @ 1..) = stream.read(&mut chunk) {
        received.fetch_add(len as u64, Ordering::Relaxed);
    }
}

#[expect(clippy::disallowed_methods, reason = "the agents, the sender and the receiver run side by side")]
fn thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    std::thread::spawn(work)
}

#[expect(clippy::disallowed_methods, reason = "the measurement takes as long as it takes")]
fn sleep(span: Duration) {
    std::thread::sleep(span);
}
