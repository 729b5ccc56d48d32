//! Readers and writers who load the server by what they ask for: lists and watches that nobody reads, selectors
//! without end, and patches that take long (attacks A9, A10, A11 and A15). Meanwhile bob is answered as if he were alone.

use std::fmt::Write as _;
use std::io::Read as _;
use std::time::{Duration, Instant};

use http::Method;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde_json::{Value, json};

use super::RBAC;
use crate::client::{Answer, Client, Http2Session, whole};
use crate::cluster::Cluster;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// How long a stream may take nothing in these tests.
const SHORT: Duration = Duration::from_millis(500);

/// The longest that one of these requests may take, in a build without optimizations on a busy machine.
const TIME_MAX: Duration = Duration::from_secs(15);

/// Lets alice and bob read and write in the namespace `default`.
async fn readers(cluster: &Cluster) -> (Client, Client) {
    let binding = json!({"metadata": {"name": "readers"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"},
        "subjects": [{"kind": "User", "name": "alice"}, {"kind": "User", "name": "bob"}]});
    let bindings = format!("{RBAC}/namespaces/default/rolebindings");
    cluster.admin().post(&bindings, &binding).await.expect(201);
    (cluster.alice(), cluster.bob())
}

async fn create_maps(cluster: &Cluster, n_maps: usize, bytes: usize) {
    let mut session = cluster.admin().session().await;
    for n in 0..n_maps {
        let map = json!({"metadata": {"name": format!("m{n:05}"), "labels": {"n": format!("{}", n % 7)}},
            "data": {"k": "x".repeat(bytes)}});
        session.send(Method::POST, MAPS, map.to_string()).await.expect(201);
    }
}

fn names(list: &Value, member: &str) -> Vec<String> {
    let items = list[member].as_array().expect("items").iter();
    let name = |item: &Value| match item["metadata"]["name"].as_str() {
        Some(name) => name.to_owned(),
        None => item["object"]["metadata"]["name"].as_str().expect("a name").to_owned(),
    };
    items.map(name).collect()
}

/// Begins as many requests as fit into a limit beside none, and reads none of the answers. Those that were begun before
/// have ended when this returns.
async fn replace_unread(
    session: &mut Http2Session,
    path: &str,
    n_requests: usize,
) -> Vec<Incoming> {
    let mut unread = Vec::new();
    let begun = Instant::now();
    while unread.len() < n_requests {
        let (parts, body) = session.begin(path).await;
        match parts.status.as_u16() {
            200 => unread.push(body),
            429 => crate::polling::pause().await,
            code => panic!("{code}"),
        }
        assert!(begun.elapsed() < TIME_MAX, "what nobody reads does not end");
    }
    unread
}

/// A9: nobody reads the lists that alice asks for on 40 streams of one connection. They hold few bytes, they end, and
/// she cannot have more of them than her share. Bob is answered meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn a9_lists_that_nobody_reads() {
    let cluster = Cluster::start_with(|options, _| {
        options.connection_limits.stream_stall_timeout = SHORT;
        options.response_bytes_max = 32 << 20;
    })
    .await;
    let (alice, bob) = readers(&cluster).await;
    create_maps(&cluster, 60, 20 << 10).await;
    let idle = bob.get(MAPS).await;
    assert_eq!((idle.code, names(&idle.json(), "items").len()), (200, 60));
    for window in [0, 65_535] {
        let mut session = alice.http2_session(window).await;
        let (mut unread, mut n_refused) = (Vec::new(), 0);
        for _ in 0..40 {
            let (parts, body) = session.begin(MAPS).await;
            match parts.status.as_u16() {
                200 => unread.push(body),
                429 => n_refused += 1,
                code => panic!("{code}"),
            }
            assert_eq!(bob.get(MAPS).await.bytes, idle.bytes);
        }
        // Her share is 8 MiB, and a list has 1.2 MiB.
        assert!(n_refused > 0 && !unread.is_empty(), "{n_refused} refused with window {window}");
        let later = replace_unread(&mut session, MAPS, 6).await;
        for body in unread {
            assert!(body.collect().await.is_err(), "a list that nobody reads has come to its end");
        }
        drop(later);
        drop(session);
        while alice.get(MAPS).await.code == 429 {
            crate::polling::pause().await;
        }
        assert_eq!(alice.get(MAPS).await.bytes, idle.bytes);
    }
}

