//! Who may do something, as far as it can be listed.

use std::collections::BTreeSet;

/// The users and groups who would each be allowed by themselves.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Subjects {
    /// The names of users.
    pub users: BTreeSet<String>,
    /// The names of groups; every member is allowed.
    pub groups: BTreeSet<String>,
    /// Who is refused, so that authorizers that are asked later do not count for them.
    pub denied: Denied,
    /// What the lists do not say, one sentence each, in the order found.
    pub notes: Vec<String>,
    /// Some authorizer can not list subjects, so there may be more, or fewer; a note says which.
    pub is_incomplete: bool,
}

/// Whom an authorizer refuses, whatever later ones say. Those it allows are not among them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Denied {
    /// It abstains where it does not allow.
    #[default]
    Nobody,
    /// It refuses everybody whom it does not allow.
    Everybody,
    /// It refuses these by name.
    Listed {
        /// The names of users.
        users: BTreeSet<String>,
        /// The names of groups; every member is refused.
        groups: BTreeSet<String>,
    },
}

impl Subjects {
    /// The answer of an authorizer that can not list subjects.
    pub fn unknown(note: &str) -> Self {
        Self { notes: vec![note.to_owned()], is_incomplete: true, ..Self::default() }
    }
}
