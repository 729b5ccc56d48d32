//! Bounds the number of names that become label values.
//!
//! Each name makes new series. Users who may write admission configurations can invent any number of names, and so
//! can users who only write objects, by setting `metadata.initializers`. Beyond [`NAMES_MAX`] names, the rest share
//! one label value.

use std::collections::HashSet;
use std::sync::{PoisonError, RwLock};

/// The maximum number of hook names, and of initializer names, that have their own series at a time.
pub const NAMES_MAX: usize = 1000;

/// The label value that all other names share. Names of hooks and initializers contain dots, so none has this value.
pub const OTHER_NAMES: &str = "other";

/// The names that have their own series.
#[derive(Debug, Default)]
pub(crate) struct BoundedNames {
    labelled_names: RwLock<HashSet<String>>,
}

impl BoundedNames {
    /// Returns the label value for a name: the name itself, or [`OTHER_NAMES`] if there are too many.
    pub(crate) fn label_value_for<'n>(&self, name: &'n str) -> &'n str {
        if self.labelled_names.read().unwrap_or_else(PoisonError::into_inner).contains(name) {
            return name;
        }
        let mut labelled_names =
            self.labelled_names.write().unwrap_or_else(PoisonError::into_inner);
        if labelled_names.len() >= NAMES_MAX && !labelled_names.contains(name) {
            return OTHER_NAMES;
        }
        labelled_names.insert(name.to_owned());
        name
    }

    /// Removes the names for which `is_kept` is false, so that other names can get their own series.
    pub(crate) fn retain_labelled_names(&self, is_kept: &dyn Fn(&str) -> bool) {
        let mut labelled_names =
            self.labelled_names.write().unwrap_or_else(PoisonError::into_inner);
        labelled_names.retain(|name| is_kept(name));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_beyond_the_limit_share_one_label_value() {
        let names = BoundedNames::default();
        let all: Vec<String> = (0..=NAMES_MAX).map(|n| format!("{n}.x.y")).collect();
        let (last, others) = all.split_last().unwrap();
        for name in others {
            assert_eq!(names.label_value_for(name), name);
        }
        assert_eq!(names.label_value_for(last), OTHER_NAMES);
        assert_eq!(names.label_value_for(&others[0]), "0.x.y");
        names.retain_labelled_names(&|name| name != "0.x.y");
        assert_eq!(names.label_value_for(last), last);
        assert_eq!(names.label_value_for(&others[0]), OTHER_NAMES);
    }
}
