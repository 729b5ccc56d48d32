//! Shared parts of the commands that answer access questions from files, without a server.
//!
//! An [`OfflineAuthorizer`] is the authorizer chain of a server with the given flags and objects.
//! Questions come from flags or as lines of JSON.

mod access_answer;
mod access_question_source;
mod authorizer_list;
mod bounded_lines;
mod callable_webhooks;
mod cluster_comparison;
mod cluster_flags;
mod cluster_state;
mod implicit_groups;
mod load_failure;
mod offline_authorizer;
mod offline_flags;
mod policy_objects;
mod read_manifests;
mod request_text;
mod resolve_names;
mod stored_rbac;
mod text_table;
mod webhook_stand_in;
mod write_yaml;

pub(crate) use access_answer::AccessAnswer;
pub(crate) use access_question_source::LoadedQuestions;
pub(crate) use cluster_flags::{ClusterConnectionFlags, ProcessEnvironment};
pub(crate) use cluster_state::NodeObjectsNeed;
pub(crate) use implicit_groups::{missing_group_hint, user_for_listed_group, user_for_listed_name};
pub(crate) use load_failure::{
    FileProblem, LoadFailure, print_remarks, replace_control_characters,
    write_cluster_disagreements,
};
pub(crate) use offline_authorizer::{OfflineAuthorizer, WebhookCallMode, shared_runtime};
pub(crate) use offline_flags::{
    AnswerFlags, PolicyFlags, PolicyListingFlags, ResourceNameFlags, SubjectFlags, TargetArgument,
    WebhookCallFlags,
};
pub(crate) use read_manifests::{ObjectSelection, read_manifests};
pub(crate) use resolve_names::NameResolver;
pub(crate) use stored_rbac::StoredRbac;
pub(crate) use text_table::TextTable;
pub(crate) use webhook_stand_in::is_webhook_not_called;
#[cfg(test)]
pub(crate) use webhook_stand_in::{AssumedAnswer, test_stand_in};
pub(crate) use write_yaml::write_yaml;
