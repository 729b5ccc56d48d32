//! Which flags go together, and what they mean.

use std::path::{Path, PathBuf};
use std::time::Duration;

use authz_chain::{AuthorizerConfiguration, AuthorizerType};
use authz_reload::{
    AuthorizationModes, AuthorizationOptions, AuthorizationPlan, DEFAULT_MODES,
    FlagTranslationError, UPSTREAM_DEFAULT_MODES, plan_from_flags,
};
use authz_webhook::{FailurePolicy, ReviewVersion, WebhookSettings};

const EXCLUDED: &str = "--authorization-config cannot be specified when --authorization-mode or \
    --authorization-webhook-* flags are defined";
const ABAC: &str = "authorization-mode ABAC's authorization policy file not passed";
const WEBHOOK: &str = "authorization-mode Webhook's authorization config file not passed";

fn modes(names: &[&str]) -> AuthorizationOptions {
    let names = names.iter().map(|&name| name.to_owned()).collect();
    AuthorizationOptions { modes: Some(names), ..AuthorizationOptions::default() }
}

fn config() -> AuthorizationOptions {
    AuthorizationOptions { config_file: path("f"), ..AuthorizationOptions::default() }
}

fn path(path: &str) -> Option<PathBuf> {
    Some(PathBuf::from(path))
}

/// The plan as text: the modes, or the file, or the faults.
fn planned(options: &AuthorizationOptions, default_modes: &[AuthorizerType]) -> String {
    match plan_from_flags(options, default_modes) {
        Ok(AuthorizationPlan::File(plan)) => plan.path.display().to_string(),
        Ok(AuthorizationPlan::Modes(modes)) => {
            modes.modes.iter().map(|mode| mode.name()).collect::<Vec<_>>().join(",")
        }
        Err(faults) => faults.join("; "),
    }
}

fn check(options: &AuthorizationOptions, want: &str) {
    assert_eq!(planned(options, UPSTREAM_DEFAULT_MODES), want, "{options:?}");
}

#[test]
fn the_default_is_that_of_the_server() {
    let none = AuthorizationOptions::default();
    check(&none, "AlwaysAllow");
    check(&modes(&[""]), "AlwaysAllow");
    assert_eq!(planned(&none, DEFAULT_MODES), "Node,RBAC");
    assert_eq!(planned(&none, &[]), "at least one authorization-mode must be passed");
}

#[test]
fn modes_are_known_and_single() {
    let unknown = "authorization-mode \"DoesNotExist\" is not a valid mode";
    check(&modes(&["DoesNotExist"]), unknown);
    check(&modes(&["rbac"]), "authorization-mode \"rbac\" is not a valid mode");
    let twice = "authorization-mode [\"AlwaysAllow\" \"AlwaysAllow\"] has mode specified more than \
                 once";
    check(&modes(&["AlwaysAllow", "AlwaysAllow"]), twice);
    check(&modes(&["AlwaysAllow", "AlwaysDeny"]), "AlwaysAllow,AlwaysDeny");
    check(&modes(&["Node", "RBAC"]), "Node,RBAC");
}

#[test]
fn files_belong_to_modes() {
    let with_policy = |options| AuthorizationOptions { abac_policy_file: path("p"), ..options };
    let with_webhook = |options| AuthorizationOptions { webhook_config_file: path("w"), ..options };
    check(&modes(&["ABAC"]), ABAC);
    check(&with_policy(modes(&["ABAC"])), "ABAC");
    let alone = "cannot specify --authorization-policy-file without mode ABAC";
    check(&with_policy(AuthorizationOptions::default()), alone);
    check(&with_policy(modes(&["RBAC"])), alone);
    check(&modes(&["Webhook"]), WEBHOOK);
    let alone = "cannot specify --authorization-webhook-config-file without mode Webhook";
    check(&with_webhook(modes(&["AlwaysAllow"])), alone);
    check(&with_webhook(modes(&["Webhook"])), "Webhook");
    let empty = AuthorizationOptions { webhook_config_file: path(""), ..modes(&["Webhook"]) };
    check(&empty, WEBHOOK);
}

#[test]
fn every_fault_is_reported() {
    let options =
        AuthorizationOptions { webhook_retry_steps: 0, ..modes(&["A", "ABAC", "Webhook", "ABAC"]) };
    let want = format!(
        "authorization-mode \"A\" is not a valid mode; {ABAC}; {WEBHOOK}; {ABAC}; \
         authorization-mode [\"A\" \"ABAC\" \"Webhook\" \"ABAC\"] has mode specified more than \
         once; number of webhook retry attempts must be greater than 0, but is: 0"
    );
    check(&options, &want);
}

#[test]
fn a_file_excludes_other_flags_even_with_their_defaults() {
    for options in [
        AuthorizationOptions { modes: Some(vec!["RBAC".to_owned()]), ..config() },
        AuthorizationOptions { webhook_version: Some("v1beta1".into()), ..config() },
        AuthorizationOptions { webhook_config_file: path(""), ..config() },
        AuthorizationOptions { webhook_authorized_ttl_ns: Some(0), ..config() },
        AuthorizationOptions { webhook_unauthorized_ttl_ns: Some(1), ..config() },
    ] {
        check(&options, EXCLUDED);
    }
    let with_policy = AuthorizationOptions { abac_policy_file: path("p"), ..config() };
    check(&with_policy, "f");
    let Ok(AuthorizationPlan::File(plan)) = plan_from_flags(&with_policy, &[]) else {
        panic!("a plan of a configuration file")
    };
    assert_eq!(plan.abac_policy_file, path("p"));
}

