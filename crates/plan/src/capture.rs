//! The captures of a run: one file for each node that is asked for, with the packets that this node sees.
//!
//! A node sees what arrives on its links and what it sends into them, each packet once:
//!
//! - Everything that arrives is in the file.
//! - A packet that leaves is in the file unless the node has seen it before: a router's file has a packet as it came, and
//!   a packet that a handover moves from one queue to another is not sent twice.
//!
//! So a packet that the node sends is in its file even if it is lost later, and if it is lost, a comment on it says
//! where and why.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter};
use std::path::PathBuf;

use careof_base::Instant;
use careof_metrics::CaptureSummary;
use careof_scenario::{Flow, Scenario, Workload};
use careof_trace::{Capture, Direction, InterfaceId, PcapngWriter, annotate, comment_bytes, packet_bytes};

use crate::headers::headers_len;
use crate::layout::lay_out;
use crate::observation::CaptureRequest;
use crate::topology::{NodeId, OneWayId, Topology};

/// Bytes that are kept when only headers are, of a packet that is no TCP segment.
const HEADERS: u32 = 128;
/// Files that are written where nobody says which.
const MOST_BY_DEFAULT: usize = 16;
/// Files that are written at most: each is open all the time.
const MOST_FILES: usize = 256;
/// What the comment on a dropped packet takes in a file, about.
const DROP_BYTES: u64 = 64;
/// Fragments whose datagram is remembered.
const MOST_FRAGMENTS: usize = 1 << 16;
const BUFFER_BYTES: usize = 1 << 18;

/// Which nodes are to be captured.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum CaptureNodes {
    /// The ends of flows; where there are no flows all nodes.
    #[default]
    FlowEnds,
    /// All nodes.
    All,
    /// The nodes with these names.
    Named(Vec<String>),
}

/// Why nodes cannot be captured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CaptureError {
    /// The scenario has no such node.
    UnknownNode {
        /// What was asked for.
        name: String,
        /// What there is.
        nodes: Vec<String>,
    },
    /// More files than can be open.
    TooMany {
        /// How many nodes there are.
        nodes: usize,
    },
}

impl fmt::Display for CaptureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownNode { name, .. } => write!(f, "capture: the scenario has no node {name:?}"),
            Self::TooMany { nodes } => {
                write!(f, "capture: {nodes} nodes, and no more than {MOST_FILES} files can be written")
            }
        }
    }
}

impl std::error::Error for CaptureError {}

impl CaptureError {
    /// What would be right.
    #[must_use]
    pub fn remedy(&self) -> String {
        match self {
            Self::UnknownNode { nodes, .. } => {
                let more = nodes.len().saturating_sub(MOST_BY_DEFAULT);
                let named =
                    nodes.iter().take(MOST_BY_DEFAULT).map(String::as_str).collect::<Vec<_>>().join(", ");
                let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
                format!("nodes: {named}{rest}; or all, or none")
            }
            Self::TooMany { .. } => "name the nodes to be captured: --capture NODE,...".to_owned(),
        }
    }
}

/// The nodes that will be captured, and how large the files may become.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CapturePlan {
    /// The nodes.
    pub nodes: Vec<NodeId>,
    /// Their names.
    pub names: Vec<String>,
    /// Ends of flows that are not captured, because there are so many.
    pub omitted: usize,
    /// What these nodes can see in the scenario's time, in bytes: of each flow what the slower of its ends' links carry.
    pub most_bytes: u128,
}

