//! `delete` and `deletecollection`.

use std::pin::Pin;
use std::task::Poll;

use admission::Operation;
use api_object::{DeleteOptions, Status, Tree};
use api_resources::Resource;
use jiff::SignedDuration;
use serde_json::{Value, json};
use store::{At, Entry, Expect, Item, Store};

use crate::admit::{AdmissionContext, Attempt, Write};
use crate::cluster_ips::AddressChange;
use crate::gate::Admitted;
use crate::rest::persist::NotWritten;
use crate::rest::{Call, Filter, Listed, Shown};
use crate::undecodable;

/// What a deletion came to.
#[derive(Debug)]
pub(crate) enum Deleted {
    /// The object is gone.
    Gone(Shown),
    /// Something has to happen first.
    Begun(Shown),
}

impl<S: Store> Call<'_, S> {
    /// Deletes the object that was authorized, or begins to.
    pub(crate) async fn delete(&mut self, options: &DeleteOptions) -> Result<Deleted, Status> {
        let key = self.key(self.name)?;
        let mut known: Option<Option<Entry>> = None;
        self.admission.may_suppose = true;
        loop {
            let current = match known.take() {
                Some(current) => current,
                None => {
                    let got = self.timed("get", self.server.store.get(&key, At::Newest)).await;
                    got.map_err(|error| self.read_failed("delete", &error))?.entry
                }
            };
            let entry = current.ok_or_else(|| self.not_found(self.name))?;
            let outcome = self.delete_once(options, &entry).await;
            match self.conclude(outcome, Operation::Delete).await {
                Attempt::Over(result) => return result,
                Attempt::Again(current) => known = current,
            }
        }
    }

    async fn delete_once(
        &mut self,
        options: &DeleteOptions,
        entry: &Entry,
    ) -> Result<Deleted, NotWritten> {
        // Metadata of wrong types could be changed by nobody later, so that the object would never go.
        let stored = self.parse_authorized(entry).and_then(|mut tree| {
            let shaped = api_object::normalize_metadata(&mut tree);
            shaped.map_err(|error| undecodable::failure(&error.to_string()))?;
            Ok(tree)
        });
        let (old, is_placeholder) = match stored {
            Ok(old) => (old, false),
            Err(status) => {
                let (namespace, name) = (self.namespace, self.name);
                let (resource, stored) = (self.resource, &entry.value);
                (undecodable::to_delete(resource, namespace, name, stored, &status.message), true)
            }
        };
        let kind = self.group_kind();
        options.check_preconditions(&kind, self.name, &old, entry.mod_rev.number())?;
        let write = Write::delete(options, self.is_collection).at(entry.mod_rev);
        let old = self.admit_mutating(&write, old, None).await?;
        let admitted = self.admit_validating(&write, old.clone(), None).await?;
        let key = self.key(self.name)?;
        let expect = Expect::At(entry.mod_rev);
        let mut finalizers = match self.server.options.has_garbage_collector {
            true => options.finalizers(&old),
            false => api_object::finalizers(&old).into_iter().map(str::to_owned).collect(),
        };
        if is_placeholder && !options.is_dry_run {
            self.server.log.warn("an object that can not be decoded is deleted", &[("key", &key)]);
        }
        if let Some(deleted) = self.delete_gracefully(options, &admitted, entry).await? {
            return Ok(deleted);
        }
        let mut next = old.clone();
        api_resources::prepare_delete(self.resource, &mut next, &mut finalizers, self.now);
        if is_placeholder {
            // Nobody can do what has to be done first: not even to which resource a definition belongs is
            // known. Its objects go before the next one of its name is served.
            finalizers.clear();
        }
        if finalizers.is_empty() && !api_resources::blocks_removal(self.resource, &next) {
            if !options.is_dry_run {
                self.remove(&key, &admitted, &old, expect).await?;
            }
            return Ok(Deleted::Gone(Shown { tree: old, revision: Some(entry.mod_rev) }));
        }
        let now = api_object::rfc3339(self.now);
        let is_changed =
            api_object::mark_for_deletion(&mut next, &finalizers, &now) | (next != old);
        if !is_changed || options.is_dry_run {
            return Ok(Deleted::Begun(Shown { tree: next, revision: Some(entry.mod_rev) }));
        }
        let admitted = admitted.ending(next);
        let none = AddressChange::default();
        let revision = self.persist(key, &admitted, expect, &none, Some(&old)).await?;
        let shown = Shown { tree: admitted.into_tree(), revision: Some(revision) };
        Ok(Deleted::Begun(shown))
    }

    /// Gives a pod that runs on a node the time to end that it asks for. It stays until somebody
    /// deletes it without that.
    async fn delete_gracefully(
        &mut self,
        options: &DeleteOptions,
        admitted: &Admitted,
        entry: &Entry,
    ) -> Result<Option<Deleted>, NotWritten> {
        let old = admitted.tree();
        if !self.server.options.has_graceful_pods || !is_running_pod(self.resource, old) {
            return Ok(None);
        }
        let seconds = match options.grace_period_seconds {
            Some(seconds) if seconds < 0 => 1,
            Some(seconds) => seconds,
            None => own_grace_seconds(old),
        };
        if seconds == 0 {
            return Ok(None);
        }
        let former =
            api_object::integer_member(api_object::metadata(old), "deletionGracePeriodSeconds");
        if api_object::is_terminating(old) && former <= seconds {
            let shown = Shown { tree: old.clone(), revision: Some(entry.mod_rev) };
            return Ok(Some(Deleted::Begun(shown)));
        }
        let mut next = old.clone();
        let ends = self.now.checked_add(SignedDuration::from_secs(seconds)).unwrap_or(self.now);
        let metadata = api_object::metadata_mut(&mut next);
        metadata.insert("deletionTimestamp".to_owned(), api_object::rfc3339(ends).into());
        metadata.insert("deletionGracePeriodSeconds".to_owned(), seconds.into());
        let (old, admitted) = (old.clone(), admitted.ending(next));
        let revision = match options.is_dry_run {
            true => entry.mod_rev,
            false => {
                let key = self.key(self.name)?;
                let expect = Expect::At(entry.mod_rev);
                self.persist(key, &admitted, expect, &AddressChange::default(), Some(&old)).await?
            }
        };
        let shown = Shown { tree: admitted.into_tree(), revision: Some(revision) };
        Ok(Some(Deleted::Begun(shown)))
    }

    /// Deletes all objects of a page and returns them as they were listed.
    pub(crate) async fn delete_collection(
        &mut self,
        filter: &Filter,
        options: &DeleteOptions,
    ) -> Result<Listed, Status> {
        // The collection is refused as a whole while the configuration is not known.
        self.stand_firmly(Operation::Delete).await?;
        let listed = self.list(filter).await?;
        for some in listed.items.chunks(self.server.options.delete_workers.max(1)) {
            let deleting = some.iter().map(|item| Box::pin(self.delete_item(item, options)));
            let mut refused = None;
            for (result, mut admission) in all(deleting.collect()).await {
                self.admission.add_notes(admission.take_notes());
                // The answer names the newest configuration that an object was admitted by.
                self.admission.standing = admission.standing.or(self.admission.standing.take());
                match result {
                    // Somebody else has deleted it meanwhile.
                    Err(status) if status.is_from_this_server() && status.code == 404 => {}
                    Err(status) => refused = refused.or(Some(status)),
                    Ok(_) => {}
                }
            }
            if let Some(status) = refused {
                return Err(status);
            }
        }
        Ok(listed)
    }

    async fn delete_item(
        &self,
        item: &Item,
        options: &DeleteOptions,
    ) -> (Result<(), Status>, AdmissionContext) {
        let admission = self.admission.beside();
        let names = api_resources::names(&self.server.prefix, self.resource, &item.key);
        let Some((namespace, name)) = names else {
            return (Err(Status::internal("a stored key names no object")), admission);
        };
        let Some(member) = self.authorized.member(namespace, name) else {
            let why = "the object is not part of the collection that was authorized";
            return (Err(Status::internal(why)), admission);
        };
        let mut one = Call {
            server: self.server,
            authorized: &member,
            resource: self.resource,
            namespace,
            name,
            subresource: None,
            query: self.query,
            now: self.now,
            warnings: Vec::new(),
            admission,
            is_collection: true,
            expected_mark: None,
        };
        let result = one.delete(options).await.map(drop);
        (result, one.admission)
    }

    /// The answer to a deletion that leaves nothing to show.
    pub(crate) fn gone(&self, tree: &Tree) -> Tree {
        let mut details = json!({
            "name": api_object::name(tree),
            "kind": self.resource.plural,
            "uid": api_object::uid(tree),
        });
        if !self.resource.group.is_empty() {
            details["group"] = self.resource.group.as_str().into();
        }
        let status = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Success",
            "details": details,
        });
        status.as_object().cloned().unwrap_or_default()
    }
}

