//! Hooks: what is called, for which requests, and what its failure means.

use std::time::Duration;

use api_object::Tree;

use crate::client::ClientConfig;
use crate::conditions::{ConditionCompiler, MatchConditions};
use crate::matching::{Dialect, LabelSelector, Rule};
use crate::members::{objects, text, texts};

/// How long a call may take if the hook does not say.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a call of a v1alpha1 hook, which can not say it, may take; and the most for any other.
const TIMEOUT_MAX: Duration = Duration::from_secs(30);

/// One hook of the engine: an ExternalAdmissionHook, a MutatingWebhook or a ValidatingWebhook.
#[derive(Debug)]
pub struct Hook {
    /// Fully qualified, and unique within its configuration if that is of today.
    pub name: String,
    /// The name of the object that holds it.
    pub configuration: String,
    /// Where it is.
    pub client: ClientConfig,
    /// A request that matches none of them is no matter of the hook.
    pub rules: Vec<Rule>,
    /// What a failed call means.
    pub failure_policy: FailurePolicy,
    /// Whether rules also speak of equivalent resources.
    pub match_policy: MatchPolicy,
    /// Which namespaces' objects.
    pub namespace_selector: LabelSelector,
    /// Which objects.
    pub object_selector: LabelSelector,
    /// Which requests, of those that match otherwise.
    pub conditions: MatchConditions,
    /// Whether a dry run may call it. `None` if the stored object, which may be older than the rule
    /// that it must, does not say.
    pub side_effects: Option<SideEffects>,
    /// The most that a call may take.
    pub timeout: Duration,
    /// The forms of review that it understands, in the order of its preference; those that are not
    /// known here are left out.
    pub review_versions: Vec<ReviewVersion>,
    /// Whether it is called again when a later one has changed the object.
    pub reinvocation_policy: ReinvocationPolicy,
}

/// What a failure means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FailurePolicy {
    /// The request goes on.
    Ignore,
    /// The request is refused.
    Fail,
}

/// Which resources a rule speaks of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MatchPolicy {
    /// Those that it names.
    Exact,
    /// Also those that stand for the same objects.
    Equivalent,
}

/// What a call changes besides its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SideEffects {
    /// Nothing.
    None,
    /// Nothing if it is told that the run is dry.
    NoneOnDryRun,
    /// Something.
    Some,
    /// Nobody knows.
    Unknown,
}

/// The form of the review that a hook is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReviewVersion {
    /// That of the proposal, for ExternalAdmissionHooks only.
    V1alpha1,
    /// `admission.k8s.io/v1beta1`
    V1beta1,
    /// `admission.k8s.io/v1`
    V1,
}

/// Whether a mutating hook is called a second time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReinvocationPolicy {
    /// Never.
    Never,
    /// When a later hook has changed the object.
    IfNeeded,
}

impl Hook {
    /// Reads a webhook of today.
    ///
    /// The entry need not be valid by the rules of today: what it leaves out has its default, and
    /// what can not be understood fails when it is needed.
    pub(crate) fn read(configuration: &str, tree: &Tree, compiler: &mut ConditionCompiler) -> Self {
        let conditions = objects(tree, "matchConditions");
        let conditions = conditions.iter().map(|condition| {
            let member = |name| text(condition, name).unwrap_or_default();
            (member("name"), member("expression"))
        });
        Self {
            name: text(tree, "name").unwrap_or_default().to_owned(),
            configuration: configuration.to_owned(),
            client: ClientConfig::read(tree),
            rules: read_rules(tree, Dialect::V1),
            failure_policy: match text(tree, "failurePolicy") {
                Some("Ignore") => FailurePolicy::Ignore,
                _ => FailurePolicy::Fail,
            },
            match_policy: match text(tree, "matchPolicy") {
                Some("Exact") => MatchPolicy::Exact,
                _ => MatchPolicy::Equivalent,
            },
            namespace_selector: LabelSelector::read(tree, "namespaceSelector"),
            object_selector: LabelSelector::read(tree, "objectSelector"),
            conditions: MatchConditions::compile(conditions, compiler),
            side_effects: match text(tree, "sideEffects") {
                None => None,
                Some("None") => Some(SideEffects::None),
                Some("NoneOnDryRun") => Some(SideEffects::NoneOnDryRun),
                Some("Some") => Some(SideEffects::Some),
                Some(_) => Some(SideEffects::Unknown),
            },
            timeout: read_timeout(tree),
            review_versions: texts(tree, "admissionReviewVersions")
                .into_iter()
                .filter_map(ReviewVersion::of_webhook)
                .collect(),
            reinvocation_policy: match text(tree, "reinvocationPolicy") {
                Some("IfNeeded") => ReinvocationPolicy::IfNeeded,
                _ => ReinvocationPolicy::Never,
            },
        }
    }

    /// Reads a hook of v1alpha1, which enters the engine as a validating one (admission §2.7).
    pub(crate) fn read_v1alpha1(configuration: &str, tree: &Tree) -> Self {
        Self {
            name: text(tree, "name").unwrap_or_default().to_owned(),
            configuration: configuration.to_owned(),
            client: ClientConfig::read_v1alpha1(tree),
            rules: read_rules(tree, Dialect::V1alpha1),
            failure_policy: FailurePolicy::read_v1alpha1(tree),
            match_policy: MatchPolicy::Exact,
            namespace_selector: LabelSelector::Requirements(Vec::new()),
            object_selector: LabelSelector::Requirements(Vec::new()),
            conditions: MatchConditions::default(),
            side_effects: Some(SideEffects::Unknown),
            timeout: TIMEOUT_MAX,
            review_versions: vec![ReviewVersion::V1alpha1],
            reinvocation_policy: ReinvocationPolicy::Never,
        }
    }
}

impl FailurePolicy {
    /// Of a v1alpha1 entry: open unless it says otherwise.
    pub(crate) fn read_v1alpha1(tree: &Tree) -> Self {
        match text(tree, "failurePolicy") {
            Some("Fail") => Self::Fail,
            _ => Self::Ignore,
        }
    }
}

impl ReviewVersion {
    /// The version that a webhook of today means by this text. The form of the proposal is not for
    /// them.
    pub(crate) fn of_webhook(name: &str) -> Option<Self> {
        match name {
            "v1" => Some(Self::V1),
            "v1beta1" => Some(Self::V1beta1),
            _ => None,
        }
    }
}

fn read_rules(tree: &Tree, dialect: Dialect) -> Vec<Rule> {
    objects(tree, "rules").into_iter().map(|rule| Rule::read(rule, dialect)).collect()
}

fn read_timeout(tree: &Tree) -> Duration {
    let seconds = tree.get("timeoutSeconds").and_then(serde_json::Value::as_u64);
    seconds.map_or(DEFAULT_TIMEOUT, Duration::from_secs).min(TIMEOUT_MAX)
}
