//! Attack A14: what is accepted can be read, changed and deleted, however deeply it is nested.

use http::Method;
use serde_json::{Value, json};

use super::{NAMESPACES, tenant, wait_gone};
use crate::client::{Answer, Client};
use crate::cluster::Cluster;

const PODS: &str = "/api/v1/namespaces/tenant/pods";

/// The deepest values that fit into `spec`: the object and its `spec` are two levels of 512.
const DEPTHS: [usize; 3] = [130, 400, 510];

fn nested(depth: usize) -> String {
    format!("{}\"x\"{}", "{\"a\":".repeat(depth), "}".repeat(depth))
}

/// The library that tests read JSON with does not read such objects.
fn pod(name: &str, depth: usize) -> String {
    format!(
        r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"{name}","labels":{{"deep":"yes"}}}},"spec":{{"containers":[{{"name":"c","image":"i"}}],"deep":{}}}}}"#,
        nested(depth)
    )
}

async fn create(admin: &Client, depth: usize) -> Answer {
    let path = format!("{PODS}?fieldValidation=Ignore");
    admin.send(Method::POST, &path, &[], pod(&format!("deep-{depth}"), depth)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a14_objects_of_any_depth_that_is_accepted() {
    let cluster = Cluster::start().await;
    let admin = tenant(&cluster).await;
    for depth in DEPTHS {
        let whole = nested(depth);
        let name = format!("deep-{depth}");
        let path = format!("{PODS}/{name}");
        let expect = |what: &str, answer: Answer| {
            let text = answer.text();
            assert_eq!(answer.code, 200, "{what} at {depth}: {}", &text[..text.len().min(300)]);
            assert!(text.contains(&whole), "{what} at {depth}");
        };
        assert_eq!(create(&admin, depth).await.code, 201, "{depth}");
        expect("get", admin.get(&path).await);
        expect("list", admin.get(PODS).await);
        expect("select", admin.get(&format!("{PODS}?labelSelector=deep%3Dyes")).await);
        for (accept, sign) in [
            ("application/yaml", "items:\n- "),
            ("application/json;as=Table;v=v1;g=meta.k8s.io", "\"columnDefinitions\""),
            (
                "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
                "\"deep\":\"yes\"",
            ),
        ] {
            let list = admin.send(Method::GET, PODS, &[("accept", accept)], "").await;
            assert!(list.text().contains(&name) && list.text().contains(sign), "{accept}");
        }
        let pretty = admin.get(&format!("{PODS}?pretty=true")).await.text();
        assert!(pretty.contains("\n  \"items\": ["), "{depth}");
        let watch = format!("{PODS}?watch=1&resourceVersion=0&timeoutSeconds=1");
        expect("watch", admin.get(&watch).await);

        let patch = json!({"metadata": {"annotations": {"patched": "yes"}}});
        for kind in ["merge-patch", "strategic-merge-patch"] {
            expect(kind, admin.patch(&path, kind, &patch).await);
        }
        let patch = json!([{"op": "add", "path": "/metadata/annotations/again", "value": "yes"}]);
        expect("json-patch", admin.patch(&path, "json-patch", &patch).await);
        let put = admin.get(&path).await.text();
        let put = put.replace("\"deep\":\"yes\"", "\"deep\":\"no\"");
        let put =
            admin.send(Method::PUT, &format!("{path}?fieldValidation=Ignore"), &[], put).await;
        expect("put", put);
        let status = json!({"status": {"phase": "Running"}});
        let status = admin.patch(&format!("{path}/status"), "merge-patch", &status).await;
        expect("status", status);
        expect("delete", admin.delete(&path).await);
        assert_eq!(admin.get(&path).await.code, 404, "{depth}");

        // One that nobody deletes goes with its collection and with its namespace.
        assert_eq!(create(&admin, depth).await.code, 201, "{depth}");
        assert_eq!(admin.delete(PODS).await.code, 200, "{depth}");
        assert_eq!(create(&admin, depth).await.code, 201, "{depth}");
    }
    admin.delete(&format!("{NAMESPACES}/tenant")).await.expect(200);
    wait_gone(&admin, &format!("{NAMESPACES}/tenant")).await;
    assert_eq!(admin.get(PODS).await.expect(200)["items"], json!([]));
}

/// An object that is nested too deeply is refused in every format, with a message.
#[tokio::test(flavor = "multi_thread")]
async fn a14_deeper_objects_are_refused() {
    let cluster = Cluster::start().await;
    let admin = tenant(&cluster).await;
    let told = |answer: Answer, code: u16| -> String {
        let status: Value = answer.expect(code);
        status["message"].as_str().expect("a message").to_owned()
    };
    for depth in [511, 600, 100_000] {
        let message = told(create(&admin, depth).await, 400);
        assert!(message.contains("exceeded max depth of 512"), "{depth}: {message}");
    }
    assert_eq!(create(&admin, 400).await.code, 201);
    let path = format!("{PODS}/deep-400");
    let patch = format!("{{\"spec\":{{\"deep\":{}}}}}", nested(600));
    for kind in ["merge-patch", "strategic-merge-patch"] {
        let content_type = format!("application/{kind}+json");
        let headers = [("content-type", content_type.as_str())];
        let answer = admin.send(Method::PATCH, &path, &headers, patch.clone()).await;
        assert_eq!(answer.code, 400, "{kind}");
    }
    // Each operation is flat, and each puts the object into a copy of itself.
    let copy = json!([
        {"op": "copy", "from": "/spec/deep", "path": "/spec/other"},
        {"op": "copy", "from": "/spec/deep", "path": "/spec/other/a/a/a/a/a/a/a/a/a/a".to_owned() + &"/a".repeat(300)},
    ]);
    let answer = admin.patch(&path, "json-patch", &copy).await;
    let message = told(answer, 413);
    assert!(message.contains("exceeds max depth of 512"), "{message}");
    assert_eq!(admin.delete(&path).await.code, 200);
}
