// SPDX-License-Identifier: Apache-2.0
#include "results/values.hpp"

#include "base/error.hpp"
#include "base/input_file.hpp"

namespace assay::results {

std::size_t ValueCache::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

std::size_t ValueCache::bytes_read() const {
  const std::lock_guard lock(mutex_);
  return bytes_read_;
}

std::shared_ptr<const void> ValueCache::find(const Key& key) {
  const auto at = places_.find(key);
  if (at == places_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, at->second);
  return at->second->values;
}

/// The file is opened for each array: a run has more cases than a process may have open files, and an open
/// file would keep its directory on a network file system.
void ValueCache::read(const StoredFile& file, std::uint64_t offset, void* to, std::size_t bytes) {
  const auto changed = [&] {
    throw Error(ErrorKind::data, file.path.string() + " has changed since it was read");
  };
  const InputFile input(file.path);
  if (!input.exists() || input.bytes() != file.bytes || input.read(offset, to, bytes) != bytes) changed();
  bytes_read_ += bytes;
}

void ValueCache::keep(const Key& key, std::shared_ptr<const void> values, std::size_t bytes) {
  entries_.push_front({key, std::move(values), bytes});
  places_[key] = entries_.begin();
  bytes_ += bytes;
  // A row of a large case is read from its values, times and clocks in turn: these stay, whatever their size.
  constexpr std::size_t least_arrays = 3;
  while (bytes_ > most_bytes_ && entries_.size() > least_arrays) {
    bytes_ -= entries_.back().bytes;
    places_.erase(entries_.back().key);
    entries_.pop_back();
  }
}

}  // namespace assay::results
