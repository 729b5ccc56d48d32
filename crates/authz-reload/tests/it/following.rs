//! Changes are heard of: writes, renames, replaced links, folders that come and go.

#![cfg(unix)]

use std::fs;
use std::os::unix::fs::symlink;
use std::time::{Duration, Instant};

use authz_reload::{CheckResult, ReloadOptions, sha256_hash};

use crate::stage::{AT_ONCE, Stage, built_in};

const NODE_FIRST: &[&str] = &["Node", "RBAC"];
const RBAC_FIRST: &[&str] = &["RBAC", "Node"];

/// Until the folders are watched: the first check comes right after that.
async fn settled() {
    tokio::time::sleep(Duration::from_millis(300)).await;
}

#[tokio::test]
async fn a_write_is_heard_of() {
    let stage = Stage::new();
    stage.write("config", &built_in(NODE_FIRST));
    let _reloader = stage.follow("config");
    settled().await;
    stage.write("config", &built_in(RBAC_FIRST));
    stage.hear("write", |told| told.published == ["rbac,node"]).await;
}

#[tokio::test]
async fn a_change_before_the_watch_begins_is_not_missed() {
    let stage = Stage::new();
    stage.write("config", &built_in(NODE_FIRST));
    let _reloader = stage.follow("config");
    // The task that watches has had no turn yet.
    stage.write("config", &built_in(RBAC_FIRST));
    stage.hear("early write", |told| told.published == ["rbac,node"]).await;
}

#[tokio::test]
async fn an_atomic_rename_is_heard_of() {
    let stage = Stage::new();
    stage.write("config", &built_in(NODE_FIRST));
    let _reloader = stage.follow("config");
    settled().await;
    let mut took = Vec::new();
    for n_published in 1..=5 {
        let types = if n_published % 2 == 1 { RBAC_FIRST } else { NODE_FIRST };
        stage.rename("config", &built_in(types));
        let start = Instant::now();
        stage.hear("every change is published", |told| told.published.len() == n_published).await;
        took.push(start.elapsed());
    }
    assert_eq!(stage.told().failures(), 0);
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
    let _reloader = stage.follow("config");
    settled().await;
    mount("..2", RBAC_FIRST);
    fs::remove_dir_all(stage.path("..1")).unwrap();
    stage.hear("first swap", |told| told.published == ["rbac,node"]).await;
    settled().await;
    mount("..3", NODE_FIRST);
    fs::remove_dir_all(stage.path("..2")).unwrap();
    stage.hear("second swap", |told| told.published.len() == 2).await;
    assert_eq!(stage.told().failures(), 0);
}

#[tokio::test]
async fn a_file_that_returns_is_heard_of() {
    let stage = Stage::new();
    fs::create_dir(stage.path("folder")).unwrap();
    stage.write("folder/config", &built_in(NODE_FIRST));
    let reloader = stage.follow("folder/config");
    settled().await;
    fs::remove_file(stage.path("folder/config")).unwrap();
    stage.hear("the check failed", |told| told.failures() > 0).await;
    stage.write("folder/config", &built_in(RBAC_FIRST));
    stage.hear("return of the file", |told| told.published == ["rbac,node"]).await;
    settled().await;
    // The folder itself goes, and another one comes.
    fs::rename(stage.path("folder"), stage.path("elsewhere")).unwrap();
    let n_failures = stage.told().failures();
    stage.hear("loss of the folder", |told| told.failures() > n_failures).await;
    settled().await;
    fs::create_dir(stage.path("next")).unwrap();
    stage.write("next/config", &built_in(NODE_FIRST));
    fs::rename(stage.path("next"), stage.path("folder")).unwrap();
    stage.hear("return of the folder", |told| told.published.len() == 2).await;
    assert_eq!(reloader.check_now().await, CheckResult::Unchanged);
}

#[tokio::test]
async fn the_poll_finds_what_is_not_heard_of() {
    let stage = Stage::new();
    stage.write("config", &built_in(NODE_FIRST));
    let poll = Duration::from_millis(20);
    let _reloader = stage.follow_with("config", ReloadOptions { poll, ..Default::default() });
    std::fs::remove_file(stage.path("config")).unwrap();
    stage.hear("a failure for each poll", |told| told.failures() > 5).await;
}

#[tokio::test]
async fn permissions_that_are_lost_and_given_back_are_heard_of() {
    use std::os::unix::fs::PermissionsExt;
    let stage = Stage::new();
    stage.write("config", &built_in(NODE_FIRST));
    let _reloader = stage.follow("config");
    settled().await;
    let set = |mode| {
        let permissions = fs::Permissions::from_mode(mode);
        fs::set_permissions(stage.path("config"), permissions).unwrap();
    };
    set(0o000);
    if fs::read(stage.path("config")).is_ok() {
        // Nothing is forbidden to the superuser; a link to nowhere is as unreadable.
        fs::remove_file(stage.path("config")).unwrap();
        symlink("nowhere", stage.path("config")).unwrap();
        stage.hear("loss of the file", |told| told.failures() > 0).await;
        fs::remove_file(stage.path("config")).unwrap();
        stage.write("config", &built_in(RBAC_FIRST));
    } else {
        stage.hear("loss of permission", |told| told.failures() > 0).await;
        set(0o600);
        stage.write("config", &built_in(RBAC_FIRST));
    }
    stage.hear("recovery", |told| told.published == ["rbac,node"]).await;
}

/// A25: a storm of changes.
#[tokio::test]
async fn a_thousand_quick_changes_end_with_the_last() {
    let stage = Stage::new();
    stage.write("config", &built_in(NODE_FIRST));
    let reloader = stage.follow("config");
    settled().await;
    let good = [built_in(RBAC_FIRST), built_in(NODE_FIRST)];
    for n in 0..1000_usize {
        let text = &good[n % 2];
        match n % 4 {
            // Half of the writes are torn: the file is first shorter than it should be.
            0 | 1 => stage.write("config", &text[..text.len() / 2]),
            2 => stage.write("config", text),
            _ => stage.rename("config", text),
        }
        if n % 10 == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
    let last = format!("# the last one\n{}", built_in(RBAC_FIRST));
    stage.rename("config", &last);
    // Whether the last one is a change depends on what was seen before it.
    let told = stage
        .hear("the last change", |told| {
            told.published.last().is_some_and(|names| names == "rbac,node")
        })
        .await;
    let hashes = [sha256_hash(good[0].as_bytes()), sha256_hash(last.as_bytes())];
    assert!(hashes.contains(told.hash.as_ref().unwrap()), "{told:?}");
    for pair in told.published.windows(2) {
        assert_ne!(pair[0], pair[1], "what is published differs from what was in effect");
    }
    settled().await;
    assert_eq!(reloader.check_now().await, CheckResult::Unchanged);
    assert_eq!(reloader.status().pending, None);
}

#[tokio::test]
async fn dropping_ends_the_task() {
    let stage = Stage::new();
    stage.write("config", &built_in(NODE_FIRST));
    let reloader = stage.follow("config");
    settled().await;
    drop(reloader);
    stage.write("config", &built_in(RBAC_FIRST));
    settled().await;
    assert_eq!(stage.told().published, Vec::<String>::new());
}
