//! The OpenAPI documents of `/openapi/v3`.
//!
//! A kind is described completely or not at all: with an incomplete schema, clients would refuse
//! valid fields. Kinds without a schema still have paths, where clients find the supported patches
//! and query parameters.

mod openapi_schemas;

use foldhash::HashMap;
use serde_json::{Map, Value, json};

use crate::published_document::EncodedDocument;
use crate::registry::{Group, GroupVersionResources, Registry};
use crate::resource::{Resource, ResourceOrigin};
use crate::verb::Verb;

use openapi_schemas::OpenApiSchemas;

/// The OpenAPI documents of one registry.
#[derive(Debug)]
pub struct OpenApi {
    index: EncodedDocument,
    documents_by_path: HashMap<String, EncodedDocument>,
}

const JSON_PATCH: &str = "application/json-patch+json";
const MERGE_PATCH: &str = "application/merge-patch+json";
const STRATEGIC_MERGE_PATCH: &str = "application/strategic-merge-patch+json";

/// Query parameters that clients send only if the OpenAPI document lists them.
const WRITE_PARAMETERS: [&str; 3] = ["dryRun", "fieldManager", "fieldValidation"];

impl OpenApi {
    pub(crate) fn new(registry: &Registry) -> Self {
        let mut documents_by_path = HashMap::default();
        let mut paths = Map::new();
        for group in registry.groups() {
            for version in &group.versions {
                let path = match group.name.as_str() {
                    "" => format!("api/{}", version.version),
                    name => format!("apis/{name}/{}", version.version),
                };
                // The documents of versions that did not change are those of earlier registries.
                let make = || {
                    EncodedDocument::new(&build_openapi_document_of_version(group, version, &path))
                };
                let document = version.openapi(make).clone();
                let url = format!("/openapi/v3/{path}?hash={}", document.hash);
                paths.insert(path.clone(), json!({ "serverRelativeURL": url }));
                documents_by_path.insert(path, document);
            }
        }
        Self { index: EncodedDocument::new(&json!({ "paths": paths })), documents_by_path }
    }

    /// The document of `/openapi/v3`, which lists the others.
    #[must_use]
    pub fn index(&self) -> &EncodedDocument {
        &self.index
    }

    /// The document of a version: `api/v1`, `apis/apps/v1`.
    #[must_use]
    pub fn openapi_document_of_version(&self, path: &str) -> Option<&EncodedDocument> {
        self.documents_by_path.get(path)
    }
}

fn build_openapi_document_of_version(
    group: &Group,
    version: &GroupVersionResources,
    base: &str,
) -> Value {
    let (mut paths, mut schemas) = (Map::new(), OpenApiSchemas::default());
    for resource in version.resources() {
        schemas.add_resource_schema(resource);
        add_openapi_paths(resource, base, &mut paths);
    }
    json!({
        "openapi": "3.0.0",
        "info": { "title": "Portcullis", "version": api_version(group, version) },
        "paths": paths,
        "components": { "schemas": schemas.into_json() },
    })
}

fn api_version(group: &Group, version: &GroupVersionResources) -> String {
    match group.name.as_str() {
        "" => version.version.clone(),
        name => format!("{name}/{}", version.version),
    }
}

/// Adds the paths of the collection and of one object.
fn add_openapi_paths(resource: &Resource, base: &str, paths: &mut Map<String, Value>) {
    let plural = &resource.plural;
    let collection = match resource.is_namespaced() {
        true => format!("/{base}/namespaces/{{namespace}}/{plural}"),
        false => format!("/{base}/{plural}"),
    };
    let mut of_collection = Map::new();
    for (method, verb) in [("get", Verb::List), ("post", Verb::Create)] {
        if resource.supports_verb(verb) {
            of_collection.insert(method.to_owned(), openapi_operation_json(resource, verb));
        }
    }
    // A Binding has no path of one object, as in Kubernetes. Reviews store nothing either, and have one, because clients
    // read the supported query parameters there.
    if (resource.group.as_str(), resource.plural.as_str()) != ("", "bindings") {
        paths.insert(format!("{collection}/{{name}}"), openapi_object_path_json(resource));
    }
    paths.insert(collection, Value::Object(of_collection));
    if resource.is_namespaced() && resource.supports_verb(Verb::List) {
        let everywhere = json!({ "get": openapi_operation_json(resource, Verb::List) });
        paths.insert(format!("/{base}/{plural}"), everywhere);
    }
}

/// The operations on one object.
fn openapi_object_path_json(resource: &Resource) -> Value {
    let mut operations = Map::new();
    // Clients read the supported query parameters from the patch operation, even for kinds without patches.
    operations.insert("patch".to_owned(), openapi_operation_json(resource, Verb::Patch));
    for (method, verb) in [("get", Verb::Get), ("put", Verb::Update), ("delete", Verb::Delete)] {
        if resource.supports_verb(verb) {
            operations.insert(method.to_owned(), openapi_operation_json(resource, verb));
        }
    }
    Value::Object(operations)
}

fn openapi_operation_json(resource: &Resource, verb: Verb) -> Value {
    let action = match verb {
        Verb::Create => "post",
        Verb::Update => "put",
        other => other.name(),
    };
    let mut operation = json!({
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": group_version_kind_json(resource),
        "responses": {},
    });
    let Value::Object(members) = &mut operation else { return operation };
    if matches!(verb, Verb::Create | Verb::Update | Verb::Patch) {
        let parameter =
            |name| json!({ "name": name, "in": "query", "schema": { "type": "string" } });
        members.insert("parameters".to_owned(), WRITE_PARAMETERS.map(parameter).to_vec().into());
    }
    if verb == Verb::Patch {
        let types: &[&str] = match resource.resource_origin {
            ResourceOrigin::BuiltIn(_) => &[JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH],
            ResourceOrigin::Custom(_) => &[JSON_PATCH, MERGE_PATCH],
        };
        let content: Map<String, Value> =
            types.iter().map(|&it| (it.to_owned(), json!({}))).collect();
        members.insert("requestBody".to_owned(), json!({ "content": content }));
    }
    operation
}

fn group_version_kind_json(resource: &Resource) -> Value {
    json!({ "group": resource.group, "version": resource.version, "kind": resource.kind })
}
