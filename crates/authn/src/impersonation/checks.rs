//! The questions that one mode asks.

use std::collections::BTreeMap;

use api_object::Status;
use authz::{Attributes, Authorizer, Reason, Recorder, Resource, Target, User, Verdict};
use field_errors::{FieldErrors, FieldPath};

use super::Forbid;
use super::mode::ImpersonationMode;
use crate::identity::{
    ANONYMOUS_USER, AUTHENTICATED_GROUP, MASTERS_GROUP, NODES_GROUP, UNAUTHENTICATED_GROUP,
    service_account_groups, split_node, split_service_account,
};

const AUTHENTICATION_GROUP: &str = "authentication.k8s.io";
/// Stands for every name, in a question whether all are allowed.
const ALL_NAMES: &str = "*";
/// From so many questions on, a constrained mode first asks whether all are allowed.
const QUESTIONS_MANY: usize = 4;
/// The key under which a service account shows, instead of its extra, what keys it has.
const ASSOCIATED_KEYS_KEY: &str = "authentication.kubernetes.io/associated-node-keys";

/// One mode, about to be tried.
pub(super) struct Checks<'a> {
    mode: ImpersonationMode,
    /// The request at hand.
    request: &'a Attributes<'a>,
    /// Who asks, as the authorizer shall see it.
    requestor: User,
    authorizer: &'a dyn Authorizer,
    forbid: Forbid,
}

impl<'a> Checks<'a> {
    pub(super) fn new(
        mode: ImpersonationMode,
        request: &'a Attributes<'a>,
        requestor: &User,
        authorizer: &'a dyn Authorizer,
        forbid: Forbid,
    ) -> Self {
        let mut requestor = requestor.clone();
        if mode == ImpersonationMode::AssociatedNode {
            // A permission to be one's own node must not depend on which one that is.
            let keys = requestor.extra.keys().cloned().collect();
            requestor.extra = BTreeMap::from([(ASSOCIATED_KEYS_KEY.to_owned(), keys)]);
        }
        Self { mode, request, requestor, authorizer, forbid }
    }

    /// Asks everything, and returns the user that results.
    ///
    /// 1. In constrained modes: may the request at hand be done in this mode?
    /// 2. May one be that user, and have that uid, those groups and that extra?
    pub(super) async fn run(&self, wanted: &User) -> Result<User, Status> {
        if self.mode.is_constrained() {
            let verb = format!("impersonate-on:{}:{}", self.mode.name(), self.request.verb);
            self.ask(&Attributes { verb: &verb, ..*self.request }).await?;
        }
        let mut user = wanted.clone();
        self.check_name(wanted, &mut user).await?;
        if !wanted.uid.is_empty() {
            let resource = Resource { name: &wanted.uid, ..authentication("uids") };
            self.ask_about(resource).await?;
        }
        self.check_groups(&wanted.groups).await?;
        self.check_extra(&wanted.extra).await?;
        settle_groups(&mut user);
        Ok(user)
    }

    async fn check_name(&self, wanted: &User, user: &mut User) -> Result<(), Status> {
        let mut resource = Resource { name: &wanted.name, ..self.named("users") };
        if let Some(node) = split_node(&wanted.name).filter(|_| self.mode.is_constrained()) {
            let is_own = self.mode == ImpersonationMode::AssociatedNode;
            let name = if is_own { ALL_NAMES } else { node };
            resource = Resource { name, ..self.named("nodes") };
            user.groups = vec![NODES_GROUP.to_owned()];
        }
        if let Some((namespace, name)) = split_service_account(&wanted.name) {
            resource = Resource { namespace, name, ..self.named("serviceaccounts") };
            if wanted.groups.is_empty() {
                user.groups = service_account_groups(namespace);
            }
        }
        self.ask_about(resource).await
    }

