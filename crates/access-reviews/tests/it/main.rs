//! Reviews from the body of a request to the body of its answer.

#[cfg(test)]
mod access;
#[cfg(test)]
mod check_allowed;
#[cfg(test)]
mod explanation;
#[cfg(test)]
mod plain;
#[cfg(test)]
mod review_client;
#[cfg(test)]
mod self_reviews;
#[cfg(test)]
mod subjects;
