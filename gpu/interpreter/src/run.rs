//! Executing a kernel.

use crate::instruction::{Action, Binary, Comparison, Instruction, Rounding, Space, Unary};
use crate::memory::Memory;
use crate::operand::{Operand, Type};
use crate::parse::{Entry, LOCAL};

/// Threads of a warp.
const LANES: usize = 32;
/// Instructions that one thread may execute: a kernel that needs more hangs.
const LIMIT: u64 = 1 << 32;

/// What a launch did to memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Bytes loaded from the device's memory.
    pub loaded: u64,
    /// Bytes stored to it.
    pub stored: u64,
    /// Load instructions.
    pub loads: u64,
    /// Store instructions.
    pub stores: u64,
    /// Loads of the module's constants.
    pub constants: u64,
    /// Loads from and stores to a thread's own memory.
    pub local: u64,
    /// All instructions.
    pub instructions: u64,
}

/// Where a thread stands in the grid.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    pub thread: u64,
    pub threads: u64,
    pub block: u64,
    pub blocks: u64,
}

/// A thread.
struct Thread {
    place: Place,
    registers: Vec<u64>,
    local: Vec<u8>,
    next: usize,
    done: bool,
}

/// Run one warp to its end.
pub fn warp(
    entry: &Entry,
    parameters: &[u8],
    memory: &mut Memory,
    first: Place,
    counts: &mut Counts,
) -> Result<(), String> {
    let mut threads: Vec<Thread> = (0..LANES as u64)
        .map(|lane| Thread {
            place: Place { thread: first.thread + lane, ..first },
            registers: vec![0; entry.registers],
            local: vec![0; entry.local_bytes],
            next: 0,
            done: false,
        })
        .collect();
    loop {
        for thread in &mut threads {
            thread
                .run(entry, parameters, memory, counts)
                .map_err(|error| format!("{}: thread {}: {error}", entry.name, thread.place.thread))?;
        }
        if threads.iter().all(|thread| thread.done) {
            return Ok(());
        }
        // All stand at a shuffle, and at the same one.
        let at = threads[0].next;
        if threads.iter().any(|thread| thread.done || thread.next != at) {
            return Err(format!("{}: not all threads of a warp come to a shuffle", entry.name));
        }
        shuffle(&mut threads, &entry.instructions[at])?;
    }
}

fn shuffle(threads: &mut [Thread], instruction: &Instruction) -> Result<(), String> {
    let Action::Shuffle { down, to, from, by } = &instruction.action else { return Err("no shuffle".to_owned()) };
    let given: Vec<u64> = threads.iter().map(|thread| thread.value(*from)).collect();
    for (lane, thread) in threads.iter_mut().enumerate() {
        let by = thread.value(*by) as usize;
        let source = if *down { lane + by } else { by % LANES };
        thread.registers[*to] = *given.get(source).unwrap_or(&given[lane]) & 0xffff_ffff;
        thread.next += 1;
    }
    Ok(())
}

impl Thread {
    fn value(&self, operand: Operand) -> u64 {
        match operand {
            Operand::Register(place) => self.registers[place],
            Operand::Constant(value) => value,
            Operand::Thread => self.place.thread,
            Operand::Threads => self.place.threads,
            Operand::Block => self.place.block,
            Operand::Blocks => self.place.blocks,
        }
    }

    /// Run to the end or to a shuffle.
    fn run(
        &mut self,
        entry: &Entry,
        parameters: &[u8],
        memory: &mut Memory,
        counts: &mut Counts,
    ) -> Result<(), String> {
        let mut executed = 0u64;
        while !self.done {
            let instruction = entry.instructions.get(self.next).ok_or("the end of the code")?;
            executed += 1;
            if executed > LIMIT {
                return Err("it does not end".to_owned());
            }
            if let Some((predicate, holds)) = instruction.guard
                && (self.registers[predicate] != 0) != holds
            {
                self.next += 1;
                continue;
            }
            if let Action::Shuffle { .. } = instruction.action {
                break;
            }
            self.next += 1;
            self.execute(&instruction.action, parameters, memory, counts)
                .map_err(|error| format!("line {}: {error}", instruction.line))?;
        }
        counts.instructions += executed;
        Ok(())
    }

