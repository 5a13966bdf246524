//! A progress bar on the terminal, drawn from the thread that leads, never from one that loads.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::output;

/// Steps of the bar: shares of the whole are rounded to these.
const STEPS: u64 = 1000;

/// A bar with a message, the share done and the time left.
pub(super) struct Bar(ProgressBar);

impl Bar {
    /// Draws it on standard error.
    pub(super) fn new(message: &str) -> Self {
        let bar = ProgressBar::with_draw_target(Some(STEPS), ProgressDrawTarget::stderr_with_hz(8));
        let style = ProgressStyle::with_template(
            "{bar:16.cyan/dim} {percent:>3}% {eta:>4} left  {wide_msg}",
        )
        .expect("the template is valid")
        .progress_chars("━╸─");
        bar.set_style(style);
        bar.set_message(message.to_owned());
        Self(bar)
    }

    /// Sets the share done, from 0 to 1.
    pub(super) fn set(&self, share: f64) {
        self.0.set_position((share * STEPS as f64) as u64);
    }

    /// Changes the message.
    pub(super) fn say(&self, message: &str) {
        self.0.set_message(output::harmless(message));
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
