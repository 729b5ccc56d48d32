//! The program as people and scripts run it.

#[cfg(test)]
mod documentation;
#[cfg(test)]
mod expected;
#[cfg(test)]
mod process;
#[cfg(test)]
mod program;
#[cfg(test)]
mod rows;
#[cfg(test)]
mod snapshots;
