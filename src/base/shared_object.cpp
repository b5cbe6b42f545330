// SPDX-License-Identifier: Apache-2.0
#include "base/shared_object.hpp"

#include <dlfcn.h>

#include <cstdlib>

#include "base/error.hpp"

namespace assay {

SharedObject::SharedObject(const char* variable, const std::vector<std::string>& names, const char* symbol) {
  const char* chosen = std::getenv(variable);
  if (chosen != nullptr && *chosen == '\0') chosen = nullptr;
  if (chosen == nullptr && dlsym(RTLD_DEFAULT, symbol) != nullptr) {
    name_ = "this program";
    handle_ = dlopen(nullptr, RTLD_NOW);
    return;
  }
  std::string said;
  for (const std::string& name : chosen != nullptr ? std::vector<std::string>{chosen} : names) {
    handle_ = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    name_ = name;
    if (handle_ != nullptr) return;
    const char* why = dlerror();
    if (said.empty() && why != nullptr) said = why;
  }
  throw Error(ErrorKind::device, said.empty() ? names.front() + " cannot be opened" : said);
}

void* SharedObject::find(const char* symbol) const noexcept { return dlsym(handle_, symbol); }

void* SharedObject::require(const char* symbol) const {
  void* found = find(symbol);
  if (found == nullptr) throw Error(ErrorKind::device, name_ + " has no " + symbol);
  return found;
}

}  // namespace assay
