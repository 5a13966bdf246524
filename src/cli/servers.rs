//! Servers as named on the command line: a model with options, a command, or an address.

use std::collections::BTreeMap;
use std::path::Path;

use clap::parser::ValueSource;
use clap::{CommandFactory as _, FromArgMatches as _, Parser};

use super::{Usage, WrongOption, lab, serve};
use crate::measure::check_addresses;
use crate::measure::provenance::executable;
use crate::record::{Foreign, Running, ServerInfo, Settings};
use crate::registry::{self, Unsupported};
use crate::serve::models::MODELS;
use crate::spec::Target;

/// Placeholder of the path of this program in a command line.
const PROGRAM: &str = "{throng}";

/// Options of `throng serve` that all servers share, and why they cannot be set for a single server.
const COMMON: [(&str, &str); 7] = [
    ("listen", "throng chooses the address"),
    ("allow_remote", "throng chooses the address"),
    ("protocol", "give it once, for all servers"),
    ("size", "give it once, for all servers"),
    ("cpus", "use --server-cpus, for all servers"),
    ("log", "the record has a log of each trial"),
    ("json", "the record has the counts of each trial"),
];

/// A built-in server, with additional options of `throng serve`.
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
    let wrong = |error: clap::Error| {
        let about = WrongOption::of(&error, "serve");
        WrongOption {
            why: format!("{model}: {}", about.why),
            ..about
        }
    };
    let matches = Line::command().try_get_matches_from(line).map_err(wrong)?;
    let given = |name: &str| matches.value_source(name) == Some(ValueSource::CommandLine);
    if let Some((name, why)) = COMMON.iter().find(|(name, _)| given(name)) {
        let name = name.replace('_', "-");
        let why = format!("{model}: --{name} cannot be set for a single server: {why}");
        return Err(WrongOption::new(&name, why).into());
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
        keeps_waiting: checked.card.waits,
        command,
        ..ServerInfo::default()
    })
}

/// The kind of a server on the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    /// A model with options of `throng serve`.
    Own(String, Vec<String>),
    /// A command.
    Foreign(Vec<String>),
    /// A running server.
    Running(Target),
}

impl Kind {
    /// Whether throng starts it.
    pub(super) fn is_started(&self) -> bool {
        !matches!(self, Self::Running(_))
    }
}

/// The kind of each server. `cwds` are the directories in which the servers start.
pub(super) fn kinds(
    texts: &[String],
    shell: bool,
    cwds: &[Option<String>],
) -> Result<Vec<Kind>, Usage> {
    let directories = cwds
        .iter()
        .map(Option::as_deref)
        .chain(std::iter::repeat(None));
    let pairs = texts.iter().zip(directories);
    pairs
        .map(|(text, cwd)| kind(text, shell, cwd.map(Path::new)))
        .collect()
}

/// The address of a running server, if the text is one: a URL, or HOST:PORT.
fn address(text: &str) -> Option<Result<Target, Usage>> {
    let text = text.trim();
    let is_port = |port: &str| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    let is_place = text.rsplit_once(':').is_some_and(|(host, port)| {
        is_port(port) && !host.contains(|c: char| c.is_whitespace() || "/{".contains(c))
    });
    let is_url = text.split_once("://").is_some_and(|(scheme, _)| {
        let may_be = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'+';
        !scheme.is_empty() && scheme.bytes().all(may_be)
    });
    if is_url || is_place || text.starts_with("unix:") {
        Some(
            text.parse()
                .map_err(|why| Usage(format!("`{text}`: {why}"))),
        )
    } else {
        None
    }
}

/// The kind of a server. A word that is neither a model nor a program is an error, which suggests a similar model.
fn kind(text: &str, shell: bool, cwd: Option<&Path>) -> Result<Kind, Usage> {
    if let Some(destination) = address(text) {
        return destination.map(Kind::Running);
    }
    let words =
        shlex::split(text).ok_or_else(|| Usage(format!("`{text}` has an unclosed quote")))?;
    let [first, rest @ ..] = words.as_slice() else {
        return Err(Usage(
            "a server is empty; expected a model, a command or an address".to_owned(),
        ));
    };
    let Err(unknown) = registry::find("model", MODELS, first) else {
        return Ok(Kind::Own(first.clone(), rest.to_vec()));
    };
    let runs = executable(first, None, cwd).is_some();
    let command = command_line(text, shell)?;
    // With --shell, the shell splits the words itself.
    if !runs && !(shell && (!rest.is_empty() || has_shell_syntax(text).is_some())) {
        return Err(Usage(not_a_server(first, unknown.suggestion, cwd)));
    }
    Ok(Kind::Foreign(command))
}

