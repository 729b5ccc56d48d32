//! The effect of a check on a changed file. The tests start each check themselves, so
//! each test knows how many there were.

use std::sync::Arc;

use authz_reload::{FileCheckResult, ReloadStatus, sha256_hash};

use crate::stage::{Stage, built_in, header};

const FIRST: &[&str] = &["Node", "RBAC"];

fn failed(checked: FileCheckResult) -> String {
    match checked {
        FileCheckResult::Failed(message) => message,
        other => panic!("{other:?}"),
    }
}

fn stage() -> Stage {
    let stage = Stage::new();
    stage.write("config", &built_in(FIRST));
    stage
}

#[tokio::test]
async fn the_start_is_no_reload() {
    let stage = stage();
    let reloader = stage.start_unwatched("config");
    assert_eq!(reloader.check_files_now().await, FileCheckResult::Unchanged);
    let observed = stage.observed();
    assert_eq!(observed.reloads, []);
    assert_eq!(observed.hash, Some(sha256_hash(built_in(FIRST).as_bytes())));
    assert!(observed.published.is_empty() && observed.log.is_empty(), "{observed:?}");
}

#[tokio::test]
async fn a_bad_file_leaves_the_old_one_serving_and_a_good_one_follows() {
    let stage = stage();
    let reloader = stage.start_unwatched("config");
    stage.write("config", "apiVersion: apiserver.config.k8s.io\n");
    let message = failed(reloader.check_files_now().await);
    assert!(message.starts_with("failed to load AuthorizationConfiguration"), "{message}");
    let observed = stage.observed();
    assert_eq!((observed.failures(), observed.successes()), (1, 0));
    assert_eq!(observed.hash, Some(sha256_hash(built_in(FIRST).as_bytes())));
    assert!(observed.log[0].contains("config:1:1: "), "{:?}", observed.log);
    let pending = reloader.status().rejected_config_hash;
    assert_eq!(pending, Some(sha256_hash(b"apiVersion: apiserver.config.k8s.io\n")));

    let good = built_in(&["RBAC", "Node"]).replace("k8s.io/v1\n", "k8s.io/v1beta1\n");
    stage.write("config", &good);
    assert_eq!(reloader.check_files_now().await, FileCheckResult::Applied(2));
    let observed = stage.observed();
    assert_eq!((observed.failures(), observed.successes()), (1, 1));
    assert_eq!(observed.hash, Some(sha256_hash(good.as_bytes())));
    assert_eq!(observed.published, ["rbac,node"]);
    assert_eq!(reloader.status().rejected_config_hash, None);
}

#[tokio::test]
async fn a_deleted_file_fails_once_however_often_it_is_checked() {
    let stage = stage();
    let reloader = stage.start_unwatched("config");
    std::fs::remove_file(stage.path("config")).unwrap();
    for _ in 0..2 {
        let message = failed(reloader.check_files_now().await);
        assert!(message.ends_with("no such file or directory"), "{message}");
    }
    let observed = stage.observed();
    assert_eq!((observed.failures(), observed.successes()), (1, 0));
    assert_eq!(observed.hash, Some(sha256_hash(built_in(FIRST).as_bytes())));
    let last = reloader.status().last_attempt.unwrap();
    assert!(!last.ok && last.error.unwrap().contains("no such file"));
    stage.write("config", &built_in(FIRST));
    assert_eq!(reloader.check_files_now().await, FileCheckResult::Unchanged);
    assert!(reloader.status().last_attempt.unwrap().ok);
    std::fs::remove_file(stage.path("config")).unwrap();
    assert!(failed(reloader.check_files_now().await).ends_with("no such file or directory"));
    assert_eq!(stage.observed().failures(), 2, "another deletion is another failure");
}

#[tokio::test]
async fn a_folder_in_the_place_of_the_file_is_unreadable() {
    let stage = stage();
    let reloader = stage.start_unwatched("config");
    std::fs::remove_file(stage.path("config")).unwrap();
    std::fs::create_dir(stage.path("config")).unwrap();
    assert!(failed(reloader.check_files_now().await).contains("is a directory"));
}

