//! From flags to the chain that a server with these flags would ask.

use std::io::{self, Read};
use std::path::Path;
use std::sync::{Arc, OnceLock};

use authz::{Attributes, Recorder};
use authz_chain::{Authorizer, Chain, ChainDecision, Member, Webhook};
use authz_rbac::{Extras, Snapshot};
use authz_reload::AuthorizationPlan;
use manifests::abac;
use manifests::rbac;
use manifests::{ManifestObject, Object, WholeObject};
use tokio::runtime::{self, Runtime};

use super::called;
use super::flags::PolicyFlags;
use super::objects::{self, Objects, Wanted};
use super::order::{ConnectionFiles, Order};
use super::show::Unusable;
use super::webhook::{Assumed, Assumption, StandIn};
use crate::authorization::node_rules;

/// What questions are answered from.
#[derive(Debug)]
pub(crate) struct Policy {
    chain: Chain,
    /// Where webhooks are called.
    runtime: &'static Runtime,
}

/// What is done where a webhook would be asked that no flag speaks of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Webhooks {
    /// It is.
    Called,
    /// The answer stays open.
    LeftOpen,
}

impl Policy {
    /// Reads everything that the flags name.
    ///
    /// # Errors
    /// Fails if the flags contradict each other or if anything in any file is wrong, with all of
    /// it. Nothing is used in part.
    pub(crate) fn load(
        flags: &PolicyFlags,
        webhooks: Webhooks,
        stdin: &mut dyn Read,
    ) -> Result<Self, Unusable> {
        let (policy, _) = Self::load_with(flags, webhooks, stdin, Wanted::NOTHING)?;
        Ok(policy)
    }

    /// The same, and what else a command wants of the objects.
    ///
    /// # Errors
    /// Those of [`load`](Self::load).
    pub(crate) fn load_with(
        flags: &PolicyFlags,
        webhooks: Webhooks,
        stdin: &mut dyn Read,
        wanted: Wanted<'_>,
    ) -> Result<(Self, Vec<WholeObject>), Unusable> {
        if flags.objects.iter().filter(|path| *path == Path::new("-")).count() > 1 {
            let message = "`-` is given twice, but standard input can be read once".to_owned();
            return Err(Unusable::Usage(vec![message]));
        }
        let plan = flags.authorization.plan().map_err(Unusable::Usage)?;
        let directory = std::env::current_dir().map_err(Unusable::broken)?;
        // Where something stands in for one webhook, the others tell what is missing when they are
        // made.
        let files = match (webhooks, flags.webhook.as_slice()) {
            (Webhooks::Called, []) => ConnectionFiles::Needed,
            (Webhooks::Called, _) | (Webhooks::LeftOpen, _) => ConnectionFiles::Elsewhere,
        };
        let order = Order::load(&flags.authorization, &plan, files, &directory);
        let (order, mut troubles) = match order {
            Ok(order) => (order, Vec::new()),
            Err(Unusable::Invalid(troubles)) => (Order::default(), troubles),
            Err(usage) => return Err(usage),
        };
        let objects = match objects::read(&flags.objects, stdin, wanted) {
            Ok(objects) => objects,
            Err(more) => {
                troubles.extend(more);
                Objects::default()
            }
        };
        if !troubles.is_empty() {
            return Err(Unusable::Invalid(troubles));
        }
        let runtime = runtime().map_err(Unusable::broken)?;
        let guard = runtime.enter();
        let Objects { found, kept } = objects;
        let chain = chain(flags, webhooks, order, found, &plan, &directory)?;
        drop(guard);
        Ok((Self { chain, runtime }, kept))
    }

    /// The authorizers.
    pub(crate) fn chain(&self) -> &Chain {
        &self.chain
    }

    /// What the chain answers, however long that takes.
    pub(crate) fn ask(
        &self,
        attributes: &Attributes<'_>,
        recorder: Recorder<'_>,
    ) -> ChainDecision<'_> {
        self.runtime.block_on(self.chain.authorize(attributes, recorder))
    }

    /// Whether some questions are put to a webhook.
    pub(crate) fn calls_webhooks(&self) -> bool {
        self.chain.members().any(|member| matches!(member, Member::Webhook(_)))
    }

    /// Answers from this chain, for tests.
    #[cfg(test)]
    pub(crate) fn of(chain: Chain) -> Self {
        Self { chain, runtime: runtime().unwrap() }
    }
}

/// The one runtime of the process. Questions come one after the other, so one thread does. It is
/// never dropped, for that would wait for names that are still being looked up.
fn runtime() -> io::Result<&'static Runtime> {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    if let Some(runtime) = RUNTIME.get() {
        return Ok(runtime);
    }
    let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
    Ok(RUNTIME.get_or_init(|| runtime))
}

