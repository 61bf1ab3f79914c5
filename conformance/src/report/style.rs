//! Colours of the terminal's reports.

use anstyle::{AnsiColor, Style};

pub(super) const GOOD: Style = AnsiColor::Green.on_default();
pub(super) const BAD: Style = AnsiColor::Red.on_default().bold();
pub(super) const UNSURE: Style = AnsiColor::Yellow.on_default();
pub(super) const HEAD: Style = Style::new().bold();
