//! A home agent's store with a page that the disk has lost.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::daemons::support::{Network, realm_or_skip, wait_for};

const PAGE: usize = 4096;

/// How a start with this store ends: with a status and what was told, or, where it does not end, without.
fn start(network: &Network, configuration: &Path, told: &Path) -> Option<i32> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_careof-agent"));
    command.arg(configuration).env_remove("NOTIFY_SOCKET").env("RUST_BACKTRACE", "1");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(File::create(told).unwrap());
    let mut child = network.home.spawn(command).unwrap();
    let ended = wait_for("it has started, or ended", || match child.try_wait().unwrap() {
        Some(status) => Some(status.code()),
        None => fs::read_to_string(told).unwrap().contains("Agent started").then_some(None),
    });
    if ended.is_none() {
        child.kill().unwrap();
        child.wait().unwrap();
    }
    ended
}

#[test]
fn a_page_of_zeros_in_a_store_is_an_error_with_a_remedy_and_no_backtrace() {
    let Some(realm) = realm_or_skip(&[]) else { return };
    let network = Network::new(realm);
    let mut home = network.start_home_agent();
    let mobile = network.start_mobile_node();
    mobile.wait_for_registration("wlan0");
    drop(mobile);
    home.terminate();
    let (store, told) = (network.directory().join("home.redb"), network.directory().join("told"));
    let configuration = network.directory().join("home.toml");
    let whole = fs::read(&store).unwrap();
    let mut refused = 0;
    for (page, bytes) in
        whole.chunks(PAGE).enumerate().filter(|(_, bytes)| bytes.iter().any(|byte| *byte != 0))
    {
        let mut damaged = whole.clone();
        damaged[page * PAGE..page * PAGE + bytes.len()].fill(0);
        fs::write(&store, &damaged).unwrap();
        let status = start(&network, &configuration, &told);
        let told = fs::read_to_string(&told).unwrap();
        for word in ["panicked", "backtrace", "RUST_"] {
            assert!(!told.contains(word), "page {page}: {told}");
        }
        if let Some(status) = status {
            refused += 1;
            assert_eq!(status, 2, "page {page}: {told}");
            assert!(told.contains("home.redb") && told.contains("hint: "), "page {page}: {told}");
        }
    }
    assert!(refused > 0, "of {} bytes no page mattered", whole.len());
}
