//! Parses list, map and message literals.

use super::Parser;
use super::token_sets::{
    AFTER_ITEM, BRACE_END, COLON, EXPRESSION, LIST_END, OPTIONAL_EXPRESSION, OPTIONAL_FIELD,
};
use crate::parse::concrete_syntax_tree::{
    ElementSyntax, KeyValueSyntax, MessageFieldKey, SyntaxNode, SyntaxNodeId,
};
use crate::parse::error_recovery::{GrammarPosition, ParseFault};
use crate::parse::parse_issues::ParseAborted;
use crate::parse::token::{TokenKind as T, TokenSet};

impl Parser<'_> {
    pub(super) fn parse_list_literal(
        &mut self,
        result: &mut SyntaxNodeId,
    ) -> Result<(), ParseFault> {
        let open = self.tokens.take_token()?;
        let mut elements = Vec::new();
        let outcome = self.parse_list_elements(&mut elements);
        *result = self.push(open.start, SyntaxNode::List { open: open.source_offset, elements });
        outcome
    }

    fn parse_list_elements(&mut self, elements: &mut Vec<ElementSyntax>) -> Result<(), ParseFault> {
        self.tokens.sync_to_expected_token(
            GrammarPosition::ListElements,
            OPTIONAL_EXPRESSION.union_with(LIST_END),
        )?;
        if OPTIONAL_EXPRESSION.contains(self.tokens.current_token_kind()?) {
            self.tokens.enter_grammar_rule(LIST_END);
            elements.push(self.parse_optionally_marked_expression(AFTER_ITEM)?);
            while self.take_separating_comma(OPTIONAL_EXPRESSION)? {
                elements.push(self.parse_optionally_marked_expression(AFTER_ITEM)?);
            }
            self.tokens.leave_grammar_rule();
        }
        self.parse_closing_token(
            GrammarPosition::ListComma,
            GrammarPosition::ListClose,
            T::RightBracket,
        )
    }

    pub(super) fn parse_map_literal(
        &mut self,
        result: &mut SyntaxNodeId,
    ) -> Result<(), ParseFault> {
        let open = self.tokens.take_token()?;
        let mut entries = Vec::new();
        let outcome = self.parse_map_body(&mut entries);
        *result = self.push(open.start, SyntaxNode::Map { open: open.source_offset, entries });
        outcome
    }

    fn parse_map_body(
        &mut self,
        entries: &mut Vec<KeyValueSyntax<ElementSyntax>>,
    ) -> Result<(), ParseFault> {
        self.tokens.sync_to_expected_token(
            GrammarPosition::MapEntries,
            OPTIONAL_EXPRESSION.union_with(BRACE_END),
        )?;
        if OPTIONAL_EXPRESSION.contains(self.tokens.current_token_kind()?) {
            self.tokens.enter_grammar_rule(BRACE_END);
            let outcome = self.parse_map_entries(entries);
            self.tokens.finish_grammar_rule(outcome)?;
            self.tokens.leave_grammar_rule();
        }
        self.parse_closing_token(
            GrammarPosition::MapComma,
            GrammarPosition::MapClose,
            T::RightBrace,
        )
    }

    fn parse_map_entries(
        &mut self,
        entries: &mut Vec<KeyValueSyntax<ElementSyntax>>,
    ) -> Result<(), ParseFault> {
        let mut position = GrammarPosition::FirstEntryColon;
        loop {
            let key = self.parse_optionally_marked_expression(COLON)?;
            let colon = self.tokens.expect_token(position, T::Colon, EXPRESSION)?.source_offset;
            let value = self.parse_expression(AFTER_ITEM)?;
            entries.push(KeyValueSyntax { key, colon_offset: colon, value });
            if !self.take_separating_comma(OPTIONAL_EXPRESSION)? {
                return Ok(());
            }
            position = GrammarPosition::EntryColon;
        }
    }

    pub(super) fn parse_message_literal(
        &mut self,
        result: &mut SyntaxNodeId,
    ) -> Result<(), ParseFault> {
        let start = self.tokens.current_token()?.start;
        let leading_dot = self.tokens.take_token_if(T::Dot)?.is_some();
        let mut names = vec![self.tokens.take_token()?];
        while self.tokens.take_token_if(T::Dot)?.is_some() {
            names.push(self.tokens.take_token()?);
        }
        let open = self.tokens.take_token()?.source_offset;
        let mut fields = Vec::new();
        let outcome = self.parse_message_body(&mut fields);
        *result = self.push(start, SyntaxNode::Message { leading_dot, names, open, fields });
        outcome
    }

    fn parse_message_body(
        &mut self,
        fields: &mut Vec<KeyValueSyntax<MessageFieldKey>>,
    ) -> Result<(), ParseFault> {
        self.tokens.sync_to_expected_token(
            GrammarPosition::MessageFields,
            OPTIONAL_FIELD.union_with(BRACE_END),
        )?;
        if OPTIONAL_FIELD.contains(self.tokens.current_token_kind()?) {
            self.tokens.enter_grammar_rule(BRACE_END);
            let outcome = self.parse_message_fields(fields);
            self.tokens.finish_grammar_rule(outcome)?;
            self.tokens.leave_grammar_rule();
        }
        self.parse_closing_token(
            GrammarPosition::MessageComma,
            GrammarPosition::MessageClose,
            T::RightBrace,
        )
    }

    fn parse_message_fields(
        &mut self,
        fields: &mut Vec<KeyValueSyntax<MessageFieldKey>>,
    ) -> Result<(), ParseFault> {
        let first_field_offset = self.tokens.current_token()?.source_offset;
        let mut position = GrammarPosition::FirstFieldColon;
        loop {
            let key = self.parse_message_field_key(first_field_offset)?;
            let colon = self.tokens.expect_token(position, T::Colon, EXPRESSION)?.source_offset;
            let value = self.parse_expression(AFTER_ITEM)?;
            fields.push(KeyValueSyntax { key, colon_offset: colon, value });
            if !self.take_separating_comma(OPTIONAL_FIELD)? {
                return Ok(());
            }
            position = GrammarPosition::FieldColon;
        }
    }

    /// Parses the rule `'?'? escapeIdent`.
    fn parse_message_field_key(
        &mut self,
        first_field_offset: u32,
    ) -> Result<MessageFieldKey, ParseAborted> {
        self.tokens.enter_grammar_rule(COLON);
        let mut field =
            MessageFieldKey { has_optional_mark: false, name: None, first_field_offset };
        let outcome =
            self.tokens.sync_to_expected_token(GrammarPosition::OptionalField, OPTIONAL_FIELD);
        if outcome.is_ok() {
            field.has_optional_mark = self.tokens.take_token_if(T::Question)?.is_some();
            field.name = Some(self.parse_field_name(TokenSet::RULE_END)?);
        }
        self.tokens.finish_grammar_rule(outcome)?;
        self.tokens.leave_grammar_rule();
        Ok(field)
    }

    /// Parses the rule `'?'? expr`.
    fn parse_optionally_marked_expression(
        &mut self,
        follow_set: TokenSet,
    ) -> Result<ElementSyntax, ParseAborted> {
        self.tokens.enter_grammar_rule(follow_set);
        let mut element = ElementSyntax { has_optional_mark: false, value: SyntaxNodeId::MISSING };
        let outcome = self
            .tokens
            .sync_to_expected_token(GrammarPosition::OptionalExpression, OPTIONAL_EXPRESSION);
        if outcome.is_ok() {
            element.has_optional_mark = self.tokens.take_token_if(T::Question)?.is_some();
            element.value = self.parse_expression(TokenSet::RULE_END)?;
        }
        self.tokens.finish_grammar_rule(outcome)?;
        self.tokens.leave_grammar_rule();
        Ok(element)
    }

    /// Takes a comma between two items. Does not take a trailing comma after the last item.
    fn take_separating_comma(&mut self, items: TokenSet) -> Result<bool, ParseAborted> {
        let separates = self.tokens.current_token_kind()? == T::Comma
            && items.contains(self.tokens.peek_token(1)?.kind);
        if separates {
            self.tokens.take_token()?;
        }
        Ok(separates)
    }

    /// Parses an optional trailing comma and the closing bracket or brace.
    fn parse_closing_token(
        &mut self,
        comma: GrammarPosition,
        close: GrammarPosition,
        kind: T,
    ) -> Result<(), ParseFault> {
        self.tokens.sync_to_expected_token(comma, TokenSet::from_token_kinds(&[T::Comma, kind]))?;
        self.tokens.take_token_if(T::Comma)?;
        self.tokens.expect_token(close, kind, TokenSet::RULE_END)?;
        Ok(())
    }
}
