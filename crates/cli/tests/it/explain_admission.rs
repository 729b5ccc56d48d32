//! Tests of `portcullis explain --admission`.

use serde_json::{Value, json};

use crate::expected::assert_is;
use crate::program::{Run, TESTDATA, run, run_with_stdin};

const CLUSTER: [&str; 2] = ["--objects", "admission/cluster"];

fn ask(args: &str, more: &[&str]) -> Run {
    let args: Vec<&str> = args.split(' ').collect();
    run(&[&["explain", "--admission"], &args[..], &CLUSTER, more].concat())
}

/// Compares the text output with a file.
#[track_caller]
fn check(expected: &str, args: &str, code: i32) {
    let found = ask(args, &[]);
    assert_eq!((found.code, found.stderr.as_str()), (code, ""), "{args}");
    assert_is(&format!("{TESTDATA}/admission/{expected}.txt"), &found.stdout);
}

/// Returns the explanation as JSON.
#[track_caller]
fn told(args: &str, code: i32) -> Value {
    let found = ask(args, &["-o", "json"]);
    assert_eq!((found.code, found.stderr.as_str()), (code, ""), "{args}");
    serde_json::from_str(&found.stdout).unwrap()
}

/// Each hook as `name outcome`.
fn hooks(explanation: &Value) -> Vec<String> {
    let all = explanation["hooks"].as_array().unwrap().iter();
    all.map(|hook| {
        format!("{} {}", hook["webhook"].as_str().unwrap(), hook["outcome"].as_str().unwrap())
    })
    .collect()
}

#[test]
fn people_see_whom_a_write_meets() {
    check("created", "admission/pod.yaml --as ana", 4);
    check("dry-run", "admission/pod.yaml --as ana --as-group breakglass --dry-run", 1);
    check("deleted", "admission/widget.yaml --as ana --operation delete", 1);
    check(
        "connected",
        "admission/pod.yaml --as ana --operation connect --subresource exec --all",
        4,
    );
    check("updated", "admission/widget.yaml --old admission/widget-old.yaml --as ana -n lab", 4);
    check("another-user", "admission/widget.yaml --as bob", 4);
    check("waiting-denied", "admission/waiting.yaml --as ana", 1);
    check("waiting", "admission/waiting.yaml --as root --as-group system:masters", 4);
    check("exempt", "admission/cluster/hooks.yaml --as ana", 0);
    check("review", "admission/review.yaml --as ana", 0);
}

#[test]
fn programs_get_everything() {
    let explanation = told("admission/pod.yaml --as ana", 4);
    assert_eq!(explanation["outcome"], "unknown");
    assert_eq!(
        explanation["request"],
        json!({
            "operation": "CREATE",
            "kind": {"group": "", "version": "v1", "kind": "Pod"},
            "resource": {"group": "", "version": "v1", "resource": "pods"},
            "name": "web",
            "namespace": "prod",
            "user": "ana",
            "groups": ["system:authenticated"],
            "dryRun": false,
        })
    );
    let want = [
        "inject.mesh.example.com called",
        "defaults.mesh.example.com skipped",
        "count.quota.example.com called",
        "images.guard.example.com called",
    ];
    assert_eq!(hooks(&explanation), want);
    assert_eq!(
        explanation["hooks"][0],
        json!({
            "phase": "mutating",
            "index": 0,
            "configuration": "mesh",
            "webhook": "inject.mesh.example.com",
            "outcome": "called",
            "failurePolicy": "Ignore",
            "timeoutSeconds": 10,
            "reviewVersion": "v1",
            "sideEffects": "None",
            "endpoint": {
                "service": {"namespace": "mesh", "name": "injector"}, "port": 443, "path": "/inject",
            },
            "kind": {"group": "", "version": "v1", "kind": "Pod"},
            "resource": {"group": "", "version": "v1", "resource": "pods"},
            "conditions": [{
                "name": "not-by-the-mesh",
                "expression":
                    "request.userInfo.username != 'system:serviceaccount:mesh:injector'",
                "value": "true",
                "parts": [
                    {"depth": 1, "text": "request.userInfo.username", "value": "\"ana\""},
                ],
            }],
        })
    );
    let skipped = &explanation["hooks"][1];
    assert_eq!(skipped["why"], "match condition \"has-ports\" is false");
    assert_eq!(
        explanation["initializers"],
        json!({
            "origin": "configuration",
            "pending": [
                {
                    "name": "claims.volumes.example.com", "after": [], "runnable": true,
                    "configuration": "volumes", "failurePolicy": "Ignore",
                },
                {
                    "name": "labels.volumes.example.com", "after": [], "runnable": true,
                    "configuration": "volumes", "failurePolicy": "Ignore",
                },
                {
                    "name": "seal.volumes.example.com",
                    "after": ["claims.volumes.example.com", "labels.volumes.example.com"],
                    "runnable": false,
                    "configuration": "volumes",
                    "failurePolicy": "Fail",
                },
            ],
        })
    );
    let refused = told("admission/widget.yaml --as ana --operation delete", 1);
    assert_eq!(refused["outcome"], "refused");
    assert_eq!(refused["refusal"]["code"], 403);
    let exempt = told("admission/review.yaml --as ana", 0);
    assert_eq!((&exempt["outcome"], &exempt["exemption"]), (&json!("admitted"), &json!("review")));
}

