//! The chain of authorizers as an authorization webhook: kube-apiserver posts a SubjectAccessReview and gets the decision.
//!
//! Owns: the policy objects of a cluster and of files as one snapshot, the rule that an old snapshot decides nothing, the
//! order of a request, the recent decisions with their traces, and the status of the program.
//! Must not know: flags, how files are read, how an authorizer decides, how a connection is served.
//!
//! ```text
//! cluster_watches ── updates, proofs ──► PolicyCache ── swap whole ──► PolicySnapshot ┐
//! files, reload   ── objects, slots  ──►                                              ├─► request ─► review ─► RecentDecisions
//!                                        Freshness  ── fresh, or 503 ─────────────────┘
//! ```

#![deny(clippy::indexing_slicing)]

mod caller;
mod cluster_resource;
mod cluster_watches;
mod decision_id;
mod decision_path;
mod freshness;
mod policy_cache;
mod recent_decisions;
mod request;
mod request_record;
mod respond;
mod review;
mod serve;
mod webhook_metrics;

pub use cluster_resource::ClusterResource;
pub use decision_path::{DECISIONS_PATH, EXPLANATION_VERSION};
pub use freshness::NotFresh;
pub use policy_cache::{AuthorizersError, PolicyOrigin};
pub use serve::{StartError, WebhookLimits, WebhookOptions, WebhookServer};
