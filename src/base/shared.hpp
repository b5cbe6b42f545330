// SPDX-License-Identifier: Apache-2.0
// A container that copies share until one of them is changed: the nodes of a cluster have the same lists of
// cores, caches and parts, and each process knows all nodes.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <memory>
#include <utility>

namespace assay {

template <class Container>
class Shared {
 public:
  using value_type = typename Container::value_type;

  Shared() = default;
  Shared(Container content) : content_(std::make_shared<Container>(std::move(content))) {}
  Shared(std::initializer_list<value_type> items) : Shared(Container(items)) {}

  const Container& get() const {
    static const Container none;
    return content_ ? *content_ : none;
  }
  operator const Container&() const { return get(); }

  /// To be changed: a copy of its own where others share it. Valid until this is copied.
  Container& edit() {
    if (!content_ || content_.use_count() > 1) content_ = std::make_shared<Container>(get());
    return const_cast<Container&>(*content_);  // made by this class, never as a constant object
  }
  void push_back(value_type item) { edit().push_back(std::move(item)); }

  auto begin() const { return get().begin(); }
  auto end() const { return get().end(); }
  std::size_t size() const { return get().size(); }
  bool empty() const { return get().empty(); }
  decltype(auto) front() const { return get().front(); }
  decltype(auto) back() const { return get().back(); }
  const value_type* data() const { return get().data(); }
  template <class Key>
  decltype(auto) operator[](const Key& key) const {
    return get()[key];
  }
  template <class Key>
  decltype(auto) at(const Key& key) const {
    return get().at(key);
  }
  template <class Key>
  auto find(const Key& key) const {
    return get().find(key);
  }

  friend bool operator==(const Shared& a, const Shared& b) {
    return a.content_ == b.content_ || a.get() == b.get();
  }
  friend bool operator==(const Shared& a, const Container& b) { return a.get() == b; }

 private:
  std::shared_ptr<const Container> content_;
};

}  // namespace assay
