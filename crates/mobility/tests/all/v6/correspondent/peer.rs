//! A correspondent node and what is sent to it.

use std::net::Ipv6Addr;
use std::time::Duration;

use careof_base::{Instant, RandomStream};
use careof_mobility::InterfaceId;
use careof_mobility::v6::{
    Addresses, CorrespondentNode, CorrespondentNodeConfig, Event, Input, Transmit, Wake,
};
use careof_wire::mip6::{
    BindingAcknowledgement, BindingAuthorization, BindingManagementKey, BindingUpdate, CareOfTestInit,
    HomeTestInit, InitCookie, KeygenToken, Lifetime, Message, MobilityOption, MobilityOptions, NonceIndices,
    SequenceNumber, UpdateFlags,
};

pub(super) const CORRESPONDENT: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 3, 0, 0, 0, 0, 7);
pub(super) const HOME: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 5);
pub(super) const CARE_OF: [Ipv6Addr; 2] =
    [Ipv6Addr::new(0x2001, 0xdb8, 2, 0, 0, 0, 0, 0x77), Ipv6Addr::new(0x2001, 0xdb8, 4, 0, 0, 0, 0, 0x77)];
pub(super) const ATTACKER: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0x666, 0, 0, 0, 0, 1);

const COOKIE: InitCookie = InitCookie(*b"a cookie");

/// A correspondent node and the time.
pub(super) struct World {
    pub(super) now: Instant,
    pub(super) node: CorrespondentNode,
    pub(super) events: Vec<Event>,
}

/// What return routability gives.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tokens {
    pub(super) home: KeygenToken,
    pub(super) care_of: KeygenToken,
    pub(super) indices: NonceIndices,
}

impl World {
    pub(super) fn new() -> Self {
        Self::with(CorrespondentNodeConfig::new(CORRESPONDENT))
    }

    pub(super) fn with(config: CorrespondentNodeConfig) -> Self {
        let random = RandomStream::new(1, 0, "correspondent");
        let node = CorrespondentNode::new(config, random).expect("a good configuration");
        Self { now: Instant::from_secs(1_000), node, events: Vec::new() }
    }

    /// What the node sends now.
    pub(super) fn poll(&mut self) -> Vec<Transmit> {
        self.events.extend(std::iter::from_fn(|| self.node.poll_event()));
        assert_eq!(self.node.binding_count(), self.node.bindings().count());
        std::iter::from_fn(|| self.node.poll_transmit(self.now)).collect()
    }

    /// Hands in a Mobility Header; returns what the node sends.
    pub(super) fn receive_bytes(&mut self, addresses: Addresses, message: &[u8]) -> Vec<Transmit> {
        self.node.handle_input(self.now, Input::Mobility { interface: InterfaceId(0), addresses, message });
        self.poll()
    }

    pub(super) fn receive(&mut self, addresses: Addresses, message: &Message) -> Vec<Transmit> {
        let bytes =
            message.emit(addresses.real_source(), addresses.real_destination()).expect("short enough");
        self.receive_bytes(addresses, &bytes)
    }

    pub(super) fn receive_icmp(&mut self, source: Ipv6Addr, message: &[u8]) {
        let addresses = Addresses::new(source, CORRESPONDENT);
        let input = Input::Icmp { interface: InterfaceId(0), addresses, hop_limit: 60, message };
        self.node.handle_input(self.now, input);
        assert_eq!(self.poll(), []);
    }

    /// Lets time pass; returns what the node sends meanwhile, and when.
    pub(super) fn wait(&mut self, span: Duration) -> Vec<(Instant, Transmit)> {
        let end = self.now + span;
        let mut sent = Vec::new();
        while let Some((at, _)) = self.node.next_timeout().filter(|(at, _)| *at <= end) {
            assert!(at > self.now, "it wakes for something that was due before");
            self.now = at;
            self.node.handle_timeout(at);
            sent.extend(self.poll().into_iter().map(|transmit| (at, transmit)));
        }
        self.now = end;
        sent
    }

    pub(super) fn next_wake(&self) -> Option<(Duration, Wake)> {
        let (at, wake) = self.node.next_timeout()?;
        Some((at.saturating_duration_since(self.now), wake))
    }

    /// Asks for a home keygen token from `home_address`; whoever gets the answer has the token.
    pub(super) fn home_test_init(&mut self, home_address: Ipv6Addr) -> Vec<Transmit> {
        let init = HomeTestInit { cookie: COOKIE, options: MobilityOptions::new() };
        self.receive(Addresses::new(home_address, CORRESPONDENT), &Message::HomeTestInit(init))
    }

    pub(super) fn care_of_test_init(&mut self, care_of_address: Ipv6Addr) -> Vec<Transmit> {
        let init = CareOfTestInit { cookie: COOKIE, options: MobilityOptions::new() };
        self.receive(Addresses::new(care_of_address, CORRESPONDENT), &Message::CareOfTestInit(init))
    }

    /// Both tests, with both answers received.
    pub(super) fn return_routability(&mut self, home_address: Ipv6Addr, care_of_address: Ipv6Addr) -> Tokens {
        self.try_return_routability(home_address, care_of_address).expect("both tests")
    }

