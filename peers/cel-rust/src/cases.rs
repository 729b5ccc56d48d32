//! The measured cases: one request, and the conditions that are evaluated on it.

use serde_json::{Value, json};

/// The conditions of one webhook, as one case of the benchmark.
pub struct Case {
    pub name: &'static str,
    pub about: &'static str,
    pub expressions: &'static [&'static str],
}

/// The request has five groups and two extra keys. Cases `c` and `d` read all groups, and case `f` matches
/// the last group.
pub fn request() -> Value {
    json!({
        "resourceAttributes": {
            "namespace": "kube-system", "verb": "get", "version": "v1", "resource": "pods",
            "name": "coredns-0"
        },
        "user": "jane@example.com",
        "uid": "6c1f4c1e",
        "groups": ["dev", "qa", "team:red", "oidc:engineering", "system:authenticated"],
        "extra": {"example.com/tenant": ["south"], "scopes": ["read", "write"]}
    })
}

/// All cases in the order of the table.
pub fn all() -> Vec<Case> {
    vec![
        Case {
            name: "a",
            about: "has(request.resourceAttributes)",
            expressions: &["has(request.resourceAttributes)"],
        },
        Case {
            name: "b",
            about: "namespace == 'kube-system'",
            expressions: &["request.resourceAttributes.namespace == 'kube-system'"],
        },
        Case {
            name: "c",
            about: "!(group in request.groups), 5 groups",
            expressions: &["!('system:serviceaccounts:kube-system' in request.groups)"],
        },
        Case {
            name: "d",
            about: "!(verb in [3 constants])",
            expressions: &["!(request.resourceAttributes.verb in ['create', 'update', 'delete'])"],
        },
        Case {
            name: "e",
            about: "startsWith && ==",
            expressions: &[
                "request.user.startsWith('jane@') && request.resourceAttributes.resource == 'pods'",
            ],
        },
        Case {
            name: "f",
            about: "groups.exists(g, g.startsWith(..))",
            expressions: &["request.groups.exists(g, g.startsWith('system:auth'))"],
        },
        Case {
            name: "webhook",
            about: "the three conditions of the reference sample",
            expressions: &[
                "has(request.resourceAttributes)",
                "request.resourceAttributes.namespace == 'kube-system'",
                "!('system:serviceaccounts:kube-system' in request.groups)",
            ],
        },
    ]
}

/// A configuration with the largest number of conditions that a webhook may have.
pub fn largest_configuration() -> String {
    let mut text = String::from(
        "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\nauthorizers:\n\
         - name: guard.example.com\n  type: Webhook\n  webhook:\n    timeout: 3s\n    \
         failurePolicy: Deny\n    subjectAccessReviewVersion: v1\n    \
         matchConditionSubjectAccessReviewVersion: v1\n    connectionInfo: {type: KubeConfigFile, \
         kubeConfigFile: /etc/portcullis/guard.yaml}\n    matchConditions:\n",
    );
    let shapes: [fn(usize) -> String; 4] = [
        |n| {
            format!(
                "!has(request.resourceAttributes) || request.resourceAttributes.namespace != 'team-{n}'"
            )
        },
        |n| format!("!('system:serviceaccounts:team-{n}' in request.groups)"),
        |n| {
            format!(
                "request.user.startsWith('system:') || request.groups.exists(g, g == 'team:{n}')"
            )
        },
        |n| {
            format!(
                "request.?resourceAttributes.labelSelector.requirements.orValue([]).all(r, r.key != 'k{n}')"
            )
        },
    ];
    for n in 0..64 {
        text.push_str(&format!("    - expression: \"{}\"\n", shapes[n % shapes.len()](n)));
    }
    text.push_str("- {type: Node, name: node}\n- {type: RBAC, name: rbac}\n");
    text
}
