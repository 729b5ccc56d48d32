//! A client of a cluster against peers that follow a script.

#[cfg(test)]
mod credentials;
#[cfg(test)]
mod discovery;
#[cfg(test)]
mod fixture;
#[cfg(test)]
mod lists;
#[cfg(test)]
mod watches;
