//! Attacks through admission webhooks.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::Method;
use serde_json::{Value, json};

use super::{Load, load};
use crate::scene::{RawRequest, Scene};
use crate::users::{TENANT, TENANT_NAMESPACE, WRITER, WRITER_NAMESPACE, config_map};

const MUTATING: &str = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";
const VALIDATING: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
/// The longest time that the repair of a hook takes.
const REPAIR_MAX: Duration = Duration::from_secs(2);

/// A7: 300 creates wait for a hook of 12 seconds, while the administrator repairs the hook.
pub(super) fn a7() -> Load {
    Load {
        duration: Duration::from_secs(15),
        ..load(|scene, until| Box::pin(wait_at_hook(scene, until)))
    }
}

async fn wait_at_hook(scene: Arc<Scene>, until: Instant) -> anyhow::Result<()> {
    let mut admin = scene.admin().await?;
    let slow = scene.hooks.configuration(true, "slow", "/slow/12", "writer");
    admin.create(MUTATING, &slow).await?;
    let mut tasks = tokio::task::JoinSet::new();
    for connection in 0..3 {
        let Ok(streams) = scene.client.streams(Some(WRITER), 64 << 10).await else { continue };
        for stream in 0..100 {
            let (mut streams, run) = (streams.clone(), scene.run);
            tasks.spawn(async move {
                let name = format!("slow-{run}-{connection}-{stream}");
                let body = Bytes::from(config_map(&name, 1_000).to_string());
                let path = format!("/api/v1/namespaces/{WRITER_NAMESPACE}/configmaps");
                let sent = streams.send(Method::POST, &path, body);
                let _ = tokio::time::timeout_at(until.into(), sent).await;
            });
        }
    }
    tokio::time::sleep(Duration::from_secs(2)).await;
    let repaired = scene.hooks.configuration(true, "slow", "/allow", "writer");
    let start = Instant::now();
    let path = format!("{MUTATING}/slow");
    let body = repaired.to_string().into();
    let answer = admin.send(Method::PATCH, &path, "application/merge-patch+json", body).await?;
    if answer.code != 200 || start.elapsed() > REPAIR_MAX {
        scene.differ(format!(
            "the repair of the hook: {} after {:?}",
            answer.code,
            start.elapsed()
        ));
    }
    while tasks.join_next().await.is_some() {}
    admin.send(Method::DELETE, &path, "application/json", Bytes::new()).await?;
    Ok(())
}

/// A17: conditions of a tenant that cost as much as the server allows, on every write.
pub(super) fn a17() -> Load {
    Load {
        clean: |scene, _| Box::pin(remove_conditions(scene)),
        ..load(|scene, until| Box::pin(write_through_conditions(scene, until)))
    }
}

/// A condition that is false and takes about `n` to the third power steps. It reads the object, so the server has to evaluate it
/// for each write.
fn expensive(n: usize) -> String {
    let list: Vec<String> = (0..n).map(|n| n.to_string()).collect();
    let list = list.join(",");
    format!(
        "![{list}].all(a, [{list}].all(b, [{list}].all(c, a + b + c < size(object.metadata.name) + 1000)))"
    )
}

