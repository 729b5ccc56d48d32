//! How much of a request is recorded, and when.

use serde::Serialize;

/// How much of a request an event says. Each level says what the ones before it do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum Level {
    /// Nothing is recorded.
    None,
    /// Who asked for what and when, and what became of it.
    Metadata,
    /// The body of the request too, if it is for a resource.
    Request,
    /// The body of the answer too, if the request is for a resource.
    RequestResponse,
}

/// The moment in the life of a request that an event is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum Stage {
    /// The head of the request was read, and who sends it is known.
    RequestReceived,
    /// The head of the answer was sent, and the body will take its time.
    ResponseStarted,
    /// The answer was sent.
    ResponseComplete,
    /// The server failed on the request.
    Panic,
}

/// A set of stages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stages(u8);

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
    /// All stages, in the order of a request's life.
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

impl Stages {
    /// Reports whether a stage is in the set.
    pub const fn contains(self, stage: Stage) -> bool {
        self.0 & bit(stage) != 0
    }

    /// The set with a stage in it.
    #[must_use]
    pub const fn with(self, stage: Stage) -> Self {
        Self(self.0 | bit(stage))
    }

    /// What is in either of two sets.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl FromIterator<Stage> for Stages {
    fn from_iter<I: IntoIterator<Item = Stage>>(stages: I) -> Self {
        stages.into_iter().fold(Self::default(), Self::with)
    }
}

const fn bit(stage: Stage) -> u8 {
    1 << stage as u8
}
