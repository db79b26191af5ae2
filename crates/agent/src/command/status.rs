//! Asking a running agent.

use std::fs;
use std::io::{self, BufRead as _, BufReader, ErrorKind, Write as _};
use std::net::IpAddr;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use super::{Failure, shown};
use crate::config::RUN_DIRECTORY;
use crate::daemon::{Answer, Request};

/// An agent that does not answer in that time is stuck.
const PATIENCE: Duration = Duration::from_secs(10);

/// The status of the agent at `socket`, as text.
pub(super) fn status(json: bool, socket: Option<&Path>) -> Result<String, Failure> {
    let status = read(&find(socket)?)?;
    if json {
        // A value has no way to fail.
        let text = serde_json::to_string_pretty(&status).unwrap_or_default();
        return Ok(text + "\n");
    }
    Ok(describe(&status))
}

/// The whole status of the agent at `socket`.
pub(super) fn read(socket: &Path) -> Result<Value, Failure> {
    let mut status = ask(&Request::Status { from: None }, socket)?;
    while let Some(from) = next(&status) {
        let part = ask(&Request::Status { from: Some(from) }, socket)?;
        if next(&part).is_some_and(|next| next <= from) {
            return Err(Failure::new(1, &format!("the agent has told of {from} twice"), None));
        }
        append(&mut status, part);
    }
    Ok(status)
}

/// With which home address a status that is not whole goes on.
fn next(status: &Value) -> Option<IpAddr> {
    status["next"].as_str().and_then(|address| address.parse().ok())
}

/// Puts the next part of a status to what came before. A tunnel of mobile nodes of several parts is one, with the sums.
fn append(status: &mut Value, mut part: Value) {
    for list in ["bindings", "visitors", "tunnels"] {
        if let (Some(all), Some(more)) = (status[list].as_array_mut(), part[list].as_array_mut()) {
            all.append(more);
        }
    }
    status["next"] = part["next"].take();
    if next(status).is_some() {
        return;
    }
    let Some(tunnels) = status["tunnels"].as_array_mut() else { return };
    tunnels.sort_by_cached_key(|tunnel| {
        let address = |name: &str| tunnel[name].as_str().and_then(|text| text.parse::<IpAddr>().ok());
        (address("there"), address("here"))
    });
    tunnels.dedup_by(|tunnel, before| {
        let is_same = tunnel["there"] == before["there"] && tunnel["here"] == before["here"];
        if is_same {
            for sum in ["packets_out", "bytes_out", "packets_in", "bytes_in"] {
                let sum_of = |tunnel: &Value| tunnel[sum].as_u64().unwrap_or(0);
                before[sum] = sum_of(before).saturating_add(sum_of(tunnel)).into();
            }
            if before["mtu"].is_null() {
                before["mtu"] = tunnel["mtu"].take();
            }
        }
        is_same
    });
}

/// Lets the mobile node at `socket` move to `interface`.
pub(super) fn switch(interface: &str, socket: Option<&Path>) -> Result<(), Failure> {
    ask(&Request::Switch { interface: interface.to_owned() }, &find(socket)?).map(drop)
}

/// Has the home or foreign agent at `socket` drop what it holds for the mobile node with this home address.
pub(super) fn drop_mobile_node(address: IpAddr, socket: Option<&Path>) -> Result<(), Failure> {
    ask(&Request::Drop { address }, &find(socket)?).map(drop)
}

/// The control socket: the one that is named, or the only one there is.
pub(super) fn find(socket: Option<&Path>) -> Result<PathBuf, Failure> {
    if let Some(socket) = socket {
        return Ok(socket.to_owned());
    }
    let none = || {
        let hint = "careof-agent FILE starts one; --socket PATH asks one that listens elsewhere";
        Failure::new(1, &format!("no agent runs: there is no socket in {RUN_DIRECTORY}"), Some(hint))
    };
    let entries = fs::read_dir(RUN_DIRECTORY).map_err(|_| none())?;
    let mut sockets: Vec<PathBuf> = entries
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "sock"))
        .collect();
    sockets.sort();
    match sockets.as_slice() {
        [] => Err(none()),
        [only] => Ok(only.clone()),
        several => {
            let names: Vec<_> = several.iter().map(|path| shown(path.as_os_str())).collect();
            let hint = format!("choose one: --socket {}", names.join(" or --socket "));
            Err(Failure::new(2, "several agents run here", Some(&hint)))
        }
    }
}

