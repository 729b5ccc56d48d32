//! The JSON of events of version `audit.k8s.io/v1`. The order of the members is that of Kubernetes.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::net::IpAddr;

use authz::User;
use jiff::Timestamp;
use jiff::fmt::StdFmtWrite;
use jiff::fmt::temporal::DateTimePrinter;
use serde::{Serialize, Serializer};
use serde_json::Value;

use super::{Event, ObjectRef};
use crate::stage::{Level, Stage};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WireEvent<'a> {
    kind: &'static str,
    api_version: &'static str,
    level: Level,
    #[serde(rename = "auditID")]
    audit_id: &'a str,
    stage: Stage,
    #[serde(rename = "requestURI")]
    request_uri: &'a str,
    verb: &'a str,
    user: WireUser<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    impersonated_user: Option<WireUser<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    authentication_metadata: Option<WireAuthentication<'a>>,
    #[serde(rename = "sourceIPs", skip_serializing_if = "<[_]>::is_empty")]
    source_ips: &'a [IpAddr],
    #[serde(skip_serializing_if = "str::is_empty")]
    user_agent: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    object_ref: Option<WireObjectRef<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_status: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request_object: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_object: Option<&'a Value>,
    request_received_timestamp: MicrosecondTime,
    stage_timestamp: MicrosecondTime,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    annotations: &'a BTreeMap<Cow<'static, str>, String>,
}

#[derive(Serialize, Default)]
struct WireUser<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    username: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    uid: &'a str,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    groups: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    extra: Option<&'a BTreeMap<String, Vec<String>>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WireAuthentication<'a> {
    impersonation_constraint: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WireObjectRef<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    resource: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    namespace: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    uid: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    api_group: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    api_version: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    resource_version: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    subresource: &'a str,
}

/// A time that serializes with six decimals.
struct MicrosecondTime(Timestamp);

/// Encodes an event at a stage as a line, with a line feed at the end.
pub(super) fn encode_event_line(event: &Event, stage: Stage, now: Timestamp) -> Vec<u8> {
    let impersonated = event.impersonation.as_ref();
    let wire = WireEvent {
        kind: "Event",
        api_version: "audit.k8s.io/v1",
        level: event.audit_config.level,
        audit_id: &event.audit_id,
        stage,
        request_uri: &event.request_uri,
        verb: &event.verb,
        user: event.user.as_ref().map(to_wire_user).unwrap_or_default(),
        impersonated_user: impersonated.map(|impersonated| to_wire_user(&impersonated.user)),
        authentication_metadata: impersonated
            .map(|impersonated| impersonated.impersonation_mode.as_str())
            .filter(|constraint| !constraint.is_empty())
            .map(|impersonation_constraint| WireAuthentication { impersonation_constraint }),
        source_ips: &event.source_ips,
        user_agent: &event.user_agent,
        object_ref: event.object_ref.as_ref().map(to_wire_object_ref),
        response_status: event.response_status.as_ref(),
        request_object: event.request_object.as_ref(),
        response_object: event.response_object.as_ref(),
        request_received_timestamp: MicrosecondTime(event.received_at),
        stage_timestamp: MicrosecondTime(now),
        annotations: &event.annotations,
    };
    let mut line = Vec::with_capacity(1024);
    // Writing to memory does not fail, and all keys are text.
    let _ = serde_json::to_writer(&mut line, &wire);
    line.push(b'\n');
    line
}

fn to_wire_user(user: &User) -> WireUser<'_> {
    WireUser {
        username: &user.name,
        uid: &user.uid,
        groups: &user.groups,
        extra: (!user.extra.is_empty()).then_some(&user.extra),
    }
}

fn to_wire_object_ref(object: &ObjectRef) -> WireObjectRef<'_> {
    WireObjectRef {
        resource: &object.resource,
        namespace: &object.namespace,
        name: &object.name,
        uid: &object.uid,
        api_group: &object.api_group,
        api_version: &object.api_version,
        resource_version: &object.resource_version,
        subresource: &object.subresource,
    }
}

impl Serialize for MicrosecondTime {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        const PRINTER: DateTimePrinter = DateTimePrinter::new().precision(Some(6));
        let mut text = String::with_capacity(32);
        PRINTER
            .print_timestamp(&self.0, StdFmtWrite(&mut text))
            .map_err(serde::ser::Error::custom)?;
        serializer.serialize_str(&text)
    }
}
