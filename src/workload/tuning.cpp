// SPDX-License-Identifier: Apache-2.0
#include "workload/tuning.hpp"

#include <vector>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/json.hpp"
#include "base/random.hpp"

namespace assay::workload {

std::string to_text(const GemmAlgorithm& algorithm) {
  return Json{{"name", algorithm.name}, {"candidates", algorithm.candidates}, {"bytes", algorithm.bytes}}
      .dump();
}

GemmAlgorithm algorithm_from(const std::string& text) {
  const Json json = Json::parse(text);
  return {json.at("name"), json.at("candidates"), json.at("bytes").get<std::vector<unsigned char>>()};
}

ProductTrial::ProductTrial(Device& device, NumType type, const Matmul& product, std::uint64_t seed)
    : device_(device), type_(type), product_(product) {
  constexpr std::size_t page = 4096;
  const auto whole = [](std::size_t bytes) { return (bytes + page - 1) / page * page; };
  const std::size_t a = product.m * product.k, b = product.k * product.n;
  const std::size_t b_at = whole(a * size_of(type)), c_at = b_at + whole(b * size_of(type));
  device.reserve(c_at + product.m * product.n * result_size(type, product.output));
  std::byte* base = device.arena().data();
  a_ = base, b_ = base + b_at, c_ = base + c_at;
  device.fill_uniform(type, a_, a, mix64(seed, 1));
  device.fill_uniform(right_operand(type), b_, b, mix64(seed, 2));
}

GemmAlgorithm ProductTrial::adopt(const GemmAlgorithm& algorithm) {
  try {
    device_.set_algorithm(type_, product_, algorithm);
    return algorithm;
  } catch (const Error&) {
    GemmAlgorithm own = tune().value_or(GemmAlgorithm{});
    own.name = "own:" + own.name;
    return own;
  }
}

double ProductTrial::flops_per_s() {
  constexpr int runs = 10;
  device_.synchronize();
  const double begin = now_s();
  for (int i = 0; i < runs; ++i) device_.matmul(type_, product_, a_, b_, c_);
  device_.synchronize();
  return runs * product_.flops() / (now_s() - begin);
}

std::optional<GemmAlgorithm> tune_for_all(Device& device, Communicator& world, NumType type,
                                          const Matmul& product, std::uint64_t seed,
                                          const std::function<bool()>& go_on) {
  if (!device.has_own_memory()) return {};  // nothing to try
  const bool time_left = go_on();
  std::string text;
  if (world.rank() == 0 && time_left) {
    try {
      if (const auto found = ProductTrial(device, type, product, seed).tune()) text = to_text(*found);
    } catch (const Error&) {
    }
  }
  text = world.broadcast_text(text, 0);
  if (text.empty()) return {};
  try {
    return ProductTrial(device, type, product, seed).adopt(algorithm_from(text));
  } catch (const Error&) {
    return {};
  }
}

}  // namespace assay::workload
