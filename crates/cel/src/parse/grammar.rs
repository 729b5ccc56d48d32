//! The rules of the grammar, one function each.
//!
//! The comments quote the rules of cel-go's grammar. One function parses all levels of binary
//! operators, because no error can occur between them. Where a rule has alternatives, the parser
//! looks ahead exactly as far as cel-go's generated parser, because error messages quote that text.
//!
//! A function that fails still adds a node for the part that it has parsed, because cel-go reports
//! other errors in that part.

use super::RECURSION_MAX;
use super::concrete_syntax_tree::{ConcreteSyntaxTree, SyntaxNode, SyntaxNodeId};
use super::error_recovery::{GrammarPosition, ParseFault, RecoveringTokenStream};
use super::parse_issues::{ParseAborted, ParseIssues};
use super::token::{Token, TokenKind as T, TokenSet};
use crate::ast::SourceSpan;

mod binary_operators;
mod collection_literals;
mod member_expression;
mod primary_expression;
mod token_sets;

use token_sets::{AFTER_CONDITION, COLON, EXPRESSION};

/// Parses a whole text. The tree is missing if parsing stopped early.
pub(super) fn parse_concrete_syntax_tree(
    source: &str,
) -> (Option<(ConcreteSyntaxTree, SyntaxNodeId)>, ParseIssues) {
    let tokens = RecoveringTokenStream::new(source);
    let mut parser = Parser {
        tokens,
        concrete_syntax_tree: ConcreteSyntaxTree::new(),
        grammar_rule_depths: GrammarRuleDepths::default(),
    };
    let root = parser.parse_start_rule();
    let Parser { tokens, concrete_syntax_tree: tree, .. } = parser;
    (root.ok().map(|root| (tree, root)), tokens.issues)
}

struct Parser<'s> {
    tokens: RecoveringTokenStream<'s>,
    concrete_syntax_tree: ConcreteSyntaxTree,
    grammar_rule_depths: GrammarRuleDepths,
}

/// The nesting depth of grammar rules. The limit applies to each rule separately. Rules without a
/// count are never nested deeper than these.
#[derive(Default)]
struct GrammarRuleDepths {
    expression_depth: u32,
    relation_depth: u32,
    arithmetic_depth: u32,
}

impl Parser<'_> {
    /// Parses the rule `expr EOF`.
    fn parse_start_rule(&mut self) -> Result<SyntaxNodeId, ParseAborted> {
        let root = self.parse_expression(TokenSet::from_token_kinds(&[T::Eof]))?;
        let end = self.tokens.expect_token(GrammarPosition::End, T::Eof, TokenSet::EMPTY);
        self.tokens.finish_grammar_rule(end.map(|_| ()))?;
        Ok(root)
    }

    /// Parses the rule `conditionalOr ('?' conditionalOr ':' expr)?`.
    fn parse_expression(&mut self, follow_set: TokenSet) -> Result<SyntaxNodeId, ParseAborted> {
        let start = self.tokens.current_token()?.start;
        self.grammar_rule_depths.expression_depth += 1;
        self.check_grammar_rule_depth()?;
        self.tokens.enter_grammar_rule(follow_set);
        let mut result = self.parse_binary_operators(AFTER_CONDITION)?;
        if let Some(question) = self.tokens.take_token_if(T::Question)? {
            result = self.parse_conditional(start, question, result)?;
        }
        self.tokens.leave_grammar_rule();
        self.grammar_rule_depths.expression_depth -= 1;
        Ok(result)
    }

    fn parse_conditional(
        &mut self,
        start: u32,
        question: Token,
        condition: SyntaxNodeId,
    ) -> Result<SyntaxNodeId, ParseAborted> {
        let then = self.parse_binary_operators(COLON)?;
        let mut otherwise = SyntaxNodeId::MISSING;
        let colon =
            self.tokens.expect_token(GrammarPosition::ConditionalColon, T::Colon, EXPRESSION);
        if colon.is_ok() {
            otherwise = self.parse_expression(TokenSet::RULE_END)?;
        }
        self.tokens.finish_grammar_rule(colon.map(|_| ()))?;
        let question = question.source_offset;
        Ok(self.push(start, SyntaxNode::Conditional { question, condition, then, otherwise }))
    }

    /// Adds a node whose text begins at `start` and ends with the last token that was taken.
    fn push(&mut self, start: u32, node: SyntaxNode) -> SyntaxNodeId {
        self.concrete_syntax_tree
            .push(node, SourceSpan { start, span_end_byte: self.tokens.last_token_end() })
    }

    fn check_grammar_rule_depth(&mut self) -> Result<(), ParseAborted> {
        let GrammarRuleDepths {
            expression_depth: expression,
            relation_depth: relation,
            arithmetic_depth: arithmetic,
        } = self.grammar_rule_depths;
        if expression.max(relation).max(arithmetic) > RECURSION_MAX {
            let message = format!("expression recursion limit exceeded: {RECURSION_MAX}");
            return Err(self.tokens.issues.report_limit_exceeded(message));
        }
        Ok(())
    }
}

fn no_viable_alternative_fault(position: GrammarPosition, first: Token, last: Token) -> ParseFault {
    ParseFault::NoViableAlternative { position, first, last }
}
