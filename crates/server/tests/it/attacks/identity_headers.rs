//! Headers that claim an identity (attack A22).

use authn::AnonymousAccess;
use http::Method;
use serde_json::{Value, json};

use crate::client::{Answer, Client};
use crate::cluster::Cluster;

const WHO_AM_I: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
const TOKEN_REVIEWS: &str = "/apis/authentication.k8s.io/v1/tokenreviews";

async fn who_am_i(client: &Client, headers: &[(&str, &str)]) -> Answer {
    client.send(Method::POST, WHO_AM_I, headers, "{}").await
}

/// The user that the server authenticated, without the name of the credential.
#[track_caller]
fn user(answer: Answer) -> Value {
    let mut user = answer.expect(201)["status"]["userInfo"].clone();
    let members = user.as_object_mut().expect("a user");
    members.retain(|name, _| matches!(name.as_str(), "username" | "uid" | "groups" | "extra"));
    user
}

/// L20, L22 and L23: a reader claims to be somebody else with headers that only a verified front proxy
/// may send, with other spellings of them, and by naming a header in `Connection` so that it be dropped
/// on the way. Nothing of that makes the reader somebody else: the header means nothing, or it is a
/// request to impersonate, which is authorized.
#[tokio::test(flavor = "multi_thread")]
async fn claims_make_nobody_of_a_reader() {
    let cluster = Cluster::start().await;
    let alice = cluster.alice();
    let own = user(who_am_i(&alice, &[]).await);
    assert_eq!(own["username"], "alice");
    assert_eq!(own["groups"], json!(["system:authenticated"]));
    let masters = "system:masters";
    // 201 means that the answer is about alice and nobody else.
    let rows: [(&[(&str, &str)], u16); 29] = [
        // L22: the headers of a front proxy from somebody who is none.
        (&[("X-Remote-User", "admin")], 201),
        (&[("X-Remote-User", "admin"), ("X-Remote-Group", masters)], 201),
        (&[("X-Remote-Group", masters)], 201),
        (&[("x-remote-GROUP", masters), ("X-Remote-Uid", "1")], 201),
        (&[("X-Remote-Extra-Scopes", "all"), ("X-Remote-User", "alice")], 201),
        (&[("X-Forwarded-User", "admin"), ("X-Forwarded-Groups", masters)], 201),
        // L23: spellings that some gateways take for the same header.
        (&[("X_Remote_User", "admin"), ("X_Remote_Group", masters)], 201),
        (&[("Impersonate_User", "admin")], 201),
        (&[("Impersonate_User", "admin"), ("Impersonate_Group", masters)], 201),
        (&[("Impersonate.User", "admin"), ("Impersonate-Users", "admin")], 201),
        (&[("Http-Impersonate-User", "admin")], 201),
        // L20: naming a header in `Connection` neither hides it from the server nor drops the token.
        (&[("Impersonate-User", "admin"), ("Connection", "Impersonate-User")], 403),
        (
            &[
                ("Impersonate-User", "alice"),
                ("Impersonate-Group", masters),
                ("Connection", "Impersonate-Group, close"),
            ],
            403,
        ),
        (&[("Connection", "Authorization")], 201),
        (&[("Connection", "Authorization, X-Remote-User"), ("X-Remote-User", "admin")], 201),
        // Impersonation is authorized in each of its parts.
        (&[("Impersonate-User", "admin")], 403),
        (&[("IMPERSONATE-USER", "admin")], 403),
        (&[("Impersonate-User", "system:masters")], 403),
        (&[("Impersonate-User", "alice"), ("Impersonate-User", "admin")], 403),
        (&[("Impersonate-User", "alice"), ("Impersonate-Group", masters)], 403),
        (&[("Impersonate-User", "alice"), ("Impersonate-Uid", "1")], 403),
        (&[("Impersonate-User", "alice"), ("Impersonate-Extra-Scopes", "all")], 403),
        // Blank values name no user, and impersonation headers without a user are refused.
        (&[("Impersonate-User", "")], 201),
        (&[("Impersonate-User", " \t ")], 201),
        (&[("Impersonate-User", ""), ("Impersonate-User", "admin")], 201),
        (&[("Impersonate-Uid", "1")], 400),
        (&[("Impersonate-Extra-Scopes", "all")], 400),
        (&[("Impersonate-Group", masters)], 400),
        (&[("Impersonate-Group", "")], 400),
    ];
    for (headers, code) in rows {
        let answer = who_am_i(&alice, headers).await;
        assert_eq!(answer.code, code, "{headers:?}: {}", answer.text());
        if code == 201 {
            assert_eq!(user(answer), own, "{headers:?}");
        }
    }
    // The first of two tokens counts, whoever adds the second.
    let second = [("authorization", "Bearer admin-token")];
    assert_eq!(user(who_am_i(&alice, &second).await), own);
}

