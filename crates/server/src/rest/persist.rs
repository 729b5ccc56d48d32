//! Writing what was admitted. The one place that changes the store for a client.

use std::time::Duration;

use object::Status;
use store::{Delete, Entry, Expect, Key, Mark, Put, Revision, Store, VALUE_BYTES_MAX, WriteError};

use crate::gate::Admitted;
use crate::rest::Call;
use crate::standing::is_configuration;
use crate::store_status;
use crate::view::is_tracked;

/// Why something was not written.
pub(crate) enum NotWritten {
    /// The object is not what it was when the request read it.
    Changed(Option<Entry>),
    /// Others that the object was checked against are not what they were.
    Moved,
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
    /// Stores an object and waits until decisions see it.
    pub(crate) async fn persist(
        &mut self,
        key: Key,
        admitted: &Admitted,
        expect: Expect,
    ) -> Result<Revision, NotWritten> {
        let value = wire::to_stored(admitted.tree()).into();
        let is_tracked = is_tracked(&self.host.prefix, &key);
        let put = Put { key, value, expect, ttl: self.ttl(), mark: self.mark()? };
        let operation = if expect == Expect::Absent { "create" } else { "update" };
        let written = self.timed(operation, self.host.store.put(put)).await;
        self.entrance.has_written(written.is_ok());
        self.settle(written, operation, is_tracked).await
    }

    /// Deletes an object and waits until decisions see that.
    pub(crate) async fn remove(
        &mut self,
        key: &Key,
        _: &Admitted,
        expect: Expect,
    ) -> Result<Revision, NotWritten> {
        let delete = Delete { key: key.clone(), expect, mark: self.mark()? };
        let written = self.timed("delete", self.host.store.delete(delete)).await;
        self.entrance.has_written(written.is_ok());
        self.settle(written, "delete", is_tracked(&self.host.prefix, key)).await
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
                    self.host.follower.wait_for(revision).await;
                }
                Ok(revision)
            }
            Err(WriteError::Conflict { current }) => Err(NotWritten::Changed(current)),
            Err(WriteError::ValueTooLarge { .. }) => Err(Status::too_large(VALUE_BYTES_MAX).into()),
            Err(WriteError::NoSpace { share }) => {
                Err(store_status::no_space(share.as_deref()).into())
            }
            Err(WriteError::Throttled { share, retry_after }) => {
                Err(store_status::throttled(&share, retry_after).into())
            }
            Err(WriteError::Timeout) => Err(NotWritten::Unknown(Status::timeout())),
            Err(WriteError::MarkMoved { .. }) => Err(NotWritten::Moved),
            Err(WriteError::Unavailable(why)) => {
                self.host.log.error("the store can not be written", &[("why", &why)]);
                let resource = self.resource.group_resource();
                Err(NotWritten::Unknown(Status::server_timeout(&resource, operation)))
            }
        }
    }

    /// The mark of the configuration of admission. It moves together with what is part of it, so that
    /// all servers know that they have to look; and it stays where it was for what is only supposed to
    /// be admitted by the newest.
    fn mark(&self) -> Result<Option<Mark>, Status> {
        let key = || self.host.mark_key().map_err(|why| Status::internal(&why));
        if is_configuration(self.resource) {
            return Ok(Some(Mark::Move { key: key()?, expect: self.expected_mark }));
        }
        let Some(expect) = self.entrance.supposed_mark() else { return Ok(None) };
        Ok(Some(Mark::Keep { key: key()?, expect }))
    }

    /// How long an object lives that nobody deletes.
    pub(crate) fn ttl(&self) -> Option<Duration> {
        (self.resource.kind == "Event" && !self.resource.is_custom())
            .then_some(self.host.options.event_ttl)
    }
}
