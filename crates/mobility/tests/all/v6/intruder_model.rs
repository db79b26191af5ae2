//! A mobile node, its home agent and a correspondent node, with an intruder between them, and what he must not achieve.
//!
//! The intruder can send from any address to the mobile node and to the home agent, and sees what they send each other. He has no key. The
//! mobile node moves meanwhile, on networks that may lose, repeat and reorder.

use std::collections::BTreeSet;
use std::net::Ipv6Addr;
use std::time::Duration;

use careof_base::Instant;
use careof_mobility::InterfaceId;
use careof_mobility::v6::*;
use careof_wire::icmpv6::{
    HomeAgentAddressDiscoveryReply, HomeAgentAddressDiscoveryRequest, Icmpv6Message,
    MobilePrefixAdvertisement, MobilePrefixSolicitation, NdOption, ParameterProblem, ParameterProblemCode,
    PrefixInformation, PrefixLifetime,
};
use careof_wire::mip6::{
    AcknowledgementFlags, Algorithm, BindingAcknowledgement, BindingError, BindingErrorStatus, BindingId,
    BindingIdentifier, BindingRefreshRequest, BindingStatus, CareOfTest, HomeTest, InitCookie, KeygenToken,
    Lifetime, Message, MobileHomeAuthentication, MobilityOption, MobilityOptions, NonceIndex, PathProbe,
    PathProbeKind, SequenceNumber, Spi, UnknownMessage, UpdateFlags,
};

use super::craft::*;
use super::world::*;

const INTRUDER: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0x666, 0, 0, 0, 0, 1);
/// What he names in his messages.
const NAMES: [Ipv6Addr; 7] = [INTRUDER, HA, HOME, CN, care_of(2), care_of(4), care_of(66)];
const INTERFACES: [InterfaceId; 2] = [WLAN, GSM];
/// The networks that an interface can come to.
const NETWORKS: [[u16; 3]; 2] = [[AT_HOME, 2, 3], [4, 5, 6]];
/// How much of what was sent he remembers.
const MEMORY: usize = 64;

/// One thing that happens, as bytes say: what, and how.
type Step = [u8; 7];

/// What has happened.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    /// Registrations that the mobile node has made.
    pub(super) accepted: u64,
    /// Forged updates that the home agent has refused.
    pub(super) refused: u64,
    /// Forged acknowledgements of what the mobile node did send, refused by their authenticator.
    pub(super) unsigned: u64,
    /// Messages repeated.
    pub(super) repeated: u64,
    /// Steps after which the mobile node and the correspondent node use the direct route.
    pub(super) optimized: u64,
}

struct Run {
    world: World,
    timestamps: bool,
    /// Whether each interface has a binding of its own.
    multiple_care_of: bool,
    /// The care-of addresses that the mobile node has signed.
    signed: BTreeSet<Ipv6Addr>,
    /// The last update that was sent to the home agent: its addresses and number.
    last_update: Option<(Addresses, SequenceNumber)>,
    tally: Tally,
    /// Packets of data, numbered.
    packets: u64,
}

/// What may not change by what somebody without the key says.
type Beliefs = (Vec<Ipv6Addr>, Option<Ipv6Addr>, bool, Option<Ipv6Addr>);

impl Run {
    fn new(timestamps: bool, multiple_care_of: bool) -> Self {
        let security = if timestamps { super::craft::timestamps() } else { sequence_numbers() };
        let optimizing = Some(RouteOptimizationConfig::default());
        let mobile =
            MobileNodeConfig { route_optimization: optimizing, multiple_care_of, ..node(security.clone()) };
        let mut world = World::new(mobile, config(security));
        world.attach(WLAN, 2);
        world.switch_to(WLAN);
        let (signed, tally) = (BTreeSet::new(), Tally::default());
        Self { world, timestamps, multiple_care_of, signed, last_update: None, tally, packets: 0 }
    }

