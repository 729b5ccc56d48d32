//! Priority levels, which divide the seats between requests.

/// A group of requests with seats of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PriorityLevel {
    /// The name of the object.
    pub name: String,
    /// The uid of the object; clients see it in a response header.
    pub uid: String,
    /// Whether and how the requests of the level are limited.
    pub kind: PriorityLevelKind,
}

/// Whether the requests of a level are limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PriorityLevelKind {
    /// Requests run at once, however many there are.
    Exempt,
    /// Requests share the seats of the level.
    Limited {
        /// The level's part of all seats, relative to the shares of the other levels.
        nominal_concurrency_shares: u32,
        /// What happens to a request while no seat is free.
        limit_response: LimitResponse,
    },
}

/// What happens to a request while no seat of its level is free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitResponse {
    /// The request is refused at once.
    Reject,
    /// The request waits in a queue.
    Queue(QueuingOptions),
}

/// The number of queues of a priority level, and their length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueuingOptions {
    /// The number of queues.
    pub n_queues: u32,
    /// The number of queues that one flow may use; it uses the shortest of them.
    pub hand_size: u32,
    /// The maximum number of requests that may wait in one queue.
    pub queue_length_limit: u32,
}
