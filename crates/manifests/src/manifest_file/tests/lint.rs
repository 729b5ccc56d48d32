//! Warnings, and for each the nearest object that causes none.

use document::WarningCode;

use super::*;

#[test]
fn questionable_subjects_are_warned_about() {
    for (subject, want) in [
        ("kind: User, name: ana", ""),
        ("kind: User, name: Jane Doe", ""),
        ("kind: User, name: 'ana '", "4:31 odd-subject-name [did you mean `ana`?]"),
        ("kind: User, name: ' '", "4:31 odd-subject-name"),
        ("kind: Group, name: \"a\\u200b\"", "4:32 odd-subject-name [did you mean `a`?]"),
        (
            "kind: User, name: '*'",
            "4:31 wildcard-subject [everybody who is known is in the group \
             `system:authenticated`]",
        ),
        (
            "kind: User, name: 'system:serviceaccount:ns:ci'",
            "4:19 service-account-as-user [write `kind: ServiceAccount`, `namespace: ns`, `name: \
             ci`]",
        ),
        (
            "kind: User, name: 'system:serviceaccount:ci'",
            "4:31 malformed-service-account [it would be \
             `system:serviceaccount:<namespace>:<name>`]",
        ),
        (
            "kind: User, name: 'system:serviceaccount:NS:ci'",
            "4:31 malformed-service-account [it would be \
             `system:serviceaccount:<namespace>:<name>`]",
        ),
        ("kind: User, name: 'system:masters'", "4:19 group-as-user [write `kind: Group`]"),
        (
            "kind: User, name: 'system:serviceaccounts:a'",
            "4:19 group-as-user [write `kind: Group`]",
        ),
        ("kind: User, name: 'system:anonymous'", ""),
        (
            "kind: User, name: ana, namespace: team",
            "4:47 ignored-subject-namespace [remove `namespace`; a RoleBinding limits the role to \
             its own]",
        ),
        ("kind: Group, name: 'system:masters'", ""),
        ("kind: Group, name: 'system:serviceaccounts:ns1'", ""),
        ("kind: Group, name: 'system:testers'", ""),
        (
            "kind: Group, name: 'system:autenticated'",
            "4:32 misspelled-group [did you mean `system:authenticated`?]",
        ),
        (
            "kind: Group, name: 'system:serviceaccount'",
            "4:32 misspelled-group [did you mean `system:serviceaccounts`?]",
        ),
        (
            "kind: Group, name: 'system:serviceaccount:ns'",
            "4:32 misspelled-group [did you mean `system:serviceaccounts:ns`?]",
        ),
        (
            "kind: Group, name: 'system:serviceaccount:ns:ci'",
            "4:19 malformed-service-account [write `kind: ServiceAccount`, `namespace: ns`, \
             `name: ci`]",
        ),
        (
            "kind: Group, name: 'system:serviceaccounts:a:b'",
            "4:32 misspelled-group [the group is `system:serviceaccounts:<namespace>`]",
        ),
        ("kind: ServiceAccount, name: ci", ""),
        ("kind: ServiceAccount, name: ci, namespace: Ns", "4:56 odd-subject-name"),
    ] {
        let text = binding(&format!("subjects: [{{{subject}}}]\n{ROLE_REF}"));
        let manifests = read_text(&text);
        assert_eq!(faults(&manifests), [""; 0], "{subject}");
        let want: Vec<&str> = if want.is_empty() { vec![] } else { vec![want] };
        assert_eq!(warnings_with_positions(&manifests.warnings), want, "{subject}");
    }
}

