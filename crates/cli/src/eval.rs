//! `portcullis eval`: answers access questions from files, as a server would.

use std::io::{self, Read, Write};
use std::path::PathBuf;

use authz::TraceRecorder;
use clap::ValueEnum;

use crate::exit::Exit;
use crate::offline::{
    AccessAnswer, AnswerFlags, LoadedQuestions, replace_control_characters,
    write_cluster_disagreements,
};

/// Answer access questions from files, without a server
///
/// One question is VERB RESOURCE [NAME] with --as or --as-group. RESOURCE is a plural, a singular, a
/// kind or a short name, with or without its API group, as for kubectl: `secrets`, `deploy`,
/// `ingresses.networking.k8s.io`, `pods/log`; or a path such as /healthz.
///
/// Without --as each line of FILE is one question as JSON: a SubjectAccessReview of version v1 or
/// v1beta1, or only its spec, with plural names of resources. For each question the command prints one line of JSON with the fields `allowed`,
/// `denied`, `reason`, `evaluationError` and `decidedBy` (the authorizer that decided; absent if all
/// had no opinion). Apart from `allowed`, false and empty fields are left out. The groups of a review
/// are used as given; for one question the command adds the groups that a server adds.
///
/// The command calls authorization webhooks as a server does: it evaluates their match conditions,
/// caches their answers as configured, and applies the failure policy if a call fails. --no-webhooks
/// disables the calls, and --webhook sets the answer of one webhook.
///
/// The command answers lines in order, as it reads them. For an invalid line it prints the error with
/// its position to standard error, prints no answer, and continues with the next line. It reads the
/// policy and the objects before the first answer; if they contain an error it answers nothing.
///
/// Exit codes: 0 allowed, 1 not allowed, 2 wrong usage or an unknown resource, 3 an input cannot
/// be read or is invalid, or there is no question, 4 an answer depends on a webhook that is not called. For
/// several questions the exit code is 3 if any of them has 3, otherwise 4, otherwise 1, otherwise
/// 0.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  portcullis eval get pods -n prod --as ana -f manifests/ -R
  portcullis eval get /healthz --as ana
  portcullis eval questions.jsonl --authorization-config authorization.yaml --objects manifests/
  kubectl get clusterroles,clusterrolebindings,roles,rolebindings -A -o yaml |
    portcullis eval questions.jsonl --objects -
  portcullis eval questions.jsonl --authorization-config authorization.yaml --no-webhooks

The first two examples answer one question. The third answers a file of questions, the fourth
answers them with the objects of a cluster, and the last calls no webhook. A line of questions.jsonl:
  {\"user\":\"ana\",\"groups\":[\"dev\"],\"resourceAttributes\":{\"verb\":\"get\",\"resource\":\"pods\"}}")]
pub(crate) struct Args {
    /// With --as: verb, resource and name of one question. Without it: files of questions, one per
    /// line; `-` is standard input, which is the default
    #[arg(value_name = "VERB RESOURCE [NAME] | FILE")]
    arguments: Vec<PathBuf>,

    /// Format of the answers
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t = OutputFormat::Json)]
    output: OutputFormat,

    #[command(flatten)]
    answer_flags: AnswerFlags,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum OutputFormat {
    /// One line of text for each question: yes, no or unknown, and the reason
    Human,
    /// One JSON object per line
    Json,
}

/// Answers all questions.
///
/// # Errors
/// Fails if an answer cannot be written.
pub(crate) fn run(
    args: &Args,
    stdin: &mut dyn Read,
    out: &mut dyn Write,
    err: &mut dyn Write,
    colour_of_errors: bool,
) -> io::Result<Exit> {
    let loaded = LoadedQuestions::load_questions_and_print_remarks(
        &args.answer_flags,
        &args.arguments,
        stdin,
        err,
        colour_of_errors,
    )?;
    let LoadedQuestions { question_source: questions, offline_authorizer: authorizer, .. } =
        match loaded {
            Ok(loaded) => loaded,
            Err(exit) => return Ok(exit),
        };
    // All answers share one buffer, because there may be a million of them.
    let mut line = Vec::new();
    let mut disagreements = Vec::new();
    let exit = questions.answer_questions(stdin, out, err, &mut |question, out| {
        let outcome =
            authorizer.authorize(&question.attributes(), TraceRecorder::disabled_recorder());
        let answer = AccessAnswer::new(question, outcome);
        match args.output {
            OutputFormat::Human => {
                writeln!(out, "{}", replace_control_characters(&answer.to_human_line()))?
            }
            OutputFormat::Json => {
                line.clear();
                answer.append_json_line(&mut line);
                out.write_all(&line)?;
            }
        }
        disagreements
            .extend(authorizer.verify_with_cluster(&question.attributes(), answer.is_allowed()));
        Ok(authorizer.exit_of_answer(answer.exit_code()))
    })?;
    write_cluster_disagreements(err, &disagreements, exit)
}
