//! Reads questions from flags, or from JSON lines in files and on standard input.

use std::fs::File;
use std::io::{self, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};

use access_reviews::review_parsing::{
    self, AccessQuestion, AccessTarget, LINE_BYTES_MAX, ResourceTarget,
};
use api_resources::{ParseResourceNameError, ResourceName, VerbTarget, check_verb};
use document::{Diagnostic, ReadError, SourcePosition};

use super::bounded_lines::{BoundedLine, BoundedLines};
use super::cluster_state::NodeObjectsNeed;
use super::load_failure::{LoadFailure, print_remarks, replace_control_characters};
use super::offline_authorizer::{OfflineAuthorizer, WebhookCallMode};
use super::offline_flags::{AccessQuestionFlags, AnswerFlags, SubjectFlags, TargetArgument};
use super::resolve_names::NameResolver;
use crate::exit::Exit;
use crate::file_arguments::{STDIN_NAME, is_stdin};

/// The source of the questions.
#[derive(Debug)]
pub(crate) enum AccessQuestionSource<'f> {
    /// One question, which arguments and flags state.
    One(Box<AccessQuestion<'static>>),
    /// One question per line, file after file; `-` is standard input.
    Lines(&'f [PathBuf]),
}

/// One question before its names are resolved.
struct UnresolvedQuestion {
    verb: String,
    request_target: UnresolvedTarget,
}

enum UnresolvedTarget {
    Resource { resource: ResourceName, name: String, namespace: String },
    Path(String),
}

/// The flags of a question are incomplete or contradict each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum QuestionFlagsError {
    #[error(
        "--as, --as-group and --no-implicit-groups are for one question, which needs VERB and \
         RESOURCE, or --verb"
    )]
    UserWithoutVerb,
    #[error(
        "--resource is for one question by flags, which needs --verb, or write VERB RESOURCE [NAME]"
    )]
    ResourceWithoutVerb,
    #[error("a question is VERB RESOURCE [NAME], such as `get pods web`, or VERB and a path")]
    MalformedArguments,
    #[error("{0}")]
    MalformedResource(ParseResourceNameError),
    #[error("a path has neither a name nor a namespace")]
    PathWithName,
    #[error("`-` is given twice, but standard input can be read once")]
    StdinTwice,
    #[error("a question needs --as or --as-group")]
    NoUser,
    #[error("--namespace needs --resource")]
    NamespaceWithoutResource,
    #[error("a question by flags needs --resource or --path")]
    NoTarget,
}

/// Questions and the authorizer that answers them.
pub(crate) struct LoadedQuestions<'f> {
    pub(crate) question_source: AccessQuestionSource<'f>,
    pub(crate) offline_authorizer: OfflineAuthorizer,
    /// Notes and warnings about the names of the question, for standard error.
    pub(crate) name_resolution_remarks: Vec<String>,
}

/// Callback that answers one question and writes the answer.
pub(crate) type AnswerCallback<'a> =
    &'a mut dyn FnMut(&AccessQuestion<'_>, &mut dyn Write) -> io::Result<Exit>;

impl<'f> LoadedQuestions<'f> {
    /// Loads the questions and the authorizer, and prints the remarks about them to `err`. If that fails, it prints the
    /// errors and returns the exit of the command in place of the questions.
    ///
    /// # Errors
    /// Fails if `err` cannot be written.
    pub(crate) fn load_questions_and_print_remarks(
        flags: &AnswerFlags,
        files: &'f [PathBuf],
        stdin: &mut dyn Read,
        err: &mut dyn Write,
        colour_of_errors: bool,
    ) -> io::Result<Result<Self, Exit>> {
        let loaded = match AccessQuestionSource::load_questions_and_authorizer(flags, files, stdin)
        {
            Ok(loaded) => loaded,
            Err(failure) => return failure.print_errors(err, colour_of_errors).map(Err),
        };
        print_remarks(err, loaded.offline_authorizer.input_remarks())?;
        print_remarks(err, &loaded.name_resolution_remarks)?;
        Ok(Ok(loaded))
    }
}

