//! The group whose members may do everything, whatever the chain.

use authz::{Attributes, Decision, Failure, Reason, Subjects};

/// How the chain names this authorizer. No configured one can bear a name with a slash.
pub(crate) const NAME: &str = "kubernetes.io/system-privileged-group";

/// The group; its name is compared exactly.
const GROUP: &str = "system:masters";

/// Allows members of the group and abstains otherwise. A request without a user is a fault of the
/// server, and is reported as one.
pub(crate) fn authorize(attributes: &Attributes<'_>) -> Decision {
    match attributes.user {
        Some(user) if user.is_in_group(GROUP) => Decision::allow(Reason::SystemMasters),
        Some(_) => Decision::no_opinion(""),
        None => Decision {
            error: Some(Failure::message("no user on request.")),
            ..Decision::no_opinion("Error")
        },
    }
}

/// The group, whatever is asked.
pub(crate) fn subjects() -> Subjects {
    Subjects { groups: [GROUP.to_owned()].into(), ..Subjects::default() }
}
