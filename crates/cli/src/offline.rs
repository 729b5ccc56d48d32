//! What the commands share that answer from files, without a server.
//!
//! The flags become a [`Policy`]: the chain that a server with these flags and objects would ask.
//! Questions come from flags or as lines of JSON.

mod answer;
mod ask;
mod flags;
mod implied;
mod lines;
mod modes;
mod objects;
mod policy;
mod questions;
mod show;
mod table;
mod webhook;
mod yaml;

pub(crate) use answer::Answer;
pub(crate) use ask::ask;
pub(crate) use flags::{AuthorizationFlags, PolicyFlags, QuestionFlags, SubjectFlags, TargetText};
pub(crate) use implied::{hint_of_missing_group, user};
pub(crate) use policy::{Link, Order, Policy, node_rules};
pub(crate) use questions::Questions;
pub(crate) use show::{Unusable, printable};
pub(crate) use table::Table;
#[cfg(test)]
pub(crate) use webhook::stand_in;
pub(crate) use yaml::write_yaml;
