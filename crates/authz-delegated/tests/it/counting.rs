//! What is told of requests (M13, M14).

use std::sync::{Arc, Mutex};
use std::time::Duration;

use authz::Verdict;
use authz_delegated::{Delegated, Observe};
use fake_http::{Answer, Conduct};
use tokio::time::timeout;

use crate::fixture::{Core, allows, ask, codes, drain};

#[tokio::test]
async fn each_attempt_is_counted_by_its_code() {
    let failure = || Answer::json("{}").status(500);
    let core = Core::start(vec![failure(), Answer::json("{}").status(429), allows()]);
    let mut options = core.options();
    let (observe, mut codes) = codes();
    options.observe = observe;
    let delegated = Delegated::new(&options).unwrap();
    assert_eq!(ask(&delegated, "ana").await.verdict, Verdict::Allow);
    assert_eq!(drain(&mut codes), ["500", "429", "201"]);
    assert_eq!(ask(&delegated, "ana").await.verdict, Verdict::Allow);
    assert_eq!(drain(&mut codes), [""; 0]);
    core.peer.replace(failure()).unwrap();
    assert_eq!(ask(&delegated, "ben").await.verdict, Verdict::NoOpinion);
    assert_eq!(drain(&mut codes), ["500"; 5]);
}

#[tokio::test]
async fn a_request_without_an_answer_has_no_code() {
    let core = Core::start(Answer::misbehave(Conduct::Close));
    let mut options = core.options();
    let (observe, mut codes) = codes();
    options.observe = observe;
    let delegated = Delegated::new(&options).unwrap();
    assert_eq!(ask(&delegated, "ana").await.verdict, Verdict::NoOpinion);
    assert_eq!(drain(&mut codes), ["<error>"]);
    core.peer.replace(Answer::misbehave(Conduct::Hang)).unwrap();
    let given_up = timeout(Duration::from_millis(50), ask(&delegated, "ana")).await;
    assert!(given_up.is_err());
    assert_eq!(codes.recv().await.as_deref(), Some("<error>"));
}

#[derive(Default)]
struct Times(Mutex<Vec<Duration>>);

impl Observe for Times {
    fn requested(&self, _code: &str, took: Duration) {
        self.0.lock().unwrap().push(took);
    }
}

#[tokio::test]
async fn the_time_is_that_of_the_exchange() {
    let delay = Duration::from_millis(100);
    let core = Core::start(allows().delay(delay));
    let mut options = core.options();
    let times = Arc::new(Times::default());
    options.observe = Arc::clone(&times) as Arc<dyn Observe>;
    let delegated = Delegated::new(&options).unwrap();
    assert_eq!(ask(&delegated, "ana").await.verdict, Verdict::Allow);
    let times = times.0.lock().unwrap();
    assert!(matches!(times[..], [took] if took >= delay), "{times:?}");
}
