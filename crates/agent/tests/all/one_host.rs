//! `careof-agent` as a process, on a host of its own: who asks it, what it keeps, how it ends.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::Duration;

use careof_agent::BindingStore as _;
use careof_agent::store::Store;
use careof_lab::{Clock, Error, Host, InterfaceConfig, Netlink, Realm, Tun};
use careof_mobility::v4::{MobileNodeRecord, NtpTime};
use careof_wire::mip4::{
    Algorithm, AuthenticationKind, Identification, Lifetime, Message, RegistrationRequest, ReplyCode,
    RequestFlags, Spi, append_authentication,
};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

#[expect(clippy::disallowed_types, reason = "what is tested is of the real world")]
type Udp = std::net::UdpSocket;
#[expect(clippy::disallowed_types, reason = "what is tested is of the real world")]
type Tcp = std::net::TcpStream;

mod many;

const AGENT: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const NODE: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 10);
/// An address of the same host, from which the mobile node registers.
const CARE_OF: Ipv4Addr = Ipv4Addr::new(10, 9, 9, 9);
const KEY: &str = "8f1c2a77d09be43516a0c7f92e5d3b48";
/// Longer than anything here takes on the busiest machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// A host with a home network, and a directory for an agent on it.
struct Place {
    host: Host,
    directory: tempfile::TempDir,
    _lan: Tun,
}

fn place_or_skip() -> Option<Place> {
    let place = || -> Result<Place, Error> {
        let host = Realm::enter()?.host("agent")?;
        let lan = host.attach(&InterfaceConfig::new("lan", IpAddr::V4(AGENT), 24))?;
        host.run(|| {
            let mut netlink = Netlink::open()?;
            let loopback = netlink.index_of("lo")?;
            netlink.add_address(loopback, IpAddr::V4(CARE_OF), 32)
        })??;
        let directory = tempfile::tempdir().unwrap();
        Ok(Place { host, directory, _lan: lan })
    };
    place().inspect_err(careof_testbed::skip_for).ok()
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let clock = Clock::start();
    while !is_so() {
        assert!(clock.now().since_start() < PATIENCE, "waited in vain: {what}");
        #[expect(clippy::disallowed_methods, reason = "what is tested are other processes")]
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn careof_agent() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_careof-agent"));
    command.env_remove("NOTIFY_SOCKET").env_remove("JOURNAL_STREAM").stdin(Stdio::null());
    command
}

fn agent(arguments: &[&str]) -> Output {
    careof_agent().args(arguments).output().unwrap()
}

fn agent_at(socket: &Path) -> Output {
    agent(&["status", "--socket", socket.to_str().unwrap()])
}

impl Place {
    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Writes the configuration of a home agent.
    fn configure(&self, more: &str) {
        let text = format!(
            "role = \"home\"\naddress = \"{AGENT}\"\nhome_network = \"192.0.2.0/24\"\ninterface = \"lan\"\n\
             control = {{ socket = \"home.sock\" }}\nstore = {{ directory = \".\" }}\n{more}\n\
             [[mobile_node]]\nhome_address = \"{NODE}\"\nspi = 256\nkey = \"{KEY}\"\n"
        );
        fs::write(self.path("home.toml"), text).unwrap();
        fs::set_permissions(self.path("home.toml"), fs::Permissions::from_mode(0o600)).unwrap();
    }

    fn launch(&self) -> Child {
        self.launch_with(careof_agent())
    }

    fn launch_with(&self, mut command: Command) -> Child {
        let log = fs::File::options().create(true).append(true).open(self.path("log")).unwrap();
        command.arg(self.path("home.toml")).stdout(Stdio::null()).stderr(log);
        self.host.spawn(command).unwrap()
    }

    fn start(&self) -> Agent<'_> {
        let agent = Agent { place: self, child: self.launch() };
        wait_until("the agent answers", || agent.ask("--json").status.success());
        agent
    }

    fn log(&self) -> String {
        fs::read_to_string(self.path("log")).unwrap_or_default()
    }

    /// What the agent replies to `request` of the mobile node.
    fn exchange(&self, request: Vec<u8>) -> ReplyCode {
        let exchange = move || {
            let socket = Udp::bind((CARE_OF, 0)).unwrap();
            socket.set_read_timeout(Some(PATIENCE)).unwrap();
            socket.send_to(&request, (AGENT, 434)).unwrap();
            let mut buffer = [0; 1500];
            let (length, _) = socket.recv_from(&mut buffer).unwrap();
            buffer[..length].to_vec()
        };
        match Message::parse(&self.host.run(exchange).unwrap()).unwrap() {
            Message::Reply(reply) => reply.code,
            other => panic!("{other:?}"),
        }
    }

    fn connect(&self, port: SocketAddr) -> Tcp {
        let stream = self.host.run(move || Tcp::connect(port)).unwrap().unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }
}

