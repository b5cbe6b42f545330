// SPDX-License-Identifier: Apache-2.0
// Prints the table of operating curves. scripts/operating_curve.sh calls it.
#include <fmt/format.h>

#include <charconv>
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/glob.hpp"
#include "curve.hpp"

namespace {

struct Arguments {
  double scale = 1;
  std::uint64_t seed = 1'000'000;
  unsigned threads = std::max(1U, std::thread::hardware_concurrency());
  std::string only = "*";
};

template <typename T>
T number(const char* option, const char* text) {
  T value{};
  const auto [end, error] = std::from_chars(text, text + std::strlen(text), value);
  if (error != std::errc{} || *end != 0 || !(value > 0))
    assay::throw_usage(fmt::format("{}: '{}' is no number above 0", option, text));
  return value;
}

Arguments parse(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    if (i + 1 == argc) assay::throw_usage(option + ": needs a value");
    const char* value = argv[++i];
    if (option == "--scale")
      arguments.scale = number<double>("--scale", value);
    else if (option == "--seed")
      arguments.seed = number<std::uint64_t>("--seed", value);
    else if (option == "--threads")
      arguments.threads = number<unsigned>("--threads", value);
    else if (option == "--only")
      arguments.only = value;
    else
      assay::throw_usage(option + ": unknown option (--scale, --seed, --threads, --only)");
  }
  return arguments;
}

}  // namespace

int main(int argc, char** argv) {
  using namespace assay::operating;
  try {
    const Arguments arguments = parse(argc, argv);
    std::fputs(table_head().c_str(), stdout);
    std::size_t missed = 0, false_fails = 0, healthy_runs = 0;
    const double begin = assay::now_s();
    for (const Cell& cell : all_cells()) {
      if (!assay::glob_match(arguments.only, cell.group + ", " + cell.name)) continue;
      const std::vector<Cell> one{cell};
      const Result result = measure(one, arguments.scale, arguments.threads, arguments.seed).front();
      std::fputs(row_of(result).c_str(), stdout);
      std::fflush(stdout);
      missed += result.met() ? 0 : 1;
      if (!cell.group.starts_with("false FAIL")) continue;
      false_fails += result.count.hits;
      healthy_runs += result.count.trials;
    }
    const Count all{false_fails, healthy_runs};
    if (healthy_runs > 0)
      std::printf(
          "\n%zu of %zu healthy runs had a false FAIL: %.3f %%, at most %.3f %% with 95 %% confidence.\n",
          false_fails, healthy_runs, 100 * all.share(), 100 * upper_bound(all));
    std::printf("%zu target%s missed; %.0f s, seed %llu.\n", missed, missed == 1 ? "" : "s",
                assay::now_s() - begin, static_cast<unsigned long long>(arguments.seed));
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "operating_curve: %s\n", e.what());
    return 4;
  }
}
