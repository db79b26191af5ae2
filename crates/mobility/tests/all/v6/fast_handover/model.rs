//! Access routers and a mobile node that goes about its business, with a hostile peer between them, and what he must not achieve.
//!
//! He can send to every node from any address, and repeats what he has seen. He has no key. The network loses, repeats and reorders
//! signalling meanwhile.

use std::net::Ipv6Addr;

use careof_base::Duration;
use careof_mobility::v6::access_router::BufferConfig;
use careof_mobility::v6::{Addresses, TransmitPayload, Tunnel};
use careof_wire::icmpv6::{HandoverLinkLayerAddress, LinkLayerRole};
use careof_wire::mip6::{FastBindingStatus, HandoverCode, InitiateCode, SequenceNumber};

use super::messages::*;
use super::world::*;

/// One thing that happens, as bytes say: what, and how.
pub(super) type Step = [u8; 5];

/// What has happened.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    /// Handovers that the previous router has acknowledged.
    pub(super) prepared: u64,
    /// Packets that the mobile node has received.
    pub(super) received: u64,
    /// Forged messages.
    pub(super) forged: u64,
    /// Messages repeated.
    pub(super) repeated: u64,
}

/// What nobody without a key changes.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Beliefs {
    tunnels: Vec<Option<Tunnel>>,
    arrivals: Vec<usize>,
    waiting: Vec<(usize, usize)>,
    prepared: bool,
    new: Option<Ipv6Addr>,
}

struct Run {
    world: World,
    tally: Tally,
    numbers: u64,
}

const LIMITS: BufferConfig =
    BufferConfig { packets: 8, bytes: 9_000, total_packets: 12, total_bytes: 12_000, release_percent: 200 };

fn name(byte: u8) -> Ipv6Addr {
    let router = usize::from(byte) % ROUTERS;
    match byte % 4 {
        0 => address(router),
        1 => care_of(router),
        2 => prefix(router).with_interface_of(Ipv6Addr::from_bits(u128::from(byte) + 0x100)),
        _ => Ipv6Addr::new(0x2001, 0xdb8, 0x666, 0, 0, 0, 0, 1),
    }
}

impl Run {
    fn new() -> Self {
        let world = World::with(
            |router| careof_mobility::v6::access_router::AccessRouterConfig {
                buffer: LIMITS,
                max_arrivals: 40,
                buffer_and_forward: router == 0,
                ..router_config(router)
            },
            node_config(),
        );
        Self { world, tally: Tally::default(), numbers: 0 }
    }

    fn beliefs(&self) -> Beliefs {
        let routers = &self.world.routers;
        Beliefs {
            tunnels: (0..ROUTERS).map(|router| routers[router].tunnel(care_of(router))).collect(),
            arrivals: routers.iter().map(|router| router.arrival_count()).collect(),
            waiting: routers.iter().map(|router| router.buffered()).collect(),
            prepared: self.world.mobile.is_prepared(),
            new: self.world.mobile.new_care_of(),
        }
    }

    fn take(&mut self, [what, a, b, c, d]: Step) {
        let router = usize::from(a) % ROUTERS;
        match what % 16 {
            0..=2 => {
                let unit = [1, 20, 1000][usize::from(b % 3)];
                self.world.run(Duration::from_millis(u64::from(a % 64) * unit));
            }
            3 => self.world.discover(),
            4 => drop(self.world.prepare(router)),
            5 => self.world.leave(),
            6 => drop(self.world.come_to(router)),
            7 => {
                if let Some(place) = self.world.place {
                    self.world.settle_at(place);
                }
            }
            8 | 9 => {
                for _ in 0..=(b % 16) {
                    self.numbers += 1;
                    let destination = care_of(router);
                    self.world.send_data(self.numbers, destination);
                }
            }
            10 => {
                let chance = |byte: u8| f64::from(byte % 4) / 10.0;
                let jitter = Duration::from_millis(c.into());
                self.world.faults = Faults { loss: chance(a), duplicate: chance(b), jitter };
            }
            11 => match b % 3 {
                0 => {
                    let now = self.world.now;
                    self.world.routers[router].note_detached(now, care_of(router));
                }
                1 => self.world.mobile.returned(self.world.now),
                _ => {
                    let now = self.world.now;
                    self.world.routers[router].note_attached(now, care_of(router));
                }
            },
            12 | 13 => self.harmless(|run| run.forge(router, [b, c, d])),
            14 => self.harmless(|run| run.forge_from_link(router, [b, c, d])),
            _ => self.repeat(router, [b, c, d]),
        }
        self.world.run(Duration::ZERO);
        self.check();
    }

    /// Nothing that `action` does changes what anybody believes, and it has few answers.
    fn harmless(&mut self, action: impl FnOnce(&mut Self)) {
        self.world.run(Duration::ZERO);
        let (before, sent) = (self.beliefs(), self.world.sent.len());
        action(self);
        assert_eq!(self.beliefs(), before, "he has no key");
        assert!(self.world.sent.len() <= sent + 1, "one answer at most");
        self.tally.forged += 1;
    }

