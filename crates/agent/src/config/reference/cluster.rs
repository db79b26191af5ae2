//! The keys of clusters: a relay, and what a mobile node says of the relays that it uses.

use careof_document::section::{Key, Section, key};

use super::{KEY, KEY_FILE, ROLE};

const TRUST: &str = "Whom the node believes, the same in the whole cluster. `\"keys\"`: those with whom a key was agreed on. \
`\"first-use\"`: whoever comes first; a mobile node then introduces a key of its own to each relay, which keeps to it. \
Who hears that first message can pose as the mobile node there later.";
const CLUSTER_KEYS: [Key; 3] = [
    key(
        "spi",
        "whole number",
        "required",
        "Names the key in messages, 256 or more. With `trust = \"keys\"`, as the next two.",
    ),
    KEY,
    KEY_FILE,
];

pub(crate) static CLUSTER: Section = Section {
    heading: "`[multipath.cluster]`",
    noun: "a cluster",
    intro: "A network of neighbours who lend each other their links, as Mobile IP SHAKE (Koyama et al. 2004) has it. The mobile node hears relays \
there, allies itself with the cheapest and fastest of them, registers their addresses as further paths, and leaves one that falls silent or \
carries nothing. `spi` and the key are those of advertisements, the same for the whole cluster.",
    keys: &[
        key(
            "interface",
            "interface",
            "required",
            "The interface to the cluster, which is none of the `[[interface]]` tables.",
        ),
        key("trust", "word", "required", TRUST),
        key("relays", "whole number", "`1`", "Relays that are used at a time, 1 to 8; each is a path more."),
        key("highest_cost", "whole number", "any", "The most that a relay's link may cost."),
        key("lifetime", "duration", "`\"60 s\"`", "For how long a relay is asked at once, whole seconds."),
        CLUSTER_KEYS[0],
        CLUSTER_KEYS[1],
        CLUSTER_KEYS[2],
        key(
            "relay",
            "array of tables",
            "none",
            "With `trust = \"keys\"`, the relays. See `[[multipath.cluster.relay]]`.",
        ),
    ],
    elsewhere: &[("cost", "write `highest_cost`"), ("cluster", "write `interface`")],
};

pub(crate) static CLUSTER_RELAY: Section = Section {
    heading: "`[[multipath.cluster.relay]]`",
    noun: "a relay with a key",
    intro: "A relay that a key was agreed on with.",
    keys: &[
        key("address", "address", "required", "Its address in the cluster."),
        CLUSTER_KEYS[0],
        CLUSTER_KEYS[1],
        CLUSTER_KEYS[2],
    ],
    elsewhere: &[("home_address", "write `address`")],
};

pub(crate) static RELAY: Section = Section {
    heading: "A relay",
    noun: "a relay",
    intro: "`role = \"relay\"`. This host lends its link to mobile nodes of its cluster that have `[multipath.cluster]`. It advertises itself there \
every 2 s by broadcast, admits and limits them, and passes on their packets and nobody else's: UDP port 1022 in the cluster, protocol 4 on \
both sides. `spi` and the key are those of advertisements, the same for the whole cluster. It changes nothing in the host.",
    keys: &[
        ROLE,
        key("cluster", "interface", "required", "The interface to the cluster."),
        key(
            "link",
            "interface",
            "required",
            "The interface of the link that is lent; its address is what mobile nodes register. A default route has to lead by it.",
        ),
        key("trust", "word", "required", TRUST),
        key("rate", "rate", "not told", "What the link carries towards this host, as it is advertised."),
        key("rate_up", "rate", "`rate`", "What it carries from this host, as it is advertised."),
        key(
            "cost",
            "whole number",
            "`0`",
            "What the link costs, 0 to 65535: mobile nodes take the cheapest.",
        ),
        key("clients", "whole number", "`4`", "Mobile nodes that it lends to at a time, 1 to 1000."),
        key("client_rate", "rate", "no limit", "What one of them may have, each way."),
        key(
            "client_bytes",
            "size or bytes",
            "no limit",
            "What one client may have, both ways together; then it is refused for a minute.",
        ),
        key(
            "longest",
            "duration",
            "`\"60 s\"`",
            "For how long it lends at once, whole seconds; alliances are renewed.",
        ),
        CLUSTER_KEYS[0],
        CLUSTER_KEYS[1],
        CLUSTER_KEYS[2],
        key(
            "client",
            "array of tables",
            "none",
            "With `trust = \"keys\"`, whom it lends to. See `[[client]]`.",
        ),
        key("control", "table", "see below", "Where `careof-agent status` asks. See `[control]`."),
        key("metrics", "table", "no metrics", "Counters for Prometheus. See `[metrics]`."),
        key("log", "table", "see below", "See `[log]`."),
    ],
    elsewhere: &[
        ("interface", "write `link` or `cluster`"),
        ("clusters", "write `cluster`"),
        ("lifetime", "write `longest`"),
        ("home_agent", "a relay passes packets on to any home agent"),
        ("host", "a relay takes no device, table or rule of the host"),
    ],
};

pub(crate) static RELAY_CLIENT: Section = Section {
    heading: "`[[client]]` of a relay",
    noun: "a client of a relay",
    intro: "A mobile node that a key was agreed on with.",
    keys: &[
        key("home_address", "address", "required", "Its home address."),
        CLUSTER_KEYS[0],
        CLUSTER_KEYS[1],
        CLUSTER_KEYS[2],
    ],
    elsewhere: &[("address", "write `home_address`")],
};
