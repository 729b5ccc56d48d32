//! The memory allocator of a program that links this crate.
//!
//! Owns: the choice of the allocator. It is a crate of its own because every allocation runs through its functions, and
//! the `release` profile does not optimize the crate of the command line.
//! Must not know: any other crate.

/// mimalloc is faster than the system allocator and returns memory earlier, above all when one thread
/// allocates memory and another frees it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
