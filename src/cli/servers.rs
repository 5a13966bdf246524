//! Servers as they are named on the command line: a model, a model with options, or a command line.

use std::collections::BTreeMap;
use std::path::Path;

use clap::parser::ValueSource;
use clap::{CommandFactory as _, FromArgMatches as _, Parser};

use super::{Usage, lab, runner, serve};
use crate::measure::provenance::executable;
use crate::record::{Foreign, ServerInfo, Settings};
use crate::registry::{self, Unsupported};
use crate::serve::models::MODELS;

/// Options of `throng serve` that are the same for all servers, and who says them.
const COMMON: [(&str, &str); 7] = [
    ("listen", "throng gives every server an address"),
    ("allow_remote", "throng gives every server an address"),
    ("protocol", "it is said once, for all servers"),
    ("size", "it is said once, for all servers"),
    ("cpus", "--server-cpus says it for all servers"),
    ("log", "the record has a log of each trial"),
    ("json", "the record has the counts of each trial"),
];

/// One of throng's own servers, with further options of `throng serve`.
pub(super) fn own(
    model: &str,
    options: &[String],
    settings: &Settings,
    program: &Path,
) -> anyhow::Result<ServerInfo> {
    #[derive(Parser)]
    #[command(no_binary_name = true)]
    struct Line {
        #[command(flatten)]
        serve: serve::Arguments,
    }
    let line = std::iter::once(model).chain(options.iter().map(String::as_str));
    let wrong = |error: clap::Error| Usage(format!("{model}: {}", runner::first_line(&error)));
    let matches = Line::command().try_get_matches_from(line).map_err(wrong)?;
    let given = |name: &str| matches.value_source(name) == Some(ValueSource::CommandLine);
    if let Some((name, why)) = COMMON.iter().find(|(name, _)| given(name)) {
        let name = name.replace('_', "-");
        return Err(Usage(format!("{model}: --{name} is not its own choice: {why}")).into());
    }
    let serve = Line::from_arg_matches(&matches).map_err(wrong)?.serve;
    let checked = serve.check()?;
    let mut command = vec![
        program.to_string_lossy().into_owned(),
        "serve".to_owned(),
        model.to_owned(),
    ];
    let mut option = |name: &str, value: String| command.extend([name.to_owned(), value]);
    option("--listen", lab::listen(settings));
    if let Some(protocol) = &settings.load.protocol {
        option("--protocol", protocol.clone());
    }
    option("--size", settings.load.size.largest().to_string());
    if !given("backlog") {
        option("--backlog", settings.backlog.to_string());
    }
    command.extend(options.iter().cloned());
    lab::allow_remote(&mut command, settings);
    command.push("--json".to_owned());
    let info = checked.info;
    let limit = serve.limit(checked);
    Ok(ServerInfo {
        name: info.name.to_owned(),
        summary: info.summary.to_owned(),
        structural_limit: (!limit.is_empty()).then_some(limit),
        command,
        ..ServerInfo::default()
    })
}

/// What a server on the command line turned out to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    /// A model and options of `throng serve`.
    Own(String, Vec<String>),
    /// A command line, in words.
    Foreign(Vec<String>),
}

/// Tells what each server is.
pub(super) fn kinds(texts: &[String], shell: bool) -> Result<Vec<Kind>, Usage> {
    texts.iter().map(|text| kind(text, shell)).collect()
}

/// Tells what a server is. A word that is neither a model nor a program is an error, with the model
/// that may have been meant.
fn kind(text: &str, shell: bool) -> Result<Kind, Usage> {
    let words = shlex::split(text)
        .ok_or_else(|| Usage(format!("`{text}` has a quote that is not closed")))?;
    let [first, rest @ ..] = words.as_slice() else {
        return Err(Usage(
            "a server is a model or a command line, and this is empty".to_owned(),
        ));
    };
    let Err(unknown) = registry::find("model", MODELS, first) else {
        return Ok(Kind::Own(first.clone(), rest.to_vec()));
    };
    let runs = executable(first, None).is_some();
    // What a shell makes of more than a word, only it knows.
    if !runs && !(shell && (!rest.is_empty() || has_shell_syntax(text).is_some())) {
        let help = match unknown.suggestion {
            Some(suggestion) => format!("did you mean the model `{suggestion}`?"),
            None => "`throng list models` says what models there are".to_owned(),
        };
        return Err(Usage(format!(
            "`{first}` is no model, and no program that can be run; {help}"
        )));
    }
    command_line(text, shell).map(Kind::Foreign)
}

