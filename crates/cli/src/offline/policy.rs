//! From flags to the chain that a server with these flags would ask.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use api::authorization::{LoadOptions, assume_regular};
use api::manifest::{Found, Object};
use api::{Source, abac, authorization, rbac};
use authz::{NonResourceRule, ResourceRule, Verdict};
use authz_chain::{Authorizer, AuthorizerName, AuthorizerType, Chain, Configuration, Member};
use authz_node::NodeRules;
use authz_rbac::{BootstrapPolicy, Extras, PolicyRule, Snapshot};
use authz_webhook::{FailurePolicy, MatchConditions};

use super::flags::{AuthorizationFlags, PolicyFlags};
use super::modes::{Plan, plan};
use super::objects::{self, read_path};
use super::show::{Trouble, Unusable};
use super::webhook::{Assumption, StandIn};

/// How the server names a webhook that flags configure.
const WEBHOOK_OF_FLAGS: &str = "default";

/// The cluster role whose rules hold for every node, whatever the objects say.
const NODE_ROLE: &str = "system:node";

/// What questions are answered from.
#[derive(Debug)]
pub(crate) struct Policy {
    pub(crate) chain: Chain,
}

impl Policy {
    /// Reads everything that the flags name.
    ///
    /// # Errors
    /// Fails if the flags contradict each other or if anything in any file is wrong, with all of
    /// it. Nothing is used in part.
    pub(crate) fn load(flags: &PolicyFlags, stdin: &mut dyn Read) -> Result<Self, Unusable> {
        if flags.objects.iter().filter(|path| *path == Path::new("-")).count() > 1 {
            let message = "`-` is given twice, but standard input can be read once".to_owned();
            return Err(Unusable::Usage(vec![message]));
        }
        let order = Order::load(&flags.authorization);
        let (order, mut troubles) = match order {
            Ok(order) => (order, Vec::new()),
            Err(Unusable::Invalid(troubles)) => (Order::default(), troubles),
            Err(usage) => return Err(usage),
        };
        let objects = match objects::read(&flags.objects, stdin) {
            Ok(objects) => objects,
            Err(more) => {
                troubles.extend(more);
                Vec::new()
            }
        };
        if !troubles.is_empty() {
            return Err(Unusable::Invalid(troubles));
        }
        let Order { links, abac } = order;
        let members = members(flags, links, abac, objects)?;
        let chain = Chain::new(members).map_err(broken)?;
        Ok(Self { chain })
    }
}

/// The authorizers in order, and what the files say that they decide from.
#[derive(Debug, Default)]
pub(crate) struct Order {
    pub(crate) links: Vec<Link>,
    /// Empty without an authorizer of type ABAC.
    pub(crate) abac: abac::Loaded,
}

impl Order {
    /// Reads the files that the flags name.
    ///
    /// # Errors
    /// Fails if the flags contradict each other or if anything in any file is wrong, with all of
    /// it.
    pub(crate) fn load(flags: &AuthorizationFlags) -> Result<Self, Unusable> {
        let plan = plan(flags).map_err(Unusable::Usage)?;
        let mut parts = Parts { flags, troubles: Vec::new() };
        let links: Vec<Link> = match plan {
            Plan::File(path) => parts.links_of_file(path),
            Plan::Modes(modes) => modes.into_iter().map(Link::of_mode).collect(),
        };
        let has_abac = links.iter().any(|link| matches!(link, Link::Abac));
        let abac = if has_abac { parts.abac() } else { None };
        match parts.troubles.is_empty() {
            true => Ok(Self { links, abac: abac.unwrap_or_default() }),
            false => Err(Unusable::Invalid(parts.troubles)),
        }
    }
}

/// One authorizer of the chain, before what it decides from is known.
#[derive(Debug)]
pub(crate) enum Link {
    Abac,
    AlwaysAllow,
    AlwaysDeny,
    Node,
    Rbac,
    Webhook { name: String, match_conditions: MatchConditions, failure_policy: FailurePolicy },
}

