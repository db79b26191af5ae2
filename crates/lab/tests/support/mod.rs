//! Two hosts with a link between them, and the reason where there can be none.

#![allow(dead_code, reason = "each test program uses a part of it")]

pub(crate) mod processes;
pub(crate) mod veth;

use std::net::Ipv4Addr;
use std::time::Duration;

use careof_lab::{
    Change, Clock, Direction, Emulator, Host, InterfaceConfig, LinkId, LinkReport, LinkSpec, Options, Realm,
};
use careof_link::Config;

#[expect(clippy::disallowed_types, reason = "the real world is what is tested")]
pub(crate) type Udp = std::net::UdpSocket;

pub(crate) const LEFT: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
pub(crate) const RIGHT: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 2);
pub(crate) const PORT: u16 = 7007;

/// Longer than any packet here takes on the busiest machine; only waited for where none comes.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);
/// How long to listen for a packet that must not come.
pub(crate) const SILENCE: Duration = Duration::from_millis(100);

/// The right to make hosts; see [`careof_testbed::realm_or_skip`].
pub(crate) fn realm_or_skip() -> Option<Realm> {
    careof_testbed::realm_or_skip(&[])
}

/// Two hosts, `LEFT` and `RIGHT`, one link.
pub(crate) struct Pair {
    pub(crate) emulator: Emulator,
    pub(crate) link: LinkId,
    pub(crate) left: Host,
    pub(crate) right: Host,
}

impl Pair {
    pub(crate) fn new(realm: Realm, config: &Config) -> Self {
        let left = realm.host("left").unwrap();
        let right = realm.host("right").unwrap();
        let a = left.attach(&InterfaceConfig::new("link0", LEFT.into(), 24)).unwrap();
        let b = right.attach(&InterfaceConfig::new("link0", RIGHT.into(), 24)).unwrap();
        let emulator = Emulator::start(Clock::start(), Options::default()).unwrap();
        let spec =
            LinkSpec { name: "test".to_owned(), a, b, forward: config.clone(), backward: config.clone() };
        let link = emulator.add_link(spec).unwrap();
        Self { emulator, link, left, right }
    }

    /// A socket on the left that sends to the one on the right.
    pub(crate) fn sockets(&self) -> (Udp, Udp) {
        (socket(&self.left, LEFT, RIGHT), socket(&self.right, RIGHT, LEFT))
    }

    pub(crate) fn reconfigure(&self, config: &Config) {
        let (link, config) = (self.link, config.clone());
        let changes = Direction::ALL
            .map(|direction| Change::Reconfigure { link, direction, config: config.clone() })
            .to_vec();
        self.emulator.apply(changes).unwrap();
    }

    pub(crate) fn report(&self) -> LinkReport {
        self.emulator.report().unwrap().swap_remove(0)
    }

    /// The report as soon as it fulfils `condition`, or the last one before patience ended.
    pub(crate) fn report_when(&self, condition: impl Fn(&LinkReport) -> bool) -> LinkReport {
        let clock = self.emulator.clock();
        let end = clock.now() + PATIENCE;
        loop {
            let report = self.report();
            if condition(&report) || clock.now() > end {
                return report;
            }
            std::thread::yield_now();
        }
    }

    /// The report once as many packets as that were read from the left device.
    pub(crate) fn report_after(&self, received: u64) -> LinkReport {
        self.report_when(|report| report.forward.received >= received)
    }
}

pub(crate) fn socket(host: &Host, here: Ipv4Addr, there: Ipv4Addr) -> Udp {
    let socket = host
        .run(move || {
            let socket = Udp::bind((here, PORT))?;
            socket.connect((there, PORT))?;
            Ok::<_, std::io::Error>(socket)
        })
        .unwrap();
    let socket = socket.unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket
}

/// The next datagram, or `None` when none comes.
pub(crate) fn next(socket: &Udp) -> Option<Vec<u8>> {
    let mut buffer = [0; 2048];
    let length = socket.recv(&mut buffer).ok()?;
    Some(buffer[..length].to_vec())
}

/// Removes the host's end of the link.
pub(crate) fn remove_interface(host: &Host) {
    let removed = host.run(|| {
        let mut netlink = careof_lab::Netlink::open()?;
        let index = netlink.index_of("link0")?;
        netlink.remove_interface(index)
    });
    removed.unwrap().unwrap();
}

/// Runs iproute2's `ip` inside a host: whether it succeeded; `None` where there is no such program.
pub(crate) fn ip(host: &Host, arguments: &str) -> Option<bool> {
    let mut command = std::process::Command::new("ip");
    command.args(arguments.split_whitespace()).stdin(std::process::Stdio::null());
    match host.spawn(command) {
        Ok(mut child) => Some(child.wait().unwrap().success()),
        Err(error) => {
            careof_testbed::skip(&format!("{error}"));
            None
        }
    }
}
