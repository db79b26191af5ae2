//! What is known of the paths that tunnels take: one record for each path, however many tunnels take it.
//!
//! Anybody can write an ICMP error. Whether one can be about a path of ours is found by the path's ends, without looking at the
//! tunnels; how far it is believed, how often it is passed on, and how low it can bring the path's MTU depends on whether
//! it quotes what only who has seen the packet can know.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::ops::RangeInclusive;
use std::time::Duration;

use careof_base::Instant;
use careof_lab::Proof;
use careof_mobility::path_mtu::{LIFETIME, PathMtu, plateau_below};
use careof_wire::icmp::QuotedDatagram;
use careof_wire::tunnel::Tunnel;

use super::error_reports::Ration;

/// How long the MTU of the first hop is believed before it is asked for again: this bounds how long a change of a link of
/// ours stays unnoticed.
const FIRST_HOP_BELIEVED: Duration = Duration::from_secs(30);

/// What every host takes (RFC 791 section 3.1), bytes: nobody is told of less by an error about a path.
const LEAST_TOLD: u16 = 576;

/// Wrong Identifications that a path's errors may have, and how long until there may be one more: beyond, none of its
/// errors proves anything. A guess is right once in 65,535 times.
const GUESSES: Ration = Ration::new(8, Duration::from_secs(8));
/// Errors with proof that are passed on for one path.
const PROVEN: Ration = Ration::new(20, Duration::from_millis(10));
/// Errors without that are passed on for one path.
const UNPROVEN: Ration = Ration::new(4, Duration::from_secs(1));

/// The way from a tunnel's entry to its exit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PathKey {
    exit: Ipv4Addr,
    entry: Ipv4Addr,
    /// The interface it begins with; `None` leaves it to the routes.
    interface: Option<u32>,
}

impl PathKey {
    pub(super) const fn of(tunnel: Tunnel, interface: Option<u32>) -> Self {
        Self { exit: tunnel.exit, entry: tunnel.entry, interface }
    }
}

/// What a path takes of outer datagrams, bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Room {
    /// The longest that is put in.
    pub(super) mtu: u16,
    /// The longest that keeps its DF bit: longer ones are fragmented on the way.
    pub(super) longest_whole: u16,
}

/// A path.
#[derive(Debug)]
pub(super) struct Path {
    tunnels: usize,
    /// When it was last forgotten what is known of it.
    epoch: u64,
    first_hop: PathMtu,
    /// As errors that are believed have told.
    proven: PathMtu,
    /// As errors that may be made up have told.
    unproven: PathMtu,
    guesses: Ration,
    passed_on: Ration,
    passed_on_unproven: Ration,
}

impl Path {
    const fn new(epoch: u64) -> Self {
        Self {
            tunnels: 0,
            epoch,
            first_hop: PathMtu::UNKNOWN,
            proven: PathMtu::UNKNOWN,
            unproven: PathMtu::UNKNOWN,
            guesses: GUESSES,
            passed_on: PROVEN,
            passed_on_unproven: UNPROVEN,
        }
    }

    /// The MTU of the first hop, as it is known or `ask` says.
    pub(super) fn first_hop(&mut self, now: Instant, ask: impl FnOnce() -> Option<u16>) {
        if self.first_hop.get(now).is_none() {
            // Without an answer the packet itself will show.
            self.learn_first_hop(now, ask().unwrap_or(u16::MAX));
        }
    }

    pub(super) fn learn_first_hop(&mut self, now: Instant, mtu: u16) {
        self.first_hop.learn(now, mtu, FIRST_HOP_BELIEVED);
    }

    /// What it takes. An error that may be made up brings it down to `floor` bytes at most; what is longer than the error says
    /// then goes without DF, so that a path that is as narrow carries it in fragments.
    pub(super) fn room(&self, now: Instant, floor: u16) -> Room {
        let (proven, unproven) = (self.proven.get(now), self.unproven.get(now));
        let told = [proven.map(|mtu| mtu.max(LEAST_TOLD)), unproven.map(|mtu| mtu.max(floor))];
        let first_hop = self.first_hop.latest().unwrap_or(u16::MAX);
        let mtu = told.into_iter().flatten().min().unwrap_or(u16::MAX).min(first_hop);
        let narrowest = proven.into_iter().chain(unproven).min();
        Room { mtu, longest_whole: narrowest.filter(|narrowest| *narrowest < mtu).unwrap_or(u16::MAX) }
    }

