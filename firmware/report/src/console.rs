//! Text without the standard library's formatting, whose paths can panic.

/// Where text goes.
pub struct Console<'a> {
    put: &'a mut dyn FnMut(&[u8]),
}

impl<'a> Console<'a> {
    /// Text goes to `put`.
    pub fn new(put: &'a mut dyn FnMut(&[u8])) -> Self {
        Console { put }
    }

    /// A text.
    pub fn write(&mut self, text: &str) {
        (self.put)(text.as_bytes());
    }

    /// A number in decimal.
    pub fn write_number(&mut self, number: usize) {
        let mut digits = [b'0'; 10];
        let mut rest = number;
        let mut length = 1;
        for (place, digit) in digits.iter_mut().rev().enumerate() {
            *digit = b'0' + (rest % 10) as u8;
            if *digit != b'0' {
                length = place + 1;
            }
            rest /= 10;
        }
        for digit in digits.iter().skip(digits.len() - length) {
            (self.put)(core::slice::from_ref(digit));
        }
    }

    /// 64 bits in hexadecimal.
    pub fn write_hash(&mut self, hash: u64) {
        for place in (0..16).rev() {
            let nibble = (hash >> (4 * place)) as u8 & 15;
            let digit = if nibble < 10 { b'0' + nibble } else { b'a' + nibble - 10 };
            (self.put)(&[digit]);
        }
    }
}