/// A22: in HTTP/1.1 blanks around a value are no part of it, as in Go. HTTP/2 forbids them, but its library
/// hands them on: a name with them looks like that of somebody else and is that of nobody, so it is refused,
/// for those too who may impersonate everybody.
#[tokio::test(flavor = "multi_thread")]
async fn a22_no_name_begins_or_ends_with_a_blank() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    for value in ["alice", "alice ", "\talice", " alice \t "] {
        let shown = user(who_am_i(&admin, &[("Impersonate-User", value)]).await);
        assert_eq!(shown["username"], "alice", "{value:?} over HTTP/1.1");
    }
    let plain: [(&str, &[u8]); 1] = [("impersonate-user", b"alice")];
    let shown = user(admin.send_http2(Method::POST, WHO_AM_I, &plain, "{}").await);
    assert_eq!(shown["username"], "alice");
    for name in
        ["impersonate-user", "impersonate-group", "impersonate-uid", "impersonate-extra-scopes"]
    {
        for value in ["alice ", " alice", "alice\t", " ", "alice\u{a0}"] {
            let mut headers: Vec<(&str, &[u8])> = vec![(name, value.as_bytes())];
            if name != "impersonate-user" {
                headers.push(("impersonate-user", b"alice"));
            }
            let answer = admin.send_http2(Method::POST, WHO_AM_I, &headers, "{}").await;
            let text = answer.text();
            assert_eq!(answer.code, 400, "{name}: {value:?}: {text}");
            let want = format!("request header {name} begins or ends with whitespace");
            assert!(text.contains(&want), "{name}: {value:?}: {text}");
        }
    }
    // A user who may not impersonate gets the same response.
    let alice = cluster.alice();
    let blank: [(&str, &[u8]); 1] = [("impersonate-user", b"admin ")];
    assert_eq!(alice.send_http2(Method::POST, WHO_AM_I, &blank, "{}").await.code, 400);
    // Headers of a front proxy mean nothing from somebody who is none, with or without blanks.
    let proxied: [(&str, &[u8]); 2] = [("x-remote-user", b"admin "), ("x-remote-group", b" g")];
    let shown = user(alice.send_http2(Method::POST, WHO_AM_I, &proxied, "{}").await);
    assert_eq!(shown["username"], "alice");
}

/// Values of `Authorization` that are no token. Kubernetes treats each as no credential.
const NO_TOKENS: [&str; 9] = [
    "",
    "Bearer",
    "Bearer ",
    "Bearer   ",
    "bearer",
    "Bearer: admin-token",
    "Bearer  admin-token",
    "Token admin-token",
    "Basic YWRtaW46YWRtaW4=",
];

/// Tokens that nobody has.
const BAD_TOKENS: [&str; 9] = [
    "Bearer x",
    "Bearer \"\"",
    "Bearer null",
    "Bearer ,",
    "Bearer ..",
    "Bearer admin-token,",
    "Bearer admin-toke",
    "Bearer Admin-Token",
    "Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJhZG1pbiJ9.",
];

