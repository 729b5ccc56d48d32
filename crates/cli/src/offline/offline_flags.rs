//! Flags that several commands share.

use std::io::Read;
use std::path::PathBuf;
use std::str::FromStr;

use api_resources::{ParseResourceNameError, ResourceName};

use super::cluster_flags::ClusterFlags;
use super::cluster_state::NodeObjectsNeed;
use super::load_failure::LoadFailure;
use super::offline_authorizer::{OfflineAuthorizer, WebhookCallMode};
use super::webhook_stand_in::AssumedWebhookAnswer;
use crate::authorization_settings::AuthorizationFlags;
use crate::file_arguments::{FilenameFlags, InputPath};

/// The flags that choose the policy and the objects that decide.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Policy")]
pub(crate) struct PolicyFlags {
    #[command(flatten)]
    pub(crate) authorization_flags: AuthorizationFlags,

    #[command(flatten)]
    pub(crate) filename_flags: FilenameFlags,

    /// Files and directories of manifests: roles, bindings, pods and volumes; `-` is standard input
    ///
    /// The same as -f -R, for several paths at once. Files are YAML or JSON and may contain several
    /// documents and Lists; files without Kubernetes objects are skipped. The flag takes all paths
    /// up to the next flag, so write other arguments before it or after `--`.
    #[arg(long = "objects", value_name = "PATH", num_args = 1..)]
    pub(crate) object_manifest_paths: Vec<PathBuf>,

    /// Add the default roles and bindings of Kubernetes to the objects
    #[arg(
        long,
        value_name = "BOOL",
        num_args = 0..=1,
        require_equals = true,
        default_value_t = true,
        default_missing_value = "true",
        action = clap::ArgAction::Set
    )]
    pub(crate) bootstrap_policy: bool,

    /// Assume the answer of a webhook: NAME=allow, NAME=deny, NAME=no-opinion or NAME=error
    ///
    /// The command does not call that webhook and does not read its connection settings. `error`
    /// applies its failure policy. May be repeated.
    #[arg(long = "webhook", value_name = "NAME=ANSWER")]
    pub(crate) assumed_webhook_answers: Vec<AssumedWebhookAnswer>,

    #[command(flatten)]
    pub(crate) cluster_flags: ClusterFlags,
}

impl PolicyFlags {
    /// Returns all files and directories of objects.
    pub(crate) fn object_input_paths(&self) -> Vec<InputPath<'_>> {
        self.filename_flags.input_paths(&self.object_manifest_paths).collect()
    }
}

/// How the names of resources are resolved.
#[derive(Debug, Clone, Copy, Default, clap::Args)]
pub(crate) struct ResourceNameFlags {
    /// Accept resources that are neither part of Kubernetes nor defined by the given objects
    ///
    /// A name of a resource is its plural, its singular, its kind or a short name, as for kubectl. An unknown
    /// name is an error, because policies match only plurals, so the answer would be about a request that
    /// nobody can send. With this flag the command uses an unknown name as it is written.
    #[arg(long = "allow-unknown")]
    pub(crate) allow_unknown_resources: bool,
}

/// The flags of the commands that list what a policy allows: the policy, and how names of resources are resolved.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct PolicyListingFlags {
    #[command(flatten)]
    pub(crate) resource_name_flags: ResourceNameFlags,

    #[command(flatten)]
    pub(crate) policy_flags: PolicyFlags,
}

impl PolicyListingFlags {
    /// Loads the authorizer that the listing asks. It calls no webhook, because a webhook cannot list what it allows.
    ///
    /// # Errors
    /// The same as [`OfflineAuthorizer::load_from_flags`].
    pub(crate) fn load_authorizer(
        &self,
        namespace: Option<&str>,
        stdin: &mut dyn Read,
        node_objects: NodeObjectsNeed,
    ) -> Result<OfflineAuthorizer, LoadFailure> {
        let webhooks = WebhookCallMode::Skip;
        OfflineAuthorizer::load_from_flags(
            &self.policy_flags,
            webhooks,
            namespace,
            stdin,
            node_objects,
        )
    }
}

/// Whether a command calls webhooks.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Policy")]
pub(crate) struct WebhookCallFlags {
    /// Call no webhook; a decision that needs one is unknown (exit code 4)
    ///
    /// The command still evaluates match conditions; if they exclude a request, the next authorizer
    /// decides. --webhook sets the answer of a webhook instead.
    #[arg(long)]
    pub(crate) no_webhooks: bool,
}

/// The flags of the commands that answer questions: the questions, the policy, and whether webhooks are called.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct AnswerFlags {
    #[command(flatten)]
    pub(crate) question_flags: AccessQuestionFlags,

    #[command(flatten)]
    pub(crate) policy_flags: PolicyFlags,

    #[command(flatten)]
    pub(crate) webhook_call_flags: WebhookCallFlags,
}

/// The user of the request.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct SubjectFlags {
    /// User name of the request; NAMESPACE/NAME or NAMESPACE:NAME for a service account
    ///
    /// `system:serviceaccount:NAMESPACE:NAME` is the same. Another name with a colon is a user if
    /// it begins with `system:` or if a binding names this user.
    #[arg(long = "as", value_name = "USER")]
    pub(crate) user: Option<String>,

    /// Group of the user; may be repeated
    #[arg(long = "as-group", value_name = "GROUP")]
    pub(crate) groups: Vec<String>,

    /// Use only the groups of --as-group
    ///
    /// Without this flag the command adds the groups that a server adds for the user name:
    /// system:authenticated; system:unauthenticated for system:anonymous; and for service accounts
    /// also system:serviceaccounts and system:serviceaccounts:NAMESPACE.
    #[arg(long)]
    pub(crate) no_implicit_groups: bool,
}

/// One question. Without a verb the command reads questions as JSON lines.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "One question")]
pub(crate) struct AccessQuestionFlags {
    #[command(flatten)]
    pub(crate) subject_flags: SubjectFlags,

    /// Verb of the request: get, list, watch, create, update, patch, delete, ...
    #[arg(long, conflicts_with = "arguments")]
    pub(crate) verb: Option<String>,

    /// Resource of the request: `RESOURCE[.GROUP][/SUBRESOURCE]`, such as `deploy/scale`
    #[arg(long, value_name = "RESOURCE", conflicts_with = "path", value_parser = ResourceName::parse)]
    pub(crate) resource: Option<ResourceName>,

    /// Name of the object
    #[arg(long, requires = "resource", conflicts_with = "path")]
    pub(crate) name: Option<String>,

    /// Namespace of the request, and of given objects that have none; without it the request has
    /// cluster scope
    #[arg(short, long, value_name = "NAMESPACE", conflicts_with = "path")]
    pub(crate) namespace: Option<String>,

    /// Non-resource path of the request, such as /healthz
    #[arg(long, value_name = "PATH", requires = "verb")]
    pub(crate) path: Option<String>,

    #[command(flatten)]
    pub(crate) resource_name_flags: ResourceNameFlags,
}

/// A resource, or a path if it begins with a slash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TargetArgument {
    Resource(ResourceName),
    Path(String),
}

impl FromStr for TargetArgument {
    type Err = ParseResourceNameError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.starts_with('/') {
            true => Ok(Self::Path(text.to_owned())),
            false => ResourceName::parse(text).map(Self::Resource),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slash_begins_a_path() {
        assert_eq!("/healthz".parse(), Ok(TargetArgument::Path("/healthz".to_owned())));
        assert!(matches!("pods/log".parse(), Ok(TargetArgument::Resource(_))));
    }
}
