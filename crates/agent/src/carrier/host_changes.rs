//! What an agent has put into the host's routing, so that it can be taken out again.

use std::collections::BTreeSet;
use std::collections::btree_map::{BTreeMap, Entry};
use std::net::IpAddr;
use std::ops::Bound;

use careof_lab::{Error, IpVersion, Neighbour, Netlink, Route, Rule};
use nix::errno::Errno;

use super::HostOptions;

/// The mark of an agent's neighbours (`NDA_PROTOCOL`), a number that no program of `rt_protos` has.
const MAKER: u8 = 43;

/// The metric of a route that nobody prefers; not the largest, which others may take for the same purpose.
const UNPREFERRED: u32 = u32::MAX - 43;

/// Requests to the kernel in one portion of what is put in a portion at a time: they take a few milliseconds.
const PORTION: usize = 256;
/// As how many of them one for a proxied address counts: with a hundred thousand the kernel looks through thousands for each.
const PROXY: usize = 8;

/// What makes one route of a table another than the next.
type RouteKey = (u32, IpAddr, u8);
/// A rule's version and priority, and whom it is about.
type RuleKey = (IpVersion, u32, Option<(IpAddr, u8)>);
/// Whose address on which interface.
type AddressKey = (u32, IpAddr);

/// Something wanted, and whether the kernel has it for all that is known.
#[derive(Clone, Debug)]
struct Wanted<T> {
    what: T,
    is_there: bool,
}

/// A round through everything that is wanted: how far it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Round {
    /// Proxied addresses of a former life are taken out.
    Remains,
    /// Behind this route.
    Routes(Option<RouteKey>),
    /// Behind this proxied address.
    Proxies(Option<AddressKey>),
    /// Behind this neighbour.
    Neighbours(Option<AddressKey>),
}

/// The routes, rules, neighbours and proxied addresses of an agent.
///
/// What is wanted is kept even when the kernel cannot have it now (an interface is down or gone); [`HostChanges::settle`]
/// tries again. Nothing of it is ever in tables or at priorities that others use.
///
/// What a registration changes is in the kernel when the call returns. What may be much - what a former life had, what came back
/// with an interface, what nobody knows for certain any more - is put in by [`HostChanges::proceed`], a portion a turn. Every
/// request is one exchange with the kernel, however much there is.
#[derive(Debug)]
pub(super) struct HostChanges {
    netlink: Netlink,
    routes: BTreeMap<RouteKey, Wanted<Route>>,
    /// Few for each key, and many keys where a foreign agent has many visitors.
    rules: BTreeMap<RuleKey, Vec<Wanted<Rule>>>,
    neighbours: BTreeMap<AddressKey, Wanted<[u8; 6]>>,
    /// Neighbours that somebody else had set where one is wanted now.
    neighbours_before: BTreeMap<AddressKey, Neighbour>,
    proxies: BTreeMap<AddressKey, bool>,
    /// Proxied addresses that a killed agent left and nobody wants.
    remains: BTreeSet<AddressKey>,
    /// Routes and proxied addresses that are wanted from now on may wait for their portion.
    pub(super) is_unhurried: bool,
    /// `None` when nothing waits.
    round: Option<Round>,
    /// Something that the present round has passed may be missing since.
    again: bool,
    /// Requests that the kernel refused for another reason than that it cannot be now.
    pub(super) refused: u64,
    /// The latest of them.
    pub(super) last_refusal: Option<Error>,
}

fn key(route: &Route) -> RouteKey {
    (route.table.unwrap_or(Route::MAIN_TABLE), route.destination, route.prefix_length)
}

fn rule_key(rule: &Rule) -> RuleKey {
    (rule.version, rule.priority, rule.from)
}

/// Where what comes behind a key begins.
fn after<K>(key: Option<K>) -> Bound<K> {
    key.map_or(Bound::Unbounded, Bound::Excluded)
}

