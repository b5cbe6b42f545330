// SPDX-License-Identifier: Apache-2.0
// Findings of storage name the directory, and of one node the disks beneath it: the number of a case does
// not.
#include <algorithm>
#include <set>
#include <string>

#include "verdict/judgement.hpp"

namespace assay::verdict {
namespace {

/// The directory of the case; empty where it has none, or several.
std::string directory_of(const Series& s) {
  if (s.first == nullptr) return "";
  const auto it = s.first->parameters.find("path");
  return it != s.first->parameters.end() && it->is_string() ? it->get<std::string>() : "";
}

/// The node of all rows of a finding, -1 where there is none.
std::int32_t only_node(const Judgement& j, const Found& found) {
  std::set<std::int32_t> nodes;
  for (const std::int32_t row : found.rows) nodes.insert(j.entities.node(row));
  return nodes.size() == 1 ? *nodes.begin() : -1;
}

/// " (disk nvme0n1 MODEL, firmware F; disk ...)" of what `storage-place` says of the directory on the node.
std::string disks_of(const Judgement& j, std::int32_t node, const std::string& directory) {
  const auto event = std::find_if(j.results.events.begin(), j.results.events.end(), [&](const auto& e) {
    return e.kind == "storage-place" && e.entity == node && e.text.starts_with(directory + ": ");
  });
  if (node < 0 || event == j.results.events.end()) return "";
  constexpr std::string_view mark = "; disk ";
  const std::string& text = event->text;
  std::string out;
  for (std::size_t at = text.find(mark); at != std::string::npos; at = text.find(mark, at + 1))
    out += (out.empty() ? "" : "; ") + text.substr(at + 2, text.find("; ", at + 2) - at - 2);
  return out.empty() ? "" : " (" + out + ")";
}

/// "; sdb took 12 ms for a request, 3 times ..." of what a case (`storage-slow-disk`) says of the node's
/// disks.
std::string slow_disk_of(const Judgement& j, std::int32_t node, const std::string& directory) {
  const auto event = std::find_if(j.results.events.begin(), j.results.events.end(), [&](const auto& e) {
    return e.kind == "storage-slow-disk" && e.entity == node && e.text.starts_with(directory + ": ");
  });
  if (node < 0 || event == j.results.events.end()) return "";
  return "; " + event->text.substr(directory.size() + 2);
}

}  // namespace

void name_storage_places(Judgement& j) {
  for (Found& found : j.found) {
    results::Finding& f = found.finding;
    const Series* series = series_of(j, f);
    const bool of_storage = series != nullptr && series->is_of(results::MetricClass::storage);
    const std::string directory = of_storage ? directory_of(*series) : "";
    if (directory.empty() || f.text.find(directory) != std::string::npos) continue;
    const std::int32_t node = only_node(j, found);
    f.text.insert(std::min(f.text.find("; next:"), f.text.size()),
                  "; in " + directory + disks_of(j, node, directory) + slow_disk_of(j, node, directory));
  }
}

}  // namespace assay::verdict
