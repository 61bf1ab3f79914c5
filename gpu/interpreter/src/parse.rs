//! From the text to instructions.

use std::collections::HashMap;

use crate::instruction::{Action, Binary, Comparison, Instruction, Rounding, Space, Unary};
use crate::memory::Memory;
use crate::operand::{Operand, Type};

/// A kernel.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Its name.
    pub name: String,
    pub(crate) registers: usize,
    pub(crate) local_bytes: usize,
    pub(crate) instructions: Vec<Instruction>,
    /// The lines of its body in the text, the first and the one behind the last.
    pub lines: (usize, usize),
}

/// A module: constants in memory, and kernels.
#[derive(Debug)]
pub struct Module {
    entries: HashMap<String, Entry>,
    pub(crate) memory: Memory,
}

impl Module {
    /// Read a module. What it does not know is an error that names the line.
    pub fn parse(text: &str) -> Result<Module, String> {
        let mut module = Module { entries: HashMap::new(), memory: Memory::default() };
        let mut constants = HashMap::new();
        let mut lines =
            text.lines().enumerate().map(|(index, line)| (index + 1, line.split("//").next().unwrap_or("")));
        while let Some((number, line)) = lines.next() {
            let line = line.trim();
            if line.starts_with(".global") {
                let (name, bytes) = constant(line).ok_or_else(|| format!("line {number}: {line}"))?;
                constants.insert(name.to_owned(), module.memory.add(bytes));
            } else if line.starts_with(".visible .entry") {
                let name = line.trim_start_matches(".visible .entry").trim_end_matches('(').trim().to_owned();
                let mut body = Vec::new();
                for (number, line) in lines.by_ref() {
                    body.push((number, line.trim()));
                    if line.trim() == "}" && !line.starts_with('\t') {
                        break;
                    }
                }
                let entry = Reader::new(&constants).entry(name.clone(), &body)?;
                module.entries.insert(name, entry);
            } else if line.starts_with(".func") || line.starts_with(".visible .func") {
                return Err(format!("line {number}: a function that is not part of a kernel"));
            }
        }
        Ok(module)
    }

    /// The kernel of that name.
    pub fn entry(&self, name: &str) -> Option<&Entry> {
        self.entries.get(name)
    }

    /// All kernels.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.entries.values()
    }
}

/// `.global .align 8 .b8 name[16] = {1, 2, …};`
fn constant(line: &str) -> Option<(&str, Vec<u8>)> {
    let (head, tail) = line.split_once('=')?;
    let name = head.split_whitespace().last()?.split('[').next()?;
    let kind = head.split_whitespace().nth(3)?;
    let width = Type::of(kind.strip_prefix('.')?)?.bits() as usize / 8;
    let numbers = tail.trim().trim_end_matches(';').trim().strip_prefix('{')?.strip_suffix('}')?;
    let mut bytes = Vec::new();
    for number in numbers.split(',') {
        let number: i128 = number.trim().parse().ok()?;
        bytes.extend(&(number as u64).to_le_bytes()[..width]);
    }
    Some((name, bytes))
}

struct Reader<'c> {
    constants: &'c HashMap<String, u64>,
    registers: HashMap<String, usize>,
}

/// Where local memory lies in generic addresses.
pub(crate) const LOCAL: u64 = 1 << 32;

impl<'c> Reader<'c> {
    fn new(constants: &'c HashMap<String, u64>) -> Self {
        Reader { constants, registers: HashMap::new() }
    }

