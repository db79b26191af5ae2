//! When a lifetime ends.

use careof_base::Instant;
use careof_wire::mip4::Lifetime;

/// When `lifetime` ends if it begins at `start`; [`Instant::MAX`] when it never does.
pub(crate) fn end_of(lifetime: Lifetime, start: Instant) -> Instant {
    lifetime.duration().map_or(Instant::MAX, |span| start + span)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_infinite_lifetime_never_ends() {
        assert_eq!(end_of(Lifetime::INFINITE, Instant::from_secs(3)), Instant::MAX);
        assert_eq!(end_of(Lifetime::from_secs(300), Instant::from_secs(3)), Instant::from_secs(303));
    }
}
