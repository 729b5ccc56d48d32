//! Priority and fairness: which requests run now, which wait, and which are refused.
//!
//! A request is classified by the first matching [`FlowSchema`] into a priority level and a flow. Each level has its own
//! seats, so that a flood in one level leaves the seats of the others free. Within a level, the flows that wait take turns:
//! a flow that has used many seats waits longer than one that has used few.
//!
//! Borrowing of seats between levels does not exist: a level always has its nominal number of seats.
//!
//! Owns: flow schemas, priority levels, classification, seats, queues.
//! Must not know: HTTP, JSON, stores, how users are authenticated, metrics formats.

#![deny(clippy::indexing_slicing)]

pub mod bootstrap_objects;
mod classify_requests;
mod flow_controller;
mod flow_schema;
mod flow_schema_statistics;
mod priority_level;
mod priority_level_queues;
mod request_digest;
mod seat_allocation;
mod shuffle_shard;

pub use classify_requests::Classification;
pub use flow_controller::{
    FlowController, PriorityLevelUsage, RejectionReason, Seat, SuspendedSeat,
};
pub use flow_schema::{
    FlowDistinguisher, FlowSchema, NonResourceRule, PolicyRulesWithSubjects, ResourceRule, Subject,
};
pub use flow_schema_statistics::{DurationHistogram, FlowSchemaUsage};
pub use priority_level::{LimitResponse, PriorityLevel, PriorityLevelKind, QueuingOptions};
pub use request_digest::{RequestDigest, RequestTarget};
pub use shuffle_shard::{HASH_BITS_MAX, required_entropy_bits};
