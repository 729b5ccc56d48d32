//! The agreed differences: inputs for which the answer of Portcullis deliberately differs from that of Kubernetes.
//!
//! An entry is a rule over inputs and not a list of ids, so it also applies to vectors of later recordings. A
//! rule changes the expected answer to our intended one; everything else in the vector must still agree. A new
//! rule is a design change and is reviewed like one.

mod abac;
mod admission_dispatch;
mod admission_webhook_config;
mod chain;
mod config_load;
mod match_conditions;
mod request_attributes;
mod user_info;

use serde_json::Value;

use crate::suites::{AnswerPair, Suite};
use crate::vectors::Vector;

/// One difference from the recorded answers that is intended.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    /// The name of the rule in the report.
    pub name: &'static str,
    /// The suite whose vectors the rule applies to.
    pub suite: Suite,
    /// The reason for the difference.
    pub reason: &'static str,
    /// Changes the expected answer if the rule applies to the vector, and returns whether it did.
    pub(crate) amend: fn(&Vector, &AnswerPair, &mut Value) -> bool,
}

/// All differences that are intended.
pub const LEDGER: &[Rule] = &[
    Rule {
        name: "abac-fail-open-line",
        suite: Suite::Abac,
        reason: "Kubernetes accepts lines that it did not understand, such as null, YAML or a spec \
                 without a version, and may take them to grant everything; they are refused",
        amend: abac::fail_open_line,
    },
    Rule {
        name: "abac-proposal-names",
        suite: Suite::Abac,
        reason: "the first proposal writes kind for the resource and ns for the namespace, which \
                 Kubernetes refuses or ignores; they are read as what they say",
        amend: abac::proposal_names,
    },
    Rule {
        name: "abac-path-rules",
        suite: Suite::Abac,
        reason: "Kubernetes lists rules about paths only in the namespace of their policy; \
                 paths have none, so the rules are listed in all",
        amend: abac::path_rules,
    },
    Rule {
        name: "webhook-shown-version",
        suite: Suite::AdmissionDispatch,
        reason: "where Kubernetes holds objects without a schema, showing one to a webhook in an \
                 equivalent version also changes the version of the request's own object; what is \
                 admitted stays of the version that was requested",
        amend: admission_dispatch::shown_version,
    },
    Rule {
        name: "webhook-service-member",
        suite: Suite::AdmissionWebhookConfig,
        reason: "Kubernetes tells the namespace of a service where its name is missing, and the name \
                 where its namespace is; the member that is missing is told",
        amend: admission_webhook_config::service_member,
    },
    Rule {
        name: "webhook-body-in-error",
        suite: Suite::Chain,
        reason: "Kubernetes repeats the text that a failing webhook answers, in errors that users \
                 who create access reviews read; the answer may be that of another service, and \
                 only its status code is told",
        amend: chain::repeated_body,
    },
    Rule {
        name: "built-in-without-name",
        suite: Suite::ConfigLoad,
        reason: "KEP-3221's samples give built-in authorizers no name; \
                 it becomes the type in lower case, with a warning",
        amend: config_load::built_in_without_name,
    },
    Rule {
        name: "connection-type-kubeconfig",
        suite: Suite::ConfigLoad,
        reason: "KEP-3221 calls the connection type KubeConfigFile KubeConfig; \
                 both are accepted, this one with a warning",
        amend: config_load::connection_type_kubeconfig,
    },
    Rule {
        name: "peer-panic",
        suite: Suite::MatchConditions,
        reason: "cel-go panics, for instance when it counts the cost of sort or distinct on an \
                 operand that failed; we answer as the language says",
        amend: match_conditions::peer_panic,
    },
    Rule {
        name: "legacy-ns-path",
        suite: Suite::RequestAttributes,
        reason: "the first proposal writes /api/VERSION/ns/NAMESPACE/...; \
                 it is read as /api/VERSION/namespaces/NAMESPACE/...",
        amend: request_attributes::legacy_ns_path,
    },
    Rule {
        name: "token-file-empty-group",
        suite: Suite::UserInfo,
        reason: "Kubernetes reads an empty column of groups as one group without a name, which a \
                 policy could match by mistake; it is no group",
        amend: user_info::empty_group,
    },
];
