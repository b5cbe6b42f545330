// SPDX-License-Identifier: Apache-2.0
#include "suites/burn/burn_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.hpp"
#include "base/units.hpp"
#include "workload/collective.hpp"

namespace assay::burn {
namespace {

constexpr std::size_t mib = std::size_t{1} << 20;
constexpr std::size_t granule = 2 * mib;

std::size_t whole(std::size_t bytes) { return (bytes + granule - 1) / granule * granule; }

Component part_from(const std::string& text) {
  for (const Component part : all_parts)
    if (text == to_string(part)) return part;
  throw Error(ErrorKind::internal, "burn: no part '" + text + "'");
}

constexpr double burning_share = 0.3;  ///< of a soak or a segment of it

double duration_of(const Config& config) {
  if (config.options.has("burn.duration")) return config.options.number("burn.duration");
  switch (config.level) {
    case Level::smoke: return 3;
    case Level::quick: return 10;
    case Level::standard: return 60;
    case Level::extended: return 600;
    case Level::soak: break;
  }
  return burning_share * config.budget_s();
}

double pulses_of(const Config& config) {
  if (config.options.has("burn.duration")) return config.options.number("burn.duration");
  if (config.level == Level::soak) return std::min(60.0, 0.1 * config.budget_s());
  return config.level <= Level::quick ? 10 : config.level == Level::standard ? 30 : 60;
}

/// Of memory that a rank may use, which the other parts have taken their share of.
std::size_t memory_of(Level level, std::size_t left) {
  constexpr std::size_t gib = 1024 * mib;
  const std::size_t most = level == Level::smoke      ? 64 * mib
                           : level == Level::quick    ? 256 * mib
                           : level == Level::standard ? 4 * gib
                                                      : left;
  return std::min(left, most) / granule * granule;
}

class Planner {
 public:
  explicit Planner(const PlanInput& input) : input_(input), gpu_(input.topology.measures_gpus()) {
    const OptionValues& options = input.config.options;
    type_ = options.has("burn.dtype") ? num_type(options.text("burn.dtype")).value()
            : gpu_                    ? NumType::bf16
                                      : NumType::fp64;
    if (!gpu_ && type_ != NumType::fp64 && type_ != NumType::fp32)
      throw_usage(std::string("--burn.dtype: hosts multiply fp64 and fp32, not ") + to_string(type_));
    n_ = gpu_ ? 8192 : 1024;
    if (options.has("burn.size")) {
      const std::int64_t n = options.integer("burn.size");
      if (n < 16 || n % 16 != 0 || n > 32768)
        throw_usage("--burn.size: must be a multiple of 16 from 16 to 32768");
      n_ = static_cast<std::size_t>(n);
    }
  }

  std::vector<Case> cases() const {
    std::vector<Case> cases;
    // A run of everything burns only in a soak, and pulses are never a matter of course.
    if (input_.config.level == Level::soak || input_.config.options.has("suites")) cases.push_back(mixed());
    if (input_.config.options.has("burn.pulse"))
      for (const std::string& hz : input_.config.options.list("burn.pulse")) {
        cases.push_back(pulse(hz));
        const auto same = [&](const Case& c) { return c.name == cases.back().name; };
        if (std::any_of(cases.begin(), cases.end() - 1, same))
          throw_usage(
              fmt::format("--burn.pulse: '{}' makes another case of the name {}", hz, cases.back().name));
      }
    for (const Case& c : cases)
      if (c.not_applicable.empty() && c.expected_s() > 0.9 * input_.config.budget_s()) fail_too_long(c);
    return cases;
  }

 private:
  [[noreturn]] void fail_too_long(const Case& c) const {
    const Config& config = input_.config;
    if (config.level == Level::soak && !config.options.has("burn.duration")) {
      // Its share of the time grows with the soak; what it needs to begin does not.
      const double least_s = (c.expected_s() - duration_of(config)) / (0.9 - burning_share);
      throw_usage(
          fmt::format("--{}: {} is too short for {}: a soak takes at least {} on this machine; is the "
                      "unit missing (8h)?",
                      config.segments() > 1 ? "segment" : "duration", format_seconds(config.budget_s()),
                      c.name, format_seconds(least_s)));
    }
    throw_usage(fmt::format("--burn.duration: {} takes {}, which does not fit the {} of level {}", c.name,
                            format_seconds(c.expected_s()), format_seconds(config.budget_s()),
                            to_string(config.level)));
  }