/// Rules, selectors and conditions, each with the nearest thing on the other side.
#[test]
fn what_decides_about_each_hook() {
    let inject = "inject.mesh.example.com";
    let outcome = |changes: &str, args: &[&str]| {
        let pod = std::fs::read_to_string(format!("{TESTDATA}/admission/pod.yaml")).unwrap();
        let pod = match changes.split_once('→') {
            Some((from, to)) => {
                assert!(pod.contains(from), "{from}");
                pod.replace(from, to)
            }
            None => pod,
        };
        let flags = ["explain", "--admission", "-o", "json", "--all"];
        let found = run_with_stdin(&[&flags[..], &CLUSTER, args].concat(), pod.as_bytes());
        assert_eq!(found.stderr, "", "{changes}");
        let explanation: Value = serde_json::from_str(&found.stdout).unwrap();
        let hooks = explanation["hooks"].as_array().unwrap();
        let hook = hooks.iter().find(|hook| hook["webhook"] == inject).unwrap();
        let why = hook["why"].as_str().unwrap_or_default();
        format!("{}: {why}", hook["outcome"].as_str().unwrap())
    };
    for (changes, args, want) in [
        ("", &["--as", "ana"][..], "called: "),
        (
            "namespace: prod→namespace: lab",
            &["--as", "ana"],
            "skipped: namespaceSelector does not match",
        ),
        (
            "namespace: prod→namespace: gone",
            &["--as", "ana"],
            "unknown: its namespaceSelector needs the labels of namespace \"gone\", which \
             --objects does not contain",
        ),
        (
            "app: web→mesh.example.com/inject: \"false\"",
            &["--as", "ana"],
            "skipped: objectSelector does not match",
        ),
        ("app: web→mesh.example.com/inject: \"true\"", &["--as", "ana"], "called: "),
        (
            "",
            &["--as", "system:serviceaccount:mesh:injector"],
            "skipped: match condition \"not-by-the-mesh\" is false",
        ),
        ("", &["--as", "ana", "--operation", "delete"], "unmatched: "),
        ("", &["--as", "ana", "--subresource", "status"], "unmatched: "),
        ("  namespace: prod\n→", &["--as", "ana", "-n", "prod"], "called: "),
        (
            "  namespace: prod\n→",
            &["--as", "ana"],
            "unknown: its namespaceSelector needs the labels of namespace \"default\", which --objects does not contain",
        ),
    ] {
        assert_eq!(outcome(changes, args), want, "{changes} {args:?}");
    }
}

/// New objects wait for the initializers of several configurations in one order.
#[test]
fn initializers_wait_in_one_order() {
    let configuration = |name: &str, names: &[(&str, &str)]| {
        let entry = |(name, resource): &(&str, &str)| {
            json!({
                "name": name,
                "rules": [{"apiGroups": ["*"], "apiVersions": ["*"], "resources": [resource]}],
            })
        };
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1alpha1",
            "kind": "InitializerConfiguration",
            "metadata": {"name": name},
            "initializers": names.iter().map(entry).collect::<Vec<_>>(),
        })
    };
    let folder = tempfile::tempdir().unwrap();
    let pending = |all: &[Value], object: &Value| {
        let file = folder.path().join("all.json");
        let text: String = all.iter().map(|one| format!("{one}\n")).collect();
        std::fs::write(&file, text).unwrap();
        let flags = ["explain", "--admission", "-o", "json", "--as", "ana", "--objects"];
        let args = [&flags[..], &[file.to_str().unwrap()]].concat();
        let found = run_with_stdin(&args, object.to_string().as_bytes());
        assert_eq!((found.code, found.stderr.as_str()), (4, ""));
        let explanation: Value = serde_json::from_str(&found.stdout).unwrap();
        let entries = explanation["initializers"]["pending"].as_array().unwrap().clone();
        let name = |entry: &Value| entry["name"].as_str().unwrap().to_owned();
        entries.iter().map(name).collect::<Vec<_>>()
    };
    let all = [
        configuration("b", &[("x.b.c", "*")]),
        configuration("a", &[("y.b.c", "pods"), ("z.b.c", "*")]),
    ];
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}});
    let deployment =
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}});
    assert_eq!(pending(&all, &pod), ["y.b.c", "z.b.c", "x.b.c"], "every initializer");
    assert_eq!(pending(&all, &deployment), ["z.b.c", "x.b.c"], "only matching initializers");
    let twice = [
        configuration("b", &[("x.b.c", "*"), ("y.b.c", "*")]),
        configuration("a", &[("y.b.c", "pods")]),
    ];
    assert_eq!(pending(&twice, &pod), ["y.b.c", "x.b.c"], "an initializer that occurs twice");
}

