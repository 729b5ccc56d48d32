//! Credentials, above all those of programs.

use cluster_client::{ClusterClient, ClusterError, Discovery};
use fake_http::{Answer, Script};

use crate::fixture::Cluster;

const V1: &str = "client.authentication.k8s.io/v1";

fn credential(status: &str) -> String {
    format!(r#"{{"apiVersion":"{V1}","kind":"ExecCredential","status":{status}}}"#)
}

fn exec(more: &str) -> String {
    format!("{{exec: {{apiVersion: {V1}, command: ./login, interactiveMode: Never{more}}}}}")
}

/// Answers 401 to every other token.
fn accept(token: &'static str) -> Script {
    Script::rule(move |request| match request.header("authorization") {
        Some(given) if given == format!("Bearer {token}") => Answer::json(r#"{"ok":true}"#),
        _ => Answer::json(r#"{"message":"Unauthorized"}"#).status(401),
    })
}

async fn get(client: &ClusterClient) -> Result<(), ClusterError> {
    client.get_json("/version", "").await.map(drop)
}

#[tokio::test]
async fn a_program_provides_a_token_once() {
    let cluster = Cluster::start(accept("secret"));
    let answer = credential(r#"{"token":"secret","expirationTimestamp":"2999-01-01T00:00:00Z"}"#);
    cluster.write_program("login", &format!("echo run >> \"$LOG\"; echo '{answer}'"));
    let log = cluster.folder.path().join("runs");
    let client =
        cluster.client(&exec(&format!(", env: [{{name: LOG, value: {}}}]", log.display())));
    for _ in 0..3 {
        get(&client).await.unwrap();
    }
    assert_eq!(std::fs::read_to_string(&log).unwrap(), "run\n");
}

#[tokio::test]
async fn credentials_that_expired_or_are_refused_are_renewed() {
    for (first, n_runs) in [
        (r#"{"token":"second","expirationTimestamp":"2001-01-01T00:00:00Z"}"#, 2),
        (r#"{"token":"first"}"#, 2),
    ] {
        let cluster = Cluster::start(accept("second"));
        let (first, second) = (credential(first), credential(r#"{"token":"second"}"#));
        let script = format!(
            "echo run >> runs; if [ $(wc -l < runs) = 1 ]; then echo '{first}'; else echo '{second}'; fi"
        );
        let folder = cluster.folder.path().display().to_string();
        cluster.write_program("login", &format!("cd {folder}; {script}"));
        let client = cluster.client(&exec(""));
        get(&client).await.unwrap();
        get(&client).await.unwrap();
        let runs = std::fs::read_to_string(cluster.folder.path().join("runs")).unwrap();
        assert_eq!(runs.lines().count(), n_runs);
    }
}

#[tokio::test]
async fn a_program_gets_the_listed_environment_and_no_other() {
    let cluster = Cluster::start(accept("v"));
    let answer = credential(r#"{"token":"v"}"#);
    cluster.write_program("login", &format!("env > \"$OUT\"; echo '{answer}'"));
    let out = cluster.folder.path().join("env");
    let more =
        format!(", provideClusterInfo: true, env: [{{name: OUT, value: {}}}]", out.display());
    get(&cluster.client(&exec(&more))).await.unwrap();
    let seen = std::fs::read_to_string(&out).unwrap();
    let names: Vec<&str> = seen.lines().filter_map(|line| Some(line.split_once('=')?.0)).collect();
    // The shell adds the last three by itself.
    let known = ["OUT", "PATH", "HOME", "KUBERNETES_EXEC_INFO", "PWD", "SHLVL", "_"];
    assert!(names.iter().all(|name| known.contains(name)), "{names:?}");
    assert!(seen.contains(r#""interactive":false"#) && seen.contains("certificate-authority-data"));
}

#[tokio::test]
async fn programs_that_provide_nothing_are_errors_with_words() {
    for (script, want) in [
        ("echo oh no >&2; exit 3", "it ended with exit status: 3 and said: oh no"),
        ("echo nonsense", "printed no ExecCredential of client.authentication.k8s.io/v1"),
        (
            r#"echo '{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1beta1","status":{"token":"t"}}'"#,
            "printed no ExecCredential",
        ),
        (
            r#"echo '{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","status":{}}'"#,
            "printed no token",
        ),
        (
            r#"echo '{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","status":{"token":"secret","expirationTimestamp":"soon"}}'"#,
            "expirationTimestamp",
        ),
        ("head -c 2000000 /dev/zero", "printed more than"),
    ] {
        let cluster = Cluster::start(accept("t"));
        cluster.write_program("login", script);
        let error = get(&cluster.client(&exec(""))).await.unwrap_err().to_string();
        assert!(error.contains(want) && !error.contains("secret"), "{error}");
        assert_eq!(cluster.peer.n_requests(), 0);
    }
    let cluster = Cluster::start(accept("t"));
    let hint = ", installHint: install it from example.com";
    let error = get(&cluster.client(&exec(hint))).await.unwrap_err().to_string();
    assert!(error.contains("cannot start it") && error.contains("install it from"), "{error}");
}

#[tokio::test]
async fn unknown_authorities_and_refused_tokens_are_told_apart() {
    let cluster = Cluster::start(accept("right"));
    let error = Discovery::read(&cluster.client("{token: wrong}")).await.unwrap_err().to_string();
    assert!(error.contains("does not accept the credentials"), "{error}");
    let other = Cluster::start(accept("right"));
    std::fs::copy(other.folder.path().join("ca.pem"), cluster.folder.path().join("ca.pem"))
        .unwrap();
    let error = get(&cluster.client("{token: right}")).await.unwrap_err().to_string();
    assert!(error.contains("certificate signed by unknown authority"), "{error}");
}
