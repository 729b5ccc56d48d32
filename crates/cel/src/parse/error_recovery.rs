//! Error recovery of the parser.
//!
//! ANTLR generates cel-go's parser. After an error, the runtime of ANTLR continues as follows:
//! 1. If the next token fits, it drops the current token.
//! 2. If the current token can follow the missing one, it acts as if the missing token were there.
//! 3. Otherwise it leaves the grammar rule and skips to a token that can follow this rule or an
//!    enclosing one.
//!
//! The number and the messages of the reported errors depend on these steps. This module follows
//! them, with ANTLR's names.

use super::lexer::TokenStream;
use super::parse_issues::{ParseAborted, ParseIssues};
use super::token::{Token, TokenKind, TokenSet};
use super::{RECOVERIES_MAX, RECOVERY_TOKENS_MAX};

/// A position in the grammar at which the parser can report an error.
///
/// If recovery reaches the same position at the same token twice, it drops that token, so that the
/// parser always ends.
#[derive(Debug, Clone, Copy)]
pub(super) enum GrammarPosition {
    End,
    ConditionalColon,
    UnaryStart,
    NegationLoop,
    MemberSuffix,
    MemberArguments,
    MemberArgumentsClose,
    Index,
    IndexClose,
    Primary,
    CallArguments,
    CallArgumentsClose,
    NestedClose,
    ListElements,
    ListComma,
    ListClose,
    MapEntries,
    MapComma,
    MapClose,
    MessageFields,
    MessageComma,
    MessageClose,
    FirstFieldColon,
    FieldColon,
    FirstEntryColon,
    EntryColon,
    OptionalField,
    FieldName,
    OptionalExpression,
    Literal,
}

/// The reason why a grammar rule fails.
pub(super) enum ParseFault {
    Abort(ParseAborted),
    /// The current token is not one of the expected tokens.
    Mismatch {
        position: GrammarPosition,
        expected: TokenSet,
    },
    /// No alternative begins with the tokens from `first` to `last`.
    NoViableAlternative {
        position: GrammarPosition,
        first: Token,
        last: Token,
    },
}

impl From<ParseAborted> for ParseFault {
    fn from(abort: ParseAborted) -> Self {
        Self::Abort(abort)
    }
}

/// The tokens of a source text, and the state of error recovery.
pub(super) struct RecoveringTokenStream<'s> {
    source: &'s str,
    tokens: TokenStream<'s>,
    pub(super) issues: ParseIssues,
    /// The follow set of each rule that is being parsed, outermost first.
    follow_sets: Vec<TokenSet>,
    /// Whether no token has matched since the last error. While this is true, further errors are not reported.
    is_recovering_from_error: bool,
    /// The index of the token at the last error, and a bit set of the grammar positions of all
    /// errors since a token matched.
    error_grammar_positions: Option<(usize, u64)>,
    n_error_recoveries: usize,
    /// The byte after the last token that was taken.
    last_token_end: u32,
}

impl<'s> RecoveringTokenStream<'s> {
    pub(super) fn new(source: &'s str) -> Self {
        Self {
            source,
            tokens: TokenStream::new(source),
            issues: ParseIssues::default(),
            follow_sets: Vec::new(),
            is_recovering_from_error: false,
            error_grammar_positions: None,
            n_error_recoveries: 0,
            last_token_end: 0,
        }
    }

    pub(super) fn enter_grammar_rule(&mut self, follow_set: TokenSet) {
        self.follow_sets.push(follow_set);
    }

    pub(super) fn leave_grammar_rule(&mut self) {
        self.follow_sets.pop();
    }

    /// Returns the current token without consuming it.
    pub(super) fn current_token(&mut self) -> Result<Token, ParseAborted> {
        self.tokens.peek_token(0, &mut self.issues)
    }

    /// The kind of the current token.
    pub(super) fn current_token_kind(&mut self) -> Result<TokenKind, ParseAborted> {
        Ok(self.current_token()?.kind)
    }

    /// Returns the token that is `ahead` places after the current one.
    pub(super) fn peek_token(&mut self, ahead: usize) -> Result<Token, ParseAborted> {
        self.tokens.peek_token(ahead, &mut self.issues)
    }

