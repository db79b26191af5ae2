//! The queue of the path in the agent: short, managed, and taken along at a handover (section 8 of the thesis behind this project,
//! which asks for active queue management in front of the wireless link; CoDel: RFC 8289; RED: Floyd and Jacobson 1993).
//!
//! - **Where.** At the home agent and at a foreign agent for what goes to the mobile node, on the mobile node for what it sends.
//!   No end host changes. It is for all packets of the mobile node, not only TCP.
//! - **What it needs.** The rate of the path; while that is unknown it is not there at all.
//! - **What it does.** Packets leave at [`crate::PathQueue::margin`] below that rate, tunnel included. So the queue that
//!   would build up at the link builds up here, where there is a discipline and a limit, and where the agent can lay hands on
//!   it: at a handover what waits goes by the new path, in order ([`QueueAtHandover::ReRoute`]), is dropped, or goes on by the
//!   old path beside what goes by the new one. While the path is lost nothing leaves.
//! - **Late, missing or wrong.** A rate that is too high moves the queue back to the link; one that is too low costs the difference.
//!   Without the news that the path is gone, what leaves is lost as it is without this queue. False news of a loss stop the
//!   mobile node's packets until a path is said to be usable, and for [`LONGEST_OUTAGE`] at most.
//! - **Not with `replay`** nor anything else that keeps packets: a copy that is kept goes on at once, and a packet that
//!   is held does not. Of the two, `replay` has a queue of its own at the path's pace while it runs.
//! - **Risks.** Every packet waits for its own transmission time here and again at the link. Nothing is marked for ECN: a mark would
//!   have to be made when the packet leaves, and the agents that carry bytes write no inner IP headers.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use core::net::IpAddr;

use careof_base::{DataRate, Instant, RandomStream};
use careof_link::{Config as LinkConfig, DropCause, Fate as LinkFate, Framing, Link, Output};

use crate::assist::Assist;
use crate::context::{Context, Outbox};
use crate::keeping::Held;
use crate::paths::{self, LONGEST_OUTAGE, PathEvent, Usable};
use crate::timers::Owner;
use crate::{DropReason, Fate, PathId, PathQueue, Place, QueueAtHandover, Token, Wake};

/// CoDel lets the last full-sized packet be (RFC 8289 section 5.4); this is full size until a larger one comes.
const COMMON_MTU: u16 = 1500;
/// Bytes of the tunnel around a packet: IP in IP (RFC 2003), or IPv6 in IPv6 (RFC 2473).
const fn tunnel(mobile: IpAddr) -> u16 {
    match mobile {
        IpAddr::V4(_) => 20,
        IpAddr::V6(_) => 40,
    }
}

/// Has a queue in the agent for the path of every mobile node.
#[derive(Debug, Default)]
pub(crate) struct PathQueueAssist {
    mobiles: BTreeMap<IpAddr, Queues>,
    /// Links made so far, for their random numbers.
    made: u64,
}

/// The queues of a mobile node.
#[derive(Debug, Default)]
struct Queues {
    present: Option<Queue>,
    /// Those of paths that were left, which still deliver.
    left: VecDeque<Queue>,
    lost_since: Option<Instant>,
    /// What is to take a path whose rate is unknown, and since when: it goes in a moment, for an agent may hear of a path
    /// first and of its rate next.
    unpaced: Option<(Instant, VecDeque<Held>)>,
}

/// The queue of a path.
#[derive(Debug)]
struct Queue {
    path: Option<PathId>,
    link: Box<Link<Token>>,
    /// What is in it, in order, the packet at its head included.
    waiting: VecDeque<Held>,
}

impl Queues {
    fn let_go_unpaced(&mut self, outbox: &mut Outbox) {
        for held in self.unpaced.take().into_iter().flat_map(|(_, waiting)| waiting) {
            outbox.let_go(held, None);
        }
    }
}