impl Link {
    fn of_mode(mode: AuthorizerType) -> Self {
        match mode {
            AuthorizerType::Abac => Self::Abac,
            AuthorizerType::AlwaysAllow => Self::AlwaysAllow,
            AuthorizerType::AlwaysDeny => Self::AlwaysDeny,
            AuthorizerType::Node => Self::Node,
            AuthorizerType::Rbac => Self::Rbac,
            AuthorizerType::Webhook => Self::Webhook {
                name: WEBHOOK_OF_FLAGS.to_owned(),
                match_conditions: MatchConditions::Unversioned,
                failure_policy: FailurePolicy::NoOpinion,
            },
        }
    }

    fn of_authorizer(authorizer: &Authorizer) -> Self {
        match authorizer {
            Authorizer::Webhook(webhook) => Self::Webhook {
                name: webhook.name.as_str().to_owned(),
                match_conditions: webhook.settings.match_conditions.clone(),
                failure_policy: webhook.settings.failure_policy,
            },
            Authorizer::Abac
            | Authorizer::AlwaysAllow
            | Authorizer::AlwaysDeny
            | Authorizer::Node
            | Authorizer::Rbac => Self::of_mode(authorizer.authorizer_type()),
        }
    }
}

/// What is read, and what is wrong with it.
struct Parts<'f> {
    flags: &'f AuthorizationFlags,
    troubles: Vec<Trouble>,
}

impl Parts<'_> {
    fn links_of_file(&mut self, path: &Path) -> Vec<Link> {
        match self.configuration(path) {
            Some(configuration) => {
                configuration.authorizers().iter().map(Link::of_authorizer).collect()
            }
            None => Vec::new(),
        }
    }

    /// The files that a configuration names are on the server and not here.
    fn configuration(&mut self, path: &Path) -> Option<Configuration> {
        let bytes = match authorization::read(path) {
            Ok(bytes) => bytes,
            Err(error) => {
                self.troubles.push(Trouble::Unreadable(error.to_string()));
                return None;
            }
        };
        let name = path.to_string_lossy();
        let source = Source { name: &name, bytes: &bytes };
        let options = LoadOptions { probe: &assume_regular, ..LoadOptions::default() };
        match authorization::load(&source, &options).outcome {
            Ok(configuration) => Some(configuration),
            Err(error) => {
                self.faulty(&source, error.diagnostics().to_vec());
                None
            }
        }
    }

    fn abac(&mut self) -> Option<abac::Loaded> {
        let Some(path) = &self.flags.authorization_policy_file else {
            let message = "authorizer ABAC needs --authorization-policy-file".to_owned();
            self.troubles.push(Trouble::Unreadable(message));
            return None;
        };
        let bytes = match read_path(path, abac::POLICY_FILE_BYTES_MAX) {
            Ok(bytes) => bytes,
            Err(message) => {
                self.troubles.push(Trouble::Unreadable(message));
                return None;
            }
        };
        let name = path.to_string_lossy();
        let source = Source { name: &name, bytes: &bytes };
        match abac::load(&source, &abac::LoadOptions::default()) {
            Ok(loaded) => Some(loaded),
            Err(error) => {
                self.faulty(&source, vec![*error.diagnostic]);
                None
            }
        }
    }

    fn faulty(&mut self, source: &Source<'_>, errors: Vec<api::Diagnostic>) {
        let (name, text) = (source.name.to_owned(), source.text().into_owned());
        self.troubles.push(Trouble::Faulty { name, text, errors });
    }
}

