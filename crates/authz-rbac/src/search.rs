//! The quick way to what grants a request.
//!
//! It goes by numbers: hashes for names, bits for holders, a mask for a role. Numbers may say yes
//! where names say no, never the other way round, so what it looks through is all that may grant the
//! request and perhaps more. Of that counts what names confirm. Nothing here allocates.
//!
//! Few roles speak of a request, so it begins with these and asks who holds them. If there are many,
//! or few groups, it begins with what the asker holds.

use authz::User;

use crate::decide::Outcome;
use crate::question::Question;
use crate::snapshot::Snapshot;
use crate::{by_holders, by_roles};

/// In how many groups somebody has to be for it to be quicker to begin with roles: to find those
/// takes as long as to look up a few holders.
const GROUPS_MIN: usize = 8;

/// Looks for the binding that grants what `user` asks in `namespace`; `None` if numbers mislead, and
/// then it has to be looked for by names.
pub(crate) fn search(
    snapshot: &Snapshot,
    question: &Question<'_>,
    user: &User,
    namespace: &str,
) -> Option<Outcome> {
    if user.groups.len() >= GROUPS_MIN
        && let Ok(outcome) = by_roles::search(snapshot, question, user, namespace)
    {
        return Some(outcome);
    }
    by_holders::search(snapshot, question, user, namespace)
}

#[cfg(test)]
mod tests;
