//! A correspondent node between an honest mobile node and somebody who sends what he likes, and what it should believe.
//!
//! The attacker can send from any address, sees every update of the mobile node, and receives what is sent to his own addresses. The mobile
//! node moves, registers, deregisters, and is at times not heard for long.

use std::net::Ipv6Addr;
use std::time::Duration;

use careof_base::Instant;
use careof_mobility::v6::Addresses;
use careof_wire::mip6::{
    BindingId, BindingIdentifier, Message, MobilityOption, MobilityOptions, UpdateFlags,
};

use super::peer::*;

const ATTACKER_HOME: Ipv6Addr = ATTACKER;
const ATTACKER_CARE_OF: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0x667, 0, 0, 0, 0, 1);
/// What the attacker names in his messages; the first two are his own.
pub(super) const NAMES: [Ipv6Addr; 6] =
    [ATTACKER_HOME, ATTACKER_CARE_OF, HOME, CARE_OF[0], CARE_OF[1], CORRESPONDENT];
const MAX_LIFETIME: Duration = Duration::from_secs(420);

#[derive(Clone, Debug)]
pub(super) enum Step {
    Wait {
        seconds: u64,
    },
    /// The mobile node registers one of its care-of addresses, or with a lifetime of 0 deletes its binding.
    Register {
        care_of: usize,
        lifetime: u16,
        fresh: bool,
    },
    /// The attacker asks for a token in somebody's name.
    Ask {
        name: usize,
        home: bool,
    },
    /// He sends an update for these addresses with tokens he has: `skilled`, between his own addresses with the tokens for them, else
    /// with any.
    Forge {
        home: usize,
        care_of: usize,
        alternate: bool,
        tokens: (usize, usize),
        sequence: u16,
        lifetime: u16,
        named: bool,
        skilled: bool,
    },
    /// He repeats one of the mobile node's updates, with a bit changed or as it was.
    Repeat {
        which: usize,
        flip: Option<usize>,
        from: Option<usize>,
    },
    /// He sends a packet with a Home Address option.
    Claim {
        source: usize,
        home: usize,
    },
    /// A packet of the node's own to somebody.
    Send {
        name: usize,
    },
}

/// What the node should believe of the mobile node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Belief {
    care_of: Ipv6Addr,
    expires: Instant,
}

/// What has happened.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    /// Updates of the mobile node.
    pub(super) honest: usize,
    /// Updates of the attacker for his own addresses that were accepted.
    pub(super) forged: usize,
    /// Repetitions that were refused by their sequence number.
    pub(super) repeated: usize,
    /// Updates with nonces of the past.
    pub(super) expired: usize,
    /// Questions for a new binding.
    pub(super) asked: usize,
}

struct Run {
    world: World,
    tally: Tally,
    belief: Option<Belief>,
    /// The mobile node's tokens by care-of address, and when it got them.
    tokens: [Option<(Instant, Tokens)>; 2],
    sequence: u16,
    /// What the attacker has seen.
    seen: Vec<Crafted>,
    /// The tokens he has: for which address, of a Home Test or not.
    stolen: Vec<(Ipv6Addr, bool, Tokens)>,
}

impl Run {
    fn new() -> Self {
        let world = World::new();
        Self {
            world,
            tally: Tally::default(),
            belief: None,
            tokens: [None; 2],
            sequence: 0,
            seen: Vec::new(),
            stolen: Vec::new(),
        }
    }

    fn take(&mut self, step: &Step) {
        match *step {
            Step::Wait { seconds } => {
                let sent: Vec<_> = self
                    .world
                    .wait(Duration::from_secs(seconds))
                    .into_iter()
                    .map(|(_, transmit)| transmit)
                    .collect();
                for (way, message) in parsed(&sent) {
                    assert!(matches!(message, Message::BindingRefreshRequest(_)));
                    let asked = [HOME, ATTACKER_HOME, ATTACKER_CARE_OF].contains(&way.destination);
                    assert!(asked, "to who has a binding");
                    self.tally.asked += 1;
                }
            }
            Step::Register { care_of, lifetime, fresh } => self.register(care_of, lifetime, fresh),
            Step::Ask { name, home } => self.ask(NAMES[name], home),
            Step::Forge { .. } => self.forge(step),
            Step::Repeat { which, flip, from } => self.repeat(which, flip, from),
            Step::Claim { source, home } => {
                let (source, home) = (NAMES[source], NAMES[home]);
                let addresses = Addresses::new(source, CORRESPONDENT).with_home_address(home);
                let bound = self.world.node.bindings_of(home).any(|binding| binding.care_of == source);
                let accepted = self.world.node.accepts_home_address_option(self.world.now, &addresses, 6);
                assert_eq!(accepted, bound);
                let answers = self.world.poll();
                self.check_answers(&answers, source);
            }
            Step::Send { name } => {
                let care_of = self.world.node.care_of_address(NAMES[name]);
                let last = self.world.node.bindings_of(NAMES[name]).last().map(|binding| binding.care_of);
                assert_eq!(care_of, last);
            }
        }
        self.check();
    }

