//! Dynamic admission: which hooks are asked about a write.
