use super::*;

fn strings(list: &[&str]) -> Vec<String> {
    list.iter().map(|&own| own.to_owned()).collect()
}

fn request<'a>(
    user: &'a str,
    groups: &'a [String],
    verb: &'a str,
    target: RequestTarget<'a>,
) -> RequestDigest<'a> {
    RequestDigest { user, groups, verb, request_target: target }
}

#[test]
fn subjects() {
    let account = |namespace: &str, name: &str| Subject::ServiceAccount {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    };
    let user = |name: &str| Subject::User(name.to_owned());
    let group = |name: &str| Subject::Group(name.to_owned());
    let groups = strings(&["dev", "ops"]);
    #[rustfmt::skip]
    let cases = [
        (user("ana"), "ana", true),
        (user("ana"), "anna", false),
        (user("*"), "anybody", true),
        (group("ops"), "ana", true),
        (group("op"), "ana", false),
        (group("*"), "ana", true),
        (account("n", "a"), "system:serviceaccount:n:a", true),
        (account("n", "a"), "system:serviceaccount:n:b", false),
        (account("n", "a"), "system:serviceaccount:n:a:a", false),
        (account("n", "*"), "system:serviceaccount:n:b", true),
        (account("n", "*"), "system:serviceaccount:nn:b", false),
        (account("*", "*"), "system:serviceaccount:n:b", false),
        (account("n", "*"), "n:b", false),
        (account("n", "*"), "system:serviceaccount:n", false),
    ];
    for (subject, name, want) in cases {
        let request = request(name, &groups, "get", RequestTarget::Path("/"));
        assert_eq!(subject.matches_request(&request), want, "{subject:?} for {name}");
    }
}

#[test]
fn resources() {
    let rule = |resources: &[&str], namespaces: &[&str], cluster_scope| ResourceRule {
        verbs: strings(&["get", "list"]),
        api_groups: strings(&["", "apps"]),
        resources: strings(resources),
        namespaces: strings(namespaces),
        matches_cluster_scope: cluster_scope,
    };
    let pods = rule(&["pods", "pods/status"], &["a"], false);
    let everything = rule(&["*"], &["*"], true);
    let namespaced = rule(&["*"], &["*"], false);
    let cluster = rule(&["nodes"], &[], true);
    #[rustfmt::skip]
    let cases = [
        (&pods, "get", "", "pods", "", "a", true),
        (&pods, "get", "", "pods", "status", "a", true),
        (&pods, "get", "", "pods", "log", "a", false),
        (&pods, "get", "", "pods", "", "b", false),
        (&pods, "get", "", "pods", "", "", false),
        (&pods, "delete", "", "pods", "", "a", false),
        (&pods, "get", "batch", "pods", "", "a", false),
        (&pods, "get", "apps", "pods", "", "a", true),
        (&everything, "list", "", "pods", "log", "b", true),
        (&everything, "list", "", "nodes", "", "", true),
        (&namespaced, "list", "", "nodes", "", "", false),
        (&namespaced, "list", "", "pods", "", "x", true),
        (&cluster, "get", "", "nodes", "", "", true),
        (&cluster, "get", "", "nodes", "", "a", false),
    ];
    for (rule, verb, group, resource, subresource, namespace, want) in cases {
        let is_match = rule.matches_resource_request(verb, group, resource, subresource, namespace);
        assert_eq!(
            is_match, want,
            "{rule:?}: {verb} {group} {resource}/{subresource} in {namespace}"
        );
    }
}

#[test]
fn paths() {
    #[rustfmt::skip]
    let cases = [
        ("*", "/anything", true),
        ("/healthz", "/healthz", true),
        ("/healthz", "/healthz/etcd", true),
        ("/healthz", "/healthz2", false),
        ("/healthz/", "/healthz/etcd", true),
        ("/healthz/*", "/healthz/etcd", true),
        ("/healthz/*", "/healthz", false),
        ("/healthz*", "/healthz/etcd", true),
        ("/healthz*", "/healthz2", false),
        ("/", "/version", true),
    ];
    for (rule_path, path, want) in cases {
        assert_eq!(rule_path_covers_path(rule_path, path), want, "{rule_path} for {path}");
    }
}

#[test]
fn a_rule_needs_a_subject_and_a_target() {
    let rules = PolicyRulesWithSubjects {
        subjects: vec![Subject::User("ana".to_owned())],
        resource_rules: Vec::new(),
        non_resource_rules: vec![NonResourceRule {
            verbs: strings(&["*"]),
            non_resource_urls: strings(&["/version"]),
        }],
    };
    let resource =
        RequestTarget::Resource { group: "", resource: "pods", subresource: "", namespace: "" };
    for (user, target, want) in [
        ("ana", RequestTarget::Path("/version"), true),
        ("bob", RequestTarget::Path("/version"), false),
        ("ana", RequestTarget::Path("/metrics"), false),
        ("ana", resource, false),
    ] {
        assert_eq!(
            rules.matches_request(&request(user, &[], "get", target)),
            want,
            "{user} {target:?}"
        );
    }
    let nobody = PolicyRulesWithSubjects { subjects: Vec::new(), ..rules };
    assert!(!nobody.matches_request(&request("ana", &[], "get", RequestTarget::Path("/version"))));
}
