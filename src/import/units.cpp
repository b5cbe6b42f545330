// SPDX-License-Identifier: Apache-2.0
#include "import/units.hpp"

#include <algorithm>
#include <cctype>
#include <map>

#include "base/error.hpp"
#include "base/units.hpp"
#include "results/schema.hpp"

namespace assay::imports {
namespace {

/// Spellings of others and what they mean here; what is not listed must be a unit of ours with a prefix.
const std::map<std::string, std::string>& spellings() {
  static const std::map<std::string, std::string> table = {{"flops", "FLOP/s"},
                                                           {"flop/s", "FLOP/s"},
                                                           {"kflops", "kFLOP/s"},
                                                           {"mflops", "MFLOP/s"},
                                                           {"gflops", "GFLOP/s"},
                                                           {"tflops", "TFLOP/s"},
                                                           {"pflops", "PFLOP/s"},
                                                           {"gflop/s", "GFLOP/s"},
                                                           {"tflop/s", "TFLOP/s"},
                                                           {"mflop/s", "MFLOP/s"},
                                                           {"pflop/s", "PFLOP/s"},
                                                           {"gflops/s", "GFLOP/s"},
                                                           {"tflops/s", "TFLOP/s"},
                                                           {"sec", "s"},
                                                           {"secs", "s"},
                                                           {"second", "s"},
                                                           {"seconds", "s"},
                                                           {"msec", "ms"},
                                                           {"millisecond", "ms"},
                                                           {"milliseconds", "ms"},
                                                           {"usec", "us"},
                                                           {"microsecond", "us"},
                                                           {"microseconds", "us"},
                                                           {"nsec", "ns"},
                                                           {"nanoseconds", "ns"},
                                                           {"tokens/s", "token/s"},
                                                           {"tokens/sec", "token/s"},
                                                           {"tok/s", "token/s"},
                                                           {"ops/s", "op/s"},
                                                           {"iops", "op/s"},
                                                           {"it/s", "op/s"},
                                                           {"images/s", "op/s"},
                                                           {"samples/s", "op/s"},
                                                           {"messages/s", "op/s"},
                                                           {"watt", "W"},
                                                           {"watts", "W"},
                                                           {"joule", "J"},
                                                           {"joules", "J"},
                                                           {"bytes", "B"},
                                                           {"bytes/s", "B/s"},
                                                           {"mhz", "MHz"},
                                                           {"ghz", "GHz"},
                                                           {"hz", "Hz"},
                                                           {"kelvin", "K"},
                                                           {"ratio", "1"},
                                                           {"fraction", "1"},
                                                           {"", "1"},
                                                           {"errors", "count"},
                                                           {"mib/sec", "MiB/s"},
                                                           {"gib/sec", "GiB/s"},
                                                           {"bytes/sec", "B/s"}};
  return table;
}

/// Case tells bytes from bits: only these are the same in any case.
std::string spelled(const std::string& text) {
  std::string lower = text;
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (const auto it = spellings().find(lower); it != spellings().end()) return it->second;
  if (text.ends_with("bps")) return text.substr(0, text.size() - 3) + "bit/s";
  if (text.ends_with("Bps")) return text.substr(0, text.size() - 3) + "B/s";
  if (text.ends_with("/sec")) return text.substr(0, text.size() - 2);
  return text;
}

}  // namespace

UnitScale unit_scale(const std::string& text) {
  if (text == "%" || text == "percent") return {"1", 0.01};
  const std::string unit = spelled(text);
  UnitScale scale;
  try {
    scale.factor = parse_quantity("1 " + unit, scale.base);
  } catch (const Error&) {
    throw_usage("no unit '" + text + "' is known (as GB/s, TFLOP/s, us, MHz, W, K, %, count)");
  }
  if (!results::is_unit(scale.base)) throw_usage("no unit '" + text + "' is known");
  return scale;
}

}  // namespace assay::imports
