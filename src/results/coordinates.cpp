// SPDX-License-Identifier: Apache-2.0
#include "results/coordinates.hpp"

#include <algorithm>
#include <cstddef>

namespace assay::results {
namespace {

/// Larger ones are seldom equal, and are not kept to be compared.
constexpr std::size_t most_shared_bytes = std::size_t{1} << 20;
/// Kinds of cases take turns: all devices, then pairs, then some nodes.
constexpr std::size_t most_recent = 8;

std::string bytes_of(h5::Type type, const std::vector<std::size_t>& shape, const void* values) {
  std::size_t bytes = h5::size_of(type);
  for (const std::size_t length : shape) bytes *= length;
  if (bytes > most_shared_bytes || bytes == 0) return "";
  return {static_cast<const char*>(values), bytes};
}

}  // namespace

void SharedCoordinates::push(Recent& recent, Written&& written) {
  recent.push_front(std::move(written));
  if (recent.size() <= most_recent) return;
  if (!recent.back().set.valid()) recent.back().scales[0]->finish();
  recent.pop_back();
}

SharedCoordinates::ScalePtr SharedCoordinates::scale(hid_t group, const std::string& name, std::size_t length,
                                                     const std::int32_t* values) {
  Written now{bytes_of(h5::Type::int32, {length}, values), {length}, {}, {}};
  Recent& recent = recent_[name];
  const auto same =
      std::find_if(recent.begin(), recent.end(), [&](const Written& w) { return w.equals(now); });
  if (same != recent.end()) {
    same->scales[0]->link(group, name);
    std::rotate(recent.begin(), same, same + 1);  // what this case lies on is the last to be forgotten
    return recent.front().scales[0];
  }
  now.scales = {std::make_shared<h5::Scale>(
      h5::create_dataset(group, name, h5::Type::int32, {length}, values, true), name)};
  push(recent, std::move(now));
  return recent.front().scales[0];
}

void SharedCoordinates::dataset(hid_t group, const Field& field, const std::vector<std::size_t>& shape,
                                const void* values, const std::vector<ScalePtr>& scales) {
  Written now{bytes_of(field.type, shape, values), shape, scales, {}};
  Recent& recent = recent_[field.name];
  const auto same = std::find_if(recent.begin(), recent.end(),
                                 [&](const Written& w) { return w.equals(now) && w.scales == scales; });
  if (same != recent.end()) {
    h5::link(same->set, group, field.name);
    std::rotate(recent.begin(), same, same + 1);
    return;
  }
  now.set = h5::create_dataset(group, field.name, field.type, shape, values, true);
  if (!field.unit.empty()) h5::put(now.set, "unit", field.unit);
  h5::Scale::attach(now.set, scales);
  push(recent, std::move(now));
}

void SharedCoordinates::finish() {
  for (auto& [name, recent] : recent_)
    for (Written& written : recent)
      if (!written.set.valid()) written.scales[0]->finish();
  recent_.clear();
}

}  // namespace assay::results
