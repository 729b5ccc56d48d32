//! If the process has no file descriptors left, it cannot connect, and the fault is local and not the peer's.

use std::fs::File;
use std::process::Command;

use fake_http::{Answer, Peer};
use https_client::{Destination, FaultKind, Scheme, Target};

use crate::fixture::{client, http, https, post, secure};

/// Set in the child process that uses up its descriptors. The parent process is shared with other tests.
const IS_CHILD: &str = "REMOTE_TEST_IS_CHILD";

#[test]
fn without_descriptors_the_fault_is_local() {
    if std::env::var_os(IS_CHILD).is_some() {
        return use_descriptors_up();
    }
    let name = "descriptors::without_descriptors_the_fault_is_local";
    let output = Command::new("sh")
        .args(["-c", "ulimit -n 64 && exec \"$0\" --exact \"$1\" --nocapture"])
        .arg(std::env::current_exe().unwrap())
        .arg(name)
        .env(IS_CHILD, "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

fn use_descriptors_up() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (authority, tls) = secure();
    let clear = Peer::start(Answer::json("{}")).unwrap();
    let sealed = Peer::start_tls(Answer::json("{}"), &tls).unwrap();
    let named = |host: &str| {
        let (host, port) = (host.to_owned(), Some(clear.address().port()));
        Target::new(Destination::Url { scheme: Scheme::Http, host, port }, "/")
    };
    let clients = [
        http(clear.address()),
        https(sealed.address(), &authority.pem()),
        named("localhost"),
        named("no-such-host.invalid"),
    ]
    .map(client);
    let files: Vec<File> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
    assert!(files.len() < 64, "{}", files.len());
    runtime.block_on(async {
        for client in &clients {
            let fault = post(client).await.unwrap_err();
            assert_eq!(fault.kind, FaultKind::Local, "{fault}");
        }
        drop(files);
        assert_eq!(post(&clients[0]).await.unwrap().status, 200);
        assert_eq!(post(&clients[1]).await.unwrap().status, 200);
    });
}
