// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

#include <gmock/gmock.h>

#include "base/error.hpp"
#include "results/model.hpp"

namespace assay::imports {

/// A directory of small input files that goes away with the test.
class ImportTest : public ::testing::Test {
 protected:
  ImportTest() {
    static int count = 0;
    dir_ = std::filesystem::temp_directory_path() /
           ("assay-import-" + std::to_string(::getpid()) + "-" + std::to_string(count++));
    std::filesystem::create_directories(dir_);
  }
  ~ImportTest() override { std::filesystem::remove_all(dir_); }

  std::filesystem::path file(const std::string& name, const std::string& text) const {
    const auto path = dir_ / name;
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }

  /// The message of the Error(data), without the directory.
  template <typename Call>
  std::string message(const Call& call) const {
    try {
      call();
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::data) << e.what();
      std::string text = e.what();
      EXPECT_EQ(text.find('\n'), std::string::npos) << text;
      const std::string prefix = dir_.string() + "/";
      return text.starts_with(prefix) ? text.substr(prefix.size()) : text;
    }
    ADD_FAILURE() << "no error was thrown";
    return "";
  }

  static const results::CaseData& case_of(const results::Results& r, const std::string& path) {
    for (const auto& c : r.cases)
      if (c.path() == path) return c;
    throw std::runtime_error("no case " + path);
  }
  static std::string name_of(const results::Results& r, std::int32_t row) {
    return r.entities.at(static_cast<std::size_t>(row)).name;
  }

  std::filesystem::path dir_;
};

}  // namespace assay::imports
