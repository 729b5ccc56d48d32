//! Loads kubeconfigs and files of authorization hooks from real files.

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
mod test_folder;
#[cfg(test)]
mod trust;
#[cfg(test)]
mod users;
