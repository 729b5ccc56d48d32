//! Converts errors of libraries into faults with the texts of Go.

use std::error::Error as StdError;
use std::io::{self, ErrorKind};

use rustls::{AlertDescription, CertificateError, InvalidMessage};
use rustls_pki_types::UnixTime;
use x509_verify::VerifyError;

use crate::certificate_check::InsecureCertificate;
use crate::fault::{Fault, FaultKind};

/// The maximum number of causes of an error that are examined. Libraries wrap about three times.
const CAUSES_MAX: usize = 16;

/// Converts an error into a fault, by the innermost cause that is recognized.
pub(crate) fn error_to_fault(error: &(dyn StdError + 'static)) -> Fault {
    let mut meaning = None;
    let mut next = Some(error);
    for _ in 0..CAUSES_MAX {
        let Some(cause) = next else { break };
        meaning = recognize_cause(cause).or(meaning);
        // `source` of an `io::Error` skips the error that it wraps, so `get_ref` is tried first.
        let held = cause.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        next = held.map(|held| held as &(dyn StdError + 'static)).or_else(|| cause.source());
    }
    meaning.unwrap_or_else(|| Fault::new(FaultKind::Other, innermost_cause_text(error)))
}

fn recognize_cause(cause: &(dyn StdError + 'static)) -> Option<Fault> {
    if let Some(fault) = cause.downcast_ref::<Fault>() {
        Some(fault.clone())
    } else if let Some(error) = cause.downcast_ref::<rustls::Error>() {
        Some(Fault::new(FaultKind::Tls, tls_error_text(error)))
    } else if let Some(error) = cause.downcast_ref::<io::Error>() {
        io_error_to_fault(error)
    } else {
        cause.downcast_ref::<hyper::Error>().and_then(http_error_to_fault)
    }
}

fn innermost_cause_text(error: &(dyn StdError + 'static)) -> String {
    let mut last = error;
    for _ in 0..CAUSES_MAX {
        let Some(cause) = last.source() else { break };
        last = cause;
    }
    last.to_string()
}

fn http_error_to_fault(error: &hyper::Error) -> Option<Fault> {
    let broken = "net/http: HTTP/1.x transport connection broken: ";
    // The library has a predicate for this only on the server side.
    if error.is_parse() && error.to_string().contains("too large") {
        let message = format!("{broken}response headers exceeded the limit");
        Some(Fault::new(FaultKind::TooLarge, message))
    } else if error.is_parse() || error.is_parse_status() {
        let message = format!("{broken}malformed HTTP response");
        Some(Fault::new(FaultKind::Other, message))
    } else if error.is_incomplete_message() {
        Some(Fault::new(FaultKind::Eof, "EOF"))
    } else if error.is_canceled() || error.is_closed() {
        Some(Fault::new(FaultKind::Eof, "http: server closed idle connection"))
    } else {
        None
    }
}

/// Converts an I/O error. Returns `None` if it only wraps another error.
fn io_error_to_fault(error: &io::Error) -> Option<Fault> {
    let kind = match error.kind() {
        _ if is_local_resource_error(error) => FaultKind::Local,
        ErrorKind::ConnectionReset => FaultKind::Reset,
        ErrorKind::ConnectionRefused => FaultKind::Refused,
        ErrorKind::UnexpectedEof => FaultKind::Eof,
        ErrorKind::TimedOut => FaultKind::Timeout,
        _ if error.get_ref().is_none() => FaultKind::Other,
        _ => return None,
    };
    Some(Fault::new(kind, go_io_error_text(error)))
}

/// Reports whether the system has no descriptors, memory or ports left.
pub(crate) fn is_local_resource_error(error: &io::Error) -> bool {
    /// `ENFILE`, `EMFILE` and `ENOBUFS`, for which the library has no kind.
    const NUMBERS: [i32; 3] = [23, 24, 105];
    matches!(error.kind(), ErrorKind::OutOfMemory | ErrorKind::AddrNotAvailable)
        || error.raw_os_error().is_some_and(|number| NUMBERS.contains(&number))
}

/// The text that Go prints for a system error.
pub(crate) fn go_io_error_text(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::ConnectionRefused => "connection refused".to_owned(),
        ErrorKind::ConnectionReset => "connection reset by peer".to_owned(),
        ErrorKind::BrokenPipe => "broken pipe".to_owned(),
        ErrorKind::TimedOut => "connection timed out".to_owned(),
        ErrorKind::HostUnreachable => "no route to host".to_owned(),
        ErrorKind::NetworkUnreachable => "network is unreachable".to_owned(),
        ErrorKind::UnexpectedEof => "unexpected EOF".to_owned(),
        _ => {
            // Rust appends "(os error 5)", which Go does not.
            let text = error.to_string();
            text.split(" (os error").next().unwrap_or_default().to_lowercase()
        }
    }
}

/// The text that Go prints for a failed handshake.
pub(crate) fn tls_error_text(error: &rustls::Error) -> String {
    match error {
        rustls::Error::InvalidCertificate(error) => {
            format!("tls: failed to verify certificate: x509: {}", certificate_error_text(error))
        }
        rustls::Error::AlertReceived(alert) => {
            format!("remote error: tls: {}", tls_alert_text(*alert))
        }
        rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType) => {
            "tls: first record does not look like a TLS handshake".to_owned()
        }
        other => format!("tls: {other}"),
    }
}

fn certificate_error_text(error: &CertificateError) -> String {
    match error {
        CertificateError::UnknownIssuer => "certificate signed by unknown authority".to_owned(),
        CertificateError::ExpiredContext { time, not_after } => format!(
            "certificate has expired or is not yet valid: current time {} is after {}",
            format_rfc3339(*time),
            format_rfc3339(*not_after)
        ),
        CertificateError::NotValidYetContext { time, not_before } => format!(
            "certificate has expired or is not yet valid: current time {} is before {}",
            format_rfc3339(*time),
            format_rfc3339(*not_before)
        ),
        CertificateError::NotValidForNameContext { expected, presented } => {
            name_mismatch_text(&expected.to_str(), presented)
        }
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            "certificate specifies an incompatible key usage".to_owned()
        }
        CertificateError::UnhandledCriticalExtension => "unhandled critical extension".to_owned(),
        CertificateError::Other(other) => {
            let insecure =
                other.0.downcast_ref::<InsecureCertificate>().map(InsecureCertificate::to_string);
            let untrusted = other.0.downcast_ref::<VerifyError>().map(VerifyError::to_string);
            let words = insecure.or(untrusted).unwrap_or_else(|| other.to_string());
            words.strip_prefix("x509: ").map(str::to_owned).unwrap_or(words)
        }
        other => other.to_string(),
    }
}

fn name_mismatch_text(expected_name: &str, presented: &[String]) -> String {
    // The library writes `DnsName("a")` and `IpAddress(1.2.3.4)`.
    let names = |kind: &str| -> Vec<&str> {
        let of_kind = presented.iter().filter_map(|name| name.strip_prefix(kind));
        of_kind.map(|name| name.trim_matches(['(', ')', '"'])).collect()
    };
    let is_address = expected_name.parse::<std::net::IpAddr>().is_ok();
    let valid = names(if is_address { "IpAddress" } else { "DnsName" });
    if is_address && valid.is_empty() {
        format!(
            "cannot validate certificate for {expected_name} because it doesn't contain any IP SANs"
        )
    } else if valid.is_empty() {
        format!("certificate is not valid for any names, but wanted to match {expected_name}")
    } else {
        format!("certificate is valid for {}, not {expected_name}", valid.join(", "))
    }
}

fn tls_alert_text(alert: AlertDescription) -> String {
    match alert {
        AlertDescription::HandshakeFailure => "handshake failure",
        AlertDescription::BadCertificate => "bad certificate",
        AlertDescription::UnsupportedCertificate => "unsupported certificate",
        AlertDescription::CertificateRevoked => "revoked certificate",
        AlertDescription::CertificateExpired => "expired certificate",
        AlertDescription::CertificateUnknown => "unknown certificate",
        AlertDescription::UnknownCA => "unknown certificate authority",
        AlertDescription::AccessDenied => "access denied",
        AlertDescription::ProtocolVersion => "protocol version not supported",
        AlertDescription::InternalError => "internal error",
        AlertDescription::UnrecognisedName => "unrecognized name",
        AlertDescription::CertificateRequired => "certificate required",
        AlertDescription::NoApplicationProtocol => "no application protocol",
        other => return format!("alert {other:?}"),
    }
    .to_owned()
}

/// Formats a time; a time outside the calendar shows as `?`.
fn format_rfc3339(time: UnixTime) -> String {
    let second = i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
    jiff::Timestamp::from_second(second).map_or_else(|_| "?".to_owned(), |time| time.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn system_error_texts_match_go() {
        let words = |kind: ErrorKind| error_to_fault(&io::Error::from(kind));
        assert_eq!(words(ErrorKind::ConnectionReset).kind, FaultKind::Reset);
        assert_eq!(words(ErrorKind::ConnectionReset).message, "connection reset by peer");
        assert_eq!(words(ErrorKind::BrokenPipe).kind, FaultKind::Other);
        assert_eq!(words(ErrorKind::BrokenPipe).message, "broken pipe");
        let by_number = error_to_fault(&io::Error::from_raw_os_error(24));
        assert_eq!(by_number.message, "too many open files");
        for (number, want) in
            [(12, FaultKind::Local), (23, FaultKind::Local), (24, FaultKind::Local)]
                .into_iter()
                .chain([(99, FaultKind::Local), (105, FaultKind::Local), (113, FaultKind::Other)])
        {
            assert_eq!(
                error_to_fault(&io::Error::from_raw_os_error(number)).kind,
                want,
                "{number}"
            );
        }
    }

    #[test]
    fn the_innermost_cause_decides() {
        let alert = rustls::Error::AlertReceived(AlertDescription::CertificateRequired);
        let wrapped = io::Error::new(ErrorKind::InvalidData, alert);
        let twice = io::Error::other(wrapped);
        let fault = error_to_fault(&twice);
        assert_eq!(fault.kind, FaultKind::Tls);
        assert_eq!(fault.message, "remote error: tls: certificate required");
        let ours = Fault::new(FaultKind::Refused, "ours");
        assert_eq!(error_to_fault(&io::Error::other(ours.clone())), ours);
        let silent = error_to_fault(&io::Error::other("words"));
        assert_eq!((silent.kind, &*silent.message), (FaultKind::Other, "words"));
    }

    #[test]
    fn certificate_name_mismatch_texts_match_go() {
        let presented = ["DnsName(\"a.b\")", "IpAddress(10.0.0.1)", "DnsName(\"c\")"];
        let presented = presented.map(str::to_owned);
        assert_eq!(name_mismatch_text("x", &presented), "certificate is valid for a.b, c, not x");
        let address = "certificate is valid for 10.0.0.1, not 10.0.0.2";
        assert_eq!(name_mismatch_text("10.0.0.2", &presented), address);
        let nothing = "certificate is not valid for any names, but wanted to match x";
        assert_eq!(name_mismatch_text("x", &presented[1..2]), nothing);
    }
}
