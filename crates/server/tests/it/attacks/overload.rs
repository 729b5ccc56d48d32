//! One writer against the others by load alone: attacks A7, A8 and A16, smaller than in `cargo xtask attack`.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fake_http::{Answer, Conduct, Request, Script};
use http::Method;
use https_server::MinimumBodyRate;
use serde_json::json;
use server::ServerOptions;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::admission_hooks::{
    HookAuthority, MUTATING, VALIDATING, answer, asked, patching, register,
};
use crate::client::Client;
use crate::cluster::Cluster;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const TOKENS: &str = "admin-token,admin,1,system:masters\nalice-token,alice,2\nbob-token,bob,3\ncarol-token,carol,4\n";
/// Longer than any answer takes, and shorter than the hook and the deadlines.
const SOON: Duration = Duration::from_secs(15);

/// Four seats for ordinary users, and bodies that are given up after a second.
fn few_seats(options: &mut ServerOptions, _: &Path) {
    let tokens = authn::TokenFile::parse("tokens", TOKENS).expect("tokens");
    options.authentication_options.token_file = Some(tokens);
    options.request_limits.seats_max = 58;
    options.request_limits.webhook_waits_max = 32;
    options.request_limits.webhook_waits_per_user_max = 16;
    options.request_limits.minimum_body_rate =
        MinimumBodyRate { grace_period: Duration::from_secs(1), bytes_per_second_min: 1_000 };
}

async fn start() -> Cluster {
    grant(Cluster::start_with(few_seats).await).await
}

