//! Name constraints: the names that certificates below an authority may have.

use crate::alternative_names::{self, AlternativeNames};
use crate::certificate::Certificate;
use crate::der::{self, DerReader, DerTag};

/// Upper bound on the comparisons of names with constraints in one chain.
const COMPARISONS_MAX: usize = 250_000;

/// The subtrees of names that an authority permits and excludes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct NameConstraints {
    permitted_subtrees: NameSubtrees,
    excluded_subtrees: NameSubtrees,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct NameSubtrees {
    dns_names: Vec<String>,
    email_addresses: Vec<String>,
    uris: Vec<String>,
    /// An address and a mask of the same length, four or sixteen bytes.
    ip_addresses: Vec<(Vec<u8>, Vec<u8>)>,
}

/// The reason why an authority may not sign for the names of a certificate.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameConstraintError {
    /// The permitted subtrees do not contain the name.
    #[error("{kind} {name:?} is not permitted by any constraint")]
    NotPermitted {
        /// The kind of name, such as `DNS name`.
        kind: &'static str,
        /// The name in the certificate.
        name: String,
    },
    /// An excluded subtree contains the name.
    #[error("{kind} {name:?} is excluded by a constraint")]
    Excluded {
        /// The kind of name, such as `DNS name`.
        kind: &'static str,
        /// The name in the certificate.
        name: String,
    },
    /// A DNS name is malformed.
    #[error("x509: cannot parse dnsName {0:?}")]
    MalformedDnsName(String),
    /// A URI has no host name.
    #[error("URI with no host name ({0:?}) cannot be matched against constraints")]
    UriWithoutHost(String),
    /// An email address is malformed.
    #[error("cannot parse rfc822Name {0:?}")]
    MalformedEmail(String),
    /// The chain has more names and constraints than are compared.
    #[error("too many names and constraints to compare")]
    TooManyComparisons,
}

impl NameConstraints {
    /// Parses the constraints, and reports whether all of them are of a supported kind.
    pub(crate) fn read(value: &[u8]) -> Option<(Self, bool)> {
        let mut reader = der::parse_single_value(value, DerTag::SEQUENCE)?;
        let permitted = reader.read_optional_value(DerTag::constructed_context_tag(0))?;
        let excluded = reader.read_optional_value(DerTag::constructed_context_tag(1))?;
        reader.expect_end()?;
        let permitted = permitted.map(|value| value.contents).unwrap_or_default();
        let excluded = excluded.map(|value| value.contents).unwrap_or_default();
        if permitted.is_empty() && excluded.is_empty() {
            return None;
        }
        let mut is_handled = true;
        let permitted_subtrees = NameSubtrees::read(permitted, &mut is_handled)?;
        let excluded_subtrees = NameSubtrees::read(excluded, &mut is_handled)?;
        Some((Self { permitted_subtrees, excluded_subtrees }, is_handled))
    }

    fn count(&self) -> usize {
        [&self.permitted_subtrees, &self.excluded_subtrees]
            .map(|trees| {
                trees.dns_names.len()
                    + trees.email_addresses.len()
                    + trees.uris.len()
                    + trees.ip_addresses.len()
            })
            .iter()
            .sum()
    }

    /// Checks that the constraints permit every name.
    fn check_permitted_names(&self, found: &AlternativeNames) -> Result<(), NameConstraintError> {
        let check = |kind: &'static str,
                     name: &str,
                     is_permitted: Option<bool>,
                     is_excluded: bool| match (is_permitted, is_excluded) {
            (Some(false), _) => {
                Err(NameConstraintError::NotPermitted { kind, name: name.to_owned() })
            }
            (_, true) => Err(NameConstraintError::Excluded { kind, name: name.to_owned() }),
            (Some(true) | None, false) => Ok(()),
        };
        let (yes, no) = (&self.permitted_subtrees, &self.excluded_subtrees);
        for ip in &found.ip_addresses {
            let contains = |(base, mask): &(Vec<u8>, Vec<u8>)| is_in_network(ip, base, mask);
            let permitted = any_subtree_contains(&yes.ip_addresses, contains);
            check(
                "IP address",
                &format!("{ip:?}"),
                permitted,
                no.ip_addresses.iter().any(contains),
            )?;
        }
        for name in &found.dns_names {
            if !alternative_names::is_comparable_domain(name, false) {
                return Err(NameConstraintError::MalformedDnsName(name.clone()));
            }
            let permitted = any_subtree_contains(&yes.dns_names, |tree| is_in_domain(name, tree));
            check("DNS name", name, permitted, is_domain_excluded(name, &no.dns_names))?;
        }
        for uri in &found.uris {
            let host = alternative_names::uri_host(uri)
                .ok_or_else(|| NameConstraintError::UriWithoutHost(uri.clone()))?;
            let permitted = any_subtree_contains(&yes.uris, |tree| is_in_domain(&host, tree));
            check("URI", uri, permitted, is_domain_excluded(&host, &no.uris))?;
        }
        for email in &found.email_addresses {
            let (local, domain) = alternative_names::parse_mailbox(email)
                .ok_or_else(|| NameConstraintError::MalformedEmail(email.clone()))?;
            let contains = |tree: &String| match alternative_names::parse_mailbox(tree) {
                Some((wanted, at)) => wanted == local && at == domain,
                None => is_in_domain(&domain, tree),
            };
            let permitted = any_subtree_contains(&yes.email_addresses, contains);
            check("email address", email, permitted, no.email_addresses.iter().any(contains))?;
        }
        Ok(())
    }
}

