//! The time limit of a request.

use std::time::Duration;

use api_object::Status;
use authz::RequestInfo;

use crate::rest::Query;
use crate::server_state::ServerState;

/// The longest duration of a request; `None` for watches. Clients may shorten it with `timeout`.
pub(crate) fn request_duration_max(
    server: &ServerState,
    info: &RequestInfo,
    query: &Query,
) -> Result<Option<Duration>, Status> {
    if info.verb == "watch" {
        return Ok(None);
    }
    let is_write = info.resource.is_some()
        && matches!(info.verb.as_ref(), "create" | "update" | "patch" | "delete");
    let most = match is_write {
        true => server.api_settings.request_timeout.min(server.api_settings.write_timeout),
        false => server.api_settings.request_timeout,
    };
    // The query parameters of a connection are meant for the kubelet.
    let is_connection = info.resource.as_ref().is_some_and(|own| {
        matches!(own.subresource.as_str(), "attach" | "exec" | "portforward" | "proxy")
    });
    let text = query.get("timeout").filter(|text| !text.is_empty() && !is_connection);
    let Some(text) = text else {
        return Ok(Some(most));
    };
    let nanos = go_compat::parse_duration(text).map_err(|error| {
        Status::bad_request(format!("invalid timeout specified in the request URL - {error}"))
    })?;
    let wanted = Duration::from_nanos(u64::try_from(nanos).unwrap_or_default());
    Ok(Some(if wanted.is_zero() { most } else { most.min(wanted) }))
}
