//! A binding as the index keeps it: what a decision reads of it lies side by side.

use std::cmp::Ordering;
use std::sync::Arc;

use authz::User;
use persistent::Shared;

use crate::namespaces::NamespaceNumber;
use crate::policy::{Binding, Identity, Subject};

/// How many subjects are kept in brief. Few bindings have more.
const BRIEFS_MAX: usize = 2;

/// How many bytes of a name are.
const BRIEF_BYTES_MAX: usize = 36;

/// A binding under its number: two lines of memory, and no more has to be read to tell whom it is
/// for and which of two comes first.
#[derive(Debug, Clone)]
#[repr(align(64))]
pub(crate) struct BindingSlot {
    /// The beginning of the name, so that comparing two bindings rarely needs more than this.
    head: [u64; 4],
    /// The first subjects.
    briefs: [Brief; BRIEFS_MAX],
    pub(crate) binding: Arc<Binding>,
    pub(crate) role: u32,
    pub(crate) namespace: NamespaceNumber,
}

/// Whom a subject means: what kind of holder, how long its name is, and how it begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Brief {
    n_bytes: u16,
    kind: BriefKind,
    start: [u8; BRIEF_BYTES_MAX],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BriefKind {
    Nobody,
    User,
    Group,
}

/// One as whom a user asks: the user, who has the number 0, or a group of the user, from 1.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AskerName<'a> {
    kind: BriefKind,
    name: &'a str,
}

impl Shared for BindingSlot {
    fn n_owners(&self) -> usize {
        self.binding.n_owners()
    }
}

/// The name of a binding that is looked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SoughtName<'a> {
    head: [u64; 4],
    name: &'a str,
}

impl<'a> SoughtName<'a> {
    pub(crate) fn new(name: &'a str) -> Self {
        Self { head: head(name), name }
    }
}

impl BindingSlot {
    pub(crate) fn new(binding: Binding, role: u32, namespace: NamespaceNumber) -> Self {
        let mut briefs = [Brief::NOBODY; BRIEFS_MAX];
        for (brief, subject) in briefs.iter_mut().zip(&binding.subjects) {
            *brief = Brief::new(subject, binding.namespace());
        }
        Self { head: head(binding.name()), briefs, binding: Arc::new(binding), role, namespace }
    }

    /// Some bits of each line, and of what is read and written to give the binding as a reason, for
    /// who only wants them to be at hand.
    #[inline]
    pub(crate) fn touch(&self) -> usize {
        let [_, last] = &self.briefs;
        usize::from(last.n_bytes) ^ self.head[0] as usize
    }

    /// The order by name.
    pub(crate) fn order(&self, other: &Self) -> Ordering {
        let by_name = || self.binding.name().cmp(other.binding.name());
        self.head.cmp(&other.head).then_with(by_name)
    }

    /// How the binding stands to one of this name.
    pub(crate) fn order_to(&self, name: &SoughtName<'_>) -> Ordering {
        self.head.cmp(&name.head).then_with(|| self.binding.name().cmp(name.name))
    }

    /// The first subject that means the asker.
    pub(crate) fn subject_of(&self, asker: AskerName<'_>) -> Option<usize> {
        for (idx, brief) in self.briefs.iter().enumerate() {
            if brief.may_mean(asker)
                && (brief.is_whole() || asker.is_meant_by(self.binding.subjects.get(idx)?, self))
            {
                return Some(idx);
            }
        }
        let rest = self.binding.subjects.iter().enumerate().skip(BRIEFS_MAX);
        rest.filter(|(_, subject)| asker.is_meant_by(subject, self)).map(|(idx, _)| idx).next()
    }
}

/// The beginning of a name as numbers of the same order. What it has less than it could is 0.
fn head(name: &str) -> [u64; 4] {
    let mut bytes = name.bytes();
    let mut next = || (0..8).fold(0, |word, _| word << 8 | u64::from(bytes.next().unwrap_or(0)));
    [next(), next(), next(), next()]
}

impl Brief {
    const NOBODY: Self = Self { n_bytes: 0, kind: BriefKind::Nobody, start: [0; BRIEF_BYTES_MAX] };

