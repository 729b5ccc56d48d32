//! The default flow schemas and priority levels: which of the stored ones are missing or stale.

use api_object::{Status, Tree};
use flow_control::bootstrap;
use manifests::flow_control::{
    DefaultObjectClass, GROUP, Kind, is_auto_updated, set_auto_update_annotation,
    update_default_object,
};

use crate::cluster_snapshot::FlowControlObjects;
use crate::object_ref::ObjectRef;
use crate::server_state::ServerState;

/// A default object, as it is created if it is missing.
struct DefaultObject {
    kind: Kind,
    class: DefaultObjectClass,
    tree: Tree,
}

/// A write that brings the stored objects up to date.
#[derive(Debug)]
pub(crate) enum DefaultObjectChange {
    /// The object is missing.
    Create(Kind, Tree),
    /// The object differs from its default; the default comes first.
    Update(Kind, DefaultObjectClass, Tree),
    /// An earlier version of the server had the object as a default one.
    Delete(Kind, String),
}

/// The writes that bring the stored objects up to date. There are none if the stored objects are those that
/// this server would write, so several servers on one store do not write in turn.
///
/// # Errors
/// Never in practice: JSON can express every default object.
pub(crate) fn default_object_changes(
    stored: &FlowControlObjects,
) -> Result<Vec<DefaultObjectChange>, serde_json::Error> {
    let defaults = default_objects()?;
    let is_default = |kind: Kind, name: &str| {
        defaults.iter().any(|own| own.kind == kind && api_object::name(&own.tree) == name)
    };
    let unwanted = stored
        .iter()
        .filter(|(kind, name, tree)| is_auto_updated(tree) && !is_default(*kind, name))
        .map(|(kind, name, _)| DefaultObjectChange::Delete(kind, name.to_owned()));
    let mut changes: Vec<DefaultObjectChange> = unwanted.collect();
    for DefaultObject { kind, class, tree } in defaults {
        match stored.tree(kind, api_object::name(&tree)) {
            None => changes.push(DefaultObjectChange::Create(kind, tree)),
            Some(own) if update_default_object(kind, class, &tree, own).is_some() => {
                changes.push(DefaultObjectChange::Update(kind, class, tree));
            }
            Some(_) => {}
        }
    }
    Ok(changes)
}

fn default_objects() -> Result<Vec<DefaultObject>, serde_json::Error> {
    use DefaultObjectClass::{Mandatory, Suggested};
    let mut objects = Vec::new();
    for (class, levels, schemas) in [
        (Mandatory, bootstrap::mandatory_levels(), bootstrap::mandatory_schemas()),
        (Suggested, bootstrap::suggested_levels(), bootstrap::suggested_schemas()),
    ] {
        for level in levels {
            let tree = manifests::flow_control::encode_priority_level(&level)?;
            objects.push(DefaultObject { kind: Kind::PriorityLevelConfiguration, class, tree });
        }
        for schema in schemas {
            let tree = manifests::flow_control::encode_flow_schema(&schema)?;
            objects.push(DefaultObject { kind: Kind::FlowSchema, class, tree });
        }
    }
    for object in &mut objects {
        set_auto_update_annotation(&mut object.tree, true);
    }
    Ok(objects)
}

impl DefaultObjectChange {
    /// The name of the object.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Create(_, tree) | Self::Update(_, _, tree) => api_object::name(tree),
            Self::Delete(_, name) => name,
        }
    }

    /// Writes the change. Somebody else may have written the object in the meantime; it is looked at again later.
    ///
    /// # Errors
    /// The status of a write that was refused.
    pub(crate) async fn apply(self, server: &ServerState) -> Result<(), Status> {
        let written = match self {
            Self::Create(kind, tree) => {
                server.loopback_create(object_ref(kind, ""), tree).await.map(drop)
            }
            Self::Update(kind, class, default) => {
                let object_ref = object_ref(kind, api_object::name(&default));
                let current = server.loopback_get(object_ref).await?.into_tree();
                match update_default_object(kind, class, &default, &current) {
                    Some(updated) => server.loopback_update(object_ref, updated).await.map(drop),
                    None => Ok(()),
                }
            }
            Self::Delete(kind, name) => {
                let options = api_object::DeleteOptions::default();
                server.loopback_delete(object_ref(kind, &name), &options).await.map(drop)
            }
        };
        match written {
            Err(status) if status.is_from_this_server() && matches!(status.code, 404 | 409) => {
                Ok(())
            }
            written => written,
        }
    }
}

/// An object of the group; the collection if there is no name.
pub(crate) fn object_ref(kind: Kind, name: &str) -> ObjectRef<'_> {
    ObjectRef::new((GROUP, "v1", kind.resource()), "", name)
}
