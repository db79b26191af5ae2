//! What programs and this process say to each other, by offsets.

/// A connection, as maps know it: own address, peer's address, ports.
pub(super) mod key {
    pub(in super::super) const LOCAL: usize = 0;
    pub(in super::super) const REMOTE: usize = 16;
    /// The peer's, in the network's order of bytes, and the own in the machine's.
    pub(in super::super) const PORTS: usize = 32;
    pub(in super::super) const LEN: usize = 40;
    /// The part of it that news are for: both addresses.
    pub(in super::super) const PAIR: usize = 32;
}

/// News for the connections between two addresses: numbers of 64 bits.
pub(super) mod news {
    /// Which news they are. A connection acts on each once.
    pub(in super::super) const GENERATION: i16 = 0;
    pub(in super::super) const KIND: i16 = 8;
    /// Since when they hold, us of the kernel's monotonic clock.
    pub(in super::super) const SINCE: i16 = 16;
    pub(in super::super) const LEN: usize = 24;
}

/// What a connection remembers: numbers of 64 bits.
pub(super) mod record {
    /// The news that it has acted on.
    pub(in super::super) const SEEN: i16 = 0;
    /// One of `phase`.
    pub(in super::super) const PHASE: i16 = 8;
    pub(in super::super) const SINCE: i16 = 16;
    /// The estimate when the path was replaced, bytes a second.
    pub(in super::super) const BANDWIDTH: i16 = 24;
    /// The window that there is at least, or the threshold that was set, until a recovery under way has ended.
    pub(in super::super) const HELD: i16 = 32;
    /// Window and threshold when the path was lost, segments.
    pub(in super::super) const WINDOW: i16 = 40;
    pub(in super::super) const THRESHOLD: i16 = 48;
    /// Westwood+: estimate after one filter and after two, bytes a second; measurement under way.
    pub(in super::super) const ONCE: i16 = 56;
    pub(in super::super) const TWICE: i16 = 64;
    pub(in super::super) const BEGUN_MS: i16 = 72;
    pub(in super::super) const ACKED: i16 = 80;
    pub(in super::super) const UNA: i16 = 88;
    pub(in super::super) const ACCOUNTED: i16 = 96;
    pub(in super::super) const ROUND_TRIP_MS: i16 = 104;
    /// Delivery rate: the sample that was looked at last; the round trip under way, and what it ends with.
    pub(in super::super) const DELIVERED: i16 = 112;
    pub(in super::super) const INTERVAL: i16 = 120;
    pub(in super::super) const ROUND: i16 = 128;
    pub(in super::super) const ROUND_ENDS: i16 = 136;
    /// The largest rates, bytes a second, the largest first, and the round trip of each.
    pub(in super::super) const PEAKS: [(i16, i16); 3] = [(144, 152), (160, 168), (176, 184)];
    /// What was outstanding when the path was replaced ends here.
    pub(in super::super) const OLD_ENDS: i16 = 192;
    pub(in super::super) const LEN: usize = 200;
}

/// Where a connection is.
pub(super) mod phase {
    pub(in super::super) const ORDINARY: i32 = 0;
    /// The path was replaced and is not measured yet.
    pub(in super::super) const UNMEASURED: i32 = 1;
    /// Window and threshold were set in a recovery, the end of which is not to change them.
    pub(in super::super) const HOLDING: i32 = 2;
    /// There is no path.
    pub(in super::super) const AWAY: i32 = 3;
    /// There is one again, by which nothing has been acknowledged yet.
    pub(in super::super) const BACK: i32 = 4;
    /// Window and threshold were set, and what was outstanding when the path was replaced is not all acknowledged.
    pub(in super::super) const REPEATING: i32 = 5;
}

/// What a program says that it did: numbers of 64 bits, and a `key`.
pub(super) mod deed {
    pub(in super::super) const KIND: usize = 0;
    pub(in super::super) const AT: usize = 8;
    pub(in super::super) const BANDWIDTH: usize = 16;
    pub(in super::super) const ROUND_TRIP: usize = 24;
    pub(in super::super) const WINDOW: usize = 32;
    pub(in super::super) const THRESHOLD: usize = 40;
    pub(in super::super) const MSS: usize = 48;
    pub(in super::super) const KEY: usize = 56;
    pub(in super::super) const LEN: usize = KEY + super::key::LEN;
    /// Kinds of deeds beside the news that were heard.
    pub(in super::super) const MEASURED: i32 = 16;
    pub(in super::super) const RESTORED: i32 = 17;
}

/// What went wrong, by number.
pub(super) mod fault {
    /// A deed for which there was no room in the queue.
    pub(in super::super) const UNTOLD: i32 = 0;
    /// A connection for which there was no room in the map.
    pub(in super::super) const UNKNOWN: i32 = 1;
    pub(in super::super) const COUNT: u32 = 2;
}
