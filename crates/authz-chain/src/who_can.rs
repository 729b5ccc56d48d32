//! Who may do something, over the whole chain.

use std::collections::BTreeSet;

use authz::{Attributes, Denied, Subjects};

use crate::chain::Chain;
use crate::superuser;

impl Chain {
    /// Lists whom the chain allows what is asked; the user of the attributes is ignored.
    ///
    /// 1. The authorizers contribute in order, superusers first.
    /// 2. Whom an authorizer denies, later ones do not add. A group stays listed if only some of
    ///    its members are denied; a note says so.
    /// 3. An authorizer that can not list subjects contributes a note, and the answer is then
    ///    incomplete. One that stands after a denial of everybody is not asked.
    ///
    /// A user who is in [`groups`](Subjects::groups) by one of its groups, or in
    /// [`users`](Subjects::users) by name, is allowed, and nobody else is, but for what the notes
    /// say.
    pub fn who_can(&self, attributes: &Attributes<'_>) -> Subjects {
        let mut listed = Listed::default();
        listed.add(superuser::NAME, superuser::subjects());
        for member in self.members() {
            if listed.is_closed() {
                break;
            }
            listed.add(member.name(), member.allowed_subjects(attributes));
        }
        listed.into_subjects()
    }
}

/// Who is allowed and who is denied so far.
#[derive(Default)]
struct Listed {
    allowed: Subjects,
    denied_users: BTreeSet<String>,
    denied_groups: BTreeSet<String>,
}

impl Listed {
    fn is_closed(&self) -> bool {
        self.allowed.denied == Denied::Everybody
    }

    fn add(&mut self, name: &str, more: Subjects) {
        let Self { allowed, denied_users, denied_groups } = self;
        unite(&mut allowed.users, more.users, denied_users);
        unite(&mut allowed.groups, more.groups, denied_groups);
        allowed.notes.extend(more.notes);
        allowed.is_incomplete |= more.is_incomplete;
        match more.denied {
            Denied::Nobody => {}
            Denied::Everybody => allowed.denied = Denied::Everybody,
            Denied::Listed { users, groups } => {
                if !users.is_empty() || !groups.is_empty() {
                    allowed.notes.push(denial_note(name, &users, &groups));
                }
                denied_users.extend(users);
                denied_groups.extend(groups);
            }
        }
    }

    fn into_subjects(mut self) -> Subjects {
        let (users, groups) = (self.denied_users, self.denied_groups);
        let is_listed = !users.is_empty() || !groups.is_empty();
        if is_listed && self.allowed.denied == Denied::Nobody {
            self.allowed.denied = Denied::Listed { users, groups };
        }
        self.allowed
    }
}

/// Adds names, but for those in `without`. The common case, in which one of the two sets is empty,
/// moves the other one.
fn unite(names: &mut BTreeSet<String>, mut more: BTreeSet<String>, without: &BTreeSet<String>) {
    if !without.is_empty() {
        more.retain(|name| !without.contains(name));
    }
    names.append(&mut more);
}

fn denial_note(name: &str, users: &BTreeSet<String>, groups: &BTreeSet<String>) -> String {
    let show = |what: &str, names: &BTreeSet<String>| match names.len() {
        0 => String::new(),
        1 => names.iter().map(|name| format!(" {what} {}", go_compat::quote(name))).collect(),
        n => format!(" {n} {what}s"),
    };
    let (users, groups) = (show("user", users), show("group", groups));
    let and = if users.is_empty() || groups.is_empty() { "" } else { " and" };
    format!("{name}: denies{users}{and}{groups}, whatever the authorizers after it say")
}