impl Queue {
    /// The `number`th one, for its random numbers.
    fn new(link: LinkConfig, path: Option<PathId>, mobile: IpAddr, number: u64) -> Self {
        let seed = match mobile {
            IpAddr::V4(mobile) => u64::from(mobile.to_bits()),
            // Both halves, the prefix and the interface identifier, tell mobile nodes apart.
            IpAddr::V6(mobile) => (mobile.to_bits() >> 64) as u64 ^ mobile.to_bits() as u64,
        };
        let random = |user| RandomStream::new(seed, number, user);
        let link = Link::new(link, random("loss"), random("jitter"), random("queue"));
        Self { path, link: Box::new(link), waiting: VecDeque::new() }
    }

    /// The path has other properties.
    fn follow(&mut self, now: Instant, link: LinkConfig) {
        let mtu = self.link.config().mtu.max(link.mtu);
        let link = LinkConfig { mtu, ..link };
        if link != *self.link.config() {
            self.link.reconfigure(now, link);
        }
    }

    /// Lines up what waited for another path, in order.
    fn take_over(&mut self, now: Instant, waiting: VecDeque<Held>, outbox: &mut Outbox) {
        for held in waiting {
            if let Err(reason) = self.enqueue(now, held) {
                outbox.give_up(held, reason);
            }
        }
        self.serve(now, None, outbox);
    }

    /// Lines a packet up.
    fn enqueue(&mut self, now: Instant, held: Held) -> Result<(), DropReason> {
        if held.size > self.link.config().mtu {
            let config = LinkConfig { mtu: held.size, ..self.link.config().clone() };
            self.link.reconfigure(now, config);
        }
        self.link.enqueue(now, held.token, held.size.into()).map_err(reason)?;
        self.waiting.push_back(held);
        Ok(())
    }

    /// Takes a packet out of the list.
    fn take(&mut self, token: Token) -> Option<Held> {
        let index = self.waiting.iter().position(|held| held.token == token)?;
        self.waiting.remove(index)
    }

    /// Lets go what has left by `now`.
    fn serve(&mut self, now: Instant, via: Option<PathId>, outbox: &mut Outbox) {
        while let Some(output) = self.link.poll(now) {
            match output {
                Output::Delivered { packet, .. } => {
                    if let Some(held) = self.take(packet) {
                        outbox.let_go(held, via);
                    }
                }
                Output::Dropped { packet, cause, .. } => {
                    if let Some(held) = self.take(packet) {
                        outbox.give_up(held, reason(cause));
                    }
                }
            }
        }
    }
}

const fn reason(cause: DropCause) -> DropReason {
    match cause {
        DropCause::RedEarly | DropCause::CoDel => DropReason::QueueManagement,
        DropCause::QueueFull
        | DropCause::Loss
        | DropCause::LinkDown
        | DropCause::MtuExceeded
        | DropCause::ExcessiveCollisions
        | DropCause::RetryLimit
        | DropCause::IcmpFiltered => DropReason::QueueFull,
    }
}

/// The link that stands for a path to `mobile` of this rate; `None`: it would send nothing.
fn link_config(place: Place, queue: &PathQueue, mobile: IpAddr, rate: DataRate) -> Option<LinkConfig> {
    let rate = (rate.bits_per_second() as f64 * (1.0 - queue.margin)) as u64;
    let overhead_bytes = if place == Place::ForeignAgent { 0 } else { tunnel(mobile) };
    (rate > 0).then(|| LinkConfig {
        rate: DataRate::from_bits_per_second(rate),
        queue: queue.queue,
        mtu: COMMON_MTU,
        framing: Framing { overhead_bytes, ..Framing::NONE },
        ..LinkConfig::default()
    })
}

impl Assist for PathQueueAssist {
    type State = ();

    fn on_datagram(&mut self, cx: &mut Context<'_>, mobile: IpAddr, size: u16) -> Fate {
        if cx.config.path_queue.is_none() {
            return Fate::Pass;
        }
        let fate = self.line_up(cx, mobile, size);
        self.set_timer(cx, mobile);
        fate
    }

