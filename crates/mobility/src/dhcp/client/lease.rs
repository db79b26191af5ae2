//! What a server has granted.

use core::net::Ipv4Addr;
use core::time::Duration;

use careof_base::Instant;
use careof_wire::dhcp::{DhcpMessage, LeaseTime};

/// An address, and for how long it is the client's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The address.
    pub address: Ipv4Addr,
    /// The bits of its network, where the server told them.
    pub prefix_length: Option<u8>,
    /// The first router on the link, where the server told one.
    pub router: Option<Ipv4Addr>,
    /// Who granted it.
    pub server: Ipv4Addr,
    /// For how long.
    pub lease_time: LeaseTime,
    /// T1: when to ask the server for more time.
    pub renew_at: Instant,
    /// T2: when to ask any server.
    pub rebind_at: Instant,
    /// When it ends; [`Instant::MAX`] is never.
    pub expires: Instant,
}

impl Lease {
    /// What `ack` grants, counted from `requested`, when the request was sent (RFC 2131 section 4.4.1).
    pub(super) fn new(
        requested: Instant,
        ack: &DhcpMessage,
        server: Ipv4Addr,
        lease_time: LeaseTime,
    ) -> Self {
        let told = |time: Option<LeaseTime>| time.and_then(LeaseTime::duration);
        let (renewal, rebinding) = (told(ack.renewal_time), told(ack.rebinding_time));
        let (renew_at, rebind_at, expires) = match lease_time.duration() {
            None => (Instant::MAX, Instant::MAX, Instant::MAX),
            Some(whole) => {
                let part = |eighths: u32| whole / 8 * eighths;
                // Times out of order are no times: the defaults of RFC 2131 section 4.4.5.
                let (renewal, rebinding): (Duration, Duration) =
                    match (renewal.unwrap_or(part(4)), rebinding.unwrap_or(part(7))) {
                        (t1, t2) if t1 <= t2 && t2 <= whole => (t1, t2),
                        _ => (part(4), part(7)),
                    };
                (requested + renewal, requested + rebinding, requested + whole)
            }
        };
        Self {
            address: ack.yiaddr,
            prefix_length: ack.prefix_length,
            router: ack.routers.first().copied(),
            server,
            lease_time,
            renew_at,
            rebind_at,
            expires,
        }
    }
}
