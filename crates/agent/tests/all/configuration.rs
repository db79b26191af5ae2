//! Configurations: what is read, and what people are told about the rest.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use careof_agent::config::{Configuration, Format, Level};
use careof_agent::{AnySetup, Device, HomeNetwork, Ipv6Setup, Setup};
use careof_base::DataRate;
use careof_mobility::multipath::alliance::Trust;
use careof_mobility::v4::{DeliveryMethod, ReplayProtection, Selection};
use careof_mobility::v6;
use careof_wire::mip4::{Algorithm, Lifetime};
use careof_wire::mip6;
use proptest::prelude::*;

const KEY: &str = "8f1c2a77d09be43516a0c7f92e5d3b48";

fn home(more: &str) -> String {
    format!(
        "role = \"home\"\naddress = \"192.0.2.1\"\nhome_network = \"192.0.2.0/24\"\ninterface = \"eth0\"\n{more}\n\
         [[mobile_node]]\nhome_address = \"192.0.2.10\"\nspi = 256\nkey = \"{KEY}\"\n"
    )
}

fn foreign(more: &str) -> String {
    format!(
        "role = \"foreign\"\ncare_of = \"198.51.100.1\"\n{more}\n\
         [[interface]]\nname = \"wlan0\"\naddress = \"10.20.0.1\"\n"
    )
}

fn mobile(more: &str) -> String {
    format!(
        "role = \"mobile\"\nhome_address = \"192.0.2.10\"\nhome_network = \"192.0.2.0/24\"\n\
         home_agent = \"192.0.2.1\"\nspi = 256\nkey = \"{KEY}\"\n{more}\n[[interface]]\nname = \"eth0\"\n"
    )
}

/// A home agent of Mobile IPv6.
fn home6(more: &str) -> String {
    format!(
        "role = \"home\"\naddress = \"2001:db8:1::1\"\nhome_network = \"2001:db8:1::/64\"\n{more}\n\
         [[mobile_node]]\nhome_address = \"2001:db8:1::7\"\nspi = 256\nkey = \"{KEY}\"\n"
    )
}

fn mobile6(more: &str) -> String {
    format!(
        "role = \"mobile\"\nhome_address = \"2001:db8:1::7\"\nhome_network = \"2001:db8:1::/64\"\n\
         home_agent = \"2001:db8:1::1\"\nspi = 256\nkey = \"{KEY}\"\n{more}\n[[interface]]\nname = \"eth0\"\n"
    )
}

fn correspondent(more: &str) -> String {
    format!("role = \"correspondent\"\naddress = \"2001:db8:9::2\"\n{more}\n")
}

fn anchor_point(more: &str) -> String {
    format!(
        "role = \"anchor-point\"\naddress = \"2001:db8:5::1\"\nnetwork = \"2001:db8:5::/64\"\n{more}\n\
         [[mobile_node]]\nregional_address = \"2001:db8:5::7\"\nspi = 257\nkey = \"{KEY}\"\n"
    )
}

fn below_map(more: &str) -> String {
    mobile6(&format!("{more}\n[[map]]\naddress = \"2001:db8:5::1\"\nspi = 257\nkey = \"{KEY}\""))
}

fn read(text: &str) -> Configuration {
    Configuration::parse("/etc/careof/x.toml", text).unwrap_or_else(|errors| panic!("{errors}\n{text}"))
}

fn ipv4(configuration: &Configuration) -> &Setup {
    match &configuration.setup {
        AnySetup::V4(setup) => setup,
        other => panic!("{other:?}"),
    }
}

fn ipv6(configuration: &Configuration) -> &Ipv6Setup {
    match &configuration.setup {
        AnySetup::V6(setup) => setup,
        other => panic!("{other:?}"),
    }
}

fn complaint(text: &str) -> String {
    match Configuration::parse("x.toml", text) {
        Ok(_) => panic!("accepted:\n{text}"),
        Err(errors) => errors.to_string(),
    }
}

#[test]
fn a_small_file_is_whole() {
    let configuration = read(&home(""));
    let Setup::Home(setup) = ipv4(&configuration) else { panic!() };
    assert_eq!(setup.config.max_lifetime, Lifetime::from_secs(1800));
    assert_eq!(setup.devices[0].name, "eth0");
    assert_eq!(setup.home_network, HomeNetwork::Link);
    let node = &setup.config.mobile_nodes[0];
    assert!(node.permitted);
    assert_eq!(node.security[0].algorithm(), Algorithm::HmacMd5);
    assert_eq!(node.security[0].replay(), ReplayProtection::TIMESTAMPS);
    assert_eq!(node.security[0].key().first(), Some(&0x8f));
    let advertisements = setup.config.advertisements.unwrap();
    assert_eq!(advertisements.registration_lifetime, Lifetime::from_secs(1800));
    assert_eq!(advertisements.prefix_length, Some(24));
    let service = &configuration.service;
    assert_eq!(service.control, Path::new("/run/careof/x.sock"));
    assert_eq!(configuration.store(), Some(PathBuf::from("/var/lib/careof/x.redb")));
    assert_eq!((service.metrics, service.level, service.format), (None, Level::Info, Format::Text));

    let configuration = read(&foreign(""));
    let Setup::Foreign(setup) = ipv4(&configuration) else { panic!() };
    assert_eq!(setup.config.address, setup.config.care_of_addresses[0]);
    assert_eq!(configuration.store(), None);

    let Setup::Mobile(setup) = ipv4(&read(&mobile(""))).clone() else { panic!() };
    assert_eq!(setup.config.selection, Selection::Preferred { hold: Duration::from_secs(5) });
    assert_eq!(setup.config.keep_old, Some(Duration::from_secs(2)));
    assert!(setup.config.reverse_tunnel);
    let elsewhere = "203.0.113.9".parse().unwrap();
    assert_eq!(setup.config.policy.lookup(elsewhere, None), DeliveryMethod::ReverseTunnel);
}