/// A command line in words, or given to a shell.
pub(super) fn command_line(text: &str, shell: bool) -> Result<Vec<String>, Usage> {
    if shell {
        return Ok(["sh", "-c", text].map(str::to_owned).to_vec());
    }
    if let Some(sign) = has_shell_syntax(text) {
        let help = if text.contains("$PORT") || text.contains("${PORT}") {
            "write {port} instead of $PORT"
        } else {
            "quote it if it is meant as it stands"
        };
        return Err(Usage(format!(
            "`{text}` has `{sign}`, which only a shell understands: add --shell, or {help}"
        )));
    }
    match shlex::split(text) {
        Some(words) if !words.is_empty() => Ok(words),
        Some(_) => Err(Usage("a command line is empty".to_owned())),
        None => Err(Usage(format!("`{text}` has a quote that is not closed"))),
    }
}

/// The first sign in a command line that means something to a shell beyond quotes.
fn has_shell_syntax(text: &str) -> Option<char> {
    let (mut quoted, mut escaped) = (None, false);
    for sign in text.chars() {
        if escaped {
            escaped = false;
            continue;
        }
        match (quoted, sign) {
            (Some(quote), sign) if sign == quote => quoted = None,
            (Some('\''), _) => {}
            (_, '\\') => escaped = true,
            (_, '$' | '`') | (None, '|' | '&' | ';' | '<' | '>' | '(' | ')' | '\n') => {
                return Some(sign);
            }
            (None, '\'' | '"') => quoted = Some(sign),
            _ => {}
        }
    }
    None
}

/// A server that is to take part, as a command line or a study names it.
#[derive(Debug, Clone)]
pub(super) struct Wanted {
    pub(super) name: String,
    pub(super) kind: Kind,
    /// What a line of a foreign one's output matches once it is ready.
    pub(super) ready: Option<String>,
    /// Limits that it is started under, by name.
    pub(super) limits: BTreeMap<String, u64>,
    pub(super) environment: BTreeMap<String, String>,
    /// Command lines before and after its trials; none when empty.
    pub(super) prepare: Vec<String>,
    pub(super) conclude: Vec<String>,
}

impl Wanted {
    /// What is measured; refuses what this machine cannot run.
    pub(super) fn info(&self, settings: &Settings, program: &Path) -> anyhow::Result<ServerInfo> {
        let info = match &self.kind {
            Kind::Own(model, options) => own(model, options, settings, program)?,
            Kind::Foreign(words) => {
                let first = words.first().map_or("", String::as_str);
                if executable(first, None).is_none() {
                    return Err(Unsupported {
                        reason: format!("there is no program `{first}` that can be run"),
                        remedy: "install it, or name its path".to_owned(),
                    }
                    .into());
                }
                foreign(words.clone(), self.ready.as_deref())
            }
        };
        Ok(ServerInfo {
            name: self.name.clone(),
            limits: self.limits.clone(),
            environment: self.environment.clone(),
            prepare: self.prepare.clone(),
            conclude: self.conclude.clone(),
            ..info
        })
    }
}

/// A server that is not ours.
fn foreign(command: Vec<String>, ready: Option<&str>) -> ServerInfo {
    ServerInfo {
        summary: "not one of throng's own".to_owned(),
        command,
        foreign: Some(Foreign {
            ready: ready.map(str::to_owned),
            program: None,
        }),
        ..ServerInfo::default()
    }
}

