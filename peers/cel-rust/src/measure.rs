//! Times operations: many samples of many iterations, of which the minimum and the median are kept.
//!
//! The clock is that of the thread, so that other programs on the machine do not count.

use std::hint::black_box;

use cpu_time::ThreadTime;

/// The number and the length of samples.
#[derive(Clone, Copy)]
pub struct Effort {
    samples: usize,
    sample_ns: u64,
}

impl Effort {
    /// The effort for the published table.
    pub const FULL: Self = Self { samples: 41, sample_ns: 5_000_000 };
    /// The effort for a test that the benchmark still runs.
    pub const QUICK: Self = Self { samples: 3, sample_ns: 50_000 };
}

/// Nanoseconds and allocations of one evaluation.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    pub min_ns: f64,
    pub median_ns: f64,
    pub allocations: u64,
}

/// Measures one operation and its allocations.
pub fn measure<T>(effort: Effort, mut operation: impl FnMut() -> T) -> Measured {
    let allocations = allocation_counter::measure(|| {
        black_box(operation());
    })
    .count_total;
    let start = ThreadTime::now();
    for _ in 0..10 {
        black_box(operation());
    }
    let once = (start.elapsed().as_nanos() as u64 / 10).max(1);
    let iterations = (effort.sample_ns / once).clamp(1, 10_000_000);
    let mut samples: Vec<f64> = (0..effort.samples)
        .map(|_| {
            let start = ThreadTime::now();
            for _ in 0..iterations {
                black_box(operation());
            }
            start.elapsed().as_nanos() as f64 / iterations as f64
        })
        .collect();
    samples.sort_by(f64::total_cmp);
    Measured { min_ns: samples[0], median_ns: samples[samples.len() / 2], allocations }
}