#[test]
fn everything_can_be_said() {
    let text = home(
        "delivery = \"routed\"\nmax_lifetime = \"infinity\"\nmax_bindings = 5\nmax_bindings_per_node = 1\n\
         reverse_tunnel = \"required\"\nencapsulations = [\"gre\"]\n\
         advertisements = { interval = \"1 s\", lifetime = \"9 s\", registration_lifetime = \"60 s\", \
         destination = \"broadcast\", default_router = false }\n\
         host = { tunnel_device = \"tun7\", tunnel_mtu = 1400, first_table = 1000, first_priority = 99, \
         offloads = false, set_kernel_parameters = false }\n\
         control = { socket = \"here.sock\" }\nmetrics = { listen = \"[::1]:7\" }\n\
         log = { level = \"debug\", format = \"json\" }\nstore = { directory = \"/srv\" }\n\
         [[mobile_node]]\nhome_address = \"192.0.2.10\"\nspi = 257\nkey = \"48f1c2a77d09be43516a0c7f92e5d3b4\"\n\
         algorithm = \"hmac-sha-256\"\nreplay = \"nonces\"\n\
         [[foreign_agent]]\naddress = \"198.51.100.1\"\nspi = 300\nkey = \"48f1c2a77d09be43516a0c7f92e5d3b4\"\n",
    );
    let configuration = read(&text);
    let Setup::Home(setup) = ipv4(&configuration) else { panic!() };
    assert_eq!(setup.home_network, HomeNetwork::Routed);
    assert_eq!(setup.config.max_lifetime, Lifetime::INFINITE);
    assert!(setup.config.gre && !setup.config.minimal_encapsulation);
    assert_eq!(setup.config.mobile_nodes.len(), 1, "two keys of one node");
    assert_eq!(setup.config.mobile_nodes[0].security.len(), 2);
    assert_eq!(setup.config.foreign_agents.len(), 1);
    let advertisements = setup.config.advertisements.unwrap();
    assert_eq!((advertisements.lifetime, advertisements.preference), (Duration::from_secs(9), None));
    assert!(advertisements.destination.is_broadcast());
    assert_eq!((setup.host.tunnel_device.as_str(), setup.host.tunnel_mtu), ("tun7", 1400));
    assert_eq!((setup.host.first_table, setup.host.first_priority), (1000, 99));
    assert!(!setup.host.set_kernel_parameters && !setup.host.offloads);
    assert_eq!(configuration.service.control, Path::new("/etc/careof/here.sock"));
    assert_eq!(configuration.service.metrics, Some("[::1]:7".parse().unwrap()));
    assert_eq!(configuration.service.level, Level::Debug);
    assert_eq!(configuration.service.format, Format::Json);
    assert_eq!(configuration.store(), Some(PathBuf::from("/srv/x.redb")));

    let text = foreign(
        "address = \"198.51.100.2\"\nadmitted = [\"192.0.2.0/24\"]\nregistration_required = true\n\
         max_visitors = 3\nmax_pending = 4\nmax_visitors_per_station = 2\n\
         max_visitors_per_home_agent = 1\nmax_pending_per_station = 5\npending_timeout = \"3 s\"\nencapsulating_delivery = false\n\
         [[home_agent]]\naddress = \"192.0.2.1\"\nspi = 300\nkey = \"48f1c2a77d09be43516a0c7f92e5d3b4\"\n\
         [[mobile_node]]\naddress = \"192.0.2.10\"\nspi = 300\nkey = \"48f1c2a77d09be43516a0c7f92e5d3b4\"\n",
    );
    let Setup::Foreign(setup) = ipv4(&read(&text)).clone() else { panic!() };
    assert_eq!(setup.config.admitted.as_ref().map(Vec::len), Some(1));
    assert!(setup.config.registration_required && !setup.config.encapsulating_delivery);
    let shares = [
        setup.config.max_visitors_per_station,
        setup.config.max_visitors_per_home_agent,
        setup.config.max_pending_per_station,
    ];
    assert_eq!(shares, [Some(2), Some(1), Some(5)]);
    assert_eq!((setup.config.home_agents.len(), setup.config.mobile_nodes.len()), (1, 1));

    let text = mobile(
        "routing = \"triangle\"\nrenew_after = \"50 %\"\nattempts = 3\nencapsulation = \"gre\"\nhold = \"0 s\"\n\
         keep_old = \"until-down\"\nsimultaneous_bindings = true\nbroadcasts = true\nreport_paths = true\npath_monitor = false\n\
         [[policy]]\nto = \"10.0.0.0/8\"\nport = 80\nmethod = \"regular-ip\"\n\
         [[interface]]\nname = \"wlan0\"\ncare_of = \"prefer-foreign-agent\"\nround_trip = \"700 ms\"\n\
         rate = \"2 Mbit/s\"\nrate_up = \"64 kbit/s\"\ncost = \"metered\"\n",
    );
    let Setup::Mobile(setup) = ipv4(&read(&text)).clone() else { panic!() };
    let metered: Vec<_> = setup.config.interfaces.iter().map(|one| one.metered).collect();
    assert_eq!(metered, [true, false]);
    let names: Vec<_> = setup.devices.iter().map(|device| device.name.as_str()).collect();
    assert_eq!(names, ["wlan0", "eth0"]);
    let preferences: Vec<_> = setup.config.interfaces.iter().map(|one| one.preference).collect();
    assert_eq!(preferences, [1, 0], "the first is the best");
    let path = setup.config.interfaces[0].path;
    assert_eq!(path.downlink, Some(DataRate::from_megabits_per_second(2)));
    assert_eq!(path.uplink, Some(DataRate::from_kilobits_per_second(64)));
    assert_eq!(path.round_trip, Some(Duration::from_millis(700)));
    assert!(setup.config.report_paths && !setup.config.path_monitor);
    let Setup::Mobile(stays) = ipv4(&read(&mobile("leave_bad_paths = false\n"))).clone() else { panic!() };
    assert!(stays.config.path_monitor && !stays.config.leave_bad_paths);
    let Setup::Mobile(usual) = ipv4(&read(&mobile(""))).clone() else { panic!() };
    assert!(usual.config.leave_bad_paths && usual.config.interfaces.iter().all(|one| !one.metered));
    assert_eq!(setup.config.renew_after_percent, 50);
    assert_eq!(setup.config.keep_old, None);
    let web = "10.1.1.1".parse().unwrap();
    assert_eq!(setup.config.policy.lookup(web, Some(80)), DeliveryMethod::RegularIp);
    assert_eq!(setup.config.policy.lookup(web, Some(81)), DeliveryMethod::Triangle);
}