    async fn check_groups(&self, groups: &[String]) -> Result<(), Status> {
        let resource = self.named("groups");
        if self.mode.is_constrained() {
            if groups.iter().any(String::is_empty) {
                let why = "impersonating the empty string group is not allowed";
                return Err(self.refuse(resource, why));
            }
            if groups.iter().any(|group| group == MASTERS_GROUP) {
                let resource = Resource { name: MASTERS_GROUP, ..resource };
                let why = "impersonating the system:masters group is not allowed";
                return Err(self.refuse(resource, why));
            }
            let all = Resource { name: ALL_NAMES, ..resource };
            if groups.len() >= QUESTIONS_MANY && self.ask_about(all).await.is_ok() {
                return Ok(());
            }
        }
        for group in groups {
            self.ask_about(Resource { name: group, ..resource }).await?;
        }
        Ok(())
    }

    async fn check_extra(&self, extra: &BTreeMap<String, Vec<String>>) -> Result<(), Status> {
        let resource = authentication("userextras");
        if self.mode.is_constrained() {
            if let Some(fault) = extra_fault(extra) {
                return Err(self.refuse(resource, &fault));
            }
            // Every key has a value here, so there are at least as many values as keys.
            let n_values: usize = extra.values().map(Vec::len).sum();
            let all = Resource { subresource: ALL_NAMES, name: ALL_NAMES, ..resource };
            if n_values >= QUESTIONS_MANY && self.ask_about(all).await.is_ok() {
                return Ok(());
            }
        }
        for (key, values) in extra {
            for value in values {
                let resource = Resource { subresource: key, name: value, ..resource };
                self.ask_about(resource).await?;
            }
        }
        Ok(())
    }

    /// A resource that stands for names. Constrained modes have moved it to another group.
    fn named(&self, resource: &'static str) -> Resource<'static> {
        if self.mode.is_constrained() {
            authentication(resource)
        } else {
            Resource { api_version: "v1", resource, ..Resource::default() }
        }
    }

    async fn ask_about(&self, resource: Resource<'_>) -> Result<(), Status> {
        self.ask(&self.question(resource)).await
    }

    /// Asks one question. An allow counts even if something failed beside it.
    async fn ask(&self, attributes: &Attributes<'_>) -> Result<(), Status> {
        let attributes = Attributes { user: Some(&self.requestor), ..*attributes };
        let decision = self.authorizer.authorize(&attributes, Recorder::off()).await;
        match decision.verdict {
            Verdict::Allow => Ok(()),
            Verdict::Unavailable(why) => Err(Status::undecided(why)),
            Verdict::Deny | Verdict::NoOpinion => {
                let reason = match decision.error {
                    None => decision.reason,
                    Some(error) if decision.reason.is_empty() => error.to_string().into(),
                    Some(error) => format!("{error}: {}", decision.reason).into(),
                };
                Err((self.forbid)(&attributes, &reason))
            }
        }
    }

    /// A refusal without a question.
    fn refuse(&self, resource: Resource<'_>, why: &str) -> Status {
        (self.forbid)(&self.question(resource), &Reason::from(why.to_owned()))
    }

    fn question<'q>(&'q self, resource: Resource<'q>) -> Attributes<'q> {
        let target = Target::Resource(resource);
        Attributes { user: Some(&self.requestor), verb: self.mode.verb(), target }
    }
}

fn authentication(resource: &'static str) -> Resource<'static> {
    let (api_group, api_version) = (AUTHENTICATION_GROUP, "v1");
    Resource { api_group, api_version, resource, ..Resource::default() }
}

/// Everybody is either authenticated or not, also who is impersonated.
fn settle_groups(user: &mut User) {
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

/// Why extra can not be had in a constrained mode.
fn extra_fault(extra: &BTreeMap<String, Vec<String>>) -> Option<String> {
    extra.iter().find_map(|(key, values)| {
        if key.is_empty() {
            return Some("impersonating the empty string key in extra is not allowed".to_owned());
        }
        let faults = prefixed_path_faults(key);
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

/// Why a key is not a domain followed by a path, such as `acme.io/foo`.
fn prefixed_path_faults(key: &str) -> FieldErrors {
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
        extra_fault(&BTreeMap::from([(key.to_owned(), values)]))
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
            settle_groups(&mut user);
            assert_eq!(user.groups, want);
        }
    }
}
