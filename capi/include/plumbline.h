/* Plumbline for C and C++. Generated from the source of capi/ by `cargo xtask capi header`; do not edit. */

/* Everything is const for the library but what a function is asked to fill. Nothing is allocated and no state is kept: every
   function may be called from any number of threads. The chapter on C in the book (docs/src/c.md) shows their use. */

#ifndef PLUMBLINE_H
#define PLUMBLINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 The most sizes that a shape has.
 */
#define PLUMBLINE_MAX_RANK 8

/*
 Stands in an error's `index` where no element is at fault.
 */
#define PLUMBLINE_NO_INDEX -1

/*
 How many bytes an error's message may take, the zero byte included.
 */
#define PLUMBLINE_MESSAGE_SIZE 256

/*
 How a call ended. Everything but `PLUMBLINE_STATUS_OK` is an error; after an error, what the outputs hold is unspecified.
 */
enum PlumblineStatus
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /*
   Done.
   */
  PLUMBLINE_STATUS_OK = 0,
  /*
   A pointer that must lead somewhere is null.
   */
  PLUMBLINE_STATUS_NULL_POINTER = 1,
  /*
   A pointer is not aligned for what it leads to.
   */
  PLUMBLINE_STATUS_MISALIGNED = 2,
  /*
   An output's buffer overlaps another buffer.
   */
  PLUMBLINE_STATUS_OVERLAP = 3,
  /*
   A name is not UTF-8.
   */
  PLUMBLINE_STATUS_BAD_TEXT = 4,
  /*
   A number that says which of several is meant (a position, a dtype, a kind) means none of them.
   */
  PLUMBLINE_STATUS_NO_SUCH_ITEM = 5,
  /*
   No operation, input, parameter, output, dialect or choice has that name.
   */
  PLUMBLINE_STATUS_UNKNOWN_NAME = 6,
  /*
   An input, a parameter or an output was given twice.
   */
  PLUMBLINE_STATUS_REPEATED = 7,
  /*
   A required input is missing.
   */
  PLUMBLINE_STATUS_MISSING_INPUT = 8,
  /*
   An output in which the operation works (`workspace` in its description) was not asked for: provide its buffer.
   */
  PLUMBLINE_STATUS_MISSING_WORKSPACE = 9,
  /*
   An input or a parameter is of another kind than the operation expects.
   */
  PLUMBLINE_STATUS_WRONG_KIND = 10,
  /*
   A buffer has another length than its shape asks for.
   */
  PLUMBLINE_STATUS_LENGTH_MISMATCH = 11,
  /*
   An input's shape is none of those that the operation accepts, or disagrees with another input's.
   */
  PLUMBLINE_STATUS_SHAPE_MISMATCH = 12,
  /*
   A value that the mask keeps is NaN or infinite.
   */
  PLUMBLINE_STATUS_NON_FINITE = 13,
  /*
   A number is outside its legal range.
   */
  PLUMBLINE_STATUS_OUT_OF_RANGE = 14,
  /*
   There is nothing, or too little, to compute from: an empty mask, a group that is too small.
   */
  PLUMBLINE_STATUS_TOO_FEW = 15,
  /*
   A linear system is singular.
   */
  PLUMBLINE_STATUS_SINGULAR = 16,
  /*
   An iteration did not reach its tolerance.
   */
  PLUMBLINE_STATUS_NO_CONVERGENCE = 17,
  /*
   The operation refused for a reason that this version has no number for; the message says it.
   */
  PLUMBLINE_STATUS_REFUSED = 18,
  /*
   The library broke down: a defect, please report it.
   */
  PLUMBLINE_STATUS_INTERNAL = 19,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum PlumblineStatus PlumblineStatus;
#else
typedef int32_t PlumblineStatus;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/*
 Which pointer of a `PlumblineInput` an input's numbers stand under.
 */
enum PlumblineNumbers
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /*
   `f32` or `f64`, by the call's dtype.
   */
  PLUMBLINE_NUMBERS_REAL = 0,
  /*
   `mask`.
   */
  PLUMBLINE_NUMBERS_MASK = 1,
  /*
   `index`.
   */
  PLUMBLINE_NUMBERS_INDEX = 2,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum PlumblineNumbers PlumblineNumbers;