/// Commands of the shell that are no programs, at the beginning of a command line.
const SHELL_COMMANDS: [&str; 6] = ["cd", "source", ".", "export", "exec", "ulimit"];

/// Refuses a command line that only a shell understands, and names the option to use instead.
fn refuse_shell_words(text: &str) -> Result<(), Usage> {
    let (first, rest) = text.trim().split_once(' ').unwrap_or((text, ""));
    let is_name = |name: &str| {
        let mut signs = name.chars();
        signs
            .next()
            .is_some_and(|sign| sign.is_alphabetic() || sign == '_')
            && signs.all(|sign| sign.is_alphanumeric() || sign == '_')
    };
    let is_variable = first.split_once('=').is_some_and(|(name, _)| is_name(name));
    if is_variable && !rest.is_empty() {
        return Err(Usage(format!(
            "`{text}` begins with a variable: write --env {first}, or add --shell"
        )));
    }
    if SHELL_COMMANDS.contains(&first) {
        return Err(Usage(format!(
            "`{text}` begins with a command of the shell: add --shell (--cwd DIR sets the directory)"
        )));
    }
    Ok(())
}

/// Why a word does not start a server: often it is the name of a file.
fn not_a_server(word: &str, suggestion: Option<&str>, cwd: Option<&Path>) -> String {
    let file = cwd.map_or_else(|| word.into(), |cwd| cwd.join(word));
    if file.is_file() {
        let by_path = format!("./{word}");
        if !word.contains('/') && executable(&by_path, None, cwd).is_some() {
            return format!("`{word}` is not on the PATH; write {by_path}");
        }
        let interpreter = match file.extension().and_then(|extension| extension.to_str()) {
            Some("js" | "mjs" | "cjs") => "node",
            Some("py") => "python3",
            Some("rb") => "ruby",
            Some("sh") => "sh",
            _ => "INTERPRETER",
        };
        return format!(
            "`{word}` is a file that is not executable; write '{interpreter} {word} {{port}}', or make it executable"
        );
    }
    let help = match suggestion {
        Some(suggestion) => format!("did you mean the model `{suggestion}`?"),
        None => "`throng list models` lists the models".to_owned(),
    };
    format!("`{word}` is neither a model nor an executable program; {help}")
}

/// Splits a command into words, or wraps it in a call of the shell.
pub(super) fn command_line(text: &str, shell: bool) -> Result<Vec<String>, Usage> {
    if shell {
        return Ok(["sh", "-c", text].map(str::to_owned).to_vec());
    }
    refuse_shell_words(text)?;
    if let Some(sign) = has_shell_syntax(text) {
        let help = if text.contains("$PORT") || text.contains("${PORT}") {
            "write {port} instead of $PORT"
        } else {
            "quote it to pass it literally"
        };
        return Err(Usage(format!(
            "`{text}` contains `{sign}`, which needs a shell; add --shell, or {help}"
        )));
    }
    match shlex::split(text) {
        Some(words) if !words.is_empty() => Ok(words),
        Some(_) => Err(Usage("a command is empty".to_owned())),
        None => Err(Usage(format!("`{text}` has an unclosed quote"))),
    }
}

/// The first unquoted character in a command that a shell would interpret.
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

/// A server to measure, from a command line or a study.
#[derive(Debug, Clone)]
pub(super) struct ChosenServer {
    pub(super) kind: Kind,
    /// How to tell that a foreign server is ready.
    pub(super) ready: Option<String>,
    /// The signal that stops a foreign server.
    pub(super) stop_signal: Option<String>,
    /// How the processes of a running server are identified.
    pub(super) named_by: Option<String>,
    /// Whether a running server, or the URL of `ready`, may be on another host.
    pub(super) allow_remote: bool,
    /// The server's name, environment and limits, and the commands to run before and after it.
    pub(super) info: ServerInfo,
}

