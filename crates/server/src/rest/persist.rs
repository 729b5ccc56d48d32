//! Writing what was admitted. The one place that changes the store for a client.

use std::time::Duration;

use api_object::{Status, Tree};
use store::{Delete, Entry, Expect, Key, Mark, Put, Revision, Store, VALUE_BYTES_MAX, WriteError};
use tokio::time::Instant;

use crate::cluster_ips::{ClusterIpChange, is_reservation_key};
use crate::cluster_snapshot::is_tracked;
use crate::gate::Admitted;
use crate::out_of_space;
use crate::rest::Call;
use crate::rest::create_preconditions::CreatePreconditions;
use crate::standing::is_configuration;

/// Why something was not written.
pub(crate) enum NotWritten {
    /// The object is not what it was when the request read it.
    Changed(Option<Entry>),
    /// Others that the object was checked against are not what they were.
    Moved,
    /// Another service has taken the address that the object was to have.
    AddressTaken,
    /// The answer. Nothing was written.
    Failed(Status),
    /// The answer. The store did not say whether it was written.
    Unknown(Status),
}

impl From<Status> for NotWritten {
    fn from(status: Status) -> Self {
        Self::Failed(status)
    }
}

impl<S: Store> Call<'_, S> {
    /// Stores an object, in the place of `stored` if it exists, and waits until decisions see it. A new
    /// object is stored only while its namespace and its definition stay; its address is taken and given
    /// up in the same revision.
    pub(crate) async fn persist(
        &mut self,
        key: Key,
        admitted: &Admitted,
        expect: Expect,
        addresses: &ClusterIpChange,
        stored: Option<&Tree>,
    ) -> Result<Revision, NotWritten> {
        let value = codec::to_stored(admitted.tree()).into();
        let is_tracked = is_tracked(&self.server.prefix, &key);
        let put = Put { key, value, expect, ttl: self.ttl(), mark: self.mark()? };
        let mut transaction = addresses.attach(put.into());
        if stored.is_some_and(|stored| is_step_of_removal(admitted.tree(), stored)) {
            transaction = transaction.for_removal();
        }
        let (operation, mut owners) = match expect {
            Expect::Absent => ("create", self.owners(admitted.tree()).await?),
            Expect::At(_) => ("update", CreatePreconditions::default()),
        };
        self.admission.write_progress.begin();
        let written = loop {
            let attempt = owners.attach(transaction.clone());
            let written = self.timed(operation, self.server.store.write(attempt)).await;
            // INVARIANT: conditions are checked in their order, and that on the mark comes first.
            self.admission.confirm_mark(written.is_ok() || owners.has_failed(&written));
            if let Some(written) = self.renew_owners(&mut owners, written, admitted.tree())? {
                break written;
            }
        };
        self.settle(written, operation, is_tracked).await
    }

    /// Deletes an object and waits until decisions see that. The address that it has in the store is free
    /// in the same revision.
    pub(crate) async fn remove(
        &mut self,
        key: &Key,
        _: &Admitted,
        stored: &Tree,
        expect: Expect,
    ) -> Result<Revision, NotWritten> {
        let delete = Delete { key: key.clone(), expect, mark: self.mark()? };
        self.admission.write_progress.begin();
        loop {
            let held = self.server.find_owned_reservation(stored).await;
            let held = held.map_err(|error| self.read_failed("delete", &error))?;
            let transaction = ClusterIpChange::release(held).attach(delete.clone().into());
            let written = self.timed("delete", self.server.store.write(transaction)).await;
            self.admission.confirm_mark(written.is_ok());
            match self.settle(written, "delete", is_tracked(&self.server.prefix, key)).await {
                Err(NotWritten::AddressTaken) => self.check_time()?,
                outcome => return outcome,
            }
        }
    }

    /// Another attempt is made only while the request has time.
    ///
    /// # Errors
    /// 504 if it has none.
    pub(crate) fn check_time(&self) -> Result<(), Status> {
        if Instant::now() < self.admission.deadline { Ok(()) } else { Err(Status::timeout()) }
    }

    /// Waits until decisions see what was written, or says why it was not.
    pub(crate) async fn settle(
        &self,
        written: Result<Revision, WriteError>,
        operation: &str,
        is_tracked: bool,
    ) -> Result<Revision, NotWritten> {
        match written {
            Ok(revision) => {
                if is_tracked {
                    self.server.snapshot_cache.wait_for(revision).await;
                }
                Ok(revision)
            }
            Err(WriteError::Conflict { current }) => Err(NotWritten::Changed(current)),
            Err(WriteError::ValueTooLarge { .. }) => Err(Status::too_large(VALUE_BYTES_MAX).into()),
            Err(WriteError::NoSpace { share }) => {
                Err(out_of_space::out_of_space_status(share.as_deref()).into())
            }
            Err(WriteError::Throttled { share, retry_after }) => {
                Err(out_of_space::throttled_status(&share, retry_after).into())
            }
            Err(WriteError::Timeout) => Err(NotWritten::Unknown(Status::timeout())),
            Err(WriteError::ConditionFailed { key, .. })
                if is_reservation_key(&self.server.prefix, &key) =>
            {
                Err(NotWritten::AddressTaken)
            }
            Err(WriteError::ConditionFailed { .. }) => Err(NotWritten::Moved),
            Err(WriteError::Unavailable(why)) => {
                self.server.log.error("the store can not be written", &[("why", &why)]);
                let resource = self.resource.group_resource();
                Err(NotWritten::Unknown(Status::server_timeout(&resource, operation)))
            }
        }
    }

    /// The mark of the configuration of admission. It moves together with what is part of it, so that
    /// all servers know that they have to look; and it stays where it was for what is only supposed to
    /// be admitted by the newest.
    fn mark(&self) -> Result<Option<Mark>, Status> {
        let key = || self.server.mark_key().map_err(|why| Status::internal(&why));
        if is_configuration(self.resource) {
            return Ok(Some(Mark::Move { key: key()?, expect: self.expected_mark }));
        }
        let Some(expect) = self.admission.supposed_mark() else { return Ok(None) };
        Ok(Some(Mark::Keep { key: key()?, expect }))
    }

    /// How long an object lives that nobody deletes.
    pub(crate) fn ttl(&self) -> Option<Duration> {
        (self.resource.kind == "Event" && !self.resource.is_custom())
            .then_some(self.server.options.event_ttl)
    }
}