/// A list that is encoded while it is read is the list that was there before, in every form.
#[tokio::test(flavor = "multi_thread")]
async fn long_lists_are_whole_in_every_form() {
    let cluster = Cluster::start().await;
    let (alice, _) = readers(&cluster).await;
    // One page more than a read of the store, in small objects, and a few large ones.
    create_maps(&cluster, 300, 4 << 10).await;
    let want: Vec<String> = (0..300).map(|n| format!("m{n:05}")).collect();
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
    let partial = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";
    let ask = async |path: &str, headers: &[(&str, &str)]| {
        let answer = alice.send(Method::GET, path, headers, "").await;
        assert_eq!(answer.code, 200, "{path}");
        answer
    };
    let plain = ask(MAPS, &[]).await;
    assert!(!plain.headers.contains_key("content-length") && plain.bytes.len() > 1 << 20);
    assert_eq!(names(&plain.json(), "items"), want);
    let pretty = ask(&format!("{MAPS}?pretty=1"), &[]).await;
    assert_eq!(
        pretty.text(),
        format!("{}\n", serde_json::to_string_pretty(&plain.json()).unwrap())
    );
    let yaml = ask(MAPS, &[("accept", "application/yaml")]).await.text();
    assert!(yaml.starts_with("apiVersion: v1\nitems:\n- data:\n"), "{}", &yaml[..80]);
    assert!(yaml.contains("\nkind: ConfigMapList\nmetadata:\n  resourceVersion: \""));
    assert_eq!(yaml.matches("\n    name: m").count(), 300);
    let wide = format!("{MAPS}?includeObject=Object");
    assert_eq!(names(&ask(&wide, &[("accept", table)]).await.json(), "rows"), want);
    assert_eq!(names(&ask(MAPS, &[("accept", partial)]).await.json(), "items"), want);
    for (path, headers) in [
        (MAPS, &[("accept-encoding", "gzip")][..]),
        (&wide, &[("accept-encoding", "gzip"), ("accept", table)]),
    ] {
        let answer = ask(path, headers).await;
        assert_eq!(answer.headers["content-encoding"], "gzip");
        assert_eq!(answer.headers["vary"], "Accept-Encoding");
        let mut text = String::new();
        flate2::read::GzDecoder::new(&*answer.bytes).read_to_string(&mut text).expect("gzip");
        let list: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(names(&list, if path == MAPS { "items" } else { "rows" }), want);
    }
    // Pages and HTTP/2 show the same objects.
    let page = ask(&format!("{MAPS}?limit=299"), &[]).await.json();
    assert_eq!(page["metadata"]["remainingItemCount"], 1);
    let (token, version) = (&page["metadata"]["continue"], &page["metadata"]["resourceVersion"]);
    let token = token.as_str().expect("a token");
    let rest = ask(&format!("{MAPS}?limit=299&continue={token}"), &[]).await.json();
    assert_eq!(&rest["metadata"]["resourceVersion"], version);
    assert_eq!([names(&page, "items"), names(&rest, "items")].concat(), want);
    let answer = alice.send_http2(Method::GET, MAPS, &[], "").await;
    assert_eq!(answer.bytes, plain.bytes);
}

