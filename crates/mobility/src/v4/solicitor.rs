//! Agent solicitation: when a mobile node may ask (RFC 5944 section 2.4, RFC 1256 section 7.3).

use core::time::Duration;

use careof_base::{Instant, Randomness};

/// How a mobile node solicits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SolicitorConfig {
    /// Whether it solicits at all, or waits for agents to advertise themselves.
    pub enabled: bool,
    /// The first solicitation waits a random time up to this, so that nodes that woke together do not all
    /// ask together.
    pub initial_delay: Duration,
    /// How many go out at the initial rate of one a second before the interval doubles.
    pub initial_count: u32,
    /// The longest interval; the RFC wants at least one minute.
    pub max_interval: Duration,
}

impl Default for SolicitorConfig {
    /// 3 solicitations a second apart, then doubling up to 60 s; the first after at most 100 ms.
    fn default() -> Self {
        Self {
            enabled: true,
            initial_delay: Duration::from_millis(100),
            initial_count: 3,
            max_interval: Duration::from_secs(60),
        }
    }
}

/// The nominal initial interval, and the least time between any two solicitations.
const INITIAL_INTERVAL: Duration = Duration::from_secs(1);

/// The sending of solicitations on one interface.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Solicitor {
    config: SolicitorConfig,
    /// Due time of the next one; `None` while not searching.
    next: Option<Instant>,
    interval: Duration,
    sent: u32,
    last_sent: Option<Instant>,
}

impl Solicitor {
    pub(crate) const fn new(config: SolicitorConfig) -> Self {
        Self { config, next: None, interval: INITIAL_INTERVAL, sent: 0, last_sent: None }
    }

    /// Begins a search, unless one is under way.
    pub(crate) fn start(&mut self, now: Instant, random: &mut Randomness) {
        if self.next.is_some() || !self.config.enabled {
            return;
        }
        let due = now + random.duration_up_to(self.config.initial_delay);
        // Whoever starts and stops searches in quick succession still asks at most once a second.
        let allowed = self.last_sent.map_or(now, |last| last + INITIAL_INTERVAL);
        self.next = Some(due.max(allowed));
    }

    /// Ends the search: an agent was found, or the interface is no longer wanted. The next search resumes
    /// at the rate this one had, unless [`Solicitor::moved`] says that the link is another.
    pub(crate) fn stop(&mut self) {
        self.next = None;
    }

    /// The node is on another link, or has registered: the next search begins at the initial rate.
    pub(crate) fn moved(&mut self) {
        self.interval = INITIAL_INTERVAL;
        self.sent = 0;
    }

    /// When the next solicitation is due.
    pub(crate) const fn deadline(&self) -> Option<Instant> {
        self.next
    }

    /// Whether a solicitation is to be sent now; counts it as sent.
    pub(crate) fn poll(&mut self, now: Instant, random: &mut Randomness) -> bool {
        if self.next.is_none_or(|due| due > now) {
            return false;
        }
        self.sent = self.sent.saturating_add(1);
        if self.sent >= self.config.initial_count {
            self.interval =
                self.interval.saturating_mul(2).min(self.config.max_interval).max(INITIAL_INTERVAL);
        }
        self.last_sent = Some(now);
        // Random around the nominal value, but never faster than it.
        self.next = Some(now + self.interval + random.duration_up_to(self.interval / 8));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use careof_base::RandomStream;

    fn run(solicitor: &mut Solicitor, random: &mut Randomness, until: Instant) -> Vec<Instant> {
        let mut sent = Vec::new();
        while let Some(due) = solicitor.deadline().filter(|&due| due < until) {
            assert!(solicitor.poll(due, random));
            sent.push(due);
        }
        sent
    }

    #[test]
    fn three_a_second_apart_then_doubling_up_to_a_minute() {
        let mut random = Randomness::from(RandomStream::new(1, 0, "solicitor"));
        let mut solicitor = Solicitor::new(SolicitorConfig::default());
        solicitor.start(Instant::ZERO, &mut random);
        let sent = run(&mut solicitor, &mut random, Instant::from_secs(600));
        assert!(sent[0] <= Instant::from_millis(100));
        let nominal = [1, 1, 1, 2, 4, 8, 16, 32, 60, 60, 60];
        for (pair, &seconds) in sent.windows(2).zip(nominal.iter().skip(1)) {
            let (gap, nominal) = (pair[1] - pair[0], Duration::from_secs(seconds));
            assert!(gap >= nominal && gap <= nominal + nominal / 8, "{gap:?} for {nominal:?}");
        }
    }

    #[test]
    fn starting_and_stopping_every_100_ms_sends_one_a_second() {
        let mut random = Randomness::from(RandomStream::new(1, 0, "solicitor"));
        let mut solicitor = Solicitor::new(SolicitorConfig::default());
        let mut sent = 0;
        for tenth in 0..100 {
            let now = Instant::from_millis(tenth * 100);
            solicitor.moved();
            solicitor.start(now, &mut random);
            sent += run(&mut solicitor, &mut random, now + Duration::from_millis(100)).len();
            solicitor.stop();
        }
        assert!((5..=10).contains(&sent), "{sent}");
    }

    #[test]
    fn a_search_that_goes_on_does_not_speed_up() {
        let mut random = Randomness::from(RandomStream::new(1, 0, "solicitor"));
        let mut solicitor = Solicitor::new(SolicitorConfig::default());
        solicitor.start(Instant::ZERO, &mut random);
        run(&mut solicitor, &mut random, Instant::from_secs(60));
        solicitor.stop();
        solicitor.start(Instant::from_secs(61), &mut random);
        let sent = run(&mut solicitor, &mut random, Instant::from_secs(120));
        assert!(sent.len() <= 2, "{sent:?}");
    }
}
