use std::collections::BTreeMap;
use std::fs;
use std::net::IpAddr;
use std::os::unix::fs::PermissionsExt;

use super::*;

const ALL: [&str; 8] = [
    "admin.crt",
    "admin.key",
    "apiserver.crt",
    "apiserver.key",
    "ca.crt",
    "ca.key",
    "sa.key",
    "sa.pub",
];

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

fn now() -> SystemTime {
    SystemTime::UNIX_EPOCH + 20_000 * DAY
}

fn options(directory: &Path) -> PkiOptions {
    PkiOptions {
        directory: directory.to_owned(),
        server_names: ServerNames::new(Some("Gate"), ["192.0.2.7".parse().unwrap()]),
        operator_pki_files: OperatorPkiFiles::default(),
        current_time: now(),
    }
}

fn contents(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    fs::read_dir(directory)
        .unwrap()
        .map(|entry| {
            let entry = entry.unwrap();
            (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap())
        })
        .collect()
}

fn changed(before: &BTreeMap<String, Vec<u8>>, directory: &Path) -> Vec<String> {
    let after = contents(directory);
    after.into_iter().filter(|(name, bytes)| before.get(name) != Some(bytes)).map(|x| x.0).collect()
}

#[test]
fn a_first_start_makes_every_file_for_the_owner_alone() {
    let parent = tempfile::tempdir().unwrap();
    let directory = parent.path().join("data");
    let pki = prepare_pki_files(&options(&directory)).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&directory), 0o700);
    assert_eq!(contents(&directory).into_keys().collect::<Vec<_>>(), ALL);
    assert_eq!(pki.written_files.len(), ALL.len());
    for name in ALL {
        assert_eq!(mode(&directory.join(name)), 0o600, "{name}");
    }
    let kubeconfig =
        write_admin_kubeconfig(&pki, "0.0.0.0:6443".parse().unwrap()).unwrap().unwrap();
    assert_eq!(mode(&kubeconfig), 0o600);
}

#[test]
fn certificates_say_who_they_are_for() {
    let directory = tempfile::tempdir().unwrap();
    let pki = prepare_pki_files(&options(directory.path())).unwrap();
    let serving = Certificate::read(&pki.serving_certificate.certificate_path).unwrap();
    assert_eq!(
        serving.dns_names,
        [
            "kubernetes",
            "kubernetes.default",
            "kubernetes.default.svc",
            "kubernetes.default.svc.cluster.local",
            "localhost",
            "gate"
        ]
    );
    let addresses: Vec<String> = serving.ip_addresses.iter().map(IpAddr::to_string).collect();
    assert_eq!(addresses, ["127.0.0.1", "::1", "192.0.2.7"]);
    assert_eq!(serving.not_after, now() + 365 * DAY);
    let ca = Certificate::read(&pki.client_ca_file).unwrap();
    assert_eq!(ca.not_after, now() + 3652 * DAY);

    let subject = |path: &Path| {
        let certificate = Certificate::read(path).unwrap();
        let texts = |oid: &[u8]| certificate.parsed.subject_texts(oid).unwrap().join(", ");
        let usage = certificate.parsed.extended_key_usage();
        (
            (texts(x509_verify::ORGANIZATION), texts(x509_verify::COMMON_NAME)),
            (usage.allows_server_auth, usage.allows_client_auth),
        )
    };
    let named = |organization: &str, name: &str| (organization.to_owned(), name.to_owned());
    assert_eq!(subject(&pki.client_ca_file), (named("", "portcullis-ca"), (false, false)));
    assert_eq!(subject(&pki.serving_certificate.certificate_path).1, (true, false));
    assert_eq!(
        subject(&pki.admin_certificate.unwrap().certificate_path),
        (named("system:masters", "kubernetes-admin"), (false, true))
    );
}

