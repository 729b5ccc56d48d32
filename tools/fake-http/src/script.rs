//! Scripts: the answers of a peer.

use std::sync::Arc;

use crate::answer::Answer;
use crate::request::Request;

/// The answers of a peer.
#[derive(Clone)]
pub struct Script(pub(crate) Source);

#[derive(Clone)]
pub(crate) enum Source {
    List { answers: Arc<[Answer]>, next: usize },
    Rule(Arc<dyn Fn(&Request) -> Answer + Send + Sync>),
}

impl Script {
    /// A script that gives these answers in order and repeats the last one. Without answers, the peer closes
    /// every connection.
    pub fn list(answers: Vec<Answer>) -> Self {
        Self(Source::List { answers: answers.into(), next: 0 })
    }

    /// A script that computes each answer from its request.
    pub fn rule(answer: impl Fn(&Request) -> Answer + Send + Sync + 'static) -> Self {
        Self(Source::Rule(Arc::new(answer)))
    }

    /// The answer to the next request, if it does not depend on the request.
    pub(crate) fn peek(&self) -> Option<&Answer> {
        match &self.0 {
            Source::List { answers, next } => answers.get(*next).or(answers.last()),
            Source::Rule(_) => None,
        }
    }

    /// Takes the answer to a request.
    pub(crate) fn take(&mut self, request: &Request) -> Option<Answer> {
        match &mut self.0 {
            Source::List { answers, next } => {
                let answer = answers.get(*next).or(answers.last()).cloned();
                *next += 1;
                answer
            }
            Source::Rule(rule) => Some(rule(request)),
        }
    }
}

impl From<Vec<Answer>> for Script {
    fn from(answers: Vec<Answer>) -> Self {
        Self::list(answers)
    }
}

impl From<Answer> for Script {
    fn from(answer: Answer) -> Self {
        Self::list(vec![answer])
    }
}
