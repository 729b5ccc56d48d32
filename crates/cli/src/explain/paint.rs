//! How lines are marked and coloured.

/// How a line is marked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    Allow,
    Deny,
    NoOpinion,
    /// The answer is not known without a server.
    Open,
    NearMiss,
    NotAsked,
    None,
}

/// Colours, for terminals that have them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Paint {
    pub(super) colour: bool,
}

impl Paint {
    pub(super) fn with(self, code: &str, text: &str) -> String {
        if self.colour { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }

    pub(super) fn mark(self, mark: Mark) -> String {
        let (code, text) = match mark {
            Mark::Allow => ("32", "✓ "),
            Mark::Deny => ("31", "✗ "),
            Mark::NoOpinion => ("2", "○ "),
            Mark::Open => ("33", "? "),
            Mark::NearMiss => ("36", "≈ "),
            Mark::NotAsked => ("2", "· "),
            Mark::None => return String::new(),
        };
        self.with(code, text)
    }
}
