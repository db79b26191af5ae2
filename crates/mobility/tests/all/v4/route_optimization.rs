//! Route optimisation: a home agent tells correspondents where a mobile node is, and they believe nobody else.

use std::collections::VecDeque;
use std::net::Ipv4Addr;
use std::time::Duration;

use careof_base::{Instant, RandomStream};
use careof_mobility::v4::*;
use careof_wire::icmp::{DestinationUnreachable, IcmpMessage, UnreachableCode};
use careof_wire::ipv4::Ipv4Header;
use careof_wire::mip4::{
    AuthenticationKind, BindingAcknowledge, BindingRequest, BindingUpdate, BindingWarning, Identification,
    Lifetime, Message, RequestFlags, Spi,
};

use super::craft::*;
use super::world::*;

const CARE_OF: [Ipv4Addr; 2] = [Ipv4Addr::new(192, 0, 2, 7), Ipv4Addr::new(198, 51, 100, 7)];

fn with_home_agent() -> SecurityAssociation {
    SecurityAssociation::hmac_md5(Spi(258), *b"home and correspondent").unwrap()
}

fn correspondent_config() -> CorrespondentNodeConfig {
    let authority =
        BindingAuthority { home_agent: HA, home_network: home_network(), security: with_home_agent() };
    CorrespondentNodeConfig { clock: clock(), ..CorrespondentNodeConfig::new(CORRESPONDENT, authority) }
}

fn optimizing_home() -> HomeAgentConfig {
    HomeAgentConfig {
        correspondents: vec![PeerSecurity { address: CORRESPONDENT, security: with_home_agent() }],
        advertisements: None,
        ..home_config()
    }
}

/// A home agent and a correspondent, 10 ms apart.
struct Pair {
    now: Instant,
    home: HomeAgent,
    correspondent: CorrespondentNode,
    wire: VecDeque<(Instant, Transmit)>,
    /// What passed, and who sent it.
    seen: Vec<(Instant, Message)>,
    lose: Box<dyn FnMut(&Message) -> bool>,
    events: Vec<Event>,
}

impl Pair {
    fn new() -> Self {
        Self::with(correspondent_config())
    }

    fn with(config: CorrespondentNodeConfig) -> Self {
        let stream = |name| RandomStream::new(3, 0, name);
        let start = Instant::from_secs(100);
        Self {
            now: start,
            home: HomeAgent::new(start, optimizing_home(), stream("home")).unwrap(),
            correspondent: CorrespondentNode::new(config, stream("correspondent")).unwrap(),
            wire: VecDeque::new(),
            seen: Vec::new(),
            lose: Box::new(|_| false),
            events: Vec::new(),
        }
    }

    /// The mobile node registers, or with a lifetime of zero deregisters.
    fn register(&mut self, care_of: Ipv4Addr, seconds: u16, flags: RequestFlags) {
        self.now += Duration::from_millis(1);
        let craft = Craft::new(self.now).with(|c| {
            c.request.care_of_address = care_of;
            c.request.lifetime = Lifetime::from_secs(seconds);
            c.request.flags = c.request.flags.with(flags);
        });
        self.reach_home(&craft.transmit());
        assert_eq!(self.home.counters().dropped_total(), 0);
    }

    fn reach_home(&mut self, transmit: &Transmit) {
        self.home.handle_input(self.now, input(transmit));
        self.drain();
    }

    fn reach_correspondent(&mut self, transmit: &Transmit) {
        self.correspondent.handle_input(self.now, input(transmit));
        self.drain();
    }

    fn tunnelled(&mut self) {
        self.home.tunnelled(self.now, HOME, CORRESPONDENT);
        self.drain();
    }

    fn drain(&mut self) {
        let (now, home, other) = (self.now, &mut self.home, &mut self.correspondent);
        let sent: Vec<_> = std::iter::from_fn(|| home.poll_transmit(now))
            .chain(std::iter::from_fn(|| other.poll_transmit(now)))
            .collect();
        while home.poll_event().is_some() {}
        self.events.extend(std::iter::from_fn(|| other.poll_event()));
        for transmit in sent {
            let message = Message::parse(transmit.payload.bytes()).unwrap();
            let lost = (self.lose)(&message);
            self.seen.push((now, message));
            if !lost {
                self.wire.push_back((now + Duration::from_millis(10), transmit));
            }
        }
    }

