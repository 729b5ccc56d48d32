//! Read repair: removes an expired initializer from an object whose server died while it waited.

use std::time::Duration;

use api_object::Tree;
use jiff::Timestamp;

use super::initializer_options::InitializerOptions;
use super::initializers_field::{Initializers, without_initializer};
use crate::hook::FailurePolicy;
use crate::snapshot::Snapshot;

/// An object from which read repair removed an initializer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadRepair {
    /// The name of the initializer that was removed.
    pub initializer_name: String,
    /// The object without that initializer.
    pub repaired_object: Tree,
}

/// Repairs an object that a client reads by name. `None` if it needs no repair.
///
/// `now` is the wall-clock time, since the server that ran the timers of the object is gone. `configured` is the current
/// configuration, `None` while it is stale.
///
/// 1. An object without pending initializers, or whose initialization failed, needs no repair.
/// 2. The object must be older than any timer can run; a creation time in the future counts as new.
/// 3. Only the first entry is removed, and only if its failure policy is `Ignore` or no configuration registers it.
#[must_use]
pub fn repair_on_read(
    options: &InitializerOptions,
    tree: &Tree,
    now: Timestamp,
    configured: Option<&Snapshot>,
) -> Option<ReadRepair> {
    let snapshot = configured.filter(|_| options.are_initializers_enabled)?;
    let initializers = Initializers::from_object(tree);
    let head = initializers
        .pending_initializers
        .first()
        .filter(|_| initializers.failure_written_by_initializer.is_none())?;
    let age_min = options.initialization_timeout.saturating_add(options.clock_drift_max);
    if object_age(tree, now)? < age_min {
        return None;
    }
    match snapshot.find_initializer(&head.name).map(|found| found.failure_policy) {
        Some(FailurePolicy::Fail) => None,
        Some(FailurePolicy::Ignore) | None => {
            let tree = without_initializer(tree, &head.name)?;
            Some(ReadRepair { initializer_name: head.name.clone(), repaired_object: tree })
        }
    }
}

/// The age of an object; `None` if it has no valid creation time.
fn object_age(tree: &Tree, now: Timestamp) -> Option<Duration> {
    let created = api_object::string_member(api_object::metadata(tree), "creationTimestamp");
    let age = now.duration_since(created.parse().ok()?);
    Some(Duration::try_from(age).unwrap_or_default())
}
