//! Smooth hand-off: foreign agents tell each other who moved, and nobody else can.

use std::net::Ipv4Addr;
use std::time::Duration;

use careof_base::{Instant, RandomStream};
use careof_mobility::v4::*;
use careof_wire::mip4::{
    AuthenticationKind, BindingUpdate, BindingWarning, Extension, Identification, Lifetime, Message,
    PreviousForeignAgent, ReplyCode, Spi,
};

use super::craft::*;
use super::world::*;

fn with_agent(which: usize) -> SecurityAssociation {
    let key: [u8; 16] = [which as u8 + 1; 16];
    SecurityAssociation::hmac_md5(Spi(257), key).unwrap()
}

fn smooth_agent(which: usize) -> ForeignAgentConfig {
    ForeignAgentConfig {
        smooth_handoff: true,
        clock: clock(),
        mobile_nodes: vec![PeerSecurity { address: HOME, security: with_agent(which) }],
        ..foreign_config(which)
    }
}

fn smooth_mobile() -> MobileNodeConfig {
    let known = |which: usize| PeerSecurity { address: FA[which], security: with_agent(which) };
    MobileNodeConfig { smooth_handoff: true, foreign_agents: vec![known(0), known(1)], ..mobile_config() }
}

/// The mobile node has been at the first foreign agent for a while, and is in the cell of the second from 20 s on.
fn moving() -> World {
    let mut world = World::with(smooth_mobile(), home_config(), [smooth_agent(0), smooth_agent(1)]);
    world.switch(IF_CELL);
    world.run_until(at(20_000));
    assert_eq!(world.foreign[0].deliver(HOME), Some(DOWNSTREAM));
    world.cells = vec![1];
    world
}

fn is_update(transmit: &Transmit) -> bool {
    matches!(Message::parse(transmit.payload.bytes()), Ok(Message::BindingUpdate(_)))
}

fn is_acknowledge(transmit: &Transmit) -> bool {
    matches!(Message::parse(transmit.payload.bytes()), Ok(Message::BindingAcknowledge(_)))
}

fn drops(world: &World) -> u64 {
    world.mobile.counters().dropped_total()
        + world.home.counters().dropped_total()
        + world.foreign.iter().map(|agent| agent.counters().dropped_total()).sum::<u64>()
}

#[test]
fn the_previous_agent_learns_where_its_visitor_went_and_sends_on() {
    let mut world = moving();
    world.run_until(at(21_100));
    assert_eq!(world.exits(), [FA[1]]);
    assert_eq!((world.foreign[0].deliver(HOME), world.foreign[1].deliver(HOME)), (None, Some(DOWNSTREAM)));
    let now = world.now;
    let tunnel = world.foreign[0].pass_on(now, HOME, HA).unwrap();
    assert_eq!((tunnel.entry, tunnel.exit), (FA[0], FA[1]));
    assert!(!world.foreign[1].passes_on(HOME));
    assert_eq!(drops(&world), 0);
    // One update, one answer, and that answer passed on.
    assert_eq!(world.messages(Who::Foreign(1)).iter().filter(|(.., t)| is_update(t)).count(), 1);
    assert_eq!(world.messages(Who::Foreign(0)).iter().filter(|(.., t)| is_acknowledge(t)).count(), 1);
    let relayed = world.messages(Who::Foreign(1)).into_iter().find(|(.., t)| is_acknowledge(t)).unwrap().2;
    assert_eq!((relayed.destination, relayed.interface), (HOME, Some(DOWNSTREAM)));
    // The home agent never saw the notification.
    for (_, message, _) in world.messages(Who::Foreign(1)) {
        let notified = message.extensions().iter().any(|e| matches!(e, Extension::PreviousForeignAgent(_)));
        assert!(!notified);
    }
    // It is renewed without saying so again.
    world.run_until(at(300_000));
    let requests = world.messages(Who::Mobile).into_iter().filter_map(|(at, message, _)| match message {
        Message::Request(request) => Some((at, request.previous_foreign_agent().is_some())),
        _ => None,
    });
    let notifying: Vec<_> = requests.filter(|(_, notifies)| *notifies).map(|(at, _)| at).collect();
    assert_eq!(notifying.len(), 1, "{notifying:?}");
}

