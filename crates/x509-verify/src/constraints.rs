//! Name constraints: which names the certificates below an authority may have.

use crate::certificate::Certificate;
use crate::der::{self, Reader, SEQUENCE};
use crate::names::{self, Names};

/// The most comparisons of a name with a constraint in one chain.
const COMPARISONS_MAX: usize = 250_000;

/// What an authority permits and excludes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct NameConstraints {
    permitted: Subtrees,
    excluded: Subtrees,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Subtrees {
    dns: Vec<String>,
    emails: Vec<String>,
    uris: Vec<String>,
    /// An address and a mask of the same length, four or sixteen bytes.
    ips: Vec<(Vec<u8>, Vec<u8>)>,
}

impl NameConstraints {
    /// The constraints, and whether all of them are of a kind that is checked.
    pub(crate) fn read(value: &[u8]) -> Option<(Self, bool)> {
        let mut reader = der::only(value, SEQUENCE)?;
        let permitted = reader.optional(der::constructed(0))?;
        let excluded = reader.optional(der::constructed(1))?;
        reader.end()?;
        let permitted = permitted.map(|value| value.contents).unwrap_or_default();
        let excluded = excluded.map(|value| value.contents).unwrap_or_default();
        if permitted.is_empty() && excluded.is_empty() {
            return None;
        }
        let mut is_handled = true;
        let permitted = Subtrees::read(permitted, &mut is_handled)?;
        let excluded = Subtrees::read(excluded, &mut is_handled)?;
        Some((Self { permitted, excluded }, is_handled))
    }

    fn count(&self) -> usize {
        [&self.permitted, &self.excluded]
            .map(|trees| trees.dns.len() + trees.emails.len() + trees.uris.len() + trees.ips.len())
            .iter()
            .sum()
    }

    /// Says which name is not covered, if any.
    fn check(&self, found: &Names) -> Result<(), String> {
        let not_permitted = |kind: &str, name: &str| {
            Err(format!("{kind} {name:?} is not permitted by any constraint"))
        };
        let excluded =
            |kind: &str, name: &str| Err(format!("{kind} {name:?} is excluded by a constraint"));
        let check = |kind: &str, name: &str, is_permitted: Option<bool>, is_excluded: bool| match (
            is_permitted,
            is_excluded,
        ) {
            (Some(false), _) => not_permitted(kind, name),
            (_, true) => excluded(kind, name),
            (Some(true) | None, false) => Ok(()),
        };
        let (yes, no) = (&self.permitted, &self.excluded);
        for ip in &found.ips {
            let contains = |(base, mask): &(Vec<u8>, Vec<u8>)| is_in_network(ip, base, mask);
            let permitted = among(&yes.ips, contains);
            check("IP address", &format!("{ip:?}"), permitted, no.ips.iter().any(contains))?;
        }
        for name in &found.dns {
            if !names::is_domain(name, false) {
                return Err(format!("x509: cannot parse dnsName {name:?}"));
            }
            let permitted = among(&yes.dns, |tree| is_in_domain(name, tree));
            check("DNS name", name, permitted, is_domain_excluded(name, &no.dns))?;
        }
        for uri in &found.uris {
            let host = names::uri_host(uri).ok_or_else(|| {
                format!("URI with no host name ({uri:?}) cannot be matched against constraints")
            })?;
            let permitted = among(&yes.uris, |tree| is_in_domain(&host, tree));
            check("URI", uri, permitted, is_domain_excluded(&host, &no.uris))?;
        }
        for email in &found.emails {
            let (local, domain) = names::mailbox(email)
                .ok_or_else(|| format!("cannot parse rfc822Name {email:?}"))?;
            let contains = |tree: &String| match names::mailbox(tree) {
                Some((wanted, at)) => wanted == local && at == domain,
                None => is_in_domain(&domain, tree),
            };
            let permitted = among(&yes.emails, contains);
            check("email address", email, permitted, no.emails.iter().any(contains))?;
        }
        Ok(())
    }
}

