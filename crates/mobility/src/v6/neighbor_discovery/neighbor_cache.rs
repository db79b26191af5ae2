//! The neighbor cache (RFC 4861 section 5.1), bounded.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::net::Ipv6Addr;
use core::time::Duration;

use careof_base::{Instant, Randomness};
use careof_wire::icmpv6::LinkLayerAddress;

use super::unreachability::{
    LinkLayer, NeighborState, ReachabilityAction, ReachabilityEvent, Transition, transition,
};

/// MAX_MULTICAST_SOLICIT (RFC 4861 section 10).
pub(super) const MAX_MULTICAST_SOLICIT: u8 = 3;
/// MAX_UNICAST_SOLICIT (RFC 4861 section 10).
const MAX_UNICAST_SOLICIT: u8 = 3;
/// REACHABLE_TIME (RFC 4861 section 10).
const REACHABLE_TIME: Duration = Duration::from_secs(30);
/// RETRANS_TIMER (RFC 4861 section 10).
const RETRANS_TIMER: Duration = Duration::from_secs(1);
/// The random ReachableTime is drawn anew after this time: "at least once every few hours" (RFC 4861 section 6.3.4).
const REDRAW: Duration = Duration::from_secs(2 * 3600);

/// A neighbor, as the cache knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Neighbor {
    /// What is known of the path to it.
    pub state: NeighborState,
    /// Its link-layer address; unknown in INCOMPLETE.
    pub link_layer_address: Option<LinkLayerAddress>,
    /// IsRouter.
    pub is_router: bool,
    /// Solicitations sent without an answer.
    solicitations: u8,
    /// When the state's timer ends.
    deadline: Option<Instant>,
    /// When a packet was last sent to it; `None` for one that only ever spoke itself.
    used: Option<Instant>,
    /// When its entry was made.
    made: Instant,
}

impl Neighbor {
    const fn new(now: Instant) -> Self {
        Self {
            state: NeighborState::Incomplete,
            link_layer_address: None,
            is_router: false,
            solicitations: 0,
            deadline: None,
            used: None,
            made: now,
        }
    }

    /// Which entries give way first, lowest first; `None`: never.
    ///
    /// Whoever speaks to this node can only displace others who did so and were never answered; what this node itself uses gives
    /// way only to what it wants to use.
    fn worth(&self) -> Option<(u8, Instant)> {
        match (self.used, self.state) {
            (None, _) => Some((0, self.made)),
            (Some(_), NeighborState::Incomplete) => Some((1, self.made)),
            (Some(used), NeighborState::Stale) => Some((2, used)),
            (Some(_), NeighborState::Reachable | NeighborState::Delay | NeighborState::Probe) => None,
        }
    }
}

/// What a sender gets for the address of a neighbor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resolution {
    /// Its link-layer address: the packet goes there.
    Known(LinkLayerAddress),
    /// It is being asked for. The owner keeps the packet until it is told that the neighbor is resolved or unreachable; RFC 4861
    /// section 7.2.2 wants room for at least one packet a neighbor, of which the last counts.
    Pending,
    /// There is no room for another neighbor, or no address that the question could come from (RFC 4429 section 3.2): the packet
    /// goes to a default router, or is dropped.
    Impossible,
}

/// What the cache wants to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CacheAction {
    /// A solicitation for `target`: to its link-layer address, or to its solicited-node group.
    Solicit { target: Ipv6Addr, link_layer: Option<LinkLayerAddress> },
    /// What waits for `neighbor` can be sent.
    Resolved { neighbor: Ipv6Addr, link_layer: LinkLayerAddress },
    /// `neighbor` does not answer.
    Unreachable { neighbor: Ipv6Addr, was_router: bool },
    /// `neighbor` says that it is no router any more.
    NoLongerRouter { neighbor: Ipv6Addr },
}

/// The link's neighbors.
#[derive(Debug)]
pub(super) struct NeighborCache {
    limit: usize,
    neighbors: BTreeMap<Ipv6Addr, Neighbor>,
    /// BaseReachableTime.
    base_reachable_time: Duration,
    /// ReachableTime: the random one.
    reachable_time: Duration,
    redraw_at: Instant,
    /// RetransTimer.
    retrans_timer: Duration,
    /// How long upper layers have in DELAY.
    delay_first_probe: Duration,
    pub(super) actions: Vec<CacheAction>,
}

