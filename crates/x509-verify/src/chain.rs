//! From a certificate to an authority.

use rustls_pki_types::CertificateDer;

use crate::certificate::Certificate;
use crate::constraints;
use crate::error::{IssuerFault, SigningFault, VerifyError};
use crate::signature::SignatureFault;

/// The most candidates that are tried as signers of the certificates of one chain, as in Go. It
/// bounds the work of one verification, whatever is presented.
const SIGNATURE_CHECKS_MAX: usize = 100;

/// The bit of keyUsage that allows to sign certificates.
const KEY_CERT_SIGN: u16 = 1 << 5;

/// What a certificate is wanted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Usage {
    /// To tell who a client is.
    ClientAuth,
    /// To tell who a server is.
    ServerAuth,
}

/// When all certificates of a chain are valid: seconds since 1970, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Validity {
    /// The first.
    pub not_before: i64,
    /// The last.
    pub not_after: i64,
}

/// The certificates that are trusted. Those that are authorities may vouch for others; every one of
/// them vouches for itself.
#[derive(Debug, Clone, Default)]
pub struct Roots {
    certificates: Vec<Certificate>,
}

/// Where an issuer stands: it was presented, or it is trusted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Position {
    Intermediate,
    Root,
}

impl Roots {
    /// Trusts these.
    pub fn new(certificates: impl IntoIterator<Item = Certificate>) -> Self {
        let mut roots = Self::default();
        for certificate in certificates {
            if !roots.contains(&certificate) {
                roots.certificates.push(certificate);
            }
        }
        roots
    }

    /// Whether nothing is trusted.
    pub fn is_empty(&self) -> bool {
        self.certificates.is_empty()
    }

    /// Searches a chain from the first of the presented certificates, by way of the others, to one
    /// that is trusted, and says how long all of it holds. The order of the others does not matter.
    ///
    /// 1. The leaf has no unhandled critical extension and is valid now.
    /// 2. A leaf that is itself trusted is a chain. Otherwise candidates are tried by name, trusted
    ///    ones first: an issuer is an authority by its basic constraints (a trusted certificate of
    ///    version 1 or 2 has none and counts as one), its keyUsage allows to sign certificates, its
    ///    key made the signature, it is valid now, has no unhandled critical extension, and its path
    ///    length is not exceeded.
    /// 3. Of the chains, one must demand no policy, be for this usage in every certificate, the
    ///    trusted one included, and have names that all name constraints cover.
    ///
    /// # Errors
    /// There is no such chain.
    pub fn verify(
        &self,
        presented: &[CertificateDer<'_>],
        usage: Usage,
        now: i64,
    ) -> Result<Validity, VerifyError> {
        let mut parsed = presented.iter().map(Certificate::parse);
        let leaf = parsed.next().ok_or(VerifyError::Malformed)??;
        let others: Vec<Certificate> = parsed.collect::<Result<_, _>>()?;
        check_leaf(&leaf, now)?;
        if self.contains(&leaf) {
            return check_chain(&[&leaf], usage);
        }
        let intermediates = Self::new(others);
        let mut search = Search {
            roots: self,
            intermediates: &intermediates,
            usage,
            now,
            n_checks: 0,
            refusal: None,
            issuer_fault: None,
            hint: None,
        };
        if let Some(validity) = search.extend(&mut vec![&leaf]) {
            return Ok(validity);
        }
        Err(match search.refusal {
            Some(refusal) => refusal,
            None if search.n_checks > SIGNATURE_CHECKS_MAX => VerifyError::SignatureLimit,
            None => match search.issuer_fault {
                Some(fault) => VerifyError::Issuer(fault),
                None => VerifyError::UnknownAuthority(search.hint),
            },
        })
    }

    /// Whether this very certificate is trusted.
    pub fn contains(&self, certificate: &Certificate) -> bool {
        self.certificates.iter().any(|own| own.der == certificate.der)
    }

    /// Those that may have signed a certificate, the likeliest first.
    fn potential_parents<'a>(&'a self, child: &Certificate) -> Vec<&'a Certificate> {
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

/// A search for a chain, depth first.
struct Search<'a> {
    roots: &'a Roots,
    intermediates: &'a Roots,
    usage: Usage,
    now: i64,
    n_checks: usize,
    /// Why the first complete chain is not good.
    refusal: Option<VerifyError>,
    /// Why the last issuer does not count.
    issuer_fault: Option<IssuerFault>,
    /// Why the first candidate is no issuer.
    hint: Option<SigningFault>,
}

