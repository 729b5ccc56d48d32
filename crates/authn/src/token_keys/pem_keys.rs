//! Parsing of keys from PEM.

use ring::rand::SystemRandom;
use ring::signature::{self, EcdsaKeyPair, EcdsaSigningAlgorithm, RsaKeyPair};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::{PemObject, SectionKind};
use x509_verify::{Certificate, DerReader, DerTag};

use super::{KeyError, SignatureAlgorithm, SigningKey, VerifyingKey};

/// The object identifier of `rsaEncryption`.
pub(super) const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01];
/// The object identifier of `id-ecPublicKey`.
pub(super) const EC: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01];
/// The object identifier of `secp256r1`.
pub(super) const P256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];
/// The object identifier of `secp384r1`.
pub(super) const P384: &[u8] = &[0x2b, 0x81, 0x04, 0x00, 0x22];

/// The tags of the curve and of the public key in an `ECPrivateKey`.
const CURVE: DerTag = DerTag::constructed_context_tag(0);
const PUBLIC_KEY: DerTag = DerTag::constructed_context_tag(1);

type PemSection = (SectionKind, Vec<u8>);

pub(super) fn parse_verifying_keys(pem: &str) -> Result<Vec<VerifyingKey>, KeyError> {
    let mut keys = Vec::new();
    for section in PemSection::pem_slice_iter(pem.as_bytes()) {
        let (kind, der) = section.map_err(|_| KeyError::NoKey)?;
        match kind {
            SectionKind::PublicKey => keys.push(parse_public_key(&der)?),
            SectionKind::Certificate => {
                let parsed = Certificate::parse(&CertificateDer::from(der))
                    .map_err(|_| KeyError::Malformed)?;
                keys.push(parse_public_key(parsed.public_key_der())?);
            }
            _ => {
                if let Some(key) = parse_private_key(kind, &der) {
                    keys.push(key?.verifying_key);
                }
            }
        }
    }
    if keys.is_empty() { Err(KeyError::NoKey) } else { Ok(keys) }
}

pub(super) fn parse_signing_key(pem: &str) -> Result<SigningKey, KeyError> {
    for section in PemSection::pem_slice_iter(pem.as_bytes()) {
        let (kind, der) = section.map_err(|_| KeyError::NoKey)?;
        if let Some(key) = parse_private_key(kind, &der) {
            return key;
        }
    }
    Err(KeyError::NoKey)
}

/// The private key of a section; `None` if the section holds no private key.
fn parse_private_key(kind: SectionKind, der: &[u8]) -> Option<Result<SigningKey, KeyError>> {
    match kind {
        SectionKind::PrivateKey => Some(parse_pkcs8(der)),
        SectionKind::EcPrivateKey => Some(parse_sec1(der)),
        SectionKind::RsaPrivateKey => {
            let pair = RsaKeyPair::from_der(der).map_err(|_| KeyError::Malformed);
            Some(pair.map(SigningKey::from_rsa_key_pair))
        }
        _ => None,
    }
}

fn parse_pkcs8(der: &[u8]) -> Result<SigningKey, KeyError> {
    let Pkcs8Fields { kind, curve_oid: curve, key } =
        Pkcs8Fields::read(der).ok_or(KeyError::Malformed)?;
    match kind {
        RSA => {
            let pair = RsaKeyPair::from_pkcs8(der).map_err(|_| KeyError::Malformed)?;
            Ok(SigningKey::from_rsa_key_pair(pair))
        }
        EC => parse_ec_private_key(key, curve),
        _ => Err(KeyError::Malformed),
    }
}

/// The fields of a PKCS#8 private key.
struct Pkcs8Fields<'d> {
    kind: &'d [u8],
    curve_oid: Option<&'d [u8]>,
    key: &'d [u8],
}

impl<'d> Pkcs8Fields<'d> {
    fn read(der: &'d [u8]) -> Option<Self> {
        let mut outer = DerReader::new(der);
        let mut fields = outer.read_nested(DerTag::SEQUENCE).filter(|_| outer.is_empty())?;
        fields.read_value(DerTag::INTEGER)?;
        let (kind, curve) = read_algorithm_identifier(&mut fields)?;
        Some(Self {
            kind,
            curve_oid: curve,
            key: fields.read_value(DerTag::OCTET_STRING)?.contents,
        })
    }
}

fn parse_sec1(der: &[u8]) -> Result<SigningKey, KeyError> {
    parse_ec_private_key(der, None)
}

