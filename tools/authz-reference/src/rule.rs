//! Compares the lists of a rule with a request, for roles and for the rules of nodes.

use authz::Resource;

/// Reports whether a list contains the text or `*`.
pub(crate) fn has(list: &[String], requested: &str) -> bool {
    list.iter().any(|entry| entry == "*" || entry == requested)
}

/// Reports whether a list of paths contains the path, or a prefix of it followed by `*`.
pub(crate) fn has_path(list: &[String], path: &str) -> bool {
    list.iter().any(|entry| {
        let mut stem = entry.as_str();
        while let Some(shorter) = stem.strip_suffix('*') {
            stem = shorter;
        }
        entry == path || (stem.len() < entry.len() && path.starts_with(stem))
    })
}

/// Reports whether a list of resources contains the resource of the request, or `*` with its subresource.
pub(crate) fn has_resource(list: &[String], requested: &Resource<'_>) -> bool {
    if requested.subresource.is_empty() {
        return has(list, requested.resource);
    }
    let combined = format!("{}/{}", requested.resource, requested.subresource);
    let of_any = format!("*/{}", requested.subresource);
    has(list, &combined) || list.contains(&of_any)
}

/// Reports whether a list of names contains the name. An empty list stands for all names.
pub(crate) fn has_name(list: &[String], name: &str) -> bool {
    list.is_empty() || list.iter().any(|entry| entry == name)
}
