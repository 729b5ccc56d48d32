//! Where questions come from: flags, or lines of JSON in files and on standard input.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use access_reviews::review::{self, AccessQuestion, AccessTarget, LINE_BYTES_MAX, ResourceTarget};
use document::{Diagnostic, Place, ReadError};

use super::flags::{CallFlags, PolicyFlags, QuestionFlags, ResourceText, SubjectFlags};
use super::implied;
use super::lines::{Line, Lines};
use super::policy::{Policy, Webhooks};
use super::show::{Unusable, printable};
use crate::exit::Exit;

/// What messages call standard input.
const STDIN_NAME: &str = "<stdin>";

/// What is asked.
#[derive(Debug)]
pub(crate) enum Questions<'f> {
    /// One question.
    One(Box<AccessQuestion<'static>>),
    /// One question a line, file after file; `-` is standard input.
    Lines(&'f [PathBuf]),
}

/// Answers one question.
pub(crate) type Asked<'a> =
    &'a mut dyn FnMut(&AccessQuestion<'_>, &mut dyn Write) -> io::Result<Exit>;

impl<'f> Questions<'f> {
    /// The questions of these flags and files, and what they are answered from.
    ///
    /// # Errors
    /// Fails if the flags make no sense together, or if anything that answers are made from is
    /// wrong.
    pub(crate) fn with_policy(
        flags: &QuestionFlags,
        files: &'f [PathBuf],
        policy: &PolicyFlags,
        calls: &CallFlags,
        stdin: &mut dyn Read,
    ) -> Result<(Self, Policy), Unusable> {
        let usage = |message: &str| Unusable::Usage(vec![message.to_owned()]);
        let questions = Self::new(flags, files).map_err(|message| usage(&message))?;
        if questions.use_stdin() && policy.objects.iter().any(|path| is_stdin(path)) {
            return Err(usage(
                "questions and objects can not both come from standard input: name a FILE of \
                 questions or ask by flags",
            ));
        }
        let webhooks = match calls.no_webhooks {
            true => Webhooks::LeftOpen,
            false => Webhooks::Called,
        };
        Ok((questions, Policy::load(policy, webhooks, stdin)?))
    }

    /// The questions of these flags and files. Without any, they are on standard input.
    ///
    /// # Errors
    /// Fails if flags are missing that a question needs, or contradict each other.
    fn new(flags: &QuestionFlags, files: &'f [PathBuf]) -> Result<Self, String> {
        let Some(verb) = &flags.verb else {
            let SubjectFlags { user, groups, no_implicit_groups } = &flags.subject;
            if user.is_some() || !groups.is_empty() || *no_implicit_groups {
                return Err("--as, --as-group and --no-implicit-groups are for a question by \
                            flags, which needs --verb"
                    .to_owned());
            }
            if flags.resource.is_some() || flags.namespace.is_some() {
                let message = "--resource and --namespace are for a question by flags, which needs \
                               --verb";
                return Err(message.to_owned());
            }
            if files.iter().filter(|file| is_stdin(file)).count() > 1 {
                return Err("`-` is given twice, but standard input can be read once".to_owned());
            }
            return Ok(Self::Lines(files));
        };
        if flags.subject.user.is_none() && flags.subject.groups.is_empty() {
            return Err("a question by flags needs --as or --as-group".to_owned());
        }
        if flags.resource.is_none() && flags.namespace.is_some() {
            return Err("--namespace needs --resource".to_owned());
        }
        let target = match (&flags.resource, &flags.path) {
            (Some(resource), _) => {
                let name = flags.name.clone().unwrap_or_default();
                let namespace = flags.namespace.clone().unwrap_or_default();
                resource_target(resource, name, namespace)
            }
            (None, Some(path)) => AccessTarget::Path(path.clone().into()),
            (None, None) => {
                return Err("a question by flags needs --resource or --path".to_owned());
            }
        };
        let user = implied::user(&flags.subject);
        Ok(Self::One(Box::new(AccessQuestion { user, verb: verb.clone().into(), target })))
    }

    /// Reports whether they come from standard input.
    fn use_stdin(&self) -> bool {
        match self {
            Self::One(_) => false,
            Self::Lines(files) => files.is_empty() || files.iter().any(|file| is_stdin(file)),
        }
    }

