//! Who the extension server is to the core server.

use std::time::Duration;

use authz::Verdict;
use authz_delegated::{CoreServer, Delegated, Options};
use fake_http::Request;
use tokio::time::{advance, pause, resume};

use crate::fixture::{Core, allows, ask};

/// Longer than a token is used without a look at its file.
const A_MINUTE: Duration = Duration::from_secs(60);

fn tokens(requests: &[Request]) -> Vec<&str> {
    requests.iter().map(|request| request.header("authorization").unwrap_or_default()).collect()
}

async fn check_renewal(core: &Core, options: &Options) {
    let delegated = Delegated::new(options).unwrap();
    assert_eq!(ask(&delegated, "ana").await.verdict, Verdict::Allow);
    core.write("token", "second\n");
    assert_eq!(ask(&delegated, "ben").await.verdict, Verdict::Allow);
    pause();
    advance(A_MINUTE).await;
    resume();
    assert_eq!(ask(&delegated, "cleo").await.verdict, Verdict::Allow);
    // A token that is gone for a moment does not stop anything.
    std::fs::remove_file(core.path("token")).unwrap();
    pause();
    advance(A_MINUTE).await;
    resume();
    assert_eq!(ask(&delegated, "dan").await.verdict, Verdict::Allow);
    let requests = core.peer.requests();
    assert_eq!(
        tokens(&requests),
        ["Bearer first", "Bearer first", "Bearer second", "Bearer second"]
    );
}

#[tokio::test]
async fn the_token_of_a_kubeconfig_is_renewed() {
    let core = Core::start(allows());
    check_renewal(&core, &core.options()).await;
}

#[tokio::test]
async fn a_pod_uses_its_service_account() {
    let core = Core::start(allows());
    let options = Options::new(CoreServer::InCluster(core.service_account()));
    check_renewal(&core, &options).await;
    let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews?timeout=10s";
    assert!(core.peer.requests().iter().all(|request| request.target == path));
}