/// Which nodes of a scenario `wanted` means.
///
/// # Errors
/// A name is no node's, or there are too many nodes.
pub fn plan_captures(scenario: &Scenario, wanted: &CaptureNodes) -> Result<CapturePlan, CaptureError> {
    let topology = lay_out(scenario);
    let everyone = || (0..topology.places.len()).map(|index| NodeId(index as u16)).collect::<Vec<_>>();
    let find = |name: &str| {
        topology.find(name).ok_or_else(|| CaptureError::UnknownNode {
            name: name.to_owned(),
            nodes: topology.places.iter().map(|place| place.name.clone()).collect(),
        })
    };
    let mut nodes = match wanted {
        CaptureNodes::All => everyone(),
        CaptureNodes::Named(names) => names.iter().map(|name| find(name)).collect::<Result<Vec<_>, _>>()?,
        CaptureNodes::FlowEnds if scenario.flows.is_empty() => everyone(),
        CaptureNodes::FlowEnds => {
            let ends = scenario.flows.iter().flat_map(|flow| [flow.from, flow.to]);
            ends.map(|end| find(&scenario.node(end).name)).collect::<Result<Vec<_>, _>>()?
        }
    };
    nodes.sort_unstable();
    nodes.dedup();
    let mut omitted = 0;
    if *wanted == CaptureNodes::FlowEnds {
        omitted = nodes.len().saturating_sub(MOST_BY_DEFAULT);
        nodes.truncate(MOST_BY_DEFAULT);
    } else if nodes.len() > MOST_FILES {
        return Err(CaptureError::TooMany { nodes: nodes.len() });
    }
    let names: Vec<String> = nodes.iter().map(|node| topology.place(*node).name.clone()).collect();
    let most_bytes = Carried::of(scenario).seen_at(scenario, &names);
    Ok(CapturePlan { nodes, names, omitted, most_bytes })
}

/// What each node's links carry in the scenario's time, in bytes: out of the node, and into it. Of a node without links
/// of its own, which visits the cells of stations, that is not known.
struct Carried<'a>(BTreeMap<&'a str, [u128; 2]>);

impl<'a> Carried<'a> {
    fn of(scenario: &'a Scenario) -> Self {
        let until = Instant::ZERO + scenario.duration;
        let mut carried = BTreeMap::<&str, [u128; 2]>::new();
        for link in &scenario.links {
            let [down, up] = [&link.down, &link.up].map(|way| way.bits_by(until) / 8);
            for (end, [out, into]) in link.ends.into_iter().zip([[down, up], [up, down]]) {
                let entry = carried.entry(&scenario.node(end).name).or_default();
                *entry = [entry[0] + out, entry[1] + into];
            }
        }
        Self(carried)
    }

    fn node(&self, name: &str) -> [u128; 2] {
        self.0.get(name).copied().unwrap_or([u128::MAX; 2])
    }

    /// What a flow can bring to a node that sees all of it.
    fn flow(&self, scenario: &Scenario, flow: &Flow) -> u128 {
        let [from, to] = [flow.from, flow.to].map(|end| self.node(&scenario.node(end).name));
        let data = from[0].min(to[1]);
        let back = to[0].min(from[1]);
        match flow.workload {
            // An acknowledgement, tunnelled and with all options, is less than an eighth of a full segment.
            Workload::Bulk { .. } => data.saturating_add(back.min(data / 8)),
            _ => data.saturating_add(back),
        }
    }

    /// What the captures of these nodes can see.
    fn seen_at(&self, scenario: &Scenario, names: &[String]) -> u128 {
        let everything = self.0.values().map(|[out, _]| *out).fold(0, u128::saturating_add);
        let mut by_end = BTreeMap::<&str, u128>::new();
        let mut all_flows = 0_u128;
        for flow in &scenario.flows {
            let bytes = self.flow(scenario, flow);
            all_flows = all_flows.saturating_add(bytes);
            for end in [flow.from, flow.to] {
                let sum = by_end.entry(&scenario.node(end).name).or_default();
                *sum = sum.saturating_add(bytes);
            }
        }
        let of_node = |name: &String| {
            let [out, into] = self.node(name);
            // A packet may pass a router twice: to the agent that tunnels it, and in the tunnel.
            let on_the_way = if scenario.flows.is_empty() { u128::MAX } else { all_flows.saturating_mul(2) };
            let flows = by_end.get(name.as_str()).copied().unwrap_or(on_the_way);
            out.saturating_add(into).min(flows).min(everything)
        };
        names.iter().map(of_node).fold(0, u128::saturating_add)
    }
}

/// Which datagrams a node has seen: a bit for each number, and numbers are given out one after the other.
#[derive(Debug, Default)]
struct Seen(Vec<u64>);

