//! An administrator replaces the file of `--client-ca-file` while the server runs.

use std::time::{Duration, Instant};

use fake_http::{Authority, Issued, Leaf};
use http::Method;
use serde_json::Value;

use crate::client::Client;
use crate::server::{Place, Server, directory};

/// A removed authority is gone after this long; kube-apiserver takes as much.
const GONE_WITHIN: Duration = Duration::from_secs(10);
const PATH: &str = "/api/v1/namespaces/default";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_of_a_removed_authority_are_refused_within_ten_seconds() {
    let folder = directory();
    let file = folder.path().join("clients.crt");
    let (old, new) = (Authority::new("old").unwrap(), Authority::new("new").unwrap());
    std::fs::write(&file, old.pem()).unwrap();
    let flag = format!("--client-ca-file={}", file.display());
    let server = Server::start_with(folder.path(), &Place::Embedded, &[&flag]);
    let ca = std::fs::read_to_string(folder.path().join("data/ca.crt")).unwrap();
    let client = |authority: &Authority| {
        let leaf = Leaf::client("ana").organization("system:masters");
        let Issued { certificate_pem, key_pem } = authority.issue(&leaf).unwrap();
        Client::new(server.address, &ca, &certificate_pem, &key_pem)
    };
    let (of_old, of_new) = (client(&old), client(&new));
    let code = async |client: &Client| client.ask(Method::GET, PATH, &Value::Null).await.0;
    let mut live = of_old.connect().await.unwrap();
    assert_eq!(live.send(Method::GET, PATH, &Value::Null).await.unwrap().0, 200);
    assert_eq!((code(&of_old).await, code(&of_new).await), (200, 401));

    std::fs::write(&file, new.pem()).unwrap();
    let changed = Instant::now();
    while code(&of_new).await != 200 {
        assert!(changed.elapsed() < GONE_WITHIN, "{}", server.log());
        // This waits for a real process: the server reads the CA file again.
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(live.send(Method::GET, PATH, &Value::Null).await.unwrap().0, 401);
    assert_eq!(code(&of_old).await, 401);
}
