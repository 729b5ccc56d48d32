//! The graph against a naive reading of the objects.

#[cfg(test)]
mod agreement;
#[cfg(test)]
mod oracle;