/// L21: a header without a token names nobody, so that it gives no more than no header at all, and
/// nothing where anonymous requests are refused. A token that nobody has is a failure, never anonymous.
#[tokio::test(flavor = "multi_thread")]
async fn an_empty_or_malformed_token_names_nobody() {
    let open = Cluster::start().await;
    let closed = Cluster::start_with(|options, _| {
        options.authentication_options.anonymous_access = AnonymousAccess::Off
    })
    .await;
    let (in_open, in_closed) = (open.anonymous(), closed.anonymous());
    for value in NO_TOKENS {
        let answer = who_am_i(&in_open, &[("authorization", value)]).await;
        let text = answer.text();
        assert_eq!(answer.code, 403, "{value:?}: {text}");
        assert!(text.contains(r#"User \"system:anonymous\" cannot create"#), "{value:?}: {text}");
    }
    for value in BAD_TOKENS {
        assert_eq!(who_am_i(&in_open, &[("authorization", value)]).await.code, 401, "{value:?}");
        let healthy = in_open.send(Method::GET, "/healthz", &[("authorization", value)], "").await;
        assert_eq!(healthy.code, 401, "{value:?}");
    }
    for value in NO_TOKENS.iter().chain(&BAD_TOKENS) {
        assert_eq!(who_am_i(&in_closed, &[("authorization", value)]).await.code, 401, "{value:?}");
    }
    for token in ["", " ", "x", "Bearer admin-token"] {
        let review = json!({"spec": {"token": token}});
        let answer = open.admin().post(TOKEN_REVIEWS, &review).await;
        let body: Value = serde_json::from_slice(&answer.bytes).expect("JSON");
        assert_ne!(body["status"]["authenticated"], true, "{token:?}: {body}");
        assert_eq!(body["status"]["user"]["username"], Value::Null, "{token:?}: {body}");
    }
}

/// A request may need a second permission: a PUT that creates, and a GET that runs a command, need `create`. Who
/// impersonates in a constrained mode needs it for both.
#[tokio::test(flavor = "multi_thread")]
async fn constrained_impersonation_covers_the_second_action_of_a_request() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    let role = |on: &[&str]| {
        let on: Vec<String> =
            on.iter().map(|verb| format!("impersonate-on:user-info:{verb}")).collect();
        json!({"metadata": {"name": "limited"}, "rules": [
            {"apiGroups": ["authentication.k8s.io"], "resources": ["users"],
             "resourceNames": ["bob"], "verbs": ["impersonate:user-info"]},
            {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": on},
            {"apiGroups": [""], "resources": ["pods/exec"], "verbs": on}]})
    };
    let bind = |name: &str, role: &str, user: &str| {
        json!({"metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}]})
    };
    let bindings = format!("{rbac}/clusterrolebindings");
    admin.post(&format!("{rbac}/clusterroles"), &role(&["get", "update"])).await.expect(201);
    admin.post(&bindings, &bind("limited", "limited", "alice")).await.expect(201);
    admin.post(&bindings, &bind("bob", "cluster-admin", "bob")).await.expect(201);
    let pod = json!({"metadata": {"name": "p"},
        "spec": {"containers": [{"name": "c", "image": "i"}]}});
    admin.post("/api/v1/namespaces/default/pods", &pod).await.expect(201);
    let alice = cluster.alice();
    let headers = [("impersonate-user", "bob"), ("content-type", "application/json")];
    let exec = "/api/v1/namespaces/default/pods/p/exec?command=ls";
    let lease = "/apis/coordination.k8s.io/v1/namespaces/default/leases/l";
    let body = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": "l"}, "spec": {"holderIdentity": "a"}});
    let put = async || alice.send(Method::PUT, lease, &headers, body.to_string()).await;
    let refused = put().await;
    assert_eq!(refused.code, 403, "{}", refused.text());
    assert!(refused.text().contains("impersonate-on:user-info:create"), "{}", refused.text());
    assert_eq!(admin.get(lease).await.code, 404);
    let refused = alice.send(Method::GET, exec, &headers, "").await;
    assert_eq!(refused.code, 403, "{}", refused.text());
    // With the permission for the second action the request proceeds.
    let allowed = role(&["get", "update", "create"]);
    admin.put(&format!("{rbac}/clusterroles/limited"), &allowed).await.expect(200);
    assert_eq!(put().await.code, 201);
    assert_eq!(alice.send(Method::GET, exec, &headers, "").await.code, 503);
}