fn chain(
    flags: &PolicyFlags,
    webhooks: Webhooks,
    order: Order,
    objects: Vec<ManifestObject>,
    plan: &AuthorizationPlan,
    directory: &Path,
) -> Result<Chain, Unusable> {
    let Order { authorizers, abac } = order;
    check_assumptions(&flags.webhook, &authorizers)?;
    let is_called = |authorizer: &&Authorizer| {
        let is_webhook = matches!(authorizer, Authorizer::Webhook(_));
        let is_left_open = webhooks == Webhooks::LeftOpen;
        is_webhook && !is_left_open && assumed(&flags.webhook, authorizer.name()).is_none()
    };
    let called = authorizers.iter().filter(is_called).cloned().collect();
    let called = called::webhooks(plan, called, directory)?;
    let built_in = built_in(flags, abac, objects)?;
    let members = authorizers.iter().map(|authorizer| match authorizer {
        Authorizer::Abac => built_in.abac.clone(),
        Authorizer::AlwaysAllow => Member::AlwaysAllow,
        Authorizer::AlwaysDeny => Member::AlwaysDeny,
        Authorizer::Node => built_in.node.clone(),
        Authorizer::Rbac => built_in.rbac.clone(),
        Authorizer::Webhook(webhook) => match called.get(webhook.name.as_str()) {
            Some(webhook) => Member::Webhook(Arc::clone(webhook)),
            None => stand_in(webhook, &flags.webhook),
        },
    });
    Chain::new(members.collect()).map_err(Unusable::broken)
}

/// The built-in authorizers that decide from files.
struct BuiltIn {
    abac: Member,
    node: Member,
    rbac: Member,
}

fn built_in(
    flags: &PolicyFlags,
    loaded: abac::LoadedPolicies,
    objects: Vec<ManifestObject>,
) -> Result<BuiltIn, Unusable> {
    let defaults = rbac::bootstrap_policy().map_err(Unusable::broken)?;
    let mut node = authz_node::Snapshot {
        node_rules: Arc::new(node_rules(&defaults)),
        ..authz_node::Snapshot::default()
    };
    let mut snapshot = Snapshot::default();
    for ManifestObject { object, .. } in objects {
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
    Ok(BuiltIn {
        abac: Member::Abac(Arc::new(loaded.snapshot)),
        node: Member::Node(Arc::new(node)),
        rbac: Member::Rbac(Arc::new(snapshot)),
    })
}

fn stand_in(webhook: &Webhook, assumptions: &[Assumption]) -> Member {
    let Webhook { name, settings } = webhook;
    let assumed = assumed(assumptions, name.as_str());
    let conditions = settings.match_conditions.clone();
    let stand_in = StandIn::new(name.as_str(), conditions, settings.failure_policy, assumed);
    Member::Plugin(name.clone(), Arc::new(stand_in))
}

/// Nobody means to assume something about a webhook that is not there.
fn check_assumptions(
    assumptions: &[Assumption],
    authorizers: &[Authorizer],
) -> Result<(), Unusable> {
    let webhooks = authorizers.iter().filter(|own| matches!(own, Authorizer::Webhook(_)));
    let webhooks: Vec<&str> = webhooks.map(Authorizer::name).collect();
    let unknown: Vec<String> = assumptions
        .iter()
        .filter(|assumption| !webhooks.contains(&assumption.name.as_str()))
        .map(|Assumption { name, .. }| {
            let near = field_errors::nearest(name, webhooks.iter().copied());
            let hint = near.map(|near| format!(", did you mean `{near}`?")).unwrap_or_default();
            format!("--webhook: no webhook is called `{name}`{hint}")
        })
        .collect();
    if unknown.is_empty() { Ok(()) } else { Err(Unusable::Usage(unknown)) }
}

/// The last one counts, as for flags in general.
fn assumed(assumptions: &[Assumption], name: &str) -> Option<Assumed> {
    assumptions.iter().rev().find(|own| own.name == name).map(|own| own.answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    use authz::Verdict;

    #[test]
    fn the_last_assumption_counts() {
        let assumptions: Vec<Assumption> =
            ["a=allow", "b=deny", "a=no-opinion"].map(|text| text.parse().unwrap()).into();
        let verdict = |name| match assumed(&assumptions, name) {
            Some(Assumed::Verdict(verdict)) => Some(verdict),
            Some(Assumed::Error) | None => None,
        };
        assert_eq!(verdict("a"), Some(Verdict::NoOpinion));
        assert_eq!(verdict("b"), Some(Verdict::Deny));
        assert_eq!(verdict("c"), None);
    }
}
