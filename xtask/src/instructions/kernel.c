/* One kernel, evaluated once through the C library on numbers that are the same on every machine: what runs under valgrind
   for `cargo xtask instructions`. Arguments: operation, dtype (32 or 64), a list of the optional inputs that are given, and
   sizes such as B=32 T=512. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <plumbline.h>

#define MOST 32

static int sizes_given;
static char **sizes;

static size_t size_of(struct PlumblineText name) {
  for (int given = 0; given < sizes_given; given++) {
    const char *size = sizes[given];
    if (strncmp(size, name.data, name.length) == 0 && size[name.length] == '=') return strtoul(size + name.length + 1, NULL, 10);
  }
  fprintf(stderr, "no size of %.*s\n", (int)name.length, name.data);
  exit(2);
}

static double draw(void) {
  static unsigned long long state = 7;
  state = state * 6364136223846793005ULL + 1442695040888963407ULL;
  return (double)(state >> 11) / 9007199254740992.0;
}

/* A text of the library as a string; it is never freed, as the program ends soon. */
static char *string(struct PlumblineText text) {
  char *copy = malloc(text.length + 1);
  if (copy == NULL) exit(2);
  memcpy(copy, text.data, text.length);
  copy[text.length] = 0;
  return copy;
}

static int is_listed(const char *list, const char *name) {
  const char *found = strstr(list, name);
  const size_t length = strlen(name);
  return found != NULL && (found == list || found[-1] == ',') && (found[length] == 0 || found[length] == ',');
}

static void *numbers(size_t count, size_t width) {
  void *memory = calloc(count == 0 ? 1 : count, width);
  if (memory == NULL) exit(2);
  return memory;
}

int main(int argc, char **argv) {
  if (argc < 4) return 2;
  sizes = argv + 4;
  sizes_given = argc - 4;
  const int is_single = strcmp(argv[2], "32") == 0;
  size_t position;
  struct PlumblineOperationInfo operation;
  if (plumbline_find(argv[1], &position) != PLUMBLINE_STATUS_OK) return 2;
  if (plumbline_operation(position, &operation) != PLUMBLINE_STATUS_OK) return 2;

  struct PlumblineInput inputs[MOST];
  size_t used = 0;
  for (size_t at = 0; at < operation.input_count && used < MOST; at++) {
    struct PlumblineInputInfo info;
    struct PlumblineShapeInfo shape;
    if (plumbline_input(position, at, &info) != PLUMBLINE_STATUS_OK) return 2;
    if (plumbline_input_shape(position, at, 0, &shape) != PLUMBLINE_STATUS_OK) return 2;
    char *name = string(info.name);
    if (info.optional && !is_listed(argv[3], name)) continue;
    size_t count = 1, *given = numbers(PLUMBLINE_MAX_RANK, sizeof(size_t));
    for (size_t axis = 0; axis < shape.rank; axis++) count *= given[axis] = size_of(shape.dimensions[axis]);
    struct PlumblineInput input = {.name = name, .shape = given, .rank = shape.rank};
    const size_t last = shape.rank == 0 ? 1 : given[shape.rank - 1];
    if (info.numbers == PLUMBLINE_NUMBERS_MASK) {
      unsigned char *mask = numbers(count, 1);
      for (size_t slot = 0; slot < count; slot++) mask[slot] = slot % last < last - slot / last % 5;
      input.mask = mask;
    } else if (info.numbers == PLUMBLINE_NUMBERS_INDEX) {
      uint32_t *index = numbers(count, sizeof(uint32_t));
      for (size_t slot = 0; slot < count; slot++) index[slot] = (uint32_t)(slot / 4);
      input.index = index;
    } else {
      float *single = numbers(count, sizeof(float));
      double *wide = numbers(count, sizeof(double));
      const int is_distribution = strcmp(name, "transition") == 0 || strcmp(name, "policy") == 0;
      for (size_t slot = 0; slot < count; slot++) wide[slot] = draw();
      for (size_t row = 0; row < count; row += last) {
        double sum = 0.0;
        for (size_t slot = row; slot < row + last; slot++) sum += wide[slot];
        for (size_t slot = row; slot < row + last; slot++) {
          wide[slot] = is_distribution ? wide[slot] / sum : -2.0 * wide[slot];
        }
      }
      for (size_t slot = 0; slot < count; slot++) single[slot] = (float)wide[slot];
      input.f32 = is_single ? single : NULL;
      input.f64 = is_single ? NULL : wide;
    }
    inputs[used++] = input;
  }
  struct PlumblineCall call = {.operation = argv[1],
                               .dtype = is_single ? PLUMBLINE_DTYPE_F32 : PLUMBLINE_DTYPE_F64,
                               .inputs = inputs,
                               .input_count = used};
  struct PlumblineError error;
  struct PlumblineOutput outputs[MOST];
  size_t asked = 0;
  for (size_t at = 0; at < operation.output_count && asked < MOST; at++) {
    struct PlumblineOutputInfo info;
    if (plumbline_output(position, at, &info) != PLUMBLINE_STATUS_OK) return 2;
    if (info.gradient_of.data != NULL) {
      size_t given = 0;
      while (given < used && strcmp(inputs[given].name, string(info.gradient_of)) != 0) given++;
      if (given == used) continue;
    }
    char *name = string(info.name);
    size_t length;
    if (plumbline_output_shape(&call, name, NULL, NULL, &length, NULL) != PLUMBLINE_STATUS_OK) continue;
    struct PlumblineOutput output = {.name = name, .length = length};
    if (is_single) {
      output.f32 = numbers(length, sizeof(float));
    } else {
      output.f64 = numbers(length, sizeof(double));
    }
    outputs[asked++] = output;
  }
  if (plumbline_evaluate(&call, outputs, asked, &error) != PLUMBLINE_STATUS_OK) {
    fprintf(stderr, "%s: %s\n", argv[1], error.message);
    return 1;
  }
  return 0;
}
