//! Subjects that stand for nobody, or hardly for those who were meant.

use authz_rbac::{Binding, Subject};
use document::WarningCode;
use field_errors::{dns1123_label_faults, dns1123_subdomain_faults};

use super::Scope;

/// The groups that Kubernetes itself gives to users.
const GROUPS: [&str; 6] = [
    "system:authenticated",
    "system:masters",
    "system:monitoring",
    "system:nodes",
    "system:serviceaccounts",
    "system:unauthenticated",
];

/// What the names of service accounts as users begin with.
const ACCOUNT_PREFIX: &str = "system:serviceaccount:";
/// What the names of the groups of all service accounts of a namespace begin with.
const ACCOUNTS_PREFIX: &str = "system:serviceaccounts:";

/// Something to say about a field of a subject.
struct Remark {
    code: WarningCode,
    field: &'static str,
    message: String,
    hint: Option<String>,
}

pub(super) fn check(binding: &Binding, scope: &mut Scope<'_>) {
    for (idx, subject) in binding.subjects.iter().enumerate() {
        let remark = match subject.kind.as_str() {
            "User" => user(&subject.name),
            "Group" => group(&subject.name),
            "ServiceAccount" => service_account(subject),
            _ => None,
        };
        for remark in remark.into_iter().chain(ignored_namespace(subject)) {
            let path = format!("subjects[{idx}].{}", remark.field);
            scope.warn(remark.code, &path, remark.message, remark.hint);
        }
    }
}

fn user(name: &str) -> Option<Remark> {
    if let Some(remark) = odd_name(name) {
        return Some(remark);
    }
    if let Some(account) = name.strip_prefix(ACCOUNT_PREFIX) {
        return Some(match split_account(account) {
            Some((namespace, own)) => remark(
                WarningCode::ServiceAccountAsUser,
                "kind",
                format!("the user `{name}` is a service account"),
                format!("write `kind: ServiceAccount`, `namespace: {namespace}`, `name: {own}`"),
            ),
            None => malformed_account(name),
        });
    }
    let is_group = GROUPS.contains(&name) || name.starts_with(ACCOUNTS_PREFIX);
    is_group.then(|| {
        let message = format!("`{name}` is a group, and no user has this name");
        remark(WarningCode::GroupAsUser, "kind", message, "write `kind: Group`".to_owned())
    })
}

fn group(name: &str) -> Option<Remark> {
    if let Some(remark) = odd_name(name) {
        return Some(remark);
    }
    if let Some(account) = name.strip_prefix(ACCOUNT_PREFIX) {
        return Some(match split_account(account) {
            Some((namespace, own)) => remark(
                WarningCode::MalformedServiceAccount,
                "kind",
                format!("`{name}` is a service account and no group"),
                format!("write `kind: ServiceAccount`, `namespace: {namespace}`, `name: {own}`"),
            ),
            None if dns1123_label_faults(account).is_empty() => {
                misspelled(name, &format!("{ACCOUNTS_PREFIX}{account}"))
            }
            None => malformed_account(name),
        });
    }
    match name.strip_prefix(ACCOUNTS_PREFIX) {
        Some(namespace) if dns1123_label_faults(namespace).is_empty() => None,
        Some(namespace) => {
            let message = format!("no namespace is named `{namespace}`");
            let hint = format!("the group is `{ACCOUNTS_PREFIX}<namespace>`");
            Some(remark(WarningCode::MisspelledGroup, "name", message, hint))
        }
        None if GROUPS.contains(&name) => None,
        None => {
            GROUPS.into_iter().find(|known| is_near(name, known)).map(|it| misspelled(name, it))
        }
    }
}

fn service_account(subject: &Subject) -> Option<Remark> {
    let namespace = subject.namespace.as_str();
    let cannot_exist = !namespace.is_empty() && !dns1123_label_faults(namespace).is_empty();
    cannot_exist.then(|| Remark {
        code: WarningCode::OddSubjectName,
        field: "namespace",
        message: format!("no namespace can be named {}", go_compat::quote(namespace)),
        hint: None,
    })
}

fn ignored_namespace(subject: &Subject) -> Option<Remark> {
    let is_ignored =
        matches!(subject.kind.as_str(), "User" | "Group") && !subject.namespace.is_empty();
    is_ignored.then(|| {
        let kind = subject.kind.to_ascii_lowercase();
        let message = format!("a {kind} belongs to no namespace, and this one is ignored");
        let hint = "remove `namespace`; a RoleBinding limits the role to its own".to_owned();
        remark(WarningCode::IgnoredSubjectNamespace, "namespace", message, hint)
    })
}

/// A name that nobody has, whatever kind of subject it is for.
fn odd_name(name: &str) -> Option<Remark> {
    if name == "*" {
        let message = "`*` stands for nobody: it is a name like any other".to_owned();
        let hint = "everybody who is known is in the group `system:authenticated`".to_owned();
        return Some(remark(WarningCode::WildcardSubject, "name", message, hint));
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
    Some(Remark { code: WarningCode::OddSubjectName, field: "name", message, hint })
}

/// Namespace and name of a service account, if one can have this name.
fn split_account(account: &str) -> Option<(&str, &str)> {
    let (namespace, name) = account.split_once(':')?;
    let can_exist =
        dns1123_label_faults(namespace).is_empty() && dns1123_subdomain_faults(name).is_empty();
    can_exist.then_some((namespace, name))
}

fn malformed_account(name: &str) -> Remark {
    let message = format!("no service account has the name {}", go_compat::quote(name));
    let hint = format!("it would be `{ACCOUNT_PREFIX}<namespace>:<name>`");
    remark(WarningCode::MalformedServiceAccount, "name", message, hint)
}

fn misspelled(name: &str, known: &str) -> Remark {
    let message = format!("`{name}` is nearly the group `{known}`");
    remark(WarningCode::MisspelledGroup, "name", message, format!("did you mean `{known}`?"))
}

fn remark(code: WarningCode, field: &'static str, message: String, hint: String) -> Remark {
    Remark { code, field, message, hint: Some(hint) }
}

/// Whether two names are the same but for case, or but for one letter: changed, added, left out or
/// swapped with its neighbour. More is not taken for a mistake, since names are free to choose.
fn is_near(name: &str, known: &str) -> bool {
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
    fn names_are_near_by_one_letter() {
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
            assert!(is_near(name, known), "{name}");
        }
        for name in ["system:testers", "system:mast", "", "masters", "system:amstesr"] {
            assert!(!is_near(name, known), "{name}");
        }
    }
}
