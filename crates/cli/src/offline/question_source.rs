//! Reads questions from flags, or from JSON lines in files and on standard input.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use access_reviews::review::{self, AccessQuestion, AccessTarget, LINE_BYTES_MAX, ResourceTarget};
use document::{Diagnostic, ReadError, SourcePosition};

use super::bounded_lines::{BoundedLine, BoundedLines};
use super::implicit_groups;
use super::load_failure::{LoadFailure, printable};
use super::offline_authorizer::{OfflineAuthorizer, WebhookMode};
use super::offline_flags::{
    PolicyFlags, QuestionFlags, ResourceArgument, SubjectFlags, WebhookCallFlags,
};
use crate::exit::Exit;
use crate::file_arguments::{STDIN_NAME, is_stdin};

/// The source of the questions.
#[derive(Debug)]
pub(crate) enum QuestionSource<'f> {
    /// One question, which flags state.
    One(Box<AccessQuestion<'static>>),
    /// One question per line, file after file; `-` is standard input.
    Lines(&'f [PathBuf]),
}

/// The flags of a question are incomplete or contradict each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum QuestionFlagsError {
    #[error(
        "--as, --as-group and --no-implicit-groups are for a question by flags, which needs --verb"
    )]
    UserWithoutVerb,
    #[error("--resource and --namespace are for a question by flags, which needs --verb")]
    ResourceWithoutVerb,
    #[error("`-` is given twice, but standard input can be read once")]
    StdinTwice,
    #[error("a question by flags needs --as or --as-group")]
    NoUser,
    #[error("--namespace needs --resource")]
    NamespaceWithoutResource,
    #[error("a question by flags needs --resource or --path")]
    NoTarget,
}

/// Callback that answers one question and writes the answer.
pub(crate) type AnswerQuestion<'a> =
    &'a mut dyn FnMut(&AccessQuestion<'_>, &mut dyn Write) -> io::Result<Exit>;

impl<'f> QuestionSource<'f> {
    /// Returns the source of questions and the authorizer that answers them.
    ///
    /// # Errors
    /// Fails if the flags contradict each other, or if a policy or manifest file is invalid.
    pub(crate) fn load_with_authorizer(
        flags: &QuestionFlags,
        files: &'f [PathBuf],
        policy: &PolicyFlags,
        calls: &WebhookCallFlags,
        stdin: &mut dyn Read,
    ) -> Result<(Self, OfflineAuthorizer), LoadFailure> {
        let usage = |message: &str| LoadFailure::Usage(vec![message.to_owned()]);
        let questions = Self::new(flags, files).map_err(|error| usage(&error.to_string()))?;
        if questions.reads_stdin() && policy.objects.iter().any(|path| is_stdin(path)) {
            return Err(usage(
                "questions and objects can not both come from standard input: name a FILE of \
                 questions or ask by flags",
            ));
        }
        let webhooks = match calls.no_webhooks {
            true => WebhookMode::Skip,
            false => WebhookMode::Call,
        };
        Ok((questions, OfflineAuthorizer::load(policy, webhooks, stdin)?))
    }

    /// Returns the question of the flags, or else the files, or else standard input.
    ///
    /// # Errors
    /// Fails if flags of a question are missing or contradict each other.
    fn new(flags: &QuestionFlags, files: &'f [PathBuf]) -> Result<Self, QuestionFlagsError> {
        let Some(verb) = &flags.verb else {
            let SubjectFlags { user, groups, no_implicit_groups } = &flags.subject;
            if user.is_some() || !groups.is_empty() || *no_implicit_groups {
                return Err(QuestionFlagsError::UserWithoutVerb);
            }
            if flags.resource.is_some() || flags.namespace.is_some() {
                return Err(QuestionFlagsError::ResourceWithoutVerb);
            }
            if files.iter().filter(|file| is_stdin(file)).count() > 1 {
                return Err(QuestionFlagsError::StdinTwice);
            }
            return Ok(Self::Lines(files));
        };
        if flags.subject.user.is_none() && flags.subject.groups.is_empty() {
            return Err(QuestionFlagsError::NoUser);
        }
        if flags.resource.is_none() && flags.namespace.is_some() {
            return Err(QuestionFlagsError::NamespaceWithoutResource);
        }
        let target = match (&flags.resource, &flags.path) {
            (Some(resource), _) => {
                let name = flags.name.clone().unwrap_or_default();
                let namespace = flags.namespace.clone().unwrap_or_default();
                access_target(resource, name, namespace)
            }
            (None, Some(path)) => AccessTarget::Path(path.clone().into()),
            (None, None) => {
                return Err(QuestionFlagsError::NoTarget);
            }
        };
        let user = implicit_groups::user_from_flags(&flags.subject);
        Ok(Self::One(Box::new(AccessQuestion { user, verb: verb.clone().into(), target })))
    }

    /// Reports whether the source reads standard input.
    fn reads_stdin(&self) -> bool {
        match self {
            Self::One(_) => false,
            Self::Lines(files) => files.is_empty() || files.iter().any(|file| is_stdin(file)),
        }
    }

