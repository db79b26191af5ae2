//! Which path a mobile node is reached by, and what inputs of different places mean alike.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::net::IpAddr;
use core::time::Duration;

use careof_base::{DataRate, Instant};
use careof_mobility::{HandoverEvent, HandoverPhase, HandoverStyle, InterfaceId, Notice, PathProperties};

use crate::{Input, PathId, Place, Towards};

/// For what has waited so long for a path nobody waits any longer; it is the age at which `replay` forgets its copies, too.
pub(crate) const LONGEST_OUTAGE: Duration = Duration::from_secs(30);

/// What happened to the path of a mobile node, whatever told it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum PathEvent {
    /// The path in use will end.
    Announced { ends_at: Instant, new: PathProperties },
    /// Nothing gets through any longer.
    Lost,
    /// Packets get through from now on.
    Usable(Usable),
    /// It was announced that the path ends, but it did not.
    FalseAlarm,
    /// What is for the mobile node comes by other paths than before, but nothing is owed: each path carries a copy of everything (simultaneous bindings, RFC
    /// 5944 section 3.3), and one has come while the others go on, or has ended. What the mobile node sends goes as before.
    Copies {
        /// What they were together.
        old: PathProperties,
        /// What they are together.
        new: PathProperties,
    },
}

/// A path came, or came back.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Usable {
    pub(crate) from: Option<PathId>,
    pub(crate) to: Option<PathId>,
    pub(crate) old: PathProperties,
    pub(crate) new: PathProperties,
    /// Whether what was sent by the old path is lost; `None`: nobody knows.
    pub(crate) old_is_lost: Option<bool>,
    /// How long no path was known to work.
    pub(crate) outage: Option<Duration>,
}

impl Usable {
    /// The same for a peer that has not known of the path for `longer`.
    pub(crate) fn later(self, longer: Duration) -> Self {
        Self { outage: self.outage.map(|outage| outage + longer), ..self }
    }
}

/// Rate of a path for what goes `towards` an end, if it is known.
pub(crate) fn rate(path: &PathProperties, towards: Towards) -> Option<DataRate> {
    let rate = match towards {
        Towards::Mobile => path.downlink,
        Towards::Peer => path.uplink,
    };
    rate.filter(|rate| *rate > DataRate::ZERO)
}

/// A path by which packets are sent to a mobile node.
#[derive(Clone, Copy, Debug)]
struct Sending {
    path: PathId,
    properties: PathProperties,
    /// Its binding is there still, but nothing gets through.
    is_lost: bool,
}

/// What paths are together that each carry a copy of everything: as fast as the fastest, with a round trip of at most the longest, where that is known of all.
fn together<'a>(paths: impl Iterator<Item = &'a PathProperties> + Clone) -> PathProperties {
    let most = |rate: fn(&PathProperties) -> Option<DataRate>| {
        paths.clone().map(rate).reduce(|one, other| Some(one?.max(other?))).flatten()
    };
    let round_trips = paths.clone().map(|path| path.round_trip);
    PathProperties {
        downlink: most(|path| path.downlink),
        uplink: most(|path| path.uplink),
        round_trip: round_trips.reduce(|one, other| Some(one?.max(other?))).flatten(),
    }
}

#[derive(Clone, Debug, Default)]
struct MobilePath {
    present: Option<PathId>,
    /// Of the path in use, or of all that carry copies together.
    properties: PathProperties,
    /// Home agent, foreign agent: all paths, each of which carries a copy where they are several (simultaneous bindings, RFC 5944 section 3.3).
    sending: Vec<Sending>,
    /// Mobile node: what a path is by which copies come beside the path in use, and what that is by itself.
    beside: Option<(PathProperties, PathProperties)>,
    lost_since: Option<Instant>,
    /// When the path in use came into use, or was last said to work.
    since: Option<Instant>,
    /// When the announced end is.
    ends_at: Option<Instant>,
    /// The path that the home agent knows, while an access router brings packets from there to `present`.
    registered: Option<PathId>,
}

