// SPDX-License-Identifier: Apache-2.0
#include "transport/ucx_path.hpp"

#include <fmt/format.h>

#include <set>

namespace assay::ucx {
std::string path_from_info(std::string_view text) {
  std::set<std::string> paths;
  constexpr std::string_view lane = "lane[";
  for (std::size_t at = text.find(lane); at != std::string_view::npos; at = text.find(lane, at + 1)) {
    std::string_view line = text.substr(at, text.find('\n', at) - at);
    // "lane[0]:  2:tcp/eth0.0 md[1] ...": the resource is the word after the second colon, its last part a
    // number.
    for (int colons = 0; colons < 2; ++colons) {
      const std::size_t colon = line.find(':');
      line = colon == std::string_view::npos ? std::string_view() : line.substr(colon + 1);
    }
    const std::string_view resource = line.substr(0, line.find(' '));
    const std::size_t dot = resource.rfind('.');
    if (resource.find('/') != std::string_view::npos && dot != std::string_view::npos)
      paths.emplace(resource.substr(0, dot));
  }
  return fmt::format("{}", fmt::join(paths, "+"));
}

}  // namespace assay::ucx