#[test]
fn what_was_sent_on_ends_with_the_registration_that_it_followed() {
    let mut world = moving();
    world.run_until(at(21_100));
    let told: Vec<_> = world.foreign[0].departed().map(|departed| departed.expires).collect();
    // 300 s were granted in the first second, and whole seconds are told.
    assert!(told[0] > at(298_000) && told[0] <= at(302_000), "{told:?}");
    world.run_until(at(302_000));
    assert_eq!(world.foreign[0].departed().count(), 0);
    let expired = |(_, who, event): &(Instant, Who, Event)| {
        *who == Who::Foreign(0) && matches!(event, Event::Binding(change) if change.change == Change::Expired)
    };
    assert_eq!(world.events.iter().filter(|event| expired(event)).count(), 1);
}

#[test]
fn packets_reach_the_new_cell_and_leave_it_before_the_home_agent_has_answered() {
    let mut world = moving();
    world.lose = Box::new(|from, _| from == Who::Home);
    world.run_until(at(21_300));
    assert!(world.foreign[1].visitor(HOME).is_none());
    assert_eq!(world.foreign[1].deliver(HOME), Some(DOWNSTREAM));
    let delivery = world.mobile.delivery(CORRESPONDENT, None).unwrap();
    assert_eq!((delivery.source, delivery.via, delivery.tunnel), (HOME, Some(FA[1]), None));
    // Where a reverse tunnel is wished for, nobody can have one yet.
    let wished = world.mobile.delivery_by(DeliveryMethod::ReverseTunnel, CORRESPONDENT).unwrap();
    assert_eq!((wished.method, wished.via), (DeliveryMethod::Triangle, Some(FA[1])));
    // Nobody is waited for when no answer comes.
    world.run_until(at(21_300) + Duration::from_secs(60));
    world.cells.clear();
    world.run_for(Duration::from_secs(60));
    assert_eq!(world.foreign[1].deliver(HOME), None);
}

#[test]
fn a_lost_update_is_repeated_and_a_lost_answer_is_given_again() {
    for lost in [is_update, is_acknowledge] {
        let mut world = moving();
        let mut first = true;
        world.lose = Box::new(move |from, transmit| {
            let loses = lost(transmit) && from != Who::Mobile && first;
            first &= !loses;
            loses
        });
        world.run_until(at(21_100));
        assert!(world.messages(Who::Foreign(1)).iter().filter(|(.., t)| is_acknowledge(t)).count() == 0);
        world.run_until(at(23_500));
        assert_eq!(world.foreign[0].departed().count(), 1);
        assert!(world.messages(Who::Foreign(1)).iter().any(|(.., t)| is_acknowledge(t)), "passed on");
        assert_eq!(drops(&world), 0);
    }
}

#[test]
fn who_comes_back_is_delivered_to_and_its_old_words_count_no_longer() {
    let mut world = moving();
    world.run_until(at(21_100));
    let (.., old) = world.messages(Who::Foreign(1)).into_iter().find(|(.., t)| is_update(t)).unwrap();
    world.cells = vec![0];
    world.run_until(at(22_200));
    assert_eq!(world.exits(), [FA[0]]);
    assert_eq!(world.foreign[0].deliver(HOME), Some(DOWNSTREAM));
    assert_eq!(world.foreign[0].departed().count(), 0);
    assert_eq!(world.foreign[1].departed().count(), 1);
    world.inject(Who::Foreign(0), UPSTREAM, old);
    assert_eq!(world.foreign[0].counters().dropped(DropReason::Replayed), 1);
    assert_eq!(world.foreign[0].deliver(HOME), Some(DOWNSTREAM));
    // Between the two nothing goes round.
    let now = world.now;
    assert_eq!(world.foreign[1].pass_on(now, HOME, FA[0]), None);
}

