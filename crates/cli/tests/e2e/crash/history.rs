//! A server starts again after much history, with no more memory than it had.

use http::Method;
use serde_json::Value;

use super::{CONFIG_MAPS, KILLS_VARIABLE};
use crate::server::{Allowance, Place, Server, directory};

/// Bytes of one version of the object.
const VALUE_BYTES: usize = 900 * 1024;
/// How many versions there are: more than memory keeps, and more if the tests are to take long.
const N_VERSIONS: [usize; 2] = [200, 2000];
const N_CONNECTIONS: usize = 4;
/// A start needs some memory for itself, however long history is.
const SLACK_KIB: u64 = 32 * 1024;
/// The stacks of threads, which are allowed and hardly touched.
const STACKS_KIB: u64 = 64 * 1024;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_start_takes_no_more_memory_than_the_server_that_was_killed() {
    let n_versions = N_VERSIONS[usize::from(std::env::var(KILLS_VARIABLE).is_ok())];
    let folder = directory();
    let server = Server::start_with(folder.path(), &Place::Embedded, &["--v=1"]);
    let client = server.client();
    let begin = format!(
        r#"{{"metadata": {{"name": "long"}}, "data": {{"padding": "{}""#,
        "x".repeat(VALUE_BYTES)
    );
    let object = |n: usize| format!(r#"{begin}, "n": "{n}"}}}}"#);
    let mut connection = client.connect().await.unwrap();
    assert_eq!(connection.send_text(Method::POST, CONFIG_MAPS, object(0)).await.unwrap(), 201);
    let path = format!("{CONFIG_MAPS}/long");
    let write = async |writer: usize| {
        let mut connection = client.connect().await.unwrap();
        let mut n_refused = 0;
        for n in (writer..n_versions).step_by(N_CONNECTIONS) {
            let code = connection.send_text(Method::PUT, &path, object(n)).await.unwrap();
            // A client that writes too much may be told to wait.
            assert!(matches!(code, 200 | 429), "{code}: {}", server.log());
            n_refused += usize::from(code == 429);
        }
        n_refused
    };
    let refused = tokio::join!(write(0), write(1), write(2), write(3));
    let n_refused: usize = refused.0 + refused.1 + refused.2 + refused.3;
    let ran = server.peak_memory_kib();
    server.kill();
    let server = Server::start_with(folder.path(), &Place::Embedded, &["--v=1"]);
    let started = server.peak_memory_kib();
    println!("{n_versions} versions, {n_refused} refused: {ran} KiB, {started} KiB after a start");
    assert!(started <= ran + SLACK_KIB, "{started} KiB after a start, {ran} KiB before it");
    server.kill();
    let allowance = Allowance { memory_kib_max: Some(ran + STACKS_KIB), ..Allowance::default() };
    let server = Server::try_start(folder.path(), &Place::Embedded, &["--v=1"], allowance);
    let server = server.unwrap_or_else(|refusal| panic!("with {allowance:?} {refusal}"));
    let (code, _) = server.client().ask(Method::GET, &path, &Value::Null).await;
    assert_eq!(code, 200);
}
