//! The authorization checks of one impersonation mode.

use std::collections::BTreeMap;

use authz::{
    Attributes, Authorizer, Namespace, Reason, Resource, Target, TraceRecorder, UnavailableCause,
    User, Verb, Verdict,
};
use field_errors::{FieldErrors, FieldPath};

use super::impersonation_error::MissingPermission;
use super::impersonation_mode::ImpersonationMode;
use crate::well_known_identities::{
    ANONYMOUS_USER, AUTHENTICATED_GROUP, MASTERS_GROUP, NODES_GROUP, UNAUTHENTICATED_GROUP,
    parse_node_user_name, service_account_groups, split_service_account_user_name,
};

const AUTHENTICATION_GROUP: &str = "authentication.k8s.io";
/// The wildcard name that asks for permission to impersonate every name.
const ALL_NAMES: &str = "*";
/// With this many names, a constrained mode first checks the wildcard.
const WILDCARD_CHECK_MIN: usize = 4;
/// The extra key that replaces the extra of a service account with the list of its keys.
const ASSOCIATED_KEYS_KEY: &str = "authentication.kubernetes.io/associated-node-keys";

/// The checks of one mode for one request.
pub(super) struct ImpersonationChecks<'a> {
    impersonation_mode: ImpersonationMode,
    /// The attributes of the request itself.
    request_attributes: &'a Attributes<'a>,
    /// The authenticated user, as the authorizer sees it.
    requestor: User,
    authorizer: &'a dyn Authorizer,
}

/// Why the checks of one mode do not all pass.
#[derive(Debug)]
pub(super) enum ImpersonationCheckError {
    /// The requestor lacks a permission.
    Missing(Box<MissingPermission>),
    /// This server could not get an authorization decision.
    Undecided(UnavailableCause),
}

impl<'a> ImpersonationChecks<'a> {
    pub(super) fn new(
        mode: ImpersonationMode,
        request_attributes: &'a Attributes<'a>,
        requestor: &User,
        authorizer: &'a dyn Authorizer,
    ) -> Self {
        let mut requestor = requestor.clone();
        if mode == ImpersonationMode::AssociatedNode {
            // The permission to impersonate the own node must not depend on which node that is.
            let keys = requestor.extra.keys().cloned().collect();
            requestor.extra = BTreeMap::from([(ASSOCIATED_KEYS_KEY.to_owned(), keys)]);
        }
        Self { impersonation_mode: mode, request_attributes, requestor, authorizer }
    }

    /// The authenticated user, as the authorizer sees it.
    pub(super) fn into_requestor(self) -> User {
        self.requestor
    }

    /// Runs all checks and returns the impersonated user.
    ///
    /// 1. In constrained modes: may the user perform the request in this mode?
    /// 2. May the user impersonate that name, uid, groups and extra?
    pub(super) async fn check_impersonation_permissions(
        &self,
        requested: &User,
    ) -> Result<User, ImpersonationCheckError> {
        let verb = self.request_attributes.verb;
        if let Some(verb) = self.impersonation_mode.verb_for_action(verb.as_str()) {
            self.check_allowed(&Attributes { verb: Verb::new(&verb), ..*self.request_attributes })
                .await?;
        }
        let mut user = requested.clone();
        self.check_may_impersonate_name(requested, &mut user).await?;
        if !requested.uid.is_empty() {
            let resource =
                Resource { name: &requested.uid, ..authentication_group_resource("uids") };
            self.check_resource_allowed(resource).await?;
        }
        self.check_may_impersonate_groups(&requested.groups).await?;
        self.check_may_impersonate_extra(&requested.extra).await?;
        add_authentication_groups(&mut user);
        Ok(user)
    }

    async fn check_may_impersonate_name(
        &self,
        requested: &User,
        user: &mut User,
    ) -> Result<(), ImpersonationCheckError> {
        let mut resource =
            Resource { name: &requested.name, ..self.impersonated_resource("users") };
        if let Some(node) = parse_node_user_name(&requested.name)
            .filter(|_| self.impersonation_mode.is_constrained())
        {
            let is_own = self.impersonation_mode == ImpersonationMode::AssociatedNode;
            let name = if is_own { ALL_NAMES } else { node };
            resource = Resource { name, ..self.impersonated_resource("nodes") };
            user.groups = vec![NODES_GROUP.to_owned()];
        }
        if let Some((namespace, name)) = split_service_account_user_name(&requested.name) {
            resource = Resource {
                namespace: Namespace::new(namespace),
                name,
                ..self.impersonated_resource("serviceaccounts")
            };
            if requested.groups.is_empty() {
                user.groups = service_account_groups(namespace);
            }
        }
        self.check_resource_allowed(resource).await
    }

