//! Provenance of the results: the files of servers' command lines, with hashes and versions.
//!
//! Environment variables are not included, and files that may be secret are not read.

mod files;
mod version;

use std::fs;
use std::path::Path;

pub use files::executable;
use throng_record::findings::servers::FILES_CHANGED;
use throng_record::format::list;
use throng_record::{
    Finding, Foreign, ForeignProgram, RunningProcess, ServerInfo, ThrongProgram, UsedFile,
};

/// Maximum files per command line.
const MOST_FILES: usize = 16;
/// Programs that run their arguments, by name.
const SHELLS: [&str; 5] = ["sh", "bash", "dash", "ksh", "zsh"];

/// The build of throng, with the hash of its program.
pub(super) fn of_throng(built: &ThrongProgram, program: &Path) -> ThrongProgram {
    ThrongProgram {
        sha256: files::sha256(program),
        ..built.clone()
    }
}

/// The server, with the current files of its command line. A resumed run keeps the files of its start.
pub(super) fn of_server(server: &ServerInfo) -> ServerInfo {
    let mut server = server.clone();
    let is_new = |foreign: &Foreign| foreign.program.is_none();
    if server.foreign.as_ref().is_some_and(is_new) {
        let program = program(&server, version::of);
        server.foreign = server.foreign.map(|foreign| Foreign { program, ..foreign });
    }
    server
}

/// Servers whose programs differ from those at the start of a resumed run.
pub(super) fn changed(servers: &[ServerInfo]) -> Option<Finding> {
    let changed = servers
        .iter()
        .filter(|server| !changed_files(server).is_empty());
    let names: Vec<&str> = changed.map(|server| server.name.as_str()).collect();
    (!names.is_empty()).then(|| {
        FILES_CHANGED.found(format!(
            "a program or script of {} changed after the run had begun, so its trials are not all of the same server",
            list(&names)
        ))
    })
}

/// A changed file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedFile {
    /// The recorded file.
    pub then: UsedFile,
    /// The current path; `None` if the file is missing.
    pub now: Option<String>,
}

/// The files of a server in a record that are missing or changed.
pub fn changed_files(server: &ServerInfo) -> Vec<ChangedFile> {
    let recorded = server.foreign.as_ref();
    let Some(then) = recorded.and_then(|foreign| foreign.program.as_ref()) else {
        return Vec::new();
    };
    let now = program(server, |_, _| None);
    let find = |used: &UsedFile| {
        let mut files = now.iter().flat_map(ForeignProgram::files);
        files.find(|file| file.word == used.word)
    };
    let changed = then.files().filter_map(|then| {
        let found = find(then);
        let same = |other: &UsedFile| {
            let both = other.sha256.as_ref().zip(then.sha256.as_ref());
            // A file that was not read is compared by path alone.
            both.map_or(other.path == then.path, |(other, then)| other == then)
        };
        (!found.is_some_and(same)).then(|| ChangedFile {
            then: then.clone(),
            now: found.map(|found| found.path.clone()),
        })
    });
    changed.collect()
}

/// Processes, each with its program if that can be read; at most the first `MOST_FILES`.
pub(super) fn of_processes(pids: &[u32]) -> Vec<RunningProcess> {
    let described = pids.iter().take(MOST_FILES).filter_map(|pid| {
        let name = fs::read_to_string(format!("/proc/{pid}/comm"))
            .ok()?
            .trim_end()
            .to_owned();
        // The running program, even if its file was replaced since.
        let link = format!("/proc/{pid}/exe");
        let program = fs::canonicalize(&link).ok();
        Some(RunningProcess {
            pid: *pid,
            program: program.map(|path| files::used(&name, &path)),
            name,
        })
    });
    described.collect()
}

/// The files of a foreign server's command line.
fn program(
    server: &ServerInfo,
    version: impl Fn(&str, &Path) -> Option<String>,
) -> Option<ForeignProgram> {
    server.foreign.as_ref()?;
    let (word, rest) = server.command.split_first()?;
    let cwd = server.cwd.as_deref().map(Path::new);
    let path_variable = server.environment.get("PATH").map(String::as_str);
    let path = files::executable(word, path_variable, cwd)?;
    Some(ForeignProgram {
        version: version(word, &path),
        file: files::used(word, &path),
        scripts: scripts(word, rest, cwd),
    })
}

