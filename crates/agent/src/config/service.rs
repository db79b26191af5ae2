//! What the daemon around the agent is told: sockets, metrics, log, store, and what it takes of the host.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use careof_document::decode::{Field, Reader};
use careof_document::error::Problems;

use super::Source;
use super::fields::{count, given, interface, path};
use super::reference::{CONTROL, HOST, LOG, METRICS, STORE};
use crate::HostOptions;

/// Where control sockets are.
pub(crate) const RUN_DIRECTORY: &str = "/run/careof";
/// The address of a unix socket has 108 bytes, one of them its end.
const LONGEST_SOCKET_PATH: usize = 107;

/// How the daemon serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Service {
    /// The control socket.
    pub control: PathBuf,
    /// Where metrics are served; `None`: nowhere.
    pub metrics: Option<SocketAddr>,
    /// Mobile nodes up to which each of their tunnels has metrics of its own.
    pub tunnels_up_to: usize,
    /// The least important lines that are logged.
    pub level: Level,
    /// How a line of the log looks.
    pub format: Format,
    /// The file that keeps a home agent's bindings.
    pub store: PathBuf,
}

const DEFAULT_TUNNELS_UP_TO: usize = 1000;
/// With more of them one look at the metrics would hold up the agent.
const MOST_TUNNELS: u64 = 10_000;

/// How important a line of the log is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// The agent cannot do its work.
    Error,
    /// Something is not as it should be.
    Warn,
    /// What happens: registrations, handovers, bindings.
    #[default]
    Info,
    /// Every message.
    Debug,
}

/// How a line of the log looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Format {
    /// A sentence and `key=value` pairs.
    #[default]
    Text,
    /// An object.
    Json,
}

pub(super) fn service(reader: &Reader<'_>, source: Source<'_>, problems: &mut Problems) -> Option<Service> {
    let before = problems.count();
    let control = given(reader, "control", problems, |field, p| control(field, source, p));
    let control = control.or_else(|| default_control(source, problems));
    let metrics = given(reader, "metrics", problems, metrics);
    let (metrics, tunnels_up_to) = metrics.map_or((None, None), |(listen, most)| (Some(listen), most));
    let log = given(reader, "log", problems, log).unwrap_or_default();
    let file = format!("{}.redb", source.name());
    let store = if reader.knows("store") {
        given(reader, "store", problems, |f, p| directory(f, source, p))
    } else {
        None
    };
    let store = store.unwrap_or_else(|| PathBuf::from("/var/lib/careof")).join(file);
    (problems.count() == before).then_some(())?;
    let tunnels_up_to = tunnels_up_to.unwrap_or(DEFAULT_TUNNELS_UP_TO);
    Some(Service { control: control?, metrics, tunnels_up_to, level: log.0, format: log.1, store })
}

fn control(field: &Field<'_>, source: Source<'_>, problems: &mut Problems) -> Option<PathBuf> {
    let reader = field.reader(&CONTROL, problems)?;
    let field = reader.get("socket")?;
    let socket = path(&field, source.directory, problems)?;
    if socket.as_os_str().len() > LONGEST_SOCKET_PATH {
        field.wrong(format!("the path of a socket has at most {LONGEST_SOCKET_PATH} bytes"), None, problems);
        return None;
    }
    Some(socket)
}

fn default_control(source: Source<'_>, problems: &mut Problems) -> Option<PathBuf> {
    let socket = Path::new(RUN_DIRECTORY).join(format!("{}.sock", source.name()));
    if socket.as_os_str().len() > LONGEST_SOCKET_PATH {
        let expected = format!("the path of a socket has at most {LONGEST_SOCKET_PATH} bytes");
        let hint = "write [control] with socket = \"/run/careof/agent.sock\"".to_owned();
        let place = (careof_document::error::Origin::File(0), "control.socket");
        problems.add(place, "a file with a long name", expected, Some(hint));
        return None;
    }
    Some(socket)
}

/// Where they are served, and up to how many tunnels each has its own.
fn metrics(field: &Field<'_>, problems: &mut Problems) -> Option<(SocketAddr, Option<usize>)> {
    let reader = field.reader(&METRICS, problems)?;
    let most = given(&reader, "tunnels_up_to", problems, |field, p| count(field, 0, MOST_TUNNELS, p));
    listen(&reader, problems).map(|address| (address, most))
}

