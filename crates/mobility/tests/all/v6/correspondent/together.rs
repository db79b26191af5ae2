//! A mobile node with its home agent and a correspondent node: none of them knows what the other two are made of.

use std::collections::VecDeque;
use std::net::Ipv6Addr;
use std::time::Duration;

use careof_base::{Instant, RandomStream};
use careof_mobility::v6::{
    CorrespondentNode, CorrespondentNodeConfig, Event, HomeAgent, HomeAgentConfig, Input, InterfaceAddress,
    InterfaceConfig, MobileNode, MobileNodeConfig, Prefix, RouteOptimizationConfig, SecurityAssociation,
    ServedMobileNode, Transmit, TransmitPayload,
};
use careof_mobility::{InterfaceId, Notice};
use careof_wire::mip6::Spi;

use super::peer::CORRESPONDENT;

const SECOND: Duration = Duration::from_secs(1);
const WLAN: InterfaceId = InterfaceId(1);
const HOME_LINK: InterfaceId = InterfaceId(0);
/// The home network's number.
const HOME_NETWORK: u16 = 1;
const HOME_AGENT: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, HOME_NETWORK, 0, 0, 0, 0, 1);
const HOME: Ipv6Addr = address(HOME_NETWORK);

/// The mobile node's address on network `number`.
const fn address(number: u16) -> Ipv6Addr {
    Ipv6Addr::new(0x2001, 0xdb8, number, 0, 0, 0, 0, 5)
}

const fn prefix(number: u16) -> Prefix {
    Prefix::new(address(number), 64)
}

struct World {
    now: Instant,
    mobile: MobileNode,
    home: HomeAgent,
    node: CorrespondentNode,
    /// The network where the mobile node is.
    network: Option<u16>,
    /// What the correspondent node was told of ends of handovers: care-of addresses.
    ended: Vec<Ipv6Addr>,
}

impl World {
    fn new() -> Self {
        Self::telling(false)
    }

    /// `tells`: updates say that a handover has ended.
    fn telling(tells_end_of_handover: bool) -> Self {
        let now = Instant::from_secs(100);
        let random = |name| RandomStream::new(1, 0, name);
        let security = SecurityAssociation::hmac_sha1(Spi(256), *b"sixteen bytes ok").unwrap();
        let interfaces = vec![InterfaceConfig::new(WLAN)];
        let mut mobile =
            MobileNodeConfig::new(HOME, prefix(HOME_NETWORK), HOME_AGENT, security.clone(), interfaces);
        let optimization = RouteOptimizationConfig { tells_end_of_handover, ..Default::default() };
        mobile.route_optimization = Some(optimization);
        let home = HomeAgentConfig {
            mobile_nodes: vec![ServedMobileNode::new(HOME, security)],
            duplicate_address_detection: None,
            ..HomeAgentConfig::new(HOME_AGENT, prefix(HOME_NETWORK), HOME_LINK)
        };
        Self {
            now,
            mobile: MobileNode::new(now, mobile, random("mobile node")).unwrap(),
            home: HomeAgent::new(now, home, random("home agent")).unwrap(),
            node: CorrespondentNode::new(
                CorrespondentNodeConfig::new(CORRESPONDENT),
                random("correspondent node"),
            )
            .unwrap(),
            network: None,
            ended: Vec::new(),
        }
    }

    fn tell(&mut self, input: Input<'_>) {
        self.mobile.handle_input(self.now, input);
        self.deliver();
    }