impl NeighborCache {
    pub(super) fn new(limit: usize, delay_first_probe: Duration, random: &mut Randomness) -> Self {
        let mut this = Self {
            limit,
            neighbors: BTreeMap::new(),
            base_reachable_time: REACHABLE_TIME,
            reachable_time: REACHABLE_TIME,
            redraw_at: Instant::ZERO,
            retrans_timer: RETRANS_TIMER,
            delay_first_probe,
            actions: Vec::new(),
        };
        this.draw_reachable_time(Instant::ZERO, random);
        this
    }

    pub(super) const fn retrans_timer(&self) -> Duration {
        self.retrans_timer
    }

    #[cfg(test)]
    const fn reachable_time(&self) -> Duration {
        self.reachable_time
    }

    pub(super) fn get(&self, neighbor: Ipv6Addr) -> Option<&Neighbor> {
        self.neighbors.get(&neighbor)
    }

    /// Whether packets go to `neighbor`, and its link-layer address is known.
    pub(super) fn is_in_use(&self, neighbor: Ipv6Addr) -> bool {
        self.get(neighbor).is_some_and(|entry| entry.used.is_some() && entry.link_layer_address.is_some())
    }

    pub(super) fn len(&self) -> usize {
        self.neighbors.len()
    }

    /// Forgets everything: the link is another.
    pub(super) fn clear(&mut self) {
        self.neighbors.clear();
        self.actions.clear();
    }

    /// Takes the parameters of a router advertisement; zero says nothing (RFC 4861 section 6.3.4).
    pub(super) fn set_timers(
        &mut self,
        now: Instant,
        reachable: Duration,
        retrans: Duration,
        random: &mut Randomness,
    ) {
        if !reachable.is_zero() && reachable != self.base_reachable_time {
            self.base_reachable_time = reachable;
            self.draw_reachable_time(now, random);
        } else if now >= self.redraw_at {
            self.draw_reachable_time(now, random);
        }
        if !retrans.is_zero() {
            self.retrans_timer = retrans;
        }
    }

    /// Between MIN_RANDOM_FACTOR (0.5) and MAX_RANDOM_FACTOR (1.5) times BaseReachableTime.
    fn draw_reachable_time(&mut self, now: Instant, random: &mut Randomness) {
        self.reachable_time = self.base_reachable_time / 2 + random.duration_up_to(self.base_reachable_time);
        self.redraw_at = now + REDRAW;
    }

    /// There is a packet for `neighbor`. `may_solicit` says whether there is an address that a question could come from.
    pub(super) fn resolve(&mut self, now: Instant, neighbor: Ipv6Addr, may_solicit: bool) -> Resolution {
        if !self.neighbors.contains_key(&neighbor) {
            if !may_solicit || !self.make_room(2) {
                return Resolution::Impossible;
            }
            self.neighbors.insert(neighbor, Neighbor::new(now));
            self.apply(now, neighbor, None, ReachabilityEvent::PacketToSend, None);
        } else {
            self.handle(now, neighbor, ReachabilityEvent::PacketToSend, None);
        }
        let Some(entry) = self.neighbors.get_mut(&neighbor) else { return Resolution::Impossible };
        entry.used = Some(now);
        entry.link_layer_address.map_or(Resolution::Pending, Resolution::Known)
    }

    /// An upper layer has made progress by what it sent to `neighbor`.
    pub(super) fn confirm(&mut self, now: Instant, neighbor: Ipv6Addr) {
        self.handle(now, neighbor, ReachabilityEvent::UpperLayerConfirmation, None);
    }

    /// A valid neighbor advertisement.
    pub(super) fn advertisement(
        &mut self,
        now: Instant,
        target: Ipv6Addr,
        (router, solicited, overrides): (bool, bool, bool),
        address: Option<LinkLayerAddress>,
    ) {
        let Some(entry) = self.neighbors.get(&target) else { return };
        let (was_router, link_layer) = (entry.is_router, entry.compare(address));
        let event = ReachabilityEvent::NeighborAdvertisement { solicited, overrides, link_layer };
        let takes_is_router =
            self.handle(now, target, event, address).is_some_and(|line| line.takes_is_router);
        if takes_is_router && let Some(entry) = self.neighbors.get_mut(&target) {
            entry.is_router = router;
            if was_router && !router {
                self.actions.push(CacheAction::NoLongerRouter { neighbor: target });
            }
        }
    }

