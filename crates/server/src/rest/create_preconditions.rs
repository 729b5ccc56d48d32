//! The namespace and the definition that a new object belongs to, as preconditions of its transaction.
//!
//! Admission checks both, but hooks may take long, and this server may lag behind another one. So the
//! transaction that stores the object requires that each of them is still at the checked revision. If one
//! has changed, its newest version is checked, and the transaction is repeated without calling hooks again.
//! Therefore a controller that empties a namespace finds every object that was ever created in it.

use api_object::{Status, Tree};
use api_resources::ResourceOrigin;
use store::{At, Entry, ExpectedKeyState, Key, Revision, Transaction, WriteError};

use crate::admission::{AdmittedObject, check_namespace_is_usable, crd_terminating_status};
use crate::cluster_snapshot::{Namespace, NamespacePhase};
use crate::rest::RequestContext;

/// The parents of a new object, each at the revision that was checked.
#[derive(Debug, Default)]
pub(crate) struct CreatePreconditions(Vec<NamespaceOrCrdPrecondition>);

#[derive(Debug)]
struct NamespaceOrCrdPrecondition {
    kind: NamespaceOrCrdKind,
    key: Key,
    checked_revision: Revision,
}

/// The kind of a parent of a new object: its namespace, or the definition of its custom resource.
#[derive(Debug, Clone, Copy)]
enum NamespaceOrCrdKind {
    Namespace,
    Definition,
}

impl CreatePreconditions {
    /// Checks the parents of an object that is about to be stored for the first time.
    ///
    /// # Errors
    /// One of them is terminating or deleted.
    pub(crate) async fn check_namespace_and_crd(
        ctx: &RequestContext<'_>,
        admitted: &AdmittedObject,
    ) -> Result<Self, Status> {
        let cluster = ctx.server.snapshot_cache.snapshot();
        let mut parents = Vec::new();
        if let Some(namespace) = ctx.namespace.filter(|_| ctx.resource.is_namespaced()) {
            let known = cluster.namespaces.get(namespace).filter(|own| {
                own.namespace_phase == NamespacePhase::Active
                    && admitted.namespace_uid() == Some(own.uid.as_str())
            });
            let known = known.map(|own| own.mod_rev);
            let key = namespace_or_crd_key(ctx, "", "namespaces", namespace)?;
            parents.push(
                check_namespace_or_crd(ctx, NamespaceOrCrdKind::Namespace, key, known, admitted)
                    .await?,
            );
        }
        if let ResourceOrigin::Custom(routed) = &ctx.resource.resource_origin {
            let known = cluster
                .crds_by_name
                .get(routed.definition_name.as_str())
                .filter(|own| !own.is_crd_terminating && own.uid == routed.definition_uid);
            let known = known.map(|own| own.mod_rev);
            let (group, plural) = ("apiextensions.k8s.io", "customresourcedefinitions");
            let key = namespace_or_crd_key(ctx, group, plural, &routed.definition_name)?;
            parents.push(
                check_namespace_or_crd(ctx, NamespaceOrCrdKind::Definition, key, known, admitted)
                    .await?,
            );
        }
        Ok(Self(parents))
    }

    /// Adds the preconditions to a transaction.
    pub(crate) fn add_preconditions_to_transaction(&self, transaction: Transaction) -> Transaction {
        self.0.iter().fold(transaction, |transaction, parent| {
            transaction
                .add_condition(parent.key.clone(), ExpectedKeyState::At(parent.checked_revision))
        })
    }

    /// Whether a transaction failed because a parent changed.
    pub(crate) fn has_failed_precondition(&self, written: &Result<Revision, WriteError>) -> bool {
        match written {
            Err(WriteError::ConditionFailed { key, .. }) => {
                self.0.iter().any(|parent| parent.key == *key)
            }
            Ok(_) | Err(_) => false,
        }
    }

    /// Checks a parent again if the transaction failed because it changed. Returns the result of the
    /// transaction, or `None` if the transaction has to be repeated.
    ///
    /// # Errors
    /// The parent is terminating or deleted, or the deadline of the request has passed.
    pub(crate) fn recheck_changed_precondition(
        &mut self,
        ctx: &RequestContext<'_>,
        written: Result<Revision, WriteError>,
        admitted: &AdmittedObject,
    ) -> Result<Option<Result<Revision, WriteError>>, Status> {
        let Err(WriteError::ConditionFailed { key, current }) = &written else {
            return Ok(Some(written));
        };
        let Some(parent) = self.0.iter_mut().find(|parent| parent.key == *key) else {
            return Ok(Some(written));
        };
        parent.checked_revision =
            check_newest_namespace_or_crd(ctx, parent.kind, current.as_ref(), admitted)?;
        ctx.check_deadline()?;
        Ok(None)
    }
}

async fn check_namespace_or_crd(
    ctx: &RequestContext<'_>,
    kind: NamespaceOrCrdKind,
    key: Key,
    known_revision: Option<Revision>,
    admitted: &AdmittedObject,
) -> Result<NamespaceOrCrdPrecondition, Status> {
    let checked_revision = match known_revision {
        Some(revision) => revision,
        None => {
            let got = ctx.server.store.get(&key, At::Newest).await;
            let got = got.map_err(|error| ctx.store_read_error_status("create", &error))?;
            check_newest_namespace_or_crd(ctx, kind, got.entry.as_ref(), admitted)?
        }
    };
    Ok(NamespaceOrCrdPrecondition { kind, key, checked_revision })
}

/// Checks the newest version of a parent and returns its revision.
fn check_newest_namespace_or_crd(
    ctx: &RequestContext<'_>,
    kind: NamespaceOrCrdKind,
    current: Option<&Entry>,
    admitted: &AdmittedObject,
) -> Result<Revision, Status> {
    let name = api_object::name(admitted.object_tree());
    let unreadable = |why: &str| Status::internal_error(&format!("an owner cannot be read: {why}"));
    match kind {
        NamespaceOrCrdKind::Namespace => {
            let read =
                |entry: &Entry| Namespace::from_stored_namespace(&entry.value, entry.mod_rev);
            let namespace =
                current.map(read).transpose().map_err(|why| unreadable(&why.to_string()))?;
            let uid = admitted.namespace_uid();
            check_namespace_is_usable(ctx, uid, namespace.as_ref(), name)?;
        }
        NamespaceOrCrdKind::Definition => {
            let ResourceOrigin::Custom(routed) = &ctx.resource.resource_origin else {
                return Err(crd_terminating_status(ctx, name));
            };
            let read = |entry: &Entry| codec::decode_stored_object(&entry.value);
            let definition: Option<Tree> =
                current.map(read).transpose().map_err(|why| unreadable(&why.to_string()))?;
            let is_usable = |own: &Tree| {
                api_object::uid(own) == routed.definition_uid && !api_object::is_terminating(own)
            };
            if !definition.as_ref().is_some_and(is_usable) {
                return Err(crd_terminating_status(ctx, name));
            }
        }
    }
    Ok(current.map_or(Revision::ZERO, |entry| entry.mod_rev))
}

fn namespace_or_crd_key(
    ctx: &RequestContext<'_>,
    group: &str,
    plural: &str,
    name: &str,
) -> Result<Key, Status> {
    let registry = &ctx.authorization_proof.authorization_snapshot().resource_registry;
    let resource = registry.resource(group, "v1", plural);
    let text = resource
        .and_then(|own| api_resources::object_key(&ctx.server.store_key_prefix, own, None, name));
    let key = text.and_then(|text| Key::new(&text).ok());
    key.ok_or_else(|| Status::internal_error("an owner cannot be stored"))
}
