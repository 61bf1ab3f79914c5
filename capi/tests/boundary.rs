//! The functions as a program in C calls them.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char};
use std::ptr;

use plumbline::*;

const LOG_PROB: [f32; 4] = [-1.0, -2.0, -0.5, f32::NAN];
const REF_LOG_PROB: [f32; 4] = [-0.5, -2.5, -0.5, 0.0];
const MASK: [u8; 4] = [1, 1, 1, 0];
const SHAPE: [usize; 2] = [2, 2];

fn input(name: &CStr) -> PlumblineInput {
    PlumblineInput {
        name: name.as_ptr(),
        shape: SHAPE.as_ptr(),
        rank: 2,
        f32: ptr::null(),
        f64: ptr::null(),
        mask: ptr::null(),
        index: ptr::null(),
    }
}

fn inputs() -> [PlumblineInput; 3] {
    [
        PlumblineInput { f32: LOG_PROB.as_ptr(), ..input(c"log_prob") },
        PlumblineInput { f32: REF_LOG_PROB.as_ptr(), ..input(c"ref_log_prob") },
        PlumblineInput { mask: MASK.as_ptr(), ..input(c"mask") },
    ]
}

fn call(operation: &CStr, inputs: &[PlumblineInput], params: &[PlumblineParam]) -> PlumblineCall {
    PlumblineCall {
        operation: operation.as_ptr(),
        dialect: ptr::null(),
        dtype: 32,
        params: params.as_ptr(),
        param_count: params.len(),
        inputs: inputs.as_ptr(),
        input_count: inputs.len(),
    }
}

fn output(name: &CStr, values: &mut [f32]) -> PlumblineOutput {
    PlumblineOutput { name: name.as_ptr(), f32: values.as_mut_ptr(), f64: ptr::null_mut(), length: values.len() }
}

/// Status, argument, index and message of a call.
fn run(call: &PlumblineCall, outputs: &[PlumblineOutput]) -> (PlumblineStatus, Option<&'static str>, i64, String) {
    let mut error = PlumblineError::none();
    // SAFETY: the pointers lead to slices and constants of this file, which live longer than the call.
    let status = unsafe { plumbline_evaluate(call, outputs.as_ptr(), outputs.len(), &mut error) };
    assert_eq!(status, error.status);
    (status, error.argument.as_str(), error.index, error.text())
}

#[test]
fn values_and_gradients_are_written_where_the_caller_says() {
    let (mut kl, mut gradient) = ([9.0; 4], [9.0; 4]);
    let asked = [output(c"kl", &mut kl), output(c"d_log_prob", &mut gradient)];
    let ended = run(&call(c"kl.k2", &inputs(), &[]), &asked);
    assert_eq!(ended, (PlumblineStatus::Ok, None, PLUMBLINE_NO_INDEX, String::new()));
    assert_eq!(kl, [0.125, 0.125, 0.0, 0.0]);
    assert_eq!(gradient, [-0.5, 0.5, 0.0, 0.0]);
}

