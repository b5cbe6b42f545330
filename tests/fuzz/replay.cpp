// SPDX-License-Identifier: Apache-2.0
// Runs every file of the corpus through its target, with any compiler: replay CORPUS [TARGET]. What a fuzzer
// once found stays found.
#include <sys/time.h>
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
  // Per input, in processor time: a hang is a failure too, a busy machine is none. Where nothing computes,
  // the alarm ends it.
  constexpr itimerval longest{{0, 0}, {60, 0}}, off{};
  constexpr unsigned asleep_s = 240;
  std::size_t count = 0;
  for (const auto& [name, target] : targets()) {
    if (!only.empty() && only != name) continue;
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(corpus / name))
      files.push_back(entry.path());
    std::ranges::sort(files);
    for (const auto& file : files) {
      std::fprintf(stderr, "%s %s\n", name.c_str(), file.filename().c_str());
      setitimer(ITIMER_PROF, &longest, nullptr);
      alarm(asleep_s);
      target(content(file));
      alarm(0);
      setitimer(ITIMER_PROF, &off, nullptr);
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