/// (the file, what the message must contain)
fn mistakes() -> Vec<(String, &'static str)> {
    let without = |text: String, line: &str| {
        text.lines().filter(|l| !l.starts_with(line)).map(|l| format!("{l}\n")).collect()
    };
    let with_key = |key: &str| home("").replace(KEY, key);
    vec![
        // The file.
        (String::new(), "role: found nothing; a configuration says which agent it is for"),
        ("role = ".into(), "x.toml:1:8"),
        (
            "role = \"ha\"".into(),
            "found \"ha\"; known are \"home\", \"foreign\", \"mobile\", \"correspondent\", \"anchor-point\" and \"relay\"\n  hint: write \"home\"",
        ),
        ("role = \"hone\"".into(), "did you mean \"home\"?"),
        (
            "role = 1".into(),
            "role: found 1; it must be \"home\", \"foreign\", \"mobile\", \"correspondent\", \"anchor-point\" or \"relay\"",
        ),
        (
            home("adress = \"192.0.2.1\""),
            "x.toml:5:1: adress: found an unknown key; a home agent has the keys",
        ),
        (home("adress = \"192.0.2.1\""), "hint: did you mean `address`?"),
        (home("home_agent = \"192.0.2.1\""), "the address of this home agent is `address`"),
        (home("care_of = \"192.0.2.1\""), "`care_of` is a key of a foreign agent"),
        (home("proxy_arp = true"), "write delivery = \"proxy-arp\""),
        (mobile("max_lifetime = \"1 s\""), "write `lifetime`"),
        (foreign("[store]"), "a foreign agent keeps nothing"),
        // Addresses and networks.
        (without(home(""), "address"), "address: found nothing; a home agent needs its address"),
        (without(home(""), "interface"), "a home agent needs the interface to its home network"),
        (home("").replace("\"192.0.2.1\"", "\"192.0.2.1/24\""), "write \"192.0.2.1\", without the length"),
        (
            home("").replace("192.0.2.0/24", "2001:db8::/64"),
            "it must be an IPv4 prefix, such as \"192.0.2.0/24\"\n  hint: the other addresses of this configuration are of IPv4",
        ),
        (
            mobile("").replace("home_agent = \"192.0.2.1\"", "home_agent = \"2001:db8::1\""),
            "it must be an IPv4 address, such as \"192.0.2.1\"\n  hint: the other addresses of this configuration are of IPv4",
        ),
        (home("").replace("\"192.0.2.1\"", "\"224.0.0.1\""), "no host on a network can have this address"),
        (home("").replace("192.0.2.0/24", "192.0.2.7/24"), "hint: write \"192.0.2.0/24\""),
        (home("").replace("192.0.2.0/24", "0.0.0.0/0"), "a home network is not everything"),
        (
            home("").replace("192.0.2.10", "192.0.3.10"),
            "mobile_node.0.home_address: found \"192.0.3.10\"; it must be in the home network 192.0.2.0/24",
        ),
        (home("").replace("192.0.2.10", "192.0.2.255"), "the broadcast address of 192.0.2.0/24"),
        (home("").replace("192.0.2.10", "192.0.2.1"), "the home agent's own address"),
        (
            mobile("").replace("192.0.2.10", "10.0.0.1"),
            "home_address: found \"10.0.0.1\"; it must be in the home network",
        ),
        (
            mobile("").replace("home_agent = \"192.0.2.1\"", "home_agent = \"192.0.2.10\""),
            "this is the home address",
        ),
        (home("").replace("eth0", "an interface"), "`ip -brief link` lists them"),
        (
            foreign("").replace("198.51.100.1", "elsewhere"),
            "care_of: found \"elsewhere\"; it must be an IPv4 address",
        ),
        (foreign("").replace("\"198.51.100.1\"", "[]"), "it must be at least one address"),
        // Keys.
        (
            with_key("REPLACE-ME"),
            "found \"REPLACE-ME\"; a key is an even number of hexadecimal digits, at least 32\n  hint: openssl rand -hex 16 makes one",
        ),
        (with_key("8f1c2a77"), "found a key; a key has 16 to 128 bytes; this one has 4"),
        (with_key("00000000000000000000000000000000"), "this key is no secret"),
        (
            without(home(""), "key"),
            "mobile_node.0.key_file: found nothing; a security association needs its key",
        ),
        (home("").replace("key = ", "key_file = \"k\"\nkey = "), "the key is given twice"),
        (
            home("").replace("key = ", "key_file = ").replace(KEY, "/nowhere/key"),
            "there is no such file\n  hint: (umask 077; mkdir -p /nowhere; openssl rand -hex 16 > /nowhere/key) makes one",
        ),
        (home("").replace("256", "255"), "0 to 255 are reserved (RFC 5944 section 1.6)"),
        (without(home(""), "spi"), "a security association needs its number: spi = 256"),
        (
            format!(
                "{}\n[[mobile_node]]\nhome_address = \"192.0.2.10\"\nspi = 256\nkey = \"{KEY}\"\n",
                home("")
            ),
            "192.0.2.10 has a security association of this name already",
        ),
        (
            home("").replace("spi =", "replay = \"nonces\"\nreplay_window = \"7 s\"\nspi ="),
            "nonces have no window",
        ),
        (home("").replace("spi =", "algorithm = \"md5\"\nspi ="), "did you mean \"hmac-md5\"?"),
        // Times and sizes.
        (home("max_lifetime = 1800"), "write \"1800 ms\" or \"1800 s\""),
        (home("max_lifetime = \"20 h\""), "write \"infinity\" for one without end"),
        (home("max_lifetime = \"1.5 s\""), "registrations carry whole seconds"),
        (mobile("lifetime = \"infinity\""), "a duration is a number and a unit"),
        (mobile("renew_after = \"99 %\""), "a whole percentage from 1 % to 95 %"),
        (
            home("advertisements = { interval = \"200 ms\" }"),
            "RFC 5944 (section 2.3) calls one advertisement a second the reasonable maximum\n  hint: add above_recommended_rate = true",
        ),
        (
            home("advertisements = { interval = \"10 s\", lifetime = \"20 s\" }"),
            "it must be at least three intervals, 30 s",
        ),
        (
            home("advertisements = { registration_lifetime = \"1 h\" }"),
            "it must not be longer than `max_lifetime`",
        ),
        (home("advertisements = \"none\""), "the advertisements is a table"),
        (home("host = { first_table = 254 }"), "it must be a whole number between 256 and"),
        (home("host = { tunnel_mtu = 100 }"), "it must lie between 576 and 65515 bytes"),
        // Service.
        (
            home("metrics = { listen = \"0.0.0.0:9434\" }"),
            "it must be a loopback address\n  hint: write allow_remote = true",
        ),
        (home("metrics = { listen = \"localhost:9434\" }"), "write \"127.0.0.1:9434\""),
        (home("metrics = { listen = \"127.0.0.1\" }"), "write \"127.0.0.1:9434\""),
        (home("log = { level = \"verbose\" }"), "known are \"error\", \"warn\", \"info\" and \"debug\""),
        (home("control = { socket = \"\" }"), "it must be a path"),
        // Lists.
        (without(foreign(""), "[[interface]]"), "write [[interface]], once for each"),
        (home("interface = \"eth0\""), "a key that is there already"),
        (
            format!("{}[[interface]]\nname = \"eth0\"\n", mobile("")),
            "interface.1.name: found \"eth0\"; an interface of this name is there already",
        ),
        (
            mobile("[[policy]]\nto = \"10.0.0.0/8\""),
            "policy.0.method: found nothing; a policy needs its method",
        ),
        (mobile("routing = \"regular-ip\""), "say for which destinations, in [[policy]]"),
        (mobile("selection = \"manual\"\nhold = \"1 s\""), "goes back to nothing by itself"),
        (
            mobile("selection = \"manual\"\nleave_bad_paths = true"),
            "paths are chosen with path_monitor = true and selection = \"preferred\" only",
        ),
        (mobile("path_monitor = false\nleave_bad_paths = true"), "paths are chosen with path_monitor = true"),
        (
            mobile("[[interface]]\nname = \"gsm0\"\ncost = \"meterd\""),
            "known are \"free\" and \"metered\"\n  hint: did you mean \"metered\"?",
        ),
        (mobile("[[interface]]\nname = \"gsm0\"\nmetered = true"), "hint: write cost = \"metered\""),
        (mobile("keep_old = \"forever\""), "or \"until-down\""),
        (home("encapsulations = [\"esp\"]"), "encapsulations.0: found \"esp\""),
        (foreign("mobile_node = 7"), "write [[mobile_node]], once for each"),
    ]
}

