//! A domain with a neighbour that lies, read from any bytes: in cells and on links it hands in whatever it likes, and it has two addresses and
//! their keys. Beside it is the same domain without it. The mobile host that walks through both gets the same packets by the same routes, and
//! no table is longer than it may be.

use std::net::Ipv4Addr;

use careof_base::Instant;
use careof_mobility::InterfaceId;
use careof_mobility::micro::{
    Blocks, Buffer, CellularHandover, CellularIp, GroupMapping, Hawaii, MulticastMobility, NetworkKey,
    PathScheme, Scheme, Trigger,
};
use careof_mobility::v4::Prefix;
use careof_wire::micro::{Body, MicroMessage};

use super::tree::{CELL, Tree, UP, at, clock, even, host_address, ms, network_key, room_for, router_address};

/// Mobile nodes that a router has room for.
const ROOM: usize = 6;
/// Packets that a router keeps for one mobile node, and for all.
const KEPT: usize = 20;

/// The host that does nothing wrong.
const VICTIM: usize = 0;
/// Addresses whose keys the liar has.
const OWN: [usize; 2] = [1, 2];

/// What has happened in a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Messages that were handed in by the liar.
    pub(crate) lies: u64,
    /// Packets that the victim has had.
    pub(crate) delivered: usize,
    /// Handovers of the victim.
    pub(crate) handovers: usize,
    /// Most host routes of a router at any time.
    pub(crate) routes: usize,
}

/// Every protocol with what could be attacked in it.
pub(crate) fn schemes() -> Vec<Scheme> {
    let buffer = Buffer { total_packets: KEPT, ..Buffer::packets(KEPT) };
    let blocks = Blocks { buffer, ..Blocks::default() };
    let groups = Prefix::new([239, 1, 0, 0].into(), 16);
    let multicast = MulticastMobility::new(GroupMapping { groups });
    let semi_soft = CellularHandover::SemiSoft { delay: ms(10), packets: KEPT, lead: ms(50) };
    let mut schemes = vec![
        Scheme::Blocks(Blocks { trigger: Trigger::NoPath, lead: ms(50), ..blocks }),
        Scheme::Blocks(Blocks { trigger: Trigger::Source, lead: ms(50), bicast: ms(30), ..blocks }),
        Scheme::Blocks(Blocks { forward: ms(500), ..blocks }),
        Scheme::CellularIp(CellularIp::default()),
        Scheme::CellularIp(CellularIp { handover: semi_soft, ..CellularIp::default() }),
        Scheme::CellularIp(CellularIp { paging_cache: false, ..CellularIp::default() }),
        Scheme::Multicast(MulticastMobility { trigger: Trigger::NoPath, lead: ms(50), buffer, ..multicast }),
        Scheme::Multicast(MulticastMobility { leave_delay: ms(300), ..multicast }),
    ];
    schemes
        .extend(PathScheme::ALL.map(|scheme| Scheme::Hawaii(Hawaii { scheme, buffer, ..Hawaii::default() })));
    schemes
}

/// Takes bytes one after the other; zeros when there are no more.
struct Choices<'a>(&'a [u8]);

impl Choices<'_> {
    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    fn below(&mut self, count: usize) -> usize {
        usize::from(self.byte()) % count.max(1)
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }

    fn take(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.byte()).collect()
    }
}

const STATIONS: [usize; 4] = [3, 4, 5, 6];

/// The routers above a station, and itself.
fn path(station: usize) -> [usize; 3] {
    [0, if station < 5 { 1 } else { 2 }, station]
}

struct Model<'a> {
    choices: Choices<'a>,
    scheme: Scheme,
    /// With the liar, and without.
    trees: [Tree; 2],
    /// Where the victim is.
    station: usize,
    now: Instant,
    tally: Tally,
}

