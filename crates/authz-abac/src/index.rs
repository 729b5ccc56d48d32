//! From a request to the policies that may grant it, by look-ups alone.

use authz::User;

use crate::askers::Asker;
use crate::hashes::{Hashes, member};
use crate::holders::Holders;
use crate::proofs::{Place, Proofs};
use crate::sieve::Sieve;
use crate::table::Table;
use crate::targets::Targets;

mod build;
mod search;

pub(crate) use search::Wanted;

/// All policies, by the hashes of whom and of what they are for.
///
/// Each policy belongs to one subject and is for one resource and one path, of which one is usually
/// nothing. Who holds a policy for a target is found in one of two ways:
///
/// - Of a target that few hold, the holders are read together with it.
/// - Of any other, a table is read for each subject that the user is. Sieves hold back almost all
///   that are not in it.
///
/// For a subject and a target, what is found is not a list but the first policy in file order, once
/// for requests that read and once for those that write. It is proposed and not decided, since
/// hashes can be equal by accident: see [`Index::proposal`].
#[derive(Debug, Clone, Default)]
pub(crate) struct Index {
    hashes: Hashes,
    targets: Targets,
    holders: Holders,
    /// Who may be in the table for a resource: users and groups.
    resource_holders: Sieve,
    /// The same for a path. No request is for both, so neither is in the way of the other.
    path_holders: Sieve,
    /// The same for members, of which only the names pass. One word of it is read for a request.
    members: Sieve,
    /// What may be in the table. Those who hold so much that they always pass are tried with it.
    pairs: Sieve,
    /// By the hash of a subject with a target, and by that of a name as any member's with a target.
    grants: Table<First>,
    proofs: Proofs,
    /// By the hash of a subject: where its policies are.
    subjects: Table<Range>,
    /// The policies of all subjects, those of one in file order.
    policies: Box<[PolicyIdx]>,
}

/// A policy that may grant a request, and as whom the user then asks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Proposal {
    pub(crate) policy: Place,
    pub(crate) asker: Asker,
}

/// A place in the list of policies.
pub(crate) type PolicyIdx = u32;

#[derive(Debug, Clone, Copy)]
struct Range {
    start: u32,
    end: u32,
}

/// The first of several policies that grants reading, and the first that grants writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct First {
    read: Place,
    /// `NONE` if all of them are read-only.
    write: Place,
}

/// INVARIANT on Proofs: no place is so great.
const NONE: Place = Place::MAX;

impl First {
    fn new(policy: Place, is_readonly: bool) -> Self {
        Self { read: policy, write: if is_readonly { NONE } else { policy } }
    }

    fn or_earlier(self, other: Self) -> Self {
        Self { read: self.read.min(other.read), write: self.write.min(other.write) }
    }

    fn of(self, is_read_only: bool) -> Option<Place> {
        let policy = if is_read_only { self.read } else { self.write };
        (policy != NONE).then_some(policy)
    }
}

impl Index {
    pub(crate) fn proofs(&self) -> &Proofs {
        &self.proofs
    }

    /// Policies whose subject the user may be, in file order: all whose subject the user is, and
    /// others if hashes are equal by accident.
    pub(crate) fn policies_of(&self, user: &User) -> Vec<PolicyIdx> {
        let name = self.hashes.user(&user.name);
        let by_group = user.groups.iter().flat_map(|group| {
            let group = self.hashes.group(group);
            [group, member(name, group)]
        });
        let subjects = std::iter::once(name).chain(by_group);
        let ranges = subjects.filter_map(|subject| self.subjects.get(subject));
        let policies = |range: &Range| self.policies.get(range.start as usize..range.end as usize);
        let mut policies: Vec<_> = ranges.filter_map(policies).flatten().copied().collect();
        policies.sort_unstable();
        // A user may be said to be in one group twice.
        policies.dedup();
        policies
    }
}