/// A10: alice opens watches up to her limit, and never reads them while objects change. Bob's watch sees every change,
/// and hers end.
#[tokio::test(flavor = "multi_thread")]
async fn a10_watches_that_nobody_reads() {
    let cluster = Cluster::start_with(|options, _| {
        options.connection_limits.stream_stall_timeout = SHORT;
        options.watches_per_user_max = 50;
    })
    .await;
    let (alice, bob) = readers(&cluster).await;
    let path = format!("{MAPS}?watch=1");
    let mut session = alice.http2_session(1_000).await;
    let mut unread = Vec::new();
    for _ in 0..50 {
        let (parts, body) = session.begin(&path).await;
        assert_eq!(parts.status, 200);
        unread.push(body);
    }
    let (parts, body) = session.begin(&path).await;
    let refused = whole(parts, body).await.expect(429);
    let message = "50 watches of this user are open, which is the most for one user";
    assert!(refused["message"].as_str().is_some_and(|own| own.contains(message)), "{refused}");
    let mut events = bob.watch(&path).await;
    create_maps(&cluster, 20, 10 << 10).await;
    for n in 0..20 {
        let event = events.next().await.expect("an event");
        assert_eq!(event["object"]["metadata"]["name"], format!("m{n:05}"));
    }
    // Her watches were read up to their window, and end.
    let later = replace_unread(&mut session, &path, 50).await;
    for body in unread {
        assert!(body.collect().await.is_err(), "a watch that nobody reads has come to its end");
    }
    drop(later);
    // A watch without events stays, however long it takes nothing.
    let silent = format!("{MAPS}?watch=1&fieldSelector=metadata.name%3Dnobody");
    let mut body = replace_unread(&mut session, &silent, 1).await.remove(0);
    let silence = tokio::time::timeout(3 * SHORT, body.frame()).await;
    assert!(silence.is_err(), "a watch without events has ended");
}

/// A10: the objects that exist when a watch begins are sent page by page, at one revision.
#[tokio::test(flavor = "multi_thread")]
async fn a10_initial_events_are_paged_at_one_revision() {
    let cluster = Cluster::start().await;
    let (alice, bob) = readers(&cluster).await;
    create_maps(&cluster, 620, 1_000).await;
    let path = format!(
        "{MAPS}?watch=1&sendInitialEvents=true&allowWatchBookmarks=true\
         &resourceVersionMatch=NotOlderThan"
    );
    // A small window, so that the later pages are read after the change below.
    let mut session = alice.http2_session(20_000).await;
    let (parts, mut body) = session.begin(&path).await;
    assert_eq!(parts.status, 200);
    let mut buffer: Vec<u8> = body.frame().await.unwrap().unwrap().into_data().unwrap().to_vec();
    bob.delete(&format!("{MAPS}/m00619")).await.expect(200);
    bob.post(MAPS, &json!({"metadata": {"name": "m00000a"}})).await.expect(201);
    let mut seen = Vec::new();
    while seen.len() < 623 {
        while let Some(at) = buffer.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = buffer.drain(..=at).collect();
            let event: Value = serde_json::from_slice(&line).expect("an event");
            let name = event["object"]["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            seen.push((event["type"].as_str().expect("a type").to_owned(), name));
        }
        if seen.len() < 623 {
            let frame =
                tokio::time::timeout(TIME_MAX, body.frame()).await.expect("an event in time");
            buffer.extend_from_slice(&frame.unwrap().unwrap().into_data().unwrap());
        }
    }
    let event = |kind: &str, name: &str| (kind.to_owned(), name.to_owned());
    let mut want: Vec<_> = (0..620).map(|n| event("ADDED", &format!("m{n:05}"))).collect();
    want.extend([event("BOOKMARK", ""), event("DELETED", "m00619"), event("ADDED", "m00000a")]);
    assert_eq!(seen, want);
}

