//! The user who sends a request.

use std::collections::BTreeMap;

/// An authenticated or impersonated user.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct User {
    /// The name, unique among users that are active at one time.
    pub name: String,
    /// An identifier that distinguishes users who had the same name at different times.
    pub uid: String,
    /// The groups, in the order of authentication.
    pub groups: Vec<String>,
    /// Further attributes; the authenticator defines the keys.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl User {
    /// Reports whether the user is in a group of exactly this name.
    pub fn is_in_group(&self, group: &str) -> bool {
        self.groups.iter().any(|own| own == group)
    }
}

/// The key by which limits per user count requests. All service accounts of a namespace share one key, because a user
/// who may create one service account may create many.
pub fn user_limit_key(user: &str) -> &str {
    let account = user.strip_prefix("system:serviceaccount:");
    let namespace = account.and_then(|account| account.split_once(':'));
    let name = namespace.and_then(|(_, name)| user.strip_suffix(name)?.strip_suffix(':'));
    name.unwrap_or(user)
}

#[cfg(test)]
mod tests {
    use super::user_limit_key;

    #[test]
    fn service_accounts_of_a_namespace_share_a_limit_key() {
        for (user, want) in [
            ("jane", "jane"),
            ("system:serviceaccount:n:a", "system:serviceaccount:n"),
            ("system:serviceaccount:n:a:b", "system:serviceaccount:n"),
            ("system:serviceaccount:n", "system:serviceaccount:n"),
            ("system:serviceaccount:n:", "system:serviceaccount:n"),
            ("system:serviceaccounts:n:a", "system:serviceaccounts:n:a"),
            ("", ""),
        ] {
            assert_eq!(user_limit_key(user), want, "{user}");
        }
    }
}
