//! Finds sleeps in tests: they make a test slow on a quiet machine and wrong on a busy one.

use super::{Tree, test_lines_begin_at};
use crate::tidy::tree::File;

/// The comment that permits a sleep, on its line or in the comment lines above it.
const REASON: &str = "waits for a real process";

/// The lines of test code that sleep without [`REASON`].
pub(super) fn lines(file: &File, _: &Tree) -> Vec<usize> {
    let Some(begin) = test_lines_begin_at(file).filter(|_| file.is_rust()) else {
        return Vec::new();
    };
    let code = file.code();
    let text: Vec<&str> = file.text.lines().collect();
    let calls = code.lines().enumerate().skip(begin - 1).filter(|(_, line)| is_call(line));
    calls.filter(|(idx, _)| !has_reason(&text, *idx)).map(|(idx, _)| idx + 1).collect()
}

/// Reports whether a line of code calls `sleep` or `sleep_until`, of tokio, of the standard library or imported.
fn is_call(line: &str) -> bool {
    line.match_indices("sleep").any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + "sleep".len()..].trim_start_matches("_until");
        let is_definition = line[..at].trim_end().ends_with("fn");
        !before.is_some_and(|c| c.is_alphanumeric() || c == '_')
            && !is_definition
            && after.starts_with('(')
    })
}

fn has_reason(text: &[&str], idx: usize) -> bool {
    let above = text.iter().take(idx).rev().take_while(|line| line.trim_start().starts_with("//"));
    above.chain(text.get(idx)).any(|line| line.contains(REASON))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn found(path: &str, text: &str) -> Vec<usize> {
        lines(&File::new(path, text), &Tree { attack_ids: BTreeSet::new() })
    }

    #[test]
    fn sleeps_of_tests_are_found_unless_they_say_that_they_wait_for_a_process() {
        let text = "tokio::time::sleep(TICK).await;\n\
                    std::thread::sleep(TICK); // waits for a real process: etcd\n\
                    // waits for a real process\n// that starts\nsleep(TICK);\n\
                    sleep_until(then).await;\n// sleep(TICK)\nasleep(1); fn sleep() {}\n";
        assert_eq!(found("crates/a/tests/it/main.rs", text), [1, 6]);
        assert_eq!(found("crates/a/src/x/tests.rs", text), [1, 6]);
    }

    #[test]
    fn code_outside_tests_may_sleep() {
        let text = "sleep(TICK);\n#[cfg(test)]\nmod tests {\n    sleep(TICK);\n}\n";
        assert_eq!(found("crates/a/src/x.rs", text), [4]);
        assert!(found("docs/a.md", text).is_empty());
    }
}