    /// The mobile node leaves its network and comes to another one.
    fn move_to(&mut self, number: u16) {
        if let Some(old) = self.network.take() {
            self.tell(Input::LinkDown { interface: WLAN });
            self.tell(Input::AddressRemoved { interface: WLAN, address: address(old) });
        }
        self.network = Some(number);
        let router = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, number);
        self.tell(Input::LinkUp { interface: WLAN });
        self.tell(Input::RouterFound { interface: WLAN, router, prefixes: &[prefix(number)] });
        if number != HOME_NETWORK {
            let address =
                InterfaceAddress { address: address(number), prefix: prefix(number), valid_for: None };
            self.tell(Input::AddressAdded { interface: WLAN, address });
        }
        self.mobile.switch_to(self.now, WLAN, Notice::None).expect("the only interface");
        self.deliver();
    }

    /// Takes every packet to where it goes, at once.
    fn deliver(&mut self) {
        let mut waiting = VecDeque::new();
        loop {
            while self.mobile.poll_event().is_some() || self.home.poll_event().is_some() {}
            while let Some(event) = self.node.poll_event() {
                if let Event::HandoverEnded { home_address, care_of } = event {
                    assert_eq!(home_address, HOME);
                    self.ended.push(care_of);
                }
            }
            waiting.extend(std::iter::from_fn(|| self.mobile.poll_transmit(self.now)));
            waiting.extend(std::iter::from_fn(|| self.home.poll_transmit(self.now)));
            waiting.extend(std::iter::from_fn(|| self.node.poll_transmit(self.now)));
            let Some(transmit) = waiting.pop_front() else { break };
            self.carry(transmit);
        }
    }

    fn carry(&mut self, transmit: Transmit) {
        let TransmitPayload::Mobility(message) = &transmit.payload else { return };
        let mut addresses = transmit.addresses;
        let is_at_home = self.network == Some(HOME_NETWORK);
        // Out of the reverse tunnel.
        if let Some(tunnel) = addresses.tunnel.take() {
            assert_eq!(tunnel.exit, HOME_AGENT);
            assert!(self.home.accepts_reverse_tunnel(addresses.source, tunnel.entry));
        }
        // Into the tunnel to the mobile node.
        if addresses.destination == HOME && !is_at_home {
            addresses.tunnel = self.home.tunnels(HOME).last().copied();
            if addresses.tunnel.is_none() {
                return;
            }
        }
        let reached = addresses.tunnel.map_or(addresses.destination, |tunnel| tunnel.exit);
        if reached == HOME_AGENT {
            self.home.handle_input(self.now, Input::Mobility { interface: HOME_LINK, addresses, message });
        } else if reached == CORRESPONDENT {
            self.node.handle_input(self.now, Input::Mobility { interface: HOME_LINK, addresses, message });
        } else if self.network.is_some_and(|number| reached == address(number)) {
            self.mobile.handle_input(self.now, Input::Mobility { interface: WLAN, addresses, message });
        }
    }

    fn wait(&mut self, span: Duration) {
        let end = self.now + span;
        loop {
            let mobile = self.mobile.next_timeout().map(|(at, _)| at);
            let home = self.home.next_timeout().map(|(at, _)| at);
            let node = self.node.next_timeout().map(|(at, _)| at);
            let Some(at) = [mobile, home, node].into_iter().flatten().min().filter(|at| *at <= end) else {
                break;
            };
            self.now = self.now.max(at);
            self.mobile.handle_timeout(self.now);
            self.home.handle_timeout(self.now);
            self.node.handle_timeout(self.now);
            self.deliver();
        }
        self.now = end;
    }
}

#[test]
fn a_route_is_optimized_kept_up_moved_and_given_up_at_home() {
    let mut world = World::new();
    world.move_to(2);
    world.wait(5 * SECOND);
    assert!(world.mobile.is_registered());
    world.mobile.note_correspondent(world.now, CORRESPONDENT);
    world.deliver();
    world.wait(5 * SECOND);
    assert_eq!(world.node.care_of_address(HOME), Some(address(2)));
    assert_eq!(world.mobile.optimized_route(CORRESPONDENT), Some(address(2)));

    // Through many lifetimes, as long as packets go to and fro.
    for _ in 0..400 {
        world.mobile.note_correspondent(world.now, CORRESPONDENT);
        world.deliver();
        assert_eq!(world.node.care_of_address(HOME), Some(address(2)), "at {}", world.now);
        assert_eq!(world.mobile.optimized_route(CORRESPONDENT), Some(address(2)), "at {}", world.now);
        world.wait(5 * SECOND);
    }
    world.move_to(4);
    world.wait(5 * SECOND);
    assert_eq!(world.node.care_of_address(HOME), Some(address(4)));
    assert_eq!(world.mobile.optimized_route(CORRESPONDENT), Some(address(4)));

    world.move_to(HOME_NETWORK);
    world.wait(5 * SECOND);
    assert_eq!(world.node.care_of_address(HOME), None);
    assert_eq!(world.node.counters().dropped_total(), 0, "they understand each other");
}

/// Le, Fu and Hogrefe 2008, section 3.1: the ToH bit of the Binding Update. Renewals do not set it, nor do updates of a node that is not
/// to tell.
#[test]
fn an_update_that_replaces_a_care_of_address_tells_the_end_of_the_handover_once() {
    for tells in [true, false] {
        let mut world = World::telling(tells);
        world.move_to(2);
        world.wait(5 * SECOND);
        for _ in 0..200 {
            world.mobile.note_correspondent(world.now, CORRESPONDENT);
            world.deliver();
            world.wait(5 * SECOND);
        }
        assert_eq!(world.node.care_of_address(HOME), Some(address(2)));
        assert!(world.ended.is_empty(), "it had no binding before, and was bound anew many times");
        world.move_to(4);
        world.wait(5 * SECOND);
        world.move_to(HOME_NETWORK);
        world.wait(5 * SECOND);
        assert_eq!(world.node.care_of_address(HOME), None);
        assert_eq!(world.ended, if tells { vec![address(4), HOME] } else { vec![] });
    }
}