/// Whether a request failed because of what the host is like at the moment, and may be tried again.
const fn is_passing(error: &Error) -> bool {
    matches!(
        error,
        Error::System {
            errno: Errno::ENETDOWN | Errno::ENODEV | Errno::ENXIO | Errno::ENETUNREACH | Errno::EINVAL,
            ..
        }
    )
}

impl HostChanges {
    /// Begins with nothing, in the network namespace of the calling thread.
    pub(super) fn open() -> Result<Self, Error> {
        Ok(Self {
            netlink: Netlink::open()?,
            routes: BTreeMap::new(),
            rules: BTreeMap::new(),
            neighbours: BTreeMap::new(),
            neighbours_before: BTreeMap::new(),
            proxies: BTreeMap::new(),
            remains: BTreeSet::new(),
            is_unhurried: false,
            round: None,
            again: false,
            refused: 0,
            last_refusal: None,
        })
    }

    /// For questions to the kernel.
    pub(super) const fn netlink(&mut self) -> &mut Netlink {
        &mut self.netlink
    }

    /// How many lists the kernel was asked for.
    pub(super) const fn dumps(&self) -> u64 {
        self.netlink.dumps()
    }

    /// Removes what an agent with these options left when it was killed. Its tunnel device went with it, and so did
    /// everything that led there.
    ///
    /// The priorities are many, and others use some of them: ours are only the rules for our tables, and those that
    /// `is_ours` knows.
    pub(super) fn remove_remains(
        &mut self,
        options: &HostOptions,
        is_ours: impl Fn(&Rule) -> bool,
    ) -> Result<(), Error> {
        let tables = options.first_table..options.first_table.saturating_add(HostOptions::TABLES);
        let priorities =
            options.first_priority..options.first_priority.saturating_add(HostOptions::PRIORITIES);
        for rule in self.netlink.rules()? {
            if priorities.contains(&rule.priority) && (tables.contains(&rule.table) || is_ours(&rule)) {
                self.netlink.remove_rule(&rule)?;
            }
        }
        for table in tables {
            for route in self.netlink.routes(table)? {
                self.netlink.remove_route(&route)?;
            }
        }
        Ok(())
    }

    /// Counts a refusal; whether the request was carried out.
    fn note<T>(&mut self, outcome: Result<T, Error>) -> bool {
        match outcome {
            Ok(_) => true,
            Err(error) if is_passing(&error) => false,
            Err(error) => {
                self.refused += 1;
                self.last_refusal = Some(error);
                false
            }
        }
    }

    /// Wants a route, in place of the one to the same prefix in its table.
    pub(super) fn set_route(&mut self, route: Route) {
        let key = key(&route);
        if self.routes.get(&key).is_some_and(|wanted| wanted.is_there && wanted.what == route) {
            return;
        }
        if self.is_unhurried {
            self.routes.insert(key, Wanted { what: route, is_there: false });
            return self.settle();
        }
        self.put_route(key, route);
    }

    fn put_route(&mut self, key: RouteKey, route: Route) {
        let outcome = self.netlink.put_route(&route);
        let is_there = self.note(outcome);
        self.routes.insert(key, Wanted { what: route, is_there });
    }

    /// Somebody else has removed a route, which may be one of these.
    pub(super) fn note_removal(&mut self, route: &Route) {
        let found = self.routes.get_mut(&key(route));
        if let Some(wanted) = found.filter(|wanted| wanted.what.interface == route.interface) {
            wanted.is_there = false;
            self.settle();
        }
    }

    /// Has connections of this host look for the way to where a route leads again.
    ///
    /// Of IPv6 one that has found its way does not notice a better one in another table; but it does notice that its own table has got
    /// one. So that gets one, which is never preferred, for a moment.
    pub(super) fn redirect(&mut self, route: &Route) {
        let passing = Route { table: None, metric: Some(UNPREFERRED), ..*route };
        for outcome in [self.netlink.add_route(&passing), self.netlink.remove_route(&passing)] {
            self.note(outcome);
        }
    }

    /// Wants no route to this prefix in `table` any longer.
    pub(super) fn unset_route(&mut self, table: u32, destination: impl Into<IpAddr>, prefix_length: u8) {
        if let Some(wanted) = self.routes.remove(&(table, destination.into(), prefix_length)) {
            self.take_out(&wanted);
        }
    }

