//! Requests for certificates that openssl made.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use x509_verify::{CertificateRequest, CertificateRequestError};

/// The bytes of a request, and the organizations of its subject.
const REQUESTS: [(&str, &[&str]); 4] = [
    (
        "MIHIMHACAQAwDjEMMAoGA1UEAwwDYW5uMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAER17igoLRMYY3rz8kXzOj7fHoXLWSNerujJn0zWMSUyGZIpLGzwMG2g1aL5gNhUGRvNDcvUzjDvyMTMh0FY5CZ6AAMAoGCCqGSM49BAMCA0gAMEUCICvnlBHBFfwpsweFaTlgJeYXgWv1qtXXSeKCEfXxn7+YAiEA7GW7zIi0G4I/IXkGU/0qM6hHdQwzblw74X4CGeEHs9k=",
        &[],
    ),
    (
        "MIHhMIGJAgEAMCcxFzAVBgNVBAoMDnN5c3RlbTptYXN0ZXJzMQwwCgYDVQQDDANhbm4wWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAARHXuKCgtExhjevPyRfM6Pt8ehctZI16u6MmfTNYxJTIZkiksbPAwbaDVovmA2FQZG80Ny9TOMO/IxMyHQVjkJnoAAwCgYIKoZIzj0EAwIDRwAwRAIgcXgjie8yuMOK3AYy2HFaXIlRZIz/pTdMoL5LexHkh8ECIFBI8lwqKp8wIn+NjnBj+lpzWNa268xZDXMvl5iAtC2f",
        &["system:masters"],
    ),
    (
        "MIHwMIGXAgEAMDUxDDAKBgNVBAoMA2RldjEXMBUGA1UECgwOc3lzdGVtOm1hc3RlcnMxDDAKBgNVBAMMA2FubjBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABEde4oKC0TGGN68/JF8zo+3x6Fy1kjXq7oyZ9M1jElMhmSKSxs8DBtoNWi+YDYVBkbzQ3L1M4w78jEzIdBWOQmegADAKBggqhkjOPQQDAgNIADBFAiAZhNrirNzqbvJpRs0NtcCtdO5hJZ5KtK/KAaXZYmxzqAIhAKdG/fyIf8KGK3F+CaX7WsYd3GBl/mAzNafETglOC6RV",
        &["dev", "system:masters"],
    ),
    (
        "MIICYzCCAUsCAQAwHjENMAsGA1UEAwwEamFuZTENMAsGA1UECgwEZGV2czCCASIwDQYJKoZIhvcNAQEBBQADggEPADCCAQoCggEBAKEcY43IoK/gtQ/v1dPOXVKnOXjaDxU1swuyVJZVAfYQDvcKC4bVzQ/SE6Uk7i2+pqM7jiICto3EIC+ucZ0Il3qbOwkQynA7C5YYlsC5aCIQPZjwuE85f6yXtM5q32pfhg44vPydeLNKmwyj7HjVvNQaLTTeveiv1jre0BYObaaghFn8/RI6rqhXn2OtZRNQl69L47cAiV/v7YdLhspymBqYn7OT3stzKy07gE26djApzZsNlop0cuJPysNbEvu5+NZYT+V8cC5jORySRfBha4s/52E3bZELxlD5Bx9oIONHxetKrOD4J0S30taIjr7LZdtJltbLn6dqh6p0daGGaSkCAwEAAaAAMA0GCSqGSIb3DQEBCwUAA4IBAQBRB5X+CfpLjlFoITUq6Fr1EwpTXMdSbSEGA1HNKqio7GWMHPhCmJ2UF0nC51g8SND2PnkLFYfiy2E6/uvwpRmKIgy9uq/rTGIPPsOFrwnProraqpdQhVYxF00oXaxd1C0nqHzuoz3dxAzLcbrlUZ5LJDflr8DdGz6gMzagqY+hbagr7+TwdnvbmRj84BeDC9feQ+eDiO6+2m/jF9jqW7PfCf8lFaljToVvQOJxe98dVyVzg3M4urfYIS75Run93z7NeANcBwAY9JGod2hIOoXkQ1EKGA8I7PXd/euf5lPlvJynwI3XRrAul6ZnBfKc1oMgtFcLT133K37BFGVECg0d",
        &["devs"],
    ),
];

fn bytes(text: &str) -> Vec<u8> {
    STANDARD.decode(text).unwrap()
}

#[test]
fn organizations_and_common_names_are_read() {
    for ((text, organizations), common_name) in
        REQUESTS.into_iter().zip(["ann", "ann", "ann", "jane"])
    {
        let request = CertificateRequest::parse(&bytes(text)).unwrap();
        assert_eq!(request.organizations, organizations);
        assert_eq!(request.common_name, common_name);
    }
}

#[test]
fn a_request_is_signed_by_its_own_key() {
    for (text, _) in REQUESTS {
        let whole = bytes(text);
        // Whatever changes, the request does not stay what its key has signed.
        for at in 0..whole.len() {
            let mut changed = whole.clone();
            changed[at] ^= 1;
            assert!(CertificateRequest::parse(&changed).is_err(), "byte {at}");
        }
        for n_bytes in [0, 1, 10, whole.len() - 1] {
            let cut = CertificateRequest::parse(&whole[..n_bytes]);
            assert_eq!(cut, Err(CertificateRequestError::Malformed));
        }
    }
}
