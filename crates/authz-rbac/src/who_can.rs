//! Who is granted a request?

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};

use authz::{Attributes, Subjects};
use foldhash::fast::RandomState;

use crate::bound::BindingSlot;
use crate::decide::namespace_of;
use crate::policy::{Binding, Identity, Subject};
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
        WhoCan { subjects, errors: self.broken_roles(attributes).collect() }
    }

    /// The same in the form in which all authorizers list subjects.
    pub fn allowed_subjects(&self, attributes: &Attributes<'_>) -> Subjects {
        let (mut users, mut groups) = (Vec::new(), vec![Cow::Borrowed(SUPERUSER_GROUP)]);
        for (binding, subject) in self.granted_subjects(attributes) {
            match subject.kind.as_str() {
                "User" => users.push(Cow::Borrowed(subject.name.as_str())),
                "Group" => groups.push(Cow::Borrowed(subject.name.as_str())),
                _ => {
                    if let Some(Identity::User(name)) = subject.identity(binding.namespace()) {
                        users.push(Cow::Owned(name));
                    }
                }
            }
        }
        let mut allowed =
            Subjects { users: set(users), groups: set(groups), ..Subjects::default() };
        let messages: Vec<String> =
            self.broken_roles(attributes).map(|error| error.to_string()).collect();
        if !messages.is_empty() {
            allowed.notes.push(format!("rbac: {}", field_errors::aggregate(&messages)));
        }
        allowed
    }

    /// Every subject of every binding that grants the request.
    pub(crate) fn granted_subjects(
        &self,
        attributes: &Attributes<'_>,
    ) -> impl Iterator<Item = (&Binding, &Subject)> {
        let allows = |number: u32| {
            let compiled = self.roles.get(number).and_then(|role| role.compiled.as_ref());
            compiled.is_some_and(|compiled| compiled.allows(attributes).is_some())
        };
        // Many bindings grant few roles, so each of these is asked once, and no other.
        let mut known: HashMap<u32, bool, RandomState> = HashMap::default();
        self.visited_slots(attributes)
            .filter(move |slot| *known.entry(slot.role).or_insert_with(|| allows(slot.role)))
            .flat_map(|slot| slot.binding.subjects.iter().map(|subject| (&*slot.binding, subject)))
    }

    fn broken_roles(&self, attributes: &Attributes<'_>) -> impl Iterator<Item = LookupError> {
        let is_missing = |number| self.roles.get(number).is_none_or(|role| role.compiled.is_none());
        let broken = self.visited_slots(attributes).filter(move |slot| is_missing(slot.role));
        broken.map(|slot| LookupError::of(&slot.binding))
    }

    /// The bindings that count for a request, whoever asks.
    fn visited_slots(&self, attributes: &Attributes<'_>) -> impl Iterator<Item = &BindingSlot> {
        let namespace = Some(namespace_of(attributes)).filter(|namespace| !namespace.is_empty());
        let local = namespace.into_iter().flat_map(|namespace| self.binding_slots(namespace));
        self.binding_slots("").chain(local)
    }
}

/// A set of names. Many bindings name the same few, and sorting is quicker while they are borrowed.
fn set(mut names: Vec<Cow<'_, str>>) -> BTreeSet<String> {
    names.sort_unstable();
    names.dedup();
    names.into_iter().map(Cow::into_owned).collect()
}
