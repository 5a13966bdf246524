//! The origin of the figures, in words: throng itself, the CPU, the files of servers, and other active processes.

use serde::Serialize;

use throng_record::format::list;
use throng_record::{ForeignProgram, Host, Run, Running, ServerInfo, ThrongProgram, UsedFile};

/// The provenance of a run, for other programs.
#[derive(Debug, Serialize)]
pub(crate) struct Provenance<'a> {
    throng: Throng<'a>,
    host: &'a Host,
    servers: Vec<Server<'a>>,
}

#[derive(Debug, Serialize)]
struct Throng<'a> {
    version: &'a str,
    build: &'a str,
    #[serde(flatten)]
    program: &'a ThrongProgram,
}

#[derive(Debug, Serialize)]
struct Server<'a> {
    name: &'a str,
    command: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    program: Option<&'a ForeignProgram>,
    #[serde(skip_serializing_if = "Option::is_none")]
    running: Option<&'a Running>,
}

impl<'a> Provenance<'a> {
    pub(crate) fn of(run: &'a Run) -> Self {
        Self {
            throng: Throng {
                version: &run.throng_version,
                build: &run.throng_build,
                program: &run.throng_program,
            },
            host: &run.host,
            servers: run
                .servers
                .iter()
                .map(|info| Server {
                    name: &info.name,
                    command: &info.command,
                    program: program_of(info),
                    running: info.running(),
                })
                .collect(),
        }
    }
}

/// The files behind the command line of a foreign server.
pub(crate) fn program_of(server: &ServerInfo) -> Option<&ForeignProgram> {
    server.foreign.as_ref()?.program.as_ref()
}

/// The build of throng that measured, as (name, value).
pub(crate) fn of_throng(run: &Run) -> Vec<(&'static str, String)> {
    let program = &run.throng_program;
    let compiler: Vec<&str> = [&program.compiler, &program.flags]
        .map(Option::as_deref)
        .into_iter()
        .flatten()
        .collect();
    let facts = [
        ("throng", Some(version(run))),
        ("throng's source", commit(program)),
        ("throng's program", program.sha256.as_deref().map(hash)),
        ("throng's compiler", Some(compiler.join("; "))),
    ];
    known(facts)
}

/// The version and build of throng that measured: "0.1.0 release".
pub(crate) fn version(run: &Run) -> String {
    let words = [run.throng_version.as_str(), run.throng_build.as_str()];
    let known = words.into_iter().filter(|word| !word.is_empty());
    known.collect::<Vec<_>>().join(" ")
}

/// Details of the CPU beyond its model, as (name, value).
pub(crate) fn of_cpu(host: &Host) -> Vec<(&'static str, String)> {
    let named = |names: &[&str]| {
        let values = names.iter().filter_map(|name| {
            let value = host.cpu.get(*name)?;
            Some(format!("{name} {value}"))
        });
        values.collect::<Vec<_>>().join(", ")
    };
    let stepping = named(&[
        "vendor",
        "implementer",
        "family",
        "architecture",
        "model",
        "part",
        "variant",
        "stepping",
        "revision",
        "microcode",
    ]);
    let bounds = named(&["lowest MHz", "highest MHz", "frequency driver", "turbo"]);
    known([
        ("CPU stepping", Some(stepping)),
        ("CPU frequency", Some(bounds)),
    ])
}

/// Other processes that used CPU time when measuring began: "cc 99 %, make 5 %".
pub(crate) fn others(host: &Host) -> String {
    let others = host
        .other_processes
        .iter()
        .map(|one| format!("{} {:.0} %", one.name, one.cpu_percent));
    others.collect::<Vec<_>>().join(", ")
}

/// The build of throng, in short: "0.1.0, commit 1234abcd, modified", or the hash of the program.
pub fn throng(run: &Run) -> String {
    let program = &run.throng_program;
    let version = Some(run.throng_version.clone());
    let sha256 = program
        .sha256
        .as_deref()
        .map(|sha256| format!("program {}", hash(sha256)));
    let all = [version, commit(program).or(sha256)].into_iter().flatten();
    all.collect::<Vec<_>>().join(", ")
}

