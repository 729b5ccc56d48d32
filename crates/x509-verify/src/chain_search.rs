//! Search for a chain from a certificate to a trusted root.

use rustls_pki_types::CertificateDer;

use crate::certificate::Certificate;
use crate::name_constraints;
use crate::signature::SignatureFault;
use crate::verify_error::{IssuerFault, SigningFault, VerifyError};

/// Upper bound on the signature checks of one verification, as in Go. It limits the work, whatever
/// the peer presents.
const SIGNATURE_CHECKS_MAX: usize = 100;

/// The keyUsage bit that permits signing certificates.
const KEY_CERT_SIGN: u16 = 1 << 5;

/// The purpose for which a certificate is verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CertificateUsage {
    /// The certificate authenticates a client to a server.
    ClientAuth,
    /// The certificate authenticates a server to a client.
    ServerAuth,
}

/// The period in which all certificates of a chain are valid, in seconds since 1970, both ends
/// included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Validity {
    /// The first second in which the chain is valid.
    pub not_before: i64,
    /// The last second in which the chain is valid.
    pub not_after: i64,
}

/// The trusted certificates. An authority among them may sign other certificates. Each of them is also trusted
/// itself.
#[derive(Debug, Clone, Default)]
pub struct Roots {
    certificates: Vec<Certificate>,
}

/// The origin of an issuer: an intermediate that the peer presented, or a trusted root.
#[derive(Clone, Copy, PartialEq, Eq)]
enum IssuerOrigin {
    Intermediate,
    Root,
}

impl Roots {
    /// Trusts these certificates; duplicates are dropped.
    pub fn new(certificates: impl IntoIterator<Item = Certificate>) -> Self {
        let mut roots = Self::default();
        for certificate in certificates {
            if !roots.contains(&certificate) {
                roots.certificates.push(certificate);
            }
        }
        roots
    }

    /// Reports whether there are no trusted certificates.
    pub fn is_empty(&self) -> bool {
        self.certificates.is_empty()
    }

    /// Searches a chain from the first presented certificate, through the others in any order, to a
    /// trusted one, and returns the period in which the whole chain is valid.
    ///
    /// 1. The leaf has no unhandled critical extension and is valid now.
    /// 2. A leaf that is itself trusted is a chain. Otherwise candidates are tried by name, trusted
    ///    ones first. An issuer must be an authority by its basic constraints (a trusted
    ///    certificate of version 1 or 2 has none and counts as one), its keyUsage must permit
    ///    signing certificates, its key must have made the signature, it must be valid now, have no
    ///    unhandled critical extension, and its path length must not be exceeded.
    /// 3. One of the chains must require no policy, permit this usage in every certificate
    ///    including the trusted one, and have names that satisfy all name constraints.
    ///
    /// # Errors
    /// There is no such chain.
    pub fn verify_chain(
        &self,
        presented: &[CertificateDer<'_>],
        certificate_usage: CertificateUsage,
        now_unix_seconds: i64,
    ) -> Result<Validity, VerifyError> {
        let mut parsed = presented.iter().map(Certificate::parse);
        let leaf = parsed.next().ok_or(VerifyError::Malformed)??;
        let others: Vec<Certificate> = parsed.collect::<Result<_, _>>()?;
        check_leaf(&leaf, now_unix_seconds)?;
        if self.contains(&leaf) {
            return check_chain(&[&leaf], certificate_usage);
        }
        let intermediates = Self::new(others);
        let mut search = ChainSearch {
            roots: self,
            intermediates: &intermediates,
            usage: certificate_usage,
            now: now_unix_seconds,
            n_signature_checks: 0,
            first_chain_error: None,
            last_issuer_fault: None,
            first_signing_fault: None,
        };
        if let Some(validity) = search.extend(&mut vec![&leaf]) {
            return Ok(validity);
        }
        Err(match search.first_chain_error {
            Some(first_chain_error) => first_chain_error,
            None if search.n_signature_checks > SIGNATURE_CHECKS_MAX => VerifyError::SignatureLimit,
            None => match search.last_issuer_fault {
                Some(fault) => VerifyError::Issuer(fault),
                None => VerifyError::UnknownAuthority(search.first_signing_fault),
            },
        })
    }

    /// Reports whether exactly this certificate is trusted.
    pub fn contains(&self, certificate: &Certificate) -> bool {
        self.certificates.iter().any(|own| own.der == certificate.der)
    }

    /// The certificates that may have signed `child`, the likeliest first.
    fn candidate_issuers<'a>(&'a self, child: &Certificate) -> Vec<&'a Certificate> {
        let by_name = self.certificates.iter().filter(|own| own.subject == child.issuer);
        let mut found: Vec<&Certificate> = by_name.collect();
        let wanted = &child.extensions.authority_key_id;
        found.sort_by_key(|parent| {
            let own = &parent.extensions.subject_key_id;
            match own == wanted {
                true => 0,
                false if own.is_empty() || wanted.is_empty() => 1,
                false => 2,
            }
        });
        found
    }
}

/// A depth-first search for a chain.
struct ChainSearch<'a> {
    roots: &'a Roots,
    intermediates: &'a Roots,
    usage: CertificateUsage,
    now: i64,
    n_signature_checks: usize,
    /// The reason why the first complete chain is invalid.
    first_chain_error: Option<VerifyError>,
    /// The reason why the last issuer was rejected.
    last_issuer_fault: Option<IssuerFault>,
    /// The reason why the first candidate is not the issuer.
    first_signing_fault: Option<SigningFault>,
}

