//! The attributes of a request that authorizers decide by.

use crate::namespace::Namespace;
use crate::selector::{FieldRequirement, LabelRequirement, Selector};
use crate::user::User;
use crate::verb::Verb;

/// The attributes of one request.
///
/// The value borrows all its parts and allocates nothing. The attributes of a related request are a copy with one part
/// replaced, such as `Attributes { verb: Verb::CREATE, ..attributes }`.
#[derive(Debug, Clone, Copy)]
pub struct Attributes<'a> {
    /// The user who sends the request. `None` if the request has no authenticated user, and when an authorizer
    /// lists the allowed subjects.
    pub user: Option<&'a User>,
    /// The API verb of a resource request, or the lower-case HTTP method of any other. May be
    /// empty, for HTTP methods without an API verb.
    pub verb: Verb<'a>,
    /// The resource or path that the verb applies to.
    pub target: Target<'a>,
}

/// A request is for a resource or for a path: never both, never neither.
#[derive(Debug, Clone, Copy)]
pub enum Target<'a> {
    /// A request for an API resource.
    Resource(Resource<'a>),
    /// A path that names no API resource, such as `/healthz`; percent-decoded, without the query.
    Path(&'a str),
}

/// The resource a request is for. Parts that the request does not name are empty.
#[derive(Debug, Clone, Copy, Default)]
pub struct Resource<'a> {
    /// The path of the request; empty if the attributes come from an access review.
    pub path: &'a str,
    /// The API group; empty for the core group.
    pub api_group: &'a str,
    /// The version within the group; `*` if any version is meant.
    pub api_version: &'a str,
    /// The namespace; the cluster scope for a request for a cluster-scoped resource or across all namespaces.
    pub namespace: Namespace<'a>,
    /// The plural, lower-case name of the resource.
    pub resource: &'a str,
    /// The subresource, such as `log`; empty for none.
    pub subresource: &'a str,
    /// The name of the object.
    pub name: &'a str,
    /// The field selector that narrows the request. A selector without requirements or with an error does not
    /// narrow the request.
    pub field_selector: Option<&'a Selector<FieldRequirement>>,
    /// The label selector that narrows the request. It follows the rules of the field selector.
    pub label_selector: Option<&'a Selector<LabelRequirement>>,
}

impl<'a> Attributes<'a> {
    /// Reports whether the verb only reads: see [`Verb::is_read_only`].
    pub fn is_read_only(&self) -> bool {
        self.verb.is_read_only()
    }

    /// The resource, unless the request is for a path.
    pub fn resource(&self) -> Option<&Resource<'a>> {
        match &self.target {
            Target::Resource(resource) => Some(resource),
            Target::Path(_) => None,
        }
    }

    /// The path of the request, for both kinds of target.
    pub fn path(&self) -> &'a str {
        match &self.target {
            Target::Resource(resource) => resource.path,
            Target::Path(path) => path,
        }
    }
}

impl<'a> Resource<'a> {
    /// The requirements of the field selector, all of which must hold. Empty if the request has no field selector
    /// or the field selector does not parse.
    pub fn field_requirements(&self) -> &'a [FieldRequirement] {
        self.field_selector.map_or(&[], |selector| &selector.requirements)
    }

    /// The requirements of the label selector, all of which must hold. Empty if the request has no label selector
    /// or the label selector does not parse.
    pub fn label_requirements(&self) -> &'a [LabelRequirement] {
        self.label_selector.map_or(&[], |selector| &selector.requirements)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_three_verbs_are_read_only() {
        for (verb, want) in [
            ("get", true),
            ("list", true),
            ("watch", true),
            ("head", false),
            ("Get", false),
            ("", false),
            ("proxy", false),
            ("create", false),
        ] {
            let attributes =
                Attributes { user: None, verb: Verb::new(verb), target: Target::Path("/healthz") };
            assert_eq!(attributes.is_read_only(), want, "{verb}");
        }
    }

    #[test]
    fn the_attributes_of_a_related_request_are_a_copy() {
        let resource = Resource { path: "/p", resource: "pods", ..Resource::default() };
        let get = Attributes { user: None, verb: Verb::GET, target: Target::Resource(resource) };
        let create = Attributes { verb: Verb::CREATE, ..get };
        assert_eq!(create.resource().map(|resource| resource.resource), Some("pods"));
        assert_eq!((create.path(), get.verb), ("/p", Verb::GET));
    }
}
