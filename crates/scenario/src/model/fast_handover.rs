//! Fast handovers.

use careof_base::Duration;

/// `fast_handover` of `[mobility]` (RFC 5568): what mobile nodes and access routers do at a handover.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FastHandover {
    /// Packets that an access router keeps for one mobile node; 0 is no buffer.
    pub buffer_packets: u32,
    /// Their bytes.
    pub buffer_bytes: u64,
    /// How fast kept packets go on, percent of the rate at which they came; 1 to 10,000.
    pub release_percent: u32,
    /// Whether the previous access router keeps copies of what it sends to the old link, from the Fast Binding Update until the tunnel
    /// begins.
    pub copies: bool,
    /// How long before a handover that is announced the Fast Binding Update is sent, if its notice is not shorter.
    pub prepare_ahead: Duration,
    /// PROXY_ND_LIFETIME: how long a new access router waits for a mobile node, whole milliseconds, above zero and up to 10 minutes.
    pub proxy_lifetime: Duration,
    /// The lifetime of the tunnel between the access routers, a multiple of 4 s, above zero and at most 262,140 s.
    pub lifetime: Duration,
}

impl Default for FastHandover {
    fn default() -> Self {
        Self {
            buffer_packets: 256,
            buffer_bytes: 384_000,
            release_percent: 200,
            copies: false,
            prepare_ahead: Duration::from_millis(50),
            proxy_lifetime: Duration::from_millis(1500),
            lifetime: Duration::from_secs(20),
        }
    }
}
