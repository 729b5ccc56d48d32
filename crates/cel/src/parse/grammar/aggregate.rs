//! Lists, maps and messages.

use super::Parser;
use super::sets::{
    AFTER_ITEM, BRACE_END, COLON, EXPRESSION, LIST_END, OPTIONAL_EXPRESSION, OPTIONAL_FIELD,
};
use crate::parse::recover::{Fault, Site};
use crate::parse::report::Abort;
use crate::parse::syntax::{Element, Entry, MessageField, Syntax, SyntaxId};
use crate::parse::token::{TokenKind as T, TokenSet};

impl Parser<'_> {
    pub(super) fn list(&mut self, result: &mut SyntaxId) -> Result<(), Fault> {
        let open = self.input.take()?;
        let mut elements = Vec::new();
        let outcome = self.list_inside(&mut elements);
        *result = self.push(open.start, Syntax::List { open: open.offset, elements });
        outcome
    }

    fn list_inside(&mut self, elements: &mut Vec<Element>) -> Result<(), Fault> {
        self.input.sync(Site::ListElements, OPTIONAL_EXPRESSION.union(LIST_END))?;
        if OPTIONAL_EXPRESSION.contains(self.input.kind()?) {
            self.input.enter(LIST_END);
            elements.push(self.optional_expression(AFTER_ITEM)?);
            while self.takes_comma_before(OPTIONAL_EXPRESSION)? {
                elements.push(self.optional_expression(AFTER_ITEM)?);
            }
            self.input.leave();
        }
        self.close(Site::ListComma, Site::ListClose, T::RightBracket)
    }

    pub(super) fn map(&mut self, result: &mut SyntaxId) -> Result<(), Fault> {
        let open = self.input.take()?;
        let mut entries = Vec::new();
        let outcome = self.map_inside(&mut entries);
        *result = self.push(open.start, Syntax::Map { open: open.offset, entries });
        outcome
    }

    fn map_inside(&mut self, entries: &mut Vec<Entry<Element>>) -> Result<(), Fault> {
        self.input.sync(Site::MapEntries, OPTIONAL_EXPRESSION.union(BRACE_END))?;
        if OPTIONAL_EXPRESSION.contains(self.input.kind()?) {
            self.input.enter(BRACE_END);
            let outcome = self.map_entries(entries);
            self.input.absorb(outcome)?;
            self.input.leave();
        }
        self.close(Site::MapComma, Site::MapClose, T::RightBrace)
    }

    fn map_entries(&mut self, entries: &mut Vec<Entry<Element>>) -> Result<(), Fault> {
        let mut site = Site::FirstEntryColon;
        loop {
            let key = self.optional_expression(COLON)?;
            let colon = self.input.expect(site, T::Colon, EXPRESSION)?.offset;
            let value = self.expression(AFTER_ITEM)?;
            entries.push(Entry { key, colon, value });
            if !self.takes_comma_before(OPTIONAL_EXPRESSION)? {
                return Ok(());
            }
            site = Site::EntryColon;
        }
    }

    pub(super) fn message(&mut self, result: &mut SyntaxId) -> Result<(), Fault> {
        let start = self.input.token()?.start;
        let leading_dot = self.input.take_if(T::Dot)?.is_some();
        let mut names = vec![self.input.take()?];
        while self.input.take_if(T::Dot)?.is_some() {
            names.push(self.input.take()?);
        }
        let open = self.input.take()?.offset;
        let mut fields = Vec::new();
        let outcome = self.message_inside(&mut fields);
        *result = self.push(start, Syntax::Message { leading_dot, names, open, fields });
        outcome
    }

    fn message_inside(&mut self, fields: &mut Vec<Entry<MessageField>>) -> Result<(), Fault> {
        self.input.sync(Site::MessageFields, OPTIONAL_FIELD.union(BRACE_END))?;
        if OPTIONAL_FIELD.contains(self.input.kind()?) {
            self.input.enter(BRACE_END);
            let outcome = self.message_fields(fields);
            self.input.absorb(outcome)?;
            self.input.leave();
        }
        self.close(Site::MessageComma, Site::MessageClose, T::RightBrace)
    }

    fn message_fields(&mut self, fields: &mut Vec<Entry<MessageField>>) -> Result<(), Fault> {
        let fields_start = self.input.token()?.offset;
        let mut site = Site::FirstFieldColon;
        loop {
            let key = self.message_field(fields_start)?;
            let colon = self.input.expect(site, T::Colon, EXPRESSION)?.offset;
            let value = self.expression(AFTER_ITEM)?;
            fields.push(Entry { key, colon, value });
            if !self.takes_comma_before(OPTIONAL_FIELD)? {
                return Ok(());
            }
            site = Site::FieldColon;
        }
    }

    /// `'?'? escapeIdent`.
    fn message_field(&mut self, fields_start: u32) -> Result<MessageField, Abort> {
        self.input.enter(COLON);
        let mut field = MessageField { optional: false, name: None, fields_start };
        let outcome = self.input.sync(Site::OptionalField, OPTIONAL_FIELD);
        if outcome.is_ok() {
            field.optional = self.input.take_if(T::Question)?.is_some();
            field.name = Some(self.field_name(TokenSet::RULE_END)?);
        }
        self.input.absorb(outcome)?;
        self.input.leave();
        Ok(field)
    }

    /// `'?'? expr`.
    fn optional_expression(&mut self, follow: TokenSet) -> Result<Element, Abort> {
        self.input.enter(follow);
        let mut element = Element { optional: false, value: SyntaxId::MISSING };
        let outcome = self.input.sync(Site::OptionalExpression, OPTIONAL_EXPRESSION);
        if outcome.is_ok() {
            element.optional = self.input.take_if(T::Question)?.is_some();
            element.value = self.expression(TokenSet::RULE_END)?;
        }
        self.input.absorb(outcome)?;
        self.input.leave();
        Ok(element)
    }

    /// Takes a comma that separates items. One that ends the last item is left alone.
    fn takes_comma_before(&mut self, items: TokenSet) -> Result<bool, Abort> {
        let separates = self.input.kind()? == T::Comma && items.contains(self.input.peek(1)?.kind);
        if separates {
            self.input.take()?;
        }
        Ok(separates)
    }

    /// `','?` and the closing bracket or brace.
    fn close(&mut self, comma: Site, close: Site, kind: T) -> Result<(), Fault> {
        self.input.sync(comma, TokenSet::of(&[T::Comma, kind]))?;
        self.input.take_if(T::Comma)?;
        self.input.expect(close, kind, TokenSet::RULE_END)?;
        Ok(())
    }
}
