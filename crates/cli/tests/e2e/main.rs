//! The server as its clients see it: real programs against a real process, on both stores.
//!
//! Nothing here is skipped where a program is missing: such a test fails and says what to install.

#[cfg(test)]
mod admission;
#[cfg(test)]
mod authorities;
#[cfg(test)]
mod client;
#[cfg(test)]
mod cluster_stories;
#[cfg(test)]
mod crash;
#[cfg(test)]
mod descriptors;
#[cfg(test)]
mod http_scenarios;
#[cfg(test)]
mod killed_creators;
#[cfg(test)]
mod kubectl;
#[cfg(test)]
mod python;
#[cfg(test)]
mod random;
#[cfg(test)]
mod reload;
#[cfg(test)]
mod server;
#[cfg(test)]
mod several_servers;
#[cfg(test)]
mod starts;
#[cfg(test)]
mod transcript;
#[cfg(test)]
mod two_servers;
