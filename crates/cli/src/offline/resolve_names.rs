//! Resolves the resources, verbs and users that a question names.

use api_resources::{
    ResolvedResource, ResourceName, ResourceNameError, Scope, VerbTarget, check_verb,
    qualified_name,
};
use authz::User;

use super::implicit_groups::{SERVICE_ACCOUNT_PREFIX, user_with_implicit_groups};
use super::load_failure::LoadFailure;
use super::offline_authorizer::OfflineAuthorizer;
use super::offline_flags::{ResourceNameFlags, SubjectFlags};

/// The names of one question, and remarks for standard error about how they are understood.
pub(crate) struct NameResolver<'a> {
    offline_authorizer: &'a OfflineAuthorizer,
    resource_name_flags: ResourceNameFlags,
    pub(crate) name_resolution_remarks: Vec<String>,
}

impl<'a> NameResolver<'a> {
    pub(crate) fn new(authorizer: &'a OfflineAuthorizer, flags: ResourceNameFlags) -> Self {
        Self {
            offline_authorizer: authorizer,
            resource_name_flags: flags,
            name_resolution_remarks: Vec::new(),
        }
    }

    /// Finds the resource of a name.
    ///
    /// # Errors
    /// The name is unknown or ambiguous.
    pub(crate) fn resolve_resource(
        &mut self,
        name: &ResourceName,
        namespace: &str,
    ) -> Result<ResolvedResource, LoadFailure> {
        let resolved = match self.offline_authorizer.resource_names().resolve_resource_name(name) {
            Ok(resolved) => resolved,
            Err(ResourceNameError::AmbiguousName { .. })
                if name.group.is_some() && self.resource_name_flags.allow_unknown_resources =>
            {
                name.to_literal_resource()
            }
            Err(error @ ResourceNameError::AmbiguousName { .. }) => {
                return Err(LoadFailure::Usage(vec![error.to_string()]));
            }
            Err(_) if self.resource_name_flags.allow_unknown_resources => {
                name.to_literal_resource()
            }
            Err(error) => {
                let hint = "a resource of a CustomResourceDefinition is known if -f names that definition, and \
                            --allow-unknown accepts every name";
                return Err(LoadFailure::Usage(vec![format!("{error} ({hint})")]));
            }
        };
        if !resolved.other_matching_resources.is_empty() {
            let others: Vec<String> =
                resolved.other_matching_resources.iter().map(qualified_name).collect();
            let (written, own) = (&name.name, resolved.qualified_name());
            self.name_resolution_remarks.push(format!(
                "note: `{written}` stands for {own} and not for {}",
                others.join(" or ")
            ));
        }
        // A request for a Namespace has that namespace.
        let is_namespace = resolved.group.is_empty() && resolved.plural == "namespaces";
        if resolved.scope == Some(Scope::Cluster) && !namespace.is_empty() && !is_namespace {
            self.name_resolution_remarks.push(format!(
                "warning: {} belong to no namespace, so no request for them has one; leave out -n",
                resolved.qualified_name()
            ));
        }
        Ok(resolved)
    }

    /// Returns the namespace of a request: the given one, else that of the context of a cluster if the resource is in
    /// namespaces.
    pub(crate) fn request_namespace(
        &self,
        resolved: &ResolvedResource,
        given: Option<&str>,
    ) -> String {
        let of_context = match resolved.scope {
            Some(Scope::Namespaced) => self.offline_authorizer.context_namespace(),
            Some(Scope::Cluster) | None => None,
        };
        given.or(of_context).unwrap_or_default().to_owned()
    }

    /// Adds a warning if no request has the verb.
    pub(crate) fn warn_of_unknown_verb(&mut self, verb: &str, target: VerbTarget) {
        if let Some(unknown) = check_verb(verb, target) {
            self.name_resolution_remarks.push(format!("warning: {unknown}"));
        }
    }

    /// Returns the user of the flags, with the groups that a server adds.
    pub(crate) fn resolve_user(&mut self, flags: &SubjectFlags) -> User {
        let name = flags.user.as_deref().unwrap_or_default();
        let is_user = self.offline_authorizer.has_user_subject(name);
        match parse_service_account(name).filter(|_| !is_user) {
            None => user_with_implicit_groups(name.to_owned(), flags),
            Some((namespace, account)) => {
                let full = format!("{SERVICE_ACCOUNT_PREFIX}{namespace}:{account}");
                // With a colon it may be the user of an identity provider, such as `oidc:ana`.
                if name.contains(':') && !self.offline_authorizer.has_service_account_subject(&full)
                {
                    self.name_resolution_remarks.push(format!(
                        "note: `{name}` stands for the service account {full}; no binding names it"
                    ));
                }
                user_with_implicit_groups(full, flags)
            }
        }
    }
}

/// Reads `NAMESPACE/NAME` or `NAMESPACE:NAME`. Names of users that begin with `system:` are not meant.
fn parse_service_account(text: &str) -> Option<(&str, &str)> {
    let (namespace, name) = text.split_once('/').or_else(|| text.split_once(':'))?;
    let is_account = namespace != "system"
        && field_errors::dns1123_label_faults(namespace).is_empty()
        && field_errors::dns1123_subdomain_faults(name).is_empty();
    is_account.then_some((namespace, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn service_accounts_have_two_short_forms() {
        for (text, want) in [
            ("ci/builder", Some(("ci", "builder"))),
            ("ci:builder", Some(("ci", "builder"))),
            ("ci:builder.v1", Some(("ci", "builder.v1"))),
            ("system:admin", None),
            ("system:serviceaccount:ci:builder", None),
            ("ana", None),
            ("ana@example.com", None),
            ("https://issuer/ana", None),
            ("CN=ana/O=dev", None),
            ("ci/", None),
            ("", None),
        ] {
            assert_eq!(parse_service_account(text), want, "{text}");
        }
    }
}
