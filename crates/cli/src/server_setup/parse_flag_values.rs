//! Parsers for the values of flags. clap prints the returned text after the name of the flag.

use std::time::Duration;

/// Minimum of `--store-quota-bytes` and `--store-history-bytes`: the objects that the server creates
/// for itself must fit.
const STORE_BYTES_MIN: u64 = 16 << 20;

/// Maximum of `--admission-webhook-max-response-bytes`: each call holds its response in memory.
const RESPONSE_BYTES_CEILING: u64 = 1 << 30;

/// The value of a flag is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FlagValueError {
    #[error(transparent)]
    Duration(#[from] go_compat::DurationError),
    #[error("a duration cannot be negative")]
    NegativeDuration,
    #[error("must be longer than 0")]
    ZeroDuration,
    #[error("must not be longer than {seconds_max}s")]
    DurationTooLong { seconds_max: u64 },
    #[error("want a number of bytes, such as 1073741824, 1024Mi or 1Gi")]
    NotANumberOfBytes,
    #[error("want at least {0}")]
    TooFewBytes(&'static str),
    #[error("want at most {0}")]
    TooManyBytes(&'static str),
    #[error("want MAJOR.MINOR, such as 1.34")]
    Version,
    #[error("want a number above 0")]
    Rate,
    #[error("a prefix begins with `/`")]
    KeyPrefix,
}

/// Parses a non-negative duration in Go's notation, such as `1m30s`.
pub(crate) fn parse_duration(text: &str) -> Result<Duration, FlagValueError> {
    let nanos = go_compat::parse_duration(text)?;
    let nanos = u64::try_from(nanos).map_err(|_| FlagValueError::NegativeDuration)?;
    Ok(Duration::from_nanos(nanos))
}

/// Parses a duration that is longer than 0.
pub(crate) fn parse_positive_duration(text: &str) -> Result<Duration, FlagValueError> {
    match parse_duration(text)? {
        Duration::ZERO => Err(FlagValueError::ZeroDuration),
        duration => Ok(duration),
    }
}

/// Parses the timeout of an admission webhook call: longer than 0, at most
/// [`admission_hooks::CALL_TIME_MAX`].
pub(crate) fn parse_admission_webhook_timeout(text: &str) -> Result<Duration, FlagValueError> {
    let timeout_max = admission_hooks::CALL_TIME_MAX;
    match parse_positive_duration(text)? {
        timeout if timeout > timeout_max => {
            Err(FlagValueError::DurationTooLong { seconds_max: timeout_max.as_secs() })
        }
        timeout => Ok(timeout),
    }
}

/// Parses a rate above 0, such as `0.5`.
pub(crate) fn parse_positive_rate(text: &str) -> Result<f32, FlagValueError> {
    let rate = text.parse::<f32>().ok().filter(|rate| rate.is_finite() && *rate > 0.0);
    rate.ok_or(FlagValueError::Rate)
}

/// Parses a Kubernetes version of the form `MAJOR.MINOR`.
pub(crate) fn parse_kubernetes_version(text: &str) -> Result<String, FlagValueError> {
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    match text.split_once('.') {
        Some((major, minor)) if is_number(major) && is_number(minor) => Ok(text.to_owned()),
        _ => Err(FlagValueError::Version),
    }
}

/// Parses a number of bytes with an optional unit `Ki`, `Mi` or `Gi`.
pub(crate) fn parse_byte_size(text: &str) -> Result<u64, FlagValueError> {
    let units = [("Ki", 1 << 10), ("Mi", 1 << 20), ("Gi", 1 << 30), ("", 1)];
    let found = units.iter().find_map(|(unit, size)| Some((text.strip_suffix(unit)?, size)));
    let number = found.and_then(|(digits, size)| digits.parse::<u64>().ok()?.checked_mul(*size));
    number.ok_or(FlagValueError::NotANumberOfBytes)
}

/// Parses a number of bytes that is not 0.
pub(crate) fn parse_positive_byte_size(text: &str) -> Result<u64, FlagValueError> {
    match parse_byte_size(text)? {
        0 => Err(FlagValueError::TooFewBytes("1")),
        n_bytes => Ok(n_bytes),
    }
}

/// Parses a limit of the embedded store: at least [`STORE_BYTES_MIN`].
pub(crate) fn parse_store_size_limit(text: &str) -> Result<u64, FlagValueError> {
    match parse_byte_size(text)? {
        n_bytes if n_bytes < STORE_BYTES_MIN => Err(FlagValueError::TooFewBytes("16Mi")),
        n_bytes => Ok(n_bytes),
    }
}

/// Parses the maximum size of an admission webhook response: 1 to [`RESPONSE_BYTES_CEILING`].
pub(crate) fn parse_webhook_response_size_limit(text: &str) -> Result<u64, FlagValueError> {
    match parse_positive_byte_size(text)? {
        n_bytes if n_bytes > RESPONSE_BYTES_CEILING => Err(FlagValueError::TooManyBytes("1Gi")),
        n_bytes => Ok(n_bytes),
    }
}

/// Parses a key prefix: it begins with `/`, and slashes at its end are removed.
pub(crate) fn parse_key_prefix(text: &str) -> Result<String, FlagValueError> {
    let text = text.trim_end_matches('/');
    match text.starts_with('/') {
        true => Ok(text.to_owned()),
        false => Err(FlagValueError::KeyPrefix),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_checked() {
        assert_eq!(parse_duration("1m30s"), Ok(Duration::from_secs(90)));
        assert!(parse_duration("-1s").is_err() && parse_duration("soon").is_err());
        assert!(parse_kubernetes_version("1.34").is_ok());
        assert!(
            parse_kubernetes_version("v1.34").is_err() && parse_kubernetes_version("1").is_err()
        );
        assert_eq!(parse_key_prefix("/x/").unwrap(), "/x");
        assert!(parse_key_prefix("x").is_err());
    }

    #[test]
    fn byte_values_have_binary_units_and_bounds() {
        for (text, want) in [("0", 0), ("7", 7), ("2Ki", 2048), ("3Mi", 3 << 20), ("1Gi", 1 << 30)]
        {
            assert_eq!(parse_byte_size(text), Ok(want), "{text}");
        }
        for text in ["", "Mi", "-1", "1.5Gi", "1G", "17179869184Gi"] {
            assert!(parse_byte_size(text).is_err(), "{text}");
        }
        assert!(parse_positive_byte_size("1").is_ok() && parse_positive_byte_size("0Ki").is_err());
        assert!(
            parse_store_size_limit("16Mi").is_ok() && parse_store_size_limit("16777215").is_err()
        );
        assert!(
            parse_webhook_response_size_limit("1Gi").is_ok()
                && parse_webhook_response_size_limit("1073741825").is_err()
        );
    }

    /// `--webhook-connect-timeout` writes its default as a text.
    #[test]
    fn the_default_connect_timeout_is_that_of_the_client() {
        assert_eq!(parse_duration("2s"), Ok(https_client::Limits::default().connect_timeout));
    }
}
