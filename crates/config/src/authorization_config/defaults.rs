//! Sets the defaults of absent fields.

use document::{FieldValue, Nanoseconds};

use super::unvalidated_config::Configuration;

const SECOND: Nanoseconds = 1_000_000_000;
const AUTHORIZED_TTL: Nanoseconds = 5 * 60 * SECOND;
const UNAUTHORIZED_TTL: Nanoseconds = 30 * SECOND;

/// Gives every present webhook its defaults.
///
/// A duration of zero counts as absent: only the flags switch a cache off.
pub(super) fn set_defaults(configuration: &mut Configuration) {
    let webhooks = configuration.authorizers.iter_mut().filter_map(|a| a.webhook.as_mut());
    for webhook in webhooks {
        set_default_duration(&mut webhook.authorized_ttl, AUTHORIZED_TTL);
        set_default_duration(&mut webhook.unauthorized_ttl, UNAUTHORIZED_TTL);
        webhook.cache_authorized_requests.get_or_insert(true);
        webhook.cache_unauthorized_requests.get_or_insert(true);
    }
}

fn set_default_duration(duration: &mut FieldValue<Nanoseconds>, default: Nanoseconds) {
    if duration.value == 0 {
        duration.value = default;
    }
}