struct Agent<'a> {
    place: &'a Place,
    child: Child,
}

impl Agent<'_> {
    fn ask(&self, how: &str) -> Output {
        agent(&["status", how, "--socket", self.place.path("home.sock").to_str().unwrap()])
    }

    fn status(&self) -> Value {
        let output = self.ask("--json");
        assert!(output.status.success(), "{}\n{}", String::from_utf8_lossy(&output.stderr), self.place.log());
        serde_json::from_slice(&output.stdout).unwrap()
    }

    fn bindings(&self) -> usize {
        self.status()["bindings"].as_array().unwrap().len()
    }

    fn metrics(&self) -> SocketAddr {
        self.status()["metrics"].as_str().unwrap().parse().unwrap()
    }

    fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(i32::try_from(self.child.id()).unwrap()), signal).unwrap();
    }

    fn end(&mut self, signal: Signal) -> ExitStatus {
        self.signal(signal);
        self.child.wait().unwrap()
    }
}

impl Drop for Agent<'_> {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!("{}", self.place.log());
        }
    }
}

/// A request of the mobile node, `later` after now.
fn request(later: Duration) -> Vec<u8> {
    #[expect(clippy::disallowed_methods, reason = "the agent under test has the real time of day")]
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let request = RegistrationRequest {
        flags: RequestFlags::DECAPSULATION_BY_MOBILE_NODE,
        lifetime: Lifetime::from_secs(600),
        home_address: NODE,
        home_agent: AGENT,
        care_of_address: CARE_OF,
        identification: Identification(NtpTime::from_unix(now + later).to_bits()),
        extensions: Vec::new(),
    };
    let mut bytes = Message::Request(request).emit();
    let key: Vec<u8> = (0..16).map(|at| u8::from_str_radix(&KEY[2 * at..2 * at + 2], 16).unwrap()).collect();
    append_authentication(&mut bytes, AuthenticationKind::MobileHome, Spi(256), Algorithm::HmacMd5, &key);
    bytes
}

#[test]
fn what_a_home_agent_has_promised_outlives_its_death() {
    let Some(place) = place_or_skip() else { return };
    place.configure("");
    let mut first = place.start();
    let old = request(Duration::ZERO);
    assert_eq!(place.exchange(old.clone()).number(), 0);
    assert_eq!(first.bindings(), 1);
    first.end(Signal::SIGKILL);

    let second = place.start();
    assert_eq!(second.bindings(), 1, "the binding is there before the mobile node asks again");
    assert_eq!(place.exchange(old).number(), 133, "what was accepted before cannot be replayed");
    assert_eq!(second.bindings(), 1);
    assert_eq!(place.exchange(request(Duration::from_millis(10))).number(), 0);
    drop(second);
    // An ordinary end is no end of the bindings either.
    let mut third = place.start();
    assert!(third.end(Signal::SIGTERM).success());
    assert_eq!(place.start().bindings(), 1);
}

/// Says to the child of the next test what to do.
const DIE_IN: &str = "CAREOF_AGENT_TEST_DIE_IN";

#[test]
fn a_record_is_there_when_the_process_is_killed_right_after_saving_it() {
    if let Some(directory) = std::env::var_os(DIE_IN) {
        // The child: dies where the reply would leave.
        let mut store = Store::open(&Path::new(&directory).join("home.redb")).unwrap();
        for host in 0..=255 {
            let home_address = Ipv4Addr::new(192, 0, 2, host);
            let record = MobileNodeRecord { home_address, bindings: Vec::new(), replay: Vec::new() };
            store.save(&record).unwrap();
            println!("saved {host}");
            std::io::stdout().flush().unwrap();
        }
        kill(Pid::this(), Signal::SIGKILL).unwrap();
    }
    let directory = tempfile::tempdir().unwrap();
    let child = |kill_after: Option<usize>| {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "one_host::a_record_is_there_when_the_process_is_killed_right_after_saving_it",
                "--nocapture",
            ])
            .env(DIE_IN, directory.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut told = String::new();
        let mut output = child.stdout.take().unwrap();
        let mut buffer = [0; 64];
        while let Ok(count @ 1..) = output.read(&mut buffer) {
            told.push_str(&String::from_utf8_lossy(&buffer[..count]));
            if kill_after.is_some_and(|wanted| told.matches("saved ").count() >= wanted) {
                child.kill().unwrap();
            }
        }
        child.wait().unwrap();
        told.lines().filter(|line| line.starts_with("saved ")).count()
    };
    let path = directory.path().join("home.redb");
    for kill_after in [Some(1), Some(7), Some(40), None] {
        let _ = fs::remove_file(&path);
        let promised = child(kill_after);
        let kept = Store::open(&path).unwrap().load().unwrap().len();
        // The one in whose saving it died may be there, too.
        assert!(
            (promised..=promised + 1).contains(&kept) && promised > 0,
            "{promised} promised, {kept} kept"
        );
    }
}

