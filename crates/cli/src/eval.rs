//! `portcullis eval`: answers questions from files, as a server would.

use std::io::{self, Read, Write};
use std::path::PathBuf;

use authz::Recorder;

use crate::exit::Exit;
use crate::offline::{Answer, CallFlags, PolicyFlags, QuestionFlags, Questions};

/// Answer access questions from files, without a server
///
/// Questions are SubjectAccessReviews, one JSON object a line: a spec alone, or a whole review of
/// version v1 or v1beta1. Each is answered by one line of JSON with the fields `allowed`, `denied`,
/// `reason`, `evaluationError` and `decidedBy` (the authorizer; absent if all abstained); what is
/// false or empty is left out, but for `allowed`. Groups of a review are taken as given; those of
/// a question by flags are completed as a server does.
///
/// Webhooks are called as a server calls them: their match conditions come first, what they answered
/// is kept for as long as the configuration says, and where a call fails the failure policy counts.
/// --no-webhooks calls none, and --webhook says what one answers.
///
/// Lines are answered as they come, in order. A line that holds no question is reported on standard
/// error with its place, has no answer, and does not keep later ones from theirs. Policy and
/// objects are read whole before the first answer; if anything is wrong with them, nothing is
/// answered.
///
/// Exit codes: 0 allowed, 1 not allowed, 2 wrong usage, 3 something can not be read or is invalid,
/// 4 an answer depends on a webhook that is not called. Of several, the worst counts: 3 before 4
/// before 1.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  portcullis eval --objects manifests/ --as ana --verb get --resource pods -n prod
  portcullis eval --as ana --verb get --path /healthz
  portcullis eval questions.jsonl --authorization-config authorization.yaml --objects manifests/
  kubectl get clusterroles,clusterrolebindings,roles,rolebindings -A -o yaml |
    portcullis eval questions.jsonl --objects -
  portcullis eval questions.jsonl --authorization-config authorization.yaml --no-webhooks

The first two ask one question. The third answers a file of questions, the fourth answers them as
the cluster would, and the last one without calling anybody. A line of questions.jsonl is such as
  {\"user\":\"ana\",\"groups\":[\"dev\"],\"resourceAttributes\":{\"verb\":\"get\",\"resource\":\"pods\"}}")]
pub(crate) struct Args {
    /// Files of questions, one a line; `-` is standard input, which is the default
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,

    #[command(flatten)]
    question: QuestionFlags,

    #[command(flatten)]
    policy: PolicyFlags,

    #[command(flatten)]
    calls: CallFlags,
}

/// Answers all questions.
///
/// # Errors
/// Fails if an answer can not be written.
pub(crate) fn run(
    args: &Args,
    stdin: &mut dyn Read,
    out: &mut dyn Write,
    err: &mut dyn Write,
    colour_of_errors: bool,
) -> io::Result<Exit> {
    let (question, files) = (&args.question, &args.files);
    let (questions, policy) =
        match Questions::with_policy(question, files, &args.policy, &args.calls, stdin) {
            Ok(both) => both,
            Err(unusable) => return unusable.show(err, colour_of_errors),
        };
    // Kept from answer to answer, so that a million answers need one buffer.
    let mut line = Vec::new();
    questions.each(stdin, out, err, &mut |question, out| {
        let outcome = policy.ask(&question.attributes(), Recorder::off());
        let answer = Answer::new(question, outcome);
        line.clear();
        answer.append_line(&mut line);
        out.write_all(&line)?;
        Ok(answer.exit())
    })
}
