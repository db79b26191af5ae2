//! The way of a mobile node from base station to base station of a domain: which is the next, and when.

use careof_base::{Duration, Instant, RandomStream};
use careof_scenario::{Fleet, Scenario, Walk};

use crate::layout::stream;

/// The choices of a mobile node on its way. Stations are indices of [`Fleet::stations`].
#[derive(Clone, Debug)]
pub struct Itinerary {
    /// The station that it goes to, or is at.
    pub target: usize,
    /// When the next handover is.
    pub leaves: Instant,
    /// How long the handover that has begun leaves it without a link; before the first one as long as none is drawn.
    pub gap: Duration,
    /// When it would be without any spread.
    mark: Instant,
    /// Random waypoint: where it wants to end up.
    waypoint: usize,
    /// Steps of a given walk, or of one out of a file.
    steps: usize,
    random: RandomStream,
    /// Of what the link layer draws, so that the walk is the same without it.
    link_layer: RandomStream,
}

impl Itinerary {
    /// That of the `n`th of a fleet, called `name`, which is about to come to its first station, in repetition `run`.
    #[must_use]
    pub fn new(scenario: &Scenario, run: u64, fleet: &Fleet, n: usize, name: &str) -> Self {
        let first = fleet.first_station(n);
        let mark = fleet.first_handover(n).map_or(Instant::MAX, |span| Instant::ZERO + span);
        let [random, link_layer] =
            ["walk", "walk.link-layer"].map(|what| stream(scenario, run, &format!("{what}.{name}")));
        let gap = Duration::ZERO;
        let mut path =
            Self { target: first, leaves: mark, gap, mark, waypoint: first, steps: 0, random, link_layer };
        path.draw(fleet.round.map_or(Duration::ZERO, |round| round.spread));
        path
    }

    /// Draws when the next handover is.
    fn draw(&mut self, spread: Duration) {
        let most = u64::try_from(spread.as_nanos()).unwrap_or(u64::MAX - 1);
        self.leaves = match (self.mark, most) {
            (Instant::MAX, _) | (_, 0) => self.mark,
            (mark, most) => mark + Duration::from_nanos(self.random.below(most + 1)),
        };
    }

    /// A handover of `fleet` begins: how long there is no link is drawn, and the handover behind it planned, where the walk has one.
    pub fn leave(&mut self, fleet: &Fleet) {
        let Some(round) = fleet.round else { return };
        self.gap = match round.link_layer {
            Some(link_layer) => link_layer.draw(&mut self.link_layer).total(),
            None => round.interruption,
        };
        self.mark = match &fleet.walk {
            Walk::Trace(steps) => {
                steps.get(self.steps + 1).map_or(Instant::MAX, |(at, _)| Instant::ZERO + *at)
            }
            Walk::Round | Walk::Given(_) | Walk::RandomWaypoint => self.mark + round.every,
        };
        self.draw(round.spread);
    }

    /// Chooses the next station of `fleet`.
    pub fn choose(&mut self, fleet: &Fleet) {
        let count = fleet.stations.len();
        self.target = match &fleet.walk {
            Walk::Round => (self.target + 1) % count.max(1),
            Walk::Given(stations) => {
                self.steps = (self.steps + 1) % stations.len().max(1);
                stations.get(self.steps).copied().unwrap_or_default()
            }
            Walk::Trace(steps) => {
                self.steps += 1;
                steps.get(self.steps).map_or(self.target, |(_, station)| *station)
            }
            Walk::RandomWaypoint => {
                while self.waypoint == self.target && count > 1 {
                    self.waypoint = self.random.below(count as u64) as usize;
                }
                if self.waypoint > self.target { self.target + 1 } else { self.target.saturating_sub(1) }
            }
        };
    }
}

/// A step of a walk. Stations are indices of [`Fleet::stations`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WalkStep {
    /// A handover to this station is announced.
    Announce(usize),
    /// A handover begins.
    Handover,
    /// The radio leaves this station.
    Leave(usize),
    /// The radio comes to this station, and sends to it from now on.
    Come(usize),
}

