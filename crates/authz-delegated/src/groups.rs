//! The groups whose members may do everything.

use authz::{Attributes, Decision, Failure};

/// Allows members of a group and abstains otherwise; names of groups are compared exactly. A request
/// without a user is a fault of the server, and is reported as one.
pub(crate) fn authorize(groups: &[String], attributes: &Attributes<'_>) -> Decision {
    match attributes.user {
        Some(user) if groups.iter().any(|group| user.is_in_group(group)) => Decision::allow(""),
        Some(_) => Decision::no_opinion(""),
        None => Decision::no_opinion("Error").with_error(Failure::message("no user on request.")),
    }
}

#[cfg(test)]
mod tests {
    use authz::{Target, User, Verdict};

    use super::*;

    #[test]
    fn names_of_groups_are_compared_exactly() {
        let groups = ["system:masters".to_owned(), "admins".to_owned()];
        for (group, want) in [
            ("system:masters", Verdict::Allow),
            ("admins", Verdict::Allow),
            ("admin", Verdict::NoOpinion),
            ("Admins", Verdict::NoOpinion),
            ("system:masters ", Verdict::NoOpinion),
        ] {
            let user =
                User { groups: vec!["others".to_owned(), group.to_owned()], ..User::default() };
            let attributes =
                Attributes { user: Some(&user), verb: "get", target: Target::Path("/x") };
            let decision = authorize(&groups, &attributes);
            assert_eq!(decision.verdict, want, "{group}");
            assert_eq!(decision.reason, "", "{group}");
        }
    }

    #[test]
    fn nobody_is_a_fault() {
        let attributes = Attributes { user: None, verb: "get", target: Target::Path("/x") };
        let decision = authorize(&["system:masters".to_owned()], &attributes);
        assert_eq!(decision.verdict, Verdict::NoOpinion);
        assert_eq!(decision.reason, "Error");
        assert_eq!(decision.error.unwrap().to_string(), "no user on request.");
    }
}
