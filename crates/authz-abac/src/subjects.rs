//! Who may do something.

use authz::{Attributes, Subjects};

use crate::decide::Policies;
use crate::policy::Subject;

impl Policies {
    /// The users and groups that some policy grants the request; the user of the attributes is
    /// ignored.
    ///
    /// A user who is granted it only as a member of a group is listed as a user, with a note. All
    /// policies are looked at, since any subject may be in the answer.
    pub fn allowed_subjects(&self, attributes: &Attributes<'_>) -> Subjects {
        let mut subjects = Subjects::default();
        let granting = self.as_slice().iter().filter(|policy| {
            policy.matches_verb(attributes) && policy.matches_target(&attributes.target)
        });
        for policy in granting {
            match policy.subject() {
                Subject::Nobody => {}
                Subject::User(user) => {
                    subjects.users.insert(user.to_owned());
                }
                Subject::Group(group) => {
                    subjects.groups.insert(group.to_owned());
                }
                Subject::Member { user, group } => {
                    subjects.users.insert(user.to_owned());
                    subjects.notes.push(format!(
                        "abac: line {} grants user {} only as a member of group {}",
                        policy.line(),
                        go_compat::quote(user),
                        go_compat::quote(group),
                    ));
                }
            }
        }
        subjects
    }
}