    fn run_for(&mut self, span: Duration) {
        let end = self.now + span;
        for _ in 0..10_000 {
            let timers = [self.home.next_timeout(), self.correspondent.next_timeout()];
            let timers = timers.into_iter().flatten().map(|(at, _)| at);
            let next = timers.chain(self.wire.front().map(|(at, _)| *at)).min();
            let Some(next) = next.filter(|&next| next <= end) else { break };
            self.now = self.now.max(next);
            let now = self.now;
            while self.wire.front().is_some_and(|(at, _)| *at <= now) {
                let Some((_, transmit)) = self.wire.pop_front() else { break };
                match transmit.destination {
                    HA => self.reach_home(&transmit),
                    CORRESPONDENT => self.reach_correspondent(&transmit),
                    // Replies to the mobile node.
                    _ => {}
                }
            }
            if self.home.next_timeout().is_some_and(|(at, _)| at <= now) {
                self.home.handle_timeout(now);
            }
            if self.correspondent.next_timeout().is_some_and(|(at, _)| at <= now) {
                self.correspondent.handle_timeout(now);
            }
            self.drain();
        }
        self.now = end;
    }

    fn exit(&mut self) -> Option<Ipv4Addr> {
        self.correspondent.tunnel(HOME).map(|tunnel| tunnel.exit)
    }

    fn updates(&self) -> Vec<(Instant, BindingUpdate)> {
        let updates = self.seen.iter().filter_map(|(at, message)| match message {
            Message::BindingUpdate(update) => Some((*at, update.clone())),
            _ => None,
        });
        updates.collect()
    }

    fn requests(&self) -> usize {
        self.seen.iter().filter(|(_, message)| matches!(message, Message::BindingRequest(_))).count()
    }

    fn dropped(&self) -> u64 {
        self.home.counters().dropped_total() + self.correspondent.counters().dropped_total()
    }
}

fn input(transmit: &Transmit) -> Input<'_> {
    Input::Udp {
        interface: UPSTREAM,
        source: transmit.source,
        source_port: 434,
        destination: transmit.destination,
        destination_port: 434,
        ttl: transmit.ttl,
        link_address: None,
        payload: transmit.payload.bytes(),
    }
}

const NONE: RequestFlags = RequestFlags(0);

#[test]
fn the_first_packet_that_is_tunnelled_teaches_its_sender_the_way() {
    let mut pair = Pair::new();
    pair.register(CARE_OF[0], 300, NONE);
    assert_eq!(pair.updates().len(), 0, "nobody has sent anything");
    for _ in 0..20 {
        pair.tunnelled();
        pair.home.tunnelled(pair.now, HOME, Ipv4Addr::new(10, 9, 9, 9));
        pair.drain();
    }
    assert_eq!(pair.updates().len(), 1);
    pair.run_for(Duration::from_millis(100));
    let tunnel = pair.correspondent.tunnel(HOME).unwrap();
    assert_eq!((tunnel.entry, tunnel.exit), (CORRESPONDENT, CARE_OF[0]));
    assert_eq!(tunnel.encapsulation, EncapsulationChoice::IpInIp.encapsulation());
    let (_, update) = pair.updates().remove(0);
    // The first millisecond is gone, and no fraction of a second is granted.
    assert_eq!(update.lifetime, Lifetime::from_secs(300));
    pair.run_for(Duration::from_secs(100));
    assert_eq!((pair.updates().len(), pair.dropped()), (1, 0), "acknowledged, so not repeated");
    assert_eq!(pair.correspondent.tunnel(Ipv4Addr::new(10, 0, 0, 8)), None);
}

#[test]
fn the_tunnel_is_of_the_kind_that_the_care_of_address_takes() {
    for (flags, choice) in [
        (RequestFlags::MINIMAL_ENCAPSULATION, EncapsulationChoice::Minimal),
        (RequestFlags::GRE, EncapsulationChoice::Gre),
    ] {
        let mut pair = Pair::new();
        pair.register(CARE_OF[0], 300, flags);
        pair.tunnelled();
        pair.run_for(Duration::from_millis(100));
        assert_eq!(pair.correspondent.tunnel(HOME).unwrap().encapsulation, choice.encapsulation());
    }
}