/// Every step of the `n`th of a fleet, called `name`, up to `end`, in order: for a world that lays down its script before it begins. Handovers are
/// announced `lead` before they come, if at all.
#[must_use]
pub fn walk(
    (scenario, run): (&Scenario, u64),
    fleet: &Fleet,
    (n, name): (usize, &str),
    lead: Option<Duration>,
    end: Instant,
) -> Vec<(Instant, WalkStep)> {
    let mut path = Itinerary::new(scenario, run, fleet, n, name);
    let mut now = Instant::ZERO;
    let mut steps = vec![(now, WalkStep::Come(path.target))];
    let Some(round) = fleet.round else { return steps };
    loop {
        let from = path.target;
        path.choose(fleet);
        let (to, leaves) = (path.target, path.leaves.max(now));
        if leaves >= end {
            return steps;
        }
        if let Some(lead) = lead {
            let before = Instant::ZERO + path.leaves.since_start().saturating_sub(lead);
            steps.push((before.max(now), WalkStep::Announce(to)));
        }
        steps.push((leaves, WalkStep::Handover));
        path.leave(fleet);
        let order = if round.overlap.is_zero() {
            now = leaves + path.gap;
            [(leaves, WalkStep::Leave(from)), (now, WalkStep::Come(to))]
        } else {
            now = leaves + round.overlap;
            [(leaves, WalkStep::Come(to)), (now, WalkStep::Leave(from))]
        };
        steps.extend(order.into_iter().filter(|(at, _)| *at < end));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn walked(handover: &str, lead: Option<Duration>) -> Vec<(u128, WalkStep)> {
        let text = format!(
            "duration = \"9 s\"\n[links]\n\
             cell = {{ rate = \"1 Mbit/s\", delay = \"2 ms\", between = [\"home-agent\", \"station-*\"], count = 2 }}\n\
             radio = {{ rate = \"1 Mbit/s\", delay = \"5 ms\", between = [\"station-*\", \"mobile-*\"] }}\n\
             [mobility]\nnodes = 1\n[[handover]]\nevery = \"4 s\"\n{handover}\n\
             [[flow]]\nfrom = \"home-agent\"\nto = \"mobile-*\"\n"
        );
        let scenario = Scenario::parse("x.toml", &text, &[]).unwrap_or_else(|errors| panic!("{errors}"));
        let fleet = scenario.mobility.as_ref().and_then(|mobility| mobility.fleet.clone()).unwrap();
        let steps = walk((&scenario, 0), &fleet, (0, "mobile-1"), lead, Instant::from_secs(9));
        steps.into_iter().map(|(at, step)| (at.since_start().as_millis(), step)).collect()
    }

    #[test]
    fn a_handover_is_announced_and_leaves_a_gap() {
        use WalkStep::{Announce, Come, Handover, Leave};
        let steps = walked("interruption = \"300 ms\"", Some(Duration::from_millis(100)));
        let first = [(3900, Announce(1)), (4000, Handover), (4000, Leave(0)), (4300, Come(1))];
        let second = [(7900, Announce(0)), (8000, Handover), (8000, Leave(1)), (8300, Come(0))];
        assert_eq!(steps, [&[(0, Come(0))][..], &first, &second].concat());
    }

    #[test]
    fn the_link_layer_draws_each_gap_of_its_own_and_moves_no_handover() {
        let gaps = |steps: &[(u128, WalkStep)]| -> Vec<u128> {
            let at = |wanted: fn(&WalkStep) -> bool| {
                steps.iter().filter(move |(_, step)| wanted(step)).map(|(at, _)| *at)
            };
            let comes = at(|step| matches!(step, WalkStep::Come(_))).skip(1);
            at(|step| matches!(step, WalkStep::Leave(_))).zip(comes).map(|(left, came)| came - left).collect()
        };
        let spread = "spread = \"500 ms\"\n";
        let layer = "link_layer = { scan_time = { min = \"100 ms\", max = \"900 ms\" } }";
        let drawn = walked(&format!("{spread}{layer}"), None);
        let gaps = gaps(&drawn);
        assert!(gaps.len() == 2 && gaps[0] != gaps[1], "{gaps:?}");
        assert!(gaps.iter().all(|gap| (100..910).contains(gap)), "{gaps:?}");
        let begun = |steps: Vec<(u128, WalkStep)>| -> Vec<u128> {
            steps.into_iter().filter(|(_, step)| *step == WalkStep::Handover).map(|(at, _)| at).collect()
        };
        assert_eq!(begun(drawn), begun(walked(&format!("{spread}interruption = \"1 s\""), None)));
    }

    #[test]
    fn the_last_handover_of_a_run_may_not_end_in_it() {
        let steps = walked("interruption = \"2 s\"", None);
        assert_eq!(steps.last(), Some(&(8000, WalkStep::Leave(1))));
    }
}
