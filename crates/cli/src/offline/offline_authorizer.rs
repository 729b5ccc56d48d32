//! Builds the authorizer chain of a server with the given flags and objects.

use std::collections::HashSet;
use std::io::{self, Read};
use std::path::Path;
use std::sync::{Arc, OnceLock};

use api_resources::ResourceNameTable;
use authz::{Attributes, TraceRecorder};
use authz_chain::{
    AuthorizerConfiguration, Chain, ChainDecision, ChainMember, PluginConfiguration,
    WebhookConfiguration,
};
use authz_rbac::{ReconcileExtrasPolicy, Snapshot};
use authz_reload::{AuthorizationPlan, BuildErrorCause};
use authz_webhook::{ReviewVersion, encode_review};
use cluster_client::{ClusterClient, post_subject_access_review};
use manifests::abac;
use manifests::rbac;
use manifests::{AuthorizerObject, UnstructuredObject};
use tokio::runtime::{self, Runtime};

use super::authorizer_list::{AuthorizerList, ConnectionFileRequirement};
use super::callable_webhooks;
use super::cluster_comparison::describe_difference;
use super::cluster_flags::ProcessEnvironment;
use super::cluster_state::{ClusterState, NodeObjectsNeed, decode_authorizer_object};
use super::implicit_groups::SERVICE_ACCOUNT_PREFIX;
use super::load_failure::LoadFailure;
use super::offline_flags::PolicyFlags;
use super::policy_objects::{PolicyObjects, PolicyOrigin, merge_into_cluster_objects};
use super::read_manifests::{LoadedManifests, ObjectSelection, read_manifests};
use super::request_text::describe_request;
use super::webhook_stand_in::{AssumedAnswer, AssumedWebhookAnswer, WebhookStandIn};
use crate::authorization_settings::node_rules;
use crate::exit::Exit;
use crate::program::plugin_authorizers;

/// The authorizer chain that answers questions.
#[derive(Debug)]
pub(crate) struct OfflineAuthorizer {
    authorizer_chain: Chain,
    /// Runs the webhook calls.
    tokio_runtime: &'static Runtime,
    resource_names: ResourceNameTable,
    subject_names: SubjectNames,
    /// Notes and warnings about the files, for standard error.
    input_remarks: Vec<String>,
    /// The cluster that was read; `None` for files alone.
    policy_source_cluster: Option<PolicySourceCluster>,
}

/// The cluster that the objects of the policy were read from.
#[derive(Debug)]
struct PolicySourceCluster {
    cluster_client: Arc<ClusterClient>,
    /// The namespace of questions without a namespace; `None` for all namespaces.
    namespace: Option<String>,
    is_policy_partial: bool,
    /// Whether each answer is compared with the decision of the cluster.
    verifies_answers: bool,
}

/// The users and service accounts that bindings name.
#[derive(Debug, Default)]
struct SubjectNames {
    users: HashSet<String>,
    /// The user names of the service accounts, such as `system:serviceaccount:ci:builder`.
    service_account_user_names: HashSet<String>,
}

/// How the chain treats a webhook without an assumed answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WebhookCallMode {
    /// The chain calls the webhook.
    Call,
    /// The chain does not call it; a decision that needs it is unknown.
    Skip,
}

impl OfflineAuthorizer {
    /// Reads all files that the flags name. `namespace` is that of objects that have none.
    ///
    /// # Errors
    /// Fails with all errors if the flags contradict each other or a file is invalid.
    pub(crate) fn load_from_flags(
        flags: &PolicyFlags,
        webhooks: WebhookCallMode,
        namespace: Option<&str>,
        stdin: &mut dyn Read,
        node_objects: NodeObjectsNeed,
    ) -> Result<Self, LoadFailure> {
        let selection = ObjectSelection::NONE;
        let (policy, _) = Self::load_with_selected_objects(
            flags,
            webhooks,
            namespace,
            stdin,
            selection,
            node_objects,
        )?;
        Ok(policy)
    }