impl Seen {
    fn has(&self, packet: u64) -> bool {
        self.0.get((packet / 64) as usize).is_some_and(|word| word >> (packet % 64) & 1 == 1)
    }

    fn add(&mut self, packet: u64) {
        let word = (packet / 64) as usize;
        if word >= self.0.len() {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= 1 << (packet % 64);
    }
}

/// Where a packet was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropPlace {
    /// On a one-way link.
    Link(OneWayId),
    /// At a node.
    Node(NodeId),
}

/// A drop of a packet that a node had seen.
#[derive(Clone, Copy, Debug)]
struct Drop {
    packet: u64,
    at: Instant,
    cause: &'static str,
    place: DropPlace,
}

/// What places are called.
#[derive(Debug)]
struct PlaceNames {
    links: Vec<String>,
    nodes: Vec<String>,
}

impl PlaceNames {
    /// A drop as a comment says it: `dropped: queue-full on gsm.down (at 12.500000000 s)`.
    fn text(&self, drop: &Drop) -> String {
        let Drop { at, cause, place, .. } = drop;
        match *place {
            DropPlace::Link(way) => {
                let link = self.links.get(way.0 as usize / 2).map_or("", String::as_str);
                let towards = if way.0.is_multiple_of(2) { "down" } else { "up" };
                format!("dropped: {cause} on {link}.{towards} (at {at})")
            }
            DropPlace::Node(node) => {
                let node = self.nodes.get(usize::from(node.0)).map_or("", String::as_str);
                format!("dropped: {cause} at {node} (at {at})")
            }
        }
    }
}

/// The file of one node.
#[derive(Debug)]
struct VantagePoint {
    node: NodeId,
    name: String,
    path: PathBuf,
    writer: PcapngWriter<BufWriter<File>>,
    /// By link.
    interfaces: Vec<Option<InterfaceId>>,
    seen: Seen,
    drops: Vec<Drop>,
    /// The last packet in the file.
    last: Option<u64>,
    packets: u64,
    headers_only: u64,
    left_out: u64,
}

/// The captures of a run in the making.
#[derive(Debug)]
pub struct Captures {
    points: Vec<VantagePoint>,
    /// By node: its place in `points`.
    by_node: Vec<Option<usize>>,
    names: PlaceNames,
    snap_length: Option<u32>,
    limit_bytes: u64,
    /// What the files hold by now.
    used_bytes: u64,
    /// Half of what is allowed is used: only headers are kept.
    is_cut: bool,
    /// All of it is used.
    is_full: bool,
    /// Many nodes move: what one of them does is of no interest to the others.
    many_move: bool,
    /// By fragment: the datagram that it is a part of.
    cut_from: BTreeMap<u64, u64>,
    /// The first failure to write; the run goes on, the end reports it.
    error: Option<io::Error>,
}

impl Captures {
    /// Begins a file for each node of `request`.
    ///
    /// # Errors
    /// A file cannot be made.
    pub fn new(request: CaptureRequest, scenario: &Scenario, topology: &Topology) -> io::Result<Self> {
        let mut captures = Self {
            points: Vec::new(),
            by_node: vec![None; topology.places.len()],
            names: PlaceNames {
                links: scenario.links.iter().map(|link| link.name.clone()).collect(),
                nodes: topology.places.iter().map(|place| place.name.clone()).collect(),
            },
            snap_length: request.snap_length,
            limit_bytes: request.limit_bytes,
            used_bytes: 0,
            is_cut: false,
            is_full: false,
            many_move: topology.homes.mobile_nodes().nth(1).is_some(),
            cut_from: BTreeMap::new(),
            error: None,
        };
        for node in request.nodes {
            let name = topology.place(node).name.clone();
            let path = request.directory.join(format!("{name}.pcapng"));
            let file = BufWriter::with_capacity(BUFFER_BYTES, File::create(&path)?);
            let mut writer = PcapngWriter::new(file, concat!("careof ", env!("CARGO_PKG_VERSION")))?;
            let mut interfaces = vec![None; scenario.links.len()];
            for (interface, link) in interfaces.iter_mut().zip(&scenario.links) {
                if link.ends.iter().any(|end| scenario.node(*end).name == name) {
                    let title = format!("{}@{name}", link.name);
                    *interface = Some(writer.add_interface(&title, "", request.snap_length)?);
                }
            }
            captures.by_node[usize::from(node.0)] = Some(captures.points.len());
            captures.points.push(VantagePoint {
                node,
                name,
                path,
                writer,
                interfaces,
                seen: Seen::default(),
                drops: Vec::new(),
                last: None,
                packets: 0,
                headers_only: 0,
                left_out: 0,
            });
        }
        Ok(captures)
    }