/// What the agent at `socket` answers to `request`.
fn ask(request: &Request, socket: &Path) -> Result<Value, Failure> {
    let place = shown(socket.as_os_str());
    let answer = exchange(request, socket).map_err(|error| {
        let (what, hint) = match error.kind() {
            ErrorKind::NotFound => {
                ("there is no such socket".to_owned(), "careof-agent FILE starts an agent")
            }
            ErrorKind::ConnectionRefused => {
                ("nobody listens: the agent has ended".to_owned(), "careof-agent FILE starts an agent")
            }
            ErrorKind::PermissionDenied => {
                ("no permission".to_owned(), "run it as root, or as a member of the socket's group")
            }
            ErrorKind::WouldBlock | ErrorKind::TimedOut => {
                ("no answer".to_owned(), "the agent is stuck; its log may say why")
            }
            _ => (error.to_string(), "is it the control socket of a careof-agent?"),
        };
        Failure::new(1, &format!("cannot ask the agent at {place}: {what}"), Some(hint))
    })?;
    match answer {
        Answer::Done { ok } => Ok(ok),
        Answer::Failed { error, hint } => Err(Failure::new(1, &error, hint.as_deref())),
    }
}

fn exchange(request: &Request, socket: &Path) -> io::Result<Answer> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut line = serde_json::to_vec(request)?;
    line.push(b'\n');
    stream.write_all(&line)?;
    let mut answer = Vec::new();
    BufReader::new(stream).read_until(b'\n', &mut answer)?;
    Ok(serde_json::from_slice(&answer)?)
}