  Case mixed() const {
    const OptionValues& options = input_.config.options;
    Case c;
    c.suite = "burn";
    c.name = "mixed-together";
    c.operation = "mixed";
    c.title = "compute, memory, links and host at once";
    c.stage = Stage::burn;
    c.required = true;
    c.entities = input_.topology.size();
    Mixed m;
    m.duration_s = duration_of(input_.config);
    if (!(m.duration_s >= 1))
      throw_usage(
          fmt::format("--duration: {} is too short for a burn: a soak takes at least {}; is the unit "
                      "missing (8h)?",
                      format_seconds(input_.config.budget_s()), format_seconds(1 / burning_share)));
    m.ramp_s = options.has("burn.ramp") ? options.number("burn.ramp") : std::min(0.1 * m.duration_s, 30.0);
    if (!(m.ramp_s >= 0 && m.ramp_s <= m.duration_s / 4))
      throw_usage("--burn.ramp: must be at most a fourth of the burn");
    std::vector<std::string> names;
    for (const Component part : all_parts) {
      const auto wanted = options.has("burn.parts") ? options.list("burn.parts") : std::vector<std::string>{};
      if (!wanted.empty() && std::find(wanted.begin(), wanted.end(), to_string(part)) == wanted.end())
        continue;
      if ((part == Component::host && !gpu_) || (part == Component::links && input_.topology.size() < 2))
        continue;
      c.multiplies = c.multiplies || part == Component::compute;
      m.parts.push_back(part);
      names.emplace_back(to_string(part));
    }
    m.type = type_;
    m.n = n_;
    const std::size_t memory = input_.memory_per_rank_bytes;
    // A GPU would rest while it is waited for: 16 products of n = 8192 take more than 10 ms.
    if (gpu_) m.results = 16;
    while (m.results > 2 && m.product().bytes() > memory / 4) m.results /= 2;
    while (m.n > 256 && m.product().bytes() > memory / 4) m.n /= 2;
    m.links_bytes = gpu_ ? 128 * mib : 4 * mib;
    while (m.links_bytes > mib / 16 && 2 * links_slots * m.links_bytes > memory / 4) m.links_bytes /= 2;
    if (options.has("burn.message"))
      m.links_bytes = std::max<std::size_t>(options.bytes("burn.message") / 4096 * 4096, 4096);
    if (m.has(Component::memory)) m.memory_bytes = memory_for(m);
    c.bytes = m.arena_bytes();
    c.seconds = c.min_seconds = m.duration_s;
    c.retest_seconds = std::min(m.duration_s, most_retest_s);
    // Filling and checking all of the memory; products that warm up; data of the sums.
    c.overhead_seconds = 1 + 2 * static_cast<double>(m.memory_bytes) / fill_rate(input_.topology);
    c.parameters = {{"mode", "together"},           {"parts", fmt::format("{}", fmt::join(names, ","))},
                    {"dtype", to_string(m.type)},   {"n", m.n},
                    {"results", m.results},         {"memory_bytes", m.memory_bytes},
                    {"links_bytes", m.links_bytes}, {"duration_s", m.duration_s},
                    {"ramp_s", m.ramp_s},           {"distribution", "uniform[-1,1)"}};
    if (m.parts.empty())
      c.not_applicable = "none of the requested parts exists here";
    else if (c.bytes > memory)
      c.not_applicable = too_little_memory(c.bytes, memory);
    return c;
  }

  /// As asked for, else by level what the other parts leave of the plan's memory; at least a granule.
  std::size_t memory_for(const Mixed& others) const {
    const OptionValues& options = input_.config.options;
    if (options.has("burn.memory")) {
      const std::size_t bytes = options.bytes("burn.memory") / granule * granule;
      if (bytes == 0) throw_usage("--burn.memory: must be at least " + format_bytes(granule));
      return bytes;
    }
    const std::size_t memory = input_.memory_per_rank_bytes, used = others.arena_bytes();
    return std::max(granule, memory_of(input_.config.level, memory > used ? memory - used : 0));
  }

