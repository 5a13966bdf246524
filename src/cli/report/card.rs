//! The picture of an answer, to share: card.svg, and card.png by a program that this machine has.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context as _;

use super::{EXPORTERS, FormatFile, output, registry};

/// A program that makes a PNG of an SVG.
struct Converter {
    program: &'static str,
    arguments: fn(svg: &str, png: &str) -> Vec<String>,
}

/// The best first.
const CONVERTERS: [Converter; 4] = [
    Converter {
        program: "rsvg-convert",
        arguments: |svg, png| ["-o", png, svg].map(str::to_owned).into(),
    },
    Converter {
        program: "resvg",
        arguments: |svg, png| [svg, png].map(str::to_owned).into(),
    },
    Converter {
        program: "chromium",
        arguments: browser,
    },
    Converter {
        program: "google-chrome",
        arguments: browser,
    },
];
/// The longest time that one may take.
const LONGEST: Duration = Duration::from_secs(30);
/// What to do without one.
const REMEDY: &str =
    "for card.png too, install rsvg-convert (apt install librsvg2-bin) or chromium";

fn browser(svg: &str, png: &str) -> Vec<String> {
    let fixed = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--hide-scrollbars",
        "--window-size=1200,630",
    ];
    let mut arguments: Vec<String> = fixed.map(str::to_owned).into();
    arguments.extend([format!("--screenshot={png}"), format!("file://{svg}")]);
    arguments
}

/// Writes the card of a record into its directory, and prints the names of the files.
pub(super) fn write(directory: &Path) -> anyhow::Result<()> {
    let svg = FormatFile {
        exporter: registry::find("exporter", EXPORTERS, "card")?,
        path: directory.join("card.svg"),
    };
    svg.write(directory)?;
    output::written(|out| writeln!(out, "{}", svg.path.display()))?;
    // A browser wants an absolute path.
    let from = svg
        .path
        .canonicalize()
        .context("cannot find card.svg again")?;
    let png = from.with_extension("png");
    let made = CONVERTERS
        .iter()
        .any(|converter| convert(converter, &from, &png));
    output::written(|out| {
        if made {
            writeln!(out, "{}", svg.path.with_extension("png").display())
        } else {
            writeln!(out, "{REMEDY}")
        }
    })
}

/// Whether the picture was made; it was not if the program does not exist or fails.
fn convert(converter: &Converter, svg: &Path, png: &Path) -> bool {
    let arguments = (converter.arguments)(&svg.to_string_lossy(), &png.to_string_lossy());
    let child = Command::new(converter.program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let Ok(mut child) = child else {
        return false;
    };
    let deadline = Instant::now() + LONGEST;
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return status.success() && png.exists(),
            Ok(None) if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(20)),
            _ => {
                // It is ours, and has not been waited for.
                let _ = child.kill();
                let _ = child.wait();
                return false;
            }
        }
    }
}
