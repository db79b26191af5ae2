//! Choosing the kernel's congestion control.

use std::net::Ipv4Addr;

use crate::support::{LEFT, RIGHT, realm_or_skip};
use careof_lab::{
    ChosenBy, CongestionControl, Error, Host, InterfaceConfig, SockDiag, congestion_controls,
    ensure_congestion_control, set_congestion_control,
};

#[expect(clippy::disallowed_types, reason = "the real world is what is tested")]
type Stream = std::net::TcpStream;
#[expect(clippy::disallowed_types, reason = "the real world is what is tested")]
type Listener = std::net::TcpListener;

fn names(list: &[CongestionControl]) -> Vec<&str> {
    list.iter().map(CongestionControl::as_str).collect()
}

#[test]
fn there_is_always_reno() {
    let Some(realm) = realm_or_skip() else { return };
    let host = realm.host("any").unwrap();
    let all = host.run(congestion_controls).unwrap().unwrap();
    assert!(names(&all.available).contains(&"reno") && names(&all.allowed).contains(&"reno"));
    assert!(all.available.contains(&all.default.unwrap()));
    assert_eq!(host.run(|| set_congestion_control("reno")).unwrap(), Ok(ChosenBy::Default));
    let after = host.run(congestion_controls).unwrap().unwrap();
    assert_eq!(after.default.unwrap().as_str(), "reno");
    // It is the host's own.
    assert_eq!(congestion_controls().unwrap().default, all.default);
}

#[test]
fn one_that_is_missing_is_an_error_that_helps() {
    let Some(realm) = realm_or_skip() else { return };
    let host = realm.host("any").unwrap();
    let error = host.run(|| ensure_congestion_control("nonesuch")).unwrap().unwrap_err();
    assert!(error.to_string().starts_with("there is no congestion control \"nonesuch\": this kernel has "));
    assert!(error.to_string().contains("reno"));
    assert!(error.remedy().is_some_and(|remedy| remedy.starts_with("sudo modprobe tcp_")));
    for impossible in ["", "sixteen-bytes-xx", "two words", "re/no"] {
        let refused = host.run(move || ensure_congestion_control(impossible)).unwrap();
        assert!(matches!(refused, Err(Error::NoCongestionControl { .. })), "{impossible}");
    }
    let bbr = Error::NoCongestionControl { name: "bbr".to_owned(), available: "reno".to_owned() };
    assert_eq!(bbr.remedy(), Some("sudo modprobe tcp_bbr"));
}

/// What both ends of a connection from `left` to `right` use.
fn used_between(left: &Host, right: &Host) -> [String; 2] {
    let listener = right.run(|| Listener::bind((RIGHT, 0))).unwrap().unwrap();
    let to = listener.local_addr().unwrap();
    let client = left.run(move || Stream::connect(to)).unwrap().unwrap();
    let (server, from) = listener.accept().unwrap();
    let used = |host: &Host, here, there| {
        let found = host.run(move || SockDiag::open()?.tcp_socket(here, there)).unwrap().unwrap();
        found.unwrap().congestion_control.unwrap().as_str().to_owned()
    };
    let both = [used(left, from, to), used(right, to, from)];
    drop((client, server));
    both
}

/// Whether the administrator allows it or not.
#[test]
fn any_that_the_kernel_has_can_be_chosen() {
    let Some(realm) = realm_or_skip() else { return };
    let (left, right) = (realm.host("left").unwrap(), realm.host("right").unwrap());
    let end = |address: Ipv4Addr| InterfaceConfig::new("up0", address.into(), 24);
    if let Err(error) = left.connect(&end(LEFT), &right, &end(RIGHT)) {
        careof_testbed::skip(&format!("{error}"));
        return;
    }
    let all = congestion_controls().unwrap();
    // There and back, so that none is left over from the one before.
    for control in all.available.iter().chain(all.available.iter().rev()) {
        let name = control.as_str().to_owned();
        for host in [&left, &right] {
            let wanted = name.clone();
            let chosen = host.run(move || set_congestion_control(&wanted)).unwrap().unwrap();
            println!("{name} by {chosen:?}");
            if all.allowed.contains(control) {
                assert_eq!(chosen, ChosenBy::Default);
            }
        }
        assert_eq!(used_between(&left, &right), [name.clone(), name]);
    }
}

#[test]
fn a_socket_can_have_its_own() {
    let Some(realm) = realm_or_skip() else { return };
    let host = realm.host("any").unwrap();
    let reno = host.run(|| ensure_congestion_control("reno")).unwrap().unwrap();
    let (client, found) = host
        .run(move || {
            let listener = Listener::bind("127.0.0.1:0").unwrap();
            let client = Stream::connect(listener.local_addr().unwrap()).unwrap();
            reno.choose_for(&client).unwrap();
            let ends = (client.local_addr().unwrap(), client.peer_addr().unwrap());
            (client, SockDiag::open().unwrap().tcp_socket(ends.0, ends.1).unwrap().unwrap())
        })
        .unwrap();
    assert_eq!(found.congestion_control, Some(reno));
    drop(client);
}