    fn execute(
        &mut self,
        action: &Action,
        parameters: &[u8],
        memory: &mut Memory,
        counts: &mut Counts,
    ) -> Result<(), String> {
        match action {
            Action::Unary { operation, kind, to, from } => {
                self.registers[*to] = unary(*operation, *kind, self.value(*from));
            }
            Action::Binary { operation, kind, to, left, right } => {
                self.registers[*to] = binary(*operation, *kind, self.value(*left), self.value(*right))?;
            }
            Action::MultiplyAdd { wide, kind, to, left, right, more } => {
                let operation = if *wide { Binary::MultiplyWide } else { Binary::Multiply };
                let product = binary(operation, *kind, self.value(*left), self.value(*right))?;
                let sum = product.wrapping_add(self.value(*more));
                self.registers[*to] = if *wide { sum } else { kind.cut(sum) };
            }
            Action::Compare { comparison, kind, to, left, right } => {
                self.registers[*to] = u64::from(compare(*comparison, *kind, self.value(*left), self.value(*right)));
            }
            Action::Select { kind, to, left, right, condition } => {
                let chosen = if self.value(*condition) != 0 { left } else { right };
                self.registers[*to] = kind.cut(self.value(*chosen));
            }
            Action::Convert { rounding, to_kind, from_kind, to, from } => {
                self.registers[*to] = convert(*rounding, *to_kind, *from_kind, self.value(*from));
            }
            Action::Permute { to, left, right, selector } => {
                let bytes = (self.value(*left) & 0xffff_ffff) | self.value(*right) << 32;
                let selector = self.value(*selector);
                self.registers[*to] = (0..4).fold(0, |word, place| {
                    let digit = selector >> (4 * place) & 15;
                    let byte = bytes >> (8 * (digit & 7)) & 255;
                    let byte = if digit & 8 == 0 { byte } else { (byte >> 7) * 255 };
                    word | byte << (8 * place)
                });
            }
            Action::Extract { kind, to, from, position, length } => {
                let (position, length) = (self.value(*position) & 255, self.value(*length) & 255);
                let Type::Unsigned(bits) = *kind else { return Err("a signed field of bits".to_owned()) };
                let shifted = if position >= u64::from(bits) { 0 } else { kind.cut(self.value(*from)) >> position };
                self.registers[*to] = if length >= 64 { shifted } else { shifted & ((1 << length) - 1) };
            }
            Action::Funnel { left, to, low, high, by } => {
                let both = (self.value(*low) & 0xffff_ffff) | self.value(*high) << 32;
                let by = self.value(*by) & 31;
                self.registers[*to] = if *left { both << by >> 32 } else { both >> by & 0xffff_ffff };
            }
            Action::Pack { to, part, from } => {
                let parts = from.iter().enumerate();
                let kind = Type::Unsigned(*part);
                self.registers[*to] =
                    parts.fold(0, |whole, (place, from)| whole | kind.cut(self.value(*from)) << (*part * place as u32));
            }
            Action::Unpack { to, part, from } => {
                let whole = self.value(*from);
                for (place, to) in to.iter().enumerate() {
                    self.registers[*to] = Type::Unsigned(*part).cut(whole >> (*part * place as u32));
                }
            }
            Action::Load { space, kind, to, base, offset } => {
                let (address, bytes) = (self.value(*base).wrapping_add_signed(*offset), kind.bits() as usize / 8);
                aligned(address, bytes * to.len())?;
                for (place, to) in to.iter().enumerate() {
                    let address = address + (place * bytes) as u64;
                    let value = match space {
                        Space::Parameter => read(parameters, address, bytes)?,
                        _ if is_local(address) => {
                            counts.local += 1;
                            read(&self.local, address - LOCAL, bytes)?
                        }
                        Space::Local => return Err("a local address outside of local memory".to_owned()),
                        Space::Constant => {
                            counts.constants += 1;
                            memory.load(address, bytes)?
                        }
                        Space::Generic => {
                            counts.loaded += bytes as u64;
                            counts.loads += u64::from(place == 0);
                            memory.load(address, bytes)?
                        }
                    };
                    self.registers[*to] = if let Type::Signed(_) = kind { kind.signed(value) as u64 } else { value };
                }
            }
            Action::Store { space, kind, from, base, offset } => {
                let (address, bytes) = (self.value(*base).wrapping_add_signed(*offset), kind.bits() as usize / 8);
                aligned(address, bytes * from.len())?;
                for (place, from) in from.iter().enumerate() {
                    let address = address + (place * bytes) as u64;
                    let value = kind.cut(self.value(*from));
                    if is_local(address) {
                        counts.local += 1;
                        let start = (address - LOCAL) as usize;
                        let room = self.local.get_mut(start..start + bytes).ok_or("outside of local memory")?;
                        room.copy_from_slice(&value.to_le_bytes()[..bytes]);
                    } else if *space == Space::Local {
                        return Err("a local address outside of local memory".to_owned());
                    } else {
                        counts.stored += bytes as u64;
                        counts.stores += u64::from(place == 0);
                        memory.store(address, bytes, value)?;
                    }
                }
            }
            Action::AtomicMinimum { to, base, offset, value } => {
                let address = self.value(*base).wrapping_add_signed(*offset);
                let old = memory.load(address, 8)?;
                memory.store(address, 8, old.min(self.value(*value)))?;
                self.registers[*to] = old;
            }
            Action::Jump { target } => self.next = *target,
            Action::JumpByTable { index, targets } => {
                let index = self.value(*index) as usize;
                self.next = *targets.get(index).ok_or("a jump past its table")?;
            }
            Action::Exit => self.done = true,
            Action::Trap => return Err("a trap".to_owned()),
            Action::Shuffle { .. } => return Err("a shuffle alone".to_owned()),
        }
        Ok(())
    }
}