    /// Like [`load_from_flags`](Self::load_from_flags), and returns the objects that the selection keeps.
    ///
    /// # Errors
    /// The same as [`load_from_flags`](Self::load_from_flags).
    pub(crate) fn load_with_selected_objects(
        flags: &PolicyFlags,
        webhooks: WebhookCallMode,
        namespace: Option<&str>,
        stdin: &mut dyn Read,
        selection: ObjectSelection<'_>,
        node_objects: NodeObjectsNeed,
    ) -> Result<(Self, Vec<UnstructuredObject>), LoadFailure> {
        let paths = flags.object_input_paths();
        if paths.iter().filter(|path| path.is_stdin()).count() > 1 {
            let message = "`-` is given twice, but standard input can be read once".to_owned();
            return Err(LoadFailure::Usage(vec![message]));
        }
        let plan = flags.authorization_flags.to_authorization_plan().map_err(LoadFailure::Usage)?;
        let directory = std::env::current_dir().map_err(LoadFailure::from_message)?;
        // With an assumed answer for one webhook, building the other webhooks reports missing files.
        let files = match (webhooks, flags.assumed_webhook_answers.as_slice()) {
            (WebhookCallMode::Call, []) => ConnectionFileRequirement::Required,
            (WebhookCallMode::Call, _) | (WebhookCallMode::Skip, _) => {
                ConnectionFileRequirement::Optional
            }
        };
        let order =
            AuthorizerList::load_from_flags(&flags.authorization_flags, &plan, files, &directory);
        let (order, mut problems) = match order {
            Ok(order) => (order, Vec::new()),
            Err(LoadFailure::Files(problems)) => (AuthorizerList::default(), problems),
            Err(usage) => return Err(usage),
        };
        let objects = match read_manifests(&paths, stdin, namespace, selection) {
            Ok(objects) => objects,
            Err(more) => {
                problems.extend(more);
                LoadedManifests::default()
            }
        };
        if !problems.is_empty() {
            return Err(LoadFailure::Files(problems));
        }
        let runtime = shared_runtime().map_err(LoadFailure::from_message)?;
        let LoadedManifests {
            authorization_objects,
            selected_objects: kept_objects,
            resource_definitions: definitions,
            mut input_remarks,
        } = objects;
        let has_files = !authorization_objects.is_empty() || !paths.is_empty();
        let environment = ProcessEnvironment::of_current_process();
        let has_policy = has_files || flags.authorization_flags.is_any_authorizer_flag_given();
        let connection = flags.cluster_flags.find_cluster_connection(has_policy, &environment)?;
        let state = connection.map(|connection| {
            let convert = &decode_authorizer_object;
            runtime.block_on(ClusterState::read(connection, namespace, node_objects, convert))
        });
        let mut decisive: Vec<AuthorizerObject> =
            authorization_objects.into_iter().map(|own| own.authorizer_object).collect();
        let (mut resource_names, cluster, origin) = match state.transpose()? {
            None => (ResourceNameTable::kubernetes_resource_names(), None, PolicyOrigin::Files),
            Some(state) => {
                let origin = match decisive.is_empty() {
                    true => PolicyOrigin::Cluster,
                    false => PolicyOrigin::ClusterAndFiles,
                };
                input_remarks.extend(state.cluster_remarks);
                if !flags.authorization_flags.is_any_authorizer_flag_given() {
                    input_remarks.push(ASSUMED_AUTHORIZERS.to_owned());
                }
                decisive = merge_into_cluster_objects(state.objects, decisive);
                let cluster = PolicySourceCluster {
                    cluster_client: state.cluster_client,
                    namespace: (!flags.cluster_flags.all_namespaces).then_some(state.namespace),
                    is_policy_partial: state.is_policy_partial,
                    verifies_answers: flags.cluster_flags.verify,
                };
                (state.resource_names, Some(cluster), origin)
            }
        };
        add_custom_resource_names(&mut resource_names, &definitions);
        let guard = runtime.enter();
        let subject_names = SubjectNames::from_bindings(&decisive);
        let policy = PolicyObjects { authorizer_objects: decisive, policy_origin: origin };
        let chain = build_chain(flags, webhooks, order, policy, &plan, &directory)?;
        drop(guard);
        let loaded = Self {
            authorizer_chain: chain,
            tokio_runtime: runtime,
            resource_names,
            subject_names,
            input_remarks,
            policy_source_cluster: cluster,
        };
        Ok((loaded, kept_objects))
    }

    /// Returns the namespace for questions without a namespace: that of the kubeconfig context, or `None` for files.
    pub(crate) fn context_namespace(&self) -> Option<&str> {
        self.policy_source_cluster.as_ref()?.namespace.as_deref()
    }