    /// Has each question answered, in order. A line that holds none is reported with its place, and
    /// the next one is read. Returns the worst exit.
    ///
    /// Answers are passed on before anything is read that has to be waited for. Nobody waits for
    /// an answer whose reader has gone away, so the walk ends there.
    ///
    /// # Errors
    /// Fails if an answer can not be written.
    pub(crate) fn each(
        &self,
        stdin: &mut dyn Read,
        out: &mut dyn Write,
        err: &mut dyn Write,
        answer: Asked<'_>,
    ) -> io::Result<Exit> {
        let mut walk = Walk { out, err, answer, worst: Exit::Clean };
        let walked = match self {
            Self::One(question) => walk.answer(question),
            Self::Lines([]) => walk.stream(STDIN_NAME, stdin),
            Self::Lines(files) => files.iter().try_for_each(|file| walk.file(file, stdin)),
        };
        match walked {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
            Ok(()) | Err(_) => Ok(walk.worst),
        }
    }
}

fn resource_target(text: &ResourceText, name: String, namespace: String) -> AccessTarget<'static> {
    let ResourceText { resource, api_group, subresource } = text.clone();
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

fn is_stdin(path: &Path) -> bool {
    path == Path::new("-")
}

struct Walk<'a> {
    out: &'a mut dyn Write,
    err: &'a mut dyn Write,
    answer: Asked<'a>,
    worst: Exit,
}

impl Walk<'_> {
    fn answer(&mut self, question: &AccessQuestion<'_>) -> io::Result<()> {
        let exit = (self.answer)(question, self.out)?;
        self.worst = self.worst.max(exit);
        Ok(())
    }

    fn file(&mut self, path: &Path, stdin: &mut dyn Read) -> io::Result<()> {
        if is_stdin(path) {
            return self.stream(STDIN_NAME, stdin);
        }
        match File::open(path) {
            Ok(file) => self.stream(&path.to_string_lossy(), file),
            Err(error) => self.unreadable(&ReadError::new(path, &error).to_string()),
        }
    }

    fn stream(&mut self, name: &str, reader: impl Read) -> io::Result<()> {
        let mut lines = Lines::new(reader, LINE_BYTES_MAX);
        loop {
            if !lines.is_next_ready() {
                self.out.flush()?;
            }
            match lines.next() {
                Ok(None) => return Ok(()),
                Ok(Some(line)) => self.line(name, &line)?,
                Err(error) => {
                    let ReadError { message, .. } = ReadError::new(Path::new(name), &error);
                    return self.unreadable(&format!("read {name}: {message}"));
                }
            }
        }
    }

    fn line(&mut self, name: &str, line: &Line<'_>) -> io::Result<()> {
        let (number, bytes) = match *line {
            Line::Text { number, bytes } => (number, bytes),
            Line::TooLong { number } => {
                let message = format!("the line is longer than {LINE_BYTES_MAX} bytes");
                return self.refuse(name, (number, 1), &message, None);
            }
        };
        let text = match std::str::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => {
                let valid = bytes.get(..error.valid_up_to()).unwrap_or_default();
                let column = String::from_utf8_lossy(valid).chars().count() + 1;
                return self.refuse(name, (number, column), "the line is not UTF-8", None);
            }
        };
        if text.trim_ascii().is_empty() {
            return Ok(());
        }
        match review::read_line(name, number, text) {
            Ok(question) => self.answer(&question),
            Err(faults) => {
                faults.iter().try_for_each(|Diagnostic { fault, place, hint, .. }| {
                    let Place { line, column, .. } = *place;
                    self.refuse(name, (line, column), &fault.to_string(), hint.as_deref())
                })
            }
        }
    }

    fn refuse(
        &mut self,
        name: &str,
        (line, column): (usize, usize),
        message: &str,
        hint: Option<&str>,
    ) -> io::Result<()> {
        self.worst = self.worst.max(Exit::Unreadable);
        let (name, message) = (printable(name), printable(message));
        let hint = hint.map(|hint| format!(" ({})", printable(hint))).unwrap_or_default();
        writeln!(self.err, "{name}:{line}:{column}: {message}{hint}")
    }

    fn unreadable(&mut self, message: &str) -> io::Result<()> {
        self.worst = self.worst.max(Exit::Unreadable);
        writeln!(self.err, "error: {}", printable(message))
    }
}
