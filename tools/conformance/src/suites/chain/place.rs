//! The files of a vector, and the chain that they make.

use std::path::PathBuf;
use std::sync::Arc;

use authz_chain::{AuthorizerSlot, Chain};
use authz_rbac::Snapshot;
use authz_reload::{AuthorizationPlan, AuthorizerBuilder, ConfigFilePlan};
use serde_json::Value;

use super::peers::{Hosts, Peers, authority, host};
use crate::suites::node::node_rules;
use crate::suites::rbac::put_objects;
use crate::suites::texts::replace_texts;
use crate::vectors::Vector;

/// What the folder is called in vectors.
const FOLDER: &str = "/conformance";

/// A folder with the files of a vector, and what else its chain is made of.
pub(super) struct Place {
    folder: tempfile::TempDir,
    policy_file: Option<PathBuf>,
    hosts: Arc<Hosts>,
    rbac: Arc<Snapshot>,
    node: Arc<authz_node::Snapshot>,
}

impl Place {
    pub(super) fn new(vector: &Vector, peers: &Peers) -> Result<Self, String> {
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let write = |name: &str, content: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, content).map(|()| path).map_err(|error| error.to_string())
        };
        let mut config = vector.member("config")?.clone();
        replace_texts(&mut config, FOLDER, &folder.path().display().to_string());
        write("config.json", &config.to_string())?;
        write("ca.pem", &authority()?.pem())?;
        for name in peers.names() {
            write(&format!("{name}.kubeconfig"), &kubeconfig(name))?;
        }
        let policies = vector.body.get("abacPolicy").and_then(Value::as_str);
        let policy_file = policies.map(|policies| write("policies.jsonl", policies)).transpose()?;
        let mut rbac = Snapshot::default();
        let objects = vector.body.get("rbacObjects").and_then(Value::as_array);
        put_objects(&mut rbac, objects.map_or(&[], Vec::as_slice))?;
        let node =
            authz_node::Snapshot { node_rules: node_rules()?, ..authz_node::Snapshot::default() };
        let hosts = Arc::new(peers.hosts(vector));
        Ok(Self { folder, policy_file, hosts, rbac: Arc::new(rbac), node: Arc::new(node) })
    }

    /// The chain as a server has it after its start.
    pub(super) fn chain(&self) -> Result<Chain, String> {
        let mut builder = AuthorizerBuilder::new().map_err(|error| error.to_string())?;
        builder.resolver = Some(Arc::clone(&self.hosts) as _);
        let plan = AuthorizationPlan::File(ConfigFilePlan {
            path: self.folder.path().join("config.json"),
            policy_file: self.policy_file.clone(),
        });
        let generation = builder.build_first(&plan).map_err(|error| error.to_string())?;
        let member =
            |slot: &AuthorizerSlot| (slot.to_member(&self.rbac, &self.node), slot.observer.clone());
        Chain::with_observers(generation.slots.iter().map(member))
            .map_err(|error| error.to_string())
    }
}

fn kubeconfig(webhook: &str) -> String {
    let server = format!("https://{}/authorize", host(webhook));
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: webhook\n\
         clusters:\n- name: webhook\n  cluster: {{server: '{server}', certificate-authority: ca.pem}}\n\
         contexts:\n- name: webhook\n  context: {{cluster: webhook}}\n"
    )
}
