// SPDX-License-Identifier: Apache-2.0
// Runs every file of the corpus through its target, with any compiler: replay CORPUS [TARGET]. What a fuzzer
// once found stays found.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/fuzz/targets.hpp"

namespace assay::fuzz {
namespace {

std::string content(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::size_t replay(const std::filesystem::path& corpus, const std::string& only) {
  constexpr unsigned longest_s = 60;  // per input: a hang is a failure too
  std::size_t count = 0;
  for (const auto& [name, target] : targets()) {
    if (!only.empty() && only != name) continue;
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(corpus / name))
      files.push_back(entry.path());
    std::ranges::sort(files);
    for (const auto& file : files) {
      std::fprintf(stderr, "%s %s\n", name.c_str(), file.filename().c_str());
      alarm(longest_s);
      target(content(file));
      alarm(0);
      ++count;
    }
  }
  return count;
}

}  // namespace
}  // namespace assay::fuzz

int main(int argc, char** argv) {
  if (argc < 2 || argc > 3) return 64;
  const std::size_t count = assay::fuzz::replay(argv[1], argc > 2 ? argv[2] : "");
  std::printf("%zu inputs\n", count);
  return count > 0 ? 0 : 1;
}