/// A status for people.
fn describe(status: &Value) -> String {
    let mut out = String::new();
    let role = match status["role"].as_str() {
        Some("home") => "home agent",
        Some("foreign") => "foreign agent",
        Some("mobile") => "mobile node",
        Some("correspondent") => "correspondent node",
        Some("anchor-point") => "mobility anchor point",
        Some("access-router") => "access router",
        Some("relay") => "relay",
        _ => "agent",
    };
    let mut head = vec![role.to_owned()];
    if let Some(uptime) = status["uptime_s"].as_f64() {
        head.push(format!("up {}", span(uptime)));
    }
    head.extend(status["configuration"].as_str().map(str::to_owned));
    head.extend(status["pid"].as_u64().map(|pid| format!("pid {pid}")));
    out.push_str(&head.join(", "));
    out.push('\n');
    if status["configuration_problems"].as_array().is_some_and(|problems| !problems.is_empty()) {
        out.push_str("the configuration was changed since, but not for the better:\n");
        for problem in status["configuration_problems"].as_array().into_iter().flatten() {
            for line in problem.as_str().unwrap_or_default().lines() {
                out.push_str(&format!("  {line}\n"));
            }
        }
    }
    if let Some(problem) = status["store"]["problem"].as_str() {
        let since = status["store"]["failing_s"].as_f64().map(span).unwrap_or_default();
        let unsaved = text(&status["store"]["unsaved"]);
        out.push_str(&format!(
            "nothing can be written down for {since}: {problem}\n  mobile nodes that a crash would set back: {unsaved}\n"
        ));
    }
    if let Some(pending @ 1..) = status["host_changes_pending"].as_u64() {
        out.push_str(&format!("{pending} changes of the host are still to be made\n"));
    }
    if let Some(problem) = status["network_problem"].as_str() {
        out.push_str(&format!(
            "interfaces and addresses are as they were; the agent tries again: {problem}\n"
        ));
    }
    if let Some(missing) = status["missing_addresses"].as_array().filter(|missing| !missing.is_empty()) {
        let missing = missing.iter().map(text).collect::<Vec<_>>().join(", ");
        out.push_str(&format!(
            "this host does not have {missing}: nobody reaches the agent there\n  hint: ip address add ADDRESS dev INTERFACE\n"
        ));
    }
    if let registration @ Value::Object(_) = &status["registration"] {
        out.push_str(&format!("\n{}\n", registered(registration)));
    }
    if let cluster @ Value::Object(_) = &status["cluster"] {
        out.push_str(&format!("\n{}\n", in_cluster(cluster)));
    }
    if let relay @ Value::Object(_) = &status["relay"] {
        out.push_str(&format!("\n{}\n", lent(relay)));
    }
    let left = |row: &Value| row["left_s"].as_f64().map_or_else(|| "for ever".to_owned(), span);
    table(
        &mut out,
        "bindings",
        &status["bindings"],
        &[
            ("home address", &|row| text(&row["home_address"])),
            ("care-of", &|row| text(&row["care_of"])),
            ("left", &left),
            ("tunnel", &|row| text(&row["encapsulation"])),
            ("reverse", &|row| text(&row["reverse_tunnel"])),
        ],
    );
    table(
        &mut out,
        "visitors",
        &status["visitors"],
        &[
            ("home address", &|row| text(&row["home_address"])),
            ("home agent", &|row| text(&row["home_agent"])),
            ("care-of", &|row| text(&row["care_of"])),
            ("interface", &|row| text(&row["interface"])),
            ("left", &left),
        ],
    );
    table(
        &mut out,
        "relays in use",
        &status["cluster"]["relays"],
        &[("relay", &|row| text(&row["relay"])), ("care-of", &|row| text(&row["care_of"]))],
    );
    table(
        &mut out,
        "allies",
        &status["relay"]["allies"],
        &[
            ("home address", &|row| text(&row["home_address"])),
            ("in the cluster", &|row| text(&row["client"])),
            ("left", &left),
            ("packets in", &|row| text(&row["packets_in"])),
            ("bytes in", &|row| text(&row["bytes_in"])),
            ("packets out", &|row| text(&row["packets_out"])),
            ("bytes out", &|row| text(&row["bytes_out"])),
        ],
    );
    table(
        &mut out,
        "interfaces",
        &status["interfaces"],
        &[
            ("name", &|row| text(&row["name"])),
            ("state", &|row| if row["up"] == true { "up".to_owned() } else { "down".to_owned() }),
            ("address", &|row| text(&row["address"])),
            ("gateway", &|row| text(&row["gateway"])),
        ],
    );
    let paths = status["interfaces"].as_array().into_iter().flatten();
    let paths = paths.filter(|row| !row["path"].is_null()).cloned().collect();
    let ms = |value: &Value| value.as_f64().map_or_else(|| "-".to_owned(), |ms| format!("{ms:.1} ms"));
    let both = |out: &Value, into: &Value, show: &dyn Fn(f64) -> String| {
        let show = |value: &Value| value.as_f64().map_or_else(|| "-".to_owned(), show);
        format!("{} / {}", show(out), show(into))
    };
    table(
        &mut out,
        "paths",
        &Value::Array(paths),
        &[
            ("interface", &|row| text(&row["name"])),
            ("state", &|row| text(&row["path"]["state"])),
            ("round trip", &|row| ms(&row["path"]["round_trip_ms"])),
            ("variation", &|row| ms(&row["path"]["variation_ms"])),
            ("loss out / in", &|row| {
                both(&row["path"]["loss_out"], &row["path"]["loss_in"], &|part| {
                    format!("{:.1} %", part * 100.0)
                })
            }),
            ("delivered out / in", &|row| {
                let rate = |bits: f64| format!("{:.0} kbit/s", bits / 1000.0);
                both(&row["path"]["delivered_out"], &row["path"]["delivered_in"], &rate)
            }),
            ("heard", &|row| {
                row["path"]["received_ago_s"]
                    .as_f64()
                    .map_or_else(|| "-".to_owned(), |s| format!("{s:.1} s ago"))
            }),
            ("quality", &|row| match row["path"]["fault"].as_str() {
                Some(fault) => format!("bad: {fault}"),
                None if row["path"]["avoided"] == true => "avoided".to_owned(),
                None => "-".to_owned(),
            }),
        ],
    );
    table(
        &mut out,
        "tunnels",
        &status["tunnels"],
        &[
            ("from", &|row| text(&row["here"])),
            ("to", &|row| text(&row["there"])),
            ("packets out", &|row| text(&row["packets_out"])),
            ("bytes out", &|row| text(&row["bytes_out"])),
            ("packets in", &|row| text(&row["packets_in"])),
            ("bytes in", &|row| text(&row["bytes_in"])),
        ],
    );
    let milliseconds =
        |value: &Value| value.as_f64().map_or_else(|| "-".to_owned(), |ms| format!("{ms:.1} ms"));
    let end = |address: &Value, port: &Value| match text(address) {
        ipv6 if ipv6.contains(':') => format!("[{ipv6}]:{}", text(port)),
        ipv4 => format!("{ipv4}:{}", text(port)),
    };
    table(
        &mut out,
        "assisted connections",
        &status["assist"]["flows"],
        &[
            ("mobile node", &|row| end(&row["home_address"], &row["port"])),
            ("correspondent", &|row| end(&row["peer"], &row["peer_port"])),
            ("stored", &|row| format!("{} / {} B", text(&row["packets"]), text(&row["bytes"]))),
            ("last stall", &|row| milliseconds(&row["stall_ms"])),
            ("on new path", &|row| milliseconds(&row["stall_after_path_ms"])),
            ("done", &|row| deeds(&row["done"])),
        ],
    );
    table(
        &mut out,
        "last handovers",
        &status["handovers"],
        &[
            ("at", &|row| row["at_s"].as_f64().map_or_else(String::new, |at| format!("{at:.3} s"))),
            ("from", &|row| text(&row["from"])),
            ("to", &|row| text(&row["to"])),
            ("why", &|row| text(&row["reason"])),
            ("phase", &|row| text(&row["phase"])),
            ("care-of", &|row| text(&row["care_of"])),
            ("latency", &|row| {
                row["latency_ms"].as_f64().map_or_else(|| "-".to_owned(), |ms| format!("{ms:.1} ms"))
            }),
        ],
    );
    counters(&mut out, &status["counters"]);
    out
}

