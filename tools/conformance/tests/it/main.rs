//! What the runner prints and how it ends.

#[cfg(test)]
mod runner;
