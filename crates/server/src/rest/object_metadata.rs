//! Checks and changes the metadata of an object that a client sent.

use admission::normalize_initializers;
use api_object::{Status, Tree};
use api_resources::Resource;
use authz::User;
use field_errors::FieldErrors;
use serde_json::Value;

use crate::rest::RequestContext;

/// Normalizes the metadata: drops unknown, null and empty members.
///
/// # Errors
/// 400 if a member has a wrong type.
pub(crate) fn normalize_metadata(ctx: &RequestContext<'_>, tree: &mut Tree) -> Result<(), Status> {
    let shaped = api_object::normalize_metadata(tree).and_then(|()| normalize_initializers(tree));
    shaped.map_err(|error| {
        let (kind, version) = (&ctx.resource.kind, &ctx.resource.version);
        Status::bad_request(format!(
            "{kind} in version \"{version}\" cannot be handled as a {kind}: {error}"
        ))
    })
}

/// Checks that an object that replaces or changes another one names it, and sets its namespace. The metadata
/// is normalized.
///
/// # Errors
/// 400 if the name is missing, or the name or the namespace is another one than that of the URL.
pub(super) fn check_names_match_url(
    ctx: &RequestContext<'_>,
    tree: &mut Tree,
) -> Result<(), Status> {
    api_object::check_and_set_namespace(tree, ctx.namespace.unwrap_or_default())?;
    let (name, own) = (ctx.name, api_object::name(tree));
    if own.is_empty() {
        return Err(Status::bad_request(format!(
            "the name of the object ({name} based on URL) was undeterminable: name must be provided"
        )));
    }
    if own != name {
        return Err(name_mismatch_status(own, name));
    }
    Ok(())
}

fn name_mismatch_status(own: &str, name: &str) -> Status {
    Status::bad_request(format!(
        "the name of the object ({own}) does not match the name on the URL ({name})"
    ))
}

/// Sets the name of an object to the authorized name (that of the URL). Refuses an object that has a
/// different name.
pub(super) fn set_authorized_name(ctx: &RequestContext<'_>, tree: &mut Tree) -> Result<(), Status> {
    let (metadata, name) = (api_object::metadata_mut(tree), ctx.name);
    match api_object::string_member(metadata, "name") {
        "" => {
            metadata.insert("name".to_owned(), name.into());
            Ok(())
        }
        own if own == name => Ok(()),
        own => Err(name_mismatch_status(own, name)),
    }
}

/// Removes repeated owner references and warns about them.
pub(super) fn dedup_owner_references(tree: &mut Tree, warnings: &mut Vec<String>) {
    let repeated = api_object::remove_duplicate_owners(tree);
    if !repeated.is_empty() {
        warnings.push(api_object::duplicate_owners_warning(&repeated));
    }
}

/// The errors in the metadata of an object, by the name rule of its resource.
pub(crate) fn validate_metadata(ctx: &RequestContext<'_>, tree: &Tree) -> FieldErrors {
    let rule = ctx.resource.name_rule;
    let name_faults = |name: &str, is_prefix: bool| match is_prefix {
        true => rule.name_prefix_faults(name),
        false => rule.name_faults(name),
    };
    let mut errors = api_object::validate_metadata(tree, ctx.resource.is_namespaced(), name_faults);
    if requires_qualified_finalizers(ctx.resource) {
        errors.append(api_object::validate_qualified_finalizers(tree));
    }
    errors
}

/// Whether finalizers of the resource have to be qualified. As in Kubernetes, custom resources and some built-in
/// ones are exempt.
fn requires_qualified_finalizers(resource: &Resource) -> bool {
    let is_exempt = match resource.group.as_str() {
        "admissionregistration.k8s.io"
        | "apiextensions.k8s.io"
        | "apiregistration.k8s.io"
        | "coordination.k8s.io"
        | "node.k8s.io"
        | "policy" => true,
        _ => resource.kind == "Event",
    };
    !resource.is_custom_resource() && !is_exempt
}

/// The user in the form in which some objects record their requester, such as certificate requests.
pub(crate) fn requester_user_fields(user: &User) -> Tree {
    let mut requester_metadata = Tree::new();
    requester_metadata.insert("username".to_owned(), user.name.as_str().into());
    if !user.uid.is_empty() {
        requester_metadata.insert("uid".to_owned(), user.uid.as_str().into());
    }
    requester_metadata.insert("groups".to_owned(), user.groups.clone().into());
    if !user.extra.is_empty() {
        let extra = user.extra.iter().map(|(key, values)| (key.clone(), values.clone().into()));
        requester_metadata.insert("extra".to_owned(), Value::Object(extra.collect()));
    }
    requester_metadata
}
