//! As much of the query language of Prometheus as finds out what a query looks at.

use std::collections::BTreeSet;

/// What a query looks at.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct ParsedQuery {
    pub(crate) selectors: Vec<Selector>,
    /// Labels that it groups, joins or sorts by.
    pub(crate) labels: BTreeSet<String>,
}

/// The name of a series, and what its labels must be.
#[derive(Debug, PartialEq)]
pub(crate) struct Selector {
    pub(crate) name: String,
    /// Label, operator and value.
    pub(crate) matchers: Vec<(String, String, String)>,
}

const FUNCTIONS: [&str; 8] =
    ["count", "histogram_quantile", "increase", "max", "min", "rate", "sum", "time"];
const OPERATORS: [&str; 4] = ["and", "offset", "or", "unless"];
const WITH_LABELS: [&str; 4] = ["by", "ignoring", "on", "without"];

/// Finds out what a query looks at; fails for what it does not know.
pub(crate) fn parse_query(query: &str) -> Result<ParsedQuery, String> {
    let tokens = tokens(query)?;
    let mut parsed = ParsedQuery::default();
    let mut rest = tokens.as_slice();
    while let Some((token, after)) = rest.split_first() {
        rest = after;
        let word = match token {
            Token::Word(word) => word.as_str(),
            Token::Sign('[') => {
                rest = after_closing(rest, ']')?.1;
                continue;
            }
            Token::Sign(_) | Token::Number | Token::Text(_) => continue,
        };
        let next = rest.first();
        if WITH_LABELS.contains(&word) {
            let Some(Token::Sign('(')) = next else {
                return Err(format!("no labels after `{word}`"));
            };
            let (inside, after) = after_closing(rest.get(1..).unwrap_or_default(), ')')?;
            parsed.labels.extend(inside.iter().filter_map(Token::word).map(str::to_owned));
            rest = after;
        } else if OPERATORS.contains(&word) || FUNCTIONS.contains(&word) {
            // What they are applied to follows.
        } else if let Some(Token::Sign('(')) = next {
            return Err(format!("unknown function `{word}`"));
        } else {
            let mut selector = Selector { name: word.to_owned(), matchers: Vec::new() };
            if let Some(Token::Sign('{')) = next {
                let (inside, after) = after_closing(rest.get(1..).unwrap_or_default(), '}')?;
                selector.matchers = matchers(inside)?;
                rest = after;
            }
            parsed.selectors.push(selector);
        }
    }
    Ok(parsed)
}

fn matchers(inside: &[Token]) -> Result<Vec<(String, String, String)>, String> {
    let one = |tokens: &[Token]| match tokens {
        [Token::Word(label), operator @ .., Token::Text(value)] => {
            let operator = operator.iter().map(|sign| match sign {
                Token::Sign(sign) => Ok(*sign),
                other => Err(format!("unexpected {other:?} in a matcher")),
            });
            Ok((label.clone(), operator.collect::<Result<_, _>>()?, value.clone()))
        }
        other => Err(format!("no matcher: {other:?}")),
    };
    inside.split(|token| *token == Token::Sign(',')).map(one).collect()
}

/// What stands before the sign, and what after it.
fn after_closing(tokens: &[Token], sign: char) -> Result<(&[Token], &[Token]), String> {
    let at = tokens.iter().position(|token| *token == Token::Sign(sign));
    let at = at.ok_or_else(|| format!("no `{sign}`"))?;
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

fn tokens(query: &str) -> Result<Vec<Token>, String> {
    let mut tokens = Vec::new();
    let mut rest = query.trim_start();
    while let Some(first) = rest.chars().next() {
        let end_of = |is_part: fn(char) -> bool| rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | ':' | '$');
        let n = match first {
            '"' => {
                let end = rest[1..].find('"').ok_or("a text does not end")?;
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
            other => return Err(format!("unexpected `{other}`")),
        };
        rest = rest[n..].trim_start();
    }
    Ok(tokens)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_understood() {
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
