//! Messages of gRPC from JSON, by the file that declares the service.

use std::path::Path;

use prost_reflect::prost::Message as _;
use prost_reflect::{DescriptorPool, DynamicMessage, MethodDescriptor};

use super::{LoadSpec, SpecError, files};

impl LoadSpec {
    /// The message in JSON (`{}` without one) of the only method that is called.
    pub(super) fn grpc_message(
        &self,
        proto: &Path,
        json: Option<&[u8]>,
    ) -> Result<Vec<u8>, SpecError> {
        // The file must be what was recorded.
        files::read("proto", proto, &self.files)?;
        let paths = self.paths();
        let [(path, _)] = paths.parts() else {
            let why = "`proto` needs a single `path`, since other methods have other messages";
            return Err(SpecError::key("proto", why));
        };
        let pool =
            declared(proto).map_err(|why| SpecError::value("proto", format!("`proto`: {why}")))?;
        let method = method(&pool, path).map_err(|why| {
            let text = format!("`path`: {} {why}", proto.display());
            SpecError::value("path", text)
        })?;
        encode(&method, json.unwrap_or(b"{}"))
            .map_err(|why| SpecError::value("data", format!("`data`: {why}")))
    }
}

/// What a file and its imports declare. Imports are relative to its directory.
fn declared(proto: &Path) -> Result<DescriptorPool, String> {
    let parent = proto.parent().unwrap_or(Path::new("."));
    let directory = if parent.as_os_str().is_empty() {
        Path::new(".")
    } else {
        parent
    };
    let files = protox::compile([proto], [directory]).map_err(|error| error.to_string())?;
    DescriptorPool::from_file_descriptor_set(files).map_err(|error| error.to_string())
}

/// The method `/package.Service/Method`.
fn method(pool: &DescriptorPool, path: &str) -> Result<MethodDescriptor, String> {
    let methods = || {
        let services = pool.services();
        services.flat_map(|service| service.methods().collect::<Vec<_>>())
    };
    let name = |method: &MethodDescriptor| {
        let service = method.parent_service();
        format!("/{}/{}", service.full_name(), method.name())
    };
    let Some(found) = methods().find(|method| name(method) == path) else {
        let mut known: Vec<String> = methods().map(|method| name(&method)).collect();
        known.sort();
        return Err(match &known[..] {
            [] => "declares no service".to_owned(),
            known => format!("does not declare {path}, but {}", known.join(", ")),
        });
    };
    if found.is_client_streaming() || found.is_server_streaming() {
        return Err(format!(
            "declares {path} as a stream of messages; only calls with one message each way are supported"
        ));
    }
    Ok(found)
}