#[test]
fn a_second_start_changes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    prepare_pki_files(&options(directory.path())).unwrap();
    let before = contents(directory.path());
    let again = prepare_pki_files(&options(directory.path())).unwrap();
    assert_eq!(again.written_files, Vec::<PathBuf>::new());
    assert_eq!(contents(directory.path()), before);
}

#[test]
fn certificates_are_renewed_within_thirty_days_of_their_end() {
    let directory = tempfile::tempdir().unwrap();
    let mut options = options(directory.path());
    prepare_pki_files(&options).unwrap();
    let before = contents(directory.path());
    options.current_time = now() + 335 * DAY;
    prepare_pki_files(&options).unwrap();
    assert_eq!(changed(&before, directory.path()), Vec::<String>::new());
    options.current_time = now() + 335 * DAY + Duration::from_secs(1);
    prepare_pki_files(&options).unwrap();
    assert_eq!(changed(&before, directory.path()), ["admin.crt", "apiserver.crt"]);
    let renewed = Certificate::read(&directory.path().join("apiserver.crt")).unwrap();
    assert_eq!(renewed.not_after, options.current_time + 365 * DAY);
}

#[test]
fn nothing_outlives_the_authority() {
    let directory = tempfile::tempdir().unwrap();
    let mut options = options(directory.path());
    prepare_pki_files(&options).unwrap();
    options.current_time = now() + 3600 * DAY;
    prepare_pki_files(&options).unwrap();
    let serving = Certificate::read(&directory.path().join("apiserver.crt")).unwrap();
    assert_eq!(serving.not_after, now() + 3652 * DAY);
    options.current_time = now() + 3653 * DAY;
    let error = prepare_pki_files(&options).unwrap_err().to_string();
    assert!(error.ends_with("ca.crt` cannot be used: it has expired"), "{error}");
}

#[test]
fn a_new_address_renews_the_serving_certificate_only() {
    let directory = tempfile::tempdir().unwrap();
    let mut options = options(directory.path());
    prepare_pki_files(&options).unwrap();
    let before = contents(directory.path());
    options.server_names = ServerNames::new(None, ["198.51.100.1".parse().unwrap()]);
    prepare_pki_files(&options).unwrap();
    assert_eq!(changed(&before, directory.path()), ["apiserver.crt"]);
    // Fewer names are no reason for a new certificate.
    let before = contents(directory.path());
    options.server_names = ServerNames::new(None, []);
    prepare_pki_files(&options).unwrap();
    assert_eq!(changed(&before, directory.path()), Vec::<String>::new());
}

#[test]
fn damage_is_named_and_never_repaired_silently() {
    let cases = [
        ("ca.crt", "no certificate in PEM form"),
        ("apiserver.crt", "no certificate in PEM form"),
        ("apiserver.key", "no private key in PKCS #8 PEM form"),
        ("admin.crt", "no certificate in PEM form"),
        ("admin.key", "no private key in PKCS #8 PEM form"),
        ("sa.key", "no private key in PKCS #8 PEM form"),
        ("sa.pub", "it is not the public half of"),
    ];
    for (name, reason) in cases {
        for damage in [&b""[..], b"rubbish", b"\xff\xfe", b"-----BEGIN CERTIFICATE-----\nAAAA\n"] {
            let directory = tempfile::tempdir().unwrap();
            prepare_pki_files(&options(directory.path())).unwrap();
            fs::write(directory.path().join(name), damage).unwrap();
            let before = contents(directory.path());
            let error = prepare_pki_files(&options(directory.path())).unwrap_err().to_string();
            assert!(error.contains(&format!("/{name}` cannot be used: ")), "{name}: {error}");
            assert!(error.contains(reason) || error.contains("not text"), "{name}: {error}");
            assert_eq!(contents(directory.path()), before, "{name}");
        }
    }
}

