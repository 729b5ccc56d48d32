//! `portcullis eval`: answers access questions from files, as a server would.

use std::io::{self, Read, Write};
use std::path::PathBuf;

use authz::Recorder;

use crate::exit::Exit;
use crate::offline::{AccessAnswer, PolicyFlags, QuestionFlags, QuestionSource, WebhookCallFlags};

/// Answer access questions from files, without a server
///
/// Each line of FILE is one question as JSON: a SubjectAccessReview of version v1 or v1beta1, or only
/// its spec. For each question the command prints one line of JSON with the fields `allowed`,
/// `denied`, `reason`, `evaluationError` and `decidedBy` (the authorizer that decided; absent if all
/// had no opinion). Apart from `allowed`, false and empty fields are left out. The groups of a review
/// are used as given; for a question by flags the command adds the groups that a server adds.
///
/// The command calls authorization webhooks as a server does: it evaluates their match conditions,
/// caches their answers as configured, and applies the failure policy if a call fails. --no-webhooks
/// disables the calls, and --webhook sets the answer of one webhook.
///
/// The command answers lines in order, as it reads them. For an invalid line it prints the error with
/// its position to standard error, prints no answer, and continues with the next line. It reads the
/// policy and the objects before the first answer; if they contain an error it answers nothing.
///
/// Exit codes: 0 allowed, 1 not allowed, 2 wrong usage, 3 something can not be read or is invalid,
/// 4 an answer depends on a webhook that is not called. For several questions the command returns the
/// first of 3, 4, 1 and 0 that occurred.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  portcullis eval --objects manifests/ --as ana --verb get --resource pods -n prod
  portcullis eval --as ana --verb get --path /healthz
  portcullis eval questions.jsonl --authorization-config authorization.yaml --objects manifests/
  kubectl get clusterroles,clusterrolebindings,roles,rolebindings -A -o yaml |
    portcullis eval questions.jsonl --objects -
  portcullis eval questions.jsonl --authorization-config authorization.yaml --no-webhooks

The first two examples answer one question. The third answers a file of questions, the fourth
answers them with the objects of a cluster, and the last calls no webhook. A line of questions.jsonl:
  {\"user\":\"ana\",\"groups\":[\"dev\"],\"resourceAttributes\":{\"verb\":\"get\",\"resource\":\"pods\"}}")]
pub(crate) struct Args {
    /// Files of questions, one per line; `-` is standard input, which is the default
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,

    #[command(flatten)]
    question: QuestionFlags,

    #[command(flatten)]
    policy: PolicyFlags,

    #[command(flatten)]
    webhook_calls: WebhookCallFlags,
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
    let (questions, authorizer) = match QuestionSource::load_with_authorizer(
        question,
        files,
        &args.policy,
        &args.webhook_calls,
        stdin,
    ) {
        Ok(both) => both,
        Err(failure) => return failure.write_to(err, colour_of_errors),
    };
    // All answers share one buffer, because there may be a million of them.
    let mut line = Vec::new();
    questions.answer_each(stdin, out, err, &mut |question, out| {
        let outcome = authorizer.authorize(&question.attributes(), Recorder::disabled());
        let answer = AccessAnswer::new(question, outcome);
        line.clear();
        answer.append_json_line(&mut line);
        out.write_all(&line)?;
        Ok(answer.exit_code())
    })
}
