//! The server starts: again after it was stopped, again after it was killed, beside another one, and with
//! every flag.
//!
//! `PORTCULLIS_STARTS=all` runs every combination in place of every pair.

mod files;
mod flags;
mod interrupted;
mod lives;
mod matrix;
mod pairs;
mod refused;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How many servers live at one time. They wait for disks most of the time.
const N_THREADS: usize = 4;

/// Runs a test for each row, several at one time, and fails with the names of all rows that failed.
fn for_each<T: Sync>(rows: &[T], name: impl Fn(&T) -> String + Sync, test: impl Fn(&T) + Sync) {
    let next = AtomicUsize::new(0);
    let failed = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..N_THREADS {
            scope.spawn(|| {
                while let Some(row) = rows.get(next.fetch_add(1, Ordering::SeqCst)) {
                    if let Err(cause) = catch_unwind(AssertUnwindSafe(|| test(row))) {
                        failed.lock().unwrap().push(format!("{}: {}", name(row), text(&*cause)));
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap();
    assert!(failed.is_empty(), "{} of {} fail:\n{}", failed.len(), rows.len(), failed.join("\n"));
}

/// The message of a panic.
fn text(cause: &(dyn std::any::Any + Send)) -> String {
    match (cause.downcast_ref::<String>(), cause.downcast_ref::<&str>()) {
        (Some(text), _) => text.clone(),
        (None, Some(text)) => (*text).to_owned(),
        (None, None) => "a panic".to_owned(),
    }
}