  Case pulse(const std::string& text) const {
    const OptionValues& options = input_.config.options;
    double hz = 0;
    try {
      std::size_t used = 0;
      hz = std::stod(text, &used);
      if (used != text.size()) hz = 0;
    } catch (const std::exception&) {
    }
    if (!(hz >= 0.1 && hz <= 10))
      throw_usage("--burn.pulse: '" + text + "' is no frequency from 0.1 to 10 Hz");
    const double duty = options.has("burn.duty") ? options.number("burn.duty") : 0.5;
    const int all = static_cast<int>(input_.topology.nodes.size());
    int nodes = 1;
    if (options.has("burn.pulse-nodes")) {
      const std::string wish = options.text("burn.pulse-nodes");
      nodes = wish == "all" ? all : static_cast<int>(std::strtol(wish.c_str(), nullptr, 10));
      if (nodes < 1 || nodes > all)
        throw_usage(
            fmt::format("--burn.pulse-nodes: '{}' is neither all nor a number of nodes up to {}", wish, all));
    }
    const double ramp_s = options.has("burn.ramp") ? options.number("burn.ramp") : 3 / hz;
    const PulseTrain train = make_train(hz, duty, pulses_of(input_.config), ramp_s);
    Case c;
    c.suite = "burn";
    c.multiplies = true;
    c.name = fmt::format("pulse-{:.0f}ms-d{:.0f}-together", 1e3 * train.period_s, 100 * duty);
    c.operation = "pulse";
    c.title = fmt::format("power pulses of {:.0f} ms, {:.0f} % on", 1e3 * train.period_s, 100 * duty);
    c.stage = Stage::burn;
    c.required = true;
    for (int node = 0; node < nodes; ++node)
      c.entities += static_cast<std::int64_t>(input_.topology.ranks_of(node).size());
    std::size_t n = std::min<std::size_t>(n_, gpu_ ? 4096 : 512);
    const auto bytes = [&] {
      return workload::make_product_layout(type_, {n, n, n}, 0, ~std::uint64_t{0}).bytes();
    };
    while (n > 64 && bytes() > input_.memory_per_rank_bytes) n /= 2;
    c.bytes = bytes();
    if (c.bytes > input_.memory_per_rank_bytes)
      c.not_applicable = too_little_memory(c.bytes, input_.memory_per_rank_bytes);
    c.seconds = c.min_seconds = c.retest_seconds = train.pulses * train.period_s;
    c.overhead_seconds = 1;
    c.parameters = {{"mode", "together"},
                    {"dtype", to_string(type_)},
                    {"largest_n", n},
                    {"frequency_hz", hz},
                    {"duty", duty},
                    {"pulses", train.pulses},
                    {"ramp", train.ramp},
                    {"nodes", nodes},
                    {"distribution", "uniform[-1,1)"}};
    return c;
  }