    fn beliefs(&self) -> Beliefs {
        let mobile = &self.world.mobile;
        (self.world.tunnelled_to(), mobile.care_of(), mobile.is_registered(), mobile.home_agent())
    }

    fn take(&mut self, [what, a, b, c, d, e, f]: Step) {
        let interface = INTERFACES[usize::from(a % 2)];
        match what % 16 {
            0..=2 => {
                let unit = [10, 100, 2_000][usize::from(b % 3)];
                self.world.run(Duration::from_millis(u64::from(a) * unit));
            }
            3 => {
                self.world.detach(interface);
                self.world.attach(interface, NETWORKS[usize::from(a % 2)][usize::from(b % 3)]);
            }
            4 => self.world.detach(interface),
            5 => self.world.switch_to(interface),
            6 => {
                let chance = |byte: u8| f64::from(byte % 4) / 10.0;
                let jitter = Duration::from_millis(c.into());
                self.world.faults = Faults { loss: chance(a), duplicate: chance(b), jitter };
            }
            7 => {
                self.packets += 1;
                self.world.send_down(self.packets);
                self.world.send_up(self.packets);
            }
            8 => {
                let stranger = INTRUDER.to_bits() + u128::from(u16::from_be_bytes([a, b]));
                self.world.mobile.note_correspondent(self.world.now, Ipv6Addr::from_bits(stranger));
            }
            9 | 10 => self.harmless(|run| run.forge_update([a, b, c, d, e, f])),
            11 | 12 => self.harmless(|run| run.forge_answer(interface, [b, c, d, e, f])),
            13 => self.harmless(|run| run.forge_icmp(interface, [b, c, d, e, f])),
            _ => self.repeat(interface, [b, c, d, e, f]),
        }
        self.check();
    }

    /// Nothing that `action` does changes what anybody believes, and it has few answers.
    fn harmless(&mut self, action: impl FnOnce(&mut Self)) {
        let before = self.beliefs();
        let sent = self.world.sent.len() + self.world.sent_icmp.len();
        action(self);
        self.world.run(Duration::ZERO);
        assert_eq!(self.beliefs(), before, "he has no key");
        let answers = self.world.sent.len() + self.world.sent_icmp.len() - sent;
        assert!(answers <= 4, "{answers} answers");
    }

    fn forge_update(&mut self, [a, b, c, d, e, f]: [u8; 6]) {
        let (care_of, source) = (name(a), name(b));
        let flags = UpdateFlags::HOME_REGISTRATION.with(match f % 4 {
            0 => UpdateFlags::ACKNOWLEDGE,
            1 => UpdateFlags::LINK_LOCAL_ADDRESS_COMPATIBILITY,
            2 => UpdateFlags::OVERWRITE,
            _ => UpdateFlags::HOME_REGISTRATION,
        });
        let mut forged = Update {
            units: u16::from(d) / 2,
            source,
            flags,
            key: if f & 0x10 == 0 { b"a guess" } else { b"" },
            spi: if f & 0x20 == 0 { SPI } else { Spi(257) },
            home_address: if f & 0x40 == 0 { HOME } else { name(c) },
            ..Update::new(u16::from_be_bytes([c, e]), care_of)
        };
        if f & 4 != 0 {
            forged = forged.stamped(clock().at(self.world.now));
        }
        if f & 8 != 0 {
            forged =
                forged.with(MobilityOption::BindingIdentifier(BindingIdentifier::new(BindingId(c.into()))));
        }
        let (addresses, bytes) = forged.packet();
        self.tell_home_agent(addresses, &bytes);
    }

