use std::sync::Mutex;

use authz::{Decision, DecisionFuture, Target, TraceRecorder, Verb};
use http::HeaderName;

use super::*;
use crate::testing::poll_once;
use crate::well_known_identities::NODE_NAME_KEY;

/// Allows checks whose text begins with one of the allowed texts, and records each check. The text of a check is
/// `VERB GROUP/RESOURCE/SUBRESOURCE NAMESPACE/NAME`, or `VERB PATH`.
struct Rules<'a> {
    allowed: &'a [&'a str],
    asked: Mutex<Vec<String>>,
}

impl Authorizer for Rules<'_> {
    fn authorize<'a>(
        &'a self,
        attributes: &'a Attributes<'a>,
        _: TraceRecorder<'a>,
    ) -> DecisionFuture<'a> {
        let question = shown(attributes);
        let is_allowed = self.allowed.iter().any(|allowed| question.starts_with(allowed));
        self.asked.lock().unwrap().push(question);
        let failure = authz::EvaluationErrors::message("something failed");
        let decision = if self.allowed.contains(&"busy") {
            Decision::authorizer_unavailable(authz::UnavailableCause::TooManyCalls)
        } else if is_allowed {
            Decision::allow("").with_error(failure)
        } else {
            Decision::no_opinion("no rule")
        };
        Box::pin(async move { decision })
    }
}

fn shown(attributes: &Attributes<'_>) -> String {
    match attributes.target {
        Target::Path(path) => format!("{} {path}", attributes.verb),
        Target::Resource(r) => {
            let (verb, group) = (attributes.verb, r.api_group);
            format!(
                "{verb} {group}/{}/{} {}/{}",
                r.resource,
                r.subresource,
                r.namespace.as_str(),
                r.name
            )
        }
    }
}

fn error_text(error: &ImpersonationError) -> String {
    match error {
        ImpersonationError::Forbidden(missing) => {
            format!("{}: {}", shown(&missing.denied_attributes()), missing.reason)
        }
        other => other.to_string(),
    }
}

const ADMIN: &str = "system:serviceaccount:ns:agent";

/// The result of impersonation, and the checks that the authorizer was asked.
fn ask(
    impersonator: &Impersonator,
    lines: &[(&str, &str)],
    allowed: &[&str],
) -> (Result<Option<ImpersonatedUser>, ImpersonationError>, Vec<String>) {
    let headers = lines
        .iter()
        .map(|(name, value)| (name.parse::<HeaderName>().unwrap(), value.parse().unwrap()))
        .collect();
    let node = (NODE_NAME_KEY.to_owned(), vec!["n1".to_owned()]);
    let requestor = User { name: ADMIN.to_owned(), extra: [node].into(), ..User::default() };
    let attributes =
        Attributes { user: Some(&requestor), verb: Verb::GET, target: Target::Path("/p") };
    let rules = Rules { allowed, asked: Mutex::default() };
    let answer = poll_once(impersonator.impersonate(&headers, &attributes, &rules));
    (answer, rules.asked.into_inner().unwrap())
}

fn user(lines: &[(&str, &str)], allowed: &[&str]) -> User {
    ask(&Impersonator::default(), lines, allowed).0.unwrap().unwrap().user
}

fn refusal(lines: &[(&str, &str)], allowed: &[&str]) -> String {
    error_text(&ask(&Impersonator::default(), lines, allowed).0.unwrap_err())
}

const USER: &str = "Impersonate-User";
const GROUP: &str = "Impersonate-Group";

#[test]
fn without_headers_nothing_is_asked() {
    let (answer, asked) = ask(&Impersonator::default(), &[], &[]);
    assert_eq!((answer.unwrap(), asked.len()), (None, 0));
}

#[test]
fn every_part_needs_a_permission() {
    let lines = [(USER, "system:admin"), (GROUP, "some-group")];
    let users = "impersonate /users/";
    let want = "impersonate-on:user-info:get /p: no rule";
    assert_eq!(refusal(&lines, &[users]), want);
    let admin = user(&lines, &[users, "impersonate /groups/ /some-group"]);
    assert_eq!(admin.name, "system:admin");
    assert_eq!(admin.groups, ["some-group", "system:authenticated"]);
}

#[test]
fn uids_and_extra_need_permissions() {
    let users = "impersonate /users/";
    let scopes =
        [(USER, "u"), ("Impersonate-Extra-scopes", "a"), ("Impersonate-Extra-scopes", "b")];
    let only_a = "impersonate authentication.k8s.io/userextras/scopes /a";
    assert!(refusal(&scopes, &[users, only_a]).contains("impersonate-on:user-info"));
    let all = "impersonate authentication.k8s.io/userextras/scopes ";
    let scoped = user(&scopes, &[users, all]);
    assert_eq!((scoped.extra["scopes"].join(","), scoped.groups.len()), ("a,b".to_owned(), 1));
    let encoded = [(USER, "u"), ("Impersonate-Extra-example.com%2fx", "v")];
    let key = "impersonate authentication.k8s.io/userextras/example.com/x /v";
    assert!(user(&encoded, &[users, key]).extra.contains_key("example.com/x"));
    let with_uid = [(USER, "u"), ("Impersonate-Uid", "1")];
    assert!(refusal(&with_uid, &[users]).contains("impersonate-on:user-info"));
    let uids = "impersonate authentication.k8s.io/uids/ /1";
    assert_eq!(user(&with_uid, &[users, uids]).uid, "1");
}

#[test]
fn service_accounts_are_a_resource_of_their_own() {
    let accounts = "impersonate /serviceaccounts/ foo/default";
    let account = user(&[(USER, "system:serviceaccount:foo:default")], &[accounts]);
    let fixed = ["system:serviceaccounts", "system:serviceaccounts:foo", "system:authenticated"];
    assert_eq!(account.groups, fixed);
    assert!(refusal(&[(USER, "tester")], &["impersonate /serviceaccounts/"]).contains("user-info"));
}

