//! The authorizers `AlwaysAllow` and `AlwaysDeny`.

use authz::{Decision, NonResourceRule, Reason, ResourceRule, Rules, Subjects};

/// The decision of `AlwaysAllow`: every request is allowed.
pub(crate) fn always_allow_decision() -> Decision {
    Decision::allow(Reason::AlwaysAllow)
}

/// The rules of `AlwaysAllow`: one for all resources and one for all paths.
pub(crate) fn always_allow_rules() -> Rules {
    let all = || vec!["*".to_owned()];
    Rules {
        resource_rules: vec![ResourceRule {
            verbs: all(),
            api_groups: all(),
            resources: all(),
            resource_names: Vec::new(),
        }],
        non_resource_rules: vec![NonResourceRule { verbs: all(), non_resource_urls: all() }],
        ..Rules::default()
    }
}

/// The subjects of `AlwaysAllow`: every user is in one of these two groups.
pub(crate) fn always_allow_subjects() -> Subjects {
    let everybody = ["system:authenticated", "system:unauthenticated"];
    Subjects { groups: everybody.map(str::to_owned).into(), ..Subjects::default() }
}

/// The decision of `AlwaysDeny`: it abstains. As in Kubernetes, it does not deny, so a later authorizer may allow.
pub(crate) fn always_deny_decision() -> Decision {
    Decision::no_opinion(Reason::AlwaysDeny)
}
