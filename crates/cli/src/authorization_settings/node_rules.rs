//! The rules that the node authorizer grants to every node.

use authz::{NonResourceRule, ResourceRule};
use authz_node::NodeRules;
use authz_rbac::{BootstrapPolicy, PolicyRule};

/// The cluster role whose default rules apply to every node.
const NODE_ROLE: &str = "system:node";

/// Returns the default rules of the role [`NODE_ROLE`].
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rules_of_nodes_are_those_of_their_role() {
        let rules = node_rules(&manifests::rbac::bootstrap_policy().unwrap());
        assert!(rules.resource_rules.len() > 20);
        assert!(rules.resource_rules.iter().all(|rule| !rule.resources.is_empty()));
    }
}
