//! Decides whether the program prints colours.

use std::ffi::OsString;
use std::io::IsTerminal;

/// Reports whether the stream is a terminal and the environment allows colour: a non-empty `NO_COLOR`,
/// `CLICOLOR=0` and `TERM=dumb` disable it.
pub(crate) fn is_colour_enabled(
    stream: &impl IsTerminal,
    variable: impl Fn(&str) -> Option<OsString>,
) -> bool {
    stream.is_terminal() && is_colour_allowed_by_environment(variable)
}

fn is_colour_allowed_by_environment(variable: impl Fn(&str) -> Option<OsString>) -> bool {
    let is = |name, value: &str| variable(name).is_some_and(|found| found == value);
    let is_set = |name| variable(name).is_some_and(|found| !found.is_empty());
    !is_set("NO_COLOR") && !is("CLICOLOR", "0") && !is("TERM", "dumb")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_turn_it_off() {
        for (name, value, want) in [
            ("OTHER", "1", true),
            ("NO_COLOR", "1", false),
            ("NO_COLOR", "0", false),
            ("NO_COLOR", "", true),
            ("CLICOLOR", "0", false),
            ("CLICOLOR", "1", true),
            ("TERM", "dumb", false),
            ("TERM", "xterm-256color", true),
        ] {
            let variable = |asked: &str| (asked == name).then(|| value.into());
            assert_eq!(is_colour_allowed_by_environment(variable), want, "{name}={value}");
        }
    }

    #[test]
    fn a_file_gets_none() {
        assert!(!is_colour_enabled(&tempfile::tempfile().unwrap(), |_| None));
    }
}
