//! `create`.

use admission::{Initializers, Operation, is_uninitialized, shape_initializers};
use api_object::{GroupKind, Status, Tree};
use authz::User;
use serde_json::Value;
use store::{Expect, Store};

use crate::admit::{Attempt, Write};
use crate::cluster_ips::AddressChange;
use crate::initialize::Waiting;
use crate::rest::persist::NotWritten;
use crate::rest::{Call, Shown, WriteOptions};

/// How many generated names are tried before the client has to.
const NAME_TRIES: usize = 8;

/// A new object.
#[derive(Debug)]
pub(crate) struct Created {
    pub(crate) shown: Shown,
    /// It waits for initializers, but the client does not wait for it.
    pub(crate) is_pending: bool,
}

impl Created {
    /// The code of the answer.
    pub(crate) fn code(&self) -> u16 {
        if self.is_pending { 202 } else { 201 }
    }
}

/// An object that was stored, or would have been.
struct Stored {
    shown: Shown,
    /// Lets its creator wait for initializers.
    waiting: Option<Waiting>,
}

impl<S: Store> Call<'_, S> {
    /// Makes a new object of what the client sent.
    pub(crate) async fn create(
        &mut self,
        tree: Tree,
        options: WriteOptions,
    ) -> Result<Created, Status> {
        let includes_uninitialized = self.query.includes_uninitialized()?;
        let n_warnings = self.warnings.len();
        self.admission.may_suppose = true;
        let stored = loop {
            self.warnings.truncate(n_warnings);
            let outcome = self.create_once(tree.clone(), options).await;
            match self.conclude(outcome, Operation::Create).await {
                Attempt::Over(result) => break result?,
                Attempt::Again(_) => {}
            }
        };
        match stored {
            Stored { shown, waiting: Some(waiting) } if !includes_uninitialized => {
                let shown = self.wait_initialized(shown, waiting).await?;
                Ok(Created { shown, is_pending: false })
            }
            Stored { shown, .. } => {
                let is_pending = is_uninitialized(&shown.tree);
                Ok(Created { shown, is_pending })
            }
        }
    }

    async fn create_once(
        &mut self,
        mut tree: Tree,
        options: WriteOptions,
    ) -> Result<Stored, NotWritten> {
        self.shape(&mut tree)?;
        api_object::check_and_set_namespace(&mut tree, self.namespace.unwrap_or_default())?;
        self.warn_about_owners(&mut tree);
        let write = Write::create("", options, self.query);
        let mut tree = self.admit_mutating(&write, tree, None).await?;
        // A hook may have changed these, too.
        api_object::check_and_set_namespace(&mut tree, self.namespace.unwrap_or_default())?;
        if !self.name.is_empty() {
            self.fit_name(&mut tree)?;
        }
        self.warn_about_owners(&mut tree);
        let metadata = api_object::metadata(&tree);
        let prefix = api_object::string_member(metadata, "generateName").to_owned();
        if !api_object::string_member(metadata, "name").is_empty() || prefix.is_empty() {
            return self.create_named(&write, tree, options).await;
        }
        let mut name = String::new();
        for _ in 0..NAME_TRIES {
            name = api_object::generate_name(&prefix, self.server.random());
            let mut tree = tree.clone();
            api_object::metadata_mut(&mut tree).insert("name".to_owned(), name.as_str().into());
            match self.create_named(&write, tree, options).await {
                Err(NotWritten::Failed(status))
                    if status.is_from_this_server() && status.reason == "AlreadyExists" => {}
                outcome => return outcome,
            }
        }
        Err(self.names_exhausted(&name).into())
    }

    async fn create_named(
        &mut self,
        write: &Write,
        mut tree: Tree,
        options: WriteOptions,
    ) -> Result<Stored, NotWritten> {
        let now = api_object::rfc3339(self.now);
        let uid = api_object::uuid4(self.server.random());
        let requester = requester(self.authorized.user());
        api_resources::before_create(self.resource, &mut tree, &requester)?;
        api_object::set_creation_metadata(&mut tree, uid, &now, self.resource.has_generation)?;
        let name = api_object::name(&tree).to_owned();
        let rule = self.resource.name_rule;
        let name_faults = |name: &str, is_prefix: bool| match is_prefix {
            true => rule.prefix_faults(name),
            false => rule.faults(name),
        };
        let mut errors =
            api_object::validate_metadata(&tree, self.resource.is_namespaced(), name_faults);
        errors.append(api_resources::validate_create(self.resource, &tree));
        let pending_max = self.server.initialization.pending_max;
        errors.append(Initializers::of(&tree).create_errors(pending_max));
        if !errors.is_empty() {
            return Err(Status::invalid(&self.resource.group_kind(), &name, &errors).into());
        }
        self.guard(&tree, None).await?;
        self.check_configuration(&tree, None).await?;
        let spare = self.is_service().then(|| tree.clone());
        loop {
            let addresses = self.take_address(&mut tree, None, options.is_dry_run).await?;
            match (self.store_new(write, tree, &name, options, &addresses).await, &spare) {
                // Hooks see what is stored, so they are asked about the next address, too.
                (Err(NotWritten::AddressTaken), Some(spare)) => tree = spare.clone(),
                (outcome, _) => return outcome,
            }
            self.check_time()?;
        }
    }

    async fn store_new(
        &mut self,
        write: &Write,
        tree: Tree,
        name: &str,
        options: WriteOptions,
        addresses: &AddressChange,
    ) -> Result<Stored, NotWritten> {
        let admitted = self.admit_validating(write, tree, None).await?;
        let key = self.key(name)?;
        if options.is_dry_run {
            let got = self.server.store.get(&key, store::At::Newest).await;
            let got = got.map_err(|error| self.read_failed("create", &error))?;
            return match got.entry {
                Some(entry) => Err(self.exists(name, Some(&entry)).into()),
                None => {
                    let shown = Shown { tree: admitted.into_tree(), revision: None };
                    Ok(Stored { shown, waiting: None })
                }
            };
        }
        let written = match is_uninitialized(admitted.tree()) {
            true => {
                let written = self.store_uninitialized(key, &admitted, addresses).await;
                written.map(|(revision, waiting)| (revision, Some(waiting)))
            }
            false => {
                let written = self.persist(key, &admitted, Expect::Absent, addresses, None).await;
                written.map(|revision| (revision, None))
            }
        };
        match written {
            Ok((revision, waiting)) => {
                let shown = Shown { tree: admitted.into_tree(), revision: Some(revision) };
                Ok(Stored { shown, waiting })
            }
            Err(NotWritten::Changed(current)) => Err(self.exists(name, current.as_ref()).into()),
            Err(refused) => Err(refused),
        }
    }

    /// Brings metadata into shape.
    pub(crate) fn shape(&self, tree: &mut Tree) -> Result<(), Status> {
        let shaped = api_object::normalize_metadata(tree).and_then(|()| shape_initializers(tree));
        shaped.map_err(|error| {
            let (kind, version) = (&self.resource.kind, &self.resource.version);
            Status::bad_request(format!(
                "{kind} in version \"{version}\" cannot be handled as a {kind}: {error}"
            ))
        })
    }

    pub(crate) fn warn_about_owners(&mut self, tree: &mut Tree) {
        let repeated = api_object::remove_duplicate_owners(tree);
        if !repeated.is_empty() {
            self.warnings.push(api_object::duplicate_owners_warning(&repeated));
        }
    }

    fn exists(&self, name: &str, current: Option<&store::Entry>) -> Status {
        let mut status = Status::already_exists(&self.resource.group_resource(), name);
        let is_going = current
            .and_then(|entry| self.parse(entry).ok())
            .is_some_and(|tree| api_object::is_terminating(&tree));
        if is_going {
            status.message = format!("object is being deleted: {}", status.message);
        }
        status
    }

    fn names_exhausted(&self, name: &str) -> Status {
        let mut status = Status::already_exists(&self.resource.group_resource(), name);
        status
            .message
            .push_str(", the server was not able to generate a unique name for the object");
        if let Some(details) = &mut status.details {
            details.retry_after_seconds = 1;
        }
        status
    }

    pub(crate) fn group_kind(&self) -> GroupKind {
        self.resource.group_kind()
    }
}

/// A user as objects say who asked for them.
pub(crate) fn requester(user: &User) -> Tree {
    let mut requester = Tree::new();
    requester.insert("username".to_owned(), user.name.as_str().into());
    if !user.uid.is_empty() {
        requester.insert("uid".to_owned(), user.uid.as_str().into());
    }
    requester.insert("groups".to_owned(), user.groups.clone().into());
    if !user.extra.is_empty() {
        let extra = user.extra.iter().map(|(key, values)| (key.clone(), values.clone().into()));
        requester.insert("extra".to_owned(), Value::Object(extra.collect()));
    }
    requester
}
