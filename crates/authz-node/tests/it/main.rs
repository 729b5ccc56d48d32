//! The graph compared with the reference implementation, and the table of requests that nodes may make.

#[cfg(test)]
mod agreement;
#[cfg(test)]
mod table;
