//! Deletion of objects: options, preconditions, finalizers.

use field_errors::{FieldErrors, FieldPath};
use serde_json::Value;

use crate::group_version::{GroupKind, GroupResource};
use crate::object_tree::{
    Tree, integer_member, metadata, metadata_mut, string_list_member, string_member, uid,
};
use crate::status::Status;
use crate::validate_metadata::{FOREGROUND_FINALIZER, ORPHAN_FINALIZER};

/// The deletion propagation policy for dependents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeletionPropagation {
    /// Dependents lose their owner reference and stay.
    Orphan,
    /// Dependents are deleted after the object.
    Background,
    /// Dependents are deleted before the object.
    Foreground,
}

/// The options of a delete request.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DeleteOptions {
    /// Seconds for graceful termination; only some kinds use it.
    pub grace_period_seconds: Option<i64>,
    /// The policy for dependents.
    pub propagation_policy: Option<DeletionPropagation>,
    /// The deprecated form of the policy.
    pub orphan_dependents: Option<bool>,
    /// The body has preconditions, which may be empty.
    pub has_preconditions_member: bool,
    /// The object must have this uid. The empty uid is that of no object.
    pub uid: Option<String>,
    /// The object must have this resourceVersion.
    pub resource_version: Option<String>,
    /// Whether the request is a dry run.
    pub is_dry_run: bool,
    /// The client accepts that the object cannot be read. Every deletion accepts that here, so the option changes nothing.
    pub ignores_read_error: bool,
}

/// The name of the option that accepts an object that cannot be read.
pub const IGNORE_READ_ERROR: &str = "ignoreStoreReadErrorWithClusterBreakingPotential";

/// The kind that errors about options name.
fn delete_options_kind() -> GroupKind {
    GroupKind::new("meta.k8s.io", "DeleteOptions")
}