    /// Answers each question in order and returns the worst exit. It reports an invalid line with its
    /// position and continues with the next one.
    ///
    /// It flushes answers before a read that may block. If the reader of the answers closed the pipe,
    /// it stops without an error.
    ///
    /// # Errors
    /// Fails if an answer can not be written.
    pub(crate) fn answer_each(
        &self,
        stdin: &mut dyn Read,
        out: &mut dyn Write,
        err: &mut dyn Write,
        answer: AnswerQuestion<'_>,
    ) -> io::Result<Exit> {
        let mut answerer = QuestionAnswerer { out, err, answer, worst_exit: Exit::Clean };
        let result = match self {
            Self::One(question) => answerer.answer_question(question),
            Self::Lines([]) => answerer.read_stream(STDIN_NAME, stdin),
            Self::Lines(files) => {
                files.iter().try_for_each(|file| answerer.read_question_file(file, stdin))
            }
        };
        match result {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
            Ok(()) | Err(_) => Ok(answerer.worst_exit),
        }
    }
}

fn access_target(
    text: &ResourceArgument,
    name: String,
    namespace: String,
) -> AccessTarget<'static> {
    let ResourceArgument { resource, api_group, subresource } = text.clone();
    AccessTarget::Resource(ResourceTarget {
        api_group: api_group.into(),
        api_version: "*".into(),
        namespace: namespace.into(),
        resource: resource.into(),
        subresource: subresource.into(),
        name: name.into(),
        field_selector: None,
        label_selector: None,
    })
}

struct QuestionAnswerer<'a> {
    out: &'a mut dyn Write,
    err: &'a mut dyn Write,
    answer: AnswerQuestion<'a>,
    worst_exit: Exit,
}

impl QuestionAnswerer<'_> {
    fn answer_question(&mut self, question: &AccessQuestion<'_>) -> io::Result<()> {
        let exit = (self.answer)(question, self.out)?;
        self.worst_exit = self.worst_exit.max(exit);
        Ok(())
    }

    fn read_question_file(&mut self, path: &Path, stdin: &mut dyn Read) -> io::Result<()> {
        if is_stdin(path) {
            return self.read_stream(STDIN_NAME, stdin);
        }
        match File::open(path) {
            Ok(file) => self.read_stream(&path.to_string_lossy(), file),
            Err(error) => self.report_unreadable(&ReadError::new(path, &error).to_string()),
        }
    }

    fn read_stream(&mut self, name: &str, reader: impl Read) -> io::Result<()> {
        let mut lines = BoundedLines::new(reader, LINE_BYTES_MAX);
        loop {
            if !lines.is_next_ready() {
                self.out.flush()?;
            }
            match lines.next_line() {
                Ok(None) => return Ok(()),
                Ok(Some(line)) => self.answer_line(name, &line)?,
                Err(error) => {
                    let ReadError { message, .. } = ReadError::new(Path::new(name), &error);
                    return self.report_unreadable(&format!("read {name}: {message}"));
                }
            }
        }
    }

    fn answer_line(&mut self, name: &str, line: &BoundedLine<'_>) -> io::Result<()> {
        let (number, bytes) = match *line {
            BoundedLine::Text { number, bytes } => (number, bytes),
            BoundedLine::TooLong { number } => {
                let message = format!("the line is longer than {LINE_BYTES_MAX} bytes");
                return self.report_invalid_line(name, (number, 1), &message, None);
            }
        };
        let text = match std::str::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => {
                let valid = bytes.get(..error.valid_up_to()).unwrap_or_default();
                let column = String::from_utf8_lossy(valid).chars().count() + 1;
                return self.report_invalid_line(
                    name,
                    (number, column),
                    "the line is not UTF-8",
                    None,
                );
            }
        };
        if text.trim_ascii().is_empty() {
            return Ok(());
        }
        match review::read_review_line(name, number, text) {
            Ok(question) => self.answer_question(&question),
            Err(faults) => {
                faults.iter().try_for_each(|Diagnostic { fault, position, hint, .. }| {
                    let SourcePosition { line, column, .. } = *position;
                    self.report_invalid_line(
                        name,
                        (line, column),
                        &fault.to_string(),
                        hint.as_deref(),
                    )
                })
            }
        }
    }

    fn report_invalid_line(
        &mut self,
        name: &str,
        (line, column): (usize, usize),
        message: &str,
        hint: Option<&str>,
    ) -> io::Result<()> {
        self.worst_exit = self.worst_exit.max(Exit::Unreadable);
        let (name, message) = (printable(name), printable(message));
        let hint = hint.map(|hint| format!(" ({})", printable(hint))).unwrap_or_default();
        writeln!(self.err, "{name}:{line}:{column}: {message}{hint}")
    }

    fn report_unreadable(&mut self, message: &str) -> io::Result<()> {
        self.worst_exit = self.worst_exit.max(Exit::Unreadable);
        writeln!(self.err, "error: {}", printable(message))
    }
}