    /// A valid solicitation or router advertisement from `neighbor`; `is_router` where it tells (RFC 4861 appendix D). Returns
    /// whether there was room for what it says.
    pub(super) fn heard(
        &mut self,
        now: Instant,
        neighbor: Ipv6Addr,
        address: Option<LinkLayerAddress>,
        is_router: Option<bool>,
    ) -> bool {
        match self.neighbors.get(&neighbor) {
            Some(entry) => {
                let link_layer = entry.compare(address);
                self.handle(now, neighbor, ReachabilityEvent::Unsolicited { link_layer }, address);
            }
            None if address.is_none() => return true,
            None => {
                if !self.make_room(0) {
                    return false;
                }
                self.neighbors.insert(neighbor, Neighbor::new(now));
                let event = ReachabilityEvent::Unsolicited { link_layer: LinkLayer::Different };
                self.apply(now, neighbor, None, event, address);
            }
        }
        if let (Some(is_router), Some(entry)) = (is_router, self.neighbors.get_mut(&neighbor)) {
            entry.is_router = is_router;
        }
        true
    }

    /// Makes room for one more neighbor, at the cost of those that are worth no more than `worth`.
    fn make_room(&mut self, worth: u8) -> bool {
        if self.limit == 0 {
            return false;
        }
        while self.neighbors.len() >= self.limit {
            let least = self.neighbors.iter().filter_map(|(address, entry)| {
                let (class, since) = entry.worth()?;
                (class <= worth).then_some((class, since, *address))
            });
            let Some((_, _, address)) = least.min() else { return false };
            let entry = self.neighbors.remove(&address);
            if entry.is_some_and(|entry| entry.state == NeighborState::Incomplete) {
                self.actions.push(CacheAction::Unreachable { neighbor: address, was_router: false });
            }
        }
        true
    }

    fn handle(
        &mut self,
        now: Instant,
        neighbor: Ipv6Addr,
        event: ReachabilityEvent,
        address: Option<LinkLayerAddress>,
    ) -> Option<Transition> {
        let state = self.neighbors.get(&neighbor)?.state;
        self.apply(now, neighbor, Some(state), event, address)
    }

    /// Carries out a line of the table. `state` is `None` for an entry that has just been made.
    fn apply(
        &mut self,
        now: Instant,
        neighbor: Ipv6Addr,
        state: Option<NeighborState>,
        event: ReachabilityEvent,
        address: Option<LinkLayerAddress>,
    ) -> Option<Transition> {
        let line = transition(state, event)?;
        let Some(next) = line.next else {
            let was_router = self.neighbors.remove(&neighbor).is_some_and(|entry| entry.is_router);
            self.actions.push(CacheAction::Unreachable { neighbor, was_router });
            return Some(line);
        };
        let (reachable_time, retrans_timer) = (self.reachable_time, self.retrans_timer);
        let delay_first_probe = self.delay_first_probe;
        let entry = self.neighbors.get_mut(&neighbor)?;
        match line.action {
            ReachabilityAction::Record => entry.link_layer_address = address.or(entry.link_layer_address),
            ReachabilityAction::RecordAndSend => {
                entry.link_layer_address = address;
                if let Some(link_layer) = address {
                    self.actions.push(CacheAction::Resolved { neighbor, link_layer });
                }
            }
            ReachabilityAction::SolicitMulticast | ReachabilityAction::SolicitUnicast => {
                if state != Some(next) {
                    entry.solicitations = 0;
                }
                entry.solicitations = entry.solicitations.saturating_add(1);
                let link_layer = match line.action {
                    ReachabilityAction::SolicitUnicast => entry.link_layer_address,
                    _ => None,
                };
                self.actions.push(CacheAction::Solicit { target: neighbor, link_layer });
            }
            ReachabilityAction::None | ReachabilityAction::Discard => {}
        }
        let confirms = match event {
            ReachabilityEvent::UpperLayerConfirmation => true,
            ReachabilityEvent::NeighborAdvertisement { solicited, .. } => solicited,
            _ => false,
        };
        entry.deadline = match next {
            NeighborState::Reachable if confirms => Some(now + reachable_time),
            NeighborState::Delay if state != Some(next) => Some(now + delay_first_probe),
            NeighborState::Incomplete | NeighborState::Probe
                if matches!(
                    line.action,
                    ReachabilityAction::SolicitMulticast | ReachabilityAction::SolicitUnicast
                ) =>
            {
                Some(now + retrans_timer)
            }
            NeighborState::Stale => None,
            _ => entry.deadline,
        };
        entry.state = next;
        Some(line)
    }

