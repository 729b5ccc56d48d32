//! A first start that is killed, wherever it is, does not keep the next one from succeeding.

use std::time::Duration;

use super::for_each;
use super::lives::{Acknowledged, STOP_MAX, block_on};
use crate::server::{Place, Server, directory};

/// After how many milliseconds the first start is killed, and the second. A start takes less than the
/// longest of these, on an idle machine.
const MOMENTS_MS: [u64; 12] = [0, 5, 10, 15, 20, 30, 40, 60, 80, 120, 180, 250];

#[test]
fn a_start_succeeds_after_starts_that_were_killed() {
    let etcd = Place::etcd();
    let rows: Vec<(bool, u64)> =
        [false, true].iter().flat_map(|own| MOMENTS_MS.map(|ms| (*own, ms))).collect();
    let name = |(is_etcd, ms): &(bool, u64)| format!("etcd: {is_etcd}, killed after {ms} ms");
    for_each(&rows, name, |&(is_etcd, ms)| {
        let place = if is_etcd { &etcd } else { &Place::Embedded };
        let prefix = format!("--etcd-prefix=/interrupted{ms}");
        let flags = [prefix.as_str(), "--service-cluster-ip-range=10.96.0.0/28"];
        let folder = directory();
        for ms in [ms, ms / 2] {
            let moment = Duration::from_millis(ms);
            Server::start_and_kill(folder.path(), place, &flags, moment);
        }
        let mut acknowledged = Acknowledged::default();
        for life in ["first", "second"] {
            let server = Server::start_with(folder.path(), place, &flags);
            block_on(acknowledged.extend(&server.client(), life));
            assert_eq!(server.stop(STOP_MAX), 0);
        }
    });
}
