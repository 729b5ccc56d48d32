//! From the bytes of a policy file to a policy, or to everything that is wrong with it.

use field_errors::{BadValue, FieldErrors, FieldPath, dns1123_subdomain_faults};
use serde_json::{Map, Value};

use super::{GroupResources, Policy, Rule, Verdict};
use crate::stage::{Level, Stage, Stages};

const API_VERSION: &str = "audit.k8s.io/v1";
const KIND: &str = "Policy";

const POLICY_FIELDS: &[&str] =
    &["apiVersion", "kind", "metadata", "rules", "omitStages", "omitManagedFields"];
const RULE_FIELDS: &[&str] = &[
    "level",
    "users",
    "userGroups",
    "verbs",
    "resources",
    "namespaces",
    "nonResourceURLs",
    "omitStages",
    "omitManagedFields",
];
const GROUP_FIELDS: &[&str] = &["group", "resources", "resourceNames"];

/// Why a policy file is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// The file is longer than any policy would be.
    #[error("the policy is longer than {} bytes", document::DOCUMENT_BYTES_MAX)]
    TooLong,
    /// The file is neither YAML nor JSON.
    #[error("the policy can not be read: {0}")]
    Syntax(String),
    /// The file is about something else.
    #[error(
        "not an audit policy: found kind `{kind}` of `{api_version}`, want `Policy` of `audit.k8s.io/v1`"
    )]
    OtherKind {
        /// What the file says it is.
        kind: String,
        /// Of which version it says it is.
        api_version: String,
    },
    /// Without rules nothing would be recorded, which nobody who writes a policy wants.
    #[error("the policy has no rules")]
    NoRules,
    /// Values that no policy may have, all of them.
    #[error("{0}")]
    Fields(FieldErrors),
}

impl Policy {
    /// Reads a policy from YAML or JSON. Beside it are warnings: fields that no policy has and
    /// keys that stand twice, which Kubernetes passes over and so does this.
    ///
    /// # Errors
    /// [`PolicyError`] if the file is no usable policy. Then the server should not start: it would
    /// not record what its operator relies on.
    pub fn read(bytes: &[u8]) -> Result<(Self, Vec<String>), PolicyError> {
        if bytes.len() > document::DOCUMENT_BYTES_MAX {
            return Err(PolicyError::TooLong);
        }
        let tree =
            document::yaml_to_json(bytes).map_err(|error| PolicyError::Syntax(error.message))?;
        let text = |name: &str| tree.value.get(name).and_then(Value::as_str).unwrap_or_default();
        if text("kind") != KIND || text("apiVersion") != API_VERSION {
            return Err(PolicyError::OtherKind {
                kind: text("kind").to_owned(),
                api_version: text("apiVersion").to_owned(),
            });
        }
        let warnings = tree.duplicate_keys.iter().map(|path| format!("{path}: key stands twice"));
        let mut reader = Reader { errors: FieldErrors::new(), warnings: warnings.collect() };
        let policy =
            tree.value.as_object().map(|members| reader.policy(Node { members, at: None }));
        let Reader { errors, warnings } = reader;
        if !errors.is_empty() {
            return Err(PolicyError::Fields(errors));
        }
        match policy {
            Some(policy) if !policy.rules.is_empty() => Ok((policy, warnings)),
            Some(_) | None => Err(PolicyError::NoRules),
        }
    }
}

/// Collects what is wrong on the way through the tree.
struct Reader {
    errors: FieldErrors,
    warnings: Vec<String>,
}

/// An object of the file.
#[derive(Clone, Copy)]
struct Node<'a> {
    members: &'a Map<String, Value>,
    /// `None` is the file itself.
    at: Option<&'a FieldPath<'a>>,
}

/// A member of an object, whether or not it is there.
struct Member<'a> {
    value: Option<&'a Value>,
    at: FieldPath<'a>,
}

impl<'a> Node<'a> {
    /// Absent and null are the same, as everywhere in Kubernetes.
    fn member(self, name: &'a str) -> Member<'a> {
        Member {
            value: self.members.get(name).filter(|value| !value.is_null()),
            at: self.at.map_or(FieldPath::root(name), |at| at.child(name)),
        }
    }
}

impl Reader {
    fn policy(&mut self, node: Node<'_>) -> Policy {
        self.warn_of_unknown(node, POLICY_FIELDS);
        let omit_stages = self.stages(&node.member("omitStages"));
        let omit_managed_fields = self.flag(&node.member("omitManagedFields")).unwrap_or(false);
        let list = node.member("rules");
        let mut rules = Vec::new();
        for (idx, rule) in self.list(&list).iter().enumerate() {
            let at = list.at.index(idx);
            let Some(members) = self.object(rule, &at) else { continue };
            let mut rule = self.rule(Node { members, at: Some(&at) }, omit_managed_fields);
            rule.verdict.omit_stages = rule.verdict.omit_stages.union(omit_stages);
            rules.push(rule);
        }
        Policy { rules, omit_stages, omit_managed_fields }
    }

    fn rule(&mut self, node: Node<'_>, omit_managed_fields: bool) -> Rule {
        self.warn_of_unknown(node, RULE_FIELDS);
        let verdict = Verdict {
            level: self.level(&node.member("level")),
            omit_stages: self.stages(&node.member("omitStages")),
            omit_managed_fields: self
                .flag(&node.member("omitManagedFields"))
                .unwrap_or(omit_managed_fields),
        };
        let rule = Rule {
            verdict,
            users: self.texts(&node.member("users")),
            user_groups: self.texts(&node.member("userGroups")),
            verbs: self.texts(&node.member("verbs")),
            resources: self.resources(&node.member("resources")),
            namespaces: self.texts(&node.member("namespaces")),
            non_resource_urls: self.urls(&node.member("nonResourceURLs")),
        };
        let has_resources = !rule.resources.is_empty() || !rule.namespaces.is_empty();
        if has_resources && !rule.non_resource_urls.is_empty() {
            self.errors.push(node.member("nonResourceURLs").at.invalid(
                json(&rule.non_resource_urls),
                "rules cannot apply to both regular resources and non-resource URLs",
            ));
        }
        rule
    }