#[test]
fn with_an_address_of_its_own_the_node_tells_the_agent_before_itself() {
    let mut world = World::with(smooth_mobile(), home_config(), [smooth_agent(0), smooth_agent(1)]);
    world.switch(IF_CELL);
    world.run_until(at(20_000));
    world.switch(IF_WLAN);
    world.run_until(at(20_100));
    assert_eq!(world.exits(), [WLAN]);
    let updates: Vec<_> =
        world.messages(Who::Mobile).into_iter().filter(|(.., t)| is_update(t)).map(|(.., t)| t).collect();
    assert_eq!(updates.len(), 1);
    assert_eq!((updates[0].source, updates[0].interface), (WLAN, Some(IF_WLAN)));
    let now = world.now;
    assert_eq!(world.foreign[0].pass_on(now, HOME, HA).map(|tunnel| tunnel.exit), Some(WLAN));
    assert_eq!(drops(&world), 0, "the answer was understood");
    // At home there is no care-of address: what still comes goes back to the home agent.
    world.switch(IF_CELL);
    world.run_until(at(30_000));
    assert_eq!(world.foreign[0].deliver(HOME), Some(DOWNSTREAM));
    world.link(IF_HOME, true);
    world.switch(IF_HOME);
    world.run_for(Duration::from_millis(100));
    let told = world.sent.iter().rev().find(|(_, who, t)| *who == Who::Mobile && is_update(t)).cloned();
    let (.., told) = told.unwrap();
    assert_eq!((told.source, told.destination), (HOME, FA[0]));
    // That world knows no way from home to there.
    world.inject(Who::Foreign(0), UPSTREAM, told);
    let now = world.now;
    assert_eq!(world.foreign[0].departed().count(), 0);
    assert_eq!(world.foreign[0].pass_on(now, HOME, HA).map(|tunnel| tunnel.exit), Some(HOME));
}

#[test]
fn with_simultaneous_bindings_the_agent_before_goes_on_delivering() {
    let config = MobileNodeConfig { simultaneous: true, ..smooth_mobile() };
    let mut world = World::with(config, home_config(), [smooth_agent(0), smooth_agent(1)]);
    world.switch(IF_CELL);
    world.run_until(at(20_000));
    world.switch(IF_WLAN);
    world.run_until(at(21_000));
    assert_eq!(world.exits(), [FA[0], WLAN]);
    assert!(!world.sent.iter().any(|(.., transmit)| is_update(transmit)));
    assert_eq!(world.foreign[0].deliver(HOME), Some(DOWNSTREAM));
}

#[test]
fn nonces_cannot_be_told_from_old_ones_by_a_foreign_agent() {
    let security = SecurityAssociation::new(
        Spi(256),
        careof_wire::mip4::Algorithm::HmacMd5,
        KEY,
        ReplayProtection::Nonces,
    )
    .unwrap();
    let config = MobileNodeConfig { security, ..smooth_mobile() };
    let refused = MobileNode::new(Instant::ZERO, config, RandomStream::new(1, 0, "m")).unwrap_err();
    assert_eq!(refused, ConfigError::NeedsTimestamps("smooth hand-off"));
}

/// A foreign agent on its own, with the mobile node as its visitor.
struct Bench {
    agent: ForeignAgent,
    now: Instant,
    sent: Vec<Transmit>,
}

impl Bench {
    fn new(config: ForeignAgentConfig) -> Self {
        let agent = ForeignAgent::new(Instant::ZERO, config, RandomStream::new(1, 0, "foreign")).unwrap();
        Self { agent, now: Instant::from_secs(100), sent: Vec::new() }
    }

    fn handle(&mut self, interface: InterfaceId, transmit: &Transmit) {
        self.agent.handle_input(
            self.now,
            Input::Udp {
                interface,
                source: transmit.source,
                source_port: 434,
                destination: transmit.destination,
                destination_port: 434,
                ttl: transmit.ttl,
                link_address: None,
                payload: transmit.payload.bytes(),
            },
        );
        self.sent = std::iter::from_fn(|| self.agent.poll_transmit(self.now)).collect();
        while self.agent.poll_event().is_some() {}
    }

    /// A request of the mobile node with a notification, if any.
    fn request(&mut self, notification: Option<PreviousForeignAgent>, signed: bool) -> Craft {
        self.now += Duration::from_secs(1);
        let craft = Craft::to_foreign_agent(self.now);
        let mut bytes = craft.bytes();
        if let Some(notification) = notification {
            Extension::PreviousForeignAgent(notification).emit(&mut bytes);
        }
        if signed {
            sign(&mut bytes, AuthenticationKind::MobileForeign, &with_agent(0));
        }
        self.handle(DOWNSTREAM, &udp(HOME, FA[0], 64, bytes));
        craft
    }