#else
typedef uint32_t PlumblineNumbers;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/*
 What a parameter is set to.
 */
enum PlumblineParamKind
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /*
   Nothing: an optional number is switched off.
   */
  PLUMBLINE_PARAM_KIND_NONE = 0,
  /*
   A number, `number`; whole where the parameter is.
   */
  PLUMBLINE_PARAM_KIND_NUMBER = 1,
  /*
   Yes or no: `number` is not 0, or 0.
   */
  PLUMBLINE_PARAM_KIND_FLAG = 2,
  /*
   One of the parameter's names, `text`.
   */
  PLUMBLINE_PARAM_KIND_NAME = 3,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum PlumblineParamKind PlumblineParamKind;
#else
typedef uint32_t PlumblineParamKind;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/*
 The precision to compute in.
 */
enum PlumblineDtype
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /*
   `float`.
   */
  PLUMBLINE_DTYPE_F32 = 32,
  /*
   `double`.
   */
  PLUMBLINE_DTYPE_F64 = 64,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum PlumblineDtype PlumblineDtype;
#else
typedef uint32_t PlumblineDtype;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/*
 A parameter that is not left at its default.
 */
typedef struct PlumblineParam {
  /*
   The parameter's name.
   */
  const char *name;
  /*
   What it is set to: a `PlumblineParamKind`.
   */
  uint32_t kind;
  /*
   The number or flag.
   */
  double number;
  /*
   The name.
   */
  const char *text;
} PlumblineParam;

/*
 Text of the library: UTF-8, not terminated by a zero byte, valid for as long as the library is loaded.
 `printf("%.*s", (int)text.length, text.data)` prints it.
 */
typedef struct PlumblineText {
  /*
   The first byte; null where there is no text.
   */
  const char *data;
  /*
   How many bytes.
   */
  size_t length;
} PlumblineText;

/*
 An operation.
 */
typedef struct PlumblineOperationInfo {
  /*
   Its identifier.
   */
  struct PlumblineText id;
  /*
   The family it belongs to.
   */
  struct PlumblineText family;
  /*
   Its name in the literature.
   */
  struct PlumblineText title;
  /*
   One sentence.
   */
  struct PlumblineText summary;
  /*
   The value (TeX).
   */
  struct PlumblineText formula;
  /*
   The gradient (TeX); empty where no input is trainable.
   */
  struct PlumblineText gradient;
  /*
   Ties, stopped gradients, edge cases, and how known libraries differ.
   */
  struct PlumblineText notes;
  /*
   How many inputs it has.
   */
  size_t input_count;
  /*
   How many parameters.
   */
  size_t param_count;
  /*
   How many outputs.
   */
  size_t output_count;
  /*
   How many dialects.
   */
  size_t dialect_count;
  /*
   How many sources.
   */
  size_t source_count;
} PlumblineOperationInfo;

/*
 An input of an operation.
 */
typedef struct PlumblineInputInfo {
  /*
   Its name.
   */
  struct PlumblineText name;
  /*
   What it is, with its unit.
   */
  struct PlumblineText meaning;
  /*
   Which pointer its numbers stand under.
   */
  PlumblineNumbers numbers;
  /*
   Whether it may be left out.
   */
  bool optional;
  /*
   How many shapes are accepted.
   */
  size_t shape_count;
} PlumblineInputInfo;

/*
 A shape as a list of named dimensions; rank 0 is a scalar.
 */
typedef struct PlumblineShapeInfo {
  /*
   How many dimensions.
   */
  size_t rank;
  /*
   Their names, outermost first.
   */
  struct PlumblineText dimensions[PLUMBLINE_MAX_RANK];
} PlumblineShapeInfo;

/*
 A parameter of an operation.
 */
