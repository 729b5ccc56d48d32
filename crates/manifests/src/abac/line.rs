//! One line of a policy file.

use authz_abac::{Policy, Spec};
use document::{Entry, Span, Value, hint, json};

use super::load::LoadOptions;

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

/// What a line holds.
#[derive(Debug)]
pub(super) struct Read {
    pub(super) policy: Policy,
    pub(super) form: Form,
    pub(super) unknown_fields: Vec<UnknownField>,
}

/// Which of the two formats a line has, and whether it says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    V1beta1,
    V0,
    Unversioned,
}

/// A field that means nothing.
#[derive(Debug)]
pub(super) struct UnknownField {
    pub(super) name: String,
    pub(super) span: Span,
    pub(super) hint: Option<String>,
}

impl UnknownField {
    fn new(entry: &Entry, known: &[&str]) -> Self {
        let hint = hint::suggestion(&entry.key, known);
        Self { name: entry.key.clone(), span: entry.key_span, hint }
    }

    pub(super) fn message(&self) -> String {
        format!("unknown field `{}` is ignored", self.name)
    }
}

/// Why a line is no policy; places are in the line.
#[derive(Debug)]
pub(super) struct Flaw {
    pub(super) message: String,
    pub(super) span: Span,
    pub(super) hint: Option<String>,
}

impl Flaw {
    fn new(span: Span, message: String) -> Self {
        Self { message, span, hint: None }
    }

    fn with_hint(self, hint: &str) -> Self {
        Self { hint: Some(hint.to_owned()), ..self }
    }
}

/// Decodes and converts one line.
///
/// A field that repeats has its last value, and one that is null is not set.
pub(super) fn read(number: usize, text: &str, options: LoadOptions) -> Result<Read, Flaw> {
    let node = json::read(text).map_err(|error| Flaw::new(error.span, error.message))?;
    let entries = match &node.value {
        Value::Object(entries) => entries,
        other => {
            let message = format!("a policy is a JSON object, this is {}", article(other.kind()));
            return Err(Flaw::new(node.span, message));
        }
    };
    let (form, marker) = form_of(entries, node.span)?;
    let mut unknown_fields = Vec::new();
    let policy = match form {
        Form::V1beta1 => Policy::v1beta1(number, v1beta1(entries, &mut unknown_fields)?),
        Form::V0 | Form::Unversioned => {
            Policy::v0(number, v0(entries, form, marker, &mut unknown_fields)?)
        }
    };
    if let Some(unknown) = unknown_fields.first_mut().filter(|_| options.is_strict) {
        let message = format!("unknown field `{}`", unknown.name);
        return Err(Flaw { message, span: unknown.span, hint: unknown.hint.take() });
    }
    Ok(Read { policy, form, unknown_fields })
}

/// A text field with the place of its last value.
#[derive(Default)]
struct Field<'n> {
    text: &'n str,
    span: Span,
}

impl<'n> Field<'n> {
    fn set(&mut self, entry: &'n Entry) -> Result<(), Flaw> {
        match &entry.value.value {
            Value::Null => {}
            Value::Text(text) => *self = Self { text: text.as_str(), span: entry.value.span },
            other => return Err(wrong_type(entry, other, "string")),
        }
        Ok(())
    }
}

/// The form of a line, and its kind if that is not the marker of the format but a resource.
fn form_of(entries: &[Entry], span: Span) -> Result<(Form, Field<'_>), Flaw> {
    let (mut api_version, mut kind) = (Field::default(), Field::default());
    for entry in entries {
        match entry.key.as_str() {
            "apiVersion" => api_version.set(entry)?,
            "kind" => kind.set(entry)?,
            _ => {}
        }
    }
    match (api_version.text, kind.text) {
        (V1BETA1, KIND) => Ok((Form::V1beta1, Field::default())),
        (V0, KIND) => Ok((Form::V0, Field::default())),
        ("", "" | KIND) => Ok((Form::Unversioned, Field::default())),
        ("", _) => Ok((Form::Unversioned, kind)),
        (V1BETA1 | V0, "") => {
            Err(Flaw::new(span, format!("`kind` is missing, it must be `{KIND}`")))
        }
        (V1BETA1 | V0, other) => {
            Err(Flaw::new(kind.span, format!("unknown kind `{other}`, it must be `{KIND}`")))
        }
        (other, _) => {
            let flaw = Flaw::new(api_version.span, format!("unknown apiVersion `{other}`"));
            Err(flaw.with_hint(&format!("use `{V1BETA1}`")))
        }
    }
}

