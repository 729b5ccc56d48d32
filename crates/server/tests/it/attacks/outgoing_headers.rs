//! The headers that the server sends to webhooks.

use std::collections::BTreeSet;

use fake_http::{Peer, Script};
use http::Method;
use serde_json::json;

use crate::admission_hooks::{HookAuthority, VALIDATING, allow, asked, register};
use crate::hooks::{Hooks, review};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// Headers with which a client may hope to speak to the service behind the server.
const HOSTILE: [(&str, &str); 14] = [
    ("impersonate-user", "bob"),
    ("impersonate-group", "dev"),
    ("x-remote-user", "admin"),
    ("x-remote-group", "system:masters"),
    ("x-remote-extra-scopes", "all"),
    ("x_remote_user", "admin"),
    ("x-forwarded-for", "127.0.0.1"),
    ("forwarded", "for=127.0.0.1"),
    ("cookie", "session=1"),
    ("proxy-authorization", "Basic YTpi"),
    ("x-original-uri", "/elsewhere"),
    ("transfer-coding", "x"),
    ("audit-id", "the-client-s"),
    ("connection", "Impersonate-User, Authorization, X-Remote-User, Content-Type"),
];

/// The names of the headers that a service was sent.
fn header_names(peer: &Peer) -> Vec<BTreeSet<String>> {
    let requests = peer.requests();
    let names = requests.iter().map(|request| {
        let text = format!("{:?}", request.headers);
        assert!(!text.contains("alice-token") && !text.contains("masters"), "{text}");
        request.headers.iter().map(|(name, _)| name.to_lowercase()).collect()
    });
    names.collect()
}

/// L20 and L24: the headers of a call are made from nothing, so no header of the client reaches a
/// service, present or absent, named in `Connection` or not. Whom the client acts as stands in the
/// review, after it was authorized.
#[tokio::test(flavor = "multi_thread")]
async fn no_header_of_a_client_reaches_a_webhook() {
    let hooks = Hooks::new();
    let always = Script::rule(|_| review(json!({"allowed": true})));
    let authorizer = hooks.peer("w", always);
    let plan = hooks.plan(&[hooks.webhook("w", json!({}))]);
    let cluster = hooks.cluster(&plan, |_, _| {}).await;
    let authority = HookAuthority::new();
    let hook = authority.hook(allow());
    let webhook = authority.webhook("h.x.y", &hook, json!({}));
    register(&cluster, VALIDATING, "c", &[webhook]).await;
    let alice = cluster.alice();
    let map = json!({"metadata": {"name": "m"}}).to_string();
    let answer = alice.send(Method::POST, MAPS, &HOSTILE, map).await;
    assert_eq!(answer.code, 201, "{}", answer.text());
    let usual =
        ["accept", "accept-encoding", "content-length", "content-type", "host", "user-agent"];
    let usual = BTreeSet::from(usual.map(str::to_owned));
    for (which, peer) in [("authorization", &authorizer), ("admission", &hook)] {
        let sent = header_names(peer);
        assert!(!sent.is_empty(), "{which}");
        for names in sent {
            assert!(names.is_subset(&usual), "{which}: {names:?}");
        }
    }
    let told = hook.requests().iter().map(asked).next().expect("a review");
    assert_eq!(told["userInfo"]["username"], "bob");
    assert_eq!(told["userInfo"]["groups"], json!(["dev", "system:authenticated"]));
}