impl<'f> AccessQuestionSource<'f> {
    /// Returns the source of questions and the authorizer that answers them.
    ///
    /// # Errors
    /// Fails if the flags contradict each other, if a policy or manifest file is invalid, or if a name stands for no
    /// resource.
    pub(crate) fn load_questions_and_authorizer(
        flags: &AnswerFlags,
        files: &'f [PathBuf],
        stdin: &mut dyn Read,
    ) -> Result<LoadedQuestions<'f>, LoadFailure> {
        let AnswerFlags { question_flags: flags, policy_flags: policy, webhook_call_flags: calls } =
            flags;
        let usage = |message: &str| LoadFailure::Usage(vec![message.to_owned()]);
        let written =
            parse_single_question(flags, files).map_err(|error| usage(&error.to_string()))?;
        let reads_stdin = files.is_empty() || files.iter().any(|file| is_stdin(file));
        if written.is_none()
            && reads_stdin
            && policy.object_input_paths().iter().any(|path| path.is_stdin())
        {
            return Err(usage(
                "questions and objects cannot both come from standard input: name a FILE of \
                 questions or ask one question",
            ));
        }
        let webhooks = match calls.no_webhooks {
            true => WebhookCallMode::Skip,
            false => WebhookCallMode::Call,
        };
        let namespace = flags.namespace.as_deref();
        let node_objects = match &written {
            Some(_) => {
                NodeObjectsNeed::node_objects_needed_for_user(flags.subject_flags.user.as_deref())
            }
            // Any of the questions may be that of a node.
            None => NodeObjectsNeed::Read,
        };
        let authorizer =
            OfflineAuthorizer::load_from_flags(policy, webhooks, namespace, stdin, node_objects)?;
        let Some(written) = written else {
            return Ok(LoadedQuestions {
                question_source: Self::Lines(files),
                offline_authorizer: authorizer,
                name_resolution_remarks: Vec::new(),
            });
        };
        let (question, remarks) = resolve_question(written, flags, &authorizer)?;
        Ok(LoadedQuestions {
            question_source: Self::One(Box::new(question)),
            offline_authorizer: authorizer,
            name_resolution_remarks: remarks,
        })
    }

    /// Answers each question in order and returns the worst exit. It reports an invalid line with its
    /// position and continues with the next one.
    ///
    /// It flushes answers before a read that may block. If the reader of the answers closed the pipe,
    /// it stops without an error.
    ///
    /// # Errors
    /// Fails if an answer cannot be written.
    pub(crate) fn answer_questions(
        &self,
        stdin: &mut dyn Read,
        out: &mut dyn Write,
        err: &mut dyn Write,
        answer: AnswerCallback<'_>,
    ) -> io::Result<Exit> {
        let mut answerer = AccessQuestionAnswerer {
            stdout: out,
            stderr: err,
            answer_callback: answer,
            worst_exit: Exit::Clean,
            has_read_question: false,
        };
        let result = match self {
            Self::One(question) => answerer.answer_question(question),
            // A terminal as standard input means that the user forgot the question.
            Self::Lines([]) if io::stdin().is_terminal() => Ok(()),
            Self::Lines([]) => answerer.answer_question_stream(STDIN_NAME, stdin),
            Self::Lines(files) => {
                files.iter().try_for_each(|file| answerer.answer_question_file(file, stdin))
            }
        };
        match result {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
            Ok(()) if !answerer.has_read_question && answerer.worst_exit == Exit::Clean => {
                answerer.report_unreadable_input(
                    "there is no question: write VERB RESOURCE [NAME] with --as, or one question per line as JSON",
                )?;
                Ok(answerer.worst_exit)
            }
            Ok(()) | Err(_) => Ok(answerer.worst_exit),
        }
    }
}

