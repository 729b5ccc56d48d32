//! Text forms of the Go standard library that are part of Kubernetes' wire behaviour.
//!
//! Kubernetes quotes values in its messages, writes durations and reads URLs the way Go does, and
//! clients compare those texts. This crate is the one place that knows those forms.
//!
//! Owns: quoting, durations, IP addresses, URLs and query strings, each exactly as Go 1.26 reads
//! and writes them.
//! Must not know: Kubernetes, HTTP messages, or any other crate of this repository.

#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

mod duration;
mod ip;
mod printable;
mod quote;
mod url;

pub use duration::{DurationError, format_duration, parse_duration};
pub use ip::{IpError, ParsedIp, parse_ip};
pub use quote::{quote, quote_bytes};
pub use url::{
    EscapeError, QUERY_PAIRS_MAX, Url, UrlError, UrlPart, UserInfo, parse_query, url_escape,
    url_unescape,
};