impl Subtrees {
    fn read(contents: &[u8], is_handled: &mut bool) -> Option<Self> {
        let mut list = Reader::new(contents);
        let mut trees = Self::default();
        while !list.is_empty() {
            let mut subtree = list.nested(SEQUENCE)?;
            let base = subtree.any()?;
            subtree.end()?;
            let domain = || names::ascii(base.contents).filter(|text| names::is_domain(text, true));
            match base.tag {
                names::DNS => trees.dns.push(domain()?),
                names::URI => trees
                    .uris
                    .push(domain().filter(|text| text.parse::<std::net::IpAddr>().is_err())?),
                names::EMAIL => {
                    let text = names::ascii(base.contents)?;
                    let is_readable = match text.contains('@') {
                        true => names::mailbox(&text).is_some(),
                        false => names::is_domain(&text, true),
                    };
                    trees.emails.push(is_readable.then_some(text)?);
                }
                names::IP if matches!(base.contents.len(), 8 | 32) => {
                    let (address, mask) = base.contents.split_at(base.contents.len() / 2);
                    if !is_mask(mask) {
                        return None;
                    }
                    trees.ips.push((address.to_vec(), mask.to_vec()));
                }
                names::IP => return None,
                _ => *is_handled = false,
            }
        }
        Some(trees)
    }
}

/// Checks the names of every certificate of a chain, the leaf first, against the constraints of all
/// that stand above it.
pub(crate) fn check_chain(chain: &[&Certificate]) -> Result<(), String> {
    let mut n_comparisons = 0;
    for (idx, certificate) in chain.iter().enumerate() {
        if certificate.extensions.alternative_names.is_none() {
            continue;
        }
        let found = &certificate.extensions.names;
        for above in chain.iter().skip(idx + 1) {
            let Some(constraints) = &above.extensions.name_constraints else { continue };
            n_comparisons += found.count() * constraints.count();
            if n_comparisons > COMPARISONS_MAX {
                return Err("too many names and constraints to compare".to_owned());
            }
            constraints.check(found)?;
        }
    }
    Ok(())
}

/// Whether one of the trees has it; `None` if there are no trees, which permits everything.
fn among<T>(trees: &[T], contains: impl Fn(&T) -> bool) -> Option<bool> {
    (!trees.is_empty()).then(|| trees.iter().any(contains))
}

/// A domain contains itself and its subdomains; one that begins with a dot only the latter.
fn is_in_domain(name: &str, tree: &str) -> bool {
    if tree.is_empty() {
        return true;
    }
    let Some(split) = name.len().checked_sub(tree.len()) else { return false };
    let (before, end) = name.as_bytes().split_at(split);
    end.eq_ignore_ascii_case(tree.as_bytes())
        && (tree.starts_with('.') || before.is_empty() || before.ends_with(b"."))
}

/// A wildcard is excluded as well if one of the names that it stands for is.
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

/// Ones, and then zeros.
fn is_mask(mask: &[u8]) -> bool {
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
    fn masks_are_ones_and_then_zeros() {
        for (mask, want) in [
            ([255, 255, 0, 0], true),
            ([255, 240, 0, 0], true),
            ([0, 0, 0, 0], true),
            ([255, 255, 255, 255], true),
            ([255, 0, 255, 0], false),
            ([255, 15, 0, 0], false),
            ([240, 1, 0, 0], false),
        ] {
            assert_eq!(is_mask(&mask), want, "{mask:?}");
        }
        assert!(is_in_network(&[10, 1, 2, 3], &[10, 0, 0, 0], &[255, 0, 0, 0]));
        assert!(!is_in_network(&[11, 1, 2, 3], &[10, 0, 0, 0], &[255, 0, 0, 0]));
        assert!(!is_in_network(&[0; 16], &[0; 4], &[0; 4]));
    }
}
