//! What stands between the caller and the library's own code.
#![allow(unsafe_code)]

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::status::{PlumblineError, PlumblineStatus, Refused};

/// Run `body`; write down how it ended where the caller gave a place for it. No panic goes further than this.
///
/// # Safety
/// `error` is null or leads to memory for an error that nobody else uses during the call.
pub(crate) unsafe fn guarded<'a>(
    error: *mut PlumblineError,
    body: impl FnOnce() -> Result<(), Refused<'a>>,
) -> PlumblineStatus {
    let told = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => PlumblineError::none(),
        Ok(Err(refused)) => refused.told(),
        Err(_) => Refused::Internal.told(),
    };
    if !error.is_null() && error.is_aligned() {
        // SAFETY: not null and aligned; the rest is what this function asks of its caller.
        unsafe { error.write(told) };
    }
    told.status
}

/// Read what a pointer leads to.
///
/// # Safety
/// Where it is not null and aligned, `pointer` leads to a `T` that stays unchanged for `'a`.
pub(crate) unsafe fn read<'a, T>(pointer: *const T, what: &'static str) -> Result<&'a T, Refused<'a>> {
    if pointer.is_null() {
        return Err(Refused::Null(what));
    }
    if !pointer.is_aligned() {
        return Err(Refused::Misaligned(what));
    }
    // SAFETY: not null and aligned; the rest is what this function asks of its caller.
    Ok(unsafe { &*pointer })
}

/// Write to where a pointer leads.
///
/// # Safety
/// Where it is not null and aligned, `pointer` leads to memory for a `T` that nobody else uses during the call.
pub(crate) unsafe fn write<T>(pointer: *mut T, what: &'static str, value: T) -> Result<(), Refused<'static>> {
    if pointer.is_null() {
        return Err(Refused::Null(what));
    }
    if !pointer.is_aligned() {
        return Err(Refused::Misaligned(what));
    }
    // SAFETY: not null and aligned; the rest is what this function asks of its caller.
    unsafe { pointer.write(value) };
    Ok(())
}

/// A caller's array. Without elements, the pointer does not matter.
///
/// # Safety
/// Where it is not null and aligned, `pointer` leads to `length` elements that stay unchanged for `'a`.
pub(crate) unsafe fn slice<'a, T>(
    pointer: *const T,
    length: usize,
    what: &'static str,
) -> Result<&'a [T], Refused<'a>> {
    if length == 0 {
        return Ok(&[]);
    }
    check(pointer, length, what)?;
    // SAFETY: not null, aligned, and not larger than memory can be; the rest is what this function asks of its caller.
    Ok(unsafe { std::slice::from_raw_parts(pointer, length) })
}

/// A caller's buffer. Without elements, the pointer does not matter.
///
/// # Safety
/// Where it is not null and aligned, `pointer` leads to `length` elements that nobody else uses for `'a`.
pub(crate) unsafe fn buffer<'a, T>(
    pointer: *mut T,
    length: usize,
    what: &'static str,
) -> Result<&'a mut [T], Refused<'a>> {
    if length == 0 {
        return Ok(&mut []);
    }
    check(pointer, length, what)?;
    // SAFETY: not null, aligned, and not larger than memory can be; the rest is what this function asks of its caller.
    Ok(unsafe { std::slice::from_raw_parts_mut(pointer, length) })
}

fn check<T>(pointer: *const T, length: usize, what: &'static str) -> Result<(), Refused<'static>> {
    if pointer.is_null() {
        return Err(Refused::Null(what));
    }
    if !pointer.is_aligned() {
        return Err(Refused::Misaligned(what));
    }
    match length.checked_mul(size_of::<T>()) {
        Some(bytes) if isize::try_from(bytes).is_ok() => Ok(()),
        _ => Err(Refused::NoSuchItem("size: an array of it would be larger than memory")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_a_status() {
        let mut error = PlumblineError::none();
        // SAFETY: `error` is a local of this function.
        let status = unsafe { guarded(&mut error, || panic!("as a defect would")) };
        assert_eq!((status, error.status), (PlumblineStatus::Internal, PlumblineStatus::Internal));
        assert_eq!(error.text(), "the library broke down; this is a defect of Plumbline");
    }
}
