//! Who may do something, as far as it can be listed.

use std::collections::BTreeSet;

/// The users and groups who would each be allowed by themselves.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Subjects {
    /// The names of users.
    pub users: BTreeSet<String>,
    /// The names of groups; every member is allowed.
    pub groups: BTreeSet<String>,
    /// What the lists do not say, one sentence each, in the order found.
    pub notes: Vec<String>,
}

impl Subjects {
    /// The answer of an authorizer that can not list subjects.
    pub fn unknown(note: &str) -> Self {
        Self { notes: vec![note.to_owned()], ..Self::default() }
    }
}