impl DeleteOptions {
    /// Parses options from the body of a request.
    ///
    /// # Errors
    /// 400 for members of the wrong type, 422 for unknown values.
    pub fn parse_delete_options(tree: &Tree) -> Result<Self, Status> {
        let wrong = |member: &str| {
            Status::bad_request(format!(
                "DeleteOptions in version \"v1\" cannot be handled as a DeleteOptions: json: cannot \
                 unmarshal field {member}"
            ))
        };
        let integer = |member: &str| match tree.get(member) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => value.as_i64().map(Some).ok_or_else(|| wrong(member)),
        };
        let truth = |member: &str| match tree.get(member) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => value.as_bool().map(Some).ok_or_else(|| wrong(member)),
        };
        let preconditions = match tree.get("preconditions") {
            None | Some(Value::Null) => None,
            Some(Value::Object(own)) => Some(own),
            Some(_) => return Err(wrong("preconditions")),
        };
        let precondition = |member: &str| {
            let own = preconditions.and_then(|own| own.get(member)).and_then(Value::as_str);
            own.map(str::to_owned)
        };
        Self {
            grace_period_seconds: integer("gracePeriodSeconds")?,
            orphan_dependents: truth("orphanDependents")?,
            has_preconditions_member: preconditions.is_some(),
            uid: precondition("uid"),
            resource_version: precondition("resourceVersion"),
            ignores_read_error: truth(IGNORE_READ_ERROR)?.unwrap_or_default(),
            ..Self::default()
        }
        .with_propagation_policy_and_dry_run(
            tree.get("propagationPolicy").and_then(Value::as_str),
            &string_list_member(tree, "dryRun"),
        )
    }

    /// Adds the propagation policy and the dry-run values.
    ///
    /// # Errors
    /// 422 for unknown values.
    pub fn with_propagation_policy_and_dry_run(
        mut self,
        policy: Option<&str>,
        dry_run: &[&str],
    ) -> Result<Self, Status> {
        let mut errors = FieldErrors::new();
        if policy.is_some() && self.orphan_dependents.is_some() {
            let detail = "orphanDependents and deletionPropagation cannot be both set";
            errors.push(
                FieldPath::root("propagationPolicy").invalid(policy.unwrap_or_default(), detail),
            );
        }
        self.propagation_policy = match policy {
            None => None,
            Some("Orphan") => Some(DeletionPropagation::Orphan),
            Some("Background") => Some(DeletionPropagation::Background),
            Some("Foreground") => Some(DeletionPropagation::Foreground),
            Some(other) => {
                let known = ["Foreground", "Background", "Orphan", "nil"];
                errors.push(FieldPath::root("propagationPolicy").not_supported(other, &known));
                None
            }
        };
        self.is_dry_run = parse_dry_run(dry_run, &mut errors);
        if self.ignores_read_error {
            for (is_set, other) in [
                (policy.is_some(), ".propagationPolicy"),
                (self.orphan_dependents.is_some(), ".orphanDependents"),
                (self.grace_period_seconds.is_some(), ".gracePeriodSeconds"),
                (self.has_preconditions(), ".preconditions"),
            ] {
                if is_set {
                    let detail = format!("cannot be set together with {other}");
                    errors.push(FieldPath::root(IGNORE_READ_ERROR).invalid(true, &detail));
                }
            }
        }
        match errors.is_empty() {
            true => Ok(self),
            false => Err(Status::invalid_object(&delete_options_kind(), "", &errors)),
        }
    }

    /// Reports whether the client set preconditions, in the body or in the query.
    #[must_use]
    pub fn has_preconditions(&self) -> bool {
        self.has_preconditions_member || self.uid.is_some() || self.resource_version.is_some()
    }

    /// Checks that the options fit a deletion of many objects.
    ///
    /// # Errors
    /// 422 if the client accepts objects that cannot be read.
    pub fn check_delete_collection_options(&self) -> Result<(), Status> {
        if !self.ignores_read_error {
            return Ok(());
        }
        let detail = "is not allowed with DELETECOLLECTION, try again after removing the option";
        let mut errors = FieldErrors::new();
        errors.push(FieldPath::root(IGNORE_READ_ERROR).invalid(true, detail));
        Err(Status::invalid_object(&delete_options_kind(), "", &errors))
    }

    /// Checks uid and resourceVersion of the object.
    ///
    /// # Errors
    /// 409 if one of them differs.
    pub fn check_preconditions(
        &self,
        kind: &GroupKind,
        name: &str,
        tree: &Tree,
        revision: u64,
    ) -> Result<(), Status> {
        // Upstream names the kind here, where other conflicts name the resource.
        let resource = GroupResource::new(&kind.group, &kind.kind);
        if let Some(wanted) = &self.uid
            && wanted != uid(tree)
        {
            let why = format!(
                "the UID in the precondition ({wanted}) does not match the UID in record ({}). The \
                 object might have been deleted and then recreated",
                uid(tree)
            );
            return Err(Status::conflict(&resource, name, &why));
        }
        if let Some(wanted) = &self.resource_version
            && *wanted != revision.to_string()
        {
            let why = format!(
                "the ResourceVersion in the precondition ({wanted}) does not match the \
                 ResourceVersion in record ({revision}). The object might have been modified"
            );
            return Err(Status::conflict(&resource, name, &why));
        }
        Ok(())
    }

    /// Reports whether the options say what happens to the dependents of the object.
    #[must_use]
    pub fn has_propagation_policy(&self) -> bool {
        self.propagation_policy.is_some() || self.orphan_dependents.is_some()
    }

    /// The finalizers of the object after these options are applied.
    ///
    /// Options without a policy keep the policy that the finalizers of the object name. Without that too,
    /// `orphans_by_default` decides, which is a property of the resource.
    #[must_use]
    pub fn finalizers(&self, tree: &Tree, orphans_by_default: bool) -> Vec<String> {
        let own = crate::object_tree::finalizers(tree);
        let names_policy =
            |finalizer: &&str| [ORPHAN_FINALIZER, FOREGROUND_FINALIZER].contains(finalizer);
        let policy = match (self.propagation_policy, self.orphan_dependents) {
            (Some(policy), _) => Some(policy),
            (None, Some(true)) => Some(DeletionPropagation::Orphan),
            (None, Some(false)) => Some(DeletionPropagation::Background),
            (None, None) if orphans_by_default && !own.iter().any(names_policy) => {
                Some(DeletionPropagation::Orphan)
            }
            (None, None) => None,
        };
        let Some(policy) = policy else { return own.into_iter().map(str::to_owned).collect() };
        let kept = own.into_iter().filter(|finalizer| !names_policy(finalizer));
        let mut kept: Vec<String> = kept.map(str::to_owned).collect();
        match policy {
            DeletionPropagation::Orphan => kept.push(ORPHAN_FINALIZER.to_owned()),
            DeletionPropagation::Foreground => kept.push(FOREGROUND_FINALIZER.to_owned()),
            DeletionPropagation::Background => {}
        }
        kept
    }
}

