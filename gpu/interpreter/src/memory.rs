//! The device's memory: pieces with addresses of their own, each access checked.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Between two pieces lies room that belongs to none.
const GAP: u64 = 1 << 12;
/// Where pieces begin.
const FIRST: u64 = 1 << 40;

/// All pieces.
#[derive(Debug)]
pub struct Memory {
    pieces: BTreeMap<u64, Vec<u8>>,
    next: u64,
}

impl Default for Memory {
    fn default() -> Self {
        Memory { pieces: BTreeMap::new(), next: FIRST }
    }
}

impl Memory {
    /// A piece with that content.
    pub fn add(&mut self, content: Vec<u8>) -> u64 {
        let address = self.next;
        self.next += (content.len() as u64).next_multiple_of(GAP) + GAP;
        self.pieces.insert(address, content);
        address
    }

    fn place(&mut self, address: u64, bytes: usize) -> Result<&mut [u8], String> {
        if !address.is_multiple_of(bytes as u64) {
            return Err(format!("{bytes} bytes at {address:#x} are not aligned"));
        }
        let (start, piece) = self.pieces.range_mut(..=address).next_back().ok_or("an address below all memory")?;
        let offset = (address - start) as usize;
        piece.get_mut(offset..offset + bytes).ok_or_else(|| format!("{bytes} bytes at {address:#x} lie in no array"))
    }

    /// Bytes at an address, as a number.
    pub fn load(&mut self, address: u64, bytes: usize) -> Result<u64, String> {
        let mut number = [0; 8];
        number[..bytes].copy_from_slice(self.place(address, bytes)?);
        Ok(u64::from_le_bytes(number))
    }

    /// A number to bytes at an address.
    pub fn store(&mut self, address: u64, bytes: usize, number: u64) -> Result<(), String> {
        self.place(address, bytes)?.copy_from_slice(&number.to_le_bytes()[..bytes]);
        Ok(())
    }
}

/// A piece that is given back when dropped.
#[derive(Debug)]
pub struct Piece {
    pub address: u64,
    pub memory: Rc<RefCell<Memory>>,
}

impl Piece {
    /// Do something with its content.
    pub fn with<T>(&self, work: impl FnOnce(&mut Vec<u8>) -> T) -> T {
        let mut memory = self.memory.borrow_mut();
        work(memory.pieces.entry(self.address).or_default())
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        self.memory.borrow_mut().pieces.remove(&self.address);
    }
}
