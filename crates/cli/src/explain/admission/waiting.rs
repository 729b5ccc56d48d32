//! Whom a new object would wait for.

use admission::{
    CreateDecision, Initializer, InitializerOptions, Initializers, InitializersOrigin, Operation,
    PendingInitializer, UpdateDecision, create_denied_status, decide_create, decide_update,
    runnable_initializers, update_denied_status,
};
use api_object::Status;
use authz::{Attributes, Recorder, Resource, Target, Verdict};

use super::cluster::Cluster;
use super::write::Write;
use crate::offline::is_unanswered;

/// Whom an object waits for.
#[derive(Debug)]
pub(super) enum Waiting<'a> {
    /// Nobody.
    Nobody,
    /// These, in this order.
    For(Vec<Awaited<'a>>, InitializersOrigin),
    /// The write is refused because of what it says about initializers.
    Refused(Status),
    /// That depends on something that is not known; this is what.
    Open(String),
}

impl Waiting<'_> {
    /// The list that the configuration gives to the object.
    pub(super) fn assigned(&self) -> Option<Vec<PendingInitializer>> {
        match self {
            Self::For(all, InitializersOrigin::Configuration) => {
                Some(all.iter().map(|awaited| awaited.entry.clone()).collect())
            }
            Self::For(_, InitializersOrigin::Client)
            | Self::Nobody
            | Self::Refused(_)
            | Self::Open(_) => None,
        }
    }
}

/// One initializer that an object waits for.
#[derive(Debug)]
pub(super) struct Awaited<'a> {
    pub(super) entry: PendingInitializer,
    /// `None` if no configuration has it.
    pub(super) initializer: Option<&'a Initializer>,
    /// It need not wait for others.
    pub(super) may_act: bool,
}

/// Whom the object waits for once it is written, as a server decides before it asks any hook.
pub(super) fn waiting<'a>(cluster: &'a Cluster, write: &Write<'_>) -> Waiting<'a> {
    let attributes = write.attributes();
    let options = InitializerOptions::default();
    if write.refusal.is_some() {
        return Waiting::Nobody;
    }
    match attributes.operation {
        Operation::Create => match decide_create(&options, &attributes, &cluster.snapshot) {
            CreateDecision::Initialized => Waiting::Nobody,
            CreateDecision::Assign(list) => {
                listed(cluster, list.entries, InitializersOrigin::Configuration)
            }
            CreateDecision::AssignUnlessPermitted(list) => {
                let own = Initializers::default();
                let errors = field_errors::FieldErrors::new();
                match permitted(cluster, write, own, create_denied_status, &errors) {
                    Waiting::Refused(_) => {
                        listed(cluster, list.entries, InitializersOrigin::Configuration)
                    }
                    unhindered => unhindered,
                }
            }
            CreateDecision::NeedsPermission(own) => {
                let errors = own.create_errors(options.pending_max);
                permitted(cluster, write, own, create_denied_status, &errors)
            }
        },
        Operation::Update => match decide_update(&options, &attributes) {
            Ok(UpdateDecision::NoInitializers | UpdateDecision::KeepStored) => Waiting::Nobody,
            Ok(UpdateDecision::NeedsPermission(own)) => permitted(
                cluster,
                write,
                own,
                update_denied_status,
                &field_errors::FieldErrors::new(),
            ),
            Err(errors) => Waiting::Refused(invalid(write, &errors)),
        },
        Operation::Delete | Operation::Connect => Waiting::Nobody,
    }
}

/// Whom the client says that the object waits for, if they may say so.
fn permitted<'a>(
    cluster: &'a Cluster,
    write: &Write<'_>,
    own: Initializers,
    denied: fn(&api_object::GroupResource, &str, &str) -> Status,
    errors: &field_errors::FieldErrors,
) -> Waiting<'a> {
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
    let decision = cluster.policy.ask(&asked, Recorder::off()).decision;
    if is_unanswered(decision.error.as_ref()) {
        let why = "metadata.initializers needs the permission `initialize`, and the authorizer \
                   would call a webhook";
        return Waiting::Open(why.to_owned());
    }
    if decision.verdict != Verdict::Allow {
        let resource = write.resource.group_resource();
        let reason = decision.reason.to_string();
        return Waiting::Refused(denied(&resource, attributes.name, &reason));
    }
    if !errors.is_empty() {
        return Waiting::Refused(invalid(write, errors));
    }
    listed(cluster, own.pending, InitializersOrigin::Client)
}

fn invalid(write: &Write<'_>, errors: &field_errors::FieldErrors) -> Status {
    Status::invalid(&write.resource.group_kind(), write.attributes().name, errors)
}

fn listed(
    cluster: &Cluster,
    entries: Vec<PendingInitializer>,
    origin: InitializersOrigin,
) -> Waiting<'_> {
    if entries.is_empty() {
        return Waiting::Nobody;
    }
    let runnable = runnable_initializers(&entries);
    let awaited = entries.into_iter().enumerate().map(|(idx, entry)| Awaited {
        initializer: cluster.snapshot.initializer(&entry.name),
        may_act: runnable.contains(&idx),
        entry,
    });
    Waiting::For(awaited.collect(), origin)
}
