//! Tests of the public interface.

#[cfg(test)]
mod malformed;
#[cfg(test)]
mod recorded;
#[cfg(test)]
mod requests;
