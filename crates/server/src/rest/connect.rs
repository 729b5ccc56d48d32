//! The subresources that become connections to a node: `exec`, `attach`, `portforward` and `proxy`.
//!
//! This server has no connection to kubelets. It authorizes and admits such a request as Kubernetes does, and then
//! answers 503 with a message about the missing kubelet. It never reads the body of the request, opens no
//! connection for it, and upgrades none.

use api_object::{Status, Tree};
use api_resources::Verb;
use serde_json::{Value, json};

use super::{Query, RequestContext, WarningsAndHookReports, read_newest_entry_unless_known};
use crate::admission::{
    AdmissionFreshnessRequirement, WriteAttempt, WriteRequest, admit_mutating,
    admit_without_storing, establish_admission_config_freshness,
};
use crate::authorize::authorize_other_verb;
use crate::initializers::is_stored_uninitialized;

/// The answer to a connection that was authorized and admitted.
const NO_KUBELET: &str = "no kubelet is connected to this server";

/// The flags among the options of `exec` and `attach`.
const FLAGS: [&str; 4] = ["stdin", "stdout", "stderr", "tty"];

/// Answers a request to connect:
///
/// 1. Read the options of the connection from the query and the path.
/// 2. Check that the user may `create` a stream. A WebSocket begins with GET, and a user who may only
///    read must not run commands. Kubernetes makes no such check for `proxy`.
/// 3. Run both phases of admission about the options, as CONNECT.
/// 4. Check that the object exists.
///
/// Returns 400, 403 or 404 if a step refuses the request, and otherwise 503, since no kubelet can serve it.
pub(crate) async fn answer_connect_request(
    ctx: &RequestContext<'_>,
    options_kind: &str,
    report: &mut WarningsAndHookReports,
) -> Status {
    match authorize_and_admit_connect(ctx, options_kind, report).await {
        Ok(()) => Status::service_unavailable(NO_KUBELET),
        Err(status) => status,
    }
}

async fn authorize_and_admit_connect(
    ctx: &RequestContext<'_>,
    options_kind: &str,
    report: &mut WarningsAndHookReports,
) -> Result<(), Status> {
    if ctx.query.get("dryRun").is_some() {
        return Err(Status::bad_request("dryRun is not supported"));
    }
    let subresource = ctx.subresource.unwrap_or_default();
    let options = match subresource {
        "proxy" => proxy_options_tree(options_kind, &path_behind_proxy(ctx)),
        _ => stream_options_tree(options_kind, ctx.query)?,
    };
    if subresource != "proxy" && ctx.authorization_proof.verb() != Some(Verb::Create) {
        authorize_other_verb(ctx, Verb::Create).await?;
    }
    let write = WriteRequest::for_connect(subresource, ctx.name);
    let mut attempt = WriteAttempt::new(AdmissionFreshnessRequirement::MustConfirm);
    let admitted = admit_connect_request(ctx, &mut attempt, &write, options).await;
    attempt.report_single_attempt(report);
    admitted?;
    let name = connect_target_name(ctx)?;
    let entry = read_newest_entry_unless_known(ctx, &ctx.key(name)?, None, "get").await?;
    let entry = entry.filter(|entry| !is_stored_uninitialized(&entry.value));
    entry.map(drop).ok_or_else(|| ctx.not_found_status(name))
}

async fn admit_connect_request(
    ctx: &RequestContext<'_>,
    attempt: &mut WriteAttempt,
    write: &WriteRequest,
    options: Tree,
) -> Result<(), Status> {
    establish_admission_config_freshness(ctx, attempt, write, &options).await?;
    let options = admit_mutating(ctx, attempt, write, options, None).await?;
    admit_without_storing(ctx, attempt, write, &options).await
}

/// The options of a stream, as Kubernetes reads them from the query.
fn stream_options_tree(kind: &str, query: &Query) -> Result<Tree, Status> {
    let mut options = new_connect_options_tree(kind);
    if kind == "PodPortForwardOptions" {
        let ports: Vec<Value> =
            query.all_parameter_values("ports").map(parse_port).collect::<Result<_, _>>()?;
        if !ports.is_empty() {
            options.insert("ports".to_owned(), ports.into());
        }
        return Ok(options);
    }
    for flag in FLAGS {
        if query.get(flag).is_some_and(is_query_flag_true) {
            options.insert(flag.to_owned(), true.into());
        }
    }
    let container = query.parameter_or_empty("container");
    if !container.is_empty() {
        options.insert("container".to_owned(), container.into());
    }
    if kind == "PodExecOptions" {
        let command: Vec<&str> = query.all_parameter_values("command").collect();
        let command = if command.is_empty() { Value::Null } else { json!(command) };
        options.insert("command".to_owned(), command);
    }
    Ok(options)
}