/// The same of agents of Mobile IPv6.
fn mistakes_of_ipv6() -> Vec<(String, &'static str)> {
    let without = |text: String, line: &str| {
        text.lines().filter(|l| !l.starts_with(line)).map(|l| format!("{l}\n")).collect()
    };
    let home_with = |what: &str, other: &str| home6("").replace(what, other);
    let mobile_with = |what: &str, other: &str| mobile6("").replace(what, other);
    let of_ipv6 = "hint: the other addresses of this configuration are of IPv6";
    vec![
        // Roles.
        ("role = \"cn\"".into(), "write \"correspondent\""),
        (
            foreign("").replace("198.51.100.1", "2001:db8::1"),
            "x.toml:2:11: care_of: found \"2001:db8::1\"; foreign agents are of Mobile IPv4\n  hint: with Mobile IPv6",
        ),
        (correspondent("").replace("2001:db8:9::2", "192.0.2.1"), of_ipv6),
        (
            without(correspondent(""), "address"),
            "address: found nothing; a correspondent node needs its address",
        ),
        // Addresses and networks.
        (home_with("2001:db8:1::/64", "192.0.2.0/24"), of_ipv6),
        (mobile_with("home_agent = \"2001:db8:1::1\"", "home_agent = \"192.0.2.1\""), of_ipv6),
        (home_with("2001:db8:1::/64", "2001:db8:1::9/64"), "hint: write \"2001:db8:1::/64\""),
        (home_with("2001:db8:1::/64", "2001:db8:1::"), "hint: give its length, as \"2001:db8:1::/64\""),
        (home_with("2001:db8:1::/64", "2001:db8:1::/129"), "it must be an IPv6 prefix, such as"),
        (home_with("2001:db8:1::/64", "::/0"), "the prefix of a home network has 1 to 120 bits"),
        (
            home_with("\"2001:db8:1::1\"", "\"2001:db8:1::1/64\""),
            "write \"2001:db8:1::1\", without the length",
        ),
        (
            home_with("\"2001:db8:1::1\"", "\"fe80::1\""),
            "no host can be reached by this address beyond its link",
        ),
        (
            home_with("\"2001:db8:1::1\"", "\"ff02::1\""),
            "no host can be reached by this address beyond its link",
        ),
        (home_with("\"2001:db8:1::1\"", "\"2001:db8:1::g\""), "it must be an IPv6 address, such as"),
        (home_with("2001:db8:1::7", "2001:db8:2::7"), "it must be in the home network 2001:db8:1::/64"),
        (home_with("2001:db8:1::7", "2001:db8:1::"), "it is the address of all routers of 2001:db8:1::/64"),
        (home_with("2001:db8:1::7", "2001:db8:1::1"), "this is the home agent's own address"),
        (
            mobile_with("2001:db8:1::1", "2001:db8:1::7"),
            "home_agent: found \"2001:db8:1::7\"; this is the home address",
        ),
        (without(mobile6(""), "home_network"), "a mobile node needs its home network"),
        // IPv4 beside IPv6.
        (
            home6("ipv4_address = \"2001:db8::1\""),
            "ipv4_address: found \"2001:db8::1\"; it must be an IPv4 address",
        ),
        (home6("ipv4_address = \"224.0.0.1\""), "no host can be reached by this address beyond its link"),
        (home6("ipv4_home_address = \"192.0.2.7\""), "hint: write it in the [[mobile_node]] table"),
        (
            home6("ipv4_address = \"192.0.2.7\"") + "ipv4_home_address = \"192.0.2.7\"\n",
            "this is the home agent's own address",
        ),
        (
            home6("")
                + "ipv4_home_address = \"192.0.2.7\"\n[[mobile_node]]\nhome_address = \"2001:db8:1::8\"\nspi = 256\n\
                   key_file = \"nowhere\"\nipv4_home_address = \"192.0.2.7\"\n",
            "another mobile node has it already",
        ),
        (
            home6("ipv4_home_network = \"198.51.100.0/24\"") + "ipv4_home_address = \"192.0.2.7\"\n",
            "the IPv4 home network is 198.51.100.0/24",
        ),
        (home6("ipv4_home_network = \"192.0.2.7/24\""), "beyond its length of 24 are zero"),
        (
            without(mobile6("ipv4_home_agent = \"192.0.2.1\""), "home_agent"),
            "hint: write `home_agent`, its address of IPv6",
        ),
        (
            mobile6("ipv4_home_agent = \"192.0.2.7\"\nipv4_home_address = \"192.0.2.7\""),
            "this is the home agent's address",
        ),
        // Keys.
        (home_with("spi = 256", "spi = 7"), "0 to 255 are reserved (RFC 4285 section 5.1)"),
        (
            home_with("spi =", "algorithm = \"hmac-md5\"\nspi ="),
            "known are \"hmac-sha-1\" and \"hmac-sha-256\"",
        ),
        (mobile6("replay_window = \"7 s\""), "hint: write it in the home agent's file"),
        (mobile6("replay = \"nonces\""), "known are \"timestamps\" and \"sequence-numbers\""),
        (
            home_with("spi =", "replay = \"sequence-numbers\"\nreplay_window = \"7 s\"\nspi ="),
            "sequence numbers have no window of time",
        ),
        (without(mobile6(""), "key"), "key_file: found nothing; a security association needs its key"),
        (mobile6("identifier = \"a laptop\""), "it must be a network access identifier"),
        // What is of Mobile IPv4, or not there yet.
        (home6("delivery = \"proxy-arp\""), "hint: write \"proxy-ndp\""),
        (home6("delivery = \"proxy-ndp\""), "needs the interface to its network: interface = \"eth0\""),
        (home6("interface = \"eth0\""), "hint: leave it out, or write delivery = \"proxy-ndp\""),
        (correspondent("assist = \"default\""), "hint: assists run at home agents and mobile nodes"),
        (home6("assist = \"fast-retransmit\""), "runs on a mobile node"),
        (
            home6("assist = { use = \"replay\", except = [{ prefix = \"2001:db8:9::2/64\" }] }"),
            "hint: write \"2001:db8:9::/64\"",
        ),
        (mobile6("probe = \"60 s\""), "hint: leave it out: `path_monitor` finds that a path is silent"),
        (mobile6("routing = \"triangle\""), "for the direct path write `route_optimization`"),
        (mobile6("[[foreign_agent]]"), "Mobile IPv6 has no foreign agents"),
        (
            mobile_with("name = \"eth0\"", "name = \"eth0\"\ncare_of = \"foreign-agent\""),
            "interface.0.care_of: found an unknown key",
        ),
        (mobile6("host = { offloads = false }"), "the device of Mobile IPv6 takes packets one by one"),
        (correspondent("spi = 256"), "hint: leave it out: mobile nodes prove by themselves who they are"),
        (correspondent("store = {}"), "a correspondent node keeps nothing"),
        // Mobility anchor points.
        (anchor_point("home_network = \"2001:db8:5::/64\""), "hint: write `network`"),
        (anchor_point("domain = [\"2001:db8:100::1/64\"]"), "hint: write \"2001:db8:100::/64\""),
        (anchor_point("domain = \"2001:db8:100::/64\""), "it must be an array of prefixes"),
        (anchor_point("").replace("5::7", "6::7"), "it must be in the network 2001:db8:5::/64"),
        (anchor_point("").replace("5::7", "5::1"), "this is the mobility anchor point's own address"),
        (without(anchor_point(""), "regional_address"), "a mobile node needs its regional care-of address"),
        (anchor_point("").replace("anchor-point", "map"), "hint: write \"anchor-point\""),
        (
            below_map("path_monitor = true"),
            "path_monitor: found true; it does not go with mobility anchor points",
        ),
        (below_map("ipv4_home_address = \"192.0.2.7\""), "it does not go with mobility anchor points"),
        (below_map("map_attempts = 0"), "map_attempts: found 0"),
        (
            below_map("map_selection = \"closest\""),
            "known are \"furthest\", \"highest-preference\" and \"nearest\"",
        ),
        (below_map("map_forwarding = \"10 s\""), "a multiple of 4 s"),
        (mobile6("map_attempts = 3"), "write [[map]], once for each that the node has a key for"),
        (
            format!("{}[[map]]\naddress = \"2001:db8:5::1\"\nspi = 258\nkey = \"{KEY}\"\n", below_map("")),
            "another [[map]] has it already",
        ),
        // Times and sizes.
        (home6("max_lifetime = \"infinity\""), "a duration is a number and a unit"),
        (home6("max_lifetime = \"10 s\""), "a multiple of 4 s, at most 262140 s\n  hint: write \"8 s\""),
        (correspondent("max_lifetime = \"10 min\""), "at most 420 s\n  hint: write \"420 s\""),
        (mobile6("host = { tunnel_mtu = 1200 }"), "it must lie between 1280 and 65495 bytes"),
        (mobile6("selection = \"manual\"\nhold = \"1 s\""), "goes back to nothing by itself"),
        (
            mobile6("movement_detection = \"missed-advertisements\""),
            "known are \"link-trigger\" and \"unreachable-router\"",
        ),
        (
            format!("{}[[interface]]\nname = \"eth0\"\n", mobile6("")),
            "interface.1.name: found \"eth0\"; an interface of this name is there already",
        ),
    ]
}