#[test]
fn one_agent_at_a_time_has_a_socket_and_a_dead_one_has_none() {
    let Some(place) = place_or_skip() else { return };
    place.configure("");
    let mut first = place.start();
    let mode = fs::metadata(place.path("home.sock")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o660);
    let second = place.launch().wait().unwrap();
    assert_eq!(second.code(), Some(1));
    assert!(
        place.log().contains("another careof-agent answers there\n  hint: `careof-agent status --socket")
    );
    assert_eq!(first.bindings(), 0, "the first one goes on");

    first.end(Signal::SIGKILL);
    assert!(place.path("home.sock").exists(), "a killed agent leaves its socket");
    let output = first.ask("--json");
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("nobody listens: the agent has ended"));
    let mut third = place.start();
    assert!(third.end(Signal::SIGTERM).success());
    assert!(!place.path("home.sock").exists(), "one that ends takes it along");

    fs::write(place.path("home.sock"), "precious").unwrap();
    assert_eq!(place.launch().wait().unwrap().code(), Some(1));
    assert_eq!(fs::read(place.path("home.sock")).unwrap(), b"precious");
}

#[test]
fn nobody_who_asks_holds_up_another() {
    let Some(place) = place_or_skip() else { return };
    place.configure("metrics = { listen = \"127.0.0.1:0\" }");
    let agent = place.start();
    let port = agent.metrics();
    let socket = place.path("home.sock");
    // Who says nothing, who says half of it, who talks nonsense, who asks and does not read.
    let mut rude: Vec<UnixStream> = (0..100).map(|_| UnixStream::connect(&socket).unwrap()).collect();
    let lines: [&[u8]; 4] =
        [b"{\"command\":", b"\xff\xfe\n\n\n", b"{\"command\":\"status\"}\n", &[b'x'; 5000]];
    for (one, line) in rude.iter_mut().zip(lines.iter().cycle()) {
        // Some have lost their connection already.
        let _ = one.write_all(line);
    }
    let mut strangers: Vec<Tcp> = (0..100).map(|_| place.connect(port)).collect();
    let requests: [&[u8]; 4] =
        [b"GET /met", b"\0\x01\x02 nonsense\r\n\r\n", b"GET /metrics HTTP/1.1\r\n\r\n", &[b'A'; 9000]];
    for (one, line) in strangers.iter_mut().zip(requests.iter().cycle()) {
        let _ = one.write_all(line);
    }
    for _ in 0..5 {
        assert_eq!(agent.bindings(), 0);
        assert!(get(&place, port, "/metrics").starts_with("HTTP/1.1 200 OK\r\n"));
    }
    assert_eq!(place.exchange(request(Duration::ZERO)).number(), 0, "and the agent does its work");
    let refused = |text: &str, server: &str| -> u64 {
        let line = format!("careof_clients_refused_total{{server=\"{server}\"}} ");
        text.lines().find_map(|found| found.strip_prefix(&line)).unwrap().parse().unwrap()
    };
    let text = get(&place, port, "/metrics");
    assert!(refused(&text, "control") > 0 && refused(&text, "metrics") > 0, "{text}");

    // Nonsense is answered.
    let mut one = UnixStream::connect(&socket).unwrap();
    one.write_all(b"status\n").unwrap();
    let mut answer = String::new();
    one.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("{\"error\":\"this is no request"), "{answer}");
    assert!(get(&place, port, "/").starts_with("HTTP/1.1 404 "));
}

