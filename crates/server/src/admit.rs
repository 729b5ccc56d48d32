//! What may enter. Today this is the life of namespaces and the guards of roles and bindings; hooks
//! that are configured through the API take their place in the same two steps.

use authz_rbac::{Refusal, bind_target, escalate_target};
use object::{Cause, GroupResource, Status, Tree};
use resources::{Origin, Resource};
use store::Store;

use crate::gate::Admitted;
use crate::rest::Call;
use crate::view::NamespacePhase;

/// What happens to the object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// It is made.
    Create,
    /// It changes.
    Update,
    /// It goes.
    Delete,
}

/// Namespaces that always exist.
const IMMORTAL_NAMESPACES: [&str; 3] = ["default", "kube-public", "kube-system"];

impl<S: Store> Call<'_, S> {
    /// The first step, which may change the object.
    pub(crate) async fn admit_mutating(
        &self,
        operation: Operation,
        tree: Tree,
        _old: Option<&Tree>,
    ) -> Result<Tree, Status> {
        self.check_namespace(operation, &tree).await?;
        Ok(tree)
    }

    /// The second step, which may only refuse.
    pub(crate) async fn admit_validating(
        &self,
        operation: Operation,
        tree: Tree,
        _old: Option<&Tree>,
    ) -> Result<Admitted, Status> {
        if operation == Operation::Create {
            self.check_definition(&tree)?;
        }
        Ok(Admitted::new(tree))
    }

    /// Custom objects are made only while their definition stays. The newest picture is asked, for
    /// the definition may have begun to go since the request found its resource.
    fn check_definition(&self, tree: &Tree) -> Result<(), Status> {
        if !self.resource.is_custom() {
            return Ok(());
        }
        let Resource { group, version, plural, .. } = self.resource;
        let view = self.host.follower.view();
        let origin = view.registry.resource(group, version, plural).map(|own| &own.origin);
        match origin {
            Some(Origin::Custom(served)) if !served.is_terminating => Ok(()),
            Some(Origin::Custom(_) | Origin::BuiltIn(_)) | None => {
                let why = "create not allowed while custom resource definition is terminating";
                let resource = self.resource.group_resource();
                Err(Status::forbidden(&resource, object::name(tree), why))
            }
        }
    }

    /// Things are made only in namespaces that exist and stay.
    async fn check_namespace(&self, operation: Operation, tree: &Tree) -> Result<(), Status> {
        let resource = self.resource.group_resource();
        let name = object::name(tree);
        if operation == Operation::Delete
            && resource == GroupResource::new("", "namespaces")
            && IMMORTAL_NAMESPACES.contains(&name)
        {
            return Err(Status::forbidden(&resource, name, "this namespace may not be deleted"));
        }
        let Some(namespace) = self.namespace else { return Ok(()) };
        if operation != Operation::Create || !self.resource.is_namespaced() {
            return Ok(());
        }
        match self.phase(namespace).await? {
            Some(NamespacePhase::Active) => Ok(()),
            None => Err(Status::not_found(&GroupResource::new("", "namespaces"), namespace)),
            Some(NamespacePhase::Terminating) => {
                let why = format!(
                    "unable to create new content in namespace {namespace} because it is being \
                     terminated"
                );
                let mut status = Status::forbidden(&resource, name, &why);
                if let Some(details) = &mut status.details {
                    details.causes.push(Cause {
                        reason: "NamespaceTerminating".to_owned(),
                        message: format!("namespace {namespace} is being terminated"),
                        field: "metadata.namespace".to_owned(),
                    });
                }
                Err(status)
            }
        }
    }

    /// The phase of a namespace. The picture may be behind another server, so a namespace that is
    /// missing there is looked for once more in the newest state.
    async fn phase(&self, namespace: &str) -> Result<Option<NamespacePhase>, Status> {
        let follower = &self.host.follower;
        if let Some(phase) = follower.view().namespaces.get(namespace) {
            return Ok(Some(*phase));
        }
        let current = self.host.store.current_rev().await;
        let current = current.map_err(|error| self.read_failed("create", &error))?;
        follower.wait_for(current).await;
        Ok(follower.view().namespaces.get(namespace).copied())
    }

    /// Nobody grants what they do not hold, unless they may.
    pub(crate) async fn guard(&self, new: &Tree, old: Option<&Tree>) -> Result<(), Status> {
        if self.resource.group != authz_rbac::GROUP || self.resource.is_custom() {
            return Ok(());
        }
        let decode = |tree: &Tree| -> Result<api::rbac::Object, Status> {
            let value = serde_json::Value::Object(tree.clone());
            let manifest =
                api::rbac::decode(&value).map_err(|e| Status::bad_request(e.to_string()))?;
            manifest.into_unchecked().map_err(|errors| {
                Status::invalid(&self.resource.group_kind(), object::name(tree), &errors)
            })
        };
        let user = self.authorized.user();
        let view = self.host.follower.view();
        let former = old.map(decode).transpose()?;
        let name = object::name(new);
        let refused: Result<(), Refusal> = match decode(new)? {
            api::rbac::Object::Role(role) => {
                if authz_rbac::is_superuser(user)
                    || self.may("escalate", &escalate_target(&role, role.name())).await
                {
                    return Ok(());
                }
                let former = match &former {
                    Some(api::rbac::Object::Role(role)) => Some(role),
                    _ => None,
                };
                view.rbac.confirm_role(user, &role, former)
            }
            api::rbac::Object::Binding(binding) => {
                if authz_rbac::is_superuser(user) || self.may("bind", &bind_target(&binding)).await
                {
                    return Ok(());
                }
                let former = match &former {
                    Some(api::rbac::Object::Binding(binding)) => Some(binding),
                    _ => None,
                };
                view.rbac.confirm_binding(user, &binding, former)
            }
        };
        refused.map_err(|refusal| self.refused(name, refusal))
    }

    fn refused(&self, name: &str, refusal: Refusal) -> Status {
        match refusal {
            Refusal::RoleNotFound { resource, name } => {
                Status::not_found(&GroupResource::new(authz_rbac::GROUP, resource), &name)
            }
            Refusal::UnsupportedKind(error) => Status::unexpected(error.to_string()),
            other => Status::forbidden(&self.resource.group_resource(), name, &other.to_string()),
        }
    }
}
