//! Checks the order of the initializers of all configurations.

use admission::{ConfigurationKind, ConfigurationWarning};
use api_object::Tree;
use document::Diagnostic;
use field_errors::FieldError;
use serde_json::Value;

use super::validate_admission_configuration::ValidAdmissionConfiguration;

/// Maximum number of reported cycles.
const CYCLES_MAX: usize = 100;

const LIST: &str = ConfigurationKind::Initializer.entries_member_name();

/// Errors and warnings about the order of initializers.
#[derive(Debug, Default)]
pub(crate) struct InitializerOrderFindings {
    /// Cycles of initializers that wait for each other.
    pub(crate) cycle_errors: Vec<Diagnostic>,
    /// References to unknown initializers, each with the index of the configuration.
    pub(crate) unknown_initializer_warnings: Vec<(usize, ConfigurationWarning)>,
}

/// Checks the order of the initializers of all configurations as if one configuration listed them all,
/// in the order of the server.
pub(crate) fn check_initializer_order(
    configurations: &[ValidAdmissionConfiguration],
) -> InitializerOrderFindings {
    let mut entries = initializers_in_order(configurations);
    let mut findings = InitializerOrderFindings::default();
    for warning in admission::initializer_ordering_warnings(&merge_initializers(&entries), &[]) {
        if let Some((own, path)) = locate_in_original_configuration(&entries, &warning.path) {
            findings
                .unknown_initializer_warnings
                .push((own, ConfigurationWarning { path, ..warning }));
        }
    }
    while findings.cycle_errors.len() < CYCLES_MAX {
        let errors = admission::initializer_ordering_errors(&merge_initializers(&entries), &[]);
        let Some(error) = errors.iter().next() else { break };
        let Some((own, path)) = locate_in_original_configuration(&entries, &error.path) else {
            break;
        };
        if let Some(configuration) = configurations.get(own) {
            findings.cycle_errors.push(
                configuration
                    .manifest_object
                    .field_diagnostic(FieldError { path, ..error.clone() }),
            );
        }
        // Without this entry the next iteration finds the next cycle.
        match index_in_path(&error.path) {
            Some(idx) if idx < entries.len() => entries.remove(idx),
            _ => break,
        };
    }
    findings
}

/// An initializer and its location.
struct InitializerEntry<'e> {
    value: &'e Value,
    /// The index of the configuration in the list of all configurations.
    configuration_index: usize,
    /// The index of the initializer in its configuration.
    index: usize,
}

/// Returns all initializers in the order of the server: by the name of their configuration, then by their
/// index.
fn initializers_in_order(
    configurations: &[ValidAdmissionConfiguration],
) -> Vec<InitializerEntry<'_>> {
    let mut own: Vec<(usize, &ValidAdmissionConfiguration)> =
        configurations.iter().enumerate().collect();
    own.retain(|(_, configuration)| configuration.kind == ConfigurationKind::Initializer);
    own.sort_by(|(_, a), (_, b)| {
        api_object::name(&a.defaulted_tree).cmp(api_object::name(&b.defaulted_tree))
    });
    let entries = own.into_iter().flat_map(|(configuration_index, configuration)| {
        let list =
            configuration.defaulted_tree.get(LIST).and_then(Value::as_array).into_iter().flatten();
        list.enumerate().map(move |(index, value)| InitializerEntry {
            value,
            configuration_index,
            index,
        })
    });
    entries.collect()
}

/// Creates one configuration that contains all initializers.
fn merge_initializers(entries: &[InitializerEntry<'_>]) -> Tree {
    let list = entries.iter().map(|entry| entry.value.clone()).collect();
    Tree::from_iter([(LIST.to_owned(), Value::Array(list))])
}

/// Converts a path in the merged configuration to the index of the original configuration and the path in it.
fn locate_in_original_configuration(
    entries: &[InitializerEntry<'_>],
    path: &str,
) -> Option<(usize, String)> {
    let entry = entries.get(index_in_path(path)?)?;
    let (_, rest) = path.split_once(']')?;
    Some((entry.configuration_index, format!("{LIST}[{}]{rest}", entry.index)))
}

/// Returns the index in a path such as `initializers[7].after`.
fn index_in_path(path: &str) -> Option<usize> {
    let (_, rest) = path.split_once('[')?;
    rest.split_once(']')?.0.parse().ok()
}
