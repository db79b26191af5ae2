//! The path manager of the kernel's Multipath TCP, and its sockets.

use std::net::{IpAddr, Ipv4Addr};

use careof_lab::{
    Effect, Error, InterfaceConfig, IpVersion, MptcpEndpoint, MptcpPathManager, Netlink, mptcp_schedulers,
    mptcp_socket, set_sysctl,
};
use careof_testbed::skip_for;

use crate::support::realm_or_skip;

const OWN: Ipv4Addr = Ipv4Addr::new(10, 0, 1, 2);

#[test]
fn an_address_is_given_to_the_path_manager_and_taken_back() {
    let Some(realm) = realm_or_skip() else { return };
    let host = realm.host("any").unwrap();
    let _device = host.attach(&InterfaceConfig::new("one", IpAddr::V4(OWN), 24)).unwrap();
    let effects = host.run(|| {
        let mut manager = MptcpPathManager::open()?;
        manager.set_limits(3, 0)?;
        let interface = Netlink::open()?.index_of("one")?;
        let address = IpAddr::V4(OWN);
        let endpoint = MptcpEndpoint { id: 2, address, interface, backup: true, fullmesh: true };
        manager.add(&endpoint)?;
        let again = manager.add(&endpoint);
        assert!(matches!(again, Err(Error::System { .. })), "{again:?}");
        assert!(manager.set_limits(200, 0).is_err());
        Ok::<_, Error>([manager.remove(2, address)?, manager.remove(2, address)?])
    });
    match effects.unwrap() {
        Ok(effects) => assert_eq!(effects, [Effect::Changed, Effect::Unchanged]),
        Err(error @ Error::NoMptcp { .. }) => skip_for(&error),
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn where_multipath_tcp_is_off_the_refusal_says_what_would_turn_it_on() {
    let Some(realm) = realm_or_skip() else { return };
    let host = realm.host("any").unwrap();
    let there = host.run(|| mptcp_schedulers().and_then(|all| mptcp_socket(IpVersion::V4).map(|_| all)));
    match there.unwrap() {
        Ok(all) => assert!(all.iter().any(|name| name == "default"), "{all:?}"),
        Err(error @ Error::NoMptcp { .. }) => return skip_for(&error),
        Err(error) => panic!("{error}"),
    }
    let off = host.run(|| {
        set_sysctl("net.mptcp.enabled", "0")?;
        mptcp_socket(IpVersion::V4).map(drop)
    });
    let error = off.unwrap().unwrap_err();
    assert!(error.to_string().contains("no Multipath TCP here"), "{error}");
    assert!(error.remedy().is_some_and(|remedy| remedy.contains("CONFIG_MPTCP=y")), "{error}");
}
