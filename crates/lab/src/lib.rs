//! The real world: Linux hosts, devices and links that live and die with this process.
//!
//! - [`Realm`] is the right to make hosts; a [`Host`] is a network namespace without a name, held by a thread.
//! - [`Tun`] is a host's network interface whose other side is ours; [`Host::connect`] lays an Ethernet cable between
//!   two hosts.
//! - [`Netlink`] gives interfaces addresses, routes, rules and neighbours and can take each back; [`NetlinkMonitor`]
//!   tells what changes.
//! - [`SockDiag`] looks into the kernel's TCP; [`set_congestion_control`] and [`set_sysctl`] choose how it works, and a
//!   [`ToldCongestion`] is one that can be told of handovers.
//! - [`mptcp_socket`] and [`MptcpPathManager`] are the kernel's Multipath TCP.
//! - [`Host::spawn`] runs programs, which end with the host.
//! - [`TunnelSocket`] and [`OffloadTun`] are the two ends of a tunnel's way through user space, many packets a system
//!   call; [`AgentSocket`], [`IcmpSocket`] and [`ArpSender`] carry what agents say to each other and to a link.
//! - [`Ipv6TunnelSocket`], [`Icmpv6Socket`], [`Ipv6PacketSender`], [`Ipv6PacketWatch`] and [`Ipv4PacketSocket`] do the same for Mobile IPv6, whose extension
//!   headers the kernel does not know; [`PacketGuard`] keeps packets with them from it.
//! - [`LinkSocket`] hears and sends every packet of a link, for hosts that forward by decisions of their own.
//! - [`Emulator`] carries packets between pairs of TUN devices as `careof_link` says.
//!
//! Everything is bound to file descriptors and threads: when the process ends, however it ends, the kernel
//! takes namespaces, interfaces, addresses, routes and programs back. Nothing is written outside the namespaces.
//!
//! As root the lab runs as it is. An ordinary user gets the same inside a user namespace, apart from real-time
//! priority (see [`Scheduling`]) and where the TUN device's mode forbids it; each refusal is an [`Error`] that
//! knows its [`remedy`](Error::remedy).

mod agent_socket;
mod arp_sender;
mod bpf;
pub mod capabilities;
mod clock;
mod congestion;
mod emulator;
mod error;
mod icmp_socket;
mod icmpv6_socket;
mod interface;
mod ipv4_packets;
mod ipv6_link_sender;
mod ipv6_packets;
mod ipv6_tunnel_socket;
mod link_socket;
mod mptcp;
mod namespace;
mod neighbour_watch;
mod netlink;
mod offload;
mod packet_guard;
mod process;
mod scheduling;
mod sock_diag;
mod socket;
mod sysctl;
mod tcp_option;
mod tcp_queues;
mod tcp_socket;
pub mod told_congestion;
mod tun;
mod tunnel_socket;
mod unaddressed;

pub use agent_socket::{AgentDatagram, AgentSocket, OutgoingDatagram};
pub use arp_sender::{ArpOperation, ArpSender};
pub use clock::Clock;
pub use congestion::{
    ChosenBy, CongestionControl, CongestionControls, congestion_controls, ensure_congestion_control,
    set_congestion_control,
};
pub use emulator::{
    Change, Direction, DirectionReport, Emulator, Lateness, LinkId, LinkReport, LinkSpec, MediumId,
    MediumSpec, Options, Passage, SharedLinkSpec, Shortcut, Sighting, Sightings, Tap, TapConfig, Timing,
};
pub use error::{Barrier, BpfLack, Error};
pub use icmp_socket::{IcmpDatagram, IcmpSocket, OutgoingIcmp};
pub use icmpv6_socket::{Icmpv6Datagram, Icmpv6Socket, OutgoingIcmpv6};
pub use interface::{InterfaceAddress, InterfaceConfig};
pub use ipv4_packets::{Ipv4Packet, Ipv4PacketSocket};
pub use ipv6_link_sender::Ipv6LinkSender;
pub use ipv6_packets::{Ipv6PacketSender, Ipv6PacketWatch, SeenIpv6Packet};
pub use ipv6_tunnel_socket::{Ipv6Outer, Ipv6TunnelPacket, Ipv6TunnelSocket};
pub use link_socket::LinkSocket;
pub use mptcp::{MptcpEndpoint, MptcpPathManager, mptcp_fell_back, mptcp_schedulers, mptcp_socket};
pub use namespace::{Host, Realm};
pub use neighbour_watch::{NeighbourWatch, SeenNeighbour, SeenRequest};
pub use netlink::{
    AddressOptions, AssignedAddress, CarrierCounts, Effect, InterfaceState, IpVersion, Neighbour, Netlink,
    NetlinkMonitor, NetworkChange, Route, RouteKind, RouteScope, Rule,
};
pub use offload::{Frame, OffloadTun, Offloads, TunCounters, with_left_checksum};
pub use packet_guard::{GuardedPacket, PacketGuard};
pub use scheduling::Scheduling;
pub use sock_diag::{RecoveryState, SockDiag, TcpFilter, TcpInfo, TcpSocket, TcpState, TcpTimer};
pub use sysctl::{set_sysctl, sysctl};
pub use tcp_option::TcpOption;
pub use tcp_queues::TcpQueues;
pub use tcp_socket::tcp_socket;
pub use told_congestion::ToldCongestion;
pub use tun::Tun;
pub use tunnel_socket::{
    Departure, Flushed, Identifier, Outer, Proof, ReceiveBatch, SendBatch, SendFailure, SendFailureReason,
    TunnelError, TunnelPacket, TunnelSocket,
};
