//! A report as it stands on a page, alone or as a part of a study.

use std::ops::Deref;

use crate::report::Report;
use crate::report::figures::Figure;

/// A report, and which part of the page it is.
#[derive(Clone, Copy)]
pub(super) struct Shown<'a> {
    report: &'a Report<'a>,
    /// The part of a study; none: it is the whole page.
    part: Option<&'a str>,
}

impl<'a> Shown<'a> {
    pub(super) fn alone(report: &'a Report<'a>) -> Self {
        Self { report, part: None }
    }

    pub(super) fn part(report: &'a Report<'a>, name: &'a str) -> Self {
        Self {
            report,
            part: Some(name),
        }
    }

    /// An id that nothing else on the page has.
    pub(super) fn id(&self, name: &str) -> String {
        format!("{}{name}", self.prefix())
    }

    /// The ids of what names a section: its heading, and in a study the part's before it, so that no two
    /// landmarks of the page have one name.
    pub(super) fn named_by(&self, name: &str) -> String {
        let heading = self.id(name);
        match self.part {
            Some(part) => format!("title-{part} {heading}"),
            None => heading,
        }
    }

    /// What names a table that may be wider than the page.
    pub(super) fn scrolled(&self, what: &str) -> String {
        let what = format!("{what}, can be scrolled sideways");
        match self.part {
            Some(part) => format!("{part}: {what}"),
            None => what,
        }
    }

    /// What all ids of this part begin with.
    pub(super) fn prefix(&self) -> String {
        self.part
            .map_or_else(String::new, |part| format!("{part}-"))
    }

    /// Where the still picture of a figure is, beside the page.
    pub(super) fn picture(&self, figure: &Figure) -> String {
        let directory = self
            .part
            .map_or_else(String::new, |part| format!("{part}/"));
        format!("{directory}figures/{}.svg", figure.id)
    }
}

impl<'a> Deref for Shown<'a> {
    type Target = Report<'a>;

    fn deref(&self) -> &Self::Target {
        self.report
    }
}
