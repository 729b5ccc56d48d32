//! Stories 5 and 6: the webhook allows everything for jane. The stories show which requests it receives.

use std::error::Error;

use stories::{Decision, ReviewSpec, run};

fn main() -> Result<(), Box<dyn Error>> {
    run(decide)
}

fn decide(spec: &ReviewSpec) -> Decision {
    match spec.user.as_str() {
        "jane" => Decision::Allow("jane is known".to_owned()),
        _ => Decision::NoOpinion,
    }
}