    fn forge_answer(&mut self, interface: InterfaceId, [b, c, d, e, f]: [u8; 5]) {
        let options = MobilityOptions::new();
        let nonce_index = NonceIndex(c.into());
        let cookie = InitCookie([c, d, e, 0, 0, 0, 0, 0]);
        let token = KeygenToken([d; 8]);
        let message = match b % 6 {
            0 => return self.forge_acknowledgement(interface, [c, d, e, f]),
            1 => Message::BindingError(BindingError {
                status: if c % 2 == 0 {
                    BindingErrorStatus::UnknownBinding
                } else {
                    BindingErrorStatus::UnrecognizedMhType
                },
                home_address: name(d),
                options,
            }),
            2 => Message::HomeTest(HomeTest { nonce_index, cookie, token, options }),
            3 => Message::CareOfTest(CareOfTest { nonce_index, cookie, token, options }),
            4 => Message::BindingRefreshRequest(BindingRefreshRequest { options }),
            _ if c % 2 == 0 => Message::PathProbe(PathProbe {
                kind: if d % 2 == 0 { PathProbeKind::Probe } else { PathProbeKind::Answer },
                home_address: if d % 4 < 2 { HOME } else { name(d) },
                sequence: e.into(),
                nonce: f.into(),
                counts: None,
                options,
            }),
            _ => match UnknownMessage::new(c | 0x80, &[d; 10]) {
                Some(message) => Message::Unknown(message),
                None => return,
            },
        };
        let from = name(e);
        let destination = self.world.mobile.care_of().filter(|_| f % 2 == 0).unwrap_or(HOME);
        let mut addresses = Addresses::new(from, destination);
        if destination != HOME {
            addresses = addresses.with_type_2_routing(HOME);
        }
        let Ok(bytes) = message.emit(addresses.real_source(), addresses.real_destination()) else { return };
        self.world.tell(Input::Mobility { interface, addresses, message: &bytes });
        let addresses = Addresses::new(from, HA);
        if let Ok(bytes) = message.emit(from, HA) {
            self.tell_home_agent(addresses, &bytes);
        }
    }

    /// Half of them answer the last update to the home agent, as far as somebody can who has only seen it.
    fn forge_acknowledgement(&mut self, interface: InterfaceId, [c, d, e, f]: [u8; 4]) {
        let (addresses, sequence) = match self.last_update.filter(|_| d % 2 == 0) {
            Some((update, sequence)) => {
                let back = Addresses::new(HA, update.source);
                (
                    update.home_address.map_or(back, |home_address| back.with_type_2_routing(home_address)),
                    sequence,
                )
            }
            None => (Addresses::new(name(e), HOME), SequenceNumber(u16::from_be_bytes([d, e]))),
        };
        let message = Message::BindingAcknowledgement(BindingAcknowledgement {
            status: BindingStatus::from_number(c),
            flags: AcknowledgementFlags::default(),
            sequence,
            lifetime: Lifetime::from_units(u16::from(f)),
            options: MobilityOptions::new(),
        });
        let (from, to) = (addresses.real_source(), addresses.real_destination());
        let authentication = MobileHomeAuthentication {
            spi: SPI,
            algorithm: Algorithm::HmacSha1,
            key: b"a guess",
            care_of_address: addresses.destination,
            home_address: HOME,
        };
        let bytes = if f % 2 == 0 {
            message.emit(from, to)
        } else {
            message.emit_authenticated(from, to, &authentication)
        };
        self.world.tell(Input::Mobility { interface, addresses, message: &bytes.unwrap() });
    }

