//! The implementation as a child process.

use std::fmt;
use std::io::Write;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use super::lines::{LONGEST_LINE, Line, Tail, lines_of};
use super::message::{Answer, Request, Start, read_answer, read_start};

/// How an implementation broke off, in one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Break(pub String);

impl fmt::Display for Break {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A running implementation. It is killed when this value goes.
#[derive(Debug)]
pub struct Subject {
    child: Child,
    /// Lines to its standard input; a thread writes them, so that an implementation that does not read cannot hang us.
    requests: Option<Sender<String>>,
    answers: Receiver<Line>,
    errors: Tail,
}

impl Subject {
    /// Start the command; an error if there is no such program.
    pub fn start(command: &[String]) -> std::io::Result<Subject> {
        let (program, arguments) = command.split_first().ok_or(std::io::ErrorKind::InvalidInput)?;
        let mut child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let (requests, queue) = channel::<String>();
        if let Some(mut input) = child.stdin.take() {
            thread::spawn(move || {
                for line in queue {
                    if input.write_all(line.as_bytes()).and_then(|()| input.flush()).is_err() {
                        return;
                    }
                }
            });
        }
        let answers = child.stdout.take().map_or_else(|| channel().1, lines_of);
        let errors = child.stderr.take().map_or_else(Tail::default, Tail::of);
        Ok(Subject { child, requests: Some(requests), answers, errors })
    }

    /// Say `start` and read what the implementation is.
    pub fn greet(&mut self, limit: Duration) -> Result<Start, Break> {
        let line = self.ask(&Request::Start, limit)?;
        read_start(&line).map_err(Break)
    }

    /// Send one case and read the answer.
    pub fn run(
        &mut self,
        request: &Request<'_>,
        limit: Duration,
        shape: &dyn Fn(&str) -> Option<Vec<usize>>,
    ) -> Result<Answer, Break> {
        let line = self.ask(request, limit)?;
        let Request::Run { seq, want, .. } = request else { return Err(Break("it was asked nothing".into())) };
        read_answer(&line, *seq, want.first().copied().unwrap_or_default(), shape).map_err(Break)
    }

    fn ask(&mut self, request: &Request<'_>, limit: Duration) -> Result<String, Break> {
        if let Ok(line) = self.answers.try_recv() {
            return Err(Break(match line {
                Line::Text(text) => {
                    format!("it wrote a line that nobody asked for: `{}`", text.chars().take(60).collect::<String>())
                }
                other => self.unreadable(&other),
            }));
        }
        // Where the pipe is closed the missing answer tells it.
        let _ = self.requests.as_ref().map(|requests| requests.send(request.line() + "\n"));
        match self.answers.recv_timeout(limit) {
            Ok(Line::Text(line)) => Ok(line),
            Ok(other) => Err(Break(self.unreadable(&other))),
            Err(RecvTimeoutError::Timeout) => {
                Err(Break(format!("it hangs: no answer within {} s", limit.as_secs_f64())))
            }
            Err(RecvTimeoutError::Disconnected) => Err(Break(self.death())),
        }
    }

    fn unreadable(&self, line: &Line) -> String {
        match line {
            Line::TooLong => format!("its answer is longer than {} MiB", LONGEST_LINE >> 20),
            _ => "its answer is no UTF-8 text".into(),
        }
    }

    /// What became of a process whose output ended.
    fn death(&mut self) -> String {
        let deadline = Instant::now() + Duration::from_millis(500);
        let status = loop {
            match self.child.try_wait() {
                Ok(Some(status)) => break Some(status),
                Ok(None) if Instant::now() < deadline => thread::sleep(Duration::from_millis(5)),
                _ => break None,
            }
        };
        let what = match status {
            None => "it closed its output and went on running".to_owned(),
            Some(status) => match status.code() {
                Some(code) => format!("it ended with exit code {code} before it answered"),
                None => format!("it was killed before it answered ({status})"),
            },
        };
        match self.errors.last_line() {
            Some(line) => format!("{what}; its last words: `{line}`"),
            None => what,
        }
    }

    /// Say `stop` and give it a moment to end by itself.
    pub fn stop(mut self) {
        let _ = self.requests.as_ref().map(|requests| requests.send(Request::Stop.line() + "\n"));
        self.requests = None;
        let deadline = Instant::now() + Duration::from_secs(2);
        while Instant::now() < deadline {
            if let Ok(Some(_)) = self.child.try_wait() {
                return;
            }
            thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Subject {
    fn drop(&mut self) {
        // Already ended is as good.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
