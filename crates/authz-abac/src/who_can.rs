//! Listing the subjects that are granted a request.

use authz::{Attributes, Subjects};

use crate::policy::Subject;
use crate::snapshot::Snapshot;

impl Snapshot {
    /// Lists the users and groups that some policy grants the request. The user of the attributes is
    /// ignored.
    ///
    /// A user who is granted the request only as a member of a group is listed as a user, with a note.
    /// This reads all policies, because the list may contain any subject.
    pub fn allowed_subjects(&self, attributes: &Attributes<'_>) -> Subjects {
        let mut subjects = Subjects::default();
        let granting_policies = self.policies().iter().filter(|policy| {
            policy.matches_verb(attributes) && policy.matches_target(&attributes.target)
        });
        for policy in granting_policies {
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
                    subjects.subject_listing_notes.push(format!(
                        "abac: line {} grants user {} only as a member of group {}",
                        policy.line_number(),
                        go_compat::quote(user),
                        go_compat::quote(group),
                    ));
                }
            }
        }
        subjects
    }
}