/// Parses an `ECPrivateKey`. It names its curve itself, or a surrounding PKCS#8 structure does.
fn parse_ec_private_key(der: &[u8], curve: Option<&[u8]>) -> Result<SigningKey, KeyError> {
    let fields = EcKeyFields::read(der).ok_or(KeyError::Malformed)?;
    let curve = curve.or(fields.curve_oid).ok_or(KeyError::Malformed)?;
    let (algorithm, signing) = algorithm_for_curve(curve)?;
    let public = fields.public_key.ok_or(KeyError::WithoutPublicKey)?;
    let random = SystemRandom::new();
    let private = fields.private_key;
    let pair = EcdsaKeyPair::from_private_key_and_public_key(signing, private, public, &random)
        .map_err(|_| KeyError::Malformed)?;
    Ok(SigningKey::from_ecdsa_key_pair(pair, algorithm))
}

/// The fields of an `ECPrivateKey`. Curve and public key are optional.
struct EcKeyFields<'d> {
    private_key: &'d [u8],
    curve_oid: Option<&'d [u8]>,
    public_key: Option<&'d [u8]>,
}

impl<'d> EcKeyFields<'d> {
    fn read(der: &'d [u8]) -> Option<Self> {
        let mut outer = DerReader::new(der);
        let mut fields = outer.read_nested(DerTag::SEQUENCE).filter(|_| outer.is_empty())?;
        fields.read_value(DerTag::INTEGER)?;
        let private_key = fields.read_value(DerTag::OCTET_STRING)?.contents;
        let curve = fields.read_optional_value(CURVE)?;
        let curve = curve.and_then(|own| DerReader::new(own.contents).read_value(DerTag::OID));
        let public_key = fields.read_optional_value(PUBLIC_KEY)?;
        let public_key =
            public_key.and_then(|own| DerReader::new(own.contents).read_byte_aligned_bit_string());
        fields.is_empty().then(|| Self {
            private_key,
            curve_oid: curve.map(|own| own.contents),
            public_key,
        })
    }
}

fn algorithm_for_curve(
    curve: &[u8],
) -> Result<(SignatureAlgorithm, &'static EcdsaSigningAlgorithm), KeyError> {
    match curve {
        P256 => Ok((SignatureAlgorithm::Es256, &signature::ECDSA_P256_SHA256_FIXED_SIGNING)),
        P384 => Ok((SignatureAlgorithm::Es384, &signature::ECDSA_P384_SHA384_FIXED_SIGNING)),
        _ => Err(KeyError::Curve),
    }
}

/// Parses a public key in the form of a `SubjectPublicKeyInfo`.
fn parse_public_key(der: &[u8]) -> Result<VerifyingKey, KeyError> {
    let PublicKeyFields { kind, curve_oid: curve, key } =
        PublicKeyFields::read(der).ok_or(KeyError::Malformed)?;
    match (kind, curve) {
        (RSA, _) => Ok(VerifyingKey::new(SignatureAlgorithm::Rs256, key)),
        (EC, Some(curve)) => {
            let algorithm = algorithm_for_curve(curve)?.0;
            match (algorithm, key.first(), key.len()) {
                (SignatureAlgorithm::Es256, Some(4), 65)
                | (SignatureAlgorithm::Es384, Some(4), 97) => Ok(VerifyingKey::new(algorithm, key)),
                _ => Err(KeyError::Malformed),
            }
        }
        _ => Err(KeyError::Malformed),
    }
}

/// The fields of a `SubjectPublicKeyInfo`.
struct PublicKeyFields<'d> {
    kind: &'d [u8],
    curve_oid: Option<&'d [u8]>,
    key: &'d [u8],
}

impl<'d> PublicKeyFields<'d> {
    fn read(der: &'d [u8]) -> Option<Self> {
        let mut outer = DerReader::new(der);
        let mut fields = outer.read_nested(DerTag::SEQUENCE).filter(|_| outer.is_empty())?;
        let (kind, curve) = read_algorithm_identifier(&mut fields)?;
        let key = fields.read_byte_aligned_bit_string().filter(|_| fields.is_empty())?;
        Some(Self { kind, curve_oid: curve, key })
    }
}

/// Reads an `AlgorithmIdentifier`: the kind of key, and its curve if its parameters name one.
fn read_algorithm_identifier<'d>(
    fields: &mut DerReader<'d>,
) -> Option<(&'d [u8], Option<&'d [u8]>)> {
    let mut algorithm = fields.read_nested(DerTag::SEQUENCE)?;
    let kind = algorithm.read_value(DerTag::OID)?.contents;
    let curve = algorithm.read_optional_value(DerTag::OID)?;
    Some((kind, curve.map(|curve| curve.contents)))
}