#[test]
fn a_small_file_of_ipv6_is_whole() {
    let configuration = read(&home6(""));
    let Ipv6Setup::Home(setup) = ipv6(&configuration) else { panic!() };
    assert_eq!(setup.config.address.to_string(), "2001:db8:1::1");
    assert_eq!(setup.config.prefixes[0].prefix.to_string(), "2001:db8:1::/64");
    assert_eq!(setup.config.max_lifetime.duration(), Duration::from_secs(1800));
    assert_eq!(setup.config.prefix_advertisements, None, "nothing protects them");
    let security = &setup.config.mobile_nodes[0].security[0];
    assert_eq!(security.algorithm(), mip6::Algorithm::HmacSha1);
    assert_eq!(security.replay(), v6::ReplayProtection::TIMESTAMPS);
    assert_eq!(security.key().first(), Some(&0x8f));
    assert_eq!((setup.host.tunnel_device.as_str(), setup.host.tunnel_mtu), ("careof6", 1460));
    assert_eq!(configuration.service.control, Path::new("/run/careof/x.sock"));
    assert_eq!(configuration.store(), Some(PathBuf::from("/var/lib/careof/x.redb")));

    let configuration = read(&mobile6(""));
    let Ipv6Setup::Mobile(setup) = ipv6(&configuration) else { panic!() };
    assert_eq!(setup.config.home_agent.map(|agent| agent.to_string()), Some("2001:db8:1::1".to_owned()));
    assert_eq!(setup.config.selection, Selection::Preferred { hold: Duration::from_secs(5) });
    assert_eq!(setup.config.keep_old, Some(Duration::from_secs(2)));
    assert_eq!((setup.config.route_optimization, setup.config.report_paths), (None, true));
    assert!(setup.config.movement.link_layer && !setup.config.movement.unreachable_router);
    assert_eq!(configuration.store(), None);

    let Ipv6Setup::Correspondent(setup) = ipv6(&read(&correspondent(""))).clone() else { panic!() };
    assert_eq!(setup.config.max_lifetime.duration(), Duration::from_secs(420));
    assert!(setup.config.route_optimization);
}

#[test]
fn a_mobility_anchor_point_and_a_mobile_node_below_it_can_say_everything() {
    let configuration = read(&anchor_point(
        "delivery = \"proxy-ndp\"\ninterface = \"eth7\"\ndomain = [\"2001:db8:100::/64\"]\nneighbors = [\"2001:db8:200::/64\"]\n\
         forwarding = \"40 s\"\nmax_lifetime = \"100 s\"\nmax_bindings = 5\nlate_reverse_tunnel = \"0 s\"\nrefresh_advice = \"80 %\"",
    ));
    let Ipv6Setup::AnchorPoint(setup) = ipv6(&configuration) else { panic!() };
    let config = &setup.config;
    assert_eq!(setup.home_link, Some(Device::new(config.interface.0, "eth7")));
    assert_eq!(config.domain, [v6::Prefix::new([0x2001, 0xdb8, 0x100, 0, 0, 0, 0, 0].into(), 64)]);
    assert_eq!(config.neighbors, [v6::Prefix::new([0x2001, 0xdb8, 0x200, 0, 0, 0, 0, 0].into(), 64)]);
    assert_eq!(config.forwarding.duration(), Duration::from_secs(40));
    assert_eq!((config.max_bindings, config.late_reverse_tunnel), (5, Duration::ZERO));
    assert_eq!(config.mobile_nodes[0].home_address.to_string(), "2001:db8:5::7");
    assert_eq!(configuration.store(), Some(PathBuf::from("/var/lib/careof/x.redb")));
    let Ipv6Setup::AnchorPoint(routed) = ipv6(&read(&anchor_point(""))).clone() else { panic!() };
    assert_eq!((routed.home_link, routed.config.duplicate_address_detection), (None, None));

    let Ipv6Setup::HierarchicalMobile(setup) = ipv6(&read(&below_map(""))).clone() else { panic!() };
    assert_eq!(setup.mobile.host.tunnel_mtu, 1420, "room for two headers");
    assert!(!setup.mobile.config.path_monitor && !setup.mobile.config.report_paths);
    assert_eq!((setup.selection, setup.patience), (v6::MapSelection::Furthest, 3));
    assert_eq!(setup.forwarding, Some(Duration::from_secs(60)));
    let home_address = setup.mobile.config.home_address;
    assert_eq!(setup.maps[0].regional_of(home_address).to_string(), "2001:db8:5::7");
    let text = below_map(
        "map_selection = \"nearest\"\nmap_attempts = 5\nmap_forwarding = \"off\"\nhost = { tunnel_mtu = 1300 }",
    );
    let text = text.replace("spi = 257", "regional_address = \"2001:db8:5::99\"\nspi = 257");
    let Ipv6Setup::HierarchicalMobile(setup) = ipv6(&read(&text)).clone() else { panic!() };
    assert_eq!((setup.selection, setup.patience, setup.forwarding), (v6::MapSelection::Nearest, 5, None));
    assert_eq!(setup.mobile.host.tunnel_mtu, 1300);
    assert_eq!(setup.maps[0].regional_of(home_address).to_string(), "2001:db8:5::99");
}

