//! CertificateSigningRequests: their requesters, approvers and signers.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Method;
use serde_json::{Value, json};

use crate::client::{Answer, Client};
use crate::cluster::Cluster;

const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
const CLIENT_SIGNER: &str = "kubernetes.io/kube-apiserver-client";

/// `/CN=ann`, in base64 as `spec.request` is.
pub(crate) const ANN: &str = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlISU1IQUNBUUF3RGpFTU1Bb0dBMVVFQXd3RFlXNXVNRmt3RXdZSEtvWkl6ajBDQVFZSUtvWkl6ajBEQVFjRApRZ0FFUjE3aWdvTFJNWVkzcno4a1h6T2o3ZkhvWExXU05lcnVqSm4weldNU1V5R1pJcExHendNRzJnMWFMNWdOCmhVR1J2TkRjdlV6akR2eU1UTWgwRlk1Q1o2QUFNQW9HQ0NxR1NNNDlCQU1DQTBnQU1FVUNJQ3ZubEJIQkZmd3AKc3dlRmFUbGdKZVlYZ1d2MXF0WFhTZUtDRWZYeG43K1lBaUVBN0dXN3pJaTBHNEkvSVhrR1UvMHFNNmhIZFF3egpibHc3NFg0Q0dlRUhzOWs9Ci0tLS0tRU5EIENFUlRJRklDQVRFIFJFUVVFU1QtLS0tLQo=";
/// A request for the subject `/O=system:masters/CN=ann`.
const MASTER: &str = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlIaE1JR0pBZ0VBTUNjeEZ6QVZCZ05WQkFvTURuTjVjM1JsYlRwdFlYTjBaWEp6TVF3d0NnWURWUVFEREFOaApibTR3V1RBVEJnY3Foa2pPUFFJQkJnZ3Foa2pPUFFNQkJ3TkNBQVJIWHVLQ2d0RXhoamV2UHlSZk02UHQ4ZWhjCnRaSTE2dTZNbWZUTll4SlRJWmtpa3NiUEF3YmFEVm92bUEyRlFaRzgwTnk5VE9NTy9JeE15SFFWamtKbm9BQXcKQ2dZSUtvWkl6ajBFQXdJRFJ3QXdSQUlnY1hnamllOHl1TU9LM0FZeTJIRmFYSWxSWkl6L3BUZE1vTDVMZXhIawpoOEVDSUZCSThsd3FLcDh3SW4rTmpuQmorbHB6V05hMjY4eFpEWE12bDVpQXRDMmYKLS0tLS1FTkQgQ0VSVElGSUNBVEUgUkVRVUVTVC0tLS0tCg==";
/// A request for the subject `/O=dev/O=system:masters/CN=ann`.
const DEV_AND_MASTER: &str = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlId01JR1hBZ0VBTURVeEREQUtCZ05WQkFvTUEyUmxkakVYTUJVR0ExVUVDZ3dPYzNsemRHVnRPbTFoYzNSbApjbk14RERBS0JnTlZCQU1NQTJGdWJqQlpNQk1HQnlxR1NNNDlBZ0VHQ0NxR1NNNDlBd0VIQTBJQUJFZGU0b0tDCjBUR0dONjgvSkY4em8rM3g2Rnkxa2pYcTdveVo5TTFqRWxNaG1TS1N4czhEQnRvTldpK1lEWVZCa2J6UTNMMU0KNHc3OGpFeklkQldPUW1lZ0FEQUtCZ2dxaGtqT1BRUURBZ05JQURCRkFpQVpoTnJpck56cWJ2SnBSczBOdGNDdApkTzVoSlo1S3RLL0tBYVhaWW14enFBSWhBS2RHL2Z5SWY4S0dLM0YrQ2FYN1dzWWQzR0JsL21Bek5hZkVUZ2xPCkM2UlYKLS0tLS1FTkQgQ0VSVElGSUNBVEUgUkVRVUVTVC0tLS0tCg==";