fn get(place: &Place, port: SocketAddr, path: &str) -> String {
    let mut stream = place.connect(port);
    write!(stream, "GET {path} HTTP/1.1\r\nHost: agent\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn the_metrics_say_what_happened() {
    let Some(place) = place_or_skip() else { return };
    place.configure("metrics = { listen = \"127.0.0.1:0\" }");
    let agent = place.start();
    assert_eq!(place.exchange(request(Duration::ZERO)).number(), 0);
    assert_eq!(place.exchange(request(Duration::from_secs(3600))).number(), 133);
    let answer = get(&place, agent.metrics(), "/metrics");
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.contains("Content-Type: application/openmetrics-text; version=1.0.0"), "{head}");
    assert!(head.contains(&format!("Content-Length: {}", body.len())), "{head}");
    for line in [
        "careof_bindings 1.0",
        "careof_denied_total{code=\"133\"} 1",
        "careof_dropped_total{cause=\"replayed\"} 1",
        "careof_events_total{name=\"registrations-accepted\"} 1",
        "careof_events_total{name=\"bindings-saved\"} 1",
    ] {
        assert!(body.lines().any(|found| found == line), "{line} is not in\n{body}");
    }
    for line in body.lines().filter(|line| !line.starts_with('#')) {
        let (series, value) = line.rsplit_once(' ').unwrap();
        assert!(series.starts_with("careof_") && value.parse::<f64>().is_ok(), "{line}");
    }
}

#[test]
fn a_configuration_that_is_read_again_counts_or_does_not() {
    let Some(place) = place_or_skip() else { return };
    place.configure("log = { level = \"warn\" }");
    let mut agent = place.start();
    assert_eq!(place.exchange(request(Duration::ZERO)).number(), 0);
    assert!(!place.log().contains("INFO"), "{}", place.log());

    place.configure("max_lifetime = \"a while\"");
    agent.signal(Signal::SIGHUP);
    wait_until("it complains", || place.log().contains("The old configuration stays in force"));
    let status = agent.status();
    let problem = status["configuration_problems"][0].as_str().unwrap();
    assert!(
        problem.contains("max_lifetime: found \"a while\"") && problem.contains("home.toml:7:"),
        "{problem}"
    );

    // What needs a new start is refused as a whole.
    place.configure("host = { tunnel_device = \"other0\" }");
    agent.signal(Signal::SIGHUP);
    wait_until("it refuses", || {
        agent.status()["configuration_problems"][0]
            .as_str()
            .is_some_and(|problem| problem.contains("tunnel device"))
    });

    place.configure(
        "log = { level = \"debug\" }\nmetrics = { listen = \"127.0.0.1:0\" }\nmax_lifetime = \"60 s\"",
    );
    agent.signal(Signal::SIGHUP);
    wait_until("it is read", || place.log().contains("Configuration read again"));
    assert_eq!(agent.status()["configuration_problems"], serde_json::json!([]));
    assert_eq!(agent.bindings(), 1, "no binding is lost");
    assert!(get(&place, agent.metrics(), "/metrics").contains("careof_bindings 1.0"));
    assert!(
        get(&place, agent.metrics(), "/metrics").contains("careof_reloads_total{outcome=\"rejected\"} 2")
    );
    assert_eq!(place.exchange(request(Duration::from_millis(10))).number(), 0);
    assert!(agent.status()["bindings"][0]["left_s"].as_f64().unwrap() <= 60.0);
    assert!(place.log().contains("DEBUG"));

    let elsewhere = place.path("elsewhere.sock");
    let text = fs::read_to_string(place.path("home.toml")).unwrap();
    fs::write(place.path("home.toml"), text.replace("home.sock", "elsewhere.sock")).unwrap();
    agent.signal(Signal::SIGHUP);
    wait_until("it answers elsewhere", || agent_at(&elsewhere).status.success());
    assert!(!place.path("home.sock").exists());
    assert!(agent.end(Signal::SIGTERM).success());
}

#[test]
fn the_log_is_json_where_it_is_asked_for_and_survives_a_flood() {
    let Some(place) = place_or_skip() else { return };
    place.configure("log = { format = \"json\" }");
    let mut agent = place.start();
    place
        .host
        .run(|| {
            let socket = Udp::bind((CARE_OF, 0)).unwrap();
            for _ in 0..5_000 {
                // What the agent's socket has no room for is not ours to worry about.
                let _ = socket.send_to(b"nonsense", (AGENT, 434));
            }
        })
        .unwrap();
    let dropped = || agent.status()["counters"]["dropped-malformed"].as_u64().unwrap();
    wait_until("the flood is over", || dropped() > 100);
    assert!(agent.end(Signal::SIGINT).success());
    let log = place.log();
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
    let flood = lines.iter().filter(|line| line["message"] == "Message dropped").count();
    assert!((1..60).contains(&flood), "{flood} lines of {}", lines.len());
    assert!(
        lines.iter().any(|line| line["message"] == "Agent started" && line["role"] == "home agent"),
        "{log}"
    );
    assert!(lines.iter().all(|line| line["level"].is_string() && line["timestamp"].is_string()), "{log}");
}