    /// Takes the current token, which the grammar accepts. Recovery from errors ends.
    pub(super) fn take_token(&mut self) -> Result<Token, ParseAborted> {
        let token = self.current_token()?;
        self.end_error_recovery();
        self.tokens.advance_token();
        self.last_token_end = token.end_byte;
        Ok(token)
    }

    /// The byte after the last token that was taken.
    pub(super) fn last_token_end(&self) -> u32 {
        self.last_token_end
    }

    /// Takes the current token if it is of the given kind.
    pub(super) fn take_token_if(&mut self, kind: TokenKind) -> Result<Option<Token>, ParseAborted> {
        if self.current_token_kind()? == kind { self.take_token().map(Some) } else { Ok(None) }
    }

    /// Takes a token of the given kind. If the current token is of another kind, drops it or acts
    /// as if the expected token stood before it. `then` is the set of tokens that may follow the
    /// expected one.
    pub(super) fn expect_token(
        &mut self,
        position: GrammarPosition,
        kind: TokenKind,
        then: TokenSet,
    ) -> Result<Token, ParseFault> {
        let token = self.current_token()?;
        if token.kind == kind {
            return Ok(self.take_token()?);
        }
        let expected = TokenSet::from_token_kinds(&[kind]);
        self.count_error_recovery()?;
        if self.try_drop_token(expected)? {
            return Ok(self.take_token()?);
        }
        if self.expected_tokens_in_context(then).contains(token.kind) {
            if !self.is_recovering_from_error {
                let message = format!("missing {expected} at {}", self.quote_token(token));
                self.begin_error_recovery(token, &message)?;
            }
            return Ok(token);
        }
        Err(ParseFault::Mismatch { position, expected })
    }

    /// Synchronizes before a choice: the current token must be one of `expected`. It is dropped if
    /// the next token is one of them.
    pub(super) fn sync_to_expected_token(
        &mut self,
        position: GrammarPosition,
        expected: TokenSet,
    ) -> Result<(), ParseFault> {
        if self.is_recovering_from_error
            || expected.contains(self.current_token_kind()?)
            || self.try_drop_token(expected)?
        {
            return Ok(());
        }
        Err(ParseFault::Mismatch { position, expected })
    }

    /// Synchronizes after an iteration of a loop: skips to a token that begins another iteration or
    /// can follow the loop.
    pub(super) fn sync_after_loop_iteration(
        &mut self,
        expected: TokenSet,
    ) -> Result<(), ParseAborted> {
        if self.is_recovering_from_error || expected.contains(self.current_token_kind()?) {
            return Ok(());
        }
        self.report_unwanted_token(expected)?;
        let wanted = expected.union_with(self.error_recovery_token_set());
        while !self.is_at_recovery_token(wanted)? {
            self.tokens.advance_token();
        }
        Ok(())
    }

    /// Ends a rule. If the rule failed, reports the error and skips to a token at which an
    /// enclosing rule can continue.
    pub(super) fn finish_grammar_rule(
        &mut self,
        outcome: Result<(), ParseFault>,
    ) -> Result<(), ParseAborted> {
        let position = match outcome {
            Ok(()) => return Ok(()),
            Err(ParseFault::Abort(abort)) => return Err(abort),
            Err(ParseFault::Mismatch { position, expected }) => {
                if !self.is_recovering_from_error {
                    let token = self.current_token()?;
                    let found = self.quote_token(token);
                    let message = format!("mismatched input {found} expecting {expected}");
                    self.begin_error_recovery(token, &message)?;
                }
                position
            }
            Err(ParseFault::NoViableAlternative { position, first, last }) => {
                if !self.is_recovering_from_error {
                    let message = self.no_viable_alternative_message(first, last);
                    self.begin_error_recovery(last, &message)?;
                }
                position
            }
        };
        self.recover_from_error(position)
    }