/// The bytes of a method's request, from JSON.
fn encode(method: &MethodDescriptor, json: &[u8]) -> Result<Vec<u8>, String> {
    let kind = method.input();
    let name = kind.full_name().to_owned();
    let mut reader = serde_json::Deserializer::from_slice(json);
    let message = DynamicMessage::deserialize(kind, &mut reader)
        .and_then(|message| reader.end().map(|()| message))
        .map_err(|error| format!("not a {name} in JSON: {error}"))?;
    Ok(message.encode_to_vec())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use proptest::prelude::*;
    use throng_protocol::HttpRequest;

    use super::super::{Data, Paths};
    use super::*;

    const GREETER: &str = r#"syntax = "proto3";
package hello.v1;
import "google/protobuf/duration.proto";
import "names.proto";
service Greeter {
  rpc Greet (Request) returns (Reply);
  rpc Watch (Request) returns (stream Reply);
}
message Request { Name name = 1; int32 times = 2; repeated bytes more = 3; google.protobuf.Duration wait = 4; }
message Reply { string text = 1; }
"#;
    const NAMES: &str = "syntax = \"proto3\"; package hello.v1; message Name { string first = 1; }";

    fn load(proto: PathBuf, path: &str, json: &str) -> LoadSpec {
        LoadSpec {
            protocol: Some("grpc".to_owned()),
            path: Some(Paths::one(path.to_owned())),
            data: Some(Data::Text(json.to_owned())),
            proto: Some(proto),
            ..LoadSpec::default()
        }
    }

    fn files() -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("names.proto"), NAMES).unwrap();
        let proto = directory.path().join("hello.proto");
        fs::write(&proto, GREETER).unwrap();
        (directory, proto)
    }

    fn message(load: &LoadSpec) -> Result<Vec<u8>, String> {
        let Some(Data::Text(json)) = &load.data else {
            panic!("text");
        };
        let message = load.grpc_message(load.proto.as_ref().unwrap(), Some(json.as_bytes()));
        message.map_err(|error| error.why)
    }

    #[test]
    fn json_becomes_a_message() {
        let (_directory, proto) = files();
        let json = r#"{"name": {"first": "Ada"}, "times": 300, "more": ["AQI="], "wait": "1.5s"}"#;
        let load = load(proto, "/hello.v1.Greeter/Greet", json)
            .checked()
            .unwrap();
        // By the encoding's own description: tag, length or varint, content.
        let expected = b"\x0a\x05\x0a\x03Ada\x10\xac\x02\x1a\x02\x01\x02\x22\x08\x08\x01\x10\x80\xca\xb5\xee\x01";
        assert_eq!(message(&load).unwrap(), expected);
        let (dialogue, settings) = load.with_files().unwrap().dialogue("localhost").unwrap();
        assert_eq!(
            dialogue.describe(&settings),
            "grpc /hello.v1.Greeter/Greet with 24 bytes"
        );
        let _: Vec<&HttpRequest> = settings
            .requests
            .parts()
            .map(|(request, _)| request)
            .collect();
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let (directory, proto) = files();
        let greet = "/hello.v1.Greeter/Greet";
        for (path, json, part) in [
            (
                "/hello.v1.Greeter/Gret",
                "{}",
                "does not declare /hello.v1.Greeter/Gret, but /hello.v1.Greeter/Greet",
            ),
            ("/hello.v1.Greeter/Watch", "{}", "as a stream of messages"),
            (greet, r#"{"nam": 1}"#, "unrecognized field name 'nam'"),
            (greet, r#"{"times": "x"}"#, "not a hello.v1.Request in JSON"),
            (greet, "{} {}", "trailing characters"),
            (greet, "{", "EOF"),
        ] {
            let why = message(&load(proto.clone(), path, json)).unwrap_err();
            assert!(why.contains(part), "{why}");
        }
        let missing = load(directory.path().join("none.proto"), greet, "{}");
        assert!(message(&missing).unwrap_err().contains("cannot read"));
        fs::write(&proto, "syntax = \"proto3\"; message {").unwrap();
        let why = message(&load(proto.clone(), greet, "{}")).unwrap_err();
        assert!(why.contains("`proto`"), "{why}");
        // The file is the one that was recorded.
        let recorded = load(proto.clone(), greet, "{}").with_files().unwrap();
        fs::write(&proto, GREETER).unwrap();
        assert!(message(&recorded).unwrap_err().contains("has changed"));
    }

    #[test]
    fn it_is_for_calls_only() {
        let (_directory, proto) = files();
        let http = LoadSpec {
            protocol: Some("http2".to_owned()),
            ..load(proto, "/a", "{}")
        };
        assert_eq!(http.checked().unwrap_err().key, "proto");
    }

    proptest! {
        /// Whatever is in the files, there is a message or an error.
        #[test]
        fn no_file_and_no_json_breaks_it(cut in 0..GREETER.len(), put in "[a-z{};\"=0-9 \n]{0,6}", json in "[{}\\[\\]\":,a-z0-9. ]{0,20}") {
            let (_directory, proto) = files();
            let mut text = GREETER.to_owned();
            text.replace_range(cut..(cut + put.len()).min(GREETER.len()), &put);
            fs::write(&proto, text).unwrap();
            let _ = message(&load(proto, "/hello.v1.Greeter/Greet", &json));
        }
    }
}