/// Reports whether a request is a dry run; unknown values are errors.
pub fn parse_dry_run(values: &[&str], errors: &mut FieldErrors) -> bool {
    if values.iter().any(|value| *value != "All") {
        let shown = field_errors::BadValue::Json(Value::from(values.to_vec()).to_string());
        errors.push(FieldPath::root("dryRun").not_supported(shown, &["All"]));
    }
    !values.is_empty()
}

/// Sets deletion timestamp and finalizers; `false` if nothing changes because deletion has already
/// begun.
pub fn mark_for_deletion(tree: &mut Tree, finalizers: &[String], now: &str) -> bool {
    let own = metadata_mut(tree);
    let mut is_changed = false;
    let wanted: Vec<&str> = finalizers.iter().map(String::as_str).collect();
    if string_list_member(own, "finalizers") != wanted {
        own.insert("finalizers".to_owned(), Value::from(wanted));
        is_changed = true;
    }
    if string_member(own, "deletionTimestamp").is_empty() {
        own.insert("deletionTimestamp".to_owned(), now.into());
        own.insert("deletionGracePeriodSeconds".to_owned(), 0.into());
        let generation = integer_member(own, "generation");
        if generation > 0 {
            own.insert("generation".to_owned(), generation.saturating_add(1).into());
        }
        is_changed = true;
    }
    is_changed
}

