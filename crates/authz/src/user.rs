//! Who asks.

use std::collections::BTreeMap;

/// An authenticated or impersonated user.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct User {
    /// The name, unique among users that are active at one time.
    pub name: String,
    /// An identifier that tells users apart who had the same name at different times.
    pub uid: String,
    /// The groups, in the order in which authentication named them.
    pub groups: Vec<String>,
    /// What else authentication knows; the keys belong to the authenticator.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl User {
    /// Reports whether the user is in a group of exactly this name.
    pub fn is_in_group(&self, group: &str) -> bool {
        self.groups.iter().any(|own| own == group)
    }
}

/// The name under which limits per user count a user. All service accounts of a namespace count as one:
/// a user who may create one may create many.
pub fn limit_name(user: &str) -> &str {
    let account = user.strip_prefix("system:serviceaccount:");
    let namespace = account.and_then(|account| account.split_once(':'));
    let name = namespace.and_then(|(_, name)| user.strip_suffix(name)?.strip_suffix(':'));
    name.unwrap_or(user)
}

#[cfg(test)]
mod tests {
    use super::limit_name;

    #[test]
    fn the_service_accounts_of_a_namespace_count_as_one() {
        for (user, want) in [
            ("jane", "jane"),
            ("system:serviceaccount:n:a", "system:serviceaccount:n"),
            ("system:serviceaccount:n:a:b", "system:serviceaccount:n"),
            ("system:serviceaccount:n", "system:serviceaccount:n"),
            ("system:serviceaccount:n:", "system:serviceaccount:n"),
            ("system:serviceaccounts:n:a", "system:serviceaccounts:n:a"),
            ("", ""),
        ] {
            assert_eq!(limit_name(user), want, "{user}");
        }
    }
}
