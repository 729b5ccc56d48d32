//! Hooks: their address, the requests that they match, and the effect of a failed call.

use std::time::Duration;

use api_object::Tree;

use crate::client_config::ClientConfig;
use crate::json_members::{read_objects, read_string, read_strings};
use crate::match_conditions::{ConditionCompiler, MatchConditions};
use crate::request_matching::{LabelSelector, Rule, RuleDialect};

/// The timeout of a call if the hook sets none.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);
/// The timeout of a `v1alpha1` hook, which cannot set one, and the upper bound for all others.
const TIMEOUT_MAX: Duration = Duration::from_secs(30);

/// A compiled hook: an ExternalAdmissionHook, a MutatingWebhook or a ValidatingWebhook.
#[derive(Debug)]
pub struct Hook {
    /// The fully qualified name. It is unique within a configuration of `v1`.
    pub name: String,
    /// The name of the configuration object that holds the hook.
    pub configuration_name: String,
    /// The address of the hook and its CA bundle.
    pub client_config: ClientConfig,
    /// The rules of the hook. It is called only for requests that match at least one of them.
    pub rules: Vec<Rule>,
    /// The effect of a failed call on the request.
    pub failure_policy: FailurePolicy,
    /// Whether rules also match equivalent resources.
    pub match_policy: MatchPolicy,
    /// Selects requests by the labels of their namespace.
    pub namespace_selector: LabelSelector,
    /// Selects requests by the labels of their objects.
    pub object_selector: LabelSelector,
    /// The conditions that select among the requests that match by rules and selectors.
    pub match_conditions: MatchConditions,
    /// Whether a dry run may call the hook. `None` if the stored object, which may predate the rule that makes the field
    /// required, does not set it.
    pub side_effects: Option<SideEffects>,
    /// The timeout of one call.
    pub call_timeout: Duration,
    /// The versions of AdmissionReview that the hook accepts, in its order of preference, without versions that this
    /// server does not know.
    pub review_versions: Vec<ReviewVersion>,
    /// Whether the hook is called again after a later hook changed the object.
    pub reinvocation_policy: ReinvocationPolicy,
}

/// The effect of a failed call on the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FailurePolicy {
    /// The request continues as if the hook had allowed it.
    Ignore,
    /// The request is refused.
    Fail,
}

/// The resources that the rules of a hook match.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MatchPolicy {
    /// The resources that a rule names.
    Exact,
    /// Also resources of other groups and versions that have the same objects.
    Equivalent,
}

/// The side effects of a call, as the configuration declares them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SideEffects {
    /// A call has no side effects.
    None,
    /// A call has no side effects if the review says `dryRun`.
    NoneOnDryRun,
    /// A call has side effects.
    Some,
    /// The side effects are not known.
    Unknown,
}

/// The version of AdmissionReview that a hook is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReviewVersion {
    /// The version of the design proposal, for ExternalAdmissionHooks only.
    V1alpha1,
    /// The version `admission.k8s.io/v1beta1` of the review.
    V1beta1,
    /// The version `admission.k8s.io/v1` of the review.
    V1,
}

/// Whether a mutating hook is called a second time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReinvocationPolicy {
    /// The hook is called once.
    Never,
    /// The hook is called again if a later hook changed the object.
    IfNeeded,
}

impl Hook {
    /// Reads a webhook of `v1`.
    ///
    /// The entry may be stored by an older version and invalid today: absent members get their defaults, and a part that
    /// cannot be used fails the requests that need it.
    pub(crate) fn read(
        configuration_name: &str,
        tree: &Tree,
        compiler: &mut ConditionCompiler,
    ) -> Self {
        let conditions = read_objects(tree, "matchConditions");
        let conditions = conditions.iter().map(|condition| {
            let member = |name| read_string(condition, name).unwrap_or_default();
            (member("name"), member("expression"))
        });
        Self {
            name: read_string(tree, "name").unwrap_or_default().to_owned(),
            configuration_name: configuration_name.to_owned(),
            client_config: ClientConfig::read(tree),
            rules: read_rules(tree, RuleDialect::V1),
            failure_policy: match read_string(tree, "failurePolicy") {
                Some("Ignore") => FailurePolicy::Ignore,
                _ => FailurePolicy::Fail,
            },
            match_policy: match read_string(tree, "matchPolicy") {
                Some("Exact") => MatchPolicy::Exact,
                _ => MatchPolicy::Equivalent,
            },
            namespace_selector: LabelSelector::read(tree, "namespaceSelector"),
            object_selector: LabelSelector::read(tree, "objectSelector"),
            match_conditions: MatchConditions::compile_conditions(conditions, compiler),
            side_effects: match read_string(tree, "sideEffects") {
                None => None,
                Some("None") => Some(SideEffects::None),
                Some("NoneOnDryRun") => Some(SideEffects::NoneOnDryRun),
                Some("Some") => Some(SideEffects::Some),
                Some(_) => Some(SideEffects::Unknown),
            },
            call_timeout: read_hook_timeout(tree),
            review_versions: read_strings(tree, "admissionReviewVersions")
                .into_iter()
                .filter_map(ReviewVersion::parse_v1_review_version)
                .collect(),
            reinvocation_policy: match read_string(tree, "reinvocationPolicy") {
                Some("IfNeeded") => ReinvocationPolicy::IfNeeded,
                _ => ReinvocationPolicy::Never,
            },
        }
    }

    /// Reads a hook of `v1alpha1`. Such a hook runs in the validating phase.
    pub(crate) fn read_v1alpha1_hook(configuration_name: &str, tree: &Tree) -> Self {
        Self {
            name: read_string(tree, "name").unwrap_or_default().to_owned(),
            configuration_name: configuration_name.to_owned(),
            client_config: ClientConfig::read_v1alpha1_client_config(tree),
            rules: read_rules(tree, RuleDialect::V1alpha1),
            failure_policy: FailurePolicy::read_v1alpha1_failure_policy(tree),
            match_policy: MatchPolicy::Exact,
            namespace_selector: LabelSelector::Requirements(Vec::new()),
            object_selector: LabelSelector::Requirements(Vec::new()),
            match_conditions: MatchConditions::default(),
            side_effects: Some(SideEffects::Unknown),
            call_timeout: TIMEOUT_MAX,
            review_versions: vec![ReviewVersion::V1alpha1],
            reinvocation_policy: ReinvocationPolicy::Never,
        }
    }
}

impl FailurePolicy {
    /// Reads the policy of a `v1alpha1` entry, whose default is `Ignore`.
    pub(crate) fn read_v1alpha1_failure_policy(tree: &Tree) -> Self {
        match read_string(tree, "failurePolicy") {
            Some("Fail") => Self::Fail,
            _ => Self::Ignore,
        }
    }
}

impl ReviewVersion {
    /// Parses a version that a webhook of `v1` lists; `v1alpha1` is not one of these.
    pub(crate) fn parse_v1_review_version(name: &str) -> Option<Self> {
        match name {
            "v1" => Some(Self::V1),
            "v1beta1" => Some(Self::V1beta1),
            _ => None,
        }
    }
}

fn read_rules(tree: &Tree, dialect: RuleDialect) -> Vec<Rule> {
    read_objects(tree, "rules").into_iter().map(|rule| Rule::read(rule, dialect)).collect()
}

fn read_hook_timeout(tree: &Tree) -> Duration {
    let seconds = tree.get("timeoutSeconds").and_then(serde_json::Value::as_u64);
    seconds.map_or(DEFAULT_TIMEOUT, Duration::from_secs).min(TIMEOUT_MAX)
}
