use super::reference::*;
use super::*;

const SECURITY: &str = "spi = 256\nkey = \"8f1c2a77d09be43516a0c7f92e5d3b48\"\n";

/// A small file with a table of `section`: what stands before that table's keys, its keys, what follows, and its path.
fn around(section: &'static Section) -> (String, String, String, String) {
    let node = format!("[[mobile_node]]\nhome_address = \"192.0.2.10\"\n{SECURITY}");
    let home =
        "role = \"home\"\naddress = \"192.0.2.1\"\nhome_network = \"192.0.2.0/24\"\ninterface = \"eth0\"\n"
            .to_owned();
    let link = "[[interface]]\nname = \"wlan0\"\naddress = \"10.0.0.1\"\n";
    let foreign = "role = \"foreign\"\ncare_of = \"10.0.0.1\"\n".to_owned();
    let mobile = format!(
        "role = \"mobile\"\nhome_address = \"192.0.2.10\"\nhome_network = \"192.0.2.0/24\"\n{SECURITY}"
    );
    let own = "[[interface]]\nname = \"eth0\"\n";
    let assist = section.heading.strip_prefix("`[assist.").and_then(|rest| rest.strip_suffix("]`"));
    if let Some(name) = assist {
        let before = format!("{mobile}{own}[assist]\nuse = \"{name}\"\n[assist.{name}]\n");
        return (before, String::new(), String::new(), format!("assist.{name}."));
    }
    let (before, keys, after, path): (String, &str, &str, _) = match section.heading {
        heading if heading == HOME.heading => (String::new(), &home, &node, ""),
        heading if heading == FOREIGN.heading => (String::new(), &foreign, link, ""),
        heading if heading == MOBILE.heading => (String::new(), &mobile, own, ""),
        heading if heading == MOBILE_NODE.heading => (
            format!("{home}[[mobile_node]]\n"),
            node.split_once('\n').map_or("", |(_, keys)| keys),
            "",
            "mobile_node.0.",
        ),
        heading if heading == PEER.heading => {
            let keys = format!("address = \"10.0.0.1\"\n{SECURITY}");
            let path = "foreign_agent.0.".to_owned();
            return (format!("{home}{node}[[foreign_agent]]\n"), keys, String::new(), path);
        }
        heading if heading == FOREIGN_INTERFACE.heading => (
            format!("{foreign}[[interface]]\n"),
            link.split_once('\n').map_or("", |(_, keys)| keys),
            "",
            "interface.0.",
        ),
        heading if heading == MOBILE_INTERFACE.heading => {
            (format!("{mobile}[[interface]]\n"), "name = \"eth0\"\n", "", "interface.0.")
        }
        heading if heading == POLICY.heading => {
            (format!("{mobile}{own}[[policy]]\n"), "method = \"triangle\"\n", "", "policy.0.")
        }
        heading if heading == MULTIPATH.heading => {
            (format!("{home}{node}[multipath]\n"), "", "", "multipath.")
        }
        heading if heading == MOBILE_MULTIPATH.heading => {
            (format!("{mobile}{own}[multipath]\n"), "", "", "multipath.")
        }
        heading if heading == MULTIPATH_RULE.heading => {
            (format!("{mobile}{own}[[multipath.rule]]\n"), "port = 22\n", "", "multipath.rule.0.")
        }
        heading
            if [&CLUSTER, &CLUSTER_RELAY, &RELAY, &RELAY_CLIENT]
                .map(|one| one.heading)
                .contains(&heading) =>
        {
            return around_cluster(heading, &format!("{mobile}{own}"));
        }
        heading if heading == ADVERTISEMENTS.heading => {
            (format!("{home}{node}[advertisements]\n"), "", "", "advertisements.")
        }
        heading if heading == ASSIST.heading => (format!("{mobile}{own}[assist]\n"), "", "", "assist."),
        heading if heading == assists::EXCEPT.heading => {
            (format!("{home}{node}[[assist.except]]\n"), "port = 22\n", "", "assist.except.0.")
        }
        heading if heading == HOST.heading => (format!("{home}{node}[host]\n"), "", "", "host."),
        heading if heading == CONTROL.heading => (format!("{home}{node}[control]\n"), "", "", "control."),
        heading if heading == METRICS.heading => (format!("{home}{node}[metrics]\n"), "", "", "metrics."),
        heading if heading == LOG.heading => (format!("{home}{node}[log]\n"), "", "", "log."),
        heading if heading == STORE.heading => (format!("{home}{node}[store]\n"), "", "", "store."),
        other => {
            let (before, keys, after, path) = around_ipv6(other);
            return (before, keys, after, path.to_owned());
        }
    };
    (before, keys.to_owned(), after.to_owned(), path.to_owned())
}

