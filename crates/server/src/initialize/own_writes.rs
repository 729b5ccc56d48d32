//! What the server writes by itself about objects that wait for initializers. Nobody is asked, neither
//! authorizers nor hooks: the server does what was configured when the object was made (admission §0.4,
//! E3).

use std::time::Duration;

use api_object::Tree;
use store::{Delete, Entry, Expect, Key, Put, ReadError, Revision, Store, WriteError};

use crate::cluster_ips::ClusterIpChange;
use crate::server_state::ServerState;

impl<S: Store> ServerState<S> {
    /// Puts the next state of an object in the place of one that is stored.
    pub(super) async fn write_own(
        &self,
        key: &Key,
        stored: &Entry,
        next: &Tree,
        ttl: Option<Duration>,
    ) -> Result<Entry, WriteError> {
        let value = bytes::Bytes::from(codec::to_stored(next));
        let expect = Expect::At(stored.mod_rev);
        let put = Put { key: key.clone(), value: value.clone(), expect, ttl, mark: None };
        let mod_rev = self.store.put(put).await?;
        Ok(Entry { value, mod_rev, create_rev: stored.create_rev })
    }

    /// Deletes an object whatever holds it back, and frees its address.
    pub(super) async fn delete_own(
        &self,
        key: &Key,
        tree: &Tree,
        stored: Revision,
    ) -> Result<(), WriteError> {
        let held = self.find_owned_reservation(tree).await.map_err(|error| match error {
            ReadError::Unavailable(why) => WriteError::Unavailable(why),
            _ => WriteError::Timeout,
        })?;
        let delete = Delete { key: key.clone(), expect: Expect::At(stored), mark: None };
        let transaction = ClusterIpChange::release(held).attach(delete.into());
        self.store.write(transaction).await.map(drop)
    }
}
