//! Attribute-based authorization: answers whether some line of a policy file grants a request.
//!
//! Owns: what a policy line means, the index of all lines, decisions with their explanation, the
//! listing of rules and of subjects.
//! Must not know: files, JSON, serde, the other authorizers.
//!
//! A request is answered from an index over subjects and targets: a decision makes a number of
//! look-ups that grows with the groups of the one who asks and with the depth of nested path
//! prefixes, not with the number of lines. Most look-ups read one place in memory.
//!
//! ```
//! use authz::{Attributes, Recorder, Target, User, Verdict};
//! use authz_abac::{Policies, Policy, Spec};
//!
//! let readers = Spec { group: "readers".into(), is_readonly: true, ..Spec::default() };
//! let policies = Policies::new(vec![Policy::v0(1, readers)])?;
//!
//! let ana = User { name: "ana".into(), groups: vec!["readers".into()], ..User::default() };
//! let get = Attributes { user: Some(&ana), verb: "get", target: Target::Path("/version") };
//! assert_eq!(policies.authorize(&get, Recorder::off()).verdict, Verdict::Allow);
//! let post = Attributes { verb: "post", ..get };
//! assert_eq!(policies.authorize(&post, Recorder::off()).verdict, Verdict::NoOpinion);
//! # Ok::<(), authz_abac::TooManyPolicies>(())
//! ```

mod askers;
mod decide;
mod hashes;
mod holders;
mod index;
mod near_miss;
mod policy;
mod prefixes;
mod proofs;
mod rules;
mod sieve;
mod subjects;
mod table;
mod targets;

pub use decide::{NO_POLICY_MATCHED, POLICIES_MAX, Policies, TooManyPolicies};
pub use near_miss::NEAR_MISSES_MAX;
pub use policy::{Policy, Spec};