/// The same of the tables of clusters.
fn around_cluster(heading: &str, mobile: &str) -> (String, String, String, String) {
    let cluster = format!("[multipath.cluster]\ninterface = \"wlan0\"\ntrust = \"keys\"\n{SECURITY}");
    let relay =
        format!("role = \"relay\"\ncluster = \"wlan0\"\nlink = \"wwan0\"\ntrust = \"keys\"\n{SECURITY}");
    let client = format!("home_address = \"192.0.2.10\"\n{SECURITY}");
    let one = format!("address = \"10.9.0.1\"\n{SECURITY}");
    let inline = format!("relay = [{{ {} }}]\n", one.trim().replace('\n', ", "));
    let keys = cluster.split_once('\n').map_or("", |(_, keys)| keys);
    let (before, keys, after, path) = match heading {
        heading if heading == CLUSTER.heading => (
            format!("{mobile}[multipath.cluster]\n"),
            format!("{keys}{inline}"),
            String::new(),
            "multipath.cluster.",
        ),
        heading if heading == CLUSTER_RELAY.heading => {
            let before = format!("{mobile}{cluster}[[multipath.cluster.relay]]\n");
            (before, one, String::new(), "multipath.cluster.relay.0.")
        }
        heading if heading == RELAY.heading => (String::new(), relay, format!("[[client]]\n{client}"), ""),
        _ => (format!("{relay}[[client]]\n"), client, String::new(), "client.0."),
    };
    (before, keys, after, path.to_owned())
}

/// The same of the tables of Mobile IPv6.
fn around_ipv6(heading: &str) -> (String, String, String, &'static str) {
    let node = format!("[[mobile_node]]\nhome_address = \"2001:db8:1::7\"\n{SECURITY}");
    let network = "home_network = \"2001:db8:1::/64\"\n";
    let home = format!("role = \"home\"\naddress = \"2001:db8:1::1\"\n{network}");
    let mobile = format!("role = \"mobile\"\nhome_address = \"2001:db8:1::7\"\n{network}{SECURITY}");
    let own = "[[interface]]\nname = \"eth0\"\n".to_owned();
    let correspondent = "role = \"correspondent\"\naddress = \"2001:db8:9::2\"\n".to_owned();
    let anchor =
        "role = \"anchor-point\"\naddress = \"2001:db8:5::1\"\nnetwork = \"2001:db8:5::/64\"\n".to_owned();
    let regional = format!("[[mobile_node]]\nregional_address = \"2001:db8:5::7\"\n{SECURITY}");
    let keys_of = |table: &str| table.split_once('\n').map_or("", |(_, keys)| keys).to_owned();
    match heading {
        heading if heading == HOME6.heading => (String::new(), home, node, ""),
        heading if heading == MOBILE6.heading => (String::new(), mobile, own, ""),
        heading if heading == CORRESPONDENT.heading => (String::new(), correspondent, String::new(), ""),
        heading if heading == ANCHOR_POINT.heading => (String::new(), anchor, regional, ""),
        heading if heading == REGIONAL_NODE6.heading => {
            (format!("{anchor}[[mobile_node]]\n"), keys_of(&regional), String::new(), "mobile_node.0.")
        }
        heading if heading == MAP6.heading => {
            let keys = format!("address = \"2001:db8:5::1\"\n{SECURITY}");
            (format!("{mobile}{own}[[map]]\n"), keys, String::new(), "map.0.")
        }
        heading if heading == MOBILE_NODE6.heading => {
            (format!("{home}[[mobile_node]]\n"), keys_of(&node), String::new(), "mobile_node.0.")
        }
        heading if heading == MOBILE_INTERFACE6.heading => {
            (format!("{mobile}[[interface]]\n"), keys_of(&own), String::new(), "interface.0.")
        }
        heading if heading == HOST6.heading => {
            (format!("{home}{node}[host]\n"), String::new(), String::new(), "host.")
        }
        other => panic!("{other} is new"),
    }
}