#[tokio::test]
async fn a_comment_changes_the_hash_and_nothing_else() {
    let stage = stage();
    let reloader = stage.start_unwatched("config");
    let text = format!("# harmless\n{}", built_in(FIRST)).replace("/v1\n", "/v1alpha1\n");
    stage.write("config", &text);
    assert_eq!(reloader.check_files_now().await, FileCheckResult::Unchanged);
    let observed = stage.observed();
    assert_eq!(observed.reloads, []);
    // Servers with the same bytes report the same hash, whenever they started.
    assert_eq!(observed.hash, Some(sha256_hash(text.as_bytes())));
    let status = reloader.status();
    assert_eq!((status.hash, status.generation), (Some(sha256_hash(text.as_bytes())), 1));
    assert_eq!(status.last_attempt, None);
}

/// The shipped alert AuthorizationConfigReloadFails holds while the last failure is later than the last success.
#[tokio::test]
async fn the_way_back_ends_the_failure() {
    let stage = stage();
    let reloader = stage.start_unwatched("config");
    stage.write("config", "kind: x");
    let message = failed(reloader.check_files_now().await);
    // A bad file counts once, however often it is looked at.
    assert_eq!(failed(reloader.check_files_now().await), message);
    stage.write("config", &built_in(FIRST));
    assert_eq!(reloader.check_files_now().await, FileCheckResult::Unchanged);
    let observed = stage.observed();
    assert_eq!(observed.reloads, [ReloadStatus::Failure, ReloadStatus::Success]);
    assert_eq!(observed.hash, Some(sha256_hash(built_in(FIRST).as_bytes())));
    assert!(observed.log.last().unwrap().contains("generation 1 again"), "{:?}", observed.log);
    let status = reloader.status();
    let attempt = status.last_attempt.unwrap();
    assert_eq!((attempt.ok, attempt.error, status.rejected_config_hash), (true, None, None));
    assert_eq!(reloader.check_files_now().await, FileCheckResult::Unchanged);
    assert_eq!(stage.observed().successes(), 1, "the end of a failure counts once");
    // The same bad file once more is a new failure.
    stage.write("config", "kind: x");
    assert_eq!(failed(reloader.check_files_now().await), message);
    assert_eq!(stage.observed().failures(), 2);
}

#[tokio::test]
async fn a_bad_file_that_goes_and_returns_is_still_pending() {
    let stage = stage();
    let reloader = stage.start_unwatched("config");
    stage.write("config", "kind: x");
    let message = failed(reloader.check_files_now().await);
    std::fs::remove_file(stage.path("config")).unwrap();
    assert_ne!(failed(reloader.check_files_now().await), message);
    stage.write("config", "kind: x");
    assert_eq!(failed(reloader.check_files_now().await), message);
    let status = reloader.status();
    assert_eq!(status.rejected_config_hash, Some(sha256_hash(b"kind: x")));
    assert_eq!(status.last_attempt.unwrap().error, Some(message));
    assert_eq!(stage.observed().failures(), 2);
}

#[tokio::test]
async fn built_in_types_are_those_of_the_start() {
    let stage = stage();
    let reloader = stage.start_unwatched("config");
    stage.write("config", &built_in(&["Node"]));
    assert_eq!(failed(reloader.check_files_now().await), "missing required types: [RBAC]");
    stage.write("config", &built_in(&["RBAC", "Node"]));
    assert_eq!(reloader.check_files_now().await, FileCheckResult::Applied(2));
    // Unlike Kubernetes: types that allow or forbid everything are no exception.
    for kind in ["ABAC", "AlwaysAllow", "AlwaysDeny"] {
        stage.write("config", &built_in(&["Node", "RBAC", kind]));
        let want = format!(
            "authorizer type {kind} is not allowed if it was not enabled at initial server startup"
        );
        assert_eq!(failed(reloader.check_files_now().await), want);
        let log = stage.observed().log.pop().unwrap();
        assert!(log.contains("config:8:9: authorizer type"), "{log}");
    }
    assert_eq!(stage.observed().published, ["rbac,node"]);
}

#[tokio::test]
async fn connections_of_pods_are_refused() {
    let stage = stage();
    let reloader = stage.start_unwatched("config");
    let text = format!(
        "{}- type: Webhook\n  name: w\n  webhook:\n    timeout: 3s\n    \
         subjectAccessReviewVersion: v1\n    failurePolicy: Deny\n    connectionInfo: {{type: \
         InClusterConfig}}\n",
        built_in(FIRST)
    );
    stage.write("config", &text);
    let message = failed(reloader.check_files_now().await);
    let want = "authorizers[2].connectionInfo.type: Invalid value: \"InClusterConfig\": not \
                allowed in this server";
    assert_eq!(message, want);
}