    fn take_out(&mut self, wanted: &Wanted<Route>) {
        // One that may not be there any more is asked for as well.
        let outcome = self.netlink.remove_route(&wanted.what);
        self.note(outcome);
    }

    /// Wants a rule.
    pub(super) fn set_rule(&mut self, rule: Rule) {
        let alike = self.rules.entry(rule_key(&rule)).or_default();
        if alike.iter().any(|wanted| wanted.is_there && wanted.what == rule) {
            return;
        }
        alike.retain(|wanted| wanted.what != rule);
        let outcome = self.netlink.add_rule(&rule);
        let is_there = self.note(outcome);
        self.rules.entry(rule_key(&rule)).or_default().push(Wanted { what: rule, is_there });
    }

    /// Wants a rule no longer.
    pub(super) fn unset_rule(&mut self, rule: &Rule) {
        let Entry::Occupied(mut alike) = self.rules.entry(rule_key(rule)) else { return };
        let Some(at) = alike.get().iter().position(|wanted| wanted.what == *rule) else { return };
        alike.get_mut().swap_remove(at);
        if alike.get().is_empty() {
            alike.remove();
        }
        let outcome = self.netlink.remove_rule(rule);
        self.note(outcome);
    }

    /// Of the rules at a priority for packets from `address`, wants this one or none.
    pub(super) fn set_rule_from(&mut self, address: impl Into<IpAddr>, priority: u32, wanted: Option<Rule>) {
        let address = address.into();
        let length = if address.is_ipv4() { 32 } else { 128 };
        let key = (IpVersion::of(address), priority, Some((address, length)));
        let alike = self.rules.get(&key).into_iter().flatten();
        let others = alike.map(|rule| &rule.what).filter(|rule| Some(*rule) != wanted.as_ref());
        let others: Vec<Rule> = others.cloned().collect();
        if let Some(rule) = wanted {
            self.set_rule(rule);
        }
        others.iter().for_each(|rule| self.unset_rule(rule));
    }

    /// Wants exactly these routes and rules: what is new is put in before what is old is taken out.
    pub(super) fn set_all(&mut self, routes: Vec<Route>, rules: Vec<Rule>) {
        let keys: BTreeSet<RouteKey> = routes.iter().map(key).collect();
        for route in routes {
            self.set_route(route);
        }
        for rule in &rules {
            self.set_rule(rule.clone());
        }
        let old: Vec<Rule> = self.rules.values().flatten().map(|wanted| wanted.what.clone()).collect();
        for rule in old.iter().filter(|rule| !rules.contains(rule)) {
            self.unset_rule(rule);
        }
        let gone: Vec<RouteKey> = self.routes.keys().filter(|key| !keys.contains(key)).copied().collect();
        for wanted in gone.iter().filter_map(|key| self.routes.remove(key)).collect::<Vec<_>>() {
            self.take_out(&wanted);
        }
    }

    /// Wants a neighbour's link-layer address to be known for good.
    pub(super) fn set_neighbour(
        &mut self,
        interface: u32,
        address: impl Into<IpAddr>,
        link_address: [u8; 6],
    ) {
        let address = address.into();
        let key = (interface, address);
        let same = |wanted: &Wanted<_>| wanted.is_there && wanted.what == link_address;
        if self.neighbours.get(&key).is_some_and(same) {
            return;
        }
        // A killed agent may have left one, which is nothing to put back.
        if let Ok(Some(before)) = self.netlink.neighbour(interface, address)
            && before.is_permanent
            && before.maker != MAKER
        {
            self.neighbours_before.insert(key, before);
            self.netlink.remove_neighbour(interface, address).ok();
        }
        let outcome = self.netlink.set_neighbour_as(MAKER, interface, address, link_address);
        let is_there = self.note(outcome);
        self.neighbours.insert(key, Wanted { what: link_address, is_there });
    }

