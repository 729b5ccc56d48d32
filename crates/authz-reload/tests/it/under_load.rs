//! Requests go on while configurations come and go.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use authz::Verdict;
use authz_reload::Reloader;

use crate::hook::{RunningHook, answer, ask};
use crate::stage::{Stage, with_webhook};

const N_CLIENTS: usize = 16;
const N_CHANGES: usize = 300;

/// Asks again and again, each time somebody else, and compares with what the generation that was in
/// effect at the beginning of the request has to say.
async fn client(reloader: Arc<Reloader>, stop: Arc<AtomicBool>, id: usize) -> usize {
    let mut n_requests = 0;
    while !stop.load(Ordering::Relaxed) {
        let generation = reloader.generation();
        let want = match generation.configured_webhooks[0].webhook.name() {
            "allow" => Verdict::Allow,
            "abstain" => Verdict::NoOpinion,
            other => panic!("{other}"),
        };
        let user = format!("user-{id}-{}", n_requests % 50);
        assert_eq!(ask(&generation, &user).await, want, "{user}");
        n_requests += 1;
    }
    n_requests
}

/// How a storm changes the configuration, and how the file is called that the server reads.
struct Storm {
    file: &'static str,
    prepare: fn(&Stage, &str),
    /// Makes change number `n` to one of the configurations.
    change: fn(&Stage, usize, &str),
}

/// Writes, torn writes, mistakes and renames.
const WRITES: Storm = Storm {
    file: "config",
    prepare: |stage, text| stage.write("config", text),
    change: |stage, n, text| match n % 4 {
        0 => stage.write("config", &text[..text.len() * 2 / 3]),
        1 => stage.write("config", text),
        2 => stage.write("config", &text.replace("Webhook", "Webhoook")),
        _ => stage.rename("config", text),
    },
};

/// A link to a folder is swapped, as a mounted volume does it, and the old folder is removed.
#[cfg(unix)]
const LINKS: Storm = Storm {
    file: "..data/config",
    prepare: |stage, text| swap_link(stage, 0, text),
    change: |stage, n, text| {
        // Some volumes are swapped before they are complete.
        let part = if n % 3 == 0 { &text[..text.len() / 2] } else { text };
        swap_link(stage, n + 1, part);
        fs::remove_dir_all(stage.path(&format!("volume-{n}"))).unwrap();
    },
};

/// The folder of the file is moved away, and comes back with another file, or empty.
const FOLDERS: Storm = Storm {
    file: "folder/config",
    prepare: |stage, text| {
        fs::create_dir(stage.path("folder")).unwrap();
        stage.write("folder/config", text);
    },
    change: |stage, n, text| {
        let away = stage.path(&format!("away-{n}"));
        fs::rename(stage.path("folder"), &away).unwrap();
        fs::create_dir(stage.path("next")).unwrap();
        if n % 2 == 0 {
            stage.write("next/config", text);
        }
        fs::rename(stage.path("next"), stage.path("folder")).unwrap();
        stage.write("folder/config", text);
        fs::remove_dir_all(away).unwrap();
    },
};

#[cfg(unix)]
fn swap_link(stage: &Stage, n: usize, text: &str) {
    let volume = format!("volume-{n}");
    fs::create_dir(stage.path(&volume)).unwrap();
    stage.write(&format!("{volume}/config"), text);
    std::os::unix::fs::symlink(&volume, stage.path("..data_tmp")).unwrap();
    fs::rename(stage.path("..data_tmp"), stage.path("..data")).unwrap();
}

/// Changes the configuration while clients ask. In the end the last configuration is in force.
async fn change_under_load(storm: &Storm) {
    let stage = Stage::new();
    let allow = RunningHook::start(&stage, "allow");
    let abstain = RunningHook::start_with(&stage, "abstain", vec![answer(false)]);
    let texts = [
        with_webhook("allow", &allow.path(&stage)),
        with_webhook("abstain", &abstain.path(&stage)),
    ];
    (storm.prepare)(&stage, &texts[0]);
    let reloader = Arc::new(stage.start_watching(storm.file));
    let stop = Arc::new(AtomicBool::new(false));
    let clients: Vec<_> = (0..N_CLIENTS)
        .map(|id| tokio::spawn(client(Arc::clone(&reloader), Arc::clone(&stop), id)))
        .collect();
    for n in 0..N_CHANGES {
        (storm.change)(&stage, n, &texts[n / 2 % 2]);
        if n % 5 == 0 {
            reloader.check_files_now().await;
        }
        tokio::task::yield_now().await;
    }
    for text in &texts {
        stage.write(storm.file, text);
        reloader.check_files_now().await;
    }
    let last = reloader.generation();
    assert_eq!(last.configured_webhooks[0].webhook.name(), "abstain");
    stop.store(true, Ordering::Relaxed);
    let mut n_requests = 0;
    for client in clients {
        n_requests += client.await.unwrap();
    }
    let observed = stage.observed();
    assert!(observed.successes() > 0, "{observed:?}");
    assert!(n_requests > N_CLIENTS, "{n_requests}");
    // The end of a failure without a new configuration is a success, too.
    assert!(observed.published.len() <= observed.successes(), "{observed:?}");
}

/// L29: a decision is a function of one snapshot, however many change meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_decision_is_that_of_one_configuration() {
    change_under_load(&WRITES).await;
}

/// A25: the link to the configuration is swapped in a storm while users ask.
#[cfg(unix)]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a25_swapped_links_mix_no_configurations() {
    change_under_load(&LINKS).await;
}

/// A25: the folder of the configuration disappears and returns in a storm while users ask.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a25_folders_that_disappear_mix_no_configurations() {
    change_under_load(&FOLDERS).await;
}
