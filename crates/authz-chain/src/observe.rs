//! Who is told what each authorizer answers.

use std::time::Duration;

use authz::Verdict;

/// Is told what one authorizer of a chain answers, for the numbers that operators see.
///
/// There is one for each authorizer, so that whatever is looked up by its name is looked up once. It
/// is called on the path of every decision: it must be quick and must not block.
pub trait Observe: Send + Sync {
    /// The authorizer has answered.
    fn answered(&self, verdict: Verdict, took: Duration);
}