impl ChosenServer {
    /// The server to measure, or why this machine cannot run it.
    pub(super) fn info(&self, settings: &Settings, program: &Path) -> anyhow::Result<ServerInfo> {
        let info = self.unchecked(settings, program)?;
        check_addresses(&info, self.allow_remote).map_err(Usage)?;
        Ok(info)
    }

    fn unchecked(&self, settings: &Settings, program: &Path) -> anyhow::Result<ServerInfo> {
        let own = self.info.clone();
        match &self.kind {
            Kind::Own(model, options) => {
                let model = self::own(model, options, settings, program)?;
                Ok(ServerInfo {
                    summary: model.summary,
                    structural_limit: model.structural_limit,
                    keeps_waiting: model.keeps_waiting,
                    command: model.command,
                    ..own
                })
            }
            Kind::Foreign(words) => {
                let path = program.to_string_lossy();
                let replaced: Vec<String> = words
                    .iter()
                    .map(|word| word.replace(PROGRAM, &path))
                    .collect();
                let first = replaced.first().map_or("", String::as_str);
                if executable(first, None, own.cwd.as_deref().map(Path::new)).is_none() {
                    return Err(Unsupported {
                        reason: format!("program `{first}` not found"),
                        remedy: "install it, or write its path".to_owned(),
                    }
                    .into());
                }
                Ok(ServerInfo {
                    summary: "a command".to_owned(),
                    command: replaced,
                    foreign: Some(Foreign {
                        ready: self.ready.clone().filter(|ready| ready != "tcp"),
                        stop_signal: self.stop_signal.clone().filter(|name| name != "TERM"),
                        allow_remote: self.allow_remote,
                        ..Foreign::default()
                    }),
                    ..own
                })
            }
            Kind::Running(to) => Ok(ServerInfo {
                summary: "already running".to_owned(),
                foreign: Some(Foreign {
                    running: Some(Running {
                        address: to.alone().to_string(),
                        named_by: self.named_by.clone(),
                        ..Running::default()
                    }),
                    allow_remote: self.allow_remote,
                    ..Foreign::default()
                }),
                limits: BTreeMap::new(),
                ..own
            }),
        }
    }
}

/// An existing directory, as an absolute path.
pub(super) fn directory(text: &str) -> Result<String, String> {
    let path = std::fs::canonicalize(text)
        .ok()
        .filter(|path| path.is_dir())
        .ok_or_else(|| format!("{text} is not a directory"))?;
    let utf8 = path.into_os_string().into_string();
    utf8.map_err(|wrong| format!("the name of {} is not UTF-8", wrong.display()))
}

/// A short name for a server: the model, or for a command the program with its script ("node server.js").
pub(super) fn short_name(text: &str, kind: &Kind) -> String {
    let last_part = |word: &str| word.rsplit('/').next().unwrap_or(word).to_owned();
    match kind {
        Kind::Own(..) => text.split_whitespace().collect::<Vec<_>>().join(" "),
        Kind::Running(to) if to.is_url() && to.path != "/" => format!("{}{}", to.alone(), to.path),
        Kind::Running(to) => to.alone().to_string(),
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

/// The values of an option for each server: it is given once for all servers, or once per server.
pub(super) fn each<'a>(
    name: &str,
    given: &'a [String],
    servers: usize,
) -> Result<Vec<Option<&'a str>>, Usage> {
    match given {
        [] => Ok(vec![None; servers]),
        [one] => Ok(vec![Some(one.as_str()); servers]),
        several if several.len() == servers => {
            Ok(several.iter().map(|one| Some(one.as_str())).collect())
        }
        several => Err(Usage(format!(
            "--{name} is given {} times for {servers} servers; give it once, or once per server",
            several.len()
        ))),
    }
}

