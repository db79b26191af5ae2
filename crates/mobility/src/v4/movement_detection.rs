//! Which agents a mobile node hears on a link, and when it no longer does (RFC 5944 section 2.4.2).

use alloc::vec::Vec;
use core::net::Ipv4Addr;
use core::time::Duration;

use careof_base::Instant;
use careof_wire::mip4::Lifetime;

use super::unicast::is_unicast;
use super::{AgentLoss, EncapsulationChoice, Prefix, Wake};

/// By what a mobile node notices that it has moved. Each can be switched off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MovementConfig {
    /// The lifetime of the agent's last advertisement has ended (section 2.4.2.1).
    pub lifetime: bool,
    /// This many advertisements in a row have not come, going by the interval observed between them, or, as
    /// long as only one came, by a third of its lifetime.
    pub missed_advertisements: Option<u8>,
    /// How long after the last of them was due an agent counts as lost, thousandths of that interval: agents
    /// draw their intervals, so that the next advertisement may come later than the observed ones would have it.
    pub margin_permille: u16,
    /// An agent is gone to as soon as it is first heard, although the one in use is heard as well (eager cell
    /// switching). Otherwise the one in use is kept for as long as it is heard (lazy cell switching).
    pub eager: bool,
    /// An advertisement shows another network prefix than that of the agent registered with
    /// (section 2.4.2.2).
    pub prefix: bool,
    /// The link layer says so. When off, a link counts as up whatever it says.
    pub link_layer: bool,
}

impl Default for MovementConfig {
    /// Everything but eagerness, with three missed advertisements and half an interval more.
    fn default() -> Self {
        Self {
            lifetime: true,
            missed_advertisements: Some(3),
            margin_permille: 500,
            eager: false,
            prefix: true,
            link_layer: true,
        }
    }
}

/// What an advertisement says, as far as it matters here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Advertised {
    /// Validity of the advertisement.
    pub(crate) lifetime: Duration,
    pub(crate) sequence: u16,
    pub(crate) registration_lifetime: Lifetime,
    pub(crate) registration_required: bool,
    pub(crate) busy: bool,
    pub(crate) home_agent: bool,
    pub(crate) foreign_agent: bool,
    pub(crate) minimal_encapsulation: bool,
    pub(crate) gre: bool,
    pub(crate) reverse_tunneling: bool,
    pub(crate) care_of: Option<Ipv4Addr>,
    pub(crate) prefix: Option<Prefix>,
}

impl Advertised {
    /// Whether it offers `choice` for the tunnel to its care-of address.
    pub(crate) const fn offers(&self, choice: EncapsulationChoice) -> bool {
        match choice {
            EncapsulationChoice::IpInIp => true,
            EncapsulationChoice::Minimal => self.minimal_encapsulation,
            EncapsulationChoice::Gre => self.gre,
        }
    }
}

/// An agent that is heard.
#[derive(Clone, Debug)]
pub(crate) struct Agent {
    pub(crate) address: Ipv4Addr,
    pub(crate) advertised: Advertised,
    heard: Instant,
    /// When it was first heard.
    since: Instant,
    /// Observed time between its advertisements.
    interval: Option<Duration>,
    /// It advertises, but has not answered several requests.
    silent: bool,
}

/// What an advertisement told about its agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Observation {
    /// It was not known; `replaced` had to be forgotten for it.
    New {
        replaced: Option<Ipv4Addr>,
    },
    Known,
    /// It began to count anew: it has forgotten its visitors (section 2.4.4 of the RFC).
    Rebooted,
    /// It says that it is no longer valid.
    Withdrawn,
}

/// Agents remembered on one link. There is hardly ever more than one; the bound is for liars.
const MAX_AGENTS: usize = 8;

/// The agents heard on one link.
#[derive(Clone, Debug)]
pub(crate) struct AgentList {
    config: MovementConfig,
    agents: Vec<Agent>,
}

/// A link can carry a frame twice; the second one comes at once.
const TWICE_WITHIN: Duration = Duration::from_millis(50);

/// Whether a sequence number says that the agent has been restarted: less than before and below 256, as an
/// agent that counts on goes from 0xffff to 256; or 0 again, which is for the first after a start only, `later`.
fn shows_reboot(before: u16, after: u16, later: Duration) -> bool {
    after < 256 && after < before || before == 0 && after == 0 && later > TWICE_WITHIN
}

/// How many advertisements were sent since the one with sequence number `before`.
const fn steps(before: u16, after: u16) -> u32 {
    let steps = if after >= before {
        after - before
    } else {
        // Over the roll-over, which leaves out 0 to 255.
        after.wrapping_sub(before).wrapping_sub(256)
    };
    if steps == 0 { 1 } else { steps as u32 }
}

