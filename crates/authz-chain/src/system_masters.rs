//! The authorizer for the group `system:masters`, which every chain begins with.

use authz::{Attributes, Decision, EvaluationErrors, Reason, Subjects};

/// The name of this authorizer. The name of a configured one cannot contain a slash.
pub(crate) const NAME: &str = "kubernetes.io/system-privileged-group";

/// The group that is allowed everything.
const GROUP: &str = "system:masters";

/// Allows members of the group and abstains otherwise. A request without a user is a fault of the server and gives an
/// error.
pub(crate) fn authorize_system_masters(attributes: &Attributes<'_>) -> Decision {
    match attributes.user {
        Some(user) if user.is_in_group(GROUP) => Decision::allow(Reason::SystemMasters),
        Some(_) => Decision::no_opinion(""),
        None => Decision {
            error: Some(EvaluationErrors::message("no user on request.")),
            ..Decision::no_opinion("Error")
        },
    }
}

/// The subjects that this authorizer allows: the group.
pub(crate) fn subjects() -> Subjects {
    Subjects { groups: [GROUP.to_owned()].into(), ..Subjects::default() }
}
