//! What hooks have to know of kinds.

use admission::{GroupVersionKind, Operation};
use admission_hooks::{Kinds, Untyped};
use api_object::{GroupVersion, Status, Tree};
use api_resources::{Registry, Resource, written_kind};
use authz::User;
use codec::ExpectedKind;

use crate::rest::requester;

/// The kinds that are served, and the write that hooks are asked about.
pub(super) struct Served<'a> {
    pub(super) registry: &'a Registry,
    pub(super) operation: Operation,
    /// The resource that is written to.
    pub(super) resource: &'a Resource,
    /// Empty for the resource itself.
    pub(super) subresource: &'a str,
    /// The user who asks.
    pub(super) user: &'a User,
    /// The stored object, if there is one.
    pub(super) old: Option<&'a Tree>,
}

impl Kinds for Served<'_> {
    /// Versions differ in their name only.
    fn convert(&self, tree: &Tree, to: &GroupVersionKind<'_>) -> Result<Tree, String> {
        Untyped.convert(tree, to)
    }

    fn settle(&self, tree: Tree, kind: &GroupVersionKind<'_>) -> Result<Tree, String> {
        let mut tree = Untyped.settle(tree, kind)?;
        check_type(&mut tree, kind)?;
        let resource = self.resource_of(kind);
        let expected = ExpectedKind {
            group: kind.group,
            version: kind.version,
            kind: kind.kind,
            is_custom: resource.is_some_and(Resource::is_custom),
        };
        // Unknown members are dropped here as they are for any client that does not insist.
        codec::conform_object(&mut tree, &expected).map_err(|error| error.to_string())?;
        api_object::normalize_metadata(&mut tree).map_err(|error| error.to_string())?;
        match resource {
            Some(resource) => {
                self.complete(resource, &mut tree, kind).map_err(|status| status.message)?;
            }
            None if self.subresource == "token" => authn::set_token_request_defaults(&mut tree),
            None => {}
        }
        Ok(tree)
    }
}

impl Served<'_> {
    /// The resource whose objects are of a kind, which is another version of the one that is written to
    /// if a hook asks for that.
    fn resource_of(&self, kind: &GroupVersionKind<'_>) -> Option<&Resource> {
        match *kind == written_kind(self.resource, "") {
            true => Some(self.resource),
            false => {
                let found = self.registry.resource_of_kind(kind.group, kind.version, kind.kind);
                found.map(std::ops::Deref::deref)
            }
        }
    }

    /// Makes the object what it will be when it is stored.
    fn complete(
        &self,
        resource: &Resource,
        tree: &mut Tree,
        kind: &GroupVersionKind<'_>,
    ) -> Result<(), Status> {
        match (self.operation, self.old) {
            (Operation::Create, _) if self.subresource.is_empty() => {
                api_resources::before_create(resource, tree, &requester(self.user))
            }
            (Operation::Update, Some(old)) => {
                let old = self.convert(old, kind).map_err(|why| Status::internal(&why))?;
                let subresource = Some(self.subresource).filter(|own| !own.is_empty());
                api_resources::before_update(resource, tree, &old, subresource)
            }
            (_, _) => Ok(()),
        }
    }
}

/// An object stays what it is: what is stored as one kind must not call itself another. One that says
/// nothing of its version has the one that is expected.
fn check_type(tree: &mut Tree, kind: &GroupVersionKind<'_>) -> Result<(), String> {
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
    Err(format!("{own_kind} of {own_version} can not stand for {wanted_kind} of {wanted}"))
}