#[test]
fn who_was_told_hears_of_every_move_and_of_the_return_home() {
    let mut pair = Pair::new();
    pair.register(CARE_OF[0], 300, NONE);
    pair.tunnelled();
    pair.run_for(Duration::from_millis(50));
    pair.register(CARE_OF[1], 300, NONE);
    pair.run_for(Duration::from_millis(15));
    assert_eq!(pair.exit(), Some(CARE_OF[1]));
    // A renewal moves nothing.
    pair.register(CARE_OF[1], 300, NONE);
    pair.run_for(Duration::from_millis(50));
    assert_eq!(pair.updates().len(), 2);
    pair.register(HOME, 0, NONE);
    pair.run_for(Duration::from_millis(15));
    assert_eq!(pair.exit(), None);
    let changes: Vec<_> = pair
        .events
        .iter()
        .filter_map(|event| if let Event::Binding(b) = event { Some((b.care_of, b.change)) } else { None })
        .collect();
    assert_eq!(
        changes,
        [
            (CARE_OF[0], Change::Created),
            (CARE_OF[0], Change::Removed),
            (CARE_OF[1], Change::Created),
            (CARE_OF[1], Change::Removed)
        ]
    );
    pair.run_for(Duration::from_secs(400));
    assert_eq!((pair.updates().len(), pair.dropped()), (3, 0));
}

#[test]
fn an_update_without_an_answer_is_repeated_ever_more_slowly_and_then_no_more() {
    let mut pair = Pair::new();
    pair.lose = Box::new(|message| matches!(message, Message::BindingUpdate(_)));
    pair.register(CARE_OF[0], 600, NONE);
    let start = pair.now;
    pair.tunnelled();
    pair.run_for(Duration::from_secs(300));
    let waits =
        |pair: &Pair| pair.updates().iter().map(|(at, _)| (*at - start).as_secs()).collect::<Vec<_>>();
    assert_eq!(waits(&pair), [0, 1, 3, 7, 15]);
    let first = pair.updates()[0].1.identification;
    assert!(pair.updates()[1..].iter().all(|(_, update)| update.identification > first));
    // What it sends tells that it still does not know.
    pair.lose = Box::new(|_| false);
    pair.tunnelled();
    pair.run_for(Duration::from_millis(100));
    assert_eq!(pair.exit(), Some(CARE_OF[0]));
}

#[test]
fn a_binding_in_use_is_asked_for_again_and_one_that_is_not_ends() {
    let mut pair = Pair::new();
    pair.register(CARE_OF[0], 100, NONE);
    pair.tunnelled();
    pair.run_for(Duration::from_millis(100));
    for _ in 0..80 {
        assert!(pair.exit().is_some());
        pair.run_for(Duration::from_secs(1));
        // The mobile node renews in time.
        if pair.now.as_nanos() / 1_000_000_000 == 160 {
            pair.register(CARE_OF[0], 100, NONE);
        }
    }
    assert_eq!((pair.requests(), pair.updates().len()), (1, 2), "at three quarters of its time");
    let (_, answer) = pair.updates().pop().unwrap();
    assert!(answer.lifetime > Lifetime::from_secs(80), "{}", answer.lifetime);
    let Some((_, Message::BindingRequest(request))) =
        pair.seen.iter().find(|(_, message)| matches!(message, Message::BindingRequest(_))).cloned()
    else {
        panic!("counted above")
    };
    assert_eq!(answer.identification, Some(request.identification));
    // From now on nothing is sent.
    pair.run_for(Duration::from_secs(300));
    assert_eq!((pair.exit(), pair.dropped()), (None, 0));
}

fn update(at: Instant) -> BindingUpdate {
    BindingUpdate {
        acknowledge: true,
        minimal_encapsulation: false,
        gre: false,
        lifetime: Lifetime::from_secs(60),
        home_address: HOME,
        care_of_address: CARE_OF[1],
        identification: Some(Identification(clock().at(at).to_bits())),
        extensions: Vec::new(),
    }
}

fn signed(message: Message, source: Ipv4Addr, security: &SecurityAssociation) -> Transmit {
    let mut bytes = message.emit();
    sign(&mut bytes, AuthenticationKind::RouteOptimization, security);
    udp(source, if source == CORRESPONDENT { HA } else { CORRESPONDENT }, 64, bytes)
}

