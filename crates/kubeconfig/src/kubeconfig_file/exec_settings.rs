//! The `exec` settings of a user: a program that provides credentials.

use std::fmt;

use document::{DecodeProblem, Node, ObjectReader, SourcePosition, Span, Value, WithPosition};

use super::kubeconfig_reader::{FieldOwner, KubeconfigReader, read_text_list};

/// A program that provides the credentials of a user, as `client.authentication.k8s.io` defines it.
#[derive(Clone, PartialEq)]
pub struct ExecSettings {
    /// Position of the field.
    pub position: SourcePosition,
    /// The version of the answer that the program prints.
    pub api_version: WithPosition<String>,
    /// The name or the path of the program.
    pub command: WithPosition<String>,
    /// The arguments of the program.
    pub args: Vec<String>,
    /// The environment variables of the program, in their order.
    pub env: Vec<(String, String)>,
    /// A text that tells users how to install the program.
    pub install_hint: String,
    /// Whether the program is told the address and the CA of the cluster.
    pub provide_cluster_info: bool,
    /// Whether the program may read standard input: `Never`, `IfAvailable` or `Always`; empty in older versions.
    pub interactive_mode: WithPosition<String>,
}

/// Shows the program alone: arguments and variables may hold secrets.
impl fmt::Debug for ExecSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExecSettings").field("command", &self.command).finish_non_exhaustive()
    }
}

impl KubeconfigReader<'_> {
    /// Reads `exec`; `None` if the user has none.
    pub(super) fn read_exec(
        &self,
        user: &ObjectReader<'_>,
        owner: &FieldOwner<'_>,
    ) -> Result<Option<ExecSettings>, DecodeProblem> {
        let Some(entry) = user.entry("exec").filter(|entry| entry.value.value != Value::Null)
        else {
            return Ok(None);
        };
        let problem = |field: &str, message: &str, span: Span| DecodeProblem {
            path: format!("{}.exec{field}", owner.field),
            message: message.to_owned(),
            span,
            hint: None,
        };
        if !matches!(entry.value.value, Value::Object(_)) {
            let message = "exec is an object with `apiVersion` and `command`";
            return Err(problem("", message, entry.value.span));
        }
        let exec = ObjectReader::new(&entry.value, entry.value.span);
        let args = match exec.entry("args").map(|args| &args.value) {
            None | Some(Node { value: Value::Null, .. }) => Vec::new(),
            Some(node) => read_text_list(&node.value)
                .ok_or_else(|| problem(".args", "args is a list of texts", node.span))?,
        };
        let (_, variables) = exec.read_list("env");
        let env = variables.iter().map(|node| {
            let variable = ObjectReader::new(node, node.span);
            let name = variable.read_text("name").value;
            match name.is_empty() || name.contains(['=', '\0']) {
                true => Err(problem(".env", "each variable has a `name` and a `value`", node.span)),
                false => Ok((name, variable.read_text("value").value)),
            }
        });
        Ok(Some(ExecSettings {
            position: self.line_index.position_of_span(entry.key_span),
            api_version: self.read_text_field(&exec, "apiVersion"),
            command: self.read_text_field(&exec, "command"),
            args,
            env: env.collect::<Result<_, _>>()?,
            install_hint: exec.read_text("installHint").value,
            provide_cluster_info: exec.read_bool("provideClusterInfo").unwrap_or_default(),
            interactive_mode: self.read_text_field(&exec, "interactiveMode"),
        }))
    }
}