fn members(
    flags: &PolicyFlags,
    links: Vec<Link>,
    loaded: abac::Loaded,
    objects: Vec<Found>,
) -> Result<Vec<Member>, Unusable> {
    check_assumptions(&flags.assume_webhook, &links)?;
    let defaults = rbac::bootstrap_policy().map_err(broken)?;
    let mut node = authz_node::Policy {
        rules: Arc::new(node_rules(&defaults)),
        ..authz_node::Policy::default()
    };
    let mut snapshot = Snapshot::default();
    for Found { object, .. } in objects {
        match object {
            Object::Rbac(rbac::Object::Role(role)) => snapshot.put_role(role),
            Object::Rbac(rbac::Object::Binding(binding)) => snapshot.put_binding(binding),
            Object::Node(object) => node.graph.add(&object),
        }
    }
    // A server that starts with these objects adds what is missing of the defaults.
    if flags.bootstrap_policy {
        authz_rbac::bootstrap(&mut snapshot, &defaults, Extras::Keep);
    } else {
        snapshot.aggregate_roles();
    }
    let policies = Arc::new(loaded.policies);
    let (node, snapshot) = (Arc::new(node), Arc::new(snapshot));
    let member = |link: Link| match link {
        Link::Abac => Ok(Member::Abac(Arc::clone(&policies))),
        Link::AlwaysAllow => Ok(Member::AlwaysAllow),
        Link::AlwaysDeny => Ok(Member::AlwaysDeny),
        Link::Node => Ok(Member::Node(Arc::clone(&node))),
        Link::Rbac => Ok(Member::Rbac(Arc::clone(&snapshot))),
        Link::Webhook { name, match_conditions, failure_policy } => {
            let assumed = assumed(&flags.assume_webhook, &name);
            let stand_in = StandIn::new(&name, match_conditions, failure_policy, assumed);
            let name = AuthorizerName::new(&name).map_err(broken)?;
            Ok(Member::Plugin(name, Arc::new(stand_in)))
        }
    };
    links.into_iter().map(member).collect()
}

/// Nobody means to assume something about a webhook that is not there.
fn check_assumptions(assumptions: &[Assumption], links: &[Link]) -> Result<(), Unusable> {
    let webhooks: Vec<&str> = links
        .iter()
        .filter_map(|link| match link {
            Link::Webhook { name, .. } => Some(name.as_str()),
            Link::Abac | Link::AlwaysAllow | Link::AlwaysDeny | Link::Node | Link::Rbac => None,
        })
        .collect();
    let unknown: Vec<String> = assumptions
        .iter()
        .filter(|assumption| !webhooks.contains(&assumption.name.as_str()))
        .map(|Assumption { name, .. }| {
            let near = field::nearest(name, webhooks.iter().copied());
            let hint = near.map(|near| format!(", did you mean `{near}`?")).unwrap_or_default();
            format!("--assume-webhook: no webhook is called `{name}`{hint}")
        })
        .collect();
    if unknown.is_empty() { Ok(()) } else { Err(Unusable::Usage(unknown)) }
}

/// The last one counts, as for flags in general.
fn assumed(assumptions: &[Assumption], name: &str) -> Option<Verdict> {
    assumptions.iter().rev().find(|own| own.name == name).map(|own| own.verdict)
}

/// What the role of nodes grants, whatever the objects say.
pub(crate) fn node_rules(defaults: &BootstrapPolicy) -> NodeRules {
    let is_for_nodes =
        |role: &&authz_rbac::Role| role.metadata.namespace.is_empty() && role.name() == NODE_ROLE;
    let mut rules = NodeRules::default();
    let role = defaults.roles.iter().find(is_for_nodes);
    for rule in role.into_iter().flat_map(|role| &role.rules) {
        let PolicyRule { verbs, api_groups, resources, resource_names, non_resource_urls } =
            rule.clone();
        if non_resource_urls.is_empty() {
            let rule = ResourceRule { verbs, api_groups, resources, resource_names };
            rules.resource_rules.push(rule);
        } else {
            rules.non_resource_rules.push(NonResourceRule { verbs, non_resource_urls });
        }
    }
    rules
}

/// What can not happen with files that were accepted is still told and not a panic.
fn broken(error: impl std::fmt::Display) -> Unusable {
    Unusable::Invalid(vec![Trouble::Unreadable(error.to_string())])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rules_of_nodes_are_those_of_their_role() {
        let rules = node_rules(&rbac::bootstrap_policy().unwrap());
        assert!(rules.resource_rules.len() > 20);
        assert!(rules.resource_rules.iter().all(|rule| !rule.resources.is_empty()));
    }

    #[test]
    fn the_last_assumption_counts() {
        let assumptions: Vec<Assumption> =
            ["a=allow", "b=deny", "a=no-opinion"].map(|text| text.parse().unwrap()).into();
        assert_eq!(assumed(&assumptions, "a"), Some(Verdict::NoOpinion));
        assert_eq!(assumed(&assumptions, "b"), Some(Verdict::Deny));
        assert_eq!(assumed(&assumptions, "c"), None);
    }
}
