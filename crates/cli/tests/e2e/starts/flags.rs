//! Each flag alone, at another value than its default.

use std::collections::BTreeSet;
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::time::Duration;

use etcd_testing::Member;

use super::files::Files;
use super::for_each;
use super::lives::{Acknowledged, STOP_MAX, block_on};
use crate::client::Client;
use crate::server::{Place, Server, directory};

/// A row for each flag, and perhaps for some that this version does not have: its name, its value, and the
/// flags without which it cannot be given. `DIR` is the folder of [`Files`], `DATA` the data directory,
/// `PORT` a free port, `ETCD` a member, and `TLS-ETCD` a member that wants certificates.
const ROWS: &[FlagRow] = &[
    ("bind-address", "127.0.0.2", &[]),
    ("secure-port", "PORT", &[]),
    ("advertise-address", "127.0.0.3", &[]),
    ("tls-cert-file", "DIR/server.crt", &["--tls-private-key-file=DIR/server.key"]),
    ("tls-private-key-file", "DIR/server.key", &["--tls-cert-file=DIR/server.crt"]),
    ("service-cluster-ip-range", "10.96.0.0/16", &[]),
    ("report-version", "1.30", &[]),
    // Each start of these tests has a data directory of its own.
    ("data-dir", "", &[]),
    ("store", "etcd", &["--etcd-servers=ETCD"]),
    ("store-sync", "interval:5", &[]),
    ("store-quota-bytes", "64Mi", &[]),
    ("store-history-bytes", "64Mi", &[]),
    ("store-disk-free-bytes", "0", &[]),
    ("etcd-servers", "ETCD", &[]),
    ("etcd-prefix", "/other", &["--etcd-servers=ETCD"]),
    ("etcd-cafile", "DIR/ca.crt", &[TLS, CERTFILE, KEYFILE]),
    ("etcd-certfile", "DIR/client.crt", &[TLS, CAFILE, KEYFILE]),
    ("etcd-keyfile", "DIR/client.key", &[TLS, CAFILE, CERTFILE]),
    ("etcd-compaction-interval", "1s", &["--etcd-servers=ETCD", "--etcd-prefix=/compaction"]),
    ("client-ca-file", "DIR/ca.crt", &[]),
    ("token-auth-file", "DIR/tokens.csv", &[]),
    ("anonymous-auth", "false", &[]),
    ("service-account-issuer", "https://issuer.example.com", &[]),
    ("service-account-jwks-uri", "https://keys.example.com/jwks", &[]),
    ("service-account-signing-key-file", "DIR/server.key", &[]),
    ("service-account-key-file", "DIR/client.key", &[]),
    ("api-audiences", "one,two", &[]),
    ("requestheader-client-ca-file", "DIR/ca.crt", &[]),
    ("requestheader-allowed-names", "front,back", &["--requestheader-client-ca-file=DIR/ca.crt"]),
    ("requestheader-username-headers", "X-User", &[]),
    ("requestheader-uid-headers", "X-Uid", &[]),
    ("requestheader-group-headers", "X-Group", &[]),
    ("requestheader-extra-headers-prefix", "X-Extra-", &[]),
    ("authorization-config", "DIR/authorization.yaml", &[]),
    ("authorization-mode", "RBAC", &[]),
    ("authorization-policy-file", "DIR/policies.jsonl", &["--authorization-mode=ABAC,RBAC"]),
    ("authorization-abac-unset-attributes", "match", &[]),
    ("authorization-webhook-config-file", "DIR/kubeconfig", &[WEBHOOK]),
    ("authorization-webhook-version", "v1", &[WEBHOOK, GUARD]),
    ("authorization-webhook-cache-authorized-ttl", "1s", &[WEBHOOK, GUARD]),
    ("authorization-webhook-cache-unauthorized-ttl", "0s", &[WEBHOOK, GUARD]),
    ("feature-gates", "StructuredAuthorizationConfiguration=false", &[]),
    ("authorization-config-reload-health-check", "false", &[]),
    ("authorization-webhook-max-in-flight", "1", &[]),
    ("webhook-connect-timeout", "1s", &[]),
    ("authorization-webhook-cache-max-bytes", "4096", &[]),
    ("enable-aggregator-routing", "false", &[]),
    ("enable-admission-plugins", "NodeRestriction", &[]),
    ("disable-admission-plugins", "TaintNodesByCondition", &[]),
    ("admission-sync-mode", "poll", &[]),
    ("admission-sync-poll-interval", "50ms", &[]),
    ("admission-sync-max-staleness", "1s", &[]),
    ("admission-sync-bootstrap-wait", "0s", &[]),
    ("admission-initializers-enabled", "false", &[]),
    ("admission-initializers-step-timeout", "1s", &[]),
    ("admission-initializers-global-timeout", "1m", &[]),
    ("admission-initializers-clock-drift", "1s", &[]),
    ("admission-initializers-max-pending", "1", &[]),
    ("admission-initializers-max-waiting-objects", "10", &[]),
    ("admission-initializers-max-waiting-bytes", "65536", &[]),
    ("admission-initializers-max-waiting-objects-per-user", "5", &[]),
    ("admission-initializers-max-waiting-bytes-per-user", "65536", &[]),
    ("admission-initializers-get-mode", "accepted", &[]),
    ("admission-webhook-client-timeout", "1s", &[]),
    ("admission-webhook-max-in-flight", "1", &[]),
    ("admission-webhook-max-response-bytes", "1024", &[]),
    ("admission-webhook-kubeconfig", "DIR/kubeconfig", &[]),
    ("webhook-allow-loopback", "true", &[]),
    ("write-timeout-ceiling", "5s", &[]),
    ("request-timeout", "10s", &[]),
    ("min-request-timeout", "1", &[]),
    ("max-requests-inflight", "1", &[]),
    ("max-mutating-requests-inflight", "1", &[]),
    ("max-watches", "100", &[]),
    ("max-connections", "100", &[]),
    ("max-watches-per-user", "10", &[]),
    ("max-response-bytes-inflight", "1000000", &[]),
    ("event-ttl", "1s", &[]),
    ("enable-garbage-collector", "false", &[]),
    ("delete-collection-workers", "4", &[]),
    ("pod-graceful-deletion", "true", &[]),
    ("refuse-unenforced", "true", &[]),
    ("shutdown-delay-duration", "200ms", &[]),
    ("shutdown-watch-termination-grace-period", "1s", &[]),
    ("logging-format", "json", &[]),
    ("v", "4", &[]),
    ("audit-policy-file", "DIR/audit.yaml", &["--audit-log-path=-"]),
    ("audit-log-path", "DATA/audit/log", &[AUDIT]),
    ("audit-log-maxsize", "1", LOG),
    ("audit-log-maxage", "1", LOG),
    ("audit-log-maxbackup", "1", LOG),
    ("audit-log-mode", "blocking-strict", LOG),
    ("audit-log-batch-buffer-size", "100", LOG_BATCHES),
    ("audit-log-batch-max-size", "10", LOG_BATCHES),
    ("audit-log-batch-max-wait", "10ms", LOG_BATCHES),
    ("audit-log-batch-throttle-enable", "true", LOG_BATCHES),
    ("audit-log-batch-throttle-qps", "100", LOG_BATCHES),
    ("audit-log-batch-throttle-burst", "100", LOG_BATCHES),
    ("audit-log-truncate-enabled", "true", LOG),
    ("audit-log-truncate-max-event-size", "1000", LOG),
    ("audit-webhook-config-file", "DIR/kubeconfig", &[AUDIT]),
    ("audit-webhook-mode", "blocking", AUDIT_WEBHOOK),
    ("audit-webhook-batch-buffer-size", "100", AUDIT_WEBHOOK),
    ("audit-webhook-batch-max-size", "10", AUDIT_WEBHOOK),
    ("audit-webhook-batch-max-wait", "10ms", AUDIT_WEBHOOK),
    ("audit-webhook-batch-throttle-enable", "false", AUDIT_WEBHOOK),
    ("audit-webhook-batch-throttle-qps", "100", AUDIT_WEBHOOK),
    ("audit-webhook-batch-throttle-burst", "100", AUDIT_WEBHOOK),
    ("audit-webhook-initial-backoff", "1ms", AUDIT_WEBHOOK),
    ("audit-webhook-truncate-enabled", "true", AUDIT_WEBHOOK),
    ("audit-webhook-truncate-max-event-size", "1000", AUDIT_WEBHOOK),
    ("audit-webhook-truncate-max-batch-size", "1000000", AUDIT_WEBHOOK),
];

