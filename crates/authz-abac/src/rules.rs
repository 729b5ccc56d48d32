//! What a user may do.

use authz::{NonResourceRule, ResourceRule, Rules, User};

use crate::decide::Policies;
use crate::policy::covers;

impl Policies {
    /// The rules for a user in a namespace, one for each policy in file order; always complete.
    ///
    /// Paths have no namespace, so they are listed whatever namespace is asked about. Kubernetes
    /// leaves them out unless the policy is for all namespaces or for this one.
    pub fn rules_for(&self, user: &User, namespace: &str) -> Rules {
        let mut rules = Rules::default();
        for policy in self.of_user(user) {
            let spec = policy.spec();
            if covers(&spec.namespace, namespace) && !spec.resource.is_empty() {
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
