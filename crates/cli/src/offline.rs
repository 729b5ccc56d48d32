//! What the commands share that answer from files, without a server.
//!
//! The flags become a [`Policy`]: the chain that a server with these flags and objects would ask.
//! Questions come from flags or as lines of JSON.

mod answer;
mod called;
mod flags;
mod implied;
mod lines;
mod objects;
mod order;
mod policy;
mod questions;
mod show;
mod table;
mod webhook;
mod yaml;

pub(crate) use answer::Answer;
pub(crate) use flags::{
    CallFlags, PolicyFlags, QuestionFlags, ResourceText, SubjectFlags, TargetText,
};
pub(crate) use implied::{hint_of_missing_group, user};
pub(crate) use objects::{Wanted, read as read_objects};
pub(crate) use policy::{Policy, Webhooks};
pub(crate) use questions::Questions;
pub(crate) use show::{Trouble, Unusable, printable};
pub(crate) use table::Table;
pub(crate) use webhook::is_unanswered;
#[cfg(test)]
pub(crate) use webhook::{Assumed, stand_in};
pub(crate) use yaml::write_yaml;