    /// Tells the kernel what a neighbour has said of itself; it ages as what the kernel learns by itself.
    pub(super) fn learn_neighbour(
        &mut self,
        interface: u32,
        address: impl Into<IpAddr>,
        link_address: [u8; 6],
    ) {
        let outcome = self.netlink.learn_neighbour(interface, address, link_address);
        self.note(outcome);
    }

    /// Wants it no longer.
    pub(super) fn unset_neighbour(&mut self, interface: u32, address: impl Into<IpAddr>) {
        let address = address.into();
        if self.neighbours.remove(&(interface, address)).is_some() {
            let outcome = self.put_neighbour_back(interface, address);
            self.note(outcome);
        }
    }

    fn put_neighbour_back(&mut self, interface: u32, address: IpAddr) -> Result<(), Error> {
        self.netlink.remove_neighbour(interface, address)?;
        let before = self.neighbours_before.remove(&(interface, address));
        if let Some((maker, link_address)) =
            before.and_then(|before| Some((before.maker, before.link_address?)))
        {
            self.netlink.set_neighbour_as(maker, interface, address, link_address)?;
        }
        Ok(())
    }

    /// Wants ARP requests for an address to be answered.
    pub(super) fn set_proxy(&mut self, interface: u32, address: impl Into<IpAddr>) {
        let key = (interface, address.into());
        if self.proxies.get(&key) == Some(&true) {
            return;
        }
        if self.is_unhurried {
            self.proxies.insert(key, false);
            return self.settle();
        }
        self.put_proxy(key);
    }

    fn put_proxy(&mut self, key: AddressKey) {
        self.remains.remove(&key);
        let outcome = self.netlink.put_proxy_neighbour(key.0, key.1);
        let is_there = self.note(outcome);
        self.proxies.insert(key, is_there);
    }

    /// A killed agent may have left proxied addresses on an interface. `is_wanted` says whether one is wanted, and of those that
    /// are none of the agent's nothing: what is wanted is there already then, and the rest is taken out.
    pub(super) fn take_over_proxies(&mut self, interface: u32, is_wanted: impl Fn(IpAddr) -> Option<bool>) {
        let found = match self.netlink.proxy_neighbours(interface) {
            Ok(found) => found,
            Err(error) => {
                self.note(Err::<(), _>(error));
                return;
            }
        };
        for address in found {
            let key = (interface, address);
            match is_wanted(address) {
                Some(true) => drop(self.proxies.insert(key, true)),
                Some(false) => drop(self.remains.insert(key)),
                None => {}
            }
        }
        if !self.remains.is_empty() {
            self.settle();
        }
    }

    /// Wants that no longer - neither now nor from a former life.
    pub(super) fn unset_proxy(&mut self, interface: u32, address: impl Into<IpAddr>) {
        let address = address.into();
        self.proxies.remove(&(interface, address));
        self.remains.remove(&(interface, address));
        let outcome = self.netlink.remove_proxy_neighbour(interface, address);
        self.note(outcome);
    }

    /// The kernel may have removed what concerns an interface: it went down, or away.
    pub(super) fn doubt_interface(&mut self, index: u32) {
        for wanted in self.routes.values_mut().filter(|wanted| wanted.what.interface == index) {
            wanted.is_there = false;
        }
        for (_, is_there) in self.proxies.iter_mut().filter(|((interface, _), _)| *interface == index) {
            *is_there = false;
        }
        for (_, wanted) in self.neighbours.iter_mut().filter(|((interface, _), _)| *interface == index) {
            wanted.is_there = false;
        }
    }

    /// The kernel has removed the routes that name this address as their source, and does not say so. When it was an
    /// interface's last one, all routes by that interface are gone, too.
    pub(super) fn doubt_address(&mut self, index: u32, address: IpAddr) {
        self.doubt_interface(index);
        for wanted in self.routes.values_mut().filter(|wanted| wanted.what.source == Some(address)) {
            wanted.is_there = false;
        }
    }

