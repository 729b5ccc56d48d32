//! The promises about speed and memory, and whether they hold in this run.

/// One promise and its measured value.
#[derive(Debug, PartialEq)]
pub(crate) struct Target {
    pub(crate) promise: String,
    /// The worst measured value that the promise covers.
    pub(crate) measured: String,
    pub(crate) is_met: bool,
}

/// The promises as a Markdown list.
pub(crate) fn render(targets: &[Target]) -> String {
    let line = |target: &Target| {
        let verdict = if target.is_met { "met" } else { "**missed**" };
        format!("- {verdict}: {} ({})\n", target.promise, target.measured)
    };
    targets.iter().map(line).collect()
}