#[test]
fn files_that_do_not_belong_together_are_named() {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let cases = [
        ("ca.crt", "apiserver.crt` cannot be used: it is not signed by"),
        ("apiserver.crt", "apiserver.crt` cannot be used: it is not signed by"),
        ("apiserver.key", "apiserver.key` cannot be used: it is not the key of"),
        ("sa.key", "sa.pub` cannot be used: it is not the public half of"),
    ];
    prepare_pki_files(&options(two.path())).unwrap();
    for (name, want) in cases {
        prepare_pki_files(&options(one.path())).unwrap();
        let own = fs::read(one.path().join(name)).unwrap();
        fs::copy(two.path().join(name), one.path().join(name)).unwrap();
        let error = prepare_pki_files(&options(one.path())).unwrap_err().to_string();
        assert!(error.contains(want), "{name}: {error}");
        fs::write(one.path().join(name), own).unwrap();
    }
}

/// A crash leaves a prefix of the files in the order in which they are written.
#[test]
fn a_start_completes_what_a_crash_left_out() {
    let whole = tempfile::tempdir().unwrap();
    let order = prepare_pki_files(&options(whole.path())).unwrap().written_files;
    for n_written in 0..=order.len() {
        let directory = tempfile::tempdir().unwrap();
        for path in &order[..n_written] {
            fs::copy(path, directory.path().join(path.file_name().unwrap())).unwrap();
        }
        let before = contents(directory.path());
        let pki = prepare_pki_files(&options(directory.path())).unwrap();
        assert_eq!(pki.written_files.len(), order.len() - n_written);
        assert_eq!(changed(&before, directory.path()).len(), order.len() - n_written);
    }
}

#[test]
fn a_missing_key_is_named() {
    for (name, want) in [
        ("apiserver.key", "apiserver.key` is missing: its certificate exists"),
        ("sa.key", "sa.key` is missing: its public half exists"),
    ] {
        let directory = tempfile::tempdir().unwrap();
        prepare_pki_files(&options(directory.path())).unwrap();
        fs::remove_file(directory.path().join(name)).unwrap();
        let error = prepare_pki_files(&options(directory.path())).unwrap_err().to_string();
        assert!(error.contains(want), "{error}");
    }
}

#[test]
fn the_key_of_the_authority_may_be_elsewhere_until_it_is_needed() {
    let directory = tempfile::tempdir().unwrap();
    let mut options = options(directory.path());
    prepare_pki_files(&options).unwrap();
    fs::remove_file(directory.path().join("ca.key")).unwrap();
    prepare_pki_files(&options).unwrap();
    options.current_time = now() + 350 * DAY;
    let error = prepare_pki_files(&options).unwrap_err().to_string();
    assert!(error.contains("ca.key` is missing: a certificate has to be issued"), "{error}");
}

#[test]
fn files_of_the_operator_win() {
    let theirs = tempfile::tempdir().unwrap();
    let brought = prepare_pki_files(&options(theirs.path())).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let mut options = options(directory.path());
    options.operator_pki_files = OperatorPkiFiles {
        serving_certificate: Some(brought.serving_certificate.clone()),
        client_ca_file: Some(brought.client_ca_file.clone()),
        service_account_key_file: Some(brought.service_account_key_file.clone()),
    };
    let pki = prepare_pki_files(&options).unwrap();
    assert_eq!(contents(directory.path()).len(), 0);
    assert_eq!(pki.serving_certificate, brought.serving_certificate);
    assert_eq!(pki.client_ca_file, brought.client_ca_file);
    assert_eq!(pki.service_account_key_file, brought.service_account_key_file);
    assert_eq!(write_admin_kubeconfig(&pki, "127.0.0.1:1".parse().unwrap()).unwrap(), None);
}

#[test]
fn many_first_starts_agree() {
    let directory = tempfile::tempdir().unwrap();
    let written: usize = std::thread::scope(|scope| {
        let starts: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| {
                    prepare_pki_files(&options(directory.path())).unwrap().written_files.len()
                })
            })
            .collect();
        starts.into_iter().map(|start| start.join().unwrap()).sum()
    });
    assert_eq!(written, ALL.len());
    assert_eq!(contents(directory.path()).into_keys().collect::<Vec<_>>(), ALL);
    assert_eq!(
        prepare_pki_files(&options(directory.path())).unwrap().written_files,
        Vec::<PathBuf>::new()
    );
}

