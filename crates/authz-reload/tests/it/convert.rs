//! The file that flags are converted to means what the flags mean.

use std::path::{Path, PathBuf};

use authz_chain::{AuthorizerConfiguration, AuthorizerType, Configuration};
use authz_reload::{
    AuthorizationModes, ConversionContext, ConvertedConfig, WebhookFlags, convert_flags_to_config,
};
use authz_webhook::CacheSettings;
use config::authorization_config::{
    LoadOptions, assume_regular_file, load_authorization_configuration,
};
use proptest::prelude::*;

fn loaded(yaml: &str) -> Configuration {
    let source = document::Source { name: "converted", file_bytes: yaml.as_bytes() };
    let options = LoadOptions { stat_file: &assume_regular_file, ..LoadOptions::default() };
    let mut loaded = load_authorization_configuration(&source, &options);
    // The conversion of the flags also gives this warning.
    loaded.warnings.retain(|warning| warning.code != document::WarningCode::AnonymousAllowed);
    assert_eq!(loaded.warnings, [], "{yaml}");
    loaded.configuration.unwrap_or_else(|error| panic!("{error}\n{yaml}"))
}

/// The configuration with what no file can say and what has no effect made the same: the time of a
/// cache that keeps nothing.
fn comparable(configuration: &Configuration) -> Configuration {
    let caching = |caching: &mut CacheSettings| match caching.effective_ttl() {
        Some(_) => {}
        None => *caching = CacheSettings::new(std::time::Duration::ZERO, false),
    };
    let mut authorizers = configuration.authorizers().to_vec();
    for authorizer in &mut authorizers {
        if let AuthorizerConfiguration::Webhook(webhook) = authorizer {
            caching(&mut webhook.webhook_settings.authorized_cache_settings);
            caching(&mut webhook.webhook_settings.unauthorized_cache_settings);
        }
    }
    Configuration::new(authorizers).unwrap()
}

fn server() -> ConversionContext<'static> {
    ConversionContext {
        base_directory: Path::new("/srv"),
        hook_names: None,
        is_anonymous_enabled: true,
    }
}

fn webhook(config_file: &str) -> WebhookFlags {
    WebhookFlags {
        webhook_config_file: PathBuf::from(config_file),
        version: "v1beta1".to_owned(),
        authorized_ttl_ns: 300_000_000_000,
        unauthorized_ttl_ns: 0,
    }
}

fn modes(modes: &[AuthorizerType], webhook: Option<WebhookFlags>) -> AuthorizationModes {
    AuthorizationModes {
        modes: modes.to_vec(),
        are_modes_explicit: true,
        abac_policy_file: None,
        webhook_flags: webhook,
    }
}

#[test]
fn a_webhook_of_flags_becomes_one_of_a_file() {
    use AuthorizerType::{Rbac, Webhook};
    let flags = modes(&[Rbac, Webhook], Some(webhook("hook.yaml")));
    let ConvertedConfig { config_yaml: yaml, differences_from_flags: differences } =
        convert_flags_to_config(&flags, &server()).unwrap();
    assert_eq!(
        yaml,
        "apiVersion: apiserver.config.k8s.io/v1\n\
         kind: AuthorizationConfiguration\n\
         authorizers:\n\
         - type: RBAC\n\
         \x20 name: rbac\n\
         - type: Webhook\n\
         \x20 name: default\n\
         \x20 webhook:\n\
         \x20   timeout: 30s\n\
         \x20   authorizedTTL: 5m0s\n\
         \x20   unauthorizedTTL: 30s\n\
         \x20   cacheUnauthorizedRequests: false\n\
         \x20   subjectAccessReviewVersion: v1beta1\n\
         \x20   failurePolicy: NoOpinion\n\
         \x20   connectionInfo:\n\
         \x20     type: KubeConfigFile\n\
         \x20     kubeConfigFile: /srv/hook.yaml\n"
    );
    let said = |what: &str| differences.iter().any(|difference| difference.contains(what));
    assert!(said("hook.yaml becomes /srv/hook.yaml"), "{differences:?}");
    assert!(said("cacheUnauthorizedRequests: false"), "{differences:?}");
    assert!(said("(v1beta1, 30s, NoOpinion)"), "{differences:?}");
    assert!(!said("cacheAuthorizedRequests"), "{differences:?}");
}

