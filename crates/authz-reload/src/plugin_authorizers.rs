//! The authorizers that a program adds to the built-in ones.

use std::fmt;
use std::sync::Arc;

use authz::Authorizer;
use authz_chain::{PluginType, PluginTypeError};

/// Authorizers by type. A configuration that names the type of one has it in its chain; every generation of the
/// configuration shares the authorizer and so its state.
#[derive(Clone, Default)]
pub struct PluginAuthorizers {
    plugins: Vec<(PluginType, Arc<dyn Authorizer>)>,
}

/// The reason why an authorizer cannot be added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AddPluginError {
    /// The type cannot be used.
    #[error("{0}")]
    Type(PluginTypeError),
    /// There is an authorizer of this type already.
    #[error("authorizer type `{0}` is added twice")]
    Repeated(PluginType),
}

impl PluginAuthorizers {
    /// Adds an authorizer for the entries of this type.
    ///
    /// # Errors
    /// The type is not a word, is built in, or was added before.
    pub fn add_plugin(
        &mut self,
        type_name: &'static str,
        authorizer: Arc<dyn Authorizer>,
    ) -> Result<(), AddPluginError> {
        let plugin_type = PluginType::new(type_name).map_err(AddPluginError::Type)?;
        if self.find_plugin(plugin_type).is_some() {
            return Err(AddPluginError::Repeated(plugin_type));
        }
        self.plugins.push((plugin_type, authorizer));
        Ok(())
    }

    /// Returns the authorizer of a type.
    pub fn find_plugin(&self, plugin_type: PluginType) -> Option<Arc<dyn Authorizer>> {
        let mut plugins = self.plugins.iter();
        plugins.find(|(own, _)| *own == plugin_type).map(|(_, plugin)| Arc::clone(plugin))
    }

    /// The types in the order in which they were added.
    pub fn plugin_types(&self) -> Vec<PluginType> {
        self.plugins.iter().map(|(plugin_type, _)| *plugin_type).collect()
    }
}

/// Shows the types only: plugins do not implement `Debug`.
impl fmt::Debug for PluginAuthorizers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.plugin_types()).finish()
    }
}
