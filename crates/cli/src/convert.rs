//! `portcullis convert`: turns the legacy flags of a server into a configuration file.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::ValueEnum;

use authz_reload::{AuthorizationModes, AuthorizationPlan, ConversionContext, ConvertedConfig};

use crate::authorization_settings::{
    AuthorizationFlags, AuthorizationHookNames, read_authorization_hook_names,
};
use crate::exit::Exit;
use crate::offline::{LoadFailure, replace_control_characters};
use crate::output_helpers::ignore_closed_pipe;

/// Convert legacy authorization flags to an equivalent configuration file
///
/// The command takes --authorization-mode, --authorization-webhook-* and --authorization-policy-file
/// of kube-apiserver and prints an AuthorizationConfiguration with the same meaning. It prints
/// remaining differences and necessary manual steps to standard error.
///
/// Run it in the working directory of the server, because relative paths start there. The command
/// reads the file of --authorization-webhook-config-file if it exists, because that file may define
/// several hooks.
///
/// Exit codes: 0 the file is written, 2 the flags are invalid, 3 a file cannot be read or written or
/// is invalid.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  portcullis convert --authorization-mode Node,RBAC
  portcullis convert --authorization-mode Webhook,RBAC \\
    --authorization-webhook-config-file guard.kubeconfig --output-file authorization.yaml
  portcullis convert --authorization-mode ABAC,Webhook --authorization-policy-file policies.jsonl \\
    --authorization-webhook-config-file guard.kubeconfig \\
    --authorization-webhook-cache-authorized-ttl 0s | portcullis check -

The second example writes a file. Start the server with it:
  portcullis serve --authorization-config authorization.yaml")]
pub(crate) struct Args {
    #[command(flatten, next_help_heading = "Flags to convert")]
    authorization_flags: AuthorizationFlags,

    /// Value of the server's --anonymous-auth: whether it accepts requests without credentials
    #[arg(
        long,
        value_name = "BOOL",
        num_args = 0..=1,
        require_equals = true,
        default_value_t = true,
        default_missing_value = "true",
        action = clap::ArgAction::Set,
        help_heading = "Flags to convert"
    )]
    anonymous_auth: bool,

    /// Format of the file
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t = OutputFormat::Yaml)]
    output: OutputFormat,

    /// File to write [default: standard output]
    #[arg(long, value_name = "FILE")]
    output_file: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum OutputFormat {
    /// The same text as yaml
    Human,
    /// The configuration as one JSON object
    Json,
    /// YAML, as the examples of Kubernetes
    Yaml,
}

/// Writes the configuration, and the remaining differences.
///
/// # Errors
/// Fails if the differences cannot be written.
pub(crate) fn run(
    args: &Args,
    out: &mut dyn Write,
    err: &mut dyn Write,
    colour_of_errors: bool,
) -> io::Result<Exit> {
    let ConvertedConfig { config_yaml: yaml, differences_from_flags: differences } =
        match convert_authorization_flags(args) {
            Ok(converted) => converted,
            Err(failure) => return failure.print_errors(err, colour_of_errors),
        };
    let text = match args.output {
        OutputFormat::Human | OutputFormat::Yaml => yaml,
        OutputFormat::Json => match document::yaml_to_json(yaml.as_bytes()) {
            Ok(converted) => format!("{:#}\n", converted.value),
            Err(error) => {
                return LoadFailure::from_message(error).print_errors(err, colour_of_errors);
            }
        },
    };
    match &args.output_file {
        None => ignore_closed_pipe(out.write_all(text.as_bytes()))?,
        Some(path) => {
            if let Err(error) = std::fs::write(path, text) {
                let path = replace_control_characters(&path.to_string_lossy());
                writeln!(err, "error: cannot write `{path}`: {error}")?;
                return Ok(Exit::Unreadable);
            }
        }
    }
    for difference in differences {
        writeln!(err, "note: {}", replace_control_characters(&difference))?;
    }
    Ok(Exit::Clean)
}

fn convert_authorization_flags(args: &Args) -> Result<ConvertedConfig, LoadFailure> {
    let usage = |message: String| LoadFailure::Usage(vec![message]);
    let modes =
        match args.authorization_flags.to_authorization_plan().map_err(LoadFailure::Usage)? {
            AuthorizationPlan::Modes(modes) => modes,
            AuthorizationPlan::File(file) => {
                let path = file.path.display();
                return Err(usage(format!("`{path}` is already a configuration file")));
            }
        };
    let directory = std::env::current_dir().map_err(LoadFailure::from_message)?;
    let names =
        read_authorization_hook_names(&modes, &directory).map_err(LoadFailure::from_problem)?;
    let mut converted =
        convert_authorization_modes(&modes, &names, &directory, args.anonymous_auth)?;
    if let AuthorizationHookNames::Unreadable(error) = names {
        converted.differences_from_flags.push(format!(
            "The file of the webhook cannot be read ({error}); the conversion assumes that it is a \
             kubeconfig with one webhook."
        ));
    }
    Ok(converted)
}

fn convert_authorization_modes(
    modes: &AuthorizationModes,
    names: &AuthorizationHookNames,
    directory: &Path,
    is_anonymous_enabled: bool,
) -> Result<ConvertedConfig, LoadFailure> {
    let context = ConversionContext {
        base_directory: directory,
        hook_names: names.hook_names_from_file(),
        is_anonymous_enabled,
    };
    authz_reload::convert_flags_to_config(modes, &context)
        .map_err(|error| LoadFailure::Usage(vec![error.to_string()]))
}