impl<'a> Search<'a> {
    fn extend(&mut self, chain: &mut Vec<&'a Certificate>) -> Option<Validity> {
        let child = *chain.last()?;
        let (roots, intermediates) = (self.roots, self.intermediates);
        let candidates = [(Position::Root, roots), (Position::Intermediate, intermediates)];
        for (position, pool) in candidates {
            for parent in pool.potential_parents(child) {
                self.n_checks += 1;
                if self.n_checks > SIGNATURE_CHECKS_MAX {
                    return None;
                }
                if chain.iter().any(|own| is_same_entity(parent, own)) {
                    continue;
                }
                if let Err(fault) = check_signed(child, parent) {
                    self.hint.get_or_insert(fault);
                    continue;
                }
                if let Err(fault) = check_issuer(parent, position, chain.len(), self.now) {
                    self.issuer_fault = Some(fault);
                    continue;
                }
                chain.push(parent);
                let found = match position {
                    Position::Root => self.complete(chain),
                    Position::Intermediate => self.extend(chain),
                };
                chain.pop();
                if found.is_some() {
                    return found;
                }
            }
        }
        None
    }

    fn complete(&mut self, chain: &[&Certificate]) -> Option<Validity> {
        match check_chain(chain, self.usage) {
            Ok(validity) => Some(validity),
            Err(refusal) => {
                self.refusal.get_or_insert(refusal);
                None
            }
        }
    }
}

/// Two certificates of one subject with one key and the same alternative names: a chain with both
/// would go in circles.
fn is_same_entity(one: &Certificate, other: &Certificate) -> bool {
    one.subject == other.subject
        && one.key == other.key
        && one.extensions.alternative_names == other.extensions.alternative_names
}

fn check_leaf(leaf: &Certificate, now: i64) -> Result<(), VerifyError> {
    if leaf.extensions.has_unhandled_critical {
        Err(VerifyError::UnhandledCriticalExtension)
    } else if now < leaf.not_before {
        Err(VerifyError::NotYetValid { not_before: leaf.not_before })
    } else if now > leaf.not_after {
        Err(VerifyError::Expired { not_after: leaf.not_after })
    } else {
        Ok(())
    }
}

/// Whether a certificate may sign others, and has signed this one.
fn check_signed(child: &Certificate, parent: &Certificate) -> Result<(), SigningFault> {
    let is_authority = match parent.extensions.basic_constraints {
        Some(constraints) => constraints.is_ca,
        // RFC 5280, 4.2.1.9. Older versions can not say it.
        None => parent.version < 3,
    };
    let usage = parent.extensions.key_usage;
    if !is_authority || (usage != 0 && usage & KEY_CERT_SIGN == 0) {
        return Err(SigningFault::NotAnAuthority);
    }
    parent.key.verify(&child.signed).map_err(|fault| match fault {
        SignatureFault::Unsupported => SigningFault::UnsupportedAlgorithm,
        SignatureFault::OtherKey | SignatureFault::Invalid => SigningFault::BadSignature,
    })
}

/// Whether a certificate may be where it is: above so many others, the leaf included.
fn check_issuer(
    issuer: &Certificate,
    position: Position,
    n_below: usize,
    now: i64,
) -> Result<(), IssuerFault> {
    let constraints = issuer.extensions.basic_constraints;
    let n_intermediates = u64::try_from(n_below.saturating_sub(1)).unwrap_or(u64::MAX);
    if issuer.extensions.has_unhandled_critical {
        Err(IssuerFault::UnhandledCriticalExtension)
    } else if now < issuer.not_before || now > issuer.not_after {
        Err(IssuerFault::OutOfTime)
    } else if position == Position::Intermediate && !constraints.is_some_and(|own| own.is_ca) {
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

/// What is checked of a whole chain, the leaf first.
fn check_chain(chain: &[&Certificate], usage: Usage) -> Result<Validity, VerifyError> {
    let below_root = chain.split_last().map(|(_, below)| below).unwrap_or_default();
    if below_root.iter().any(|own| own.extensions.has_policy_demands) {
        return Err(VerifyError::Policy);
    }
    let is_for_usage = |certificate: &&Certificate| {
        let usages = certificate.extensions.extended_key_usage;
        let is_named = match usage {
            Usage::ClientAuth => usages.client_auth,
            Usage::ServerAuth => usages.server_auth,
        };
        !usages.is_limited || usages.any || is_named
    };
    if !chain.iter().all(is_for_usage) {
        return Err(VerifyError::IncompatibleUsage);
    }
    constraints::check_chain(chain).map_err(VerifyError::Name)?;
    let limits = chain.iter().map(|own| (own.not_before, own.not_after));
    let (not_before, not_after) =
        limits.fold((i64::MIN, i64::MAX), |all, own| (all.0.max(own.0), all.1.min(own.1)));
    Ok(Validity { not_before, not_after })
}
