//! Joins several error messages to one.

use std::collections::HashSet;

/// Joins messages as Kubernetes does. A single distinct message is returned unchanged. Several are listed in order
/// as `[m1, m2]`, each once. An empty slice gives an empty text.
///
/// ```
/// assert_eq!(field_errors::aggregate_messages(&["a", "a"]), "a");
/// assert_eq!(field_errors::aggregate_messages(&["a", "b", "a"]), "[a, b]");
/// ```
pub fn aggregate_messages<S: AsRef<str>>(messages: &[S]) -> String {
    let mut seen = HashSet::new();
    let distinct: Vec<&str> =
        messages.iter().map(AsRef::as_ref).filter(|message| seen.insert(*message)).collect();
    match distinct.as_slice() {
        [] => String::new(),
        [only] => (*only).to_owned(),
        several => format!("[{}]", several.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_joined_and_deduplicated() {
        assert_eq!(aggregate_messages::<&str>(&[]), "");
        assert_eq!(aggregate_messages(&["a"]), "a");
        assert_eq!(aggregate_messages(&["a", "a", "a"]), "a");
        assert_eq!(aggregate_messages(&["b", "a"]), "[b, a]");
        assert_eq!(aggregate_messages(&["b", "a", "b", "c"]), "[b, a, c]");
        assert_eq!(aggregate_messages(&[String::from("[a, b]"), String::from("c")]), "[[a, b], c]");
    }
}