    /// Reports whether a part of the policy is missing, so that more may be allowed than the answer says.
    pub(crate) fn is_policy_partial(&self) -> bool {
        self.policy_source_cluster.as_ref().is_some_and(|cluster| cluster.is_policy_partial)
    }

    /// Returns the exit of one answer: a refusal is not certain while a part of the policy is missing.
    pub(crate) fn exit_of_answer(&self, exit: Exit) -> Exit {
        match exit {
            Exit::Findings if self.is_policy_partial() => Exit::Undecided,
            exit => exit,
        }
    }

    /// Reports whether answers are compared with the decisions of the cluster.
    pub(crate) fn verifies_answers(&self) -> bool {
        self.policy_source_cluster.as_ref().is_some_and(|cluster| cluster.verifies_answers)
    }

    /// Compares an answer with the decision of the cluster, if --verify asks for it. Returns a line for standard error if
    /// they differ, if the cluster decides with an error, or if it does not decide.
    pub(crate) fn verify_with_cluster(
        &self,
        attributes: &Attributes<'_>,
        is_allowed: bool,
    ) -> Option<String> {
        let cluster =
            self.policy_source_cluster.as_ref().filter(|cluster| cluster.verifies_answers)?;
        let review = encode_review(attributes, ReviewVersion::V1);
        let asked = post_subject_access_review(&cluster.cluster_client, review);
        let request = describe_request(attributes);
        match self.tokio_runtime.block_on(asked) {
            Ok(answer) => describe_difference(&request, is_allowed, &answer),
            Err(error) => {
                Some(format!("error: the cluster does not decide about {request}: {error}"))
            }
        }
    }

    /// Returns the names of the resources of Kubernetes and of the definitions among the objects.
    pub(crate) fn resource_names(&self) -> &ResourceNameTable {
        &self.resource_names
    }

    /// Returns notes and warnings about the files, for standard error.
    pub(crate) fn input_remarks(&self) -> &[String] {
        &self.input_remarks
    }

    /// Reports whether a binding among the objects has a user of this name.
    pub(super) fn has_user_subject(&self, name: &str) -> bool {
        self.subject_names.users.contains(name)
    }

    /// Reports whether a binding among the objects has the service account with this user name.
    pub(super) fn has_service_account_subject(&self, user_name: &str) -> bool {
        self.subject_names.service_account_user_names.contains(user_name)
    }

    /// Returns the chain, for listing rules and subjects.
    pub(crate) fn authorizer_chain(&self) -> &Chain {
        &self.authorizer_chain
    }

    /// Returns the decision of the chain and blocks until webhooks have answered.
    pub(crate) fn authorize(
        &self,
        attributes: &Attributes<'_>,
        recorder: TraceRecorder<'_>,
    ) -> ChainDecision<'_> {
        self.tokio_runtime.block_on(self.authorizer_chain.authorize(attributes, recorder))
    }

    /// Reports whether the chain calls webhooks.
    pub(crate) fn calls_webhooks(&self) -> bool {
        self.authorizer_chain
            .chain_members()
            .any(|member| matches!(member, ChainMember::Webhook(_)))
    }

    /// Wraps a chain, for tests.
    #[cfg(test)]
    pub(crate) fn from_chain(chain: Chain) -> Self {
        Self {
            authorizer_chain: chain,
            tokio_runtime: shared_runtime().unwrap(),
            resource_names: ResourceNameTable::kubernetes_resource_names(),
            subject_names: SubjectNames::default(),
            input_remarks: Vec::new(),
            policy_source_cluster: None,
        }
    }
}

impl SubjectNames {
    fn from_bindings(objects: &[AuthorizerObject]) -> Self {
        let mut names = Self::default();
        for object in objects {
            let AuthorizerObject::Rbac(rbac::RbacObject::Binding(binding)) = object else {
                continue;
            };
            for subject in &binding.subjects {
                match subject.kind.as_str() {
                    "User" => {
                        names.users.insert(subject.name.clone());
                    }
                    "ServiceAccount" => {
                        let namespace = match subject.namespace.as_str() {
                            "" => &binding.metadata.namespace,
                            _ => &subject.namespace,
                        };
                        let name = format!("{SERVICE_ACCOUNT_PREFIX}{namespace}:{}", subject.name);
                        names.service_account_user_names.insert(name);
                    }
                    _ => {}
                }
            }
        }
        names
    }
}