    /// The mobile node does what the RFC says, with tokens of up to 210 s.
    fn register(&mut self, care_of: usize, lifetime: u16, fresh: bool) {
        let now = self.world.now;
        let usable = self.tokens[care_of].filter(|(at, _)| now < *at + Duration::from_secs(210));
        let tokens = match usable.filter(|_| !fresh) {
            Some((_, tokens)) => tokens,
            None => {
                // Others may have used up the ration of answers; then it has to wait.
                let Some(tokens) = self.world.try_return_routability(HOME, CARE_OF[care_of]) else { return };
                self.tokens[care_of] = Some((now, tokens));
                tokens
            }
        };
        self.sequence += 1;
        let care_of = CARE_OF[care_of];
        let update = Craft { care_of, lifetime, ..Craft::new(self.sequence, tokens) }.signed();
        assert_eq!(self.world.status_of(&update), Some(0), "an honest mobile node is accepted");
        let granted = Duration::from_secs(u64::from(lifetime) * 4).min(MAX_LIFETIME);
        self.belief = (lifetime > 0).then(|| Belief { care_of, expires: now + granted });
        self.seen.push(update);
        self.tally.honest += 1;
    }

    fn ask(&mut self, name: Ipv6Addr, home: bool) {
        let sent = if home { self.world.home_test_init(name) } else { self.world.care_of_test_init(name) };
        self.check_answers(&sent, name);
        // He receives what is sent to his own addresses.
        if ![ATTACKER_HOME, ATTACKER_CARE_OF].contains(&name) {
            return;
        }
        for (_, message) in parsed(&sent) {
            let (index, token) = match message {
                Message::HomeTest(test) => (test.nonce_index, test.token),
                Message::CareOfTest(test) => (test.nonce_index, test.token),
                other => panic!("no test: {other:?}"),
            };
            let indices = careof_wire::mip6::NonceIndices { home: index, care_of: index };
            self.stolen.push((name, home, Tokens { home: token, care_of: token, indices }));
        }
    }

    fn forge(&mut self, step: &Step) {
        let &Step::Forge { home, care_of, alternate, tokens, sequence, lifetime, named, skilled } = step
        else {
            return;
        };
        if self.stolen.is_empty() {
            return;
        }
        let own = if skilled { 2 } else { NAMES.len() };
        let (home_address, care_of) = (NAMES[home % own], NAMES[care_of % own]);
        let right = |name: Ipv6Addr, of_home: bool| {
            let wanted =
                |stolen: &&(Ipv6Addr, bool, Tokens)| skilled && (stolen.0, stolen.1) == (name, of_home);
            self.stolen.iter().rev().find(wanted).map(|stolen| stolen.2)
        };
        let any = |at: usize| self.stolen[self.stolen.len() - 1 - at % self.stolen.len()].2;
        let first = right(home_address, true).unwrap_or_else(|| any(tokens.0));
        let second = right(care_of, false).unwrap_or_else(|| any(tokens.1));
        let mut indices = first.indices;
        indices.care_of = second.indices.care_of;
        let tokens = Tokens { home: first.home, care_of: second.care_of, indices };
        let mut options = MobilityOptions::new();
        if alternate {
            options.push(MobilityOption::AlternateCareOfAddress(care_of));
        }
        if named {
            let id = BindingIdentifier::new(BindingId(1 + sequence % 3));
            options.push(MobilityOption::BindingIdentifier(BindingIdentifier {
                care_of_address: Some(care_of.into()),
                ..id
            }));
        }
        let source = alternate.then_some(ATTACKER_CARE_OF);
        let flags = UpdateFlags::ACKNOWLEDGE;
        let update = Craft {
            home_address,
            care_of,
            sequence,
            lifetime,
            flags,
            tokens,
            options,
            source,
            covered: None,
        };
        let update = update.signed();
        let sent = self.world.receive_bytes(update.addresses, &update.bytes);
        self.check_answers(&sent, update.addresses.source);
    }