typedef struct PlumblineParamInfo {
  /*
   Its name.
   */
  struct PlumblineText name;
  /*
   Its symbol in the formula (TeX).
   */
  struct PlumblineText symbol;
  /*
   What it is, with its unit.
   */
  struct PlumblineText meaning;
  /*
   Of which kind its values are.
   */
  PlumblineParamKind kind;
  /*
   Whether it is a number that may be switched off.
   */
  bool may_be_none;
  /*
   Whether it is a whole number.
   */
  bool whole;
  /*
   Whether it is switched off by default.
   */
  bool default_is_none;
  /*
   The default: the number, or 1 or 0 for a flag.
   */
  double default_number;
  /*
   The default of a choice.
   */
  struct PlumblineText default_name;
  /*
   The smallest legal number, or what legal numbers are above.
   */
  double low;
  /*
   Whether `low` itself is legal.
   */
  bool low_inclusive;
  /*
   The largest legal number, or what legal numbers are below.
   */
  double high;
  /*
   Whether `high` itself is legal.
   */
  bool high_inclusive;
  /*
   How many names a choice has.
   */
  size_t choice_count;
} PlumblineParamInfo;

/*
 An output of an operation.
 */
typedef struct PlumblineOutputInfo {
  /*
   Its name.
   */
  struct PlumblineText name;
  /*
   What it is, with its unit.
   */
  struct PlumblineText meaning;
  /*
   Its shape.
   */
  struct PlumblineShapeInfo shape;
  /*
   For a gradient: the input by which the sum of the operation's first output is differentiated.
   */
  struct PlumblineText gradient_of;
  /*
   Whether the gradient leaves out a stopped factor.
   */
  bool stop_gradient;
  /*
   Whether the operation works in this buffer: it is provided with every call that determines its size, wanted or not.
   */
  bool workspace;
} PlumblineOutputInfo;

/*
 A named setting of the parameters.
 */
typedef struct PlumblineDialectInfo {
  /*
   Its name: `paper`, or a library and its version.
   */
  struct PlumblineText name;
  /*
   What differs from the default, in words.
   */
  struct PlumblineText note;
} PlumblineDialectInfo;

/*
 Where a formula comes from.
 */
typedef struct PlumblineSourceInfo {
  /*
   Title of the paper or book.
   */
  struct PlumblineText title;
  /*
   Its identifier.
   */
  struct PlumblineText reference;
  /*
   The place in it.
   */
  struct PlumblineText place;
} PlumblineSourceInfo;

/*
 An input: exactly one of the four pointers is set, the one that `plumbline_input` says (for real numbers the one of the
 call's dtype). It leads to as many numbers as the shape says, row-major.
 */
typedef struct PlumblineInput {
  /*
   The input's name.
   */
  const char *name;
  /*
   The sizes, outermost first; may be null where the rank is 0.
   */
  const size_t *shape;
  /*
   How many sizes.
   */
  size_t rank;
  /*
   Real numbers of a call in single precision.
   */
  const float *f32;
  /*
   Real numbers of a call in double precision.
   */
  const double *f64;
  /*
   A mask: bytes, 0 or not.
   */
  const uint8_t *mask;
  /*
   Indices, identifiers or counts.
   */
  const uint32_t *index;
} PlumblineInput;

/*
 What to evaluate. What it leads to is read and not kept.
 */
typedef struct PlumblineCall {
  /*
   The operation's identifier, such as `kl.k3`.
   */
  const char *operation;
  /*
   The dialect; null for the operation's defaults.
   */
  const char *dialect;
  /*
   The precision: a `PlumblineDtype`.
   */
  uint32_t dtype;
  /*
   Parameters that are not left at their defaults (or their dialect's settings).
   */
  const struct PlumblineParam *params;
  /*
   How many.
   */
  size_t param_count;
  /*
   The inputs.
   */
  const struct PlumblineInput *inputs;
  /*
   How many.
   */
  size_t input_count;
} PlumblineCall;

/*
 An output that the caller asks for: exactly one of the two pointers is set, the one of the call's dtype.
 */
typedef struct PlumblineOutput {
  /*
   The output's name.
   */
  const char *name;
  /*
   The buffer of a call in single precision.
   */
  float *f32;
  /*
   The buffer of a call in double precision.
   */
  double *f64;
  /*
   How many numbers the buffer holds: as many as `plumbline_output_shape` says.
   */
  size_t length;
} PlumblineOutput;

