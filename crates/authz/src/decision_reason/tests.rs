use super::*;
use crate::namespace::Namespace;
use crate::rbac_grant::RbacSubject;

#[derive(Debug)]
struct TwoSubjects;

impl RbacGrantSource for TwoSubjects {
    fn grant_at_index(&self, grant_idx: usize) -> Option<RbacGrant<'_>> {
        let subjects = [
            RbacSubject { kind: "User", name: "ana \"a\"", namespace: Namespace::new("unused") },
            RbacSubject { kind: "ServiceAccount", name: "ci", namespace: Namespace::new("prod") },
        ];
        Some(RbacGrant {
            binding_namespace: if grant_idx == 0 {
                Namespace::CLUSTER_SCOPE
            } else {
                Namespace::new("prod")
            },
            binding_name: "b",
            role_kind: "ClusterRole",
            role_name: "r",
            subject: subjects.get(grant_idx).copied(),
            rule_idx: Some(3),
        })
    }
}

fn rbac_reason(grant_idx: usize) -> Reason {
    Reason::RbacGrant { bindings: Arc::new(TwoSubjects), grant_idx }
}

fn name(name: &str) -> Arc<str> {
    name.into()
}

/// Every variant, with the text that clients and the audit log get.
fn all_variants() -> Vec<(Reason, &'static str)> {
    let abstention = |authorizer, reason| Abstention { authorizer_name: authorizer, reason };
    let abstentions = [
        abstention("abac".into(), Reason::from_static_text("No policy matched.")),
        abstention(name("hook").into(), Reason::from_static_text("no")),
    ];
    vec![
        (Reason::default(), ""),
        (Reason::from_static_text("a"), "a"),
        (Reason::from("a".to_owned()), "a"),
        (Reason::SystemMasters, ""),
        (Reason::AlwaysAllow, ""),
        (Reason::AlwaysDeny, "Everything is forbidden."),
        (Reason::AbacPolicy { line: 7 }, ""),
        (NodeAllowRule::OwnObject.into(), ""),
        (
            Reason::NodeNotRelated { node: name("n1") },
            "no relationship found between node 'n1' and this object",
        ),
        (
            rbac_reason(0),
            r#"RBAC: allowed by ClusterRoleBinding "b" of ClusterRole "r" to User "ana \"a\"""#,
        ),
        (
            rbac_reason(1),
            r#"RBAC: allowed by RoleBinding "b/prod" of ClusterRole "r" to ServiceAccount "ci/prod""#,
        ),
        (Reason::Webhook { name: name("hook"), text: "no".into() }, "no"),
        (Reason::from_static_text("no").with_plugin_name(&name("plugin")), "no"),
        (Reason::Abstentions(abstentions.into()), "abac: No policy matched.\nhook: no"),
    ]
}

#[test]
fn every_variant_displays_as_kubernetes_text() {
    for (reason, text) in all_variants() {
        assert_eq!(reason.to_string(), text);
        assert_eq!(format!("{reason:?}"), format!("{text:?}"));
        assert_eq!(reason.is_empty(), text.is_empty(), "{text}");
    }
}

#[test]
fn reasons_are_equal_if_their_texts_are() {
    for (reason, text) in all_variants() {
        assert_eq!(reason, text);
        assert_eq!(reason, Reason::from(text.to_owned()));
        assert_ne!(reason, format!("{text}x").as_str());
        if !text.is_empty() {
            assert_ne!(reason, Reason::default());
            assert_ne!(reason, &text[..text.len() - 1]);
        }
    }
}

#[test]
fn rbac_reasons_expose_the_grant() {
    let reason = rbac_reason(1);
    let grant = reason.rbac_grant().unwrap();
    assert_eq!((grant.binding_namespace, grant.role_name), (Namespace::new("prod"), "r"));
    assert_eq!((grant.subject.unwrap().name, grant.rule_idx), ("ci", Some(3)));
    assert!(all_variants().iter().filter(|(reason, _)| reason.rbac_grant().is_some()).count() == 2);
}

#[test]
fn with_plugin_name_keeps_a_named_source() {
    let reason = Reason::AlwaysDeny.with_plugin_name(&name("plugin"));
    assert!(matches!(reason, Reason::AlwaysDeny));
    let reason = Reason::default().with_plugin_name(&name("plugin"));
    assert!(
        matches!(reason, Reason::Plugin { name, text } if &*name == "plugin" && text.is_empty())
    );
}

/// Every decision contains a reason and is moved several times.
#[test]
fn a_reason_fits_into_a_cache_line() {
    assert!(size_of::<Reason>() <= 48, "{}", size_of::<Reason>());
}
