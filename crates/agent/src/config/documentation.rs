//! `docs/careof-agent.md`, its reference written from the table of keys.

use careof_document::section::reference_markdown;

use super::reference::SECTIONS;

const INTRODUCTION: &str = "# careof-agent

<!-- Generated: the text from crates/agent/src/config/documentation.rs, the tables from the parser's own table of keys,
crates/agent/src/config/reference.rs. Do not edit. -->

`careof-agent FILE` runs the mobility agent that FILE describes: a home agent, a foreign agent, a mobile node or a [relay](#links-of-neighbours) of Mobile
IPv4 (RFC 5944, with reverse tunnelling by RFC 3024), or a home agent, a mobile node, a correspondent node or a mobility anchor point of
[Mobile IPv6](#mobile-ipv6) (RFC 6275, authenticated by RFC 4285). `careof-agent check FILE` says what is wrong with FILE, and starts
nothing. Ready configurations are in `examples/`, a systemd unit is in `packaging/`.

## What it needs

`CAP_NET_ADMIN` and `CAP_NET_RAW`, over IPv4 `CAP_NET_BIND_SERVICE` to open port 434 (and 1021 and 1022 for paths and clusters), and `/dev/net/tun`. Once everything is open it
gives up all capabilities but the first two. It need not be root: the systemd unit runs it as the user `careof`. A mobile node and a
correspondent node of Mobile IPv6 also need nf_tables in the kernel (Linux 5.12 or later), but no `IPV6_MIP6`.

What it changes in the host - routes, rules, addresses, proxy ARP, kernel parameters - it puts back when it ends. What a
killed agent left, its successor puts in order; what kernel parameters were before is kept beside the control socket, in
`NAME.parameters`.

A home agent that is started again has all its bindings, and what it must not accept a second time, before it reads the first message: no
request is judged without its record. Their routes and proxied addresses follow a portion at a time, while it answers registrations,
`status` and signals; `host_changes_pending` says how many are missing. When none is, it tells systemd that it is ready. With
`delivery = \"proxy-arp\"` the kernel looks through a sixteenth of all proxied addresses for each ARP request and each change: for tens of
thousands of mobile nodes, have the home network routed to the agent.

A home agent with 100,000 bindings, as `make bench-bindings` measures it on two processors: 27,800 registrations a second, 19 us of processor
time each; 0.9 s from `kill -9` to the first answer and 1.5 s to ready; 251 MiB of memory. Under 20,000 forged registrations and
1,000 forged ICMP errors a second and a scrape a second, half of 200 valid registrations a second were answered within 0.5 ms and 99 % within
1.6 ms. While others kept both processors busy (load 20) it was 15,000 to 17,000 registrations a second.
With `delivery = \"proxy-arp\"` 1600 to 1900 registrations a second were answered, and it was ready after 3.6 s.

## Signals

| signal | effect |
|---|---|
| `SIGTERM`, `SIGINT` | A mobile node deregisters, for which it waits 5 s; the host is put back; exit status 0. A home agent's bindings stay in its store. |
| the same again | The end, without waiting. |
| `SIGHUP` | FILE is read again. What is wrong with it is logged and shown by `status`, and the old configuration stays in force. Changes in `[host]`, of the interfaces, the home address, `[store]`, the format of the log, and over IPv6 of `address`, `optimistic_detection`, the IPv4 addresses and a home agent's `home_network` need a restart. |

Exit status: 0 ended as it was told, 1 failed, 2 FILE or the store needs somebody's attention.

## Asking it

`careof-agent status` prints what a running agent is doing, `--json` as JSON. It asks for the bindings or visitors of 1000 mobile nodes at a
time, so that the agent goes on serving in between: with more of them the parts are not of one instant. `careof-agent switch INTERFACE` lets a mobile
node move. `careof-agent drop ADDRESS` has a home agent end the bindings of the mobile node with this home address, or a foreign agent
forget it as a visitor; it may register again, unless it is not `permitted` to. Without `--socket PATH` they ask the only agent in
`/run/careof`.

A program can ask by itself: the control socket takes one line of JSON a connection, `{\"command\": \"status\"}`,
`{\"command\": \"switch\", \"interface\": \"wlan0\"}` or `{\"command\": \"drop\", \"address\": \"10.0.0.7\"}`, and answers with one: `{\"ok\": ...}` or `{\"error\": \"...\", \"hint\": \"...\"}`.
A status has the `bindings`, `visitors` and `tunnels` of at most 1000 mobile nodes, in the order of their home addresses, and `binding_count` and `visitor_count` of
all. While its `next` is not null there are more: `{\"command\": \"status\", \"from\": NEXT}` asks for them. A tunnel of mobile nodes in several parts is in each of
these, with what it carried for the part's nodes.

## Lost requests

A registration request that is lost has to be sent again, and meanwhile nothing arrives. RFC 5944 section 3.6.3 says that \"the minimum time
between Registration Requests MUST NOT be less than 1 second\": a lost request then costs 1 s and a second one 2 s more, ten round trips and
more, and the first packets on a radio are often lost. By default careof departs from that sentence. Where packets wait for a
registration - at a handover, on a link that came or came back, not for the renewal of a binding in use - up to two requests are sent early, each after
twice the round trip and 100 ms, the least that the RFC has for agents: at a round trip of 100 ms a lost request costs 300 ms and two cost
600 ms. The round trip is the least that `round_trip` gave or registrations measured on the interface; where there is none, the least of any other
interface, or 100 ms if that is less. If it was too short a time, a request of some 100 bytes was sent in vain.

What the sentence protects stands. There is never more than one request a second on average (sections 3.6 and 2.4.2): three may be sent at once, or four
when another registration begins, and then one a second. After the early ones the waits are those of the RFC, from 1 s on, each twice the one
before. As each request has an Identification of its own, the reply to any of the last four counts, where section
3.6.2.1 has the reply to the last only; they ask for the same, and a denial of an earlier one counts only if the home agent has signed it and it is not
about the Identification (code 133). With nonces requests are repeated unchanged, and a home agent denies the second copy: that arrives after the
answer to the first, and changes nothing. A report that several requests carry is acted on once.

`early_requests = 0` is the RFC to the letter.

## Bad paths

With `path_monitor`, `selection = \"preferred\"` and `leave_bad_paths` (all on unless changed) a path in use that is bad, but not silent, is
left, make before break, for one that is clearly better, and come back to when it is good again. What `careof-agent switch` chose is left only when it no
longer works.

| | |
|---|---|
| A path is bad | for 15 s at least of what passes, in three spans in a row of 5 s and 100 packets (or 30 s and 20 packets), 5 % of the packets or more are lost; or even the least round trip to the home agent is four times what it usually is there, and 100 ms longer. |
| It is not bad | if what passes explains it: a queue stands, more than 6000 bytes are in flight, and the path delivers more than a quarter of what it is known to carry. A download that fills its own queue leaves no path. |
| Another path will do | if it is known to carry at least twice what the bad one delivers - by `rate`, or because it has delivered that within the last hour - and so many probes in a row come through it that TCP would get twice as much there at its loss and round trip (Mathis et al. 1997): at equal round trips 20 where 10 % are lost, 40 where 5 % are; 8 where the bad one is slow, each four times as quick. |
| A path that costs | (`cost = \"metered\"`) comes after all others, whatever the order. It is a refuge from silence, and from a loss of 20 % or more, not from anything else. |
| It is come back to | after 60 s at the earliest, when 40 probes in a row come through with a round trip of no more than twice what it was, or 50 ms more. Each time it is left it is avoided for twice as long, up to an hour, until it has not been left for two hours: five times in half an hour at the very most, once an hour in the long run. If everything else fails it is used all the same. |
| A mistake is undone | if within 60 s the path come to is full and delivers less than the one that was left: that is used again, and kept for eight minutes at least, then for twice as long each time. |
| The probes | take their 220 bytes from the 40 bytes a second that a path's probes may take, or from those and 1 % of what passes over the path in use. |

A path that always was slow is no bad one: the order of the interfaces is the owner's. Without `rate` no path is left for one that was not in
use within the last hour. What travels without a tunnel is not seen; what a path loses and delivers is known only where the home agent tells in
its answers what it has counted, as `careof-agent` does. `careof-agent status` shows what is wrong with a path in use, which paths are avoided, and why each handover
was made; so do the log and the metrics.

## Metrics

With `[metrics]`, Prometheus reads them at `/metrics`.

| metric | labels | meaning |
|---|---|---|
| `careof_build_info` | `role`, `version` | Which agent this is; always 1. |
| `careof_uptime_seconds` | | Time since the agent was started. |
| `careof_bindings` | | Home agent, mobility anchor point and correspondent node: mobility bindings. |
| `careof_bindings_unsaved` | | Home agent, mobility anchor point: mobile nodes of which the store does not know the latest; more than 0 for long: the disk is full, or broken. |
| `careof_visitors` | | Foreign agent: entries of the visitor list. |
| `careof_registered`, `careof_at_home` | | Mobile node: whether packets to the home address arrive; whether it is at home. |
| `careof_anchor_point_in_use` | | Mobile node: whether it uses a mobility anchor point. |
| `careof_addresses_missing` | | Home agent, foreign agent, correspondent node: addresses of the configuration that the host does not have; more than 0: nobody reaches the agent there. |
| `careof_interface_up`, `careof_interface_in_use` | `interface` | State of the interfaces; the second of a mobile node's. |
| `careof_path_state` | `interface`, `state` | Mobile node: 1 for the state in which the path through the interface is (`unknown`, `alive`, `suspect`, `silent`), 0 for the others. |
| `careof_path_round_trip_seconds`, `careof_path_variation_seconds` | `interface` | Mobile node: round trip to the home agent, smoothed, and its mean deviation. |
| `careof_path_least_round_trip_seconds` | `interface` | Mobile node: the least round trip of late, without the queues that come and go. |
| `careof_path_bad`, `careof_path_avoided` | `interface` | Mobile node: whether the path, in use, loses much or has become slow; whether it was left for that and is not good again. See *Bad paths*. |
| `careof_path_loss_ratio`, `careof_path_delivered_bits_per_second` | `interface`, `direction` | Mobile node: what is lost, about, and what has lately got through, by the counters of both ends (`out`: from here). |
| `careof_path_probes_total` | `interface`, `outcome` | Mobile node: probes `sent`, and `answered`. |
| `careof_handovers_total` | `outcome` | Mobile node: handovers that ended `registered` or `failed`. |
| `careof_handover_reasons_total` | `reason` | Mobile node: handovers begun, by why: `attached`, `chosen`, `moved`, `not-working`, `preferred`, `path-silent`, `path-lossy`, `path-slow`, `path-good-again`, `not-better`. |
| `careof_handover_latency_seconds` | | Histogram: from the beginning of a handover to its accepted registration. |
| `careof_host_changes_pending` | | Routes, proxied addresses and neighbours that wait to be put into the host after a start, or after changes that came too fast to be read. |
| `careof_tunnelled_packets_total`, `careof_tunnelled_bytes_total` | `direction` | Datagrams put into tunnels (`out`) and taken out of them (`in`), all tunnels together. |
| `careof_tunnel_packets_total`, `careof_tunnel_bytes_total` | `here`, `there`, `direction` | The same for each tunnel, while they are of at most `tunnels_up_to` mobile nodes. |
| `careof_multipath_packets_total` | `home_address`, `what` | With `[multipath]`, and so the next ones: packets that were `offered` to a tunnel, found `no-path`, were `copied` or `replayed`; that `arrived`, were `duplicate`, `waited` for earlier ones, were `late`; and those missing that were `given-up`. |
| `careof_multipath_path_state` | `home_address`, `path`, `state` | 1 for the state in which the path is (`unknown`, `alive`, `suspect`, `silent`), 0 for the others. |
| `careof_multipath_path_bytes_total` | `home_address`, `path`, `direction` | Bytes put on the path (`out`) and come by it (`in`). |
| `careof_multipath_path_share` | `home_address`, `path` | Of all bytes put on paths, 0 to 1. |
| `careof_multipath_path_outages_total`, `careof_multipath_path_out_seconds` | `home_address`, `path` | How often this end took the path for out, and for how long all in all. |
| `careof_multipath_path_round_trip_seconds`, `careof_multipath_path_variation_seconds` | `home_address`, `path` | Round trip, smoothed; how far one-way delays of successive packets are apart. |
| `careof_multipath_path_loss_ratio`, `careof_multipath_path_rate_bits_per_second` | `home_address`, `path` | What is lost on the way out; what the path is expected to carry. |
| `careof_cluster_relays` | `state` | Mobile node with `[multipath.cluster]`: relays that it has heard (`known`) and that it uses (`used`). |
| `careof_relay_lends`, `careof_relay_allies` | | Relay: whether it lends its link; mobile nodes that it is allied with. |
| `careof_relayed_packets_total`, `careof_relayed_bytes_total` | `direction` | Relay: packets passed on to mobile nodes (`in`) and from them (`out`), and their bytes within the outer header. |
| `careof_dropped_total` | `cause` | Messages without effect, and packets that a relay does not pass on (`relay-...`). |
| `careof_denied_total` | `code` | Mobile IPv4: registrations denied, sent by an agent, received by a mobile node. |
| `careof_refused_total` | `status` | Mobile IPv6: Binding Updates refused: by this home agent or correspondent node, or of this mobile node. |
| `careof_events_total` | `name` | What else is counted, as in `careof-agent status`. |
| `careof_assist_total` | `what` | With `[assist]`: what assists did: `kept`, `replayed`, `replayed-bytes`, `unreachables`, ... |
| `careof_assist_flows` | | With `[assist]`: TCP connections followed. |
| `careof_assist_stored_packets` | | With `[assist]`: packets stored. |
| `careof_assist_stored_bytes` | | With `[assist]`: bytes of these. |
| `careof_reloads_total` | `outcome` | Times FILE was read again, `applied` or `rejected`. |
| `careof_log_lines_suppressed_total` | | Lines of the log left out because there were too many. |
| `careof_clients_refused_total` | `server` | Clients of the control socket or the metrics that were too many, too slow or talked nonsense. |
";

/// The section about Mobile IPv6, before the ready configurations.
const MOBILE_IPV6: &str = "
## Mobile IPv6

The version of IP follows from the addresses in FILE: an agent is of Mobile IPv6 when `address` (home agent) or `home_address` (mobile node) is
of IPv6. A host can run agents of both versions. Commands, signals, log, status, metrics and store are those of Mobile IPv4. These are the
differences:

| | |
|---|---|
| Home agent | No interface may have the agent's own `address`; the daemon does not start if one has it. With `delivery = \"routed\"` the home network is on no link: routers send its packets, and those for that address, to this host. With `delivery = \"proxy-ndp\"` the kernel answers neighbor solicitations on `interface` for that address and those of mobile nodes that are away (RFC 6275 section 10.4.1); a router of the link, which may be this host, advertises the home network's prefix. |
| Mobile node | It needs no agent on the links that it visits, only a router that sends router advertisements. The kernel forms the care-of addresses (SLAAC), or they are configured by hand. |
| Correspondent node | A role of its own, `role = \"correspondent\"`: a host that takes part in route optimisation. Other hosts reach mobile nodes through the home agent. |
| Authentication | The mobility options of RFC 4285 authenticate Binding Updates and Binding Acknowledgements; there is no IPsec. Home Test messages and prefix discovery are not protected between home agent and mobile node, so `route_optimization` and `prefix_advertisements` are off by default. |
| IPv4 (RFC 5555) | With `ipv4_address` and `ipv4_home_agent` a mobile node is reached on networks that have only IPv4: Binding Updates and their acknowledgements travel in UDP, port 4191, everything else as IPv6 in IPv4 (RFC 4213). With `ipv4_home_address` it keeps an IPv4 address beside that of IPv6, by any care-of address. On a home link the home agent answers ARP for it while the node is away, and tells the neighbours by gratuitous ARP (it does not look for duplicates of it, as Mobile IPv4 does not); at home the node uses it as its own routes have it (RFC 5555 has nothing for IPv4 there). On a link of both versions the care-of address is that of IPv6; that of IPv4 is used after three updates without an answer, and that of IPv6 again when IPv4 has no answer either or is refused. Where there is a NAT on the way, or a private care-of address and a home agent that is not in the same private network, the registration is refused: with status 129 (`dropped-nat-on-path`) or 174 (`dropped-poorly-formed`). Routes are not optimised there. `status` writes an IPv4 care-of address as it is. |
| Paths | `path_monitor` and *Bad paths* are those of Mobile IPv4. A probe goes from the care-of address straight to the home agent, as an experimental Mobility Header message (RFC 5096) with the authentication of RFC 4285, which covers the care-of address. A probe and its answer take 128 bytes each (136 with `hmac-sha-256`). Home agents that do not know probes discard them and answer with a Binding Error, which the node counts as a drop (`no-binding`). RFC 5096 wants experimental messages in no deployment, as RFC 4064 does over IPv4; with `path_monitor = false` none is sent. What goes straight to correspondent nodes counts as something that wants an answer, and tells nothing of loss; nor does IPv4 over Mobile IPv6. |
| Mobility anchor points (RFC 5380) | `role = \"anchor-point\"`, and `[[map]]` of mobile nodes. See below. |
| Lost updates | *Lost requests* holds for Binding Updates: two are sent early, each after twice the round trip and 100 ms, where RFC 6275 section 11.8 has 1 s. MAX_UPDATE_RATE stands: never more than three within a second. The first registration waits 1.5 s, for the home agent may have to detect duplicates. Every update has a sequence number of its own, and the acknowledgement of any of the last four counts. |
| Store | A file holds bindings of one version. The daemon refuses the store of a home agent of the other version and leaves it as it is. |
| Not supported | Foreign agents (Mobile IPv6 has none), assists of the home agent for flows whose routes are optimised, NATs and mobile networks of IPv4 (RFC 5555), assists for connections of IPv4 over Mobile IPv6, `[[policy]]`. |

### Mobility anchor points

Hierarchical Mobile IPv6 (RFC 5380) makes handovers within a domain short where the home agent is far. A mobility anchor point near the mobile
node binds a regional care-of address to the address that the node has on its link. Home agent and correspondent nodes know the regional address,
and hear nothing while the node moves within the domain.

| | |
|---|---|
| Discovery | Routers tell of anchor points by an option of their advertisements (RFC 5380 section 5), which the access routers of the domain have to send. A mobile node uses an anchor point that it hears of and has a key for. Where it hears of none it does without. |
| Addresses | The regional care-of address is configured at both ends: `regional_address`, or the anchor point's first 64 bits and the home address's last 64. The anchor point's `network` is on none of the links of the domain. |
| Packets | Packets of the home agent's tunnel, and those with the headers of route optimisation, travel in a second tunnel between mobile node and anchor point. Two headers of 40 bytes take their room: the routes into the mobile node's tunnel device are for packets of 1420 bytes. |
| Failure | An anchor point is left when a router says that it has failed, when it refuses, and when `map_attempts` updates to it or through it had no answer. The mobile node then uses another one, or registers its address with the home agent as without. An anchor point that is started again has its bindings from its `[store]`. |
| Moving on | An anchor point that is left for another one sends packets on for `map_forwarding`, if the new address is of its `domain` or `neighbors`. |
| TCP | `assist` at an anchor point is what it is at a home agent, for movements within the domain, of connections that go through the home agent. Those with optimised routes pass unchanged. |
| Security | Updates are authenticated as at a home agent (RFC 4285), where the RFC has IKEv2 and IPsec; packets are not protected. Router advertisements are not authenticated: who is on the link can hide an anchor point, or say that it has failed. |
| Not supported | Several anchor points at a time, addresses that an anchor point hands out (flag R), and with `[[map]]`: `simultaneous_bindings`, `report_paths`, `path_monitor`, IPv4. |

";

const SEVERAL_LINKS: &str = "
## Several links at once

With `[multipath]` at both ends a mobile node of Mobile IPv4 uses all its interfaces at the same time, under one address. Nothing behind
it has to know. Over one link each connection gets what that link carries; over several it gets more where that was measured to help.

- A path that stops answering is left within a second. What was on it is sent again by the other paths, so a connection does not wait for TCP to
  find the loss.
- Packets of a connection that took different paths are put in order before they are passed on, and wait no longer than the paths are
  measured to be apart.
- RFC 5648 says that a flow should use one care-of address at a time, lest its packets come out of order. `dispersion = \"per-flow\"` obeys;
  `\"auto\"` does as long as one path is enough for the flow, and departs from it otherwise, because order is restored at the tunnel's end.
- Packets carry 44 bytes more than the datagram itself. The tunnel device leaves room for that (`tunnel_mtu` less 24).
- Firewalls between both ends have to let UDP port 1021 and protocol 47 through, both ways.
- Messages about paths are authenticated with the key of mobile node and home agent; of several keys of a mobile node the home agent takes all, and answers with
  the one that the mobile node uses. So a key is renewed while connections go on: add the new one to the home agent's file and send `SIGHUP`, give it to the mobile node
  and send `SIGHUP`, then take the old one out.

`careof-agent paths` shows each path: whether it works, round trip, loss, what it carries, and what passes there now. `careof-agent
status --json` has the same under `multipath`.

Not supported yet: several links over Mobile IPv6.

";

const NEIGHBOURS: &str = "
## Links of neighbours

A relay (`role = \"relay\"`) lends its link to mobile nodes on a network that it shares with them, the cluster: a wireless LAN in a train, the
Ethernet of a convoy. A mobile node with `[multipath.cluster]` finds relays by itself, and each that it uses is one path more, beside its own
links or in place of one that fails. This is Mobile IP SHAKE (Koyama, Ito, Mineno and Ishihara 2004).

| | |
|---|---|
| Discovery | The relay broadcasts an advertisement every 2 s. The mobile node asks the cheapest of the willing relays, among equal ones the fastest, and renews what it is granted. One that does not answer four requests, or denies, is left alone for a minute. A relay that is silent for 6 s, that says it stops, or that has become too dear is left, and so is one through which nothing comes for 6 s, from the beginning or later, where another path works or another relay is there; the next one is asked. The mobile node registers the addresses of relays by its own link: without any of its own, no relay's address is registered anew. |
| Packets | Both ends of the path put packets into a second tunnel (IP within IP, protocol 4): from the home agent to the relay, and from the relay to the mobile node. The relay exchanges the outer header. A path through a relay takes 64 bytes of each packet; a mobile node with a cluster leaves room for that (`tunnel_mtu` less 44). The home agent's file is the same as without relays. |
| What a relay passes on | From the cluster, what an ally sends from its home address to its home agent. From its link, what the home agent of an ally sends to the ally's home address. Everything else is dropped and counted: `dropped-relay-no-ally`, `dropped-relay-not-home-agent`, `dropped-relay-would-loop`, `dropped-relay-over-rate`. A home address, or a home agent's, in the cluster or the relay's own is refused. Each relay takes one hop of a packet's time to live, so that a loop that somebody should arrange all the same has an end (`dropped-relay-ttl-expired`). |
| Limits | `clients` at a time, `client_rate` each way, `client_bytes`, `longest` until it has to be renewed. A client that has had what it may have is told so, and is refused for a minute. One that goes away and comes again goes on where it was; of clients that are away a relay remembers four times as many as it has `clients`. With `\"first-use\"` whoever makes up home addresses has the limits of each. |
| Trust | Every message about an alliance is authenticated (HMAC-SHA-256). What a mobile node says repeats a number that the relay has drawn, and its counter goes up; what a relay says repeats the number that the mobile node has drawn for the request. So none can be replayed, also after a restart of either, and a clock that is set back does no harm. Advertisements are authenticated with `\"keys\"` only; others change nothing while there is an alliance. Whatever comes from outside the cluster's network, or through a router (it lacks the time to live of 255), is not heard. With `trust = \"keys\"` the cluster has a key for advertisements, and each pair of relay and mobile node one of its own. With `\"first-use\"` the mobile node introduces a key to each relay, made from its key with the home agent: the same after a restart. After a change of that key a relay that still remembers the old one refuses the mobile node until it is restarted, or has met four times as many others as it has `clients`. |
| A bad relay | It sees and can drop packets, as any router can. What it says of its rate is not believed: paths are measured. If it drops, delays or claims too much, it costs what its link carried. The address that it names is refused where it is the mobile node's own, the home agent's, one of the cluster or another relay's, and no data is sent there before a probe was answered through it: nobody can be flooded so. Packets that it repeats are dropped as duplicates. It cannot read messages between home agent and mobile node into anything else, as those are authenticated with their own key. |
| What it needs | A firewall in the cluster lets UDP port 1022 and protocol 4 through, one on the relay's link protocol 4. A relay behind a NAT cannot lend its link. |

A relay needs `CAP_NET_ADMIN`, `CAP_NET_RAW` and `CAP_NET_BIND_SERVICE`, and no `/dev/net/tun`. When it ends it tells its allies. `careof-agent status` at the relay
lists the allies and what was passed on for each; at the mobile node it shows the relays in use, and `careof-agent paths` shows each path with the relay it leads through.

";

const THE_FILE: &str = "
## The file

TOML. Words are written with hyphens, keys with underscores; a key that is not listed here is an error. Durations, sizes,
rates and percentages are text with a unit: `\"10 s\"`, `\"1480 B\"`, `\"9.6 kbit/s\"`, `\"75 %\"`. The tables `[host]`,
`[control]`, `[metrics]` and `[log]` are for every role; `[host]` has fewer keys over IPv6, and a relay has none.
";

/// A van with two modems.
const VAN: [(&str, &str, &str); 2] = [
    ("The mobile node", "van.toml", include_str!("../../../../examples/van.toml")),
    ("Its home agent", "van-home.toml", include_str!("../../../../examples/van-home.toml")),
];

/// A neighbour that lends its link.
const RELAY: [(&str, &str, &str); 1] =
    [("A relay", "relay.toml", include_str!("../../../../examples/relay.toml"))];

/// Ready configurations of Mobile IPv6, by what they are for.
const EXAMPLES: [(&str, &str, &str); 4] = [
    ("A home agent", "home-ipv6.toml", include_str!("../../../../examples/home-ipv6.toml")),
    ("A mobile node", "mobile-ipv6.toml", include_str!("../../../../examples/mobile-ipv6.toml")),
    (
        "A correspondent node",
        "correspondent-ipv6.toml",
        include_str!("../../../../examples/correspondent-ipv6.toml"),
    ),
    (
        "A mobility anchor point",
        "anchor-point-ipv6.toml",
        include_str!("../../../../examples/anchor-point-ipv6.toml"),
    ),
];

/// The documentation of the daemon, as in `docs/careof-agent.md`.
#[must_use]
pub fn documentation_markdown() -> String {
    let reference = reference_markdown(&SECTIONS);
    // Below a heading of its own.
    let reference = reference.replace("\n## ", "\n### ");
    let shown = |(what, name, text): (&str, &str, &str)| {
        format!("{what}, `examples/{name}`:\n\n```toml\n{text}```\n")
    };
    let (examples, van) = (EXAMPLES.map(shown).join("\n"), VAN.map(shown).join("\n"));
    let relay = RELAY.map(shown).join("\n");
    format!(
        "{INTRODUCTION}{MOBILE_IPV6}{examples}{SEVERAL_LINKS}{van}{NEIGHBOURS}{relay}{THE_FILE}{reference}"
    )
}
