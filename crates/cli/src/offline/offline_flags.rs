//! Flags that several commands share.

use std::path::PathBuf;
use std::str::FromStr;

use super::webhook_stand_in::AssumedWebhookAnswer;
use crate::authorization_settings::AuthorizationFlags;

/// The policy and the objects that decide.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Policy")]
pub(crate) struct PolicyFlags {
    #[command(flatten)]
    pub(crate) authorization: AuthorizationFlags,

    /// Files and directories of manifests: roles, bindings, pods and volumes; `-` is standard input
    ///
    /// Files are YAML or JSON and may contain several documents and Lists. Directories are read
    /// recursively. The flag takes all paths up to the next flag, so write FILE before it or after
    /// `--`.
    #[arg(long, value_name = "PATH", num_args = 1..)]
    pub(crate) objects: Vec<PathBuf>,

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
    #[arg(long, value_name = "NAME=ANSWER")]
    pub(crate) webhook: Vec<AssumedWebhookAnswer>,
}

/// Whether a command calls webhooks.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Policy")]
pub(crate) struct WebhookCallFlags {
    /// Call no webhook; a decision that needs one is unknown (exit code 4)
    ///
    /// The command still evaluates match conditions; a request that they exclude goes to the next
    /// authorizer. --webhook sets the answer of a webhook instead.
    #[arg(long)]
    pub(crate) no_webhooks: bool,
}

/// The user of the request.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct SubjectFlags {
    /// User name of the request; `system:serviceaccount:NAMESPACE:NAME` for a service account
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

/// One question by flags. Without `--verb` the command reads questions as JSON lines.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "One question by flags")]
pub(crate) struct QuestionFlags {
    #[command(flatten)]
    pub(crate) subject: SubjectFlags,

    /// Verb of the request: get, list, watch, create, update, patch, delete, ...
    #[arg(long, conflicts_with = "files")]
    pub(crate) verb: Option<String>,

    /// Resource of the request: `RESOURCE[.GROUP][/SUBRESOURCE]`, such as `deployments.apps/scale`
    #[arg(long, value_name = "RESOURCE", conflicts_with = "path")]
    pub(crate) resource: Option<ResourceArgument>,

    /// Name of the object
    #[arg(long, requires = "resource", conflicts_with = "path")]
    pub(crate) name: Option<String>,

    /// Namespace of the object; without it the request has cluster scope
    #[arg(short, long, value_name = "NAMESPACE", conflicts_with = "path")]
    pub(crate) namespace: Option<String>,

    /// Non-resource path of the request, such as /healthz
    #[arg(long, value_name = "PATH", requires = "verb")]
    pub(crate) path: Option<String>,
}

/// A resource argument: `RESOURCE[.GROUP][/SUBRESOURCE]`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ResourceArgument {
    pub(crate) resource: String,
    pub(crate) api_group: String,
    pub(crate) subresource: String,
}

/// A resource, or a path if it begins with a slash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TargetArgument {
    Resource(ResourceArgument),
    Path(String),
}

impl FromStr for ResourceArgument {
    type Err = &'static str;

    /// Reads `resource[.group][/subresource]`. The group may contain dots, the subresource slashes.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (full, subresource) = text.split_once('/').unwrap_or((text, ""));
        let (resource, api_group) = full.split_once('.').unwrap_or((full, ""));
        if resource.is_empty() {
            return Err("a resource is RESOURCE[.GROUP][/SUBRESOURCE]");
        }
        if full.ends_with('.') || text.ends_with('/') {
            return Err("something is missing after the last `.` or `/`");
        }
        let [resource, api_group, subresource] =
            [resource, api_group, subresource].map(str::to_owned);
        Ok(Self { resource, api_group, subresource })
    }
}

impl FromStr for TargetArgument {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.starts_with('/') {
            Ok(Self::Path(text.to_owned()))
        } else {
            text.parse().map(Self::Resource)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resources_have_groups_and_subresources() {
        for (text, want) in [
            ("pods", ["pods", "", ""]),
            ("deployments.apps", ["deployments", "apps", ""]),
            ("roles.rbac.authorization.k8s.io", ["roles", "rbac.authorization.k8s.io", ""]),
            ("deployments.apps/scale", ["deployments", "apps", "scale"]),
            ("pods/log", ["pods", "", "log"]),
            ("services/proxy/a.b", ["services", "", "proxy/a.b"]),
            ("*", ["*", "", ""]),
            ("*.*/*", ["*", "*", "*"]),
        ] {
            let [resource, api_group, subresource] = want.map(str::to_owned);
            assert_eq!(text.parse(), Ok(ResourceArgument { resource, api_group, subresource }));
        }
        for text in ["", ".apps", "/log", "pods/", "deployments.", "deployments./scale"] {
            assert!(text.parse::<ResourceArgument>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_slash_begins_a_path() {
        assert_eq!("/healthz".parse(), Ok(TargetArgument::Path("/healthz".to_owned())));
        assert!(matches!("pods/log".parse(), Ok(TargetArgument::Resource(_))));
    }
}
