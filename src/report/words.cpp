// SPDX-License-Identifier: Apache-2.0
#include "report/words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>
#include <utility>

#include "base/units.hpp"

namespace assay::report {

std::string pass_words(const verdict::Judgement& j) {
  const verdict::Compared c = verdict::compared_of(j);
  std::size_t absent = 0;
  for (const auto& p : j.results.plan) absent += p.required && p.state == "not_applicable" ? 1 : 0;
  std::string out = "Every required case that applies was measured, and no fault was found. ";
  if (c.with_something() == 0) {
    out += fmt::format(
        "No rate was compared: {} value{} with nothing. Only checks of results, parts and counters decided.",
        c.nothing, c.nothing == 1 ? "" : "s");
  } else {
    std::string with;
    const auto add = [&](std::size_t n, const char* what) {
      if (n > 0) with += fmt::format("{}{} with {}", with.empty() ? "" : ", ", n, what);
    };
    add(c.limits, "limits");
    add(c.baseline, "a baseline");
    add(c.hardware, "hardware rates");
    add(c.history, "their own history");
    add(c.peers, "peers only");
    add(c.nothing, "nothing");
    out += "Values compared: " + with + ".";
  }
  if (absent > 0)
    out += fmt::format(" {} required case{} not applicable here.", absent, absent == 1 ? " was" : "s were");
  return out;
}

std::string level_words(const std::string& level) {
  if (level == "smoke") return "up to 15 s; FAILs only wrong results, missing parts and deficits over 20 %";
  if (level == "quick") return "up to 2 min, a first look; uncertain medians are only noted";
  const char* open = "uncertain medians make the run INCONCLUSIVE";
  if (level == "standard") return std::string("up to 15 min, nightly; ") + open;
  if (level == "extended") return std::string("up to 2 h, acceptance; ") + open;
  if (level == "soak") return std::string("burn-in; ") + open;
  return "";
}

std::string confirmation_words(const results::Finding& f) {
  static constexpr std::array<std::pair<std::string_view, const char*>, 9> words{
      {{"fact", "a fact"},
       {"retest", "measured again"},
       {"others", "others that are as slow were measured again and confirmed"},
       {"blocks", "it lasted, in several blocks of samples over a minute"},
       {"runs", "the run before showed it too; not measured again"},
       {"counter", "its throttle counter rose meanwhile"},
       {"interval", "the whole 95 % interval lies beyond the bound; not measured again"},
       {"exact", "an exact count"},
       {"size", "by its size; not measured again"}}};
  const auto* at = std::ranges::find(words, f.confirmed_by, &std::pair<std::string_view, const char*>::first);
  return at == words.end() ? "" : at->second;
}

std::string group_words(const std::string& stratum) {
  std::string out;
  for (std::size_t at = 0; at < stratum.size();) {
    double rate = 0;
    const char* const begin = stratum.data() + at + 2;
    const char* const end = stratum.data() + stratum.size();
    if (stratum.compare(at, 2, " x") == 0) {
      const auto [stop, error] = std::from_chars(begin, end, rate);
      constexpr double least = 1e6;  // fewer are cores
      if (error == std::errc{} && rate >= least && (stop == end || *stop == ' ' || *stop == ',')) {
        out += " " + format_quantity(rate, "B/s") + " NIC";
        at = static_cast<std::size_t>(stop - stratum.data());
        continue;
      }
    }
    out += stratum[at++];
  }
  return out;
}

}  // namespace assay::report
