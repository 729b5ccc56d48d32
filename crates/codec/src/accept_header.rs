//! The clauses of an `Accept` header.

/// One media range with its parameters.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AcceptClause<'h> {
    main_type: &'h str,
    subtype: &'h str,
    quality: f32,
    media_parameters: Vec<(&'h str, &'h str)>,
}

impl<'h> AcceptClause<'h> {
    /// Reports whether the clause matches a media type, such as `application` and `json`.
    pub(crate) fn accepts_media_type(&self, main: &str, sub: &str) -> bool {
        (self.main_type == "*" && self.subtype == "*")
            || (self.main_type.eq_ignore_ascii_case(main)
                && (self.subtype == "*" || self.subtype.eq_ignore_ascii_case(sub)))
    }

    /// The value of a parameter; the last one if there are several.
    pub(crate) fn media_parameter_value(&self, name: &str) -> Option<&'h str> {
        self.media_parameters.iter().rev().find(|(key, _)| *key == name).map(|&(_, value)| value)
    }

    /// The number of parts of the media range, main type and subtype, that are not wildcards.
    fn specificity(&self) -> usize {
        usize::from(self.main_type != "*") + usize::from(self.subtype != "*")
    }
}

/// Parses an `Accept` header, sorted by quality, then by specificity, then by position. Malformed
/// clauses and those with quality 0 are left out.
pub(crate) fn parse_accept_header(header: &str) -> Vec<AcceptClause<'_>> {
    let mut clauses: Vec<_> = header.split(',').filter_map(parse_accept_clause).collect();
    clauses.retain(|clause| clause.quality > 0.0);
    clauses.sort_by(|a, b| {
        let by_quality = b.quality.total_cmp(&a.quality);
        by_quality.then_with(|| b.specificity().cmp(&a.specificity()))
    });
    clauses
}

fn parse_accept_clause(text: &str) -> Option<AcceptClause<'_>> {
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
            // A value that is not a number counts as 0, as in Kubernetes.
            ("q", value) => quality = value.parse().unwrap_or(0.0),
            parameter => parameters.push(parameter),
        }
    }
    Some(AcceptClause { main_type: main, subtype: sub, quality, media_parameters: parameters })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(header: &str) -> Vec<String> {
        parse_accept_header(header)
            .iter()
            .map(|clause| format!("{}/{}", clause.main_type, clause.subtype))
            .collect()
    }

    #[test]
    fn clauses_are_sorted_by_quality_and_specificity() {
        assert_eq!(order("a/b;q=0.5, c/d, e/*, *"), ["c/d", "e/*", "*/*", "a/b"]);
        assert_eq!(order("a/b, c/d"), ["a/b", "c/d"]);
    }

    #[test]
    fn malformed_and_zero_quality_clauses_are_dropped() {
        assert_eq!(order("a, /b, a/, a/b/c, , x/y;q=0, z/w;q=x, k/l"), ["k/l"]);
    }

    #[test]
    fn the_last_of_duplicate_parameters_counts() {
        let found = parse_accept_header("a/b; v=v1 ;as=Table;v=v2;odd");
        let found = found.first().unwrap();
        assert_eq!(found.media_parameter_value("v"), Some("v2"));
        assert_eq!(found.media_parameter_value("as"), Some("Table"));
        assert_eq!(found.media_parameter_value("odd"), None);
    }

    #[test]
    fn media_types_are_case_insensitive() {
        assert!(
            parse_accept_header("Application/JSON")
                .first()
                .unwrap()
                .accepts_media_type("application", "json")
        );
        assert!(
            !parse_accept_header("text/*")
                .first()
                .unwrap()
                .accepts_media_type("application", "json")
        );
    }
}
