//! Sets the defaults of absent fields.

use document::{FieldValue, Nanoseconds, SpannedWarning, ValidationReport, WarningCode};
use field_errors::FieldPath;

use super::unvalidated_config::UnvalidatedAuthorizationConfiguration;

const SECOND: Nanoseconds = 1_000_000_000;
const AUTHORIZED_TTL: Nanoseconds = 5 * 60 * SECOND;
const UNAUTHORIZED_TTL: Nanoseconds = 30 * SECOND;

/// Gives every present webhook its defaults.
///
/// A duration of zero counts as absent, as in Kubernetes. Its author most likely wanted no cache, so it gets a warning.
pub(super) fn set_defaults(
    configuration: &mut UnvalidatedAuthorizationConfiguration,
    report: &mut ValidationReport,
) {
    let authorizers = FieldPath::root("authorizers");
    for (idx, authorizer) in configuration.authorizers.iter_mut().enumerate() {
        let Some(webhook) = &mut authorizer.webhook else { continue };
        let caches = [
            (
                &mut webhook.authorized_ttl,
                AUTHORIZED_TTL,
                &mut webhook.cache_authorized_requests,
                ["authorizedTTL", "cacheAuthorizedRequests"],
            ),
            (
                &mut webhook.unauthorized_ttl,
                UNAUTHORIZED_TTL,
                &mut webhook.cache_unauthorized_requests,
                ["unauthorizedTTL", "cacheUnauthorizedRequests"],
            ),
        ];
        for (ttl, default, is_cached, [ttl_name, cache_name]) in caches {
            if *is_cached != Some(false) {
                let field = authorizers.index(idx).child(ttl_name).to_string();
                report.warnings.extend(warn_of_zero_ttl(ttl, field, default, cache_name));
            }
            if ttl.value == 0 {
                ttl.value = default;
            }
            is_cached.get_or_insert(true);
        }
    }
}

/// Warns of a TTL of zero in the file. An absent or null field gets the default without a warning.
fn warn_of_zero_ttl(
    ttl: &FieldValue<Nanoseconds>,
    field: String,
    default: Nanoseconds,
    cache_name: &str,
) -> Option<SpannedWarning> {
    let span = ttl.span.filter(|_| ttl.value == 0)?;
    let default = go_compat::format_duration(default);
    Some(SpannedWarning {
        code: WarningCode::ZeroTtl,
        field,
        message: format!("0s does not turn the cache off: it means the default, {default}"),
        span,
        hint: Some(format!("write `{cache_name}: false` to turn the cache off")),
    })
}
