//! What stored entries mean to the engine: admission §2.2, §2.7.

use std::sync::Arc;
use std::time::Duration;

use admission::ConfigurationKind::{self, ExternalHook, Mutating, Validating};
use admission::{
    ClientError, Configuration, Endpoint, FailurePolicy, Hook, MatchPolicy, ReinvocationPolicy,
    ReviewVersion, SideEffects, Snapshot,
};
use https_client::{Place, RootsError, Scheme, ServiceName, Trust};
use serde_json::{Value, json};

use crate::documents::{object, tree};

const CA_BUNDLE: &str = include_str!("ca_bundle.b64");

/// The one hook of an object; without its defaults if it is taken as it is.
fn hook(kind: ConfigurationKind, entry: Value, is_prepared: bool) -> Arc<Hook> {
    let stored = match is_prepared {
        true => object(kind, "a", json!([entry])),
        false => tree(json!({"metadata": {"name": "a"}, (kind.list()): [entry]})),
    };
    let snapshot = Snapshot::new(&[Arc::new(Configuration::compile(kind, &stored))]);
    let list = if kind == Mutating { snapshot.mutating() } else { snapshot.validating() };
    Arc::clone(&list.hooks()[0])
}

#[test]
fn defaults_are_the_same_for_entries_that_were_stored_without_them() {
    for is_prepared in [true, false] {
        let hook = hook(Mutating, json!({"name": "a.b.c"}), is_prepared);
        assert_eq!(hook.failure_policy, FailurePolicy::Fail);
        assert_eq!(hook.match_policy, MatchPolicy::Equivalent);
        assert_eq!(hook.timeout, Duration::from_secs(10));
        assert_eq!(hook.reinvocation_policy, ReinvocationPolicy::Never);
        assert_eq!(hook.side_effects, None);
        assert!(hook.namespace_selector.is_empty() && hook.object_selector.is_empty());
        assert!(hook.conditions.is_empty() && hook.review_versions.is_empty());
    }
}

#[test]
fn what_entries_say_is_what_hooks_have() {
    let entry = json!({
        "name": "a.b.c", "failurePolicy": "Ignore", "matchPolicy": "Exact", "timeoutSeconds": 99,
        "reinvocationPolicy": "IfNeeded", "sideEffects": "NoneOnDryRun",
        "admissionReviewVersions": ["v1beta1", "v7", "v1alpha1", "v1"],
    });
    let hook = hook(Mutating, entry, true);
    assert_eq!((hook.name.as_str(), hook.configuration.as_str()), ("a.b.c", "a"));
    assert_eq!(hook.failure_policy, FailurePolicy::Ignore);
    assert_eq!(hook.match_policy, MatchPolicy::Exact);
    assert_eq!(hook.timeout, Duration::from_secs(30), "no call takes longer");
    assert_eq!(hook.reinvocation_policy, ReinvocationPolicy::IfNeeded);
    assert_eq!(hook.side_effects, Some(SideEffects::NoneOnDryRun));
    assert_eq!(hook.review_versions, [ReviewVersion::V1beta1, ReviewVersion::V1]);
}

#[test]
fn a_hook_of_the_proposal_enters_as_a_validating_one() {
    let entry = json!({
        "name": "a.b.c",
        "clientConfig": {
            "service": {"namespace": "n", "name": "s"}, "urlPath": "/x", "caBundle": CA_BUNDLE.trim(),
        },
    });
    let hook = hook(ExternalHook, entry, true);
    assert_eq!(hook.failure_policy, FailurePolicy::Ignore);
    assert_eq!(hook.match_policy, MatchPolicy::Exact);
    assert_eq!(hook.timeout, Duration::from_secs(30));
    assert_eq!(hook.side_effects, Some(SideEffects::Unknown));
    assert_eq!(hook.review_versions, [ReviewVersion::V1alpha1]);
    let target = hook.client.target(8443).unwrap();
    let service = |port| ServiceName { namespace: "n".to_owned(), name: "s".to_owned(), port };
    assert_eq!(target.place, Place::Service(service(8443)), "the Service decides about the port");
    assert_eq!(target.path, "/x");
    assert!(matches!(target.trust, Trust::Roots(_)));
}

#[test]
fn a_hook_of_the_proposal_never_trusts_the_system() {
    let entry = json!({"clientConfig": {"service": {"namespace": "n", "name": "s"}}});
    let error = hook(ExternalHook, entry, false).client.target(443).unwrap_err();
    assert_eq!(error, ClientError::Authorities(RootsError::NotPem));
}

#[test]
fn webhooks_are_at_urls_or_behind_services() {
    let target =
        |config: Value| hook(Validating, json!({"clientConfig": config}), true).client.target(1);
    let url = target(json!({"url": "https://[::1]:8443/a%20b"})).unwrap();
    let place = Place::Url { scheme: Scheme::Https, host: "::1".to_owned(), port: Some(8443) };
    assert_eq!((url.place, url.path.as_str()), (place, "/a%20b"));
    assert_eq!(url.trust, Trust::System);
    for (service, port, path) in [
        (json!({"namespace": "n", "name": "s"}), 443, ""),
        (json!({"namespace": "n", "name": "s", "port": 8443, "path": "/p"}), 8443, "/p"),
    ] {
        let found = target(json!({"service": service})).unwrap();
        let place = ServiceName { namespace: "n".to_owned(), name: "s".to_owned(), port };
        assert_eq!((found.place, found.path.as_str()), (Place::Service(place), path));
    }
}

#[test]
fn what_can_not_be_reached_fails_when_it_is_called() {
    let client =
        |config: Value| hook(Validating, json!({"clientConfig": config}), true).client.clone();
    let nowhere = client(json!({}));
    assert_eq!(nowhere.endpoint, Endpoint::Nowhere);
    assert_eq!(nowhere.target(443).unwrap_err(), ClientError::Nowhere);
    let odd = client(json!({"url": "https://example.com", "caBundle": "Zm9v"}));
    assert_eq!(
        odd.target(443).unwrap_err().to_string(),
        "could not get REST client: unable to parse bytes as PEM block",
        "T-057"
    );
}