fn listen(reader: &Reader<'_>, problems: &mut Problems) -> Option<SocketAddr> {
    const EXPECTED: &str = "it must be an address and a port, such as \"127.0.0.1:9434\"";
    let allow_remote = given(reader, "allow_remote", problems, |f, p| f.boolean(p)).unwrap_or(false);
    let Some(field) = reader.get("listen") else {
        return Some(SocketAddr::from(([127, 0, 0, 1], 9434)));
    };
    let text = field.text(problems)?;
    let Ok(address) = text.parse::<SocketAddr>() else {
        let hint = match text.strip_prefix("localhost:").or_else(|| text.strip_prefix(':')) {
            Some(port) => Some(format!("write \"127.0.0.1:{port}\"")),
            None if text.parse::<std::net::IpAddr>().is_ok() => Some(format!("write \"{text}:9434\"")),
            None => None,
        };
        field.wrong(EXPECTED, hint, problems);
        return None;
    };
    if !address.ip().is_loopback() && !allow_remote {
        let hint =
            "write allow_remote = true if everybody there may know the home addresses and where they are";
        field.wrong("it must be a loopback address", Some(hint.to_owned()), problems);
        return None;
    }
    Some(address)
}

fn log(field: &Field<'_>, problems: &mut Problems) -> Option<(Level, Format)> {
    const LEVELS: [(&str, Level); 4] =
        [("error", Level::Error), ("warn", Level::Warn), ("info", Level::Info), ("debug", Level::Debug)];
    const FORMATS: [(&str, Format); 2] = [("text", Format::Text), ("json", Format::Json)];
    let reader = field.reader(&LOG, problems)?;
    let level = given(&reader, "level", problems, |field, p| field.choice(&LEVELS, &[], p));
    let format = given(&reader, "format", problems, |field, p| field.choice(&FORMATS, &[], p));
    Some((level.unwrap_or_default(), format.unwrap_or_default()))
}

fn directory(field: &Field<'_>, source: Source<'_>, problems: &mut Problems) -> Option<PathBuf> {
    let reader = field.reader(&STORE, problems)?;
    given(&reader, "directory", problems, |field, p| path(field, source.directory, p))
}

/// What the agent takes of the host.
pub(super) fn host(reader: &Reader<'_>, problems: &mut Problems) -> HostOptions {
    let mut host = HostOptions::default();
    let Some(reader) = reader.get("host").and_then(|field| field.reader(&HOST, problems)) else {
        return host;
    };
    host_in_common(&reader, (576, 65_515), &mut host, problems);
    if let Some(floor) =
        given(&reader, "path_mtu_floor", problems, |field, p| field.packet_size(576, 65_535, p))
    {
        host.path_mtu_floor = floor;
    }
    if let Some(offloads) = given(&reader, "offloads", problems, |field, p| field.boolean(p)) {
        host.offloads = offloads;
    }
    host
}

/// What agents of both versions of IP take of the host; `mtus` are the least and the most for the tunnel.
pub(super) fn host_in_common(
    reader: &Reader<'_>,
    mtus: (u16, u16),
    host: &mut HostOptions,
    problems: &mut Problems,
) {
    if let Some(name) = given(reader, "tunnel_device", problems, interface) {
        host.tunnel_device = name;
    }
    if let Some(mtu) = given(reader, "tunnel_mtu", problems, |field, p| field.packet_size(mtus.0, mtus.1, p))
    {
        host.tunnel_mtu = mtu;
    }
    // Tables 253 to 255 are the kernel's own, and lower ones people's.
    let last = u64::from(u32::MAX - HostOptions::TABLES);
    if let Some(table) = given(reader, "first_table", problems, |field, p| field.integer(256, last, p)) {
        host.first_table = u32::try_from(table).unwrap_or(host.first_table);
    }
    // The kernel looks up its own table at 0, and main at 32766.
    let last = u64::from(32_766 - HostOptions::PRIORITIES);
    if let Some(priority) = given(reader, "first_priority", problems, |field, p| field.integer(1, last, p)) {
        host.first_priority = u32::try_from(priority).unwrap_or(host.first_priority);
    }
    if let Some(set) = given(reader, "set_kernel_parameters", problems, |field, p| field.boolean(p)) {
        host.set_kernel_parameters = set;
    }
}
