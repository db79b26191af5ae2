//! What both worlds build alike from a scenario.
//!
//! - [`Topology`] is the nodes with their interfaces, addresses and static routes;
//! - [`agent`] is the configuration of the mobility agent on a node, [`assists`] that of the assists beside it;
//! - [`DhcpPlan`] is who asks for addresses on a node, and who leases them;
//! - [`Overview`] is all of that network at a glance, for people;
//! - [`steps`] is when links come and go, [`walk`] the same for a mobile node in a domain of micro-mobility;
//! - [`Workload`] is what the applications at both ends of a flow ask of their connection;
//! - the rest are the words both worlds use for the same things: names, ports, messages, paths.
//!
//! So an address, a port or a name that is seen in one world means the same in the other, and a difference between two
//! runs of one scenario is a difference between the worlds.

mod agents;
mod assists;
mod black_hole;
mod capture;
mod dhcp;
mod digest;
mod event_text;
mod fast_handover;
mod flow;
mod headers;
mod hierarchical;
mod layout;
mod locator;
mod media;
mod message_text;
mod message_text_v6;
mod micro_mobility;
mod mobile_ipv6;
mod multipath;
mod observation;
mod on_off;
mod overview;
mod own_address;
mod path;
mod refusal;
mod relays;
mod room;
mod script;
mod sequence;
mod topology;
mod video;
mod voice;
mod walk;
mod workload;

pub use agents::{AgentPlan, agent, wall_clock};
pub use assists::{
    announced_path, assists, exceptions, flow_key, is_access_router, tunnel_overhead, tunnel_overhead_on,
};
pub use black_hole::{note_filtered, note_filtered_ipv6, note_hole};
pub use capture::{CaptureError, CaptureNodes, CapturePlan, Captures, DropPlace, plan_captures};
pub use dhcp::{DhcpPlan, dhcp};
pub use digest::{Digest, of_bytes};
pub use event_text::{acquired_text, arp_text, binding_text, handover_comment, handover_text, visitor_text};
pub use fast_handover::{AccessPointPlan, FastHandoverPlan, fast_handover};
pub use flow::{FlowId, kind, measured_name, measured_senders, port, stall_threshold, workload_stream};
pub use hierarchical::AnchorPointPlace;
pub use layout::{lay_out, names, stream};
pub use locator::{Cells, Ipv6Plan, Locator, Plan, Subnet};
pub use media::{Media, OnMedium};
pub use message_text::describe;
pub use message_text_v6::describe_ipv6;
pub use micro_mobility::{DomainPlan, RouterNote, domain, host_event_text, router_event_text, sum_of_domain};
pub use mobile_ipv6::{
    Ipv6AgentPlan, NeighborPlan, hardware, ipv4_care_of, ipv6_agent, link_local, neighbors,
};
pub use multipath::{MultipathPlan, PlannedPath, multipath};
pub use observation::{CaptureRequest, Observation};
pub use overview::{
    AnchorPointOverview, Direction, HomeNetworkOverview, LinkEnd, LinkOverview, MobileOverview, Network,
    Overview, overview,
};
pub use own_address::{client_of, migrates};
pub use path::{Tunnelling, first_peer, new_path};
pub use refusal::{Unsupported, refuse_what_no_world_can};
pub use relays::RelayPlan;
pub use room::leaves_room;
pub use script::{Step, attached_first, drawn, fate_of_queue, handovers_of, is_told, steps};
pub use sequence::Unwrapped;
pub use topology::{
    Cable, Cell, FleetNetwork, Home, HomeNetwork, Homes, Interface, InterfaceIndex, NodeId, OneWayId, Place,
    Route, Topology, down_of, up_of,
};
pub use video::Player;
pub use voice::{RtpFlow, call};
pub use walk::{Itinerary, WalkStep, walk};
pub use workload::{Ask, Side, Workload};
