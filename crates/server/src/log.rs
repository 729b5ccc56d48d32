//! What the server says about itself: one line per event, for people or for machines.

use std::fmt::Write as _;
use std::io::Write as _;

use jiff::Timestamp;
use serde_json::{Map, Value};

/// How lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LogFormat {
    /// `time LEVEL message key=value`.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// How much a line matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Something is broken.
    Error,
    /// Something should be looked at.
    Warn,
    /// That it starts and stops.
    Notice,
    /// What happens, one line per request.
    Info,
    /// What happens inside.
    Debug,
}

/// The log. It goes to standard error, so that standard output stays for what was asked for.
#[derive(Debug, Clone, Copy)]
pub struct Log {
    /// How lines look.
    pub format: LogFormat,
    /// The least that is written.
    pub level: Level,
}

/// A fact of a line: a name and what it is.
pub type Fact<'a> = (&'static str, &'a dyn std::fmt::Display);

impl Level {
    const fn name(self) -> &'static str {
        match self {
            Self::Error => "ERROR",
            Self::Warn => "WARN",
            Self::Notice => "NOTE",
            Self::Info => "INFO",
            Self::Debug => "DEBUG",
        }
    }
}

impl Log {
    /// Writes a line if its level is wanted. A log that can not be written stops nobody.
    pub fn write(&self, level: Level, message: &str, facts: &[Fact<'_>]) {
        if level <= self.level {
            let line = self.line(Timestamp::now(), level, message, facts);
            let _ = std::io::stderr().lock().write_all(line.as_bytes());
        }
    }

    /// Something is broken.
    pub fn error(&self, message: &str, facts: &[Fact<'_>]) {
        self.write(Level::Error, message, facts);
    }

    /// Something should be looked at.
    pub fn warn(&self, message: &str, facts: &[Fact<'_>]) {
        self.write(Level::Warn, message, facts);
    }

    /// That it starts and stops.
    pub fn notice(&self, message: &str, facts: &[Fact<'_>]) {
        self.write(Level::Notice, message, facts);
    }

    /// What happens.
    pub fn info(&self, message: &str, facts: &[Fact<'_>]) {
        self.write(Level::Info, message, facts);
    }

    fn line(&self, now: Timestamp, level: Level, message: &str, facts: &[Fact<'_>]) -> String {
        let time = api_object::rfc3339_micro(now);
        match self.format {
            LogFormat::Text => {
                let mut line = format!("{time} {:5} {}", level.name(), plain(message));
                for (name, fact) in facts {
                    let text = fact.to_string();
                    let is_bare = !text.is_empty()
                        && text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'"');
                    let text = if is_bare { text } else { go_compat::quote(&text) };
                    // A String takes whatever is written to it.
                    let _ = write!(line, " {name}={text}");
                }
                line.push('\n');
                line
            }
            LogFormat::Json => {
                let mut map = Map::new();
                map.insert("time".to_owned(), time.into());
                map.insert("level".to_owned(), level.name().into());
                map.insert("message".to_owned(), message.into());
                for (name, fact) in facts {
                    map.insert((*name).to_owned(), fact.to_string().into());
                }
                format!("{}\n", Value::Object(map))
            }
        }
    }
}

/// A message on one line.
fn plain(message: &str) -> String {
    message.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_one_line_in_both_forms() {
        let now: Timestamp = "2026-11-15T18:02:38Z".parse().unwrap();
        let log = Log { format: LogFormat::Text, level: Level::Info };
        let line = log.line(now, Level::Warn, "a\nb", &[("code", &200), ("user", &"x \"y\"\n")]);
        assert_eq!(
            line,
            "2026-11-15T18:02:38.000000Z WARN  a b code=200 user=\"x \\\"y\\\"\\n\"\n"
        );
        let log = Log { format: LogFormat::Json, level: Level::Info };
        let line = log.line(now, Level::Error, "a\nb", &[("code", &200)]);
        let json: Value = serde_json::from_str(&line).unwrap();
        assert_eq!((json["message"].as_str(), json["code"].as_str()), (Some("a\nb"), Some("200")));
        assert_eq!(line.matches('\n').count(), 1);
    }
}
