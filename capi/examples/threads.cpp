// Generalised advantage estimation from C++ in two threads at once: no lock is needed, and the bits are the same.
#include <cstdio>
#include <cstring>
#include <string_view>
#include <thread>
#include <vector>

#include <plumbline.h>

namespace {

std::string_view view(PlumblineText text) {
  return text.data == nullptr ? std::string_view() : std::string_view(text.data, text.length);
}

std::vector<double> advantages(const std::vector<double> &reward, const std::vector<double> &value, size_t rows) {
  const size_t shape[] = {rows, reward.size() / rows};
  PlumblineInput inputs[2] = {};
  inputs[0].name = "reward";
  inputs[1].name = "value";
  inputs[0].f64 = reward.data();
  inputs[1].f64 = value.data();
  for (auto &input : inputs) {
    input.shape = shape;
    input.rank = 2;
  }
  const PlumblineParam params[] = {plumbline_param_number("gamma", 0.5), plumbline_param_number("gae_lambda", 0.5)};
  PlumblineCall call = {};
  call.operation = "advantage.gae";
  call.dtype = static_cast<uint32_t>(PLUMBLINE_DTYPE_F64);
  call.params = params;
  call.param_count = 2;
  call.inputs = inputs;
  call.input_count = 2;

  std::vector<double> advantage(reward.size());
  PlumblineOutput output = {};
  output.name = "advantage";
  output.f64 = advantage.data();
  output.length = advantage.size();
  PlumblineError error;
  if (plumbline_evaluate(&call, &output, 1, &error) != PLUMBLINE_STATUS_OK) {
    std::fprintf(stderr, "%s\n", error.message);
    advantage.clear();
  }
  return advantage;
}

}  // namespace

int main() {
  // By hand: the last step's error is 2 - 1 = 1; before it 0 + 0.5 * 1 - 1 = -0.5, plus 0.25 * 1.
  const std::vector<double> reward = {0.0, 2.0}, value = {1.0, 1.0};
  if (advantages(reward, value, 1) != std::vector<double>{-0.25, 1.0}) return 1;

  const size_t rows = 64;
  std::vector<double> rewards(rows * 500), values(rows * 500);
  for (size_t step = 0; step < rewards.size(); step++) {
    rewards[step] = static_cast<double>(step * 7919 % 1000) / 1000.0 - 0.5;
    values[step] = static_cast<double>(step * 104729 % 1000) / 1000.0 - 0.5;
  }
  std::vector<double> here, there;
  std::thread other([&] { there = advantages(rewards, values, rows); });
  here = advantages(rewards, values, rows);
  other.join();
  if (here.empty() || here.size() != there.size()) return 1;
  if (std::memcmp(here.data(), there.data(), here.size() * sizeof(double)) != 0) return 1;

  PlumblineOperationInfo operation;
  size_t position = 0;
  if (plumbline_find("advantage.gae", &position) != PLUMBLINE_STATUS_OK) return 1;
  if (plumbline_operation(position, &operation) != PLUMBLINE_STATUS_OK) return 1;
  const std::string_view title = view(operation.title);
  std::printf("%.*s: %zu advantages, the same bits in both threads\n", static_cast<int>(title.size()), title.data(),
              here.size());
  return title == "Generalised advantage estimation" ? 0 : 1;
}