#[test]
fn what_can_not_be_explained_is_said() {
    for (args, code, want) in [
        ("admission/pod.yaml", 2, "--admission needs --as or --as-group"),
        ("admission/pod.yaml --as ana --operation update", 2, "needs --old"),
        (
            "admission/pod.yaml --as ana --operation delete --old admission/pod.yaml",
            2,
            "--old is for",
        ),
        ("admission/pod.yaml --as ana --operation connect", 2, "needs --subresource"),
        ("admission/pod.yaml --as ana --verb get", 2, "cannot be used with"),
        ("- --as ana --old -", 2, "standard input can be read once"),
        ("admission/missing.yaml --as ana", 3, "open admission/missing.yaml: no such file"),
        (
            "admission/widget.yaml --as ana --old admission/pod.yaml",
            3,
            "contains no Widget named `cog`",
        ),
        (
            "binding.yaml --as ana --resource gadgets",
            3,
            "--resource: no resource is named `gadgets`",
        ),
    ] {
        let found = ask(args, &[]);
        assert_eq!((found.code, found.stdout.as_str()), (code, ""), "{args}: {}", found.stderr);
        assert!(found.stderr.contains(want), "{args}: {}", found.stderr);
    }
    let found = run(&["explain", "--admission", "admission/widget.yaml", "--as", "ana"]);
    assert_eq!(found.code, 3);
    let want = "error: admission/widget.yaml:1:1: unknown kind `Widget` of version \
                `example.com/v1beta1`: pass its CustomResourceDefinition with --objects\n";
    assert_eq!(found.stderr, want);
    // The flags of a write are for it alone.
    assert_eq!(run(&["explain", "--operation", "create"]).code, 2);
}

#[test]
fn a_configuration_that_is_wrong_is_shown() {
    let args = ["explain", "--admission", "admission/pod.yaml", "--as", "ana", "--objects"];
    let found = run(&[&args[..], &["admission/faulty.yaml"]].concat());
    assert_eq!((found.code, found.stdout.as_str()), (3, ""));
    let want = "error: unknown field \"webhooks[0].matchPolcy\"\n";
    assert!(found.stderr.contains(want), "{}", found.stderr);
}

/// The result of a condition with an authorizer check is unknown if the check would call a webhook.
#[test]
fn an_authorizer_that_is_not_called_leaves_it_open() {
    let chain = ["--authorization-config", "offline/authorization.yaml"];
    let policies = ["--authorization-policy-file", "offline/policies.jsonl", "--no-webhooks"];
    let more = [&chain[..], &policies, &["-o", "json"]].concat();
    let found = ask("admission/pod.yaml --as ana", &more);
    assert_eq!((found.code, found.stderr.as_str()), (4, ""));
    let explanation: Value = serde_json::from_str(&found.stdout).unwrap();
    let hooks = explanation["hooks"].as_array().unwrap();
    let guard = hooks.iter().find(|hook| hook["webhook"] == "images.guard.example.com").unwrap();
    assert_eq!(guard["outcome"], "unknown", "{guard}");
    let assumed = ["--webhook", "guard.example.com=allow"];
    let found = ask("admission/pod.yaml --as ana", &[&more[..], &assumed].concat());
    let explanation: Value = serde_json::from_str(&found.stdout).unwrap();
    let hooks = explanation["hooks"].as_array().unwrap();
    let guard = hooks.iter().find(|hook| hook["webhook"] == "images.guard.example.com").unwrap();
    assert_eq!(guard["outcome"], "skipped", "{guard}");
}
