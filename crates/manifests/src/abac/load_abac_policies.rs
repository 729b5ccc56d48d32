//! Loads and indexes the policies of a file.

use std::fmt;

use authz_abac::Snapshot;
use document::{Diagnostic, Fault, Source, SourcePosition, Span, Warning, WarningCode};

use super::policy_line::{self, PolicyLineError, PolicyLineVersion};

/// The largest policy file that is read, in bytes: room for some 300,000 lines of usual length.
pub const POLICY_FILE_BYTES_MAX: usize = 64 << 20;

/// The longest line that is read, in bytes without its end. Kubernetes' limit is one byte lower.
pub const LINE_BYTES_MAX: usize = 64 << 10;

/// The maximum number of warnings that are kept; later ones are counted.
pub const WARNINGS_MAX: usize = 100;

const BYTE_ORDER_MARK: char = '\u{feff}';

/// Options of loading a policy file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AbacPolicyLoadOptions {
    /// Whether unknown fields are errors instead of warnings. Without the misspelled field a line may grant more
    /// than its author intended.
    pub refuses_unknown_fields: bool,
    /// The meaning of an attribute that a request does not have, for lines without a version and of version v0.
    pub unset_attribute_matching: UnsetAttributeMatching,
}

/// The meaning of an attribute that a request does not have: the namespace of a list of all namespaces, or the resource of
/// `/version`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum UnsetAttributeMatching {
    /// The attribute counts as empty, and only a policy field that covers the empty value matches
    /// it, as in Kubernetes.
    #[default]
    Empty,
    /// The attribute matches every value of a policy field, as in the first design proposal of
    /// ABAC.
    Match,
}

/// The policies of a file, with warnings.
#[derive(Debug, Clone, Default)]
pub struct LoadedAbacPolicies {
    /// The policies of the file, indexed for evaluation.
    pub abac_policy_snapshot: Snapshot,
    /// At most [`WARNINGS_MAX`] warnings in the order of the file. The warning about missing versions is last.
    pub warnings: Vec<Warning>,
    /// The number of warnings beyond the limit.
    pub n_warnings_dropped: usize,
}

/// The error of a file that cannot be used. None of its policies is loaded.
///
/// Displays like Kubernetes' message: the file and, unless the file as a whole is at fault, the
/// line and its text.
#[derive(Debug, Clone, PartialEq)]
pub struct AbacPolicyLoadError {
    /// The fault with its position.
    pub diagnostic: Box<Diagnostic>,
    /// The text of the line that is at fault.
    pub line_text: Option<String>,
}

impl fmt::Display for AbacPolicyLoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Diagnostic { fault, file_name: file, position, .. } = &*self.diagnostic;
        match &self.line_text {
            Some(text) => {
                write!(
                    f,
                    "error reading policy file {file}, line {}: {text}: {fault}",
                    position.line
                )
            }
            None => write!(f, "error reading policy file {file}: {fault}"),
        }
    }
}

impl std::error::Error for AbacPolicyLoadError {}