impl<'a> ChainSearch<'a> {
    fn extend(&mut self, chain: &mut Vec<&'a Certificate>) -> Option<Validity> {
        let child = *chain.last()?;
        let (roots, intermediates) = (self.roots, self.intermediates);
        let candidates = [(IssuerOrigin::Root, roots), (IssuerOrigin::Intermediate, intermediates)];
        for (position, pool) in candidates {
            for parent in pool.candidate_issuers(child) {
                self.n_signature_checks += 1;
                if self.n_signature_checks > SIGNATURE_CHECKS_MAX {
                    return None;
                }
                if chain.iter().any(|own| is_same_entity(parent, own)) {
                    continue;
                }
                if let Err(fault) = check_signed_by(child, parent) {
                    self.first_signing_fault.get_or_insert(fault);
                    continue;
                }
                if let Err(fault) = check_issuer(parent, position, chain.len(), self.now) {
                    self.last_issuer_fault = Some(fault);
                    continue;
                }
                chain.push(parent);
                let found = match position {
                    IssuerOrigin::Root => self.check_complete_chain(chain),
                    IssuerOrigin::Intermediate => self.extend(chain),
                };
                chain.pop();
                if found.is_some() {
                    return found;
                }
            }
        }
        None
    }

    fn check_complete_chain(&mut self, chain: &[&Certificate]) -> Option<Validity> {
        match check_chain(chain, self.usage) {
            Ok(validity) => Some(validity),
            Err(first_chain_error) => {
                self.first_chain_error.get_or_insert(first_chain_error);
                None
            }
        }
    }
}

/// Reports whether both certificates have the same subject, key and alternative names. A chain with
/// both would be a cycle.
fn is_same_entity(certificate: &Certificate, other: &Certificate) -> bool {
    certificate.subject == other.subject
        && certificate.key == other.key
        && certificate.extensions.alternative_names_der == other.extensions.alternative_names_der
}

fn check_leaf(leaf: &Certificate, now: i64) -> Result<(), VerifyError> {
    if leaf.extensions.has_unhandled_critical_extension {
        Err(VerifyError::UnhandledCriticalExtension)
    } else if now < leaf.not_before {
        Err(VerifyError::NotYetValid { not_before: leaf.not_before })
    } else if now > leaf.not_after {
        Err(VerifyError::Expired { not_after: leaf.not_after })
    } else {
        Ok(())
    }
}

/// Checks that `parent` may sign certificates and has signed `child`.
fn check_signed_by(child: &Certificate, parent: &Certificate) -> Result<(), SigningFault> {
    let is_authority = match parent.extensions.basic_constraints {
        Some(constraints) => constraints.is_ca,
        // RFC 5280, 4.2.1.9. Versions 1 and 2 have no basic constraints.
        None => parent.version < 3,
    };
    let usage = parent.extensions.key_usage_bits;
    if !is_authority || (usage != 0 && usage & KEY_CERT_SIGN == 0) {
        return Err(SigningFault::NotAnAuthority);
    }
    parent.key.verify_signature(&child.signed_data).map_err(|fault| match fault {
        SignatureFault::Unsupported => SigningFault::UnsupportedAlgorithm,
        SignatureFault::WrongKeyType | SignatureFault::Invalid => SigningFault::BadSignature,
    })
}

/// Checks that an issuer is valid at its position in the chain.
fn check_issuer(
    issuer: &Certificate,
    position: IssuerOrigin,
    n_below: usize,
    now: i64,
) -> Result<(), IssuerFault> {
    let constraints = issuer.extensions.basic_constraints;
    let n_intermediates = u64::try_from(n_below.saturating_sub(1)).unwrap_or(u64::MAX);
    if issuer.extensions.has_unhandled_critical_extension {
        Err(IssuerFault::UnhandledCriticalExtension)
    } else if now < issuer.not_before || now > issuer.not_after {
        Err(IssuerFault::OutsideValidity)
    } else if position == IssuerOrigin::Intermediate && !constraints.is_some_and(|own| own.is_ca) {
        Err(IssuerFault::NotAuthorizedToSign)
    } else if constraints
        .and_then(|own| own.path_len_max)
        .is_some_and(|path_len_max| n_intermediates > path_len_max)
    {
        Err(IssuerFault::TooManyIntermediates)
    } else {
        Ok(())
    }
}

/// Checks a whole chain, the leaf first.
fn check_chain(chain: &[&Certificate], usage: CertificateUsage) -> Result<Validity, VerifyError> {
    let below_root = chain.split_last().map(|(_, below)| below).unwrap_or_default();
    if below_root.iter().any(|own| own.extensions.requires_policy_evaluation) {
        return Err(VerifyError::Policy);
    }
    let is_for_usage = |certificate: &&Certificate| {
        let usages = certificate.extensions.extended_key_usage;
        let is_named = match usage {
            CertificateUsage::ClientAuth => usages.allows_client_auth,
            CertificateUsage::ServerAuth => usages.allows_server_auth,
        };
        !usages.has_listed_usages || usages.allows_any_usage || is_named
    };
    if !chain.iter().all(is_for_usage) {
        return Err(VerifyError::IncompatibleUsage);
    }
    name_constraints::check_chain_names(chain).map_err(VerifyError::Name)?;
    let limits = chain.iter().map(|own| (own.not_before, own.not_after));
    let (not_before, not_after) =
        limits.fold((i64::MIN, i64::MAX), |all, own| (all.0.max(own.0), all.1.min(own.1)));
    Ok(Validity { not_before, not_after })
}