/// A11: a selector has a limit of terms, and selectors at the limit leave room for others.
#[tokio::test(flavor = "multi_thread")]
async fn a11_selectors_of_many_terms() {
    let cluster = Cluster::start().await;
    let (alice, bob) = readers(&cluster).await;
    create_maps(&cluster, 200, 10).await;
    let terms = |n_terms: usize| vec!["a!=b"; n_terms].join(",").replace('=', "%3D");
    let labels = |n_terms: usize| format!("labelSelector={}", vec!["%21a"; n_terms].join(","));
    for (verb, path) in [
        (Method::GET, format!("{MAPS}?{}", labels(1_001))),
        (Method::GET, format!("{MAPS}?watch=1&{}", labels(1_001))),
        (Method::DELETE, format!("{MAPS}?{}", labels(1_001))),
        (Method::GET, format!("{MAPS}?labelSelector=a+in+({})", "b,".repeat(1_000))),
        (Method::GET, format!("{MAPS}?fieldSelector={}", terms(1_001))),
    ] {
        let refused = alice.send(verb, &path, &[], "").await.expect(400);
        let message = refused["message"].as_str().expect("a message");
        assert!(message.contains("selector has more than 1000 terms"), "{message}");
    }
    assert_eq!(alice.get(&format!("{MAPS}?{}", labels(10_000))).await.code, 414);
    let mut attack = tokio::task::JoinSet::new();
    for _ in 0..4 {
        let (alice, path) = (alice.clone(), format!("{MAPS}?{}", labels(1_000)));
        attack.spawn(async move {
            for _ in 0..10 {
                assert_eq!(names(&alice.get(&path).await.expect(200), "items").len(), 200);
            }
        });
    }
    while !attack.is_empty() {
        let asked = Instant::now();
        bob.get(&format!("{MAPS}/m00007")).await.expect(200);
        assert!(asked.elapsed() < TIME_MAX);
        let three = bob.get(&format!("{MAPS}?labelSelector=n%3D3")).await.expect(200);
        assert_eq!(names(&three, "items").len(), 29);
        if let Some(done) = attack.try_join_next() {
            done.expect("the attacker is answered");
        }
    }
}

/// A15: patches that take long for their size are refused or applied in time, and bob is answered meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn a15_patches_that_take_long() {
    let cluster = Cluster::start().await;
    let (alice, bob) = readers(&cluster).await;
    create_maps(&cluster, 1, 10).await;
    let members = |value: &str| {
        let mut text = String::new();
        for n in 0..60_000 {
            let _ = write!(text, "{}\"k{n:05}\":{value}", if n == 0 { "" } else { "," });
        }
        text
    };
    let wide = format!("{{\"metadata\":{{\"name\":\"wide\"}},\"data\":{{{}}}}}", members("\"\""));
    let patch = async |kind: &str, body: String| -> Answer {
        let content_type = format!("application/{kind}+json");
        let headers = [("content-type", content_type.as_str())];
        let path = format!("{MAPS}/wide");
        let attacking = alice.send(Method::PATCH, &path, &headers, body);
        let asking = async {
            loop {
                let asked = Instant::now();
                bob.get(&format!("{MAPS}/m00000")).await.expect(200);
                assert!(asked.elapsed() < TIME_MAX, "{kind}: bob waits {:?}", asked.elapsed());
                crate::polling::pause().await;
            }
        };
        let begun = Instant::now();
        tokio::select! {
            answer = attacking => {
                assert!(begun.elapsed() < TIME_MAX, "{kind}: {:?}", begun.elapsed());
                answer
            }
            () = asking => panic!("bob asks for ever"),
        }
    };
    let made = alice.send(Method::POST, MAPS, &[], wide).await;
    assert_eq!(made.code, 201);
    // 10,000 removals from a wide object: each moves all later members.
    let removals: Vec<Value> =
        (0..10_000).map(|n| json!({"op": "remove", "path": format!("/data/k{n:05}")})).collect();
    let refused = patch("json-patch", Value::from(removals).to_string()).await.expect(413);
    let message = refused["message"].as_str().expect("a message");
    assert!(message.contains("take more than 20000000 steps"), "{message}");
    // Copies that double what they copy.
    let copies: Vec<Value> = (0..40)
        .map(|n| json!({"op": "copy", "from": "/data", "path": format!("/data/copy{n}")}))
        .collect();
    let refused = patch("json-patch", Value::from(copies).to_string()).await;
    assert!(matches!(refused.code, 413 | 422), "{}", refused.code);
    // A merge of two wide objects, one of which removes everything.
    let nulls = || format!("{{\"data\":{{{}}}}}", members("null"));
    let values = format!("{{\"data\":{{{}}}}}", members("\"v\""));
    for kind in ["merge-patch", "strategic-merge-patch"] {
        assert_eq!(patch(kind, values.clone()).await.code, 200, "{kind}");
        let emptied = patch(kind, nulls()).await.expect(200);
        assert!(emptied["data"].as_object().is_none_or(serde_json::Map::is_empty), "{kind}");
    }
}