    fn forge_icmp(&mut self, interface: InterfaceId, [b, c, d, e, f]: [u8; 5]) {
        let identifier = u16::from_be_bytes([c, d]);
        let prefix_information = PrefixInformation {
            prefix_length: 64,
            on_link: true,
            autonomous: true,
            router_address: false,
            valid_lifetime: PrefixLifetime::INFINITE,
            preferred_lifetime: PrefixLifetime::INFINITE,
            prefix: prefix(u16::from(e)).address(),
        };
        let message = match b % 5 {
            0 => Icmpv6Message::HomeAgentAddressDiscoveryReply(HomeAgentAddressDiscoveryReply {
                identifier,
                home_agents: vec![name(e); usize::from(f % 9)],
            }),
            1 => Icmpv6Message::MobilePrefixAdvertisement(MobilePrefixAdvertisement {
                identifier,
                managed: false,
                other_configuration: false,
                options: vec![NdOption::PrefixInformation(prefix_information)],
            }),
            2 => Icmpv6Message::ParameterProblem(ParameterProblem {
                code: ParameterProblemCode::NextHeader,
                pointer: u32::from(e),
                quoted: quoted(name(c), name(d)),
            }),
            3 => Icmpv6Message::HomeAgentAddressDiscoveryRequest(HomeAgentAddressDiscoveryRequest {
                identifier,
            }),
            _ => Icmpv6Message::MobilePrefixSolicitation(MobilePrefixSolicitation {
                identifier,
                options: Vec::new(),
            }),
        };
        let from = name(f);
        for destination in [HOME, HA] {
            let addresses = Addresses::new(from, destination);
            let mut bytes = Vec::new();
            message.emit(from, destination, &mut bytes);
            if destination == HOME {
                self.world.tell(Input::Icmp { interface, addresses, hop_limit: 64, message: &bytes });
            } else {
                let input = Input::Icmp { interface: HOME_IF, addresses, hop_limit: 64, message: &bytes };
                self.world.home.handle_input(self.world.now, input);
            }
        }
    }

