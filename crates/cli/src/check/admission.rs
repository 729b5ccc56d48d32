//! Configurations of dynamic admission, each by itself and all together.

use admission::Warning;
use document::Diagnostic;
use manifests::{ERRORS_MAX, WARNINGS_MAX, WholeObject};

use super::finding::{Finding, ReadFile};
use super::rule::Rule;
use crate::admission::{Examined, Rules, examine, order};

/// The configurations of all files in which nothing is wrong.
#[derive(Debug, Default)]
pub(super) struct Configurations {
    valid: Vec<Examined>,
}

impl Configurations {
    /// Checks the configurations of a file, adds what is found to it, and remembers those that are
    /// in order.
    pub(super) fn check(&mut self, kept: Vec<WholeObject>, file: &mut ReadFile) {
        let n_before = file.errors.len();
        for kept in kept {
            match examine(kept, Rules::Creation) {
                Ok(examined) => {
                    for warning in &examined.warnings {
                        add_warning(file, finding(&examined.kept, warning));
                    }
                    self.valid.push(examined);
                }
                Err(faults) => {
                    let room = ERRORS_MAX.saturating_sub(file.errors.len());
                    file.errors.extend(faults.into_iter().take(room).map(Finding::from));
                }
            }
        }
        if file.errors.len() > n_before && n_before > 0 {
            // Those of other objects came first.
            file.errors.sort_by_key(|error| error.position);
        }
    }

    /// The configurations that occur a second time.
    pub(super) fn duplicates(&self) -> Vec<Diagnostic> {
        let kept: Vec<&WholeObject> = self.valid.iter().map(|examined| &examined.kept).collect();
        manifests::duplicate_whole_objects(&kept)
    }
}

/// The order of all initializers: what is wrong with it, and by file what does nothing.
pub(super) fn check_order(
    configurations: &Configurations,
) -> (Vec<Diagnostic>, Vec<(&str, Finding)>) {
    let found = order(&configurations.valid);
    let warnings = found.warnings.iter().take(WARNINGS_MAX).filter_map(|(position, warning)| {
        let Examined { kept, .. } = configurations.valid.get(*position)?;
        Some((&*kept.file, finding(kept, warning)))
    });
    let warnings = warnings.collect();
    (found.errors, warnings)
}

fn finding(kept: &WholeObject, warning: &Warning) -> Finding {
    Finding {
        rule: Rule::of_admission(warning.cause),
        field: kept.path_in_file(&warning.path),
        message: warning.message.clone(),
        position: kept.position_of_field(&warning.path),
        hint: None,
        issues: Vec::new(),
    }
}

fn add_warning(file: &mut ReadFile, warning: Finding) {
    match file.warnings.len() < WARNINGS_MAX {
        true => file.warnings.push(warning),
        false => file.n_warnings_dropped += 1,
    }
}
