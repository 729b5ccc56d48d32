//! The audit id, which all events of a request share.

use ring::rand::{SecureRandom, SystemRandom};

/// The system has no random bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the system has no random bytes")]
pub struct RandomnessError;

/// Returns the audit id of a request: its header `Audit-ID`, or else a random UUID.
///
/// # Errors
/// [`RandomnessError`] if the system has no random bytes for a UUID.
pub fn audit_id_of_request(header: Option<&str>) -> Result<String, RandomnessError> {
    match header.filter(|value| !value.is_empty()) {
        Some(value) => Ok(value.to_owned()),
        None => {
            let mut bytes = [0; 16];
            SystemRandom::new().fill(&mut bytes).map_err(|_| RandomnessError)?;
            Ok(format_uuid4(u128::from_be_bytes(bytes)))
        }
    }
}

/// Formats random bits as a UUID of version 4 (RFC 9562).
fn format_uuid4(random: u128) -> String {
    let bits = random & !(0xf << 76) | 4 << 76;
    let bits = bits & !(0b11 << 62) | 0b10 << 62;
    format!(
        "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
        bits >> 96,
        bits >> 80 & 0xffff,
        bits >> 64 & 0xffff,
        bits >> 48 & 0xffff,
        bits & 0xffff_ffff_ffff,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_given_id_is_kept() {
        assert_eq!(audit_id_of_request(Some("x")).unwrap(), "x");
        assert_eq!(audit_id_of_request(Some("")).unwrap().len(), 36);
        assert_ne!(audit_id_of_request(None).unwrap(), audit_id_of_request(None).unwrap());
    }

    #[test]
    fn version_and_variant_stand_where_they_should() {
        assert_eq!(format_uuid4(0), "00000000-0000-4000-8000-000000000000");
        assert_eq!(format_uuid4(u128::MAX), "ffffffff-ffff-4fff-bfff-ffffffffffff");
    }
}
