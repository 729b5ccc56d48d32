//! The resources of one definition, read once.

use std::sync::Arc;

use api_object::Tree;

use super::custom_resource_definition::CustomResourceDefinition;
use crate::resource::Resource;

/// A CustomResourceDefinition as it was read, with the resources that it adds. Reading takes time in proportion
/// to its schema, so it is done once for each stored version.
#[derive(Debug)]
pub struct DefinedResources {
    /// The name of the object.
    pub name: String,
    /// The parts that were read; `None` if the object does not say which resource it defines.
    pub custom_resource_definition: Option<CustomResourceDefinition>,
    /// One resource for each served version; none if the definition is not served.
    pub resources: Vec<Arc<Resource>>,
    /// Why the definition adds no resources although it should.
    pub definition_fault: Option<&'static str>,
}

impl DefinedResources {
    /// Reads a definition and builds the resources of its served versions.
    #[must_use]
    pub fn read(tree: &Tree) -> Self {
        let definition = CustomResourceDefinition::read(tree);
        let (resources, fault) = match &definition {
            None => (Vec::new(), Some("does not say which resource it defines")),
            Some(own) if own.is_served() => (own.resources().map(Arc::new).collect(), None),
            Some(own) => {
                let fault = match own.storage_path() {
                    _ if !own.is_established() => None,
                    None => Some("defines a resource that is part of the program"),
                    Some(_) => Some("was accepted under names that are not its own"),
                };
                (Vec::new(), fault)
            }
        };
        Self {
            name: api_object::name(tree).to_owned(),
            custom_resource_definition: definition,
            resources,
            definition_fault: fault,
        }
    }
}
