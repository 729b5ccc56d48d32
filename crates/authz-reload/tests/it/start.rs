//! What a server starts with, and what keeps it from starting.

use authz_reload::StartError;

use crate::stage::{Stage, built_in, names};

#[test]
fn a_file_gives_the_authorizers_in_its_order() {
    let stage = Stage::new();
    stage.write("config", &built_in(&["AlwaysDeny", "RBAC", "Node", "AlwaysAllow"]));
    let generation = stage.start("config").unwrap();
    assert_eq!(names(&generation), "alwaysdeny,rbac,node,alwaysallow");
    assert_eq!(generation.generation_number, 1);
}

#[test]
fn faults_keep_a_server_from_starting() {
    let stage = Stage::new();
    let error = stage.start("config").unwrap_err();
    assert!(matches!(error, StartError::Read(_)), "{error}");
    stage.write("config", &built_in(&["Wrong"]));
    let error = stage.start("config").unwrap_err();
    assert!(matches!(error, StartError::Load(_)), "{error}");
    assert_eq!(error.diagnostics()[0].position.line, 4);
}

#[test]
fn type_abac_needs_the_flag_of_its_policies() {
    let stage = Stage::new();
    stage.write("config", &built_in(&["ABAC"]));
    let error = stage.start("config").unwrap_err();
    assert_eq!(error.to_string(), "type ABAC needs a policy file: set --authorization-policy-file");
    let [fault] = error.diagnostics() else { panic!("{error}") };
    assert_eq!((fault.position.line, fault.position.column), (4, 9));
    let stage = stage.with_policy("policies");
    stage.write("policies", "# nobody\n");
    assert_eq!(names(&stage.start("config").unwrap()), "abac");
}
