//! Lists, maps and messages.

use super::Parser;
use super::token_sets::{
    AFTER_ITEM, BRACE_END, COLON, EXPRESSION, LIST_END, OPTIONAL_EXPRESSION, OPTIONAL_FIELD,
};
use crate::parse::error_recovery::{GrammarSite, ParseFault};
use crate::parse::parse_issues::ParseAborted;
use crate::parse::syntax_tree::{MessageField, SyntaxElement, SyntaxEntry, SyntaxId, SyntaxNode};
use crate::parse::token::{TokenKind as T, TokenSet};

impl Parser<'_> {
    pub(super) fn list(&mut self, result: &mut SyntaxId) -> Result<(), ParseFault> {
        let open = self.input.take()?;
        let mut elements = Vec::new();
        let outcome = self.list_inside(&mut elements);
        *result = self.push(open.start, SyntaxNode::List { open: open.offset, elements });
        outcome
    }

    fn list_inside(&mut self, elements: &mut Vec<SyntaxElement>) -> Result<(), ParseFault> {
        self.input.sync(GrammarSite::ListElements, OPTIONAL_EXPRESSION.union(LIST_END))?;
        if OPTIONAL_EXPRESSION.contains(self.input.kind()?) {
            self.input.enter(LIST_END);
            elements.push(self.optional_expression(AFTER_ITEM)?);
            while self.takes_comma_before(OPTIONAL_EXPRESSION)? {
                elements.push(self.optional_expression(AFTER_ITEM)?);
            }
            self.input.leave();
        }
        self.close(GrammarSite::ListComma, GrammarSite::ListClose, T::RightBracket)
    }

    pub(super) fn map(&mut self, result: &mut SyntaxId) -> Result<(), ParseFault> {
        let open = self.input.take()?;
        let mut entries = Vec::new();
        let outcome = self.map_inside(&mut entries);
        *result = self.push(open.start, SyntaxNode::Map { open: open.offset, entries });
        outcome
    }

    fn map_inside(
        &mut self,
        entries: &mut Vec<SyntaxEntry<SyntaxElement>>,
    ) -> Result<(), ParseFault> {
        self.input.sync(GrammarSite::MapEntries, OPTIONAL_EXPRESSION.union(BRACE_END))?;
        if OPTIONAL_EXPRESSION.contains(self.input.kind()?) {
            self.input.enter(BRACE_END);
            let outcome = self.map_entries(entries);
            self.input.absorb(outcome)?;
            self.input.leave();
        }
        self.close(GrammarSite::MapComma, GrammarSite::MapClose, T::RightBrace)
    }

    fn map_entries(
        &mut self,
        entries: &mut Vec<SyntaxEntry<SyntaxElement>>,
    ) -> Result<(), ParseFault> {
        let mut site = GrammarSite::FirstEntryColon;
        loop {
            let key = self.optional_expression(COLON)?;
            let colon = self.input.expect(site, T::Colon, EXPRESSION)?.offset;
            let value = self.expression(AFTER_ITEM)?;
            entries.push(SyntaxEntry { key, colon, value });
            if !self.takes_comma_before(OPTIONAL_EXPRESSION)? {
                return Ok(());
            }
            site = GrammarSite::EntryColon;
        }
    }

    pub(super) fn message(&mut self, result: &mut SyntaxId) -> Result<(), ParseFault> {
        let start = self.input.token()?.start;
        let leading_dot = self.input.take_if(T::Dot)?.is_some();
        let mut names = vec![self.input.take()?];
        while self.input.take_if(T::Dot)?.is_some() {
            names.push(self.input.take()?);
        }
        let open = self.input.take()?.offset;
        let mut fields = Vec::new();
        let outcome = self.message_inside(&mut fields);
        *result = self.push(start, SyntaxNode::Message { leading_dot, names, open, fields });
        outcome
    }

    fn message_inside(
        &mut self,
        fields: &mut Vec<SyntaxEntry<MessageField>>,
    ) -> Result<(), ParseFault> {
        self.input.sync(GrammarSite::MessageFields, OPTIONAL_FIELD.union(BRACE_END))?;
        if OPTIONAL_FIELD.contains(self.input.kind()?) {
            self.input.enter(BRACE_END);
            let outcome = self.message_fields(fields);
            self.input.absorb(outcome)?;
            self.input.leave();
        }
        self.close(GrammarSite::MessageComma, GrammarSite::MessageClose, T::RightBrace)
    }

    fn message_fields(
        &mut self,
        fields: &mut Vec<SyntaxEntry<MessageField>>,
    ) -> Result<(), ParseFault> {
        let fields_start = self.input.token()?.offset;
        let mut site = GrammarSite::FirstFieldColon;
        loop {
            let key = self.message_field(fields_start)?;
            let colon = self.input.expect(site, T::Colon, EXPRESSION)?.offset;
            let value = self.expression(AFTER_ITEM)?;
            fields.push(SyntaxEntry { key, colon, value });
            if !self.takes_comma_before(OPTIONAL_FIELD)? {
                return Ok(());
            }
            site = GrammarSite::FieldColon;
        }
    }

    /// `'?'? escapeIdent`.
    fn message_field(&mut self, fields_start: u32) -> Result<MessageField, ParseAborted> {
        self.input.enter(COLON);
        let mut field = MessageField { optional: false, name: None, fields_start };
        let outcome = self.input.sync(GrammarSite::OptionalField, OPTIONAL_FIELD);
        if outcome.is_ok() {
            field.optional = self.input.take_if(T::Question)?.is_some();
            field.name = Some(self.field_name(TokenSet::RULE_END)?);
        }
        self.input.absorb(outcome)?;
        self.input.leave();
        Ok(field)
    }

    /// `'?'? expr`.
    fn optional_expression(&mut self, follow: TokenSet) -> Result<SyntaxElement, ParseAborted> {
        self.input.enter(follow);
        let mut element = SyntaxElement { optional: false, value: SyntaxId::MISSING };
        let outcome = self.input.sync(GrammarSite::OptionalExpression, OPTIONAL_EXPRESSION);
        if outcome.is_ok() {
            element.optional = self.input.take_if(T::Question)?.is_some();
            element.value = self.expression(TokenSet::RULE_END)?;
        }
        self.input.absorb(outcome)?;
        self.input.leave();
        Ok(element)
    }

    /// Takes a comma that separates items. One that ends the last item is left alone.
    fn takes_comma_before(&mut self, items: TokenSet) -> Result<bool, ParseAborted> {
        let separates = self.input.kind()? == T::Comma && items.contains(self.input.peek(1)?.kind);
        if separates {
            self.input.take()?;
        }
        Ok(separates)
    }

    /// `','?` and the closing bracket or brace.
    fn close(&mut self, comma: GrammarSite, close: GrammarSite, kind: T) -> Result<(), ParseFault> {
        self.input.sync(comma, TokenSet::of(&[T::Comma, kind]))?;
        self.input.take_if(T::Comma)?;
        self.input.expect(close, kind, TokenSet::RULE_END)?;
        Ok(())
    }
}