    /// An unknown level is an error, so what stands in for it is never used.
    fn level(&mut self, member: &Member<'_>) -> Level {
        let name = self.text(member);
        let level = Level::ALL.into_iter().find(|level| level.name() == name);
        let is_text = member.value.is_none_or(Value::is_string);
        if name.is_empty() && is_text {
            self.errors.push(member.at.required(""));
        } else if level.is_none() && is_text {
            self.errors.push(member.at.not_supported(name, &Level::ALL.map(Level::name)));
        }
        level.unwrap_or(Level::None)
    }

    fn stages(&mut self, member: &Member<'_>) -> Stages {
        let mut stages = Stages::default();
        for (idx, name) in self.texts(member).iter().enumerate() {
            match Stage::ALL.into_iter().find(|stage| stage.name() == name) {
                Some(stage) => stages = stages.with(stage),
                None => {
                    let detail =
                        format!("allowed stages are {}", Stage::ALL.map(Stage::name).join(","));
                    self.errors.push(member.at.index(idx).invalid(name.as_str(), &detail));
                }
            }
        }
        stages
    }

    fn resources(&mut self, member: &Member<'_>) -> Vec<GroupResources> {
        let mut all = Vec::new();
        for (idx, entry) in self.list(member).iter().enumerate() {
            let at = member.at.index(idx);
            let Some(members) = self.object(entry, &at) else { continue };
            let node = Node { members, at: Some(&at) };
            self.warn_of_unknown(node, GROUP_FIELDS);
            let entry = GroupResources {
                group: self.text(&node.member("group")).to_owned(),
                resources: self.texts(&node.member("resources")),
                resource_names: self.texts(&node.member("resourceNames")),
            };
            self.check_group_resources(&entry, &at);
            all.push(entry);
        }
        all
    }

    fn check_group_resources(&mut self, entry: &GroupResources, at: &FieldPath<'_>) {
        let faults = match entry.group.as_str() {
            "" | "*" => Vec::new(),
            group => dns1123_subdomain_faults(group),
        };
        if !faults.is_empty() {
            let detail = faults.join(",");
            self.errors.push(at.child("group").invalid(entry.group.as_str(), &detail));
        }
        if !entry.resource_names.is_empty() && entry.resources.is_empty() {
            self.errors.push(at.child("resourceNames").invalid(
                json(&entry.resource_names),
                "using resourceNames requires at least one resource",
            ));
        }
    }

    fn urls(&mut self, member: &Member<'_>) -> Vec<String> {
        let urls = self.texts(member);
        for (idx, url) in urls.iter().enumerate().filter(|(_, url)| *url != "*") {
            let at = member.at.index(idx);
            if !url.starts_with('/') {
                let detail = "non-resource URL rules must begin with a '/' character";
                self.errors.push(at.invalid(url.as_str(), detail));
            }
            let mut before_last = url.chars();
            before_last.next_back();
            if before_last.as_str().contains('*') {
                let detail =
                    "non-resource URL wildcards '*' must be the final character of the rule";
                self.errors.push(at.invalid(url.as_str(), detail));
            }
        }
        urls
    }

    fn text<'m>(&mut self, member: &Member<'m>) -> &'m str {
        match member.value {
            None => "",
            Some(Value::String(text)) => text,
            Some(other) => {
                self.wrong_type(other, &member.at, "must be a string");
                ""
            }
        }
    }

    fn flag(&mut self, member: &Member<'_>) -> Option<bool> {
        match member.value {
            None => None,
            Some(Value::Bool(flag)) => Some(*flag),
            Some(other) => {
                self.wrong_type(other, &member.at, "must be a boolean");
                None
            }
        }
    }

    fn list<'m>(&mut self, member: &Member<'m>) -> &'m [Value] {
        match member.value {
            None => &[],
            Some(Value::Array(items)) => items,
            Some(other) => {
                self.wrong_type(other, &member.at, "must be a list");
                &[]
            }
        }
    }

    fn texts(&mut self, member: &Member<'_>) -> Vec<String> {
        let mut texts = Vec::new();
        for (idx, item) in self.list(member).iter().enumerate() {
            match item {
                Value::String(text) => texts.push(text.clone()),
                Value::Null => texts.push(String::new()),
                other => self.wrong_type(other, &member.at.index(idx), "must be a string"),
            }
        }
        texts
    }

    fn object<'m>(
        &mut self,
        value: &'m Value,
        at: &FieldPath<'_>,
    ) -> Option<&'m Map<String, Value>> {
        if !value.is_object() {
            self.wrong_type(value, at, "must be an object");
        }
        value.as_object()
    }

    fn wrong_type(&mut self, value: &Value, at: &FieldPath<'_>, detail: &str) {
        self.errors.push(at.type_invalid(BadValue::Json(value.to_string()), detail));
    }

    fn warn_of_unknown(&mut self, node: Node<'_>, known: &[&str]) {
        for name in node.members.keys().filter(|name| !known.contains(&name.as_str())) {
            let path = node.member(name).at.to_string();
            self.warnings.push(match field_errors::nearest(name, known.iter().copied()) {
                Some(near) => format!("{path}: unknown field, did you mean `{near}`?"),
                None => format!("{path}: unknown field"),
            });
        }
    }
}

fn json(texts: &[String]) -> BadValue {
    BadValue::Json(Value::from(texts).to_string())
}
