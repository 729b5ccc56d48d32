//! One line of a policy file.

use authz_abac::{Policy, PolicySpec};
use document::{Entry, Span, Value, hint, json};

use super::load_abac_policies::{AbacPolicyLoadOptions, UnsetAttributeMatching};

/// The API group of policies.
pub const GROUP: &str = "abac.authorization.kubernetes.io";
pub(super) const V1BETA1: &str = "abac.authorization.kubernetes.io/v1beta1";
const V0: &str = "abac.authorization.kubernetes.io/v0";
const KIND: &str = "Policy";

const V1BETA1_FIELDS: &[&str] = &["apiVersion", "kind", "spec"];
pub(super) const SPEC_FIELDS: &[&str] =
    &["user", "group", "readonly", "apiGroup", "resource", "namespace", "nonResourcePath"];
pub(super) const V0_FIELDS: &[&str] =
    &["apiVersion", "kind", "user", "group", "readonly", "resource", "namespace", "ns"];

/// The policies of one line, with its version and its unknown fields.
#[derive(Debug)]
pub(super) struct PolicyLine {
    /// The policies of the line: usually one; see [`Policy::from_v0_matching_absent_attributes`] for the
    /// exception.
    pub(super) policies: Vec<Policy>,
    pub(super) version: PolicyLineVersion,
    pub(super) unknown_fields: Vec<UnknownField>,
}

/// The version of the format that a line uses, and whether it declares it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PolicyLineVersion {
    V1beta1,
    V0,
    Unversioned,
}

/// A field of a line that no policy has.
#[derive(Debug)]
pub(super) struct UnknownField {
    pub(super) name: String,
    pub(super) span: Span,
    pub(super) hint: Option<String>,
}

impl UnknownField {
    fn new(entry: &Entry, known: &[&str]) -> Self {
        let hint = hint::did_you_mean(&entry.key, known);
        Self { name: entry.key.clone(), span: entry.key_span, hint }
    }

    pub(super) fn message(&self) -> String {
        format!("unknown field `{}` is ignored", self.name)
    }
}

/// The error of a line that is not a valid policy. Its span is relative to the line.
#[derive(Debug)]
pub(super) struct PolicyLineError {
    pub(super) message: String,
    pub(super) span: Span,
    pub(super) hint: Option<String>,
}

impl PolicyLineError {
    fn new(span: Span, message: String) -> Self {
        Self { message, span, hint: None }
    }

    fn with_hint(self, hint: &str) -> Self {
        Self { hint: Some(hint.to_owned()), ..self }
    }
}

/// Decodes and converts one line.
///
/// Of a repeated field the last value counts, and a null field counts as absent.
pub(super) fn parse_policy_line(
    number: usize,
    text: &str,
    options: AbacPolicyLoadOptions,
) -> Result<PolicyLine, PolicyLineError> {
    let node =
        json::parse_json(text).map_err(|error| PolicyLineError::new(error.span, error.message))?;
    let entries = match &node.value {
        Value::Object(entries) => entries,
        other => {
            let message =
                format!("a policy is a JSON object, this is {}", other.value_kind_with_article());
            return Err(PolicyLineError::new(node.span, message));
        }
    };
    let (version, legacy_kind) = read_policy_line_version(entries, node.span)?;
    let mut unknown_fields = Vec::new();
    let policies = match version {
        PolicyLineVersion::V1beta1 => {
            vec![Policy::from_v1beta1(number, read_v1beta1_spec(entries, &mut unknown_fields)?)]
        }
        PolicyLineVersion::V0 | PolicyLineVersion::Unversioned => {
            let spec = read_v0_spec(entries, version, legacy_kind, &mut unknown_fields)?;
            match options.unset_attribute_matching {
                UnsetAttributeMatching::Empty => vec![Policy::from_v0(number, spec)],
                UnsetAttributeMatching::Match => {
                    Policy::from_v0_matching_absent_attributes(number, spec)
                }
            }
        }
    };
    if let Some(unknown) = unknown_fields.first_mut().filter(|_| options.refuses_unknown_fields) {
        let message = format!("unknown field `{}`", unknown.name);
        return Err(PolicyLineError { message, span: unknown.span, hint: unknown.hint.take() });
    }
    Ok(PolicyLine { policies, version, unknown_fields })
}

/// A text field with the span of its last value.
#[derive(Default)]
struct TextField<'n> {
    field_text: &'n str,
    span: Span,
}

impl<'n> TextField<'n> {
    fn set(&mut self, entry: &'n Entry) -> Result<(), PolicyLineError> {
        match &entry.value.value {
            Value::Null => {}
            Value::Text(text) => *self = Self { field_text: text.as_str(), span: entry.value.span },
            other => return Err(wrong_type_error(entry, other, "a string")),
        }
        Ok(())
    }
}

/// Reads the version of a line. Also returns its `kind` if that is the name of a resource and not `Policy`.
fn read_policy_line_version(
    entries: &[Entry],
    span: Span,
) -> Result<(PolicyLineVersion, TextField<'_>), PolicyLineError> {
    let (mut api_version, mut kind) = (TextField::default(), TextField::default());
    for entry in entries {
        match entry.key.as_str() {
            "apiVersion" => api_version.set(entry)?,
            "kind" => kind.set(entry)?,
            _ => {}
        }
    }
    match (api_version.field_text, kind.field_text) {
        (V1BETA1, KIND) => Ok((PolicyLineVersion::V1beta1, TextField::default())),
        (V0, KIND) => Ok((PolicyLineVersion::V0, TextField::default())),
        ("", "" | KIND) => Ok((PolicyLineVersion::Unversioned, TextField::default())),
        ("", _) => Ok((PolicyLineVersion::Unversioned, kind)),
        (V1BETA1 | V0, "") => {
            Err(PolicyLineError::new(span, format!("`kind` is missing, it must be `{KIND}`")))
        }
        (V1BETA1 | V0, other) => Err(PolicyLineError::new(
            kind.span,
            format!("unknown kind `{other}`, it must be `{KIND}`"),
        )),
        (other, _) => {
            let policy_line_error =
                PolicyLineError::new(api_version.span, format!("unknown apiVersion `{other}`"));
            Err(policy_line_error.with_hint(&format!("use `{V1BETA1}`")))
        }
    }
}

