//! `portcullis explain`: shows how an answer came about.

mod admission;
mod human;
mod json;
mod paint;
mod particular;
mod phrase;
#[cfg(test)]
mod tests;
mod webhook;

use std::io::{self, Read, Write};
use std::path::PathBuf;

use access_reviews::review::AccessQuestion;
use authz::{Recorder, Trace};
use clap::ValueEnum;

use self::admission::AdmissionFlags;
use crate::exit::Exit;
use crate::offline::{
    Answer, CallFlags, Policy, PolicyFlags, QuestionFlags, Questions, hint_of_missing_group,
};

/// Show how an answer comes about: who is asked, what decides, what nearly did
///
/// With --admission it shows who would touch a write in place of whether it is allowed: the
/// initializers that a new object waits for, with who may act at once, and each hook in the order of
/// calls with why it is called or not, its failure policy, timeout and version of review, and the
/// values of the parts of its match conditions. No admission hook is called.
///
/// Takes the same questions as `portcullis eval` and gives the same answers, for it asks the same
/// chain and has it note what it does. For each authorizer that is asked the tree tells its verdict
/// and what decided: the line of the policy file, the binding and the rule, the way through the
/// graph of a node, the match conditions of a webhook and how the call of it went. Where the answer
/// is no, near misses are shown: the rule that lacks one part of the request, the binding in another
/// namespace, the user or group whose name is one letter off.
///
/// Marks: ✓ allows, ✗ denies or refuses, ○ has no opinion or is skipped, ? unknown without the call,
/// ≈ a near miss, · not asked.
///
/// Exit codes: those of `portcullis eval`. With --admission 0 says that nobody would be asked and
/// nothing refuses the write, 1 that it is refused whatever hooks say, and 4 that it depends on hooks
/// or initializers, or on something that --objects does not have.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  portcullis explain --objects manifests/ --as ana --verb get --resource secrets --name db -n prod
  portcullis explain --authorization-config authorization.yaml --objects manifests/ \\
    --as system:serviceaccount:ci:builder --verb create --resource deployments.apps -n prod
  portcullis explain --authorization-config authorization.yaml --webhook guard.example.com=error \\
    --as ana --verb get --resource secrets -n prod
  portcullis explain questions.jsonl --objects manifests/ -o json
  portcullis explain --admission pod.yaml --objects manifests/ --as ana -n prod
  portcullis explain --admission new.yaml --old stored.yaml --objects manifests/ --as ana --dry-run

The third one shows what happens when a webhook fails. The fourth one writes a JSON object a line:
what `portcullis eval` writes, and the trace as a tree. The last two show which hooks a creation and
an update would meet.")]
pub(crate) struct Args {
    /// Files of questions, one a line, or with --admission manifests of what is written; `-` is
    /// standard input, which is the default
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,

    /// How explanations are written
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t = Output::Human)]
    output: Output,

    #[command(flatten)]
    question: QuestionFlags,

    #[command(flatten)]
    policy: PolicyFlags,

    #[command(flatten)]
    calls: CallFlags,

    #[command(flatten)]
    admission: AdmissionFlags,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    /// A tree for people
    Human,
    /// One JSON object a line
    Json,
}

/// Explains the answers to all questions.
///
/// # Errors
/// Fails if an explanation can not be written.
pub(crate) fn run(
    args: &Args,
    stdin: &mut dyn Read,
    out: &mut dyn Write,
    err: &mut dyn Write,
    colour: bool,
    colour_of_errors: bool,
) -> io::Result<Exit> {
    if args.admission.admission {
        return admission::run(args, stdin, out, err, colour, colour_of_errors);
    }
    let (question, files) = (&args.question, &args.files);
    let (questions, policy) =
        match Questions::with_policy(question, files, &args.policy, &args.calls, stdin) {
            Ok(both) => both,
            Err(unusable) => return unusable.show(err, colour_of_errors),
        };
    let mut is_first = true;
    questions.each(stdin, out, err, &mut |question, out| {
        let explanation = explain(&policy, question);
        match args.output {
            Output::Human => {
                if !std::mem::take(&mut is_first) {
                    writeln!(out)?;
                }
                human::write(out, &explanation, colour)?;
            }
            Output::Json => json::write(out, &explanation)?,
        }
        Ok(explanation.answer.exit())
    })
}

/// An answer and how it came about.
struct Explanation<'c> {
    question: &'c AccessQuestion<'c>,
    answer: Answer<'c>,
    trace: Trace,
    /// The authorizers that were not asked, because one before them decided.
    not_asked: Vec<&'c str>,
    hints: Vec<String>,
}

fn explain<'c>(policy: &'c Policy, question: &'c AccessQuestion<'c>) -> Explanation<'c> {
    let mut trace = Trace::default();
    let outcome = policy.ask(&question.attributes(), Recorder::on(&mut trace));
    let answer = Answer::new(question, outcome);
    let not_asked = access_reviews::authorizers_not_consulted(policy.chain(), &trace);
    let is_refused = !answer.is_allowed() && !answer.is_open;
    let hints =
        is_refused.then(|| hint_of_missing_group(policy, question)).flatten().into_iter().collect();
    Explanation { question, answer, trace, not_asked, hints }
}