/// Loads a policy file.
///
/// 1. The text is cut into lines, numbered from 1. A line is blank, a comment whose first visible
///    character is `#`, or a policy. A byte order mark before the first line is skipped.
/// 2. Each policy is decoded and converted; the first that is wrong ends reading.
/// 3. All policies are indexed.
///
/// # Errors
/// Fails if the file is too large, if a line is too long, not UTF-8, not a JSON object, of unknown
/// version or kind, or has a field of the wrong type. Also fails if a line has a field that would be
/// ignored and so grant more than intended, such as `spec` without a version.
pub fn load_abac_policies(
    source: &Source<'_>,
    options: &AbacPolicyLoadOptions,
) -> Result<LoadedAbacPolicies, AbacPolicyLoadError> {
    let mut reader = AbacPolicyFileReader {
        file_name: source.name,
        loaded_abac_policies: LoadedAbacPolicies::default(),
        first_unversioned_position: None,
    };
    if source.file_bytes.len() > POLICY_FILE_BYTES_MAX {
        let message = format!("the file is larger than {POLICY_FILE_BYTES_MAX} bytes");
        return Err(reader.policy_file_error(
            message,
            SourcePosition { line: 1, column: 1, start: 0, end_offset: 0 },
        ));
    }
    let mut policies = Vec::new();
    let mut line = PolicyFileLine { line_bytes: &[], line_number: 0, start: 0 };
    for bytes in source.file_bytes.split(|byte| *byte == b'\n') {
        line = PolicyFileLine {
            line_number: line.line_number + 1,
            start: line.next_line_start(),
            line_bytes: bytes,
        };
        let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
        if bytes.len() > LINE_BYTES_MAX {
            let message = format!("the line is longer than {LINE_BYTES_MAX} bytes");
            return Err(reader.policy_file_error(message, line.position("", Span::default())));
        }
        let text = match line.policy_text(bytes) {
            Ok(None) => continue,
            Ok(Some(text)) => text,
            Err(error) => return Err(reader.not_utf8_error(&line, bytes, error.valid_up_to())),
        };
        let read = policy_line::parse_policy_line(line.line_number, text, *options);
        let read = read.map_err(|policy_line_error| {
            reader.policy_line_error(&line, text, policy_line_error)
        })?;
        if read.version == PolicyLineVersion::Unversioned {
            reader
                .first_unversioned_position
                .get_or_insert_with(|| line.position(text, Span::default()));
        }
        for unknown in read.unknown_fields {
            reader.warn_of_unknown_field(&line, text, unknown);
        }
        policies.extend(read.policies);
    }
    reader.warn_of_unversioned_lines();
    let end = line.position("", Span::default());
    match Snapshot::new(policies) {
        Ok(snapshot) => {
            Ok(LoadedAbacPolicies { abac_policy_snapshot: snapshot, ..reader.loaded_abac_policies })
        }
        Err(error) => Err(reader.policy_file_error(error.to_string(), end)),
    }
}

/// The state of reading a file.
struct AbacPolicyFileReader<'s> {
    file_name: &'s str,
    loaded_abac_policies: LoadedAbacPolicies,
    first_unversioned_position: Option<SourcePosition>,
}

impl AbacPolicyFileReader<'_> {
    fn policy_file_error(&self, message: String, position: SourcePosition) -> AbacPolicyLoadError {
        AbacPolicyLoadError {
            diagnostic: self.build_diagnostic(message, position, None),
            line_text: None,
        }
    }

    fn policy_line_error(
        &self,
        line: &PolicyFileLine<'_>,
        text: &str,
        policy_line_error: PolicyLineError,
    ) -> AbacPolicyLoadError {
        let position = line.position(text, policy_line_error.span);
        AbacPolicyLoadError {
            diagnostic: self.build_diagnostic(
                policy_line_error.message,
                position,
                policy_line_error.hint,
            ),
            line_text: Some(text.to_owned()),
        }
    }

    fn not_utf8_error(
        &self,
        line: &PolicyFileLine<'_>,
        bytes: &[u8],
        n_valid: usize,
    ) -> AbacPolicyLoadError {
        let text = String::from_utf8_lossy(bytes);
        let is_utf16 = matches!(bytes, [0xFF, 0xFE, ..] | [0xFE, 0xFF, ..]);
        let policy_line_error = PolicyLineError {
            message: "the line is not UTF-8".to_owned(),
            // The decoded text has a whole character in place of each invalid byte.
            span: Span::new(n_valid, n_valid + char::REPLACEMENT_CHARACTER.len_utf8()),
            hint: is_utf16.then(|| "this looks like UTF-16: save it as UTF-8".to_owned()),
        };
        self.policy_line_error(line, &text, policy_line_error)
    }

    fn build_diagnostic(
        &self,
        message: String,
        position: SourcePosition,
        hint: Option<String>,
    ) -> Box<Diagnostic> {
        let fault = Fault::Decode { field: String::new(), message };
        let file = self.file_name.to_owned();
        Box::new(Diagnostic {
            fault,
            file_name: file,
            position,
            hint,
            expression_issues: Vec::new(),
        })
    }

    fn warn_of_unknown_field(
        &mut self,
        line: &PolicyFileLine<'_>,
        text: &str,
        unknown: policy_line::UnknownField,
    ) {
        if self.loaded_abac_policies.warnings.len() >= WARNINGS_MAX {
            self.loaded_abac_policies.n_warnings_dropped += 1;
            return;
        }
        self.loaded_abac_policies.warnings.push(Warning {
            code: WarningCode::UnknownPolicyField,
            message: unknown.message(),
            field: unknown.name,
            file_name: self.file_name.to_owned(),
            position: line.position(text, unknown.span),
            hint: unknown.hint,
        });
    }

    /// Adds one warning for all lines without a version. It does not count against the limit.
    fn warn_of_unversioned_lines(&mut self) {
        if let Some(position) = self.first_unversioned_position.take() {
            self.loaded_abac_policies.warnings.push(Warning {
                code: WarningCode::UnversionedPolicy,
                field: String::new(),
                message: format!(
                    "policy file {} contains policies without apiVersion",
                    self.file_name
                ),
                file_name: self.file_name.to_owned(),
                position,
                hint: Some(format!("write them as `{}`", policy_line::V1BETA1)),
            });
        }
    }
}