/// Adds the custom resources of definitions and the groups of aggregated servers to the names of Kubernetes.
fn add_custom_resource_names(names: &mut ResourceNameTable, definitions: &[UnstructuredObject]) {
    for object in definitions {
        match object.kind_name() {
            "APIService" => {
                let spec = object.value.get("spec");
                // An APIService without a service is one of kube-apiserver itself, and so are its groups.
                let is_remote =
                    spec.and_then(|spec| spec.get("service")).is_some_and(|own| !own.is_null());
                let group = spec.and_then(|spec| spec.get("group")).and_then(|own| own.as_str());
                if let Some(group) = group.filter(|_| is_remote) {
                    names.add_external_group(group);
                }
            }
            _ => names.add_custom_resource_definition(&object.value),
        }
    }
}

/// The remark about an answer for a cluster whose authorizers are not given.
const ASSUMED_AUTHORIZERS: &str = "note: the API of a cluster does not tell its authorizers; Node,RBAC is assumed, and \
                                   --authorization-config names others";

/// Returns the async runtime of the process. Questions run one after the other, so one thread is enough. The
/// runtime is never dropped, because dropping it would wait for pending name lookups.
pub(crate) fn shared_runtime() -> io::Result<&'static Runtime> {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    if let Some(runtime) = RUNTIME.get() {
        return Ok(runtime);
    }
    let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
    Ok(RUNTIME.get_or_init(|| runtime))
}

fn build_chain(
    flags: &PolicyFlags,
    webhooks: WebhookCallMode,
    order: AuthorizerList,
    policy: PolicyObjects,
    plan: &AuthorizationPlan,
    directory: &Path,
) -> Result<Chain, LoadFailure> {
    let AuthorizerList { authorizer_configurations: authorizers, abac_policies } = order;
    check_assumed_webhook_names(&flags.assumed_webhook_answers, &authorizers)?;
    let is_called = |authorizer: &&AuthorizerConfiguration| {
        let is_webhook = matches!(authorizer, AuthorizerConfiguration::Webhook(_));
        let is_skipped = webhooks == WebhookCallMode::Skip;
        is_webhook
            && !is_skipped
            && find_assumed_answer(&flags.assumed_webhook_answers, authorizer.name()).is_none()
    };
    let called = authorizers.iter().filter(is_called).cloned().collect();
    let called = callable_webhooks::build_callable_webhooks(plan, called, directory)?;
    let built_in = build_built_in_authorizers(flags, abac_policies, policy)?;
    let to_member = |authorizer: &AuthorizerConfiguration| match authorizer {
        AuthorizerConfiguration::Abac => Ok(built_in.abac_authorizer.clone()),
        AuthorizerConfiguration::AlwaysAllow => Ok(ChainMember::AlwaysAllow),
        AuthorizerConfiguration::AlwaysDeny => Ok(ChainMember::AlwaysDeny),
        AuthorizerConfiguration::Node => Ok(built_in.node_authorizer.clone()),
        AuthorizerConfiguration::Rbac => Ok(built_in.rbac_authorizer.clone()),
        AuthorizerConfiguration::Webhook(webhook) => Ok(match called.get(webhook.name.as_str()) {
            Some(webhook) => ChainMember::Webhook(Arc::clone(webhook)),
            None => build_webhook_stand_in(webhook, &flags.assumed_webhook_answers),
        }),
        AuthorizerConfiguration::Plugin(PluginConfiguration { plugin_type, name }) => {
            plugin_authorizers()
                .find_plugin(*plugin_type)
                .map(|plugin| ChainMember::Plugin(name.clone(), plugin))
                .ok_or_else(|| {
                    LoadFailure::from_message(BuildErrorCause::UnknownPlugin(*plugin_type))
                })
        }
    };
    let members: Vec<ChainMember> = authorizers.iter().map(to_member).collect::<Result<_, _>>()?;
    Chain::new(members).map_err(LoadFailure::from_message)
}

/// The built-in authorizers with their policies.
struct BuiltInAuthorizers {
    abac_authorizer: ChainMember,
    node_authorizer: ChainMember,
    rbac_authorizer: ChainMember,
}

