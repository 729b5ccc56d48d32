//! From the body of a request to the tree of an object.

use api_object::{GroupKind, GroupVersion, Status, Tree};
use field_errors::{FieldErrors, FieldPath};
use serde_json::Value;

use crate::conform::WrongType;
use crate::content_type::BodyFormat;
use crate::finding::{Finding, Findings};
use crate::shape::Message;
use crate::{conform, json, kinds, protobuf};

/// What the endpoint takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expected<'e> {
    /// The group; empty for the core group.
    pub group: &'e str,
    /// The version.
    pub version: &'e str,
    /// The kind.
    pub kind: &'e str,
    /// Whether the kind is defined by a CustomResourceDefinition; then its objects must say what
    /// they are.
    pub is_custom: bool,
}

/// A body that was read.
#[derive(Debug, Clone, PartialEq)]
pub struct Decoded {
    /// The object, with `apiVersion` and `kind`.
    pub tree: Tree,
    /// What a strict client would be refused for.
    pub findings: Vec<Finding>,
}

/// How many bytes of a body a message shows.
const SUMMARY_BYTES_MAX: usize = 30;

/// How many bytes of a body without kind a message shows.
const BODY_SHOWN_BYTES_MAX: usize = 4096;

impl Expected<'_> {
    fn group_version(&self) -> GroupVersion {
        GroupVersion::new(self.group, self.version)
    }

    fn message(&self) -> Option<&'static Message> {
        match self.is_custom {
            true => None,
            false => kinds::message(self.group, self.version, self.kind),
        }
    }
}

/// Reads the object of a create or an update.
///
/// 1. The bytes must be of their form.
/// 2. Kind and version must be those of the endpoint; built-in kinds may leave them out.
/// 3. What is known of the shape of the kind must hold. Unknown and duplicate fields are findings.
///
/// # Errors
///
/// 400 if one of this fails, 415 for protobuf of a kind without table, 422 for another custom kind.
pub fn decode_object(
    bytes: &[u8],
    format: BodyFormat,
    expected: &Expected<'_>,
) -> Result<Decoded, Status> {
    let message = expected.message();
    let (mut tree, duplicates) = match (format, message) {
        (BodyFormat::Json | BodyFormat::Yaml, _) => read(bytes, format, expected.kind)?,
        (BodyFormat::Protobuf, Some(message)) => {
            (read_protobuf(bytes, message, expected.kind)?, Vec::new())
        }
        (BodyFormat::Protobuf, None) => {
            let accepted = ["application/json", "application/yaml"];
            return Err(Status::unsupported_media_type(&accepted));
        }
    };
    fit_type_meta(&mut tree, bytes, expected)?;
    let mut findings = Findings::default();
    if format != BodyFormat::Protobuf {
        conform::conform(&mut tree, message, &mut findings).map_err(|why| {
            let Expected { kind, version, .. } = expected;
            cannot_be_handled(kind, version, kind, &why.to_string())
        })?;
    }
    duplicates.into_iter().for_each(|finding| findings.push(finding));
    Ok(Decoded { tree, findings: findings.into_vec() })
}

/// Holds an object that a patch made against what is known of the shape of its kind, as
/// [`decode_object`] does, and says what a strict client would be refused for.
///
/// # Errors
///
/// A value does not have the type of its field.
pub fn conform_object(tree: &mut Tree, expected: &Expected<'_>) -> Result<Vec<Finding>, WrongType> {
    let mut findings = Findings::default();
    conform::conform(tree, expected.message(), &mut findings)?;
    Ok(findings.into_vec())
}

/// Reads the options of a delete. Clients send them with the version of the resource or with any
/// other, so it is not looked at.
///
/// # Errors
///
/// 400 if the bytes are not of their form, or not options of this kind.
pub fn decode_options(bytes: &[u8], format: BodyFormat) -> Result<Tree, Status> {
    const KIND: &str = "DeleteOptions";
    let mut tree = match format {
        BodyFormat::Json | BodyFormat::Yaml => read(bytes, format, KIND)?.0,
        BodyFormat::Protobuf => read_protobuf(bytes, &kinds::DELETE_OPTIONS, KIND)?,
    };
    let (api_version, kind) = type_meta(&mut tree, bytes, KIND)?;
    let version = GroupVersion::parse(&api_version).map_or(String::new(), |found| found.version);
    if !kind.is_empty() && kind != KIND {
        let why = format!("no conversion to {KIND} exists");
        return Err(cannot_be_handled(&kind, &version, KIND, &why));
    }
    if format != BodyFormat::Protobuf {
        conform::conform(&mut tree, Some(&kinds::DELETE_OPTIONS), &mut Findings::default())
            .map_err(|why| cannot_be_handled(KIND, &version, KIND, &why.to_string()))?;
    }
    Ok(tree)
}

