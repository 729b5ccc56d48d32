//! `admission-dispatch`: one request passes admission webhooks that are called over the network.
//!
//! Each webhook is a separate service that answers over TLS as the vector says.

mod fake_webhooks;

use std::sync::Arc;
use std::time::Duration;

use admission::{
    Attributes, Configuration, ConfigurationKind, EquivalentResource, GroupVersionKind,
    GroupVersionResource, Operation, Snapshot,
};
use admission_hooks::{
    HookConnections, HookEnvironment, HookRefusal, HookRequest, HookSession, NoObserver, Phase,
    SessionReport, UntypedConverter,
};
use api_object::Tree;
use authz::{Authorizer, Decision, DecisionFuture as Decided, TraceRecorder};
use serde_json::{Map, Value, json};
use server::IntoStatus;

use self::fake_webhooks::FakeWebhooks;
use super::AnswerPair;
use super::recorded_attributes::parse_user;
use crate::vectors::{UnusableVector, Vector};

/// The time limit of a request; the recorded requests had none.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(34);

pub(super) fn answer_vector(vector: &Vector) -> Result<AnswerPair, UnusableVector> {
    let webhooks = FakeWebhooks::start(vector)?;
    let mut configurations = Vec::new();
    for object in vector.list("configurations")? {
        configurations.push(Arc::new(parse_configuration(&webhooks.with_trust(object)?)?));
    }
    let snapshot = Snapshot::new(&configurations);
    let services = Some(webhooks.addresses() as Arc<dyn admission_hooks::ClusterServices>);
    let environment =
        Arc::new(HookEnvironment { cluster_services: services, ..HookEnvironment::default() });
    let connections = HookConnections::new(&snapshot, &environment, &HookConnections::default());

    let request = vector.member("request")?;
    let text = |member: &str| request[member].as_str().unwrap_or_default();
    let user = parse_user(&request["user"])?;
    let options = options(request);
    let equivalents: Vec<EquivalentResource<'_>> =
        vector.body.get("equivalentResources").map_or_else(Vec::new, |list| {
            list.as_array().into_iter().flatten().map(equivalent).collect()
        });
    let attributes = Attributes {
        operation: parse_operation(text("operation"))?,
        kind: kind_of(request),
        resource: resource_of(request),
        subresource: text("subresource"),
        name: text("name"),
        namespace: text("namespace"),
        object: request["object"].as_object(),
        old_object: request["oldObject"].as_object(),
        options: options.as_ref(),
        is_dry_run: is_dry_run(request),
        user: user.as_ref(),
        equivalent_resources: &equivalents,
    };
    let matched_hooks = snapshot.match_hooks(&attributes);
    let request = HookRequest {
        attributes,
        matched_hooks: &matched_hooks,
        hook_connections: &connections,
        namespace: find_namespace(vector, text("namespace")),
        authorizer: Some(&DenyAll),
        object_converter: &UntypedConverter,
        hook_observer: &NoObserver,
        long_computation_flag: None,
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let (result, report) = runtime.map_err(UnusableVector::new)?.block_on(async {
        let mut session = HookSession::new(tokio::time::Instant::now() + REQUEST_TIMEOUT);
        (run_phases(&mut session, &request).await, session.into_report())
    });
    let want = vector.member("expect")?.clone();
    Ok(AnswerPair {
        want,
        got: session_to_json(result, report, webhooks.calls()),
        warnings: Vec::new(),
    })
}

/// The authorizer of match conditions in the recording.
struct DenyAll;

impl Authorizer for DenyAll {
    fn authorize<'a>(&'a self, _: &'a authz::Attributes<'a>, _: TraceRecorder<'a>) -> Decided<'a> {
        Box::pin(async { Decision::deny("") })
    }
}

/// Kubernetes and Go write every text, so all of it must agree.
pub(super) fn exact_length(text: &str) -> usize {
    text.len()
}

/// Runs the mutating and the validating phase of a session.
async fn run_phases(
    session: &mut HookSession,
    request: &HookRequest<'_>,
) -> Result<Option<Tree>, (Phase, HookRefusal)> {
    let mutating = |refusal| (Phase::Mutating, refusal);
    let object = request.attributes.object.cloned();
    let mut object = session.call_mutating_hooks(request, object).await.map_err(mutating)?;
    if session.needs_another_round() {
        object = session.call_mutating_hooks(request, object).await.map_err(mutating)?;
    }
    let attributes = Attributes { object: object.as_ref(), ..request.attributes };
    let validated = session.validate(&HookRequest { attributes, ..*request }).await;
    validated.map_err(|refusal| (Phase::Validating, refusal))?;
    Ok(object)
}

/// The result of both phases, in the form of the recorded one.
fn session_to_json(
    result: Result<Option<Tree>, (Phase, HookRefusal)>,
    report: SessionReport,
    calls: Value,
) -> Value {
    let mut shown = match result {
        Ok(object) => json!({ "allowed": true, "object": object }),
        Err((phase, refusal)) => {
            let phase = match phase {
                Phase::Mutating => "mutating",
                Phase::Validating => "validating",
            };
            let status = refusal.into_status();
            // A hook may choose a code that HTTP does not have.
            let code = status.webhook_status.map_or(i32::from(status.code), |foreign| foreign.code);
            json!({
                "allowed": false, "phase": phase, "code": code, "reason": status.reason,
                "message": fake_webhooks::with_host(&status.message),
            })
        }
    };
    let SessionReport { mut warnings, annotations, .. } = report;
    warnings.sort();
    // Kubernetes does not have the annotations of Portcullis.
    let is_own =
        |key: &str| key.split('/').next().is_some_and(|own| own.ends_with("portcullis.io"));
    let annotations = annotations.into_iter().filter(|it| !is_own(&it.key));
    let annotations = annotations.map(|it| (it.key, Value::from(it.value)));
    shown["warnings"] = warnings.into();
    shown["auditAnnotations"] = Value::Object(annotations.collect());
    shown["calls"] = calls;
    shown
}

fn parse_configuration(object: &Tree) -> Result<Configuration, UnusableVector> {
    let member = |name: &str| object.get(name).and_then(Value::as_str).unwrap_or_default();
    let kind = ConfigurationKind::from_type_meta(member("apiVersion"), member("kind"));
    let kind = kind
        .ok_or_else(|| UnusableVector::new(format!("`{}` configures nothing", member("kind"))))?;
    Ok(Configuration::compile_configuration(kind, object))
}

fn parse_operation(name: &str) -> Result<Operation, UnusableVector> {
    let found = Operation::ALL.into_iter().find(|operation| operation.name() == name);
    found.ok_or_else(|| UnusableVector::new(format!("`{name}` is no operation")))
}

fn kind_of(value: &Value) -> GroupVersionKind<'_> {
    let text = |member: &str| value[member].as_str().unwrap_or_default();
    GroupVersionKind { group: text("group"), version: text("version"), kind: text("kind") }
}

