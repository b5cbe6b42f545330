// SPDX-License-Identifier: Apache-2.0
#include "suites/gemm/algorithms.hpp"

#include <limits>
#include <optional>
#include <utility>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "suites/gemm/gemm_job.hpp"

namespace assay::gemm {
namespace {

struct Found {
  GemmShape shape;
  GemmAlgorithm algorithm;
};

std::string to_text(const Found& found) {
  return Json{{"m", found.shape.m},
              {"n", found.shape.n},
              {"k", found.shape.k},
              {"name", found.algorithm.name},
              {"candidates", found.algorithm.candidates},
              {"bytes", found.algorithm.bytes}}
      .dump();
}

Found found_from(const std::string& text) {
  const Json json = Json::parse(text);
  Found found{{json.at("m"), json.at("n"), json.at("k")}, {}};
  found.algorithm.name = json.at("name");
  found.algorithm.candidates = json.at("candidates");
  found.algorithm.bytes = json.at("bytes").get<std::vector<unsigned char>>();
  return found;
}

/// Operands of one product in the arena: random, since the rate depends on what is multiplied.
class Trial {
 public:
  Trial(Device& device, NumType type, const GemmShape& shape, Output output, std::uint64_t seed)
      : device_(device), type_(type), product_(plain_product(type, shape, output)) {
    const Layout layout = make_layout(type, shape, 0, 0, output);
    device.reserve(layout.bytes());
    std::byte* base = device.arena().data();
    a_ = base + layout.a(0), b_ = base + layout.b(0), c_ = base + layout.c(0);
    device.fill_uniform(type, a_, shape.m * shape.k, mix64(seed, 1));
    device.fill_uniform(type, b_, shape.k * shape.n, mix64(seed, 2));
  }
  std::optional<GemmAlgorithm> tune() { return device_.tune(type_, product_, a_, b_, c_); }
  void pin(const GemmAlgorithm& algorithm) { device_.pin(type_, product_, algorithm); }
  double flops_per_s() {
    constexpr int runs = 10;
    device_.synchronize();
    const double begin = now_s();
    for (int i = 0; i < runs; ++i) device_.matmul(type_, product_, a_, b_, c_);
    device_.synchronize();
    return runs * product_.flops() / (now_s() - begin);
  }

 private:
  Device& device_;
  NumType type_;
  Matmul product_;
  std::byte *a_ = nullptr, *b_ = nullptr, *c_ = nullptr;
};

std::vector<GemmShape> shapes_of(const Case& c) {
  if (c.parameters.contains("search")) {
    auto shapes = shapes_to_search();
    shapes.resize(std::min(shapes.size(), c.parameters.at("search").get<std::size_t>()));
    return shapes;
  }
  return {job_from(c).shape()};
}

/// The fastest of a case's shapes with its fastest algorithm.
std::optional<Found> find(const Case& c, std::uint64_t seed, Device& device, const std::function<void()>& alive) {
  const Job job = job_from(c);
  std::optional<Found> best;
  double best_rate = 0;
  const auto shapes = shapes_of(c);
  for (const GemmShape& shape : shapes) {
    alive();
    Trial trial(device, job.type, shape, job.output, seed);
    const auto algorithm = trial.tune();
    if (!algorithm) return {};
    const double rate = shapes.size() > 1 ? trial.flops_per_s() : 1;
    if (rate > best_rate) best = Found{shape, *algorithm}, best_rate = rate;
  }
  return best;
}

/// Equal GPUs run what rank 0 chose. One that cannot is another GPU: it chooses for itself, and its results are not compared.
Choice adopt(const Case& c, const Found& found, std::uint64_t seed, Device& device) {
  const Job job = job_from(c);
  Trial trial(device, job.type, found.shape, job.output, seed);
  Choice choice{found.shape, found.algorithm.name, found.algorithm.candidates};
  try {
    trial.pin(found.algorithm);
  } catch (const Error&) {
    const auto own = trial.tune();
    choice.algorithm = "own:" + (own ? own->name : std::string());
  }
  return choice;
}

}  // namespace

const std::vector<GemmShape>& shapes_to_search() {
  static const std::vector<GemmShape> shapes = {
      {8192, 8192, 8192},   {4096, 4096, 4096},  {2048, 2048, 13312}, {4096, 8192, 8192},  {8192, 4096, 16384}, {16384, 8192, 4096},
      {1024, 9216, 14336},  {1280, 4096, 12032}, {1792, 16128, 3072}, {15360, 4096, 3072}, {12288, 12288, 4096}, {6144, 6144, 12288}};
  return shapes;
}

Choices choose(const std::vector<Case>& cases, std::uint64_t seed, Device& device, Communicator& world, const std::function<void()>& alive) {
  Choices choices;
  for (const Case& c : cases) {
    if (c.suite != "gemm" || !c.not_applicable.empty() || c.bytes == 0 || job_from(c).output == Output::exact) continue;
    const std::string name = c.base_path();
    if (choices.contains(name)) continue;  // a later pass
    alive();
    std::string text;
    if (world.rank() == 0) {
      try {
        if (const auto found = find(c, seed, device, alive)) text = to_text(*found);
      } catch (const Error&) {
        // What is wrong shows again, and is told, when the case runs.
      }
    }
    text = world.broadcast_text(text, 0);
    if (text.empty()) continue;
    try {
      choices[name] = adopt(c, found_from(text), seed, device);
    } catch (const Error&) {
      // As above.
    }
  }
  return choices;
}

}  // namespace assay::gemm