    fn register(&mut self) {
        let craft = self.request(None, true);
        self.handle(UPSTREAM, &udp(HA, FA[0], 64, reply(&craft.request, ReplyCode::Accepted)));
        assert_eq!(self.agent.deliver(HOME), Some(DOWNSTREAM));
    }

    fn dropped(&self, reason: DropReason) -> u64 {
        self.agent.counters().dropped(reason)
    }
}

fn update(now: Instant) -> BindingUpdate {
    BindingUpdate {
        acknowledge: true,
        minimal_encapsulation: false,
        gre: false,
        lifetime: Lifetime::from_secs(60),
        home_address: HOME,
        care_of_address: FA[1],
        identification: Some(Identification(clock().at(now).to_bits())),
        extensions: Vec::new(),
    }
}

fn signed(update: BindingUpdate, security: &SecurityAssociation) -> Transmit {
    let mut bytes = Message::BindingUpdate(update).emit();
    sign(&mut bytes, AuthenticationKind::RouteOptimization, security);
    udp(FA[1], FA[0], 64, bytes)
}

#[test]
fn an_update_that_the_visitor_did_not_sign_changes_nothing() {
    let mut bench = Bench::new(smooth_agent(0));
    bench.register();
    bench.now += Duration::from_secs(1);
    let good = update(bench.now);
    let unsigned = udp(FA[1], FA[0], 64, Message::BindingUpdate(good.clone()).emit());
    let late = clock().at(Instant::from_secs(80)).to_bits();
    let stranger = Ipv4Addr::new(10, 0, 0, 8);
    let cases: [(Transmit, DropReason); 7] = [
        (unsigned, DropReason::MissingAuthenticator),
        (signed(good.clone(), &with_agent(1)), DropReason::BadAuthenticator),
        (signed(good.clone(), &security()), DropReason::UnknownSpi),
        (
            signed(BindingUpdate { home_address: stranger, ..good.clone() }, &with_agent(0)),
            DropReason::UnknownSpi,
        ),
        (
            signed(BindingUpdate { identification: None, ..good.clone() }, &with_agent(0)),
            DropReason::PoorlyFormed,
        ),
        (
            signed(
                BindingUpdate { identification: Some(Identification(late)), ..good.clone() },
                &with_agent(0),
            ),
            DropReason::Replayed,
        ),
        (
            Transmit { destination: CORRESPONDENT, ..signed(good.clone(), &with_agent(0)) },
            DropReason::NotForUs,
        ),
    ];
    for (transmit, reason) in cases {
        let before = bench.dropped(reason);
        bench.handle(UPSTREAM, &transmit);
        assert_eq!(bench.dropped(reason), before + 1, "{reason:?}");
        assert!(bench.sent.is_empty(), "{reason:?} is not answered");
        assert_eq!(bench.agent.deliver(HOME), Some(DOWNSTREAM), "{reason:?}");
        assert!(!bench.agent.passes_on(HOME));
    }
    bench.handle(UPSTREAM, &signed(good, &with_agent(0)));
    assert_eq!(bench.agent.deliver(HOME), None);
    assert!(bench.agent.passes_on(HOME));
}

#[test]
fn an_update_that_leads_back_or_nowhere_is_refused_and_one_without_lifetime_forgets() {
    let mut bench = Bench::new(smooth_agent(0));
    bench.register();
    for care_of in [FA[0], Ipv4Addr::BROADCAST, Ipv4Addr::UNSPECIFIED] {
        bench.now += Duration::from_secs(1);
        let good = update(bench.now);
        bench.handle(UPSTREAM, &signed(BindingUpdate { care_of_address: care_of, ..good }, &with_agent(0)));
        let Ok(Message::BindingAcknowledge(answer)) = Message::parse(bench.sent[0].payload.bytes()) else {
            panic!("{:?}", bench.sent)
        };
        assert!(answer.negative);
        assert_eq!(bench.agent.deliver(HOME), Some(DOWNSTREAM));
    }
    assert_eq!(bench.dropped(DropReason::PoorlyFormed), 3);
    bench.now += Duration::from_secs(1);
    bench.handle(
        UPSTREAM,
        &signed(BindingUpdate { lifetime: Lifetime::ZERO, ..update(bench.now) }, &with_agent(0)),
    );
    assert_eq!((bench.agent.deliver(HOME), bench.agent.departed().count()), (None, 0));
}

