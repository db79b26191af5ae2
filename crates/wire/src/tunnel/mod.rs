//! Tunnels: IP within IP (RFC 2003), minimal encapsulation (RFC 2004) and GRE (RFC 2784, with the key and
//! sequence number of RFC 2890).
//!
//! [`Tunnel::encapsulate`] and [`decapsulate`] turn datagrams into datagrams ([`Tunnel::front`] and
//! [`decapsulate_in_place`] without moving the payload); [`relay_error`] turns an ICMP
//! error from inside a tunnel into the one that its real sender gets. The path MTU of a tunnel and the
//! other soft state of RFC 2003 section 5 belong to whoever holds the tunnel.
//!
//! Left out: GRE checksums are checked but not sent; GRE routing (RFC 1701) is refused; the ECN field goes
//! into the tunnel with the rest of the type of service but is not brought out of it (RFC 6040), so
//! congestion marked inside a tunnel is not seen by the receiver.

mod encapsulation;
mod front;
mod gre;
mod minimal;
mod nested;
mod relay;

pub use encapsulation::{
    Decapsulated, Encapsulation, EncapsulationError, Origin, Tunnel, decapsulate, decapsulate_in_place,
};
pub use front::Front;
pub use nested::nested;
pub use relay::{NotRelayed, RelayedError, relay_error};
