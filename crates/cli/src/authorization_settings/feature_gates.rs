//! Parses `--feature-gates` in the notation of kube-apiserver.

use std::str::FromStr;

/// The feature gate that enables `--authorization-config` and match conditions.
const STRUCTURED: &str = "StructuredAuthorizationConfiguration";

/// The value of one `--feature-gates` flag.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct FeatureGates {
    /// The value of `StructuredAuthorizationConfiguration`; `None` if the flag does not name it.
    is_structured_config_enabled: Option<bool>,
}

impl FeatureGates {
    /// Reports whether `StructuredAuthorizationConfiguration` is enabled. The last value wins.
    pub(crate) fn is_structured_config_enabled(all: &[Self]) -> bool {
        all.iter().rev().find_map(|gates| gates.is_structured_config_enabled).unwrap_or(true)
    }
}

/// The value of `--feature-gates` is invalid. Displays as Kubernetes' message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FeatureGatesError {
    #[error("missing bool value for {gate}")]
    MissingValue { gate: String },
    #[error(
        "invalid value of {gate}={value}, err: strconv.ParseBool: parsing {}: invalid syntax",
        go_compat::quote(.value)
    )]
    InvalidValue { gate: String, value: String },
    #[error("unrecognized feature gate: {gate}{}", nearest_gate_hint(.gate))]
    Unrecognized { gate: String },
}

impl FromStr for FeatureGates {
    type Err = FeatureGatesError;

    /// Parses the form `NAME=BOOL,...`.
    fn from_str(text: &str) -> Result<Self, FeatureGatesError> {
        let mut gates = Self::default();
        for pair in text.split(',').filter(|pair| !pair.is_empty()) {
            let (gate, value) = match pair.split_once('=') {
                Some((gate, value)) => (gate.trim().to_owned(), value.trim()),
                None => {
                    return Err(FeatureGatesError::MissingValue { gate: pair.trim().to_owned() });
                }
            };
            let Some(is_enabled) = parse_go_bool(value) else {
                return Err(FeatureGatesError::InvalidValue { gate, value: value.to_owned() });
            };
            if gate != STRUCTURED {
                return Err(FeatureGatesError::Unrecognized { gate });
            }
            gates.is_structured_config_enabled = Some(is_enabled);
        }
        Ok(gates)
    }
}

/// Returns a hint if the name of an existing gate is similar, otherwise an empty text.
fn nearest_gate_hint(gate: &str) -> String {
    let nearest = field_errors::nearest_word(gate, [STRUCTURED]);
    nearest.map(|nearest| format!(", did you mean `{nearest}`?")).unwrap_or_default()
}

/// Parses a boolean as Go does.
fn parse_go_bool(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "TRUE" | "true" | "True" => Some(true),
        "0" | "f" | "F" | "FALSE" | "false" | "False" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_enabled(texts: &[&str]) -> Result<bool, FeatureGatesError> {
        let gates: Result<Vec<FeatureGates>, _> = texts.iter().map(|text| text.parse()).collect();
        Ok(FeatureGates::is_structured_config_enabled(&gates?))
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
            assert_eq!(is_enabled(&[text]).unwrap_err().to_string(), want, "{text}");
        }
    }
}