    /// Nothing is known for certain any more.
    pub(super) fn doubt_everything(&mut self) {
        self.routes.values_mut().for_each(|wanted| wanted.is_there = false);
        self.rules.values_mut().flatten().for_each(|wanted| wanted.is_there = false);
        self.proxies.values_mut().for_each(|is_there| *is_there = false);
        self.neighbours.values_mut().for_each(|wanted| wanted.is_there = false);
    }

    /// Forgets an interface that will not come back: its number is not given again.
    pub(super) fn forget_interface(&mut self, index: u32) {
        self.routes.retain(|_, wanted| wanted.what.interface != index);
        self.proxies.retain(|(interface, _), _| *interface != index);
        self.remains.retain(|(interface, _)| *interface != index);
        self.neighbours.retain(|(interface, _), _| *interface != index);
        self.neighbours_before.retain(|(interface, _), _| *interface != index);
    }

    /// Has the kernel finish what it has told of an interface, so that its parameters are where its name says.
    pub(super) fn wait_for_interface(&mut self, index: u32) {
        let outcome = self.netlink.wait_for_interface(index);
        self.note(outcome);
    }

    /// Takes everything off an interface that is there but the agent's no longer.
    pub(super) fn leave_interface(&mut self, index: u32) {
        let of_it = |wanted: &Wanted<Route>| wanted.what.interface == index;
        let routes: Vec<_> = self.routes.values().filter(|wanted| of_it(wanted)).cloned().collect();
        routes.iter().for_each(|wanted| self.take_out(wanted));
        let proxies: Vec<_> = self.proxies.keys().filter(|key| key.0 == index).copied().collect();
        proxies.into_iter().for_each(|(interface, address)| self.unset_proxy(interface, address));
        let neighbours: Vec<_> = self.neighbours.keys().filter(|key| key.0 == index).copied().collect();
        neighbours.into_iter().for_each(|(interface, address)| self.unset_neighbour(interface, address));
        self.forget_interface(index);
    }

    /// Has what could not be put in, or may have been removed by others, tried again in portions.
    pub(super) const fn settle(&mut self) {
        match self.round {
            None => self.round = Some(Round::Remains),
            // It began not long ago, and would never end if it always began anew.
            Some(_) => self.again = true,
        }
    }

    /// Whether something waits for [`HostChanges::proceed`].
    pub(super) const fn is_settling(&self) -> bool {
        self.round.is_some()
    }

    /// How much waits.
    pub(super) fn unsettled(&self) -> usize {
        if !self.is_settling() {
            return 0;
        }
        let routes = self.routes.values().filter(|wanted| !wanted.is_there).count();
        let proxies = self.proxies.values().filter(|is_there| !**is_there).count();
        let neighbours = self.neighbours.values().filter(|wanted| !wanted.is_there).count();
        routes + proxies + neighbours + self.remains.len()
    }

    /// Puts in, or takes out, the next portion of what waits. Rules are few and come first.
    pub(super) fn proceed(&mut self) {
        let mut left = PORTION;
        while let Some(round) = self.round.filter(|_| left > 0) {
            let (done, next) = match round {
                Round::Remains => self.proceed_with_remains(left),
                Round::Routes(behind) => self.proceed_with_routes(behind, left),
                Round::Proxies(behind) => self.proceed_with_proxies(behind, left),
                Round::Neighbours(behind) => self.proceed_with_neighbours(behind, left),
            };
            left = left.saturating_sub(done);
            self.round = match next {
                None if std::mem::take(&mut self.again) => Some(Round::Remains),
                next => next,
            };
        }
    }

    fn proceed_with_remains(&mut self, most: usize) -> (usize, Option<Round>) {
        let missing = self.rules.values().flatten().filter(|wanted| !wanted.is_there);
        let rules: Vec<Rule> = missing.map(|wanted| wanted.what.clone()).collect();
        let mut done = rules.len();
        rules.into_iter().for_each(|rule| self.set_rule(rule));
        while done < most {
            let Some((interface, address)) = self.remains.pop_first() else {
                return (done, Some(Round::Routes(None)));
            };
            let outcome = self.netlink.remove_proxy_neighbour(interface, address);
            self.note(outcome);
            done += PROXY;
        }
        (done, Some(Round::Remains))
    }

