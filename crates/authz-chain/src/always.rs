//! The two authorizers that answer without looking.

use authz::{Decision, NonResourceRule, Reason, ResourceRule, Rules, Subjects};

/// Everything is allowed.
pub(crate) fn allow() -> Decision {
    Decision::allow(Reason::AlwaysAllow)
}

/// Everything may be done, which is one rule for resources and one for paths.
pub(crate) fn allow_rules() -> Rules {
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

/// Everybody is in one of these two groups.
pub(crate) fn allow_subjects() -> Subjects {
    let everybody = ["system:authenticated", "system:unauthenticated"];
    Subjects { groups: everybody.map(str::to_owned).into(), ..Subjects::default() }
}

/// Nothing is allowed here. In spite of its name AlwaysDeny only abstains, as it does in
/// Kubernetes, so that authorizers after it may still allow.
pub(crate) fn deny() -> Decision {
    Decision::no_opinion(Reason::AlwaysDeny)
}
