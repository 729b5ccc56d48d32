//! `portcullis explain`: shows why a request is allowed or denied.

mod explain_admission;
mod explain_recent_decision;
mod human_output;
mod json_output;
mod terminal_style;
#[cfg(test)]
mod tests;
mod trace_event_fields;
mod trace_event_lines;
mod webhook_trace_events;

use std::io::{self, Read, Write};
use std::path::PathBuf;

use access_reviews::review_parsing::AccessQuestion;
use authz::{Trace, TraceRecorder};
use clap::ValueEnum;

use self::explain_admission::ExplainAdmissionFlags;
use self::explain_recent_decision::RecentDecisionFlags;
use self::human_output::TraceDetail;
use crate::exit::Exit;
use crate::offline::{
    AccessAnswer, AnswerFlags, LoadedQuestions, OfflineAuthorizer, missing_group_hint,
    write_cluster_disagreements,
};

/// Explain an access decision or, with --admission, the admission of a write
///
/// The command takes the same questions as `portcullis eval` and gives the same answers: VERB RESOURCE
/// [NAME] with --as or --as-group, or files of SubjectAccessReviews as lines of JSON. For each
/// authorizer that the chain calls it prints the verdict and its cause: the line of the policy file,
/// the binding and the rule, the path through the graph of a node, or the match conditions of a
/// webhook and the result of the call. If the request is not allowed, it also prints near misses: a
/// rule that lacks one part of the request, a binding in another namespace, a user or group whose name
/// differs by one letter. Default bindings of Kubernetes that do not allow the request are shown only
/// with -v.
///
/// With --admission the command shows which initializers a new object waits for, and for each hook in
/// call order whether it would be called and why, its failure policy, timeout and review version, and
/// the values inside its match conditions. It calls no admission hook.
///
/// With --decision the command explains a decision that `portcullis webhook` has made, with the policy
/// of that time. The reason of the decision ends with its id.
///
/// Marks: ✓ allows, ✗ denies or refuses, ○ has no opinion or is skipped, ? unknown without the call,
/// ≈ near miss, · not called.
///
/// Exit codes: those of `portcullis eval`. With --admission: 0 the write is admitted without a hook
/// call, 1 the write is refused whatever the hooks answer, 4 the result depends on hooks, on
/// initializers, or on objects that are missing from --objects.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  portcullis explain get secrets db -n prod --as ana -f manifests/ -R
  portcullis explain create deploy -n prod --as ci/builder -f manifests/ -R \\
    --authorization-config authorization.yaml
  portcullis explain get secrets -n prod --as ana \\
    --authorization-config authorization.yaml --webhook guard.example.com=error
  portcullis explain questions.jsonl --objects manifests/ -o json
  portcullis explain --admission pod.yaml --objects manifests/ --as ana -n prod
  portcullis explain --admission new.yaml --old stored.yaml --objects manifests/ --as ana --dry-run
  portcullis explain --decision 5f3a9c1e-07d2b841 --server https://10.0.0.7:8443 \\
    --certificate-authority ca.crt --client-certificate admin.crt --client-key admin.key

The third example shows the decision if a webhook fails. The fourth prints one JSON object per line:
the fields of `portcullis eval` and the trace as a tree. The next two show which hooks the server
would call for a create and for an update.")]
pub(crate) struct Args {
    /// With --as: verb, resource and name of one question. Without it: files of questions, one per
    /// line. With --admission: manifests of the objects to write. `-` is standard input, which is the
    /// default
    #[arg(value_name = "VERB RESOURCE [NAME] | FILE")]
    arguments: Vec<PathBuf>,

    /// Also show default bindings that do not allow the request
    #[arg(short, long)]
    verbose: bool,

    /// Format of the explanations
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t = OutputFormat::Human)]
    output: OutputFormat,

    #[command(flatten)]
    answer_flags: AnswerFlags,

    #[command(flatten)]
    admission_flags: ExplainAdmissionFlags,

    #[command(flatten)]
    decision_flags: RecentDecisionFlags,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum OutputFormat {
    /// A tree for people
    Human,
    /// One JSON object per line
    Json,
}

/// Explains the answers to all questions.
///
/// # Errors
/// Fails if an explanation cannot be written.
pub(crate) fn run(
    args: &Args,
    stdin: &mut dyn Read,
    out: &mut dyn Write,
    err: &mut dyn Write,
    colour: bool,
    colour_of_errors: bool,
) -> io::Result<Exit> {
    if let Some(id) = &args.decision_flags.decision {
        return explain_recent_decision::run(args, id, out, err, colour, colour_of_errors);
    }
    if args.admission_flags.admission {
        return explain_admission::run(args, stdin, out, err, colour, colour_of_errors);
    }
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
    let detail = if args.verbose { TraceDetail::All } else { TraceDetail::WithoutIdleDefaults };
    let mut is_first = true;
    let mut disagreements = Vec::new();
    let exit = questions.answer_questions(stdin, out, err, &mut |question, out| {
        let explanation = explain_decision(&authorizer, question);
        match args.output {
            OutputFormat::Human => {
                if !std::mem::take(&mut is_first) {
                    writeln!(out)?;
                }
                human_output::write_human_explanation(out, &explanation, detail, colour)?;
            }
            OutputFormat::Json => json_output::write_json_explanation(out, &explanation)?,
        }
        let is_allowed = explanation.access_answer.is_allowed();
        disagreements.extend(authorizer.verify_with_cluster(&question.attributes(), is_allowed));
        Ok(authorizer.exit_of_answer(explanation.access_answer.exit_code()))
    })?;
    write_cluster_disagreements(err, &disagreements, exit)
}

/// An answer and its explanation.
struct ExplainedDecision<'c> {
    access_question: &'c AccessQuestion<'c>,
    access_answer: AccessAnswer<'c>,
    decision_trace: Trace,
    /// The authorizers that were not called, because an earlier one decided.
    uncalled_authorizers: Vec<&'c str>,
    hints: Vec<String>,
}

fn explain_decision<'c>(
    authorizer: &'c OfflineAuthorizer,
    question: &'c AccessQuestion<'c>,
) -> ExplainedDecision<'c> {
    let mut trace = Trace::default();
    let outcome = authorizer.authorize(&question.attributes(), TraceRecorder::new(&mut trace));
    let answer = AccessAnswer::new(question, outcome);
    let uncalled_authorizers =
        access_reviews::authorizers_not_consulted(authorizer.authorizer_chain(), &trace);
    let is_denied = !answer.is_allowed() && !answer.is_undecided;
    let hints =
        is_denied.then(|| missing_group_hint(authorizer, question)).flatten().into_iter().collect();
    ExplainedDecision {
        access_question: question,
        access_answer: answer,
        decision_trace: trace,
        uncalled_authorizers,
        hints,
    }
}
