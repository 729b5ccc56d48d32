//! The resources that the discovery of a server lists.

use std::fmt;

use http::Method;
use serde_json::{Value, json};

use super::Attempt;
use super::rig::NAMESPACE;
use crate::client::Client;

/// A resource, and the parts of its objects that have paths of their own.
pub(crate) struct Served {
    pub(crate) main: Target,
    pub(super) parts: Vec<Target>,
}

/// A resource or a part of its objects.
pub(crate) struct Target {
    /// Empty for the core group.
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) plural: String,
    /// Empty for the resource itself.
    pub(super) part: String,
    /// Group, version and kind of what is written.
    pub(crate) kind: Value,
    is_namespaced: bool,
    pub(super) verbs: Vec<String>,
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{} {}/{}", self.group, self.version, self.plural, self.part)
    }
}

impl Served {
    /// Reads all resources from discovery.
    pub(crate) async fn discover(client: &Client) -> Vec<Self> {
        let mut versions = vec![(String::new(), "v1".to_owned(), "/api/v1".to_owned())];
        let text = |value: &Value| value.as_str().expect("text").to_owned();
        for group in client.get("/apis").await.expect(200)["groups"].as_array().expect("groups") {
            for version in group["versions"].as_array().expect("versions") {
                let path = format!("/apis/{}", text(&version["groupVersion"]));
                versions.push((text(&group["name"]), text(&version["version"]), path));
            }
        }
        let mut all: Vec<Self> = Vec::new();
        for (group, version, path) in versions {
            let list = client.get(&path).await.expect(200);
            for entry in list["resources"].as_array().expect("resources") {
                let target = Target::read(&group, &version, entry);
                if target.part.is_empty() {
                    all.push(Self { main: target, parts: Vec::new() });
                    continue;
                }
                let is_owner = |own: &&mut Self| {
                    let main = &own.main;
                    main.group == group && main.version == version && main.plural == target.plural
                };
                all.iter_mut().find(is_owner).expect("its resource").parts.push(target);
            }
        }
        all
    }
}

impl Target {
    fn read(group: &str, version: &str, entry: &Value) -> Self {
        let text = |member: &str| entry[member].as_str().map(str::to_owned);
        let name = text("name").expect("a name");
        let (plural, part) = name.split_once('/').unwrap_or((&name, ""));
        let verbs = entry["verbs"].as_array().expect("verbs").iter();
        Self {
            group: group.to_owned(),
            version: version.to_owned(),
            plural: plural.to_owned(),
            part: part.to_owned(),
            kind: json!({
                "group": text("group").unwrap_or_else(|| group.to_owned()),
                "version": text("version").unwrap_or_else(|| version.to_owned()),
                "kind": entry["kind"],
            }),
            is_namespaced: entry["namespaced"] == true,
            verbs: verbs.map(|verb| verb.as_str().expect("a verb").to_owned()).collect(),
        }
    }

    pub(crate) fn offers(&self, verb: &str) -> bool {
        self.verbs.iter().any(|own| own == verb)
    }

    /// Whether requests for it become connections, such as `exec`.
    pub(crate) fn is_connection(&self) -> bool {
        !self.part.is_empty()
            && self.kind["kind"].as_str().is_some_and(|own| own.ends_with("Options"))
    }

    /// The path of the collection.
    pub(crate) fn collection(&self) -> String {
        let prefix = match self.group.as_str() {
            "" => "/api".to_owned(),
            group => format!("/apis/{group}"),
        };
        let namespace = match self.is_namespaced {
            true => format!("/namespaces/{NAMESPACE}"),
            false => String::new(),
        };
        format!("{prefix}/{}{namespace}/{}", self.version, self.plural)
    }

    /// The name of the object that is written.
    pub(crate) fn object_name(&self) -> &'static str {
        match self.plural.as_str() {
            "customresourcedefinitions" => "gadgets.example.com",
            _ => "own",
        }
    }

    /// The namespace that authorizers and hooks are told. A namespace is in itself.
    pub(super) fn told_namespace(&self) -> &'static str {
        match (self.is_namespaced, self.plural.as_str()) {
            (true, _) => NAMESPACE,
            (false, "namespaces") => self.object_name(),
            (false, _) => "",
        }
    }

    /// A request that writes.
    pub(super) fn attempt(
        &self,
        verb: &'static str,
        operation: &'static str,
        method: Method,
        path: String,
        body: Value,
    ) -> Attempt<'_> {
        let content_type = match method {
            Method::PATCH => "application/merge-patch+json",
            _ => "application/json",
        };
        // A new object has its name in its body, a collection has none.
        let is_named = !matches!(verb, "create" | "deletecollection") || !self.part.is_empty();
        // Reviews have no names.
        let told_name = if verb == "deletecollection" { "" } else { self.object_name() };
        let name = if is_named { self.object_name() } else { "" };
        Attempt { target: self, verb, operation, method, path, content_type, body, name, told_name }
    }
}
