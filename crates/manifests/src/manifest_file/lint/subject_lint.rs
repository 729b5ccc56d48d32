//! Warnings about subjects that match nobody, or not the intended users.

use authz_rbac::{Binding, Subject};
use document::WarningCode;
use field_errors::{dns1123_label_faults, dns1123_subdomain_faults};

use super::LintContext;

/// The groups that Kubernetes itself gives to users.
const GROUPS: [&str; 6] = [
    "system:authenticated",
    "system:masters",
    "system:monitoring",
    "system:nodes",
    "system:serviceaccounts",
    "system:unauthenticated",
];

/// The prefix of the user names of service accounts.
const ACCOUNT_PREFIX: &str = "system:serviceaccount:";
/// The prefix of the groups of all service accounts of a namespace.
const ACCOUNTS_PREFIX: &str = "system:serviceaccounts:";

/// A warning about a field of a subject.
struct SubjectWarning {
    code: WarningCode,
    field: &'static str,
    message: String,
    hint: Option<String>,
}

pub(super) fn lint_subjects(binding: &Binding, ctx: &mut LintContext<'_>) {
    for (idx, subject) in binding.subjects.iter().enumerate() {
        let warning = match subject.kind.as_str() {
            "User" => lint_user(&subject.name),
            "Group" => lint_group(&subject.name),
            "ServiceAccount" => lint_service_account(subject),
            _ => None,
        };
        for warning in warning.into_iter().chain(lint_ignored_namespace(subject)) {
            let path = format!("subjects[{idx}].{}", warning.field);
            ctx.warn_at_field(warning.code, &path, warning.message, warning.hint);
        }
    }
}

fn lint_user(name: &str) -> Option<SubjectWarning> {
    if let Some(warning) = lint_unmatchable_name(name) {
        return Some(warning);
    }
    if let Some(account) = name.strip_prefix(ACCOUNT_PREFIX) {
        return Some(match split_service_account(account) {
            Some((namespace, own)) => subject_warning(
                WarningCode::ServiceAccountAsUser,
                "kind",
                format!("the user `{name}` is a service account"),
                format!("write `kind: ServiceAccount`, `namespace: {namespace}`, `name: {own}`"),
            ),
            None => malformed_account_warning(name),
        });
    }
    let is_group = GROUPS.contains(&name) || name.starts_with(ACCOUNTS_PREFIX);
    is_group.then(|| {
        let message = format!("`{name}` is a group, and no user has this name");
        subject_warning(WarningCode::GroupAsUser, "kind", message, "write `kind: Group`".to_owned())
    })
}

fn lint_group(name: &str) -> Option<SubjectWarning> {
    if let Some(warning) = lint_unmatchable_name(name) {
        return Some(warning);
    }
    if let Some(account) = name.strip_prefix(ACCOUNT_PREFIX) {
        return Some(match split_service_account(account) {
            Some((namespace, own)) => subject_warning(
                WarningCode::MalformedServiceAccount,
                "kind",
                format!("`{name}` is a service account and no group"),
                format!("write `kind: ServiceAccount`, `namespace: {namespace}`, `name: {own}`"),
            ),
            None if dns1123_label_faults(account).is_empty() => {
                misspelled_group_warning(name, &format!("{ACCOUNTS_PREFIX}{account}"))
            }
            None => malformed_account_warning(name),
        });
    }
    match name.strip_prefix(ACCOUNTS_PREFIX) {
        Some(namespace) if dns1123_label_faults(namespace).is_empty() => None,
        Some(namespace) => {
            let message = format!("no namespace is named `{namespace}`");
            let hint = format!("the group is `{ACCOUNTS_PREFIX}<namespace>`");
            Some(subject_warning(WarningCode::MisspelledGroup, "name", message, hint))
        }
        None if GROUPS.contains(&name) => None,
        None => GROUPS
            .into_iter()
            .find(|known| differs_by_one_letter(name, known))
            .map(|it| misspelled_group_warning(name, it)),
    }
}

fn lint_service_account(subject: &Subject) -> Option<SubjectWarning> {
    let namespace = subject.namespace.as_str();
    let cannot_exist = !namespace.is_empty() && !dns1123_label_faults(namespace).is_empty();
    cannot_exist.then(|| SubjectWarning {
        code: WarningCode::OddSubjectName,
        field: "namespace",
        message: format!("no namespace can be named {}", go_compat::quote(namespace)),
        hint: None,
    })
}

