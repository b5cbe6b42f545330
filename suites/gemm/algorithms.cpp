// SPDX-License-Identifier: Apache-2.0
#include "suites/gemm/algorithms.hpp"

#include <limits>
#include <optional>
#include <utility>

#include "base/error.hpp"
#include "suites/gemm/gemm_work.hpp"
#include "workload/tuning.hpp"

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
              {"algorithm", workload::to_text(found.algorithm)}}
      .dump();
}

Found found_from(const std::string& text) {
  const Json json = Json::parse(text);
  return {{json.at("m"), json.at("n"), json.at("k")}, workload::algorithm_from(json.at("algorithm"))};
}

workload::ProductTrial trial_of(const GemmWork& work, const GemmShape& shape, std::uint64_t seed,
                                Device& device) {
  return {device, work.type, plain_product(work.type, shape, work.output), seed};
}

std::vector<GemmShape> shapes_of(const Case& c) {
  if (c.parameters.contains("search")) {
    auto shapes = shapes_to_search();
    shapes.resize(std::min(shapes.size(), c.parameters.at("search").get<std::size_t>()));
    return shapes;
  }
  return {work_from(c).shape()};
}

/// The fastest of a case's shapes with its fastest algorithm.
std::optional<Found> find(const Case& c, std::uint64_t seed, Device& device,
                          const std::function<bool()>& go_on) {
  const GemmWork work = work_from(c);
  std::optional<Found> best;
  double best_rate = 0;
  const auto shapes = shapes_of(c);
  for (const GemmShape& shape : shapes) {
    if (!go_on() && best) break;
    workload::ProductTrial trial = trial_of(work, shape, seed, device);
    const auto algorithm = trial.tune();
    if (!algorithm) return {};
    const double rate = shapes.size() > 1 ? trial.flops_per_s() : 1;
    if (rate > best_rate) best = Found{shape, *algorithm}, best_rate = rate;
  }
  return best;
}

Choice adopt(const Case& c, const Found& found, std::uint64_t seed, Device& device) {
  const GemmAlgorithm used = trial_of(work_from(c), found.shape, seed, device).adopt(found.algorithm);
  return {found.shape, used.name, found.algorithm.candidates};
}

}  // namespace

const std::vector<GemmShape>& shapes_to_search() {
  static const std::vector<GemmShape> shapes = {
      {8192, 8192, 8192},  {4096, 4096, 4096},  {2048, 2048, 13312},  {4096, 8192, 8192},
      {8192, 4096, 16384}, {16384, 8192, 4096}, {1024, 9216, 14336},  {1280, 4096, 12032},
      {1792, 16128, 3072}, {15360, 4096, 3072}, {12288, 12288, 4096}, {6144, 6144, 12288}};
  return shapes;
}

Choices choose(const std::vector<Case>& cases, std::uint64_t seed, Device& device, Communicator& world,
               const std::function<bool()>& go_on) {
  Choices choices;
  if (!device.has_own_memory()) return choices;  // nothing to try
  for (const Case& c : cases) {
    if (c.suite != "gemm" || !c.not_applicable.empty() || c.bytes == 0 ||
        work_from(c).output == Output::exact)
      continue;
    const std::string name = c.base_path();
    if (choices.contains(name)) continue;  // a later pass
    const bool time_left = go_on();
    std::string text;
    if (world.rank() == 0 && time_left) {
      try {
        if (const auto found = find(c, seed, device, go_on)) text = to_text(*found);
      } catch (const Error&) {
        // What is wrong shows again, and is told, when the case runs.
      }
    }
    text = world.broadcast_text(text, 0);
    if (text.empty()) continue;
    const Found found = found_from(text);
    Choice& choice = choices[name] = {found.shape, "own:", 0};  // the shape is that of all, whatever happens
    try {
      choice = adopt(c, found, seed, device);
    } catch (const Error&) {
      // As above.
    }
  }
  return choices;
}

}  // namespace assay::gemm