fn notification(agent: Ipv4Addr, care_of: Ipv4Addr) -> PreviousForeignAgent {
    PreviousForeignAgent::new(Lifetime::from_secs(60), agent, care_of, Spi(257), &[7; 16]).unwrap()
}

#[test]
fn an_agent_sends_no_update_for_who_has_not_proved_itself() {
    // An agent that does not take part has to treat it like anything it does not know.
    let mut bench = Bench::new(ForeignAgentConfig { smooth_handoff: false, ..smooth_agent(0) });
    bench.request(Some(notification(FA[1], FA[0])), true);
    assert_eq!((bench.dropped(DropReason::UnknownExtension), bench.sent.len()), (1, 0));

    // One without an association with the node registers it, and tells nobody.
    let mut bench = Bench::new(ForeignAgentConfig { mobile_nodes: Vec::new(), ..smooth_agent(0) });
    bench.request(Some(notification(FA[1], FA[0])), false);
    assert_eq!((bench.dropped(DropReason::MissingAuthenticator), bench.sent.len()), (1, 1));
    assert_eq!(bench.sent[0].destination, HA);

    let mut bench = Bench::new(smooth_agent(0));
    for (agent, care_of) in
        [(FA[1], FA[1]), (FA[0], FA[0]), (Ipv4Addr::BROADCAST, FA[0]), (Ipv4Addr::UNSPECIFIED, FA[0])]
    {
        let before = bench.dropped(DropReason::PoorlyFormed);
        bench.request(Some(notification(agent, care_of)), true);
        assert_eq!(bench.dropped(DropReason::PoorlyFormed), before + 1);
        assert!(!bench.sent.iter().any(is_update));
    }
    bench.request(Some(notification(FA[1], FA[0])), true);
    let sent: Vec<_> = bench.sent.iter().map(|transmit| transmit.destination).collect();
    assert_eq!(sent, [HA, FA[1]], "the registration goes first");
}

fn acknowledge(identification: Identification, negative: bool) -> Vec<u8> {
    let answer = careof_wire::mip4::BindingAcknowledge {
        negative,
        home_address: HOME,
        identification,
        extensions: Vec::new(),
    };
    Message::BindingAcknowledge(answer).emit()
}

#[test]
fn an_acknowledgement_from_elsewhere_or_of_something_else_ends_nothing() {
    let mut bench = Bench::new(smooth_agent(0));
    let craft = bench.request(Some(notification(FA[1], FA[0])), true);
    let right = craft.request.identification;
    let wrong = Identification(right.0 ^ 1);
    bench.handle(UPSTREAM, &udp(FA[1], FA[0], 64, acknowledge(wrong, false)));
    assert_eq!(bench.dropped(DropReason::UnexpectedReply), 1);
    bench.handle(UPSTREAM, &udp(CORRESPONDENT, FA[0], 64, acknowledge(right, false)));
    assert_eq!(bench.dropped(DropReason::UnexpectedSource), 1);
    let repeated = |bench: &mut Bench| {
        bench.now += Duration::from_millis(2_100);
        bench.agent.handle_timeout(bench.now);
        std::iter::from_fn(|| bench.agent.poll_transmit(bench.now)).filter(is_update).count()
    };
    assert_eq!(repeated(&mut bench), 1);
    bench.handle(UPSTREAM, &udp(FA[1], FA[0], 64, acknowledge(right, true)));
    let to_mobile = &bench.sent[0];
    assert_eq!((to_mobile.destination, to_mobile.interface), (HOME, Some(DOWNSTREAM)));
    assert_eq!(repeated(&mut bench), 0, "one that refuses is not asked again");
}

