//! The reloader notices changes of files: writes, renames, replaced links, removed and recreated folders.

#![cfg(unix)]

use std::fs;
use std::os::unix::fs::symlink;
use std::time::{Duration, Instant};

use authz_reload::{FileCheckResult, ReloadOptions, Reloader, sha256_hash};

use crate::stage::{AT_ONCE, Stage, built_in};

const NODE_FIRST: &[&str] = &["Node", "RBAC"];
const RBAC_FIRST: &[&str] = &["RBAC", "Node"];

/// Waits until the reloader watches the folders. It renews its watch before it answers a request for a check, and
/// the second check follows the renewal that the first one may have made necessary.
async fn wait_for_watch(reloader: &Reloader) {
    reloader.check_files_now().await;
    reloader.check_files_now().await;
}

#[tokio::test]
async fn a_write_is_noticed() {
    let stage = Stage::new();
    stage.write("config", &built_in(NODE_FIRST));
    let reloader = stage.start_watching("config");
    wait_for_watch(&reloader).await;
    stage.write("config", &built_in(RBAC_FIRST));
    stage.wait_until("write", |observed| observed.published == ["rbac,node"]).await;
}

#[tokio::test]
async fn a_change_before_the_watch_begins_is_not_missed() {
    let stage = Stage::new();
    stage.write("config", &built_in(NODE_FIRST));
    let _reloader = stage.start_watching("config");
    // The task that watches has had no turn yet.
    stage.write("config", &built_in(RBAC_FIRST));
    stage.wait_until("early write", |observed| observed.published == ["rbac,node"]).await;
}

#[tokio::test]
async fn an_atomic_rename_is_noticed() {
    let stage = Stage::new();
    stage.write("config", &built_in(NODE_FIRST));
    let reloader = stage.start_watching("config");
    wait_for_watch(&reloader).await;
    let mut took = Vec::new();
    for n_published in 1..=5 {
        let types = if n_published % 2 == 1 { RBAC_FIRST } else { NODE_FIRST };
        stage.rename("config", &built_in(types));
        let start = Instant::now();
        stage
            .wait_until("every change is published", |observed| {
                observed.published.len() == n_published
            })
            .await;
        took.push(start.elapsed());
    }
    assert_eq!(stage.observed().failures(), 0);
    // The machine may have been busy, but not all the time.
    assert!(took.iter().any(|took| *took < AT_ONCE), "{took:?}");
}

/// A25: a link that is swapped.
#[tokio::test]
async fn a_mounted_volume_swaps_a_link() {
    let stage = Stage::new();
    let mount = |version: &str, types: &[&str]| {
        fs::create_dir(stage.path(version)).unwrap();
        stage.write(&format!("{version}/config"), &built_in(types));
        let _ = fs::remove_file(stage.path("..data_tmp"));
        symlink(version, stage.path("..data_tmp")).unwrap();
        fs::rename(stage.path("..data_tmp"), stage.path("..data")).unwrap();
    };
    mount("..1", NODE_FIRST);
    symlink("..data/config", stage.path("config")).unwrap();
    let reloader = stage.start_watching("config");
    wait_for_watch(&reloader).await;
    mount("..2", RBAC_FIRST);
    fs::remove_dir_all(stage.path("..1")).unwrap();
    stage.wait_until("first swap", |observed| observed.published == ["rbac,node"]).await;
    wait_for_watch(&reloader).await;
    mount("..3", NODE_FIRST);
    fs::remove_dir_all(stage.path("..2")).unwrap();
    stage.wait_until("second swap", |observed| observed.published.len() == 2).await;
    assert_eq!(stage.observed().failures(), 0);
}

#[tokio::test]
async fn a_file_that_returns_is_noticed() {
    let stage = Stage::new();
    fs::create_dir(stage.path("folder")).unwrap();
    stage.write("folder/config", &built_in(NODE_FIRST));
    let reloader = stage.start_watching("folder/config");
    wait_for_watch(&reloader).await;
    fs::remove_file(stage.path("folder/config")).unwrap();
    stage.wait_until("the check failed", |observed| observed.failures() > 0).await;
    stage.write("folder/config", &built_in(RBAC_FIRST));
    stage.wait_until("return of the file", |observed| observed.published == ["rbac,node"]).await;
    wait_for_watch(&reloader).await;
    // The folder itself goes, and another one comes.
    fs::rename(stage.path("folder"), stage.path("elsewhere")).unwrap();
    let n_failures = stage.observed().failures();
    stage.wait_until("loss of the folder", |observed| observed.failures() > n_failures).await;
    wait_for_watch(&reloader).await;
    fs::create_dir(stage.path("next")).unwrap();
    stage.write("next/config", &built_in(NODE_FIRST));
    fs::rename(stage.path("next"), stage.path("folder")).unwrap();
    stage.wait_until("return of the folder", |observed| observed.published.len() == 2).await;
    assert_eq!(reloader.check_files_now().await, FileCheckResult::Unchanged);
}

