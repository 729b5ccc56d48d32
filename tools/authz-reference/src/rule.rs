//! Does a rule allow a request? The same question for roles and for the rules of nodes.

use authz::Resource;

/// Reports whether a list names the text or everything.
pub(crate) fn has(list: &[String], wanted: &str) -> bool {
    list.iter().any(|entry| entry == "*" || entry == wanted)
}

/// Reports whether a list of paths has the path, or the beginning of it before a `*`.
pub(crate) fn has_path(list: &[String], path: &str) -> bool {
    list.iter().any(|entry| {
        let mut stem = entry.as_str();
        while let Some(shorter) = stem.strip_suffix('*') {
            stem = shorter;
        }
        entry == path || (stem.len() < entry.len() && path.starts_with(stem))
    })
}

/// Reports whether a list of resources has what is asked for: as such, or by its subresource.
pub(crate) fn has_resource(list: &[String], wanted: &Resource<'_>) -> bool {
    if wanted.subresource.is_empty() {
        return has(list, wanted.resource);
    }
    let combined = format!("{}/{}", wanted.resource, wanted.subresource);
    let of_any = format!("*/{}", wanted.subresource);
    has(list, &combined) || list.contains(&of_any)
}

/// Reports whether a list of names has the name; an empty one has all.
pub(crate) fn has_name(list: &[String], name: &str) -> bool {
    list.is_empty() || list.iter().any(|entry| entry == name)
}
