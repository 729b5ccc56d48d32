//! Renders the table for docs/performance.md.

use std::fmt::Write;

use crate::go_peer::GoMeasured;
use crate::measure::Measured;

/// One case and the measurements of each engine.
pub struct Row {
    pub name: &'static str,
    pub about: &'static str,
    pub ours: Measured,
    pub theirs: Measured,
    pub go: Option<GoMeasured>,
}

/// Renders nanoseconds per evaluation as `min / median (allocations)`, and ratios of medians.
pub fn render(rows: &[Row]) -> String {
    let mut text = String::from(
        "| case | what | ours ns | `cel` crate ns | cel-go matcher ns | cel-go program ns | \
         crate / ours | matcher / ours |\n|---|---|---|---|---|---|---|---|\n",
    );
    for row in rows {
        let (go, program, go_ratio) = match &row.go {
            Some(go) => (
                format!(
                    "{:.0} / {:.0} ({:.0})",
                    go.matcher_min_ns, go.matcher_median_ns, go.matcher_allocations
                ),
                format!("{:.0}", go.program_median_ns),
                format!("{:.0}", go.matcher_median_ns / row.ours.median_ns),
            ),
            None => ("-".to_owned(), "-".to_owned(), "-".to_owned()),
        };
        // Writing to a `String` never fails.
        let _ = writeln!(
            text,
            "| {} | `{}` | {} | {} | {go} | {program} | {:.0} | {go_ratio} |",
            row.name,
            row.about.replace('|', "\\|"),
            cell(&row.ours),
            cell(&row.theirs),
            row.theirs.median_ns / row.ours.median_ns,
        );
    }
    text
}

/// Renders the time to load the largest configuration.
pub fn render_load(time: &Measured) -> String {
    format!(
        "\nA configuration with 64 match conditions is decoded, checked and compiled in \
         {:.2} ms (median; least {:.2} ms).\n",
        time.median_ns / 1e6,
        time.min_ns / 1e6,
    )
}

fn cell(measured: &Measured) -> String {
    format!("{:.1} / {:.1} ({})", measured.min_ns, measured.median_ns, measured.allocations)
}
