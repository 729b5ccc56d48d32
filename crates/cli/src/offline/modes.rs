//! Which authorizers the flags ask for, by the rules of the server.

use std::collections::BTreeSet;
use std::path::Path;

use authz_chain::AuthorizerType;

use super::flags::AuthorizationFlags;

/// The authorizers without any flag.
const DEFAULT: [AuthorizerType; 2] = [AuthorizerType::Node, AuthorizerType::Rbac];

const CONFIG_EXCLUDES_MODES: &str = "--authorization-config can not be specified when \
    --authorization-mode or --authorization-webhook-* flags are defined";

/// Where the list of authorizers comes from.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Plan<'f> {
    /// From a file.
    File(&'f Path),
    /// From flags, in this order.
    Modes(Vec<AuthorizerType>),
}

/// The plan of the flags.
///
/// # Errors
/// Every rule that the flags break, in the words of the server.
pub(super) fn plan(flags: &AuthorizationFlags) -> Result<Plan<'_>, Vec<String>> {
    let modes = flags.authorization_mode.as_deref();
    let policy_file = flags.authorization_policy_file.as_ref();
    let webhook_file = flags.authorization_webhook_config_file.as_ref();
    if let Some(path) = &flags.authorization_config {
        return match modes.is_none() && webhook_file.is_none() {
            true => Ok(Plan::File(path)),
            false => Err(vec![CONFIG_EXCLUDES_MODES.to_owned()]),
        };
    }
    // An empty list is what `--authorization-mode=` gives, and means the default.
    let Some(modes) = modes.filter(|modes| !matches!(modes, [] | [_] if modes.concat().is_empty()))
    else {
        let mut faults = Vec::new();
        faults.extend(policy_file.map(|_| policy_file_without_mode()));
        faults.extend(webhook_file.map(|_| webhook_file_without_mode()));
        return if faults.is_empty() { Ok(Plan::Modes(DEFAULT.to_vec())) } else { Err(faults) };
    };
    let mut faults = Vec::new();
    let mut known = Vec::new();
    for mode in modes {
        match AuthorizerType::from_name(mode) {
            Some(kind) => known.push(kind),
            None => {
                faults.push(format!("authorization-mode {} is not a valid mode", quoted(mode)));
            }
        }
    }
    match (known.contains(&AuthorizerType::Abac), policy_file) {
        (true, None) => {
            faults.push("authorization-mode ABAC's authorization policy file not passed".to_owned())
        }
        (false, Some(_)) => faults.push(policy_file_without_mode()),
        (true, Some(_)) | (false, None) => {}
    }
    match (known.contains(&AuthorizerType::Webhook), webhook_file) {
        (true, None) => faults
            .push("authorization-mode Webhook's authorization config file not passed".to_owned()),
        (false, Some(_)) => faults.push(webhook_file_without_mode()),
        (true, Some(_)) | (false, None) => {}
    }
    if modes.iter().collect::<BTreeSet<_>>().len() < modes.len() {
        let list: Vec<String> = modes.iter().map(|mode| quoted(mode)).collect();
        let list = list.join(" ");
        faults.push(format!("authorization-mode [{list}] has mode specified more than once"));
    }
    if faults.is_empty() { Ok(Plan::Modes(known)) } else { Err(faults) }
}

fn policy_file_without_mode() -> String {
    "cannot specify --authorization-policy-file without mode ABAC".to_owned()
}

fn webhook_file_without_mode() -> String {
    "cannot specify --authorization-webhook-config-file without mode Webhook".to_owned()
}

fn quoted(mode: &str) -> String {
    serde_json::Value::from(mode).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    use clap::Parser;

    #[derive(Parser)]
    struct Flags {
        #[command(flatten)]
        policy: AuthorizationFlags,
    }

    /// The plan as text: the modes, or the file, or the faults.
    fn of(args: &[&str]) -> String {
        let flags = Flags::try_parse_from([&["x"], args].concat()).unwrap().policy;
        match plan(&flags) {
            Ok(Plan::File(path)) => path.display().to_string(),
            Ok(Plan::Modes(modes)) => {
                modes.iter().map(|mode| mode.name()).collect::<Vec<_>>().join(",")
            }
            Err(faults) => faults.join("; "),
        }
    }

    /// Cases FLG-01 to FLG-17, as far as they are about these flags. FLG-01 differs by intent.
    #[test]
    fn flags_follow_the_rules_of_the_server() {
        let abac = "authorization-mode ABAC's authorization policy file not passed";
        let webhook = "authorization-mode Webhook's authorization config file not passed";
        for (args, want) in [
            (&[][..], "Node,RBAC"),
            (&["--authorization-mode="], "Node,RBAC"),
            (
                &["--authorization-mode=DoesNotExist"],
                "authorization-mode \"DoesNotExist\" is not a valid mode",
            ),
            (
                &["--authorization-mode=AlwaysAllow,AlwaysAllow"],
                "authorization-mode [\"AlwaysAllow\" \"AlwaysAllow\"] has mode specified more than \
                 once",
            ),
            (&["--authorization-mode=AlwaysAllow,AlwaysDeny"], "AlwaysAllow,AlwaysDeny"),
            (&["--authorization-mode=ABAC"], abac),
            (&["--authorization-mode=ABAC", "--authorization-policy-file=p"], "ABAC"),
            (
                &["--authorization-policy-file=p"],
                "cannot specify --authorization-policy-file without mode ABAC",
            ),
            (&["--authorization-mode=Webhook"], webhook),
            (
                &["--authorization-mode=AlwaysAllow", "--authorization-webhook-config-file=w"],
                "cannot specify --authorization-webhook-config-file without mode Webhook",
            ),
            (&["--authorization-mode=Webhook", "--authorization-webhook-config-file=w"], "Webhook"),
            (&["--authorization-config=f", "--authorization-mode=RBAC"], CONFIG_EXCLUDES_MODES),
            (
                &["--authorization-config=f", "--authorization-webhook-config-file=w"],
                CONFIG_EXCLUDES_MODES,
            ),
            (&["--authorization-config=f", "--authorization-policy-file=p"], "f"),
            (&["--authorization-mode=Node", "--authorization-mode=RBAC"], "Node,RBAC"),
        ] {
            assert_eq!(of(args), want, "{args:?}");
        }
        // All faults at once.
        assert_eq!(
            of(&["--authorization-mode=A,ABAC,Webhook"]),
            format!("authorization-mode \"A\" is not a valid mode; {abac}; {webhook}")
        );
    }
}
