//! Any text is an expression or is refused. The positions of errors are inside of the text, and the messages
//! are always the same.

#![no_main]

use std::sync::LazyLock;

use cel::{Environment, Issues};
use libfuzzer_sys::fuzz_target;

#[path = "../../crates/cel/tests/it/robustness/world.rs"]
#[expect(dead_code, reason = "the tests of the crate use more of it")]
mod world;

static ENVIRONMENT: LazyLock<Environment> = LazyLock::new(world::environment);

/// The maximum length in bytes of the issues of a short expression. The compiler reports up to a hundred issues and
/// shows the line of each.
const REPORT_BYTES_MAX: usize = 8 << 20;

fuzz_target!(|source: &str| {
    match (ENVIRONMENT.check(source), ENVIRONMENT.check(source)) {
        (Ok(first), Ok(again)) => {
            assert_eq!(first.output_type(), again.output_type());
            assert!(!first.output_type().to_string().is_empty());
            let refused = first.into_program().err();
            assert_eq!(again.into_program().err(), refused);
        }
        (Err(first), Err(again)) => {
            assert_eq!(first, again);
            check_issues(source, &first);
        }
        (first, again) => panic!("{first:?}, then {again:?}"),
    }
});

fn check_issues(source: &str, issues: &Issues) {
    assert!(issues.iter().count() > 0);
    assert!(issues.to_string().len() <= REPORT_BYTES_MAX);
    let lines: Vec<&str> = source.split('\n').collect();
    for issue in issues.iter() {
        let Some(line) = issue.line else { continue };
        let n_columns = lines[line as usize - 1].chars().count() + 1;
        assert!(issue.column as usize <= n_columns, "{issue:?}");
    }
}