/// Alice and bob may write configmaps, and carol configures hooks.
async fn grant(cluster: Cluster) -> Cluster {
    let group = "rbac.authorization.k8s.io";
    for (user, role) in [("alice", "edit"), ("bob", "edit"), ("carol", "hooks")] {
        let subject = json!({"apiGroup": group, "kind": "User", "name": user});
        let binding = json!({"metadata": {"name": user}, "subjects": [subject],
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": role}});
        let path = format!("/apis/{group}/v1/clusterrolebindings");
        cluster.admin().post(&path, &binding).await.expect(201);
    }
    let rule = json!({"verbs": ["*"], "apiGroups": ["admissionregistration.k8s.io"],
        "resources": ["*"]});
    let role = json!({"metadata": {"name": "hooks"}, "rules": [rule]});
    cluster.admin().post(&format!("/apis/{group}/v1/clusterroles"), &role).await.expect(201);
    cluster
}

/// What somebody else is answered while the attack lasts.
async fn expect_undisturbed(bob: &Client, round: &str) {
    let path = format!("{MAPS}/bob-{round}");
    let map = json!({"metadata": {"name": format!("bob-{round}")}});
    let asking = async {
        bob.post(MAPS, &map).await.expect(201);
        bob.get(&path).await.expect(200);
        bob.get(MAPS).await.expect(200);
        assert_eq!(bob.get("/api/v1/namespaces/default/nodes").await.code, 403);
        bob.delete(&path).await.expect(200);
    };
    timeout(SOON, asking).await.unwrap_or_else(|_| panic!("{round}: bob waits"));
}

/// A7: a writer keeps creations waiting at a hook that does not answer, more than there are seats. Others go on, the
/// number of creations that wait is limited, and an administrator who is not in `system:masters` repairs the hook.
#[tokio::test(flavor = "multi_thread")]
async fn a7_creations_that_hang_at_a_hook_hold_no_seats() {
    let cluster = start().await;
    let authority = HookAuthority::new();
    let hook = authority.hook(Script::rule(|request: &Request| {
        match asked(request)["name"].as_str().is_some_and(|name| name.starts_with("slow")) {
            true => Answer::misbehave(Conduct::Hang),
            false => answer(request, &json!({"allowed": true})),
        }
    }));
    let changes = json!({"failurePolicy": "Fail", "timeoutSeconds": 30});
    let webhooks = [authority.webhook("guard.x.y", &hook, changes)];
    register(&cluster, VALIDATING, "guard", &webhooks).await;
    let (alice, bob) = (cluster.alice(), cluster.bob());
    let carol = cluster.anonymous().with_token("carol-token");
    expect_undisturbed(&bob, "idle").await;
    let mut creations = JoinSet::new();
    for n in 0..60 {
        let (alice, map) = (alice.clone(), json!({"metadata": {"name": format!("slow-{n}")}}));
        creations.spawn(async move { timeout(SOON, alice.post(MAPS, &map)).await });
    }
    // All but those that wait are refused, at once and before the hook is called.
    for _ in 0..44 {
        let refused = creations.join_next().await.unwrap().unwrap().expect("a refusal in time");
        assert_eq!(refused.code, 429, "{}", refused.text());
        assert_eq!(refused.headers["retry-after"], "1");
        assert!(refused.text().contains("16 requests of this user wait"), "{}", refused.text());
    }
    expect_undisturbed(&bob, "attacked").await;
    // Alice's own reads go on too, because her creations have no seats.
    timeout(SOON, alice.get(MAPS)).await.expect("alice reads").expect(200);
    let deleted = timeout(SOON, carol.delete(&format!("{VALIDATING}/guard"))).await;
    deleted.expect("carol repairs the hook").expect(200);
    let map = json!({"metadata": {"name": "bob-without-hook"}});
    timeout(SOON, bob.post(MAPS, &map)).await.expect("bob goes on").expect(201);
    creations.abort_all();
}

/// A7: small patches of a large object that wait for a hook count with the bytes of the object.
#[tokio::test(flavor = "multi_thread")]
async fn a7_objects_of_writes_that_wait_are_bounded_in_bytes() {
    let cluster = Cluster::start_with(|options, folder| {
        few_seats(options, folder);
        options.request_limits.total_body_bytes_max = 8 << 20;
        options.request_limits.body_bytes_per_user_max = 2 << 20;
    });
    let cluster = grant(cluster.await).await;
    let (alice, bob) = (cluster.alice(), cluster.bob());
    let large = json!({"metadata": {"name": "large"}, "data": {"k": "x".repeat(300_000)}});
    alice.post(MAPS, &large).await.expect(201);
    let authority = HookAuthority::new();
    let hook = authority.hook(Script::rule(|request: &Request| {
        match asked(request)["name"].as_str() == Some("large") {
            true => Answer::misbehave(Conduct::Hang),
            false => answer(request, &json!({"allowed": true})),
        }
    }));
    let changes = json!({"failurePolicy": "Fail", "timeoutSeconds": 30});
    register(&cluster, VALIDATING, "guard", &[authority.webhook("guard.x.y", &hook, changes)])
        .await;
    let mut patches = JoinSet::new();
    for n in 0..10 {
        let alice = alice.clone();
        let patch = json!({"metadata": {"labels": {"n": n.to_string()}}});
        patches.spawn(
            async move { alice.patch(&format!("{MAPS}/large"), "merge-patch", &patch).await },
        );
    }
    // 600,000 bytes each, so three fit.
    for _ in 0..7 {
        let refused = timeout(SOON, patches.join_next()).await.expect("a refusal in time");
        let refused = refused.unwrap().unwrap();
        assert_eq!(refused.code, 429, "{}", refused.text());
        assert!(refused.text().contains("take too much memory"), "{}", refused.text());
    }
    expect_undisturbed(&bob, "attacked").await;
    patches.abort_all();
}

/// A7: an object that is larger than the one before it in the same request counts with its own bytes, and the request is
/// refused before a hook is asked about it.
#[tokio::test(flavor = "multi_thread")]
async fn a7_a_later_object_of_a_request_counts_with_its_own_bytes() {
    let cluster = Cluster::start_with(|options, folder| {
        few_seats(options, folder);
        options.request_limits.body_bytes_per_user_max = 128 << 10;
    });
    let cluster = grant(cluster.await).await;
    let (admin, alice) = (cluster.admin(), cluster.alice());
    for (name, n_bytes) in [("a-small", 10), ("b-large", 200_000), ("c-small", 10)] {
        let data = json!({"k": "x".repeat(n_bytes)});
        admin.post(MAPS, &json!({"metadata": {"name": name}, "data": data})).await.expect(201);
    }
    let authority = HookAuthority::new();
    let names = Arc::new(Mutex::new(Vec::new()));
    let hook = authority.hook(Script::rule({
        let names = Arc::clone(&names);
        move |request: &Request| {
            let name = &asked(request)["oldObject"]["metadata"]["name"];
            names.lock().unwrap().push(name.as_str().unwrap_or_default().to_owned());
            answer(request, &json!({"allowed": true}))
        }
    }));
    let rule = json!({"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"],
        "operations": ["DELETE"]});
    let changes = json!({"failurePolicy": "Fail", "rules": [rule]});
    register(&cluster, VALIDATING, "guard", &[authority.webhook("guard.x.y", &hook, changes)])
        .await;
    let refused = timeout(SOON, alice.delete(MAPS)).await.expect("an answer in time");
    assert_eq!(refused.code, 429, "{}", refused.text());
    assert!(refused.text().contains("take too much memory"), "{}", refused.text());
    assert_eq!(*names.lock().unwrap(), ["a-small"]);
    // Nothing stays counted: the small object that is left can be deleted.
    alice.delete(&format!("{MAPS}/c-small")).await.expect(200);
}

/// What a hook adds to an object is counted and not refused, because the hook was called already.
#[tokio::test(flavor = "multi_thread")]
async fn an_object_that_a_hook_enlarges_is_counted_and_not_refused() {
    let cluster = Cluster::start_with(|options, folder| {
        few_seats(options, folder);
        options.request_limits.body_bytes_per_user_max = 128 << 10;
    });
    let cluster = grant(cluster.await).await;
    let (admin, alice) = (cluster.admin(), cluster.alice());
    let authority = HookAuthority::new();
    let patch = json!([{"op": "add", "path": "/data", "value": {"k": "x".repeat(200_000)}}]);
    let enlarger = authority.hook(patching(&patch));
    let webhook = authority.webhook("enlarger.x.y", &enlarger, json!({"failurePolicy": "Fail"}));
    register(&cluster, MUTATING, "enlarger", &[webhook]).await;
    let hanging = authority.hook(Script::rule(|_: &Request| Answer::misbehave(Conduct::Hang)));
    let changes = json!({"failurePolicy": "Fail", "timeoutSeconds": 30});
    let webhook = authority.webhook("guard.x.y", &hanging, changes);
    register(&cluster, VALIDATING, "guard", &[webhook]).await;
    let creation =
        tokio::spawn(
            async move { alice.post(MAPS, &json!({"metadata": {"name": "enlarged"}})).await },
        );
    let is_counted = async || {
        let metrics = admin.get("/metrics").await.text();
        let bytes =
            metrics.lines().find_map(|line| line.strip_prefix("portcullis_request_body_bytes "));
        bytes.and_then(|n| n.parse::<usize>().ok()).is_some_and(|n| n > 200_000)
    };
    let counted = async {
        while !is_counted().await {
            tokio::time::sleep(Duration::from_millis(20)).await; // waits for a real process
        }
    };
    timeout(SOON, counted).await.expect("the enlarged object is counted");
    assert!(!creation.is_finished());
    creation.abort();
}

/// A8: bodies that arrive one byte at a time or never end with 408 and hold no seats meanwhile, and somebody without
/// permission is answered before the server reads anything of the body.
#[tokio::test(flavor = "multi_thread")]
async fn a8_slow_bodies_hold_no_seats_and_end() {
    let cluster = start().await;
    let (alice, bob) = (cluster.alice(), cluster.bob());
    let carol = cluster.anonymous().with_token("carol-token");
    expect_undisturbed(&bob, "idle").await;
    // 3 MB that are announced by somebody who may not write are never asked for.
    for client in [&carol, &cluster.anonymous()] {
        let mut stream = client.announce_body(Method::POST, MAPS, 3_000_000).await;
        assert_eq!(timeout(SOON, read_code(&mut stream)).await.expect("an answer"), 403);
    }
    let answer = carol.send_http2(Method::POST, MAPS, &[], vec![b'x'; 3_000_000]).await;
    assert_eq!(answer.code, 403);
    let mut bodies = JoinSet::new();
    for n in 0..30 {
        let stream = alice.announce_body(Method::POST, MAPS, 1_000).await;
        bodies.spawn(async move {
            let (mut reader, mut writer) = tokio::io::split(stream);
            let answer = read_code(&mut reader);
            // A third sends nothing at all, the others a byte now and then.
            let sending = async {
                while n % 3 > 0 && writer.write_all(b"{").await.is_ok() {
                    tokio::time::sleep(Duration::from_millis(50)).await; // waits for a real process
                }
                std::future::pending::<()>().await;
            };
            tokio::select! {
                code = answer => Some(code),
                () = sending => None,
                () = tokio::time::sleep(SOON) => None, // waits for a real process
            }
        });
    }
    expect_undisturbed(&bob, "attacked").await;
    while let Some(code) = bodies.join_next().await {
        assert_eq!(code.unwrap(), Some(408), "slow bodies end");
    }
    expect_undisturbed(&bob, "afterwards").await;
}

/// A8: bodies of one user that take all the memory for bodies leave the memory for those who repair the cluster.
#[tokio::test(flavor = "multi_thread")]
async fn a8_memory_for_bodies_is_left_to_those_who_repair() {
    let cluster = Cluster::start_with(|options, folder| {
        few_seats(options, folder);
        options.request_limits.minimum_body_rate = MinimumBodyRate::default();
        options.request_limits.total_body_bytes_max = 4 << 20;
        options.request_limits.body_bytes_per_user_max = 4 << 20;
    });
    let cluster = grant(cluster.await).await;
    let (alice, bob) = (cluster.alice(), cluster.bob());
    let carol = cluster.anonymous().with_token("carol-token");
    let _announced = alice.announce_body(Method::POST, MAPS, (3 << 20) - 1_000).await;
    let map = json!({"metadata": {"name": "bob-refused"}});
    let path = format!("{MAPS}/bob-refused");
    let refused = async {
        loop {
            match bob.send(Method::PUT, &path, &[], map.to_string()).await {
                answer if answer.code == 429 => break answer,
                _ => crate::polling::pause().await,
            }
        }
    };
    let refused = timeout(SOON, refused).await.expect("the memory is in use");
    assert!(refused.text().contains("the bodies of all requests"), "{}", refused.text());
    let configuration = json!({"metadata": {"name": "repaired"}, "webhooks": []});
    carol.post(VALIDATING, &configuration).await.expect(201);
}

/// A8: clients without permission that announce bodies use up only their own part of what the server reads and drops. Another
/// client, which sends its whole body before it reads, still gets its response.
#[tokio::test(flavor = "multi_thread")]
async fn a8_unwanted_bodies_of_one_user_leave_room_for_others() {
    /// More than all users together may have.
    const N_ANNOUNCED: usize = 300;
    let cluster = start().await;
    let carol = cluster.anonymous().with_token("carol-token");
    let mut announced = JoinSet::new();
    for _ in 0..N_ANNOUNCED {
        let anonymous = cluster.anonymous();
        announced.spawn(async move {
            let mut stream = anonymous.announce_body(Method::POST, MAPS, 3_000_000).await;
            let code = timeout(SOON, read_code(&mut stream)).await.expect("an answer");
            (code, stream)
        });
    }
    let announced = announced.join_all().await;
    assert!(announced.iter().all(|(code, _)| *code == 403));
    for _ in 0..5 {
        let mut stream = carol.announce_body(Method::POST, MAPS, 200_000).await;
        stream.write_all(&[b' '; 200_000]).await.expect("the server reads");
        assert_eq!(timeout(SOON, read_code(&mut stream)).await.expect("an answer"), 403);
    }
    drop(announced);
}

/// A16: objects of many values count with the memory that they take when they are decoded. Those of one user leave room for
/// others, and one that takes more than a user may have is refused for good.
#[tokio::test(flavor = "multi_thread")]
async fn a16_decoded_objects_of_one_user_leave_room_for_others() {
    let cluster = Cluster::start_with(|options, folder| {
        few_seats(options, folder);
        options.request_limits.total_decoded_body_bytes_max = 8 << 20;
        options.request_limits.decoded_body_bytes_per_user_max = 1 << 20;
    });
    let cluster = grant(cluster.await).await;
    let (alice, bob) = (cluster.alice(), cluster.bob());
    let authority = HookAuthority::new();
    let hook = authority.hook(Script::rule(|request: &Request| {
        match asked(request)["name"].as_str().is_some_and(|name| name.starts_with("slow")) {
            true => Answer::misbehave(Conduct::Hang),
            false => answer(request, &json!({"allowed": true})),
        }
    }));
    let changes = json!({"failurePolicy": "Fail", "timeoutSeconds": 30});
    register(&cluster, VALIDATING, "guard", &[authority.webhook("guard.x.y", &hook, changes)])
        .await;
    // About 80 KB of JSON, and six times as much in memory.
    let map = |name: &str, n_values: usize| {
        let data: serde_json::Map<_, _> =
            (0..n_values).map(|n| (format!("key-{n}"), "v".into())).collect();
        json!({"metadata": {"name": name}, "data": data})
    };
    let waiting = {
        let (alice, map) = (alice.clone(), map("slow", 5_000));
        tokio::spawn(async move { alice.post(MAPS, &map).await })
    };
    assert!(hook.wait_requests(1, SOON));
    let refused = alice.post(MAPS, &map("second", 5_000)).await;
    assert_eq!(refused.code, 429, "{}", refused.text());
    assert!(refused.text().contains("the objects in this user's requests"), "{}", refused.text());
    bob.post(MAPS, &map("of-bob", 5_000)).await.expect(201);
    expect_undisturbed(&bob, "attacked").await;
    let refused = bob.post(MAPS, &map("too-large", 20_000)).await;
    assert_eq!(refused.code, 413, "{}", refused.text());
    assert!(refused.text().contains("too many values"), "{}", refused.text());
    assert!(!waiting.is_finished(), "the attack goes on");
    waiting.abort();
}

/// The status code of the response on a connection.
async fn read_code(stream: &mut (impl AsyncReadExt + Unpin)) -> u16 {
    let mut line = Vec::new();
    while !line.ends_with(b"\r\n") {
        line.push(stream.read_u8().await.expect("a status line"));
    }
    let line = String::from_utf8_lossy(&line).into_owned();
    line.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or_else(|| panic!("{line}"))
}