/// One line of the file.
#[derive(Clone, Copy)]
struct PolicyFileLine<'s> {
    /// The bytes of the line without the line feed.
    line_bytes: &'s [u8],
    /// Line number, from 1.
    line_number: usize,
    /// The first byte in the text of the source.
    start: usize,
}

impl<'s> PolicyFileLine<'s> {
    /// Returns the offset of the next line in the decoded text, in which each invalid byte is replaced
    /// by U+FFFD (3 bytes).
    fn next_line_start(&self) -> usize {
        if self.line_number == 0 {
            return 0;
        }
        let chunks = self.line_bytes.utf8_chunks();
        let n_replaced: usize = chunks.map(|chunk| chunk.invalid().len()).sum();
        let n_more = char::REPLACEMENT_CHARACTER.len_utf8() - 1;
        self.start + self.line_bytes.len() + n_replaced * n_more + 1
    }

    /// Returns the text of a policy; `None` if the line is blank or a comment. Comments may have any encoding.
    fn policy_text(&self, bytes: &'s [u8]) -> Result<Option<&'s str>, std::str::Utf8Error> {
        let begin = bytes.utf8_chunks().next().map_or("", |chunk| chunk.valid());
        let visible = self.without_byte_order_mark(begin).trim_start();
        let is_blank = visible.is_empty() && begin.len() == bytes.len();
        if is_blank || visible.starts_with('#') {
            return Ok(None);
        }
        std::str::from_utf8(bytes).map(|text| Some(self.without_byte_order_mark(text)))
    }

    fn without_byte_order_mark<'t>(&self, text: &'t str) -> &'t str {
        match text.strip_prefix(BYTE_ORDER_MARK) {
            Some(rest) if self.line_number == 1 => rest,
            _ => text,
        }
    }

    /// Returns the position of a range of `text`. `text` is this line, possibly without its byte order mark.
    fn position(&self, text: &str, span: Span) -> SourcePosition {
        let has_mark = self.line_number == 1
            && self.line_bytes.starts_with("\u{feff}".as_bytes())
            && !text.starts_with(BYTE_ORDER_MARK);
        let shift = if has_mark { BYTE_ORDER_MARK.len_utf8() } else { 0 };
        let before = text.char_indices().take_while(|(at, _)| *at < span.start).count();
        let start = self.start + shift + span.start;
        let end = self.start + shift + span.end_offset;
        SourcePosition { line: self.line_number, column: before + 1, start, end_offset: end }
    }
}
