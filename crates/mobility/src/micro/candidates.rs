//! The candidate access router set of a handover.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::net::Ipv4Addr;

use super::config::Trigger;

/// The stations that shall expect a mobile node which has announced to go to one of `next`, in order, without `own`.
pub(super) fn candidates(
    trigger: Trigger,
    own: Ipv4Addr,
    neighbors: &[Ipv4Addr],
    next: &[Ipv4Addr],
) -> Vec<Ipv4Addr> {
    let mut seen = BTreeSet::from([own]);
    let (most, named) = match trigger {
        Trigger::None => (0, next),
        Trigger::Source => (1, next.get(..1).unwrap_or(next)),
        Trigger::Path { candidates } => (candidates, next),
        Trigger::NoPath => (neighbors.len(), &[][..]),
    };
    let further = if trigger == Trigger::Source { &[] } else { neighbors };
    named.iter().chain(further).copied().filter(|station| seen.insert(*station)).take(most).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn station(n: u8) -> Ipv4Addr {
        Ipv4Addr::new(10, 1, 0, n)
    }

    #[test]
    fn the_set_has_none_one_many_or_all() {
        let neighbors = [station(2), station(3), station(4)];
        let set = |trigger, next: &[Ipv4Addr]| candidates(trigger, station(1), &neighbors, next);
        assert!(set(Trigger::None, &[station(3)]).is_empty());
        assert_eq!(set(Trigger::Source, &[station(3), station(2)]), [station(3)]);
        assert!(set(Trigger::Source, &[station(1)]).is_empty());
        assert_eq!(set(Trigger::Path { candidates: 2 }, &[station(3)]), [station(3), station(2)]);
        assert_eq!(set(Trigger::Path { candidates: 1 }, &[station(3), station(4)]), [station(3)]);
        assert_eq!(set(Trigger::Path { candidates: 9 }, &[station(3), station(3)]).len(), 3);
        assert_eq!(set(Trigger::NoPath, &[station(9)]), neighbors);
    }
}
