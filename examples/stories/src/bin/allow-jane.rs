//! Stories 5 and 6: jane may do everything; the interesting part is what the service is sent, and
//! whether it is asked at all.

use std::error::Error;

use stories::{Answer, Question, run};

fn main() -> Result<(), Box<dyn Error>> {
    run(decide)
}

fn decide(question: &Question) -> Answer {
    match question.user.as_str() {
        "jane" => Answer::Allow("jane is known".to_owned()),
        _ => Answer::NoOpinion,
    }
}