/// The paths of all mobile nodes.
#[derive(Debug)]
pub(crate) struct PathTable {
    place: Place,
    mobiles: BTreeMap<IpAddr, MobilePath>,
}

impl PathTable {
    pub(crate) const fn new(place: Place) -> Self {
        Self { place, mobiles: BTreeMap::new() }
    }

    /// What is known of the path in use.
    pub(crate) fn properties(&self, mobile: IpAddr) -> PathProperties {
        self.mobiles.get(&mobile).map(|path| path.properties).unwrap_or_default()
    }

    /// When the path in use ends, if that was announced.
    pub(crate) fn ends_at(&self, mobile: IpAddr) -> Option<Instant> {
        self.mobiles.get(&mobile)?.ends_at
    }

    /// Since when no path is known to work.
    pub(crate) fn lost_since(&self, mobile: IpAddr) -> Option<Instant> {
        self.mobiles.get(&mobile)?.lost_since
    }

    /// Since when the path in use is used.
    pub(crate) fn in_use_since(&self, mobile: IpAddr) -> Option<Instant> {
        self.mobiles.get(&mobile)?.since
    }

    /// Whether what is for the mobile node comes in copies, by several paths.
    pub(crate) fn has_copies(&self, mobile: IpAddr) -> bool {
        self.mobiles.get(&mobile).is_some_and(|path| path.beside.is_some() || path.working().nth(1).is_some())
    }

    /// The path in use.
    pub(crate) fn present(&self, mobile: IpAddr) -> Option<PathId> {
        self.mobiles.get(&mobile)?.present
    }

    /// The announced end has come and gone by `patience`, and nothing happened. Whether this was a false alarm.
    pub(crate) fn doubt(&mut self, mobile: IpAddr) -> Option<PathEvent> {
        let path = self.mobiles.get_mut(&mobile)?;
        path.ends_at.take()?;
        path.lost_since.is_none().then_some(PathEvent::FalseAlarm)
    }

    /// Takes in what the world tells: what it means, for which mobile nodes.
    pub(crate) fn handle(&mut self, now: Instant, input: &Input<'_>) -> Vec<(IpAddr, PathEvent)> {
        match *input {
            Input::Handover { mobile, event } => {
                self.handle_handover(now, mobile, event).map(|event| (mobile, event)).into_iter().collect()
            }
            Input::HandedOver { mobile, path: to, new } => {
                let path = self.mobiles.entry(mobile).or_default();
                if path.lost_since.is_none() {
                    return Vec::new();
                }
                let registered = path.registered.or(path.present);
                let usable = path.become_usable(now, Some(to), new, None);
                path.registered = registered.filter(|registered| *registered != to);
                // The acknowledgements of what had left come only now: the access routers have kept them.
                let usable = Usable { old_is_lost: Some(false), ..usable };
                [(mobile, PathEvent::Usable(usable))].into()
            }
            Input::Announced { mobile, within, new } => {
                let path = self.mobiles.entry(mobile).or_default();
                let ends_at = now + within;
                path.ends_at = Some(ends_at);
                [(mobile, PathEvent::Announced { ends_at, new })].into()
            }
            Input::Paths { mobile, paths, old_lost, received: _ } => {
                let path = self.mobiles.entry(mobile).or_default();
                path.follow(now, paths, old_lost).map(|event| (mobile, event)).into_iter().collect()
            }
            Input::LinkDown { path } | Input::Unreachable { path } => self
                .by(path)
                .filter_map(|(mobile, known)| known.lose(now, path).map(|event| (mobile, event)))
                .collect(),
            Input::LinkUp { path } => self
                .by(path)
                .filter(|(_, known)| known.lost_since.is_some())
                .map(|(mobile, known)| {
                    let usable = known.become_usable(now, known.present, known.properties, Some(true));
                    (mobile, PathEvent::Usable(usable))
                })
                .collect(),
            Input::NotSent { .. } | Input::Outdated { .. } | Input::Updated { .. } => Vec::new(),
        }
    }

