//! Reading keys from PEM.

use ring::rand::SystemRandom;
use ring::signature::{self, EcdsaKeyPair, EcdsaSigningAlgorithm, RsaKeyPair};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::{PemObject, SectionKind};

use super::{Algorithm, KeyError, SigningKey, VerifyingKey};
use crate::certificate;
use crate::der::{INTEGER, OCTET_STRING, OID, Reader};

/// `rsaEncryption`.
pub(super) const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01];
/// `id-ecPublicKey`.
pub(super) const EC: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01];
/// `secp256r1`.
pub(super) const P256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];
/// `secp384r1`.
pub(super) const P384: &[u8] = &[0x2b, 0x81, 0x04, 0x00, 0x22];

/// The tags of the curve and of the public key in an `ECPrivateKey`.
const CURVE: u8 = 0xa0;
const PUBLIC_KEY: u8 = 0xa1;

type Section = (SectionKind, Vec<u8>);

pub(super) fn verifying_keys(pem: &str) -> Result<Vec<VerifyingKey>, KeyError> {
    let mut keys = Vec::new();
    for section in Section::pem_slice_iter(pem.as_bytes()) {
        let (kind, der) = section.map_err(|_| KeyError::NoKey)?;
        match kind {
            SectionKind::PublicKey => keys.push(public_key(&der)?),
            SectionKind::Certificate => {
                let der = CertificateDer::from(der);
                let parsed = certificate::parse(&der).ok_or(KeyError::Malformed)?;
                keys.push(public_key(parsed.public_key().raw)?);
            }
            _ => {
                if let Some(key) = private_key(kind, &der) {
                    keys.push(key?.public);
                }
            }
        }
    }
    if keys.is_empty() { Err(KeyError::NoKey) } else { Ok(keys) }
}

pub(super) fn signing_key(pem: &str) -> Result<SigningKey, KeyError> {
    for section in Section::pem_slice_iter(pem.as_bytes()) {
        let (kind, der) = section.map_err(|_| KeyError::NoKey)?;
        if let Some(key) = private_key(kind, &der) {
            return key;
        }
    }
    Err(KeyError::NoKey)
}

/// The private key of a section; `None` if the section is about something else.
fn private_key(kind: SectionKind, der: &[u8]) -> Option<Result<SigningKey, KeyError>> {
    match kind {
        SectionKind::PrivateKey => Some(pkcs8(der)),
        SectionKind::EcPrivateKey => Some(sec1(der)),
        SectionKind::RsaPrivateKey => {
            let pair = RsaKeyPair::from_der(der).map_err(|_| KeyError::Malformed);
            Some(pair.map(SigningKey::rsa))
        }
        _ => None,
    }
}

fn pkcs8(der: &[u8]) -> Result<SigningKey, KeyError> {
    let Pkcs8 { kind, curve, key } = Pkcs8::read(der).ok_or(KeyError::Malformed)?;
    match kind {
        RSA => {
            let pair = RsaKeyPair::from_pkcs8(der).map_err(|_| KeyError::Malformed)?;
            Ok(SigningKey::rsa(pair))
        }
        EC => ec_private_key(key, curve),
        _ => Err(KeyError::Malformed),
    }
}

/// What a PKCS#8 key consists of.
struct Pkcs8<'d> {
    kind: &'d [u8],
    curve: Option<&'d [u8]>,
    key: &'d [u8],
}

impl<'d> Pkcs8<'d> {
    fn read(der: &'d [u8]) -> Option<Self> {
        let mut fields = Reader::new(der).sequence()?;
        fields.value(INTEGER)?;
        let mut algorithm = fields.sequence()?;
        let kind = algorithm.value(OID)?;
        let curve = algorithm.value(OID);
        Some(Self { kind, curve, key: fields.value(OCTET_STRING)? })
    }
}

fn sec1(der: &[u8]) -> Result<SigningKey, KeyError> {
    ec_private_key(der, None)
}

/// An `ECPrivateKey`. Its curve stands in it, or beside it when it is part of a PKCS#8 key.
fn ec_private_key(der: &[u8], curve: Option<&[u8]>) -> Result<SigningKey, KeyError> {
    let mut fields = Reader::new(der).sequence().ok_or(KeyError::Malformed)?;
    fields.value(INTEGER).ok_or(KeyError::Malformed)?;
    let private = fields.value(OCTET_STRING).ok_or(KeyError::Malformed)?;
    let inner = fields.value(CURVE).and_then(|curve| Reader::new(curve).value(OID));
    let (algorithm, signing) = curve_of(curve.or(inner).ok_or(KeyError::Malformed)?)?;
    let public = fields
        .value(PUBLIC_KEY)
        .and_then(|public| Reader::new(public).bit_string())
        .ok_or(KeyError::WithoutPublicKey)?;
    let random = SystemRandom::new();
    let pair = EcdsaKeyPair::from_private_key_and_public_key(signing, private, public, &random)
        .map_err(|_| KeyError::Malformed)?;
    Ok(SigningKey::ecdsa(pair, algorithm))
}

fn curve_of(curve: &[u8]) -> Result<(Algorithm, &'static EcdsaSigningAlgorithm), KeyError> {
    match curve {
        P256 => Ok((Algorithm::Es256, &signature::ECDSA_P256_SHA256_FIXED_SIGNING)),
        P384 => Ok((Algorithm::Es384, &signature::ECDSA_P384_SHA384_FIXED_SIGNING)),
        _ => Err(KeyError::Curve),
    }
}

/// A `SubjectPublicKeyInfo`.
fn public_key(der: &[u8]) -> Result<VerifyingKey, KeyError> {
    let mut outer = Reader::new(der);
    let fields = outer.sequence().filter(|_| outer.is_empty());
    let mut fields = fields.ok_or(KeyError::Malformed)?;
    let mut algorithm = fields.sequence().ok_or(KeyError::Malformed)?;
    let kind = algorithm.value(OID).ok_or(KeyError::Malformed)?;
    let material = fields.bit_string().ok_or(KeyError::Malformed)?;
    match kind {
        RSA => Ok(VerifyingKey::new(Algorithm::Rs256, material)),
        EC => {
            let curve = algorithm.value(OID).ok_or(KeyError::Malformed)?;
            Ok(VerifyingKey::new(curve_of(curve)?.0, material))
        }
        _ => Err(KeyError::Malformed),
    }
}
