//! The handovers of a scenario as a script: what happens when.

use core::time::Duration;

use careof_base::Instant;
use careof_link::Fate;
use careof_scenario::{
    FastHandover, Handover, HandoverStyle, LinkId, MovementDetection, QueuedFate, Scenario,
};

use crate::layout::stream;

/// What happens at one instant of the script. Handovers go by their index in the scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The mobile node attaches for the first time.
    Attach(LinkId),
    /// The handover is announced: the trace says so, and assists act on it. It may be a false alarm.
    Announce(usize),
    /// Fast handovers: the mobile node has its router send packets on to where it is about to go.
    Prepare(usize),
    /// Fast handovers: the handover that was announced does not happen.
    CallOff(usize),
    /// The handover begins.
    Begin(usize),
    /// After an interruption, the new link is there.
    NewLink(usize),
    /// After both links were up together, the old one goes down.
    OldLink(usize),
}

/// The access links that the mobile nodes are attached to when the run begins, where each moves by itself.
#[must_use]
pub fn attached_first(scenario: &Scenario) -> Vec<LinkId> {
    let mobility = scenario.mobility.as_ref().filter(|mobility| mobility.fleet.is_none());
    let Some(mobility) = mobility else { return Vec::new() };
    match (&mobility.multipath, mobility.order.as_slice()) {
        (Some(multipath), _) => multipath.paths.iter().map(|path| path.link).collect(),
        (None, []) => mobility.nodes.iter().map(|node| node.start).collect(),
        (None, order) => order.to_vec(),
    }
}

/// The scenario as it is in a run: handovers whose instants are drawn are there like any others.
#[must_use]
pub fn drawn(mut scenario: Scenario, run: u64) -> Scenario {
    if scenario.poisson_handovers.is_empty() {
        return scenario;
    }
    for (index, poisson) in core::mem::take(&mut scenario.poisson_handovers).iter().enumerate() {
        let mut random = stream(&scenario, run, &format!("handover.poisson.{index}"));
        let beyond = poisson.mean.saturating_sub(poisson.least).as_secs_f64();
        let mut at = Duration::ZERO;
        for handover in poisson.round.iter().cycle() {
            let span = beyond * random.standard_exponential();
            // Two at one instant have no order.
            let span =
                Duration::try_from_secs_f64(span).unwrap_or(Duration::MAX).max(Duration::from_nanos(1));
            at = at.saturating_add(poisson.least).saturating_add(span);
            let longest =
                handover.link_layer.map_or(handover.interruption, |link_layer| link_layer.longest());
            let over = at.saturating_add(longest).saturating_add(handover.overlap.unwrap_or_default());
            if over >= scenario.duration {
                break;
            }
            scenario.handovers.push(Handover { at, ..handover.clone() });
        }
    }
    scenario.handovers.sort_by_key(|handover| handover.at);
    scenario
}

/// The handovers of a run: what their link layer leaves open is drawn, alike in both worlds.
#[must_use]
pub fn handovers_of(scenario: &Scenario, run: u64) -> Vec<Handover> {
    let drawn = |(index, handover): (usize, &Handover)| {
        let mut handover = handover.clone();
        if let Some(link_layer) = handover.link_layer {
            let mut random = stream(scenario, run, &format!("handover.{index}.link-layer"));
            handover.interruption = link_layer.draw(&mut random).total();
        }
        handover
    };
    scenario.handovers.iter().enumerate().map(drawn).collect()
}

