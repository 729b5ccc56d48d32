//! Determines which initializers a written object waits for.

use admission::{
    CreateDecision, Initializer, InitializerOptions, Initializers, InitializersOrigin, Operation,
    PendingInitializer, UpdateDecision, create_denied_status, decide_create, decide_update,
    denied_update_status, runnable_initializers,
};
use api_object::Status;
use authz::{Attributes, Recorder, Resource, Target, Verdict};

use super::admission_write::AdmissionWrite;
use super::manifest_cluster::ManifestCluster;
use crate::offline::is_webhook_not_called;

/// The initializers that an object waits for.
#[derive(Debug)]
pub(super) enum InitializerWait<'a> {
    /// Nobody.
    None,
    /// These, in this order.
    For(Vec<AwaitedInitializer<'a>>, InitializersOrigin),
    /// The server refuses the initializers that the client wrote.
    Refused(Status),
    /// The result depends on something unknown, which the text names.
    Unknown(String),
}

impl InitializerWait<'_> {
    /// The list that the configuration gives to the object.
    pub(super) fn assigned_entries(&self) -> Option<Vec<PendingInitializer>> {
        match self {
            Self::For(all, InitializersOrigin::Configuration) => {
                Some(all.iter().map(|awaited| awaited.entry.clone()).collect())
            }
            Self::For(_, InitializersOrigin::Client)
            | Self::None
            | Self::Refused(_)
            | Self::Unknown(_) => None,
        }
    }
}

/// One initializer that an object waits for.
#[derive(Debug)]
pub(super) struct AwaitedInitializer<'a> {
    pub(super) entry: PendingInitializer,
    /// `None` if no configuration has it.
    pub(super) initializer: Option<&'a Initializer>,
    /// It need not wait for others.
    pub(super) is_runnable: bool,
}

/// Determines the initializers of a written object, as a server does before it calls hooks.
pub(super) fn initializer_wait<'a>(
    cluster: &'a ManifestCluster,
    write: &AdmissionWrite<'_>,
) -> InitializerWait<'a> {
    let attributes = write.attributes();
    let options = InitializerOptions::default();
    if write.refused_with.is_some() {
        return InitializerWait::None;
    }
    match attributes.operation {
        Operation::Create => match decide_create(&options, &attributes, &cluster.snapshot) {
            CreateDecision::Initialized => InitializerWait::None,
            CreateDecision::Assign(list) => {
                wait_for(cluster, list.entries, InitializersOrigin::Configuration)
            }
            CreateDecision::AssignUnlessPermitted(list) => {
                let own = Initializers::default();
                let errors = field_errors::FieldErrors::new();
                match wait_if_permitted(cluster, write, own, create_denied_status, &errors) {
                    InitializerWait::Refused(_) => {
                        wait_for(cluster, list.entries, InitializersOrigin::Configuration)
                    }
                    unhindered => unhindered,
                }
            }
            CreateDecision::NeedsPermission(own) => {
                let errors = own.create_errors(options.pending_max);
                wait_if_permitted(cluster, write, own, create_denied_status, &errors)
            }
        },
        Operation::Update => match decide_update(&options, &attributes) {
            Ok(UpdateDecision::NoInitializers | UpdateDecision::KeepStored) => {
                InitializerWait::None
            }
            Ok(UpdateDecision::NeedsPermission(own)) => wait_if_permitted(
                cluster,
                write,
                own,
                denied_update_status,
                &field_errors::FieldErrors::new(),
            ),
            Err(errors) => InitializerWait::Refused(invalid(write, &errors)),
        },
        Operation::Delete | Operation::Connect => InitializerWait::None,
    }
}

/// The initializers that the client wrote, if the client has the permission `initialize`.
fn wait_if_permitted<'a>(
    cluster: &'a ManifestCluster,
    write: &AdmissionWrite<'_>,
    own: Initializers,
    denied: fn(&api_object::GroupResource, &str, &str) -> Status,
    errors: &field_errors::FieldErrors,
) -> InitializerWait<'a> {
    let attributes = write.attributes();
    let asked = Attributes {
        user: attributes.user,
        verb: "initialize",
        target: Target::Resource(Resource {
            path: "",
            api_group: attributes.resource.group,
            api_version: attributes.resource.version,
            namespace: attributes.namespace,
            resource: attributes.resource.resource,
            subresource: "",
            name: attributes.name,
            field_selector: None,
            label_selector: None,
        }),
    };
    let decision = cluster.authorizer.authorize(&asked, Recorder::disabled()).decision;
    if is_webhook_not_called(decision.error.as_ref()) {
        let why = "metadata.initializers needs the permission `initialize`, and the authorizer \
                   would call a webhook";
        return InitializerWait::Unknown(why.to_owned());
    }
    if decision.verdict != Verdict::Allow {
        let resource = write.resource.group_resource();
        let reason = decision.reason.to_string();
        return InitializerWait::Refused(denied(&resource, attributes.name, &reason));
    }
    if !errors.is_empty() {
        return InitializerWait::Refused(invalid(write, errors));
    }
    wait_for(cluster, own.pending, InitializersOrigin::Client)
}

fn invalid(write: &AdmissionWrite<'_>, errors: &field_errors::FieldErrors) -> Status {
    Status::invalid(&write.resource.group_kind(), write.attributes().name, errors)
}

fn wait_for(
    cluster: &ManifestCluster,
    entries: Vec<PendingInitializer>,
    origin: InitializersOrigin,
) -> InitializerWait<'_> {
    if entries.is_empty() {
        return InitializerWait::None;
    }
    let runnable = runnable_initializers(&entries);
    let awaited = entries.into_iter().enumerate().map(|(idx, entry)| AwaitedInitializer {
        initializer: cluster.snapshot.initializer(&entry.name),
        is_runnable: runnable.contains(&idx),
        entry,
    });
    InitializerWait::For(awaited.collect(), origin)
}