fn read(bytes: &[u8], format: BodyFormat, kind: &str) -> Result<(Tree, Vec<Finding>), Status> {
    let (value, findings) = match format {
        BodyFormat::Yaml => {
            let read = document::yaml_to_json(bytes).map_err(|why| {
                unrecognized(kind, &format!("error converting YAML to JSON: {why}"), bytes)
            })?;
            let findings = read.duplicate_keys.into_iter().map(Finding::DuplicateField).collect();
            (read.value, findings)
        }
        BodyFormat::Json | BodyFormat::Protobuf => {
            let read =
                json::json_tree(bytes).map_err(|why| not_json(kind, &why.to_string(), bytes))?;
            (read.value, read.findings)
        }
    };
    match value {
        Value::Object(tree) => Ok((tree, findings)),
        _ => Err(not_json(kind, "json: cannot unmarshal anything but an object", bytes)),
    }
}

fn read_protobuf(bytes: &[u8], message: &'static Message, kind: &str) -> Result<Tree, Status> {
    protobuf::decode(bytes, message).map_err(|why| unrecognized(kind, &why.to_string(), bytes))
}

/// Holds kind and version against those of the endpoint, and adds them where they may be absent.
fn fit_type_meta(tree: &mut Tree, bytes: &[u8], expected: &Expected<'_>) -> Result<(), Status> {
    let (mut api_version, mut kind) = type_meta(tree, bytes, expected.kind)?;
    let wanted = expected.group_version().to_string();
    if expected.is_custom && kind.is_empty() {
        let shown = bytes.get(..BODY_SHOWN_BYTES_MAX).unwrap_or(bytes);
        let why = format!("Object 'Kind' is missing in '{}'", String::from_utf8_lossy(shown));
        return Err(unrecognized(expected.kind, &why, bytes));
    }
    if !expected.is_custom {
        for (found, default) in [(&mut api_version, wanted.as_str()), (&mut kind, expected.kind)] {
            if found.is_empty() {
                default.clone_into(found);
            }
        }
    }
    if kind != expected.kind && !expected.is_custom {
        let version =
            GroupVersion::parse(&api_version).map_or(String::new(), |found| found.version);
        let why = format!("no conversion from {kind} to {} exists", expected.kind);
        return Err(cannot_be_handled(&kind, &version, expected.kind, &why));
    }
    if api_version != wanted {
        return Err(Status::bad_request(format!(
            "the API version in the data ({api_version}) does not match the expected API version \
             ({wanted})"
        )));
    }
    if kind != expected.kind {
        let mut errors = FieldErrors::new();
        let must = format!("must be {}", expected.kind);
        errors.push(FieldPath::root("kind").invalid(kind.as_str(), &must));
        let group_kind = GroupKind::new(expected.group, expected.kind);
        return Err(Status::invalid(&group_kind, api_object::name(tree), &errors));
    }
    tree.insert("apiVersion".to_owned(), api_version.into());
    tree.insert("kind".to_owned(), kind.into());
    Ok(())
}

/// What the object says it is; empty where it does not. Nulls are removed.
fn type_meta(tree: &mut Tree, bytes: &[u8], expected: &str) -> Result<(String, String), Status> {
    let mut member = |name: &str| match tree.get(name) {
        None => Ok(String::new()),
        Some(Value::String(text)) => Ok(text.clone()),
        Some(Value::Null) => {
            tree.shift_remove(name);
            Ok(String::new())
        }
        Some(_) => {
            let why = format!("json: cannot unmarshal field {name} into a string");
            Err(not_json(expected, &why, bytes))
        }
    };
    Ok((member("apiVersion")?, member("kind")?))
}

fn not_json(kind: &str, why: &str, bytes: &[u8]) -> Status {
    unrecognized(kind, &format!("couldn't get version/kind; json parse error: {why}"), bytes)
}

fn unrecognized(kind: &str, why: &str, bytes: &[u8]) -> Status {
    Status::bad_request(format!(
        "the object provided is unrecognized (must be of type {kind}): {why} ({})",
        summary(bytes)
    ))
}

fn cannot_be_handled(found: &str, version: &str, expected: &str, why: &str) -> Status {
    let version = go_compat::quote(version);
    Status::bad_request(format!(
        "{found} in version {version} cannot be handled as a {expected}: {why}"
    ))
}

/// The first bytes of a body: as they are if it looks like JSON, else in hexadecimal.
fn summary(bytes: &[u8]) -> String {
    let (shown, more) = match bytes.split_at_checked(SUMMARY_BYTES_MAX) {
        Some((shown, rest)) if !rest.is_empty() => (shown, " ..."),
        _ => (bytes, ""),
    };
    match shown {
        [] => "<empty>".to_owned(),
        [b'{', ..] => format!("{}{more}", String::from_utf8_lossy(shown)),
        _ => shown.iter().map(|byte| format!("{byte:02x}")).collect::<String>() + more,
    }
}

#[cfg(test)]
mod tests;
