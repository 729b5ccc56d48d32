//! The subjects that are allowed to do something.

use std::collections::BTreeSet;

/// The users and groups that an authorizer allows. A user is allowed by name or by any one of the groups.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Subjects {
    /// The names of the users, sorted.
    pub users: BTreeSet<String>,
    /// The names of groups; every member is allowed.
    pub groups: BTreeSet<String>,
    /// Subjects that an authorizer denies; later authorizers cannot allow them.
    pub denied_subjects: DeniedSubjects,
    /// Facts that the lists do not express, one sentence each.
    pub subject_listing_notes: Vec<String>,
    /// Whether an authorizer cannot list its subjects, so that the lists may be wrong; a note names it.
    pub is_incomplete: bool,
}

/// The subjects that an authorizer denies, so that later authorizers cannot allow them. Subjects that it allows
/// are not among them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum DeniedSubjects {
    /// The authorizer denies no subject.
    #[default]
    Nobody,
    /// The authorizer denies every subject that it does not allow.
    Everybody,
    /// The authorizer denies these subjects.
    Listed {
        /// The names of the users, sorted.
        users: BTreeSet<String>,
        /// The names of groups; every member is denied.
        groups: BTreeSet<String>,
    },
}

impl Subjects {
    /// The result of an authorizer that cannot list subjects.
    pub fn unlistable_subjects(note: &str) -> Self {
        Self {
            subject_listing_notes: vec![note.to_owned()],
            is_incomplete: true,
            ..Self::default()
        }
    }
}
