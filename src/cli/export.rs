//! Results in files: `--export-json FILE` and the like.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use super::{Usage, output};
use crate::record::{self, Draft, Load};
use crate::registry;
use crate::report::document::{Block, Document, markdown};
use crate::report::exporters::{EXPORTERS, csv};
use crate::report::sections;
use crate::{report, report::study};

#[derive(Debug, Clone, Default, clap::Args)]
pub(super) struct Exports {
    /// Write the result to this JSON file, or - for standard output.
    #[arg(
        long = "export-json",
        id = "export_json",
        value_name = "FILE",
        help_heading = "Results"
    )]
    json: Option<PathBuf>,
    /// Write every value to this CSV file, or - for standard output.
    #[arg(
        long = "export-csv",
        id = "export_csv",
        value_name = "FILE",
        help_heading = "Results"
    )]
    csv: Option<PathBuf>,
    /// Write the result to this Markdown file, or - for standard output. A report's chart goes next to the file, as SVG.
    #[arg(
        long = "export-markdown",
        id = "export_markdown",
        value_name = "FILE",
        help_heading = "Results"
    )]
    markdown: Option<PathBuf>,
}

impl Exports {
    /// Each chosen form with its file.
    fn wanted(&self) -> impl Iterator<Item = (&'static str, &Path)> {
        let all = [
            ("json", &self.json),
            ("csv", &self.csv),
            ("markdown", &self.markdown),
        ];
        all.into_iter()
            .filter_map(|(form, path)| Some((form, path.as_deref()?)))
    }

    /// Whether one of them is written to standard output.
    pub(super) fn fill_stdout(&self) -> bool {
        self.wanted().any(|(_, path)| is_stdout(path))
    }

    /// Opens the files, so that one that cannot be written is reported before anything is measured.
    pub(super) fn open(&self) -> Result<OpenExports, Usage> {
        let open = |(form, path): (&'static str, &Path)| -> Result<Export, Usage> {
            let file = if is_stdout(path) {
                None
            } else {
                let file = Draft::named(path);
                let why = |error| Usage(format!("cannot write {}: {error}", path.display()));
                Some(file.map_err(why)?)
            };
            let owned = path.to_owned();
            Ok(Export {
                form,
                path: owned,
                file,
            })
        };
        Ok(OpenExports(
            self.wanted().map(open).collect::<Result<_, _>>()?,
        ))
    }
}

fn is_stdout(path: &Path) -> bool {
    path == Path::new("-")
}

/// Open files for results.
pub(super) struct OpenExports(Vec<Export>);

struct Export {
    form: &'static str,
    path: PathBuf,
    /// `None` for standard output.
    file: Option<Draft>,
}

impl Export {
    /// Writes Markdown, and its chart next to the file.
    fn markdown(&self, document: &Document, to: &mut dyn Write) -> anyhow::Result<()> {
        let path = self.file.is_some().then_some(self.path.as_path());
        let text = report::markdown_for(document, path)?;
        Ok(to.write_all(text.as_bytes())?)
    }
}

impl OpenExports {
    /// Writes the record of a directory.
    pub(super) fn of_record(self, directory: &Path) -> anyhow::Result<()> {
        if self.0.is_empty() {
            return Ok(());
        }
        if record::Study::is_in(directory) {
            let loaded = study::load(directory)?;
            let report = loaded.report()?;
            return self.write(|export, to| match export.form {
                "markdown" => export.markdown(&sections::of_study(&report), to),
                form => (exporter(form)?.render_study)(&report, to),
            });
        }
        let loaded = report::load(directory)?;
        let report = loaded.report()?;
        self.write(|export, to| match export.form {
            "markdown" => export.markdown(&sections::of_run(&report), to),
            form => (exporter(form)?.render)(&report, to),
        })
    }

    /// Writes the result of `throng load`.
    pub(super) fn of_load(self, load: &Load, described: &[Block]) -> anyhow::Result<()> {
        self.write(|export, to| match export.form {
            "json" => {
                serde_json::to_writer_pretty(&mut *to, load)?;
                Ok(writeln!(to)?)
            }
            "csv" => csv::of_load(load, to),
            _ => Ok(to.write_all(markdown::blocks(described).as_bytes())?),
        })
    }

    fn write(
        self,
        render: impl Fn(&Export, &mut dyn Write) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        for export in self.0 {
            let mut bytes = Vec::new();
            render(&export, &mut bytes)?;
            let Some(mut file) = export.file else {
                output::written(|out| out.write_all(&bytes))?;
                continue;
            };
            let written = file.write_all(&bytes).and_then(|()| file.finish());
            written.with_context(|| format!("cannot write {}", export.path.display()))?;
        }
        Ok(())
    }
}

fn exporter(form: &str) -> anyhow::Result<&'static report::exporters::Exporter> {
    Ok(registry::find("exporter", EXPORTERS, form)?)
}
