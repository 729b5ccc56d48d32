//! Collects the faults and warnings of a validation.

use field_errors::FieldError;

use crate::diagnostic::{Fault, SpannedFault, SpannedWarning};
use crate::hint;
use crate::object_reader::FieldValue;
use crate::source::Span;

/// The faults and warnings that validating a document collects.
#[derive(Debug, Default)]
pub struct ValidationReport {
    /// Faults in the order in which they were found.
    pub faults: Vec<SpannedFault>,
    /// Warnings in the order in which they were found.
    pub warnings: Vec<SpannedWarning>,
}

impl ValidationReport {
    /// Adds a fault about a value that is missing in the object at `span`.
    pub fn add_fault_at_span(&mut self, error: FieldError, span: Span) {
        self.push(error, span, None);
    }

    /// Adds a fault about a value. An absent value gets the span of its parent.
    pub fn add_fault<T>(&mut self, error: FieldError, scalar: &FieldValue<T>, parent: Span) {
        self.add_fault_with_hint(error, scalar, parent, None);
    }

    /// Adds a fault of a value with a hint, unless a tag explains the fault better.
    pub fn add_fault_with_hint<T>(
        &mut self,
        error: FieldError,
        scalar: &FieldValue<T>,
        parent: Span,
        hint: Option<String>,
    ) {
        let hint =
            if scalar.has_yaml_tag { Some(hint::LEADING_BANG_HINT.to_owned()) } else { hint };
        self.push(error, scalar.span.unwrap_or(parent), hint);
    }

    fn push(&mut self, error: FieldError, span: Span, hint: Option<String>) {
        self.faults.push(SpannedFault {
            fault: Fault::Field(error),
            span,
            hint,
            expression_issues: Vec::new(),
        });
    }
}
