//! The clauses of an `Accept` header.

/// One media range with its parameters.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Clause<'h> {
    main: &'h str,
    sub: &'h str,
    quality: f32,
    parameters: Vec<(&'h str, &'h str)>,
}

impl<'h> Clause<'h> {
    /// Whether it takes a type, such as `application` and `json`.
    pub(crate) fn takes(&self, main: &str, sub: &str) -> bool {
        (self.main == "*" && self.sub == "*")
            || (self.main.eq_ignore_ascii_case(main)
                && (self.sub == "*" || self.sub.eq_ignore_ascii_case(sub)))
    }

    /// A parameter; of several the last.
    pub(crate) fn parameter(&self, name: &str) -> Option<&'h str> {
        self.parameters.iter().rev().find(|(key, _)| *key == name).map(|&(_, value)| value)
    }

    /// How many of its two parts are named.
    fn specificity(&self) -> usize {
        usize::from(self.main != "*") + usize::from(self.sub != "*")
    }
}

/// Reads an `Accept` header: what the client likes better first, then what is more specific, then
/// in the order of the header. What is malformed, or refused with quality 0, is left out.
pub(crate) fn clauses(header: &str) -> Vec<Clause<'_>> {
    let mut clauses: Vec<_> = header.split(',').filter_map(clause).collect();
    clauses.retain(|clause| clause.quality > 0.0);
    clauses.sort_by(|a, b| {
        let by_quality = b.quality.total_cmp(&a.quality);
        by_quality.then_with(|| b.specificity().cmp(&a.specificity()))
    });
    clauses
}

fn clause(text: &str) -> Option<Clause<'_>> {
    let mut parts = text.split(';');
    let range = parts.next()?.trim();
    let (main, sub) = match range.split_once('/') {
        Some((main, sub)) => (main.trim(), sub.trim()),
        None if range == "*" => ("*", "*"),
        None => return None,
    };
    if main.is_empty() || sub.is_empty() || sub.contains('/') {
        return None;
    }
    let mut quality = 1.0;
    let mut parameters = Vec::new();
    for (name, value) in parts.filter_map(|part| part.split_once('=')) {
        match (name.trim(), value.trim()) {
            // What is no number counts as 0, as for Kubernetes.
            ("q", value) => quality = value.parse().unwrap_or(0.0),
            parameter => parameters.push(parameter),
        }
    }
    Some(Clause { main, sub, quality, parameters })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(header: &str) -> Vec<String> {
        clauses(header).iter().map(|clause| format!("{}/{}", clause.main, clause.sub)).collect()
    }

    #[test]
    fn better_liked_and_more_specific_clauses_come_first() {
        assert_eq!(order("a/b;q=0.5, c/d, e/*, *"), ["c/d", "e/*", "*/*", "a/b"]);
        assert_eq!(order("a/b, c/d"), ["a/b", "c/d"]);
    }

    #[test]
    fn what_is_malformed_or_refused_is_left_out() {
        assert_eq!(order("a, /b, a/, a/b/c, , x/y;q=0, z/w;q=x, k/l"), ["k/l"]);
    }

    #[test]
    fn parameters_have_no_order_and_the_last_counts() {
        let found = clauses("a/b; v=v1 ;as=Table;v=v2;odd");
        let found = found.first().unwrap();
        assert_eq!(found.parameter("v"), Some("v2"));
        assert_eq!(found.parameter("as"), Some("Table"));
        assert_eq!(found.parameter("odd"), None);
    }

    #[test]
    fn letters_of_types_have_no_case() {
        assert!(clauses("Application/JSON").first().unwrap().takes("application", "json"));
        assert!(!clauses("text/*").first().unwrap().takes("application", "json"));
    }
}