fn v1beta1(entries: &[Entry], unknown: &mut Vec<UnknownField>) -> Result<Spec, Flaw> {
    let mut spec = Spec::default();
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
            ("spec", other) => return Err(wrong_type(entry, other, "object")),
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

/// Sets one field of a spec; false if there is none of this name.
fn set_spec_field(spec: &mut Spec, entry: &Entry) -> Result<bool, Flaw> {
    let part = match entry.key.as_str() {
        "readonly" => {
            set_flag(&mut spec.is_readonly, entry)?;
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
    let mut field = Field { text: part.as_str(), span: Span::default() };
    field.set(entry)?;
    *part = field.text.to_owned();
    Ok(true)
}

/// The proposal's names `kind` and `ns` say the same as `resource` and `namespace`. To overlook
/// them would grant every resource in every namespace.
fn v0(
    entries: &[Entry],
    form: Form,
    marker: Field<'_>,
    unknown: &mut Vec<UnknownField>,
) -> Result<Spec, Flaw> {
    let mut spec = Spec::default();
    let mut ns = Field::default();
    for entry in entries {
        match entry.key.as_str() {
            "apiVersion" | "kind" => {}
            "ns" => ns.set(entry)?,
            "spec" if form == Form::Unversioned => {
                let message =
                    "`spec` needs an apiVersion: without one it would be ignored, and the \
                               line would grant everything to everybody"
                        .to_owned();
                let flaw = Flaw::new(entry.key_span, message);
                return Err(flaw.with_hint(&format!("add `\"apiVersion\":\"{V1BETA1}\"`")));
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
    let resource = marker.text.to_ascii_lowercase();
    set_alias(&mut spec.resource, &resource, marker.span, ["kind", "resource"])?;
    set_alias(&mut spec.namespace, ns.text, ns.span, ["ns", "namespace"])?;
    Ok(spec)
}

/// Sets a part by its other name, unless both are set and differ.
fn set_alias(part: &mut String, alias: &str, span: Span, names: [&str; 2]) -> Result<(), Flaw> {
    if alias.is_empty() || alias == part {
        return Ok(());
    }
    if part.is_empty() {
        *part = alias.to_owned();
        return Ok(());
    }
    let [other, name] = names;
    let message = format!("`{other}` is `{alias}` but `{name}`, which means the same, is `{part}`");
    Err(Flaw::new(span, message))
}

fn set_flag(flag: &mut bool, entry: &Entry) -> Result<(), Flaw> {
    match &entry.value.value {
        Value::Null => {}
        Value::Bool(value) => *flag = *value,
        other => return Err(wrong_type(entry, other, "bool")),
    }
    Ok(())
}

fn wrong_type(entry: &Entry, value: &Value, want: &str) -> Flaw {
    let message =
        format!("`{}` must be {}, this is {}", entry.key, article(want), article(value.kind()));
    let flaw = Flaw::new(entry.value.span, message);
    match value {
        Value::Text(text) if want == "bool" && matches!(text.as_str(), "true" | "false") => {
            flaw.with_hint("write it without quotes")
        }
        _ => flaw,
    }
}

fn article(kind: &str) -> String {
    match kind {
        "null" => "null".to_owned(),
        "array" | "object" => format!("an {kind}"),
        _ => format!("a {kind}"),
    }
}
