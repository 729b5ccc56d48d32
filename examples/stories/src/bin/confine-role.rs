//! Story 4: contractors have a powerful role, and may use it only in their own namespaces.

use std::error::Error;

use stories::{Decision, ReviewSpec, run};

const OWN: &str = "sandbox-";

fn main() -> Result<(), Box<dyn Error>> {
    run(decide)
}

fn decide(spec: &ReviewSpec) -> Decision {
    let namespace = spec.resource_attributes.as_ref().map_or("", |own| &own.namespace);
    match namespace.starts_with(OWN) {
        true => Decision::NoOpinion,
        false => Decision::Deny(format!("contractors work in the namespaces {OWN}*")),
    }
}