/// What a configuration of a mobile node, or a home agent, with this asks for, or what is wrong with it.
fn assist(role: &Section, text: &str) -> Result<Option<careof_assist::Config>, String> {
    let (before, keys, after, _) = around(if role.heading == HOME.heading { &HOST } else { &ASSIST });
    let before = before.replace("[host]\n", "").replace("[assist]\n", "");
    let text = format!("{before}{keys}{after}{text}");
    let read = Configuration::parse("x.toml", &text).map_err(|errors| errors.to_string())?;
    match &read.setup {
        AnySetup::V4(setup) => Ok(setup.assist().cloned()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn assists_are_those_that_are_asked_for() {
    use careof_assist::{Config, Exception, Place, Replay, WindowClamp};
    assert_eq!(assist(&HOME, ""), Ok(None));
    assert_eq!(assist(&HOME, "[assist]\nuse = \"none\"\n"), Ok(None));
    let default = Config::default_set(Place::HomeAgent);
    assert_eq!(assist(&HOME, "[assist]\nuse = \"default\"\n"), Ok(Some(default)));
    let default = Config::default_set(Place::MobileNode);
    assert_eq!(assist(&MOBILE, "[assist]\nuse = [\"default\"]\n"), Ok(Some(default)));
    let text = "[assist]\nuse = \"replay\"\nreplay = { age = \"10 s\", bytes = \"1 MiB\", total = \"2 MiB\" }\n\
        except = [{ prefix = \"10.0.0.0/8\", port = 22 }]\n";
    let replay = Replay { age: std::time::Duration::from_secs(10), bytes: 1 << 20, ..Replay::DEFAULT };
    let network = (std::net::IpAddr::from([10, 0, 0, 0]), 8);
    let mut expected = Config { replay: Some(replay), ..Config::none(Place::HomeAgent) };
    expected.limits.bytes = 2 << 20;
    expected.except = vec![Exception { prefix: Some(network), port: Some(22) }];
    assert_eq!(assist(&HOME, text), Ok(Some(expected)));
    let text = "[assist]\nuse = \"window-clamp\"\n\
        window-clamp = { factor = 2, plus = \"3 segments\", from = \"always\" }\n";
    let clamp = WindowClamp { factor: 2.0, segments: 3, always: true };
    let expected = Config { window_clamp: Some(clamp), ..Config::none(Place::MobileNode) };
    assert_eq!(assist(&MOBILE, text), Ok(Some(expected)));
    let text = "[assist]\nuse = \"mss-clamp+black-hole\"\nmss-clamp = { mtu = 1400 }\nblack-hole = { lifetime = \"60 s\" }\n";
    let lifetime = std::time::Duration::from_secs(60);
    let expected = Config {
        mss_clamp: Some(careof_assist::MssClamp { mtu: 1_400 }),
        black_hole: Some(careof_assist::BlackHole { lifetime, ..careof_assist::BlackHole::DEFAULT }),
        ..Config::none(Place::HomeAgent)
    };
    assert_eq!(assist(&HOME, text), Ok(Some(expected)));
}

#[test]
fn a_mistake_in_the_assists_is_told_with_what_to_do() {
    for (role, text, said) in [
        (&HOME, "use = \"fast-retransmit\"", "runs on a mobile node"),
        (&HOME, "use = [\"replay\", \"replay\"]", "an assist is named once"),
        (&HOME, "use = \"replay+hold-last\"", "both keep or copy the packets"),
        (&HOME, "use = \"default+replay\"", "stands alone"),
        (&HOME, "use = \"snoop\"", "the simulator has it"),
        (&HOME, "use = \"buffer\"", "\"buffer-forward\" needs what a daemon on its own does not have"),
        (&HOME, "use = \"tcp-lcd\"", "hint: write \"lcd-kick\""),
        (&HOME, "use = \"reply\"", "known are \"none\", \"default\", \"replay\""),
        (&HOME, "use = \"reply\"", "hint: did you mean \"replay\"?"),
        (&HOME, "use = \"replay\"\nlcd-kick = { burst = 2 }", "\"lcd-kick\" is not in use"),
        (&HOME, "use = \"replay\"\nreplay = { bytes = \"2 MiB\", total = \"1 MiB\" }", "hint: raise `total`"),
        (&HOME, "use = \"replay\"\nexcept = [{}]", "a `prefix`, a `port` or both"),
        (&HOME, "use = \"replay\"\nexcept = [{ port = 70000 }]", "port"),
    ] {
        let found = assist(role, &format!("[assist]\n{text}\n")).unwrap_err();
        assert!(found.contains(said), "{text}: {found}");
    }
    let (before, keys, ..) = around(&MOBILE);
    let text = format!(
        "{before}{keys}routing = \"triangle\"\nassist = \"replay\"\n[[interface]]\nname = \"eth0\"\n"
    );
    let found = Configuration::parse("x.toml", &text).unwrap_err().to_string();
    assert!(found.contains("routing = \"reverse-tunnel\""), "{found}");
}

#[test]
fn every_documented_key_is_read() {
    for section in SECTIONS {
        let (before, keys, after, path) = around(section);
        let whole = format!("{before}{keys}{after}");
        Configuration::parse("x.toml", &whole).unwrap_or_else(|errors| panic!("{errors}\n{whole}"));
        for key in section.keys {
            let name = key.name;
            let own = format!("{name} = ");
            let others: String =
                keys.lines().filter(|line| !line.starts_with(&own)).map(|line| format!("{line}\n")).collect();
            // The table that follows may be the one that is replaced.
            let after = if after.contains(&format!("[[{name}]]")) { "" } else { after.as_str() };
            // No key takes a date.
            let text = format!("{before}{others}{name} = 1979-05-27\n{after}");
            let complaint = Configuration::parse("x.toml", &text).map(drop).unwrap_err().to_string();
            assert!(
                complaint.contains(&format!(": {path}{name}: found 1979-05-27; ")),
                "{name} of {} is not read:\n{complaint}\n{text}",
                section.heading
            );
        }
    }
}

#[test]
fn what_is_said_about_other_words_names_keys_that_exist() {
    for section in SECTIONS {
        for (word, hint) in section.elsewhere {
            assert!(
                !section.keys.iter().any(|key| key.name == *word),
                "{word} is a key of {}",
                section.heading
            );
            let names = hint.strip_prefix("write `").and_then(|rest| rest.strip_suffix('`'));
            for name in names.into_iter().flat_map(|names| names.split("` or `")) {
                assert!(section.keys.iter().any(|key| key.name == name), "{name} of {}", section.heading);
            }
        }
    }
}

#[test]
fn the_documentation_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/careof-agent.md");
    let current = documentation_markdown();
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&path, &current).unwrap();
    }
    let written = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == current,
        "docs/careof-agent.md is not current; write it with: UPDATE=1 cargo test -p careof-agent the_documentation_is_current"
    );
}