fn is_local(address: u64) -> bool {
    (LOCAL..LOCAL << 1).contains(&address)
}

fn aligned(address: u64, bytes: usize) -> Result<(), String> {
    if address.is_multiple_of(bytes as u64) {
        Ok(())
    } else {
        Err(format!("{bytes} bytes at {address:#x}: not aligned"))
    }
}

fn read(bytes: &[u8], address: u64, count: usize) -> Result<u64, String> {
    let start = address as usize;
    let part = bytes.get(start..start.saturating_add(count)).ok_or_else(|| format!("{address:#x} lies outside"))?;
    let mut number = [0; 8];
    number[..count].copy_from_slice(part);
    Ok(u64::from_le_bytes(number))
}

fn single(value: u64) -> f32 {
    f32::from_bits(value as u32)
}

fn unary(operation: Unary, kind: Type, value: u64) -> u64 {
    match (operation, kind) {
        (Unary::Move, Type::Predicate) => u64::from(value != 0),
        (Unary::Move, _) => kind.cut(value),
        (Unary::Negate, Type::F32 | Type::F64) => kind.cut(value) ^ 1 << (kind.bits() - 1),
        (Unary::Absolute, Type::F32 | Type::F64) => kind.cut(value) & !(1 << (kind.bits() - 1)),
        (Unary::Negate, _) => kind.cut(value.wrapping_neg()),
        (Unary::Absolute, _) => kind.cut(kind.signed(value).unsigned_abs()),
        (Unary::Not, Type::Predicate) => u64::from(value == 0),
        (Unary::Not, _) => kind.cut(!value),
        (Unary::Reciprocal, Type::F32) => u64::from((1.0 / single(value)).to_bits()),
        (Unary::Reciprocal, _) => (1.0 / f64::from_bits(value)).to_bits(),
        (Unary::SquareRoot, Type::F32) => u64::from(single(value).sqrt().to_bits()),
        (Unary::SquareRoot, _) => f64::from_bits(value).sqrt().to_bits(),
        (Unary::LeadingZeros, _) => u64::from(kind.cut(value).leading_zeros() - (64 - kind.bits())),
        (Unary::Ones, _) => u64::from(kind.cut(value).count_ones()),
    }
}

/// The smaller (or larger) of two real numbers: the other one where one is NaN; −0 lies below +0.
fn extreme<T: PartialOrd + Copy>(a: T, b: T, larger: bool, negative: impl Fn(T) -> bool) -> T {
    let a_is_nan = a.partial_cmp(&a).is_none();
    if a_is_nan {
        b
    } else if b.partial_cmp(&b).is_none() {
        a
    } else if a == b {
        if negative(a) != larger { a } else { b }
    } else if (a > b) == larger {
        a
    } else {
        b
    }
}

