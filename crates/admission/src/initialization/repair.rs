//! Read repair: what becomes of objects whose server died while it waited (admission §6.7).

use std::time::Duration;

use api_object::Tree;
use jiff::Timestamp;

use super::initializers::{Initializers, without};
use super::options::InitializerOptions;
use crate::hook::FailurePolicy;
use crate::snapshot::Snapshot;

/// A repaired object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repair {
    /// The initializer that is no longer waited for.
    pub name: String,
    /// The object without it.
    pub tree: Tree,
}

/// What to store instead of an object that was read by name. `None` leaves it as it is.
///
/// `now` is the time on the wall, since the server that knew the object's own time is gone.
/// `configured` is the current configuration, `None` while it is stale.
///
/// 1. An object that is initialized or failed needs no repair.
/// 2. It must be older than any timer can be; one from the future counts as new.
/// 3. Only the first entry goes, and only if it may be skipped or nobody knows it.
#[must_use]
pub fn repair(
    options: &InitializerOptions,
    tree: &Tree,
    now: Timestamp,
    configured: Option<&Snapshot>,
) -> Option<Repair> {
    let snapshot = configured.filter(|_| options.is_enabled)?;
    let initializers = Initializers::of(tree);
    let head = initializers.pending.first().filter(|_| initializers.result.is_none())?;
    let patience = options.global_timeout.saturating_add(options.clock_drift);
    if age(tree, now)? < patience {
        return None;
    }
    match snapshot.initializer(&head.name).map(|found| found.failure_policy) {
        Some(FailurePolicy::Fail) => None,
        Some(FailurePolicy::Ignore) | None => {
            Some(Repair { name: head.name.clone(), tree: without(tree, &head.name)? })
        }
    }
}

/// How old an object is; `None` if it does not say.
fn age(tree: &Tree, now: Timestamp) -> Option<Duration> {
    let created = api_object::string_member(api_object::metadata(tree), "creationTimestamp");
    let age = now.duration_since(created.parse().ok()?);
    Some(Duration::try_from(age).unwrap_or_default())
}
