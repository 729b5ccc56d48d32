//! Explains a decision that a webhook has made: `portcullis explain --decision`.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use access_reviews::review_parsing::{AccessQuestion, read_review_line};
use authz::Decision;
use authz_chain::ChainDecision;
use authz_webhook_server::DECISIONS_PATH;
use cluster_client::ClusterClient;
use kubeconfig::ContextOverrides;
use serde_json::{Value, json};

use super::human_output::{TraceDetail, write_human_explanation};
use super::{Args, ExplainedDecision, OutputFormat, json_output};
use crate::exit::Exit;
use crate::offline::{AccessAnswer, LoadFailure, replace_control_characters, shared_runtime};

/// The decision, and the webhook that made it.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Decision of a webhook")]
pub(super) struct RecentDecisionFlags {
    /// Explain the decision with this id, which the reason of a webhook ends with: [decision ID]
    ///
    /// The webhook keeps the last decisions. The user of the client certificate needs the permission to
    /// `get` the path /portcullis/decisions/*, which the authorizers of the webhook decide.
    #[arg(
        long,
        value_name = "ID",
        requires_all = ["server", "client_certificate", "client_key"],
        conflicts_with_all = ["arguments", "verb", "admission"]
    )]
    pub(super) decision: Option<String>,

    /// URL of the webhook: https://HOST:PORT. Each replica explains its own decisions
    #[arg(long, value_name = "URL", requires = "decision")]
    server: Option<String>,

    /// CA bundle (PEM) that verifies the certificate of the webhook; those of the system if not given
    #[arg(long, value_name = "FILE", requires = "decision")]
    certificate_authority: Option<PathBuf>,

    /// Client certificate (PEM) for the webhook
    #[arg(long, value_name = "FILE", requires = "decision")]
    client_certificate: Option<PathBuf>,

    /// Private key of --client-certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "decision")]
    client_key: Option<PathBuf>,
}

/// Asks the webhook for the explanation, and prints it as that of any other question.
///
/// # Errors
/// Fails if the explanation cannot be written.
pub(super) fn run(
    args: &Args,
    id: &str,
    out: &mut dyn Write,
    err: &mut dyn Write,
    colour: bool,
    colour_of_errors: bool,
) -> io::Result<Exit> {
    let explanation = match read_explanation(&args.decision_flags, id) {
        Ok(explanation) => explanation,
        Err(failure) => return failure.print_errors(err, colour_of_errors),
    };
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
        "spec": explanation.get("spec"),
    });
    let line = review.to_string();
    let Ok(question) = read_review_line("", 1, &line) else {
        let failure =
            LoadFailure::from_message("the webhook explains a review that cannot be read");
        return failure.print_errors(err, colour_of_errors);
    };
    let explained = to_explained_decision(&explanation, &question);
    let exit = explained.access_answer.exit_code();
    match args.output {
        OutputFormat::Human => {
            let detail =
                if args.verbose { TraceDetail::All } else { TraceDetail::WithoutIdleDefaults };
            write_human_explanation(out, &explained, detail, colour)?;
            if let Some(at) = explanation.pointer("/metadata/creationTimestamp") {
                let at = replace_control_characters(at.as_str().unwrap_or_default());
                writeln!(out, "decided at {at}")?;
            }
        }
        OutputFormat::Json => json_output::write_json_explanation(out, &explained)?,
    }
    Ok(exit)
}

