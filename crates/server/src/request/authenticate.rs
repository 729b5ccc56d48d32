//! Determines who sends a request, its priority level, and whether it is allowed.

use std::sync::Arc;

use access_reviews::AccessError;
use api_object::Status;
use authz::{RequestInfo, User};
use flow_control::{Classification, RequestDigest, RequestTarget};
use http::request::Parts;
use https_server::Connection;
use jiff::Timestamp;

use super::single_response_sender::SingleResponseSender;
use crate::authorize::{Authorized, ChainAuthorizer, ConstrainedImpersonation, authorize};
use crate::cluster_snapshot::ClusterSnapshot;
use crate::error_status::IntoStatus;
use crate::request_error::RequestError;
use crate::request_record::RequestRecord;
use crate::server_state::ServerState;

/// Authenticates the user, classifies the request, and authorizes it.
pub(super) async fn authenticate_and_authorize(
    server: &Arc<ServerState>,
    parts: &mut Parts,
    connection: &Connection,
    record: &mut RequestRecord,
    slot: &mut SingleResponseSender,
    info: RequestInfo,
    target: &str,
    now: Timestamp,
    warnings: &mut Vec<String>,
) -> Result<(Authorized, Classification), RequestError> {
    // 2. Authenticate the user, then impersonate.
    let certificates = connection.get_or_compute_identity(
        |known| server.authenticator.uses_current_authorities(known),
        |presented| server.authenticator.identify_certificates(presented, now),
    );
    let request = authn::AuthenticationRequest { headers: &parts.headers, path: &info.path };
    let authenticated =
        server.authenticator.authenticate(request, &certificates, &**server, now).await;
    let authenticated = match authenticated {
        Ok(authenticated) => authenticated,
        Err(error) => {
            server.metrics.authentication_counts.with_label_values(&["failure"]).inc();
            connection.close();
            record.record_unauthenticated(server, &error, &info, parts, now);
            return Err(Status::unauthorized().into());
        }
    };
    server.metrics.authentication_successes.inc();
    let is_anonymous = authenticated.is_anonymous();
    if is_anonymous {
        connection.close();
    }
    warnings.extend(authenticated.response_warnings.iter().map(|&own| own.to_owned()));
    let user = authenticated.user;
    record.record_user(server, &user, &info, parts, now).await?;
    if !is_anonymous {
        count_connection_for_user(server, connection, &user)?;
    }
    let cluster = server.snapshot_cache.snapshot();
    let (mut user, mut impersonation) = (user, None);
    if authn::has_impersonation_headers(&parts.headers) {
        // The future is boxed because it is large and few requests impersonate.
        let impersonating = impersonate(server, parts, record, &cluster, &info, user);
        (user, impersonation) = Box::pin(impersonating).await?;
        authn::strip_impersonation_headers(&mut parts.headers);
    }
    server.authenticator.strip_credentials(&mut parts.headers);
    // 3. Classify by flow schema, and authorize.
    let classification = classify_flow(server, &info, &user)?;
    slot.set_flow_classification(classification.clone());
    let (authorized, decision) = authorize(cluster, Arc::clone(&user), info).await;
    record.record_authorization_decision(server, &decision);
    match authorized {
        Ok(authorized) => {
            Ok((authorized.with_constrained_impersonation(impersonation), classification))
        }
        Err(info) => {
            let attributes = info.to_attributes_for_user(Some(&user));
            let checked =
                access_reviews::check_allowed(&attributes, target, &decision.authorizer_decision);
            Err(match checked {
                Err(AccessError::EvaluationFailed(text)) => RequestError::Text(500, text),
                Err(AccessError::Forbidden(request)) => request.into_status().into(),
                Err(AccessError::Unavailable(why)) => why.into_status().into(),
                Ok(()) => Status::internal_error("the decision is unclear").into(),
            })
        }
    }
}

/// The user whom the headers of a request name, if the sender may impersonate that user. The second value says that
/// the sender needs a permission for every action of the request.
async fn impersonate(
    server: &ServerState,
    parts: &Parts,
    record: &mut RequestRecord,
    cluster: &ClusterSnapshot,
    info: &RequestInfo,
    user: Arc<User>,
) -> Result<(Arc<User>, Option<Arc<ConstrainedImpersonation>>), Status> {
    let attributes = info.to_attributes_for_user(Some(&user));
    let chain = ChainAuthorizer(Arc::clone(&cluster.authorizer_chain));
    let impersonated = server.impersonator.impersonate(&parts.headers, &attributes, &chain).await;
    let Some(impersonated) = impersonated.map_err(IntoStatus::into_status)? else {
        return Ok((user, None));
    };
    let (user, impersonation_mode) = (Arc::new(impersonated.user), impersonated.impersonation_mode);
    record.record_impersonation(&user, impersonation_mode);
    let requestor = impersonated.requestor;
    Ok((user, Some(Arc::new(ConstrainedImpersonation { requestor, impersonation_mode }))))
}

/// Counts the connection under its authenticated user, and no longer under its client address.
fn count_connection_for_user(
    server: &ServerState,
    connection: &Connection,
    user: &User,
) -> Result<(), Status> {
    let is_administrator = user.is_in_group("system:masters");
    let limit_key = authz::user_limit_key(&user.name);
    connection.record_authenticated_user(limit_key, is_administrator).map_err(|_| {
        connection.close();
        server.metrics.request_terminations.with_label_values(&["429"]).inc();
        Status::too_many_requests("too many connections with requests in progress", 1)
    })
}

/// The flow schema, priority level and flow of a request.
fn classify_flow(
    server: &ServerState,
    info: &RequestInfo,
    user: &User,
) -> Result<Classification, RequestError> {
    let target = match &info.resource {
        None => RequestTarget::Path(&info.path),
        Some(resource) => RequestTarget::Resource {
            group: &resource.api_group,
            resource: &resource.resource,
            subresource: &resource.subresource,
            namespace: &resource.namespace,
        },
    };
    let request = RequestDigest {
        user: &user.name,
        groups: &user.groups,
        verb: &info.verb,
        request_target: target,
    };
    // INVARIANT: the mandatory schema `catch-all` is always in force, and requests that no schema matches belong to
    // it.
    server.flow_controller.classify_request(&request).ok_or_else(|| {
        RequestError::Retry(Status::service_unavailable("no flow schema matches the request"))
    })
}
