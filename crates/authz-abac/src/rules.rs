//! Listing the rules of a user.

use authz::{Namespace, NonResourceRule, ResourceRule, Rules, User};

use crate::policy::covers_value;
use crate::snapshot::Snapshot;

impl Snapshot {
    /// Lists the rules of a user in a namespace, for each policy in file order; the list is complete.
    ///
    /// Paths have no namespace, so they are listed for every namespace. Kubernetes leaves them out unless
    /// the policy is for all namespaces or for this one.
    pub fn rules_for(&self, user: &User, namespace: Namespace<'_>) -> Rules {
        let mut rules = Rules::default();
        for policy in self.policies_of_user(user) {
            let spec = policy.spec();
            if covers_value(&spec.namespace, namespace.as_str()) && !spec.resource.is_empty() {
                rules.resource_rules.push(ResourceRule {
                    verbs: policy.verbs(),
                    api_groups: vec![spec.api_group.clone()],
                    resources: vec![spec.resource.clone()],
                    resource_names: Vec::new(),
                });
            }
            if !spec.non_resource_path.is_empty() {
                rules.non_resource_rules.push(NonResourceRule {
                    verbs: policy.verbs(),
                    non_resource_urls: vec![spec.non_resource_path.clone()],
                });
            }
        }
        rules
    }
}