impl Model<'_> {
    fn both(&mut self, act: impl Fn(&mut Tree)) {
        self.trees.iter_mut().for_each(act);
    }

    fn pass(&mut self, millis: u64) {
        self.now += ms(millis);
        let now = self.now;
        self.both(|tree| tree.run_until(now));
        self.check();
    }

    fn check(&mut self) {
        let [with, without] = &self.trees;
        for router in path(self.station) {
            let routes = [with, without].map(|tree| tree.routes(VICTIM)[router]);
            assert_eq!(routes[0], routes[1], "router {router} at {} under {:?}", self.now, self.scheme);
        }
        assert_eq!(with.delivered(VICTIM), without.delivered(VICTIM), "{:?}", self.scheme);
        for router in 0..with.router_count() {
            let router = with.router(router);
            assert!(router.route_count() <= OWN.len() + 1, "addresses without a key have no routes");
            assert!(router.paging_count() <= OWN.len() + 1);
            assert!(router.author_count() <= 4 * ROOM);
            assert!(router.buffered().0 <= KEPT);
            self.tally.routes = self.tally.routes.max(router.route_count());
        }
        self.tally.delivered = with.delivered(VICTIM).len();
    }

    /// Hands a message in, in the world with the liar.
    fn lie(&mut self, router: usize, from: InterfaceId, source: Ipv4Addr, payload: &[u8]) {
        self.tally.lies += 1;
        self.trees[0].inject(router, from, source, payload);
    }

    fn interface(&mut self, router: usize) -> InterfaceId {
        match self.choices.below(8) {
            0 => UP,
            1 => InterfaceId(1),
            2 => InterfaceId(2),
            3 => InterfaceId(u16::from(self.choices.byte()) * 7),
            _ if router >= 3 => CELL,
            _ => InterfaceId(1),
        }
    }

    fn address(&mut self) -> Ipv4Addr {
        match self.choices.below(6) {
            0 => host_address(OWN[0]),
            1 => host_address(OWN[1]),
            2 | 3 => host_address(VICTIM),
            4 => router_address(self.choices.below(8)),
            _ => Ipv4Addr::new(10, 9, self.choices.byte(), self.choices.byte()),
        }
    }

    fn body(&mut self) -> Body {
        let scheme = self.choices.of(&PathScheme::ALL);
        let addresses: Vec<Ipv4Addr> = (0..=self.choices.below(4)).map(|_| self.address()).collect();
        match self.choices.below(15) {
            0 => Body::Attach,
            1 => Body::Announce { next: addresses },
            2 => Body::Expect { candidates: addresses },
            3 => Body::Confirm,
            4 => Body::RouteUpdate { semi_soft: false },
            5 => Body::RouteUpdate { semi_soft: true },
            6 => Body::PagingUpdate,
            7 => Body::PagingTeardown,
            8 => Body::PathSetupPowerUp,
            9 => Body::PathSetupUpdate { scheme, old: addresses[0] },
            10 => Body::PathSetupReturn { scheme },
            11 => Body::PathRefresh { mobiles: addresses },
            12 => Body::Report,
            13 => Body::Join,
            _ => Body::Prune,
        }
    }

    fn stamp(&mut self) -> u64 {
        let shift = i64::from(self.choices.byte() as i8) << 27;
        clock().at(self.now).to_bits().wrapping_add_signed(shift)
    }

    /// A message with any fields, signed with what the liar has: its own keys, or one it makes up.
    fn forge(&mut self) {
        let (mobile, station, origin) = (self.address(), self.address(), self.address());
        let (body, timestamp) = (self.body(), self.stamp());
        let message = MicroMessage { mobile, station, origin, timestamp, body };
        let own = network_key().mobile_key(host_address(self.choices.of(&OWN)));
        let guessed = NetworkKey::new(*b"the routers knew").unwrap();
        let payload = match self.choices.below(3) {
            0 => own.sign(&message),
            1 => guessed.mobile_key(mobile).sign(&message),
            _ => message.emit(b"the routers knew"),
        };
        let router = self.choices.below(7);
        let (from, source) = (self.interface(router), self.address());
        self.lie(router, from, source, &payload);
    }

    /// A message in its own name that is in order, or nearly; several times, with ever later timestamps.
    fn flood(&mut self) {
        let mobile = host_address(self.choices.of(&OWN));
        let station = self.choices.of(&STATIONS);
        let here = match self.scheme {
            Scheme::Blocks(_) => Body::Attach,
            Scheme::CellularIp(_) => Body::RouteUpdate { semi_soft: self.choices.below(2) == 0 },
            Scheme::Hawaii(_) => Body::PathSetupPowerUp,
            Scheme::Multicast(_) => Body::Report,
        };
        let body = if self.choices.below(2) == 0 { here } else { self.body() };
        let count = self.choices.below(48);
        let first = clock().at(self.now).to_bits();
        for n in 0..=count as u64 {
            let message = MicroMessage {
                mobile,
                station: router_address(station),
                origin: mobile,
                timestamp: first + n,
                body: body.clone(),
            };
            let payload = network_key().mobile_key(mobile).sign(&message);
            self.lie(station, CELL, mobile, &payload);
        }
    }

    /// Something that was in the air, as it was or changed, in some cell.
    fn replay(&mut self) {
        let heard = &self.trees[0].heard;
        if heard.is_empty() {
            return;
        }
        let back = usize::from(self.choices.byte()) % heard.len();
        let mut payload = heard[heard.len() - 1 - back].1.clone();
        if self.choices.below(3) == 0 {
            let at = usize::from(self.choices.byte()) % payload.len();
            payload[at] ^= 1 << self.choices.below(8);
        }
        let station = self.choices.of(&STATIONS);
        let source = self.choices.of(&[host_address(VICTIM), host_address(OWN[0])]);
        self.lie(station, CELL, source, &payload);
    }

    fn step(&mut self) {
        match self.choices.below(12) {
            0 => {
                let len = self.choices.below(80);
                let payload = self.choices.take(len);
                let router = self.choices.below(7);
                let (from, source) = (self.interface(router), self.address());
                self.lie(router, from, source, &payload);
            }
            1..=4 => self.forge(),
            5 => self.flood(),
            6 | 7 => self.replay(),
            8 => {
                // A packet that says it is from the victim, in a cell where it is not.
                let station = self.choices.of(&STATIONS);
                if station != self.station {
                    let tree = &mut self.trees[0];
                    tree.inject_packet(station, CELL, host_address(VICTIM), Ipv4Addr::new(198, 51, 100, 9));
                }
            }
            9 => {
                let (old, new) = (self.station, self.choices.of(&STATIONS));
                let gap = self.choices.below(120) as u64;
                if new != old {
                    let (scheme, time) = (self.scheme, self.now + ms(60));
                    self.both(|tree| tree.hard(&scheme, time, VICTIM, old, new, ms(gap)));
                    // Lies go on while it moves; which routers have its routes is compared when it is there.
                    for _ in 0..self.choices.below(4) {
                        self.forge();
                        self.replay();
                    }
                    self.station = new;
                    self.tally.handovers += 1;
                    self.now += ms(60 + gap + 100);
                }
                self.pass(0);
            }
            _ => {
                let millis = self.choices.below(256) as u64;
                self.pass(millis);
            }
        }
    }
}

/// Runs what these bytes say.
pub(crate) fn run(data: &[u8]) -> Tally {
    let mut choices = Choices(data);
    let scheme = choices.of(&schemes());
    let tree = || {
        let mut tree = Tree::with(&even(), 3, scheme, room_for(ROOM));
        tree.attach_at(Instant::ZERO, VICTIM, 3);
        tree.stream(VICTIM, 10, ms(20), 500);
        tree.run_until(at(50));
        tree
    };
    let mut model =
        Model { choices, scheme, trees: [tree(), tree()], station: 3, now: at(50), tally: Tally::default() };
    while !model.choices.0.is_empty() && model.now < at(9_000) {
        model.step();
    }
    model.pass(500);
    model.tally
}