/// The server that runs twice as a control: the named one, `None` for `none`, or the default.
pub(super) fn control(
    servers: &[ServerInfo],
    named: Option<&str>,
    usual: Option<usize>,
) -> Result<Option<usize>, Usage> {
    match named {
        None => Ok(usual),
        Some("none") => Ok(None),
        Some(name) => match servers.iter().position(|server| server.name == name) {
            None => {
                let known: Vec<&str> = servers.iter().map(|server| server.name.as_str()).collect();
                Err(Usage(format!(
                    "--control: unknown server `{name}`; expected one of: {}, none",
                    known.join(", ")
                )))
            }
            found => Ok(found),
        },
    }
}

/// Makes equal names unique: "epoll", "epoll (2)".
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
        assert_eq!(kind("epoll", false, None).unwrap(), own("epoll", &[]));
        assert_eq!(
            kind("prefork --workers 2", false, None).unwrap(),
            own("prefork", &["--workers", "2"])
        );
        let words = |kind: Kind| match kind {
            Kind::Foreign(words) => words,
            Kind::Own(..) | Kind::Running(_) => panic!("{kind:?}"),
        };
        assert_eq!(
            words(kind("sleep '1 2' {port}", false, None).unwrap()),
            ["sleep", "1 2", "{port}"]
        );
        assert_eq!(
            words(kind("cd /tmp && sleep 1", true, None).unwrap()),
            ["sh", "-c", "cd /tmp && sleep 1"]
        );
    }

    #[test]
    fn a_line_for_a_shell_names_the_option_to_use_instead() {
        for (text, says) in [
            ("FOO=1 sleep {port}", "write --env FOO=1, or add --shell"),
            (
                "cd /tmp && sleep {port}",
                "add --shell (--cwd DIR sets the directory)",
            ),
            (
                "nothing-of-this-name && sleep {port}",
                "needs a shell; add --shell",
            ),
        ] {
            for refused in [
                kind(text, false, None).map(drop),
                command_line(text, false).map(drop),
            ] {
                let Usage(why) = refused.unwrap_err();
                assert!(why.contains(says), "{why}");
            }
            assert!(kind(text, true, None).is_ok());
        }
        assert!(command_line("sleep a=b", false).is_ok());
    }

    #[test]
    fn an_address_is_a_server_that_runs_already() {
        let address = |text: &str| match kind(text, false, None) {
            Ok(Kind::Running(to)) => Some((to.alone().to_string(), to.path.clone(), to.is_url())),
            _ => None,
        };
        let there =
            |address: &str, path: &str, is_url| Some((address.to_owned(), path.to_owned(), is_url));
        let found = address("http://127.0.0.1:8080/a?b");
        assert_eq!(found, there("127.0.0.1:8080", "/a?b", true));
        assert_eq!(
            address("localhost:6379"),
            there("localhost:6379", "", false)
        );
        assert_eq!(address("http://[::1]"), there("[::1]:80", "/", true));
        assert_eq!(address("node a.js 1:2"), None);
        assert_eq!(
            address("https://localhost"),
            there("localhost:443", "/", true)
        );
        let named = |text: &str| short_name(text, &kind(text, false, None).unwrap());
        assert_eq!(named("http://127.0.0.1:8080"), "127.0.0.1:8080");
        assert_eq!(named("http://127.0.0.1:8080/a"), "127.0.0.1:8080/a");
    }

    #[test]
    fn invalid_servers_are_reported_before_anything_starts() {
        for (text, shell, why) in [
            ("", false, "is empty"),
            ("epol", false, "did you mean the model `epoll`?"),
            ("epol", true, "did you mean the model `epoll`?"),
            ("./epoll-nowhere {port}", false, "nor an executable program"),
            ("sleep 'a", false, "unclosed quote"),
            ("sleep 1 | cat", false, "`|`, which needs a shell"),
            ("sleep $PORT", false, "write {port} instead of $PORT"),
            ("sleep \"$X\"", false, "`$`, which needs a shell"),
        ] {
            let error = kind(text, shell, None).unwrap_err().to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
        assert_eq!(has_shell_syntax("a '|' \\; \"<\" {port}"), None);
    }

    #[test]
    fn names_are_short_and_differ() {
        let short = |text: &str| short_name(text, &kind(text, false, None).unwrap());
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