/// Whether an update leads to the removal of an object: it is marked for deletion, or something that held
/// the deletion back is gone. Nobody adds a finalizer to an object that is marked, so an object has few such
/// updates.
fn is_step_of_removal(new: &Tree, stored: &Tree) -> bool {
    let n_finalizers = |tree: &Tree| {
        let own = tree.get("spec").and_then(|spec| spec.get("finalizers"));
        let own = own.and_then(serde_json::Value::as_array).map_or(0, Vec::len);
        api_object::finalizers(tree).len() + own
    };
    api_object::is_terminating(new)
        && (!api_object::is_terminating(stored) || n_finalizers(new) < n_finalizers(stored))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn few_updates_of_an_object_lead_to_its_removal() {
        let object = |is_going: bool, finalizers: &[&str], own: &[&str]| {
            let mut metadata = json!({"finalizers": finalizers});
            if is_going {
                metadata["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
            }
            match json!({"metadata": metadata, "spec": {"finalizers": own}}) {
                Value::Object(tree) => tree,
                other => panic!("no object: {other}"),
            }
        };
        let (stays, goes) = (object(false, &["a"], &[]), object(true, &["a"], &[]));
        for (new, stored, want) in [
            (&goes, &stays, true),
            (&goes, &goes, false),
            (&stays, &stays, false),
            (&object(false, &[], &[]), &stays, false),
            (&object(true, &[], &[]), &goes, true),
            (&object(true, &["a"], &["b"]), &goes, false),
            (&object(true, &["a"], &[]), &object(true, &["a"], &["kubernetes"]), true),
        ] {
            assert_eq!(is_step_of_removal(new, stored), want, "{new:?} {stored:?}");
        }
    }
}