  const PlanInput& input_;
  bool gpu_;
  NumType type_;
  std::size_t n_;
};

}  // namespace

const char* to_string(Component part) noexcept {
  switch (part) {
    case Component::compute: return "compute";
    case Component::memory: return "memory";
    case Component::links: return "links";
    case Component::host: return "host";
  }
  return "";
}

const char* metric_of(Component part) noexcept {
  switch (part) {
    case Component::compute: return "throughput";
    case Component::memory: return "bandwidth";
    case Component::links: return "busbw";
    case Component::host: return "host_throughput";
  }
  return "";
}

const char* unit_of(Component part) noexcept {
  return part == Component::compute || part == Component::host ? "FLOP/s" : "B/s";
}

bool Mixed::has(Component part) const noexcept {
  return std::find(parts.begin(), parts.end(), part) != parts.end();
}
std::size_t Mixed::memory_at() const { return whole(product().bytes()); }
std::size_t Mixed::links_at() const { return memory_at() + whole(memory_bytes); }
std::size_t Mixed::arena_bytes() const {
  return links_at() + whole(links_slots * workload::slot_bytes(workload::Op::all_reduce, links_bytes, 2));
}

double fill_rate(const Topology& topology) {
  constexpr double gpu = 1e11, thread = 5e8, socket = 1e10;
  if (topology.measures_gpus()) return gpu;
  double least = std::numeric_limits<double>::infinity();
  for (const NodeKind& kind : topology.kinds()) {
    const auto ranks = topology.ranks_of(kind.node);
    const double sockets = std::max(1, topology.nodes[static_cast<std::size_t>(kind.node)].sockets);
    for (const int rank : ranks) {
      const double threads = std::max(1, topology.ranks[static_cast<std::size_t>(rank)].threads);
      const double share = std::max(thread, socket * sockets / static_cast<double>(ranks.size()));
      least = std::min(least, std::min(thread * threads, share));
    }
  }
  return std::isfinite(least) ? least : thread;
}

Mixed mixed_of(const Case& c) {
  Mixed m;
  std::string names = c.parameters.at("parts");
  for (std::size_t at = 0; at < names.size();) {
    const std::size_t comma = std::min(names.find(',', at), names.size());
    m.parts.push_back(part_from(names.substr(at, comma - at)));
    at = comma + 1;
  }
  m.type = num_type(c.parameters.at("dtype").get<std::string>()).value();
  m.n = c.parameters.at("n");
  m.results = c.parameters.value("results", m.results);
  m.memory_bytes = c.parameters.at("memory_bytes");
  m.links_bytes = c.parameters.at("links_bytes");
  m.duration_s = c.parameters.at("duration_s");
  m.ramp_s = c.parameters.at("ramp_s");
  return m;
}

Pulse pulse_of(const Case& c) {
  Pulse p;
  p.train = {1 / c.parameters.at("frequency_hz").get<double>(), c.parameters.at("duty"),
             c.parameters.at("pulses"), c.parameters.at("ramp")};
  p.type = num_type(c.parameters.at("dtype").get<std::string>()).value();
  p.n = c.parameters.at("largest_n");
  p.nodes = c.parameters.at("nodes");
  return p;
}

std::vector<OptionSpec> burn_options() {
  const std::vector<std::string> types = num_type_names();
  std::vector<OptionSpec> specs(10);
  specs[0] = {"burn.duration",
              OptionKind::seconds,
              "",
              "duration of a burn or a train of pulses; by level if not given (soak: 0.3 of a segment)",
              {},
              "TIME"};
  specs[0].range = Range{1};
  specs[1] = {"burn.parts",
              OptionKind::choices,
              "",
              "parts under load at the same time; all if not given",
              {"compute", "memory", "links", "host"},
              "PARTS"};
  specs[2] = {"burn.dtype", OptionKind::choice,
              "",           "number type of the products: bf16 on GPUs and fp64 on hosts if not given",
              types,        "TYPE"};
  specs[3] = {"burn.size", OptionKind::integer,
              "",          "size n of the products (n x n x n): 8192 on GPUs and 1024 on hosts if not given",
              {},          "N"};
  specs[4] = {"burn.ramp",
              OptionKind::seconds,
              "",
              "time in which ranks start one after the other, or pulses grow; default a tenth of the burn, "
              "or 3 pulses",
              {},
              "TIME"};
  specs[5] = {"burn.pulse", OptionKind::list,
              "",           "adds power pulses, all devices in phase, of these frequencies from 0.1 to 10 Hz",
              {},           "HZ"};
  specs[6] = {"burn.duty", OptionKind::number,
              "",          "share of a period in which the devices compute, 0.1 to 0.9; default 0.5",
              {},          "SHARE"};
  specs[6].range = Range{0.1, 0.9};
  specs[9] = {"burn.message",
              OptionKind::bytes,
              "",
              "size of one all-reduce; default 128 MiB on GPUs and 4 MiB on hosts",
              {},
              "SIZE"};
  specs[8] = {"burn.memory",
              OptionKind::bytes,
              "",
              "memory under test, per rank; by level if not given (64 MiB, 256 MiB, 4 GiB, then all that the "
              "run may use, see --memory.fraction)",
              {},
              "SIZE"};
  specs[7] = {"burn.pulse-nodes",
              OptionKind::text,
              "1",
              "number of nodes that pulse, or all; inform the operators of the power supply first",
              {},
              "N"};
  return specs;
}

std::vector<Case> plan_cases(const PlanInput& input) { return Planner(input).cases(); }

}  // namespace assay::burn