fn build_built_in_authorizers(
    flags: &PolicyFlags,
    loaded: abac::LoadedAbacPolicies,
    policy: PolicyObjects,
) -> Result<BuiltInAuthorizers, LoadFailure> {
    let defaults = rbac::bootstrap_policy().map_err(LoadFailure::from_message)?;
    let mut node = authz_node::Snapshot {
        node_rules: Arc::new(node_rules(&defaults)),
        ..authz_node::Snapshot::default()
    };
    let mut snapshot = Snapshot::default();
    for object in policy.authorizer_objects {
        match object {
            AuthorizerObject::Rbac(rbac::RbacObject::Role(role)) => snapshot.put_role(role),
            AuthorizerObject::Rbac(rbac::RbacObject::Binding(binding)) => {
                snapshot.put_binding(binding)
            }
            AuthorizerObject::Node(object) => node.graph.add_object(&object),
        }
    }
    // A server adds missing default roles and bindings when it starts.
    match policy.policy_origin {
        PolicyOrigin::Files if flags.bootstrap_policy => {
            authz_rbac::reconcile_bootstrap_policy(
                &mut snapshot,
                &defaults,
                ReconcileExtrasPolicy::Keep,
            );
        }
        PolicyOrigin::Files | PolicyOrigin::ClusterAndFiles => {
            snapshot.aggregate_roles();
        }
        PolicyOrigin::Cluster => {}
    }
    Ok(BuiltInAuthorizers {
        abac_authorizer: ChainMember::Abac(Arc::new(loaded.abac_policy_snapshot)),
        node_authorizer: ChainMember::Node(Arc::new(node)),
        rbac_authorizer: ChainMember::Rbac(Arc::new(snapshot)),
    })
}

fn build_webhook_stand_in(
    webhook: &WebhookConfiguration,
    assumptions: &[AssumedWebhookAnswer],
) -> ChainMember {
    let WebhookConfiguration { name, webhook_settings: settings } = webhook;
    let assumed = find_assumed_answer(assumptions, name.as_str());
    let conditions = settings.match_conditions.clone();
    let stand_in = WebhookStandIn::new(name.as_str(), conditions, settings.failure_policy, assumed);
    ChainMember::Plugin(name.clone(), Arc::new(stand_in))
}

/// Rejects `--webhook` for a name that no webhook has.
fn check_assumed_webhook_names(
    assumptions: &[AssumedWebhookAnswer],
    authorizers: &[AuthorizerConfiguration],
) -> Result<(), LoadFailure> {
    let webhooks =
        authorizers.iter().filter(|own| matches!(own, AuthorizerConfiguration::Webhook(_)));
    let webhooks: Vec<&str> = webhooks.map(AuthorizerConfiguration::name).collect();
    let unknown: Vec<String> = assumptions
        .iter()
        .filter(|assumption| !webhooks.contains(&assumption.webhook_name.as_str()))
        .map(|AssumedWebhookAnswer { webhook_name: name, .. }| {
            let near = field_errors::nearest_word(name, webhooks.iter().copied());
            let hint = near.map(|near| format!(", did you mean `{near}`?")).unwrap_or_default();
            format!("--webhook: no webhook is named `{name}`{hint}")
        })
        .collect();
    if unknown.is_empty() { Ok(()) } else { Err(LoadFailure::Usage(unknown)) }
}

/// Returns the assumed answer for a webhook; the last flag wins.
fn find_assumed_answer(assumptions: &[AssumedWebhookAnswer], name: &str) -> Option<AssumedAnswer> {
    assumptions.iter().rev().find(|own| own.webhook_name == name).map(|own| own.assumed_answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    use authz::Verdict;

    #[test]
    fn the_last_assumption_counts() {
        let assumptions: Vec<AssumedWebhookAnswer> =
            ["a=allow", "b=deny", "a=no-opinion"].map(|text| text.parse().unwrap()).into();
        let verdict = |name| match find_assumed_answer(&assumptions, name) {
            Some(AssumedAnswer::Verdict(verdict)) => Some(verdict),
            Some(AssumedAnswer::Error) | None => None,
        };
        assert_eq!(verdict("a"), Some(Verdict::NoOpinion));
        assert_eq!(verdict("b"), Some(Verdict::Deny));
        assert_eq!(verdict("c"), None);
    }
}
