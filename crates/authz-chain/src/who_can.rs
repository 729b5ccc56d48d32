//! Lists the subjects that a chain allows.

use std::collections::BTreeSet;

use authz::{Attributes, DeniedSubjects, Subjects};

use crate::chain::Chain;
use crate::system_masters;

impl Chain {
    /// Lists the subjects that the chain allows. The user of the attributes is ignored.
    ///
    /// 1. The authorizers contribute in order, `system:masters` first.
    /// 2. A subject that an authorizer denies is not added by a later one. A group stays listed if only some of its members
    ///    are denied, with a note.
    /// 3. An authorizer that cannot list subjects contributes a note, and the list is then incomplete. After an authorizer
    ///    that denies everybody, no other one is consulted.
    ///
    /// A user who is in [`groups`](Subjects::groups) by one of its groups, or in
    /// [`users`](Subjects::users) by name, is allowed, and no other user is, apart from the facts in the notes.
    pub fn who_can(&self, attributes: &Attributes<'_>) -> Subjects {
        let mut listed = SubjectCollector::default();
        listed.add_subjects(system_masters::NAME, system_masters::subjects());
        for member in self.chain_members() {
            if listed.denies_everybody() {
                break;
            }
            listed.add_subjects(member.name(), member.allowed_subjects(attributes));
        }
        listed.into_subjects()
    }
}

/// The subjects that are allowed and denied so far.
#[derive(Default)]
struct SubjectCollector {
    allowed_subjects: Subjects,
    denied_users: BTreeSet<String>,
    denied_groups: BTreeSet<String>,
}

impl SubjectCollector {
    fn denies_everybody(&self) -> bool {
        self.allowed_subjects.denied_subjects == DeniedSubjects::Everybody
    }

    fn add_subjects(&mut self, name: &str, more: Subjects) {
        let Self { allowed_subjects: allowed, denied_users, denied_groups } = self;
        add_names_except(&mut allowed.users, more.users, denied_users);
        add_names_except(&mut allowed.groups, more.groups, denied_groups);
        allowed.subject_listing_notes.extend(more.subject_listing_notes);
        allowed.is_incomplete |= more.is_incomplete;
        match more.denied_subjects {
            DeniedSubjects::Nobody => {}
            DeniedSubjects::Everybody => allowed.denied_subjects = DeniedSubjects::Everybody,
            DeniedSubjects::Listed { users, groups } => {
                if !users.is_empty() || !groups.is_empty() {
                    allowed.subject_listing_notes.push(denied_subjects_note(name, &users, &groups));
                }
                denied_users.extend(users);
                denied_groups.extend(groups);
            }
        }
    }

    fn into_subjects(mut self) -> Subjects {
        let (users, groups) = (self.denied_users, self.denied_groups);
        let is_listed = !users.is_empty() || !groups.is_empty();
        if is_listed && self.allowed_subjects.denied_subjects == DeniedSubjects::Nobody {
            self.allowed_subjects.denied_subjects = DeniedSubjects::Listed { users, groups };
        }
        self.allowed_subjects
    }
}

/// Adds names except those in `without`. If one of the two sets is empty, the other one is moved.
fn add_names_except(
    names: &mut BTreeSet<String>,
    mut more: BTreeSet<String>,
    without: &BTreeSet<String>,
) {
    if !without.is_empty() {
        more.retain(|name| !without.contains(name));
    }
    names.append(&mut more);
}

fn denied_subjects_note(name: &str, users: &BTreeSet<String>, groups: &BTreeSet<String>) -> String {
    let show = |what: &str, names: &BTreeSet<String>| match names.len() {
        0 => String::new(),
        1 => names.iter().map(|name| format!(" {what} {}", go_compat::quote(name))).collect(),
        n => format!(" {n} {what}s"),
    };
    let (users, groups) = (show("user", users), show("group", groups));
    let and = if users.is_empty() || groups.is_empty() { "" } else { " and" };
    format!("{name}: denies{users}{and}{groups}, whatever the authorizers after it say")
}
