use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use careof_mobility::multipath::PathId;
use careof_mobility::v4::{BindingRecord, EncapsulationChoice, MobileNodeRecord, NtpTime, ReplayGuard};
use careof_mobility::v6;
use careof_wire::mip4::{Identification, Lifetime, Spi};
use careof_wire::mip6;
use proptest::prelude::*;

use super::*;

fn binding() -> impl Strategy<Value = BindingRecord> {
    let encapsulation = prop_oneof![
        Just(EncapsulationChoice::IpInIp),
        Just(EncapsulationChoice::Minimal),
        Just(EncapsulationChoice::Gre)
    ];
    (any::<(u32, u16, Option<u64>, u64, bool, bool, bool)>(), encapsulation).prop_map(
        |(fields, encapsulation)| {
            let (care_of, lifetime, expires, identification, co_located, broadcasts, reverse_tunnel) = fields;
            BindingRecord {
                care_of: Ipv4Addr::from_bits(care_of),
                lifetime: Lifetime::from_secs(lifetime),
                expires: expires.map(NtpTime::from_bits),
                identification: Identification(identification),
                co_located,
                broadcasts,
                reverse_tunnel,
                encapsulation,
                path_id: PathId::new((lifetime % 16) as u8),
                relayed: broadcasts && !co_located,
            }
        },
    )
}

fn guard() -> impl Strategy<Value = ReplayGuard> {
    prop_oneof![
        any::<(u32, Option<u64>)>().prop_map(|(window, last)| ReplayGuard::Timestamps {
            window: Duration::from_nanos(window.into()),
            last: last.map(NtpTime::from_bits)
        }),
        any::<Option<u32>>().prop_map(|expected| ReplayGuard::Nonces { expected }),
    ]
}

fn record() -> impl Strategy<Value = MobileNodeRecord> {
    let bindings = proptest::collection::vec(binding(), 0..4);
    let replay = proptest::collection::vec((any::<u32>().prop_map(Spi), guard()), 0..3);
    // Few addresses, so that records replace each other.
    (0_u32..6, bindings, replay).prop_map(|(host, bindings, replay)| MobileNodeRecord {
        home_address: Ipv4Addr::from_bits(0xc000_0200 + host),
        bindings,
        replay,
    })
}

fn ipv6_record() -> impl Strategy<Value = v6::MobileNodeRecord> {
    let binding = any::<(u128, Option<u16>, u16, u64, u16, bool, Option<u32>)>().prop_map(
        |(care_of, id, lifetime, expires, sequence, link_local, ipv4)| v6::HomeRegistrationRecord {
            ipv4_home_address: ipv4.map(Ipv4Addr::from_bits),
            care_of: Ipv6Addr::from_bits(care_of),
            id: id.map(mip6::BindingId),
            lifetime: mip6::Lifetime::from_units(lifetime),
            expires: NtpTime::from_bits(expires),
            sequence: mip6::SequenceNumber(sequence),
            link_local,
        },
    );
    let bindings = proptest::collection::vec(binding, 0..4);
    (0_u128..6, bindings, any::<(Option<u16>, Option<u64>)>()).prop_map(
        |(host, bindings, (sequence, latest))| v6::MobileNodeRecord {
            home_address: Ipv6Addr::from_bits((0x2001_0db8 << 96) + host),
            bindings,
            sequence: sequence.map(mip6::SequenceNumber),
            latest: latest.map(NtpTime::from_bits),
        },
    )
}

fn simple(host: u8) -> MobileNodeRecord {
    MobileNodeRecord {
        home_address: Ipv4Addr::new(192, 0, 2, host),
        bindings: Vec::new(),
        replay: Vec::new(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn what_is_encoded_decodes_the_same(record in record()) {
        prop_assert_eq!(record::decode(&record::encode(&record)), Ok(record));
    }

    #[test]
    fn no_bytes_make_the_decoder_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = record::decode(&bytes);
        let _ = ipv6_record::decode(&bytes);
    }

    #[test]
    fn what_is_encoded_of_mobile_ipv6_decodes_the_same(record in ipv6_record()) {
        prop_assert_eq!(ipv6_record::decode(&ipv6_record::encode(&record)), Ok(record));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn a_store_is_a_map_that_outlives_its_process(records in proptest::collection::vec((record(), any::<bool>()), 1..12)) {
        is_a_map(records);
    }

    #[test]
    fn a_store_of_mobile_ipv6_is_one_too(records in proptest::collection::vec((ipv6_record(), any::<bool>()), 1..12)) {
        is_a_map(records);
    }
}

/// Saves records, opens the store anew where that is said, and looks whether the latest of each mobile node is there.
fn is_a_map<R: Stored + Clone + PartialEq + std::fmt::Debug>(records: Vec<(R, bool)>) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("deep/home.redb");
    let mut store = StoreOf::<R>::open(&path).unwrap();
    let mut expected = std::collections::BTreeMap::new();
    for (record, reopen) in records {
        store.save(&record).unwrap();
        expected.insert(R::shown(record.bits()), record);
        if reopen {
            drop(store);
            store = StoreOf::open(&path).unwrap();
        }
        let loaded = store.load().unwrap();
        assert_eq!(loaded, expected.values().cloned().collect::<Vec<_>>());
    }
}

#[test]
fn a_store_of_the_other_version_of_ip_is_refused_and_left_as_it_is() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("home.redb");
    Store::open(&path).unwrap().save(&simple(1)).unwrap();
    let error = Ipv6Store::open(&path).unwrap_err();
    assert_eq!(error.problem, "it is of a home agent of the other version of IP");
    assert_eq!(Store::open(&path).unwrap().load().unwrap(), [simple(1)]);
}