#[test]
fn a_closed_gate_refuses_files_and_nothing_else() {
    let closed = |options| AuthorizationOptions { is_structured_config_enabled: false, ..options };
    let gate = "--authorization-config cannot be used without enabling \
                StructuredAuthorizationConfiguration feature flag";
    check(&closed(config()), gate);
    let both = AuthorizationOptions { modes: Some(vec!["RBAC".to_owned()]), ..config() };
    check(&closed(both), gate);
    check(&closed(modes(&["RBAC"])), "RBAC");
}

fn webhook_modes(change: impl FnOnce(&mut AuthorizationOptions)) -> AuthorizationModes {
    let mut options = modes(&["Node", "Webhook", "RBAC"]);
    options.webhook_config_file = path("hooks/w.yaml");
    change(&mut options);
    match plan_from_flags(&options, &[]) {
        Ok(AuthorizationPlan::Modes(modes)) => modes,
        other => panic!("{other:?}"),
    }
}

fn settings(modes: &AuthorizationModes) -> WebhookSettings {
    let configuration = modes.to_configuration(Path::new("/srv"), None).unwrap();
    let names: Vec<&str> =
        configuration.authorizers().iter().map(AuthorizerConfiguration::name).collect();
    assert_eq!(names, ["node", "default", "rbac"]);
    match &configuration.authorizers()[1] {
        AuthorizerConfiguration::Webhook(webhook) => webhook.webhook_settings.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn flags_are_translated() {
    let custom = webhook_modes(|options| {
        options.webhook_version = Some("v1".to_owned());
        options.webhook_authorized_ttl_ns = Some(7_000_000_000);
        options.webhook_unauthorized_ttl_ns = Some(1_000_000);
    });
    let settings = settings(&custom);
    assert_eq!(settings.timeout.get(), Duration::from_secs(30));
    assert_eq!(settings.failure_policy, FailurePolicy::NoOpinion);
    assert_eq!(settings.subject_access_review_version, ReviewVersion::V1);
    assert_eq!(settings.authorized_cache_settings.effective_ttl(), Some(Duration::from_secs(7)));
    assert_eq!(
        settings.unauthorized_cache_settings.effective_ttl(),
        Some(Duration::from_millis(1))
    );
    assert!(settings.match_conditions.as_slice().is_empty());
    let connection = format!("{:?}", settings.connection_info);
    assert!(connection.contains("/srv/hooks/w.yaml"), "{connection}");
}

#[test]
fn flags_have_their_own_defaults() {
    let settings = settings(&webhook_modes(|_| {}));
    assert_eq!(settings.subject_access_review_version, ReviewVersion::V1beta1);
    assert_eq!(settings.authorized_cache_settings.effective_ttl(), Some(Duration::from_secs(300)));
    assert_eq!(settings.unauthorized_cache_settings.effective_ttl(), Some(Duration::from_secs(30)));
}

#[test]
fn no_time_is_no_cache() {
    for ttl_ns in [0, -1] {
        let settings = settings(&webhook_modes(|options| {
            options.webhook_authorized_ttl_ns = Some(ttl_ns);
        }));
        assert_eq!(settings.authorized_cache_settings.effective_ttl(), None, "{ttl_ns}");
        assert_eq!(settings.authorized_cache_settings.is_cache_enabled(), ttl_ns != 0, "{ttl_ns}");
        assert!(settings.unauthorized_cache_settings.effective_ttl().is_some(), "{ttl_ns}");
    }
}

#[test]
fn a_version_that_does_not_exist_shows_when_the_client_is_built() {
    let modes = webhook_modes(|options| options.webhook_version = Some("v2".to_owned()));
    let error = modes.to_configuration(Path::new("/"), None).unwrap_err();
    assert_eq!(
        error.to_string(),
        "unsupported webhook authorizer version \"v2\", supported versions are \"v1\", \"v1beta1\""
    );
}

#[test]
fn hooks_take_the_place_of_the_mode() {
    let modes = webhook_modes(|_| {});
    let names = |hooks: &[&str]| {
        let hooks: Vec<String> = hooks.iter().map(|&hook| hook.to_owned()).collect();
        modes.to_configuration(Path::new("/"), Some(&hooks)).map(|configuration| {
            let names = configuration.authorizers().iter();
            names.map(|authorizer| authorizer.name().to_owned()).collect::<Vec<_>>()
        })
    };
    assert_eq!(names(&["b", "a"]).unwrap(), ["node", "b", "a", "rbac"]);
    assert!(matches!(names(&["rbac"]), Err(FlagTranslationError::Names(_))));
    assert!(matches!(names(&["a b"]), Err(FlagTranslationError::Name(_))));
}

#[test]
fn repeated_modes_make_no_configuration() {
    let twice =
        AuthorizationModes { modes: vec![AuthorizerType::Rbac; 2], ..webhook_modes(|_| {}) };
    assert_eq!(
        twice.to_configuration(Path::new("/"), None).unwrap_err().to_string(),
        "failed to build authorization config: modes should not be repeated in --authorization-mode"
    );
}

#[test]
fn allowing_everything_by_flag_switches_anonymous_users_off() {
    let allow = |names: &[&str]| match plan_from_flags(&modes(names), &[]) {
        Ok(AuthorizationPlan::Modes(modes)) => modes.disables_anonymous_auth(),
        other => panic!("{other:?}"),
    };
    assert!(allow(&["RBAC", "AlwaysAllow"]));
    assert!(!allow(&["RBAC", "AlwaysDeny"]));
}
