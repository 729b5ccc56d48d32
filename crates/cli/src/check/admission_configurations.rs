//! Checks admission configurations, each by itself and all together.

use admission::ConfigurationWarning;
use document::Diagnostic;
use manifests::{DuplicateObjects, ERRORS_MAX, UnstructuredObject, WARNINGS_MAX};

use super::finding::{FileFindings, Finding};
use super::finding_rule::FindingRule;
use crate::admission_validation::{
    NewOrStored, ValidAdmissionConfiguration, check_initializer_order,
    validate_admission_configuration,
};

/// The valid admission configurations of all files.
#[derive(Debug, Default)]
pub(super) struct AdmissionConfigurations {
    valid_admission_configurations: Vec<ValidAdmissionConfiguration>,
}

impl AdmissionConfigurations {
    /// Checks the configurations of a file, adds the findings to `file`, and keeps the valid
    /// configurations.
    pub(super) fn check_and_keep_admission_configurations(
        &mut self,
        object: Vec<UnstructuredObject>,
        file: &mut FileFindings,
    ) {
        let n_before = file.errors.len();
        for object in object {
            match validate_admission_configuration(object, NewOrStored::New) {
                Ok(configuration) => {
                    for warning in &configuration.warnings {
                        add_warning(
                            file,
                            finding_from_warning(&configuration.manifest_object, warning),
                        );
                    }
                    self.valid_admission_configurations.push(configuration);
                }
                Err(faults) => {
                    let room = ERRORS_MAX.saturating_sub(file.errors.len());
                    file.errors.extend(faults.into_iter().take(room).map(Finding::from));
                }
            }
        }
        if file.errors.len() > n_before && n_before > 0 {
            // The file may already have errors of other objects, so the errors are sorted again.
            file.errors.sort_by_key(|error| error.source_position);
        }
    }

    /// Finds configurations that occur twice.
    pub(super) fn find_duplicate_admission_configurations(&self) -> DuplicateObjects {
        let object: Vec<&UnstructuredObject> = self
            .valid_admission_configurations
            .iter()
            .map(|configuration| &configuration.manifest_object)
            .collect();
        manifests::find_duplicate_unstructured_objects(&object)
    }
}

/// Checks the order of all initializers. Returns errors, and warnings with their file.
pub(super) fn initializer_order_findings(
    configurations: &AdmissionConfigurations,
) -> (Vec<Diagnostic>, Vec<(&str, Finding)>) {
    let found = check_initializer_order(&configurations.valid_admission_configurations);
    let warnings = found.unknown_initializer_warnings.iter().take(WARNINGS_MAX).filter_map(
        |(position, warning)| {
            let ValidAdmissionConfiguration { manifest_object: object, .. } =
                configurations.valid_admission_configurations.get(*position)?;
            Some((&*object.file_name, finding_from_warning(object, warning)))
        },
    );
    let warnings = warnings.collect();
    (found.cycle_errors, warnings)
}

fn finding_from_warning(object: &UnstructuredObject, warning: &ConfigurationWarning) -> Finding {
    Finding {
        rule: FindingRule::rule_for_admission_warning(warning.warning_kind),
        field: object.field_path_in_file(&warning.path),
        message: warning.message.clone(),
        source_position: object.field_position(&warning.path),
        hint: None,
        expression_issues: Vec::new(),
    }
}

fn add_warning(file: &mut FileFindings, warning: Finding) {
    match file.warnings.len() < WARNINGS_MAX {
        true => file.warnings.push(warning),
        false => file.n_omitted_warnings += 1,
    }
}
