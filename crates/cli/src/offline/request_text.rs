//! Describes requests for messages.

use authz::{Attributes, Target};

/// Describes a request for messages, such as `get pods of ana in prod`.
pub(super) fn describe_request(attributes: &Attributes<'_>) -> String {
    let user = attributes.user.map(|user| match user.name.as_str() {
        "" => format!("the group {}", user.groups.join(",")),
        name => name.to_owned(),
    });
    let target = match &attributes.target {
        Target::Path(path) => (*path).to_owned(),
        Target::Resource(resource) => {
            let mut text = match resource.api_group {
                "" => resource.resource.to_owned(),
                group => format!("{}.{group}", resource.resource),
            };
            for part in [resource.subresource, resource.name] {
                if !part.is_empty() {
                    text = format!("{text}/{part}");
                }
            }
            match resource.namespace.as_str() {
                "" => text,
                namespace => format!("{text} in {namespace}"),
            }
        }
    };
    format!("`{} {target}` by {}", attributes.verb.as_str(), user.unwrap_or_default())
}
