//! What can be wrong with a configuration.

use core::net::Ipv4Addr;
use core::time::Duration;

use crate::v4::Prefix;

/// Why a client or server cannot be made from a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// A client-identifier has a type and a value (RFC 2132 section 9.14).
    #[error("the client-identifier has {0} bytes; it needs 2 to 255")]
    IdentifierLength(usize),
    /// A range whose ends are the wrong way round.
    #[error("{what} is {least:?} at least and {most:?} at most; the first must not be the longer one")]
    Reversed {
        /// What the range is of.
        what: &'static str,
        /// The lower end.
        least: Duration,
        /// The upper end.
        most: Duration,
    },
    /// No time between retransmissions would be messages without end at one instant.
    #[error(
        "the first retransmission after {first:?} with a spread of {spread:?} could come at once; the spread must be shorter"
    )]
    NoBackOff {
        /// The first interval.
        first: Duration,
        /// What it varies by to either side.
        spread: Duration,
    },
    /// A check without probes finds nothing.
    #[error("a conflict check without probes checks nothing; leave the check out")]
    NoProbes,
    /// Nothing can be asked for in no messages.
    #[error("a client that sends no request gets no address; it must send at least 1")]
    NoRequests,
    /// The addresses to lease are none.
    #[error("the pool from {first} to {last} is empty")]
    EmptyPool {
        /// Its first address.
        first: Ipv4Addr,
        /// Its last address.
        last: Ipv4Addr,
    },
    /// More leases than a server keeps.
    #[error("the pool has {found} addresses; {most} at most can be leased")]
    LargePool {
        /// How many it has.
        found: u32,
        /// How many it may have.
        most: u32,
    },
    /// The pool holds an address that no client of the network can use.
    #[error("the pool from {first} to {last} holds {address}, which no client in {network} can have")]
    BadPool {
        /// Its first address.
        first: Ipv4Addr,
        /// Its last address.
        last: Ipv4Addr,
        /// The address.
        address: Ipv4Addr,
        /// The server's network.
        network: Prefix,
    },
    /// A lease that is over when it begins.
    #[error("a lease of 0 s serves nobody; it must last 1 s at least")]
    NoLease,
}