/// What assists did for a connection: `replay 12 packets`, ...
fn deeds(done: &Value) -> String {
    let said = |deed: &Value| {
        let (assist, what) = (text(&deed["assist"]), text(&deed["what"]));
        let what = if what == assist { assist } else { format!("{assist} {what}") };
        format!("{what} {} packets", text(&deed["packets"]))
    };
    let said: Vec<_> = done.as_array().into_iter().flatten().map(said).collect();
    if said.is_empty() { "-".to_owned() } else { said.join(", ") }
}

/// How a mobile node is in its cluster.
fn in_cluster(cluster: &Value) -> String {
    let (interface, known) = (text(&cluster["interface"]), text(&cluster["known"]));
    if cluster["address"].is_null() {
        return format!("not in the cluster: {interface} is down or has no IPv4 address");
    }
    format!("in the cluster as {} on {interface}; relays known: {known}", text(&cluster["address"]))
}

/// What a relay lends.
fn lent(relay: &Value) -> String {
    let allies = relay["allies"].as_array().map_or(0, Vec::len);
    let most = text(&relay["most_allies"]);
    match (relay["cluster"].as_str(), relay["outside"].as_str()) {
        (Some(cluster), Some(outside)) => {
            format!("lends {outside} to the cluster, where it is {cluster}; allies: {allies} of {most}")
        }
        (None, _) => "lends nothing: it has no address in the cluster".to_owned(),
        (_, None) => "lends nothing: its link has no address".to_owned(),
    }
}

fn registered(registration: &Value) -> String {
    let home_address = text(&registration["home_address"]);
    let agent = text(&registration["home_agent"]);
    let interface = text(&registration["interface"]);
    if registration["at_home"] == true {
        return format!("{home_address} is at home on {interface}");
    }
    if registration["registered"] == true {
        let care_of = text(&registration["care_of"]);
        if registration["anchor_point"].is_string() {
            let map = text(&registration["anchor_point"]);
            let on_link = text(&registration["on_link_care_of"]);
            return format!(
                "{home_address} is registered with {agent}: regional care-of address {care_of} at the mobility anchor point {map}, which knows {on_link} on {interface}"
            );
        }
        return format!(
            "{home_address} is registered with {agent}: care-of address {care_of} on {interface}"
        );
    }
    format!("{home_address} is not registered with {agent}")
}