fn read_v1beta1_spec(
    entries: &[Entry],
    unknown: &mut Vec<UnknownField>,
) -> Result<PolicySpec, PolicyLineError> {
    let mut spec = PolicySpec::default();
    for entry in entries {
        match (entry.key.as_str(), &entry.value.value) {
            ("apiVersion" | "kind", _) | ("spec", Value::Null) => {}
            ("spec", Value::Object(fields)) => {
                for field in fields {
                    if !set_spec_field(&mut spec, field)? {
                        unknown.push(UnknownField::new(field, SPEC_FIELDS));
                    }
                }
            }
            ("spec", other) => return Err(wrong_type_error(entry, other, "an object")),
            (name, _) => {
                let mut field = UnknownField::new(entry, V1BETA1_FIELDS);
                if SPEC_FIELDS.contains(&name) {
                    field.hint = Some(format!("`{name}` belongs inside `spec`"));
                }
                unknown.push(field);
            }
        }
    }
    Ok(spec)
}

/// Sets one field of a spec. Returns false if a spec has no field of this name.
fn set_spec_field(spec: &mut PolicySpec, entry: &Entry) -> Result<bool, PolicyLineError> {
    let part = match entry.key.as_str() {
        "readonly" => {
            set_bool_field(&mut spec.is_readonly, entry)?;
            return Ok(true);
        }
        "user" => &mut spec.user,
        "group" => &mut spec.group,
        "apiGroup" => &mut spec.api_group,
        "resource" => &mut spec.resource,
        "namespace" => &mut spec.namespace,
        "nonResourcePath" => &mut spec.non_resource_path,
        _ => return Ok(false),
    };
    let mut field = TextField { field_text: part.as_str(), span: Span::default() };
    field.set(entry)?;
    *part = field.field_text.to_owned();
    Ok(true)
}

/// Reads the fields of version 0. The names `kind` and `ns` of the proposal mean the same as `resource` and
/// `namespace`: ignoring them would grant every resource in every namespace.
fn read_v0_spec(
    entries: &[Entry],
    version: PolicyLineVersion,
    legacy_kind: TextField<'_>,
    unknown: &mut Vec<UnknownField>,
) -> Result<PolicySpec, PolicyLineError> {
    let mut spec = PolicySpec::default();
    let mut ns = TextField::default();
    for entry in entries {
        match entry.key.as_str() {
            "apiVersion" | "kind" => {}
            "ns" => ns.set(entry)?,
            "spec" if version == PolicyLineVersion::Unversioned => {
                let message =
                    "`spec` needs an apiVersion: without one it would be ignored, and the \
                               line would grant everything to everybody"
                        .to_owned();
                let policy_line_error = PolicyLineError::new(entry.key_span, message);
                return Err(
                    policy_line_error.with_hint(&format!("add `\"apiVersion\":\"{V1BETA1}\"`"))
                );
            }
            name if V0_FIELDS.contains(&name) => {
                set_spec_field(&mut spec, entry)?;
            }
            "spec" => {
                let mut field = UnknownField::new(entry, V0_FIELDS);
                field.hint =
                    Some(format!("v0 has no `spec`, and nothing in it restricts: use `{V1BETA1}`"));
                unknown.push(field);
            }
            _ => unknown.push(UnknownField::new(entry, V0_FIELDS)),
        }
    }
    let resource = legacy_kind.field_text.to_ascii_lowercase();
    set_field_from_legacy_name(
        &mut spec.resource,
        &resource,
        legacy_kind.span,
        ["kind", "resource"],
    )?;
    set_field_from_legacy_name(&mut spec.namespace, ns.field_text, ns.span, ["ns", "namespace"])?;
    Ok(spec)
}

/// Sets a field from its older name. It is an error if both names are set and differ.
fn set_field_from_legacy_name(
    part: &mut String,
    alias: &str,
    span: Span,
    names: [&str; 2],
) -> Result<(), PolicyLineError> {
    if alias.is_empty() || alias == part {
        return Ok(());
    }
    if part.is_empty() {
        *part = alias.to_owned();
        return Ok(());
    }
    let [other, name] = names;
    let message = format!("`{other}` is `{alias}` but `{name}`, which means the same, is `{part}`");
    Err(PolicyLineError::new(span, message))
}

fn set_bool_field(flag: &mut bool, entry: &Entry) -> Result<(), PolicyLineError> {
    match &entry.value.value {
        Value::Null => {}
        Value::Bool(value) => *flag = *value,
        other => return Err(wrong_type_error(entry, other, "a bool")),
    }
    Ok(())
}

fn wrong_type_error(entry: &Entry, value: &Value, want: &str) -> PolicyLineError {
    let message =
        format!("`{}` must be {want}, this is {}", entry.key, value.value_kind_with_article());
    let policy_line_error = PolicyLineError::new(entry.value.span, message);
    match value {
        Value::Text(text) if want == "a bool" && matches!(text.as_str(), "true" | "false") => {
            policy_line_error.with_hint("write it without quotes")
        }
        _ => policy_line_error,
    }
}
