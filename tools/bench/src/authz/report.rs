//! The tables that go into docs/performance.md.

use crate::numbers::{duration, ratio, thousands};
use std::fmt::Write;
use std::time::Duration;

use crate::authz::agreement::Agreement;
use crate::authz::comparison::Row;
use crate::authz::measure::Times;
use crate::authz::upstream::VERSION;

/// The cost of an index.
#[derive(Debug)]
pub(crate) struct IndexRow {
    pub(crate) authorizer: &'static str,
    pub(crate) size: usize,
    pub(crate) unit: &'static str,
    /// The time to build the index from its objects.
    pub(crate) build: Duration,
    /// The bytes that the index keeps allocated for each object, including the object.
    pub(crate) bytes_each: f64,
    /// The bytes of the objects alone, if the index keeps them.
    pub(crate) object_bytes_each: Option<f64>,
    /// The time to change one object: copy, change, publish.
    pub(crate) update: Option<Times>,
    /// The time of one who-can query.
    pub(crate) who_can: Option<Times>,
}

/// All measurements of the benchmark.
#[derive(Debug, Default)]
pub(crate) struct Report {
    pub(crate) rows: Vec<Row>,
    pub(crate) indexes: Vec<IndexRow>,
    /// How the index agrees with the reference implementation on many small policies.
    pub(crate) small: Agreement,
    /// Why upstream was not run.
    pub(crate) upstream_absence: Option<String>,
}

impl Report {
    /// The number of decisions on which index and reference implementation were compared, and the number of
    /// disagreements.
    pub(crate) fn reference_agreement(&self) -> (usize, usize) {
        let all = self.rows.iter().map(|row| &row.agreement).chain([&self.small]);
        all.fold((0, 0), |(n_decisions, n_disagreements), own| {
            (n_decisions + own.n_decisions, n_disagreements + own.n_disagreements)
        })
    }

    /// The same for index and upstream; `None` if upstream was not run.
    pub(crate) fn upstream_agreement(&self) -> Option<(usize, usize)> {
        let answers = self.rows.iter().filter_map(|row| row.upstream.as_ref());
        let pairs = answers.map(|own| (own.n_decisions, own.n_disagreements));
        pairs.reduce(|a, b| (a.0 + b.0, a.1 + b.1))
    }

    /// Some of the disagreements, one line each.
    pub(crate) fn disagreements(&self) -> Vec<String> {
        let mut lines = self.small.shown.clone();
        for row in &self.rows {
            let name = row.comparison.name();
            lines.extend(row.agreement.shown.iter().map(|line| format!("{name}: {line}")));
            let shown = row.upstream.iter().flat_map(|upstream| &upstream.shown);
            lines.extend(shown.map(|line| format!("{name}: upstream: {line}")));
        }
        lines
    }

    /// The growth of the median of RBAC from the first size to the second, for each number of groups.
    pub(crate) fn growth(&self, from: usize, to: usize) -> Vec<(usize, f64)> {
        let find = |size: usize, n_groups: usize| {
            self.rows.iter().find(|row| {
                let own = &row.comparison;
                (own.authorizer, own.size, own.n_groups) == ("RBAC", size, Some(n_groups))
            })
        };
        let growth = |n_groups: usize| {
            let (from, to) = (find(from, n_groups)?, find(to, n_groups)?);
            Some((n_groups, to.ours.p50_ns / from.ours.p50_ns.max(1.0)))
        };
        crate::authz::rbac::GROUP_COUNTS.into_iter().filter_map(growth).collect()
    }

    /// The tables and their summary as Markdown. Writing to a `String` never fails.
    pub(crate) fn render(&self) -> String {
        let mut text = String::new();
        let _ = match &self.upstream_absence {
            None => writeln!(text, "Upstream: the authorizers of {VERSION}.\n"),
            Some(reason) => writeln!(text, "Upstream is not measured: {reason}.\n"),
        };
        self.render_decisions(&mut text);
        self.render_indexes(&mut text);
        for (n_groups, ratio) in self.growth(10_000, 100_000) {
            let groups = if n_groups == 1 { "1 group" } else { &format!("{n_groups} groups") };
            let _ = writeln!(
                text,
                "From 10,000 to 100,000 bindings the median of RBAC grows by a factor of \
                 {ratio:.2} ({groups}).\n"
            );
        }
        let (n_decisions, n_disagreements) = self.reference_agreement();
        let _ = writeln!(
            text,
            "Index and naive implementation agreed on {} decisions and disagreed on {}.",
            thousands(n_decisions - n_disagreements),
            thousands(n_disagreements)
        );
        if let Some((n_decisions, n_disagreements)) = self.upstream_agreement() {
            let _ = writeln!(
                text,
                "Index and upstream agreed on {} decisions and disagreed on {}.",
                thousands(n_decisions - n_disagreements),
                thousands(n_disagreements)
            );
        }
        text
    }

    fn render_decisions(&self, text: &mut String) {
        text.push_str(
            "| authorizer | size | groups | ours p50 | ours p99 | allocated | naive p50 | \
             upstream p50 | upstream p99 | naive / ours | upstream / ours |\n\
             |---|---|---|---|---|---|---|---|---|---|---|\n",
        );
        for row in &self.rows {
            let own = &row.comparison;
            let upstream = |time: fn(&crate::authz::upstream::Upstream) -> f64| {
                row.upstream.as_ref().map_or("-".to_owned(), |own| duration(time(own)))
            };
            let _ = writeln!(
                text,
                "| {} | {} {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |",
                own.authorizer,
                thousands(own.size),
                own.unit,
                own.n_groups.map_or("mixed".to_owned(), |n_groups| n_groups.to_string()),
                duration(row.ours.p50_ns),
                duration(row.ours.p99_ns),
                row.allocated_max,
                duration(row.reference.p50_ns),
                upstream(|own| own.p50_ns),
                upstream(|own| own.p99_ns),
                ratio(Some(row.reference.p50_ns / row.ours.p50_ns.max(1.0))),
                ratio(row.upstream_ratio()),
            );
        }
        text.push('\n');
    }

    fn render_indexes(&self, text: &mut String) {
        text.push_str(
            "| index | size | build | update p50 | update p99 | bytes each | of these, objects | \
             who can p50 | who can max |\n|---|---|---|---|---|---|---|---|---|\n",
        );
        for row in &self.indexes {
            let time = |times: Option<Times>, part: fn(Times) -> f64| {
                times.map_or("-".to_owned(), |times| duration(part(times)))
            };
            let _ = writeln!(
                text,
                "| {} | {} {} | {} | {} | {} | {:.0} | {} | {} | {} |",
                row.authorizer,
                thousands(row.size),
                row.unit,
                duration(row.build.as_secs_f64() * 1e9),
                time(row.update, |times| times.p50_ns),
                time(row.update, |times| times.p99_ns),
                row.bytes_each,
                row.object_bytes_each.map_or("-".to_owned(), |bytes| format!("{bytes:.0}")),
                time(row.who_can, |times| times.p50_ns),
                time(row.who_can, |times| times.max_ns),
            );
        }
        text.push('\n');
    }
}
