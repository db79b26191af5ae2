//! How mobile nodes and agents find each other.

use careof_base::Duration;

/// `advertisement_interval` of `[mobility]` and the table `[mobility.discovery]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Discovery {
    /// The longest time between two advertisements of an agent (RFC 1256, MaxAdvertisementInterval), above zero.
    pub interval: Duration,
    /// The shortest, above zero and no longer than `interval`. Each time is drawn from between the two.
    pub least_interval: Duration,
    /// How many advertisements in a row have to stay away until an agent counts as lost, 1 to 255.
    pub missed: u8,
    /// How long after the last of them was due, in thousandths of the interval between them.
    pub margin_permille: u16,
    /// Whether mobile nodes ask for agents on a link where they hear none.
    pub solicitation: bool,
    /// Whether an agent advertises itself when its link comes up.
    pub on_link_up: bool,
    /// The longest time after which an agent answers a solicitation.
    pub response_delay: Duration,
    /// Whether advertisements tell the prefix of their link.
    pub prefix: bool,
    /// The times of neighbor unreachability detection.
    pub unreachability: Unreachability,
}

/// The times by which a mobile node finds out that its default router is unreachable (RFC 4861 sections 6.2.1 and 10).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unreachability {
    /// AdvDefaultLifetime: how long a router that is not heard again stays one, whole seconds.
    pub router_lifetime: Duration,
    /// AdvReachableTime: how long a confirmation counts, half as much more or less.
    pub reachable_time: Duration,
    /// AdvRetransTimer: the time between two probes.
    pub retrans_timer: Duration,
    /// DELAY_FIRST_PROBE_TIME: how long upper layers have for a confirmation before a router is probed.
    pub delay_first_probe: Duration,
}

impl Default for Unreachability {
    /// Those of RFC 4861.
    fn default() -> Self {
        Self {
            router_lifetime: Duration::from_secs(1800),
            reachable_time: Duration::from_secs(30),
            retrans_timer: Duration::from_secs(1),
            delay_first_probe: Duration::from_secs(5),
        }
    }
}

impl Discovery {
    /// The shortest interval that RFC 5944 calls reasonable (section 2.3: at most one advertisement a second).
    pub const RECOMMENDED_INTERVAL: Duration = Duration::from_secs(1);

    /// Advertisements at most `interval` apart, and otherwise as without the table.
    #[must_use]
    pub fn every(interval: Duration) -> Self {
        Self {
            interval,
            // RFC 1256, section 6.2.1: three quarters, unless told otherwise.
            least_interval: interval * 3 / 4,
            missed: 3,
            margin_permille: 500,
            solicitation: true,
            on_link_up: true,
            response_delay: Duration::from_millis(100),
            prefix: true,
            unreachability: Unreachability::default(),
        }
    }
}
