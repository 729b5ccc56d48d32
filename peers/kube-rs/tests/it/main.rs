//! A server of Portcullis and clients that are written with kube-rs.

#[cfg(test)]
mod clients;
#[cfg(test)]
mod server;
