//! The type of an authorizer that a program adds to the built-in ones.

use std::fmt;

use crate::authorizer_type::AuthorizerType;

/// The longest name of a type, in bytes. It is a label of metrics.
const NAME_BYTES_MAX: usize = 63;

/// The type that a configuration names to choose a plugin. The program that adds the plugin chooses it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PluginType(&'static str);

/// The reason why a text cannot name the type of a plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PluginTypeError {
    /// The text is not a word.
    #[error(
        "authorizer type `{0}` must be 1 to {NAME_BYTES_MAX} letters and digits, a letter first"
    )]
    NotAWord(&'static str),
    /// The name is one of a built-in type, perhaps in another case.
    #[error("authorizer type `{0}` is built in")]
    BuiltIn(&'static str),
}

impl PluginType {
    /// Checks and makes a type.
    ///
    /// # Errors
    /// The name is not a word of letters and digits, or belongs to a built-in type.
    pub fn new(name: &'static str) -> Result<Self, PluginTypeError> {
        let is_word = name.starts_with(|c: char| c.is_ascii_alphabetic())
            && name.chars().all(|c| c.is_ascii_alphanumeric())
            && name.len() <= NAME_BYTES_MAX;
        if !is_word {
            return Err(PluginTypeError::NotAWord(name));
        }
        let mut built_in = AuthorizerType::BUILT_IN.into_iter();
        match built_in.any(|kind| kind.name().eq_ignore_ascii_case(name)) {
            true => Err(PluginTypeError::BuiltIn(name)),
            false => Ok(Self(name)),
        }
    }

    /// The name in configurations and metrics.
    pub fn name(self) -> &'static str {
        self.0
    }
}

impl fmt::Display for PluginType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plugin_has_a_name_of_its_own() {
        for name in ["Freeze", "X", "Policy2"] {
            assert_eq!(PluginType::new(name).map(PluginType::name), Ok(name));
        }
        for name in ["", "2nd", "a-b", "a b", "Größe", "../x"] {
            assert_eq!(PluginType::new(name), Err(PluginTypeError::NotAWord(name)), "{name}");
        }
        for name in ["RBAC", "rbac", "Webhook", "webhook", "alwaysAllow"] {
            assert_eq!(PluginType::new(name), Err(PluginTypeError::BuiltIn(name)), "{name}");
        }
    }
}
