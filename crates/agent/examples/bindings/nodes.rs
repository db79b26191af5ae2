//! Who registers in the name of all mobile nodes.

use std::collections::VecDeque;
use std::net::Ipv4Addr;
use std::os::fd::AsFd as _;

use careof_base::{Duration, Instant};
use careof_lab::Clock;
use careof_mobility::v4::NtpTime;
use careof_wire::mip4::{
    Algorithm, AuthenticationKind, Identification, Lifetime, Message, RegistrationRequest, RequestFlags, Spi,
    append_authentication,
};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::error::Error;
use crate::network::{AGENT, Network, WORLD, care_of, home_address};

#[expect(clippy::disallowed_types, reason = "what is measured is the real world")]
pub(crate) type Udp = std::net::UdpSocket;

const PORT: u16 = 434;
/// Registrations under way at a time.
const WINDOW: usize = 1024;
/// A request without an answer for so long is lost.
const LOST: Duration = Duration::from_secs(2);
/// How often it is asked after a restart.
const INTERVAL: Duration = Duration::from_millis(20);
/// Longer than anything takes.
const PATIENCE: Duration = Duration::from_secs(600);

/// The key of a mobile node.
pub(crate) fn key(node: u32) -> [u8; 16] {
    let mut key = *b"bench of careof\0";
    for (place, byte) in key.iter_mut().zip(node.to_be_bytes()) {
        *place ^= byte;
    }
    key
}

/// Lets time pass.
pub(crate) fn pause(span: Duration) {
    #[expect(
        clippy::disallowed_methods,
        reason = "what is measured are other processes, in the real world's time"
    )]
    std::thread::sleep(span);
}

/// The mobile nodes.
pub(crate) struct Nodes {
    socket: Udp,
    count: u32,
    /// By mobile node, how often it has moved.
    moves: Vec<u32>,
}

/// A socket of the world that does not wait.
pub(crate) fn socket(network: &Network) -> Result<Udp, Error> {
    let bound = network.world.run(|| Udp::bind((WORLD, 0)))?;
    let socket = bound.map_err(Error::system("open a socket"))?;
    socket.set_nonblocking(true).map_err(Error::system("open a socket"))?;
    Ok(socket)
}

/// A request of a mobile node, now. Of two in the same instant the second has to have another `serial`.
pub(crate) fn request(node: u32, moves: u32, serial: u32, key: &[u8]) -> Vec<u8> {
    #[expect(clippy::disallowed_methods, reason = "the agent has the real time of day")]
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    // The low bits are below the clock's own.
    let identification = (NtpTime::from_unix(now).to_bits() & !0xff) | u64::from(serial & 0xff);
    let request = RegistrationRequest {
        flags: RequestFlags::DECAPSULATION_BY_MOBILE_NODE,
        lifetime: Lifetime::from_secs(1800),
        home_address: home_address(node),
        home_agent: AGENT,
        care_of_address: care_of(node, moves),
        identification: Identification(identification),
        extensions: Vec::new(),
    };
    let mut bytes = Message::Request(request).emit();
    append_authentication(&mut bytes, AuthenticationKind::MobileHome, Spi(256), Algorithm::HmacMd5, key);
    bytes
}

impl Nodes {
    pub(crate) fn open(network: &Network, count: u32) -> Result<Self, Error> {
        Ok(Self { socket: socket(network)?, count, moves: vec![0; count as usize] })
    }

    fn ask(&self, node: u32) {
        let moves = self.moves.get(node as usize).copied().unwrap_or_default();
        // Where there is no room for it, it is lost.
        let _ = self.socket.send_to(&request(node, moves, 0, &key(node)), (AGENT, PORT));
    }

    /// The next answer: of which mobile node.
    fn answer(&self) -> Result<Option<u32>, Error> {
        let mut buffer = [0; 1500];
        loop {
            // Also where nobody listened to an earlier request.
            let Ok(length) = self.socket.recv(&mut buffer) else { return Ok(None) };
            let Ok(Message::Reply(reply)) = Message::parse(buffer.get(..length).unwrap_or_default()) else {
                continue;
            };
            if !reply.code.is_accepted() {
                let (home_address, code) = (reply.home_address, reply.code.number());
                return Err(Error::Denied { home_address, code });
            }
            return Ok(Some(reply.home_address.to_bits() - home_address(0).to_bits()));
        }
    }

