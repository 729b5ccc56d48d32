//! Parses an audit policy file and reports every fault in it.

use field_errors::{BadValue, FieldErrors, FieldPath, dns1123_subdomain_faults};
use serde_json::{Map, Value};

use super::{GroupResources, Policy, RequestAuditConfig, Rule};
use crate::stage::{Level, Stage, StageSet};

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

/// A policy file cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// The file is longer than the limit.
    #[error("the policy is longer than {} bytes", document::DOCUMENT_BYTES_MAX)]
    TooLong,
    /// The file is neither YAML nor JSON.
    #[error("the policy cannot be read: {0}")]
    Syntax(String),
    /// The file is not an audit policy.
    #[error(
        "not an audit policy: found kind `{kind}` of `{api_version}`, want `Policy` of `audit.k8s.io/v1`"
    )]
    WrongKind {
        /// The `kind` in the file.
        kind: String,
        /// The `apiVersion` in the file.
        api_version: String,
    },
    /// The policy has no rules, so that it would record nothing.
    #[error("the policy has no rules")]
    NoRules,
    /// All invalid values in the file.
    #[error("{0}")]
    Fields(FieldErrors),
}

impl Policy {
    /// Parses a policy from YAML or JSON. Also returns warnings about unknown fields and repeated keys, which
    /// Kubernetes ignores.
    ///
    /// # Errors
    /// [`PolicyError`] if the file is not a valid policy. The server should not start then, because it would not record
    /// the requests that its operator relies on.
    pub fn parse(bytes: &[u8]) -> Result<(Self, Vec<String>), PolicyError> {
        if bytes.len() > document::DOCUMENT_BYTES_MAX {
            return Err(PolicyError::TooLong);
        }
        let tree =
            document::yaml_to_json(bytes).map_err(|error| PolicyError::Syntax(error.message))?;
        let text = |name: &str| tree.value.get(name).and_then(Value::as_str).unwrap_or_default();
        if text("kind") != KIND || text("apiVersion") != API_VERSION {
            return Err(PolicyError::WrongKind {
                kind: text("kind").to_owned(),
                api_version: text("apiVersion").to_owned(),
            });
        }
        let warnings = tree.duplicate_keys.iter().map(|path| format!("{path}: key stands twice"));
        let mut reader =
            PolicyReader { policy_errors: FieldErrors::new(), policy_warnings: warnings.collect() };
        let policy = tree
            .value
            .as_object()
            .map(|members| reader.read_policy(ObjectNode { members, path: None }));
        let PolicyReader { policy_errors: errors, policy_warnings: warnings } = reader;
        if !errors.is_empty() {
            return Err(PolicyError::Fields(errors));
        }
        match policy {
            Some(policy) if !policy.rules.is_empty() => Ok((policy, warnings)),
            Some(_) | None => Err(PolicyError::NoRules),
        }
    }
}

/// Reads the tree of the file and collects errors and warnings.
struct PolicyReader {
    policy_errors: FieldErrors,
    policy_warnings: Vec<String>,
}

/// An object in the file.
#[derive(Clone, Copy)]
struct ObjectNode<'a> {
    members: &'a Map<String, Value>,
    /// The path of the object; `None` for the root of the file.
    path: Option<&'a FieldPath<'a>>,
}

/// A member of an object, which may be absent.
struct ObjectMember<'a> {
    value: Option<&'a Value>,
    path: FieldPath<'a>,
}

impl<'a> ObjectNode<'a> {
    /// The member with this name. Null counts as absent, as everywhere in Kubernetes.
    fn member(self, name: &'a str) -> ObjectMember<'a> {
        ObjectMember {
            value: self.members.get(name).filter(|value| !value.is_null()),
            path: self.path.map_or(FieldPath::root(name), |path| path.child(name)),
        }
    }
}

impl PolicyReader {
    fn read_policy(&mut self, node: ObjectNode<'_>) -> Policy {
        self.warn_about_unknown_fields(node, POLICY_FIELDS);
        let omit_stages = self.read_stages(&node.member("omitStages"));
        let omit_managed_fields =
            self.read_bool(&node.member("omitManagedFields")).unwrap_or(false);
        let list = node.member("rules");
        let mut rules = Vec::new();
        for (idx, rule) in self.read_list(&list).iter().enumerate() {
            let at = list.path.index(idx);
            let Some(members) = self.read_object(rule, &at) else { continue };
            let mut rule =
                self.read_rule(ObjectNode { members, path: Some(&at) }, omit_managed_fields);
            rule.audit_config.omit_stages = rule.audit_config.omit_stages.union(omit_stages);
            rules.push(rule);
        }
        Policy { rules, omit_stages, omit_managed_fields }
    }

    fn read_rule(&mut self, node: ObjectNode<'_>, omit_managed_fields: bool) -> Rule {
        self.warn_about_unknown_fields(node, RULE_FIELDS);
        let config = RequestAuditConfig {
            level: self.read_level(&node.member("level")),
            omit_stages: self.read_stages(&node.member("omitStages")),
            omit_managed_fields: self
                .read_bool(&node.member("omitManagedFields"))
                .unwrap_or(omit_managed_fields),
        };
        let rule = Rule {
            audit_config: config,
            users: self.read_strings(&node.member("users")),
            user_groups: self.read_strings(&node.member("userGroups")),
            verbs: self.read_strings(&node.member("verbs")),
            resources: self.read_resources(&node.member("resources")),
            namespaces: self.read_strings(&node.member("namespaces")),
            non_resource_urls: self.read_non_resource_urls(&node.member("nonResourceURLs")),
        };
        let has_resources = !rule.resources.is_empty() || !rule.namespaces.is_empty();
        if has_resources && !rule.non_resource_urls.is_empty() {
            self.policy_errors.push(node.member("nonResourceURLs").path.invalid(
                bad_json_value(&rule.non_resource_urls),
                "rules cannot apply to both regular resources and non-resource URLs",
            ));
        }
        rule
    }

