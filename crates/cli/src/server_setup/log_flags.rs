//! The flags of the log.

use component_base::{Log, LogFormat, LogLevel};

/// The format and the verbosity of the log.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct LogFlags {
    /// Format of the log
    #[arg(long, value_enum, default_value = "text")]
    logging_format: LoggingFormat,

    /// Log verbosity: 0 logs warnings and errors, 1 also start, stop and reloads, 2 also requests, 4
    /// everything
    #[arg(short = 'v', long = "v", value_name = "LEVEL", default_value_t = 2)]
    verbosity: u8,
}

/// The format of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum LoggingFormat {
    /// Lines of text for people
    Text,
    /// One JSON object per line
    Json,
}

impl LogFlags {
    /// Returns the log that the flags describe.
    pub(crate) fn to_log(self) -> Log {
        let line_format = match self.logging_format {
            LoggingFormat::Text => LogFormat::Text,
            LoggingFormat::Json => LogFormat::Json,
        };
        let least_severe_level = match self.verbosity {
            0 => LogLevel::Warn,
            1 => LogLevel::Notice,
            2 | 3 => LogLevel::Info,
            _ => LogLevel::Debug,
        };
        Log { line_format, least_severe_level }
    }
}
