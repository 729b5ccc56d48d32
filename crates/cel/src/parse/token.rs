//! The tokens of the grammar and sets of them.

use std::fmt;

/// The kinds of tokens.
///
/// The order is that of cel-go's grammar. Error messages list the expected tokens in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum TokenKind {
    Eof,
    Equals,
    NotEquals,
    In,
    Less,
    LessEquals,
    GreaterEquals,
    Greater,
    LogicalAnd,
    LogicalOr,
    LeftBracket,
    RightBracket,
    LeftBrace,
    RightBrace,
    LeftParen,
    RightParen,
    Dot,
    Comma,
    Minus,
    Exclamation,
    Question,
    Colon,
    Plus,
    Star,
    Slash,
    Percent,
    True,
    False,
    Null,
    Float,
    Int,
    Uint,
    String,
    Bytes,
    Identifier,
    EscapedIdentifier,
}

/// All kinds in order, to list the members of a set.
const KINDS: [TokenKind; 36] = [
    TokenKind::Eof,
    TokenKind::Equals,
    TokenKind::NotEquals,
    TokenKind::In,
    TokenKind::Less,
    TokenKind::LessEquals,
    TokenKind::GreaterEquals,
    TokenKind::Greater,
    TokenKind::LogicalAnd,
    TokenKind::LogicalOr,
    TokenKind::LeftBracket,
    TokenKind::RightBracket,
    TokenKind::LeftBrace,
    TokenKind::RightBrace,
    TokenKind::LeftParen,
    TokenKind::RightParen,
    TokenKind::Dot,
    TokenKind::Comma,
    TokenKind::Minus,
    TokenKind::Exclamation,
    TokenKind::Question,
    TokenKind::Colon,
    TokenKind::Plus,
    TokenKind::Star,
    TokenKind::Slash,
    TokenKind::Percent,
    TokenKind::True,
    TokenKind::False,
    TokenKind::Null,
    TokenKind::Float,
    TokenKind::Int,
    TokenKind::Uint,
    TokenKind::String,
    TokenKind::Bytes,
    TokenKind::Identifier,
    TokenKind::EscapedIdentifier,
];

impl TokenKind {
    /// The name of the token in error messages.
    fn name(self) -> &'static str {
        match self {
            Self::Eof => "<EOF>",
            Self::Equals => "'=='",
            Self::NotEquals => "'!='",
            Self::In => "'in'",
            Self::Less => "'<'",
            Self::LessEquals => "'<='",
            Self::GreaterEquals => "'>='",
            Self::Greater => "'>'",
            Self::LogicalAnd => "'&&'",
            Self::LogicalOr => "'||'",
            Self::LeftBracket => "'['",
            Self::RightBracket => "']'",
            Self::LeftBrace => "'{'",
            Self::RightBrace => "'}'",
            Self::LeftParen => "'('",
            Self::RightParen => "')'",
            Self::Dot => "'.'",
            Self::Comma => "','",
            Self::Minus => "'-'",
            Self::Exclamation => "'!'",
            Self::Question => "'?'",
            Self::Colon => "':'",
            Self::Plus => "'+'",
            Self::Star => "'*'",
            Self::Slash => "'/'",
            Self::Percent => "'%'",
            Self::True => "'true'",
            Self::False => "'false'",
            Self::Null => "'null'",
            Self::Float => "NUM_FLOAT",
            Self::Int => "NUM_INT",
            Self::Uint => "NUM_UINT",
            Self::String => "STRING",
            Self::Bytes => "BYTES",
            Self::Identifier => "IDENTIFIER",
            Self::EscapedIdentifier => "ESC_IDENTIFIER",
        }
    }
}

/// A token with its position in the source.
#[derive(Debug, Clone, Copy)]
pub(super) struct Token {
    pub(super) kind: TokenKind,
    /// The offset from the start of the source in code points.
    pub(super) source_offset: u32,
    /// The position of the first byte. The limit on the source length keeps it small.
    pub(super) start: u32,
    /// The position after the last byte.
    pub(super) end_byte: u32,
}

impl Token {
    /// The text of the token. `source` is the text that the token was read from.
    pub(super) fn source_text<'s>(&self, source: &'s str) -> &'s str {
        source.get(self.start as usize..self.end_byte as usize).unwrap_or_default()
    }
}

/// A set of token kinds, and whether the current grammar rule may end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TokenSet(u64);

impl TokenSet {
    pub(super) const EMPTY: Self = Self(0);

    /// The mark in a set that the grammar rule may end here. The follow set of the rule says which tokens may then
    /// follow.
    pub(super) const RULE_END: Self = Self(1 << 63);

    pub(super) const fn from_token_kinds(mut kinds: &[TokenKind]) -> Self {
        let mut bits = 0;
        while let [kind, rest @ ..] = kinds {
            bits |= 1 << *kind as u64;
            kinds = rest;
        }
        Self(bits)
    }

    pub(super) const fn union_with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(super) const fn without_rule_end(self) -> Self {
        Self(self.0 & !Self::RULE_END.0)
    }

    pub(super) const fn contains(self, kind: TokenKind) -> bool {
        self.0 & (1 << kind as u64) != 0
    }

    pub(super) const fn allows_rule_end(self) -> bool {
        self.0 & Self::RULE_END.0 != 0
    }
}

/// Writes a single name, or several names in braces.
impl fmt::Display for TokenSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> =
            KINDS.iter().filter(|kind| self.contains(**kind)).map(|kind| kind.name()).collect();
        match names.as_slice() {
            [name] => f.write_str(name),
            names => write!(f, "{{{}}}", names.join(", ")),
        }
    }
}