/// The files among the words after the first, without duplicates.
fn scripts(first: &str, words: &[String], cwd: Option<&Path>) -> Vec<UsedFile> {
    let is_shell = first
        .rsplit('/')
        .next()
        .is_some_and(|name| SHELLS.contains(&name));
    let mut found: Vec<UsedFile> = Vec::new();
    for word in words {
        let mut candidates = vec![word.as_str()];
        // --config=FILE
        candidates.extend(word.split_once('=').map(|(_, value)| value));
        if is_shell {
            let ends = |c: char| c.is_whitespace() || "'\"();&|<>`".contains(c);
            candidates.extend(word.split(ends));
        }
        let new = candidates.into_iter().filter_map(|candidate| {
            let path = files::regular(candidate, cwd)?;
            Some(files::used(candidate, &path))
        });
        for file in new {
            if found.len() < MOST_FILES && !found.iter().any(|other| other.path == file.path) {
                found.push(file);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn server(command: &[&str]) -> ServerInfo {
        ServerInfo {
            command: command.iter().map(ToString::to_string).collect(),
            foreign: Some(Foreign::default()),
            ..ServerInfo::default()
        }
    }

    #[test]
    fn a_command_line_is_the_files_behind_it() {
        let place = tempfile::tempdir().unwrap();
        let file = |name: &str| {
            let path = place.path().join(name);
            fs::write(&path, name).unwrap();
            path.to_string_lossy().into_owned()
        };
        let (script, config, key) = (file("a.sh"), file("b.conf"), file("c.key"));
        let option = format!("--config={config}");
        let info = of_server(&server(&["sh", &script, "{port}", &option, &key, &script]));
        let found = info.foreign.unwrap().program.unwrap();
        assert!(found.file.path.starts_with('/') && found.file.word == "sh");
        assert!(found.file.sha256.is_some() && found.version.is_none());
        let words: Vec<&str> = found
            .scripts
            .iter()
            .map(|file| file.word.as_str())
            .collect();
        assert_eq!(words, [&script, &config, &key]);
        assert!(found.scripts[0].sha256.is_some());
        assert_eq!(found.scripts[2].sha256, None, "a key is not read");
        let line = format!("cd /tmp; exec '{script}' 1");
        let of_shell = of_server(&server(&["/bin/sh", "-c", &line]))
            .foreign
            .unwrap()
            .program
            .unwrap();
        assert_eq!(of_shell.scripts, found.scripts[..1]);
    }

    #[test]
    fn missing_files_have_no_provenance() {
        let none = |info: &ServerInfo| of_server(info).foreign.and_then(|f| f.program).is_none();
        assert!(none(&server(&["./no-such-program", "{port}"])));
        assert!(none(&server(&[])));
        let own = ServerInfo {
            foreign: None,
            ..server(&["sh"])
        };
        assert!(none(&own));
        let elsewhere = ServerInfo {
            environment: BTreeMap::from([("PATH".to_owned(), "/nowhere".to_owned())]),
            ..server(&["sh"])
        };
        assert!(none(&elsewhere));
    }

    #[test]
    fn files_that_changed_are_named() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("server.sh");
        fs::write(&path, "one").unwrap();
        let script = path.to_string_lossy().into_owned();
        let recorded = of_server(&server(&["sh", &script]));
        assert_eq!(changed_files(&recorded), []);
        assert_eq!(changed(std::slice::from_ref(&recorded)), None);
        fs::write(&path, "another").unwrap();
        let files = changed_files(&recorded);
        assert_eq!(files.len(), 1);
        assert!(changed(std::slice::from_ref(&recorded)).is_some());
        assert_eq!(
            of_server(&recorded),
            recorded,
            "it is what the run began with"
        );
        assert_eq!(files[0].then.word, script);
        assert_eq!(files[0].now.as_ref(), Some(&files[0].then.path));
        fs::remove_file(&path).unwrap();
        assert_eq!(changed_files(&recorded)[0].now, None);
        assert_eq!(changed_files(&server(&["sh"])), [], "nothing was recorded");
    }
}