    /// Forgets a mobile node that has no path, nor is waited for to have one again.
    pub(crate) fn forget_if_gone(&mut self, mobile: IpAddr) {
        let is_gone =
            |path: &MobilePath| path.present.is_none() && path.lost_since.is_none() && path.ends_at.is_none();
        if self.mobiles.get(&mobile).is_some_and(is_gone) {
            self.mobiles.remove(&mobile);
        }
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.mobiles.len()
    }

    fn by(&mut self, path: PathId) -> impl Iterator<Item = (IpAddr, &mut MobilePath)> {
        self.mobiles
            .iter_mut()
            .filter(move |(_, known)| known.present == Some(path) || known.is_sent_by(path))
            .map(|(mobile, known)| (*mobile, known))
    }

    fn handle_handover(&mut self, now: Instant, mobile: IpAddr, event: &HandoverPhase) -> Option<PathEvent> {
        debug_assert_eq!(self.place, Place::MobileNode, "handover events are the mobile node's own");
        let id = |interface: InterfaceId| PathId::Interface(interface);
        let path = self.mobiles.entry(mobile).or_default();
        // Whether an access router brings packets there already.
        let is_handed_over =
            |path: &MobilePath, to| path.registered.is_some() && path.present == Some(id(to));
        match *event {
            HandoverEvent::Initiated { to, .. } if is_handed_over(path, to) && path.lost_since.is_none() => {
                None
            }
            HandoverEvent::Initiated { notice, style, old, new, .. } => match (style, notice) {
                (HandoverStyle::BreakBeforeMake, _) => {
                    path.properties = old;
                    path.become_lost(now)
                }
                (HandoverStyle::MakeBeforeBreak, Notice::Ahead(within)) if !within.is_zero() => {
                    let ends_at = now + within;
                    path.ends_at = Some(ends_at);
                    Some(PathEvent::Announced { ends_at, new })
                }
                (HandoverStyle::MakeBeforeBreak, _) => None,
            },
            HandoverEvent::LinkDown { interface } | HandoverEvent::PathSilent { interface, .. }
                if path.present == Some(id(interface)) =>
            {
                path.become_lost(now)
            }
            HandoverEvent::LinkUp { interface } | HandoverEvent::PathAnswers { interface }
                if [path.present, path.registered].contains(&Some(id(interface)))
                    && path.lost_since.is_some() =>
            {
                // What the node sends gets out again; what is sent to it follows when it has registered.
                let usable = path.become_usable(now, Some(id(interface)), path.properties, Some(true));
                Some(PathEvent::Usable(usable))
            }
            HandoverEvent::Registered { from, to, old, new, keeps_old, .. } => {
                let is_new = (from != Some(to) && !is_handed_over(path, to)) || path.lost_since.is_some();
                let old_is_lost = path.lost_since.is_some();
                if path.properties == PathProperties::default() {
                    path.properties = old;
                }
                let announced = path.ends_at;
                // Of copies the first to arrive counts: how fast two paths are that way, with the acknowledgements of one, nobody has said.
                let beside = if is_new {
                    from.filter(|from| keeps_old && *from != to).map(|_| (old, new))
                } else {
                    path.beside
                };
                let downlink = new.downlink.filter(|_| beside.is_none());
                let known = PathProperties { downlink, ..new };
                let usable = path.become_usable(now, Some(id(to)), known, Some(old_is_lost));
                path.beside = beside;
                if !is_new {
                    path.ends_at = announced;
                }
                is_new.then_some(PathEvent::Usable(usable))
            }
            HandoverEvent::Terminated { .. } => {
                let (old, new) = path.beside.take()?;
                path.properties.downlink = new.downlink;
                Some(PathEvent::Copies { old: together([&old, &new].into_iter()), new })
            }
            HandoverEvent::LinkDown { .. }
            | HandoverEvent::LinkUp { .. }
            | HandoverEvent::PathSilent { .. }
            | HandoverEvent::PathAnswers { .. }
            | HandoverEvent::Failed { .. } => None,
        }
    }
}