impl AgentList {
    pub(crate) const fn new(config: MovementConfig) -> Self {
        Self { config, agents: Vec::new() }
    }

    /// Whether the link layer is believed.
    pub(crate) const fn trusts_link(&self) -> bool {
        self.config.link_layer
    }

    /// Takes in an advertisement of the agent at `address`. `keep` is the agent registered with, which is
    /// not forgotten for a new one.
    pub(crate) fn heard(
        &mut self,
        now: Instant,
        address: Ipv4Addr,
        advertised: Advertised,
        keep: Option<Ipv4Addr>,
    ) -> Observation {
        if advertised.lifetime.is_zero() {
            self.forget(address);
            return Observation::Withdrawn;
        }
        let Some(agent) = self.agents.iter_mut().find(|agent| agent.address == address) else {
            let replaced = self.make_room(keep);
            self.agents.push(Agent {
                address,
                advertised,
                heard: now,
                since: now,
                interval: None,
                silent: false,
            });
            return Observation::New { replaced };
        };
        let rebooted = shows_reboot(agent.advertised.sequence, advertised.sequence, now - agent.heard);
        let observed = (now - agent.heard) / steps(agent.advertised.sequence, advertised.sequence);
        agent.interval = match agent.interval {
            _ if rebooted => None,
            // A long gap counts at once, short ones (solicited advertisements come early) little by little.
            Some(interval) if observed < interval => Some((interval * 7 + observed) / 8),
            _ => Some(observed.min(advertised.lifetime)),
        };
        agent.heard = now;
        agent.advertised = advertised;
        if rebooted { Observation::Rebooted } else { Observation::Known }
    }

    fn make_room(&mut self, keep: Option<Ipv4Addr>) -> Option<Ipv4Addr> {
        if self.agents.len() < MAX_AGENTS {
            return None;
        }
        let others = self.agents.iter().enumerate().filter(|(_, agent)| Some(agent.address) != keep);
        let (at, _) = others.min_by_key(|(_, agent)| agent.heard)?;
        Some(self.agents.remove(at).address)
    }

    pub(crate) fn get(&self, address: Ipv4Addr) -> Option<&Agent> {
        self.agents.iter().find(|agent| agent.address == address)
    }

    /// Forgets one agent.
    pub(crate) fn forget(&mut self, address: Ipv4Addr) {
        self.agents.retain(|agent| agent.address != address);
    }

    /// Forgets all agents, and names them.
    pub(crate) fn clear(&mut self) -> Vec<Ipv4Addr> {
        self.agents.drain(..).map(|agent| agent.address).collect()
    }

    /// The foreign agent to register with: `current` if it still offers its services, else the one heard
    /// last that does. Who is eager takes the one that was first heard last. One that does not answer is the last choice.
    pub(crate) fn foreign_agent(&self, current: Option<Ipv4Addr>) -> Option<(&Agent, Ipv4Addr)> {
        let offers = |agent: &Agent| {
            let advertised = &agent.advertised;
            let serves = advertised.foreign_agent && !advertised.registration_lifetime.is_zero();
            // Busy agents keep those they have, and take no others.
            let free = !advertised.busy || current == Some(agent.address);
            advertised.care_of.filter(|&care_of| serves && free && is_unicast(care_of))
        };
        let offering = self.agents.iter().filter_map(|agent| Some((agent, offers(agent)?)));
        let newest = |agent: &Agent| self.config.eager.then_some(agent.since);
        offering.max_by_key(|(agent, _)| {
            (!agent.silent, newest(agent), current == Some(agent.address), agent.heard)
        })
    }

    /// Whether a home agent is heard whose address `is_ours`, and which answers.
    pub(crate) fn hears_home_agent(&self, is_ours: impl Fn(Ipv4Addr) -> bool) -> bool {
        self.agents.iter().any(|a| a.advertised.home_agent && !a.silent && is_ours(a.address))
    }

    /// An agent that wants registrations with co-located care-of addresses to go through it (R). One that
    /// does not answer is not obeyed.
    pub(crate) fn demanding_agent(&self) -> Option<Ipv4Addr> {
        let demands = |agent: &&Agent| {
            let advertised = &agent.advertised;
            advertised.registration_required && advertised.foreign_agent && !agent.silent
        };
        self.agents.iter().filter(demands).map(|agent| agent.address).min()
    }

