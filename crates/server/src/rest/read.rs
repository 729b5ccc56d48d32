//! `get`.

use api_object::Status;
use store::{At, Entry, ReadError, Revision, Store};

use crate::rest::query::parse_version;
use crate::rest::{Call, Shown};

/// How long a client that has seen a newer state is kept waiting for it.
pub(crate) const FUTURE_WAIT: std::time::Duration = std::time::Duration::from_secs(3);

impl<S: Store> Call<'_, S> {
    /// The object that was authorized.
    pub(crate) async fn get(&self) -> Result<Shown, Status> {
        let entry = self.get_entry().await?;
        Ok(Shown { tree: self.parse_authorized(&entry)?, revision: Some(entry.mod_rev) })
    }

    /// The object that was authorized, as it is stored.
    pub(crate) async fn get_entry(&self) -> Result<Entry, Status> {
        if self.query.flag("export") {
            return Err(Status::bad_request(
                "the export parameter, deprecated since v1.14, is no longer supported",
            ));
        }
        let at = match self.query.text("resourceVersion") {
            "" => At::Newest,
            text => self.not_older_than(parse_version(text)?, "get").await?,
        };
        let key = self.key(self.name)?;
        let got = self.timed("get", self.server.store.get(&key, at)).await;
        let got = got.map_err(|error| self.read_failed("get", &error))?;
        got.entry.ok_or_else(|| self.not_found(self.name))
    }

    /// Waits a little for a state that the client has seen and this server has not.
    pub(crate) async fn not_older_than(&self, number: u64, verb: &str) -> Result<At, Status> {
        let revision = Revision::new(number);
        let waiting = self.server.store.wait_for(revision);
        match tokio::time::timeout(FUTURE_WAIT, waiting).await {
            Ok(Ok(_)) => Ok(At::NotOlderThan(revision)),
            Ok(Err(error)) => Err(self.read_failed(verb, &error)),
            Err(_) => {
                let current = self.server.store.current_rev().await;
                let current = current.map_err(|error| self.read_failed(verb, &error))?;
                Err(self.read_failed(verb, &ReadError::Future { requested: revision, current }))
            }
        }
    }
}
