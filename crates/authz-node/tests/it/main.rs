//! The graph against a naive reading of the objects, and the table of what nodes may do.

#[cfg(test)]
mod agreement;
#[cfg(test)]
mod table;