fn lint_ignored_namespace(subject: &Subject) -> Option<SubjectWarning> {
    let is_ignored =
        matches!(subject.kind.as_str(), "User" | "Group") && !subject.namespace.is_empty();
    is_ignored.then(|| {
        let kind = subject.kind.to_ascii_lowercase();
        let message = format!("a {kind} belongs to no namespace, and this one is ignored");
        let hint = "remove `namespace`; a RoleBinding limits the role to its own".to_owned();
        subject_warning(WarningCode::IgnoredSubjectNamespace, "namespace", message, hint)
    })
}

/// Warns about a name that no user and no group has.
fn lint_unmatchable_name(name: &str) -> Option<SubjectWarning> {
    if name == "*" {
        let message = "`*` stands for nobody: it is a name like any other".to_owned();
        let hint = "everybody who is known is in the group `system:authenticated`".to_owned();
        return Some(subject_warning(WarningCode::WildcardSubject, "name", message, hint));
    }
    let is_invisible = |c: char| {
        c.is_control() || matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}')
    };
    let message = if name.trim() != name {
        format!("the name {} begins or ends with white space", go_compat::quote(name))
    } else if name.contains(is_invisible) {
        format!("the name {} has invisible characters", go_compat::quote(name))
    } else {
        return None;
    };
    let tidy: String = name.trim().chars().filter(|c| !is_invisible(*c)).collect();
    let hint = (!tidy.is_empty()).then(|| format!("did you mean `{tidy}`?"));
    Some(SubjectWarning { code: WarningCode::OddSubjectName, field: "name", message, hint })
}

/// Splits the rest of a user name into the namespace and the name of a service account. Returns `None` if no
/// service account can have this user name.
fn split_service_account(account: &str) -> Option<(&str, &str)> {
    let (namespace, name) = account.split_once(':')?;
    let can_exist =
        dns1123_label_faults(namespace).is_empty() && dns1123_subdomain_faults(name).is_empty();
    can_exist.then_some((namespace, name))
}

fn malformed_account_warning(name: &str) -> SubjectWarning {
    let message = format!("no service account has the name {}", go_compat::quote(name));
    let hint = format!("it would be `{ACCOUNT_PREFIX}<namespace>:<name>`");
    subject_warning(WarningCode::MalformedServiceAccount, "name", message, hint)
}

fn misspelled_group_warning(name: &str, known: &str) -> SubjectWarning {
    let message = format!("`{name}` is nearly the group `{known}`");
    subject_warning(
        WarningCode::MisspelledGroup,
        "name",
        message,
        format!("did you mean `{known}`?"),
    )
}

fn subject_warning(
    code: WarningCode,
    field: &'static str,
    message: String,
    hint: String,
) -> SubjectWarning {
    SubjectWarning { code, field, message, hint: Some(hint) }
}

/// Reports whether two names differ only in case, or by one letter: changed, added, removed or
/// swapped with its neighbour. A larger difference is not treated as a mistake, since names can be
/// chosen freely.
fn differs_by_one_letter(name: &str, known: &str) -> bool {
    if name.eq_ignore_ascii_case(known) {
        return true;
    }
    let (a, b) = (name.as_bytes(), known.as_bytes());
    let n_same = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let (a, b) = (a.get(n_same..).unwrap_or_default(), b.get(n_same..).unwrap_or_default());
    match (a, b) {
        ([_, a @ ..], [_, b @ ..]) if a == b => true,
        ([_, a @ ..], b) if a == b => true,
        (a, [_, b @ ..]) if a == b => true,
        ([x, y, a @ ..], [p, q, b @ ..]) => x == q && y == p && a == b,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_differ_by_one_letter() {
        let known = "system:masters";
        for name in [
            "system:master",
            "system:masterss",
            "system:nasters",
            "ystem:masters",
            "system:mastesr",
            "System:Masters",
            "asystem:masters",
        ] {
            assert!(differs_by_one_letter(name, known), "{name}");
        }
        for name in ["system:testers", "system:mast", "", "masters", "system:amstesr"] {
            assert!(!differs_by_one_letter(name, known), "{name}");
        }
    }
}
