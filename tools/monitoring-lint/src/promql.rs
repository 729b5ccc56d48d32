//! Parses the parts of PromQL that show which series and labels a query uses.

use std::collections::BTreeSet;

/// The series and labels that a query uses.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct ParsedQuery {
    pub(crate) selectors: Vec<Selector>,
    /// Labels that the query groups or joins by.
    pub(crate) labels: BTreeSet<String>,
}

/// The name of a series, with matchers of its labels.
#[derive(Debug, PartialEq)]
pub(crate) struct Selector {
    pub(crate) name: String,
    /// The label, the operator and the value of each matcher.
    pub(crate) matchers: Vec<(String, String, String)>,
}

const FUNCTIONS: [&str; 8] =
    ["count", "histogram_quantile", "increase", "max", "min", "rate", "sum", "time"];
const OPERATORS: [&str; 4] = ["and", "offset", "or", "unless"];
const WITH_LABELS: [&str; 4] = ["by", "ignoring", "on", "without"];

/// The reason why the parser does not understand a query.
#[derive(Debug, PartialEq, thiserror::Error)]
pub enum PromqlError {
    /// The word `by`, `on` or a similar one has no list of labels.
    #[error("no labels after `{0}`")]
    NoLabels(String),
    /// The function is not one that a query of this project uses.
    #[error("unknown function `{0}`")]
    UnknownFunction(String),
    /// The text within braces is not `label operator "value"`.
    #[error("no matcher: {0}")]
    BadMatcher(String),
    /// A bracket is not closed.
    #[error("no `{0}`")]
    Unclosed(char),
    /// A quoted text has no closing quote.
    #[error("a text does not end")]
    UnclosedText,
    /// PromQL does not use the character.
    #[error("unexpected `{0}`")]
    UnexpectedCharacter(char),
}

/// Finds the series and labels that a query uses.
pub(crate) fn parse_query(query: &str) -> Result<ParsedQuery, PromqlError> {
    let tokens = scan_tokens(query)?;
    let mut parsed = ParsedQuery::default();
    let mut rest = tokens.as_slice();
    while let Some((token, after)) = rest.split_first() {
        rest = after;
        let word = match token {
            Token::Word(word) => word.as_str(),
            Token::Sign('[') => {
                rest = split_at_closing(rest, ']')?.1;
                continue;
            }
            Token::Sign(_) | Token::Number | Token::Text(_) => continue,
        };
        let next = rest.first();
        if WITH_LABELS.contains(&word) {
            let Some(Token::Sign('(')) = next else {
                return Err(PromqlError::NoLabels(word.to_owned()));
            };
            let (inside, after) = split_at_closing(rest.get(1..).unwrap_or_default(), ')')?;
            parsed.labels.extend(inside.iter().filter_map(Token::word).map(str::to_owned));
            rest = after;
        } else if OPERATORS.contains(&word) || FUNCTIONS.contains(&word) {
            // The operands follow in the next tokens.
        } else if let Some(Token::Sign('(')) = next {
            return Err(PromqlError::UnknownFunction(word.to_owned()));
        } else {
            let mut selector = Selector { name: word.to_owned(), matchers: Vec::new() };
            if let Some(Token::Sign('{')) = next {
                let (inside, after) = split_at_closing(rest.get(1..).unwrap_or_default(), '}')?;
                selector.matchers = parse_matchers(inside)?;
                rest = after;
            }
            parsed.selectors.push(selector);
        }
    }
    Ok(parsed)
}

fn parse_matchers(inside: &[Token]) -> Result<Vec<(String, String, String)>, PromqlError> {
    let one = |tokens: &[Token]| match tokens {
        [Token::Word(label), operator @ .., Token::Text(value)] => {
            let operator = operator.iter().map(|sign| match sign {
                Token::Sign(sign) => Ok(*sign),
                other => Err(PromqlError::BadMatcher(format!("{other:?}"))),
            });
            Ok((label.clone(), operator.collect::<Result<_, _>>()?, value.clone()))
        }
        other => Err(PromqlError::BadMatcher(format!("{other:?}"))),
    };
    inside.split(|token| *token == Token::Sign(',')).map(one).collect()
}

/// Splits the tokens before the closing sign from those after it.
fn split_at_closing(tokens: &[Token], sign: char) -> Result<(&[Token], &[Token]), PromqlError> {
    let at = tokens.iter().position(|token| *token == Token::Sign(sign));
    let at = at.ok_or(PromqlError::Unclosed(sign))?;
    Ok((&tokens[..at], &tokens[at + 1..]))
}

#[derive(Debug, PartialEq)]
enum Token {
    Word(String),
    Number,
    Text(String),
    Sign(char),
}

impl Token {
    fn word(&self) -> Option<&str> {
        match self {
            Self::Word(word) => Some(word),
            Self::Number | Self::Text(_) | Self::Sign(_) => None,
        }
    }
}

fn scan_tokens(query: &str) -> Result<Vec<Token>, PromqlError> {
    let mut tokens = Vec::new();
    let mut rest = query.trim_start();
    while let Some(first) = rest.chars().next() {
        let end_of = |is_part: fn(char) -> bool| rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | ':' | '$');
        let n = match first {
            '"' => {
                let end = rest[1..].find('"').ok_or(PromqlError::UnclosedText)?;
                tokens.push(Token::Text(rest[1..=end].to_owned()));
                end + 2
            }
            '0'..='9' => {
                tokens.push(Token::Number);
                end_of(|c| c.is_ascii_alphanumeric() || c == '.')
            }
            first if is_word(first) => {
                let end = end_of(is_word);
                tokens.push(Token::Word(rest[..end].to_owned()));
                end
            }
            sign if sign.is_ascii_punctuation() => {
                tokens.push(Token::Sign(sign));
                1
            }
            other => return Err(PromqlError::UnexpectedCharacter(other)),
        };
        rest = rest[n..].trim_start();
    }
    Ok(tokens)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_parsed() {
        let parsed = parse_query(
            "histogram_quantile(0.99, sum by (le, name) (rate(a_bucket{x=~\"$x\", y!=\"1\"}[5m]))) \
             > on (job) b or c unless c offset 5m",
        )
        .unwrap();
        let names: Vec<&str> =
            parsed.selectors.iter().map(|selector| selector.name.as_str()).collect();
        assert_eq!(names, ["a_bucket", "b", "c", "c"]);
        let matcher = |label: &str, operator: &str, value: &str| {
            (label.to_owned(), operator.to_owned(), value.to_owned())
        };
        assert_eq!(
            parsed.selectors[0].matchers,
            [matcher("x", "=~", "$x"), matcher("y", "!=", "1")]
        );
        assert_eq!(parsed.labels, ["job", "le", "name"].map(str::to_owned).into());
        for broken in ["rat(a[5m])", "a{x}", "sum by a", "a[5m", "a{x=\"1}"] {
            assert!(parse_query(broken).is_err(), "{broken}");
        }
    }
}
