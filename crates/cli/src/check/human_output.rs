//! Findings as text, each with its source lines.

use std::io::{self, Write};
use std::ops::Range;

use annotate_snippets::{Annotation, AnnotationKind, Level, Origin, Renderer, Snippet};
use document::{Diagnostic, ExpressionIssue};

use super::finding::{CheckOutcome, CheckedFile, ContentSummary, FileFindings, Finding};
use super::finding_rule::Severity;
use super::source_excerpt::{
    SourceExcerpt, extract_excerpt, line_ranges, replace_control_characters,
};
use crate::output_helpers::pluralize_count;

/// The result of a file without Kubernetes objects.
pub(super) const NO_OBJECTS_NOTE: &str = "no Kubernetes object, skipped";

/// Maximum number of shown findings per file.
const FINDINGS_MAX: usize = 100;

/// Maximum number of shown issues per expression.
const ISSUES_MAX: usize = 10;

/// Maximum number of characters of a shown message. Kubernetes quotes the invalid value, sometimes the
/// whole file.
const MESSAGE_CHARS_MAX: usize = 2000;

/// Maximum number of authorizers in a summary.
const NAMES_MAX: usize = 20;

/// Writes findings and a summary to `out`, and the files that cannot be read to `err`.
///
/// # Errors
/// Fails if one of the two cannot be written.
pub(super) fn write_human_report(
    out: &mut dyn Write,
    err: &mut dyn Write,
    checked: &[CheckedFile],
    colour: bool,
) -> io::Result<()> {
    let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
    let mut is_first = true;
    for CheckedFile { name, check_outcome: outcome } in checked {
        match outcome {
            CheckOutcome::Unreadable { message } => {
                writeln!(err, "error: {}", replace_control_characters(message))?
            }
            CheckOutcome::Read(file) => {
                if !is_first && file.n_findings() > 0 {
                    writeln!(out)?;
                }
                is_first = false;
                write_file_findings(out, &renderer, name, file)?;
            }
        }
    }
    if checked.len() > 1 { writeln!(out, "{}", describe_check_totals(checked)) } else { Ok(()) }
}

/// Writes the errors of a file that another command reads, in the form of `check`.
///
/// # Errors
/// Fails if it cannot be written.
pub(crate) fn write_file_errors(
    out: &mut dyn Write,
    name: &str,
    text: String,
    errors: Vec<Diagnostic>,
    colour: bool,
) -> io::Result<()> {
    let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
    let errors = errors.into_iter().map(Finding::from).collect();
    let file = FileFindings { file_text: text, errors, ..FileFindings::default() };
    write_file_findings(out, &renderer, name, &file)
}

fn write_file_findings(
    out: &mut dyn Write,
    renderer: &Renderer,
    name: &str,
    file: &FileFindings,
) -> io::Result<()> {
    // A file without findings needs no line ranges.
    let lines = if file.n_findings() > 0 { line_ranges(&file.file_text) } else { Vec::new() };
    let errors = file.errors.iter().map(|finding| (Level::ERROR, finding));
    let warnings = file.warnings.iter().map(|finding| (Level::WARNING, finding));
    for (level, finding) in errors.chain(warnings).take(FINDINGS_MAX) {
        let rendered = render_finding(renderer, level, name, &file.file_text, &lines, finding);
        writeln!(out, "{rendered}\n")?;
    }
    let n_hidden = file.n_findings().saturating_sub(FINDINGS_MAX);
    if n_hidden > 0 {
        writeln!(out, "{n_hidden} more not shown; `-o json` lists them all\n")?;
    }
    writeln!(out, "{}: {}", replace_control_characters(name), describe_file_result(file))
}

fn render_finding(
    renderer: &Renderer,
    level: Level<'static>,
    name: &str,
    text: &str,
    lines: &[Range<usize>],
    finding: &Finding,
) -> String {
    let issues = finding.expression_issues.get(..ISSUES_MAX).unwrap_or(&finding.expression_issues);
    let positions: Vec<_> = match issues {
        [] => vec![finding.source_position],
        issues => issues.iter().map(|issue| issue.position).collect(),
    };
    // If the issues are too far apart, show the first one; if that is too long, show only its position.
    let excerpt = extract_excerpt(text, lines, &positions)
        .or_else(|| extract_excerpt(text, lines, positions.get(..1).unwrap_or_default()));
    let title = level.primary_title(shorten_message(&finding.message));
    let title = match finding.rule.severity {
        Severity::Error => title,
        Severity::Warning => title.id(finding.rule.id),
    };
    let mut hints: Vec<&str> = finding.hint.as_deref().into_iter().collect();
    for hint in issues.iter().filter_map(|issue| issue.hint.as_deref()) {
        if !hints.contains(&hint) {
            hints.push(hint);
        }
    }
    let hints = hints.into_iter().map(|hint| Level::HELP.message(replace_control_characters(hint)));
    let group = match &excerpt {
        Some(excerpt) => title.element(source_snippet(name, excerpt, issues)),
        None => title.element(
            Origin::path(replace_control_characters(name))
                .line(finding.source_position.line)
                .char_column(finding.source_position.column),
        ),
    };
    renderer.render(&[group.elements(hints)])
}

