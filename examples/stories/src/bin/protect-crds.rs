//! Story 1: only service accounts of the system may change its custom resource definitions, whatever roles
//! other users have.

use std::error::Error;

use stories::{Decision, ReviewSpec, run};

const PROTECTED: &str = ".system.example.com";
const OWNERS: &str = "system:serviceaccounts:kube-superuser";

fn main() -> Result<(), Box<dyn Error>> {
    run(decide)
}

/// The match conditions pass only writes of definitions, so every request here is such a write.
fn decide(spec: &ReviewSpec) -> Decision {
    let Some(resource) = &spec.resource_attributes else { return Decision::NoOpinion };
    let is_protected = resource.name.ends_with(PROTECTED) || resource.name.is_empty();
    match is_protected && !spec.is_in_group(OWNERS) {
        true => Decision::Deny(format!("definitions of *{PROTECTED} belong to {OWNERS}")),
        false => Decision::NoOpinion,
    }
}
