//! The verb `create`: admits and stores a new object.

use admission::{Initializers, Operation, has_pending_initializers};
use api_object::{Status, Tree};
use serde_json::Value;
use store::ExpectedKeyState;

use crate::admission::{
    AdmissionFreshnessRequirement, CheckedObject, FinalOrRetry, WriteAttempt, WriteRequest,
    admit_mutating, admit_object, check_grants_of_invalid_object,
    establish_admission_config_freshness, run_built_in_checks,
};
use crate::cluster_ips::ClusterIpChange;
use crate::error_status::IntoStatus;
use crate::initializers::{ObjectInitializationWait, store_uninitialized_object};
use crate::rest::object_metadata::{
    dedup_owner_references, normalize_metadata, requester_user_fields, set_authorized_name,
    validate_metadata,
};
use crate::rest::persist::persist;
use crate::rest::{
    RequestContext, VersionedObject, WarningsAndHookReports, WriteFailure, WriteOptions,
};

/// How many generated names the server tries before it refuses the request.
const NAME_TRIES: usize = 8;

/// The result of a create, an update or a patch that succeeded.
#[derive(Debug)]
pub(crate) struct WriteResult {
    pub(crate) object: VersionedObject,
    /// The status code of the response.
    pub(crate) code: u16,
    /// The client waits for the initializers of the object.
    pub(crate) object_initialization_wait: Option<ObjectInitializationWait>,
}

/// Creates the object that the client sent.
///
/// 1. Attempt to admit and store the object.
/// 2. Repeat the attempt if its result is not final, see [`WriteAttempt::conclude_attempt`].
/// 3. Return the object. If it has initializers, the caller waits for them, unless the client asked for
///    uninitialized objects.
pub(crate) async fn create(
    ctx: &RequestContext<'_>,
    tree: Tree,
    options: WriteOptions,
    report: &mut WarningsAndHookReports,
) -> Result<WriteResult, Status> {
    create_with_attempt(
        ctx,
        tree,
        options,
        WriteAttempt::new(AdmissionFreshnessRequirement::MayAssume),
        report,
    )
    .await
}

/// Creates an object, beginning with this attempt.
pub(super) async fn create_with_attempt(
    ctx: &RequestContext<'_>,
    tree: Tree,
    options: WriteOptions,
    mut attempt: WriteAttempt,
    report: &mut WarningsAndHookReports,
) -> Result<WriteResult, Status> {
    let includes_uninitialized = ctx.query.includes_uninitialized()?;
    let created = loop {
        let result = attempt_create(ctx, &mut attempt, tree.clone(), options).await;
        match attempt.conclude_attempt(ctx, Operation::Create, result, report).await {
            FinalOrRetry::Final(result) => break result?,
            FinalOrRetry::Retry { next, .. } => attempt = *next,
        }
    };
    let (shown, wait) = created;
    let wait = wait.filter(|_| !includes_uninitialized);
    let is_pending = wait.is_none() && has_pending_initializers(&shown.object_tree);
    Ok(WriteResult {
        object: shown,
        code: if is_pending { 202 } else { 201 },
        object_initialization_wait: wait,
    })
}

/// The object of a create, which a dry run does not store, and the wait for its initializers.
type CreatedObjectAndWait = (VersionedObject, Option<ObjectInitializationWait>);

/// Attempts to create an object:
///
/// 1. Normalize the metadata.
/// 2. Establish which configuration admits the write.
/// 3. Run the mutating phase, and check again what hooks may have changed.
/// 4. Generate a name if the object has none, and store the object under it.
async fn attempt_create(
    ctx: &RequestContext<'_>,
    attempt: &mut WriteAttempt,
    mut tree: Tree,
    options: WriteOptions,
) -> Result<CreatedObjectAndWait, WriteFailure> {
    let namespace = ctx.namespace.unwrap_or_default();
    normalize_metadata(ctx, &mut tree)?;
    api_object::check_and_set_namespace(&mut tree, namespace)?;
    dedup_owner_references(&mut tree, &mut attempt.warnings);
    let write = WriteRequest::for_create("", options, ctx.query);
    establish_admission_config_freshness(ctx, attempt, &write, &tree).await?;
    let mut tree = admit_mutating(ctx, attempt, &write, tree, None).await?;
    api_object::check_and_set_namespace(&mut tree, namespace)?;
    if !ctx.name.is_empty() {
        set_authorized_name(ctx, &mut tree)?;
    }
    dedup_owner_references(&mut tree, &mut attempt.warnings);
    let metadata = api_object::metadata(&tree);
    let prefix = api_object::string_member(metadata, "generateName").to_owned();
    if !api_object::string_member(metadata, "name").is_empty() || prefix.is_empty() {
        let name = api_object::name(&tree).to_owned();
        return match create_object_with_name(ctx, attempt, &write, tree, options).await {
            // As in Kubernetes, the client gets the same response as if the server had generated the name.
            Err(WriteFailure::Rejected(status))
                if !prefix.is_empty() && is_name_taken_status(&status) =>
            {
                Err(generated_names_exhausted_status(ctx, &name).into())
            }
            result => result,
        };
    }
    let mut name = String::new();
    for _ in 0..NAME_TRIES {
        name = api_object::generate_name(&prefix, ctx.server.random_bytes());
        let mut tree = tree.clone();
        api_object::metadata_mut(&mut tree).insert("name".to_owned(), name.as_str().into());
        match create_object_with_name(ctx, attempt, &write, tree, options).await {
            Err(WriteFailure::Rejected(status)) if is_name_taken_status(&status) => {}
            result => return result,
        }
    }
    Err(generated_names_exhausted_status(ctx, &name).into())
}