#[test]
fn rules_that_match_nothing_are_warned_about() {
    for (rule, want) in [
        ("verbs: ['*'], apiGroups: ['*'], resources: ['*']", ""),
        ("verbs: [get], apiGroups: [''], resources: [pods, pods/log, '*/scale']", ""),
        ("verbs: [use], apiGroups: [example.com], resources: [widgets]", ""),
        ("verbs: [Get], apiGroups: [''], resources: [pods]", "unmatched-verb [write `get`]"),
        (
            "verbs: [post], apiGroups: [''], resources: [pods]",
            "unmatched-verb [for resources it is `create`]",
        ),
        (
            "verbs: [list], nonResourceURLs: [/metrics]",
            "unmatched-verb [the verb of a path is the method of HTTP in lower case]",
        ),
        ("verbs: [get, post, '*'], nonResourceURLs: [/metrics, '*', /healthz/*]", ""),
        (
            "verbs: [get], apiGroups: [apps/v1], resources: [deployments]",
            "unmatched-api-group [write `apps` without a version]",
        ),
        (
            "verbs: [get], apiGroups: [v1], resources: [pods]",
            "unmatched-api-group [the group of pods, services and secrets is `\"\"`]",
        ),
        (
            "verbs: [get], apiGroups: [core], resources: [pods]",
            "unmatched-api-group [the group of pods, services and secrets is `\"\"`]",
        ),
        ("verbs: [get], apiGroups: [Apps], resources: [a]", "unmatched-api-group [write `apps`]"),
        ("verbs: [get], apiGroups: [''], resources: [Pods]", "unmatched-resource [write `pods`]"),
        ("verbs: [get], apiGroups: [''], resources: [pods/]", "unmatched-resource [write `pods`]"),
        (
            "verbs: [get], apiGroups: [''], resources: [/log]",
            "unmatched-resource [`*/log` is for all resources]",
        ),
        ("verbs: [get], apiGroups: [''], resources: ['']", "unmatched-resource"),
        (
            "verbs: [get], apiGroups: [''], resources: [pods/*]",
            "unmatched-resource [name them, such as `pods/status`, or use `*/<subresource>`]",
        ),
        ("verbs: [get], apiGroups: [''], resources: ['*/*']", "unmatched-resource [write `*`]"),
        (
            "verbs: [get], apiGroups: [''], resources: [pods/proxy/a]",
            "unmatched-resource [did you mean `pods/proxy`?]",
        ),
        (
            "verbs: [get], apiGroups: [''], resources: [deployments]",
            "unmatched-resource [it is in the API group `\"apps\"`]",
        ),
        (
            "verbs: [get], apiGroups: [''], resources: [pod]",
            "unmatched-resource [did you mean `pods`?]",
        ),
        ("verbs: [get], nonResourceURLs: [healthz]", "unmatched-url [did you mean `/healthz`?]"),
        ("verbs: [get], nonResourceURLs: [/a/*/b]", "unmatched-url [did you mean `/a/*`?]"),
        (
            "verbs: [create], apiGroups: [''], resources: [pods], resourceNames: [a]",
            "create-by-name [give `create` a rule of its own, without names]",
        ),
        ("verbs: [create], apiGroups: [''], resources: [pods/exec], resourceNames: [a]", ""),
        ("verbs: [get], apiGroups: [''], resources: [pods], resourceNames: [a]", ""),
    ] {
        let manifests = read_text(&cluster_role(&format!("- {{{rule}}}\n")));
        assert_eq!(faults(&manifests), [""; 0], "{rule}");
        let found = warnings_with_positions(&manifests.warnings);
        let found: Vec<_> = found.iter().map(|it| it.split_once(' ').unwrap().1).collect();
        let want: Vec<&str> = if want.is_empty() { vec![] } else { vec![want] };
        assert_eq!(found, want, "{rule}");
    }
    let position =
        &read_text(&cluster_role("- verbs: [get]\n  apiGroups: ['']\n  resources:\n  - Pods\n"));
    assert_eq!(position.warnings[0].field, "rules[0].resources[0]");
    assert_eq!((position.warnings[0].position.line, position.warnings[0].position.column), (8, 5));
    // The rules of an aggregated role come from other roles.
    let aggregated = cluster_role("- {verbs: [Get], nonResourceURLs: [a]}\n")
        + "aggregationRule: {clusterRoleSelectors: [{matchLabels: {a: b}}]}\n";
    assert_eq!(warnings_with_positions(&read_text(&aggregated).warnings), [""; 0]);
}