    fn entry(mut self, name: String, body: &[(usize, &str)]) -> Result<Entry, String> {
        let mut local_bytes = 0;
        let mut labels: HashMap<&str, usize> = HashMap::new();
        let mut statements: Vec<(usize, String)> = Vec::new();
        let mut pending = String::new();
        let inside = body.iter().skip_while(|(_, line)| *line != "{").skip(1);
        for (number, line) in inside {
            let mut line = *line;
            if let Some(rest) = line.strip_prefix(".local") {
                let bytes = rest.split('[').nth(1).and_then(|rest| rest.split(']').next()?.parse().ok());
                local_bytes = bytes.ok_or_else(|| format!("line {number}: {line}"))?;
                continue;
            }
            if line.starts_with(".reg") || line.starts_with(".pragma") || line.is_empty() || line == "}" {
                continue;
            }
            if pending.is_empty()
                && let Some((label, rest)) = line.split_once(':')
                && label.starts_with('$')
            {
                labels.insert(label, statements.len());
                line = rest.trim();
            }
            // `{ .reg .b32 tmp; mov.b64 {tmp, %r1}, %rd1; }`: a register for what is thrown away.
            if let Some(rest) = line.strip_prefix("{ .reg") {
                line = rest.split_once(';').map_or("", |(_, rest)| rest).trim().trim_end_matches('}').trim();
            }
            for part in line.split_inclusive(';') {
                pending.push_str(part);
                if pending.ends_with(';') {
                    let statement = pending.trim_end_matches(';').trim().to_owned();
                    if !statement.is_empty() {
                        statements.push((*number, statement));
                    }
                    pending.clear();
                } else {
                    pending.push(' ');
                }
            }
            if pending.trim().is_empty() {
                pending.clear();
            }
        }
        // A table of targets is a statement of its own, under the label that the jump names.
        let tables: HashMap<&str, Vec<&str>> = labels
            .iter()
            .filter_map(|(label, place)| {
                let list = statements.get(*place)?.1.strip_prefix(".branchtargets")?;
                Some((*label, list.split(',').map(str::trim).collect()))
            })
            .collect();
        let mut instructions = Vec::new();
        for (number, statement) in &statements {
            let wrong = |what: &str| format!("line {number}: {what}: {statement}");
            let target = |label: &str| labels.get(label).copied().ok_or_else(|| wrong("no such label"));
            let action = if statement.starts_with(".branchtargets") {
                // Never reached: the jump stands before it or elsewhere.
                Instruction { line: *number, guard: None, action: Action::Jump { target: instructions.len() + 1 } }
            } else {
                let (guard, rest) = match statement.strip_prefix('@') {
                    Some(rest) => {
                        let (predicate, rest) = rest.split_once(char::is_whitespace).ok_or_else(|| wrong("a guard"))?;
                        let holds = !predicate.starts_with('!');
                        (Some((self.register(predicate.trim_start_matches('!')), holds)), rest.trim())
                    }
                    None => (None, statement.as_str()),
                };
                let (name, arguments) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
                let action = match name {
                    "bra" | "bra.uni" => Action::Jump { target: target(arguments.trim())? },
                    "brx.idx" => {
                        let (index, label) = arguments.split_once(',').ok_or_else(|| wrong("a jump"))?;
                        let table = tables.get(label.trim()).ok_or_else(|| wrong("no such table"))?;
                        let targets = table.iter().map(|label| target(label)).collect::<Result<_, _>>()?;
                        let index = self.operand(index.trim()).ok_or_else(|| wrong("an operand"))?;
                        Action::JumpByTable { index, targets }
                    }
                    _ => self.action(name, arguments).ok_or_else(|| wrong("not known"))?,
                };
                Instruction { line: *number, guard, action }
            };
            instructions.push(action);
        }
        let lines = (body.first().map_or(0, |(number, _)| *number), body.last().map_or(0, |(number, _)| *number));
        Ok(Entry { name, registers: self.registers.len(), local_bytes, instructions, lines })
    }

    fn register(&mut self, name: &str) -> usize {
        let next = self.registers.len();
        *self.registers.entry(name.to_owned()).or_insert(next)
    }

    fn operand(&mut self, text: &str) -> Option<Operand> {
        Some(match text {
            "%tid.x" => Operand::Thread,
            "%ntid.x" => Operand::Threads,
            "%ctaid.x" => Operand::Block,
            "%nctaid.x" => Operand::Blocks,
            "tmp" => Operand::Register(self.register("tmp")),
            _ if text.starts_with('%') => Operand::Register(self.register(text)),
            _ if text.starts_with("__local_depot") => Operand::Constant(LOCAL),
            _ => Operand::Constant(match number(text) {
                Some(number) => number,
                None => *self.constants.get(text)?,
            }),
        })
    }

    /// `%rd1`, or `{%r1, %r2}`.
    fn operands(&mut self, text: &str) -> Option<Vec<Operand>> {
        let list = text.trim().trim_start_matches('{').trim_end_matches('}');
        list.split(',').map(|text| self.operand(text.trim())).collect()
    }

    fn places(&mut self, text: &str) -> Option<Vec<usize>> {
        let places = self.operands(text)?;
        places
            .into_iter()
            .map(|operand| if let Operand::Register(place) = operand { Some(place) } else { None })
            .collect()
    }

