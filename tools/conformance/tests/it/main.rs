//! The output and the exit code of the runner.

#[cfg(test)]
mod runner;
