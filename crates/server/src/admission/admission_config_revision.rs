//! The config revision key: one key of the store that every write of an admission configuration moves.
//!
//! A server reads this key to learn whether its configuration is current, and a transaction can require
//! that the key is unchanged.

use api_object::Status;
use store::{At, ExpectedKeyState, Key, KeyError, KeyGroupRevisionAction, ReadError, Revision};

use crate::server_state::ServerState;

/// The path of the config revision key, below the prefix of the store.
pub(crate) const CONFIG_REVISION_PATH: &str = "admission-config-revision";

/// The config revision key below a prefix without a slash at its end.
pub(crate) fn admission_config_revision_key(prefix: &str) -> Result<Key, KeyError> {
    Key::new(&format!("{prefix}/{CONFIG_REVISION_PATH}"))
}

/// Why the config revision cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AdmissionConfigRevisionError {
    #[error(transparent)]
    Key(#[from] KeyError),
    #[error(transparent)]
    Read(#[from] ReadError),
}

impl From<AdmissionConfigRevisionError> for Status {
    fn from(error: AdmissionConfigRevisionError) -> Self {
        Self::internal_error(&error.to_string())
    }
}

/// The part of the transaction of a write that concerns the config revision key.
#[derive(Debug, Clone, Copy)]
pub(super) enum AdmissionConfigCondition {
    /// The write does not depend on it.
    Independent,
    /// The write is part of the configuration: it moves the key, from the expected revision if the object
    /// was checked against the other configurations at that revision.
    Move(Option<ExpectedKeyState>),
    /// The write was admitted by an assumed configuration: it fails if the key is not at this revision.
    Unchanged(ExpectedKeyState),
}

impl AdmissionConfigCondition {
    /// The condition as a part of a transaction.
    pub(super) fn into_key_group_revision_action(
        self,
        prefix: &str,
    ) -> Result<Option<KeyGroupRevisionAction>, AdmissionConfigRevisionError> {
        let key = || admission_config_revision_key(prefix);
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
    pub(crate) async fn read_admission_config_revision(
        &self,
    ) -> Result<Revision, AdmissionConfigRevisionError> {
        let key = admission_config_revision_key(&self.store_key_prefix)?;
        let entry = self.store.get(&key, At::Newest).await?.entry;
        Ok(entry.map_or(Revision::ZERO, |entry| entry.mod_rev))
    }
}
