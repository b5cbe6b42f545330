// SPDX-License-Identifier: Apache-2.0
#include "config/config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <limits>
#include <set>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/system.hpp"
#include "config/suggest.hpp"

namespace assay {
namespace {

constexpr std::array<const char*, 5> level_names{"smoke", "quick", "standard", "extended", "soak"};

Level level_from(const std::string& text) {
  const auto it = std::ranges::find(level_names, text);
  if (it == level_names.end()) throw Error(ErrorKind::internal, "no level " + text);
  return static_cast<Level>(it - level_names.begin());
}

/// The named suites in canonical order, hidden ones last; all that are not hidden when none is named.
std::vector<std::string> choose_suites(const std::vector<std::string>& named,
                                       const std::vector<std::string>& names,
                                       const std::vector<std::string>& hidden) {
  if (named.empty()) return names;
  for (const std::string& name : named) {
    const auto is = [&](const std::vector<std::string>& known) {
      return std::ranges::find(known, name) != known.end();
    };
    if (!is(names) && !is(hidden))
      throw_usage(fmt::format("--suites: no suite '{}' (suites: {})", name, join(names)));
  }
  std::vector<std::string> chosen;
  for (const auto* known : {&names, &hidden}) {
    std::ranges::copy_if(*known, std::back_inserter(chosen), [&](const std::string& name) {
      return std::ranges::find(named, name) != named.end();
    });
  }
  return chosen;
}

/// A whole number from `least` to `most` when given; 0 when not.
std::int64_t counted(const OptionValues& values, const std::string& name, std::int64_t least = 1,
                     std::int64_t most = std::numeric_limits<std::int64_t>::max()) {
  if (!values.has(name)) return 0;
  const std::int64_t value = values.integer(name);
  if (value < least) throw_usage(fmt::format("--{}: {} is less than {}", name, value, least));
  if (value > most) throw_usage(fmt::format("--{}: {} is more than {}", name, value, most));
  return value;
}

/// Typed beside another level they contradict it. In a file they do not: one file serves several levels.
void leave_out_soak(OptionValues& values, Level level) {
  for (const char* name : {"duration", "segment"}) {
    if (!values.has(name)) continue;
    if (values.source(name) != OptionSource::file)
      throw_usage(fmt::format("--{}: only goes with --level soak, not {}", name, to_string(level)));
    values.unset(name);
  }
}

void set_duration(Config& config, const OptionValues& values) {
  if (!values.has("duration")) throw_usage("--level: soak needs --duration, e.g. --duration 8h");
  config.duration_s = values.number("duration");
  if (values.has("segment")) config.segment_s = values.number("segment");
  if (config.segment_s < 1) throw_usage("--segment: a segment takes at least 1 s");
  if (values.has("resume") && config.segments() > 1)
    throw_usage(
        "--resume: not with a soak of several segments; its files are judged together by 'assay verdict "
        "DIR'");
  constexpr double shortest_s = 1, longest_s = 366.0 * 86400;
  if (config.duration_s < shortest_s || config.duration_s > longest_s) {
    throw_usage(fmt::format("--duration: {} s is not between 1 s and 366 days", config.duration_s));
  }
}

std::vector<FaultSpec> faults_from(const std::vector<std::string>& texts) {
  std::vector<FaultSpec> faults;
  for (const std::string& text : texts) {
    try {
      faults.push_back(parse_fault(text));
    } catch (const Error& e) {
      throw_usage(fmt::format("--inject: {}", e.what()));
    }
  }
  return faults;
}

void set_output(Config& config, const OptionValues& values) {
  // What a link points to is replaced, and the directory of the running run is beside it.
  config.out = target_of(values.has("out") ? values.text("out") : default_file_name()).string();
  check_name_length("--out", config.out);
  config.resume = values.text("resume");
  while (config.resume.size() > 1 && config.resume.ends_with('/')) config.resume.pop_back();
  config.only = values.text("only");
  config.exclude = values.text("exclude");
  if (!config.resume.empty() && !config.resume.ends_with(".partial") && !config.resume.ends_with(".h5"))
    throw_usage(fmt::format("--resume: '{}' is neither NAME.h5.partial nor NAME.h5", config.resume));
  if (!config.resume.empty() && !config.carries_over()) {
    std::error_code code;
    if (values.has("out") && !std::filesystem::exists(config.resume, code))
      throw_usage(fmt::format("--resume: there is no '{}'", config.resume));
    if (values.has("out")) throw_usage("--out: --resume writes the file of the resumed run");
    config.out = config.resume.substr(0, config.resume.size() - std::string_view(".partial").size());
  }
  // --force would clear it away before it is read.
  std::error_code none;
  if (config.carries_over() && (config.resume == config.out + ".partial" ||
                                std::filesystem::equivalent(config.resume, config.out + ".partial", none)))
    throw_usage(fmt::format("--out: the results in {} are taken over into a new file, give it another name",
                            config.resume));
  config.force = values.flag("force");
  std::set<std::string> seen{config.out};
  for (const auto& [name, value] : values.all()) {
    const std::string file = values.use(name) == OptionUse::output_file ? values.text(name) : "";
    if (!file.empty() && !seen.insert(file).second) {
      throw_usage(fmt::format("--{}: '{}' is already the file of another option", name, file));
    }
  }
}

void set_terminal(Config& config, const OptionValues& values) {
  config.quiet = values.flag("quiet");
  config.color = values.text("color");
  config.progress = values.text("progress");
  if (values.flag("no-color")) {
    if (config.color == "always") throw_usage("--no-color: contradicts --color always");
    config.color = "never";
  }
  if (config.quiet && config.progress == "always") throw_usage("--quiet: contradicts --progress always");
}

Json value_to_json(const OptionValues::Value& value) {
  return std::visit(
      [](const auto& v) -> Json {
        if constexpr (std::is_same_v<std::decay_t<decltype(v)>, std::monostate>) {
          return nullptr;
        } else {
          return v;
        }
      },
      value);
}

}  // namespace

std::string default_file_name() { return "assay-" + utc_now_compact() + ".h5"; }

const char* to_string(Level level) noexcept { return level_names[static_cast<std::size_t>(level)]; }

double level_budget_s(Level level, double duration_s) noexcept {
  switch (level) {
    case Level::smoke: return 15;
    case Level::quick: return 120;
    case Level::standard: return 900;
    case Level::extended: return 7200;
    case Level::soak: return duration_s;
  }
  return 0;
}

Json Config::to_json(bool for_hash) const {
  Json json = Json::object();
  std::vector<std::string> presentation{"command_line", "seed-given"};
  for (const auto& [name, value] : options.all()) {
    const bool measures = !is_presentation(options.use(name));
    if (!measures) presentation.push_back(name);
    if (measures || !for_hash) json[name] = !measures && !options.has(name) ? Json("") : value_to_json(value);
  }
  json.erase("seed");
  json["suites"] = suites;
  json["limits_text"] = limits_text;
  json["topology_text"] = topology_text;
  if (for_hash) {
    // A seed that was not given is made on rank 0 and told to the others; a given one must be the same
    // everywhere.
    if (seed_given) json["seed"] = seed;
    return json;
  }
  json["seed"] = seed;
  json["seed-given"] = seed_given;
  json["out"] = out;
  json["color"] = color;
  json["command_line"] = command_line;
  json["presentation"] =
      std::move(presentation);  // for those who compare two configurations: differences in these are none
  return json;
}

Config make_config(OptionValues values, const std::vector<std::string>& suite_names,
                   const std::vector<std::string>& hidden_suites) {
  Config config;
  config.suites = choose_suites(values.list("suites"), suite_names, hidden_suites);
  config.cases_glob = values.text("cases");
  config.level = level_from(values.text("level"));
  if (config.level == Level::soak)
    set_duration(config, values);
  else
    leave_out_soak(values, config.level);
  config.device = values.text("device");
  config.share_gpus = values.flag("share-gpus");
  if (config.share_gpus && config.device == "host") throw_usage("--share-gpus: contradicts --device host");
  set_output(config, values);
  config.seed_given = values.has("seed");
  config.seed = static_cast<std::uint64_t>(counted(values, "seed", 0));
  config.limits_file = values.text("limits");
  config.topology_file = values.text("topology");
  config.expect_nodes = counted(values, "expect-nodes");
  config.expect_ranks = counted(values, "expect-ranks");
  config.expect_devices = counted(values, "expect-devices");
  config.threads = counted(values, "threads", 1, 65536);
  counted(values, "relaunch", 0);
  config.telemetry_given = values.has("telemetry-hz");
  config.telemetry_hz = config.telemetry_given         ? values.number("telemetry-hz")
                        : config.level == Level::smoke ? 0
                                                       : 1;
  if (config.telemetry_hz != 0 && !(config.telemetry_hz >= 0.1 && config.telemetry_hz <= 10))
    throw_usage(fmt::format("--telemetry-hz: {} is neither 0 nor between 0.1 and 10", config.telemetry_hz));
  config.require = values.list("require");
  if (values.has("max-file")) {
    config.max_file_bytes = values.bytes("max-file");
    if (config.max_file_bytes == 0) throw_usage("--max-file: 0 leaves no room for any result");
  }
  config.faults = faults_from(values.list("inject"));
  config.strict = values.flag("strict");
  set_terminal(config, values);
  config.options = std::move(values);
  return config;
}

}  // namespace assay
