//! Writes of the server itself to objects that wait for initializers. Neither authorizers nor hooks review
//! them: the server carries out the configuration that was in force when the object was created.

use std::time::Duration;

use api_object::Tree;
use store::{Delete, Entry, ExpectedKeyState, Key, Put, ReadError, Revision, WriteError};

use crate::cluster_ips::ClusterIpChange;
use crate::server_state::ServerState;

impl ServerState {
    /// Replaces a stored object by its next state.
    pub(super) async fn write_uninitialized_object(
        &self,
        key: &Key,
        stored: &Entry,
        next: &Tree,
        ttl: Option<Duration>,
    ) -> Result<Entry, WriteError> {
        let value = bytes::Bytes::from(codec::encode_stored_object(next));
        let expect = ExpectedKeyState::At(stored.mod_rev);
        let put = Put {
            key: key.clone(),
            value: value.clone(),
            expected_state: expect,
            ttl,
            key_group_revision_action: None,
        };
        let mod_rev = self.store.put(put).await?;
        Ok(Entry { value, mod_rev, create_rev: stored.create_rev })
    }

    /// Deletes an object whatever finalizers it has, and frees its cluster IP.
    pub(super) async fn delete_uninitialized_object(
        &self,
        key: &Key,
        tree: &Tree,
        stored: Revision,
    ) -> Result<(), WriteError> {
        let held = self.find_owned_ip_reservation(tree).await.map_err(|error| match error {
            ReadError::Unavailable(why) => WriteError::Unavailable(why),
            ReadError::Compacted { .. } | ReadError::Future { .. } | ReadError::Timeout => {
                WriteError::Timeout
            }
        })?;
        let delete = Delete {
            key: key.clone(),
            expected_state: ExpectedKeyState::At(stored),
            key_group_revision_action: None,
        };
        let transaction = ClusterIpChange::releasing_ip_reservation(held)
            .add_ip_reservations_to_transaction(delete.into());
        self.store.write(transaction).await.map(drop)
    }
}
