//! What fails, and whether a failure policy may let a request pass because of it.
//!
//! A failure policy that lets requests pass is applied to failures of the far side of this request's
//! own call, and to nothing else. What happens on the side of this server answers 429, 503 or 504.

mod admission;
mod admission_attacks;