/// Reads the explanation of a decision from the webhook.
fn read_explanation(flags: &RecentDecisionFlags, id: &str) -> Result<Value, LoadFailure> {
    if !id.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-') {
        return Err(LoadFailure::Usage(vec![format!("--decision: `{id}` is no id of a decision")]));
    }
    if let Some(server) = flags.server.as_deref().filter(|server| !is_https_url(server)) {
        let message = format!("--server: `{server}` does not begin with `https://`");
        return Err(LoadFailure::Usage(vec![message]));
    }
    let kubeconfig = to_kubeconfig(flags)?;
    let path = PathBuf::from("explain.kubeconfig");
    let read = |wanted: &Path| match wanted == path.as_path() {
        true => Ok(kubeconfig.clone().into_bytes()),
        false => kubeconfig::read_file(wanted),
    };
    let paths = std::slice::from_ref(&path);
    let connection =
        kubeconfig::load_cluster_connection(paths, &ContextOverrides::default(), &read)
            .map_err(LoadFailure::from_message)?;
    let client = ClusterClient::new(connection);
    let runtime = shared_runtime().map_err(LoadFailure::from_message)?;
    let target = format!("{DECISIONS_PATH}{id}");
    let read = runtime.block_on(client.get_json(&target, ""));
    read.map_err(|error| {
        LoadFailure::from_message(format_args!("the webhook does not explain {id}: {error}"))
    })
}

/// Whether a URL leads to a server that TLS verifies. A URL without a scheme would be called without TLS.
fn is_https_url(url: &str) -> bool {
    const PREFIX: &str = "https://";
    url.get(..PREFIX.len()).is_some_and(|prefix| prefix.eq_ignore_ascii_case(PREFIX))
}

/// The flags as a kubeconfig, so that the connection is made like every other one.
fn to_kubeconfig(flags: &RecentDecisionFlags) -> Result<String, LoadFailure> {
    let absolute = |path: &Option<PathBuf>| match path {
        None => Ok(None),
        Some(path) => std::path::absolute(path)
            .map(|path| Some(path.display().to_string()))
            .map_err(LoadFailure::from_message),
    };
    let mut cluster = json!({"server": flags.server});
    if let Some(path) = absolute(&flags.certificate_authority)? {
        cluster["certificate-authority"] = path.into();
    }
    let user = json!({
        "client-certificate": absolute(&flags.client_certificate)?,
        "client-key": absolute(&flags.client_key)?,
    });
    let kubeconfig = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "webhook",
        "contexts": [{"name": "webhook", "context": {"cluster": "webhook", "user": "webhook"}}],
        "clusters": [{"name": "webhook", "cluster": cluster}],
        "users": [{"name": "webhook", "user": user}],
    });
    Ok(kubeconfig.to_string())
}

/// Converts the explanation of a webhook to the form that the output functions print.
fn to_explained_decision<'c>(
    explanation: &'c Value,
    question: &'c AccessQuestion<'c>,
) -> ExplainedDecision<'c> {
    let status = &explanation["status"];
    let reason = status["reason"].as_str().unwrap_or_default().to_owned();
    let decision = match (status["allowed"].as_bool(), status["denied"].as_bool()) {
        (Some(true), _) => Decision::allow(reason),
        (_, Some(true)) => Decision::deny(reason),
        _ => Decision::no_opinion(reason),
    };
    let decided_by = status["decidedBy"].as_str();
    let mut access_answer = AccessAnswer::new(question, ChainDecision::new(decision, decided_by));
    if let Some(error) = status["evaluationError"].as_str() {
        access_answer.evaluation_error = Some(error.to_owned());
    }
    let texts =
        |name: &str| status[name].as_array().into_iter().flatten().filter_map(Value::as_str);
    ExplainedDecision {
        access_question: question,
        access_answer,
        decision_trace: access_reviews::trace_from_json(&status["trace"]),
        uncalled_authorizers: texts("notAsked").collect(),
        hints: texts("hints").map(ToOwned::to_owned).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_without_tls_is_refused() {
        assert!(is_https_url("https://10.0.0.7:8443") && is_https_url("HTTPS://hook"));
        for url in ["http://10.0.0.7:8443", "10.0.0.7:8443", "https:/hook", "", "ftp://é"] {
            assert!(!is_https_url(url), "{url}");
            let flags = RecentDecisionFlags {
                server: Some(url.to_owned()),
                ..RecentDecisionFlags::default()
            };
            let failure = read_explanation(&flags, "5f3a9c1e-07d2b841").unwrap_err();
            assert!(matches!(failure, LoadFailure::Usage(_)), "{url}");
        }
    }
}