/// The source lines with a caret and the compiler message at each position.
fn source_snippet<'a>(
    name: &str,
    excerpt: &'a SourceExcerpt,
    issues: &[ExpressionIssue],
) -> Snippet<'a, Annotation<'a>> {
    let annotations = excerpt.highlight_ranges.iter().enumerate().map(|(idx, span)| {
        let label =
            issues.get(idx).map(|issue| replace_control_characters(first_line(&issue.message)));
        AnnotationKind::Primary.span(span.clone()).label(label)
    });
    Snippet::source(excerpt.excerpt_text.as_str())
        .line_start(excerpt.first_line_number)
        .path(replace_control_characters(name))
        .annotations(annotations)
}

/// The first line of a message. It omits the middle of a very long line, because beginning and end state
/// the error. The snippet shows further lines of the CEL compiler.
pub(super) fn shorten_message(message: &str) -> String {
    let line = first_line(message);
    let n_chars = line.chars().count();
    if n_chars <= MESSAGE_CHARS_MAX {
        return replace_control_characters(line);
    }
    let head: String = line.chars().take(MESSAGE_CHARS_MAX / 2).collect();
    let tail: String = line.chars().skip(n_chars - MESSAGE_CHARS_MAX / 2).collect();
    replace_control_characters(&format!("{head}…{tail}"))
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

/// Describes the result of one file in one line.
fn describe_file_result(file: &FileFindings) -> String {
    let warnings = match file.warnings.len() + file.n_omitted_warnings {
        0 => String::new(),
        n => format!(", {}", pluralize_count(n, "warning")),
    };
    match &file.content_summary {
        Some(ContentSummary::NoObjects) => format!("note: {NO_OBJECTS_NOTE}"),
        Some(summary) if file.errors.is_empty() => {
            format!("valid{warnings}{}", describe_content_summary(summary))
        }
        _ => format!("invalid: {}{warnings}", pluralize_count(file.errors.len(), "error")),
    }
}

fn describe_content_summary(summary: &ContentSummary) -> String {
    let kind_name = summary.file_kind_name().unwrap_or_default();
    match summary {
        ContentSummary::Configuration { api_version, authorizers } => {
            let version = api_version.map(|version| format!(" {version}")).unwrap_or_default();
            let named = authorizers.get(..NAMES_MAX).unwrap_or(authorizers);
            let rest = match authorizers.len() - named.len() {
                0 => String::new(),
                n => format!(" and {n} more"),
            };
            let n_authorizers = pluralize_count(authorizers.len(), "authorizer");
            format!(" ({kind_name}{version}: {n_authorizers}: {}{rest})", named.join(", "))
        }
        ContentSummary::Manifest { kinds, n_unused_objects } => {
            let mut parts: Vec<_> =
                kinds.iter().map(|(kind, n)| pluralize_count(*n, kind)).collect();
            if parts.is_empty() {
                parts.push("no checked objects".to_owned());
            }
            if *n_unused_objects > 0 {
                parts.push(pluralize_count(*n_unused_objects, "other object"));
            }
            format!(": {}", parts.join(", "))
        }
        ContentSummary::AbacPolicy { n_policies } => {
            format!(": {}", format_policy_count(*n_policies))
        }
        ContentSummary::Hooks { names } => {
            let named = names.get(..NAMES_MAX).unwrap_or(names);
            let rest = match names.len() - named.len() {
                0 => String::new(),
                n => format!(" and {n} more"),
            };
            let n_hooks = pluralize_count(names.len(), "hook");
            format!(" ({kind_name}: {n_hooks}: {}{rest})", named.join(", "))
        }
        ContentSummary::Kubeconfig => format!(" ({kind_name})"),
        ContentSummary::NoObjects => String::new(),
    }
}

fn format_policy_count(n: usize) -> String {
    if n == 1 { "1 policy".to_owned() } else { format!("{n} policies") }
}

/// Describes the result of all files in one line.
fn describe_check_totals(checked: &[CheckedFile]) -> String {
    let (mut n_valid, mut n_invalid, mut n_unreadable, mut n_skipped) = (0, 0, 0, 0);
    for CheckedFile { check_outcome: outcome, .. } in checked {
        match outcome {
            CheckOutcome::Unreadable { .. } => n_unreadable += 1,
            CheckOutcome::Read(file)
                if matches!(file.content_summary, Some(ContentSummary::NoObjects)) =>
            {
                n_skipped += 1;
            }
            CheckOutcome::Read(file) if file.errors.is_empty() => n_valid += 1,
            CheckOutcome::Read(_) => n_invalid += 1,
        }
    }
    let n_files = pluralize_count(checked.len(), "file");
    let parts = [
        (n_valid, "valid"),
        (n_invalid, "invalid"),
        (n_unreadable, "unreadable"),
        (n_skipped, "skipped"),
    ];
    let parts = parts.into_iter().filter(|(n, _)| *n > 0);
    let parts: Vec<_> = parts.map(|(n, what)| format!("{n} {what}")).collect();
    format!("{n_files}: {}", parts.join(", "))
}