    /// One of the messages that were sent, to both, as it was or with a bit changed and the checksum made right.
    fn repeat(&mut self, interface: InterfaceId, [b, c, d, e, f]: [u8; 5]) {
        let count = self.world.recorded.len();
        if count == 0 {
            return;
        }
        let (mut addresses, mut bytes) = self.world.recorded[usize::from(b) % count].clone();
        if f & 1 != 0 {
            let bit = usize::from(u16::from_be_bytes([c, d])) % (8 * bytes.len());
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        if f & 2 != 0 {
            addresses.source = name(e);
        }
        if f & 4 != 0 {
            bytes.truncate(usize::from(e) % bytes.len());
        }
        make_checksum_right(addresses, &mut bytes);
        self.tell_home_agent(addresses, &bytes);
        self.world.tell(Input::Mobility { interface, addresses, message: &bytes });
        self.tally.repeated += 1;
    }

    fn tell_home_agent(&mut self, addresses: Addresses, bytes: &[u8]) {
        let input = Input::Mobility { interface: HOME_IF, addresses, message: bytes };
        self.world.home.handle_input(self.world.now, input);
    }

    fn check(&mut self) {
        // Whatever is sent is parsed there; what is due now is done.
        self.world.run(Duration::ZERO);
        let world = &mut self.world;
        for (_, addresses, message) in world.sent.drain(..) {
            if let (HA, Message::BindingUpdate(update)) = (addresses.destination, message) {
                self.signed.insert(update.care_of_address(addresses.source));
                self.last_update = Some((addresses, update.sequence));
            }
        }
        world.sent_icmp.clear();
        world.mobile_events.clear();
        world.home_events.clear();
        world.data.clear();
        let old = world.recorded.len().saturating_sub(MEMORY);
        world.recorded.drain(..old);

        let exits = world.tunnelled_to();
        assert!(exits.iter().all(|exit| self.signed.contains(exit)), "nobody else signs: {exits:?}");
        let most = if self.multiple_care_of { INTERFACES.len() } else { 1 };
        assert!(exits.len() <= most, "more than the mobile node registers: {exits:?}");
        assert!(world.home.bindings().all(|binding| binding.home_address == HOME));
        for stranger in [INTRUDER, care_of(66)] {
            assert!(!world.home.accepts_reverse_tunnel(HOME, stranger));
            assert!(!world.mobile.accepts_tunnel_from(stranger));
            assert_eq!(world.mobile.optimized_route(stranger), None, "he never answers");
        }
        if let Some((care_of, ..)) = world.peer.bindings.get(&HOME) {
            assert!(NETWORKS.iter().flatten().any(|number| super::craft::care_of(*number) == *care_of));
        }
        // Nothing that is sent makes anybody remember more than he is configured to.
        assert!(world.home.home_agent_count() <= 16);
        let most = RouteOptimizationConfig::default().max_correspondents;
        assert!(world.mobile.correspondent_count() <= most);
        let is_later = |due: Option<(Instant, Wake)>, now| due.is_none_or(|(at, _)| at > now);
        assert!(is_later(world.home.next_timeout(), world.now), "{:?}", world.home.next_timeout());
        assert!(is_later(world.mobile.next_timeout(), world.now), "{:?}", world.mobile.next_timeout());
        if world.mobile.optimized_route(CN).is_some() {
            self.tally.optimized += 1;
        }
    }

    /// Left alone, the mobile node registers where it is, and then everywhere nothing is left of it. With `both` its other link is there, too,
    /// until the bindings have been renewed.
    fn finish(mut self, both: bool) -> Tally {
        self.world.faults = Faults::NONE;
        for interface in INTERFACES {
            self.world.detach(interface);
        }
        self.world.attach(WLAN, 2);
        self.world.switch_to(WLAN);
        if both {
            self.world.attach(GSM, 4);
            self.world.run(Duration::from_secs(400));
            self.check();
            // The renewal of the other binding makes it the newest until its acknowledgement has come and the one in use is made anew.
            if self.world.tunnelled_to().last() != Some(&care_of(2)) {
                self.world.run(Duration::from_secs(1));
                self.check();
            }
            assert_eq!(self.world.tunnelled_to().last(), Some(&care_of(2)), "packets go by the newest");
            self.world.detach(GSM);
        }
        self.world.run(Duration::from_secs(200));
        self.check();
        let exits = self.world.tunnelled_to();
        assert_eq!(exits.last(), Some(&care_of(2)), "it recovers");
        // Without a binding any number is accepted (RFC 6275 section 9.5.1), so one may be left of an update that was overtaken.
        assert!(exits.len() == 1 || !self.timestamps, "it recovers: {exits:?}");
        assert!(self.world.mobile.is_registered());
        assert_eq!(self.world.mobile.care_of(), Some(care_of(2)));
        self.tally.accepted = self.world.mobile.counters().accepted;
        self.tally.refused = self.world.home.counters().refused(146);
        let dropped = |reason| self.world.mobile.counters().dropped(reason);
        self.tally.unsigned =
            dropped(DropReason::MissingAuthenticator) + dropped(DropReason::BadAuthenticator);
        self.world.mobile.deregister(self.world.now);
        self.world.run(Duration::from_secs(700));
        self.check();
        assert_eq!(self.world.home.binding_count(), 0);
        assert!(!self.world.mobile.is_registered());
        self.tally
    }
}

fn name(byte: u8) -> Ipv6Addr {
    NAMES[usize::from(byte) % NAMES.len()]
}

/// The beginning of a packet with a Mobility Header, as an ICMPv6 error quotes it.
fn quoted(source: Ipv6Addr, destination: Ipv6Addr) -> Vec<u8> {
    let fixed = [0x60, 0, 0, 0, 0, 8, careof_wire::mip6::PROTOCOL, 64];
    [&fixed[..], &source.octets(), &destination.octets(), &[59, 0, 1, 0, 0, 0, 0, 0]].concat()
}

/// Takes the steps that bytes stand for one after the other, 80 at most; at the end all becomes quiet. The first byte says what protects updates
/// against replay, whether each interface of the mobile node has a binding, and whether both have links at the end.
pub(super) fn run(bytes: &[u8]) -> Tally {
    let Some((first, bytes)) = bytes.split_first() else { return Tally::default() };
    let mut run = Run::new(first & 1 == 0, first & 2 != 0);
    let (steps, _) = bytes.as_chunks();
    steps.iter().take(80).for_each(|step| run.take(*step));
    run.finish(first & 4 != 0)
}
