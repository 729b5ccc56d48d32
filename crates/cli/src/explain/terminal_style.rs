//! Marks and colours of the lines of an explanation.

/// The mark in front of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineMark {
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
    pub(super) fn styled(self, code: &str, text: &str) -> String {
        if self.is_coloured { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }

    pub(super) fn styled_mark(self, mark: LineMark) -> String {
        let (code, text) = match mark {
            LineMark::Allow => ("32", "✓ "),
            LineMark::Deny => ("31", "✗ "),
            LineMark::NoOpinion => ("2", "○ "),
            LineMark::Undecided => ("33", "? "),
            LineMark::NearMiss => ("36", "≈ "),
            LineMark::NotAsked => ("2", "· "),
            LineMark::None => return String::new(),
        };
        self.styled(code, text)
    }
}
