//! Collections whose clones share memory, so that old versions stay readable while new ones are made.
//!
//! A snapshot of a large policy is a few of these maps. A writer clones the snapshot, changes the clone
//! and publishes it; readers keep the snapshot that they have and need no lock.
//!
//! Owns: [`Map`], a copy-on-write hash map; [`Slab`], a copy-on-write collection that numbers its values.
//! Must not know: what keys and values mean.

mod map;
mod slab;

pub use map::{Iter, Map};
pub use slab::Slab;