fn request(name: &str, request: &str, signer: &str) -> Value {
    json!({"metadata": {"name": name},
        "spec": {"request": request, "signerName": signer, "usages": ["client auth"]}})
}

/// Two requests in one text, of which other readers of PEM take the second: to them the first one has no
/// end of line, or characters that are no base64.
fn two_in_one(change: impl Fn(&str) -> String) -> String {
    let decode = |encoded: &str| String::from_utf8(STANDARD.decode(encoded).unwrap()).unwrap();
    STANDARD.encode(format!("{}{}", change(&decode(ANN)), decode(MASTER)))
}

fn condition(r#type: &str) -> Value {
    json!({"type": r#type, "status": "True", "reason": "ByTest", "message": "m"})
}

fn conditions(all: &[&str]) -> Value {
    let all: Vec<Value> = all.iter().map(|own| condition(own)).collect();
    json!({"status": {"conditions": all}})
}

fn message(answer: Answer, code: u16) -> String {
    answer.expect(code)["message"].as_str().expect("a message").to_owned()
}

fn types(request: &Value) -> Vec<&str> {
    let all = request["status"]["conditions"].as_array().map_or(&[][..], Vec::as_slice);
    all.iter().map(|own| own["type"].as_str().expect("a type")).collect()
}

/// Grants alice all verbs on certificate requests, and these verbs on signers.
async fn grant(cluster: &Cluster, verb: &str, signers: &[&str]) -> Client {
    let admin = cluster.admin();
    let all = [
        "certificatesigningrequests",
        "certificatesigningrequests/approval",
        "certificatesigningrequests/status",
    ];
    let mut rules =
        vec![json!({"apiGroups": ["certificates.k8s.io"], "resources": all, "verbs": ["*"]})];
    if !signers.is_empty() {
        rules.push(json!({"apiGroups": ["certificates.k8s.io"], "resources": ["signers"],
            "verbs": [verb], "resourceNames": signers}));
    }
    let role = json!({"metadata": {"name": "r"}, "rules": rules});
    let made = admin.put(&format!("{RBAC}/clusterroles/r"), &role).await;
    assert!(matches!(made.code, 200 | 201), "{}", made.text());
    let binding = json!({"metadata": {"name": "r"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "r"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "alice"}]});
    let made = admin.put(&format!("{RBAC}/clusterrolebindings/r"), &binding).await;
    assert!(matches!(made.code, 200 | 201), "{}", made.text());
    cluster.alice()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_requested_is_validated() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    let with = |member: &str, value: Value| {
        let mut body = request("r", ANN, CLIENT_SIGNER);
        body["spec"][member] = value;
        body
    };
    let no_block = "PEM block type must be CERTIFICATE REQUEST";
    for (body, code, want) in [
        (with("expirationSeconds", json!(600)), 201, ""),
        (
            with("expirationSeconds", json!(599)),
            422,
            "spec.expirationSeconds: Invalid value: 599: may not specify a duration less than 600 seconds (10 minutes)",
        ),
        (
            with("request", json!("bm90IGEgY3Ny")),
            422,
            &format!("spec.request: Invalid value: \"bm90IGEgY3Ny\": {no_block}"),
        ),
        (
            with("request", json!("")),
            422,
            &format!("spec.request: Invalid value: \"\": {no_block}"),
        ),
        (with("request", json!("%%")), 400, "base64"),
        (with("usages", json!([])), 422, "spec.usages: Required value"),
        (
            with("usages", json!(["client auth", "client auth"])),
            422,
            "spec.usages[1]: Duplicate value: \"client auth\"",
        ),
        (
            with("usages", json!(["flying"])),
            422,
            "spec.usages[0]: Unsupported value: \"flying\": supported values: \"any\", \"cert sign\"",
        ),
        (with("signerName", json!("")), 422, "spec.signerName: Required value"),
        (
            with("signerName", json!("nodomain")),
            422,
            "spec.signerName: Invalid value: \"nodomain\": must be a fully qualified domain and path of the form 'example.com/signer-name'",
        ),
        (
            with("signerName", json!("kubernetes.io/legacy-unknown")),
            422,
            "the legacy signerName is not allowed via this API version",
        ),
        (
            with("signerName", json!("example/x")),
            422,
            "should be a domain with at least two segments separated by dots",
        ),
        (with("signerName", json!("example.com/X")), 422, "validating label \"X\""),
        (request("r", MASTER, "example.com/custom"), 201, ""),
        (request("r", MASTER, "kubernetes.io/kubelet-serving"), 201, ""),
        (
            request("r", MASTER, CLIENT_SIGNER),
            403,
            "use of kubernetes.io/kube-apiserver-client signer with system:masters group is not allowed",
        ),
        (
            request("r", DEV_AND_MASTER, CLIENT_SIGNER),
            403,
            "with system:masters group is not allowed",
        ),
    ] {
        let answer = admin.post(&format!("{REQUESTS}?dryRun=All"), &body).await;
        assert_eq!(answer.code, code, "{want}: {}", answer.text());
        assert!(
            answer.json()["message"].as_str().unwrap_or_default().contains(want),
            "{}",
            answer.text()
        );
    }
    // The signature of the request is that of its key.
    let mut pem = String::from_utf8(STANDARD.decode(ANN).unwrap()).unwrap();
    let at = pem.len() / 2;
    let letter = if &pem[at..=at] == "A" { "B" } else { "A" };
    pem.replace_range(at..=at, letter);
    let forged = with("request", json!(STANDARD.encode(pem)));
    let told = message(admin.post(REQUESTS, &forged).await, 422);
    assert!(told.contains("spec.request: Invalid value"), "{told}");
}

/// The server sets the requester of a certificate request, and no client can change it.
#[tokio::test(flavor = "multi_thread")]
async fn the_requester_is_fixed() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    let mut body = request("mine", ANN, "example.com/custom");
    body["status"] = json!({"conditions": [condition("Approved")], "certificate": "eA=="});
    let forged = json!({"username": "system:node:n9", "uid": "z", "groups": ["system:masters"],
        "extra": {"a": ["b"]}, "signerName": "example.com/other", "usages": ["server auth"]});
    for member in ["username", "uid", "groups", "extra"] {
        body["spec"][member] = forged[member].clone();
    }
    let headers = [
        ("impersonate-user", "alice"),
        ("impersonate-group", "system:masters"),
        ("impersonate-extra-dept", "it"),
    ];
    let made = admin.send(Method::POST, REQUESTS, &headers, body.to_string()).await.expect(201);
    assert_eq!(made["status"], json!({}), "nobody creates an approved request");
    assert_eq!(made["spec"]["username"], "alice");
    assert_eq!(made["spec"]["groups"], json!(["system:masters", "system:authenticated"]));
    assert_eq!(made["spec"]["extra"], json!({"dept": ["it"]}));
    assert_eq!(made["spec"].get("uid"), None);
    let path = format!("{REQUESTS}/mine");
    for part in ["", "/status", "/approval"] {
        let patch = json!({"spec": forged});
        let patched = admin.patch(&format!("{path}{part}"), "merge-patch", &patch).await;
        assert_eq!(patched.expect(200)["spec"], made["spec"], "{part}");
        let mut next = admin.get(&path).await.expect(200);
        next["spec"] = json!({"request": ANN, "signerName": "example.com/other"});
        let put = admin.put(&format!("{path}{part}"), &next).await;
        assert_eq!(put.expect(200)["spec"], made["spec"], "{part}");
        assert_eq!(admin.get(&format!("{path}{part}")).await.expect(200)["spec"], made["spec"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn approval_and_signature_are_for_those_who_may_do_it_for_the_signer() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    let certificate = STANDARD.encode(&cluster.ca);
    for (verb, signers, may_approve, may_sign) in [
        ("approve", &[][..], false, false),
        ("approve", &["other.com/x", "example.com"], false, false),
        ("approve", &["example.com/custom"], true, false),
        ("approve", &["example.com/*"], true, false),
        ("sign", &["example.com/custom"], false, true),
        ("sign", &["example.com/*"], false, true),
        ("sign", &["*"], false, false),
    ] {
        let alice = grant(&cluster, verb, signers).await;
        admin.post(REQUESTS, &request("r", ANN, "example.com/custom")).await.expect(201);
        let path = format!("{REQUESTS}/r");
        let check = |what: &str, answer: Answer, may: bool| match may {
            true => drop(answer.expect(200)),
            false => {
                let want = format!(
                    "certificatesigningrequests.certificates.k8s.io \"r\" is forbidden: user not permitted to {what} requests with signerName \"example.com/custom\""
                );
                assert_eq!(message(answer, 403), want, "{verb} {signers:?}");
            }
        };
        let labels = json!({"metadata": {"labels": {"a": "b"}}});
        alice.patch(&path, "merge-patch", &labels).await.expect(200);
        alice.patch(&format!("{path}/status"), "merge-patch", &labels).await.expect(200);
        let signed = json!({"status": {"certificate": certificate}});
        let answer = alice.patch(&format!("{path}/status"), "merge-patch", &signed).await;
        check("sign", answer, may_sign);
        let failed = conditions(&["Failed"]);
        let answer = alice.patch(&format!("{path}/status"), "merge-patch", &failed).await;
        check("sign", answer, may_sign);
        let current = admin.get(&path).await.expect(200);
        let approved = match types(&current).is_empty() {
            true => conditions(&["Approved"]),
            false => conditions(&["Failed", "Approved"]),
        };
        for dry_run in ["?dryRun=All", ""] {
            let at = format!("{path}/approval{dry_run}");
            check("approve", alice.patch(&at, "merge-patch", &approved).await, may_approve);
        }
        // A user who may only update the object changes neither of them.
        let mut next = admin.get(&path).await.expect(200);
        let status = next["status"].clone();
        next["status"] = json!({"conditions": [condition("Approved")], "certificate": certificate});
        assert_eq!(alice.put(&path, &next).await.expect(200)["status"], status);
        admin.delete(&path).await.expect(200);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn conditions_and_certificates_hold_once_they_are_set() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    let path = format!("{REQUESTS}/r");
    let certificate = STANDARD.encode(&cluster.ca);
    let patch = async |part: &str, body: Value| {
        admin.patch(&format!("{path}/{part}"), "merge-patch", &body).await
    };
    admin.post(REQUESTS, &request("r", ANN, "example.com/custom")).await.expect(201);

    for (part, body, want) in [
        (
            "status",
            conditions(&["Approved"]),
            "status.conditions: Forbidden: updates may not add a condition of type \"Approved\"",
        ),
        ("status", conditions(&["Denied"]), "updates may not add a condition of type \"Denied\""),
        (
            "approval",
            conditions(&["Approved", "Denied"]),
            "status.conditions[1].type: Invalid value: \"Denied\": Approved and Denied conditions are mutually exclusive",
        ),
        (
            "approval",
            conditions(&["Approved", "Approved"]),
            "status.conditions[1].type: Duplicate value: \"Approved\"",
        ),
        ("approval", conditions(&[""]), "status.conditions[0].type: Required value"),
        (
            "approval",
            json!({"status": {"conditions": [{"type": "Approved", "status": "False"}]}}),
            "status.conditions[0].status: Unsupported value: \"False\": supported values: \"True\"",
        ),
        (
            "approval",
            json!({"status": {"conditions": [{"type": "Approved"}]}}),
            "status.conditions[0].status: Required value",
        ),
        (
            "status",
            json!({"status": {"certificate": "AAAA"}}),
            "status.certificate: Invalid value: \"<certificate data>\": must contain at least one CERTIFICATE PEM block",
        ),
        (
            "status",
            json!({"status": {"certificate": ANN}}),
            "only CERTIFICATE PEM blocks are allowed, found \"CERTIFICATE REQUEST\"",
        ),
    ] {
        let told = message(patch(part, body).await, 422);
        assert!(told.contains(want), "{want}: {told}");
    }

    // An approver cannot set the certificate.
    let mut body = conditions(&["Approved"]);
    body["status"]["certificate"] = certificate.clone().into();
    let approved = patch("approval", body).await.expect(200);
    assert_eq!(approved["status"].get("certificate"), None);
    let own = &approved["status"]["conditions"][0];
    assert!(own["lastUpdateTime"].is_string() && own["lastTransitionTime"].is_string(), "{own}");

    for (part, body, want) in [
        (
            "approval",
            json!({"status": {"conditions": null}}),
            "updates may not remove a condition of type \"Approved\"",
        ),
        (
            "approval",
            conditions(&["Denied"]),
            "updates may not remove a condition of type \"Approved\"",
        ),
        ("approval", conditions(&["Approved", "Denied"]), "mutually exclusive"),
        ("status", conditions(&[]), "updates may not remove a condition of type \"Approved\""),
    ] {
        let told = message(patch(part, body).await, 422);
        assert!(told.contains(want), "{want}: {told}");
    }
    // A signer cannot change the approval.
    let mut other = conditions(&["Approved", "Failed"]);
    other["status"]["conditions"][0]["message"] = "changed".into();
    let failed = patch("status", other).await.expect(200);
    assert_eq!(types(&failed), ["Approved", "Failed"]);
    assert_eq!(&failed["status"]["conditions"][0], own);

    let signed = patch("status", json!({"status": {"certificate": certificate}})).await.expect(200);
    assert_eq!(signed["status"]["certificate"], certificate.as_str());
    for body in [
        json!({"status": {"certificate": null}}),
        json!({"status": {"certificate": STANDARD.encode(cluster.ca.repeat(2))}}),
    ] {
        let told = message(patch("status", body).await, 422);
        let want =
            "status.certificate: Forbidden: updates may not modify existing certificate content";
        assert!(told.contains(want), "{told}");
    }
    admin.delete(&path).await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_request_is_read_by_everybody_alike() {
    let cluster = Cluster::start().await;
    let alice = grant(&cluster, "", &[]).await;
    let texts = [
        two_in_one(|first| first.replacen("-----\n", "-----\u{c}\n", 1)),
        two_in_one(|first| first.replacen("-----\n", "-----\u{a0}\n", 1)),
        two_in_one(|first| first.replacen("MI", "M\u{2003}I", 1)),
        two_in_one(str::to_owned),
    ];
    for text in texts {
        let refused = alice.post(REQUESTS, &request("r", &text, CLIENT_SIGNER)).await;
        let message = message(refused, 422);
        assert!(message.contains("must be ASCII text with a single PEM block"), "{message}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn trust_bundles_and_pod_certificates_need_the_permission_of_their_signer() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    let group = "certificates.k8s.io";
    let resources = ["clustertrustbundles", "podcertificaterequests/status"];
    let rules = |signers: Value| {
        json!({"metadata": {"name": "bundles"}, "rules": [
            {"apiGroups": [group], "resources": resources, "verbs": ["*"]}, signers]})
    };
    let none = rules(json!({"apiGroups": [group], "resources": ["x"], "verbs": ["get"]}));
    admin.post(&format!("{RBAC}/clusterroles"), &none).await.expect(201);
    let subject = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "bob"});
    let role = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
        "name": "bundles"});
    let binding = json!({"metadata": {"name": "bundles"}, "roleRef": role, "subjects": [subject]});
    admin.post(&format!("{RBAC}/clusterrolebindings"), &binding).await.expect(201);
    let bob = cluster.bob();
    let version = admin.get("/apis/certificates.k8s.io").await.expect(200);
    let served = version["versions"].as_array().unwrap();
    let path_of = |plural: &str| {
        let versions = served.iter().map(|own| own["groupVersion"].as_str().unwrap().to_owned());
        versions.map(|own| format!("/apis/{own}/{plural}")).collect::<Vec<_>>()
    };
    let mut bundles = None;
    for path in path_of("clustertrustbundles") {
        if admin.get(&path).await.code == 200 {
            bundles = Some(path);
        }
    }
    let bundles = bundles.expect("a version with trust bundles");
    let bundle = json!({"metadata": {"name": "example.com:a:b"},
        "spec": {"signerName": "example.com/a", "trustBundle": cluster.ca}});
    let refused = message(bob.post(&bundles, &bundle).await, 403);
    let want = "user not permitted to attest for signerName \"example.com/a\"";
    assert!(refused.ends_with(want), "{refused}");
    let attest = rules(json!({"apiGroups": [group], "resources": ["signers"],
        "verbs": ["attest", "sign"], "resourceNames": ["example.com/*"]}));
    admin.put(&format!("{RBAC}/clusterroles/bundles"), &attest).await.expect(200);
    bob.post(&bundles, &bundle).await.expect(201);
}

/// No update gives a trust bundle to a signer that the user may not attest for.
#[tokio::test(flavor = "multi_thread")]
async fn a_trust_bundle_never_changes_its_signer() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    let bundles = "/apis/certificates.k8s.io/v1/clustertrustbundles";
    let bundle = |name: &str, signer: &str| {
        json!({"metadata": {"name": name},
            "spec": {"signerName": signer, "trustBundle": cluster.ca}})
    };
    let group = "certificates.k8s.io";
    let role = json!({"metadata": {"name": "bundles"}, "rules": [
        {"apiGroups": [group], "resources": ["clustertrustbundles"], "verbs": ["*"]},
        {"apiGroups": [group], "resources": ["signers"], "verbs": ["attest"],
         "resourceNames": ["example.com/a"]}]});
    admin.post(&format!("{RBAC}/clusterroles"), &role).await.expect(201);
    let binding = json!({"metadata": {"name": "bundles"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
                    "name": "bundles"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "bob"}]});
    admin.post(&format!("{RBAC}/clusterrolebindings"), &binding).await.expect(201);
    let bob = cluster.bob();
    bob.post(bundles, &bundle("plain", "")).await.expect(201);
    bob.post(bundles, &bundle("example.com:a:b", "example.com/a")).await.expect(201);
    admin.post(bundles, &bundle("other.io:x:b", "other.io/x")).await.expect(201);
    for name in ["plain", "example.com:a:b"] {
        let path = format!("{bundles}/{name}");
        let stored = admin.get(&path).await.expect(200);
        let mut moved = stored.clone();
        moved["spec"]["signerName"] = json!("other.io/x");
        let patch = json!({"spec": {"signerName": "other.io/x"}});
        let operations = json!([{"op": "add", "path": "/spec/signerName", "value": "other.io/x"}]);
        for answer in [
            bob.put(&path, &moved).await,
            bob.patch(&path, "merge-patch", &patch).await,
            bob.patch(&path, "json-patch", &operations).await,
            admin.patch(&path, "merge-patch", &patch).await,
        ] {
            let text = message(answer, 422);
            assert!(text.contains("\"other.io/x\": field is immutable"), "{text}");
        }
        assert_eq!(admin.get(&path).await.expect(200), stored);
    }
    // Only those who may attest for the signer write its bundles, except for owners and finalizers.
    let path = format!("{bundles}/other.io:x:b");
    let labels = json!({"metadata": {"labels": {"a": "b"}}});
    message(bob.patch(&path, "merge-patch", &labels).await, 403);
    let finalizers = json!({"metadata": {"finalizers": ["example.com/a"]}});
    bob.patch(&path, "merge-patch", &finalizers).await.expect(200);
    admin.patch(&path, "merge-patch", &labels).await.expect(200);
}