    /// `[%rd1+8]`, `[name+8]`.
    fn address(&mut self, text: &str, parameters: bool) -> Option<(Operand, i64)> {
        let inner = text.trim().strip_prefix('[')?.strip_suffix(']')?;
        let (base, offset) = match inner.split_once('+') {
            Some((base, offset)) => (base, offset.parse().ok()?),
            None => (inner, 0),
        };
        let base = if parameters { Operand::Constant(0) } else { self.operand(base)? };
        Some((base, offset))
    }

    fn action(&mut self, name: &str, arguments: &str) -> Option<Action> {
        let words: Vec<&str> = name.split('.').collect();
        let arguments = split_arguments(arguments);
        let argument = |place: usize| arguments.get(place).map(String::as_str);
        let kind = words.iter().rev().find_map(|word| Type::of(word));
        let float = matches!(kind, Some(Type::F32 | Type::F64));
        match (*words.first()?, arguments.len()) {
            ("exit" | "ret", 0) => return Some(Action::Exit),
            ("trap", 0) => return Some(Action::Trap),
            _ => {}
        }
        let kind = kind?;
        if matches!(words[0], "ld" | "st") {
            let space = match words.get(1).copied() {
                Some("param") => Space::Parameter,
                Some("local") => Space::Local,
                Some("global") if words.contains(&"nc") => Space::Constant,
                _ => Space::Generic,
            };
            let known = ["param", "local", "global", "nc", "v2", "v4", "volatile", "relaxed", "sys"];
            if !words[1..words.len() - 1].iter().all(|word| known.contains(word)) {
                return None;
            }
            return if words[0] == "ld" {
                let (base, offset) = self.address(argument(1)?, space == Space::Parameter)?;
                Some(Action::Load { space, kind, to: self.places(argument(0)?)?, base, offset })
            } else {
                let (base, offset) = self.address(argument(0)?, false)?;
                let space = if space == Space::Parameter { return None } else { space };
                Some(Action::Store { space, kind, from: self.operands(argument(1)?)?, base, offset })
            };
        }
        if words[0] == "atom" {
            let kinds = [
                ["atom", "min", "u64"].as_slice(),
                &["atom", "global", "min", "u64"],
                &["atom", "relaxed", "sys", "min", "u64"],
            ];
            if !kinds.contains(&words.as_slice()) {
                return None;
            }
            let (base, offset) = self.address(argument(1)?, false)?;
            let value = self.operand(argument(2)?)?;
            return Some(Action::AtomicMinimum { to: *self.places(argument(0)?)?.first()?, base, offset, value });
        }
        if words[0] == "mov" {
            let (to, from) = (argument(0)?, argument(1)?);
            if from.starts_with('{') {
                let from = self.operands(from)?;
                let part = kind.bits() / from.len() as u32;
                return Some(Action::Pack { to: *self.places(to)?.first()?, part, from });
            }
            if to.starts_with('{') {
                let to = self.places(to)?;
                let part = kind.bits() / to.len() as u32;
                return Some(Action::Unpack { to, part, from: self.operand(from)? });
            }
        }
        let to = *self.places(argument(0)?)?.first()?;
        let first = self.operand(argument(1)?)?;
        if words[0] == "cvt" {
            let kinds: Vec<Type> = words.iter().filter_map(|word| Type::of(word)).collect();
            let [to_kind, from_kind] = kinds[..] else { return None };
            let modes: Vec<&str> = words[1..].iter().copied().filter(|word| Type::of(word).is_none()).collect();
            let rounding = match modes[..] {
                [] | ["rn"] | ["rni"] => Rounding::Nearest,
                ["rz"] | ["rzi"] => Rounding::Zero,
                ["rmi"] => Rounding::Down,
                ["rpi"] => Rounding::Up,
                _ => return None,
            };
            return Some(Action::Convert { rounding, to_kind, from_kind, to, from: first });
        }
        if words[0] == "cvta" {
            return Some(Action::Unary { operation: Unary::Move, kind, to, from: first });
        }
        // Every operation on real numbers that rounds must say that it rounds to the nearest.
        let rounds = words.contains(&"rn");
        if float && !rounds && matches!(words[0], "add" | "sub" | "mul" | "div" | "rcp" | "sqrt" | "mad" | "fma") {
            return None;
        }
        if words.iter().any(|word| matches!(*word, "ftz" | "approx" | "full" | "sat" | "fma")) {
            return None;
        }
        let unary = match words[0] {
            "mov" => Some(Unary::Move),
            "neg" => Some(Unary::Negate),
            "abs" => Some(Unary::Absolute),
            "not" => Some(Unary::Not),
            "rcp" => Some(Unary::Reciprocal),
            "sqrt" => Some(Unary::SquareRoot),
            "clz" => Some(Unary::LeadingZeros),
            "popc" => Some(Unary::Ones),
            _ => None,
        };
        if let Some(operation) = unary {
            return Some(Action::Unary { operation, kind, to, from: first });
        }
        let second = self.operand(argument(2)?)?;
        let binary = match (words[0], words.get(1).copied()) {
            ("add", _) => Some(Binary::Add),
            ("sub", _) => Some(Binary::Subtract),
            ("mul", Some("wide")) => Some(Binary::MultiplyWide),
            ("mul", Some("hi")) => Some(Binary::MultiplyHigh),
            ("mul", _) => Some(Binary::Multiply),
            ("div", _) => Some(Binary::Divide),
            ("rem", _) => Some(Binary::Remainder),
            ("min", _) => Some(Binary::Smaller),
            ("max", _) => Some(Binary::Larger),
            ("and", _) => Some(Binary::And),
            ("or", _) => Some(Binary::Or),
            ("xor", _) => Some(Binary::Xor),
            ("shl", _) => Some(Binary::ShiftLeft),
            ("shr", _) => Some(Binary::ShiftRight),
            ("copysign", _) if float => Some(Binary::CopySign),
            _ => None,
        };
        if let Some(operation) = binary {
            return Some(Action::Binary { operation, kind, to, left: first, right: second });
        }
        if words[0] == "setp" && words.len() == 3 {
            let comparison = comparison(words[1])?;
            return Some(Action::Compare { comparison, kind, to, left: first, right: second });
        }
        let third = self.operand(argument(3)?)?;
        Some(match words[..] {
            ["selp", _] => Action::Select { kind, to, left: first, right: second, condition: third },
            ["mad", mode @ ("lo" | "wide"), _] if !float => {
                Action::MultiplyAdd { wide: mode == "wide", kind, to, left: first, right: second, more: third }
            }
            ["prmt", "b32"] => Action::Permute { to, left: first, right: second, selector: third },
            ["bfe", _] => Action::Extract { kind, to, from: first, position: second, length: third },
            ["shf", side @ ("l" | "r"), "wrap", "b32"] => {
                Action::Funnel { left: side == "l", to, low: first, high: second, by: third }
            }
            ["shfl", "sync", mode @ ("down" | "idx"), "b32"] => {
                // All threads, and no segments.
                if third != Operand::Constant(31) || self.operand(argument(4)?)? != Operand::Constant(u64::MAX) {
                    return None;
                }
                Action::Shuffle { down: mode == "down", to, from: first, by: second }
            }
            _ => return None,
        })
    }
}