    /// Both tests; `None` when there have been too many.
    pub(super) fn try_return_routability(
        &mut self,
        home_address: Ipv6Addr,
        care_of_address: Ipv6Addr,
    ) -> Option<Tokens> {
        let (to, home) = parsed(&self.home_test_init(home_address)).pop()?;
        assert_eq!(to, Addresses::new(CORRESPONDENT, home_address));
        let Message::HomeTest(home) = home else { panic!("no Home Test: {home:?}") };
        let (to, care_of) = parsed(&self.care_of_test_init(care_of_address)).pop()?;
        assert_eq!(to, Addresses::new(CORRESPONDENT, care_of_address));
        let Message::CareOfTest(care_of) = care_of else { panic!("no Care-of Test: {care_of:?}") };
        assert_eq!([home.cookie, care_of.cookie], [COOKIE; 2]);
        let indices = NonceIndices { home: home.nonce_index, care_of: care_of.nonce_index };
        Some(Tokens { home: home.token, care_of: care_of.token, indices })
    }

    /// Return routability and an update, as an honest mobile node does it.
    pub(super) fn register(&mut self, home_address: Ipv6Addr, care_of: Ipv6Addr, sequence: u16) -> Crafted {
        let tokens = self.return_routability(home_address, care_of);
        let crafted = Craft { home_address, care_of, ..Craft::new(sequence, tokens) }.signed();
        let status = self.receive_update(&crafted).map(|answer| answer.status.number());
        assert_eq!(status, Some(0), "an honest mobile node is accepted");
        crafted
    }

    /// Hands in an update; returns the acknowledgement, if there is one.
    pub(super) fn receive_update(&mut self, crafted: &Crafted) -> Option<BindingAcknowledgement> {
        match parsed(&self.receive_bytes(crafted.addresses, &crafted.bytes)).pop() {
            Some((_, Message::BindingAcknowledgement(acknowledgement))) => Some(acknowledgement),
            None => None,
            other => panic!("no acknowledgement: {other:?}"),
        }
    }

    pub(super) fn status_of(&mut self, crafted: &Crafted) -> Option<u8> {
        self.receive_update(crafted).map(|acknowledgement| acknowledgement.status.number())
    }
}

/// The messages that were sent, with their checksums checked, and their addresses.
pub(super) fn parsed(sent: &[Transmit]) -> Vec<(Addresses, Message)> {
    let read = |transmit: &Transmit| {
        let addresses = transmit.addresses;
        let (source, destination) = (addresses.real_source(), addresses.real_destination());
        let message = Message::parse(source, destination, transmit.payload.bytes()).expect("a sound message");
        (addresses, message)
    };
    sent.iter().map(read).collect()
}

/// An update, and how it is signed and sent.
#[derive(Clone, Debug)]
pub(super) struct Craft {
    pub(super) home_address: Ipv6Addr,
    pub(super) care_of: Ipv6Addr,
    pub(super) sequence: u16,
    pub(super) lifetime: u16,
    pub(super) flags: UpdateFlags,
    pub(super) tokens: Tokens,
    /// Beside the Nonce Indices and the authorization.
    pub(super) options: MobilityOptions,
    /// Where the packet comes from; its Home Address option is left out when that is the home address.
    pub(super) source: Option<Ipv6Addr>,
    /// The care-of address that is signed, where it is not the one to be expected.
    pub(super) covered: Option<Ipv6Addr>,
}

/// An update as it goes over the wire.
#[derive(Clone, Debug)]
pub(super) struct Crafted {
    pub(super) addresses: Addresses,
    pub(super) bytes: Vec<u8>,
    pub(super) key: BindingManagementKey,
    pub(super) covered: Ipv6Addr,
}

impl Craft {
    /// A good update of [`HOME`] to be at the first of [`CARE_OF`] for 400 s.
    pub(super) fn new(sequence: u16, tokens: Tokens) -> Self {
        Self {
            home_address: HOME,
            care_of: CARE_OF[0],
            sequence,
            lifetime: 100,
            flags: UpdateFlags::ACKNOWLEDGE,
            tokens,
            options: MobilityOptions::new(),
            source: None,
            covered: None,
        }
    }

    pub(super) fn signed(self) -> Crafted {
        let is_deletion = self.lifetime == 0;
        let key = if is_deletion {
            BindingManagementKey::for_deletion(self.tokens.home)
        } else {
            BindingManagementKey::new(self.tokens.home, self.tokens.care_of)
        };
        let covered = self.covered.unwrap_or(if is_deletion { self.home_address } else { self.care_of });
        let source = self.source.unwrap_or(self.care_of);
        let mut addresses = Addresses::new(source, CORRESPONDENT);
        if source != self.home_address {
            addresses = addresses.with_home_address(self.home_address);
        }
        let message = Message::BindingUpdate(BindingUpdate {
            sequence: SequenceNumber(self.sequence),
            flags: self.flags,
            lifetime: Lifetime::from_units(self.lifetime),
            options: self.options.with(MobilityOption::NonceIndices(self.tokens.indices)),
        });
        let authorization =
            BindingAuthorization { key: &key, care_of_address: covered, correspondent: CORRESPONDENT };
        let bytes = message
            .emit_authorized(addresses.real_source(), addresses.real_destination(), &authorization)
            .expect("short enough");
        Crafted { addresses, bytes, key, covered }
    }
}

impl Crafted {
    /// Whether an answer is authentic.
    pub(super) fn proves(&self, answer: &Transmit) -> bool {
        let authorization = BindingAuthorization {
            key: &self.key,
            care_of_address: self.covered,
            correspondent: CORRESPONDENT,
        };
        authorization.verify(answer.payload.bytes())
    }
}