type FlagRow = (&'static str, &'static str, &'static [&'static str]);

const TLS: &str = "--etcd-servers=TLS-ETCD";
const CAFILE: &str = "--etcd-cafile=DIR/ca.crt";
const CERTFILE: &str = "--etcd-certfile=DIR/client.crt";
const KEYFILE: &str = "--etcd-keyfile=DIR/client.key";
const WEBHOOK: &str = "--authorization-mode=Webhook,RBAC";
const GUARD: &str = "--authorization-webhook-config-file=DIR/kubeconfig";
const AUDIT: &str = "--audit-policy-file=DIR/audit.yaml";
const LOG: &[&str] = &[AUDIT, "--audit-log-path=DATA/audit/log"];
const LOG_BATCHES: &[&str] = &[AUDIT, "--audit-log-path=DATA/audit/log", "--audit-log-mode=batch"];
const AUDIT_WEBHOOK: &[&str] = &[AUDIT, "--audit-webhook-config-file=DIR/kubeconfig"];

/// The flags that the program has, as it lists them itself.
fn listed() -> BTreeSet<String> {
    let program = env!("CARGO_BIN_EXE_portcullis");
    let output = Command::new(program).args(["serve", "-h"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let name = |line: &str| {
        // Text about a flag begins further to the right.
        let name = line.strip_prefix("      --").or_else(|| line.get(6..)?.strip_prefix("--"))?;
        let end = name.find(|c: char| !c.is_ascii_alphanumeric() && c != '-');
        Some(name[..end.unwrap_or(name.len())].to_owned())
    };
    let is_short = |line: &&str| line.starts_with("      --") || line.starts_with("  -");
    text.lines().filter(is_short).filter_map(name).filter(|name| name != "help").collect()
}

#[test]
fn every_flag_has_a_row() {
    let rows: Vec<&str> = ROWS.iter().map(|(name, ..)| *name).collect();
    let listed = listed();
    assert!(listed.len() > 70 && listed.contains("v"), "{listed:?}");
    let without: Vec<_> = listed.iter().filter(|name| !rows.contains(&name.as_str())).collect();
    assert!(without.is_empty(), "add rows to {}: {without:?}", file!());
    let names: BTreeSet<&str> = rows.iter().copied().collect();
    assert_eq!(rows.len(), names.len(), "two rows for one flag");
}

#[test]
fn each_flag_alone_starts_stops_and_starts() {
    let files = Files::new();
    let Place::Etcd(plain) = Place::etcd() else { panic!("a member") };
    let certificates = ["cert-file=DIR/server.crt", "key-file=DIR/server.key"];
    let trust = ["trusted-ca-file=DIR/ca.crt", "client-cert-auth=true"];
    let args = certificates.iter().chain(&trust).map(|arg| files.fill(&format!("--{arg}")));
    let args: Vec<String> = args.collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let with_tls = Member::alone_with("https", &args);
    while TcpStream::connect(with_tls.address()).is_err() {
        // This waits for a real process: etcd opens its port.
        std::thread::sleep(Duration::from_millis(20));
    }
    let name = |row: &FlagRow| format!("--{}={} {:?}", row.0, row.1, row.2);
    let listed = listed();
    let rows = ROWS.iter().copied().filter(|(name, ..)| listed.contains(*name));
    let rows: Vec<FlagRow> = rows.collect();
    for_each(&rows, name, |(name, value, more)| {
        let folder = directory();
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let fill = |flag: &str| {
            let flag = files.fill(flag).replace("DATA", folder.path().to_str().unwrap());
            let flag = flag.replace("TLS-ETCD", &with_tls.url).replace("ETCD", &plain.url);
            flag.replace("PORT", &free.to_string())
        };
        let own = format!("--{name}={value}");
        let own = if value.is_empty() { None } else { Some(fill(&own)) };
        let mut flags: Vec<String> = own.into_iter().collect();
        flags.extend(more.iter().map(|flag| fill(flag)));
        // All rows share the members, and each has its own part of them.
        let prefix = format!("--etcd-prefix=/{name}");
        let has = |flag: &str, flags: &[String]| flags.iter().any(|own| own.starts_with(flag));
        if has("--etcd-servers", &flags) && !has("--etcd-prefix", &flags) {
            flags.push(prefix);
        }
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        let mut acknowledged = Acknowledged::default();
        for round in ["first", "second"] {
            let server = Server::start_with(folder.path(), &Place::Embedded, &flags);
            let client = client(name, &server, &folder.path().join("data"), &files);
            block_on(acknowledged.extend(&client, round));
            assert_eq!(server.stop(STOP_MAX), 0);
        }
    });
}

/// A client of the administrator. Two flags set its credentials and the CA that it trusts.
fn client(flag: &str, server: &Server, data: &std::path::Path, files: &Files) -> Client {
    let Files { authority_pem, administrator, .. } = files;
    let read = |name: &str| std::fs::read_to_string(data.join(name)).unwrap_or_default();
    let authorities = match flag.starts_with("tls-") {
        true => authority_pem.clone(),
        false => read("ca.crt"),
    };
    let (certificate, key) = match flag {
        "client-ca-file" => (administrator.certificate_pem.clone(), administrator.key_pem.clone()),
        _ => (read("admin.crt"), read("admin.key")),
    };
    Client::new(server.address, &authorities, &certificate, &key)
}