    /// Whether such a datagram can have been sent by this path, as far as lengths tell.
    pub(super) fn can_have_sent(&self, outer: &QuotedDatagram<'_>) -> bool {
        let longest = self.first_hop.latest().unwrap_or(u16::MAX);
        outer.header.fragment_offset == 0 && outer.header.total_len() <= longest
    }

    /// How far an error that quotes a datagram with this proof is believed.
    pub(super) fn judge(&mut self, now: Instant, proof: Proof) -> Proof {
        match proof {
            Proof::Wrong => {
                self.guesses.allows(now);
                Proof::Wrong
            }
            // So many have guessed that this one may have, too.
            Proof::Sent if self.guesses.is_spent(now) => Proof::Wrong,
            proof => proof,
        }
    }

    /// A router could not pass `outer` on, and named the MTU of the next hop, 0 if it did not. Whether that can be.
    pub(super) fn take_mtu(
        &mut self,
        now: Instant,
        outer: &QuotedDatagram<'_>,
        next_hop_mtu: u16,
        proof: Proof,
    ) -> bool {
        let len = outer.header.total_len();
        if !outer.header.dont_fragment || next_hop_mtu >= len {
            return false;
        }
        let mtu = if next_hop_mtu == 0 { plateau_below(len) } else { next_hop_mtu };
        let told = if proof == Proof::Sent { &mut self.proven } else { &mut self.unproven };
        told.lower(now, mtu, LIFETIME);
        true
    }

    /// Whether one more error may be passed on.
    pub(super) fn may_pass_on(&mut self, now: Instant, proof: Proof) -> bool {
        let ration = if proof == Proof::Sent { &mut self.passed_on } else { &mut self.passed_on_unproven };
        ration.allows(now)
    }
}

/// All paths, by their ends.
#[derive(Debug, Default)]
pub(super) struct Paths {
    known: BTreeMap<PathKey, Path>,
    epoch: u64,
}

impl Paths {
    /// One more tunnel takes it.
    pub(super) fn add(&mut self, key: PathKey) {
        self.known.entry(key).or_insert_with(|| Path::new(self.epoch)).tunnels += 1;
    }

    /// A tunnel takes it no longer; with the last one it is forgotten.
    pub(super) fn remove(&mut self, key: PathKey) {
        if let Some(path) = self.known.get_mut(&key) {
            path.tunnels = path.tunnels.saturating_sub(1);
            if path.tunnels == 0 {
                self.known.remove(&key);
            }
        }
    }

    pub(super) fn get(&mut self, key: PathKey) -> Option<&mut Path> {
        let path = self.known.get_mut(&key)?;
        if path.epoch != self.epoch {
            // Rations stay: who has spent them may have brought the change about.
            let Path { tunnels, guesses, passed_on, passed_on_unproven, .. } = *path;
            *path = Path { tunnels, guesses, passed_on, passed_on_unproven, ..Path::new(self.epoch) };
        }
        Some(path)
    }

    /// The path between two ends, by whichever interface; there is one, but while a mobile node moves.
    pub(super) fn between(&mut self, entry: Ipv4Addr, exit: Ipv4Addr) -> Option<&mut Path> {
        let (key, _) = self.known.range(range(entry, exit)).next_back()?;
        self.get(*key)
    }

    /// Whether a datagram with these ends is the outside of one of the tunnels.
    pub(super) fn is_tunnel(&self, entry: Ipv4Addr, exit: Ipv4Addr) -> bool {
        self.known.range(range(entry, exit)).next().is_some()
    }