    fn point(&mut self, node: NodeId) -> Option<&mut VantagePoint> {
        let index = (*self.by_node.get(usize::from(node.0))?)?;
        self.points.get_mut(index)
    }

    /// Whether a datagram that `node` sends is to be captured there: the node has a file, and did not see it before.
    #[must_use]
    pub fn wants_sent(&self, node: NodeId, packet: u64) -> bool {
        let index = self.by_node.get(usize::from(node.0)).copied().flatten();
        index.is_some_and(|index| !self.points[index].seen.has(packet))
    }

    /// Whether what arrives at `node` is to be captured there.
    #[must_use]
    pub fn wants_received(&self, node: NodeId) -> bool {
        self.by_node.get(usize::from(node.0)).is_some_and(Option::is_some)
    }

    /// A packet at `node`, which sends it into the one-way link `way` or receives it from there. `packet` is the number the
    /// trace knows it by.
    pub fn packet(
        &mut self,
        at: Instant,
        (node, way): (NodeId, OneWayId),
        direction: Direction,
        (packet, bytes): (u64, &[u8]),
    ) {
        let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        let whole = length.min(self.snap_length.unwrap_or(u32::MAX));
        let half = self.limit_bytes / 2;
        self.is_cut |= self.used_bytes.saturating_add(packet_bytes(whole)) > half;
        let kept = if self.is_cut {
            whole.min(headers_len(bytes).and_then(|len| len.try_into().ok()).unwrap_or(HEADERS))
        } else {
            whole
        };
        self.is_full |= self.used_bytes.saturating_add(packet_bytes(kept)) > self.limit_bytes;
        let is_full = self.is_full;
        let limit = self.limit_bytes;
        let link = way.0 as usize / 2;
        let Some(index) = self.by_node.get(usize::from(node.0)).copied().flatten() else { return };
        let Some(point) = self.points.get_mut(index) else { return };
        point.seen.add(packet);
        let interface = match point.interfaces.get(link).copied().flatten() {
            Some(interface) => interface,
            // A station's cell: the radio of whoever is there.
            None => match point.add_interface(link, &self.names, self.snap_length) {
                Ok(interface) => interface,
                Err(error) => {
                    self.error.get_or_insert(error);
                    return;
                }
            },
        };
        if is_full {
            point.writer.leave_out(interface, at);
            point.left_out += 1;
            return;
        }
        if kept < whole {
            if point.headers_only == 0 {
                let text = format!(
                    "from here on headers only: the captures of this run reached half of --max-capture, {limit} bytes"
                );
                point.writer.comment(at, &text);
            }
            point.headers_only += 1;
        }
        point.packets += 1;
        point.last = Some(packet);
        point.writer.capture(Capture { interface, time: at, direction, packet, bytes, snap_length: kept });
        self.used_bytes += packet_bytes(kept);
    }

    /// A node has a datagram in another form: put together again from fragments.
    pub fn known(&mut self, node: NodeId, packet: u64) {
        if let Some(point) = self.point(node) {
            point.seen.add(packet);
        }
    }

    /// The datagram `part` is a fragment of `whole`. A node that saw the whole does not see the fragment that it makes of
    /// it as another packet.
    pub fn fragment(&mut self, node: NodeId, part: u64, whole: u64) {
        if !self.points.iter().any(|point| point.seen.has(whole)) {
            return;
        }
        if let Some(point) = self.point(node)
            && point.seen.has(whole)
        {
            point.seen.add(part);
        }
        self.cut_from.insert(part, whole);
        while self.cut_from.len() > MOST_FRAGMENTS {
            self.cut_from.pop_first();
        }
    }

