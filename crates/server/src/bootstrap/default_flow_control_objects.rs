//! The default flow schemas and priority levels: which of the stored ones are missing or stale.

use api_object::{Status, Tree};
use flow_control::bootstrap_objects;
use manifests::flow_control::{
    GROUP, Kind, MandatoryOrSuggested, is_auto_updated, set_auto_update_annotation,
    update_default_flow_control_object,
};

use crate::cluster_snapshot::FlowControlObjects;
use crate::object_ref::ObjectRef;
use crate::server_state::ServerState;

/// A default object, as it is created if it is missing.
struct DefaultFlowControlObject {
    kind: Kind,
    default_object_class: MandatoryOrSuggested,
    object_tree: Tree,
}

/// A write that brings a stored flow schema or priority level up to date.
#[derive(Debug)]
pub(crate) enum DefaultFlowControlChange {
    /// The object is missing.
    Create(Kind, Tree),
    /// The object differs from its default; the default comes first.
    Update(Kind, MandatoryOrSuggested, Tree),
    /// An earlier version of the server had the object as a default one.
    Delete(Kind, String),
}

/// Returns the writes that bring the stored flow schemas and priority levels up to date. It returns none if they
/// equal the defaults of this server, so several servers on one store do not overwrite each other.
///
/// # Errors
/// Never in practice: JSON can express every default object.
pub(crate) fn default_flow_control_changes(
    stored: &FlowControlObjects,
) -> Result<Vec<DefaultFlowControlChange>, serde_json::Error> {
    let defaults = default_flow_control_objects()?;
    let is_default = |kind: Kind, name: &str| {
        defaults.iter().any(|own| own.kind == kind && api_object::name(&own.object_tree) == name)
    };
    let unwanted = stored
        .iter()
        .filter(|(kind, name, tree)| is_auto_updated(tree) && !is_default(*kind, name))
        .map(|(kind, name, _)| DefaultFlowControlChange::Delete(kind, name.to_owned()));
    let mut changes: Vec<DefaultFlowControlChange> = unwanted.collect();
    for DefaultFlowControlObject { kind, default_object_class: class, object_tree: tree } in
        defaults
    {
        match stored.object_tree(kind, api_object::name(&tree)) {
            None => changes.push(DefaultFlowControlChange::Create(kind, tree)),
            Some(own) if update_default_flow_control_object(kind, class, &tree, own).is_some() => {
                changes.push(DefaultFlowControlChange::Update(kind, class, tree));
            }
            Some(_) => {}
        }
    }
    Ok(changes)
}

fn default_flow_control_objects() -> Result<Vec<DefaultFlowControlObject>, serde_json::Error> {
    use MandatoryOrSuggested::{Mandatory, Suggested};
    let mut objects = Vec::new();
    for (class, levels, schemas) in [
        (
            Mandatory,
            bootstrap_objects::mandatory_priority_levels(),
            bootstrap_objects::mandatory_flow_schemas(),
        ),
        (
            Suggested,
            bootstrap_objects::suggested_priority_levels(),
            bootstrap_objects::suggested_flow_schemas(),
        ),
    ] {
        for level in levels {
            let tree = manifests::flow_control::encode_priority_level(&level)?;
            objects.push(DefaultFlowControlObject {
                kind: Kind::PriorityLevelConfiguration,
                default_object_class: class,
                object_tree: tree,
            });
        }
        for schema in schemas {
            let tree = manifests::flow_control::encode_flow_schema(&schema)?;
            objects.push(DefaultFlowControlObject {
                kind: Kind::FlowSchema,
                default_object_class: class,
                object_tree: tree,
            });
        }
    }
    for object in &mut objects {
        set_auto_update_annotation(&mut object.object_tree, true);
    }
    Ok(objects)
}

impl DefaultFlowControlChange {
    /// The name of the object.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Create(_, tree) | Self::Update(_, _, tree) => api_object::name(tree),
            Self::Delete(_, name) => name,
        }
    }

    /// Writes the change. If another writer changed the object in the meantime, the next run of the loop checks it
    /// again.
    ///
    /// # Errors
    /// The status of a write that was refused.
    pub(crate) async fn write_default_flow_control_change(
        self,
        server: &ServerState,
    ) -> Result<(), Status> {
        let written = match self {
            Self::Create(kind, tree) => {
                server.loopback_create(flow_control_object_ref(kind, ""), tree).await.map(drop)
            }
            Self::Update(kind, class, default) => {
                let object_ref = flow_control_object_ref(kind, api_object::name(&default));
                let current =
                    server.loopback_get(object_ref).await?.into_tree_with_resource_version();
                match update_default_flow_control_object(kind, class, &default, &current) {
                    Some(updated) => server.loopback_update(object_ref, updated).await.map(drop),
                    None => Ok(()),
                }
            }
            Self::Delete(kind, name) => {
                let options = api_object::DeleteOptions::default();
                server
                    .loopback_delete(flow_control_object_ref(kind, &name), &options)
                    .await
                    .map(drop)
            }
        };
        match written {
            Err(status)
                if status.is_status_from_this_server() && matches!(status.code, 404 | 409) =>
            {
                Ok(())
            }
            written => written,
        }
    }
}

/// Returns the reference to a flow schema or priority level; to the collection if `name` is empty.
pub(crate) fn flow_control_object_ref(kind: Kind, name: &str) -> ObjectRef<'_> {
    ObjectRef::new((GROUP, "v1", kind.resource()), "", name)
}