/// The steps of `handovers` in order of time, beginning with the links `first`; with those of fast handovers, if there are any.
#[must_use]
pub fn steps(first: &[LinkId], handovers: &[Handover], fast: Option<&FastHandover>) -> Vec<(Instant, Step)> {
    let mut steps: Vec<_> = first.iter().map(|link| (Instant::ZERO, Step::Attach(*link))).collect();
    for (index, handover) in handovers.iter().enumerate() {
        let at = Instant::ZERO + handover.at;
        // Where the old link stays, packets go on coming over it.
        let breaks = handover.style == HandoverStyle::BreakBeforeMake;
        if handover.notice > Duration::ZERO {
            steps.push((at.saturating_sub(handover.notice), Step::Announce(index)));
            if let Some(fast) = fast.filter(|_| breaks) {
                let ahead = handover.notice.min(fast.prepare_ahead);
                steps.push((at.saturating_sub(ahead), Step::Prepare(index)));
            }
        }
        if handover.cancelled {
            steps.extend(fast.filter(|_| breaks).map(|_| (at, Step::CallOff(index))));
            continue;
        }
        steps.push((at, Step::Begin(index)));
        if handover.style == HandoverStyle::BreakBeforeMake {
            steps.push((at + handover.interruption, Step::NewLink(index)));
        }
        if let Some(overlap) = handover.overlap {
            steps.push((at + overlap, Step::OldLink(index)));
        }
    }
    steps.sort_by_key(|(at, _)| *at);
    steps
}

/// Whether the mobile node is told to change to the link that a step brings, by its owner or its link layer. Otherwise it has to
/// find out by itself.
#[must_use]
pub fn is_told(scenario: &Scenario, step: Step) -> bool {
    let detection = scenario.mobility.as_ref().map(|mobility| mobility.movement_detection);
    let chooses = scenario.mobility.as_ref().is_some_and(|mobility| !mobility.order.is_empty());
    let multipath = scenario.mobility.as_ref().and_then(|mobility| mobility.multipath.as_ref());
    let by_link_layer = detection.is_none_or(|detection| detection == MovementDetection::LinkTrigger);
    match step {
        // What its owner has chosen an eager node would not leave.
        Step::Attach(link) => {
            detection != Some(MovementDetection::Eager)
                && !chooses
                && multipath.is_none_or(|one| {
                    // The others are registered once one is in use.
                    one.paths.first().is_some_and(|first| first.link == link)
                })
        }
        // Where the old link goes, too, whoever is to find out is left to.
        Step::Begin(index) => {
            by_link_layer || scenario.handovers.get(index).is_some_and(|one| one.overlap.is_none())
        }
        Step::NewLink(_) => by_link_layer,
        Step::Announce(_) | Step::Prepare(_) | Step::CallOff(_) | Step::OldLink(_) => false,
    }
}