impl NameSubtrees {
    fn read(contents: &[u8], is_handled: &mut bool) -> Option<Self> {
        let mut list = DerReader::new(contents);
        let mut trees = Self::default();
        while !list.is_empty() {
            let mut subtree = list.read_nested(DerTag::SEQUENCE)?;
            let base = subtree.read_any_value()?;
            subtree.expect_end()?;
            let domain = || {
                alternative_names::parse_ia5_string(base.contents)
                    .filter(|text| alternative_names::is_comparable_domain(text, true))
            };
            match base.tag {
                alternative_names::DNS => trees.dns_names.push(domain()?),
                alternative_names::URI => trees
                    .uris
                    .push(domain().filter(|text| text.parse::<std::net::IpAddr>().is_err())?),
                alternative_names::EMAIL => {
                    let text = alternative_names::parse_ia5_string(base.contents)?;
                    let is_readable = match text.contains('@') {
                        true => alternative_names::parse_mailbox(&text).is_some(),
                        false => alternative_names::is_comparable_domain(&text, true),
                    };
                    trees.email_addresses.push(is_readable.then_some(text)?);
                }
                alternative_names::IP if matches!(base.contents.len(), 8 | 32) => {
                    let (address, mask) = base.contents.split_at(base.contents.len() / 2);
                    if !is_contiguous_mask(mask) {
                        return None;
                    }
                    trees.ip_addresses.push((address.to_vec(), mask.to_vec()));
                }
                alternative_names::IP => return None,
                _ => *is_handled = false,
            }
        }
        Some(trees)
    }
}

/// Checks the names of every certificate of a chain, the leaf first, against the constraints of all
/// certificates above it.
pub(crate) fn check_chain_names(chain: &[&Certificate]) -> Result<(), NameConstraintError> {
    let mut n_comparisons = 0;
    for (idx, certificate) in chain.iter().enumerate() {
        if certificate.extensions.alternative_names_der.is_none() {
            continue;
        }
        let found = &certificate.extensions.alternative_names;
        for above in chain.iter().skip(idx + 1) {
            let Some(constraints) = &above.extensions.name_constraints else { continue };
            n_comparisons += found.count() * constraints.count();
            if n_comparisons > COMPARISONS_MAX {
                return Err(NameConstraintError::TooManyComparisons);
            }
            constraints.check_permitted_names(found)?;
        }
    }
    Ok(())
}

/// Reports whether one of the subtrees contains the name; `None` if there are no subtrees, in which case
/// everything is permitted.
fn any_subtree_contains<T>(trees: &[T], contains: impl Fn(&T) -> bool) -> Option<bool> {
    (!trees.is_empty()).then(|| trees.iter().any(contains))
}

/// Reports whether a domain contains a name. A domain contains itself and its subdomains. A domain with a leading
/// dot contains only its subdomains.
fn is_in_domain(name: &str, tree: &str) -> bool {
    if tree.is_empty() {
        return true;
    }
    let Some(split) = name.len().checked_sub(tree.len()) else { return false };
    let (before, end) = name.as_bytes().split_at(split);
    end.eq_ignore_ascii_case(tree.as_bytes())
        && (tree.starts_with('.') || before.is_empty() || before.ends_with(b"."))
}

/// Reports whether a name is in an excluded domain. A wildcard name is also excluded if any name that it matches
/// is.
fn is_domain_excluded(name: &str, trees: &[String]) -> bool {
    let parent = |name: &str| name.find('.').map(|dot| name[dot..].to_ascii_lowercase());
    let wild = name.starts_with('*').then(|| parent(name)).flatten();
    trees.iter().any(|tree| {
        is_in_domain(name, tree)
            || wild.as_ref().is_some_and(|wild| parent(tree).as_ref() == Some(wild))
    })
}

fn is_in_network(ip: &[u8], base: &[u8], mask: &[u8]) -> bool {
    ip.len() == base.len()
        && ip.iter().zip(base).zip(mask).all(|((ip, base), mask)| ip & mask == base & mask)
}

/// Reports whether a mask consists of ones followed by zeros.
fn is_contiguous_mask(mask: &[u8]) -> bool {
    let mut is_over = false;
    mask.iter().all(|byte| {
        let is_good =
            if is_over { *byte == 0 } else { byte.leading_ones() + byte.trailing_zeros() >= 8 };
        is_over |= *byte != 0xff;
        is_good
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn domains_contain_their_subdomains() {
        for (name, tree, want) in [
            ("a.example.com", "example.com", true),
            ("EXAMPLE.com", "example.COM", true),
            ("testexample.com", "example.com", false),
            ("example.com", ".example.com", false),
            ("a.example.com", ".example.com", true),
            ("com", "example.com", false),
            ("anything", "", true),
            ("", "a", false),
        ] {
            assert_eq!(is_in_domain(name, tree), want, "{name} {tree}");
        }
        let trees = ["secret.example.com".to_owned()];
        assert!(is_domain_excluded("*.example.com", &trees));
        assert!(!is_domain_excluded("*.example.org", &trees));
        assert!(!is_domain_excluded("a.example.com", &trees));
    }

    #[test]
    fn network_masks_are_contiguous() {
        for (mask, want) in [
            ([255, 255, 0, 0], true),
            ([255, 240, 0, 0], true),
            ([0, 0, 0, 0], true),
            ([255, 255, 255, 255], true),
            ([255, 0, 255, 0], false),
            ([255, 15, 0, 0], false),
            ([240, 1, 0, 0], false),
        ] {
            assert_eq!(is_contiguous_mask(&mask), want, "{mask:?}");
        }
        assert!(is_in_network(&[10, 1, 2, 3], &[10, 0, 0, 0], &[255, 0, 0, 0]));
        assert!(!is_in_network(&[11, 1, 2, 3], &[10, 0, 0, 0], &[255, 0, 0, 0]));
        assert!(!is_in_network(&[0; 16], &[0; 4], &[0; 4]));
    }
}
