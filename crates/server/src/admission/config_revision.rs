//! The config revision key: one key of the store that every write of an admission configuration moves.
//!
//! A server reads this key to learn whether its configuration is current, and a transaction can require
//! that the key is unchanged.

use api_object::Status;
use store::{At, Expect, Key, KeyError, KeyGroupRevisionAction, ReadError, Revision};

use crate::server_state::ServerState;

/// The path of the config revision key, below the prefix of the store.
pub(crate) const CONFIG_REVISION_PATH: &str = "admission-config-revision";

/// The config revision key below a prefix without a slash at its end.
pub(crate) fn config_revision_key(prefix: &str) -> Result<Key, KeyError> {
    Key::new(&format!("{prefix}/{CONFIG_REVISION_PATH}"))
}

/// Why the config revision cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigRevisionError {
    #[error(transparent)]
    Key(#[from] KeyError),
    #[error(transparent)]
    Read(#[from] ReadError),
}

impl From<ConfigRevisionError> for Status {
    fn from(error: ConfigRevisionError) -> Self {
        Self::internal(&error.to_string())
    }
}

/// The part of the transaction of a write that concerns the config revision key.
#[derive(Debug, Clone, Copy)]
pub(super) enum ConfigRevisionCondition {
    /// The write does not depend on it.
    Independent,
    /// The write is part of the configuration: it moves the key, from the expected revision if the object
    /// was checked against the other configurations at that revision.
    Move(Option<Expect>),
    /// The write was admitted by an assumed configuration: it fails if the key is not at this revision.
    Unchanged(Expect),
}

impl ConfigRevisionCondition {
    /// The condition as a part of a transaction.
    pub(super) fn into_shared_revision(
        self,
        prefix: &str,
    ) -> Result<Option<KeyGroupRevisionAction>, ConfigRevisionError> {
        let key = || config_revision_key(prefix);
        Ok(match self {
            Self::Independent => None,
            Self::Move(expect) => Some(KeyGroupRevisionAction::Bump { key: key()?, expect }),
            Self::Unchanged(expect) => {
                Some(KeyGroupRevisionAction::Unchanged { key: key()?, expect })
            }
        })
    }
}

impl ServerState {
    /// Reads the newest config revision: a linearizable read.
    pub(crate) async fn read_config_revision(&self) -> Result<Revision, ConfigRevisionError> {
        let key = config_revision_key(&self.prefix)?;
        let entry = self.store.get(&key, At::Newest).await?.entry;
        Ok(entry.map_or(Revision::ZERO, |entry| entry.mod_rev))
    }
}
