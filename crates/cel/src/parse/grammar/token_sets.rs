//! The first sets and follow sets of the grammar rules.

use crate::parse::token::{TokenKind as T, TokenSet};

/// The tokens that can begin a primary expression.
pub(super) const PRIMARY: TokenSet = TokenSet::from_token_kinds(&[
    T::LeftBracket,
    T::LeftBrace,
    T::LeftParen,
    T::Dot,
    T::Minus,
    T::True,
    T::False,
    T::Null,
    T::Float,
    T::Int,
    T::Uint,
    T::String,
    T::Bytes,
    T::Identifier,
]);
/// The tokens that can begin an expression.
pub(super) const EXPRESSION: TokenSet =
    PRIMARY.union_with(TokenSet::from_token_kinds(&[T::Exclamation]));
pub(super) const OPTIONAL_EXPRESSION: TokenSet =
    EXPRESSION.union_with(TokenSet::from_token_kinds(&[T::Question]));
pub(super) const FIELD_NAME: TokenSet =
    TokenSet::from_token_kinds(&[T::Identifier, T::EscapedIdentifier]);
pub(super) const OPTIONAL_FIELD: TokenSet =
    FIELD_NAME.union_with(TokenSet::from_token_kinds(&[T::Question]));

/// The tokens that may follow an operand of a binary operator.
pub(super) const AFTER_OPERAND: TokenSet =
    TokenSet::RULE_END.union_with(TokenSet::from_token_kinds(&[
        T::LogicalOr,
        T::LogicalAnd,
        T::Equals,
        T::NotEquals,
        T::In,
        T::Less,
        T::LessEquals,
        T::GreaterEquals,
        T::Greater,
        T::Plus,
        T::Minus,
        T::Star,
        T::Slash,
        T::Percent,
    ]));
pub(super) const AFTER_PRIMARY: TokenSet =
    TokenSet::RULE_END.union_with(TokenSet::from_token_kinds(&[T::Dot, T::LeftBracket]));
pub(super) const AFTER_CONDITION: TokenSet =
    TokenSet::RULE_END.union_with(TokenSet::from_token_kinds(&[T::Question]));
pub(super) const AFTER_ITEM: TokenSet =
    TokenSet::RULE_END.union_with(TokenSet::from_token_kinds(&[T::Comma]));
pub(super) const COLON: TokenSet = TokenSet::from_token_kinds(&[T::Colon]);
pub(super) const LIST_END: TokenSet = TokenSet::from_token_kinds(&[T::Comma, T::RightBracket]);
pub(super) const BRACE_END: TokenSet = TokenSet::from_token_kinds(&[T::Comma, T::RightBrace]);