/// A program and its files: "/usr/bin/node (v22.1.0, SHA-256 1234…), server.js (SHA-256 5678…)".
pub(crate) fn files(program: &ForeignProgram) -> String {
    listed(&program.file.path, program)
}

/// The same wherever the program is stored: "node (v22.1.0, SHA-256 1234…), server.js (SHA-256 5678…)".
pub(crate) fn identity(program: &ForeignProgram) -> String {
    listed(&program.file.word, program)
}

fn listed(called: &str, program: &ForeignProgram) -> String {
    let described = |name: &str, more: Option<&String>, file: &UsedFile| {
        let known: Vec<String> = more
            .cloned()
            .into_iter()
            .chain(file.sha256.as_deref().map(hash))
            .collect();
        if known.is_empty() {
            return name.to_owned();
        }
        format!("{name} ({})", known.join(", "))
    };
    let scripts = program.scripts.iter();
    let mut all = vec![described(called, program.version.as_ref(), &program.file)];
    all.extend(scripts.map(|script| described(&script.word, None, script)));
    list(&all)
}

/// The address and processes of a running server: "127.0.0.1:80: nginx 17 (SHA-256 1234…) and nginx 18".
pub(crate) fn running(running: &Running) -> String {
    let path = running.path.as_deref().unwrap_or_default();
    let place = format!("{}{path}", running.address);
    if let Some(why) = &running.unknown {
        return format!("{place}; only the clients' side is known: {}", why.reason);
    }
    let processes = running.processes.iter().map(|process| {
        let sha256 = process
            .program
            .as_ref()
            .and_then(|file| file.sha256.as_deref())
            .map_or_else(String::new, |digits| format!(" ({})", hash(digits)));
        format!("{} {}{sha256}", process.name, process.pid)
    });
    format!("{place}: {}", list(&processes.collect::<Vec<_>>()))
}

fn commit(program: &ThrongProgram) -> Option<String> {
    let commit: String = program.commit.as_deref()?.chars().take(12).collect();
    let modified = match program.modified {
        Some(true) => ", modified",
        _ => "",
    };
    Some(format!("commit {commit}{modified}"))
}

/// The first digits of a hash; the record has all of them.
fn hash(digits: &str) -> String {
    let digits: String = digits.chars().take(16).collect();
    format!("SHA-256 {digits}…")
}

fn known<const N: usize>(
    facts: [(&'static str, Option<String>); N],
) -> Vec<(&'static str, String)> {
    let known = facts
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)));
    known.filter(|(_, value)| !value.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn a_build_is_reported_with_what_is_known_of_it() {
        let (mut run, _) = fixture::record();
        assert_eq!(throng(&run), "0.1.0, commit 1234567890ab, modified");
        run.throng_program.commit = None;
        assert_eq!(throng(&run), "0.1.0, program SHA-256 cdcdcdcdcdcdcdcd…");
        run.throng_program = ThrongProgram::default();
        assert_eq!(throng(&run), "0.1.0");
    }

    #[test]
    fn files_are_reported_with_what_is_known_of_them() {
        let file = |word: &str, sha256: Option<&str>| UsedFile {
            word: word.to_owned(),
            path: format!("/bin/{word}"),
            sha256: sha256.map(|digit| digit.repeat(64)),
        };
        let program = ForeignProgram {
            file: file("node", Some("a")),
            version: Some("v22".to_owned()),
            scripts: vec![file("server.js", Some("b")), file("c.key", None)],
        };
        assert_eq!(
            files(&program),
            "/bin/node (v22, SHA-256 aaaaaaaaaaaaaaaa…), server.js (SHA-256 bbbbbbbbbbbbbbbb…) and c.key"
        );
        assert!(identity(&program).starts_with("node (v22, SHA-256 aaaaaaaaaaaaaaaa…)"));
    }
}