    fn on_mobile_path(&mut self, cx: &mut Context<'_>, mobile: IpAddr, event: &PathEvent) {
        let Some(rules) = cx.config.path_queue else { return };
        match event {
            PathEvent::Lost => {
                let Some(queues) = self.mobiles.get_mut(&mobile) else { return };
                queues.lost_since = Some(cx.now);
                if let Some(queue) = &mut queues.present {
                    queue.serve(cx.now, None, cx.outbox);
                    queue.link.set_down(cx.now, LinkFate::Keep, LinkFate::Keep);
                }
            }
            PathEvent::Usable(usable) => self.on_usable(cx, &rules, mobile, usable),
            PathEvent::Announced { .. } | PathEvent::FalseAlarm | PathEvent::Copies { .. } => {}
        }
        self.set_timer(cx, mobile);
    }

    fn on_registered(&mut self, cx: &mut Context<'_>, mobile: IpAddr) {
        if cx.config.path_queue.is_some() {
            self.follow(cx, mobile);
            self.set_timer(cx, mobile);
        }
    }

    fn on_mobile_timeout(&mut self, cx: &mut Context<'_>, mobile: IpAddr, wake: Wake) {
        if wake == Wake::Queue && cx.config.path_queue.is_some() {
            self.serve(cx.now, mobile, cx.outbox);
            self.set_timer(cx, mobile);
        }
    }

    fn forget_mobile(&mut self, mobile: IpAddr) {
        let is_empty = |queues: &Queues| {
            queues.present.is_none()
                && queues.left.is_empty()
                && queues.unpaced.is_none()
                && queues.lost_since.is_none()
        };
        if self.mobiles.get(&mobile).is_some_and(is_empty) {
            self.mobiles.remove(&mobile);
        }
    }

    fn close(&mut self, outbox: &mut Outbox) {
        for mut queues in core::mem::take(&mut self.mobiles).into_values() {
            queues.let_go_unpaced(outbox);
            for queue in queues.left {
                queue.waiting.iter().for_each(|held| outbox.let_go(*held, queue.path));
            }
            if let Some(queue) = queues.present {
                queue.waiting.iter().for_each(|held| outbox.let_go(*held, None));
            }
        }
    }

    #[cfg(test)]
    fn mobiles(&self) -> usize {
        self.mobiles.len()
    }
}

impl PathQueueAssist {
    /// A packet of `size` bytes takes the path of the mobile node: whether it waits.
    fn line_up(&mut self, cx: &mut Context<'_>, mobile: IpAddr, size: u16) -> Fate {
        let Some(queues) = self.mobiles.get_mut(&mobile) else { return Fate::Pass };
        queues.let_go_unpaced(cx.outbox);
        let Some(queue) = &mut queues.present else { return Fate::Pass };
        // What left in front of it goes first.
        queue.serve(cx.now, None, cx.outbox);
        let Some(token) = cx.store.take(size) else {
            cx.counters.not_kept += 1;
            return Fate::Drop(DropReason::QueueFull);
        };
        match queue.enqueue(cx.now, Held { token, size }) {
            Ok(()) => {
                cx.counters.held += 1;
                queue.serve(cx.now, None, cx.outbox);
                Fate::Hold(token)
            }
            Err(reason) => {
                cx.store.give_back(token, size);
                Fate::Drop(reason)
            }
        }
    }

