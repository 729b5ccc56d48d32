//! The namespace that a new object is in, and the definition of its resource: here both are its owners.
//!
//! Admission checks both, but hooks may take long, and this server may lag behind another one. So the
//! transaction that stores the object has a condition on the key of each: it happens only if that object is
//! still the version that was checked. When an owner has changed, the newest version is checked again, and
//! the write is repeated without asking hooks once more. Whoever empties an owner that ends therefore finds
//! every object that was ever created in it.

use api_object::{Status, Tree};
use api_resources::Origin;
use store::{At, Entry, Expect, Key, Revision, Store, Transaction, WriteError};

use crate::cluster_snapshot::{Namespace, NamespacePhase};
use crate::rest::Call;

/// The owners of a new object, each in the version that was checked.
#[derive(Debug, Default)]
pub(crate) struct CreatePreconditions(Vec<Owner>);

#[derive(Debug)]
struct Owner {
    kind: OwnerKind,
    key: Key,
    checked: Revision,
}

#[derive(Debug, Clone, Copy)]
enum OwnerKind {
    Namespace,
    Definition,
}

impl CreatePreconditions {
    /// Has a transaction depend on them.
    pub(crate) fn attach(&self, transaction: Transaction) -> Transaction {
        self.0.iter().fold(transaction, |transaction, owner| {
            transaction.require(owner.key.clone(), Expect::At(owner.checked))
        })
    }

    /// Whether a write was refused because one of them has changed.
    pub(crate) fn has_failed(&self, written: &Result<Revision, WriteError>) -> bool {
        match written {
            Err(WriteError::ConditionFailed { key, .. }) => {
                self.0.iter().any(|owner| owner.key == *key)
            }
            _ => false,
        }
    }
}

impl<S: Store> Call<'_, S> {
    /// The owners of an object that is about to be stored for the first time.
    ///
    /// # Errors
    /// One of them ends or is gone.
    pub(crate) async fn owners(&self, tree: &Tree) -> Result<CreatePreconditions, Status> {
        let cluster = self.server.snapshot_cache.snapshot();
        let mut owners = Vec::new();
        if let Some(namespace) = self.namespace.filter(|_| self.resource.is_namespaced()) {
            let known = cluster.namespaces.get(namespace).filter(|own| {
                own.phase == NamespacePhase::Active
                    && self.admission.namespace_uid.get() == Some(&own.uid)
            });
            let known = known.map(|own| own.mod_rev);
            let key = self.owner_key("", "namespaces", namespace)?;
            owners.push(self.owner(OwnerKind::Namespace, key, known, tree).await?);
        }
        if let Origin::Custom(begun) = &self.resource.origin {
            let known = cluster.definitions.get(&begun.definition).filter(|own| {
                !api_object::is_terminating(&own.tree)
                    && api_object::uid(&own.tree) == begun.definition_uid
            });
            let known = known.map(|own| own.mod_rev);
            let (group, plural) = ("apiextensions.k8s.io", "customresourcedefinitions");
            let key = self.owner_key(group, plural, &begun.definition)?;
            owners.push(self.owner(OwnerKind::Definition, key, known, tree).await?);
        }
        Ok(CreatePreconditions(owners))
    }

    /// The outcome of a write; `None` if it failed only because an owner has changed, which was checked
    /// again since, so that the write can be repeated.
    ///
    /// # Errors
    /// The owner ends or is gone, or the request has no more time.
    pub(crate) fn renew_owners(
        &self,
        owners: &mut CreatePreconditions,
        written: Result<Revision, WriteError>,
        tree: &Tree,
    ) -> Result<Option<Result<Revision, WriteError>>, Status> {
        let Err(WriteError::ConditionFailed { key, current }) = &written else {
            return Ok(Some(written));
        };
        let Some(owner) = owners.0.iter_mut().find(|owner| owner.key == *key) else {
            return Ok(Some(written));
        };
        owner.checked = self.check_owner(owner.kind, current.as_ref(), tree)?;
        self.check_time()?;
        Ok(None)
    }

    async fn owner(
        &self,
        kind: OwnerKind,
        key: Key,
        known: Option<Revision>,
        tree: &Tree,
    ) -> Result<Owner, Status> {
        let checked = match known {
            Some(revision) => revision,
            None => {
                let got = self.server.store.get(&key, At::Newest).await;
                let got = got.map_err(|error| self.read_failed("create", &error))?;
                self.check_owner(kind, got.entry.as_ref(), tree)?
            }
        };
        Ok(Owner { kind, key, checked })
    }

    /// Checks the newest version of an owner and returns its revision.
    fn check_owner(
        &self,
        kind: OwnerKind,
        current: Option<&Entry>,
        tree: &Tree,
    ) -> Result<Revision, Status> {
        let unreadable = |why: &str| Status::internal(&format!("an owner can not be read: {why}"));
        match kind {
            OwnerKind::Namespace => {
                let read = |entry: &Entry| Namespace::from_stored(&entry.value, entry.mod_rev);
                let facts =
                    current.map(read).transpose().map_err(|why| unreadable(&why.to_string()))?;
                self.check_namespace_facts(facts.as_ref(), tree)?;
            }
            OwnerKind::Definition => {
                let Origin::Custom(begun) = &self.resource.origin else {
                    return Err(self.undefined(tree));
                };
                let read = |entry: &Entry| codec::from_stored(&entry.value);
                let definition: Option<Tree> =
                    current.map(read).transpose().map_err(|why| unreadable(&why.to_string()))?;
                let is_the_same = |own: &Tree| {
                    api_object::uid(own) == begun.definition_uid && !api_object::is_terminating(own)
                };
                if !definition.as_ref().is_some_and(is_the_same) {
                    return Err(self.undefined(tree));
                }
            }
        }
        Ok(current.map_or(Revision::ZERO, |entry| entry.mod_rev))
    }

    fn owner_key(&self, group: &str, plural: &str, name: &str) -> Result<Key, Status> {
        let registry = &self.authorized.snapshot().registry;
        let resource = registry.resource(group, "v1", plural);
        let text =
            resource.and_then(|own| api_resources::key(&self.server.prefix, own, None, name));
        let key = text.and_then(|text| Key::new(&text).ok());
        key.ok_or_else(|| Status::internal("an owner can not be stored"))
    }
}