    /// The agent has not answered several requests, or has answered again. Returns whether that is news.
    pub(crate) fn set_silent(&mut self, address: Ipv4Addr, silent: bool) -> bool {
        let agent = self.agents.iter_mut().find(|agent| agent.address == address);
        agent.is_some_and(|agent| core::mem::replace(&mut agent.silent, silent) != silent)
    }

    /// An agent heard after `current` whose prefix shows that the node is on another network than
    /// `current`'s; both must tell theirs. The home agent, whose address `is_ours`, is none: it has to answer first, for
    /// anybody on a foreign link can speak in its name.
    pub(crate) fn moved_away_from(
        &self,
        current: Ipv4Addr,
        is_ours: impl Fn(Ipv4Addr) -> bool,
    ) -> Option<&Agent> {
        if !self.config.prefix {
            return None;
        }
        let current = self.get(current)?;
        let here = current.advertised.prefix?;
        self.agents
            .iter()
            .filter(|agent| agent.heard > current.heard && agent.advertised.prefix.is_some_and(|p| p != here))
            .filter(|agent| !(agent.advertised.home_agent && is_ours(agent.address)))
            .max_by_key(|agent| agent.heard)
    }

    /// When the next agent will be given up, unless it is heard before.
    pub(crate) fn deadline(&self) -> Option<(Instant, Wake)> {
        self.agents.iter().filter_map(|agent| agent.deadline(self.config)).min_by_key(|&(at, _)| at)
    }

    /// Forgets one agent that is overdue at `now`; to be called until `None`.
    pub(crate) fn expire(&mut self, now: Instant) -> Option<(Ipv4Addr, AgentLoss)> {
        let overdue = |agent: &Agent| agent.deadline(self.config).filter(|&(at, _)| at <= now);
        let (at, wake) = self.agents.iter().enumerate().find_map(|(i, a)| Some((i, overdue(a)?.1)))?;
        let cause = match wake {
            Wake::MissedAdvertisements => AgentLoss::MissedAdvertisements,
            _ => AgentLoss::LifetimeExpired,
        };
        Some((self.agents.remove(at).address, cause))
    }
}