impl MobilePath {
    /// The paths that get packets through.
    fn working(&self) -> impl Iterator<Item = &Sending> + Clone {
        self.sending.iter().filter(|sending| !sending.is_lost)
    }

    fn is_sent_by(&self, path: PathId) -> bool {
        self.working().any(|sending| sending.path == path)
    }

    /// Packets go by these paths from now on, the newest last.
    fn follow(
        &mut self,
        now: Instant,
        paths: &[(PathId, PathProperties)],
        old_lost: Option<bool>,
    ) -> Option<PathEvent> {
        let newest = paths.last().map(|(path, _)| *path);
        let came = newest.filter(|newest| !self.is_sent_by(*newest));
        let is_lost = |path: PathId| {
            let was_lost = self.sending.iter().any(|sending| sending.path == path && sending.is_lost);
            let is_told = came.is_some() && old_lost == Some(true) && self.present == Some(path);
            newest != Some(path) && (was_lost || is_told)
        };
        let sending: Vec<_> = paths
            .iter()
            .map(|&(path, properties)| Sending { path, properties, is_lost: is_lost(path) })
            .collect();
        let still = |path: &PathId| sending.iter().any(|sending| sending.path == *path && !sending.is_lost);
        let went = self.working().map(|before| before.path).find(|path| !still(path));
        let announced = self.ends_at;
        let goes_on = match (came, went) {
            // The mobile node has said that the others deliver.
            (Some(_), None) => old_lost == Some(false) && self.working().next().is_some(),
            (None, Some(_)) => sending.iter().any(|sending| !sending.is_lost),
            _ => false,
        };
        let is_quiet = goes_on && self.lost_since.is_none() && announced.is_none();
        let is_news = came.is_some()
            || went.is_some()
            || self.present.is_some() != newest.is_some()
            || self.lost_since.is_some()
            || old_lost == Some(true);
        // One of several may have been registered again.
        let to = came.or(self.present.filter(still)).or(newest);
        let from = if came.is_some() { self.present } else { went.or(self.present) };
        let working = sending.iter().filter(|sending| !sending.is_lost);
        let new = together(working.map(|sending| &sending.properties));
        let usable = self.become_usable(now, to, new, old_lost);
        self.sending = sending;
        if !is_news {
            // The same path, registered again: what was announced of it is still to come.
            self.ends_at = announced;
        }
        if is_quiet {
            return Some(PathEvent::Copies { old: usable.old, new });
        }
        is_news.then_some(PathEvent::Usable(Usable { from, ..usable }))
    }

    /// Nothing gets through by a path. What was sent by it has gone by the others as well, if there are any.
    fn lose(&mut self, now: Instant, lost: PathId) -> Option<PathEvent> {
        if !self.is_sent_by(lost) || self.working().count() < 2 {
            return self.become_lost(now);
        }
        for sending in &mut self.sending {
            sending.is_lost |= sending.path == lost;
        }
        let to = self.present.filter(|present| *present != lost);
        let to = to.or(self.working().last().map(|sending| sending.path));
        let new = together(self.working().map(|sending| &sending.properties));
        let usable = self.become_usable(now, to, new, None);
        Some(PathEvent::Copies { old: usable.old, new })
    }

    fn become_lost(&mut self, now: Instant) -> Option<PathEvent> {
        self.ends_at = None;
        if self.lost_since.is_some() {
            return None;
        }
        self.lost_since = Some(now);
        Some(PathEvent::Lost)
    }

    fn become_usable(
        &mut self,
        now: Instant,
        to: Option<PathId>,
        new: PathProperties,
        old_is_lost: Option<bool>,
    ) -> Usable {
        let usable = Usable {
            from: self.present,
            to,
            old: self.properties,
            new,
            old_is_lost: if self.lost_since.is_some() { Some(true) } else { old_is_lost },
            outage: self.lost_since.map(|since| now.saturating_duration_since(since)),
        };
        *self = Self {
            present: to,
            properties: new,
            since: Some(now),
            sending: core::mem::take(&mut self.sending),
            ..Self::default()
        };
        usable
    }
}
