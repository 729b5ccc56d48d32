//! `cargo xtask bench cel`: compares our expression engine with its peers in one run.
//!
//! Three engines evaluate the same conditions on the same request: ours; the published `cel` crate with
//! values that are made beforehand, which is its best case; and, with a Go toolchain, cel-go through the
//! matcher of k8s.io/apiserver, as kube-apiserver runs it for each request.

mod cases;
mod go_peer;
mod measure;
mod ours;
mod rust_peer;
mod table;

use std::process::ExitCode;

fn main() -> ExitCode {
    let quick = std::env::args().any(|argument| argument == "--quick");
    let effort = if quick { measure::Effort::QUICK } else { measure::Effort::FULL };
    let cases = cases::all();
    let mut rows = Vec::new();
    for case in &cases {
        let (ours, theirs) = match (ours::run(case, effort), rust_peer::run(case, effort)) {
            (Ok(ours), Ok(theirs)) => (ours, theirs),
            (Err(error), _) | (_, Err(error)) => {
                eprintln!("bench cel: case {}: {error}", case.name);
                return ExitCode::FAILURE;
            }
        };
        rows.push(table::Row { name: case.name, about: case.about, ours, theirs, go: None });
    }
    match go_peer::run(&cases, quick) {
        Ok(measured) => {
            for (row, go) in rows.iter_mut().zip(measured) {
                row.go = Some(go);
            }
        }
        Err(reason) => println!("cel-go is not measured: {reason}\n"),
    }
    print!("{}", table::render(&rows));
    match ours::load_configuration(effort) {
        Ok(time) => print!("{}", table::render_load(&time)),
        Err(error) => {
            eprintln!("bench cel: {error}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
