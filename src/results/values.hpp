// SPDX-License-Identifier: Apache-2.0
// Arrays of a case, in memory or in a file: all samples of a large machine do not fit into one process.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

namespace assay::results {

/// The file of a case as it was when it was checked.
struct StoredFile {
  std::filesystem::path path;
  std::uint64_t bytes = 0;
  std::uint64_t number = 0;  ///< unique in its cache
};

/// Keeps the arrays that were read last, up to `most_bytes`, and at least three. Arrays that were given out
/// stay valid after they are dropped here. Several threads may use it.
class ValueCache {
 public:
  explicit ValueCache(std::size_t most_bytes) : most_bytes_(most_bytes) {}

  StoredFile file(std::filesystem::path path, std::uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    return {std::move(path), bytes, files_++};
  }

  /// `count` numbers at `offset` of the file. Throws Error(data) when the file is not there as it was.
  template <class T>
  std::shared_ptr<const T[]> get(const StoredFile& file, std::uint64_t offset, std::size_t count) {
    const std::lock_guard lock(mutex_);
    const Key key{file.number, offset};
    if (auto known = find(key)) return std::static_pointer_cast<const T[]>(std::move(known));
    std::shared_ptr<T[]> fresh(new T[count]);  // not set to zero first
    read(file, offset, fresh.get(), count * sizeof(T));
    keep(key, fresh, count * sizeof(T));
    return fresh;
  }

  std::size_t bytes() const;       ///< held now
  std::size_t bytes_read() const;  ///< from files so far

 private:
  using Key = std::pair<std::uint64_t, std::uint64_t>;
  struct Entry {
    Key key;
    std::shared_ptr<const void> values;
    std::size_t bytes;
  };

  std::shared_ptr<const void> find(const Key& key);
  void read(const StoredFile& file, std::uint64_t offset, void* to, std::size_t bytes);
  void keep(const Key& key, std::shared_ptr<const void> values, std::size_t bytes);

  const std::size_t most_bytes_;
  mutable std::mutex mutex_;
  std::list<Entry> entries_;  ///< latest first
  std::map<Key, std::list<Entry>::iterator> places_;
  std::size_t bytes_ = 0, bytes_read_ = 0;
  std::uint64_t files_ = 0;
};

/// Where arrays of one file are, and what reads them.
struct ValueSource {
  std::shared_ptr<const StoredFile> file;
  std::shared_ptr<ValueCache> cache;
};

/// An array while it is used: valid as long as this lives, and the Values it is of where these are in memory.
template <class T>
class Held : public std::span<const T> {
 public:
  explicit Held(std::span<const T> values, std::shared_ptr<const T[]> keeps = nullptr)
      : std::span<const T>(values), keeps_(std::move(keeps)) {}

 private:
  std::shared_ptr<const T[]> keeps_;
};

/// The numbers of an array: in memory, where they can also be changed, or in a file. Loops take them by
/// `held`: a single element of an array in a file costs a look into the cache.
template <class T>
class Values {
 public:
  using value_type = T;

  Values() = default;
  Values(std::vector<T> values) : own_(std::move(values)) {}  // NOLINT(google-explicit-constructor)
  Values(std::initializer_list<T> values) : own_(values) {}
  /// `count` numbers at `offset` of a file, in the machine's own form.
  Values(ValueSource source, std::uint64_t offset, std::size_t count)
      : stored_(std::make_shared<const Stored>(Stored{std::move(source), offset, count})) {}

  std::size_t size() const noexcept { return stored_ ? stored_->count : own_.size(); }
  bool empty() const noexcept { return size() == 0; }
  bool in_file() const noexcept { return stored_ != nullptr; }

  /// Throws Error(data) when the file cannot be read any more.
  Held<T> held() const {
    if (!stored_) return Held<T>(own_);
    auto values =
        stored_->source.cache->template get<T>(*stored_->source.file, stored_->offset, stored_->count);
    const std::span<const T> all(values.get(), stored_->count);
    return Held<T>(all, std::move(values));
  }
  /// By value: what the cache holds may be dropped.
  T operator[](std::size_t i) const { return stored_ ? held()[i] : own_[i]; }

  /// To change them: from now on they are in memory.
  std::vector<T>& own() {
    if (stored_) {
      const Held<T> values = held();
      own_.assign(values.begin(), values.end());
      stored_ = nullptr;
    }
    return own_;
  }
  T& operator[](std::size_t i) { return own()[i]; }
  auto begin() { return own().begin(); }
  auto end() { return own().end(); }
  void push_back(T value) { own().push_back(value); }
  void assign(std::size_t n, T value) { own().assign(n, value); }
  void resize(std::size_t n) { own().resize(n); }

  bool operator==(const Values& other) const {
    const Held<T> a = held(), b = other.held();
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }

 private:
  struct Stored {
    ValueSource source;
    std::uint64_t offset;
    std::size_t count;
  };

  std::vector<T> own_;
  std::shared_ptr<const Stored> stored_;
};

}  // namespace assay::results
