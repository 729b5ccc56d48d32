//! Writes the configuration files of a vector and builds the chain from them.

use std::path::PathBuf;
use std::sync::Arc;

use authz_chain::{AuthorizerSlot, Chain};
use authz_rbac::Snapshot;
use authz_reload::{AuthorizationPlan, AuthorizerBuilder, ConfigFilePlan};
use serde_json::Value;

use super::fake_webhooks::{FakeWebhooks, WebhookAddresses, webhook_authority, webhook_host};
use crate::suites::node::node_rules;
use crate::suites::rbac::put_objects;
use crate::suites::replace_texts::replace_texts;
use crate::vectors::{UnusableVector, Vector};

/// The path in vectors that stands for the folder.
const FOLDER: &str = "/conformance";

/// A folder with the files of a vector, and the other inputs of its chain.
pub(super) struct ChainFiles {
    folder: tempfile::TempDir,
    policy_file: Option<PathBuf>,
    hosts: Arc<WebhookAddresses>,
    rbac: Arc<Snapshot>,
    node: Arc<authz_node::Snapshot>,
}

impl ChainFiles {
    pub(super) fn new(vector: &Vector, webhooks: &FakeWebhooks) -> Result<Self, UnusableVector> {
        let folder = tempfile::tempdir().map_err(UnusableVector::new)?;
        let write = |name: &str, content: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, content).map(|()| path).map_err(UnusableVector::new)
        };
        let mut config = vector.member("config")?.clone();
        replace_texts(&mut config, FOLDER, &folder.path().display().to_string());
        write("config.json", &config.to_string())?;
        write("ca.pem", &webhook_authority()?.pem())?;
        for name in webhooks.names() {
            write(&format!("{name}.kubeconfig"), &kubeconfig(name))?;
        }
        let policies = vector.body.get("abacPolicy").and_then(Value::as_str);
        let policy_file = policies.map(|policies| write("policies.jsonl", policies)).transpose()?;
        let mut rbac = Snapshot::default();
        let objects = vector.body.get("rbacObjects").and_then(Value::as_array);
        put_objects(&mut rbac, objects.map_or(&[], Vec::as_slice))?;
        let node =
            authz_node::Snapshot { node_rules: node_rules()?, ..authz_node::Snapshot::default() };
        let hosts = Arc::new(webhooks.addresses(vector));
        Ok(Self { folder, policy_file, hosts, rbac: Arc::new(rbac), node: Arc::new(node) })
    }

    /// Builds the chain as a server does at its start.
    pub(super) fn build_chain(&self) -> Result<Chain, UnusableVector> {
        let mut builder = AuthorizerBuilder::new().map_err(UnusableVector::new)?;
        builder.service_resolver = Some(Arc::clone(&self.hosts) as _);
        let plan = AuthorizationPlan::File(ConfigFilePlan {
            path: self.folder.path().join("config.json"),
            abac_policy_file: self.policy_file.clone(),
        });
        let generation = builder.build_first_generation(&plan).map_err(UnusableVector::new)?;
        let member = |slot: &AuthorizerSlot| {
            (slot.to_chain_member(&self.rbac, &self.node), slot.decision_observer.clone())
        };
        Chain::with_observers(generation.authorizer_slots.iter().map(member))
            .map_err(UnusableVector::new)
    }
}

fn kubeconfig(webhook: &str) -> String {
    let server = format!("https://{}/authorize", webhook_host(webhook));
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: webhook\n\
         clusters:\n- name: webhook\n  cluster: {{server: '{server}', certificate-authority: ca.pem}}\n\
         contexts:\n- name: webhook\n  context: {{cluster: webhook}}\n"
    )
}
