//! Lists all objects of a resource in pages, at one revision of the cluster.

use https_client::FaultKind;
use serde_json::Value;

use crate::api_error::ClusterError;
use crate::client::ClusterClient;

/// The most objects of a page, as kubectl has it.
const PAGE_OBJECTS_MAX: usize = 500;

/// A page whose response is too large is requested again with this fraction of its objects.
const PAGE_SHRINK_FACTOR: usize = 8;

/// The most objects of a list. The largest clusters have a tenth of it.
const OBJECTS_MAX: usize = 1_000_000;

/// The number of times that a list begins again after the server dropped its revision.
const RESTARTS_MAX: usize = 3;

/// The revision at which a list is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListRevision {
    /// The newest revision of the server.
    Newest,
    /// Exactly this one, so that several lists show one state of the cluster.
    Exact(String),
}

/// The objects of one list.
#[derive(Debug, Clone)]
pub struct ObjectList<T> {
    /// The converted objects, in the server's order.
    pub items: Vec<T>,
    /// The revision of the list.
    pub revision: String,
}

/// The objects of a resource, or the reason why there are none.
#[derive(Debug)]
pub enum ListObjectsOutcome<T> {
    /// The objects of all pages.
    Complete(ObjectList<T>),
    /// The server no longer has the exact revision; the caller begins all lists again.
    RevisionGone,
}

/// Converts a listed object, which has its kind and version; `None` leaves it out.
pub type ObjectConversionFn<'a, T> = &'a (dyn Fn(&Value) -> Option<T> + Sync);

/// Lists the objects at a path, such as `/apis/rbac.authorization.k8s.io/v1/roles`. Each page is converted when it arrives, so
/// that a long list does not stay in memory as JSON. `progress` gets the number of objects so far.
///
/// A server that drops the revision of an unfinished list answers 410; the list then begins again, if it need not be at an
/// exact revision.
///
/// # Errors
///
/// The server does not answer, or refuses the list.
pub async fn list_objects<T: Send>(
    client: &ClusterClient,
    path: &str,
    revision: &ListRevision,
    convert: ObjectConversionFn<'_, T>,
    progress: &mut (dyn FnMut(usize) + Send),
) -> Result<ListObjectsOutcome<T>, ClusterError> {
    for _ in 0..=RESTARTS_MAX {
        match list_all_pages(client, path, revision, convert, progress).await {
            Ok(list) => return Ok(ListObjectsOutcome::Complete(list)),
            Err(ClusterError::Expired { .. }) => match revision {
                ListRevision::Newest => {}
                ListRevision::Exact(_) => return Ok(ListObjectsOutcome::RevisionGone),
            },
            Err(error) => return Err(error),
        }
    }
    let message =
        format!("the server dropped the list of {path} before it ended, {RESTARTS_MAX} times");
    Err(ClusterError::Expired { message })
}

/// Requests one page after the other.
///
/// A few huge objects can make a page larger than the client reads. Such a page is requested again with fewer objects, down
/// to one, so that nobody who may create objects can make the list fail. After each page that fits, the pages grow again.
async fn list_all_pages<T: Send>(
    client: &ClusterClient,
    path: &str,
    revision: &ListRevision,
    convert: ObjectConversionFn<'_, T>,
    progress: &mut (dyn FnMut(usize) + Send),
) -> Result<ObjectList<T>, ClusterError> {
    let mut items = Vec::new();
    let mut token = String::new();
    let mut page_objects = PAGE_OBJECTS_MAX;
    loop {
        let query = page_query(path, revision, &token, page_objects);
        let page = match client.get_json(&query, "").await {
            Err(ClusterError::NoResponse(fault))
                if fault.kind == FaultKind::TooLarge && page_objects > 1 =>
            {
                page_objects = (page_objects / PAGE_SHRINK_FACTOR).max(1);
                continue;
            }
            page => page?,
        };
        page_objects = (page_objects * 2).min(PAGE_OBJECTS_MAX);
        let metadata = convert_page(page, path, convert, &mut items)?;
        if items.len() > OBJECTS_MAX {
            return Err(ClusterError::TooManyObjects {
                path: path.to_owned(),
                objects_max: OBJECTS_MAX,
            });
        }
        progress(items.len());
        let next_token = text_of(metadata.get("continue"));
        if next_token.is_empty() {
            let revision = text_of(metadata.get("resourceVersion"));
            return Ok(ObjectList { items, revision });
        }
        // A server that continues with the same page would never end the list.
        if next_token == token {
            return Err(not_a_list(path));
        }
        token = next_token;
    }
}

/// Returns the path and query of a page. The first page has an empty token. A token is valid with any number of objects.
fn page_query(path: &str, revision: &ListRevision, token: &str, page_objects: usize) -> String {
    let query = format!("{path}?limit={page_objects}");
    match revision {
        _ if !token.is_empty() => format!("{query}&continue={}", escape_query_text(token)),
        ListRevision::Newest => query,
        ListRevision::Exact(revision) => format!(
            "{query}&resourceVersion={}&resourceVersionMatch=Exact",
            escape_query_text(revision)
        ),
    }
}

/// Adds the converted objects of a page to `items`, and returns the metadata of the page.
fn convert_page<T>(
    mut page: Value,
    path: &str,
    convert: ObjectConversionFn<'_, T>,
    items: &mut Vec<T>,
) -> Result<Value, ClusterError> {
    let kind = text_of(page.get("kind"));
    let kind = kind.strip_suffix("List").ok_or_else(|| not_a_list(path))?;
    let api_version = text_of(page.get("apiVersion"));
    match page.get_mut("items").map(Value::take) {
        Some(Value::Array(page_items)) => {
            for mut item in page_items {
                // The items of a list do not repeat its kind and version.
                let object = item.as_object_mut().ok_or_else(|| not_a_list(path))?;
                object.insert("kind".to_owned(), kind.into());
                object.insert("apiVersion".to_owned(), api_version.as_str().into());
                items.extend(convert(&item));
            }
        }
        Some(Value::Null) | None => {}
        Some(_) => return Err(not_a_list(path)),
    }
    Ok(page.get_mut("metadata").map(Value::take).unwrap_or_default())
}

fn text_of(value: Option<&Value>) -> String {
    value.and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn not_a_list(path: &str) -> ClusterError {
    ClusterError::NotKubernetes { path: path.to_owned(), expected: "a list" }
}

/// Escapes a text for a query.
fn escape_query_text(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                escaped.push(char::from(byte));
            }
            _ => escaped.push_str(&format!("%{byte:02X}")),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn continue_tokens_are_escaped() {
        assert_eq!(escape_query_text("a+b/c=="), "a%2Bb%2Fc%3D%3D");
    }
}