#[test]
fn a_home_network_of_ipv6_can_be_a_link() {
    let configuration = read(&home6("delivery = \"proxy-ndp\"\ninterface = \"eth7\""));
    let Ipv6Setup::Home(setup) = ipv6(&configuration) else { panic!() };
    assert_eq!(setup.home_link, Some(Device::new(setup.config.home_interface.0, "eth7")));
    assert!(setup.config.duplicate_address_detection.is_some(), "others on it could have a home address");
    let Ipv6Setup::Home(routed) = ipv6(&read(&home6(""))).clone() else { panic!() };
    assert_eq!((routed.home_link, routed.config.duplicate_address_detection), (None, None));
}

#[test]
fn everything_can_be_said_over_ipv6() {
    let other = KEY.chars().rev().collect::<String>();
    let configuration = read(&home6(&format!(
        "delivery = \"routed\"\nmax_lifetime = \"100 s\"\nmax_bindings = 5\nmax_bindings_per_node = 1\n\
         late_reverse_tunnel = \"0 s\"\nrefresh_advice = \"80 %\"\nprefix_advertisements = true\n\
         ipv4_address = \"192.0.2.1\"\nipv4_home_network = \"192.0.2.0/24\"\n\
         host = {{ tunnel_device = \"tun7\", tunnel_mtu = 1400, first_table = 1000, first_priority = 99, \
         set_kernel_parameters = false }}\n\
         control = {{ socket = \"here.sock\" }}\nmetrics = {{ listen = \"[::1]:7\" }}\n\
         log = {{ level = \"debug\", format = \"json\" }}\nstore = {{ directory = \"/srv\" }}\n\
         [[mobile_node]]\nhome_address = \"2001:db8:1::7\"\nspi = 257\nkey = \"{other}\"\nalgorithm = \"hmac-sha-256\"\n\
         replay = \"sequence-numbers\"\nidentifier = \"laptop@example.org\"\nipv4_home_address = \"192.0.2.7\"\n\
         [[mobile_node]]\nhome_address = \"2001:db8:1::8\"\nspi = 256\nkey = \"{other}\"\npermitted = false\n\
         replay_window = \"20 s\""
    )));
    let Ipv6Setup::Home(setup) = ipv6(&configuration) else { panic!() };
    let config = &setup.config;
    assert_eq!((config.max_bindings, config.max_bindings_per_node), (5, 1));
    assert_eq!((config.late_reverse_tunnel, config.refresh_advice_percent), (Duration::ZERO, Some(80)));
    assert!(config.prefix_advertisements.is_some());
    let [one, other] = config.mobile_nodes.as_slice() else { panic!("{:?}", config.mobile_nodes) };
    assert_eq!(one.security.len(), 2, "two keys of one node");
    assert_eq!(one.security[0].algorithm(), mip6::Algorithm::HmacSha256);
    assert_eq!(one.security[0].replay(), v6::ReplayProtection::SequenceNumbers);
    assert_eq!(one.identifier.as_ref().map(|known| known.identifier()), Some(&b"laptop@example.org"[..]));
    assert!(one.permitted && !other.permitted);
    assert_eq!((config.ipv4_address, config.ipv4_home_prefix_len), (Some([192, 0, 2, 1].into()), 24));
    assert_eq!((one.ipv4_home_address, other.ipv4_home_address), (Some([192, 0, 2, 7].into()), None));
    let window = Duration::from_secs(20);
    assert_eq!(other.security[0].replay(), v6::ReplayProtection::Timestamps { window });
    assert_eq!((setup.host.tunnel_device.as_str(), setup.host.tunnel_mtu), ("tun7", 1400));
    assert_eq!((setup.host.first_table, setup.host.first_priority), (1000, 99));
    assert!(!setup.host.set_kernel_parameters);
    assert_eq!(configuration.store(), Some(PathBuf::from("/srv/x.redb")));

    let text = mobile6(
        "lifetime = \"40 s\"\nrenew_after = \"50 %\"\nattempts = 3\nroute_optimization = true\nkeep_old = \"until-down\"\n\
         simultaneous_bindings = true\nreport_paths = false\nselection = \"manual\"\nidentifier = \"x@y\"\nmovement_detection = \"unreachable-router\"\n\
         [[interface]]\nname = \"wlan0\"\nround_trip = \"700 ms\"\nrate = \"2 Mbit/s\"\nrate_up = \"64 kbit/s\"\n",
    );
    let text = text.replace("home_agent = \"2001:db8:1::1\"\n", "");
    let Ipv6Setup::Mobile(setup) = ipv6(&read(&text)).clone() else { panic!() };
    let config = setup.config;
    assert_eq!((config.home_agent, config.keep_old, config.selection), (None, None, Selection::Manual));
    assert_eq!((config.lifetime.duration(), config.renew_after_percent), (Duration::from_secs(40), 50));
    assert_eq!(config.retransmission.attempts, Some(3));
    assert!(config.movement.link_layer && config.movement.unreachable_router);
    assert!(config.route_optimization.is_some() && config.multiple_care_of && !config.report_paths);
    let names: Vec<_> = setup.devices.iter().map(|device| device.name.as_str()).collect();
    assert_eq!(names, ["wlan0", "eth0"]);
    let preferences: Vec<_> = config.interfaces.iter().map(|one| one.preference).collect();
    assert_eq!(preferences, [1, 0], "the first is the best");
    let path = config.interfaces[0].path;
    assert_eq!(path.uplink, Some(DataRate::from_kilobits_per_second(64)));
    assert_eq!(path.round_trip, Some(Duration::from_millis(700)));

    let text = mobile6("ipv4_home_agent = \"192.0.2.1\"\nipv4_home_address = \"0.0.0.0\"");
    let Ipv6Setup::Mobile(setup) = ipv6(&read(&text)).clone() else { panic!() };
    assert_eq!(setup.config.home_agent_ipv4, Some([192, 0, 2, 1].into()));
    assert_eq!(setup.config.ipv4_home_address, Some([0, 0, 0, 0].into()));

    let text = correspondent(
        "max_mobile_nodes = 7\nmax_mobile_nodes_per_site = 2\nmax_bindings_per_node = 1\nmax_lifetime = \"60 s\"",
    );
    let Ipv6Setup::Correspondent(setup) = ipv6(&read(&text)).clone() else { panic!() };
    let config = setup.config;
    assert_eq!((config.max_mobile_nodes, config.max_mobile_nodes_per_site), (7, Some(2)));
    assert_eq!((config.max_bindings_per_node, config.max_lifetime.duration()), (1, Duration::from_secs(60)));
}

