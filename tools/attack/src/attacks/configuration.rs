//! Attacks on the configuration of the authorizers while it is read.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;

use super::{Load, load};
use crate::scene::Scene;
use crate::server_process::StartOptions;

/// The pause between two changes.
const PAUSE: Duration = Duration::from_millis(5);

/// A25: the file changes hundreds of times a second: it is truncated, replaced, swapped by a link, and its folder
/// disappears.
pub(super) fn a25() -> Load {
    Load {
        start: |_, directory, _| {
            let folder = directory.join("config");
            fs::create_dir_all(&folder)?;
            let file = folder.join("authorization.yaml");
            fs::write(&file, configuration(0))?;
            let flags = vec![format!("--authorization-config={}", file.display())];
            Ok(StartOptions { flags, ..StartOptions::default() })
        },
        clean: |scene, _| Box::pin(restore(scene)),
        ..load(|scene, until| Box::pin(change(scene, until)))
    }
}

/// A configuration that allows what every other one allows: only the order of the authorizers differs.
fn configuration(number: usize) -> String {
    let mut authorizers =
        vec![json!({ "type": "Node", "name": "node" }), json!({ "type": "RBAC", "name": "rbac" })];
    authorizers.rotate_left(number % 2);
    json!({
        "apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthorizationConfiguration",
        "authorizers": authorizers,
    })
    .to_string()
}

async fn change(scene: Arc<Scene>, until: Instant) -> anyhow::Result<()> {
    let folder = scene.directory.join("config");
    let aside = scene.directory.join("config-aside");
    let mut number = 0;
    while Instant::now() < until {
        number += 1;
        // The server reads the file at any moment, so each of these may fail to exist for it.
        let _ = change_once(&folder, &aside, number);
        tokio::time::sleep(PAUSE).await;
    }
    Ok(())
}

fn change_once(folder: &Path, aside: &Path, number: usize) -> std::io::Result<()> {
    let file = folder.join("authorization.yaml");
    let text = configuration(number);
    match number % 5 {
        0 => fs::write(&file, text.get(..text.len() / 2).unwrap_or_default()),
        1 => {
            let new = folder.join("new");
            fs::write(&new, text)?;
            fs::rename(new, file)
        }
        2 => {
            let (target, link) =
                (folder.join(format!("version-{}", number % 2)), folder.join("link"));
            fs::write(&target, text)?;
            let _ = fs::remove_file(&link);
            std::os::unix::fs::symlink(target, &link)?;
            fs::rename(link, file)
        }
        3 => {
            fs::rename(folder, aside)?;
            std::thread::sleep(Duration::from_millis(1));
            fs::rename(aside, folder)
        }
        _ => {
            let _ = fs::remove_file(&file);
            fs::write(&file, text)
        }
    }
}

async fn restore(scene: Arc<Scene>) -> anyhow::Result<()> {
    let file = scene.directory.join("config/authorization.yaml");
    let _ = fs::remove_file(&file);
    fs::write(file, configuration(0))?;
    Ok(())
}