/// The default roles cause no warning.
#[test]
fn the_default_policy_has_no_warnings() {
    let policy = rbac::bootstrap_policy().unwrap();
    let roles = policy.roles.into_iter().map(rbac::RbacObject::Role);
    let objects = roles.chain(policy.bindings.into_iter().map(rbac::RbacObject::Binding));
    let text: String =
        objects.map(|object| format!("{}\n", rbac::encode_rbac_object(&object).unwrap())).collect();
    let manifests = read_text(&text);
    assert_eq!(faults(&manifests), [""; 0]);
    assert_eq!(warnings_with_positions(&manifests.warnings), [""; 0]);
    assert_eq!(manifests.authorizer_objects.len(), 142);
    assert_eq!(find_duplicate_objects(&manifests.authorizer_objects), DuplicateObjects::default());
    assert!(lint_role_references(&manifests.authorizer_objects, false).is_empty());
}

#[test]
fn bindings_to_missing_roles_are_warned_about() {
    let role = |kind: &str, metadata: &str| {
        format!("{HEADER}kind: {kind}\nmetadata: {{{metadata}}}\n---\n")
    };
    let roles = [
        role("ClusterRole", "name: deployer"),
        role("Role", "name: local, namespace: ns1"),
        role("Role", "name: other, namespace: ns2"),
    ]
    .concat();
    for (kind, name, want) in [
        ("ClusterRole", "deployer", None),
        ("Role", "local", None),
        ("ClusterRole", "view", None),
        ("ClusterRole", "deploier", Some("did you mean `deployer`?")),
        ("ClusterRole", "cluster-amdin", Some("did you mean `cluster-admin`?")),
        ("ClusterRole", "local", Some("there is a Role of this name: write `kind: Role`")),
        (
            "Role",
            "deployer",
            Some("there is a ClusterRole of this name: write `kind: ClusterRole`"),
        ),
        (
            "Role",
            "other",
            Some("there is one in namespace `ns2`, but a binding grants roles of its own only"),
        ),
        ("Role", "locale", Some("did you mean `local`?")),
        ("Role", "unheard-of", Some("")),
    ] {
        let text =
            format!("{roles}{}", binding(&format!("roleRef: {{kind: {kind}, name: {name}}}\n")));
        let objects = read_text(&text).authorizer_objects;
        let warnings = lint_role_references(&objects, true);
        let hints: Vec<_> =
            warnings.iter().map(|it| it.hint.as_deref().unwrap_or_default()).collect();
        assert_eq!(hints, Vec::from_iter(want), "{kind} {name}");
        assert!(warnings.iter().all(|it| it.code == WarningCode::MissingRole));
        assert!(warnings.iter().all(|it| it.field == "roleRef.name" && it.position.line == 16));
    }
    let to_default =
        read_text(&binding("roleRef: {kind: ClusterRole, name: view}\n")).authorizer_objects;
    assert_eq!(
        lint_role_references(&to_default, false).len(),
        1,
        "without the default roles it is missing"
    );
}

/// An oversized role is a warning only: a dump of another cluster may hold one.
#[test]
fn a_role_that_the_server_refuses_is_warned_about_and_read() {
    let entries = |n: usize| -> String {
        (0..n).map(|number| format!("e{number}")).collect::<Vec<_>>().join(", ")
    };
    let rule = |verbs: usize, groups: usize, resources: usize| {
        let [verbs, groups, resources] = [verbs, groups, resources].map(entries);
        format!("- {{verbs: [{verbs}], apiGroups: [{groups}], resources: [{resources}]}}\n")
    };
    let advice = "split the rule into several, or use fewer entries";
    for (rules, want) in [
        (rule(10, 100, 100), vec![]),
        (rule(150, 150, 150), vec![("rules[0]", "Invalid value: 3375000: must have", advice)]),
        (rule(10, 100, 100).repeat(10), vec![]),
        (
            rule(10, 100, 100).repeat(11),
            vec![("rules", "Invalid value: 1100000: must have", "split the role into several")],
        ),
    ] {
        let manifests = read_text(&cluster_role(&rules));
        assert_eq!(faults(&manifests), [""; 0]);
        assert_eq!(manifests.authorizer_objects.len(), 1);
        let warnings = manifests.warnings.iter();
        let found: Vec<_> = warnings.filter(|it| it.code == WarningCode::OversizedRole).collect();
        assert_eq!(found.len(), want.len(), "{found:?}");
        for (warning, (field, begin, end)) in found.into_iter().zip(want) {
            assert_eq!(warning.field, field);
            assert!(warning.message.starts_with(begin), "{}", warning.message);
            assert!(warning.message.ends_with(end), "{}", warning.message);
        }
    }
}