#[test]
fn packets_are_delivered_to_who_has_proved_to_be_here_and_to_nobody_else() {
    let mut bench = Bench::new(smooth_agent(0));
    let craft = bench.request(None, false);
    assert_eq!(bench.dropped(DropReason::MissingAuthenticator), 1);
    assert_eq!(bench.agent.deliver(HOME), None);
    let craft = bench.request(None, true).with(|new| assert!(new.request != craft.request));
    assert_eq!(bench.agent.deliver(HOME), Some(DOWNSTREAM));
    // Whom the home agent denies is nobody's visitor.
    let denied = reply(&craft.request, ReplyCode::HomeAdministrativelyProhibited);
    bench.handle(UPSTREAM, &udp(HA, FA[0], 64, denied));
    assert_eq!(bench.agent.deliver(HOME), None);
    // Played again the same words prove nothing, whatever the home agent will say.
    let mut bytes = craft.bytes();
    sign(&mut bytes, AuthenticationKind::MobileForeign, &with_agent(0));
    bench.handle(DOWNSTREAM, &udp(HOME, FA[0], 64, bytes));
    assert_eq!(bench.agent.deliver(HOME), None);
    // Nor is anybody waited for.
    bench.request(None, true);
    assert_eq!(bench.agent.deliver(HOME), Some(DOWNSTREAM));
    bench.now += Duration::from_secs(8);
    bench.agent.handle_timeout(bench.now);
    assert_eq!(bench.agent.deliver(HOME), None);
}

#[test]
fn what_comes_for_nobody_goes_home_in_a_special_tunnel_for_acquaintances_only() {
    let mut bench = Bench::new(smooth_agent(0));
    let now = bench.now;
    let tunnel = bench.agent.pass_on(now, HOME, HA).unwrap();
    assert_eq!((tunnel.entry, tunnel.exit), (FA[0], HOME));
    assert_eq!(bench.agent.pass_on(now, Ipv4Addr::new(10, 0, 0, 8), HA), None);
    let mut plain = Bench::new(ForeignAgentConfig { smooth_handoff: false, ..smooth_agent(0) });
    assert_eq!(plain.agent.pass_on(now, HOME, HA), None);
}

#[test]
fn who_tunnels_to_where_nobody_is_any_longer_is_told_of_at_the_home_agent_and_not_for_every_packet() {
    let mut bench = Bench::new(smooth_agent(0));
    bench.register();
    bench.now += Duration::from_secs(1);
    bench.handle(UPSTREAM, &signed(update(bench.now), &with_agent(0)));
    let mut warned = Vec::new();
    for _ in 0..100 {
        bench.now += Duration::from_millis(100);
        assert!(bench.agent.pass_on(bench.now, HOME, CORRESPONDENT).is_some());
        assert!(bench.agent.pass_on(bench.now, HOME, HA).is_some(), "it knows best itself");
        warned.extend(std::iter::from_fn(|| bench.agent.poll_transmit(bench.now)));
    }
    assert_eq!(warned.len(), 4, "at once, and after 1, 2 and 4 s");
    let warning = BindingWarning { home_address: HOME, target: CORRESPONDENT, extensions: Vec::new() };
    for transmit in warned {
        assert_eq!((transmit.destination, transmit.source), (HA, FA[0]));
        assert_eq!(Message::parse(transmit.payload.bytes()), Ok(Message::BindingWarning(warning.clone())));
    }
}

#[test]
fn who_leaves_while_a_renewal_is_under_way_has_left() {
    let mut bench = Bench::new(smooth_agent(0));
    bench.register();
    let renewal = bench.request(None, true);
    bench.now += Duration::from_millis(50);
    let left = signed(update(bench.now), &with_agent(0));
    bench.handle(UPSTREAM, &left);
    assert_eq!(bench.agent.departed().count(), 1);
    assert_eq!(bench.agent.deliver(HOME), None, "it waits for nothing here");
    // The answer to what it said before it left.
    bench.handle(UPSTREAM, &udp(HA, FA[0], 64, reply(&renewal.request, ReplyCode::Accepted)));
    assert_eq!((bench.agent.deliver(HOME), bench.agent.departed().count()), (None, 1));
}
