//! The rows of the specification about kubeconfigs (`WHK-48` to `WHK-52`, and the table of their
//! keys) and about files of hooks (`SHW-nn`), with real files.

#[cfg(test)]
mod any_bytes;
#[cfg(test)]
mod credentials;
#[cfg(test)]
mod hooks;
#[cfg(test)]
mod selection;
#[cfg(test)]
mod server;
#[cfg(test)]
mod trust;
#[cfg(test)]
mod users;
#[cfg(test)]
mod workplace;
