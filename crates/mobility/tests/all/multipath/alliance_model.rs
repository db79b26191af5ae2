//! A relay and its client, with a hostile neighbour in their cluster, and what he must not achieve.
//!
//! He sends from any address of the cluster but the two, hears everything, and has no key. Messages of the two may be lost.

use std::net::Ipv4Addr;
use std::time::Duration;

use careof_base::{Instant, RandomStream};
use careof_mobility::multipath::alliance::{
    CLUSTER_TTL, Client, ClientConfig, ClientEvent, ClusterKey, ClusterTransmit, Forwarded, Relay,
    RelayConfig, RelayLost, Trust,
};
use careof_mobility::v4::Prefix;
use careof_wire::mip4::Spi;
use careof_wire::shake::{
    Alliance, AllianceCode, ClusterAdvertisement, IntroducedKey, ShakeKey, ShakeMessage,
};

const HOME: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 7);
const OUTSIDE: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 9);
const RELAY: Ipv4Addr = member(9);
const CLIENT: Ipv4Addr = member(1);
const HOME_AGENT: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 1);

const fn member(last: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 9, 0, last)
}

struct Cluster {
    now: Instant,
    relay: Relay,
    client: Client,
    heard: Vec<Vec<u8>>,
    lost: Vec<RelayLost>,
}

impl Cluster {
    fn new(trust: [Trust; 2]) -> Self {
        let [at_relay, at_client] = trust;
        let relay = RelayConfig {
            cluster: RELAY,
            cluster_network: Prefix::new(member(0), 24),
            outside: OUTSIDE,
            downlink: None,
            uplink: None,
            cost: 0,
            clients: 2,
            client_rate: None,
            client_bytes: None,
            longest: Duration::from_secs(30),
            trust: at_relay,
        };
        let client = ClientConfig {
            home_address: HOME,
            home_agent: Some(HOME_AGENT),
            cluster: CLIENT,
            cluster_network: Prefix::new(member(0), 24),
            relays: 1,
            highest_cost: 0,
            lifetime: Duration::from_secs(30),
            trust: at_client,
            secret: IntroducedKey([7; 32]),
        };
        Self {
            now: Instant::ZERO,
            relay: Relay::new(Instant::ZERO, relay, 1000),
            client: Client::new(client, 2000, RandomStream::new(1, 0, "client")),
            heard: Vec::new(),
            lost: Vec::new(),
        }
    }

    /// Goes on by `span`; with `loses` no message of the two gets through.
    fn go_on(&mut self, span: Duration, loses: bool) {
        self.now += span;
        if self.relay.next_timeout() <= self.now {
            self.relay.handle_timeout(self.now);
        }
        if self.client.next_timeout().is_some_and(|at| at <= self.now) {
            self.client.handle_timeout(self.now);
        }
        self.settle(loses);
    }

    fn settle(&mut self, loses: bool) {
        loop {
            let sent = [(RELAY, self.relay.poll_transmit()), (CLIENT, self.client.poll_transmit())];
            if sent.iter().all(|(_, message)| message.is_none()) {
                break;
            }
            for (from, message) in sent {
                let Some(ClusterTransmit { destination, payload }) = message else { continue };
                if !loses && destination != Some(CLIENT) && from != RELAY {
                    self.relay.handle_message(self.now, from, CLUSTER_TTL, &payload);
                }
                if !loses && destination != Some(RELAY) && from != CLIENT {
                    self.client.handle_message(self.now, from, CLUSTER_TTL, &payload);
                }
                if self.heard.len() < 64 {
                    self.heard.push(payload);
                }
            }
        }
        while self.relay.poll_event().is_some() {}
        while let Some(event) = self.client.poll_event() {
            if let ClientEvent::RelayLost { relay: RELAY, why, .. } = event {
                self.lost.push(why);
            }
        }
    }
}

fn agreed() -> [Trust; 2] {
    let key = |name: u8| ClusterKey { spi: Spi(1000 + u32::from(name)), key: vec![name; 16] };
    let trust = |peer| Trust::Keys { cluster: key(0), peers: vec![(peer, key(1))] };
    [trust(HOME), trust(RELAY)]
}

