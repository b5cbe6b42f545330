// SPDX-License-Identifier: Apache-2.0
#include "results/coordinates.hpp"

#include <cstddef>

namespace assay::results {
namespace {

/// Larger ones are seldom equal, and are not kept to be compared.
constexpr std::size_t most_shared_bytes = std::size_t{1} << 20;

std::string bytes_of(h5::Type type, const std::vector<std::size_t>& shape, const void* values) {
  std::size_t bytes = h5::size_of(type);
  for (const std::size_t length : shape) bytes *= length;
  if (bytes > most_shared_bytes || bytes == 0) return "";
  return {static_cast<const char*>(values), bytes};
}

}  // namespace

SharedCoordinates::ScalePtr SharedCoordinates::scale(hid_t group, const std::string& name, std::size_t length,
                                                     const std::int32_t* values) {
  Last now{bytes_of(h5::Type::int32, {length}, values), {length}, {}, {}};
  Last& last = last_[name];
  if (!now.bytes.empty() && now.bytes == last.bytes) {
    last.scales[0]->link(group, name);
    return last.scales[0];
  }
  if (!last.scales.empty()) last.scales[0]->finish();
  now.scales = {std::make_shared<h5::Scale>(
      h5::create_dataset(group, name, h5::Type::int32, {length}, values, true), name)};
  last = std::move(now);
  return last.scales[0];
}

void SharedCoordinates::dataset(hid_t group, const Field& field, const std::vector<std::size_t>& shape,
                                const void* values, const std::vector<ScalePtr>& scales) {
  Last now{bytes_of(field.type, shape, values), shape, scales, {}};
  Last& last = last_[field.name];
  if (!now.bytes.empty() && now.bytes == last.bytes && shape == last.shape && scales == last.scales)
    return h5::link(last.set, group, field.name);
  now.set = h5::create_dataset(group, field.name, field.type, shape, values, true);
  if (!field.unit.empty()) h5::put(now.set, "unit", field.unit);
  h5::Scale::attach(now.set, scales);
  last = std::move(now);
}

void SharedCoordinates::finish() {
  for (auto& [name, last] : last_)
    if (!last.set.valid()) last.scales[0]->finish();
  last_.clear();
}

}  // namespace assay::results
