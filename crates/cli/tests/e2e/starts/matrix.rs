//! Start, stop, start, kill, start, and a second server, for all pairs of what decides how a server starts.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::path::Path;

use super::files::Files;
use super::lives::{Acknowledged, STOP_MAX, block_on};
use super::pairs::{Row, all_pairs, product};
use super::{for_each, refused};
use crate::server::{Allowance, Place, Server, directory};

/// Runs the whole product if it is `all`.
const VARIABLE: &str = "PORTCULLIS_STARTS";

/// The flags of a value, where `DIR` is the folder of [`Files`].
type Value = &'static [&'static str];

/// The first factor. The flags lead to the store.
const STORES: [&str; 2] = ["embedded", "etcd"];

/// Networks of services: none, one, and one so small that lost addresses are missed soon.
const RANGES: [Option<(&str, [u8; 4], u32)>; 3] = [
    None,
    Some(("--service-cluster-ip-range=10.96.0.0/24", [10, 96, 0, 0], 24)),
    Some(("--service-cluster-ip-range=172.20.16.0/28", [172, 20, 16, 0], 28)),
];

const AUTHORIZATION: [Value; 5] = [
    &["--authorization-config=DIR/authorization.yaml"],
    &["--authorization-mode=Node,RBAC"],
    &["--authorization-mode=AlwaysAllow"],
    &["--authorization-mode=ABAC", "--authorization-policy-file=DIR/policies.jsonl"],
    &["--authorization-mode=Webhook", "--authorization-webhook-config-file=DIR/kubeconfig"],
];

const SYNC: [Value; 3] = [
    &["--admission-sync-mode=barrier"],
    &["--admission-sync-mode=poll", "--admission-sync-poll-interval=100ms"],
    &["--admission-sync-mode=barrier", "--admission-sync-bootstrap-wait=0s"],
];

#[test]
fn every_pair_starts_again_and_again() {
    let sizes = [STORES.len(), RANGES.len(), AUTHORIZATION.len(), SYNC.len()];
    let rows = match std::env::var(VARIABLE).as_deref() {
        Ok("all") => product(&sizes),
        Ok(other) => panic!("{VARIABLE} is `all` or not set, not `{other}`"),
        Err(_) => all_pairs(&sizes),
    };
    let etcd = Place::etcd();
    let files = Files::new();
    for_each(&rows, name, |row| live_again_and_again(row, &etcd, &files));
}

fn name(row: &Row) -> String {
    let range = RANGES[row[1]].map_or("no range", |(flag, ..)| flag);
    let (authorization, sync) = (AUTHORIZATION[row[2]].join(" "), SYNC[row[3]].join(" "));
    format!("{} {range} {authorization} {sync}", STORES[row[0]])
}

fn live_again_and_again(row: &Row, etcd: &Place, files: &Files) {
    let is_etcd = STORES[row[0]] == "etcd";
    let place = if is_etcd { etcd } else { &Place::Embedded };
    let range = RANGES[row[1]];
    let mut flags: Vec<String> = range.iter().map(|(flag, ..)| (*flag).to_owned()).collect();
    let named = AUTHORIZATION[row[2]].iter().chain(SYNC[row[3]]);
    flags.extend(named.map(|flag| files.fill(flag)));
    if is_etcd {
        // All rows share a member, and each has its own part of it.
        flags.push(format!("--etcd-prefix=/row{}", row.iter().fold(0, |n, value| n * 10 + value)));
    }
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let (first, second) = (directory(), directory());
    let start = || Server::start_with(first.path(), place, &flags);
    let mut acknowledged = Acknowledged::default();

    let server = start();
    block_on(acknowledged.extend(&server.client(), "first"));
    assert_eq!(server.stop(STOP_MAX), 0);
    let server = start();
    block_on(acknowledged.extend(&server.client(), "stopped"));
    server.kill();
    let server = start();
    block_on(acknowledged.extend(&server.client(), "killed"));
    if is_etcd {
        copy_authority_and_keys(first.path(), second.path());
        let other = Server::start_with(second.path(), place, &flags);
        block_on(acknowledged.extend(&other.client(), "second"));
        block_on(acknowledged.extend(&server.client(), "beside"));
        assert_eq!(other.stop(STOP_MAX), 0);
        block_on(acknowledged.extend(&server.client(), "alone"));
    } else {
        let attempt = || Server::try_start(first.path(), place, &flags, Allowance::default());
        refused::beside(&server, first.path(), attempt);
    }
    block_on(acknowledged.check(&server.client()));
    assert_eq!(server.stop(STOP_MAX), 0);
    let n_wanted = if range.is_some() { acknowledged.len() } else { 0 };
    assert_eq!(acknowledged.addresses().count(), n_wanted);
    if let Some((_, network, bits)) = range {
        for address in acknowledged.addresses() {
            assert!(is_within(address.parse().unwrap(), network, bits), "{address}");
        }
    }
}

/// Lets a second server trust what the first one trusts; otherwise it would not become ready.
fn copy_authority_and_keys(from: &Path, to: &Path) {
    let (from, to) = (from.join("data"), to.join("data"));
    std::fs::create_dir(&to).unwrap();
    for name in ["ca.crt", "ca.key", "sa.key", "sa.pub"] {
        std::fs::copy(from.join(name), to.join(name)).unwrap();
    }
}

/// The next start may have another network. Services keep the addresses that they have, and new ones get
/// addresses of the network that there is.
#[test]
fn another_range_at_the_next_start() {
    let rows = product(&[STORES.len(), RANGES.len(), RANGES.len()]);
    let etcd = Place::etcd();
    let name = |row: &Row| format!("{} {:?} {:?}", STORES[row[0]], RANGES[row[1]], RANGES[row[2]]);
    for_each(&rows, name, |row| {
        let is_etcd = STORES[row[0]] == "etcd";
        let place = if is_etcd { &etcd } else { &Place::Embedded };
        let folder = directory();
        let mut acknowledged = Acknowledged::default();
        for (life, range) in [(0, row[1]), (1, row[2]), (2, row[1])] {
            let mut flags: Vec<String> =
                RANGES[range].iter().map(|(flag, ..)| (*flag).to_owned()).collect();
            if is_etcd {
                flags.push(format!("--etcd-prefix=/ranges{}-{}", row[1], row[2]));
            }
            let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
            let server = Server::start_with(folder.path(), place, &flags);
            let before: BTreeSet<String> = acknowledged.addresses().map(str::to_owned).collect();
            block_on(acknowledged.extend(&server.client(), &format!("life{life}")));
            server.kill();
            let after: BTreeSet<String> = acknowledged.addresses().map(str::to_owned).collect();
            let new: Vec<_> = after.difference(&before).collect();
            match RANGES[range] {
                None => assert!(new.is_empty(), "{new:?}"),
                Some((_, network, bits)) => {
                    assert_eq!(new.len(), 1, "life {life} has no new address");
                    assert!(is_within(new[0].parse().unwrap(), network, bits), "{new:?}");
                }
            }
        }
    });
}

fn is_within(address: Ipv4Addr, network: [u8; 4], bits: u32) -> bool {
    let prefix = |address: u32| address >> (32 - bits);
    prefix(address.to_bits()) == prefix(u32::from_be_bytes(network))
}
