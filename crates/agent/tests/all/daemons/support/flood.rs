//! Senders of rubbish, and who listens without a word.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{Builder, JoinHandle};

use careof_base::{Duration, RandomStream};
use careof_lab::{Clock, Host};

use super::pause;

#[expect(clippy::disallowed_types, reason = "the real world is what is tested")]
pub(crate) type Udp = std::net::UdpSocket;

/// The port of registration messages.
const REGISTRATION_PORT: u16 = 434;

/// Takes the registration port of a host and says nothing: neither an answer nor that there is none.
pub(crate) fn silent_socket(host: &Host, address: Ipv4Addr) -> Udp {
    let socket = host.run(move || Udp::bind((address, REGISTRATION_PORT))).unwrap().unwrap();
    socket.set_nonblocking(true).unwrap();
    socket
}

/// Rubbish to the registration port of an address, until it is dropped.
pub(crate) struct Flood {
    stop: Arc<AtomicBool>,
    sent: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl Flood {
    /// Sends `rate` datagrams a second from `host`.
    pub(crate) fn start(host: &Host, target: Ipv4Addr, rate: u32) -> Self {
        let socket = host.run(|| Udp::bind((Ipv4Addr::UNSPECIFIED, 0))).unwrap().unwrap();
        let (stop, sent) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (is_over, count) = (Arc::clone(&stop), Arc::clone(&sent));
        let thread = Builder::new().name("flood".to_owned()).spawn(move || {
            let clock = Clock::start();
            let mut random = RandomStream::new(434, 0, "rubbish");
            while !is_over.load(Ordering::Relaxed) {
                let due = clock.now().since_start().as_micros() * u128::from(rate) / 1_000_000;
                while u128::from(count.load(Ordering::Relaxed)) < due {
                    // The kernel may have no room for it; it counts as sent all the same.
                    let _ = socket.send_to(&rubbish(&mut random), (target, REGISTRATION_PORT));
                    count.fetch_add(1, Ordering::Relaxed);
                }
                pause(Duration::from_millis(2));
            }
        });
        Self { stop, sent, thread: Some(thread.unwrap()) }
    }

    pub(crate) fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }
}

impl Drop for Flood {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Some bytes, half of them with the beginning of a message.
fn rubbish(random: &mut RandomStream) -> Vec<u8> {
    let length = usize::try_from(random.below(200)).unwrap();
    let mut bytes: Vec<u8> = (0..length).map(|_| random.next_u64().to_be_bytes()[0]).collect();
    let kind = [1, 3][usize::try_from(random.below(2)).unwrap()];
    if random.below(2) == 0
        && let Some(first) = bytes.first_mut()
    {
        *first = kind;
    }
    // A request whose extensions are well formed and whose authenticator is anybody's guess.
    if random.below(4) == 0 {
        bytes.resize(24, 0);
        bytes[0] = 1;
        bytes[4..8].copy_from_slice(&super::HOME_ADDRESS.octets());
        bytes[8..12].copy_from_slice(&super::HOME_AGENT.octets());
        bytes.extend([32, 20, 0, 0, 1, 0]);
        bytes.extend((0..16).map(|_| random.next_u64().to_be_bytes()[0]));
    }
    bytes
}
