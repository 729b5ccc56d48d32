//! A file of shell commands and their outputs, which a test runs again.
//!
//! A line that begins with `$ ` is a command for the shell; lines with `> ` continue it. What follows
//! is what it must print, errors included, and `[exit N]` if it ends with another code than 0. In it,
//! `<?>` stands for any part of a line, also an empty one, and a line `...` for any number of lines.
//! Columns may be wider or narrower: between words, several blanks are as good as one. Lines with `# `
//! are remarks.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Any part of a line.
const ANYTHING: &str = "<?>";
/// Any number of lines.
const ANY_LINES: &str = "...";
/// The shell adds this on its way out, so that the code is compared like everything else.
const EXIT: &str = "[exit ";

/// One command and what it prints.
#[derive(Debug, Default, PartialEq, Eq)]
struct Step {
    command: String,
    want: Vec<String>,
}

/// Runs all commands of a transcript in a directory and returns where the output differs.
pub(crate) fn differences(text: &str, directory: &Path, variables: &[(&str, PathBuf)]) -> String {
    let mut report = String::new();
    let steps = parse(text);
    assert!(!steps.is_empty(), "a transcript without commands");
    for step in steps {
        let printed = run(&step.command, directory, variables);
        let got: Vec<String> = printed.lines().map(tidied).collect();
        if !matches(&step.want, trimmed(&got)) {
            let want = step.want.join("\n");
            writeln!(report, "$ {}\n--- want\n{want}\n--- got\n{printed}", step.command).unwrap();
        }
    }
    report
}

fn parse(text: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for line in text.lines() {
        if let Some(command) = line.strip_prefix("$ ") {
            steps.push(Step { command: command.to_owned(), want: Vec::new() });
        } else if let Some(step) = steps.last_mut() {
            match line.strip_prefix("> ") {
                Some(more) => step.command = format!("{}\n{more}", step.command),
                None if line.starts_with("# ") => {}
                None => step.want.push(tidied(line)),
            }
        } else {
            assert!(line.is_empty() || line.starts_with("# "), "output of no command: {line}");
        }
    }
    for step in &mut steps {
        step.want.truncate(trimmed(&step.want).len());
    }
    steps
}

fn run(command: &str, directory: &Path, variables: &[(&str, PathBuf)]) -> String {
    let output = Command::new("sh")
        .args(["-c", &format!("exec 2>&1\n{command}")])
        .current_dir(directory)
        .envs(variables.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::null())
        .output()
        .expect("a shell");
    let mut printed = String::from_utf8_lossy(&output.stdout).into_owned();
    if !printed.is_empty() && !printed.ends_with('\n') {
        printed.push('\n');
    }
    match output.status.code() {
        Some(0) => {}
        Some(code) => writeln!(printed, "{EXIT}{code}]").unwrap(),
        None => writeln!(printed, "{EXIT}by a signal]").unwrap(),
    }
    printed
}

/// A line with single blanks between its words; how far it is indented stays.
fn tidied(line: &str) -> String {
    let words = line.trim_start_matches(' ');
    let mut tidied = " ".repeat(line.len() - words.len());
    let words = words.split(' ').filter(|word| !word.is_empty());
    tidied.push_str(&words.collect::<Vec<_>>().join(" "));
    tidied.trim_end().to_owned()
}

/// The lines without the empty ones at the end.
fn trimmed(lines: &[String]) -> &[String] {
    let n = lines.iter().rposition(|line| !line.is_empty()).map_or(0, |last| last + 1);
    &lines[..n]
}

fn matches(want: &[String], got: &[String]) -> bool {
    match want {
        [] => got.is_empty(),
        [any, rest @ ..] if any == ANY_LINES => (0..=got.len()).any(|n| matches(rest, &got[n..])),
        [first, rest @ ..] => match got {
            [line, others @ ..] => line_matches(first, line) && matches(rest, others),
            [] => false,
        },
    }
}

fn line_matches(want: &str, got: &str) -> bool {
    let Some((before, after)) = want.split_once(ANYTHING) else {
        return want == got;
    };
    let Some(rest) = got.strip_prefix(before) else {
        return false;
    };
    let ends = rest.char_indices().map(|(at, _)| at).chain([rest.len()]);
    ends.into_iter().any(|at| line_matches(after, &rest[at..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn differs(text: &str) -> bool {
        let directory = crate::server::directory();
        !differences(text, directory.path(), &[("WORD", "here".into())]).is_empty()
    }

    #[test]
    fn what_is_printed_is_compared_line_by_line() {
        assert!(!differs("# A remark.\n\n$ echo a; echo b >&2\na\nb\n\n$ true\n"));
        assert!(!differs("$ cat - <<EOF\n> one $WORD\n> EOF\none here\n"));
        for wrong in ["$ echo a\n", "$ echo a\nb\n", "$ true\na\n", "$ echo a; echo b\na\n"] {
            assert!(differs(wrong), "{wrong}");
        }
    }

    #[test]
    fn the_exit_code_is_part_of_it() {
        assert!(!differs("$ printf x; exit 3\nx\n[exit 3]\n"));
        assert!(differs("$ exit 1\n"));
        assert!(differs("$ exit 1\n[exit 2]\n"));
        assert!(differs("$ true\n[exit 1]\n"));
    }

    #[test]
    fn placeholders_stand_for_parts_of_lines_and_for_lines() {
        assert!(!differs("$ echo 'NAME    AGE'; echo 'a    12s'\nNAME AGE\na <?>s\n"));
        assert!(!differs("$ seq 5\n1\n...\n4\n5\n"));
        assert!(!differs("$ seq 2\n1\n...\n2\n"));
        assert!(differs("$ seq 5\n1\n...\n4\n"));
        assert!(differs("$ echo abc\na<?>d\n"));
        assert!(!differs("$ echo abc\nabc<?>\n"));
        // How far a line is indented counts: it is meaning in YAML.
        assert!(differs("$ echo '  a: 1'\n a: 1\n"));
    }
}