#[test]
fn what_a_caller_can_get_wrong_is_a_status() {
    let whole = inputs();
    let mut kl = [0.0; 4];
    let pointer = kl.as_mut_ptr();
    let asked = |length: usize| [PlumblineOutput { name: c"kl".as_ptr(), f32: pointer, f64: ptr::null_mut(), length }];
    let ends = |call: PlumblineCall, outputs: &[PlumblineOutput], status: PlumblineStatus, words: &str| {
        let (got, _, _, message) = run(&call, outputs);
        assert_eq!((got, message.as_str()), (status, words));
    };
    let k2 = |inputs: &[PlumblineInput]| call(c"kl.k2", inputs, &[]);

    ends(call(c"kl.k9", &whole, &[]), &asked(4), PlumblineStatus::UnknownName, "no operation is called `kl.k9`");
    let unnamed = PlumblineCall { operation: ptr::null(), ..k2(&whole) };
    ends(unnamed, &asked(4), PlumblineStatus::NullPointer, "the operation's name is a null pointer");
    let not_text = [0xffu8, 0];
    let not_text = PlumblineCall { operation: not_text.as_ptr().cast::<c_char>(), ..k2(&whole) };
    ends(not_text, &asked(4), PlumblineStatus::BadText, "a name is not UTF-8");
    let foreign = PlumblineCall { dialect: c"nobody-1.0".as_ptr(), ..k2(&whole) };
    ends(foreign, &asked(4), PlumblineStatus::UnknownName, "no dialect of the operation is called `nobody-1.0`");
    ends(PlumblineCall { dtype: 16, ..k2(&whole) }, &asked(4), PlumblineStatus::NoSuchItem, "there is no such dtype");
    let words = "the list of inputs is a null pointer";
    ends(PlumblineCall { inputs: ptr::null(), ..k2(&whole) }, &asked(4), PlumblineStatus::NullPointer, words);

    let words = "`ref_log_prob` is required but was not given";
    ends(k2(&whole[..1]), &asked(4), PlumblineStatus::MissingInput, words);
    let twice = [whole[0], whole[0]];
    ends(k2(&twice), &asked(4), PlumblineStatus::Repeated, "`log_prob` was given twice");
    let misnamed = [whole[0], PlumblineInput { name: c"reference".as_ptr(), ..whole[1] }];
    ends(k2(&misnamed), &asked(4), PlumblineStatus::UnknownName, "no input of the operation is called `reference`");
    let real = "`log_prob` must be real numbers of the call's dtype, under the pointer of that name and no other";
    let empty = [PlumblineInput { f32: ptr::null(), ..whole[0] }, whole[1]];
    ends(k2(&empty), &asked(4), PlumblineStatus::WrongKind, real);
    let other = [PlumblineInput { f32: ptr::null(), f64: [0.0; 4].as_ptr(), ..whole[0] }, whole[1]];
    ends(k2(&other), &asked(4), PlumblineStatus::WrongKind, real);
    let both = [PlumblineInput { mask: MASK.as_ptr(), ..whole[0] }, whole[1]];
    ends(k2(&both), &asked(4), PlumblineStatus::WrongKind, real);
    let odd = [PlumblineInput { f32: LOG_PROB.as_ptr().cast::<u8>().wrapping_add(1).cast(), ..whole[0] }, whole[1]];
    let words = "`log_prob`: a pointer is not aligned for the numbers it leads to";
    ends(k2(&odd), &asked(4), PlumblineStatus::Misaligned, words);
    let flat = [whole[0], PlumblineInput { rank: 1, ..whole[1] }];
    let words = "`ref_log_prob` has a shape that the operation does not accept";
    ends(k2(&flat), &asked(4), PlumblineStatus::ShapeMismatch, words);
    let endless = [usize::MAX, 2];
    let endless = [PlumblineInput { shape: endless.as_ptr(), ..whole[0] }, whole[1]];
    let words = "`log_prob` has a shape that the operation does not accept";
    ends(k2(&endless), &asked(4), PlumblineStatus::ShapeMismatch, words);

    let (status, argument, index, message) = run(&k2(&whole[..2]), &asked(4));
    assert_eq!((status, argument, index), (PlumblineStatus::NonFinite, Some("log_prob"), 3));
    assert_eq!(message, "`log_prob` at index 3 is not finite");

    let words = "`kl` has 3 elements where the other arguments ask for 4";
    ends(k2(&whole), &asked(3), PlumblineStatus::LengthMismatch, words);
    let twice = [asked(4)[0], asked(4)[0]];
    ends(k2(&whole), &twice, PlumblineStatus::Repeated, "`kl` was given twice");
    let misnamed = [PlumblineOutput { name: c"loss".as_ptr(), ..asked(4)[0] }];
    ends(k2(&whole), &misnamed, PlumblineStatus::UnknownName, "no output of the operation is called `loss`");
    let nowhere = [PlumblineOutput { f32: ptr::null_mut(), ..asked(4)[0] }];
    let words = "`kl` must be a buffer of the call's dtype, under the pointer of that name";
    ends(k2(&whole), &nowhere, PlumblineStatus::WrongKind, words);
    let in_input = [PlumblineInput { f32: pointer, ..whole[0] }, whole[1], whole[2]];
    ends(k2(&in_input), &asked(4), PlumblineStatus::Overlap, "`kl`: the output's buffer overlaps another buffer");
    let in_output = [asked(4)[0], PlumblineOutput { name: c"d_log_prob".as_ptr(), ..asked(4)[0] }];
    let words = "`d_log_prob`: the output's buffer overlaps another buffer";
    ends(k2(&whole), &in_output, PlumblineStatus::Overlap, words);

    // Without a place for the error the status is all there is.
    // SAFETY: null pointers are allowed everywhere.
    let status = unsafe { plumbline_evaluate(ptr::null(), ptr::null(), 0, ptr::null_mut()) };
    assert_eq!(status, PlumblineStatus::NullPointer);
}

#[test]
fn parameters_are_set_by_kind() {
    let mut kl = [0.0; 4];
    let mut with = |param: PlumblineParam| {
        let (status, _, _, message) = run(&call(c"kl.k3", &inputs(), &[param]), &[output(c"kl", &mut kl)]);
        (status, message)
    };
    let find = |kind: PlumblineParamKind, may_be_none: bool| {
        (0..plumbline_operation_count()).find_map(|operation| {
            (0..64).find_map(|position| {
                let mut info = std::mem::MaybeUninit::<PlumblineParamInfo>::uninit();
                // SAFETY: `info` has room for the description and is read only after it was filled.
                let status = unsafe { plumbline_param(operation, position, info.as_mut_ptr()) };
                if status != PlumblineStatus::Ok {
                    return None;
                }
                // SAFETY: as above.
                let info = unsafe { info.assume_init() };
                (info.kind == kind && info.may_be_none == may_be_none).then_some((operation, info))
            })
        })
    };
    // The catalog has parameters of every kind.
    assert!(find(PlumblineParamKind::Number, false).is_some());
    assert!(find(PlumblineParamKind::Number, true).is_some());
    assert!(find(PlumblineParamKind::Flag, false).is_some());
    let (_, choice) = find(PlumblineParamKind::Name, false).unwrap();
    assert!(choice.choice_count > 1 && choice.default_name.as_str().is_some());

    let (status, message) = with(plumbline_param_number(c"nothing".as_ptr(), 1.0));
    assert_eq!(status, PlumblineStatus::UnknownName);
    assert_eq!(message, "no parameter of the operation is called `nothing`");
    let (status, message) = with(PlumblineParam { kind: 7, ..plumbline_param_none(c"difference_clamp".as_ptr()) });
    assert_eq!(
        (status, message.as_str()),
        (PlumblineStatus::NoSuchItem, "there is no such kind of a parameter's value")
    );
    let (status, _) = with(plumbline_param_flag(c"difference_clamp".as_ptr(), true));
    assert_eq!(status, PlumblineStatus::WrongKind);
    let (status, _) = with(plumbline_param_number(c"difference_clamp".as_ptr(), f64::NAN));
    assert_eq!(status, PlumblineStatus::OutOfRange);
    let (status, _) = with(plumbline_param_none(c"difference_clamp".as_ptr()));
    assert_eq!(status, PlumblineStatus::Ok);
}