#[test]
fn a_forged_update_changes_nothing_and_is_not_answered() {
    let mut pair = Pair::new();
    pair.register(CARE_OF[0], 300, NONE);
    pair.tunnelled();
    pair.run_for(Duration::from_secs(1));
    let good = update(pair.now);
    let from_home = |update: BindingUpdate| signed(Message::BindingUpdate(update), HA, &with_home_agent());
    let of_another = SecurityAssociation::hmac_md5(Spi(258), *b"another key").unwrap();
    let old = Identification(clock().at(Instant::from_secs(80)).to_bits());
    let cases: [(Transmit, DropReason); 8] = [
        (
            udp(HA, CORRESPONDENT, 64, Message::BindingUpdate(good.clone()).emit()),
            DropReason::MissingAuthenticator,
        ),
        (signed(Message::BindingUpdate(good.clone()), HA, &of_another), DropReason::BadAuthenticator),
        (signed(Message::BindingUpdate(good.clone()), HA, &security()), DropReason::UnknownSpi),
        (Transmit { source: FA[0], ..from_home(good.clone()) }, DropReason::UnexpectedSource),
        (
            from_home(BindingUpdate { home_address: Ipv4Addr::new(172, 16, 0, 1), ..good.clone() }),
            DropReason::UnknownHomeAddress,
        ),
        (from_home(BindingUpdate { identification: None, ..good.clone() }), DropReason::PoorlyFormed),
        (from_home(BindingUpdate { identification: Some(old), ..good.clone() }), DropReason::Replayed),
        (udp(HA, CORRESPONDENT, 64, vec![18, 0, 1]), DropReason::Malformed),
    ];
    for (transmit, reason) in cases {
        let (before, seen) = (pair.correspondent.counters().dropped(reason), pair.seen.len());
        pair.reach_correspondent(&transmit);
        assert_eq!(pair.correspondent.counters().dropped(reason), before + 1, "{reason:?}");
        assert_eq!(pair.seen.len(), seen, "{reason:?}");
        assert_eq!(pair.exit(), Some(CARE_OF[0]), "{reason:?}");
    }
    let good = from_home(good);
    pair.reach_correspondent(&good);
    assert_eq!(pair.exit(), Some(CARE_OF[1]));
    pair.reach_correspondent(&good);
    assert_eq!(pair.correspondent.counters().dropped(DropReason::Replayed), 2, "once only");
}

#[test]
fn an_answer_to_a_request_cannot_be_played_again() {
    let mut pair = Pair::new();
    pair.register(CARE_OF[0], 100, NONE);
    pair.tunnelled();
    pair.run_for(Duration::from_millis(100));
    pair.exit();
    pair.run_for(Duration::from_secs(76));
    assert_eq!(pair.requests(), 1);
    let (_, answer) = pair.updates().pop().unwrap();
    let again = signed(
        Message::BindingUpdate(BindingUpdate { extensions: Vec::new(), ..answer }),
        HA,
        &with_home_agent(),
    );
    pair.reach_correspondent(&again);
    assert_eq!(pair.correspondent.counters().dropped(DropReason::Replayed), 1);
}

#[test]
fn a_tunnel_to_the_correspondent_itself_is_refused() {
    let mut pair = Pair::new();
    let to_itself = BindingUpdate { care_of_address: CORRESPONDENT, ..update(pair.now) };
    pair.reach_correspondent(&signed(Message::BindingUpdate(to_itself), HA, &with_home_agent()));
    assert_eq!(pair.exit(), None);
    let refused = |(_, message): &(Instant, Message)| match message {
        Message::BindingAcknowledge(BindingAcknowledge { negative, .. }) => *negative,
        _ => false,
    };
    assert!(pair.seen.iter().any(refused));
    assert_eq!(pair.correspondent.counters().dropped(DropReason::PoorlyFormed), 1);
}

