//! What is measured, and how much of it.

use std::sync::Arc;

use authz::Verdict;

use crate::webhook::question::Question;
use crate::webhook::site::Hook;

/// One kind of question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Contest {
    /// The answer is remembered; the same few questions come again and again.
    CachedFew,
    /// The answer is remembered among many others, and has long been out of the processor's sight.
    CachedMany,
    /// The service is called, one question after the other.
    Calls,
    /// The service is called by many at a time.
    CallsAtOnce,
    /// One question by very many at the same moment, none of whom knows the answer.
    Storm,
    /// Nobody listens.
    Dead,
}

impl Contest {
    /// In the order of the report.
    pub(crate) const ALL: [Self; 6] = [
        Self::CachedFew,
        Self::CachedMany,
        Self::Calls,
        Self::CallsAtOnce,
        Self::Dead,
        Self::Storm,
    ];

    /// What the table calls it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::CachedFew => "cached, few questions",
            Self::CachedMany => "cached, many questions",
            Self::Calls => "call, HTTP/1.1",
            Self::CallsAtOnce => "call, HTTP/1.1, 16 at a time",
            Self::Storm => "storm",
            Self::Dead => "dead service",
        }
    }

    /// Whether no answer takes a call.
    pub(crate) fn is_cached(self) -> bool {
        matches!(self, Self::CachedFew | Self::CachedMany)
    }

    /// What the Go program calls it.
    pub(crate) fn kind(self) -> &'static str {
        match self {
            Self::CachedFew | Self::CachedMany => "cached",
            Self::Calls | Self::CallsAtOnce => "calls",
            Self::Storm => "storm",
            Self::Dead => "dead",
        }
    }

    /// Which service is asked.
    pub(crate) fn hook(self) -> Hook {
        match self {
            Self::CachedFew | Self::CachedMany | Self::Calls | Self::CallsAtOnce => Hook::Fast,
            Self::Storm => Hook::Slow,
            Self::Dead => Hook::Dead,
        }
    }
}

/// One contest in one round.
pub(crate) struct Asked {
    pub(crate) contest: Contest,
    pub(crate) questions: Arc<[Question]>,
    /// How many of them come before the clock counts.
    pub(crate) n_warm_up: usize,
    /// How many ask at a time.
    pub(crate) n_askers: usize,
}

/// How much to measure.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Effort {
    pub(crate) n_rounds: usize,
    /// Questions with remembered answers; fewer than a cache has room for.
    pub(crate) n_cached: usize,
    /// How many of them differ if they are few.
    pub(crate) n_few: usize,
    /// Questions that are called for, and as many again at the most to warm up.
    pub(crate) n_calls: usize,
    /// Those who ask the same at once.
    pub(crate) n_storm: usize,
}

impl Effort {
    /// For a table.
    pub(crate) const FULL: Self =
        Self { n_rounds: 5, n_cached: 4096, n_few: 64, n_calls: 2000, n_storm: 1000 };
    /// For a test that the benchmark still runs.
    pub(crate) const QUICK: Self =
        Self { n_rounds: 1, n_cached: 64, n_few: 8, n_calls: 32, n_storm: 200 };

    /// A contest, with questions that no round before had.
    pub(crate) fn asked(self, contest: Contest, round: usize) -> Asked {
        let n_calls = self.n_calls;
        let (n_questions, n_warm_up, n_askers) = match contest {
            Contest::CachedFew | Contest::CachedMany => (self.n_cached, 0, 16),
            Contest::Calls | Contest::Dead => (n_calls, n_calls / 10, 1),
            Contest::CallsAtOnce => (2 * n_calls, n_calls / 10, 16),
            Contest::Storm => (1, 0, self.n_storm),
        };
        let n_different =
            if contest == Contest::CachedFew { self.n_few.max(1) } else { n_questions };
        let numbers = (0..n_questions).map(|number| number % n_different);
        let mut questions: Vec<Question> =
            numbers.map(|number| Question::make(round, number)).collect();
        if contest == Contest::Dead {
            questions.iter_mut().for_each(|question| question.want = Verdict::NoOpinion);
        }
        Asked { contest, questions: questions.into(), n_warm_up, n_askers }
    }
}