#[test]
fn only_one_process_uses_a_store() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("home.redb");
    let _first = Store::open(&path).unwrap();
    let error = Store::open(&path).unwrap_err();
    assert!(error.to_string().contains("another process uses it"), "{error}");
}

#[test]
fn the_file_is_for_its_owner_only() {
    use std::os::unix::fs::PermissionsExt as _;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store/home.redb");
    drop(Store::open(&path).unwrap());
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::metadata(path.parent().unwrap()).unwrap().permissions().mode() & 0o777, 0o700);
}

#[test]
fn another_kind_of_file_is_refused_and_left_as_it_is() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("home.redb");
    for content in [&b""[..], b"x", &[7; 10_000]] {
        fs::write(&path, content).unwrap();
        let error = Store::open(&path).unwrap_err();
        assert!(error.remedy.is_some(), "{error}");
        assert_eq!(fs::read(&path).unwrap(), content, "{error}");
    }
    fs::remove_file(&path).unwrap();
    // A database of somebody else.
    {
        let other = Database::create(&path).unwrap();
        let transaction = other.begin_write().unwrap();
        transaction.open_table(TableDefinition::<u8, u8>::new("theirs")).unwrap();
        transaction.commit().unwrap();
    }
    let error = Store::open(&path).unwrap_err();
    assert_eq!(error.problem, "it is no store of careof-agent");
}

#[test]
fn a_store_of_a_later_edition_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("home.redb");
    drop(Store::open(&path).unwrap());
    {
        let database = Database::open(&path).unwrap();
        let transaction = database.begin_write().unwrap();
        transaction.open_table(ABOUT).unwrap().insert(EDITION, "2").unwrap();
        transaction.commit().unwrap();
    }
    let error = Store::open(&path).unwrap_err();
    assert_eq!(error.problem, "it is of edition \"2\", this program writes \"1\"");
}

#[test]
fn damage_is_noticed_wherever_it_is() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("home.redb");
    let mut store = Store::open(&path).unwrap();
    let records: Vec<_> = (1..=20).map(simple).collect();
    for record in &records {
        store.save(record).unwrap();
    }
    drop(store);
    let whole = fs::read(&path).unwrap();
    let mut noticed = 0;
    for at in (0..whole.len()).step_by(whole.len() / 97) {
        let mut bytes = whole.clone();
        let end = (at + 64).min(bytes.len());
        bytes[at..end].iter_mut().for_each(|byte| *byte = !*byte);
        fs::write(&path, &bytes).unwrap();
        // Damage to a part that is not in use goes unnoticed, and does no harm. What is read is right.
        match Store::open(&path)
            .map_err(|error| error.to_string())
            .and_then(|mut store| store.load().map_err(|error| error.to_string()))
        {
            Ok(loaded) => assert_eq!(loaded, records, "damage at {at}"),
            Err(error) => {
                noticed += 1;
                assert!(error.contains("home.redb"), "{error}");
            }
        }
    }
    assert!(noticed > 0);
    for length in [0, 1, 100, whole.len() / 2, whole.len() - 1] {
        fs::write(&path, &whole[..length]).unwrap();
        let error = Store::open(&path).unwrap_err();
        assert!(error.remedy.is_some(), "cut to {length}: {error}");
    }
}

#[test]
fn an_unfinished_store_does_not_get_in_the_way() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("home.redb");
    fs::write(directory.path().join("home.redb.new"), b"half").unwrap();
    Store::open(&path).unwrap().save(&simple(9)).unwrap();
}

/// Wherever a file is damaged, it is opened or an error says so: `redb` panics on some of these.
#[test]
fn damage_anywhere_is_an_error_or_none() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("home.redb");
    let mut store = Store::open(&path).unwrap();
    store.save(&simple(1)).unwrap();
    drop(store);
    let whole = fs::read(&path).unwrap();
    for at in (0..64 * 1024).step_by(4096) {
        let mut bytes = whole.clone();
        bytes[at..at + 4096].iter_mut().zip(0_u32..).for_each(|(byte, n)| *byte = (n * 167 + 13) as u8);
        fs::write(&path, bytes).unwrap();
        match Store::open(&path) {
            Err(error) => assert!(error.remedy.is_some(), "{at}: {error}"),
            Ok(mut store) => drop(store.load()),
        }
    }
}
