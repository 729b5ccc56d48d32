//! The log of the server: one line per event, as text or JSON.

mod log_line_queue;

use std::fmt::Write as _;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Map, Value};

use self::log_line_queue::{LogLinePriority, stderr_line_queue};

/// The format of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LogFormat {
    /// `time LEVEL message key=value`.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// The severity of a log line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    /// Something is broken, and an operator has to act.
    Error,
    /// Something should be looked at.
    Warn,
    /// The start, the stop, and recovery from an error.
    Notice,
    /// One line per request.
    Info,
    /// Details that help to debug the server.
    Debug,
}

/// The log. It is written to standard error, so that standard output has only the output of a command.
#[derive(Debug, Clone, Copy)]
pub struct Log {
    /// The format of lines.
    pub line_format: LogFormat,
    /// The least severe level that is written.
    pub least_severe_level: LogLevel,
}

/// A field of a log line: a name and a value.
pub type LogField<'a> = (&'static str, &'a dyn std::fmt::Display);

impl LogLevel {
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
    /// Writes a line if its level is enabled. The caller does not wait for standard error: a line for which the
    /// queue has no room is dropped and counted.
    pub fn write(&self, level: LogLevel, message: &str, fields: &[LogField<'_>]) {
        if level <= self.least_severe_level {
            let line = self.format_log_line(Timestamp::now(), level, message, fields);
            let priority = match level {
                LogLevel::Error | LogLevel::Warn | LogLevel::Notice => LogLinePriority::Important,
                LogLevel::Info | LogLevel::Debug => LogLinePriority::Routine,
            };
            if let Some(n_dropped) = stderr_line_queue().push(line, priority) {
                let message =
                    "lines of the log were dropped, because standard error was not read in time";
                self.warn(message, &[("lines", &n_dropped)]);
            }
        }
    }

    /// Waits until standard error has taken all lines, at most for `limit`, before the process ends or writes to
    /// standard error itself.
    pub fn flush(&self, limit: Duration) {
        // Lines that standard error does not take in time are lost when the process ends.
        let _ = stderr_line_queue().flush(limit);
    }

    /// Writes a line of level error: something is broken.
    pub fn error(&self, message: &str, fields: &[LogField<'_>]) {
        self.write(LogLevel::Error, message, fields);
    }

    /// Writes a line of level warning: an operator should look at something.
    pub fn warn(&self, message: &str, fields: &[LogField<'_>]) {
        self.write(LogLevel::Warn, message, fields);
    }

    /// Writes a line of level notice: the start, the stop, and recovery from an error.
    pub fn notice(&self, message: &str, fields: &[LogField<'_>]) {
        self.write(LogLevel::Notice, message, fields);
    }

    /// Writes a line of level info.
    pub fn info(&self, message: &str, fields: &[LogField<'_>]) {
        self.write(LogLevel::Info, message, fields);
    }

    /// The number of lines that were dropped because standard error did not take them in time.
    pub fn n_dropped_lines(&self) -> u64 {
        stderr_line_queue().n_dropped_lines()
    }

    fn format_log_line(
        &self,
        now: Timestamp,
        level: LogLevel,
        message: &str,
        fields: &[LogField<'_>],
    ) -> String {
        let time = api_object::format_rfc3339_micro(now);
        match self.line_format {
            LogFormat::Text => {
                let mut line =
                    format!("{time} {:5} {}", level.name(), replace_control_characters(message));
                for (name, value) in fields {
                    let text = value.to_string();
                    let is_bare = !text.is_empty()
                        && text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'"');
                    let text = if is_bare { text } else { go_compat::quote(&text) };
                    // Writing to a String does not fail.
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
                for (name, value) in fields {
                    map.insert((*name).to_owned(), value.to_string().into());
                }
                format!("{}\n", Value::Object(map))
            }
        }
    }
}

/// Replaces control characters, so that a message stays on one line.
fn replace_control_characters(message: &str) -> String {
    message.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_one_line_in_both_formats() {
        let now: Timestamp = "2026-11-15T18:02:38Z".parse().unwrap();
        let log = Log { line_format: LogFormat::Text, least_severe_level: LogLevel::Info };
        let line = log.format_log_line(
            now,
            LogLevel::Warn,
            "a\nb",
            &[("code", &200), ("user", &"x \"y\"\n")],
        );
        assert_eq!(
            line,
            "2026-11-15T18:02:38.000000Z WARN  a b code=200 user=\"x \\\"y\\\"\\n\"\n"
        );
        let log = Log { line_format: LogFormat::Json, least_severe_level: LogLevel::Info };
        let line = log.format_log_line(now, LogLevel::Error, "a\nb", &[("code", &200)]);
        let json: Value = serde_json::from_str(&line).unwrap();
        assert_eq!((json["message"].as_str(), json["code"].as_str()), (Some("a\nb"), Some("200")));
        assert_eq!(line.matches('\n').count(), 1);
    }
}