#[test]
fn the_end_leaves_nothing_behind() {
    let Some(place) = place_or_skip() else { return };
    let traces = || {
        let listing = place.host.run(|| {
            let mut netlink = Netlink::open().unwrap();
            let names: Vec<_> = netlink.interfaces().unwrap().into_iter().map(|state| state.name).collect();
            let forwarding = fs::read_to_string("/proc/sys/net/ipv4/ip_forward").unwrap();
            format!(
                "{names:?} {:?} {:?} {forwarding}",
                netlink.rules().unwrap(),
                netlink.routes(254).unwrap()
            )
        });
        listing.unwrap()
    };
    let before = traces();
    place.configure("");
    let mut agent = place.start();
    assert_eq!(place.exchange(request(Duration::ZERO)).number(), 0);
    assert_ne!(traces(), before);
    assert!(agent.end(Signal::SIGTERM).success());
    assert_eq!(traces(), before);
}

#[test]
fn systemd_is_told_how_it_goes() {
    let Some(place) = place_or_skip() else { return };
    let listener = UnixDatagram::bind(place.path("notify")).unwrap();
    listener.set_read_timeout(Some(PATIENCE)).unwrap();
    let told = || {
        let mut buffer = [0; 256];
        let length = listener.recv(&mut buffer).unwrap();
        String::from_utf8_lossy(&buffer[..length]).trim().to_owned()
    };
    // What comes in between, from the watchdog, is passed over.
    let told_next = |wanted: &str| {
        while told() != wanted {}
    };
    place.configure("");
    let mut command = careof_agent();
    command.env("NOTIFY_SOCKET", place.path("notify")).env("WATCHDOG_USEC", "100000");
    let mut agent = Agent { place: &place, child: place.launch_with(command) };
    assert_eq!(told(), "READY=1");
    for _ in 0..3 {
        assert_eq!(told(), "WATCHDOG=1", "with nothing else to do");
    }
    agent.signal(Signal::SIGHUP);
    told_next("RELOADING=1");
    told_next("READY=1");
    assert!(agent.end(Signal::SIGTERM).success());
    told_next("STOPPING=1");
}

#[test]
fn the_command_line_has_manners() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("x.toml");
    let name = file.to_str().unwrap();
    let said = |output: &Output| {
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stdout).into_owned(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        )
    };
    fs::write(&file, "role = \"mobil\"").unwrap();
    for arguments in [&["check", name][..], &[name]] {
        let (status, stdout, stderr) = said(&agent(arguments));
        assert_eq!((status, stdout.as_str()), (Some(2), ""));
        assert_eq!(
            stderr,
            format!(
                "error: {name}:1:8: role: found \"mobil\"; known are \"home\", \"foreign\", \"mobile\", \
                 \"correspondent\", \"anchor-point\" and \"relay\"\n  hint: did you mean \"mobile\"?\n"
            )
        );
    }
    fs::write(
        &file,
        "role = \"foreign\"\ncare_of = \"10.0.0.1\"\n[[interface]]\nname = \"a\"\naddress = \"10.0.0.1\"\n",
    )
    .unwrap();
    assert_eq!(
        said(&agent(&["check", name])),
        (
            Some(0),
            format!("{name}: a foreign agent on 1 link\n"),
            "note: this host has no interface a\n  hint: `ip link` lists what it has; the agent waits until it is there\n"
                .to_owned()
        )
    );
    let (status, stdout, stderr) = said(&agent(&["--version"]));
    assert_eq!((status, stdout.as_str(), stderr.as_str()), (Some(0), "careof-agent 0.1.0\n", ""));
    assert!(said(&agent(&["--help"])).1.contains("Usage: careof-agent FILE"));
    let (status, _, stderr) = said(&agent(&["chekc"]));
    assert!(status == Some(2) && stderr.contains("did you mean `careof-agent check`?"), "{stderr}");
    let (status, _, stderr) = said(&agent(&["status", "--socket", "/nowhere.sock"]));
    assert!(status == Some(1) && stderr.contains("hint: "), "{stderr}");
    // Whoever stops reading is no reason for a complaint.
    let mut child =
        careof_agent().arg("--help").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    assert!(child.wait().unwrap().success());
}
