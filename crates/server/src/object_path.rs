//! Where an object is found in the API.

use resources::Resource;

/// The path of an object.
pub(crate) fn object_path(resource: &Resource, namespace: Option<&str>, name: &str) -> String {
    let base = match resource.group.as_str() {
        "" => format!("/api/{}", resource.version),
        group => format!("/apis/{group}/{}", resource.version),
    };
    let (plural, name) = (&resource.plural, escape(name));
    match namespace {
        None => format!("{base}/{plural}/{name}"),
        Some(namespace) => format!("{base}/namespaces/{namespace}/{plural}/{name}"),
    }
}

/// A name as a segment of a path.
fn escape(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    for byte in name.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b':' => {
                text.push(char::from(byte));
            }
            _ => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}