    fn proceed_with_routes(&mut self, behind: Option<RouteKey>, most: usize) -> (usize, Option<Round>) {
        let missing = self.routes.range((after(behind), Bound::Unbounded));
        let missing = missing.filter(|(_, wanted)| !wanted.is_there).map(|(key, wanted)| (*key, wanted.what));
        let portion: Vec<_> = missing.take(most).collect();
        let last = portion.last().filter(|_| portion.len() == most).map(|(key, _)| *key);
        let done = portion.len();
        portion.into_iter().for_each(|(key, route)| self.put_route(key, route));
        (done, Some(last.map_or(Round::Proxies(None), |last| Round::Routes(Some(last)))))
    }

    fn proceed_with_proxies(&mut self, behind: Option<AddressKey>, most: usize) -> (usize, Option<Round>) {
        let missing = self.proxies.range((after(behind), Bound::Unbounded));
        let missing = missing.filter(|(_, is_there)| !**is_there).map(|(key, _)| *key);
        let most = most.div_ceil(PROXY);
        let portion: Vec<_> = missing.take(most).collect();
        let last = portion.last().filter(|_| portion.len() == most).copied();
        let done = portion.len() * PROXY;
        portion.into_iter().for_each(|key| self.put_proxy(key));
        (done, Some(last.map_or(Round::Neighbours(None), |last| Round::Proxies(Some(last)))))
    }

    fn proceed_with_neighbours(&mut self, behind: Option<AddressKey>, most: usize) -> (usize, Option<Round>) {
        let missing = self.neighbours.range((after(behind), Bound::Unbounded));
        let missing = missing.filter(|(_, wanted)| !wanted.is_there).map(|(key, wanted)| (*key, wanted.what));
        let portion: Vec<_> = missing.take(most).collect();
        let last = portion.last().filter(|_| portion.len() == most).map(|(key, _)| *key);
        let done = portion.len();
        for ((interface, address), link_address) in portion {
            self.set_neighbour(interface, address, link_address);
        }
        (done, last.map(|last| Round::Neighbours(Some(last))))
    }

    /// Takes everything out, except the routes into `device`, which go with it. The first refusal is returned, and the rest
    /// carried out all the same.
    pub(super) fn undo(&mut self, device: u32) -> Result<(), Error> {
        self.round = None;
        let mut outcome = Ok(());
        let mut note = |result: Result<_, Error>| {
            if let Err(error) = result
                && !is_passing(&error)
                && outcome.is_ok()
            {
                outcome = Err(error);
            }
        };
        for wanted in std::mem::take(&mut self.rules).into_values().flatten() {
            note(self.netlink.remove_rule(&wanted.what).map(drop));
        }
        let routes = std::mem::take(&mut self.routes);
        for wanted in routes.values().filter(|wanted| wanted.what.interface != device) {
            note(self.netlink.remove_route(&wanted.what).map(drop));
        }
        let mut proxies = std::mem::take(&mut self.remains);
        proxies.extend(std::mem::take(&mut self.proxies).into_keys());
        let interfaces: BTreeSet<u32> = proxies.iter().map(|(interface, _)| *interface).collect();
        for interface in interfaces {
            let wanted = |address: &IpAddr| proxies.contains(&(interface, *address));
            let there: Vec<IpAddr> = match self.netlink.proxy_neighbours(interface) {
                // In the order of the kernel's list, so that it finds each at once.
                Ok(listed) => listed.into_iter().filter(wanted).collect(),
                Err(_) => {
                    let of_it = proxies.iter().filter(|(of, _)| *of == interface);
                    of_it.map(|(_, address)| *address).collect()
                }
            };
            for address in there {
                note(self.netlink.remove_proxy_neighbour(interface, address).map(drop));
            }
        }
        for (interface, address) in std::mem::take(&mut self.neighbours).into_keys() {
            note(self.put_neighbour_back(interface, address));
        }
        outcome
    }
}
