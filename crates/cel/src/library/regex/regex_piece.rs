//! Translated pieces of a regular expression, and their concatenation and alternation.

/// A translated piece of a regular expression.
#[derive(Debug)]
pub(super) struct RegexPiece {
    pub(super) regex_text: String,
    pub(super) kind: RegexPieceKind,
    /// The height of its syntax tree, as Go counts it.
    pub(super) regex_tree_height: usize,
    /// The product of nested counted repetitions.
    pub(super) n_atom_copies: u64,
    /// The number of instructions that Go would compile it to.
    pub(super) size: u64,
}

/// The outermost operator of a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RegexPieceKind {
    Atom,
    Repetition,
    Empty,
    Concatenation,
    Alternation,
}

impl RegexPiece {
    pub(super) fn new_regex_atom(text: impl Into<String>) -> Self {
        Self {
            regex_text: text.into(),
            kind: RegexPieceKind::Atom,
            regex_tree_height: 1,
            n_atom_copies: 1,
            size: 1,
        }
    }

    /// The text in a form to which a repetition operator can be appended.
    pub(super) fn into_grouped_regex_text(self) -> String {
        match self.kind {
            RegexPieceKind::Atom => self.regex_text,
            RegexPieceKind::Repetition
            | RegexPieceKind::Empty
            | RegexPieceKind::Concatenation
            | RegexPieceKind::Alternation => {
                format!("(?:{})", self.regex_text)
            }
        }
    }

    /// Joins pieces. As in Go, pieces of the same kind are merged and do not add to the height.
    pub(super) fn join_regex_pieces(
        mut pieces: Vec<RegexPiece>,
        kind: RegexPieceKind,
        separator: &str,
    ) -> Self {
        if pieces.len() == 1
            && let Some(only) = pieces.pop()
        {
            return only;
        }
        let mut joined = Self {
            regex_text: String::new(),
            kind,
            regex_tree_height: 1,
            n_atom_copies: 1,
            size: 0,
        };
        if pieces.is_empty() {
            joined.kind = RegexPieceKind::Empty;
            joined.size = 1;
        }
        for (index, piece) in pieces.into_iter().enumerate() {
            let height = piece.regex_tree_height + usize::from(piece.kind != kind);
            joined.regex_tree_height = joined.regex_tree_height.max(height);
            joined.n_atom_copies = joined.n_atom_copies.max(piece.n_atom_copies);
            joined.size = joined.size.saturating_add(piece.size);
            if index > 0 {
                joined.regex_text.push_str(separator);
                joined.size =
                    joined.size.saturating_add(u64::from(kind == RegexPieceKind::Alternation));
            }
            if kind == RegexPieceKind::Concatenation && piece.kind == RegexPieceKind::Alternation {
                joined.regex_text.push_str(&piece.into_grouped_regex_text());
            } else {
                joined.regex_text.push_str(&piece.regex_text);
            }
        }
        joined
    }
}
