// SPDX-License-Identifier: Apache-2.0
// What people type and write into small files.
#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/glob.hpp"
#include "base/hostlist.hpp"
#include "base/system.hpp"
#include "base/units.hpp"
#include "config/config.hpp"
#include "config/fault_spec.hpp"
#include "import/import.hpp"
#include "simulate/fault.hpp"
#include "tests/fuzz/clean.hpp"
#include "topology/fabric.hpp"
#include "verdict/limits.hpp"
#include "verdict/verdict.hpp"

namespace assay::fuzz {
namespace {

/// The options of `run` and one of every kind that a suite may bring.
std::vector<OptionSpec> all_options() {
  std::vector<OptionSpec> specs = run_options();
  for (const OptionKind kind :
       {OptionKind::flag, OptionKind::text, OptionKind::integer, OptionKind::number, OptionKind::bytes,
        OptionKind::seconds, OptionKind::list, OptionKind::choice, OptionKind::choices, OptionKind::path}) {
    OptionSpec spec;
    spec.name = std::string("x.") + static_cast<char>('a' + static_cast<int>(kind));
    spec.kind = kind;
    spec.allowed = {"fp32", "fp64"};
    specs.push_back(spec);
  }
  return specs;
}

void finite(double value) {
  if (!std::isfinite(value)) broken("a number that is not finite");
}

/// Two texts that a zero byte parts.
void match(const std::string& text) {
  const std::size_t zero = std::min(text.find('\0'), text.size());
  const std::string pattern = text.substr(0, zero), name = text.substr(std::min(zero + 1, text.size()));
  if (name.find('\0') != std::string::npos) return;
  const bool ours = glob_match(pattern, name);
  // The C library takes exponential time on many stars, and has classes of characters in brackets.
  if (pattern.size() > 12 || name.size() > 12 || pattern.find_first_of("[\\") != std::string::npos) return;
  const auto ascii = [](char c) { return c > 0; };
  if (!std::ranges::all_of(pattern, ascii) || !std::ranges::all_of(name, ascii)) return;
  if (ours != (fnmatch(pattern.c_str(), name.c_str(), 0) == 0)) broken("glob_match differs from fnmatch");
}

void print_number(const std::string& text) {
  double value = 0;
  std::memcpy(&value, text.data(), std::min(text.size(), sizeof value));
  const std::string unit = text.size() > sizeof value ? text.substr(sizeof value) : "B/s";
  if (format_quantity(value, unit).size() > unit.size() + 400) broken("a number of endless length");
  if (format_seconds(value).size() > 64) broken("a duration of endless length");
}

}  // namespace

void config(const std::string& input) {
  static const std::vector<OptionSpec> specs = all_options();
  clean([&] {
    const auto texts = parse_toml_options(input, "file.toml", specs);
    OptionValues options;
    for (const OptionSpec& spec : specs) {
      const auto at = texts.find(spec.name);
      options.set(spec, at == texts.end() ? std::vector<std::string>{} : at->second);
    }
    make_config(options, {"inventory", "gemm", "memory"}, {"selftest"})
        .to_json(true)
        .dump(-1, ' ', false, Json::error_handler_t::replace);
  });
}

void limits(const std::string& input) {
  clean([&] {
    for (const verdict::Limit& limit : verdict::parse_limits(input, "limits.toml")) {
      if (limit.has_min) finite(limit.min);
      if (limit.has_max) finite(limit.max);
    }
  });
  clean([&] {
    verdict::check_limits(input, "limits.toml",
                          {{"gemm", {{"throughput", "FLOP/s"}}},
                           {"memory", {{"bandwidth", "B/s"}}},
                           {"p2p", {{"latency", "s"}}}});
  });
}

void values(const std::string& input) {
  if (input.empty()) return;
  const std::string text = input.substr(1);
  clean([&] {
    switch (static_cast<unsigned char>(input[0]) % 7) {
      case 0: parse_bytes(text); break;
      case 1: finite(parse_seconds(text)); break;
      case 2: {
        std::string unit;
        finite(parse_quantity(text, unit));
        if (unit.empty()) broken("a quantity without a unit");
        break;
      }
      case 3:
        if (text.size() < 100) format_cpu_list(parse_cpu_list(text));
        break;
      case 4: match(text); break;
      case 5: print_number(text); break;
      case 6:
        if (expand_hostlist(text).size() > hostlist_limit) broken("a host list of endless length");
        break;
    }
  });
}

void inject(const std::string& input) {
  clean([&] {
    const FaultSpec fault = parse_fault(input);
    fault.hits_rank(0, "node07", 1, 2);
    fault.hits_case("gemm", "fp32-n4096-together");
    finite(fault.factor);
    finite(fault.duty);
    finite(fault.seconds);
    finite(fault.after_s);
    finite(fault.clock_ppm);
    finite(fault.clock_offset_s);
  });
}

void simulate(const std::string& input) {
  clean([&] {
    const simulate::Fault fault = simulate::parse_fault(input);
    fault.nodes.contains(7, "node07");
    fault.hits_device(7, "node07", 1);
    fault.hits_metric("gemm", "fp32-n4096-together", "throughput");
    finite(fault.factor);
    finite(fault.duty);
  });
}

void topology(const std::string& input) {
  clean([&] {
    const Fabric fabric = parse_fabric(input, "fabric.csv");
    Topology machine;
    for (const FabricPort& port : fabric.ports) {
      if (machine.nodes.size() == 4) break;
      Node node;
      node.hostname = port.node;
      Nic nic;
      nic.name = port.nic;
      node.nics.push_back(nic);
      machine.nodes.push_back(node);
    }
    const FabricCoverage coverage = apply_fabric(fabric, machine);
    if (leaf_of_nodes(machine).size() != machine.nodes.size()) broken("not one switch for each node");
    describe_fabric(fabric, coverage, machine);
  });
}

void import_file(const std::string& input) {
  if (input.empty()) return;
  std::vector<std::filesystem::path> files;
  for (std::size_t begin = 1; begin <= input.size() && files.size() < 4;) {
    const std::size_t end = std::min(input.find('\0', begin), input.size());
    files.push_back(std::filesystem::path(scratch_directory()) /
                    ("tool" + std::to_string(files.size()) + ".txt"));
    std::ofstream(files.back(), std::ios::binary | std::ios::trunc) << input.substr(begin, end - begin);
    begin = end + 1;
  }
  constexpr std::array importers{imports::import_csv, imports::import_nccl_tests, imports::import_osu};
  clean([&] {
    use_results(
        importers[static_cast<unsigned char>(input[0]) % importers.size()]({files.begin(), files.end()}));
  });
}

}  // namespace assay::fuzz
