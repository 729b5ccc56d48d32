//! The whole program, to which other programs may add authorizers.

use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::{Arc, OnceLock};

use authz::Authorizer;
use authz_reload::{AddPluginError, PluginAuthorizers};
use clap::Parser;

use crate::command_line::{Cli, run};
use crate::exit::Exit;
use crate::flag_spelling;

/// `portcullis` with further authorizers. An AuthorizationConfiguration names one by its type, as it names the built-in
/// ones:
///
/// ```no_run
/// use std::process::ExitCode;
/// use std::sync::Arc;
///
/// use authz::{Attributes, Authorizer, Decision, DecisionFuture, TraceRecorder};
///
/// /// Denies everything to one user.
/// struct Ban;
///
/// impl Authorizer for Ban {
///     fn authorize<'a>(&'a self, it: &'a Attributes<'a>, _: TraceRecorder<'a>) -> DecisionFuture<'a> {
///         let is_banned = it.user.is_some_and(|user| user.name == "mallory");
///         Box::pin(async move {
///             if is_banned { Decision::deny("banned") } else { Decision::no_opinion("") }
///         })
///     }
/// }
///
/// fn main() -> ExitCode {
///     cli::Program::new().with_authorizer("Ban", Arc::new(Ban)).run()
/// }
/// ```
///
/// All subcommands know the type: `serve` decides by it, reloads, counts and explains it; `check` accepts it; `eval`,
/// `explain`, `who-can` and `rules` ask it.
#[derive(Debug, Default)]
#[must_use = "nothing runs before `run` is called"]
pub struct Program {
    plugin_authorizers: PluginAuthorizers,
    plugin_errors: Vec<AddPluginError>,
}

/// The authorizers of this process. [`Program::run`] sets them once, before any subcommand runs.
static PLUGINS: OnceLock<PluginAuthorizers> = OnceLock::new();

/// Returns the authorizers that the program adds to the built-in ones.
pub(crate) fn plugin_authorizers() -> &'static PluginAuthorizers {
    PLUGINS.get_or_init(PluginAuthorizers::default)
}

impl Program {
    /// The program with the built-in authorizers alone.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an authorizer for the entries of this type: letters and digits, by custom the first one a capital.
    /// [`run`](Self::run) reports a type that is built in or added twice.
    pub fn with_authorizer(
        mut self,
        type_name: &'static str,
        authorizer: Arc<dyn Authorizer>,
    ) -> Self {
        self.plugin_errors.extend(self.plugin_authorizers.add_plugin(type_name, authorizer).err());
        self
    }

    /// Runs the subcommand that the arguments of the process name. A process runs one program only.
    pub fn run(self) -> ExitCode {
        let (args, warnings) = flag_spelling::replace_underscores_in_flags(std::env::args_os());
        for error in &self.plugin_errors {
            print_to_stderr("error", error);
        }
        if !self.plugin_errors.is_empty() || PLUGINS.set(self.plugin_authorizers).is_err() {
            return Exit::Unreadable.into();
        }
        let Cli { subcommand: command } = Cli::parse_from(args);
        for warning in warnings {
            print_to_stderr("warning", &warning);
        }
        run(&command).unwrap_or_else(report_failure).into()
    }
}

/// Prints a line. A failed write to standard error must not prevent the result.
fn print_to_stderr(level: &str, message: &dyn std::fmt::Display) {
    let _ = writeln!(io::stderr(), "{level}: {message}");
}

/// Prints the error. If standard error cannot be written, the exit code still reports it.
fn report_failure(error: anyhow::Error) -> Exit {
    print_to_stderr("error", &format_args!("{error:#}"));
    Exit::Unreadable
}
