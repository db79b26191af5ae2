//! The words of the scenario file for values that are one of a few.

use core::fmt;

use careof_tcp::{IdleRestart, PartialAckTimer, Profile, RtoEstimator, Variant};

use crate::model::{
    Algorithm, CareOf, Encapsulation, HandoverStyle, MovementDetection, Protocol, QueuedFate, Replay, Role,
    Routing,
};

/// A type whose values have names.
pub(crate) trait Word: Copy + 'static {
    /// All values in the order in which they are listed to people.
    const WORDS: &'static [Self];

    /// The name in the file.
    fn word(self) -> &'static str;
}

macro_rules! words {
    ($type:ty: $($variant:ident = $name:literal),+ $(,)?) => {
        impl $type {
            /// The name used in scenario files and results.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.name())
            }
        }

        impl Word for $type {
            const WORDS: &'static [Self] = &[$(Self::$variant),+];

            fn word(self) -> &'static str {
                self.name()
            }
        }
    };
}

words!(Role: Correspondent = "correspondent", HomeAgent = "home-agent", ForeignAgent = "foreign-agent",
    Mobile = "mobile", Host = "host");
words!(Protocol: MobileIpv4 = "mobile-ipv4");
words!(CareOf: CoLocated = "co-located", ForeignAgent = "foreign-agent");
words!(Routing: Triangle = "triangle", ReverseTunnel = "reverse-tunnel", RegularIp = "regular-ip");
words!(Encapsulation: IpInIp = "ip-in-ip", Minimal = "minimal", Gre = "gre");
words!(MovementDetection: LinkTrigger = "link-trigger", MissedAdvertisements = "missed-advertisements",
    Lifetime = "lifetime", Prefix = "prefix");
words!(Algorithm: HmacMd5 = "hmac-md5", HmacSha256 = "hmac-sha-256");
words!(Replay: Timestamps = "timestamps", Nonces = "nonces");
words!(HandoverStyle: MakeBeforeBreak = "make-before-break", BreakBeforeMake = "break-before-make");
words!(QueuedFate: DrainLate = "drain-late", Drop = "drop", DropWithIcmp = "drop-with-icmp", ReRoute = "re-route",
    BufferAndForward = "buffer-and-forward", Duplicate = "duplicate");

macro_rules! words_of_tcp {
    ($($type:ty),+) => {
        $(impl Word for $type {
            const WORDS: &'static [Self] = <$type>::ALL;

            fn word(self) -> &'static str {
                self.name()
            }
        })+
    };
}

words_of_tcp!(Variant, RtoEstimator, Profile, PartialAckTimer, IdleRestart);

/// How [`Jitter`](careof_link::Jitter) deviates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JitterKind {
    None,
    Uniform,
    Normal,
    Pareto,
}

/// How [`Loss`](careof_link::Loss) strikes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LossKind {
    None,
    Bernoulli,
    GilbertElliott,
}

/// [`Discipline`](careof_link::Discipline) without its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DisciplineKind {
    DropTail,
    Red,
    CoDel,
}

/// [`Workload`](crate::Workload) without its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WorkloadKind {
    Bulk,
    RequestResponse,
    Paced,
}

macro_rules! private_words {
    ($type:ty: $($variant:ident = $name:literal),+) => {
        impl Word for $type {
            const WORDS: &'static [Self] = &[$(Self::$variant),+];

            fn word(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }
        }
    };
}

private_words!(JitterKind: None = "none", Uniform = "uniform", Normal = "normal", Pareto = "pareto");
private_words!(LossKind: None = "none", Bernoulli = "bernoulli", GilbertElliott = "gilbert-elliott");
private_words!(DisciplineKind: DropTail = "drop-tail", Red = "red", CoDel = "codel");
private_words!(WorkloadKind: Bulk = "bulk", RequestResponse = "request-response", Paced = "paced");

/// The names of all values of `W`.
pub(crate) fn names<W: Word>() -> Vec<&'static str> {
    W::WORDS.iter().map(|word| word.word()).collect()
}

/// `names` as people list them: `"a", "b" or "c"`.
pub(crate) fn one_of(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
    match quoted.split_last() {
        None => "nothing".to_owned(),
        Some((only, [])) => only.clone(),
        Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
    }
}

/// The one of `known` that somebody who wrote `found` may have meant.
pub(crate) fn nearest<'a>(found: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let plain = |text: &str| text.to_lowercase().replace(['_', ' ', '.'], "-");
    let found = plain(found);
    let score = |name: &'a str| {
        let known = plain(name);
        let distance = strsim::damerau_levenshtein(&found, &known);
        // A part of a word is near it however long the rest: "ppp" is "async-ppp".
        let part = found.len() >= 3 && known.contains(&found);
        let near = distance <= (found.chars().count().max(known.len()) / 3).max(1);
        (near || part).then_some((distance, !known.starts_with(&found), name))
    };
    known
        .into_iter()
        .filter_map(score)
        .min_by_key(|(distance, starts, _)| (*distance, *starts))
        .map(|best| best.2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_word_is_near() {
        let known = ["rate", "rate_up", "delay", "delay_up", "queue"];
        assert_eq!(nearest("rato", known), Some("rate"));
        assert_eq!(nearest("rate-up", known), Some("rate_up"));
        assert_eq!(nearest("dealy", known), Some("delay"));
        assert_eq!(nearest("Queue", known), Some("queue"));
        assert_eq!(nearest("colour", known), None);
        assert_eq!(nearest("", known), None);
        assert_eq!(nearest("ppp", ["none", "async-ppp"]), Some("async-ppp"));
        assert_eq!(nearest("linux-2", ["linux", "linux-2.0"]), Some("linux-2.0"));
    }

    #[test]
    fn words_are_listed_as_people_do() {
        assert_eq!(one_of(&["a"]), "\"a\"");
        assert_eq!(one_of(&["a", "b", "c"]), "\"a\", \"b\" or \"c\"");
    }

    #[test]
    fn no_two_values_of_a_type_share_a_name() {
        fn check<W: Word>() {
            let mut all = names::<W>();
            all.sort_unstable();
            all.dedup();
            assert_eq!(all.len(), W::WORDS.len());
        }
        check::<QueuedFate>();
        check::<Routing>();
        check::<Variant>();
        check::<RtoEstimator>();
    }
}
