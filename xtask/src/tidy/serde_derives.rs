//! Checks that only wire types derive serde. They are converted at once, and domain types do not derive it.

use super::Finding;
use super::tree::File;

/// The crates that read or write documents with derived code, and which documents.
///
/// The list only shrinks: an entry that is no longer needed is an error too.
const ALLOWED: &[(&str, &str)] = &[
    ("crates/access-reviews", "the access reviews in answers"),
    ("crates/admission-hooks", "AdmissionReview, and the answers of webhooks"),
    ("crates/api-object", "Status, and the continue token of lists"),
    ("crates/audit", "audit events"),
    ("crates/authz-reload", "the status of the configuration, on its debug page"),
    ("crates/manifests", "RBAC objects, flow schemas and priority levels"),
    ("crates/server", "the record by which servers of one store know each other"),
];

/// The names of the derive macros.
const DERIVES: [&str; 2] = ["Serialize", "Deserialize"];

/// Finds serde derives of the product outside of the listed crates.
pub(super) fn check(files: &[File]) -> Vec<Finding> {
    check_list(files, ALLOWED)
}

fn check_list(files: &[File], allowed: &[(&str, &str)]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut is_needed = vec![false; allowed.len()];
    for file in files.iter().filter(|file| is_product(&file.path)) {
        let lines = derive_lines(file.code());
        let in_crate = |(folder, _): &(&str, &str)| {
            file.path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
        };
        match allowed.iter().position(in_crate) {
            Some(idx) => is_needed[idx] |= !lines.is_empty(),
            None => findings.extend(lines.into_iter().map(|line| {
                let message =
                    "derives serde, but its crate reads and writes no documents of its own";
                Finding::error(&file.path, message).at_line(line)
            })),
        }
    }
    let unneeded = allowed.iter().zip(is_needed).filter(|(_, is_needed)| !is_needed);
    findings.extend(unneeded.map(|((folder, _), _)| {
        Finding::error(folder, "derives no serde: remove it from the list of serde derives")
    }));
    findings
}

fn is_product(path: &str) -> bool {
    path.starts_with("crates/")
        && path.contains("/src/")
        && path.ends_with(".rs")
        && !path.ends_with("/tests.rs")
}

/// The lines of serde derives; a derive may have several lines.
fn derive_lines(code: &str) -> Vec<usize> {
    let product = code.split("#[cfg(test)]").next().unwrap_or_default();
    let derives = product.match_indices("derive(").filter(|(at, _)| {
        let list = product[*at..].split(')').next().unwrap_or_default();
        list.split(|c: char| !c.is_alphanumeric()).any(|word| DERIVES.contains(&word))
    });
    derives.map(|(at, _)| product[..at].matches('\n').count() + 1).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALLOWED_IN_A: &[(&str, &str)] = &[("crates/a", "documents")];

    fn messages(files: &[File]) -> Vec<String> {
        check_list(files, ALLOWED_IN_A).iter().map(Finding::to_string).collect()
    }

    #[test]
    fn a_derive_outside_the_list_is_found() {
        let text = "use serde::Serialize;\n#[derive(\n    Debug,\n    Serialize,\n)]\nstruct X;\n\
                    fn f<T: Serialize>(_: T) {}\n#[cfg(test)]\n#[derive(Deserialize)]\nstruct Y;\n";
        let allowed = File::new("crates/a/src/wire.rs", text);
        assert_eq!(
            messages(&[allowed, File::new("crates/ab/src/x.rs", text)]),
            [
                "error: crates/ab/src/x.rs:2: derives serde, but its crate reads and writes no documents \
              of its own"
            ]
        );
    }

    #[test]
    fn an_entry_that_is_not_needed_is_found() {
        assert_eq!(
            messages(&[File::new("crates/a/src/x.rs", "#[derive(Debug)]\nstruct X;\n")]),
            ["error: crates/a: derives no serde: remove it from the list of serde derives"]
        );
    }
}