impl Agent {
    fn deadline(&self, config: MovementConfig) -> Option<(Instant, Wake)> {
        let lifetime = self.advertised.lifetime;
        let expiry = config.lifetime.then(|| (self.heard + lifetime, Wake::AdvertisementLifetime));
        let missed = config.missed_advertisements.map(|count| {
            let interval = self.interval.unwrap_or(lifetime / 3);
            let margin = interval.saturating_mul(u32::from(config.margin_permille)) / 1000;
            (self.heard + interval.saturating_mul(u32::from(count)) + margin, Wake::MissedAdvertisements)
        });
        crate::deadline::earliest(expiry, missed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AGENT: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
    const OTHER: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 1);

    fn advertised(sequence: u16) -> Advertised {
        Advertised {
            lifetime: Duration::from_secs(30),
            sequence,
            registration_lifetime: Lifetime::from_secs(600),
            registration_required: false,
            busy: false,
            home_agent: false,
            foreign_agent: true,
            minimal_encapsulation: false,
            gre: false,
            reverse_tunneling: false,
            care_of: Some(AGENT),
            prefix: Some(Prefix::new(AGENT, 24)),
        }
    }

    fn list(config: MovementConfig) -> AgentList {
        AgentList::new(config)
    }

    fn at(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    #[test]
    fn three_missing_advertisements_are_noticed_long_before_a_long_lifetime_ends() {
        let mut agents = list(MovementConfig::default());
        for n in 0..5 {
            agents.heard(at(1000 * u64::from(n)), AGENT, advertised(n), None);
        }
        assert_eq!(agents.deadline(), Some((at(7_500), Wake::MissedAdvertisements)));
        assert_eq!(agents.expire(at(7_499)), None);
        assert_eq!(agents.expire(at(7_500)), Some((AGENT, AgentLoss::MissedAdvertisements)));
    }

    #[test]
    fn one_or_two_missing_advertisements_are_no_loss() {
        let mut agents = list(MovementConfig::default());
        for (n, seconds) in [(0, 0), (1, 1), (4, 4), (5, 5)] {
            assert_eq!(agents.expire(at(1000 * seconds)), None);
            agents.heard(at(1000 * seconds), AGENT, advertised(n), None);
        }
        assert_eq!(agents.deadline(), Some((at(8_500), Wake::MissedAdvertisements)));
    }

    #[test]
    fn with_the_lifetime_alone_an_agent_stays_for_all_of_it() {
        let only = MovementConfig { missed_advertisements: None, ..MovementConfig::default() };
        let mut agents = list(only);
        agents.heard(at(0), AGENT, advertised(0), None);
        agents.heard(at(1000), AGENT, advertised(1), None);
        assert_eq!(agents.expire(at(30_999)), None);
        assert_eq!(agents.expire(at(31_000)), Some((AGENT, AgentLoss::LifetimeExpired)));
        let none = MovementConfig { lifetime: false, ..only };
        let mut agents = list(none);
        agents.heard(at(0), AGENT, advertised(0), None);
        assert_eq!(agents.deadline(), None);
    }

    #[test]
    fn a_sequence_number_below_256_after_a_higher_one_is_a_reboot_and_256_is_not() {
        for (before, after, expected) in [
            (0xffff, 256, Observation::Known),
            (0xffff, 255, Observation::Rebooted),
            (300, 0, Observation::Rebooted),
            (300, 299, Observation::Known),
            (5, 3, Observation::Rebooted),
            (5, 5, Observation::Known),
            (255, 256, Observation::Known),
            (0, 0, Observation::Rebooted),
        ] {
            let mut agents = list(MovementConfig::default());
            agents.heard(at(0), AGENT, advertised(before), None);
            assert_eq!(agents.heard(at(1000), AGENT, advertised(after), None), expected, "{before} {after}");
        }
    }

    #[test]
    fn a_frame_carried_twice_is_no_reboot() {
        let mut agents = list(MovementConfig::default());
        agents.heard(at(0), AGENT, advertised(0), None);
        assert_eq!(agents.heard(at(1), AGENT, advertised(0), None), Observation::Known);
    }

    #[test]
    fn the_roll_over_counts_as_one_step() {
        assert_eq!(steps(0xffff, 256), 1);
        assert_eq!(steps(0xfffe, 257), 3);
        assert_eq!(steps(7, 9), 2);
        assert_eq!(steps(7, 7), 1);
    }

    #[test]
    fn another_prefix_heard_later_shows_a_move_and_the_same_one_does_not() {
        let mut agents = list(MovementConfig::default());
        agents.heard(at(0), AGENT, advertised(0), None);
        agents.heard(at(10), Ipv4Addr::new(192, 0, 2, 9), advertised(0), None);
        assert!(agents.moved_away_from(AGENT, |_| false).is_none());
        let elsewhere = Advertised { prefix: Some(Prefix::new(OTHER, 24)), ..advertised(0) };
        agents.heard(at(20), OTHER, elsewhere, None);
        assert_eq!(agents.moved_away_from(AGENT, |_| false).map(|agent| agent.address), Some(OTHER));
        agents.heard(at(30), AGENT, advertised(1), None);
        assert!(agents.moved_away_from(AGENT, |_| false).is_none(), "still heard here");
    }

    #[test]
    fn a_busy_agent_keeps_its_visitors_and_takes_no_others() {
        let mut agents = list(MovementConfig::default());
        agents.heard(at(0), AGENT, Advertised { busy: true, ..advertised(0) }, None);
        assert!(agents.foreign_agent(None).is_none());
        assert!(agents.foreign_agent(Some(AGENT)).is_some());
    }

    #[test]
    fn an_agent_that_does_not_answer_is_the_last_choice() {
        let mut agents = list(MovementConfig::default());
        agents.heard(at(0), AGENT, Advertised { registration_required: true, ..advertised(0) }, None);
        agents.heard(at(1), OTHER, Advertised { care_of: Some(OTHER), ..advertised(0) }, None);
        let chosen = |agents: &AgentList| agents.foreign_agent(Some(AGENT)).map(|(agent, _)| agent.address);
        assert_eq!((chosen(&agents), agents.demanding_agent()), (Some(AGENT), Some(AGENT)));
        agents.set_silent(AGENT, true);
        assert_eq!((chosen(&agents), agents.demanding_agent()), (Some(OTHER), None));
        agents.forget(OTHER);
        assert_eq!(chosen(&agents), Some(AGENT), "better than none");
    }

    #[test]
    fn a_thousand_invented_agents_take_the_room_of_eight_and_not_the_current_one() {
        let mut agents = list(MovementConfig::default());
        agents.heard(at(0), AGENT, advertised(0), None);
        for n in 0..1000 {
            let address = Ipv4Addr::from_bits(0x0a00_0001 + n);
            agents.heard(at(1 + u64::from(n)), address, advertised(0), Some(AGENT));
        }
        assert_eq!(agents.agents.len(), MAX_AGENTS);
        assert!(agents.get(AGENT).is_some());
    }
}
