//! The command outputs in the documentation are those of the program.

use crate::expected::assert_is;
use crate::program::run;

/// The pages that show commands.
const PAGES: &[&str] = &[
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md"),
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/check.md"),
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/offline.md"),
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/serve-flags.md"),
];

/// Begins a block of a command and its output, which ends with [`END`].
const START: &str = "```console\n$ portcullis ";
const END: &str = "\n```";

/// The page with the true output of each command in it, and how many there are.
fn with_true_output(page: &str) -> (String, usize) {
    let mut parts = page.split(START);
    let mut text = parts.next().unwrap_or_default().to_owned();
    let mut n_commands = 0;
    for part in parts {
        let (block, rest) = part.split_once(END).unwrap();
        let command = block.lines().next().unwrap();
        let found = run(&command.split(' ').collect::<Vec<_>>());
        assert_eq!(found.stderr, "", "{command}");
        text.push_str(&format!("{START}{command}\n{}{END}{rest}", found.stdout.trim_end()));
        n_commands += 1;
    }
    (text, n_commands)
}

#[test]
fn documented_output_is_true() {
    for path in PAGES {
        let page = std::fs::read_to_string(path).unwrap();
        let (text, n_commands) = with_true_output(&page);
        let n_shown = page.matches("$ portcullis ").count();
        assert_eq!(n_commands, n_shown, "{path}: a command is not shown as one");
        assert!(n_commands >= 1, "{path}: {n_commands} commands");
        assert_is(path, &text);
    }
}