    async fn check_may_impersonate_groups(
        &self,
        groups: &[String],
    ) -> Result<(), ImpersonationCheckError> {
        let resource = self.impersonated_resource("groups");
        if self.impersonation_mode.is_constrained() {
            if groups.iter().any(String::is_empty) {
                let why = "impersonating the empty string group is not allowed";
                return Err(self.deny_without_check(resource, why));
            }
            if groups.iter().any(|group| group == MASTERS_GROUP) {
                let resource = Resource { name: MASTERS_GROUP, ..resource };
                let why = "impersonating the system:masters group is not allowed";
                return Err(self.deny_without_check(resource, why));
            }
            let all = Resource { name: ALL_NAMES, ..resource };
            if groups.len() >= WILDCARD_CHECK_MIN && self.check_resource_allowed(all).await.is_ok()
            {
                return Ok(());
            }
        }
        for group in groups {
            self.check_resource_allowed(Resource { name: group, ..resource }).await?;
        }
        Ok(())
    }

    async fn check_may_impersonate_extra(
        &self,
        extra: &BTreeMap<String, Vec<String>>,
    ) -> Result<(), ImpersonationCheckError> {
        let resource = authentication_group_resource("userextras");
        if self.impersonation_mode.is_constrained() {
            if let Some(fault) = find_extra_fault(extra) {
                return Err(self.deny_without_check(resource, &fault));
            }
            // Every key has a value here, so there are at least as many values as keys.
            let n_values: usize = extra.values().map(Vec::len).sum();
            let all = Resource { subresource: ALL_NAMES, name: ALL_NAMES, ..resource };
            if n_values >= WILDCARD_CHECK_MIN && self.check_resource_allowed(all).await.is_ok() {
                return Ok(());
            }
        }
        for (key, values) in extra {
            for value in values {
                let resource = Resource { subresource: key, name: value, ..resource };
                self.check_resource_allowed(resource).await?;
            }
        }
        Ok(())
    }

