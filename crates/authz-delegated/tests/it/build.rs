//! What does not make authorizers.

use std::path::PathBuf;
use std::time::Duration;

use authz_delegated::{BuildError, CoreServer, Delegated, Options};

use crate::fixture::{Core, allows};

fn error(options: &Options) -> String {
    Delegated::new(options).unwrap_err().to_string()
}

/// Row CHN-34.
#[test]
fn rules_for_paths_are_checked() {
    let core = Core::start(allows());
    for (rule, want) in [("/foo*bar", "foo*bar"), ("/foo**", "foo**")] {
        let mut options = core.options();
        options.always_allow_paths.push(rule.to_owned());
        assert_eq!(error(&options), format!("only trailing * allowed in \"{want}\""));
    }
}

#[test]
fn a_timeout_has_a_range() {
    let core = Core::start(allows());
    let mut options = core.options();
    let max = Duration::from_secs(30);
    for (timeout, is_good) in [
        (Duration::ZERO, false),
        (Duration::from_nanos(1), true),
        (max, true),
        (max + Duration::from_nanos(1), false),
    ] {
        options.timeout = timeout;
        assert_eq!(Delegated::new(&options).is_ok(), is_good, "{timeout:?}");
    }
    options.timeout = Duration::ZERO;
    let want = "timeout must be greater than zero and at most 30s, got 0ns";
    assert_eq!(error(&options), want);
}

#[test]
fn a_kubeconfig_has_to_be_there_and_to_say_something() {
    let core = Core::start(allows());
    let missing = core.path("missing");
    let options = Options::new(CoreServer::Kubeconfig(missing.clone()));
    let want = format!(
        "failed to get delegated authorization kubeconfig: open {}: no such file or directory",
        missing.display()
    );
    assert_eq!(error(&options), want);
    core.write("core.kubeconfig", "{}");
    let want = "failed to get delegated authorization kubeconfig: invalid configuration: no \
                configuration has been provided, try setting KUBERNETES_MASTER environment variable";
    assert_eq!(error(&core.options()), want);
    let options = Options::new(CoreServer::Kubeconfig(PathBuf::new()));
    assert!(matches!(Delegated::new(&options), Err(BuildError::KubeconfigPath { .. })));
}

/// Hooks are for the core server (chain §8.3).
#[test]
fn a_file_of_hooks_is_refused() {
    let core = Core::start(allows());
    let url = format!("https://{}/authorize", core.peer.address());
    let hooks = format!(
        "apiVersion: kubeapiserverauthorization.config.k8s.io/v1alpha1\n\
         kind: ExternalAuthorizationHookConfiguration\n\
         externalAuthorizationHooks:\n- name: one\n  \
         clientConfig: {{serverCaFile: ca.crt, url: '{url}'}}\n"
    );
    core.write("core.kubeconfig", &hooks);
    let want = format!(
        "failed to get delegated authorization kubeconfig: `{}` is an \
         ExternalAuthorizationHookConfiguration, which only the core server may have",
        core.path("core.kubeconfig").display()
    );
    assert_eq!(error(&core.options()), want);
    core.write("core.kubeconfig", &hooks.replace("name: one", "name: A"));
    assert!(matches!(Delegated::new(&core.options()), Err(BuildError::Kubeconfig(_))));
}

#[test]
fn outside_of_a_cluster_there_is_no_service_account() {
    let core = Core::start(allows());
    let mut account = core.service_account();
    account.host.clear();
    let want = "failed to get delegated authorization kubeconfig: unable to load in-cluster \
                configuration, KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT must be defined";
    assert_eq!(error(&Options::new(CoreServer::InCluster(account))), want);
}

#[test]
fn a_core_server_in_the_clear_is_warned_of() {
    let core = Core::start(allows());
    core.write("core.kubeconfig", "clusters: [{name: '', cluster: {server: 'http://127.0.0.1'}}]");
    let delegated = Delegated::new(&core.options()).unwrap();
    let [warning] = delegated.warnings() else { panic!() };
    assert!(warning.contains("clusters[0].cluster.server: "), "{warning}");
}
