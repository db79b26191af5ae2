//! Storms of connections to the metrics.

use std::collections::VecDeque;
use std::io::{Read as _, Write as _};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::daemons::support::{Daemon, HOME_AGENT, Network, PATIENCE, realm_or_skip, wait_until};
use crate::support::Tcp;
use careof_lab::Host;

/// What whoever asks for the metrics from `host` is answered, as far as it came.
pub(super) fn scrape(host: &Host, metrics: SocketAddr) -> String {
    scrape_after(host, metrics, || {})
}

/// As [`scrape`], by one who connects, waits, and then asks.
fn scrape_after(host: &Host, metrics: SocketAddr, wait: impl FnOnce() + Send + 'static) -> String {
    let asked = host.run(move || {
        let mut stream = Tcp::connect(metrics)?;
        wait();
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: agent\r\n\r\n")?;
        let mut answer = String::new();
        // What came before it was cut off counts as well.
        let _ = stream.read_to_string(&mut answer);
        Ok::<_, std::io::Error>(answer)
    });
    asked.unwrap().unwrap_or_else(|error| error.to_string())
}

/// Connects again and again, says nothing, and holds on to some of it.
fn storm(host: &Host, metrics: SocketAddr, is_over: &'static AtomicBool, connected: &'static AtomicU64) {
    host.run(move || {
        let mut held = VecDeque::new();
        while !is_over.load(Ordering::Relaxed) {
            if let Ok(stream) = Tcp::connect(metrics) {
                connected.fetch_add(1, Ordering::Relaxed);
                held.push_back(stream);
            }
            if held.len() > 300 {
                held.pop_front();
            }
        }
    })
    .unwrap();
}

/// Ends a storm, also when a test fails.
pub(super) struct Over(pub(super) &'static AtomicBool);

impl Drop for Over {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn every_scrape_is_answered_in_a_storm_of_connections_from_elsewhere() {
    static IS_OVER: AtomicBool = AtomicBool::new(false);
    static CONNECTED: AtomicU64 = AtomicU64::new(0);
    let Some(realm) = realm_or_skip(&[]) else { return };
    let network = Network::new(realm);
    let listen = format!("[metrics]\nlisten = \"{HOME_AGENT}:9434\"\nallow_remote = true");
    let configuration = network.home_configuration(&listen);
    let home = Daemon::start(&network.home, network.directory(), "home", &configuration);
    let metrics = SocketAddr::from((HOME_AGENT, 9434));
    let answers = std::thread::scope(|scope| {
        let _over = Over(&IS_OVER);
        scope.spawn(|| storm(&network.correspondent, metrics, &IS_OVER, &CONNECTED));
        wait_until("the storm has begun", || CONNECTED.load(Ordering::Relaxed) > 300);
        // A hundred come between each connection and what is asked by it.
        let slowly = || {
            let before = CONNECTED.load(Ordering::Relaxed);
            wait_until("the storm goes on", || CONNECTED.load(Ordering::Relaxed) > before + 100);
        };
        (0..30).map(|_| scrape_after(&network.router, metrics, slowly)).collect::<Vec<_>>()
    });
    for answer in answers {
        assert!(answer.starts_with("HTTP/1.1 200 OK") && answer.ends_with("# EOF\n"), "{answer:?}");
    }
    let refused = scrape(&network.router, metrics);
    assert!(!refused.contains("careof_clients_refused_total{server=\"metrics\"} 0\n"), "{refused}");
    assert_eq!(home.bindings(), 0);
}
