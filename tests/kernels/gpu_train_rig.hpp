// SPDX-License-Identifier: Apache-2.0
// A small model with its data, on the host or on a GPU, real or emulated.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <vector>

#include "device/cuda/cuda_backend.hpp"
#include "suites/train/gpt.hpp"
#include "suites/train/source.hpp"

namespace assay::train {

using Digests = std::vector<std::uint64_t>;

inline const ModelShape shape{32, 2, 1, 32, 20};
inline constexpr std::size_t batch = 2;

inline std::unique_ptr<Device> first_gpu() {
  std::string why;
  return cuda_backend().make_device(cuda_backend().visible(why).at(0).uuid);
}

class GpuTrain : public testing::Test {
 protected:
  void SetUp() override {
    std::string why;
    if (cuda_backend().visible(why).empty()) GTEST_SKIP() << "no GPU here: " << why;
  }
};

/// A replica with its data on any device.
struct Rig {
  Rig(std::unique_ptr<Device> device_given, NumType type, int parts = 1) : device(std::move(device_given)) {
    const Storage storage{type, 0, parts, false};
    device->reserve(Gpt::bytes(shape, batch, storage));
    gpt.emplace(*device, shape, batch, device->arena(), storage);
    gpt->initialise(RandomStream(1, "parameters"));
  }
  static Rig host() { return {make_host_device({0}, {0}, false), NumType::fp32}; }
  static Rig cuda(NumType type) { return {first_gpu(), type}; }

  /// Loss per counted target.
  double pass(std::uint64_t first, const std::function<void(std::size_t)>& ready = nullptr) {
    std::vector<std::int32_t> tokens(batch * shape.length), targets(tokens.size());
    for (std::size_t b = 0; b < batch; ++b)
      source.sequence(first + b, std::span(tokens).subspan(b * shape.length, shape.length),
                      std::span(targets).subspan(b * shape.length, shape.length));
    const auto counted = static_cast<double>(batch * source.counted(shape.length));
    gpt->load(tokens, targets);
    gpt->forward();
    gpt->score(1.0f / static_cast<float>(counted));
    gpt->backward(ready, nullptr);
    return gpt->loss_sum() / counted;
  }
  std::vector<float> gradients() {
    std::vector<float> g(gpt->table().size());
    device->copy_to_host(g.data(), gpt->gradients(), g.size() * sizeof(float));
    return g;
  }
  Digests digests() {
    Digests all;
    for (std::size_t b = 0; b < gpt->table().buckets().size(); ++b) all.push_back(gpt->gradient_digest(b));
    return all;
  }
  void update(int step) {
    kernels::AdamW rule;
    rule.rate = 3e-3f;
    gpt->update(rule.at(step));
  }

  std::unique_ptr<Device> device;
  LagSource source{{shape.vocabulary, 1, 8}, RandomStream(2, "source")};
  std::optional<Gpt> gpt;
};

}  // namespace assay::train