/// What becomes of the packets that wait for a link when a handover takes it down.
#[must_use]
pub const fn fate_of_queue(handover: &Handover) -> Fate {
    match handover.queued {
        QueuedFate::Drop => Fate::Drop,
        _ => Fate::Keep,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_link_layer_leaves_open_is_drawn_for_each_handover_of_each_run() {
        const TEXT: &str = "duration = \"60 s\"\n[links]\na = \"lte\"\nb = \"lte\"\n[mobility]\n\
            [[handover]]\nat = \"9 s\"\nfrom = \"a\"\nto = \"b\"\nstyle = \"break-before-make\"\nlink_layer = \"802.11\"\n\
            [[handover]]\nat = \"19 s\"\nfrom = \"b\"\nto = \"a\"\nstyle = \"break-before-make\"\nlink_layer = \"802.11\"\n\
            [[handover]]\nat = \"29 s\"\nfrom = \"a\"\nto = \"b\"\nstyle = \"break-before-make\"\ninterruption = \"7 ms\"\n";
        let scenario = Scenario::parse("x.toml", TEXT, &[]).unwrap_or_else(|errors| panic!("{errors}"));
        let spans = |run| handovers_of(&scenario, run).iter().map(|one| one.interruption).collect::<Vec<_>>();
        let first = spans(0);
        assert_eq!(first, spans(0));
        assert_ne!(first, spans(1));
        assert_ne!(first[0], first[1]);
        assert_eq!(first[2], Duration::from_millis(7));
        for (handover, span) in scenario.handovers.iter().zip(&first).take(2) {
            let longest = handover.link_layer.unwrap().longest();
            assert!(*span <= longest && *span > Duration::from_millis(10), "{span:?} of {longest:?}");
        }
    }

    const POISSON: &str = "duration = \"600 s\"\n[links]\na = \"lte\"\nb = \"lte\"\nc = \"lte\"\n[mobility]\n\
        [[handover]]\nevery = \"10 s\"\nspacing = \"poisson\"\nleast_spacing = \"4 s\"\nfrom = \"a\"\nto = [\"b\", \"c\"]\n\
        style = \"break-before-make\"\ninterruption = \"1 s\"\n";

    #[test]
    fn poisson_handovers_keep_their_distance_and_their_round_and_each_run_draws_its_own() {
        let scenario = Scenario::parse("x.toml", POISSON, &[]).unwrap_or_else(|errors| panic!("{errors}"));
        assert!(scenario.handovers.is_empty());
        let times = |run| drawn(scenario.clone(), run).handovers.iter().map(|one| one.at).collect::<Vec<_>>();
        assert_eq!(times(3), times(3));
        assert_ne!(times(3), times(4));
        let first = drawn(scenario.clone(), 0);
        assert!(first.poisson_handovers.is_empty());
        let mut last = Duration::ZERO;
        let mut link = LinkId(0);
        for handover in &first.handovers {
            assert!(handover.at > last + Duration::from_secs(4), "{last:?} {:?}", handover.at);
            assert_eq!((handover.from, handover.to), (link, LinkId((link.0 + 1) % 3)));
            (last, link) = (handover.at, handover.to);
        }
        assert!(last + Duration::from_secs(1) < scenario.duration);
    }

    #[test]
    fn the_distances_of_poisson_handovers_are_exponential_beyond_the_least() {
        let long = Scenario::parse("x.toml", POISSON, &["duration=200000 s".to_owned()]).unwrap();
        let times: Vec<_> = drawn(long, 0).handovers.iter().map(|one| one.at.as_secs_f64()).collect();
        let beyond: Vec<_> = times.windows(2).map(|pair| pair[1] - pair[0] - 4.0).collect();
        let count = beyond.len() as f64;
        let mean = beyond.iter().sum::<f64>() / count;
        let variance = beyond.iter().map(|one| (one - mean).powi(2)).sum::<f64>() / count;
        // Mean and deviation of an exponential distribution are one: 6 s, each within four standard errors.
        assert!((mean - 6.0).abs() < 4.0 * 6.0 / count.sqrt(), "{mean} of {count}");
        assert!((variance.sqrt() - 6.0).abs() < 4.0 * 6.0 * (2.0 / count).sqrt(), "{variance} of {count}");
    }

    #[test]
    fn a_cancelled_handover_is_announced_and_does_not_happen() {
        let handover = Handover {
            at: Duration::from_secs(12),
            from: LinkId(0),
            to: LinkId(1),
            style: HandoverStyle::BreakBeforeMake,
            overlap: None,
            interruption: Duration::ZERO,
            link_layer: None,
            queued: careof_scenario::QueuedFate::default(),
            notice: Duration::from_secs(1),
            address_changes: true,
            cancelled: false,
            announced: None,
            table: 0,
            every: None,
        };
        let cancelled = Handover { cancelled: true, ..handover.clone() };
        let announced = (Instant::from_secs(11), Step::Announce(0));
        assert_eq!(steps(&[], std::slice::from_ref(&cancelled), None), [announced]);
        let prepared = (Instant::from_millis(11_950), Step::Prepare(0));
        let fast = FastHandover::default();
        assert_eq!(
            steps(&[], &[cancelled], Some(&fast)),
            [announced, prepared, (Instant::from_secs(12), Step::CallOff(0))]
        );
        let in_haste = FastHandover { prepare_ahead: Duration::from_secs(9), ..fast };
        assert_eq!(
            steps(&[], std::slice::from_ref(&handover), Some(&in_haste))[..2],
            [announced, (Instant::from_secs(11), Step::Prepare(0))]
        );
        assert_eq!(
            steps(&[], &[handover], None),
            [announced, (Instant::from_secs(12), Step::Begin(0)), (Instant::from_secs(12), Step::NewLink(0)),]
        );
    }
}
