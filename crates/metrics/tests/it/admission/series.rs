//! When series come and go, and how many there may be.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use admission_hooks::{HookFailureCause, HookObserver as _, Phase, RejectionCause};
use metrics::{AdmissionMetrics, InitializerTimeoutAction, NAMES_MAX, OTHER_NAMES};
use prometheus::Registry;

use super::everything::{call, nothing, snapshot};

const REQUESTS: &str = "apiserver_admission_webhook_request_total";
const REJECTIONS: &str = "apiserver_admission_webhook_rejection_count";
const FAIL_OPEN: &str = "apiserver_admission_webhook_fail_open_count";
const CAUSES: &str = "portcullis_admission_webhook_failed_open_total";
const TIMEOUTS: &str = "portcullis_initializer_timeouts_total";
const REPAIRS: &str = "portcullis_initializer_read_repairs_total";

fn samples(registry: &Registry, family: &str) -> Vec<String> {
    monitoring_lint::samples(registry, family).unwrap()
}

/// The rejection metric counts refused requests, and no request that a failure policy let pass.
#[test]
fn calls_are_counted_by_what_came_of_them() {
    let (registry, metrics) = nothing();
    metrics.on_call(&call("a.x.y", 200, None));
    metrics.on_call(&call("a.x.y", 503, None));
    for cause in [HookFailureCause::Timeout, HookFailureCause::MatchCondition] {
        metrics.on_fail_open("a.x.y", Phase::Validating, cause);
    }
    metrics.on_call(&call("a.x.y", 403, Some(RejectionCause::Denial)));
    assert_eq!(
        samples(&registry, REQUESTS),
        [
            "code=200,name=a.x.y,operation=CREATE,rejected=false,type=validating 1",
            "code=403,name=a.x.y,operation=CREATE,rejected=true,type=validating 1",
            "code=503,name=a.x.y,operation=CREATE,rejected=false,type=validating 1",
        ]
    );
    let rejected = "error_type=no_error,name=a.x.y,operation=CREATE,rejection_code=403,\
                    type=validating 1";
    assert_eq!(samples(&registry, REJECTIONS), [rejected]);
    assert_eq!(samples(&registry, FAIL_OPEN), ["name=a.x.y,type=validating 1"]);
    // A hook whose conditions could not be evaluated was not called.
    let causes = ["match_condition", "timeout"];
    let causes = causes.map(|cause| format!("cause={cause},name=a.x.y,type=validating 1"));
    assert_eq!(samples(&registry, CAUSES), causes);
}

/// A hook may put any number into its answer.
#[test]
fn codes_below_zero_are_one() {
    let (registry, metrics) = nothing();
    for code in [-1, -7, i32::MIN, 0] {
        metrics.on_call(&call("a.x.y", code, Some(RejectionCause::Call)));
    }
    let requests = ["code=0,name=a.x.y,operation=CREATE,rejected=true,type=validating 4"];
    assert_eq!(samples(&registry, REQUESTS), requests);
    assert_eq!(samples(&registry, REJECTIONS).len(), 1);
}

#[test]
fn series_go_with_their_hooks() {
    let (registry, metrics) = nothing();
    metrics.set_config_in_effect(&snapshot(&["a.x.y", "b.x.y"], &[]));
    for name in ["a.x.y", "b.x.y"] {
        metrics.on_call(&call(name, 500, Some(RejectionCause::Call)));
        metrics.on_fail_open(name, Phase::Mutating, HookFailureCause::Tls);
    }
    metrics.set_config_in_effect(&snapshot(&["b.x.y"], &[]));
    for (name, family) in monitoring_lint::gather_exported_metrics(&registry).unwrap() {
        let names = family.labels.get("name").into_iter().flatten();
        assert!(names.eq(["b.x.y"]) || !family.labels.contains_key("name"), "{name}: {family:?}");
    }
    assert_eq!(samples(&registry, REQUESTS).len(), 1, "and others stay");

    // A request that began with the older configuration comes late. Its series goes with the next.
    metrics.on_call(&call("a.x.y", 200, None));
    assert_eq!(samples(&registry, REQUESTS).len(), 2);
    metrics.set_config_in_effect(&snapshot(&["b.x.y"], &[]));
    assert_eq!(samples(&registry, REQUESTS).len(), 1);
}

/// L16: names of hooks that somebody invents become a bounded number of labels.
#[test]
fn so_many_hooks_are_told_apart() {
    let (registry, metrics) = nothing();
    for n in 0..NAMES_MAX + 5 {
        metrics.on_fail_open(&format!("{n}.x.y"), Phase::Mutating, HookFailureCause::Tls);
    }
    let shown = samples(&registry, FAIL_OPEN);
    assert_eq!(shown.len(), NAMES_MAX + 1);
    assert!(shown.contains(&format!("name={OTHER_NAMES},type=admit 5")));
}

/// Objects may wait for initializers that nobody has configured.
#[test]
fn initializers_that_are_not_configured_share_a_name() {
    let (registry, metrics) = nothing();
    metrics.count_read_repair("early.x.y");
    metrics.set_config_in_effect(&snapshot(&[], &["a.x.y", "b.x.y"]));
    for name in ["a.x.y", "stray.x.y", "astray.x.y"] {
        metrics.count_initializer_timeout(name, InitializerTimeoutAction::Removed);
        metrics.count_read_repair(name);
    }
    let timeouts = ["action=removed,name=a.x.y 1", "action=removed,name=other 2"];
    assert_eq!(samples(&registry, TIMEOUTS), timeouts);
    assert_eq!(samples(&registry, REPAIRS), ["name=a.x.y 1", "name=other 3"]);

    metrics.set_config_in_effect(&snapshot(&[], &["b.x.y"]));
    assert_eq!(samples(&registry, TIMEOUTS), ["action=removed,name=other 2"]);
    assert_eq!(samples(&registry, REPAIRS), ["name=other 3"]);
}

#[test]
fn what_has_no_name_is_there_from_the_start() {
    let (registry, metrics) = nothing();
    let refused = samples(&registry, "portcullis_admission_config_refused_total");
    assert_eq!(refused, ["reason=behind 0", "reason=pending 0", "reason=stale 0"]);
    assert_eq!(samples(&registry, "portcullis_admission_config_degraded_total"), [" 0"]);
    assert_eq!(samples(&registry, "portcullis_initializer_wait_seconds"), [" 0"]);
    metrics.set_admission_config_freshness(u64::MAX, Duration::from_millis(250));
    assert_eq!(samples(&registry, "portcullis_admission_config_age_seconds"), [" 0.25"]);
}

#[test]
fn certificates_are_counted_where_all_are() {
    #[derive(Default)]
    struct Counted(AtomicU32);
    impl https_client::CertificateObserver for Counted {
        fn on_missing_san(&self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
        fn on_sha1_signature(&self) {
            self.0.fetch_add(10, Ordering::Relaxed);
        }
    }
    let counted = Arc::new(Counted::default());
    let observer = Arc::<Counted>::clone(&counted);
    let metrics = AdmissionMetrics::new(&Registry::new(), observer).unwrap();
    https_client::CertificateObserver::on_missing_san(&*metrics);
    https_client::CertificateObserver::on_sha1_signature(&*metrics);
    assert_eq!(counted.0.load(Ordering::Relaxed), 11);
}

#[test]
fn a_registry_has_one_admission() {
    let (registry, _metrics) = nothing();
    assert!(
        AdmissionMetrics::new(&registry, Arc::new(https_client::NoCertificateObserver)).is_err()
    );
}