/// Reports whether an object is being deleted and has no finalizers or grace period left.
#[must_use]
pub fn is_ready_for_removal(tree: &Tree) -> bool {
    let own = metadata(tree);
    !string_member(own, "deletionTimestamp").is_empty()
        && integer_member(own, "deletionGracePeriodSeconds") == 0
        && string_list_member(own, "finalizers").is_empty()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn options(value: Value) -> Result<DeleteOptions, Status> {
        DeleteOptions::parse_delete_options(value.as_object().unwrap())
    }

    #[test]
    fn unknown_values_are_refused() {
        let status = options(json!({"propagationPolicy": "Bogus"})).unwrap_err();
        assert_eq!(status.code, 422);
        assert_eq!(
            status.message,
            "DeleteOptions.meta.k8s.io \"\" is invalid: propagationPolicy: Unsupported value: \
             \"Bogus\": supported values: \"Foreground\", \"Background\", \"Orphan\", \"nil\""
        );
        let both = json!({"propagationPolicy": "Orphan", "orphanDependents": true});
        assert_eq!(options(both).unwrap_err().code, 422);
        let status = options(json!({"dryRun": ["foo"]})).unwrap_err();
        assert!(
            status
                .message
                .ends_with("dryRun: Unsupported value: [\"foo\"]: supported values: \"All\"")
        );
        assert_eq!(options(json!({"gracePeriodSeconds": "x"})).unwrap_err().code, 400);
    }

    #[test]
    fn preconditions_name_the_kind() {
        let tree = json!({"metadata": {"uid": "b"}}).as_object().unwrap().clone();
        let kind = GroupKind::new("", "ConfigMap");
        let own = options(json!({"preconditions": {"uid": "a"}})).unwrap();
        let status = own.check_preconditions(&kind, "x", &tree, 7).unwrap_err();
        assert_eq!(
            status.message,
            "Operation cannot be fulfilled on ConfigMap \"x\": the UID in the precondition (a) does \
             not match the UID in record (b). The object might have been deleted and then recreated"
        );
        let own = options(json!({"preconditions": {"uid": "b", "resourceVersion": "6"}})).unwrap();
        assert_eq!(own.check_preconditions(&kind, "x", &tree, 7).unwrap_err().code, 409);
        assert!(own.check_preconditions(&kind, "x", &tree, 6).is_ok());
    }

    #[test]
    fn empty_preconditions_hold_for_no_object() {
        let tree = json!({"metadata": {"uid": "b"}}).as_object().unwrap().clone();
        let kind = GroupKind::new("", "ConfigMap");
        for (preconditions, is_met) in [
            (json!({"uid": ""}), false),
            (json!({"resourceVersion": ""}), false),
            (json!({"uid": null}), true),
            (json!({}), true),
        ] {
            let own = options(json!({"preconditions": preconditions})).unwrap();
            assert!(own.has_preconditions());
            let found = own.check_preconditions(&kind, "x", &tree, 7);
            assert_eq!(found.is_ok(), is_met, "{preconditions}");
        }
        let both = json!({"preconditions": {}, IGNORE_READ_ERROR: true});
        assert!(options(both).unwrap_err().message.ends_with("set together with .preconditions"));
    }

    #[test]
    fn deletion_begins_once() {
        let object = json!({"metadata": {"finalizers": ["a/b"], "generation": 3}});
        let mut tree = object.as_object().unwrap().clone();
        let own = options(json!({"propagationPolicy": "Foreground"})).unwrap();
        let finalizers = own.finalizers(&tree, false);
        assert_eq!(finalizers, ["a/b", "foregroundDeletion"]);
        assert!(mark_for_deletion(&mut tree, &finalizers, "now"));
        assert!(!mark_for_deletion(&mut tree, &finalizers, "later"));
        let want = json!({"finalizers": ["a/b", "foregroundDeletion"], "generation": 4,
            "deletionTimestamp": "now", "deletionGracePeriodSeconds": 0});
        assert_eq!(tree["metadata"], want);
        assert!(!is_ready_for_removal(&tree));
        let background = options(json!({"propagationPolicy": "Background"})).unwrap();
        assert_eq!(background.finalizers(&tree, true), ["a/b"]);
        metadata_mut(&mut tree).shift_remove("finalizers");
        assert!(is_ready_for_removal(&tree));
    }

    #[test]
    fn the_default_of_the_resource_applies_without_any_other_policy() {
        let foreground = [FOREGROUND_FINALIZER];
        for (sent, own, want) in [
            (json!({}), &[][..], &[ORPHAN_FINALIZER][..]),
            (json!({}), &["a/b"], &["a/b", ORPHAN_FINALIZER]),
            (json!({}), &foreground, &foreground),
            (json!({"propagationPolicy": "Background"}), &[], &[]),
            (json!({"orphanDependents": false}), &[], &[]),
            (json!({"propagationPolicy": "Foreground"}), &[], &foreground),
        ] {
            let object = json!({"metadata": {"finalizers": own}});
            let options = options(sent.clone()).unwrap();
            let found = options.finalizers(object.as_object().unwrap(), true);
            assert_eq!(found, want, "{sent} {own:?}");
            assert_eq!(options.has_propagation_policy(), sent != json!({}));
        }
    }
}
