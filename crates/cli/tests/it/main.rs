//! Tests of the program as people and scripts run it.

#[cfg(test)]
mod admission_configurations;
#[cfg(test)]
mod authorization_configurations;
#[cfg(test)]
mod connections;
#[cfg(test)]
mod convert;
#[cfg(test)]
mod documentation;
#[cfg(test)]
mod error_messages;
#[cfg(test)]
mod eval;
#[cfg(test)]
mod expected;
#[cfg(test)]
mod explain;
#[cfg(test)]
mod explain_admission;
#[cfg(test)]
mod failed_start;
#[cfg(test)]
mod flags;
#[cfg(test)]
mod guard;
#[cfg(test)]
mod manifests;
#[cfg(test)]
mod names;
#[cfg(test)]
mod offline;
#[cfg(test)]
mod pki;
#[cfg(test)]
mod process;
#[cfg(test)]
mod program;
#[cfg(test)]
mod rules;
#[cfg(test)]
mod serve;
#[cfg(test)]
mod snapshots;
#[cfg(test)]
mod tools;
#[cfg(test)]
mod webhooks;
#[cfg(test)]
mod who_can;
