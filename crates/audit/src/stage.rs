//! Audit levels and stages.

use serde::Serialize;

/// How much of a request an event contains. Each level includes the ones before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum Level {
    /// The request is not recorded.
    None,
    /// The user, the time, the verb, the object and the status code.
    Metadata,
    /// Also the body of a resource request.
    Request,
    /// Also the body of the response to a resource request.
    RequestResponse,
}

/// The stage of a request at which an event is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum Stage {
    /// The header of the request was read and the user is known.
    RequestReceived,
    /// The header of a long-running response was sent.
    ResponseStarted,
    /// The response was sent.
    ResponseComplete,
    /// The server panicked while it handled the request.
    Panic,
}

/// A set of stages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StageSet(u8);

impl Level {
    /// All levels, from the least to the most.
    pub const ALL: [Self; 4] = [Self::None, Self::Metadata, Self::Request, Self::RequestResponse];

    /// The name in files and events.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "None",
            Self::Metadata => "Metadata",
            Self::Request => "Request",
            Self::RequestResponse => "RequestResponse",
        }
    }
}

impl Stage {
    /// All stages in order.
    pub const ALL: [Self; 4] =
        [Self::RequestReceived, Self::ResponseStarted, Self::ResponseComplete, Self::Panic];

    /// The name in files and events.
    pub const fn name(self) -> &'static str {
        match self {
            Self::RequestReceived => "RequestReceived",
            Self::ResponseStarted => "ResponseStarted",
            Self::ResponseComplete => "ResponseComplete",
            Self::Panic => "Panic",
        }
    }
}

impl StageSet {
    /// Reports whether a stage is in the set.
    pub const fn contains(self, stage: Stage) -> bool {
        self.0 & stage_bit(stage) != 0
    }

    /// The set with a stage in it.
    #[must_use]
    pub const fn with_stage(self, stage: Stage) -> Self {
        Self(self.0 | stage_bit(stage))
    }

    /// The stages in either set.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl FromIterator<Stage> for StageSet {
    fn from_iter<I: IntoIterator<Item = Stage>>(stages: I) -> Self {
        stages.into_iter().fold(Self::default(), Self::with_stage)
    }
}

const fn stage_bit(stage: Stage) -> u8 {
    1 << stage as u8
}