/// Stores an object that has a name:
///
/// 1. Complete and validate the object.
/// 2. Run the built-in checks.
/// 3. Assign a cluster IP to a service. If another service takes the IP first, assign the next one.
/// 4. Run the validating phase, which sees the object as it is stored, and store the object.
async fn create_object_with_name(
    ctx: &RequestContext<'_>,
    attempt: &mut WriteAttempt,
    write: &WriteRequest,
    mut tree: Tree,
    options: WriteOptions,
) -> Result<CreatedObjectAndWait, WriteFailure> {
    let now = api_object::format_rfc3339(ctx.now);
    let uid = api_object::format_uuid4(ctx.server.random_bytes());
    let requester_metadata = requester_user_fields(ctx.authorization_proof.user());
    api_resources::complete_new_object(ctx.resource, &mut tree, &requester_metadata)
        .map_err(IntoStatus::into_status)?;
    api_object::set_creation_metadata(&mut tree, uid, &now, ctx.resource.has_generation);
    let sent_version = api_object::metadata_mut(&mut tree).shift_remove("resourceVersion");
    let name = api_object::name(&tree).to_owned();
    let mut errors = validate_metadata(ctx, &tree);
    errors.append(api_resources::validate_create(ctx.resource, &tree));
    let pending_max = ctx.server.initializer_options.pending_initializers_max;
    errors.append(Initializers::from_object(&tree).validate_on_create(pending_max));
    if !errors.is_empty() {
        check_grants_of_invalid_object(ctx, &tree, None).await?;
        return Err(Status::invalid_object(&ctx.group_kind(), &name, &errors).into());
    }
    let mut checked = run_built_in_checks(ctx, tree, None, &mut attempt.warnings).await?;
    let without_ip = ctx.is_service_resource().then(|| checked.clone());
    loop {
        let addresses = checked.assign_cluster_ip(ctx, None, options.is_dry_run).await?;
        let (version, addresses) = (sent_version.as_ref(), &addresses);
        let stored =
            store_new_object(ctx, attempt, write, checked, version, options, addresses).await;
        match (stored, &without_ip) {
            (Err(WriteFailure::AddressTaken), Some(without_ip)) => checked = without_ip.clone(),
            (result, _) => return result,
        }
        ctx.check_deadline()?;
    }
}

/// Stores an object that passed the built-in checks. An object for which the client sent a resourceVersion is not stored,
/// but a dry run returns it.
async fn store_new_object(
    ctx: &RequestContext<'_>,
    attempt: &mut WriteAttempt,
    write: &WriteRequest,
    checked: CheckedObject,
    sent_version: Option<&Value>,
    options: WriteOptions,
    addresses: &ClusterIpChange,
) -> Result<CreatedObjectAndWait, WriteFailure> {
    let name = api_object::name(checked.object_tree()).to_owned();
    let name = name.as_str();
    let admitted = admit_object(ctx, attempt, write, checked, None).await?;
    let key = ctx.key(name)?;
    if options.is_dry_run {
        let got = ctx.server.store.get(&key, store::At::Newest).await;
        let got = got.map_err(|error| ctx.store_read_error_status("create", &error))?;
        return match got.entry {
            Some(entry) => Err(already_exists_status(ctx, name, Some(&entry)).into()),
            None => {
                let mut tree = admitted.into_tree();
                if let Some(version) = sent_version {
                    let metadata = api_object::metadata_mut(&mut tree);
                    metadata.insert("resourceVersion".to_owned(), version.clone());
                }
                Ok((VersionedObject { object_tree: tree, revision: None }, None))
            }
        };
    }
    if sent_version.and_then(Value::as_str).is_some_and(api_object::is_resource_version_set) {
        let message = "resourceVersion should not be set on objects to be created";
        return Err(Status::error_without_reason(message).into());
    }
    let stored = match has_pending_initializers(admitted.object_tree()) {
        true => {
            let stored = store_uninitialized_object(ctx, key, admitted, addresses).await;
            stored.map(|(shown, wait)| (shown, Some(wait)))
        }
        false => {
            let stored =
                persist(ctx, attempt, key, admitted, ExpectedKeyState::Absent, addresses, None)
                    .await;
            stored.map(|shown| (shown, None))
        }
    };
    stored.map_err(|failure| match failure {
        WriteFailure::Conflict(current) => {
            already_exists_status(ctx, name, current.as_ref()).into()
        }
        other => other,
    })
}

fn is_name_taken_status(status: &Status) -> bool {
    status.is_status_from_this_server() && status.reason == "AlreadyExists"
}

fn already_exists_status(
    ctx: &RequestContext<'_>,
    name: &str,
    current: Option<&store::Entry>,
) -> Status {
    let mut status = Status::already_exists(&ctx.resource.group_resource(), name);
    let is_terminating = current
        .and_then(|entry| ctx.decode_entry(entry).ok())
        .is_some_and(|tree| api_object::is_terminating(&tree));
    if is_terminating {
        status.message = format!("object is being deleted: {}", status.message);
    }
    status
}

fn generated_names_exhausted_status(ctx: &RequestContext<'_>, name: &str) -> Status {
    let mut status = Status::already_exists(&ctx.resource.group_resource(), name);
    status.message.push_str(", the server was not able to generate a unique name for the object");
    if let Some(details) = &mut status.details {
        details.retry_after_seconds = 1;
    }
    status
}
