//! Who is granted a request?

use std::collections::HashMap;
use std::ptr;

use authz::{Attributes, Subjects};

use crate::decide::namespace_of;
use crate::policy::{Binding, Identity, Role, Subject};
use crate::snapshot::{LookupError, Snapshot};

/// The group whose members are allowed everything before any policy is looked at.
pub const SUPERUSER_GROUP: &str = "system:masters";

/// Who is granted a request, as the bindings say it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WhoCan {
    /// The subjects, repeated if several bindings name them, in the order in which bindings are
    /// visited; the superusers come first. A service account without a namespace has that of its
    /// binding.
    pub subjects: Vec<Subject>,
    /// The roles that could not be found; there may be more subjects.
    pub errors: Vec<LookupError>,
}

impl Snapshot {
    /// Lists who is granted the request; the user of the attributes is ignored. `superuser` is a
    /// user besides those of [`SUPERUSER_GROUP`] whom everything is allowed.
    pub fn who_can(&self, attributes: &Attributes<'_>, superuser: Option<&str>) -> WhoCan {
        let mut subjects = vec![Subject::group(SUPERUSER_GROUP)];
        subjects.extend(superuser.map(Subject::user));
        subjects.extend(self.granted_subjects(attributes).map(|(_, subject)| subject.clone()));
        let errors = self.visited_bindings(attributes).filter_map(|it| self.role_of(it).err());
        WhoCan { subjects, errors: errors.collect() }
    }

    /// The same in the form in which all authorizers list subjects.
    pub fn allowed_subjects(&self, attributes: &Attributes<'_>) -> Subjects {
        // Sets are made of whole lists, which is quicker than adding one name after the other.
        let (mut users, mut groups) = (Vec::new(), vec![SUPERUSER_GROUP.to_owned()]);
        for (binding, subject) in self.granted_subjects(attributes) {
            match subject.identity(binding.namespace()) {
                Some(Identity::User(name)) => users.push(name),
                Some(Identity::Group(name)) => groups.push(name),
                None => {}
            }
        }
        let mut allowed = Subjects {
            users: users.into_iter().collect(),
            groups: groups.into_iter().collect(),
            ..Subjects::default()
        };
        let errors = self.visited_bindings(attributes).filter_map(|it| self.role_of(it).err());
        let messages: Vec<String> = errors.map(|error| error.to_string()).collect();
        if !messages.is_empty() {
            allowed.notes.push(format!("rbac: {}", field::aggregate(&messages)));
        }
        allowed
    }

    /// Every subject of every binding that grants the request.
    pub(crate) fn granted_subjects(
        &self,
        attributes: &Attributes<'_>,
    ) -> impl Iterator<Item = (&Binding, &Subject)> {
        // Many bindings grant few roles, so each role is asked once.
        let mut asked: HashMap<*const Role, bool> = HashMap::new();
        self.visited_bindings(attributes)
            .filter(move |binding| {
                self.find_role_of(binding).is_some_and(|role| {
                    *asked
                        .entry(ptr::from_ref(role.as_ref()))
                        .or_insert_with(|| role.rules.iter().any(|rule| rule.allows(attributes)))
                })
            })
            .flat_map(|binding| binding.subjects.iter().map(move |subject| (binding, subject)))
    }

    fn visited_bindings(&self, attributes: &Attributes<'_>) -> impl Iterator<Item = &Binding> {
        let namespace = Some(namespace_of(attributes)).filter(|namespace| !namespace.is_empty());
        let local = namespace.into_iter().flat_map(|namespace| self.bindings(namespace));
        self.bindings("").chain(local).map(AsRef::as_ref)
    }
}
