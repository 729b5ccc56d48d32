//! Flow schemas and priority levels of the snapshot.

use std::collections::BTreeMap;
use std::sync::Arc;

use api_object::Tree;
use bytes::Bytes;
use flow_control::{FlowController, FlowSchema, PriorityLevel, bootstrap_objects};
use manifests::flow_control::Kind;

use super::StoredObjectDecodeError;

/// The stored flow schemas and priority levels, by name. Objects that cannot be decoded are left out.
#[derive(Debug, Clone, Default)]
pub(crate) struct FlowControlObjects {
    /// The flow schemas, whether their levels exist or not.
    pub(crate) flow_schemas: BTreeMap<String, StoredFlowSchema>,
    /// The priority levels, whether schemas refer to them or not.
    pub(crate) priority_levels: BTreeMap<String, StoredPriorityLevel>,
}

/// A flow schema as it is stored, and as requests are classified by it.
#[derive(Debug, Clone)]
pub(crate) struct StoredFlowSchema {
    /// The schema with its defaults, as the controller uses it.
    pub(crate) flow_schema: Arc<FlowSchema>,
    /// The object as the API returns it, without its resourceVersion.
    pub(crate) object_tree: Arc<Tree>,
}

/// A priority level as it is stored, and as requests are limited by it.
#[derive(Debug, Clone)]
pub(crate) struct StoredPriorityLevel {
    /// The level with its defaults, as the controller uses it.
    pub(crate) priority_level: PriorityLevel,
    /// The object as the API returns it, without its resourceVersion.
    pub(crate) object_tree: Arc<Tree>,
}

impl FlowControlObjects {
    /// Configures the flow controller with these objects. A missing mandatory object takes effect as if it existed,
    /// so that every request has a priority level. While nothing is stored, all default objects take effect.
    pub(crate) fn configure_flow_controller(&self, controller: &FlowController) {
        let (mut default_schemas, mut default_levels) = (
            bootstrap_objects::mandatory_flow_schemas(),
            bootstrap_objects::mandatory_priority_levels(),
        );
        if self.flow_schemas.is_empty() && self.priority_levels.is_empty() {
            default_schemas.extend(bootstrap_objects::suggested_flow_schemas());
            default_levels.extend(bootstrap_objects::suggested_priority_levels());
        }
        let stored = self.flow_schemas.values().map(|stored| Arc::clone(&stored.flow_schema));
        let missing = default_schemas.into_iter();
        let missing = missing.filter(|schema| !self.flow_schemas.contains_key(&schema.name));
        let schemas = stored.chain(missing.map(Arc::new)).collect();
        let stored = self.priority_levels.values().map(|stored| stored.priority_level.clone());
        let missing = default_levels.into_iter().map(|default| default.priority_level);
        let missing = missing.filter(|level| !self.priority_levels.contains_key(&level.name));
        let levels: Vec<PriorityLevel> = stored.chain(missing).collect();
        controller.replace_schemas_and_levels(schemas, &levels);
    }

    /// The stored object of this kind and name, if it can be decoded.
    pub(crate) fn object_tree(&self, kind: Kind, name: &str) -> Option<&Arc<Tree>> {
        match kind {
            Kind::FlowSchema => self.flow_schemas.get(name).map(|stored| &stored.object_tree),
            Kind::PriorityLevelConfiguration => {
                self.priority_levels.get(name).map(|stored| &stored.object_tree)
            }
        }
    }

    /// All stored objects that can be decoded, with their kinds and names.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Kind, &str, &Arc<Tree>)> {
        let schemas = self.flow_schemas.iter();
        let schemas =
            schemas.map(|(name, stored)| (Kind::FlowSchema, name.as_str(), &stored.object_tree));
        let levels = self.priority_levels.iter().map(|(name, stored)| {
            (Kind::PriorityLevelConfiguration, name.as_str(), &stored.object_tree)
        });
        schemas.chain(levels)
    }

    /// Stores or removes the object of a key. An object that cannot be decoded is removed: its earlier version
    /// does not stay in force.
    pub(super) fn apply_flow_control_object(
        &mut self,
        path: &str,
        value: Option<&Bytes>,
    ) -> Result<(), StoredObjectDecodeError> {
        let Some((resource, name)) = path.split_once('/') else {
            return Err(StoredObjectDecodeError::UnnamedKey);
        };
        if resource == Kind::FlowSchema.resource() {
            self.flow_schemas.remove(name);
            let Some(tree) = value.map(|value| codec::decode_stored_object(value)).transpose()?
            else {
                return Ok(());
            };
            let schema = manifests::flow_control::decode_flow_schema(&tree)?;
            check_name_matches_key(&schema.name, name)?;
            self.flow_schemas.insert(
                name.to_owned(),
                StoredFlowSchema { flow_schema: schema, object_tree: Arc::new(tree) },
            );
        } else {
            self.priority_levels.remove(name);
            let Some(tree) = value.map(|value| codec::decode_stored_object(value)).transpose()?
            else {
                return Ok(());
            };
            let level = manifests::flow_control::decode_priority_level(&tree)?;
            check_name_matches_key(&level.name, name)?;
            self.priority_levels.insert(
                name.to_owned(),
                StoredPriorityLevel { priority_level: level, object_tree: Arc::new(tree) },
            );
        }
        Ok(())
    }
}

/// Checks that the name in a stored object is that of its key.
fn check_name_matches_key(stored: &str, name: &str) -> Result<(), StoredObjectDecodeError> {
    if stored == name { Ok(()) } else { Err(StoredObjectDecodeError::NameDiffersFromKey) }
}