    fn new(subject: &Subject, namespace: &str) -> Self {
        let (kind, name) = match subject.identity(namespace) {
            Some(Identity::User(name)) => (BriefKind::User, name),
            Some(Identity::Group(name)) => (BriefKind::Group, name),
            None => return Self::NOBODY,
        };
        let mut start = [0; BRIEF_BYTES_MAX];
        start.iter_mut().zip(name.bytes()).for_each(|(own, byte)| *own = byte);
        Self { n_bytes: brief_len(&name), kind, start }
    }

    /// Reports whether it is all there is of a name.
    fn is_whole(&self) -> bool {
        usize::from(self.n_bytes) <= BRIEF_BYTES_MAX
    }

    /// Reports whether it may mean the asker. If it is whole, it does.
    fn may_mean(&self, asker: AskerName<'_>) -> bool {
        let n_known = usize::from(self.n_bytes).min(BRIEF_BYTES_MAX);
        self.kind == asker.kind
            && self.n_bytes == brief_len(asker.name)
            && self.start.get(..n_known) == asker.name.as_bytes().get(..n_known)
    }
}

/// The length of a name; one that is longer than can be told counts as the longest that can.
fn brief_len(name: &str) -> u16 {
    u16::try_from(name.len()).unwrap_or(u16::MAX)
}

impl<'a> AskerName<'a> {
    /// The asker of this number, if there is one.
    pub(crate) fn new(user: &'a User, idx: usize) -> Option<Self> {
        match idx.checked_sub(1) {
            None => Some(Self { kind: BriefKind::User, name: &user.name }),
            Some(idx) => Some(Self { kind: BriefKind::Group, name: user.groups.get(idx)? }),
        }
    }

    fn is_meant_by(self, subject: &Subject, slot: &BindingSlot) -> bool {
        match self.kind {
            BriefKind::User => subject.is_user(self.name, slot.binding.namespace()),
            BriefKind::Group => subject.is_group(self.name),
            BriefKind::Nobody => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::policy::Metadata;
    use crate::visit::first_subject;

    /// Names about as long as is kept of them, which differ in a place or two.
    fn name() -> impl Strategy<Value = String> {
        (0..3usize, 34..39usize, prop_oneof![Just('x'), Just('y')]).prop_map(
            |(start, len, last)| {
                format!("{}{}{last}", "abc".get(start..).unwrap_or(""), "-".repeat(len))
            },
        )
    }

    fn subject() -> impl Strategy<Value = Subject> {
        let account = (0..2usize, name())
            .prop_map(|(idx, name)| Subject::service_account(["", "other"][idx], &name));
        prop_oneof![
            name().prop_map(|name| Subject::user(&name)),
            name().prop_map(|name| Subject::group(&name)),
            account,
            name().prop_map(|name| Subject { kind: "Robot".into(), name, ..Subject::default() }),
        ]
    }

    proptest! {
        #[test]
        fn a_subject_is_found_as_if_by_names(
            subjects in prop::collection::vec(subject(), 0..5),
            name in name(),
            account in prop::option::of(0..3usize),
            group in name(),
        ) {
            let prefix = match account {
                Some(idx) => format!("system:serviceaccount:{}:", ["ns", "other", ""][idx]),
                None => String::new(),
            };
            let metadata = Metadata { namespace: "ns".into(), ..Metadata::default() };
            let binding = Binding { metadata, subjects, ..Binding::default() };
            let slot = BindingSlot::new(binding.clone(), 7, 1);
            let user = User { name: format!("{prefix}{name}"), ..User::default() };
            let in_group = User { groups: vec![group], ..User::default() };
            for (user, idx) in [(&user, 0), (&in_group, 1)] {
                let asker = AskerName::new(user, idx).unwrap();
                prop_assert_eq!(slot.subject_of(asker), first_subject(&binding, user));
            }
        }
    }

    #[test]
    fn a_slot_is_two_lines_with_nothing_beside_it() {
        assert_eq!(size_of::<Option<BindingSlot>>(), 128);
    }

    #[test]
    fn what_is_longer_than_can_be_told_is_not_taken_for_equal() {
        let [one, other] = ["x", "y"].map(|last| format!("{}{last}", "-".repeat(70_000)));
        let subjects = vec![Subject::user(&one)];
        let slot = BindingSlot::new(Binding { subjects, ..Binding::default() }, 7, 0);
        for (name, want) in [(one, Some(0)), (other, None)] {
            let user = User { name, ..User::default() };
            assert_eq!(slot.subject_of(AskerName::new(&user, 0).unwrap()), want);
        }
        assert!(AskerName::new(&User::default(), 1).is_none());
    }
}
