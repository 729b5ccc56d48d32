//! Flow schemas and priority levels of the snapshot.

use std::collections::BTreeMap;
use std::sync::Arc;

use api_object::Tree;
use bytes::Bytes;
use flow_control::{FlowController, FlowSchema, PriorityLevel, bootstrap};
use manifests::flow_control::Kind;

use super::StoredObjectError;

/// The stored flow schemas and priority levels, by name. Objects that can not be decoded are left out.
#[derive(Debug, Clone, Default)]
pub(crate) struct FlowControlObjects {
    /// The flow schemas, whether their levels exist or not.
    pub(crate) schemas: BTreeMap<String, StoredFlowSchema>,
    /// The priority levels, whether schemas refer to them or not.
    pub(crate) levels: BTreeMap<String, StoredPriorityLevel>,
}

/// A flow schema as it is stored, and as requests are classified by it.
#[derive(Debug, Clone)]
pub(crate) struct StoredFlowSchema {
    /// The schema with its defaults, as the controller uses it.
    pub(crate) schema: Arc<FlowSchema>,
    /// The object as the API returns it, without its resourceVersion.
    pub(crate) tree: Arc<Tree>,
}

/// A priority level as it is stored, and as requests are limited by it.
#[derive(Debug, Clone)]
pub(crate) struct StoredPriorityLevel {
    /// The level with its defaults, as the controller uses it.
    pub(crate) level: PriorityLevel,
    /// The object as the API returns it, without its resourceVersion.
    pub(crate) tree: Arc<Tree>,
}

impl FlowControlObjects {
    /// Makes these objects take effect. A mandatory object that is missing takes effect as if it existed, so
    /// that every request has a level. As long as nothing is stored, all default objects do.
    pub(crate) fn configure(&self, controller: &FlowController) {
        let (mut default_schemas, mut default_levels) =
            (bootstrap::mandatory_schemas(), bootstrap::mandatory_levels());
        if self.schemas.is_empty() && self.levels.is_empty() {
            default_schemas.extend(bootstrap::suggested_schemas());
            default_levels.extend(bootstrap::suggested_levels());
        }
        let stored = self.schemas.values().map(|stored| Arc::clone(&stored.schema));
        let missing = default_schemas.into_iter();
        let missing = missing.filter(|schema| !self.schemas.contains_key(&schema.name));
        let schemas = stored.chain(missing.map(Arc::new)).collect();
        let stored = self.levels.values().map(|stored| stored.level.clone());
        let missing = default_levels.into_iter().map(|default| default.level);
        let missing = missing.filter(|level| !self.levels.contains_key(&level.name));
        let levels: Vec<PriorityLevel> = stored.chain(missing).collect();
        controller.configure(schemas, &levels);
    }

    /// The stored object of this kind and name, if it can be decoded.
    pub(crate) fn tree(&self, kind: Kind, name: &str) -> Option<&Arc<Tree>> {
        match kind {
            Kind::FlowSchema => self.schemas.get(name).map(|stored| &stored.tree),
            Kind::PriorityLevelConfiguration => self.levels.get(name).map(|stored| &stored.tree),
        }
    }

    /// All stored objects that can be decoded, with their kinds and names.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Kind, &str, &Arc<Tree>)> {
        let schemas = self.schemas.iter();
        let schemas = schemas.map(|(name, stored)| (Kind::FlowSchema, name.as_str(), &stored.tree));
        let levels = self
            .levels
            .iter()
            .map(|(name, stored)| (Kind::PriorityLevelConfiguration, name.as_str(), &stored.tree));
        schemas.chain(levels)
    }

    /// Stores or removes the object of a key. An object that can not be decoded is removed: its earlier version
    /// does not stay in force.
    pub(super) fn apply(
        &mut self,
        path: &str,
        value: Option<&Bytes>,
    ) -> Result<(), StoredObjectError> {
        let Some((resource, name)) = path.split_once('/') else {
            return Err(StoredObjectError::UnnamedKey);
        };
        if resource == Kind::FlowSchema.resource() {
            self.schemas.remove(name);
            let Some(tree) = value.map(|value| codec::decode_stored_object(value)).transpose()?
            else {
                return Ok(());
            };
            let schema = manifests::flow_control::decode_flow_schema(&tree)?;
            check_name(&schema.name, name)?;
            self.schemas.insert(name.to_owned(), StoredFlowSchema { schema, tree: Arc::new(tree) });
        } else {
            self.levels.remove(name);
            let Some(tree) = value.map(|value| codec::decode_stored_object(value)).transpose()?
            else {
                return Ok(());
            };
            let level = manifests::flow_control::decode_priority_level(&tree)?;
            check_name(&level.name, name)?;
            self.levels
                .insert(name.to_owned(), StoredPriorityLevel { level, tree: Arc::new(tree) });
        }
        Ok(())
    }
}

/// An object must be the one that its key names.
fn check_name(stored: &str, name: &str) -> Result<(), StoredObjectError> {
    if stored == name { Ok(()) } else { Err(StoredObjectError::NameDiffersFromKey) }
}
