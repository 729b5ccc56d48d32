//! What is worth counting.

/// Is told what certificates the peers of a client show. Methods must not block.
pub trait Observe: Send + Sync {
    /// The certificate of a server names nobody but in its common name.
    fn missing_san(&self) {}

    /// A certificate that a server has shown is signed with SHA-1.
    fn sha1_signature(&self) {}
}

/// Counts nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unobserved;

impl Observe for Unobserved {}