#[tokio::test]
async fn an_empty_file_and_a_huge_one_are_refused() {
    let stage = stage();
    let reloader = stage.start_unwatched("config");
    stage.write("config", "");
    assert!(failed(reloader.check_files_now().await).contains("at least one authorization mode"));
    let huge = header() + &"#".repeat(document::DOCUMENT_BYTES_MAX);
    stage.write("config", &huge);
    assert!(failed(reloader.check_files_now().await).contains("file is larger than"));
    assert_eq!(stage.observed().failures(), 2);
}

#[tokio::test]
async fn policies_are_followed_and_kept_while_they_do_not_change() {
    let stage = Stage::new().with_policy("policies");
    let line = |user: &str| {
        format!(
            "{{\"apiVersion\":\"abac.authorization.kubernetes.io/v1beta1\",\"kind\":\"Policy\",\
             \"spec\":{{\"user\":\"{user}\",\"namespace\":\"*\",\"resource\":\"*\"}}}}\n"
        )
    };
    stage.write("policies", &line("ana"));
    stage.write("config", &built_in(&["ABAC", "RBAC"]));
    let reloader = stage.start_unwatched("config");
    stage.write("policies", &line("bob"));
    assert_eq!(reloader.check_files_now().await, FileCheckResult::Applied(2));
    stage.write("policies", "{\n");
    let message = failed(reloader.check_files_now().await);
    assert!(message.starts_with("error reading policy file"), "{message}");
    let log = stage.observed().log.pop().unwrap();
    assert!(log.contains("policies:1:"), "{log}");
    assert!(reloader.status().files.iter().any(|file| file.ends_with("/policies")));
    stage.write("policies", &line("bob"));
    assert_eq!(reloader.check_files_now().await, FileCheckResult::Unchanged);
}

#[tokio::test]
async fn a_generation_that_can_not_be_published_is_a_failed_reload() {
    let stage = stage();
    let reloader = stage.start_unwatched("config");
    let changed = built_in(&["RBAC", "Node"]);
    stage.write("config", &changed);
    stage.refuse_to_publish(true);
    for _ in 0..2 {
        let message = failed(reloader.check_files_now().await);
        assert_eq!(message, "the authorizers cannot be replaced: no room");
        let observed = stage.observed();
        assert_eq!((observed.failures(), observed.successes()), (1, 0));
        assert_eq!(observed.hash, Some(sha256_hash(built_in(FIRST).as_bytes())));
        assert!(observed.log.last().unwrap().contains("no room"), "{:?}", observed.log);
        let status = reloader.status();
        assert_eq!((status.generation, reloader.generation().generation_number), (1, 1));
        assert_eq!(status.rejected_config_hash, Some(sha256_hash(changed.as_bytes())));
        let attempt = status.last_attempt.unwrap();
        assert_eq!((attempt.ok, attempt.error), (false, Some(message)));
    }
    stage.refuse_to_publish(false);
    assert_eq!(reloader.check_files_now().await, FileCheckResult::Applied(2));
    assert_eq!(stage.observed().published, ["rbac,node"]);
    assert_eq!(reloader.status().rejected_config_hash, None);
}

#[tokio::test]
async fn a_configuration_of_flags_stays() {
    use authz_reload::{
        AuthorizationModes, AuthorizationPlan, ConfigSource, ReloadOptions, Reloader,
    };
    let stage = Stage::new();
    let modes = vec![authz_chain::AuthorizerType::Rbac];
    let plan = AuthorizationPlan::Modes(AuthorizationModes {
        modes,
        are_modes_explicit: true,
        abac_policy_file: None,
        webhook_flags: None,
    });
    let first = Arc::new(stage.builder().build_first_generation(&plan).unwrap());
    assert_eq!(first.source, ConfigSource::Flags);
    let reloader = Reloader::start(
        stage.builder(),
        &plan,
        first,
        ReloadOptions::default(),
        Arc::new(|_| panic!("nothing is published")),
        Arc::new(|notice| panic!("{notice}")),
    );
    assert_eq!(reloader.check_files_now().await, FileCheckResult::Unchanged);
    let status = reloader.status();
    assert_eq!((status.source, status.hash, status.generation), ("flags", None, 1));
    assert_eq!(stage.observed().hash, None);
}
