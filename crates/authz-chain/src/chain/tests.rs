use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};

use authz::{
    Authorizer, DecisionFuture, Namespace, NonResourceRule, ResourceRule, Target, Trace,
    UnavailableCause, Verb,
};

use super::*;
use crate::authorizer_name::AuthorizerName;

/// An authorizer that returns a fixed answer and counts its calls.
#[derive(Debug)]
struct FakeAuthorizer {
    decision: Decision,
    n_calls: AtomicUsize,
}

impl Authorizer for FakeAuthorizer {
    fn authorize<'a>(&'a self, _: &'a Attributes<'a>, _: TraceRecorder<'a>) -> DecisionFuture<'a> {
        self.n_calls.fetch_add(1, Ordering::Relaxed);
        Box::pin(std::future::ready(self.decision.clone()))
    }

    fn rules_for(&self, _: &User, namespace: Namespace<'_>) -> Rules {
        let rule = ResourceRule {
            resources: vec![namespace.as_str().to_owned()],
            ..ResourceRule::default()
        };
        Rules { resource_rules: vec![rule], ..Rules::default() }
    }
}

/// Parses `name: N "reason" ! error`, with `A`, `D`, `N` or `U` for the verdict. The reason and the error are
/// optional.
fn scripted(text: &str) -> (ChainMember, Arc<FakeAuthorizer>) {
    let (name, rest) = text.split_once(": ").unwrap();
    let (rest, error) = match rest.split_once(" ! ") {
        Some((rest, error)) => (rest, Some(EvaluationErrors::message(error))),
        None => (rest, None),
    };
    let (verdict, reason) = rest.split_once(' ').unwrap_or((rest, ""));
    let reason = reason.trim_matches('"').to_owned();
    let decision = match verdict {
        "A" => Decision::allow(reason),
        "D" => Decision::deny(reason),
        "N" => Decision::no_opinion(reason),
        "U" => Decision::authorizer_unavailable(UnavailableCause::TooManyCalls),
        other => panic!("no answer: {other}"),
    };
    let authorizer = Arc::new(FakeAuthorizer {
        decision: Decision { error, ..decision },
        n_calls: AtomicUsize::new(0),
    });
    let name = AuthorizerName::new(name).unwrap();
    (ChainMember::Plugin(name, authorizer.clone()), authorizer)
}

/// Runs a future that never waits, and would be moved between threads if it did.
fn finish<T>(future: impl Future<Output = T> + Send) -> T {
    let mut future = std::pin::pin!(future);
    match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("waits"),
    }
}

fn user(groups: &[&str]) -> User {
    let groups = groups.iter().map(|group| (*group).to_owned()).collect();
    User { name: "bob".to_owned(), groups, ..User::default() }
}

/// The decision as `verdict|reason|error|decided by`; an absent part is empty.
fn ask(members: Vec<ChainMember>, user: Option<&User>) -> String {
    let chain = Chain::new(members).unwrap();
    let attributes = Attributes { user, verb: Verb::GET, target: Target::Path("/x") };
    let outcome = finish(chain.authorize(&attributes, TraceRecorder::disabled_recorder()));
    let mut trace = Trace::default();
    let explained = finish(chain.authorize(&attributes, TraceRecorder::new(&mut trace)));
    let show = |outcome: &ChainDecision<'_>| {
        let Decision { verdict, reason, error } = &outcome.decision;
        let error = error.as_ref().map(ToString::to_string).unwrap_or_default();
        format!(
            "{}|{reason}|{error}|{}",
            verdict.name(),
            outcome.deciding_authorizer_name.unwrap_or_default()
        )
    };
    assert_eq!(show(&outcome), show(&explained));
    // The last verdict of the trace is that of the deciding authorizer.
    let last = trace.trace_entries().last().unwrap();
    if explained.deciding_authorizer_name.is_some() {
        assert_eq!(last.trace_event, TraceEvent::verdict_trace_event(&explained.decision));
    }
    show(&outcome)
}

#[test]
fn the_first_allow_or_deny_decides() {
    for (texts, want, calls) in [
        (&["x: N", "y: A"][..], "allow|||y", &[1, 1][..]),
        (&["x: A", "y: N"], "allow|||x", &[1, 0]),
        (&["x: N", "y: N"], "noOpinion|||", &[1, 1]),
        (&[], "noOpinion|||", &[]),
        (&["x: N", "y: A", "z: D"], "allow|||y", &[1, 1, 0]),
        (&["x: N", "y: D", "z: A"], "deny|||y", &[1, 1, 0]),
        (&["x: N", "y: D ! e", "z: A"], "deny||e|y", &[1, 1, 0]),
        (&["x: N ! e1", "y: N ! e2"], "noOpinion||[e1, e2]|", &[1, 1]),
        (&["x: N ! e", "y: N ! e"], "noOpinion||e|", &[1, 1]),
        (&["x: N ! e", "y: A"], "allow|||y", &[1, 1]),
        (&["x: N ! e", "y: D \"r\""], "deny|r||y", &[1, 1]),
        (&["x: N \"said\" ! e", "y: D \"r\""], "deny|r||y", &[1, 1]),
        (&["x: N \"r1\"", "y: N", "z: N \"r2\""], "noOpinion|x: r1\nz: r2||", &[1, 1, 1]),
        (&["x: N", "y: U ! e", "z: A"], "unavailable||e|y", &[1, 1, 0]),
        (&["x: A \"r\" ! e"], "allow|r|e|x", &[1]),
    ] {
        let (members, scripts): (Vec<_>, Vec<_>) = texts.iter().map(|text| scripted(text)).unzip();
        assert_eq!(ask(members, Some(&user(&["g"]))), want, "{texts:?}");
        // Each authorizer was called twice: to decide, and to explain.
        let asked: Vec<usize> =
            scripts.iter().map(|script| script.n_calls.load(Ordering::Relaxed) / 2).collect();
        assert_eq!(asked, calls, "{texts:?}");
    }
}