    /// What a path takes as last known; `None` while nothing has shown it.
    pub(super) fn latest(&self, now: Instant, key: PathKey, floor: u16) -> Option<u16> {
        let path = self.known.get(&key).filter(|path| path.epoch == self.epoch)?;
        Some(path.room(now, floor).mtu).filter(|mtu| *mtu < u16::MAX)
    }

    /// Other paths may have other MTUs, whatever was learnt.
    pub(super) const fn forget_mtus(&mut self) {
        self.epoch += 1;
    }
}

/// The keys of all paths between two ends.
fn range(entry: Ipv4Addr, exit: Ipv4Addr) -> RangeInclusive<PathKey> {
    let key = |interface| PathKey { exit, entry, interface };
    key(None)..=key(Some(u32::MAX))
}

#[cfg(test)]
mod tests {
    use careof_wire::ipv4::Ipv4Header;
    use careof_wire::tunnel::Encapsulation;

    use super::*;

    const ENTRY: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
    const FLOOR: u16 = 1280;

    fn key(exit: [u8; 4]) -> PathKey {
        let (entry, encapsulation) = (ENTRY, Encapsulation::IpInIp);
        PathKey::of(Tunnel { encapsulation, entry, exit: exit.into(), ttl: 64 }, None)
    }

    fn quoted(len: u16) -> QuotedDatagram<'static> {
        let header = Ipv4Header { dont_fragment: true, payload_len: len - 20, ..Ipv4Header::default() };
        QuotedDatagram { header, header_len: 20, payload: &[] }
    }

    fn told(path: &mut Path, mtu: u16, proof: Proof) -> Room {
        let now = Instant::from_secs(1);
        path.first_hop(now, || Some(1500));
        let proof = path.judge(now, proof);
        assert!(path.take_mtu(now, &quoted(1500), mtu, proof));
        path.room(now, FLOOR)
    }

    const ALL_WHOLE: u16 = u16::MAX;

    #[test]
    fn tunnels_to_one_exit_share_one_record_for_as_long_as_there_is_one() {
        let mut paths = Paths::default();
        let shared = key([192, 0, 2, 7]);
        for _ in 0..92_000 {
            paths.add(shared);
        }
        assert_eq!(paths.known.len(), 1, "an error is looked for among paths, not among tunnels");
        told(paths.between(ENTRY, shared.exit).unwrap(), 1400, Proof::Sent);
        for _ in 1..92_000 {
            paths.remove(shared);
        }
        assert_eq!(paths.latest(Instant::from_secs(2), shared, FLOOR), Some(1400));
        paths.remove(shared);
        assert!(paths.between(ENTRY, shared.exit).is_none() && !paths.is_tunnel(ENTRY, shared.exit));
    }

    #[test]
    fn a_path_is_found_by_both_ends() {
        let mut paths = Paths::default();
        for exit in [[192, 0, 2, 6], [192, 0, 2, 8]] {
            paths.add(key(exit));
            paths.add(PathKey { interface: Some(3), ..key(exit) });
        }
        for (entry, exit, found) in [
            (ENTRY, [192, 0, 2, 6], true),
            (ENTRY, [192, 0, 2, 7], false),
            (ENTRY, [192, 0, 2, 8], true),
            (Ipv4Addr::new(10, 0, 0, 2), [192, 0, 2, 8], false),
        ] {
            assert_eq!(paths.between(entry, exit.into()).is_some(), found, "{entry} {exit:?}");
            assert_eq!(paths.is_tunnel(entry, exit.into()), found);
        }
    }

    #[test]
    fn what_may_be_made_up_brings_a_path_down_to_the_floor_only_and_what_is_longer_goes_in_fragments() {
        let path = || Path::new(0);
        let room = |mtu, longest_whole| Room { mtu, longest_whole };
        for proof in [Proof::Wrong, Proof::Impossible] {
            assert_eq!(told(&mut path(), 1400, proof), room(1400, ALL_WHOLE));
            assert_eq!(told(&mut path(), 1000, proof), room(FLOOR, 1000));
            assert_eq!(told(&mut path(), 1, proof), room(FLOOR, 68));
        }
        assert_eq!(told(&mut path(), 1000, Proof::Sent), room(1000, ALL_WHOLE));
        assert_eq!(told(&mut path(), 296, Proof::Sent), room(576, 296));
        // Who does not name it (RFC 1191 section 5).
        assert_eq!(told(&mut path(), 0, Proof::Sent), room(1492, ALL_WHOLE));
        // The proof of one does not vouch for another.
        let mut both = path();
        told(&mut both, 1000, Proof::Wrong);
        assert_eq!(told(&mut both, 1300, Proof::Sent), room(FLOOR, 1000));
        // It ends (RFC 1191 section 6.3).
        assert_eq!(both.room(Instant::from_secs(700), FLOOR), room(1500, ALL_WHOLE));
    }

    #[test]
    fn a_link_s_own_mtu_is_below_any_floor() {
        let mut path = Path::new(0);
        path.learn_first_hop(Instant::ZERO, 576);
        assert_eq!(path.room(Instant::ZERO, FLOOR), Room { mtu: 576, longest_whole: ALL_WHOLE });
    }

    #[test]
    fn what_was_too_long_was_longer_than_what_fits_and_had_df() {
        let now = Instant::from_secs(1);
        let mut path = Path::new(0);
        path.learn_first_hop(now, 1500);
        for (outer, mtu) in [(quoted(1000), 1000), (quoted(1000), 1400)] {
            assert!(!path.take_mtu(now, &outer, mtu, Proof::Wrong));
        }
        let header = Ipv4Header { dont_fragment: false, ..quoted(1500).header };
        assert!(!path.take_mtu(now, &QuotedDatagram { header, ..quoted(1500) }, 1000, Proof::Wrong));
        assert_eq!(path.room(now, FLOOR).mtu, 1500);
        assert!(path.can_have_sent(&quoted(1500)) && !path.can_have_sent(&quoted(1501)));
        let header = Ipv4Header { fragment_offset: 8, ..quoted(100).header };
        assert!(!path.can_have_sent(&QuotedDatagram { header, ..quoted(100) }));
    }

    #[test]
    fn who_guesses_often_proves_nothing_by_a_hit() {
        let now = Instant::from_secs(1);
        let mut path = Path::new(0);
        assert_eq!(path.judge(now, Proof::Sent), Proof::Sent);
        for _ in 0..8 {
            assert_eq!(path.judge(now, Proof::Sent), Proof::Sent);
            assert_eq!(path.judge(now, Proof::Wrong), Proof::Wrong);
        }
        assert_eq!(path.judge(now, Proof::Sent), Proof::Wrong);
        assert_eq!(path.judge(Instant::from_secs(100), Proof::Sent), Proof::Sent);
    }

    #[test]
    fn one_path_s_errors_leave_another_s_ration_alone_and_made_up_ones_that_of_others() {
        let now = Instant::from_secs(1);
        let mut path = Path::new(0);
        let passed = |path: &mut Path, proof| (0..1000).filter(|_| path.may_pass_on(now, proof)).count();
        assert_eq!(passed(&mut path, Proof::Wrong), 4);
        assert_eq!(passed(&mut path, Proof::Impossible), 0);
        assert_eq!(passed(&mut path, Proof::Sent), 20);
        assert_eq!(passed(&mut Path::new(0), Proof::Wrong), 4);
    }

    #[test]
    fn what_is_known_is_forgotten_at_once_for_all_but_rations() {
        let mut paths = Paths::default();
        let now = Instant::from_secs(1);
        let key = key([192, 0, 2, 7]);
        paths.add(key);
        told(paths.get(key).unwrap(), 1000, Proof::Sent);
        while paths.get(key).unwrap().may_pass_on(now, Proof::Sent) {}
        paths.forget_mtus();
        assert_eq!(paths.latest(now, key, FLOOR), None);
        let path = paths.get(key).unwrap();
        assert!(!path.may_pass_on(now, Proof::Sent));
        assert_eq!(path.room(now, FLOOR).mtu, u16::MAX);
        paths.remove(key);
        assert!(paths.known.is_empty());
    }
}