#[test]
fn a_care_of_address_that_cannot_be_reached_is_forgotten() {
    let mut pair = Pair::new();
    pair.register(CARE_OF[0], 300, NONE);
    pair.tunnelled();
    pair.run_for(Duration::from_millis(100));
    let quoted = |destination, protocol| {
        let header = Ipv4Header {
            source: CORRESPONDENT,
            destination,
            protocol,
            payload_len: 48,
            ..Ipv4Header::default()
        };
        let mut bytes = Vec::new();
        header.emit(&mut bytes);
        bytes.extend([0; 8]);
        bytes
    };
    let unreachable = |code, quoted| {
        let error = DestinationUnreachable { code, next_hop_mtu: 0, quoted };
        let mut bytes = Vec::new();
        IcmpMessage::DestinationUnreachable(error).emit(&mut bytes);
        bytes
    };
    let ip_in_ip = 4;
    for (code, quoted, stays) in [
        (UnreachableCode::Host, quoted(CARE_OF[1], ip_in_ip), true),
        (UnreachableCode::Host, quoted(CARE_OF[0], 6), true),
        (UnreachableCode::FragmentationNeeded, quoted(CARE_OF[0], ip_in_ip), true),
        (UnreachableCode::Host, quoted(CARE_OF[0], ip_in_ip), false),
    ] {
        let message = unreachable(code, quoted);
        let (source, destination) = (FA[0], CORRESPONDENT);
        let icmp = Input::Icmp { interface: UPSTREAM, source, destination, ttl: 60, message: &message };
        pair.correspondent.handle_input(pair.now, icmp);
        pair.drain();
        assert_eq!(pair.exit().is_some(), stays, "{code:?}");
    }
}

#[test]
fn a_full_cache_gives_the_oldest_up_and_the_home_agent_tells_again_when_asked_by_packets() {
    let mut pair = Pair::with(CorrespondentNodeConfig { max_bindings: 1, ..correspondent_config() });
    let other = Ipv4Addr::new(10, 0, 0, 9);
    let at = pair.now;
    pair.reach_correspondent(&signed(Message::BindingUpdate(update(at)), HA, &with_home_agent()));
    let later = BindingUpdate { home_address: other, ..update(at + Duration::from_secs(1)) };
    pair.reach_correspondent(&signed(Message::BindingUpdate(later), HA, &with_home_agent()));
    assert_eq!(pair.exit(), None);
    assert_eq!(pair.correspondent.bindings().count(), 1);
    assert!(pair.correspondent.tunnel(other).is_some());
}

#[test]
fn warnings_and_requests_move_the_home_agent_for_those_it_knows_only() {
    let mut pair = Pair::new();
    pair.register(CARE_OF[0], 300, NONE);
    let warning = |home_address, target| {
        let warning = BindingWarning { home_address, target, extensions: Vec::new() };
        udp(FA[0], HA, 64, Message::BindingWarning(warning).emit())
    };
    pair.reach_home(&warning(HOME, Ipv4Addr::new(10, 9, 9, 9)));
    assert_eq!(pair.home.counters().dropped(DropReason::NotOffered), 1);
    pair.reach_home(&warning(Ipv4Addr::new(10, 0, 0, 8), CORRESPONDENT));
    assert_eq!(pair.home.counters().dropped(DropReason::UnknownHomeAddress), 1);
    for _ in 0..1000 {
        pair.reach_home(&warning(HOME, CORRESPONDENT));
    }
    assert_eq!(pair.updates().len(), 1, "a flood of them is one update");
    pair.run_for(Duration::from_millis(100));
    assert_eq!(pair.exit(), Some(CARE_OF[0]));

    let request = |home_address| {
        Message::BindingRequest(BindingRequest {
            home_address,
            identification: Identification(9),
            extensions: Vec::new(),
        })
    };
    let seen = pair.updates().len();
    for (transmit, reason) in [
        (udp(CORRESPONDENT, HA, 64, request(HOME).emit()), DropReason::MissingAuthenticator),
        (signed(request(HOME), CORRESPONDENT, &security()), DropReason::UnknownSpi),
        (
            Transmit { source: FA[0], ..signed(request(HOME), CORRESPONDENT, &with_home_agent()) },
            DropReason::UnknownSpi,
        ),
        (
            signed(request(Ipv4Addr::new(172, 16, 0, 1)), CORRESPONDENT, &with_home_agent()),
            DropReason::UnknownHomeAddress,
        ),
    ] {
        let before = pair.home.counters().dropped(reason);
        pair.reach_home(&transmit);
        assert_eq!(pair.home.counters().dropped(reason), before + 1, "{reason:?}");
    }
    let stray = BindingAcknowledge {
        negative: false,
        home_address: HOME,
        identification: Identification(1),
        extensions: Vec::new(),
    };
    pair.reach_home(&signed(Message::BindingAcknowledge(stray), CORRESPONDENT, &with_home_agent()));
    assert_eq!(pair.home.counters().dropped(DropReason::UnexpectedReply), 1);
    assert_eq!(pair.updates().len(), seen);
}