/// A name for a server as it was typed: a model as it stands, of a command line the program and what
/// it runs ("node server.js").
pub(super) fn short_name(text: &str, kind: &Kind) -> String {
    let last_part = |word: &str| word.rsplit('/').next().unwrap_or(word).to_owned();
    match kind {
        Kind::Own(..) => text.split_whitespace().collect::<Vec<_>>().join(" "),
        Kind::Foreign(_) => {
            let words = shlex::split(text).unwrap_or_default();
            let program = words
                .first()
                .map(|word| last_part(word))
                .unwrap_or_default();
            let script = words
                .get(1)
                .filter(|word| !word.starts_with('-') && !word.contains(['{', '=']))
                .map(|word| last_part(word))
                .filter(|word| word.chars().any(char::is_alphabetic));
            match script {
                Some(script) => format!("{program} {script}"),
                None => program,
            }
        }
    }
}

/// The server that takes part a second time, as its own control: the one that was named, or the usual
/// one unless that is `none`.
pub(super) fn control(
    servers: &[ServerInfo],
    named: Option<&str>,
    usual: Option<usize>,
) -> Result<Option<usize>, Usage> {
    match named {
        None => Ok(usual),
        Some("none") => Ok(None),
        Some(name) => match servers.iter().position(|server| server.name == name) {
            None => Err(Usage(format!(
                "`{name}` is to be its own control, and does not take part"
            ))),
            found => Ok(found),
        },
    }
}

/// Makes the names that are the same differ: "epoll", "epoll (2)".
pub(super) fn make_unique(names: &mut [String]) {
    for place in 1..names.len() {
        let wanted = names[place].clone();
        for number in 2.. {
            if !names[..place].contains(&names[place]) {
                break;
            }
            names[place] = format!("{wanted} ({number})");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_a_model_or_a_program() {
        let own = |model: &str, options: &[&str]| {
            let options = options.iter().map(ToString::to_string).collect();
            Kind::Own(model.to_owned(), options)
        };
        assert_eq!(kind("epoll", false).unwrap(), own("epoll", &[]));
        assert_eq!(
            kind("prefork --workers 2", false).unwrap(),
            own("prefork", &["--workers", "2"])
        );
        let words = |kind: Kind| match kind {
            Kind::Foreign(words) => words,
            Kind::Own(..) => panic!("{kind:?}"),
        };
        assert_eq!(
            words(kind("sleep '1 2' {port}", false).unwrap()),
            ["sleep", "1 2", "{port}"]
        );
        assert_eq!(
            words(kind("cd /tmp && sleep 1", true).unwrap()),
            ["sh", "-c", "cd /tmp && sleep 1"]
        );
    }

    #[test]
    fn what_is_no_server_is_reported_before_anything_starts() {
        for (text, shell, why) in [
            ("", false, "is empty"),
            ("epol", false, "did you mean the model `epoll`?"),
            ("epol", true, "did you mean the model `epoll`?"),
            (
                "./epoll-nowhere {port}",
                false,
                "no program that can be run",
            ),
            ("sleep 'a", false, "quote that is not closed"),
            (
                "sleep 1 | cat",
                false,
                "`|`, which only a shell understands",
            ),
            ("sleep $PORT", false, "write {port} instead of $PORT"),
            ("sleep \"$X\"", false, "`$`, which only a shell"),
        ] {
            let error = kind(text, shell).unwrap_err().to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
        assert_eq!(has_shell_syntax("a '|' \\; \"<\" {port}"), None);
    }

    #[test]
    fn names_are_short_and_differ() {
        let short = |text: &str| short_name(text, &kind(text, false).unwrap());
        assert_eq!(short("epoll  --delay"), "epoll --delay");
        assert_eq!(short("/bin/sleep x/server.py {port}"), "sleep server.py");
        assert_eq!(short("sleep -p 5"), "sleep");
        assert_eq!(short("sleep {port}"), "sleep");
        assert_eq!(short("sleep 10"), "sleep");
        let mut names = ["a", "b", "a", "a (2)", "a"].map(str::to_owned);
        make_unique(&mut names);
        assert_eq!(names, ["a", "b", "a (2)", "a (2) (2)", "a (3)"]);
    }
}