fn binary(operation: Binary, kind: Type, left: u64, right: u64) -> Result<u64, String> {
    match kind {
        Type::F32 => {
            let (a, b) = (single(left), single(right));
            let result = match operation {
                Binary::Add => a + b,
                Binary::Subtract => a - b,
                Binary::Multiply => a * b,
                Binary::Divide => a / b,
                Binary::Smaller => extreme(a, b, false, f32::is_sign_negative),
                Binary::Larger => extreme(a, b, true, f32::is_sign_negative),
                Binary::CopySign => b.copysign(a),
                _ => return Err("an operation on real numbers".to_owned()),
            };
            return Ok(u64::from(result.to_bits()));
        }
        Type::F64 => {
            let (a, b) = (f64::from_bits(left), f64::from_bits(right));
            let result = match operation {
                Binary::Add => a + b,
                Binary::Subtract => a - b,
                Binary::Multiply => a * b,
                Binary::Divide => a / b,
                Binary::Smaller => extreme(a, b, false, f64::is_sign_negative),
                Binary::Larger => extreme(a, b, true, f64::is_sign_negative),
                Binary::CopySign => b.copysign(a),
                _ => return Err("an operation on real numbers".to_owned()),
            };
            return Ok(result.to_bits());
        }
        Type::Predicate => {
            return Ok(match operation {
                Binary::And => left & right,
                Binary::Or => left | right,
                Binary::Xor => left ^ right,
                _ => return Err("an operation on truth values".to_owned()),
            } & 1);
        }
        _ => {}
    }
    let is_signed = matches!(kind, Type::Signed(_));
    let (unsigned, signed) = ((kind.cut(left), kind.cut(right)), (kind.signed(left), kind.signed(right)));
    let bits = u64::from(kind.bits());
    let product = || {
        if is_signed {
            i128::from(signed.0) * i128::from(signed.1)
        } else {
            (u128::from(unsigned.0) * u128::from(unsigned.1)) as i128
        }
    };
    let result = match operation {
        Binary::Add => left.wrapping_add(right),
        Binary::Subtract => left.wrapping_sub(right),
        Binary::Multiply => left.wrapping_mul(right),
        Binary::MultiplyWide => return Ok(Type::Unsigned(kind.bits() * 2).cut(product() as u64)),
        Binary::MultiplyHigh => (product() >> bits) as u64,
        Binary::Divide | Binary::Remainder if unsigned.1 == 0 => return Err("a division by zero".to_owned()),
        Binary::Divide if is_signed => signed.0.wrapping_div(signed.1) as u64,
        Binary::Divide => unsigned.0 / unsigned.1,
        Binary::Remainder if is_signed => signed.0.wrapping_rem(signed.1) as u64,
        Binary::Remainder => unsigned.0 % unsigned.1,
        Binary::Smaller if is_signed => signed.0.min(signed.1) as u64,
        Binary::Smaller => unsigned.0.min(unsigned.1),
        Binary::Larger if is_signed => signed.0.max(signed.1) as u64,
        Binary::Larger => unsigned.0.max(unsigned.1),
        Binary::And => left & right,
        Binary::Or => left | right,
        Binary::CopySign => return Err("an operation on whole numbers".to_owned()),
        Binary::Xor => left ^ right,
        // The distance of a shift is a word whatever is shifted; what is shifted out is gone.
        Binary::ShiftLeft => match right & 0xffff_ffff {
            by if by >= bits => 0,
            by => unsigned.0 << by,
        },
        Binary::ShiftRight => match right & 0xffff_ffff {
            by if is_signed => (signed.0 >> by.min(bits - 1).min(63)) as u64,
            by if by >= bits => 0,
            by => unsigned.0 >> by,
        },
    };
    Ok(kind.cut(result))
}

fn compare(comparison: Comparison, kind: Type, left: u64, right: u64) -> bool {
    let order = match kind {
        Type::F32 => single(left).partial_cmp(&single(right)),
        Type::F64 => f64::from_bits(left).partial_cmp(&f64::from_bits(right)),
        Type::Signed(_) => Some(kind.signed(left).cmp(&kind.signed(right))),
        _ => Some(kind.cut(left).cmp(&kind.cut(right))),
    };
    match order {
        Some(std::cmp::Ordering::Less) => comparison.less,
        Some(std::cmp::Ordering::Equal) => comparison.equal,
        Some(std::cmp::Ordering::Greater) => comparison.greater,
        None => comparison.unordered,
    }
}

fn convert(rounding: Rounding, to: Type, from: Type, value: u64) -> u64 {
    let real = match from {
        Type::F32 => Some(f64::from(single(value))),
        Type::F64 => Some(f64::from_bits(value)),
        _ => None,
    };
    let Some(real) = real else {
        return match (from, to) {
            (Type::Signed(_), Type::F32) => u64::from((from.signed(value) as f32).to_bits()),
            (Type::Signed(_), Type::F64) => (from.signed(value) as f64).to_bits(),
            (_, Type::F32) => u64::from((from.cut(value) as f32).to_bits()),
            (_, Type::F64) => (from.cut(value) as f64).to_bits(),
            (Type::Signed(_), _) => to.cut(from.signed(value) as u64),
            _ => to.cut(from.cut(value)),
        };
    };
    let rounded = match rounding {
        Rounding::Nearest => real.round_ties_even(),
        Rounding::Zero => real.trunc(),
        Rounding::Down => real.floor(),
        Rounding::Up => real.ceil(),
    };
    match (from, to) {
        // Between real numbers only the change of width rounds, unless the name asks for a whole number.
        (Type::F64, Type::F32) => u64::from((real as f32).to_bits()),
        (Type::F32, Type::F64) => real.to_bits(),
        (Type::F32, Type::F32) => u64::from((rounded as f32).to_bits()),
        (_, Type::F64) => rounded.to_bits(),
        (_, Type::Signed(bits)) => {
            let limit = (1i128 << (bits - 1)) as f64;
            to.cut(if rounded.is_nan() { 0 } else { rounded.clamp(-limit, limit - 1.0) as i64 as u64 })
        }
        _ => to.cut(rounded as u64),
    }
}