#[test]
fn every_mistake_is_named_with_its_place_and_remedy() {
    for (text, expected) in mistakes().into_iter().chain(mistakes_of_ipv6()) {
        let complaint = complaint(&text);
        assert!(complaint.contains(expected), "expected {expected:?} in\n{complaint}\nfor\n{text}");
        assert!(
            complaint.lines().all(|line| line.starts_with("error: x.toml") || line.starts_with("  hint: ")),
            "{complaint}"
        );
    }
}

#[test]
fn all_mistakes_are_told_at_once() {
    let text = home("max_lifetime = 5\nreverse_tunnel = \"maybe\"\ncolour = \"red\"");
    assert_eq!(complaint(&text).matches("error: ").count(), 3);
}

#[test]
fn keys_do_not_show_in_messages_or_debug_output() {
    let text = home("").replace(KEY, &KEY[..30]);
    assert!(!complaint(&text).contains("8f1c"));
    for text in [home(""), mobile(""), home6(""), mobile6("")] {
        assert!(!format!("{:?}", read(&text)).contains("143, 28"));
    }
}

#[test]
fn what_is_wrong_with_several_paths_is_told_with_its_place() {
    let mobile = |more: &str| {
        format!(
            "role = \"mobile\"\nhome_address = \"192.0.2.10\"\nhome_network = \"192.0.2.0/24\"\nspi = 256\nkey = \"{KEY}\"\n\
             {more}\n[[interface]]\nname = \"wwan0\"\n"
        )
    };
    for (text, place, expected) in [
        (mobile("[multipath]\ndispersion = \"fastest\""), "multipath.dispersion", "earliest-arrival"),
        (mobile("[multipath]\nwait = \"2 s\""), "multipath.wait", "1 s"),
        (mobile("[multipath]\nregistration = \"rfc-2002\""), "multipath.registration", "rfc-7629"),
        (mobile("[[multipath.rule]]\npaths = [8]"), "multipath.rule.0.paths", "7"),
        (mobile("[[multipath.rule]]\npaths = []"), "multipath.rule.0.paths", "leave `paths` out"),
        (mobile("routing = \"triangle\"\n[multipath]"), "routing", "reverse-tunnel"),
    ] {
        let complaints = complaint(&text);
        assert!(complaints.contains(place) && complaints.contains(expected), "{text}: {complaints}");
    }
    let nine: String = (0..8).map(|n| format!("[[interface]]\nname = \"eth{n}\"\n")).collect();
    let complaints = complaint(&(mobile("[multipath]") + &nine));
    assert!(complaints.contains("at most 8 paths"), "{complaints}");
}

/// A directory with the example `name` in it, and the key that it names.
fn example(name: &str) -> (tempfile::TempDir, PathBuf) {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join(name);
    fs::copy(examples.join(name), &file).unwrap();
    (directory, file)
}

fn write_key(directory: &Path, text: &str, mode: u32) {
    fs::create_dir_all(directory.join("keys")).unwrap();
    for name in ["keys/laptop", "keys/laptop-regional", "keys/van", "keys/cluster", "keys/neighbour"] {
        let file = directory.join(name);
        fs::write(&file, text).unwrap();
        fs::set_permissions(file, fs::Permissions::from_mode(mode)).unwrap();
    }
}

#[test]
fn the_examples_are_good_once_their_key_is_made() {
    let with_key = [
        "home.toml",
        "mobile.toml",
        "home-ipv6.toml",
        "mobile-ipv6.toml",
        "anchor-point-ipv6.toml",
        "van.toml",
        "van-home.toml",
        "relay.toml",
    ];
    for name in with_key.into_iter().chain(["foreign.toml", "correspondent-ipv6.toml"]) {
        let (directory, file) = example(name);
        if with_key.contains(&name) {
            let complaint = Configuration::load(&file).unwrap_err().to_string();
            assert!(complaint.contains("openssl rand -hex 16"), "{complaint}");
            assert_eq!(
                complaint.matches("error: ").count(),
                1 + usize::from(name == "relay.toml"),
                "nothing but the key is missing: {complaint}"
            );
        }
        write_key(directory.path(), &format!("{KEY}\n"), 0o600);
        Configuration::load(&file).unwrap_or_else(|errors| panic!("{errors}"));
    }
}

#[test]
fn a_relay_and_the_mobile_node_of_its_example_agree() {
    let (directory, file) = example("relay.toml");
    write_key(directory.path(), KEY, 0o600);
    let AnySetup::Relay(relay) = Configuration::load(&file).unwrap().setup else { panic!() };
    assert_eq!((relay.cluster.as_str(), relay.link.as_str()), ("careof-cluster", "careof-lte"));
    // What the example says of the mobile node stands in its comments.
    let text = fs::read_to_string(&file).unwrap();
    let lines = text.lines().skip_while(|line| !line.contains("[multipath.cluster]"));
    let lines = lines.take_while(|line| line.starts_with("#   ") || *line == "#");
    let cluster: String = lines.map(|line| format!("{}\n", line.trim_start_matches('#'))).collect();
    let (_van, file) = example("van.toml");
    let van = fs::read_to_string(&file).unwrap() + &cluster;
    let file = directory.path().join("neighbour.toml");
    fs::write(&file, van).unwrap();
    let configuration = Configuration::load(&file).unwrap_or_else(|errors| panic!("{errors}"));
    let Setup::Mobile(mobile) = ipv4(&configuration) else { panic!() };
    let cluster = mobile.multipath.cluster.as_ref().unwrap();
    assert_eq!(cluster.interface, relay.cluster);
    let (Trust::Keys { cluster: one, peers: clients }, Trust::Keys { cluster: other, peers: relays }) =
        (&relay.config.trust, &cluster.trust)
    else {
        panic!()
    };
    assert_eq!(one, other);
    assert_eq!(clients[0].0, mobile.config.home_address);
    assert_eq!(clients[0].1, relays[0].1);
    let interfaces = &mobile.config.interfaces;
    assert_eq!(interfaces.iter().map(|one| one.relay).collect::<Vec<_>>(), [false, false, false, true]);
    assert_eq!(mobile.devices.len(), 3);
}

