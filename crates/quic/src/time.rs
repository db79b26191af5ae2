//! The time of the runs as `quinn-proto` counts it.

use careof_base::Instant;

/// Where the runs' time has its zero on the clock of `std`, of which only differences are ever used.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin(std::time::Instant);

impl Origin {
    /// Any instant will do: `std` has no other way to make one.
    #[expect(
        clippy::disallowed_methods,
        reason = "no time is read: the instant stands for zero, whatever it is"
    )]
    pub(crate) fn new() -> Self {
        Self(std::time::Instant::now())
    }

    /// `at`, counted from this origin.
    pub(crate) fn at(self, at: Instant) -> std::time::Instant {
        self.0 + at.since_start()
    }

    /// The reverse of [`Origin::at`]; the zero for what is before it.
    pub(crate) fn back(self, at: std::time::Instant) -> Instant {
        Instant::ZERO + at.saturating_duration_since(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instant_comes_back_as_it_went() {
        let origin = Origin::new();
        for nanos in [0, 1, 999_999_999, 86_400_000_000_001] {
            let at = Instant::from_nanos(nanos);
            assert_eq!(origin.back(origin.at(at)), at);
        }
    }
}
