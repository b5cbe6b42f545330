// SPDX-License-Identifier: Apache-2.0
#include "run/selection.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <sstream>
#include <unordered_set>

#include "base/error.hpp"
#include "base/glob.hpp"
#include "base/hostlist.hpp"
#include "base/json.hpp"
#include "base/system.hpp"

namespace assay {
namespace {

constexpr std::size_t largest_list_bytes = std::size_t{16} << 20;

/// None, where the text is empty or all comment.
std::vector<std::string> listed_in(const std::string& option, const std::string& text) {
  try {
    return expand_hostlist(text);
  } catch (const Error& e) {
    throw_usage(fmt::format("--{}: {}", option, e.what()));
  }
}

std::vector<std::string> names_of(const std::string& option, const std::string& text) {
  auto names = listed_in(option, text);
  if (names.empty()) throw_usage(fmt::format("--{}: names no node", option));
  return names;
}

bool is_plain(const std::string& name) { return name.find_first_of("*?[\\") == std::string::npos; }

/// A list of nodes: it may name all nodes of a large cluster, and few of the words are patterns.
class Names {
 public:
  explicit Names(const std::vector<std::string>& words) {
    for (const std::string& word : words)
      if (is_plain(word))
        plain_.insert(word);
      else
        patterns_.push_back(word);
  }
  bool match(const std::string& host) const {
    return plain_.contains(host) ||
           std::ranges::any_of(patterns_, [&](const std::string& p) { return glob_match(p, host); });
  }

 private:
  std::unordered_set<std::string> plain_;
  std::vector<std::string> patterns_;
};

/// The hosts of all ranks.
class Hosts {
 public:
  explicit Hosts(const std::vector<std::string>& hosts) : hosts_(hosts.begin(), hosts.end()) {}
  bool have(const std::string& name) const {
    if (is_plain(name)) return hosts_.contains(name);
    return std::ranges::any_of(hosts_, [&](const std::string& host) { return glob_match(name, host); });
  }

 private:
  std::unordered_set<std::string> hosts_;
};

/// A typing error in the name of a file must not pass for the name of a node.
bool looks_like_a_file(const std::string& word) {
  constexpr std::array endings{".txt", ".list", ".lst", ".nodes", ".hosts"};
  return word.find('/') != std::string::npos ||
         std::ranges::any_of(endings, [&](const char* ending) { return word.ends_with(ending); });
}

[[noreturn]] void throw_no_file(const std::string& option, const std::string& word) {
  throw_usage(fmt::format("--{}: {} is no file and no node", option, word));
}

/// What is typed after --only or --exclude: a list of nodes, or a file that holds one.
std::string list_text(const std::string& option, const std::string& typed) {
  if (typed.empty()) return "";
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(typed, ignored)) {
    if (typed.find('/') != std::string::npos) throw_no_file(option, typed);
    return typed;
  }
  std::ifstream file(typed, std::ios::binary);
  if (!file) throw_usage(fmt::format("--{}: cannot read '{}'", option, typed));
  std::string text(largest_list_bytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad()) throw_usage(fmt::format("--{}: cannot read '{}'", option, typed));
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.size() > largest_list_bytes)
    throw_usage(fmt::format("--{}: '{}' is no list of nodes: larger than 16 MiB", option, typed));
  if (listed_in(option, text).empty()) {
    if (option == "only") throw_usage(fmt::format("--only: '{}' names no node", typed));
    return "";
  }
  return text;
}

}  // namespace

std::string node_list(const std::string& option, const std::string& typed) {
  const std::string text = list_text(option, typed);
  return text.find_first_of(" \t\r\n#") == std::string::npos
             ? text
             : fmt::format("{}", fmt::join(names_of(option, text), ","));
}

/// Names of --exclude that no node of the launch has: a typing error leaves the node in.
std::vector<std::string> unknown_names(const std::vector<std::string>& hosts, const std::string& exclude) {
  if (exclude.empty()) return {};
  std::vector<std::string> unknown = names_of("exclude", exclude);
  const Hosts launched(hosts);
  std::erase_if(unknown, [&](const std::string& name) { return launched.have(name); });
  return unknown;
}

std::vector<int> choose_ranks(const std::vector<std::string>& hosts, const std::string& only,
                              const std::string& exclude) {
  std::vector<int> ranks(hosts.size());
  std::iota(ranks.begin(), ranks.end(), 0);
  const Names excluded(exclude.empty() ? std::vector<std::string>() : names_of("exclude", exclude));
  const auto leave_out = [&](const auto& if_host) {
    std::erase_if(ranks, [&](int r) { return if_host(hosts[static_cast<std::size_t>(r)]); });
  };
  if (!only.empty()) {
    const auto names = names_of("only", only);
    const Hosts launched(hosts);
    // A node that was lost is excluded, and the launcher may have left it out.
    for (const std::string& name : names)
      if (!excluded.match(name) && !launched.have(name))
        looks_like_a_file(name) ? throw_no_file("only", name)
                                : throw_usage(fmt::format("--only: no rank runs on '{}'", name));
    leave_out([asked = Names(names)](const std::string& host) { return !asked.match(host); });
  }
  for (const std::string& name : unknown_names(hosts, exclude))
    if (looks_like_a_file(name)) throw_no_file("exclude", name);
  if (!exclude.empty()) {
    leave_out([&](const std::string& host) { return excluded.match(host); });
    if (ranks.empty()) throw_usage("--exclude: no node is left to measure");
  }
  return ranks;
}

bool is_asked_for(const std::string& host, const std::string& only, const std::string& exclude) {
  const auto listed = [&](const char* option, const std::string& text) {
    return !text.empty() && Names(names_of(option, text)).match(host);
  };
  return (only.empty() || listed("only", only)) && !listed("exclude", exclude);
}

std::vector<int> select_ranks(Communicator& launch, const Config& config) {
  if (config.only.empty() && config.exclude.empty()) {
    std::vector<int> all(static_cast<std::size_t>(launch.size()));
    std::iota(all.begin(), all.end(), 0);
    return all;
  }
  const auto hosts = launch.all_gather_text(host_name());
  Json agreed;
  if (launch.rank() == 0) {
    try {
      agreed = {{"only", list_text("only", config.only)}, {"exclude", list_text("exclude", config.exclude)}};
    } catch (const Error& e) {
      agreed = {{"error", e.what()}};
    }
  }
  agreed = Json::parse(launch.broadcast_text(agreed.dump(-1, ' ', false, Json::error_handler_t::replace), 0));
  if (agreed.contains("error")) throw_usage(agreed.at("error").get<std::string>());
  const auto ranks = choose_ranks(hosts, agreed.at("only"), agreed.at("exclude"));
  // A launch without a lost node excludes it all the same.
  const bool again = config.options.has("spent") && config.options.number("spent") > 0;
  if (launch.rank() == 0 && !config.exclude.empty() && agreed.at("exclude").get<std::string>().empty())
    std::fprintf(stderr, "assay: --exclude: '%s' names no node\n", config.exclude.c_str());
  if (launch.rank() == 0 && !again)
    for (const std::string& name : unknown_names(hosts, agreed.at("exclude")))
      std::fprintf(stderr, "assay: --exclude: '%s' is no node of this launch\n", name.c_str());
  return ranks;
}

}  // namespace assay