#[test]
fn system_masters_is_consulted_first() {
    let denying = || vec![scripted("x: D").0];
    let abstaining = || vec![scripted("x: N \"r\" ! e").0];
    let privileged = "kubernetes.io/system-privileged-group";
    for (members, groups, want) in [
        (denying(), Some(&["a", "system:masters"][..]), format!("allow|||{privileged}")),
        (denying(), Some(&["System:masters"]), "deny|||x".to_owned()),
        (denying(), Some(&["system:masters "]), "deny|||x".to_owned()),
        (denying(), None, "deny|||x".to_owned()),
        (
            abstaining(),
            None,
            format!("noOpinion|{privileged}: Error\nx: r|[no user on request., e]|"),
        ),
        (vec![ChainMember::AlwaysDeny], Some(&["system:masters"]), format!("allow|||{privileged}")),
    ] {
        let user = groups.map(user);
        assert_eq!(ask(members, user.as_ref()), want);
    }
}

#[test]
fn always_deny_abstains() {
    let user = user(&[]);
    for (members, want) in [
        (vec![ChainMember::AlwaysDeny], "noOpinion|alwaysdeny: Everything is forbidden.||"),
        (vec![ChainMember::AlwaysDeny, ChainMember::AlwaysAllow], "allow|||alwaysallow"),
        (vec![ChainMember::AlwaysAllow], "allow|||alwaysallow"),
    ] {
        assert_eq!(ask(members, Some(&user)), want);
    }
}

#[test]
fn the_node_authorizer_is_consulted_in_order() {
    let node = User { name: "system:node:n".to_owned(), ..user(&["system:nodes"]) };
    let members = || vec![ChainMember::AlwaysDeny, ChainMember::Node(Arc::default())];
    let chain = Chain::new(members()).unwrap();
    let resource = authz::Resource { resource: "nodes", name: "n", ..authz::Resource::default() };
    let target = Target::Resource(resource);
    let attributes = Attributes { user: Some(&node), verb: Verb::GET, target };
    let mut trace = Trace::default();
    let outcome = finish(chain.authorize(&attributes, TraceRecorder::new(&mut trace)));
    assert_eq!(outcome.deciding_authorizer_name, Some("node"));
    let shape: Vec<(usize, &str)> = trace
        .trace_entries()
        .iter()
        .map(|entry| (entry.trace_depth, entry.trace_event.kind.as_ref()))
        .collect();
    let want = [
        (0, "authorizer"),
        (1, "verdict"),
        (0, "authorizer"),
        (1, "verdict"),
        (0, "authorizer"),
        (1, "node"),
        (1, "verdict"),
    ];
    assert_eq!(shape, want);
}

#[test]
fn empty_built_in_authorizers_abstain_under_their_names() {
    let members = vec![
        ChainMember::Node(Arc::default()),
        ChainMember::Abac(Arc::default()),
        ChainMember::Rbac(Arc::default()),
        ChainMember::AlwaysDeny,
    ];
    let names: Vec<&str> = members.iter().map(ChainMember::name).collect();
    assert_eq!(names, ["node", "abac", "rbac", "alwaysdeny"]);
    let want = "noOpinion|abac: No policy matched.\nalwaysdeny: Everything is forbidden.||";
    assert_eq!(ask(members, Some(&user(&["g"]))), want);
}

#[test]
fn names_are_unique() {
    let members = vec![scripted("x: N").0, scripted("x: A").0];
    let error = Chain::new(members).unwrap_err().to_string();
    assert_eq!(error, "authorizer name x is repeated");
    let members = vec![ChainMember::AlwaysAllow, scripted("alwaysallow: A").0];
    assert!(Chain::new(members).is_err());
}

#[test]
fn rules_are_listed_in_order() {
    let node = User { name: "system:node:n".to_owned(), ..user(&["system:nodes"]) };
    let members = vec![
        scripted("x: N").0,
        ChainMember::AlwaysAllow,
        ChainMember::AlwaysDeny,
        ChainMember::Node(Arc::default()),
    ];
    let chain = Chain::new(members).unwrap();
    assert_eq!(chain.chain_members().count(), 4);
    let all = vec!["*".to_owned()];
    let rules = chain.rules_for(&user(&[]), Namespace::new("ns"));
    let resources: Vec<_> = rules.resource_rules.iter().map(|rule| &rule.resources[0]).collect();
    assert_eq!(resources, ["ns", "*"]);
    let everything = NonResourceRule { verbs: all.clone(), non_resource_urls: all };
    assert_eq!(rules.non_resource_rules, [everything]);
    assert!(!rules.is_incomplete && rules.error.is_none());
    let rules = chain.rules_for(&node, Namespace::new("ns"));
    let error = rules.error.unwrap().to_string();
    assert_eq!(error, "node authorizer does not support user rule resolution");
    assert!(rules.is_incomplete);
}