fn split_arguments(text: &str) -> Vec<String> {
    let (mut arguments, mut depth) = (vec![String::new()], 0);
    for letter in text.chars() {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                arguments.push(String::new());
                continue;
            }
            _ => {}
        }
        if let Some(last) = arguments.last_mut() {
            last.push(letter);
        }
    }
    arguments.iter().map(|argument| argument.trim().to_owned()).filter(|argument| !argument.is_empty()).collect()
}

/// `-3`, `0x3340U`, `0f3F800000`, `0d3FF0000000000000`.
fn number(text: &str) -> Option<u64> {
    if let Some(bits) = text.strip_prefix("0f").or_else(|| text.strip_prefix("0d")) {
        return u64::from_str_radix(bits, 16).ok();
    }
    let text = text.trim_end_matches('U');
    if let Some(bits) = text.strip_prefix("0x") {
        return u64::from_str_radix(bits, 16).ok();
    }
    text.parse::<i128>().ok().map(|number| number as u64)
}

fn comparison(name: &str) -> Option<Comparison> {
    let of = |less, equal, greater, unordered| Comparison { less, equal, greater, unordered };
    Some(match name {
        "eq" => of(false, true, false, false),
        "ne" => of(true, false, true, false),
        "lt" | "lo" => of(true, false, false, false),
        "le" | "ls" => of(true, true, false, false),
        "gt" | "hi" => of(false, false, true, false),
        "ge" | "hs" => of(false, true, true, false),
        "equ" => of(false, true, false, true),
        "neu" => of(true, false, true, true),
        "ltu" => of(true, false, false, true),
        "leu" => of(true, true, false, true),
        "gtu" => of(false, false, true, true),
        "geu" => of(false, true, true, true),
        "num" => of(true, true, true, false),
        "nan" => of(false, false, false, true),
        _ => return None,
    })
}
