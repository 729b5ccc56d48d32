//! Errors of requests to etcd.

use std::error::Error;

use store::{ReadError, Unavailable};
use tonic::{Code, ConnectError, Status};

/// The reason why a request to etcd failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CallError {
    /// The revision is below the floor.
    Compacted,
    /// The revision does not exist yet.
    Future,
    /// The request is larger than the member accepts.
    RequestTooLarge,
    /// The response is larger than the client accepts.
    ResponseTooLarge,
    /// etcd does not know the lease.
    NoLease,
    /// The quota of the cluster is used up, so it refuses writes that need space.
    NoSpace,
    /// The request did not finish in time.
    Timeout,
    /// The request failed for any other reason.
    Unavailable(Unavailable),
}

impl From<Unavailable> for CallError {
    fn from(error: Unavailable) -> Self {
        Self::Unavailable(error)
    }
}

impl CallError {
    /// Converts an error that the caller does not handle itself to a read error.
    pub(crate) fn into_read_error(self) -> ReadError {
        let unavailable = |reason: &str| Unavailable { reason: reason.into() }.into();
        match self {
            Self::Timeout => ReadError::Timeout,
            Self::Unavailable(error) => error.into(),
            Self::Compacted => unavailable("etcd says that the revision is compacted"),
            Self::Future => unavailable("etcd says that the revision is in the future"),
            Self::RequestTooLarge => unavailable("etcd does not take a request of this size"),
            Self::ResponseTooLarge => unavailable("one value in etcd is too large to read"),
            Self::NoLease => unavailable("etcd has lost a lease"),
            Self::NoSpace => unavailable("etcd has no space left"),
        }
    }
}

/// The cause of a failure, which decides whether another member is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FaultSource {
    /// The request: every member would return the same error.
    Request,
    /// The member: another one may succeed. It is unknown whether this one has carried out the request.
    Member,
    /// The connection: the request was never sent.
    Connection,
}

/// A failed attempt at one member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CallFailure {
    pub(crate) error: CallError,
    pub(crate) fault_source: FaultSource,
}

impl CallFailure {
    /// Makes the failure of a member that cannot be reached.
    pub(crate) fn unreachable_member_failure(uri: &str, why: &str) -> Self {
        let reason = format!("etcd member {uri}: {why}").into();
        Self { error: Unavailable { reason }.into(), fault_source: FaultSource::Connection }
    }

    /// Converts a gRPC status. Some errors of etcd differ only in their message, which is part of its API.
    pub(crate) fn from_grpc_status(uri: &str, status: &Status) -> Self {
        let text = status.message();
        let by_request = |error| Self { error, fault_source: FaultSource::Request };
        let reason = || Unavailable { reason: format!("etcd member {uri}: {text}").into() };
        match status.code() {
            Code::OutOfRange if text.contains("has been compacted") => {
                by_request(CallError::Compacted)
            }
            Code::OutOfRange if text.contains("future revision") => by_request(CallError::Future),
            Code::OutOfRange if text.contains("length too large") => {
                by_request(CallError::ResponseTooLarge)
            }
            Code::InvalidArgument if text.contains("request is too large") => {
                by_request(CallError::RequestTooLarge)
            }
            Code::ResourceExhausted if text.contains("database space exceeded") => {
                by_request(CallError::NoSpace)
            }
            Code::NotFound if text.contains("lease not found") => by_request(CallError::NoLease),
            Code::InvalidArgument
            | Code::NotFound
            | Code::AlreadyExists
            | Code::PermissionDenied
            | Code::Unauthenticated
            | Code::ResourceExhausted
            | Code::FailedPrecondition
            | Code::OutOfRange
            | Code::Unimplemented => by_request(reason().into()),
            Code::DeadlineExceeded => {
                Self { error: CallError::Timeout, fault_source: FaultSource::Member }
            }
            Code::Unavailable if is_failure_before_sending(status) => {
                Self::unreachable_member_failure(uri, text)
            }
            Code::Ok
            | Code::Cancelled
            | Code::Unknown
            | Code::Aborted
            | Code::Internal
            | Code::Unavailable
            | Code::DataLoss => Self { error: reason().into(), fault_source: FaultSource::Member },
        }
    }
}

/// Reports whether the request failed before a connection existed.
fn is_failure_before_sending(status: &Status) -> bool {
    let mut cause = status.source();
    while let Some(error) = cause {
        if error.is::<ConnectError>() {
            return true;
        }
        cause = error.source();
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn etcd_error_messages_are_classified() {
        let failure =
            |code, text: &str| CallFailure::from_grpc_status("m", &Status::new(code, text));
        let request = |error| CallFailure { error, fault_source: FaultSource::Request };
        for (code, text, error) in [
            (
                Code::OutOfRange,
                "etcdserver: mvcc: required revision has been compacted",
                CallError::Compacted,
            ),
            (
                Code::OutOfRange,
                "etcdserver: mvcc: required revision is a future revision",
                CallError::Future,
            ),
            (Code::InvalidArgument, "etcdserver: request is too large", CallError::RequestTooLarge),
            (Code::NotFound, "etcdserver: requested lease not found", CallError::NoLease),
            (
                Code::ResourceExhausted,
                "etcdserver: mvcc: database space exceeded",
                CallError::NoSpace,
            ),
        ] {
            assert_eq!(failure(code, text), request(error), "{text}");
        }
        let late = CallFailure { error: CallError::Timeout, fault_source: FaultSource::Member };
        assert_eq!(failure(Code::DeadlineExceeded, "context deadline exceeded"), late);
        let leaderless = failure(Code::Unavailable, "etcdserver: no leader");
        let reason = "etcd member m: etcdserver: no leader".into();
        let error = CallError::Unavailable(Unavailable { reason });
        assert_eq!(leaderless, CallFailure { error, fault_source: FaultSource::Member });
    }

    #[test]
    fn a_request_without_connection_was_not_sent() {
        let refused = ConnectError(Box::from("refused"));
        let status = Status::from_error(Box::new(refused));
        let failure = CallFailure::from_grpc_status("m", &status);
        assert_eq!(failure.fault_source, FaultSource::Connection);
    }
}