    fn repeat(&mut self, which: usize, flip: Option<usize>, from: Option<usize>) {
        if self.seen.is_empty() {
            return;
        }
        let mut update = self.seen[self.seen.len() - 1 - which % self.seen.len()].clone();
        if let Some(name) = from {
            update.addresses.source = NAMES[name];
        }
        if let Some(bit) = flip {
            let bit = bit % (update.bytes.len() * 8);
            update.bytes[bit / 8] ^= 1 << (bit % 8);
            // With the checksum made right, so that it is not what stops it.
            let (source, destination) = (update.addresses.real_source(), update.addresses.real_destination());
            update.bytes[4..6].fill(0);
            let sum = careof_wire::ipv6::upper_layer_checksum(source, destination, 135, &update.bytes);
            update.bytes[4..6].copy_from_slice(&sum.to_be_bytes());
        }
        let sent = self.world.receive_bytes(update.addresses, &update.bytes);
        self.check_answers(&sent, update.addresses.source);
    }

    /// Nothing is sent but to who sent something, once.
    fn check_answers(&mut self, sent: &[careof_mobility::v6::Transmit], source: Ipv6Addr) {
        assert!(sent.len() <= 1, "one message has one answer");
        assert!(sent.iter().all(|transmit| transmit.addresses.destination == source));
        for (_, message) in parsed(sent) {
            let Message::BindingAcknowledgement(answer) = message else { continue };
            match answer.status.number() {
                0 => self.tally.forged += 1,
                135 => self.tally.repeated += 1,
                136..=138 => self.tally.expired += 1,
                _ => {}
            }
        }
    }

    fn check(&mut self) {
        let now = self.world.now;
        self.belief = self.belief.filter(|belief| belief.expires > now);
        let believed: Vec<_> = self
            .world
            .node
            .bindings_of(HOME)
            .map(|binding| Belief { care_of: binding.care_of, expires: binding.expires })
            .collect();
        assert_eq!(
            believed,
            self.belief.into_iter().collect::<Vec<_>>(),
            "only the mobile node says where it is"
        );
        for binding in self.world.node.bindings() {
            assert!([HOME, ATTACKER_HOME, ATTACKER_CARE_OF].contains(&binding.home_address));
            assert!(binding.expires > now && binding.expires <= now + MAX_LIFETIME);
            if binding.home_address != HOME {
                let own = [ATTACKER_HOME, ATTACKER_CARE_OF].contains(&binding.care_of);
                assert!(own, "packets are sent to {}, who has not asked for them", binding.care_of);
            }
        }
        assert!(self.world.node.remembered() <= 3);
        assert!(self.world.node.next_timeout().is_none_or(|(at, _)| at > now));
        self.world.events.clear();
    }
}

/// Takes steps one after the other; at the end all becomes quiet.
pub(super) fn run(steps: impl IntoIterator<Item = Step>) -> Tally {
    let mut run = Run::new();
    steps.into_iter().for_each(|step| run.take(&step));
    run.world.wait(Duration::from_secs(700));
    assert_eq!((run.world.node.remembered(), run.world.node.next_timeout()), (0, None), "nothing is left");
    run.tally
}

/// The steps that bytes stand for, nine each; 80 at most.
pub(super) fn steps_of(bytes: &[u8]) -> impl Iterator<Item = Step> {
    let name = |byte: u8| usize::from(byte) % NAMES.len();
    bytes.chunks_exact(9).take(80).map(move |chunk| {
        let at = |place: usize| chunk.get(place).copied().unwrap_or_default();
        let flag = |bit: u8| at(8) >> bit & 1 == 1;
        match at(0) % 8 {
            0 => Step::Wait { seconds: u64::from(at(1)) * if flag(0) { 2 } else { 1 } },
            1 | 2 => {
                Step::Register { care_of: usize::from(at(1) % 2), lifetime: u16::from(at(2)), fresh: flag(0) }
            }
            3 => {
                Step::Ask { name: if flag(1) { name(at(1)) } else { usize::from(at(1) % 2) }, home: flag(0) }
            }
            4 => Step::Forge {
                home: name(at(1)),
                care_of: name(at(2)),
                alternate: flag(0),
                tokens: (usize::from(at(3)), usize::from(at(4))),
                sequence: u16::from_be_bytes([at(5), at(6)]),
                lifetime: u16::from(at(7)),
                named: flag(1),
                skilled: flag(2),
            },
            5 => Step::Repeat {
                which: usize::from(at(1)),
                flip: flag(0).then_some(usize::from(u16::from_be_bytes([at(2), at(3)]))),
                from: flag(1).then_some(name(at(4))),
            },
            6 => Step::Claim { source: name(at(1)), home: name(at(2)) },
            _ => Step::Send { name: name(at(1)) },
        }
    })
}
