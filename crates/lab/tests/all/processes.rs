//! Programs in hosts: they work, and they end with the host, with the lab, and when the lab is killed, whatever they
//! did to live on.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::support::processes::{BROOD, MARK, is_held, marked, shell, threads_in, wait_until};
use crate::support::{LEFT, PATIENCE, RIGHT, realm_or_skip};
use careof_lab::{Clock, Error, Host, InterfaceConfig, Realm};
use nix::errno::Errno;

fn host() -> Option<Host> {
    Some(realm_or_skip()?.host("parent").unwrap())
}

fn output(host: &Host, script: &str) -> String {
    let child = host.spawn(shell(script)).unwrap();
    String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap()
}

#[test]
fn a_program_runs_in_the_host_and_is_waited_for() {
    let Some(host) = host() else { return };
    assert_eq!(output(&host, "echo said"), "said\n");
    let mut failing = host.spawn(shell("exit 7")).unwrap();
    assert_eq!(failing.wait().unwrap().code(), Some(7));
    let mut killed = host.spawn(shell("exec sleep 600")).unwrap();
    killed.kill().unwrap();
    assert_eq!(killed.wait().unwrap().signal(), Some(9));
}

#[test]
fn a_program_that_does_not_exist_is_an_error() {
    let Some(host) = host() else { return };
    let error = host.spawn(Command::new("/nowhere/program")).unwrap_err();
    assert!(matches!(error, Error::System { call: "execve", errno: Errno::ENOENT, .. }));
    assert_eq!(
        error.to_string(),
        "cannot start \"/nowhere/program\" in \"parent\": execve: No such file or directory"
    );
    assert_eq!(output(&host, "echo still here"), "still here\n");
}

#[test]
fn a_program_sees_its_hosts_processes_and_interfaces() {
    let Some(host) = host() else { return };
    let _tun = host.attach(&InterfaceConfig::new("up0", LEFT.into(), 24)).unwrap();
    let own =
        output(&host, "test \"$(readlink /proc/self)\" != $$; ls -d /proc/[0-9]* | wc -l; ls /sys/class/net");
    let lines: Vec<&str> = own.lines().collect();
    if lines.len() > 3 {
        // An ordinary user in some containers may not have /proc and /sys of the host.
        careof_testbed::skip("the machine's /proc and /sys are seen");
        return;
    }
    assert!(lines[0].parse::<u32>().unwrap() < 10, "{own}");
    assert_eq!(lines[1..], ["lo", "up0"]);
    let outside = fs::read_dir("/sys/class/net").map_or(0, Iterator::count);
    assert!(fs::read_dir("/proc").unwrap().count() > 10 && outside != 0);
}

#[test]
fn a_host_may_start_threads_after_programs() {
    let Some(host) = host() else { return };
    assert_eq!(output(&host, "echo one"), "one\n");
    let thread = host.run(|| std::thread::Builder::new().spawn(|| 7).unwrap().join().unwrap());
    assert_eq!(thread, Ok(7));
    assert_eq!(output(&host, "echo two"), "two\n");
}

#[test]
fn orphans_and_daemons_end_with_their_host() {
    let Some(host) = host() else { return };
    let mark = format!("{}-dropped", std::process::id());
    let mut command = shell(BROOD);
    command.env(MARK, &mark);
    let mut child = host.spawn(command).unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "ready");
    assert!(wait_until(|| marked(&mark).len() >= 5), "{:?}", marked(&mark));
    drop(host);
    assert_eq!(child.wait().unwrap().signal(), Some(9));
    assert!(wait_until(|| marked(&mark).is_empty()), "{:?}", marked(&mark));
}

#[test]
fn a_host_is_dropped_at_once_although_nobody_waited_for_its_programs() {
    let Some(realm) = realm_or_skip() else { return };
    let mut children = Vec::new();
    for _ in 0..3 {
        let host = realm.host("parent").unwrap();
        children.push(host.spawn(shell("sleep 600")).unwrap());
        children.push(host.spawn(shell("true")).unwrap());
        let clock = Clock::start();
        drop(host);
        assert!(clock.now().since_start() < PATIENCE / 2);
    }
    for mut child in children {
        child.wait().unwrap();
    }
}

