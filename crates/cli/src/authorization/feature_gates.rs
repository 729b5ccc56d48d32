//! Feature gates by name, as kube-apiserver takes them.

use std::str::FromStr;

/// The gate of `--authorization-config` and of match conditions.
const STRUCTURED: &str = "StructuredAuthorizationConfiguration";

/// The value of one `--feature-gates` flag.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct FeatureGates {
    /// `StructuredAuthorizationConfiguration`, if it is named.
    is_structured_enabled: Option<bool>,
}

impl FeatureGates {
    /// Reports whether `StructuredAuthorizationConfiguration` is enabled. The last value wins.
    pub(crate) fn is_structured_enabled(all: &[Self]) -> bool {
        all.iter().rev().find_map(|gates| gates.is_structured_enabled).unwrap_or(true)
    }
}

impl FromStr for FeatureGates {
    type Err = String;

    /// Reads `NAME=BOOL,...`. Messages are those of Kubernetes.
    fn from_str(text: &str) -> Result<Self, String> {
        let mut gates = Self::default();
        for pair in text.split(',').filter(|pair| !pair.is_empty()) {
            let (name, value) = match pair.split_once('=') {
                Some((name, value)) => (name.trim(), value.trim()),
                None => return Err(format!("missing bool value for {}", pair.trim())),
            };
            let value = boolean(value).ok_or_else(|| {
                let quoted = go_compat::quote(value);
                let cause = format!("strconv.ParseBool: parsing {quoted}: invalid syntax");
                format!("invalid value of {name}={value}, err: {cause}")
            })?;
            match name {
                STRUCTURED => gates.is_structured_enabled = Some(value),
                unknown => return Err(unrecognized(unknown)),
            }
        }
        Ok(gates)
    }
}

fn unrecognized(name: &str) -> String {
    let near = field_errors::nearest_word(name, [STRUCTURED]);
    let hint = near.map(|near| format!(", did you mean `{near}`?")).unwrap_or_default();
    format!("unrecognized feature gate: {name}{hint}")
}

/// Parses a boolean as Go does.
fn boolean(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "TRUE" | "true" | "True" => Some(true),
        "0" | "f" | "F" | "FALSE" | "false" | "False" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_enabled(texts: &[&str]) -> Result<bool, String> {
        let gates: Result<Vec<FeatureGates>, String> =
            texts.iter().map(|text| text.parse()).collect();
        Ok(FeatureGates::is_structured_enabled(&gates?))
    }

    #[test]
    fn the_last_value_counts_and_the_default_is_on() {
        assert_eq!(is_enabled(&[]), Ok(true));
        assert_eq!(is_enabled(&["", ","]), Ok(true));
        assert_eq!(is_enabled(&[" StructuredAuthorizationConfiguration = F "]), Ok(false));
        let both = "StructuredAuthorizationConfiguration=false,\
                    StructuredAuthorizationConfiguration=true";
        assert_eq!(is_enabled(&[both]), Ok(true));
        assert_eq!(is_enabled(&[both, "StructuredAuthorizationConfiguration=0"]), Ok(false));
    }

    #[test]
    fn what_is_not_understood_is_refused_in_the_words_of_kubernetes() {
        for (text, want) in [
            ("Foo=true", "unrecognized feature gate: Foo"),
            (
                "StructuredAuthorisationConfiguration=true",
                "unrecognized feature gate: StructuredAuthorisationConfiguration, did you mean \
                 `StructuredAuthorizationConfiguration`?",
            ),
            ("Foo", "missing bool value for Foo"),
            (
                "StructuredAuthorizationConfiguration=off",
                "invalid value of StructuredAuthorizationConfiguration=off, err: \
                 strconv.ParseBool: parsing \"off\": invalid syntax",
            ),
        ] {
            assert_eq!(is_enabled(&[text]), Err(want.to_owned()), "{text}");
        }
    }
}