    fn recover_from_error(&mut self, position: GrammarPosition) -> Result<(), ParseAborted> {
        self.count_error_recovery()?;
        let mut n_skipped = 0;
        let bit = 1 << position as u64;
        let positions = match self.error_grammar_positions {
            Some((index, positions)) => {
                if index == self.tokens.index() && positions & bit != 0 {
                    self.skip_token(&mut n_skipped)?;
                }
                positions | bit
            }
            None => bit,
        };
        self.error_grammar_positions = Some((self.tokens.index(), positions));
        let wanted = self.error_recovery_token_set();
        while !self.is_at_recovery_token(wanted)? {
            self.skip_token(&mut n_skipped)?;
        }
        Ok(())
    }

    fn is_at_recovery_token(&mut self, wanted: TokenSet) -> Result<bool, ParseAborted> {
        let kind = self.current_token_kind()?;
        Ok(kind == TokenKind::Eof || wanted.contains(kind))
    }

    fn skip_token(&mut self, n_skipped: &mut usize) -> Result<(), ParseAborted> {
        if *n_skipped == RECOVERY_TOKENS_MAX {
            return Err(self.issues.report_limit_exceeded(format!(
                "error recovery token lookahead limit exceeded: {RECOVERY_TOKENS_MAX}"
            )));
        }
        *n_skipped += 1;
        self.tokens.advance_token();
        Ok(())
    }

    fn count_error_recovery(&mut self) -> Result<(), ParseAborted> {
        if self.n_error_recoveries == RECOVERIES_MAX {
            let offset = self.current_token()?.source_offset;
            let message = format!("error recovery attempt limit exceeded: {RECOVERIES_MAX}");
            self.issues.report_syntax_error(offset, &message)?;
            return Err(ParseAborted);
        }
        self.n_error_recoveries += 1;
        Ok(())
    }

    /// Drops the current token if the next one is expected. Returns whether it did.
    fn try_drop_token(&mut self, expected: TokenSet) -> Result<bool, ParseAborted> {
        if !expected.contains(self.peek_token(1)?.kind) {
            return Ok(false);
        }
        self.report_unwanted_token(expected)?;
        self.tokens.advance_token();
        self.end_error_recovery();
        Ok(true)
    }

    fn report_unwanted_token(&mut self, expected: TokenSet) -> Result<(), ParseAborted> {
        if self.is_recovering_from_error {
            return Ok(());
        }
        let token = self.current_token()?;
        let found = self.quote_token(token);
        self.begin_error_recovery(token, &format!("extraneous input {found} expecting {expected}"))
    }

    fn begin_error_recovery(&mut self, token: Token, message: &str) -> Result<(), ParseAborted> {
        self.is_recovering_from_error = true;
        self.issues.report_syntax_error(token.source_offset, message)
    }

    fn end_error_recovery(&mut self) {
        self.is_recovering_from_error = false;
        self.error_grammar_positions = None;
    }

    /// The expected tokens in context: `next`, and if the current rule may end, its follow sets.
    fn expected_tokens_in_context(&self, next: TokenSet) -> TokenSet {
        let mut expected = next;
        for follow in self.follow_sets.iter().rev() {
            if !expected.allows_rule_end() {
                break;
            }
            expected = expected.without_rule_end().union_with(*follow);
        }
        expected
    }

    /// The union of the follow sets of all rules that are being parsed.
    fn error_recovery_token_set(&self) -> TokenSet {
        self.follow_sets.iter().fold(TokenSet::EMPTY, |all, follow| all.union_with(*follow))
    }

    fn no_viable_alternative_message(&self, first: Token, last: Token) -> String {
        let text = match first.kind {
            TokenKind::Eof => "<EOF>".to_owned(),
            _ => self.tokens.source_text_between(first, last),
        };
        // cel-go replaces this message by that of its older versions.
        if let Some(word @ ("true" | "false" | "null")) = text.get(1..) {
            return format!("mismatched input '{word}' expecting IDENTIFIER");
        }
        format!("no viable alternative at input {}", quote_for_message(&text))
    }

    fn quote_token(&self, token: Token) -> String {
        match token.kind {
            TokenKind::Eof => quote_for_message("<EOF>"),
            _ => quote_for_message(token.source_text(self.source)),
        }
    }
}

fn quote_for_message(text: &str) -> String {
    format!("'{}'", text.replace('\t', "\\t").replace('\n', "\\n").replace('\r', "\\r"))
}