/// Registers hooks for all writes of config maps: with the most expensive condition that is still evaluated, and
/// with regular expressions of 10 kB.
async fn register_conditions(scene: &Scene) -> anyhow::Result<()> {
    let mut tenant = scene.client.session(Some(TENANT)).await?;
    let maps = format!("/api/v1/namespaces/{TENANT_NAMESPACE}/configmaps?dryRun=All");
    let configuration = |name: &str, expression: &str, policy: &str, owner: Option<&str>| {
        let mut configuration = scene.hooks.configuration(false, name, "/allow", "nobody");
        if let Some(hook) = configuration.pointer_mut("/webhooks/0").and_then(Value::as_object_mut)
        {
            let selector = owner.map(|owner| json!({ "matchLabels": { "owner": owner } }));
            hook.insert("namespaceSelector".to_owned(), selector.unwrap_or_else(|| json!({})));
            hook.insert("failurePolicy".to_owned(), policy.into());
            hook.insert(
                "matchConditions".to_owned(),
                json!([{ "name": "expensive", "expression": expression }]),
            );
        }
        configuration
    };
    // With failurePolicy Fail, a condition past the limit refuses the write.
    for n in [100, 80, 60, 50, 40, 30, 20, 10] {
        let probe = configuration("probe", &expensive(n), "Fail", Some("tenant"));
        let registered = tenant.json(Method::POST, VALIDATING, &probe).await?.code == 201;
        let answer = tenant.json(Method::POST, &maps, &config_map("probe", 10)).await?;
        let path = format!("{VALIDATING}/probe");
        tenant.send(Method::DELETE, &path, "application/json", Bytes::new()).await?;
        if registered && answer.code == 201 {
            let everywhere = configuration("expensive", &expensive(n), "Ignore", None);
            tenant.create(VALIDATING, &everywhere).await?;
            break;
        }
    }
    let pattern = "(a|aa)*".repeat(1_400);
    let matches = format!("object.metadata.name.matches('^{pattern}$')");
    let answer = tenant
        .json(Method::POST, VALIDATING, &configuration("regular", &matches, "Ignore", None))
        .await?;
    if answer.code != 201 {
        eprintln!("A17: the regular expression of 10 kB was refused: {}", answer.code);
    }
    Ok(())
}

async fn remove_conditions(scene: Arc<Scene>) -> anyhow::Result<()> {
    let mut admin = scene.admin().await?;
    for name in ["probe", "expensive", "regular"] {
        let path = format!("{VALIDATING}/{name}");
        admin.send(Method::DELETE, &path, "application/json", Bytes::new()).await?;
    }
    Ok(())
}

async fn write_through_conditions(scene: Arc<Scene>, until: Instant) -> anyhow::Result<()> {
    register_conditions(&scene).await?;
    let maps = format!("/api/v1/namespaces/{TENANT_NAMESPACE}/configmaps?dryRun=All");
    let name = "a".repeat(250);
    let write = RawRequest::json(Method::POST, maps, &config_map(&name, 10));
    scene.flood(Some(TENANT), 16, vec![write], until).await;
    Ok(())
}

/// A20: hooks of a tenant that answer 1 GB, slowly, or with a million patches, warnings or annotations.
pub(super) fn a20() -> Load {
    Load {
        prepare: |scene, _| Box::pin(register_bad_hooks(scene)),
        duration: Duration::from_secs(10),
        ..load(|scene, until| Box::pin(write_through_hooks(scene, until)))
    }
}

async fn register_bad_hooks(scene: Arc<Scene>) -> anyhow::Result<()> {
    let mut admin = scene.admin().await?;
    for (idx, path) in
        ["/huge", "/trickle", "/patches", "/warnings", "/annotations"].iter().enumerate()
    {
        let owner = format!("bad-{idx}");
        let namespace = json!({
            "apiVersion": "v1", "kind": "Namespace",
            "metadata": { "name": owner, "labels": { "owner": owner } },
        });
        admin.create("/api/v1/namespaces", &namespace).await?;
        let bindings =
            format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{owner}/rolebindings");
        let binding = crate::users::binding("RoleBinding", "tenant", "admin", "tenant");
        admin.create(&bindings, &binding).await?;
        let hook = scene.hooks.configuration(true, &owner, path, &owner);
        admin.create(MUTATING, &hook).await?;
    }
    Ok(())
}

async fn write_through_hooks(scene: Arc<Scene>, until: Instant) -> anyhow::Result<()> {
    let requests: Vec<RawRequest> = (0..5)
        .map(|idx| {
            let path = format!("/api/v1/namespaces/bad-{idx}/configmaps?dryRun=All");
            RawRequest::json(Method::POST, path, &config_map("through", 10))
        })
        .collect();
    scene.flood(Some(TENANT), 20, requests, until).await;
    Ok(())
}
