//! Story 3: the webhook denies every request. The server does not ask it about `system:masters`.

use std::error::Error;

use stories::{Decision, ReviewSpec, run};

fn main() -> Result<(), Box<dyn Error>> {
    run(decide)
}

fn decide(_: &ReviewSpec) -> Decision {
    Decision::Deny("the cluster is closed for maintenance".to_owned())
}