    fn wait(&self, span: Duration) {
        let timeout = PollTimeout::try_from(span).unwrap_or(PollTimeout::ZERO);
        // Whatever comes of it is seen when it is read.
        let _ = poll(&mut [PollFd::new(self.socket.as_fd(), PollFlags::POLLIN)], timeout);
    }

    /// Registers every mobile node once, with so many requests under way that the agent never waits for one.
    pub(crate) fn register_all(&mut self, clock: Clock) -> Result<(), Error> {
        let began = clock.now();
        let mut is_registered = vec![false; self.count as usize];
        let mut missing = is_registered.len();
        let mut under_way = VecDeque::<(Instant, u32)>::new();
        let (mut next, mut waiting) = (0, 0_usize);
        while missing > 0 {
            let now = clock.now();
            if now - began > PATIENCE {
                return Err(Error::Unanswered { missing });
            }
            while let Some((at, node)) = under_way.front().copied() {
                if is_registered.get(node as usize) == Some(&true) {
                    under_way.pop_front();
                } else if at + LOST < now {
                    under_way.pop_front();
                    self.ask(node);
                    under_way.push_back((now, node));
                } else {
                    break;
                }
            }
            while waiting < WINDOW && next < self.count {
                self.ask(next);
                under_way.push_back((now, next));
                next += 1;
                waiting += 1;
            }
            self.wait(Duration::from_millis(100));
            while let Some(node) = self.answer()? {
                if let Some(registered) =
                    is_registered.get_mut(node as usize).filter(|registered| !**registered)
                {
                    *registered = true;
                    missing -= 1;
                    waiting -= 1;
                }
            }
        }
        Ok(())
    }

    /// Has one mobile node after the other ask until one is answered; when that was.
    pub(crate) fn ask_until_answered(&mut self, clock: Clock) -> Result<Instant, Error> {
        let began = clock.now();
        for node in (0..self.count).cycle() {
            self.ask(node);
            self.wait(INTERVAL);
            let now = clock.now();
            if self.answer()?.is_some() {
                return Ok(now);
            }
            if now - began > PATIENCE {
                break;
            }
            // An answer that nobody listens wakes at once.
            pause((began + INTERVAL * (node + 1)).saturating_duration_since(now).min(INTERVAL));
        }
        Err(Error::Unanswered { missing: 1 })
    }

    /// Has mobile nodes move, `rate` a second for so long, and returns how long each answer took; `None`: none came.
    pub(crate) fn move_about(
        &mut self,
        clock: Clock,
        rate: u32,
        span: Duration,
    ) -> Result<Vec<Option<Duration>>, Error> {
        while self.answer()?.is_some() {}
        let began = clock.now();
        let mut asked = std::collections::BTreeMap::<u32, Instant>::new();
        let mut taken = Vec::new();
        let mut sent = 0_u32;
        // Spread over the whole of them.
        let stride = (self.count / 997).max(1) | 1;
        let mut node = 0;
        loop {
            let now = clock.now();
            let due = (now - began).as_secs_f64() * f64::from(rate);
            if now - began < span && f64::from(sent) < due {
                if let Some(moves) = self.moves.get_mut(node as usize).filter(|_| !asked.contains_key(&node))
                {
                    *moves += 1;
                    asked.insert(node, now);
                    self.ask(node);
                }
                node = (node + stride) % self.count;
                sent += 1;
                continue;
            }
            if now - began > span + LOST || (now - began > span && asked.is_empty()) {
                break;
            }
            self.wait(Duration::from_micros(500));
            while let Some(node) = self.answer()? {
                if let Some(at) = asked.remove(&node) {
                    taken.push(Some(clock.now() - at));
                }
            }
        }
        taken.extend(asked.iter().map(|_| None));
        Ok(taken)
    }
}

/// A request in the name of a mobile node by somebody who does not have its key.
pub(crate) fn forged(node: u32, serial: u32) -> Vec<u8> {
    request(node, 2, serial, b"not the key of it")
}

/// Where all of them send to.
pub(crate) const TARGET: (Ipv4Addr, u16) = (AGENT, PORT);
