//! `portcullis convert`: turns the legacy flags of a server into a configuration file.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use authz_reload::{AuthorizationModes, AuthorizationPlan, ConversionContext, ConvertedConfig};

use crate::authorization::{AuthorizationFlags, HookNames, hook_names};
use crate::exit::Exit;
use crate::offline::{Unusable, printable};
use crate::output::ignore_closed_pipe;

/// Turn legacy authorization flags into an equivalent configuration file
///
/// Takes --authorization-mode, --authorization-webhook-* and --authorization-policy-file as
/// kube-apiserver does and writes the AuthorizationConfiguration that means the same. What differs
/// nevertheless, or is left to do by hand, is told on standard error.
///
/// Run it in the working directory of the server: relative paths begin there. The file of
/// --authorization-webhook-config-file is looked at if it is here, for it may name several hooks.
///
/// Exit codes: 0 when there is a file, 2 when the flags are wrong, 3 when something can not be
/// read, is invalid, or can not be written.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  portcullis convert --authorization-mode Node,RBAC
  portcullis convert --authorization-mode Webhook,RBAC \\
    --authorization-webhook-config-file guard.kubeconfig -o authorization.yaml
  portcullis convert --authorization-mode ABAC,Webhook --authorization-policy-file policies.jsonl \\
    --authorization-webhook-config-file guard.kubeconfig \\
    --authorization-webhook-cache-authorized-ttl 0s | portcullis check -

The second writes a file, with which the server is started then:
  portcullis serve --authorization-config authorization.yaml")]
pub(crate) struct Args {
    #[command(flatten, next_help_heading = "Flags to convert")]
    authorization: AuthorizationFlags,

    /// Whether the server lets requests without credentials in
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

    /// File to write; standard output if not given
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Writes the configuration, and what differs.
///
/// # Errors
/// Fails if they can not be written.
pub(crate) fn run(
    args: &Args,
    out: &mut dyn Write,
    err: &mut dyn Write,
    colour_of_errors: bool,
) -> io::Result<Exit> {
    let ConvertedConfig { yaml, differences } = match converted(args) {
        Ok(converted) => converted,
        Err(unusable) => return unusable.show(err, colour_of_errors),
    };
    match &args.output {
        None => ignore_closed_pipe(out.write_all(yaml.as_bytes()))?,
        Some(path) => {
            if let Err(error) = std::fs::write(path, yaml) {
                let path = printable(&path.to_string_lossy());
                writeln!(err, "error: can not write `{path}`: {error}")?;
                return Ok(Exit::Unreadable);
            }
        }
    }
    for difference in differences {
        writeln!(err, "note: {}", printable(&difference))?;
    }
    Ok(Exit::Clean)
}

fn converted(args: &Args) -> Result<ConvertedConfig, Unusable> {
    let usage = |message: String| Unusable::Usage(vec![message]);
    let modes = match args.authorization.plan().map_err(Unusable::Usage)? {
        AuthorizationPlan::Modes(modes) => modes,
        AuthorizationPlan::File(file) => {
            let path = file.path.display();
            return Err(usage(format!("`{path}` is a configuration file already")));
        }
    };
    let directory = std::env::current_dir().map_err(Unusable::broken)?;
    let names = hook_names(&modes, &directory).map_err(Unusable::one)?;
    let mut converted = convert(&modes, &names, &directory, args.anonymous_auth)?;
    if let HookNames::Unreadable(error) = names {
        converted.differences.push(format!(
            "The file of the webhook could not be looked at ({error}); it is taken for a \
             kubeconfig, which means one webhook."
        ));
    }
    Ok(converted)
}

fn convert(
    modes: &AuthorizationModes,
    names: &HookNames,
    directory: &Path,
    is_anonymous_enabled: bool,
) -> Result<ConvertedConfig, Unusable> {
    let context = ConversionContext { directory, hooks: names.of_file(), is_anonymous_enabled };
    authz_reload::convert_flags_to_config(modes, &context)
        .map_err(|error| Unusable::Usage(vec![error.to_string()]))
}
