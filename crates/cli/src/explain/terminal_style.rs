//! Marks and colours of the lines of an explanation.

/// The mark in front of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum VerdictMark {
    Allow,
    Deny,
    NoOpinion,
    /// The answer is not known offline.
    Undecided,
    NearMiss,
    NotAsked,
    None,
}

/// The use of colours on a terminal.
#[derive(Debug, Clone, Copy)]
pub(super) struct TerminalStyle {
    pub(super) is_coloured: bool,
}

impl TerminalStyle {
    pub(super) fn wrap_in_terminal_code(self, code: &str, text: &str) -> String {
        if self.is_coloured { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }

    pub(super) fn styled_verdict_mark(self, mark: VerdictMark) -> String {
        let (code, text) = match mark {
            VerdictMark::Allow => ("32", "✓ "),
            VerdictMark::Deny => ("31", "✗ "),
            VerdictMark::NoOpinion => ("2", "○ "),
            VerdictMark::Undecided => ("33", "? "),
            VerdictMark::NearMiss => ("36", "≈ "),
            VerdictMark::NotAsked => ("2", "· "),
            VerdictMark::None => return String::new(),
        };
        self.wrap_in_terminal_code(code, text)
    }
}
