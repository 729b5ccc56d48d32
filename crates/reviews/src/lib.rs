//! Reviews: questions about what somebody may do, and who may do something.
