//! Attribute-based authorization: decides whether some line of a policy file grants a request.
//!
//! A [`Snapshot`] holds all lines, indexed by subject and target, so a decision reads the lines of the
//! user who makes the request and of the user's groups, and no others.
//!
//! Owns: the meaning of a policy line, the index of all lines, decisions and their explanation, listing
//! the rules of a user and the subjects that are granted a request.
//! Must not know: files, JSON, serde, the other authorizers.
//!
//! ```
//! use authz::{Attributes, TraceRecorder, Target, User, Verb, Verdict};
//! use authz_abac::{Policy, Snapshot, PolicySpec};
//!
//! let readers = PolicySpec { group: "readers".into(), is_readonly: true, ..PolicySpec::default() };
//! let snapshot = Snapshot::new(vec![Policy::from_v0(1, readers)])?;
//!
//! let ana = User { name: "ana".into(), groups: vec!["readers".into()], ..User::default() };
//! let get = Attributes { user: Some(&ana), verb: Verb::GET, target: Target::Path("/version") };
//! assert_eq!(snapshot.authorize(&get, TraceRecorder::disabled_recorder()).verdict, Verdict::Allow);
//! let post = Attributes { verb: Verb::new("post"), ..get };
//! assert_eq!(snapshot.authorize(&post, TraceRecorder::disabled_recorder()).verdict, Verdict::NoOpinion);
//! # Ok::<(), authz_abac::TooManyPolicies>(())
//! ```

#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

mod policy;

mod candidate_targets;
mod index;
mod snapshot;

mod decide;
mod explain;
mod rules;
mod who_can;

pub use decide::NO_POLICY_MATCHED;
pub use explain::NEAR_MISSES_MAX;
pub use policy::{Policy, PolicySpec};
pub use snapshot::{POLICIES_MAX, Snapshot, TooManyPolicies};
