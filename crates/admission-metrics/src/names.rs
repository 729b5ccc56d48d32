//! Which names become label values.
//!
//! Every name makes series, and whoever may write configurations can make up names without end, and
//! by initializers of their own also those who only write objects. So there is room for so many names
//! at a time, and all others share one word.

use std::collections::HashSet;
use std::sync::{PoisonError, RwLock};

/// The most names of hooks, and of initializers, that are told apart at a time.
pub const NAMES_MAX: usize = 1000;

/// What stands for all other names. No hook and no initializer is called so: their names have dots.
pub const OTHER: &str = "other";

/// The names that are told apart.
#[derive(Debug, Default)]
pub(crate) struct Names {
    known: RwLock<HashSet<String>>,
}

impl Names {
    /// The label value for a name: itself, as long as there is room.
    pub(crate) fn label<'n>(&self, name: &'n str) -> &'n str {
        if self.known.read().unwrap_or_else(PoisonError::into_inner).contains(name) {
            return name;
        }
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= NAMES_MAX && !known.contains(name) {
            return OTHER;
        }
        known.insert(name.to_owned());
        name
    }

    /// Makes room.
    pub(crate) fn retain(&self, is_kept: &dyn Fn(&str) -> bool) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        known.retain(|name| is_kept(name));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_room_for_so_many_names_at_a_time() {
        let names = Names::default();
        let all: Vec<String> = (0..=NAMES_MAX).map(|n| format!("{n}.x.y")).collect();
        let (last, others) = all.split_last().unwrap();
        for name in others {
            assert_eq!(names.label(name), name);
        }
        assert_eq!(names.label(last), OTHER);
        assert_eq!(names.label(&others[0]), "0.x.y");
        names.retain(&|name| name != "0.x.y");
        assert_eq!(names.label(last), last);
        assert_eq!(names.label(&others[0]), OTHER);
    }
}
