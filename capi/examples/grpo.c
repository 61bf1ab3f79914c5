/* The GRPO loss of two responses with its gradient, what a refusal looks like, and the catalog.
   Ends with 0 where everything is as it should be. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <plumbline.h>

#define ROWS 2
#define COLUMNS 3

static int list_family(const char *family) {
  int found = 0;
  for (size_t position = 0; position < plumbline_operation_count(); position++) {
    struct PlumblineOperationInfo operation;
    if (plumbline_operation(position, &operation) != PLUMBLINE_STATUS_OK) return 0;
    if (operation.family.length != strlen(family) || memcmp(operation.family.data, family, strlen(family)) != 0) {
      continue;
    }
    printf("%.*s: %.*s\n", (int)operation.id.length, operation.id.data, (int)operation.title.length,
           operation.title.data);
    found++;
  }
  return found;
}

int main(void) {
  const size_t shape[] = {ROWS, COLUMNS};
  /* The second response has one token less: what stands there, even if it is no number, touches nothing. */
  const float log_prob[ROWS * COLUMNS] = {-1.0f, -0.5f, -2.0f, -0.25f, -1.5f, NAN};
  const float advantage[ROWS] = {1.0f, -0.5f};
  const uint8_t mask[ROWS * COLUMNS] = {1, 1, 1, 1, 1, 0};

  /* The policy is the one that sampled, so every ratio is 1, and the loss is minus the mean advantage. */
  struct PlumblineInput inputs[4] = {
      {.name = "log_prob", .shape = shape, .rank = 2, .f32 = log_prob},
      {.name = "old_log_prob", .shape = shape, .rank = 2, .f32 = log_prob},
      {.name = "advantage", .shape = shape, .rank = 1, .f32 = advantage},
      {.name = "mask", .shape = shape, .rank = 2, .mask = mask},
  };
  const struct PlumblineParam params[] = {
      plumbline_param_number("clip_ratio_high", 0.28),
      plumbline_param_name("aggregation", "seq_mean_token_mean"),
  };
  struct PlumblineCall call = {.operation = "objective.grpo",
                               .dtype = PLUMBLINE_DTYPE_F32,
                               .params = params,
                               .param_count = 2,
                               .inputs = inputs,
                               .input_count = 4};

  /* How large the outputs are. */
  struct PlumblineError error;
  size_t sizes[PLUMBLINE_MAX_RANK], rank, length;
  if (plumbline_output_shape(&call, "d_log_prob", sizes, &rank, &length, &error) != PLUMBLINE_STATUS_OK) {
    fprintf(stderr, "%s\n", error.message);
    return EXIT_FAILURE;
  }
  printf("d_log_prob has rank %zu and %zu numbers\n", rank, length);
  float *gradient = malloc(length * sizeof *gradient);
  if (gradient == NULL) return EXIT_FAILURE;

  float loss;
  const struct PlumblineOutput outputs[] = {{.name = "loss", .f32 = &loss, .length = 1},
                                            {.name = "d_log_prob", .f32 = gradient, .length = length}};
  if (plumbline_evaluate(&call, outputs, 2, &error) != PLUMBLINE_STATUS_OK) {
    fprintf(stderr, "%s\n", error.message);
    free(gradient);
    return EXIT_FAILURE;
  }
  printf("loss %a, gradient", (double)loss);
  for (size_t slot = 0; slot < length; slot++) printf(" %a", (double)gradient[slot]);
  printf("\n");
  int right = loss == -0.25f && gradient[3] == 0.125f && gradient[5] == 0.0f;
  right = right && gradient[0] == -0.5f / 3.0f && gradient[0] == gradient[2];
  free(gradient);

  /* A refusal names the argument and the element. */
  inputs[3].name = "keep";
  const PlumblineStatus status = plumbline_evaluate(&call, outputs, 1, &error);
  printf("refused: %s (status %" PRId32 ", argument %.*s, index %" PRId64 ")\n", error.message, (int32_t)status,
         (int)error.argument.length, error.argument.data, error.index);
  right = right && status == PLUMBLINE_STATUS_NON_FINITE && error.index == 5;

  right = right && list_family("kl") > 3;
  return right ? EXIT_SUCCESS : EXIT_FAILURE;
}
