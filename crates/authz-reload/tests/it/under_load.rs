//! Requests go on while configurations come and go.

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

/// L29: a decision is a function of one snapshot, however many change meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_decision_is_that_of_one_configuration() {
    let stage = Stage::new();
    let allow = RunningHook::start(&stage, "allow");
    let abstain = RunningHook::start_with(&stage, "abstain", vec![answer(false)]);
    let texts = [
        with_webhook("allow", &allow.path(&stage)),
        with_webhook("abstain", &abstain.path(&stage)),
    ];
    stage.write("config", &texts[0]);
    let reloader = Arc::new(stage.start_watching("config"));
    let stop = Arc::new(AtomicBool::new(false));
    let clients: Vec<_> = (0..N_CLIENTS)
        .map(|id| tokio::spawn(client(Arc::clone(&reloader), Arc::clone(&stop), id)))
        .collect();
    for n in 0..N_CHANGES {
        let text = &texts[n / 2 % 2];
        match n % 4 {
            0 => stage.write("config", &text[..text.len() * 2 / 3]),
            1 => stage.write("config", text),
            2 => stage.write("config", &text.replace("Webhook", "Webhoook")),
            _ => stage.rename("config", text),
        }
        if n % 5 == 0 {
            reloader.check_now().await;
        }
        tokio::task::yield_now().await;
    }
    stop.store(true, Ordering::Relaxed);
    let mut n_requests = 0;
    for client in clients {
        n_requests += client.await.unwrap();
    }
    let observed = stage.observed();
    assert!(observed.successes() > 0 && observed.failures() > 0, "{observed:?}");
    assert!(n_requests > N_CLIENTS, "{n_requests}");
    assert_eq!(observed.published.len(), observed.successes());
}
