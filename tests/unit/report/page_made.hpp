// SPDX-License-Identifier: Apache-2.0
// Pages of results made by hand.
#pragma once

#include "report/html/page.hpp"
#include "tests/unit/fabricate.hpp"

namespace assay {

struct Made {
  explicit Made(results::Results r, verdict::Options o = {})
      : results(std::move(r)),
        options(std::move(o)),
        judgement(results, options),
        verdict(verdict::judge_all(judgement)) {}
  report::PageInput input() const {
    return {"run.h5", "00ff", results, judgement, verdict, {}, std::nullopt, std::nullopt, {}, nullptr};
  }
  results::Results results;
  verdict::Options options;
  verdict::Judgement judgement;
  results::VerdictData verdict;
};

inline results::Results fleet(int nodes, double slow_factor = 1) {
  auto r = fabricate::cluster(nodes);
  const auto rows = fabricate::rows_of_kind(r, "device");
  std::vector<double> values;
  for (std::size_t i = 0; i < rows.size(); ++i)
    values.push_back(1e11 * fabricate::wobble(i) * (i == 3 ? slow_factor : 1));
  fabricate::add_case(r, "memory", "triad-together", "bandwidth", "B/s", results::Better::higher, "device",
                      rows, values, 12);
  return r;
}

/// The data block, as the script of the page reads it.
inline Json data_of(const std::string& page) {
  const std::string begin = "id=\"data\">";
  const auto from = page.find(begin) + begin.size();
  return Json::parse(page.substr(from, page.find("</script>", from) - from));
}

}  // namespace assay
