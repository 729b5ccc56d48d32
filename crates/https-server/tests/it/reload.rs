//! Certificates that change while the server runs.

use std::fs;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use https_server::{Limits, ReloadingCertificate};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;

use crate::host::{Client, Host, pki, request, soon, text};

/// Copies the serving pair of a new authority over the one in use.
fn replace(host: &Host) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let other = pki(&directory);
    fs::copy(
        &other.serving_certificate.certificate_path,
        &host.pki.serving_certificate.certificate_path,
    )
    .unwrap();
    fs::copy(&other.serving_certificate.key, &host.pki.serving_certificate.key).unwrap();
    fs::copy(&other.serving_ca_file, &host.pki.serving_ca_file).unwrap();
    directory
}

#[tokio::test]
async fn a_new_pair_is_shown_to_the_next_connection() {
    let host = Host::echo(Limits::default());
    let mut open = host.http1(&Client::default()).await;
    let _directory = replace(&host);
    // The trust was replaced as well, so no client accepts the old pair any more.
    assert!(host.tls(&Client::default()).await.is_err());
    assert!(host.certificate.reload_if_changed().unwrap());
    assert!(!host.certificate.reload_if_changed().unwrap());
    let stream = host.tls(&Client::default()).await.unwrap();
    let shown = stream.get_ref().1.peer_certificates().unwrap()[0].clone();
    assert_eq!(
        shown,
        CertificateDer::from_pem_file(&host.pki.serving_certificate.certificate_path).unwrap()
    );
    assert_eq!(host.certificate.certificate_chain(), [shown]);
    assert_eq!(text(open.send_request(request("/", "")).await.unwrap()).await, "Http1 0 ");
}

#[tokio::test]
async fn a_bad_pair_leaves_the_old_one_in_use() {
    let host = Host::echo(Limits::default());
    let directory = tempfile::tempdir().unwrap();
    let other = pki(&directory);
    let (certificate, key) =
        (&host.pki.serving_certificate.certificate_path, &host.pki.serving_certificate.key);
    let (good_certificate, good_key) = (fs::read(certificate).unwrap(), fs::read(key).unwrap());
    let other_key = fs::read(&other.serving_certificate.key).unwrap();
    let cases = [
        (&b"rubbish"[..], &good_key[..], "apiserver.crt` holds no certificate in PEM form"),
        (&good_certificate, b"rubbish", "apiserver.key` holds no private key in PEM form"),
        (&good_certificate, &other_key, "cannot be used: "),
    ];
    for (new_certificate, new_key, want) in cases {
        fs::write(certificate, new_certificate).unwrap();
        fs::write(key, new_key).unwrap();
        let error = host.certificate.reload_if_changed().unwrap_err().to_string();
        assert!(error.contains(want), "{error}");
        host.tls(&Client::default()).await.unwrap();
    }
    fs::remove_file(key).unwrap();
    let error = host.certificate.reload_if_changed().unwrap_err().to_string();
    assert!(error.contains("cannot read `"), "{error}");
    host.tls(&Client::default()).await.unwrap();
    fs::write(key, good_key).unwrap();
    assert!(host.certificate.reload_if_changed().unwrap());
}

#[tokio::test]
async fn a_change_is_noticed_and_a_fault_reported_once() {
    let directory = tempfile::tempdir().unwrap();
    let files = pki(&directory).serving_certificate;
    let certificate = Arc::new(ReloadingCertificate::load(files.clone()).unwrap());
    let reports = Arc::new(Mutex::new(Vec::new()));
    let watching = {
        let reports = Arc::clone(&reports);
        tokio::spawn(certificate.reload_periodically(Duration::from_millis(5), move |outcome| {
            reports.lock().unwrap().push(outcome.map_err(ToString::to_string));
        }))
    };
    let n_reports = |n: usize| {
        let reports = Arc::clone(&reports);
        async move {
            while reports.lock().unwrap().len() < n {
                tokio::task::yield_now().await;
            }
        }
    };
    let good = fs::read(&files.key).unwrap();
    fs::remove_file(&files.key).unwrap();
    soon("the report of a missing file", n_reports(1)).await;
    // A fault that stays is not reported again.
    assert!(tokio::time::timeout(Duration::from_millis(50), n_reports(2)).await.is_err());
    fs::write(files.key.with_extension("new"), [&good[..], b"\n"].concat()).unwrap();
    fs::rename(files.key.with_extension("new"), &files.key).unwrap();
    soon("the report of a new pair", n_reports(2)).await;
    watching.abort();
    let reports = reports.lock().unwrap();
    assert!(reports[0].as_ref().unwrap_err().contains("cannot read"), "{reports:?}");
    assert_eq!(reports[1..], [Ok(())]);
}