#[test]
fn processes_nobody_waits_for_do_not_pile_up() {
    let Some(host) = host() else { return };
    // Each leaves an orphan behind that ends at once.
    output(&host, "for number in 1 2 3 4 5 6 7 8 9; do (sh -c 'true &' &); done; wait");
    let zombies = "cat /proc/[0-9]*/stat 2>/dev/null | grep -c ') Z ' || true";
    assert!(wait_until(|| output(&host, zombies).trim() == "0"));
}

#[test]
fn a_killed_lab_leaves_nothing_behind() {
    let Some(realm) = realm_or_skip() else { return };
    if let Some(mark) = std::env::var_os(MARK) {
        be_the_victim(realm, &mark.to_string_lossy());
    }
    let interfaces = || fs::read_to_string("/proc/net/dev").unwrap().lines().count();
    let routes = || fs::read_to_string("/proc/net/route").unwrap();
    let before = (interfaces(), routes());
    let mark = format!("{}-killed", std::process::id());
    let mut victim = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "processes::a_killed_lab_leaves_nothing_behind", "--nocapture"])
        .env(MARK, &mark)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut namespaces = Vec::new();
    for line in BufReader::new(victim.stdout.take().unwrap()).lines().map_while(Result::ok) {
        match line.split_once("inside ") {
            Some((_, "complete")) => break,
            Some((_, namespace)) => namespaces.push(PathBuf::from(namespace)),
            None => {}
        }
    }
    // Two hosts with a network, processes and mounts each.
    assert_eq!(namespaces.len(), 6, "{namespaces:?}");
    for namespace in &namespaces {
        assert!(threads_in(std::slice::from_ref(namespace)) > 0, "{namespace:?}");
    }
    // Itself, two first processes, and two broods.
    assert!(wait_until(|| marked(&mark).len() >= 13), "{:?}", marked(&mark));
    victim.kill().unwrap();
    victim.wait().unwrap();
    assert!(wait_until(|| marked(&mark).is_empty()), "{:?}", marked(&mark));
    // What is dead is in its process namespace until the machine's first process, now its parent, has waited for it.
    // How soon that is says nothing about the lab.
    namespaces.retain(|namespace| !namespace.to_string_lossy().starts_with("pid:"));
    // The kernel gives the numbers of dead namespaces to new ones, those of other tests among them.
    assert!(wait_until(|| threads_in(&namespaces) == 0 && !is_held(&namespaces)));
    assert_eq!((interfaces(), routes()), before);
}

/// Builds a lab, says which namespaces it has, and waits to be killed.
fn be_the_victim(realm: Realm, mark: &str) -> ! {
    let (left, right) = (realm.host("left").unwrap(), realm.host("right").unwrap());
    let _tun = left.attach(&InterfaceConfig::new("up0", LEFT.into(), 24)).unwrap();
    let end = |address: std::net::Ipv4Addr| InterfaceConfig::new("cable0", address.into(), 24);
    if let Err(error) = left.connect(&end(LEFT), &right, &end(RIGHT)) {
        println!("without a cable: {error}");
    }
    let mut children = Vec::new();
    for host in [&left, &right] {
        let mut command =
            shell(&format!("readlink /proc/self/ns/net /proc/self/ns/pid /proc/self/ns/mnt; {BROOD}"));
        command.env(MARK, mark);
        let mut child = host.spawn(command).unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        for line in lines.by_ref().take(3) {
            println!("inside {}", line.unwrap());
        }
        // Whoever closes the other end of its output kills it.
        children.push((child, lines));
    }
    println!("inside complete");
    children.iter_mut().for_each(|(child, _)| drop(child.wait()));
    std::process::exit(1)
}