    pub(super) fn next_timeout(&self) -> Option<Instant> {
        self.neighbors.values().filter_map(|entry| entry.deadline).min()
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        let due =
            |(address, entry): (&Ipv6Addr, &Neighbor)| (entry.deadline? <= now).then_some((*address, *entry));
        let due: Vec<_> = self.neighbors.iter().filter_map(due).collect();
        for (neighbor, entry) in due {
            let event = match entry.state {
                NeighborState::Incomplete => {
                    let exhausted = entry.solicitations >= MAX_MULTICAST_SOLICIT;
                    ReachabilityEvent::RetransmitTimeout { exhausted }
                }
                NeighborState::Probe => {
                    let exhausted = entry.solicitations >= MAX_UNICAST_SOLICIT;
                    ReachabilityEvent::RetransmitTimeout { exhausted }
                }
                NeighborState::Delay => ReachabilityEvent::DelayTimeout,
                NeighborState::Reachable => ReachabilityEvent::ReachableTimeout,
                NeighborState::Stale => continue,
            };
            self.handle(now, neighbor, event, None);
        }
    }
}

impl Neighbor {
    fn compare(&self, address: Option<LinkLayerAddress>) -> LinkLayer {
        match address {
            None => LinkLayer::Absent,
            Some(_) if self.link_layer_address == address => LinkLayer::Same,
            Some(_) => LinkLayer::Different,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::v6::neighbor_discovery::HostConfig;
    use careof_base::RandomStream;

    const A: LinkLayerAddress = LinkLayerAddress([2, 0, 0, 0, 0, 1]);
    const B: LinkLayerAddress = LinkLayerAddress([2, 0, 0, 0, 0, 2]);

    fn random() -> Randomness {
        RandomStream::new(1, 0, "neighbors").into()
    }

    fn cache(limit: usize) -> NeighborCache {
        NeighborCache::new(limit, HostConfig::DELAY_FIRST_PROBE_TIME, &mut random())
    }

    fn neighbor(number: u16) -> Ipv6Addr {
        Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, number)
    }

    fn state(cache: &NeighborCache, number: u16) -> Option<NeighborState> {
        cache.get(neighbor(number)).map(|entry| entry.state)
    }

    /// Lets time pass to the next deadline; the actions due then.
    fn wait(cache: &mut NeighborCache) -> (Instant, Vec<CacheAction>) {
        let due = cache.next_timeout().unwrap();
        cache.handle_timeout(due);
        (due, core::mem::take(&mut cache.actions))
    }

    #[test]
    fn three_questions_a_second_apart_and_then_the_neighbor_is_unreachable() {
        let mut cache = cache(8);
        assert_eq!(cache.resolve(Instant::ZERO, neighbor(1), true), Resolution::Pending);
        let ask = CacheAction::Solicit { target: neighbor(1), link_layer: None };
        assert_eq!(core::mem::take(&mut cache.actions), [ask]);
        assert_eq!(wait(&mut cache), (Instant::from_secs(1), alloc::vec![ask]));
        assert_eq!(wait(&mut cache), (Instant::from_secs(2), alloc::vec![ask]));
        let gone = CacheAction::Unreachable { neighbor: neighbor(1), was_router: false };
        assert_eq!(wait(&mut cache), (Instant::from_secs(3), alloc::vec![gone]));
        assert_eq!((cache.len(), cache.next_timeout()), (0, None));
    }

    #[test]
    fn a_silent_neighbor_is_found_out_after_the_reachable_time_a_delay_and_three_probes() {
        let mut cache = cache(8);
        let _ = cache.resolve(Instant::ZERO, neighbor(1), true);
        cache.advertisement(Instant::ZERO, neighbor(1), (true, true, true), Some(A));
        assert_eq!(cache.actions.pop(), Some(CacheAction::Resolved { neighbor: neighbor(1), link_layer: A }));
        cache.actions.clear();
        assert_eq!(state(&cache, 1), Some(NeighborState::Reachable));
        let (stale_at, nothing) = wait(&mut cache);
        assert!((15..=45).contains(&stale_at.since_start().as_secs()) && nothing.is_empty());
        assert_eq!((state(&cache, 1), cache.next_timeout()), (Some(NeighborState::Stale), None));
        let sent = stale_at + Duration::from_secs(100);
        assert_eq!(cache.resolve(sent, neighbor(1), true), Resolution::Known(A));
        let probe = CacheAction::Solicit { target: neighbor(1), link_layer: Some(A) };
        for second in [5, 6, 7] {
            assert_eq!(wait(&mut cache), (sent + Duration::from_secs(second), alloc::vec![probe]));
            // Packets go on being sent while it is probed.
            let at = sent + Duration::from_secs(second);
            assert_eq!(cache.resolve(at, neighbor(1), true), Resolution::Known(A));
        }
        let gone = CacheAction::Unreachable { neighbor: neighbor(1), was_router: true };
        assert_eq!(wait(&mut cache), (sent + Duration::from_secs(8), alloc::vec![gone]));
    }

    #[test]
    fn a_hint_of_an_upper_layer_saves_the_probe() {
        let mut cache = cache(8);
        assert!(cache.heard(Instant::ZERO, neighbor(1), Some(A), None));
        assert_eq!(cache.resolve(Instant::ZERO, neighbor(1), true), Resolution::Known(A));
        assert_eq!(state(&cache, 1), Some(NeighborState::Delay));
        let now = Instant::from_secs(3);
        cache.confirm(now, neighbor(1));
        assert_eq!(state(&cache, 1), Some(NeighborState::Reachable));
        assert_eq!(cache.next_timeout(), Some(now + cache.reachable_time()));
        assert!(cache.actions.is_empty());
        cache.confirm(now, neighbor(9));
        assert_eq!(cache.len(), 1);
    }

    #[test]
    fn a_router_that_says_it_is_none_any_more_is_told_of() {
        let mut cache = cache(8);
        cache.heard(Instant::ZERO, neighbor(1), Some(A), Some(true));
        cache.advertisement(Instant::ZERO, neighbor(1), (false, false, false), Some(B));
        assert!(cache.actions.is_empty(), "without Override another address tells nothing");
        cache.advertisement(Instant::ZERO, neighbor(1), (false, false, true), Some(A));
        assert_eq!(cache.actions, [CacheAction::NoLongerRouter { neighbor: neighbor(1) }]);
    }

    #[test]
    fn the_reachable_time_is_drawn_from_half_to_one_and_a_half_of_what_routers_say() {
        let mut random = random();
        let mut cache = cache(8);
        let base = Duration::from_secs(100);
        let mut drawn = Vec::new();
        for round in 0..200 {
            let now = Instant::from_secs(round * 3 * 3600);
            cache.set_timers(now, base, Duration::ZERO, &mut random);
            drawn.push(cache.reachable_time());
        }
        let (least, most) = (drawn.iter().min().unwrap(), drawn.iter().max().unwrap());
        assert!(*least >= base / 2 && *least < base * 6 / 10, "{least:?}");
        assert!(*most <= base * 3 / 2 && *most > base * 14 / 10, "{most:?}");
        let last = cache.reachable_time();
        cache.set_timers(Instant::from_secs(199 * 3 * 3600), base, Duration::ZERO, &mut random);
        cache.set_timers(Instant::from_secs(199 * 3 * 3600), Duration::ZERO, Duration::ZERO, &mut random);
        assert_eq!(cache.reachable_time(), last, "the same value, and none, change nothing");
        assert_eq!(cache.retrans_timer(), Duration::from_secs(1));
    }

    #[test]
    fn a_flood_of_strangers_displaces_only_strangers() {
        let mut cache = cache(16);
        let now = Instant::from_secs(1);
        // Three neighbors in use, one of them being asked for.
        let _ = cache.resolve(now, neighbor(1), true);
        for used in [2, 3] {
            cache.heard(now, neighbor(used), Some(A), None);
            let _ = cache.resolve(now, neighbor(used), true);
        }
        for stranger in 100..1100 {
            cache.heard(now + Duration::from_millis(u64::from(stranger)), neighbor(stranger), Some(B), None);
            assert!(cache.len() <= 16);
        }
        assert!((1..=3).all(|used| cache.get(neighbor(used)).is_some()));
        assert!(cache.get(neighbor(1099)).is_some() && cache.get(neighbor(100)).is_none());
        // What is wanted displaces strangers, and then what is being asked for; never what is in use.
        for wanted in 2000..2100 {
            let now = now + Duration::from_secs(2) + Duration::from_millis(u64::from(wanted));
            assert_eq!(cache.resolve(now, neighbor(wanted), true), Resolution::Pending);
            assert!(cache.len() <= 16);
        }
        assert!((2..=3).all(|used| cache.get(neighbor(used)).is_some()));
        assert!(!cache.heard(now, neighbor(5000), Some(B), None), "there are no strangers to displace");
    }

    #[test]
    fn without_an_address_to_ask_from_nothing_is_asked() {
        let mut cache = cache(8);
        assert_eq!(cache.resolve(Instant::ZERO, neighbor(1), false), Resolution::Impossible);
        assert_eq!(cache.len(), 0);
        cache.heard(Instant::ZERO, neighbor(1), Some(A), None);
        assert_eq!(cache.resolve(Instant::ZERO, neighbor(1), false), Resolution::Known(A));
        let mut none = NeighborCache::new(0, HostConfig::DELAY_FIRST_PROBE_TIME, &mut random());
        assert_eq!(none.resolve(Instant::ZERO, neighbor(1), true), Resolution::Impossible);
        assert!(!none.heard(Instant::ZERO, neighbor(1), Some(A), None));
    }
}