fn proxy_options_tree(kind: &str, path: &str) -> Tree {
    let mut options = new_connect_options_tree(kind);
    if !path.is_empty() {
        options.insert("path".to_owned(), path.into());
    }
    options
}

fn new_connect_options_tree(kind: &str) -> Tree {
    let mut options = Tree::new();
    options.insert("kind".to_owned(), kind.into());
    options.insert("apiVersion".to_owned(), "v1".into());
    options
}

/// Reads a flag as Kubernetes does: everything but `false` and `0` is true, an empty value too.
fn is_query_flag_true(value: &str) -> bool {
    value != "0" && !value.eq_ignore_ascii_case("false")
}

fn parse_port(text: &str) -> Result<Value, Status> {
    let invalid = |why: &str| {
        let text = go_compat::quote(text);
        Status::bad_request(format!("strconv.ParseInt: parsing {text}: {why}"))
    };
    match text.parse::<i64>() {
        Ok(port) => match i32::try_from(port) {
            Ok(port) => Ok(port.into()),
            Err(_) => Err(invalid("value out of range")),
        },
        Err(_) => Err(invalid("invalid syntax")),
    }
}

/// The path that a request to `proxy` names below the object: empty, or with a slash at its beginning.
fn path_behind_proxy(ctx: &RequestContext<'_>) -> String {
    let info = ctx.authorization_proof.request_info();
    let Some(target) = ctx.authorization_proof.target_resource() else { return String::new() };
    let rest: Vec<&str> = target.path_segments_from_resource().skip(3).collect();
    let mut path = rest.join("/");
    if !path.is_empty() && !path.starts_with('/') {
        path.insert(0, '/');
    }
    if info.path.ends_with('/') && !path.ends_with('/') {
        path.push('/');
    }
    path
}

/// The name of the object. Names in paths of `proxy` may have a scheme and a port: `https:web:8443`.
fn connect_target_name<'a>(ctx: &RequestContext<'a>) -> Result<&'a str, Status> {
    if ctx.subresource != Some("proxy") {
        return Ok(ctx.name);
    }
    split_proxy_name(ctx.name).ok_or_else(|| {
        let (singular, name) = (&ctx.resource.singular, go_compat::quote(ctx.name));
        Status::bad_request(format!("invalid {singular} request {name}"))
    })
}

/// The name in `NAME`, `NAME:PORT` or `SCHEME:NAME:PORT`.
fn split_proxy_name(text: &str) -> Option<&str> {
    let parts: Vec<&str> = text.split(':').collect();
    let name = match parts.as_slice() {
        [name] | [name, _] | ["" | "http" | "https", name, _] => *name,
        _ => return None,
    };
    (!name.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_from_the_query() {
        for (kind, query, want) in [
            ("PodExecOptions", "", json!({"command": null})),
            (
                "PodExecOptions",
                "command=sh&command=-c&stdin=true&stdout=1&stderr=0&tty=False&container=a",
                json!({"stdin": true, "stdout": true, "container": "a", "command": ["sh", "-c"]}),
            ),
            ("PodAttachOptions", "stdin&tty=yes&command=x", json!({"stdin": true, "tty": true})),
            ("PodPortForwardOptions", "ports=80&ports=443&x=1", json!({"ports": [80, 443]})),
            ("PodPortForwardOptions", "", json!({})),
        ] {
            let options = stream_options_tree(kind, &Query::parse(&format!("/x?{query}"))).unwrap();
            let mut want = want;
            want["kind"] = kind.into();
            want["apiVersion"] = "v1".into();
            assert_eq!(Value::Object(options), want, "{kind} {query}");
        }
        for (port, why) in [("a", "invalid syntax"), ("4294967296", "value out of range")] {
            let query = Query::parse(&format!("/x?ports={port}"));
            let error = stream_options_tree("PodPortForwardOptions", &query).unwrap_err();
            let want = format!("strconv.ParseInt: parsing \"{port}\": {why}");
            assert_eq!((error.code, error.message), (400, want));
        }
    }

    #[test]
    fn names_may_have_a_scheme_and_a_port() {
        for (text, want) in [
            ("web", Some("web")),
            ("web:80", Some("web")),
            ("web:", Some("web")),
            ("https:web:443", Some("web")),
            (":web:443", Some("web")),
            ("ftp:web:21", None),
            (":80", None),
            ("https::443", None),
            ("a:b:c:d", None),
            ("", None),
        ] {
            assert_eq!(split_proxy_name(text), want, "{text}");
        }
    }
}
