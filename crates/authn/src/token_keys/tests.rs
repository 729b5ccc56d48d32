use proptest::prelude::*;

use super::*;

const P256_SEC1: &str = include_str!("../../testdata/keys/p256.sec1.pem");
const P256_PKCS8: &str = include_str!("../../testdata/keys/p256.pkcs8.pem");
const P256_PUBLIC: &str = include_str!("../../testdata/keys/p256.pub.pem");
const P384_SEC1: &str = include_str!("../../testdata/keys/p384.sec1.pem");
const P384_PUBLIC: &str = include_str!("../../testdata/keys/p384.pub.pem");
const P521: &str = include_str!("../../testdata/keys/p521.pem");
const RSA_PKCS1: &str = include_str!("../../testdata/keys/rsa.pkcs1.pem");
const RSA_PKCS8: &str = include_str!("../../testdata/keys/rsa.pkcs8.pem");
const RSA_PUBLIC: &str = include_str!("../../testdata/keys/rsa.pub.pem");

/// The ids are those that OpenSSL computes: the hash of the public key in DER.
#[test]
fn every_form_of_a_key_is_the_same_key() {
    for (public, privates, algorithm, id) in [
        (
            P256_PUBLIC,
            &[P256_SEC1, P256_PKCS8][..],
            SignatureAlgorithm::Es256,
            "ZOMAoJvB16-QHvZjDgspGXu4BR7qqgeGSeTpssYtrIs",
        ),
        (
            P384_PUBLIC,
            &[P384_SEC1],
            SignatureAlgorithm::Es384,
            "Za95U1jh9jMIqAxo6wldhjzvvFwuZ_abpvHQ8ZT3g7E",
        ),
        (
            RSA_PUBLIC,
            &[RSA_PKCS1, RSA_PKCS8],
            SignatureAlgorithm::Rs256,
            "9Al3LEYswE8O46OZjyJlDUnmUlaVR0GHAj5qHJhSrMc",
        ),
    ] {
        let [key] =
            <[VerifyingKey; 1]>::try_from(VerifyingKey::all_from_pem(public).unwrap()).unwrap();
        assert_eq!((key.id(), key.signature_algorithm()), (id, algorithm));
        for pem in privates {
            let signing = SigningKey::from_pem(pem).unwrap();
            assert_eq!(*signing.verifying_key(), key);
            assert_eq!(VerifyingKey::all_from_pem(pem).unwrap(), std::slice::from_ref(&key));
            let signature = signing.sign_message(b"message").unwrap();
            assert!(key.is_signature_valid(b"message", &signature));
            assert!(!key.is_signature_valid(b"messagf", &signature));
            assert!(!key.is_signature_valid(b"message", &signature[1..]));
        }
    }
}

/// Bytes that no part of a key accounts for may hide another key.
#[test]
fn keys_with_trailing_bytes_are_refused() {
    for pem in [P256_SEC1, P256_PKCS8, P384_SEC1, P256_PUBLIC, RSA_PKCS1, RSA_PKCS8, RSA_PUBLIC] {
        let lines: Vec<&str> = pem.lines().collect();
        let begin = lines.iter().rposition(|line| line.starts_with("-----BEGIN")).unwrap();
        let end = lines.iter().rposition(|line| line.starts_with("-----END")).unwrap();
        let mut der = STANDARD.decode(lines[begin + 1..end].concat()).unwrap();
        der.extend([5, 0]);
        let padded = format!("{}\n{}\n{}\n", lines[begin], STANDARD.encode(der), lines[end]);
        assert_eq!(VerifyingKey::all_from_pem(&padded), Err(KeyError::Malformed), "{padded}");
    }
}

#[test]
fn a_file_may_hold_several_keys_and_certificates() {
    let certificate = include_str!("../../testdata/ca.pem");
    let file = format!("{RSA_PUBLIC}{P256_SEC1}{certificate}");
    let keys = VerifyingKey::all_from_pem(&file).unwrap();
    let algorithms: Vec<SignatureAlgorithm> =
        keys.iter().map(VerifyingKey::signature_algorithm).collect();
    assert_eq!(
        algorithms,
        [SignatureAlgorithm::Rs256, SignatureAlgorithm::Es256, SignatureAlgorithm::Es256]
    );
    assert_eq!(SigningKey::from_pem(&file).unwrap().verifying_key(), &keys[1]);
}

#[test]
fn what_can_not_be_used_is_refused_when_it_is_loaded() {
    assert_eq!(SigningKey::from_pem(P521).unwrap_err(), KeyError::Curve);
    assert_eq!(VerifyingKey::all_from_pem(P521), Err(KeyError::Curve));
    assert_eq!(SigningKey::from_pem(RSA_PUBLIC).unwrap_err(), KeyError::NoKey);
    for text in ["", "no PEM", "-----BEGIN PUBLIC KEY-----\n"] {
        assert_eq!(VerifyingKey::all_from_pem(text), Err(KeyError::NoKey), "{text}");
    }
    let broken = P256_PUBLIC.replace("MFkw", "MFkx");
    assert_eq!(VerifyingKey::all_from_pem(&broken), Err(KeyError::Malformed));
}

#[test]
fn generated_keys_can_be_loaded_and_differ() {
    let (one, other) = (
        SigningKey::generate_private_key_pem().unwrap(),
        SigningKey::generate_private_key_pem().unwrap(),
    );
    assert_ne!(one, other);
    assert!(one.lines().all(|line| line.len() <= 64), "{one}");
    let key = SigningKey::from_pem(&one).unwrap();
    assert_eq!(key.verifying_key().signature_algorithm(), SignatureAlgorithm::Es256);
}

#[test]
fn the_private_half_is_not_shown() {
    let key = SigningKey::from_pem(P256_SEC1).unwrap();
    let id = "ZOMAoJvB16-QHvZjDgspGXu4BR7qqgeGSeTpssYtrIs";
    assert_eq!(format!("{key:?}"), format!("SigningKey(ES256 {id})"));
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes: Vec<u8>, kind in "(EC |RSA )?(PRIVATE|PUBLIC) KEY|CERTIFICATE") {
        let body = STANDARD.encode(&bytes);
        let pem = format!("-----BEGIN {kind}-----\n{body}\n-----END {kind}-----\n");
        prop_assert!(VerifyingKey::all_from_pem(&pem).is_err());
        prop_assert!(SigningKey::from_pem(&pem).is_err());
    }
}
