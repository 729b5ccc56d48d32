//! Three ways to change a tree: JSON Patch, merge patch, strategic merge patch.