    /// A packet was dropped somewhere: it has a comment wherever it was seen before.
    pub fn dropped(&mut self, at: Instant, packet: u64, cause: &'static str, place: DropPlace) {
        let whole = self.cut_from.get(&packet).copied();
        for point in &mut self.points {
            let Some(packet) =
                [Some(packet), whole].into_iter().flatten().find(|packet| point.seen.has(*packet))
            else {
                continue;
            };
            if self.is_full && point.last.is_none_or(|last| packet > last) {
                continue;
            }
            point.drops.push(Drop { packet, at, cause, place });
            self.used_bytes = self.used_bytes.saturating_add(DROP_BYTES);
        }
    }

    /// Says something that happened to `node`, on the next packet in its file and, unless many nodes move, in all others.
    pub fn comment(&mut self, at: Instant, node: NodeId, text: &str) {
        if self.is_full {
            return;
        }
        let many_move = self.many_move;
        for point in self.points.iter_mut().filter(|point| !many_move || point.node == node) {
            point.writer.comment(at, text);
            self.used_bytes = self.used_bytes.saturating_add(comment_bytes(text));
        }
    }

    /// Writes what lies before `before`; nothing earlier may be noted afterwards.
    pub fn flush(&mut self, before: Instant) {
        for point in &mut self.points {
            if let Err(error) = point.writer.flush(before) {
                self.error.get_or_insert(error);
            }
        }
    }

    /// Writes everything, comments on dropped packets included.
    ///
    /// # Errors
    /// The first failure there was.
    pub fn finish(mut self) -> io::Result<Vec<CaptureSummary>> {
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        let (names, limit) = (self.names, self.limit_bytes);
        self.points.into_iter().map(|point| point.finish(&names, limit)).collect()
    }
}

impl VantagePoint {
    fn add_interface(
        &mut self,
        link: usize,
        names: &PlaceNames,
        snap_length: Option<u32>,
    ) -> io::Result<InterfaceId> {
        let title = format!("{}@{}", names.links.get(link).map_or("", String::as_str), self.name);
        let interface = self.writer.add_interface(&title, "", snap_length)?;
        if let Some(place) = self.interfaces.get_mut(link) {
            *place = Some(interface);
        }
        Ok(interface)
    }

    fn finish(mut self, names: &PlaceNames, limit: u64) -> io::Result<CaptureSummary> {
        let mut drops = std::mem::take(&mut self.drops);
        // Those of one packet stay in the order of time.
        drops.sort_by_key(|drop| drop.packet);
        let left_out = (self.left_out > 0).then(|| {
            format!(
                "{} later packets are not in this file: the captures of this run reached --max-capture, {limit} bytes",
                self.left_out
            )
        });
        if let Some(text) = &left_out {
            self.writer.comment_at_end(text);
        }
        drop(self.writer.finish()?);
        if !drops.is_empty() || left_out.is_some() {
            let whole = self.path.with_extension("pcapng.whole");
            let from = BufReader::with_capacity(BUFFER_BYTES, File::open(&self.path)?);
            let to = BufWriter::with_capacity(BUFFER_BYTES, File::create(&whole)?);
            let mut told = Seen::default();
            annotate(from, to, |packet, comments| {
                let mut next = drops.partition_point(|drop| drop.packet < packet);
                let is_last = left_out.is_some() && self.last == Some(packet);
                let has_any = is_last || drops.get(next).is_some_and(|drop| drop.packet == packet);
                if !has_any || told.has(packet) {
                    return;
                }
                told.add(packet);
                while let Some(drop) = drops.get(next).filter(|drop| drop.packet == packet) {
                    comments.push(names.text(drop));
                    next += 1;
                }
                comments.extend(left_out.clone().filter(|_| is_last));
            })?;
            fs::rename(&whole, &self.path)?;
        }
        Ok(CaptureSummary {
            node: self.name,
            packets: self.packets,
            bytes: fs::metadata(&self.path)?.len(),
            headers_only: self.headers_only,
            left_out: self.left_out,
        })
    }
}
