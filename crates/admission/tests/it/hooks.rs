//! The hooks that stored entries become.

use std::sync::Arc;
use std::time::Duration;

use admission::ConfigurationKind::{self, ExternalHook, Mutating, Validating};
use admission::{
    Configuration, FailurePolicy, Hook, HookEndpoint, MatchPolicy, ReinvocationPolicy,
    ReviewVersion, SideEffects, Snapshot,
};
use serde_json::{Value, json};

use crate::documents::{object, tree};

const CA_BUNDLE: &str = include_str!("ca_bundle.b64");

/// Compiles the only hook of a configuration. Defaults are set only if `is_prepared`.
fn hook(kind: ConfigurationKind, entry: Value, is_prepared: bool) -> Arc<Hook> {
    let stored = match is_prepared {
        true => object(kind, "a", json!([entry])),
        false => tree(json!({"metadata": {"name": "a"}, (kind.entries_member_name()): [entry]})),
    };
    let snapshot = Snapshot::new(&[Arc::new(Configuration::compile_configuration(kind, &stored))]);
    let list =
        if kind == Mutating { snapshot.mutating_hooks() } else { snapshot.validating_hooks() };
    Arc::clone(&list.hooks()[0])
}

#[test]
fn defaults_are_the_same_for_entries_that_were_stored_without_them() {
    for is_prepared in [true, false] {
        let hook = hook(Mutating, json!({"name": "a.b.c"}), is_prepared);
        assert_eq!(hook.failure_policy, FailurePolicy::Fail);
        assert_eq!(hook.match_policy, MatchPolicy::Equivalent);
        assert_eq!(hook.call_timeout, Duration::from_secs(10));
        assert_eq!(hook.reinvocation_policy, ReinvocationPolicy::Never);
        assert_eq!(hook.side_effects, None);
        assert!(hook.namespace_selector.is_empty() && hook.object_selector.is_empty());
        assert!(hook.match_conditions.is_empty() && hook.review_versions.is_empty());
    }
}

#[test]
fn compiled_hooks_have_the_fields_of_their_entries() {
    let entry = json!({
        "name": "a.b.c", "failurePolicy": "Ignore", "matchPolicy": "Exact", "timeoutSeconds": 99,
        "reinvocationPolicy": "IfNeeded", "sideEffects": "NoneOnDryRun",
        "admissionReviewVersions": ["v1beta1", "v7", "v1alpha1", "v1"],
    });
    let hook = hook(Mutating, entry, true);
    assert_eq!((hook.name.as_str(), hook.configuration_name.as_str()), ("a.b.c", "a"));
    assert_eq!(hook.failure_policy, FailurePolicy::Ignore);
    assert_eq!(hook.match_policy, MatchPolicy::Exact);
    assert_eq!(hook.call_timeout, Duration::from_secs(30), "no call takes longer");
    assert_eq!(hook.reinvocation_policy, ReinvocationPolicy::IfNeeded);
    assert_eq!(hook.side_effects, Some(SideEffects::NoneOnDryRun));
    assert_eq!(hook.review_versions, [ReviewVersion::V1beta1, ReviewVersion::V1]);
}

#[test]
fn v1alpha1_hooks_become_validating_hooks() {
    let entry = json!({
        "name": "a.b.c",
        "clientConfig": {
            "service": {"namespace": "n", "name": "s"}, "urlPath": "/x", "caBundle": CA_BUNDLE.trim(),
        },
    });
    let hook = hook(ExternalHook, entry, true);
    assert_eq!(hook.failure_policy, FailurePolicy::Ignore);
    assert_eq!(hook.match_policy, MatchPolicy::Exact);
    assert_eq!(hook.call_timeout, Duration::from_secs(30));
    assert_eq!(hook.side_effects, Some(SideEffects::Unknown));
    assert_eq!(hook.review_versions, [ReviewVersion::V1alpha1]);
    assert_eq!(
        hook.client_config.hook_endpoint,
        service_endpoint(None),
        "the Service decides about the port"
    );
    assert_eq!(hook.client_config.path, "/x");
    assert!(hook.client_config.ca_bundle.is_some());
}

fn service_endpoint(port: Option<u16>) -> HookEndpoint {
    HookEndpoint::Service { namespace: "n".to_owned(), name: "s".to_owned(), port }
}

#[test]
fn v1alpha1_hooks_never_trust_system_cas() {
    let entry = json!({"clientConfig": {"service": {"namespace": "n", "name": "s"}}});
    let bundle = &hook(ExternalHook, entry, false).client_config.ca_bundle;
    assert_eq!(bundle.as_deref(), Some(&b""[..]), "no certificate is in it, so none is trusted");
}

#[test]
fn endpoints_are_urls_or_services() {
    let client = |config: Value| {
        hook(Validating, json!({"clientConfig": config}), true).client_config.clone()
    };
    let url = client(json!({"url": "https://[::1]:8443/a%20b"}));
    let endpoint = HookEndpoint::Url { host: "::1".to_owned(), port: Some(8443) };
    assert_eq!((url.hook_endpoint, url.path.as_str()), (endpoint, "/a%20b"));
    assert_eq!(url.ca_bundle, None);
    for (service, port, path) in [
        (json!({"namespace": "n", "name": "s"}), 443, ""),
        (json!({"namespace": "n", "name": "s", "port": 8443, "path": "/p"}), 8443, "/p"),
    ] {
        let found = client(json!({"service": service}));
        assert_eq!(
            (found.hook_endpoint, found.path.as_str()),
            (service_endpoint(Some(port)), path)
        );
    }
    assert_eq!(client(json!({})).hook_endpoint, HookEndpoint::Invalid);
}