    /// A resource of names that can be impersonated. Constrained modes use the group
    /// `authentication.k8s.io`, the unconstrained mode the core group.
    fn impersonated_resource(&self, resource: &'static str) -> Resource<'static> {
        if self.impersonation_mode.is_constrained() {
            authentication_group_resource(resource)
        } else {
            Resource { api_version: "v1", resource, ..Resource::default() }
        }
    }

    async fn check_resource_allowed(
        &self,
        resource: Resource<'_>,
    ) -> Result<(), ImpersonationCheckError> {
        self.check_allowed(&self.resource_attributes(resource)).await
    }

    /// Runs one authorization check. An allow counts even if another authorizer failed.
    async fn check_allowed(
        &self,
        attributes: &Attributes<'_>,
    ) -> Result<(), ImpersonationCheckError> {
        let attributes = Attributes { user: Some(&self.requestor), ..*attributes };
        let decision =
            self.authorizer.authorize(&attributes, TraceRecorder::disabled_recorder()).await;
        match decision.verdict {
            Verdict::Allow => Ok(()),
            Verdict::Unavailable(why) => Err(ImpersonationCheckError::Undecided(why)),
            Verdict::Deny | Verdict::NoOpinion => {
                let reason = match decision.error {
                    None => decision.reason,
                    Some(error) if decision.reason.is_empty() => error.to_string().into(),
                    Some(error) => format!("{error}: {}", decision.reason).into(),
                };
                Err(self.missing_permission_error(&attributes, reason))
            }
        }
    }

    /// Refuses without an authorization check.
    fn deny_without_check(&self, resource: Resource<'_>, why: &str) -> ImpersonationCheckError {
        self.missing_permission_error(
            &self.resource_attributes(resource),
            Reason::from(why.to_owned()),
        )
    }

    fn missing_permission_error(
        &self,
        attributes: &Attributes<'_>,
        reason: Reason,
    ) -> ImpersonationCheckError {
        let missing = MissingPermission::new(&self.requestor, attributes, reason);
        ImpersonationCheckError::Missing(Box::new(missing))
    }

    fn resource_attributes<'q>(&'q self, resource: Resource<'q>) -> Attributes<'q> {
        let target = Target::Resource(resource);
        Attributes {
            user: Some(&self.requestor),
            verb: Verb::new(self.impersonation_mode.verb()),
            target,
        }
    }
}

fn authentication_group_resource(resource: &'static str) -> Resource<'static> {
    let (api_group, api_version) = (AUTHENTICATION_GROUP, "v1");
    Resource { api_group, api_version, resource, ..Resource::default() }
}

/// Adds `system:authenticated` or `system:unauthenticated`, so that every impersonated user is in
/// one of both.
fn add_authentication_groups(user: &mut User) {
    let group = if user.name == ANONYMOUS_USER {
        UNAUTHENTICATED_GROUP
    } else if user.is_in_group(UNAUTHENTICATED_GROUP) {
        return;
    } else {
        AUTHENTICATED_GROUP
    };
    if !user.is_in_group(group) {
        user.groups.push(group.to_owned());
    }
}

/// The first fault that forbids the extra values in a constrained mode.
fn find_extra_fault(extra: &BTreeMap<String, Vec<String>>) -> Option<String> {
    extra.iter().find_map(|(key, values)| {
        if key.is_empty() {
            return Some("impersonating the empty string key in extra is not allowed".to_owned());
        }
        let faults = validate_prefixed_path(key);
        if !faults.is_empty() {
            return Some(format!("impersonating an invalid key in extra is not allowed: {faults}"));
        }
        if *key != key.to_lowercase() {
            let key = go_compat::quote(key);
            return Some(format!(
                "impersonating a non-lowercase key in extra is not allowed: {key}"
            ));
        }
        if values.is_empty() {
            return Some("impersonating empty values in extra is not allowed".to_owned());
        }
        values
            .iter()
            .any(String::is_empty)
            .then(|| "impersonating the empty string value in extra is not allowed".to_owned())
    })
}

/// Checks that a key is a domain followed by a path, such as `acme.io/foo`.
fn validate_prefixed_path(key: &str) -> FieldErrors {
    let extra = FieldPath::root("extra");
    let at = extra.child("key");
    let (host, path) = match key.split_once('/') {
        Some((host, path)) if !host.is_empty() && !path.is_empty() => (host, path),
        _ => {
            let detail = "must be a domain-prefixed path (such as \"acme.io/foo\")";
            return at.invalid(key, detail).into();
        }
    };
    let host_faults = field_errors::dns1123_subdomain_faults(host);
    let mut faults: FieldErrors = host_faults.iter().map(|fault| at.invalid(host, fault)).collect();
    let is_allowed =
        |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~%!$&'()*+,;=:".contains(&byte);
    if !path.bytes().all(is_allowed) {
        let detail = "Invalid path (regex used for validation is \
                      '[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')";
        faults.push(at.invalid(path, detail));
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(key: &str, values: &[&str]) -> Option<String> {
        let values = values.iter().map(|&value| value.to_owned()).collect();
        find_extra_fault(&BTreeMap::from([(key.to_owned(), values)]))
    }

    #[test]
    fn extra_of_constrained_modes_is_checked() {
        assert_eq!(fault("example.com/a/b%20c", &["v"]), None);
        let domain =
            "impersonating an invalid key in extra is not allowed: extra.key: Invalid value: ";
        let path = "must be a domain-prefixed path (such as \"acme.io/foo\")";
        for (key, values, want) in [
            (
                "",
                &["v"][..],
                "impersonating the empty string key in extra is not allowed".to_owned(),
            ),
            ("scopes", &["v"], format!("{domain}\"scopes\": {path}")),
            ("/a", &["v"], format!("{domain}\"/a\": {path}")),
            (
                "a.b/c d",
                &["v"],
                format!(
                    "{domain}\"c d\": Invalid path (regex used for validation is \
                     '[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')"
                ),
            ),
            (
                "a.b/C",
                &["v"],
                "impersonating a non-lowercase key in extra is not allowed: \"a.b/C\"".to_owned(),
            ),
            ("a.b/c", &[], "impersonating empty values in extra is not allowed".to_owned()),
            (
                "a.b/c",
                &["v", ""],
                "impersonating the empty string value in extra is not allowed".to_owned(),
            ),
        ] {
            assert_eq!(fault(key, values).as_deref(), Some(want.as_str()), "{key}");
        }
        assert!(
            fault("A.b/c", &["v"]).unwrap().starts_with(&format!("{domain}\"A.b\": a lowercase"))
        );
    }

    #[test]
    fn groups_say_who_is_authenticated() {
        for (name, groups, want) in [
            ("u", &[][..], &[AUTHENTICATED_GROUP][..]),
            ("u", &["g", AUTHENTICATED_GROUP], &["g", AUTHENTICATED_GROUP]),
            ("u", &[UNAUTHENTICATED_GROUP], &[UNAUTHENTICATED_GROUP]),
            (ANONYMOUS_USER, &[], &[UNAUTHENTICATED_GROUP]),
            (ANONYMOUS_USER, &[AUTHENTICATED_GROUP], &[AUTHENTICATED_GROUP, UNAUTHENTICATED_GROUP]),
        ] {
            let groups = groups.iter().map(|&group| group.to_owned()).collect();
            let mut user = User { name: name.to_owned(), groups, ..User::default() };
            add_authentication_groups(&mut user);
            assert_eq!(user.groups, want);
        }
    }
}
