//! What an end did with a path all its time, however often the path was registered anew.

use core::time::Duration;

use careof_base::Instant;

use super::path::PathChange;

/// What one end put on a path, and how long it took the path for out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathAccount {
    /// Packets, copies and replays included.
    pub packets: u64,
    /// Their bytes, without the tunnel's headers.
    pub bytes: u64,
    /// Times that the path went out.
    pub outages: u64,
    out_since: Option<Instant>,
    out_for: Duration,
}

impl PathAccount {
    /// For how long the path was out, all in all. While its care-of address is not registered it is not counted among those that are.
    #[must_use]
    pub fn out_for(&self, now: Instant) -> Duration {
        let still = self.out_since.map_or(Duration::ZERO, |since| now.saturating_duration_since(since));
        self.out_for.saturating_add(still)
    }

    pub(super) fn sent(&mut self, len: u32) {
        self.packets = self.packets.saturating_add(1);
        self.bytes = self.bytes.saturating_add(u64::from(len));
    }

    pub(super) fn changed(&mut self, now: Instant, change: PathChange) {
        match change {
            PathChange::Out => {
                self.outages = self.outages.saturating_add(1);
                self.out_since.get_or_insert(now);
            }
            PathChange::Back => self.end_outage(now),
        }
    }

    /// The path is back, or is no path any more.
    pub(super) fn end_outage(&mut self, now: Instant) {
        self.out_for = self.out_for(now);
        self.out_since = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outages_add_up_and_one_that_lasts_counts_until_now() {
        let mut account = PathAccount::default();
        let at = Instant::from_secs;
        account.changed(at(1), PathChange::Out);
        account.changed(at(3), PathChange::Back);
        account.changed(at(10), PathChange::Out);
        assert_eq!((account.outages, account.out_for(at(14))), (2, Duration::from_secs(6)));
        account.end_outage(at(15));
        assert_eq!(account.out_for(at(99)), Duration::from_secs(7), "it is registered no longer");
    }
}