/// Waits for all of some futures, at one time.
async fn all<F: Future + Unpin>(mut futures: Vec<F>) -> Vec<F::Output> {
    let mut outputs: Vec<Option<F::Output>> = futures.iter().map(|_| None).collect();
    std::future::poll_fn(|cx| {
        let mut is_done = true;
        for (future, output) in futures.iter_mut().zip(&mut outputs) {
            if output.is_none() {
                match Pin::new(future).poll(cx) {
                    Poll::Ready(own) => *output = Some(own),
                    Poll::Pending => is_done = false,
                }
            }
        }
        if is_done { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    outputs.into_iter().flatten().collect()
}

/// How long a pod gets to end that does not say it.
const GRACE_SECONDS: i64 = 30;

fn is_running_pod(resource: &Resource, tree: &Tree) -> bool {
    let member = |part: &str, member: &str| {
        tree.get(part).and_then(|part| part.get(member)).and_then(Value::as_str).unwrap_or_default()
    };
    resource.group.is_empty()
        && resource.kind == "Pod"
        && !member("spec", "nodeName").is_empty()
        && !matches!(member("status", "phase"), "Succeeded" | "Failed")
}

fn own_grace_seconds(pod: &Tree) -> i64 {
    let own = pod.get("spec").and_then(|spec| spec.get("terminationGracePeriodSeconds"));
    own.and_then(Value::as_i64).unwrap_or(GRACE_SECONDS).max(0)
}
