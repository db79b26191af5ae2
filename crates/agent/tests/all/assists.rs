//! What assists do for the kernel's TCP at a handover.

use std::io::{ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::support::*;
use careof_agent::{HomeSetup, Hooks, MobileSetup, Setup, Status};
use careof_assist::{Config as Assist, Limits, Place, Replay};
use careof_base::{DataRate, Instant};
use careof_lab::{Clock, Host, Realm, SockDiag, TcpFilter, TcpSocket, TcpState};
use careof_link::Config;
use careof_mobility::v4::{DeliveryMethod, Event, HandoverEvent, Notice, PolicyTable};

/// What the tests of replays configure.
pub(crate) fn replay(place: Place) -> Assist {
    // On a busy machine an outage may last longer than what was sent is kept by default.
    let replay = Replay { age: PATIENCE, ..Replay::DEFAULT };
    Assist { replay: Some(replay), ..Assist::none(place) }
}

fn link(mbits: u64, one_way: Duration) -> Config {
    Config { rate: DataRate::from_megabits_per_second(mbits), delay: one_way, ..Config::default() }
}

/// A transfer, as it arrives.
struct Arrival {
    /// When how many bytes had arrived.
    progress: Receiver<(Instant, usize)>,
    received: JoinHandle<Vec<u8>>,
}

/// Reads everything that comes, and tells of each read.
fn receive(mut stream: Tcp, clock: Clock) -> Arrival {
    let (tell, progress) = channel();
    let received = start(move || {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let (mut got, mut buffer) = (Vec::new(), vec![0; 1 << 16]);
        loop {
            match stream.read(&mut buffer) {
                Ok(0) => return got,
                Ok(len) => {
                    got.extend_from_slice(&buffer[..len]);
                    let _ = tell.send((clock.now(), got.len()));
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    eprintln!("after {} bytes: {error}", got.len());
                    return got;
                }
            }
        }
    });
    Arrival { progress, received }
}

/// Until the sender's timer has run out so often that it waits for more than a second and a half from then on: what a
/// handover comes to when nobody helps, however busy the machine is.
const BACKED_OFF: u8 = 3;

/// Waits until the sender of the one connection of a host with a server has backed off.
pub(crate) fn wait_for_back_off(sender: &Host, server: SocketAddr) {
    let mut sockets = sender.run(SockDiag::open).unwrap().unwrap();
    // Its program may have closed it already.
    let is_server = |end: SocketAddr| end == server;
    let is_ours = |socket: &&TcpSocket| {
        socket.state != TcpState::Listen && (is_server(socket.local) || is_server(socket.remote))
    };
    let clock = Clock::start();
    loop {
        let found = sockets.all(&TcpFilter::default()).unwrap();
        let ours = found.iter().find(is_ours);
        if ours.and_then(|socket| socket.info.as_ref()).is_some_and(|info| info.backoff >= BACKED_OFF) {
            return;
        }
        assert!(clock.now().since_start() < PATIENCE, "it has not backed off: {found:#?}");
        sleep(Duration::from_millis(2));
    }
}

/// What came of a transfer through an outage.
struct Outcome {
    /// From the accepted registration to the first byte that arrived after it.
    stall: Duration,
    home: Status,
    mobile: Status,
}

/// Which congestion control the ends use: what the figures are about; it makes no difference to what is tested.
fn control(world: &World) {
    if let Ok(name) = std::env::var("CAREOF_CONTROL") {
        for host in [&world.correspondent, &world.mobile] {
            let name = name.clone();
            host.run(move || careof_lab::set_congestion_control(&name).map(drop)).unwrap().unwrap();
        }
    }
}

/// Sends `bytes` from the correspondent to the mobile node by a link of `mbits` and a round trip of twice `one_way`. In the
/// middle of it nothing gets through until the sender has backed off; then the node moves to another link like the first.
fn download(
    realm: Realm,
    method: DeliveryMethod,
    assist: Option<Assist>,
    (mbits, one_way): (u64, Duration),
    bytes: usize,
) -> Outcome {
    let path = link(mbits, one_way);
    let world = World::with(realm, &path, &path);
    control(&world);
    let home = world.home_agent(HomeSetup { assist, ..home_setup() }, Hooks::default());
    let mut setup = mobile_setup();
    setup.config.policy = PolicyTable::new(method, []);
    setup.config.reverse_tunnel = method == DeliveryMethod::ReverseTunnel;
    let mut mobile = world.mobile_node(setup);
    mobile.with(|node| node.switch_to("wlan0", Notice::None)).unwrap();
    mobile.wait_registered("wlan0");

    let sent = pattern(bytes);
    let listener = world.correspondent.run(|| Listener::bind((CORRESPONDENT, 80))).unwrap().unwrap();
    let server = start({
        let sent = sent.clone();
        move || listener.accept().unwrap().0.write_all(&sent).unwrap()
    });
    let client = world.mobile.run(|| Tcp::connect((CORRESPONDENT, 80))).unwrap().unwrap();
    let arrival = receive(client, world.clock);
    let stall = outage_of(&world, &mut mobile, &world.correspondent, &arrival, bytes / 3);
    server.join().unwrap();
    let received = arrival.received.join().unwrap();
    assert!(received == sent, "{} bytes of {} are what was sent", received.len(), sent.len());
    Outcome { stall, home: home.status(), mobile: mobile.status() }
}

/// As [`download`], from the mobile node to the correspondent, by the reverse tunnel.
fn upload(realm: Realm, assist: Option<Assist>, (mbits, one_way): (u64, Duration), bytes: usize) -> Outcome {
    let path = link(mbits, one_way);
    let world = World::with(realm, &path, &path);
    control(&world);
    let home = world.home_agent(home_setup(), Hooks::default());
    let mut setup = MobileSetup { assist, ..mobile_setup() };
    setup.config.policy = PolicyTable::new(DeliveryMethod::ReverseTunnel, []);
    setup.config.reverse_tunnel = true;
    let mut mobile = world.mobile_node(setup);
    mobile.with(|node| node.switch_to("wlan0", Notice::None)).unwrap();
    mobile.wait_registered("wlan0");

    let sent = pattern(bytes);
    let listener = world.correspondent.run(|| Listener::bind((CORRESPONDENT, 80))).unwrap().unwrap();
    let mut client = world.mobile.run(|| Tcp::connect((CORRESPONDENT, 80))).unwrap().unwrap();
    let server = listener.accept().unwrap().0;
    let arrival = receive(server, world.clock);
    let sender = start({
        let sent = sent.clone();
        move || client.write_all(&sent).unwrap()
    });
    let stall = outage_of(&world, &mut mobile, &world.mobile, &arrival, bytes / 3);
    sender.join().unwrap();
    let received = arrival.received.join().unwrap();
    assert!(received == sent, "{} bytes of {} are what was sent", received.len(), sent.len());
    Outcome { stall, home: home.status(), mobile: mobile.status() }
}

/// After `before` bytes, cuts the link in use until the sender has backed off, moves, and measures.
fn outage_of(
    world: &World,
    mobile: &mut Running,
    sender: &Host,
    arrival: &Arrival,
    before: usize,
) -> Duration {
    while arrival.progress.recv_timeout(PATIENCE).unwrap().1 < before {}
    world.cut(world.wlan);
    wait_for_back_off(sender, SocketAddr::from((CORRESPONDENT, 80)));
    mobile.news();
    mobile.told.clear();
    mobile.with(|node| node.switch_to("gsm0", Notice::None)).unwrap();
    mobile.wait_registered("gsm0");
    mobile.news();
    let registered = |(at, event): &(Instant, Event)| {
        matches!(event, Event::Handover(HandoverEvent::Registered { .. })).then_some(*at)
    };
    let registered = mobile.told.iter().find_map(registered).unwrap();
    let next = std::iter::from_fn(|| arrival.progress.recv_timeout(PATIENCE).ok());
    let (at, _) = next.into_iter().find(|(at, _)| *at > registered).unwrap();
    at.saturating_duration_since(registered)
}

pub(crate) fn counter(status: &Status, name: &str) -> u64 {
    status
        .counters
        .get(name)
        .copied()
        .unwrap_or_else(|| panic!("no counter {name} in {:#?}", status.counters))
}

#[test]
fn a_home_agent_sends_again_what_an_outage_has_cost_a_download() {
    let Some(realm) = realm_or_skip() else { return };
    let path = (10, Duration::from_millis(5));
    for method in [DeliveryMethod::ReverseTunnel, DeliveryMethod::Triangle] {
        let without = download(realm, method, None, path, 2_000_000);
        let with = download(realm, method, Some(replay(Place::HomeAgent)), path, 2_000_000);
        assert!(counter(&with.home, "assist-replayed") > 0);
        assert!(counter(&with.home, "assist-kept") > 0);
        assert_eq!(with.mobile.assist, None);
        assert_eq!(without.home.assist, None);
    }
}

#[test]
#[ignore = "compares measurements: make bench"]
fn a_transfer_goes_on_at_once_after_an_outage() {
    let Some(realm) = realm_or_skip() else { return };
    let path = (10, Duration::from_millis(5));
    let compare = |what: &str, without: Outcome, with: Outcome| {
        eprintln!("{what}: without {:?}, with {:?}", without.stall, with.stall);
        assert!(with.stall * 2 < without.stall, "{what}: {:?} with, {:?} without", with.stall, without.stall);
    };
    for method in [DeliveryMethod::ReverseTunnel, DeliveryMethod::Triangle] {
        let [without, with] = [None, Some(replay(Place::HomeAgent))]
            .map(|assist| download(realm, method, assist, path, 2_000_000));
        compare(&format!("download, {method:?}"), without, with);
    }
    let [without, with] =
        [None, Some(replay(Place::MobileNode))].map(|assist| upload(realm, assist, path, 2_000_000));
    compare("upload", without, with);
}

#[test]
fn a_mobile_node_sends_again_what_an_outage_has_cost_an_upload() {
    let Some(realm) = realm_or_skip() else { return };
    let path = (10, Duration::from_millis(5));
    let with = upload(realm, Some(replay(Place::MobileNode)), path, 2_000_000);
    let again = counter(&with.mobile, "assist-replayed");
    assert!(again > 0 && counter(&with.mobile, "assist-kept") > 0, "{:#?}", with.mobile.counters);
    // The kernel hands over many segments at once; each is kept by itself.
    assert!(counter(&with.mobile, "assist-replayed-bytes") <= 1500 * again, "{:#?}", with.mobile.counters);
    assert_eq!(with.home.assist, None);
}

#[test]
fn no_more_is_kept_than_there_is_room_for() {
    let Some(realm) = realm_or_skip() else { return };
    let path = (10, Duration::from_millis(20));
    let few = Replay { packets: 10, ..Replay::DEFAULT };
    let limits = Limits { packets: 12, ..Limits::DEFAULT };
    let assist = Assist { replay: Some(few), limits, ..Assist::none(Place::HomeAgent) };
    let Outcome { home, .. } = download(realm, DeliveryMethod::ReverseTunnel, Some(assist), path, 1_000_000);
    assert!(counter(&home, "assist-not-kept") > 0, "{:#?}", home.counters);
    let assist = home.assist.unwrap();
    assert!(assist.stored_packets <= 12, "{assist:#?}");
    let flow = &assist.flows[0];
    assert_eq!((flow.home_address, flow.peer, flow.peer_port), (HOME.into(), CORRESPONDENT.into(), 80));
    assert!(flow.stall_ms.is_some(), "{flow:#?}");
}

#[test]
fn assists_change_while_the_agent_runs_and_bindings_stay() {
    let Some(realm) = realm_or_skip() else { return };
    let world = World::new(realm);
    let setup = |assist| HomeSetup { assist, ..home_setup() };
    let home = world.home_agent(setup(Some(replay(Place::HomeAgent))), Hooks::default());
    let mobile = world.mobile_node(mobile_setup());
    mobile.with(|node| node.switch_to("wlan0", Notice::None)).unwrap();
    mobile.wait_registered("wlan0");
    let before = home.status();
    assert!(before.assist.is_some());
    for assist in [None, Some(replay(Place::HomeAgent))] {
        let is_some = assist.is_some();
        let setup = Setup::Home(setup(assist));
        home.with(move |agent| agent.reconfigure(setup)).unwrap();
        let status = home.status();
        assert_eq!(status.assist.is_some(), is_some);
        assert_eq!(status.bindings.len(), 1);
    }
    let elsewhere = Setup::Home(setup(Some(replay(Place::MobileNode))));
    let refused = home.with(move |agent| agent.reconfigure(elsewhere)).unwrap_err();
    assert!(refused.to_string().contains("another kind of agent"), "{refused}");
    // What leaves by the link does not pass the tunnel device.
    let mut triangle = MobileSetup { assist: Some(replay(Place::MobileNode)), ..mobile_setup() };
    triangle.config.policy = PolicyTable::new(DeliveryMethod::Triangle, []);
    let refused = mobile.with(move |node| node.reconfigure(Setup::Mobile(triangle))).unwrap_err();
    assert!(refused.remedy().unwrap().contains("routing = \"reverse-tunnel\""), "{refused}");
}
