//! Container images, as `packaging/image` makes them, and the manifest that runs one in a cluster.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

use crate::support::runs::json;

/// A file of this repository.
fn ours(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Runs Python, if it is there.
fn python(arguments: &[&str]) -> Option<Output> {
    let output = Command::new("python3").args(arguments).output();
    output
        .inspect_err(|error| println!("not tried: python3: {error}"))
        .ok()
}

/// The least that is taken for a program: the head of an ELF file of x86-64, with or without a loader.
fn program(directory: &Path, needs_loader: bool) -> PathBuf {
    let mut bytes = vec![0_u8; 64 + 56];
    bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
    bytes[18] = 62;
    bytes[32] = 64;
    bytes[54] = 56;
    bytes[56] = 1;
    bytes[64] = if needs_loader { 3 } else { 1 };
    let path = directory.join("program");
    fs::write(&path, bytes).expect("it can be written");
    path
}

/// Unpacks an archive, or says why it cannot.
fn unpack(archive: &Path, to: &Path) {
    fs::create_dir_all(to).expect("it can be made");
    let mut tar = Command::new("tar");
    tar.arg("-xf").arg(archive).arg("-C").arg(to);
    let status = tar.status().expect("tar is there");
    assert!(status.success(), "{}", archive.display());
}

/// A blob of an image, which has to have the length and the hash that it is called by.
fn blob(image: &Path, described: &Value) -> PathBuf {
    let digest = described["digest"].as_str().expect("it has one");
    let hash = digest.strip_prefix("sha256:").expect("it is that");
    let path = image.join("blobs/sha256").join(hash);
    let length = fs::metadata(&path).expect("it is there").len();
    assert_eq!(described["size"].as_u64(), Some(length));
    let sum = Command::new("sha256sum")
        .arg(&path)
        .output()
        .expect("coreutils are there")
        .stdout;
    assert!(sum.starts_with(hash.as_bytes()), "{digest}");
    path
}

/// The configuration of the image in an archive, and all of its layers unpacked.
fn image(directory: &Path, archive: &Path) -> (Value, PathBuf) {
    let (image, root) = (directory.join("image"), directory.join("root"));
    unpack(archive, &image);
    assert_eq!(
        json(&image.join("oci-layout"))["imageLayoutVersion"],
        "1.0.0"
    );
    let manifest = json(&blob(
        &image,
        &json(&image.join("index.json"))["manifests"][0],
    ));
    let config = json(&blob(&image, &manifest["config"]));
    let layers = manifest["layers"].as_array().expect("it has layers");
    let of_docker = &json(&image.join("manifest.json"))[0];
    for (place, layer) in layers.iter().enumerate() {
        let path = blob(&image, layer);
        assert_eq!(config["rootfs"]["diff_ids"][place], layer["digest"]);
        let named = of_docker["Layers"][place].as_str().expect("it has a name");
        assert_eq!(image.join(named), path);
        unpack(&path, &root);
    }
    (config, root)
}

#[test]
fn an_image_has_the_program_and_nothing_else() {
    let script = ours("packaging/image").display().to_string();
    let directory = tempfile::tempdir().expect("it can be made");
    let file = |name: &str| directory.path().join(name).display().to_string();
    let build = |output: &str, more: &[&str]| {
        let program = file("program");
        let arguments = [script.as_str(), "--program", &program, "-o", output];
        python(&[&arguments[..], more].concat())
    };
    let program = program(directory.path(), false);
    let Some(made) = build(&file("one.tar"), &[]) else {
        return;
    };
    assert!(made.status.success(), "{made:?}");
    let (config, root) = image(directory.path(), &directory.path().join("one.tar"));
    assert_eq!(config["config"]["Entrypoint"][0], "/throng");
    assert_eq!(config["config"]["WorkingDir"], "/results");
    assert_eq!(config["architecture"], "amd64");
    let read = |path: &Path| fs::read(path).expect("it is there");
    assert_eq!(read(&root.join("throng")), read(&program));
    let entries = fs::read_dir(&root).expect("it is there").flatten();
    let mut names: Vec<_> = entries.map(|entry| entry.file_name()).collect();
    names.sort();
    assert_eq!(names, ["results", "throng", "tmp"]);
    build(&file("two.tar"), &[]);
    let same = read(&directory.path().join("one.tar")) == read(&directory.path().join("two.tar"));
    assert!(same, "the same program makes another image");

    // One that would not start in it.
    self::program(directory.path(), true);
    let refused = build(&file("three.tar"), &[]).expect("it was there");
    let output = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(output.contains("needs a C library"), "{output}");
}

#[test]
fn an_image_with_mpi_has_a_user_for_sshd() {
    let script = ours("packaging/image").display().to_string();
    let directory = tempfile::tempdir().expect("it can be made");
    program(directory.path(), true);
    let base = directory.path().join("base");
    fs::create_dir_all(base.join("etc")).expect("it can be made");
    for name in ["passwd", "group", "shadow"] {
        fs::write(base.join("etc").join(name), "root:x:0:0::/root:/bin/sh\n").expect("it is ours");
    }
    let file = |name: &str| directory.path().join(name).display().to_string();
    let mut tar = Command::new("tar");
    tar.args(["-cf", &file("base.tar"), "-C", &file("base"), "./etc"]);
    assert!(tar.status().expect("tar is there").success());
    let (program, base, output) = (file("program"), file("base.tar"), file("mpi.tar"));
    let words = [
        script.as_str(),
        "--mpi",
        "--program",
        &program,
        "--base",
        &base,
        "-o",
        &output,
    ];
    let Some(made) = python(&words) else { return };
    assert!(made.status.success(), "{made:?}");
    let (config, root) = image(directory.path(), &directory.path().join("mpi.tar"));
    assert_eq!(config["config"]["User"], "1000:1000");
    let text = |name: &str| fs::read_to_string(root.join(name)).expect("it is there");
    let expected = "root:x:0:0::/root:/bin/sh\nmpiuser:x:1000:1000::/home/mpiuser:/bin/sh\n";
    assert_eq!(text("etc/passwd"), expected);
    // The manifest starts sshd with this file.
    assert!(text("home/mpiuser/.sshd_config").contains("HostKey /home/mpiuser/.ssh/id_rsa"));
    assert!(root.join("usr/local/bin/throng-mpi").exists());
}

/// Against the schema of the operator's own resource, in which unknown fields are refused.
#[test]
fn the_manifest_of_a_cluster_is_as_its_schema_says() {
    const AS_JSON: &str =
        "import json, sys, yaml; print(json.dumps(yaml.safe_load(open(sys.argv[1]))))";
    let manifest = ours("examples/kubernetes/mpijob.yaml")
        .display()
        .to_string();
    let Some(read) = python(&["-c", AS_JSON, &manifest]) else {
        return;
    };
    let output = String::from_utf8_lossy(&read.stderr);
    if output.contains("No module named 'yaml'") {
        println!("not tried: python3-yaml is missing");
        return;
    }
    let mut value: Value =
        serde_json::from_slice(&read.stdout).unwrap_or_else(|_| panic!("{output}"));
    let schema: Value = serde_json::from_str(include_str!("mpijob.schema.json")).expect("JSON");
    let schema = jsonschema::validator_for(&schema).expect("a valid schema");
    let faults = |value: &Value| -> Vec<String> {
        let errors = schema.iter_errors(value);
        errors
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect()
    };
    assert_eq!(faults(&value), [""; 0]);
    let version = env!("CARGO_PKG_VERSION");
    let worker = &mut value["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"];
    let image = worker["containers"][0]["image"]
        .as_str()
        .unwrap_or_default();
    assert!(image.ends_with(&format!("throng-mpi:{version}")), "{image}");
    worker["container"] = Value::Null;
    assert_eq!(faults(&value).len(), 1, "a misspelt field is noticed");
}
