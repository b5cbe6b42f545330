// SPDX-License-Identifier: Apache-2.0
#include "config/fault_spec.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace assay {
namespace {

using namespace fault_grammar;

/// Selectors come in groups: a fault takes those that can mean something for it.
enum Selectors : unsigned { by_place = 1, by_case = 2, by_time = 4, by_seed = 8, by_all = 15 };

KindRow row(FaultKind kind, const char* name, std::vector<std::string> keys,
            std::vector<std::string> required, unsigned selectors) {
  const auto add = [&](unsigned group, std::initializer_list<const char*> names) {
    if ((selectors & group) != 0) keys.insert(keys.end(), names.begin(), names.end());
  };
  add(by_place, {"rank", "node", "device"});
  add(by_case, {"suite", "case", "metric"});
  add(by_time, {"after"});
  add(by_seed, {"seed"});
  return {static_cast<int>(kind), name, std::move(keys), std::move(required)};
}

const std::vector<KindRow>& kinds() {
  static const std::vector<KindRow> table = {
      row(FaultKind::slow, "slow", {"factor", "duty", "step", "ramp", "server"}, {"factor"}, by_all),
      row(FaultKind::stall, "stall", {"seconds", "duty", "step"}, {"seconds"}, by_all),
      row(FaultKind::bitflip, "bitflip", {"target", "word", "bit", "step"}, {"target"}, by_all),
      row(FaultKind::nan, "nan", {"target", "word", "step"}, {"target"}, by_all),
      row(FaultKind::drop, "drop", {"step", "duty"}, {}, by_all),
      row(FaultKind::slowlink, "slowlink", {"pair", "factor"}, {"pair", "factor"}, by_case | by_time),
      row(FaultKind::hang, "hang", {"step"}, {}, by_place | by_case | by_time),
      row(FaultKind::crash, "crash", {"step"}, {}, by_place | by_case | by_time),
      row(FaultKind::exit, "exit", {"code", "step"}, {}, by_place | by_case | by_time),
      row(FaultKind::throwing, "throw", {"step"}, {}, by_place | by_case | by_time),
      row(FaultKind::diskfull, "diskfull", {"after_bytes"}, {}, 0),
      row(FaultKind::nomem, "nomem", {}, {}, by_place | by_case | by_time),
      row(FaultKind::clock, "clock", {"ppm", "offset_s"}, {"ppm|offset_s"}, by_place),
  };
  return table;
}

}  // namespace

const char* to_string(FaultKind kind) noexcept {
  for (const KindRow& row : kinds())
    if (row.kind == static_cast<int>(kind)) return row.name;
  return "slow";
}

bool FaultSpec::hits_rank(int rank, const std::string& node_name, int node_index, int device) const {
  if (kind == FaultKind::slowlink) return rank == pair_destination;
  if (kind == FaultKind::diskfull) return rank == 0;
  return ranks.contains(rank) && devices.contains(device) && nodes.contains(node_index, node_name);
}

FaultSpec parse_fault(const std::string& typed) {
  FaultSpec spec;
  spec.text = typed;
  std::optional<std::uint64_t> code;
  Readers readers = common_readers(spec);
  readers.insert({{"rank", read_numbers(spec.ranks)},
                  {"server", read_text(spec.server)},
                  {"after", read_seconds(spec.after_s)},
                  {"ramp", read_seconds(spec.ramp_s)},
                  {"seconds",
                   [&](const std::string& key, const std::string& value) {
                     read_seconds(spec.seconds)(key, value);
                     if (spec.seconds > 86400) bad(key, value, "at most a day");
                   }},
                  {"seed", read_whole(spec.seed)},
                  {"step", read_whole(spec.step)},
                  {"word", read_whole(spec.word)},
                  {"bit", read_whole(spec.bit, 63, "a bit of a 64-bit word, 0 to 63")},
                  {"target", read_text(spec.target)},  // which there are the suites say: run/fault_plan.hpp
                  {"code", read_whole(code, 255, "an exit code, 0 to 255")},
                  {"after_bytes", read_bytes(spec.after_bytes)},
                  {"ppm", read_real(spec.clock_ppm)},
                  {"offset_s", read_real(spec.clock_offset_s)}});
  spec.kind = static_cast<FaultKind>(parse(typed, kinds(), readers).kind);
  spec.exit_code = static_cast<int>(code.value_or(1));
  if (spec.kind == FaultKind::clock && spec.clock_ppm == 0 && spec.clock_offset_s == 0)
    throw_usage("clock needs ppm= or offset_s= in '" + typed + "'");
  return spec;
}

}  // namespace assay