#[test]
fn a_home_agent_without_correspondents_tells_nobody() {
    let mut home = HomeAgent::new(Instant::ZERO, home_config(), RandomStream::new(3, 0, "home")).unwrap();
    assert!(!home.has_correspondents());
    home.tunnelled(Instant::ZERO, HOME, CORRESPONDENT);
    assert_eq!(home.poll_transmit(Instant::ZERO), None);
}

#[test]
fn a_configuration_that_believes_nobody_or_one_twice_or_has_no_room_is_refused() {
    let new = |config| CorrespondentNode::new(config, RandomStream::new(3, 0, "c")).unwrap_err();
    let nobody = CorrespondentNodeConfig { home_agents: Vec::new(), ..correspondent_config() };
    assert_eq!(new(nobody), ConfigError::Missing("home agent"));
    let mut twice = correspondent_config();
    twice.home_agents.push(twice.home_agents[0].clone());
    assert_eq!(new(twice), ConfigError::DuplicateAddress { what: "the home agent", address: HA.into() });
    // It would be woken for what it does not keep.
    let roomless = CorrespondentNodeConfig { max_bindings: 0, ..correspondent_config() };
    assert!(matches!(new(roomless), ConfigError::OutOfRange { found: 0, low: 1, .. }));
    let multicast =
        CorrespondentNodeConfig { address: Ipv4Addr::new(224, 0, 0, 1), ..correspondent_config() };
    assert!(matches!(new(multicast), ConfigError::NotUnicast { .. }));
}

#[test]
fn an_update_from_before_an_answer_does_not_undo_it() {
    let mut pair = Pair::new();
    pair.register(CARE_OF[0], 100, NONE);
    pair.tunnelled();
    pair.run_for(Duration::from_millis(100));
    pair.exit();
    pair.run_for(Duration::from_secs(73));
    // The home agent's, held back by somebody.
    let held_back = signed(Message::BindingUpdate(update(pair.now)), HA, &with_home_agent());
    pair.run_for(Duration::from_secs(3));
    assert_eq!((pair.requests(), pair.exit()), (1, Some(CARE_OF[0])));
    pair.reach_correspondent(&held_back);
    assert_eq!(pair.exit(), Some(CARE_OF[0]));
    assert_eq!(pair.correspondent.counters().dropped(DropReason::Replayed), 1);
}

#[test]
fn warnings_of_a_mobile_node_at_home_move_the_home_agent_now_and_then_only() {
    let mut pair = Pair::new();
    let warning = BindingWarning { home_address: HOME, target: CORRESPONDENT, extensions: Vec::new() };
    let warning = udp(FA[0], HA, 64, Message::BindingWarning(warning).emit());
    // Each after the correspondent has answered.
    for _ in 0..100 {
        pair.reach_home(&warning);
        pair.run_for(Duration::from_millis(30));
    }
    assert!(pair.updates().len() <= 2, "{}", pair.updates().len());
    // It hears of a new binding as anybody.
    pair.register(CARE_OF[0], 300, NONE);
    pair.tunnelled();
    pair.run_for(Duration::from_millis(30));
    assert_eq!(pair.exit(), Some(CARE_OF[0]));
    pair.run_for(Duration::from_secs(400));
    assert_eq!(pair.home.next_timeout(), None, "nothing is remembered for ever");
}

#[test]
fn in_the_last_second_of_a_binding_not_every_packet_makes_an_update() {
    let mut pair = Pair::new();
    pair.register(CARE_OF[0], 2, NONE);
    pair.run_for(Duration::from_millis(1_500));
    for _ in 0..40 {
        pair.tunnelled();
        pair.run_for(Duration::from_millis(10));
    }
    assert_eq!((pair.updates().len(), pair.dropped()), (1, 0));
}