/// Runs what the bytes in `data` say.
///
/// # Panics
/// When the neighbour breaks the alliance, has a packet relayed, or fills memory.
pub(crate) fn run(data: &[u8]) {
    let keyed = data.first().is_some_and(|first| first % 2 == 0);
    let mut cluster = Cluster::new(if keyed { agreed() } else { [Trust::FirstUse, Trust::FirstUse] });
    for _ in 0..300 {
        cluster.go_on(Duration::from_millis(10), false);
    }
    assert_eq!(cluster.client.relays().collect::<Vec<_>>(), [(RELAY, OUTSIDE)]);
    let (steps, _) = data.as_chunks::<8>();
    for &[what, place, value, wait, a, b, c, d] in steps {
        let source = match member(place) {
            RELAY | CLIENT => member(100),
            other => other,
        };
        let bytes = match what % 8 {
            0 => {
                data[usize::from(place).min(data.len())..].iter().take(usize::from(value)).copied().collect()
            }
            1..=3 => {
                let index = usize::from(a) % cluster.heard.len();
                let mut bytes = cluster.heard[index].clone();
                let at = usize::from(place) % bytes.len();
                bytes[at] ^= if what % 8 == 1 { 0 } else { value };
                bytes
            }
            4 => {
                cluster.go_on(Duration::from_millis(u64::from(wait)), value == 0);
                continue;
            }
            kind => {
                let alliance = Alliance {
                    code: AllianceCode::from_number(value),
                    lifetime: u16::from_be_bytes([a, b]),
                    home_address: if c % 2 == 0 { HOME } else { Ipv4Addr::new(10, 0, 0, d) },
                    client: if c % 4 < 2 { source } else { CLIENT },
                    relay: RELAY,
                    outside: if c % 8 < 4 { Ipv4Addr::UNSPECIFIED } else { OUTSIDE },
                    home_agent: HOME_AGENT,
                    rate: None,
                    cost: 0,
                    challenge: 1000 + u64::from(d % 4),
                    counter: u64::MAX - u64::from(d),
                    nonce: u64::from(value),
                    key: Some(IntroducedKey([d; 32])),
                };
                let advertisement = ClusterAdvertisement {
                    sequence: u32::from_be_bytes([a, b, c, d]),
                    willing: true,
                    cost: 0,
                    downlink: None,
                    uplink: None,
                    outside: OUTSIDE,
                    cluster: source,
                    clients: 9,
                    longest: 9,
                    client_rate: None,
                };
                let message = match kind {
                    5 => ShakeMessage::Request(alliance),
                    6 if value % 2 == 0 => ShakeMessage::Reply(alliance),
                    6 => ShakeMessage::Withdrawal(alliance),
                    _ => ShakeMessage::Advertisement(advertisement),
                };
                message.emit(Some(ShakeKey { spi: Spi(256), key: &[d; 32] }))
            }
        };
        cluster.relay.handle_message(cluster.now, source, CLUSTER_TTL, &bytes);
        cluster.client.handle_message(cluster.now, source, CLUSTER_TTL, &bytes);
        cluster.settle(false);
        // What he wants relayed.
        let outward = cluster.relay.forward_outward(cluster.now, source, HOME, HOME_AGENT, 100);
        assert!(outward.is_err(), "in the client's name");
        let inward = cluster.relay.forward_inward(cluster.now, HOME_AGENT, HOME, 100);
        assert!(inward.is_err() || inward == Ok(Forwarded::ToClient(CLIENT)), "the client's packets");
        assert!(cluster.relay.allies().count() <= 2 && cluster.client.known() <= 32);
    }
    // What was lost by chance is silence; nobody else has ended it.
    assert!(
        cluster.lost.iter().all(|why| matches!(why, RelayLost::Silent | RelayLost::Expired)),
        "{:?}",
        cluster.lost
    );
}
