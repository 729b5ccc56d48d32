//! Recorded HTTP scenarios against the real program: those that pass today must pass tomorrow.

use std::path::{Path, PathBuf};
use std::time::Duration;

use conformance::REPOSITORY_VECTORS;
use conformance::http::{
    ALL_SUITES, Endpoint, HttpOptions, HttpReport, Ratchet, ServerUnderTest, http_folder, run_http,
};
use serde_json::{Value, json};

use crate::server::{Place, Server, directory};

fn program() -> ServerUnderTest {
    ServerUnderTest::Program(PathBuf::from(env!("CARGO_BIN_EXE_portcullis")))
}

fn options(vectors: &Path, server: ServerUnderTest) -> HttpOptions {
    HttpOptions {
        vectors: vectors.to_owned(),
        suite: ALL_SUITES.to_owned(),
        only: None,
        server,
        n_workers: 4,
        until_timeout: Duration::from_secs(20),
    }
}

/// `passing.txt` beside the scenarios lists them. A change that makes one of them fail either breaks
/// what clients rely on, or needs a reason to take the line out by hand.
#[test]
fn scenarios_listed_as_passing_pass() {
    let vectors = Path::new(REPOSITORY_VECTORS);
    let ratchet = Ratchet::read(&http_folder(vectors)).unwrap();
    assert!(ratchet.ids().len() >= 300, "the list lost its scenarios");
    let only = Some(ratchet.ids().clone());
    let reports = run_http(&HttpOptions { only, ..options(vectors, program()) }).unwrap();
    let passed: Vec<&str> = reports.iter().flat_map(|report| report.ids(true)).collect();
    let missing = ratchet.ids().iter().filter(|id| !passed.contains(&id.as_str()));
    let missing: Vec<&String> = missing.collect();
    let mut printed = Vec::new();
    for report in &reports {
        report.print_failures(&mut printed).unwrap();
    }
    let printed = String::from_utf8(printed).unwrap();
    assert!(missing.is_empty(), "scenarios that passed before: {missing:?}\n{printed}");
}

/// A scenario in a namespace of its own that creates a ConfigMap and one outside of it that creates
/// a ClusterRole, each answered with a code.
fn scenarios(namespaced_code: u16, cluster_code: u16) -> tempfile::TempDir {
    let scenario = |id: &str, namespace: Value, path: &str, object: Value, code: u16| {
        let ignore = ["/apiVersion", "/kind", "/data", "/rules", "/metadata"];
        json!({
            "id": id, "suite": "http-x", "feature": "f", "namespace": namespace,
            "steps": [{
                "method": "POST", "path": path, "body": object, "ignore": ignore,
                "expect": {"code": code, "warnings": [], "body": {}},
            }],
        })
    };
    let namespaced = scenario(
        "in-namespace",
        "scenario-ns".into(),
        "/api/v1/namespaces/scenario-ns/configmaps",
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}),
        namespaced_code,
    );
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": "scenario-role"}, "rules": [],
    });
    let roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
    let cluster = scenario("in-cluster", Value::Null, roles, role, cluster_code);
    let folder = directory();
    let text = format!("{namespaced}\n{cluster}\n");
    std::fs::write(folder.path().join("http-x.jsonl"), text).unwrap();
    folder
}

fn ids(reports: &[HttpReport], is_passed: bool) -> Vec<&str> {
    reports.iter().flat_map(|report| report.ids(is_passed)).collect()
}

/// The proof that the runner can fail, with servers of its own and with one that runs already. What a
/// scenario creates is gone afterwards, so the second run begins as the first did.
#[test]
fn a_scenario_passes_only_if_every_answer_is_the_recorded_one() {
    let data = directory();
    let tokens = data.path().join("tokens.csv");
    std::fs::write(&tokens, "t,admin,1,system:masters\n").unwrap();
    let flag = format!("--token-auth-file={}", tokens.display());
    let server = Server::start_with(data.path(), &Place::Embedded, &[&flag]);
    let url = format!("https://{}", server.address);
    let authority = data.path().join("data/ca.crt");
    for authority in [None, Some(authority.as_path())] {
        let endpoint = Endpoint::new(&url, "t", authority).unwrap();
        for server in [program(), ServerUnderTest::Running(endpoint)] {
            for (codes, passed, failed) in [
                ((201, 201), vec!["in-namespace", "in-cluster"], vec![]),
                ((409, 201), vec!["in-cluster"], vec!["in-namespace"]),
                ((201, 409), vec!["in-namespace"], vec!["in-cluster"]),
            ] {
                let folder = scenarios(codes.0, codes.1);
                let reports = run_http(&options(folder.path(), server.clone())).unwrap();
                assert_eq!(ids(&reports, true), passed, "{codes:?} {server:?}");
                assert_eq!(ids(&reports, false), failed, "{codes:?} {server:?}");
            }
        }
    }
}
