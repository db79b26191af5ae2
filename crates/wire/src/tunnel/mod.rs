//! Tunnels: IP within IP (RFC 2003), minimal encapsulation (RFC 2004) and GRE (RFC 2784, with the key and
//! sequence number of RFC 2890); IPv6 and IPv4 within IPv6 (RFC 2473), IPv6 within IPv4 (RFC 4213).
//!
//! [`Tunnel::encapsulate`] and [`decapsulate`] turn datagrams into datagrams ([`Tunnel::front`] and
//! [`decapsulate_in_place`] without moving the payload); [`relay_error`] turns an ICMP
//! error from inside a tunnel into the one that its real sender gets. The path MTU of a tunnel and the
//! other soft state of RFC 2003 section 5 belong to whoever holds the tunnel.
//!
//! [`Ipv6Tunnel`], [`decapsulate_ipv6`] and [`relay_error_ipv6`] are their counterparts where the outer header is IPv6, and
//! [`Ipv6InIpv4Tunnel`] where IPv6 travels in IPv4.
//!
//! [`MultipathHeader`] is the header of packets whose flow goes by several paths at once.
//!
//! Left out: GRE checksums are checked but not sent; GRE routing (RFC 1701) is refused; the ECN field goes
//! into the tunnel with the rest of the type of service but is not brought out of it (RFC 6040), so
//! congestion marked inside a tunnel is not seen by the receiver.

mod encapsulation;
mod front;
mod gre;
mod ipv6;
mod ipv6_in_ipv4;
mod minimal;
mod multipath;
mod nested;
mod relay;
mod relay_v6;

pub use encapsulation::{
    Decapsulated, Encapsulation, EncapsulationError, Origin, Tunnel, decapsulate, decapsulate_in_place,
};
pub use front::Front;
pub use ipv6::{
    Admission, DecapsulatedFromIpv6, Inner, Ipv6EncapsulationError, Ipv6Front, Ipv6Tunnel, decapsulate_ipv6,
};
pub use ipv6_in_ipv4::{DecapsulatedIpv6, Ipv6InIpv4Tunnel, decapsulate_ipv6_in_ipv4};
pub use multipath::{MultipathHeader, MultipathPayload};
pub use nested::nested;
pub use relay::{NotRelayed, RelayedError, relay_error};
pub use relay_v6::{RelayedFromIpv6, relay_error_ipv6};
