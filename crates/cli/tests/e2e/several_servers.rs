//! Three servers on three etcd members, with one set of certificates and one address in front.

mod balancer;
mod retrying_client;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use http::Method;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::task::JoinSet;

use self::balancer::Balancer;
use self::retrying_client::RetryingClient;
use crate::client::Client;
use crate::server::{Allowance, Place, Server, directory};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";

/// The longest time that a server may take to start or to stop, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// The set of certificates and keys, as `portcullis pki init` makes it.
struct SharedFiles(TempDir);

impl SharedFiles {
    fn create() -> Self {
        let folder = directory();
        let path = folder.path().join("pki");
        let output = Command::new(env!("CARGO_BIN_EXE_portcullis"))
            .args(["pki", "init", "--server", "127.0.0.1:6443"])
            .arg(&path)
            .output()
            .unwrap();
        let printed = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(printed.contains("--requestheader-allowed-names front-proxy-client"), "{printed}");
        Self(folder)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join("pki").join(name)
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    /// The flags that the command prints.
    fn flags(&self) -> Vec<String> {
        let file = |flag: &str, name: &str| format!("--{flag}={}", self.path(name).display());
        vec![
            file("client-ca-file", "ca.crt"),
            file("tls-cert-file", "apiserver.crt"),
            file("tls-private-key-file", "apiserver.key"),
            file("service-account-signing-key-file", "sa.key"),
            file("service-account-key-file", "sa.pub"),
            file("requestheader-client-ca-file", "front-proxy-ca.crt"),
            "--requestheader-allowed-names=front-proxy-client".to_owned(),
        ]
    }

    /// A client with a certificate of the set: `admin` or `front-proxy-client`.
    fn client(&self, server: &Server, name: &str) -> Client {
        let (certificate, key) = (format!("{name}.crt"), format!("{name}.key"));
        let (certificate, key) = (self.read(&certificate), self.read(&key));
        Client::new(server.address, &self.read("ca.crt"), &certificate, &key)
    }
}

fn start(folder: &Path, place: &Place, flags: &[String]) -> Server {
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    match Server::try_start(folder, place, &flags, Allowance::default()) {
        Ok(server) => server,
        Err(refusal) => panic!("{refusal}"),
    }
}

/// Waits until the answer to `/readyz?verbose` has a line, and returns its code.
async fn wait_for_check(client: &Client, line: &str) -> u16 {
    let begun = Instant::now();
    loop {
        let (code, text) = client.get_text("/readyz?verbose").await;
        if text.contains(line) {
            return code;
        }
        assert!(begun.elapsed() < PATIENCE, "no {line} in {text}");
        // This waits for a real process: the server compares itself with the others.
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Waits until the log of the server has the text. The server writes its log in the background.
async fn wait_for_log(server: &Server, text: &str) {
    let begun = Instant::now();
    while !server.log().contains(text) {
        assert!(begun.elapsed() < PATIENCE, "no {text} in {}", server.log());
        // This waits for a real process, which writes to a file.
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Issues a token of the default service account at one server.
async fn issue_token(admin: &Client) -> String {
    let body =
        json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
    let path = format!("{ACCOUNTS}/tester/token");
    let (code, issued) = admin.ask(Method::POST, &path, &body).await;
    assert_eq!(code, 201, "{issued}");
    issued["status"]["token"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn credentials_are_valid_at_each_server_and_restarts_lose_nothing() {
    let files = SharedFiles::create();
    let place = Place::etcd_cluster();
    let mut flags = files.flags();
    // The server goes on for this long after /readyz fails, so that the balancer notices.
    flags.push("--shutdown-delay-duration=3s".to_owned());
    let folders = [directory(), directory(), directory()];
    let mut servers: Vec<Server> =
        folders.iter().map(|folder| start(folder.path(), &place, &flags)).collect();
    let admin = files.client(&servers[0], "admin");
    let account = json!({"metadata": {"name": "tester"}});
    assert_eq!(admin.ask(Method::POST, ACCOUNTS, &account).await.0, 201);
    let group = "rbac.authorization.k8s.io";
    let binding = json!({
        "metadata": {"name": "tester"},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "edit"},
        "subjects": [{"kind": "ServiceAccount", "name": "tester", "namespace": "default"}],
    });
    let bindings = format!("/apis/{group}/v1/namespaces/default/rolebindings");
    assert_eq!(admin.ask(Method::POST, &bindings, &binding).await.0, 201);

    // A token of each server, the certificate of the administrator and that of a front proxy are valid at each.
    let mut tokens = Vec::new();
    for server in &servers {
        tokens.push(issue_token(&files.client(server, "admin")).await);
    }
    for server in &servers {
        for token in &tokens {
            let client = Client::anonymous(server.address, &files.read("ca.crt"));
            let client =
                RetryingClient::new(client, &[("authorization", &format!("Bearer {token}"))]);
            let listed = client.send(Method::GET, MAPS, &Value::Null).await.unwrap();
            assert_eq!(listed.0, 200, "{}", listed.1);
        }
        let proxy = files.client(server, "front-proxy-client");
        let proxy = RetryingClient::new(
            proxy,
            &[("x-remote-user", "ana"), ("x-remote-group", "system:masters")],
        );
        let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
        let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
        let (code, review) = proxy.send(Method::POST, path, &review).await.unwrap();
        assert_eq!((code, &review["status"]["userInfo"]["username"]), (201, &json!("ana")));
        let client = files.client(server, "admin");
        assert_eq!(wait_for_check(&client, "[+]peer-trust ok").await, 200, "{}", server.log());
    }

    // Readers and writers at the address in front, while one server after the other restarts.
    let addresses = servers.iter().map(|server| server.address).collect();
    let balancer = Balancer::start(addresses, files.client(&servers[0], "admin")).await;
    let is_over = Arc::new(AtomicBool::new(false));
    let mut workers = JoinSet::new();
    for n in 0..6 {
        let ca = files.read("ca.crt");
        let token = format!("Bearer {}", tokens[n % 3]);
        let client = match n % 2 {
            0 => RetryingClient::new(admin.at(balancer.address), &[]),
            _ => RetryingClient::new(
                Client::anonymous(balancer.address, &ca),
                &[("authorization", &token)],
            ),
        };
        workers.spawn(work(n, client, Arc::clone(&is_over)));
    }
    for n in 0..3 {
        let address = servers[n].address;
        let old = servers.remove(n);
        assert_eq!(old.stop(PATIENCE), 0);
        balancer.wait_for_health(n, false).await;
        let mut flags = flags.clone();
        flags.push(format!("--secure-port={}", address.port()));
        servers.insert(n, start(folders[n].path(), &place, &flags));
        balancer.wait_for_health(n, true).await;
    }
    is_over.store(true, Ordering::SeqCst);
    let (mut n_written, mut n_requests, mut n_retries) = (0, 0, 0);
    let mut acknowledged = Vec::new();
    while let Some(done) = workers.join_next().await {
        let done = done.unwrap();
        n_written += done.writes.len();
        n_requests += done.n_requests;
        n_retries += done.n_retries;
        assert_eq!(done.failures, Vec::<String>::new());
        acknowledged.extend(done.writes);
    }
    println!("{n_requests} requests, {n_written} objects written, {n_retries} requests sent again");
    assert!(n_written > 10, "{n_written}");
    let after = files.client(&servers[2], "admin");
    let (code, list) = after.ask(Method::GET, MAPS, &Value::Null).await;
    assert_eq!(code, 200);
    for (name, value) in acknowledged {
        let mut items = list["items"].as_array().unwrap().iter();
        let found = items.find(|item| item["metadata"]["name"] == name.as_str());
        assert_eq!(found.map(|item| &item["data"]["value"]), Some(&json!(value)), "{name} is lost");
    }
}

/// The results of one client.
#[derive(Default)]
struct Work {
    /// The objects as they were acknowledged last.
    writes: Vec<(String, String)>,
    n_requests: usize,
    n_retries: usize,
    failures: Vec<String>,
}

/// Creates, updates and reads objects, until it is told to end or something fails.
async fn work(id: usize, client: RetryingClient, is_over: Arc<AtomicBool>) -> Work {
    let mut done = Work::default();
    while !is_over.load(Ordering::SeqCst) && done.failures.is_empty() {
        let name = format!("w{id}-{}", done.writes.len());
        let mut object = json!({"metadata": {"name": name}, "data": {"value": "created"}});
        let path = format!("{MAPS}/{name}");
        for (method, path, code) in [
            (Method::POST, MAPS, 201),
            (Method::PUT, path.as_str(), 200),
            (Method::GET, path.as_str(), 200),
        ] {
            if method == Method::PUT {
                object["data"]["value"] = json!(format!("updated by {id}"));
            }
            let body = if method == Method::GET { &Value::Null } else { &object };
            done.n_requests += 1;
            match client.send(method.clone(), path, body).await {
                Ok((found, answer)) if found == code => {
                    if method == Method::POST {
                        done.writes.push((name.clone(), "created".to_owned()));
                        // With the resourceVersion, a second update would be a conflict.
                        object = answer;
                    } else if method == Method::PUT
                        && let Some(last) = done.writes.last_mut()
                    {
                        last.1 = format!("updated by {id}");
                    } else if answer["data"] != object["data"] {
                        done.failures.push(format!("{path}: {answer} is older than {object}"));
                    }
                }
                Ok((found, answer)) => {
                    done.failures.push(format!("{method} {path}: {found} {answer}"));
                }
                Err(why) => done.failures.push(format!("{method} {path}: {why:?}")),
            }
        }
        // This waits for a real process: the load leaves time to other tests on the machine.
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    done.n_retries = client.n_retries();
    done
}

/// A server that was started without the set knows none of the users of the others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_with_other_files_says_so_and_is_not_ready() {
    let files = SharedFiles::create();
    let place = Place::etcd();
    let folders = [directory(), directory(), directory()];
    let flags = files.flags();
    let one = start(folders[0].path(), &place, &flags);
    let two = start(folders[1].path(), &place, &flags);
    let stranger = Server::start(folders[2].path(), &place);
    let client = stranger.client();
    assert_eq!(wait_for_check(&client, "[-]peer-trust failed: reason withheld\n").await, 500);
    wait_for_log(&stranger, "another server on this store trusts other authorities or keys").await;
    wait_for_log(&stranger, "this server is not ready").await;
    for server in [&one, &two] {
        let admin = files.client(server, "admin");
        assert_eq!(wait_for_check(&admin, "[-]peer-trust degraded").await, 200);
        let (_, status) =
            admin.ask(Method::GET, "/portcullis/admission/status", &Value::Null).await;
        assert_eq!(status["trust"]["state"], "peersDiffer", "{status}");
    }
    // With the set it agrees, and the messages end.
    assert_eq!(stranger.stop(PATIENCE), 0);
    let same = start(folders[2].path(), &place, &flags);
    for server in [&one, &two, &same] {
        let admin = files.client(server, "admin");
        assert_eq!(wait_for_check(&admin, "[+]peer-trust ok").await, 200);
    }
}
