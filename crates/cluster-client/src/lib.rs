//! A client of a Kubernetes cluster: reads discovery, lists at one revision, follows resources by watch, and asks access
//! reviews.
//!
//! Owns: the paths and queries of the Kubernetes API that it uses, pages of lists, watches and the proof of their
//! freshness, errors of the API, and the programs that
//! provide credentials.
//! Must not know: flags, how authorizers decide, how connections are made, the kinds of listed objects.

#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

mod api_error;
mod client;
mod credential_program;
mod discovery;
mod exec_credential;
mod list_objects;
mod subject_access_review;
mod watch_objects;
mod watch_stream;

pub use api_error::ClusterError;
pub use client::{ClusterClient, ClusterFuture};
pub use credential_program::CredentialProgramError;
pub use discovery::{DiscoveredResource, Discovery};
pub use exec_credential::CredentialError;
pub use list_objects::{
    ListObjectsOutcome, ListRevision, ObjectConversionFn, ObjectList, list_objects,
};
pub use subject_access_review::{ReviewAnswer, post_subject_access_review};
pub use watch_objects::{
    WatchConversionFn, WatchIntervals, WatchUpdate, WatchedObject, WatchedResource, watch_objects,
};