    /// Reads the level. An unknown level is an error, so the level that replaces it is never used.
    fn read_level(&mut self, member: &ObjectMember<'_>) -> Level {
        let name = self.read_string(member);
        let level = Level::ALL.into_iter().find(|level| level.name() == name);
        let is_text = member.value.is_none_or(Value::is_string);
        if name.is_empty() && is_text {
            self.policy_errors.push(member.path.required(""));
        } else if level.is_none() && is_text {
            self.policy_errors.push(member.path.not_supported(name, &Level::ALL.map(Level::name)));
        }
        level.unwrap_or(Level::None)
    }

    fn read_stages(&mut self, member: &ObjectMember<'_>) -> StageSet {
        let mut stages = StageSet::default();
        for (idx, name) in self.read_strings(member).iter().enumerate() {
            match Stage::ALL.into_iter().find(|stage| stage.name() == name) {
                Some(stage) => stages = stages.with_stage(stage),
                None => {
                    let detail =
                        format!("allowed stages are {}", Stage::ALL.map(Stage::name).join(","));
                    self.policy_errors.push(member.path.index(idx).invalid(name.as_str(), &detail));
                }
            }
        }
        stages
    }

    fn read_resources(&mut self, member: &ObjectMember<'_>) -> Vec<GroupResources> {
        let mut all = Vec::new();
        for (idx, entry) in self.read_list(member).iter().enumerate() {
            let at = member.path.index(idx);
            let Some(members) = self.read_object(entry, &at) else { continue };
            let node = ObjectNode { members, path: Some(&at) };
            self.warn_about_unknown_fields(node, GROUP_FIELDS);
            let entry = GroupResources {
                group: self.read_string(&node.member("group")).to_owned(),
                resources: self.read_strings(&node.member("resources")),
                resource_names: self.read_strings(&node.member("resourceNames")),
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
            self.policy_errors.push(at.child("group").invalid(entry.group.as_str(), &detail));
        }
        if !entry.resource_names.is_empty() && entry.resources.is_empty() {
            self.policy_errors.push(at.child("resourceNames").invalid(
                bad_json_value(&entry.resource_names),
                "using resourceNames requires at least one resource",
            ));
        }
    }

    fn read_non_resource_urls(&mut self, member: &ObjectMember<'_>) -> Vec<String> {
        let urls = self.read_strings(member);
        for (idx, url) in urls.iter().enumerate().filter(|(_, url)| *url != "*") {
            let at = member.path.index(idx);
            if !url.starts_with('/') {
                let detail = "non-resource URL rules must begin with a '/' character";
                self.policy_errors.push(at.invalid(url.as_str(), detail));
            }
            let mut before_last = url.chars();
            before_last.next_back();
            if before_last.as_str().contains('*') {
                let detail =
                    "non-resource URL wildcards '*' must be the final character of the rule";
                self.policy_errors.push(at.invalid(url.as_str(), detail));
            }
        }
        urls
    }

    fn read_string<'m>(&mut self, member: &ObjectMember<'m>) -> &'m str {
        match member.value {
            None => "",
            Some(Value::String(text)) => text,
            Some(other) => {
                self.report_wrong_type(other, &member.path, "must be a string");
                ""
            }
        }
    }

    fn read_bool(&mut self, member: &ObjectMember<'_>) -> Option<bool> {
        match member.value {
            None => None,
            Some(Value::Bool(flag)) => Some(*flag),
            Some(other) => {
                self.report_wrong_type(other, &member.path, "must be a boolean");
                None
            }
        }
    }

    fn read_list<'m>(&mut self, member: &ObjectMember<'m>) -> &'m [Value] {
        match member.value {
            None => &[],
            Some(Value::Array(items)) => items,
            Some(other) => {
                self.report_wrong_type(other, &member.path, "must be a list");
                &[]
            }
        }
    }

    fn read_strings(&mut self, member: &ObjectMember<'_>) -> Vec<String> {
        let mut texts = Vec::new();
        for (idx, item) in self.read_list(member).iter().enumerate() {
            match item {
                Value::String(text) => texts.push(text.clone()),
                Value::Null => texts.push(String::new()),
                other => self.report_wrong_type(other, &member.path.index(idx), "must be a string"),
            }
        }
        texts
    }

    fn read_object<'m>(
        &mut self,
        value: &'m Value,
        at: &FieldPath<'_>,
    ) -> Option<&'m Map<String, Value>> {
        if !value.is_object() {
            self.report_wrong_type(value, at, "must be an object");
        }
        value.as_object()
    }

    fn report_wrong_type(&mut self, value: &Value, at: &FieldPath<'_>, detail: &str) {
        self.policy_errors.push(at.type_invalid(BadValue::Json(value.to_string()), detail));
    }

    fn warn_about_unknown_fields(&mut self, node: ObjectNode<'_>, known: &[&str]) {
        for name in node.members.keys().filter(|name| !known.contains(&name.as_str())) {
            let path = node.member(name).path.to_string();
            self.policy_warnings.push(
                match field_errors::nearest_word(name, known.iter().copied()) {
                    Some(near) => format!("{path}: unknown field, did you mean `{near}`?"),
                    None => format!("{path}: unknown field"),
                },
            );
        }
    }
}

fn bad_json_value(texts: &[String]) -> BadValue {
    BadValue::Json(Value::from(texts).to_string())
}
