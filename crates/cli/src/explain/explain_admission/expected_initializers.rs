//! Determines which initializers a written object waits for.

use admission::{
    InitializeDenied, Initializer, InitializerOptions, Initializers, InitializersOnCreate,
    InitializersOnUpdate, InitializersOrigin, Operation, PendingInitializer,
    decide_initializers_on_create, decide_initializers_on_update, runnable_initializers,
};
use api_object::Status;
use authz::{Attributes, Namespace, Resource, Target, TraceRecorder, Verb, Verdict};
use server::IntoStatus;

use super::admission_write::AdmissionWrite;
use super::manifest_cluster::ManifestCluster;
use crate::offline::is_webhook_not_called;

/// The initializers that an object waits for.
#[derive(Debug)]
pub(super) enum ExpectedInitializers<'a> {
    /// The object waits for no initializer.
    None,
    /// The object waits for these initializers, in this order.
    For(Vec<ExpectedInitializer<'a>>, InitializersOrigin),
    /// The server refuses the initializers that the client wrote.
    Refused(Status),
    /// The result depends on something unknown, which the text names.
    Unknown(String),
}

impl ExpectedInitializers<'_> {
    /// Returns the initializers that the configuration assigns to the object.
    pub(super) fn assigned_initializers(&self) -> Option<Vec<PendingInitializer>> {
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
pub(super) struct ExpectedInitializer<'a> {
    pub(super) entry: PendingInitializer,
    /// The initializer in the configuration; `None` if no configuration has it.
    pub(super) configured_initializer: Option<&'a Initializer>,
    /// Whether the initializer may act now, without waiting for others.
    pub(super) may_initializer_act_now: bool,
}

/// Determines the initializers of a written object, as a server does before it calls hooks.
pub(super) fn determine_expected_initializers<'a>(
    cluster: &'a ManifestCluster,
    write: &AdmissionWrite<'_>,
) -> ExpectedInitializers<'a> {
    let attributes = write.to_attributes();
    let options = InitializerOptions::default();
    if write.pre_admission_rejection.is_some() {
        return ExpectedInitializers::None;
    }
    match attributes.operation {
        Operation::Create => {
            match decide_initializers_on_create(&options, &attributes, &cluster.admission_snapshot)
            {
                InitializersOnCreate::Initialized => ExpectedInitializers::None,
                InitializersOnCreate::Assign(list) => to_expected_initializers(
                    cluster,
                    list.ordered_entries,
                    InitializersOrigin::Configuration,
                ),
                InitializersOnCreate::AssignUnlessPermitted(list) => {
                    let own = Initializers::default();
                    let errors = field_errors::FieldErrors::new();
                    match initializers_written_by_client(cluster, write, own, &errors) {
                        ExpectedInitializers::Refused(_) => to_expected_initializers(
                            cluster,
                            list.ordered_entries,
                            InitializersOrigin::Configuration,
                        ),
                        unhindered => unhindered,
                    }
                }
                InitializersOnCreate::NeedsPermission(own) => {
                    let errors = own.validate_on_create(options.pending_initializers_max);
                    initializers_written_by_client(cluster, write, own, &errors)
                }
            }
        }
        Operation::Update => match decide_initializers_on_update(&options, &attributes) {
            Ok(InitializersOnUpdate::NoInitializers | InitializersOnUpdate::KeepStored) => {
                ExpectedInitializers::None
            }
            Ok(InitializersOnUpdate::NeedsPermission(own)) => initializers_written_by_client(
                cluster,
                write,
                own,
                &field_errors::FieldErrors::new(),
            ),
            Err(errors) => {
                ExpectedInitializers::Refused(invalid_initializers_status(write, &errors))
            }
        },
        Operation::Delete | Operation::Connect => ExpectedInitializers::None,
    }
}

/// Returns the initializers that the client wrote, if the client has the permission `initialize`.
fn initializers_written_by_client<'a>(
    cluster: &'a ManifestCluster,
    write: &AdmissionWrite<'_>,
    own: Initializers,
    errors: &field_errors::FieldErrors,
) -> ExpectedInitializers<'a> {
    let attributes = write.to_attributes();
    let asked = Attributes {
        user: attributes.user,
        verb: Verb::new("initialize"),
        target: Target::Resource(Resource {
            path: "",
            api_group: attributes.resource.group,
            api_version: attributes.resource.version,
            namespace: Namespace::new(attributes.namespace),
            resource: attributes.resource.resource,
            subresource: "",
            name: attributes.name,
            field_selector: None,
            label_selector: None,
        }),
    };
    let decision =
        cluster.offline_authorizer.authorize(&asked, TraceRecorder::disabled_recorder()).decision;
    if is_webhook_not_called(decision.error.as_ref()) {
        let why = "metadata.initializers needs the permission `initialize`, and the authorizer \
                   would call a webhook";
        return ExpectedInitializers::Unknown(why.to_owned());
    }
    if decision.verdict != Verdict::Allow {
        let denied = InitializeDenied {
            operation: attributes.operation,
            resource: write.resource.group_resource(),
            name: attributes.name.to_owned(),
            reason: decision.reason.to_string(),
        };
        return ExpectedInitializers::Refused(denied.into_status());
    }
    if !errors.is_empty() {
        return ExpectedInitializers::Refused(invalid_initializers_status(write, errors));
    }
    to_expected_initializers(cluster, own.pending_initializers, InitializersOrigin::Client)
}

fn invalid_initializers_status(
    write: &AdmissionWrite<'_>,
    errors: &field_errors::FieldErrors,
) -> Status {
    Status::invalid_object(&write.resource.group_kind(), write.to_attributes().name, errors)
}

fn to_expected_initializers(
    cluster: &ManifestCluster,
    entries: Vec<PendingInitializer>,
    origin: InitializersOrigin,
) -> ExpectedInitializers<'_> {
    if entries.is_empty() {
        return ExpectedInitializers::None;
    }
    let runnable = runnable_initializers(&entries);
    let awaited = entries.into_iter().enumerate().map(|(idx, entry)| ExpectedInitializer {
        configured_initializer: cluster.admission_snapshot.find_initializer(&entry.name),
        may_initializer_act_now: runnable.contains(&idx),
        entry,
    });
    ExpectedInitializers::For(awaited.collect(), origin)
}
