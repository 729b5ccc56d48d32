//! The variable `request`: an AdmissionRequest without its objects.

use authz::User;
use cel::{List, Map, MapSource, ObjectType, RecordSource, ResourceCheckTarget, Type, Value};
use std::collections::BTreeMap;

use super::cel_document::CelDocument;
use crate::attributes::{Attributes, GroupVersionKind, GroupVersionResource};

/// The attributes of the request, and the kind and resource of the review.
#[derive(Debug)]
pub(super) struct AdmissionRequest<'a> {
    kind: Kind<'a>,
    resource: Resource<'a>,
    subresource: &'a str,
    request_kind: Kind<'a>,
    request_resource: Resource<'a>,
    name: &'a str,
    namespace: &'a str,
    operation: &'static str,
    user: UserInfo<'a>,
    is_dry_run: bool,
    options: Option<CelDocument<'a>>,
}

#[derive(Debug)]
struct Kind<'a>(GroupVersionKind<'a>);

#[derive(Debug)]
struct Resource<'a>(GroupVersionResource<'a>);

#[derive(Debug)]
struct UserInfo<'a> {
    user: Option<&'a User>,
    extra: Option<Extra<'a>>,
}

#[derive(Debug)]
struct Extra<'a>(&'a BTreeMap<String, Vec<String>>);

impl<'a> AdmissionRequest<'a> {
    pub(super) fn new(
        requested: &Attributes<'a>,
        kind: GroupVersionKind<'a>,
        resource: GroupVersionResource<'a>,
    ) -> Self {
        let user = requested.user;
        let extra = user.map(|user| &user.extra).filter(|extra| !extra.is_empty());
        Self {
            kind: Kind(kind),
            resource: Resource(resource),
            subresource: requested.subresource,
            request_kind: Kind(requested.kind),
            request_resource: Resource(requested.resource),
            name: requested.name,
            namespace: requested.namespace,
            operation: requested.operation.name(),
            user: UserInfo { user, extra: extra.map(Extra) },
            is_dry_run: requested.is_dry_run,
            options: requested.options.map(CelDocument::from_json_object),
        }
    }

    /// The requested resource as the target of an authorizer check. It is the resource of the request, not that of the
    /// review.
    pub(super) fn resource_target(&self) -> ResourceCheckTarget {
        let Resource(GroupVersionResource { group, resource, .. }) = self.request_resource;
        ResourceCheckTarget {
            group: group.into(),
            resource: resource.into(),
            subresource: self.subresource.into(),
            namespace: self.namespace.into(),
            name: self.name.into(),
            ..ResourceCheckTarget::default()
        }
    }
}

/// The type of the variable. The positions of the fields are those of the records below.
pub(super) fn request_cel_type() -> Type {
    let texts = Type::list_type_of(Type::String);
    let kind = ObjectType::new(
        "kubernetes.GroupVersionKind",
        KIND_FIELDS.iter().map(|name| (*name, Type::String)).collect(),
    );
    let resource = ObjectType::new(
        "kubernetes.GroupVersionResource",
        RESOURCE_FIELDS.iter().map(|name| (*name, Type::String)).collect(),
    );
    let user_types =
        [Type::String, Type::String, texts.clone(), Type::map_type_of(Type::String, texts)];
    let user = ObjectType::new(
        "kubernetes.UserInfo",
        USER_FIELDS.iter().copied().zip(user_types).collect(),
    );
    let (kind, resource) = (Type::Object(kind), Type::Object(resource));
    let types = [
        kind.clone(),
        resource.clone(),
        Type::String,
        kind,
        resource,
        Type::String,
        Type::String,
        Type::String,
        Type::String,
        Type::Object(user),
        Type::Bool,
        Type::Dyn,
    ];
    let fields = REQUEST_FIELDS.iter().copied().zip(types).collect();
    Type::Object(ObjectType::new("kubernetes.AdmissionRequest", fields))
}

const REQUEST_FIELDS: [&str; 12] = [
    "kind",
    "resource",
    "subResource",
    "requestKind",
    "requestResource",
    "requestSubResource",
    "name",
    "namespace",
    "operation",
    "userInfo",
    "dryRun",
    "options",
];
const KIND_FIELDS: [&str; 3] = ["group", "version", "kind"];
const RESOURCE_FIELDS: [&str; 3] = ["group", "version", "resource"];
const USER_FIELDS: [&str; 4] = ["username", "uid", "groups", "extra"];

/// Returns `None` for an empty text, which the wire form leaves out.
fn string_unless_empty(text: &str) -> Option<Value<'_>> {
    (!text.is_empty()).then(|| Value::borrowed_string(text))
}

impl RecordSource for AdmissionRequest<'_> {
    fn field_names(&self) -> &'static [&'static str] {
        &REQUEST_FIELDS
    }

    fn field(&self, index: usize) -> Option<Value<'_>> {
        match index {
            0 => Some(Value::Map(Map::Record(&self.kind))),
            1 => Some(Value::Map(Map::Record(&self.resource))),
            2 | 5 => string_unless_empty(self.subresource),
            3 => Some(Value::Map(Map::Record(&self.request_kind))),
            4 => Some(Value::Map(Map::Record(&self.request_resource))),
            6 => string_unless_empty(self.name),
            7 => string_unless_empty(self.namespace),
            8 => Some(Value::borrowed_string(self.operation)),
            9 => Some(Value::Map(Map::Record(&self.user))),
            10 => Some(Value::Bool(self.is_dry_run)),
            11 => self.options.as_ref().map(CelDocument::value),
            _ => None,
        }
    }
}

impl RecordSource for Kind<'_> {
    fn field_names(&self) -> &'static [&'static str] {
        &KIND_FIELDS
    }

    fn field(&self, index: usize) -> Option<Value<'_>> {
        let GroupVersionKind { group, version, kind } = self.0;
        [group, version, kind].get(index).map(|text| Value::borrowed_string(text))
    }
}

impl RecordSource for Resource<'_> {
    fn field_names(&self) -> &'static [&'static str] {
        &RESOURCE_FIELDS
    }

    fn field(&self, index: usize) -> Option<Value<'_>> {
        let GroupVersionResource { group, version, resource } = self.0;
        [group, version, resource].get(index).map(|text| Value::borrowed_string(text))
    }
}

impl RecordSource for UserInfo<'_> {
    fn field_names(&self) -> &'static [&'static str] {
        &USER_FIELDS
    }

    fn field(&self, index: usize) -> Option<Value<'_>> {
        let user = self.user?;
        match index {
            0 => string_unless_empty(&user.name),
            1 => string_unless_empty(&user.uid),
            2 => (!user.groups.is_empty()).then_some(Value::List(List::Strings(&user.groups))),
            3 => self.extra.as_ref().map(|extra| Value::Map(Map::Source(extra))),
            _ => None,
        }
    }
}

impl MapSource for Extra<'_> {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn get(&self, key: &str) -> Option<Value<'_>> {
        self.0.get(key).map(|values| Value::List(List::Strings(values)))
    }

    fn map_entries(&self) -> Box<dyn Iterator<Item = (&str, Value<'_>)> + '_> {
        let entries = self.0.iter();
        Box::new(entries.map(|(key, values)| (key.as_str(), Value::List(List::Strings(values)))))
    }
}
