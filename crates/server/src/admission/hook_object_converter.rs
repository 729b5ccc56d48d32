//! Conversion and defaults of the objects that hooks review.

use admission::{GroupVersionKind, Operation};
use admission_hooks::{ObjectConversionError, ObjectConverter, UntypedConverter};
use api_object::{GroupVersion, Tree};
use api_resources::{PrepareError, Registry, Resource, kind_of_written_object};
use authz::User;
use codec::ExpectedKind;

use crate::rest::requester_user_fields;

/// Converts objects between served versions, and completes them as the write of the request would.
pub(super) struct HookObjectConverter<'a> {
    pub(super) resource_registry: &'a Registry,
    pub(super) operation: Operation,
    /// The resource that is written to.
    pub(super) resource: &'a Resource,
    /// Empty for the resource itself.
    pub(super) subresource: &'a str,
    /// The user of the request.
    pub(super) user: &'a User,
    /// The stored object, if there is one.
    pub(super) old_object: Option<&'a Tree>,
}

impl ObjectConverter for HookObjectConverter<'_> {
    /// The served versions of a kind differ only in their version name, so the conversion renames it.
    fn convert_to_kind(
        &self,
        tree: &Tree,
        to: &GroupVersionKind<'_>,
    ) -> Result<Tree, ObjectConversionError> {
        UntypedConverter.convert_to_kind(tree, to)
    }

    fn decode_and_default(
        &self,
        tree: Tree,
        kind: &GroupVersionKind<'_>,
    ) -> Result<Tree, ObjectConversionError> {
        let mut tree = UntypedConverter.decode_and_default(tree, kind)?;
        check_api_version_and_kind(&mut tree, kind)?;
        if self.operation == Operation::Connect {
            // The options of a connection have no metadata.
            return Ok(tree);
        }
        let resource = self.resource_of_kind(kind);
        let expected = ExpectedKind {
            group: kind.group,
            version: kind.version,
            kind: kind.kind,
            is_custom_resource: resource.is_some_and(Resource::is_custom_resource),
        };
        // Unknown fields are dropped, as in a request without strict field validation.
        let invalid = |error: &dyn std::fmt::Display| ObjectConversionError(error.to_string());
        codec::conform_object(&mut tree, &expected).map_err(|error| invalid(&error))?;
        api_object::normalize_metadata(&mut tree).map_err(|error| invalid(&error))?;
        match resource {
            Some(resource) => {
                self.complete_object_as_stored(resource, &mut tree, kind)?;
            }
            None if self.subresource == "token" => authn::set_token_request_defaults(&mut tree),
            None => {}
        }
        Ok(tree)
    }
}

impl HookObjectConverter<'_> {
    /// Finds the resource of a kind: the resource of the request, or another version of it that a hook requests.
    fn resource_of_kind(&self, kind: &GroupVersionKind<'_>) -> Option<&Resource> {
        match *kind == kind_of_written_object(self.resource, "") {
            true => Some(self.resource),
            false => {
                let found =
                    self.resource_registry.resource_of_kind(kind.group, kind.version, kind.kind);
                found.map(std::ops::Deref::deref)
            }
        }
    }

    /// Completes the object as the write will store it.
    fn complete_object_as_stored(
        &self,
        resource: &Resource,
        tree: &mut Tree,
        kind: &GroupVersionKind<'_>,
    ) -> Result<(), ObjectConversionError> {
        let malformed = |error: PrepareError| ObjectConversionError(error.to_string());
        match (self.operation, self.old_object) {
            // A Binding is not stored; the uid in it is the one that the pod must have.
            (Operation::Create, _) if self.subresource.is_empty() && resource.is_stored() => {
                api_resources::complete_new_object(
                    resource,
                    tree,
                    &requester_user_fields(self.user),
                )
                .map_err(malformed)
            }
            (Operation::Update, Some(old)) => {
                let old = self.convert_to_kind(old, kind).map_err(|error| {
                    ObjectConversionError(format!("Internal error occurred: {error}"))
                })?;
                let subresource = Some(self.subresource).filter(|own| !own.is_empty());
                api_resources::complete_updated_object(resource, tree, &old, subresource)
                    .map_err(malformed)
            }
            (_, _) => Ok(()),
        }
    }
}

/// Refuses an object that names another kind or version than expected. A missing version is filled in.
fn check_api_version_and_kind(
    tree: &mut Tree,
    kind: &GroupVersionKind<'_>,
) -> Result<(), ObjectConversionError> {
    let wanted = GroupVersion::new(kind.group, kind.version).to_string();
    if api_object::string_member(tree, "apiVersion").is_empty() {
        tree.insert("apiVersion".to_owned(), wanted.as_str().into());
    }
    let (own_version, own_kind) =
        (api_object::string_member(tree, "apiVersion"), api_object::string_member(tree, "kind"));
    if (own_version, own_kind) == (wanted.as_str(), kind.kind) {
        return Ok(());
    }
    let wanted_kind = kind.kind;
    Err(ObjectConversionError(format!(
        "{own_kind} of {own_version} cannot stand for {wanted_kind} of {wanted}"
    )))
}
