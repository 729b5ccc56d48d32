//! Story 3: nobody does anything, but for system:masters, who are never sent here.

use std::error::Error;

use stories::{Answer, Question, run};

fn main() -> Result<(), Box<dyn Error>> {
    run(decide)
}

fn decide(_: &Question) -> Answer {
    Answer::Deny("the cluster is closed for maintenance".to_owned())
}