    fn on_usable(&mut self, cx: &mut Context<'_>, rules: &PathQueue, mobile: IpAddr, usable: &Usable) {
        let rate = paths::rate(&usable.new, cx.config.place.keeps());
        let link = rate.and_then(|rate| link_config(cx.config.place, rules, mobile, rate));
        let queues = self.mobiles.entry(mobile).or_default();
        queues.lost_since = None;
        let old = queues.present.take();
        let mut old = old.map(|mut queue| {
            queue.serve(cx.now, None, cx.outbox);
            queue
        });
        if let (Some(queue), Some(link)) = (&mut old, &link)
            && queue.path == usable.to
        {
            // The same path, with its rate as it is now.
            queue.link.set_up(cx.now);
            queue.follow(cx.now, link.clone());
            queue.serve(cx.now, None, cx.outbox);
            queues.present = old;
            return;
        }
        queues.let_go_unpaced(cx.outbox);
        let mut new = link.map(|link| {
            self.made += 1;
            Queue::new(link, usable.to, mobile, self.made)
        });
        if let Some(old) = old {
            let is_dead = usable.old_is_lost == Some(true) || old.path.is_none();
            match rules.at_handover {
                QueueAtHandover::ReRoute => match &mut new {
                    Some(new) => new.take_over(cx.now, old.waiting, cx.outbox),
                    None => queues.unpaced = Some((cx.now, old.waiting)),
                },
                QueueAtHandover::DrainLate if !is_dead => queues.left.push_back(old),
                QueueAtHandover::Drop | QueueAtHandover::DrainLate => {
                    old.waiting.iter().for_each(|held| cx.outbox.give_up(*held, DropReason::Handover));
                }
            }
        }
        queues.present = new;
    }

    /// A registration says again what the present path is like.
    fn follow(&mut self, cx: &mut Context<'_>, mobile: IpAddr) {
        let (Some(rules), None) = (cx.config.path_queue, cx.paths.lost_since(mobile)) else { return };
        let rate = paths::rate(&cx.paths.properties(mobile), cx.config.place.keeps());
        let Some(link) = rate.and_then(|rate| link_config(cx.config.place, &rules, mobile, rate)) else {
            return;
        };
        let queues = self.mobiles.entry(mobile).or_default();
        if let Some(queue) = &mut queues.present {
            queue.path = cx.paths.present(mobile);
            queue.follow(cx.now, link);
            return;
        }
        self.made += 1;
        let mut queue = Queue::new(link, cx.paths.present(mobile), mobile, self.made);
        if let Some((_, waiting)) = queues.unpaced.take() {
            queue.take_over(cx.now, waiting, cx.outbox);
        }
        queues.present = Some(queue);
    }

    /// Does what is due for a mobile node.
    fn serve(&mut self, now: Instant, mobile: IpAddr, outbox: &mut Outbox) {
        let Some(queues) = self.mobiles.get_mut(&mobile) else { return };
        queues.let_go_unpaced(outbox);
        if let (Some(since), Some(queue)) = (queues.lost_since, &mut queues.present)
            && now >= since + LONGEST_OUTAGE
        {
            queue.link.set_up(now);
            queues.lost_since = None;
        }
        for queue in &mut queues.left {
            queue.serve(now, queue.path, outbox);
        }
        queues.left.retain(|queue| !queue.waiting.is_empty());
        if let Some(queue) = &mut queues.present {
            queue.serve(now, None, outbox);
        }
    }

    fn set_timer(&self, cx: &mut Context<'_>, mobile: IpAddr) {
        cx.timers.set_or_stop(Owner::Mobile(mobile), Wake::Queue, self.wake_at(mobile));
    }

    /// When to serve it next.
    fn wake_at(&self, mobile: IpAddr) -> Option<Instant> {
        let queues = self.mobiles.get(&mobile)?;
        let waiting = queues.present.as_ref().is_some_and(|queue| !queue.waiting.is_empty());
        let patience = queues.lost_since.filter(|_| waiting).map(|since| since + LONGEST_OUTAGE);
        let links = queues.left.iter().chain(&queues.present);
        let unpaced = queues.unpaced.as_ref().map(|(since, _)| *since);
        links.filter_map(|queue| queue.link.next_timeout()).chain(patience).chain(unpaced).min()
    }
}