/*
 What is wrong; in memory of the caller.
 */
typedef struct PlumblineError {
  /*
   The status that the function returned.
   */
  PlumblineStatus status;
  /*
   The operation's argument at fault, where there is one.
   */
  struct PlumblineText argument;
  /*
   Flat (row-major) index of the element at fault; `PLUMBLINE_NO_INDEX` where there is none.
   */
  int64_t index;
  /*
   One sentence, terminated by a zero byte.
   */
  char message[PLUMBLINE_MESSAGE_SIZE];
} PlumblineError;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/*
 A parameter set to a number.
 */
struct PlumblineParam plumbline_param_number(const char *name, double number);

/*
 A parameter set to yes or no.
 */
struct PlumblineParam plumbline_param_flag(const char *name, bool flag);

/*
 A parameter set to one of its names.
 */
struct PlumblineParam plumbline_param_name(const char *name, const char *text);

/*
 An optional number, switched off.
 */
struct PlumblineParam plumbline_param_none(const char *name);

/*
 The version of the library.
 */
struct PlumblineText plumbline_version(void);

/*
 How many operations the catalog has.
 */
size_t plumbline_operation_count(void);

/*
 The position of the operation of that identifier.

 # Safety
 Here and in the other functions that describe: a name ends in a zero byte, and a pointer to what is filled leads to memory
 for it. Null pointers are an error, not a danger.
 */
PlumblineStatus plumbline_find(const char *id,
                               size_t *position);

/*
 The operation at a position of the catalog.

 # Safety
 As for `plumbline_find`.
 */
PlumblineStatus plumbline_operation(size_t position, struct PlumblineOperationInfo *info);

/*
 An input of an operation.

 # Safety
 As for `plumbline_find`.
 */
PlumblineStatus plumbline_input(size_t operation, size_t input, struct PlumblineInputInfo *info);

/*
 One of the shapes that an input is accepted in.

 # Safety
 As for `plumbline_find`.
 */
PlumblineStatus plumbline_input_shape(size_t operation,
                                      size_t input,
                                      size_t shape,
                                      struct PlumblineShapeInfo *info);

/*
 A parameter of an operation.

 # Safety
 As for `plumbline_find`.
 */
PlumblineStatus plumbline_param(size_t operation, size_t param, struct PlumblineParamInfo *info);

/*
 One of the names that a choice may be set to.

 # Safety
 As for `plumbline_find`.
 */
PlumblineStatus plumbline_param_choice(size_t operation,
                                       size_t param,
                                       size_t choice,
                                       struct PlumblineText *text);

/*
 An output of an operation.

 # Safety
 As for `plumbline_find`.
 */
PlumblineStatus plumbline_output(size_t operation, size_t output, struct PlumblineOutputInfo *info);

/*
 A dialect of an operation.

 # Safety
 As for `plumbline_find`.
 */
PlumblineStatus plumbline_dialect(size_t operation, size_t dialect, struct PlumblineDialectInfo *info);

/*
 A source of an operation.

 # Safety
 As for `plumbline_find`.
 */
PlumblineStatus plumbline_source(size_t operation, size_t source, struct PlumblineSourceInfo *info);

/*
 Evaluate an operation: the outputs that are asked for are written to the caller's buffers.

 An output that is not asked for is not computed, where that saves work. `error` may be null.

 # Safety
 Every pointer is null or leads to what its description says: names end in a zero byte, arrays hold as many elements as
 is said, and no other thread writes to any of it during the call.
 */
PlumblineStatus plumbline_evaluate(const struct PlumblineCall *call,
                                   const struct PlumblineOutput *outputs,
                                   size_t output_count,
                                   struct PlumblineError *error);

/*
 How large an output of a call is: its sizes, outermost first, go to `shape`, which holds `PLUMBLINE_MAX_RANK` of them,
 their number to `rank`, their product to `length`. Only the names, parameters and shapes of the call are looked at;
 its inputs need no data yet. `shape`, `rank` and `error` may be null.

 `PLUMBLINE_STATUS_MISSING_INPUT` where the inputs that are given do not determine the size.

 # Safety
 As for `plumbline_evaluate`.
 */