/// Returns the question of the arguments or flags; `None` if questions are lines of JSON.
///
/// # Errors
/// Fails if a part of the question is missing, or if parts contradict each other.
fn parse_single_question(
    flags: &AccessQuestionFlags,
    arguments: &[PathBuf],
) -> Result<Option<UnresolvedQuestion>, QuestionFlagsError> {
    let SubjectFlags { user, groups, no_implicit_groups } = &flags.subject_flags;
    let has_user = user.is_some() || !groups.is_empty();
    if let Some(verb) = &flags.verb {
        if !has_user {
            return Err(QuestionFlagsError::NoUser);
        }
        return question_from_flags(verb, flags).map(Some);
    }
    if has_user && !arguments.is_empty() {
        return question_from_arguments(flags, arguments).map(Some);
    }
    if has_user || *no_implicit_groups {
        return Err(QuestionFlagsError::UserWithoutVerb);
    }
    if flags.resource.is_some() {
        return Err(QuestionFlagsError::ResourceWithoutVerb);
    }
    // A first argument that is a verb is most likely a question without --as, and not a file of questions.
    if let Some(first) = arguments.first().and_then(|first| first.to_str())
        && first != "*"
        && check_verb(first, VerbTarget::Resource).is_none()
        && !Path::new(first).exists()
    {
        return Err(QuestionFlagsError::NoUser);
    }
    if arguments.iter().filter(|file| is_stdin(file)).count() > 1 {
        return Err(QuestionFlagsError::StdinTwice);
    }
    Ok(None)
}

fn question_from_flags(
    verb: &str,
    flags: &AccessQuestionFlags,
) -> Result<UnresolvedQuestion, QuestionFlagsError> {
    if flags.resource.is_none() && flags.namespace.is_some() {
        return Err(QuestionFlagsError::NamespaceWithoutResource);
    }
    let target = match (&flags.resource, &flags.path) {
        (Some(resource), _) => UnresolvedTarget::Resource {
            resource: resource.clone(),
            name: flags.name.clone().unwrap_or_default(),
            namespace: flags.namespace.clone().unwrap_or_default(),
        },
        (None, Some(path)) => UnresolvedTarget::Path(path.clone()),
        (None, None) => return Err(QuestionFlagsError::NoTarget),
    };
    Ok(UnresolvedQuestion { verb: verb.to_owned(), request_target: target })
}

fn question_from_arguments(
    flags: &AccessQuestionFlags,
    arguments: &[PathBuf],
) -> Result<UnresolvedQuestion, QuestionFlagsError> {
    let texts: Vec<&str> = arguments.iter().filter_map(|argument| argument.to_str()).collect();
    let has_flags = flags.resource.is_some() || flags.name.is_some() || flags.path.is_some();
    let (verb, target, name) = match texts.as_slice() {
        _ if has_flags || texts.len() != arguments.len() => {
            return Err(QuestionFlagsError::MalformedArguments);
        }
        [verb, target] => (*verb, *target, ""),
        [verb, target, name] => (*verb, *target, *name),
        _ => return Err(QuestionFlagsError::MalformedArguments),
    };
    let target = match target.parse().map_err(QuestionFlagsError::MalformedResource)? {
        TargetArgument::Path(_) if !name.is_empty() || flags.namespace.is_some() => {
            return Err(QuestionFlagsError::PathWithName);
        }
        TargetArgument::Path(path) => UnresolvedTarget::Path(path),
        TargetArgument::Resource(resource) => UnresolvedTarget::Resource {
            resource,
            name: name.to_owned(),
            namespace: flags.namespace.clone().unwrap_or_default(),
        },
    };
    Ok(UnresolvedQuestion { verb: verb.to_owned(), request_target: target })
}

