//! The index of bindings: which roles does a user or a group hold?

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::hash::{BuildHasher, Hash, Hasher};
use std::hint::black_box;
use std::sync::Arc;

use authz::{Namespace, User};
use foldhash::fast::RandomState;
use persistent::{Map, Slab};

use crate::compiled_role::{CompiledRole, TargetBloomFilter};
use crate::policy::{Binding, Principal, Subject};

/// The number of groups that are looked up together.
const GROUPS_BATCH: usize = 32;

/// The number of a role in one snapshot and its clones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct RoleId(pub(crate) u32);

/// The number of a namespace in one snapshot and its clones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ScopeId(pub(crate) u32);

/// The scope of ClusterRoles and ClusterRoleBindings. INVARIANT: no namespace has this number.
pub(crate) const CLUSTER_SCOPE: ScopeId = ScopeId(0);

/// The number of a binding in one snapshot and its clones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct BindingId(pub(crate) u32);

/// The role of bindings whose reference cannot name a role. INVARIANT: no role has this number.
pub(crate) const UNRESOLVABLE_ROLE: RoleId = RoleId(u32::MAX);

/// The objects of one namespace, or those of the cluster.
#[derive(Debug, Clone)]
pub(crate) struct ScopeObjects {
    pub(crate) id: ScopeId,
    /// The roles by name. A role to which a binding refers has an entry even if it does not exist.
    pub(crate) roles: Map<Arc<str>, RoleUsage>,
    /// The bindings of the scope, found by their names.
    pub(crate) bindings: Map<BindingNameKey, BindingIds>,
}

/// The number of a role, and how many bindings refer to it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RoleUsage {
    pub(crate) id: RoleId,
    pub(crate) n_bindings: u32,
}

/// A role by its number. The role need not exist: a binding may refer to one that does not.
#[derive(Debug, Clone, Default)]
pub(crate) struct RoleEntry {
    /// The filter of the compiled role; no bits if the role does not exist. The copy is here because most
    /// roles of a user do not match a request, and a check of the copy does not read the role.
    pub(crate) target_bloom_filter: TargetBloomFilter,
    /// `None` if the role does not exist.
    pub(crate) compiled_role: Option<Arc<CompiledRole>>,
}

/// All bindings of a snapshot, each at the index that is its [`BindingId`].
pub(crate) type BindingSlab = Slab<Arc<Binding>>;

/// The bindings of each user and each group. Service accounts are users, by the names that
/// authentication gives them.
///
/// The keys are hashes of names, so a lookup reads no text. The bindings of two names with the same hash
/// are in one list, so the caller compares the subject of a binding before it uses the binding.
#[derive(Debug, Clone, Default)]
pub(crate) struct SubjectIndex {
    hash_builder: RandomState,
    users: Map<NameHash, HeldBindings>,
    groups: Map<NameHash, HeldBindings>,
    /// Gives all names the same hash, for tests.
    #[cfg(test)]
    pub(crate) all_names_collide: bool,
}

type NameHash = u64;

/// The bindings of one subject. INVARIANT: sorted by scope, then by role, then by the name of the binding.
pub(crate) type HeldBindings = Arc<[HeldBinding]>;

/// A binding of one subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HeldBinding {
    pub(crate) scope_id: ScopeId,
    pub(crate) role_id: RoleId,
    pub(crate) binding_id: BindingId,
    /// The index of the first subject of the binding that matches the holder.
    pub(crate) subject_idx: u32,
}

/// The numbers of a binding, of its namespace and of its role.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BindingIds {
    pub(crate) scope_id: ScopeId,
    pub(crate) binding_id: BindingId,
    pub(crate) role_id: RoleId,
}

/// A binding as the key of a map: bindings are equal if their names are.
#[derive(Debug, Clone)]
pub(crate) struct BindingNameKey(pub(crate) Arc<Binding>);

impl ScopeObjects {
    pub(crate) fn new(id: ScopeId) -> Self {
        Self { id, roles: Map::default(), bindings: Map::default() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.roles.is_empty() && self.bindings.is_empty()
    }
}

impl SubjectIndex {
    /// Calls `visit` with the user and the bindings of the user, and then with each group of the user and
    /// its bindings. Bindings of other names with the same hash may be among them.
    #[inline]
    pub(crate) fn for_each_principal<'s, 'u>(
        &'s self,
        user: &'u User,
        mut visit: impl FnMut(Principal<'u>, &'s [HeldBinding]),
    ) {
        if let Some(held) = self.users.get(&self.hash_name(&user.name)) {
            visit(Principal::User(&user.name), held);
        }
        for groups in user.groups.chunks(GROUPS_BATCH) {
            let mut hashes = [0; GROUPS_BATCH];
            for (hash, group) in hashes.iter_mut().zip(groups) {
                *hash = self.hash_name(group);
            }
            let hashes = hashes.get(..groups.len()).unwrap_or_default();
            let held_by_groups = self.groups.get_batch::<_, _, GROUPS_BATCH>(hashes);
            // Reads the ends of all lists first, so that the cache misses overlap.
            let ends = held_by_groups.iter().flatten().flat_map(|held| [held.first(), held.last()]);
            black_box(ends.flatten().fold(0, |all, held| all ^ held.role_id.0));
            for (group, held) in groups.iter().zip(held_by_groups) {
                if let Some(held) = held {
                    visit(Principal::Group(group), held);
                }
            }
        }
    }

