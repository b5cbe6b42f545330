// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace assay {

/// A library that is opened when it is first needed, so that the program starts where it is missing.
class SharedObject {
 public:
  /// Opens the first of `names` that can be opened. `variable` names an environment variable that, where set
  /// and not empty, says which file alone to take. A program that has `symbol` itself is taken for the
  /// library (a test's stand-in). Throws Error(device) with what the loader said.
  SharedObject(const char* variable, const std::vector<std::string>& names, const char* symbol);

  /// Null when it has no such function.
  void* find(const char* symbol) const noexcept;
  /// Throws Error(device) naming library and function.
  template <typename Function>
  void load(Function*& function, const char* symbol) const {
    function = reinterpret_cast<Function*>(require(symbol));
  }
  const std::string& name() const noexcept { return name_; }

 private:
  void* require(const char* symbol) const;

  std::string name_;
  void* handle_ = nullptr;  ///< never closed: threads of the library may outlive us
};

}  // namespace assay