/// Replaces the names of a question with those that policies have. Returns remarks about them.
fn resolve_question(
    written: UnresolvedQuestion,
    flags: &AccessQuestionFlags,
    authorizer: &OfflineAuthorizer,
) -> Result<(AccessQuestion<'static>, Vec<String>), LoadFailure> {
    let mut resolver = NameResolver::new(authorizer, flags.resource_name_flags);
    let user = resolver.resolve_user(&flags.subject_flags);
    let target = match written.request_target {
        UnresolvedTarget::Path(path) => {
            resolver.warn_of_unknown_verb(&written.verb, VerbTarget::Path);
            AccessTarget::Path(path.into())
        }
        UnresolvedTarget::Resource { resource, name, namespace } => {
            resolver.warn_of_unknown_verb(&written.verb, VerbTarget::Resource);
            let resolved = resolver.resolve_resource(&resource, &namespace)?;
            let given = Some(namespace.as_str()).filter(|namespace| !namespace.is_empty());
            let namespace = resolver.request_namespace(&resolved, given);
            AccessTarget::Resource(ResourceTarget {
                api_group: resolved.group.into(),
                api_version: "*".into(),
                namespace: namespace.into(),
                resource: resolved.plural.into(),
                subresource: resolved.subresource.into(),
                name: name.into(),
                field_selector: None,
                label_selector: None,
            })
        }
    };
    Ok((
        AccessQuestion { user, verb: written.verb.into(), target },
        resolver.name_resolution_remarks,
    ))
}

struct AccessQuestionAnswerer<'a> {
    stdout: &'a mut dyn Write,
    stderr: &'a mut dyn Write,
    answer_callback: AnswerCallback<'a>,
    worst_exit: Exit,
    /// Whether there was a question, valid or not.
    has_read_question: bool,
}

impl AccessQuestionAnswerer<'_> {
    fn answer_question(&mut self, question: &AccessQuestion<'_>) -> io::Result<()> {
        self.has_read_question = true;
        let exit = (self.answer_callback)(question, self.stdout)?;
        self.worst_exit = self.worst_exit.max(exit);
        Ok(())
    }

    fn answer_question_file(&mut self, path: &Path, stdin: &mut dyn Read) -> io::Result<()> {
        if is_stdin(path) {
            return self.answer_question_stream(STDIN_NAME, stdin);
        }
        match File::open(path) {
            Ok(file) => self.answer_question_stream(&path.to_string_lossy(), file),
            Err(error) => self.report_unreadable_input(&ReadError::new(path, &error).to_string()),
        }
    }

    fn answer_question_stream(&mut self, name: &str, reader: impl Read) -> io::Result<()> {
        let mut lines = BoundedLines::new(reader, LINE_BYTES_MAX);
        loop {
            if !lines.has_buffered_line() {
                self.stdout.flush()?;
            }
            match lines.next_line() {
                Ok(None) => return Ok(()),
                Ok(Some(line)) => self.answer_json_line(name, &line)?,
                Err(error) => {
                    let ReadError { message, .. } = ReadError::new(Path::new(name), &error);
                    return self.report_unreadable_input(&format!("read {name}: {message}"));
                }
            }
        }
    }

    fn answer_json_line(&mut self, name: &str, line: &BoundedLine<'_>) -> io::Result<()> {
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
        match review_parsing::read_review_line(name, number, text) {
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
        self.has_read_question = true;
        self.worst_exit = self.worst_exit.max(Exit::Unreadable);
        let (name, message) =
            (replace_control_characters(name), replace_control_characters(message));
        let hint =
            hint.map(|hint| format!(" ({})", replace_control_characters(hint))).unwrap_or_default();
        writeln!(self.stderr, "{name}:{line}:{column}: {message}{hint}")
    }

    fn report_unreadable_input(&mut self, message: &str) -> io::Result<()> {
        self.worst_exit = self.worst_exit.max(Exit::Unreadable);
        writeln!(self.stderr, "error: {}", replace_control_characters(message))
    }
}