fn resource_of(value: &Value) -> GroupVersionResource<'_> {
    let text = |member: &str| value[member].as_str().unwrap_or_default();
    let (group, version, resource) = (text("group"), text("version"), text("resource"));
    GroupVersionResource { group, version, resource }
}

fn equivalent(value: &Value) -> EquivalentResource<'_> {
    EquivalentResource { resource: resource_of(value), kind: Some(kind_of(value)) }
}

fn is_dry_run(request: &Value) -> bool {
    request["dryRun"].as_bool().unwrap_or_default()
}

/// Makes the options that an API server makes for an operation.
fn options(request: &Value) -> Option<Tree> {
    let kind = match request["operation"].as_str()? {
        "CREATE" => "CreateOptions",
        "UPDATE" => "UpdateOptions",
        "DELETE" => "DeleteOptions",
        _ => return None,
    };
    let mut options = Map::new();
    options.insert("kind".to_owned(), kind.into());
    options.insert("apiVersion".to_owned(), "meta.k8s.io/v1".into());
    if is_dry_run(request) {
        options.insert("dryRun".to_owned(), json!(["All"]));
    }
    Some(options)
}

/// The stored namespace of this name.
fn find_namespace<'v>(vector: &'v Vector, name: &str) -> Option<&'v Tree> {
    let all = vector.body.get("namespaces").and_then(Value::as_array).into_iter().flatten();
    all.filter_map(Value::as_object).find(|namespace| api_object::name(namespace) == name)
}