    fn forge(&mut self, router: usize, [b, c, d]: [u8; 3]) {
        let now = self.world.now;
        let crafted = match b % 4 {
            0 => Update {
                source: name(c),
                previous: name(d),
                key: if b & 0x10 == 0 { b"a guess" } else { ROUTER_KEY },
                signed: b & 0x20 == 0,
                units: u16::from(b & 0x40),
                ..Update::new(now, name(b ^ c))
            }
            .packet(),
            1 => Initiate {
                from: name(c),
                to: address(router),
                key: if b & 0x10 == 0 { Some(KEY) } else { None },
                code: InitiateCode::from_number(b >> 5),
                ..Initiate::new(now, name(d), name(c ^ d))
            }
            .packet(),
            2 => {
                let key = (b & 0x10 == 0).then_some(KEY);
                acknowledge(
                    u16::from_be_bytes([c, d]),
                    HandoverCode::from_number(b >> 5),
                    Some(stamp(now)),
                    key,
                )
            }
            _ => {
                let status = FastBindingStatus::from_number(b >> 2);
                let sequence = SequenceNumber(u16::from_be_bytes([c, d]));
                let (addresses, hop_limit, payload) =
                    fast_acknowledgement(sequence, status, Some(stamp(now)), (name(c), ROUTER_KEY));
                return self.world.tell_mobile(addresses, hop_limit, &payload);
            }
        };
        let (addresses, hop_limit, payload) = crafted;
        let router = if b % 4 == 1 { router } else { 0 };
        self.world.inject(router, addresses, hop_limit, payload);
    }

    fn forge_from_link(&mut self, router: usize, [b, c, d]: [u8; 3]) {
        let (addresses, hop_limit, payload) = match b % 2 {
            0 => announcement(name(c), OTHER_STATION),
            _ => {
                let role = LinkLayerRole::from_number(c % 9);
                let address = access_point(usize::from(d) % 5);
                solicitation(name(d), vec![HandoverLinkLayerAddress { role, address }])
            }
        };
        self.world.inject_from_link(router, addresses, if b & 0x10 == 0 { hop_limit } else { 254 }, payload);
    }

    /// Repeats something that was sent: to whom it was for, or to a router.
    fn repeat(&mut self, router: usize, [b, c, d]: [u8; 3]) {
        let sent = &self.world.sent;
        let recent = sent.len().saturating_sub(1 + usize::from(b) % 64);
        let Some((addresses, hop_limit, payload)) = sent.get(recent).cloned() else { return };
        // A node's announcement of itself says that it is there, whoever repeats it: nobody vouches for neighbor discovery.
        if matches!(payload, TransmitPayload::Icmp(_)) {
            return;
        }
        self.tally.repeated += 1;
        let addresses = if c % 4 == 0 { Addresses { source: name(d), ..addresses } } else { addresses };
        // What it was sent for may happen because of it, once; not more than that.
        self.world.inject(router, addresses, hop_limit, payload.clone());
        let (before, count) = (self.beliefs(), self.world.sent.len());
        self.world.inject(router, addresses, hop_limit, payload.clone());
        self.world.inject(router, addresses, hop_limit, payload);
        let mut after = self.beliefs();
        if addresses.real_destination() != address(router) {
            // A router keeps what is for a mobile node that it waits for, whoever sends it: as much as there is room for.
            after.waiting.clone_from(&before.waiting);
        }
        assert_eq!(after, before, "once more changes nothing");
        assert!(self.world.sent.len() <= count + 2);
    }

    fn check(&mut self) {
        for router in &self.world.routers {
            let (packets, bytes) = router.buffered();
            assert!(packets <= LIMITS.total_packets && bytes <= LIMITS.total_bytes);
            assert!(router.arrival_count() <= 40 && router.departure_count() <= ROUTERS + 1);
            let counters = router.buffer_counters();
            let gone = counters.released + counters.full + counters.expired + counters.copies;
            assert_eq!(counters.kept, gone + packets as u64, "{counters:?}");
        }
        self.tally.received = self.world.received.len() as u64;
        self.tally.prepared = self.world.routers.iter().map(|router| router.counters().accepted).sum::<u64>();
    }
}

/// Lets happen what `bytes` say, and at the end everything run out.
pub(super) fn run(bytes: &[u8]) -> Tally {
    let mut run = Run::new();
    for step in bytes.chunks_exact(5) {
        if let Ok(step) = Step::try_from(step) {
            run.take(step);
        }
    }
    run.world.faults = Faults::NONE;
    run.world.run(Duration::from_secs(200));
    for router in &run.world.routers {
        assert_eq!((router.departure_count(), router.arrival_count(), router.buffered()), (0, 0, (0, 0)));
        assert_eq!(router.next_timeout(), None, "nothing is left to be done");
    }
    assert_eq!(run.world.mobile.next_timeout(), None);
    // Each packet is received, or lost, or was a copy of one that was.
    let tally = run.tally;
    let mut all: Vec<u64> = run.world.numbers();
    all.extend(&run.world.lost);
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len() as u64, run.numbers, "none vanishes");
    tally
}
