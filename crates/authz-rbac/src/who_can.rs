//! Lists the subjects that are granted a request.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};

use authz::{Attributes, Subjects};
use foldhash::fast::RandomState;

use crate::compiled_role::CompiledRequest;
use crate::decide::request_namespace;
use crate::index::RoleId;
use crate::policy::{Binding, Subject};
use crate::snapshot::{RoleLookupError, Snapshot};

/// The group whose members are allowed everything before any policy is read.
pub const SUPERUSER_GROUP: &str = "system:masters";

/// The subjects that are granted a request.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WhoCanResult {
    /// The superusers, and the subjects of every binding that grants the request: ClusterRoleBindings
    /// before RoleBindings, both by name. A subject is repeated if several bindings name it.
    pub subjects: Vec<Subject>,
    /// The roles that do not exist. There would be more subjects if they did.
    pub role_lookup_errors: Vec<RoleLookupError>,
}

impl Snapshot {
    /// Lists the subjects that are granted the request; the user of the attributes is ignored.
    /// `superuser` is a user besides the members of [`SUPERUSER_GROUP`] who is allowed everything.
    pub fn who_can(&self, attributes: &Attributes<'_>, superuser: Option<&str>) -> WhoCanResult {
        let mut subjects = vec![Subject::group(SUPERUSER_GROUP)];
        subjects.extend(superuser.map(Subject::user));
        let granting_bindings = self.granting_bindings(attributes);
        subjects.extend(granting_bindings.into_iter().flat_map(|binding| binding.subjects.clone()));
        WhoCanResult { subjects, role_lookup_errors: self.missing_role_errors(attributes) }
    }

    /// Lists the users and groups that are granted the request, in the type that all authorizers
    /// return.
    pub fn allowed_subjects(&self, attributes: &Attributes<'_>) -> Subjects {
        let (mut users, mut groups) = (Vec::new(), vec![Cow::Borrowed(SUPERUSER_GROUP)]);
        for binding in self.unsorted_granting_bindings(attributes) {
            for subject in &binding.subjects {
                users.extend(subject.user_name(binding.namespace()));
                groups.extend(subject.group_name().map(Cow::Borrowed));
            }
        }
        let (users, groups) = (sort_into_set(users), sort_into_set(groups));
        let mut allowed = Subjects { users, groups, ..Subjects::default() };
        let errors = self.missing_role_errors(attributes);
        if !errors.is_empty() {
            let messages: Vec<String> = errors.iter().map(ToString::to_string).collect();
            allowed
                .subject_listing_notes
                .push(format!("rbac: {}", field_errors::aggregate_messages(&messages)));
        }
        allowed
    }

    /// The bindings that grant the request to their subjects: ClusterRoleBindings before RoleBindings,
    /// both by name.
    pub(crate) fn granting_bindings(&self, attributes: &Attributes<'_>) -> Vec<&Binding> {
        let mut bindings = self.unsorted_granting_bindings(attributes);
        bindings.sort_unstable_by_key(|binding| (binding.namespace(), binding.name()));
        bindings
    }

    /// The bindings that grant the request to their subjects, in unspecified order.
    fn unsorted_granting_bindings(&self, attributes: &Attributes<'_>) -> Vec<&Binding> {
        let request = CompiledRequest::new(&self.hash_builder, attributes);
        // Many bindings refer to few roles, so each role is checked once.
        let mut answers: HashMap<RoleId, bool, RandomState> = HashMap::default();
        let mut grants = |role: RoleId| {
            *answers.entry(role).or_insert_with(|| {
                self.compiled_role(role).is_some_and(|compiled| compiled.allows(&request))
            })
        };
        let bound = self.bindings_with_roles(attributes);
        bound.filter(|(_, role)| grants(*role)).map(|(binding, _)| binding).collect()
    }

    /// The errors of all bindings whose roles do not exist, in the order of bindings.
    fn missing_role_errors(&self, attributes: &Attributes<'_>) -> Vec<RoleLookupError> {
        let bound = self.bindings_with_roles(attributes);
        let broken = bound.filter(|(_, role)| self.compiled_role(*role).is_none());
        let mut bindings: Vec<&Binding> = broken.map(|(binding, _)| binding).collect();
        bindings.sort_unstable_by_key(|binding| (binding.namespace(), binding.name()));
        bindings.into_iter().map(RoleLookupError::new).collect()
    }

    /// All bindings that apply to a request of any user, and their roles.
    fn bindings_with_roles(
        &self,
        attributes: &Attributes<'_>,
    ) -> impl Iterator<Item = (&Binding, RoleId)> {
        let scopes = self.scopes_for_namespace(request_namespace(attributes));
        let bindings = scopes.flat_map(|scope| scope.bindings.iter());
        bindings.map(|(binding, bound)| (binding.0.as_ref(), bound.role_id))
    }
}

/// Collects names into a set. Most names repeat, so sorting the borrowed names first is quicker than
/// inserting each.
fn sort_into_set(mut names: Vec<Cow<'_, str>>) -> BTreeSet<String> {
    names.sort_unstable();
    names.dedup();
    names.into_iter().map(Cow::into_owned).collect()
}
