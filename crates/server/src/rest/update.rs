//! `update` and `patch`: both read the object, make the next one of it, and write that if nobody was
//! faster.

use admission::{Initializers, Operation, is_uninitialized};
use api_object::{Status, Tree};
use api_resources::Verb;
use codec::PatchType;
use field_errors::{FieldErrors, FieldPath};
use object_patch::{PatchError, SmpSchema};
use store::{At, Entry, Expect, Revision, Store};

use crate::admit::{Attempt, Write};
use crate::cluster_ips::AddressChange;
use crate::initialize::has_failed;
use crate::rest::persist::NotWritten;
use crate::rest::query::parse_version;
use crate::rest::{Call, FieldValidation, Shown, WriteOptions};

/// How the next object comes about.
#[derive(Debug)]
pub(crate) enum Change {
    /// The client sent it.
    Replace(Tree),
    /// The client sent what is different.
    Patch(PatchType, bytes::Bytes, FieldValidation),
}

/// What an update came to.
#[derive(Debug)]
pub(crate) struct Updated {
    pub(crate) shown: Shown,
    /// The code of the answer, which says whether there was an object before.
    pub(crate) code: u16,
}

impl<S: Store> Call<'_, S> {
    /// Changes the object that was authorized, or the part of it that the subresource names.
    pub(crate) async fn update(
        &mut self,
        change: &Change,
        options: WriteOptions,
    ) -> Result<Updated, Status> {
        let key = self.key(self.name)?;
        let mut known: Option<Option<Entry>> = None;
        let n_warnings = self.warnings.len();
        self.admission.may_suppose = true;
        loop {
            self.warnings.truncate(n_warnings);
            let current = match known.take() {
                Some(current) => current,
                None => {
                    let got = self.timed("get", self.server.store.get(&key, At::Newest)).await;
                    got.map_err(|error| self.read_failed("update", &error))?.entry
                }
            };
            let Some(entry) = current else {
                return self.create_on_update(change, options).await;
            };
            let outcome = self.update_once(change, options, &entry).await;
            match self.conclude(outcome, Operation::Update).await {
                Attempt::Over(result) => return result,
                Attempt::Again(current) => known = current,
            }
        }
    }

    /// Creates the object that an update names, if the user may do that too.
    async fn create_on_update(
        &mut self,
        change: &Change,
        options: WriteOptions,
    ) -> Result<Updated, Status> {
        let Change::Replace(tree) = change else { return Err(self.not_found(self.name)) };
        if !self.resource.is_created_on_update || self.subresource.is_some() {
            return Err(self.not_found(self.name));
        }
        let authorized = self.authorize_verb(Verb::Create).await?;
        let mut tree = tree.clone();
        self.shape(&mut tree)?;
        self.fit_name(&mut tree)?;
        api_object::metadata_mut(&mut tree).shift_remove("resourceVersion");
        let mut create = self.under(&authorized);
        let created = create.create(tree, options).await;
        let Call { warnings, admission, expected_mark, .. } = create;
        (self.warnings, self.admission, self.expected_mark) = (warnings, admission, expected_mark);
        let created = created?;
        Ok(Updated { code: created.code(), shown: created.shown })
    }

    async fn update_once(
        &mut self,
        change: &Change,
        options: WriteOptions,
        entry: &Entry,
    ) -> Result<Updated, NotWritten> {
        let (name, subresource) = (self.name, self.subresource);
        let old = self.parse_authorized(entry)?;
        let is_patch = matches!(change, Change::Patch(..));
        let mut new = self.next(change, &old, entry.mod_rev)?;
        self.shape(&mut new)?;
        self.fit_name(&mut new)?;
        api_object::check_and_set_namespace(&mut new, self.namespace.unwrap_or_default())?;
        self.warn_about_owners(&mut new);
        if !is_patch {
            self.check_uid(name, &new, &old)?;
        }
        // Hooks select and see the object as it will be stored.
        api_resources::before_update(self.resource, &mut new, &old, subresource)?;
        let write = Write::update(subresource, options, self.query).at(entry.mod_rev);
        let mut new = self.admit_mutating(&write, new, Some(&old)).await?;
        // The patch of a hook that changes these is refused. The object is written under the authorized
        // name whatever happens, and must bear it.
        self.fit_name(&mut new)?;
        api_object::check_and_set_namespace(&mut new, self.namespace.unwrap_or_default())?;
        self.warn_about_owners(&mut new);
        self.check_version(name, &mut new, entry.mod_rev, is_patch)?;
        api_resources::set_condition_times(self.resource, &mut new, &old, self.now);
        let rule = self.resource.name_rule;
        let is_namespaced = self.resource.is_namespaced();
        let name_faults = |name: &str, is_prefix: bool| match is_prefix {
            true => rule.prefix_faults(name),
            false => rule.faults(name),
        };
        let mut errors = api_object::validate_metadata(&new, is_namespaced, name_faults);
        errors.append(api_object::validate_metadata_update(&new, &old));
        errors.append(self.content_errors(&new, &old, subresource));
        if !errors.is_empty() {
            return Err(Status::invalid(&self.group_kind(), name, &errors).into());
        }
        self.guard(&new, Some(&old)).await?;
        self.check_configuration(&new, Some(&old)).await?;
        let spare = (self.is_service() && subresource.is_none()).then(|| new.clone());
        loop {
            let addresses = match subresource {
                None => self.take_address(&mut new, Some(&old), options.is_dry_run).await?,
                Some(_) => AddressChange::default(),
            };
            let stored =
                self.store_changed(name, &write, new, &old, options, entry.mod_rev, &addresses);
            match (stored.await, &spare) {
                // Hooks see what is stored, so they are asked about the next address, too.
                (Err(NotWritten::AddressTaken), Some(spare)) => new = spare.clone(),
                (outcome, _) => return outcome,
            }
            self.check_time()?;
        }
    }

    async fn store_changed(
        &mut self,
        name: &str,
        write: &Write,
        new: Tree,
        old: &Tree,
        options: WriteOptions,
        revision: Revision,
        addresses: &AddressChange,
    ) -> Result<Updated, NotWritten> {
        let admitted = self.admit_validating(write, new, Some(old)).await?;
        let done = |tree: Tree, revision: Revision| {
            let shown = Shown { tree, revision: Some(revision) };
            Ok(Updated { shown, code: 200 })
        };
        if options.is_dry_run {
            return done(admitted.into_tree(), revision);
        }
        let key = self.key(name)?;
        let expect = Expect::At(revision);
        if self.is_over(admitted.tree()) {
            self.remove(&key, &admitted, old, expect).await?;
            return done(admitted.into_tree(), revision);
        }
        // The order in which a client names members is no change.
        let revision = match admitted.tree() == old {
            true => revision,
            false => self.persist(key.clone(), &admitted, expect, addresses, Some(old)).await?,
        };
        if has_failed(admitted.tree()) {
            self.end_failed(&key, admitted.tree(), revision).await;
        }
        done(admitted.into_tree(), revision)
    }

    /// What is wrong with the next state of an object, its metadata aside. Nobody relies on an object
    /// that is not initialized, so that initializers may change what is fixed later.
    fn content_errors(&self, new: &Tree, old: &Tree, subresource: Option<&str>) -> FieldErrors {
        let mut errors = match subresource.is_none() && is_uninitialized(old) {
            true => api_resources::validate_create(self.resource, new),
            false => api_resources::validate_update(self.resource, new, old, subresource),
        };
        let pending_max = self.server.initialization.pending_max;
        let (new, old) = (Initializers::of(new), Initializers::of(old));
        errors.append(new.update_errors(&old, pending_max));
        errors
    }

    /// The object that the client wants.
    fn next(&mut self, change: &Change, old: &Tree, revision: Revision) -> Result<Tree, Status> {
        let (patch_type, bytes, field_validation) = match change {
            Change::Replace(tree) => return Ok(tree.clone()),
            Change::Patch(patch_type, bytes, validation) => (patch_type, bytes, validation),
        };
        let current = Shown { tree: old.clone(), revision: Some(revision) }.into_tree();
        let parsed = codec::parse_json(bytes).map_err(|_| PatchError::NotJson.to_status())?;
        self.check_findings(&parsed.findings, *field_validation)?;
        let patched = match patch_type {
            PatchType::Json => object_patch::json_patch(current, parsed.value),
            PatchType::Merge => object_patch::merge_patch(current, parsed.value),
            PatchType::StrategicMerge => {
                let schema = SmpSchema::of(&self.resource.group, &self.resource.kind);
                object_patch::strategic_merge_patch(current, parsed.value, &schema)
            }
        };
        let mut patched = patched.map_err(|error| error.to_status())?;
        for (member, own) in [
            ("apiVersion", self.resource.group_version().to_string()),
            ("kind", self.resource.kind.clone()),
        ] {
            if api_object::string_member(&patched, member) != own {
                let mut errors = FieldErrors::new();
                let found = api_object::string_member(&patched, member).to_owned();
                let detail = format!("must be {own}");
                errors.push(FieldPath::root(member).invalid(found, &detail));
                let name = api_object::name(old);
                return Err(Status::invalid(&self.group_kind(), name, &errors));
            }
        }
        let expected = codec::ExpectedKind {
            group: &self.resource.group,
            version: &self.resource.version,
            kind: &self.resource.kind,
            is_custom: self.resource.is_custom(),
        };
        let findings = codec::conform_object(&mut patched, &expected).map_err(|error| {
            let result = serde_json::Value::Object(patched.clone()).to_string();
            patch_invalid(&result, &error.to_string())
        })?;
        self.check_findings(&findings, *field_validation)?;
        Ok(patched)
    }

    /// Fields that stand twice in a patch, or that the kind does not have.
    fn check_findings(
        &mut self,
        findings: &[codec::Finding],
        validation: FieldValidation,
    ) -> Result<(), Status> {
        match validation {
            FieldValidation::Ignore => Ok(()),
            FieldValidation::Warn => {
                self.warnings.extend(findings.iter().map(ToString::to_string));
                Ok(())
            }
            FieldValidation::Strict if findings.is_empty() => Ok(()),
            FieldValidation::Strict => {
                let texts: Vec<String> = findings.iter().map(ToString::to_string).collect();
                let detail = format!("strict decoding error: {}", texts.join(", "));
                Err(patch_invalid("", &detail))
            }
        }
    }

    /// Gives an object the name that was authorized, and refuses one that has another.
    pub(crate) fn fit_name(&self, tree: &mut Tree) -> Result<(), Status> {
        let (metadata, name) = (api_object::metadata_mut(tree), self.name);
        match api_object::string_member(metadata, "name") {
            "" => {
                metadata.insert("name".to_owned(), name.into());
                Ok(())
            }
            own if own == name => Ok(()),
            own => Err(Status::bad_request(format!(
                "the name of the object ({own}) does not match the name on the URL ({name})"
            ))),
        }
    }

    fn check_uid(&self, name: &str, new: &Tree, old: &Tree) -> Result<(), Status> {
        let (own, stored) = (api_object::uid(new), api_object::uid(old));
        if own.is_empty() || own == stored {
            return Ok(());
        }
        let why = format!(
            "Precondition failed: UID in precondition: {own}, UID in object meta: {stored}"
        );
        Err(Status::conflict(&self.resource.group_resource(), name, &why))
    }

    /// Whether the client changes what it has seen. The version is not part of what is stored.
    fn check_version(
        &self,
        name: &str,
        new: &mut Tree,
        revision: Revision,
        is_patch: bool,
    ) -> Result<(), Status> {
        let version = api_object::metadata_mut(new).shift_remove("resourceVersion");
        let version = version.as_ref().and_then(|own| own.as_str()).unwrap_or_default();
        if version.is_empty() || version == "0" {
            if is_patch || !self.resource.is_resource_version_required {
                return Ok(());
            }
            let mut errors = FieldErrors::new();
            let path = FieldPath::root("metadata");
            let path = path.child("resourceVersion");
            errors.push(path.invalid(0, "must be specified for an update"));
            return Err(Status::invalid(&self.group_kind(), name, &errors));
        }
        if parse_version(version)? == revision.number() {
            return Ok(());
        }
        let why = "the object has been modified; please apply your changes to the latest version \
                   and try again";
        Err(Status::conflict(&self.resource.group_resource(), name, why))
    }

    /// Whether the last thing that held back a deletion is gone.
    fn is_over(&self, tree: &Tree) -> bool {
        api_object::is_ready_for_removal(tree)
            && !api_resources::blocks_removal(self.resource, tree)
    }
}

/// The answer to a patch that does not make an object of its kind.
fn patch_invalid(result: &str, why: &str) -> Status {
    let mut errors = FieldErrors::new();
    errors.push(FieldPath::root("patch").invalid(result, why));
    Status::invalid(&api_object::GroupKind::new("", ""), "", &errors)
}