#[test]
fn sizes_are_known_before_there_is_data() {
    let bare: Vec<PlumblineInput> = inputs().map(|whole| PlumblineInput { name: whole.name, ..input(c"") }).to_vec();
    let (mut shape, mut rank, mut length) = ([0; PLUMBLINE_MAX_RANK], 0, 0);
    let mut error = PlumblineError::none();
    let mut ask = |inputs: &[PlumblineInput], name: &CStr| {
        let call = call(c"kl.k2", inputs, &[]);
        // SAFETY: the pointers lead to locals of this function.
        let status = unsafe {
            plumbline_output_shape(&call, name.as_ptr(), shape.as_mut_ptr(), &mut rank, &mut length, &mut error)
        };
        (status, shape, rank, length)
    };
    let (status, shape, rank, length) = ask(&bare, c"d_log_prob");
    assert_eq!((status, &shape[..rank], length), (PlumblineStatus::Ok, [2, 2].as_slice(), 4));
    assert_eq!(ask(&[], c"kl").0, PlumblineStatus::MissingInput);
    assert_eq!(ask(&bare, c"loss").0, PlumblineStatus::UnknownName);
    // SAFETY: as above; null is allowed for what the caller does not want.
    let status = unsafe {
        let call = call(c"kl.k2", &bare, &[]);
        plumbline_output_shape(
            &call,
            c"kl".as_ptr(),
            ptr::null_mut(),
            ptr::null_mut(),
            ptr::null_mut(),
            ptr::null_mut(),
        )
    };
    assert_eq!(status, PlumblineStatus::NullPointer);
}

#[test]
fn the_catalog_can_be_read_to_the_end() {
    use plumbline_core::catalog;
    assert_eq!(plumbline_operation_count(), catalog::operations().count());
    for (position, expected) in catalog::operations().enumerate() {
        let mut found = usize::MAX;
        let id = std::ffi::CString::new(expected.id).unwrap();
        // SAFETY: the pointers lead to locals of this loop.
        assert_eq!(unsafe { plumbline_find(id.as_ptr(), &mut found) }, PlumblineStatus::Ok);
        assert_eq!(found, position);
        let mut info = std::mem::MaybeUninit::<PlumblineOperationInfo>::uninit();
        // SAFETY: as above; read only after it was filled.
        let info = unsafe {
            assert_eq!(plumbline_operation(position, info.as_mut_ptr()), PlumblineStatus::Ok);
            info.assume_init()
        };
        assert_eq!(info.id.as_str(), Some(expected.id));
        assert_eq!((info.input_count, info.output_count), (expected.inputs.len(), expected.outputs.len()));
        for (output, expected) in expected.outputs.iter().enumerate() {
            let mut info = std::mem::MaybeUninit::<PlumblineOutputInfo>::uninit();
            // SAFETY: as above.
            let info = unsafe {
                assert_eq!(plumbline_output(position, output, info.as_mut_ptr()), PlumblineStatus::Ok);
                info.assume_init()
            };
            assert_eq!(info.name.as_str(), Some(expected.name));
            assert_eq!(info.gradient_of.as_str(), expected.gradient_of);
            assert_eq!(info.shape.rank, expected.shape.len());
        }
    }
    let mut info = std::mem::MaybeUninit::<PlumblineOperationInfo>::uninit();
    // SAFETY: nothing is written, as there is no such operation.
    let status = unsafe { plumbline_operation(plumbline_operation_count(), info.as_mut_ptr()) };
    assert_eq!(status, PlumblineStatus::NoSuchItem);
}

#[test]
fn threads_do_not_disturb_each_other() {
    let one = || {
        let mut kl = [0.0; 4];
        for _ in 0..2000 {
            assert_eq!(run(&call(c"kl.k3", &inputs(), &[]), &[output(c"kl", &mut kl)]).0, PlumblineStatus::Ok);
        }
        kl.map(f32::to_bits)
    };
    let expected = one();
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(one)).collect();
        for thread in threads {
            assert_eq!(thread.join().unwrap(), expected);
        }
    });
}