#[test]
fn a_relay_that_could_not_work_is_refused() {
    let relay = |more: &str| format!("role = \"relay\"\ncluster = \"wlan0\"\n{more}\n");
    let link = "link = \"wwan0\"\n";
    for (text, said) in [
        ("", "link = \"wwan0\""),
        ("link = \"wlan0\"", "nothing is relayed to where it comes from"),
        (link, "trust = \"keys\", or \"first-use\""),
        (&format!("{link}trust = \"keys\""), "spi = 256"),
        (&format!("{link}trust = \"keys\"\nspi = 300\nkey = \"{KEY}\""), "write [[client]]"),
        (&format!("{link}trust = \"first-use\"\nspi = 300"), "no keys to agree on"),
        (&format!("{link}trust = \"first-use\"\nclients = 0"), "clients"),
        (&format!("{link}trust = \"first-use\"\nclient_rate = \"0 kbit/s\""), "above zero"),
        (&format!("{link}trust = \"first-use\"\nlongest = \"1500 ms\""), "whole seconds"),
        (&format!("{link}trust = \"first-use\"\n[host]\noffloads = true"), "host"),
    ] {
        let found = complaint(&relay(text));
        assert!(found.contains(said), "{text}: {found}");
    }
    read(&relay(&format!("{link}trust = \"first-use\"")));
    let cluster = "interface = \"wlan9\"\ntrust = \"first-use\"";
    let mobile_with = |cluster: &str| mobile(&format!("[multipath.cluster]\n{cluster}\n"));
    read(&mobile_with(cluster));
    for (text, said) in [
        ("trust = \"first-use\"".to_owned(), "interface = \"wlan0\""),
        (format!("{cluster}\nrelays = 9"), "relays"),
        (format!("{cluster}\nrelays = 8"), "a tunnel has at most 8 paths"),
        (cluster.replace("wlan9", "eth0"), "but not both"),
    ] {
        let found = complaint(&mobile_with(&text));
        assert!(found.contains(said), "{text}: {found}");
    }
    let home_with = home("[multipath.cluster]\ninterface = \"wlan9\"");
    assert!(complaint(&home_with).contains("cluster"));
}

#[test]
fn who_follows_the_examples_has_what_the_readme_promises() {
    let load = |name| {
        let (directory, file) = example(name);
        write_key(directory.path(), KEY, 0o600);
        ipv4(&Configuration::load(&file).unwrap_or_else(|errors| panic!("{errors}"))).clone()
    };
    let (Setup::Home(home), Setup::Mobile(mobile)) = (load("home.toml"), load("mobile.toml")) else {
        panic!("a home agent and a mobile node")
    };
    for assist in [&home.assist, &mobile.assist] {
        let assist = assist.as_ref().unwrap();
        assert!(assist.replay.is_some() && assist.lcd_kick.is_some());
    }
    assert!(mobile.config.report_paths && mobile.config.reverse_tunnel);
    assert!(mobile.config.probe.is_some() && mobile.config.retransmission.attempts.is_some_and(|n| n < 6));
    assert_eq!(mobile.config.retransmission.early, 2);
}

#[test]
fn a_key_that_others_can_read_is_refused() {
    let (directory, file) = example("home.toml");
    for (mode, good) in
        [(0o600, true), (0o400, true), (0o640, true), (0o644, false), (0o660, false), (0o604, false)]
    {
        write_key(directory.path(), KEY, mode);
        match Configuration::load(&file) {
            Ok(_) => assert!(good, "{mode:o}"),
            Err(errors) => {
                let text = errors.to_string();
                assert!(
                    !good && text.contains(&format!("its mode is {mode:04o}")) && text.contains("chmod 640"),
                    "{text}"
                );
            }
        }
        fs::remove_file(directory.path().join("keys/laptop")).unwrap();
    }
    write_key(directory.path(), "REPLACE-ME", 0o600);
    let text = Configuration::load(&file).unwrap_err().to_string();
    assert!(text.contains("in the file: a key is an even number of hexadecimal digits"), "{text}");

    let file = directory.path().join("inline.toml");
    fs::write(&file, home("")).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    let text = Configuration::load(&file).unwrap_err().to_string();
    assert!(text.contains("everybody can read it"), "{text}");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
    Configuration::load(&file).unwrap();
}

#[test]
fn what_is_no_configuration_file_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let missing = directory.path().join("home.toml");
    let text = Configuration::load(&missing).unwrap_err().to_string();
    assert!(text.contains("there is no such file\n  hint: ready configurations are in examples/"), "{text}");
    let text = Configuration::load(directory.path()).unwrap_err().to_string();
    assert!(text.contains("found a directory; it must be a configuration file"), "{text}");
    fs::write(&missing, b"role = \"\xff\"").unwrap();
    let text = Configuration::load(&missing).unwrap_err().to_string();
    assert!(text.contains("a configuration is UTF-8 text"), "{text}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn no_change_to_a_file_makes_the_parser_panic(
        which in 0_usize..6, at in 0_usize..400, length in 0_usize..20, with in "[ -~\n]{0,12}",
    ) {
        let texts = [home(""), foreign(""), mobile(""), home6(""), mobile6(""), correspondent("")];
        let text = texts[which].clone();
        let at = at.min(text.len());
        let end = (at + length).min(text.len());
        let changed = format!("{}{with}{}", &text[..at], &text[end..]);
        // What is wrong is said, whatever it is.
        if let Err(errors) = Configuration::parse("x.toml", &changed) {
            prop_assert!(!errors.0.is_empty());
        }
    }
}

#[test]
fn a_configuration_has_room_for_a_hundred_thousand_mobile_nodes() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("large.toml");
    let mut text =
        "role = \"home\"\naddress = \"192.0.2.1\"\nhome_network = \"10.0.0.0/12\"\ndelivery = \"routed\"\n"
            .to_owned();
    let address = |n: u32| std::net::Ipv4Addr::from_bits(0x0a00_0001 + n);
    for n in 0..100_000 {
        text.push_str(&format!(
            "[[mobile_node]]\nhome_address = \"{}\"\nspi = 256\nkey = \"{KEY}\"\n",
            address(n)
        ));
    }
    let write = |text: &str| {
        fs::write(&file, text).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    };
    write(&text);
    let Setup::Home(setup) = ipv4(&Configuration::load(&file).unwrap()).clone() else {
        panic!("it is a home agent's")
    };
    let nodes = &setup.config.mobile_nodes;
    assert_eq!((nodes.len(), nodes[99_999].home_address), (100_000, address(99_999)));
    assert_eq!(nodes.len(), setup.config.max_bindings, "and all of them may be away");
    // As many problems as that are told, too: what is wrong alike once, with each place.
    write(&text.replace("spi = 256", "spi = 7"));
    let errors = Configuration::load(&file).unwrap_err().0;
    assert_eq!((errors.len(), errors[0].line), (1, Some(7)));
    assert_eq!((errors[0].also.len(), errors[0].also[99_998]), (99_999, 7 + 4 * 99_999));
    write(&"#".repeat((32 << 20) + 1));
    assert!(Configuration::load(&file).unwrap_err().to_string().contains("at most 32 MiB"));
}
