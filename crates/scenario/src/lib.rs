//! The scenario file: what to run, read from TOML into types that need no further checks.
//!
//! [`Scenario::load`] reads a file, [`Scenario::parse`] a text; traces that it names are files of their own, read by whoever
//! is given to [`Scenario::parse_with`]. All take overrides (`key=value`) and give either a
//! [`Scenario`] with every default filled in, every name looked up and every promise of its fields kept, or
//! [`ScenarioErrors`] that name the place, the value and what would be right.
//!
//! ```
//! use careof_scenario::Scenario;
//!
//! let text = r#"
//!     duration = "120 s"
//!     [links]
//!     wavelan = "wavelan"
//!     gsm = { preset = "gsm-csd", queue = "50 packets" }
//!     [mobility]
//!     [[handover]]
//!     at = "12 s"
//!     from = "wavelan"
//!     to = "gsm"
//!     [[flow]]
//!     from = "correspondent"
//!     to = "mobile"
//! "#;
//! let scenario = Scenario::parse("handover.toml", text, &["flow.tcp=\"linux-2.0\"".to_owned()])?;
//! assert_eq!(scenario.links.len(), 3, "the Ethernet of the correspondent is understood");
//! # Ok::<(), careof_scenario::ScenarioErrors>(())
//! ```

mod address;
mod assist;
mod dhcp;
mod discovery;
mod document;
mod fast_handover;
mod flow;
mod hierarchy;
mod json;
mod link;
mod link_layer;
mod load;
mod many;
mod medium;
mod micro_mobility;
mod mobility;
mod model;
mod mptcp;
mod multipath;
mod node;
mod pattern;
mod prefix;
mod presets;
mod quic;
mod reference;
mod relay;
mod repeated;
mod resolve;
mod tcp;
mod trace;
pub mod units;
mod walk;
mod words;
mod workload;

pub use careof_document::error::{DocumentError as ScenarioError, DocumentErrors as ScenarioErrors};
use careof_document::{decode, error, tree};
pub use document::reference_markdown;
pub use model::{
    Adaptation, AdvisedBy, Algorithm, AnchorPoint, Assist, AssistException, AssistPlace, BandwidthSource,
    BuildingBlocks, Burst, CandidateBuffer, CandidateSet, CareOf, CellularHandover, ClientCheck, Codec,
    CopyNumber, Destination, Dhcp, Discovery, Dispersion, DuplicateAddressDetection, Encapsulation,
    FastHandover, Fleet, Flow, Freeze, Handover, HandoverStyle, Hierarchy, IpVersion, KernelProfile,
    KernelTcp, KnownRate, Ladder, Law, Link, LinkId, MapSelection, Medium, MediumId, MicroMobility,
    MicroProtocol, MobileNode, Mobility, MovementDetection, Mptcp, Multipath, Node, NodeId, OnOff, PathLink,
    PathRule, PathScheme, Placed, PoissonHandovers, PolicyRule, Programs, Protocol, QueuedFate, Quic,
    RelayLink, Replay, Resequencing, Role, Round, Routing, RtoFastDecrease, RtoReset, Scenario, Split,
    StartDelay, Tcp, TcpCm, TraceFile, Treatment, Trigger, Trust, Unreachability, Uplink, Video, Voice, Walk,
    WhenFull, Workload,
};
pub use prefix::Prefix;
pub use presets::{Preset, preset, presets, presets_json};
pub use trace::{NamedIn, ReadFile};
pub use words::kernel_edition;