#[test]
fn groups_say_whether_one_is_authenticated() {
    let all = ["impersonate "];
    assert_eq!(user(&[(USER, "system:anonymous")], &all).groups, ["system:unauthenticated"]);
    let unauthenticated = [(USER, "x"), (GROUP, "system:unauthenticated")];
    assert_eq!(user(&unauthenticated, &all).groups, ["system:unauthenticated"]);
    let twice = [(USER, "x"), (GROUP, "g"), (GROUP, "system:authenticated")];
    assert_eq!(user(&twice, &all).groups, ["g", "system:authenticated"]);
}

/// The first check of a mode is about the request itself, so a user without any permission reads about that
/// check.
#[test]
fn the_first_refusal_is_the_answer() {
    let lines = [(USER, "u")];
    let want = "impersonate-on:user-info:get /p: no rule";
    assert_eq!(refusal(&lines, &[]), want);
    assert_eq!(
        refusal(&lines, &["impersonate:user-info ", "impersonate-on:user-info:create"]),
        want
    );
    let want = "impersonate:user-info authentication.k8s.io/users/ /u: no rule";
    assert_eq!(refusal(&lines, &["impersonate-on:user-info:get"]), want);
}

/// If this server could not get a decision for one mode, it does not try another mode.
#[test]
fn a_question_that_is_not_decided_ends_the_search() {
    let (answer, asked) = ask(&Impersonator::default(), &[(USER, "u")], &["busy"]);
    let want = "no authorization decision is available";
    assert_eq!((answer.unwrap_err().to_string().as_str(), asked.len()), (want, 1));
}

#[test]
fn nodes_have_fixed_groups() {
    let node = [(USER, "system:node:n2")];
    let arbitrary = [
        "impersonate-on:arbitrary-node:get /p",
        "impersonate:arbitrary-node authentication.k8s.io/nodes/ /n2",
    ];
    assert_eq!(user(&node, &arbitrary).groups, ["system:nodes", "system:authenticated"]);
    let own = [(USER, "system:node:n1")];
    let associated = [
        "impersonate-on:associated-node:get /p",
        "impersonate:associated-node authentication.k8s.io/nodes/ /*",
    ];
    let (answer, asked) = ask(&Impersonator::default(), &own, &associated);
    assert_eq!(answer.unwrap().unwrap().impersonation_mode, ImpersonationMode::AssociatedNode);
    assert_eq!(asked, associated);
    assert!(refusal(&node, &associated).contains("arbitrary-node"));
}

#[test]
fn the_masters_need_the_old_permission() {
    let lines = [(USER, "u"), (GROUP, "system:masters")];
    let constrained = ["impersonate-on:", "impersonate:"];
    let want = "impersonate:user-info authentication.k8s.io/groups/ \
                /system:masters: impersonating the system:masters group is not allowed";
    assert_eq!(refusal(&lines, &constrained), want);
    let legacy = ["impersonate-on:", "impersonate:", "impersonate "];
    assert_eq!(user(&lines, &legacy).groups, ["system:masters", "system:authenticated"]);
    let empty = [(USER, "u"), (GROUP, "")];
    assert!(refusal(&empty, &constrained).ends_with("empty string group is not allowed"));
}

#[test]
fn many_groups_are_asked_about_at_once() {
    let lines = [(USER, "u"), (GROUP, "a"), (GROUP, "b"), (GROUP, "c"), (GROUP, "d")];
    let all = [
        "impersonate-on:user-info:get /p",
        "impersonate:user-info authentication.k8s.io/users/ /u",
        "impersonate:user-info authentication.k8s.io/groups/ /*",
    ];
    let (answer, asked) = ask(&Impersonator::default(), &lines, &all);
    assert!(answer.is_ok());
    assert_eq!(asked, all);
    let (answer, asked) = ask(&Impersonator::default(), &lines[..4], &all);
    assert!(answer.is_err());
    assert_eq!(asked[2], "impersonate:user-info authentication.k8s.io/groups/ /a");
}

#[test]
fn the_mode_that_worked_is_tried_first() {
    let impersonator = Impersonator::default();
    let lines = [(USER, "u")];
    let legacy = ["impersonate "];
    let (_, asked) = ask(&impersonator, &lines, &legacy);
    assert_eq!(asked, ["impersonate-on:user-info:get /p", "impersonate /users/ /u"]);
    let (_, asked) = ask(&impersonator, &lines, &legacy);
    assert_eq!(asked, ["impersonate /users/ /u"]);
    // A revoked permission takes effect at once, and the other modes are tried again.
    let (answer, asked) = ask(&impersonator, &lines, &[]);
    assert_eq!(error_text(&answer.unwrap_err()), "impersonate /users/ /u: no rule");
    assert_eq!(asked, ["impersonate /users/ /u", "impersonate-on:user-info:get /p"]);
}

#[test]
fn somebody_must_ask() {
    let headers = [(HeaderName::from_static("impersonate-user"), "u".parse().unwrap())];
    let attributes = Attributes { user: None, verb: Verb::GET, target: Target::Path("/p") };
    let rules = Rules { allowed: &[], asked: Mutex::default() };
    let impersonator = Impersonator::default();
    let headers = headers.into_iter().collect();
    let future = impersonator.impersonate(&headers, &attributes, &rules);
    assert!(is_send(&future));
    assert!(matches!(poll_once(future), Err(ImpersonationError::NoRequestor)));
}

fn is_send<T: Send>(_: &T) -> bool {
    true
}