PlumblineStatus plumbline_output_shape(const struct PlumblineCall *call,
                                       const char *output,
                                       size_t *shape,
                                       size_t *rank,
                                       size_t *length,
                                       struct PlumblineError *error);

/*
 A parameter set to a number.
 */
struct PlumblineParam plumbline_param_number(const char *name, double number);

/*
 A parameter set to yes or no.
 */
struct PlumblineParam plumbline_param_flag(const char *name, bool flag);

/*
 A parameter set to one of its names.
 */
struct PlumblineParam plumbline_param_name(const char *name, const char *text);

/*
 An optional number, switched off.
 */
struct PlumblineParam plumbline_param_none(const char *name);

/*
 The version of the library.
 */
struct PlumblineText plumbline_version(void);

/*
 How many operations the catalog has.
 */
size_t plumbline_operation_count(void);

/*
 The position of the operation of that identifier.

 # Safety
 Here and in the other functions that describe: a name ends in a zero byte, and a pointer to what is filled leads to memory
 for it. Null pointers are an error, not a danger.
 */
PlumblineStatus plumbline_find(const char *id,
                               size_t *position);

/*
 The operation at a position of the catalog.

 # Safety
 As for `plumbline_find`.
 */
PlumblineStatus plumbline_operation(size_t position, struct PlumblineOperationInfo *info);

/*
 An input of an operation.

 # Safety
 As for `plumbline_find`.
 */
PlumblineStatus plumbline_input(size_t operation, size_t input, struct PlumblineInputInfo *info);

/*
 One of the shapes that an input is accepted in.

 # Safety
 As for `plumbline_find`.
 */
PlumblineStatus plumbline_input_shape(size_t operation,
                                      size_t input,
                                      size_t shape,
                                      struct PlumblineShapeInfo *info);

/*
 A parameter of an operation.

 # Safety
 As for `plumbline_find`.
 */
PlumblineStatus plumbline_param(size_t operation, size_t param, struct PlumblineParamInfo *info);

/*
 One of the names that a choice may be set to.

 # Safety
 As for `plumbline_find`.
 */
PlumblineStatus plumbline_param_choice(size_t operation,
                                       size_t param,
                                       size_t choice,
                                       struct PlumblineText *text);

/*
 An output of an operation.

 # Safety
 As for `plumbline_find`.
 */
PlumblineStatus plumbline_output(size_t operation, size_t output, struct PlumblineOutputInfo *info);

/*
 A dialect of an operation.

 # Safety
 As for `plumbline_find`.
 */
PlumblineStatus plumbline_dialect(size_t operation, size_t dialect, struct PlumblineDialectInfo *info);

/*
 A source of an operation.

 # Safety
 As for `plumbline_find`.
 */
PlumblineStatus plumbline_source(size_t operation, size_t source, struct PlumblineSourceInfo *info);

/*
 Evaluate an operation: the outputs that are asked for are written to the caller's buffers.

 An output that is not asked for is not computed, where that saves work. `error` may be null.

 # Safety
 Every pointer is null or leads to what its description says: names end in a zero byte, arrays hold as many elements as
 is said, and no other thread writes to any of it during the call.
 */
PlumblineStatus plumbline_evaluate(const struct PlumblineCall *call,
                                   const struct PlumblineOutput *outputs,
                                   size_t output_count,
                                   struct PlumblineError *error);

/*
 How large an output of a call is: its sizes, outermost first, go to `shape`, which holds `PLUMBLINE_MAX_RANK` of them,
 their number to `rank`, their product to `length`. Only the names, parameters and shapes of the call are looked at;
 its inputs need no data yet. `shape`, `rank` and `error` may be null.

 `PLUMBLINE_STATUS_MISSING_INPUT` where the inputs that are given do not determine the size.

 # Safety
 As for `plumbline_evaluate`.
 */
PlumblineStatus plumbline_output_shape(const struct PlumblineCall *call,
                                       const char *output,
                                       size_t *shape,
                                       size_t *rank,
                                       size_t *length,
                                       struct PlumblineError *error);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* PLUMBLINE_H */
