//! Accepts, with a warning, two forms that the samples of KEP-3221 use and Kubernetes refuses.

use authz_chain::AuthorizerType;
use document::{SpannedWarning, ValidationReport, WarningCode};
use field_errors::FieldPath;

use super::unvalidated_config::UnvalidatedAuthorizationConfiguration;

/// The proposal's name of the connection type `KubeConfigFile`.
const KUBE_CONFIG_ALIAS: &str = "KubeConfig";
const KUBE_CONFIG_FILE: &str = "KubeConfigFile";

/// Normalizes the configuration before validation.
///
/// 1. A built-in authorizer without a name gets its type in lower case, the only name it may have.
/// 2. The connection type `KubeConfig` becomes `KubeConfigFile`.
pub(super) fn normalize_kep_forms(
    configuration: &mut UnvalidatedAuthorizationConfiguration,
    report: &mut ValidationReport,
) {
    let authorizers = FieldPath::root("authorizers");
    for (idx, authorizer) in configuration.authorizers.iter_mut().enumerate() {
        let at = authorizers.index(idx);
        let kind = AuthorizerType::from_type_name(&authorizer.kind.value);
        if let Some(kind) = kind
            && let Some(name) = kind.fixed_authorizer_name()
            && !authorizer.has_name
        {
            authorizer.name.value = name.to_owned();
            report.warnings.push(SpannedWarning {
                code: WarningCode::MissingBuiltInName,
                field: at.child("name").to_string(),
                message: format!("authorizer of type {} has no name", kind.name()),
                span: authorizer.name.span.unwrap_or(authorizer.span),
                hint: Some(format!("add `name: {name}`; Kubernetes requires it")),
            });
        }
        let Some(connection) = authorizer.webhook.as_mut().map(|w| &mut w.connection_info) else {
            continue;
        };
        if connection.kind.value == KUBE_CONFIG_ALIAS {
            connection.kind.value = KUBE_CONFIG_FILE.to_owned();
            report.warnings.push(SpannedWarning {
                code: WarningCode::KubeConfigAlias,
                field: at.child("connectionInfo").child("type").to_string(),
                message: format!("`{KUBE_CONFIG_ALIAS}` is a deprecated name"),
                span: connection.kind.span.unwrap_or(connection.span),
                hint: Some(format!("write `{KUBE_CONFIG_FILE}`; Kubernetes requires it")),
            });
        }
    }
}
