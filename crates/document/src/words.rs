//! Words: how they are listed, and which one was meant.

/// `names` as people list them: `"a", "b" or "c"`.
#[must_use]
pub fn one_of(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
    match quoted.split_last() {
        None => "nothing".to_owned(),
        Some((only, [])) => only.clone(),
        Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
    }
}

/// The one of `known` that somebody who wrote `found` may have meant.
#[must_use]
pub fn nearest<'a>(found: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
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

/// All of `known`, those that somebody who wrote `found` may have meant first.
#[must_use]
pub fn by_nearness<'a>(found: &str, known: &[&'a str]) -> Vec<&'a str> {
    let found = plain(found);
    let mut ranked = known.to_vec();
    // Equally near ones stay in their order.
    ranked.sort_by_cached_key(|name| {
        let known = plain(name);
        let is_part = found.len() >= 3 && known.contains(&found);
        (strsim::damerau_levenshtein(&found, &known), !is_part, !known.starts_with(&found))
    });
    ranked
}

/// Without what people write in different ways.
fn plain(text: &str) -> String {
    text.to_lowercase().replace(['_', ' ', '.'], "-")
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
    fn all_words_are_ranked_by_how_near_they_are() {
        let known = ["queue", "delay_up", "rate_up", "rate", "delay"];
        assert_eq!(by_nearness("rato", &known)[..2], ["rate", "rate_up"]);
        assert_eq!(by_nearness("Delai", &known)[..2], ["delay", "delay_up"]);
        assert_eq!(by_nearness("", &known).len(), known.len());
    }

    #[test]
    fn words_are_listed_as_people_do() {
        assert_eq!(one_of(&["a"]), "\"a\"");
        assert_eq!(one_of(&["a", "b", "c"]), "\"a\", \"b\" or \"c\"");
    }
}
