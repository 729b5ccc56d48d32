//! Errors of requests to etcd.

use store::{ReadError, Unavailable};

use crate::grpc::{GrpcCode, GrpcError};

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
    /// Classifies an error of a call to a member. Some errors of etcd differ only in their message, which is part of
    /// its API.
    pub(crate) fn from_grpc_error(uri: &str, error: &GrpcError) -> Self {
        let text = error.message();
        let by_request = |error| Self { error, fault_source: FaultSource::Request };
        let unavailable = |fault_source| {
            let reason = format!("etcd member {uri}: {text}").into();
            Self { error: Unavailable { reason }.into(), fault_source }
        };
        let code = match error {
            GrpcError::NotConnected(_) => return unavailable(FaultSource::Connection),
            GrpcError::Broken(_) => return unavailable(FaultSource::Member),
            GrpcError::RequestTooLarge => return by_request(CallError::RequestTooLarge),
            GrpcError::ResponseTooLarge => return by_request(CallError::ResponseTooLarge),
            GrpcError::Status(code, _) => code,
        };
        match code {
            GrpcCode::OutOfRange if text.contains("has been compacted") => {
                by_request(CallError::Compacted)
            }
            GrpcCode::OutOfRange if text.contains("future revision") => {
                by_request(CallError::Future)
            }
            GrpcCode::InvalidArgument if text.contains("request is too large") => {
                by_request(CallError::RequestTooLarge)
            }
            GrpcCode::ResourceExhausted if text.contains("database space exceeded") => {
                by_request(CallError::NoSpace)
            }
            GrpcCode::NotFound if text.contains("lease not found") => {
                by_request(CallError::NoLease)
            }
            GrpcCode::InvalidArgument
            | GrpcCode::NotFound
            | GrpcCode::AlreadyExists
            | GrpcCode::PermissionDenied
            | GrpcCode::Unauthenticated
            | GrpcCode::ResourceExhausted
            | GrpcCode::FailedPrecondition
            | GrpcCode::OutOfRange
            | GrpcCode::Unimplemented => unavailable(FaultSource::Request),
            GrpcCode::DeadlineExceeded => {
                Self { error: CallError::Timeout, fault_source: FaultSource::Member }
            }
            GrpcCode::Other => unavailable(FaultSource::Member),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn etcd_error_messages_are_classified() {
        let failure = |code, text: &str| {
            CallFailure::from_grpc_error("m", &GrpcError::Status(code, text.to_owned()))
        };
        let request = |error| CallFailure { error, fault_source: FaultSource::Request };
        for (code, text, error) in [
            (
                GrpcCode::OutOfRange,
                "etcdserver: mvcc: required revision has been compacted",
                CallError::Compacted,
            ),
            (
                GrpcCode::OutOfRange,
                "etcdserver: mvcc: required revision is a future revision",
                CallError::Future,
            ),
            (
                GrpcCode::InvalidArgument,
                "etcdserver: request is too large",
                CallError::RequestTooLarge,
            ),
            (GrpcCode::NotFound, "etcdserver: requested lease not found", CallError::NoLease),
            (
                GrpcCode::ResourceExhausted,
                "etcdserver: mvcc: database space exceeded",
                CallError::NoSpace,
            ),
        ] {
            assert_eq!(failure(code, text), request(error), "{text}");
        }
        let late = CallFailure { error: CallError::Timeout, fault_source: FaultSource::Member };
        assert_eq!(failure(GrpcCode::DeadlineExceeded, "context deadline exceeded"), late);
        let leaderless = failure(GrpcCode::Other, "etcdserver: no leader");
        let reason = "etcd member m: etcdserver: no leader".into();
        let error = CallError::Unavailable(Unavailable { reason });
        assert_eq!(leaderless, CallFailure { error, fault_source: FaultSource::Member });
    }

    #[test]
    fn a_request_without_connection_was_not_sent() {
        let refused = GrpcError::NotConnected("refused".to_owned());
        let failure = CallFailure::from_grpc_error("m", &refused);
        assert_eq!(failure.fault_source, FaultSource::Connection);
    }
    #[test]
    fn it_is_unknown_whether_a_request_on_a_broken_connection_was_carried_out() {
        let broken = GrpcError::Broken("reset".to_owned());
        let failure = CallFailure::from_grpc_error("m", &broken);
        assert_eq!(failure.fault_source, FaultSource::Member);
        assert_eq!(
            failure.error,
            CallError::Unavailable(Unavailable { reason: "etcd member m: reset".into() })
        );
    }
}