    /// Adds a binding to those of each of its subjects.
    pub(crate) fn add_binding(
        &mut self,
        binding: &Binding,
        bound: BindingIds,
        bindings: &BindingSlab,
    ) {
        for (subject_idx, subject) in (0..).zip(&binding.subjects) {
            let Some((map, hash)) = self.binding_map_for_subject(subject, binding.namespace())
            else {
                continue;
            };
            let held = map.get_or_insert_with(hash, Arc::default);
            let idx = position_of_binding(held, bound, binding.name(), bindings);
            let rest = held.get(idx..).unwrap_or_default();
            let is_earlier_subject = |own: &HeldBinding| {
                let other = binding.subjects.get(own.subject_idx as usize);
                other.is_some_and(|other| other.is_same_principal(subject, binding.namespace()))
            };
            let mut own_entries = rest.iter().take_while(|own| own.binding_id == bound.binding_id);
            if own_entries.any(is_earlier_subject) {
                continue;
            }
            let BindingIds { scope_id: scope, binding_id: binding, role_id: role } = bound;
            let added =
                HeldBinding { scope_id: scope, role_id: role, binding_id: binding, subject_idx };
            let (before, after) = held.split_at(idx);
            *held = before.iter().chain([&added]).chain(after).copied().collect();
        }
    }

    /// Removes a binding from those of each of its subjects.
    pub(crate) fn remove_binding(
        &mut self,
        binding: &Binding,
        bound: BindingIds,
        bindings: &BindingSlab,
    ) {
        for subject in &binding.subjects {
            let Some((map, hash)) = self.binding_map_for_subject(subject, binding.namespace())
            else {
                continue;
            };
            let Some(held) = map.get_mut(&hash) else { continue };
            let idx = position_of_binding(held, bound, binding.name(), bindings);
            let (before, after) = held.split_at(idx);
            let n_removed =
                after.iter().take_while(|own| own.binding_id == bound.binding_id).count();
            let after = after.get(n_removed..).unwrap_or_default();
            *held = before.iter().chain(after).copied().collect();
            if held.is_empty() {
                map.remove(&hash);
            }
        }
    }

    /// The map that holds the bindings of a subject, `users` or `groups`, and the subject's key in it. `namespace`
    /// is that of the binding. `None` if the subject is not a user, a service account or a group.
    fn binding_map_for_subject(
        &mut self,
        subject: &Subject,
        namespace: Namespace<'_>,
    ) -> Option<(&mut Map<NameHash, HeldBindings>, NameHash)> {
        if let Some(user_name) = subject.user_name(namespace) {
            let hash = self.hash_name(&user_name);
            return Some((&mut self.users, hash));
        }
        let hash = self.hash_name(subject.group_name()?);
        Some((&mut self.groups, hash))
    }

    #[inline]
    fn hash_name(&self, name: &str) -> NameHash {
        #[cfg(test)]
        if self.all_names_collide {
            return 0;
        }
        self.hash_builder.hash_one(name)
    }
}

/// The position of a binding in the order of [`HeldBindings`].
fn position_of_binding(
    held: &[HeldBinding],
    bound: BindingIds,
    binding_name: &str,
    bindings: &BindingSlab,
) -> usize {
    let name_of = |held: &HeldBinding| bindings.get(held.binding_id.0).map_or("", |own| own.name());
    held.partition_point(|own| {
        match (own.scope_id, own.role_id).cmp(&(bound.scope_id, bound.role_id)) {
            Ordering::Less => true,
            Ordering::Equal => name_of(own) < binding_name,
            Ordering::Greater => false,
        }
    })
}

/// The bindings of one subject in a scope.
#[inline]
pub(crate) fn bindings_in_scope(held: &[HeldBinding], scope: ScopeId) -> &[HeldBinding] {
    let start = held.partition_point(|own| own.scope_id < scope);
    let rest = held.get(start..).unwrap_or_default();
    let end = rest.partition_point(|own| own.scope_id == scope);
    rest.get(..end).unwrap_or_default()
}

/// Splits the bindings of one subject in one scope by role.
pub(crate) fn chunk_by_role(mut held: &[HeldBinding]) -> impl Iterator<Item = &[HeldBinding]> {
    std::iter::from_fn(move || {
        let role = held.first()?.role_id;
        // Most subjects hold a role through one binding, some through very many.
        let n_equal = match held.get(1) {
            Some(second) if second.role_id == role => {
                held.partition_point(|own| own.role_id <= role)
            }
            Some(_) | None => 1,
        };
        let (equal, rest) = held.split_at(n_equal);
        held = rest;
        Some(equal)
    })
}

impl Borrow<str> for BindingNameKey {
    fn borrow(&self) -> &str {
        self.0.name()
    }
}

impl Hash for BindingNameKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.name().hash(state);
    }
}

impl PartialEq for BindingNameKey {
    fn eq(&self, other: &Self) -> bool {
        self.0.name() == other.0.name()
    }
}

impl Eq for BindingNameKey {}
