//! Lines from a pipe, read on a thread of their own, with a limit on their length.

use std::io::{BufRead, BufReader, Read};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;

/// The longest line that is read (16 MiB): an answer to a case has a few kilobytes.
pub const LONGEST_LINE: usize = 16 << 20;

/// What came from the pipe.
#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    /// A line without its end.
    Text(String),
    /// More bytes than [`LONGEST_LINE`] without a line end; reading stops there.
    TooLong,
    /// Bytes that are no UTF-8.
    NotText,
}

/// Read lines until the pipe is closed, which closes the channel.
pub fn lines_of(pipe: impl Read + Send + 'static) -> Receiver<Line> {
    let (sender, receiver) = channel();
    thread::spawn(move || read_lines(BufReader::new(pipe), LONGEST_LINE, &sender));
    receiver
}

fn read_lines(mut reader: impl BufRead, longest: usize, sender: &Sender<Line>) {
    loop {
        let mut bytes = Vec::new();
        let read = (&mut reader).take(longest as u64 + 1).read_until(b'\n', &mut bytes);
        let line = match read {
            Ok(0) | Err(_) => return,
            Ok(_) if bytes.len() > longest => Line::TooLong,
            Ok(_) => match String::from_utf8(bytes) {
                Ok(text) => Line::Text(text.trim_end_matches(['\r', '\n']).to_owned()),
                Err(_) => Line::NotText,
            },
        };
        let ends = line == Line::TooLong;
        if sender.send(line).is_err() || ends {
            return;
        }
    }
}

/// The last bytes of a pipe, kept while it is drained.
#[derive(Clone, Debug, Default)]
pub struct Tail(Arc<Mutex<Vec<u8>>>);

impl Tail {
    const KEPT: usize = 4096;

    /// Drain a pipe on a thread of its own.
    pub fn of(mut pipe: impl Read + Send + 'static) -> Tail {
        let tail = Tail::default();
        let kept = Arc::clone(&tail.0);
        thread::spawn(move || {
            let mut buffer = [0u8; 1024];
            while let Ok(count @ 1..) = pipe.read(&mut buffer) {
                let Ok(mut kept) = kept.lock() else { return };
                kept.extend_from_slice(&buffer[..count]);
                let excess = kept.len().saturating_sub(Tail::KEPT);
                kept.drain(..excess);
            }
        });
        tail
    }

    /// The last line that is not empty.
    pub fn last_line(&self) -> Option<String> {
        let kept = self.0.lock().ok()?;
        let text = String::from_utf8_lossy(&kept);
        let line = text.lines().map(str::trim).rfind(|line| !line.is_empty())?;
        Some(line.chars().take(200).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_a_limit_and_need_not_be_text() {
        let (sender, receiver) = channel();
        read_lines(&b"one\r\n\xff\xfe\n\n123456\n1234567\nafter\n"[..], 7, &sender);
        drop(sender);
        let text = |text: &str| Line::Text(text.to_owned());
        let all: Vec<Line> = receiver.iter().collect();
        assert_eq!(all, [text("one"), Line::NotText, text(""), text("123456"), Line::TooLong]);
    }
}