/// What was counted and is not zero.
fn counters(out: &mut String, counters: &Value) {
    let counted: Vec<_> =
        counters.as_object().into_iter().flatten().filter(|(_, value)| value.as_u64() != Some(0)).collect();
    if counted.is_empty() {
        return;
    }
    out.push_str("\ncounters\n");
    let width = counted.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    for (name, value) in counted {
        out.push_str(&format!("  {name:width$}  {value}\n"));
    }
}

type Column<'a> = (&'static str, &'a dyn Fn(&Value) -> String);

/// A table with a title; nothing when there are no rows.
fn table(out: &mut String, title: &str, rows: &Value, columns: &[Column<'_>]) {
    let Some(rows) = rows.as_array().filter(|rows| !rows.is_empty()) else { return };
    let mut lines = vec![columns.iter().map(|(name, _)| (*name).to_owned()).collect::<Vec<_>>()];
    lines.extend(rows.iter().map(|row| columns.iter().map(|(_, cell)| cell(row)).collect()));
    let width = |column: usize| {
        lines.iter().filter_map(|line| line.get(column)).map(|cell| cell.chars().count()).max()
    };
    let widths: Vec<usize> = (0..columns.len()).map(|column| width(column).unwrap_or(0)).collect();
    out.push_str(&format!("\n{title}\n"));
    for line in &lines {
        let cells: Vec<_> = line.iter().zip(&widths).map(|(cell, &width)| format!("{cell:width$}")).collect();
        out.push_str(&format!("  {}\n", cells.join("  ").trim_end()));
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        other => other.to_string(),
    }
}

/// Seconds as people say them.
fn span(seconds: f64) -> String {
    // Below a century; a cast of what is out of range saturates.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a time that has passed")]
    let whole = seconds.max(0.0) as u64;
    match whole {
        0..=59 => format!("{seconds:.1} s"),
        60..=3599 => format!("{} min {} s", whole / 60, whole % 60),
        3600..=86_399 => format!("{} h {} min", whole / 3600, whole % 3600 / 60),
        _ => format!("{} d {} h", whole / 86_400, whole % 86_400 / 3600),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_status_reads_like_a_page() {
        let status = json!({
            "role": "home", "uptime_s": 3725.0, "configuration": "home.toml", "pid": 7, "configuration_problems": [],
            "registration": null, "visitors": [], "tunnels": [], "handovers": [],
            "bindings": [{"home_address": "192.0.2.10", "care_of": "10.0.0.7", "left_s": 61.0,
                          "encapsulation": "ip-in-ip", "reverse_tunnel": true}],
            "interfaces": [{"name": "eth0", "up": true, "address": "192.0.2.1/24", "gateway": null}],
            "counters": {"messages-received": 3, "dropped-malformed": 0},
        });
        assert_eq!(
            describe(&status),
            "home agent, up 1 h 2 min, home.toml, pid 7\n\
             \nbindings\n  home address  care-of   left       tunnel    reverse\n  \
             192.0.2.10    10.0.0.7  1 min 1 s  ip-in-ip  yes\n\
             \ninterfaces\n  name  state  address       gateway\n  eth0  up     192.0.2.1/24  -\n\
             \ncounters\n  messages-received  3\n"
        );
    }

    #[test]
    fn a_status_in_parts_becomes_one() {
        let tunnel = |there: &str, packets: u64| {
            json!({"here": "192.0.2.1", "there": there, "mtu": null, "packets_out": packets, "bytes_out": 10,
                   "packets_in": 0, "bytes_in": 0})
        };
        let mut status = json!({"role": "home", "bindings": [1, 2], "next": "10.0.0.3",
                                "tunnels": [tunnel("10.9.0.1", 1), tunnel("10.9.0.2", 2)]});
        let second =
            json!({"role": "home", "bindings": [3], "next": "10.0.0.4", "tunnels": [tunnel("10.9.0.1", 4)]});
        let last = json!({"role": "home", "bindings": [4], "next": null, "tunnels": [tunnel("10.9.0.2", 8)]});
        assert_eq!(next(&status), Some(IpAddr::from([10, 0, 0, 3])));
        append(&mut status, second);
        assert_eq!(next(&status), Some(IpAddr::from([10, 0, 0, 4])));
        append(&mut status, last);
        assert_eq!((next(&status), &status["bindings"]), (None, &json!([1, 2, 3, 4])));
        let packets =
            |at: usize| (status["tunnels"][at]["there"].as_str(), &status["tunnels"][at]["packets_out"]);
        assert_eq!(packets(0), (Some("10.9.0.1"), &json!(5)));
        assert_eq!(packets(1), (Some("10.9.0.2"), &json!(10)));
        assert_eq!(status["tunnels"].as_array().map(Vec::len), Some(2));
    }

    #[test]
    fn a_connection_that_was_helped_is_told_of() {
        let done = json!([{"assist": "replay", "what": "replay", "times": 1, "packets": 12, "bytes": 18000}]);
        let flow = json!({"home_address": "192.0.2.10", "port": 40000, "peer": "10.9.0.2", "peer_port": 80,
                          "packets": 3, "bytes": 4500, "stall_ms": 1012.5, "stall_after_path_ms": 12.25, "done": done});
        let text = describe(&json!({"role": "home", "assist": {"flows": [flow]}}));
        assert!(
            text.ends_with(
                "assisted connections\n  mobile node       correspondent  stored      last stall  on new path  done\n  \
                 192.0.2.10:40000  10.9.0.2:80    3 / 4500 B  1012.5 ms   12.2 ms      replay 12 packets\n"
            ),
            "{text}"
        );
    }

    #[test]
    fn a_host_that_cannot_be_read_is_told_at_the_top() {
        let text = describe(&json!({"role": "mobile", "network_problem": "cannot list the interfaces"}));
        assert!(text.ends_with("the agent tries again: cannot list the interfaces\n"), "{text}");
    }

    #[test]
    fn an_address_that_the_host_lacks_is_told_at_the_top() {
        let status = json!({"role": "foreign", "missing_addresses": ["10.0.0.1", "10.0.0.2"]});
        assert!(
            describe(&status)
                .starts_with("foreign agent\nthis host does not have 10.0.0.1, 10.0.0.2: nobody")
        );
        assert_eq!(describe(&json!({"role": "home", "missing_addresses": []})), "home agent\n");
    }

    #[test]
    fn a_store_that_fails_is_told_at_the_top() {
        let store = json!({"unsaved": 2, "failing_s": 61.0, "problem": "no space left"});
        let text = describe(&json!({"role": "home", "store": store}));
        assert_eq!(
            text,
            "home agent\nnothing can be written down for 1 min 1 s: no space left\n  \
             mobile nodes that a crash would set back: 2\n"
        );
        let store = json!({"unsaved": 0, "failing_s": null, "problem": null});
        assert_eq!(describe(&json!({"role": "home", "store": store})), "home agent\n");
    }

    #[test]
    fn whatever_an_agent_answers_can_be_described() {
        for odd in [
            json!(null),
            json!([]),
            json!({"role": 7, "bindings": 3, "counters": []}),
            json!({"bindings": [1]}),
        ] {
            let _ = describe(&odd);
        }
    }

    #[test]
    fn an_agent_that_is_not_there_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let missing = directory.path().join("none.sock");
        let error = status(false, Some(&missing)).unwrap_err();
        assert!(error.text.contains("there is no such socket\n  hint: careof-agent FILE"), "{}", error.text);
        assert_eq!(error.status, 1);
        let gone = directory.path().join("gone.sock");
        drop(std::os::unix::net::UnixListener::bind(&gone).unwrap());
        let error = status(false, Some(&gone)).unwrap_err();
        assert!(error.text.contains("the agent has ended"), "{}", error.text);
    }
}
