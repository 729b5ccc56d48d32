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
