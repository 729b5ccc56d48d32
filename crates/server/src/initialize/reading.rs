//! Reading one object that may not be initialized (admission §6.4 and §6.7).

use admission::{
    UninitializedObject, being_initialized_status, has_pending_initializers, read_repair,
};
use api_object::{Status, Tree};
use store::{Entry, Store, WriteError};

use crate::cluster_snapshot::is_tracked;
use crate::confirm::Unconfirmed;
use crate::rest::{Call, Shown};

/// What who reads an uninitialized object by its name gets to see.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum GetMode {
    /// The object.
    #[default]
    Object,
    /// That there will be one.
    Accepted,
}

/// What was read.
pub(crate) enum Read {
    /// The object.
    Object(Shown),
    /// A Status that says that there will be one.
    Accepted(Tree),
}

impl<S: Store> Call<'_, S> {
    /// One object, for a client. One that waits for somebody who should have acted long ago is repaired,
    /// one step each time.
    pub(crate) async fn read(&self) -> Result<Read, Status> {
        let includes = self.query.includes_uninitialized()?;
        let entry = self.get_entry().await?;
        let entry = self.repaired(entry).await?;
        self.show(&entry, includes)
    }

    fn show(&self, entry: &Entry, includes: bool) -> Result<Read, Status> {
        let tree = self.parse_authorized(entry)?;
        let is_shown = includes
            || self.server.get_mode == GetMode::Object
            || !self.server.initialization.is_enabled
            || !has_pending_initializers(&tree);
        if is_shown {
            return Ok(Read::Object(Shown { tree, revision: Some(entry.mod_rev) }));
        }
        let resource = self.resource.group_resource();
        let revision = entry.mod_rev.number();
        let status = being_initialized_status(&UninitializedObject {
            resource: &resource,
            tree: &tree,
            revision,
        });
        let status = serde_json::to_value(&status).ok();
        Ok(Read::Accepted(status.and_then(|own| own.as_object().cloned()).unwrap_or_default()))
    }

    /// What is stored after the repair, if one is due. Who reads gets an answer in any case.
    async fn repaired(&self, entry: Entry) -> Result<Entry, Status> {
        if !super::is_hidden(&entry.value) {
            return Ok(entry);
        }
        let key = self.key(self.name)?;
        // A task of this server looks after it.
        if self.server.snapshot_cache.object_watchers().is_followed(&key) {
            return Ok(entry);
        }
        let Ok(tree) = codec::from_stored(&entry.value) else { return Ok(entry) };
        let (options, now) = (&self.server.initialization, self.server.clock.wall_time());
        // The picture tells for most objects that nothing is due, without asking the store.
        let cluster = self.server.snapshot_cache.snapshot();
        if read_repair(options, &tree, now, Some(&cluster.hooks.snapshot)).is_none() {
            return Ok(entry);
        }
        let standing = match self.server.stand(self.admission.deadline).await {
            Ok(standing) => Some(standing),
            // A reader in a hurry does not choose what the repair is made by.
            Err(Unconfirmed::DeadlineExceeded) => return Ok(entry),
            Err(_) => None,
        };
        let snapshot = standing.as_ref().map(|standing| standing.hooks.snapshot.as_ref());
        let Some(repair) = read_repair(options, &tree, now, snapshot) else { return Ok(entry) };
        match self.server.write_own(&key, &entry, &repair.tree, self.ttl()).await {
            Ok(entry) => {
                self.server.admission_metrics.count_read_repair(&repair.initializer_name);
                if is_tracked(&self.server.prefix, &key) {
                    self.server.snapshot_cache.wait_for(entry.mod_rev).await;
                }
                Ok(entry)
            }
            // Somebody was faster; one step each time is enough.
            Err(WriteError::Conflict { current: Some(entry) }) => Ok(entry),
            Err(WriteError::Conflict { current: None }) => Err(self.not_found(self.name)),
            Err(error) => {
                self.server
                    .log
                    .warn("an object can not be repaired", &[("key", &key), ("why", &error)]);
                Ok(entry)
            }
        }
    }
}