#[test]
fn what_no_file_says_is_told() {
    use AuthorizerType::{Abac, AlwaysAllow};
    let flags = AuthorizationModes {
        modes: vec![Abac, AlwaysAllow],
        are_modes_explicit: false,
        abac_policy_file: Some(PathBuf::from("p.jsonl")),
        webhook_flags: None,
    };
    let differences = convert_flags_to_config(&flags, &server()).unwrap().differences_from_flags;
    let said = |what: &str| differences.iter().any(|difference| difference.contains(what));
    assert!(said("Keep --authorization-policy-file=p.jsonl"), "{differences:?}");
    assert!(said("--anonymous-auth=false"), "{differences:?}");
    assert!(said("ABAC,AlwaysAllow"), "{differences:?}");
    assert!(said("changes take effect while it runs"), "{differences:?}");
    let closed = ConversionContext { is_anonymous_enabled: false, ..server() };
    let differences = convert_flags_to_config(&flags, &closed).unwrap().differences_from_flags;
    assert!(!differences.iter().any(|difference| difference.contains("anonymous")));
}

#[test]
fn several_hooks_need_a_file_each() {
    let hooks = ["b.example".to_owned(), "a".to_owned()];
    let context = ConversionContext { hook_names: Some(&hooks), ..server() };
    let flags = modes(&[AuthorizerType::Webhook], Some(webhook("/etc/hooks.yaml")));
    let ConvertedConfig { config_yaml: yaml, differences_from_flags: differences } =
        convert_flags_to_config(&flags, &context).unwrap();
    let configuration = loaded(&yaml);
    let names: Vec<&str> =
        configuration.authorizers().iter().map(AuthorizerConfiguration::name).collect();
    assert_eq!(names, ["b.example", "a"]);
    let want = "/etc/hooks.yaml has 2 hooks, but kubeConfigFile takes a file with exactly one: \
        split it into /etc/hooks.b.example.yaml (b.example), /etc/hooks.a.yaml (a) before you start \
        the server.";
    assert!(differences.iter().any(|difference| difference == want), "{differences:?}");
    let one = ConversionContext { hook_names: Some(&hooks[..1]), ..server() };
    let ConvertedConfig { config_yaml: yaml, differences_from_flags: differences } =
        convert_flags_to_config(&flags, &one).unwrap();
    assert!(yaml.contains("kubeConfigFile: /etc/hooks.yaml\n"), "{yaml}");
    assert!(!differences.iter().any(|difference| difference.contains("split")), "{differences:?}");
}

#[test]
fn flags_that_start_no_server_are_not_converted() {
    let mut flags = modes(&[AuthorizerType::Webhook], Some(webhook("/w")));
    flags.webhook_flags.as_mut().unwrap().version = "v2".to_owned();
    let error = convert_flags_to_config(&flags, &server()).unwrap_err().to_string();
    assert!(error.starts_with("unsupported webhook authorizer version"), "{error}");
}

fn any_modes() -> impl Strategy<Value = Vec<AuthorizerType>> {
    proptest::sample::subsequence(
        AuthorizerType::BUILT_IN.to_vec(),
        1..=AuthorizerType::BUILT_IN.len(),
    )
    .prop_shuffle()
}

fn any_webhook() -> impl Strategy<Value = WebhookFlags> {
    let ttl = || prop_oneof![Just(0), any::<i64>(), 1..600_000_000_000_i64];
    // A path may hold anything but the byte that ends it.
    let path = "/?[^\u{0}]{1,20}";
    (path, prop_oneof![Just("v1"), Just("v1beta1")], ttl(), ttl()).prop_map(
        |(path, version, authorized_ttl_ns, unauthorized_ttl_ns)| WebhookFlags {
            webhook_config_file: PathBuf::from(path),
            version: version.to_owned(),
            authorized_ttl_ns,
            unauthorized_ttl_ns,
        },
    )
}

proptest! {
    #[test]
    fn a_converted_file_means_what_the_flags_mean(
        kinds in any_modes(),
        webhook in any_webhook(),
        name in proptest::option::of("[a-z0-9]([-a-z0-9]{0,8}[a-z0-9])?"),
    ) {
        let hooks = name.map(|name| vec![name]);
        let context = ConversionContext { hook_names: hooks.as_deref(), ..server() };
        let webhook = kinds.contains(&AuthorizerType::Webhook).then_some(webhook);
        let flags = modes(&kinds, webhook);
        let Ok(meant) = flags.to_configuration(context.base_directory, context.hook_names) else {
            // A hook may bear the name of a built-in authorizer.
            prop_assert!(convert_flags_to_config(&flags, &context).is_err());
            return Ok(());
        };
        let converted = convert_flags_to_config(&flags, &context).unwrap();
        prop_assert_eq!(comparable(&loaded(&converted.config_yaml)), comparable(&meant));
    }
}
