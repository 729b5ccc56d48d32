//! Collects what validation finds.

use field_errors::FieldError;

use crate::diagnostic::{Caution, Fault, Finding};
use crate::hint;
use crate::source::Span;
use crate::view::Scalar;

#[derive(Debug, Default)]
pub struct Report {
    pub findings: Vec<Finding>,
    pub cautions: Vec<Caution>,
}

impl Report {
    /// Adds a fault without a place of its own: something is missing at `span`.
    pub fn missing(&mut self, error: FieldError, span: Span) {
        self.push(error, span, None);
    }

    /// Adds a fault of a value, which stands at `parent` if it is absent.
    pub fn fault<T>(&mut self, error: FieldError, scalar: &Scalar<T>, parent: Span) {
        self.fault_with_hint(error, scalar, parent, None);
    }

    /// Adds a fault of a value with a hint, unless a tag explains the fault better.
    pub fn fault_with_hint<T>(
        &mut self,
        error: FieldError,
        scalar: &Scalar<T>,
        parent: Span,
        hint: Option<String>,
    ) {
        let hint = if scalar.is_tagged { Some(hint::LEADING_BANG.to_owned()) } else { hint };
        self.push(error, scalar.span.unwrap_or(parent), hint);
    }

    fn push(&mut self, error: FieldError, span: Span, hint: Option<String>) {
        self.findings.push(Finding { fault: Fault::Field(error), span, hint, notes: Vec::new() });
    }
}