#[tokio::test]
async fn polls_of_a_lost_file_count_one_failure() {
    let stage = Stage::new();
    stage.write("config", &built_in(NODE_FIRST));
    let poll = Duration::from_millis(20);
    let reloader =
        stage.start_reloader("config", ReloadOptions { poll_interval: poll, ..Default::default() });
    std::fs::remove_file(stage.path("config")).unwrap();
    stage.wait_until("loss of the file", |observed| observed.failures() == 1).await;
    for _ in 0..5 {
        assert!(matches!(reloader.check_files_now().await, FileCheckResult::Failed(_)));
    }
    assert_eq!(stage.observed().failures(), 1);
}

#[tokio::test]
async fn permissions_that_are_lost_and_given_back_are_noticed() {
    use std::os::unix::fs::PermissionsExt;
    let stage = Stage::new();
    stage.write("config", &built_in(NODE_FIRST));
    let reloader = stage.start_watching("config");
    wait_for_watch(&reloader).await;
    let set = |mode| {
        let permissions = fs::Permissions::from_mode(mode);
        fs::set_permissions(stage.path("config"), permissions).unwrap();
    };
    set(0o000);
    if fs::read(stage.path("config")).is_ok() {
        // Nothing is forbidden to the superuser; a link to nowhere is as unreadable.
        fs::remove_file(stage.path("config")).unwrap();
        symlink("nowhere", stage.path("config")).unwrap();
        stage.wait_until("loss of the file", |observed| observed.failures() > 0).await;
        fs::remove_file(stage.path("config")).unwrap();
        stage.write("config", &built_in(RBAC_FIRST));
    } else {
        stage.wait_until("loss of permission", |observed| observed.failures() > 0).await;
        set(0o600);
        stage.write("config", &built_in(RBAC_FIRST));
    }
    stage.wait_until("recovery", |observed| observed.published == ["rbac,node"]).await;
}

/// A25: a storm of changes.
#[tokio::test]
async fn a_thousand_quick_changes_end_with_the_last() {
    let stage = Stage::new();
    stage.write("config", &built_in(NODE_FIRST));
    let reloader = stage.start_watching("config");
    wait_for_watch(&reloader).await;
    let good = [built_in(RBAC_FIRST), built_in(NODE_FIRST)];
    for n in 0..1000_usize {
        let text = &good[n % 2];
        match n % 4 {
            // Half of the writes are torn: the file is first shorter than it should be.
            0 | 1 => stage.write("config", &text[..text.len() / 2]),
            2 => stage.write("config", text),
            _ => stage.rename("config", text),
        }
        if n % 20 == 0 {
            // The reloader reads the file as it is now, torn or whole.
            reloader.check_files_now().await;
        }
    }
    let last = format!("# the last one\n{}", built_in(RBAC_FIRST));
    stage.rename("config", &last);
    // Whether the last one is a change depends on what was seen before it.
    let observed = stage
        .wait_until("the last change", |observed| {
            observed.published.last().is_some_and(|names| names == "rbac,node")
        })
        .await;
    let hashes = [sha256_hash(good[0].as_bytes()), sha256_hash(last.as_bytes())];
    assert!(hashes.contains(observed.hash.as_ref().unwrap()), "{observed:?}");
    for pair in observed.published.windows(2) {
        assert_ne!(pair[0], pair[1], "what is published differs from what was in effect");
    }
    wait_for_watch(&reloader).await;
    assert_eq!(reloader.check_files_now().await, FileCheckResult::Unchanged);
    assert_eq!(reloader.status().rejected_config_hash, None);
}

#[tokio::test]
async fn dropping_the_reloader_ends_its_task() {
    let stage = Stage::new();
    stage.write("config", &built_in(NODE_FIRST));
    let reloader = stage.start_watching("config");
    wait_for_watch(&reloader).await;
    drop(reloader);
    stage.wait_for_end_of_task().await;
    stage.write("config", &built_in(RBAC_FIRST));
    assert_eq!(stage.observed().published, Vec::<String>::new());
}