#[test]
fn the_kubeconfig_follows_the_address() {
    let directory = tempfile::tempdir().unwrap();
    let pki = prepare_pki_files(&options(directory.path())).unwrap();
    let server = |address: &str| {
        let path = write_admin_kubeconfig(&pki, address.parse().unwrap()).unwrap().unwrap();
        let text = fs::read_to_string(path).unwrap();
        text.lines().find_map(|line| line.trim().strip_prefix("server: ")).unwrap().to_owned()
    };
    assert_eq!(server("127.0.0.1:6443"), "\"https://127.0.0.1:6443\"");
    assert_eq!(server("0.0.0.0:7000"), "\"https://127.0.0.1:7000\"");
    assert_eq!(server("[::]:7000"), "\"https://[::1]:7000\"");
    assert_eq!(server("192.0.2.7:7000"), "\"https://192.0.2.7:7000\"");
}

#[test]
fn a_directory_that_can_not_be_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    fs::write(&file, "").unwrap();
    let error = prepare_pki_files(&options(&file.join("data"))).unwrap_err().to_string();
    assert!(error.starts_with("cannot create directory `"), "{error}");
}

/// The written files of a renewal, or the text of its error.
type RenewalReport = Result<Vec<PathBuf>, Box<str>>;

/// Runs renewals at a time so many days later.
fn renewing(
    options: PkiOptions,
    days_later: u32,
) -> (tokio::task::JoinHandle<()>, std::sync::mpsc::Receiver<RenewalReport>) {
    let (sender, reports) = std::sync::mpsc::channel();
    let clock = move || now() + days_later * DAY;
    let report = move |renewed: Result<&PkiFiles, &PkiError>| {
        let renewed =
            renewed.map(|pki| pki.written_files.clone()).map_err(|error| error.to_string().into());
        sender.send(renewed).unwrap();
    };
    (
        tokio::spawn(renew_certificates_periodically(
            options,
            Duration::from_millis(2),
            clock,
            report,
        )),
        reports,
    )
}

async fn next<T: Send + 'static>(reports: std::sync::mpsc::Receiver<T>) -> T {
    let wait = move || reports.recv_timeout(Duration::from_secs(20));
    tokio::task::spawn_blocking(wait).await.unwrap().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn certificates_are_renewed_while_the_server_runs() {
    let directory = tempfile::tempdir().unwrap();
    let options = options(directory.path());
    let pki = prepare_pki_files(&options).unwrap();
    let in_use = crate::ReloadingCertificate::load(pki.serving_certificate.clone()).unwrap();
    let old = in_use.certificate_chain();
    let (task, reports) = renewing(options.clone(), 340);
    let written = next(reports).await.unwrap();
    task.abort();
    assert_eq!(
        written,
        [
            pki.serving_certificate.certificate_path.clone(),
            pki.admin_certificate.unwrap().certificate_path
        ]
    );
    assert!(in_use.reload_if_changed().unwrap());
    assert_ne!(in_use.certificate_chain(), old);
    let renewed = Certificate::read(&pki.serving_certificate.certificate_path).unwrap();
    assert_eq!(renewed.not_after, now() + (340 + 365) * DAY);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_was_taken_away_is_not_made_anew_while_the_server_runs() {
    let directory = tempfile::tempdir().unwrap();
    let options = options(directory.path());
    let pki = prepare_pki_files(&options).unwrap();
    fs::remove_file(&pki.service_account_key_file).unwrap();
    let (task, reports) = renewing(options, 340);
    let fault = next(reports).await.unwrap_err();
    task.abort();
    assert!(fault.contains("sa.key` is missing"), "{fault}");
    assert!(!pki.service_account_key_file.exists());
}
