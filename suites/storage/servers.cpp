// SPDX-License-Identifier: Apache-2.0
#include "suites/storage/servers.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <set>
#include <sstream>

#include "base/child_process.hpp"
#include "base/error.hpp"
#include "base/system.hpp"
#include "suites/storage/local_file.hpp"
#include "suites/storage/refused.hpp"

namespace assay::storage {
namespace {

constexpr int highest_index = 0xffff;  ///< of a Lustre target
constexpr std::size_t longest_name = 128;
constexpr int tool_ms = 20000;
constexpr std::size_t alignment = 64 << 10;  ///< of requests, at least

/// Text of tools becomes names of parts: nothing else than what such names consist of.
bool is_name(const std::string& text) {
  return !text.empty() && text.size() <= longest_name && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::strchr("._-:@%[]", c) != nullptr;
  });
}

/// A whole number from 0 on that is all of the text; -1 for others.
int index_of(const std::string& text) {
  int value = -1;
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && at == end && value >= 0 && value <= highest_index ? value : -1;
}

std::vector<std::string> words_of(const std::string& line) {
  std::istringstream in(line);
  std::vector<std::string> words;
  for (std::string word; words.size() < 16 && in >> word;) words.push_back(std::move(word));
  return words;
}

void cut(std::string& text, const std::string& tail) {
  if (text.ends_with(tail)) text.erase(text.size() - tail.size());
}

/// What a tool prints. It gets no other input than its arguments and the time of `tool_ms`.
std::string output_of(std::vector<std::string> command) {
  const CapturedOutput out;
  ChildProcess child(command.front(), [&] {
    out.redirect(STDOUT_FILENO);
    out.redirect(STDERR_FILENO);
    std::vector<char*> arguments;
    for (std::string& word : command) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    ::setenv("LC_ALL", "C", 1);
    ::execvp(arguments.front(), arguments.data());
    return 127;
  });
  const int code = exit_code_of(child.wait_or_kill(tool_ms));
  std::string text = out.text();
  if (code == 0) return text;
  text.resize(std::min<std::size_t>(text.find('\n'), std::min<std::size_t>(text.size(), 200)));
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c >= 0x7f; }, '?');
  throw Error(ErrorKind::resource, fmt::format("{}: {} {}: exit code {}{}{}", host_name(), command[0],
                                               command[1], code, text.empty() ? "" : ": ", text));
}

/// Around the page cache where the file system can.
ServerFiles::File open_placed(const std::string& server, const std::string& path, bool direct) {
  try {
    return {server, path, open_made(path, direct, true), ""};
  } catch (const Refused& e) {
    if (!direct) throw;
    return {server, path, open_made(path, false, true), fmt::format("open: {}", std::strerror(e.reason()))};
  }
}

/// At most `most` of them, spread over all.
template <typename T>
void spread(std::vector<T>& all, std::size_t most) {
  if (all.size() <= most) return;
  for (std::size_t i = 0; i < most; ++i) all[i] = all[i * all.size() / most];
  all.resize(most);
}

}  // namespace

std::vector<LustreTarget> parse_lfs_osts(const std::string& text) {
  std::vector<LustreTarget> targets;
  std::set<int> seen;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    auto words = words_of(line);
    if (words.size() < 2 || !words[0].ends_with(":") || (words.size() > 2 && words[2] != "ACTIVE")) continue;
    const int index = index_of(words[0].substr(0, words[0].size() - 1));
    cut(words[1], "_UUID");
    if (index >= 0 && is_name(words[1]) && seen.insert(index).second) targets.push_back({index, words[1]});
  }
  return targets;
}

std::vector<int> parse_lfs_getstripe(const std::string& text) {
  std::vector<int> found;
  const auto add = [&](int index) {
    if (index >= 0 && std::find(found.begin(), found.end(), index) == found.end()) found.push_back(index);
  };
  std::istringstream lines(text);
  bool table = false;
  for (std::string line; std::getline(lines, line);) {
    const auto words = words_of(line);
    if (words.empty()) {
      table = false;
    } else if (words[0] == "obdidx") {
      table = true;
    } else if (table) {
      add(index_of(words[0]));
    }
    // Composite layouts: "- 0: { l_ost_idx: 3, l_fid: [0x100030000:0x2:0x0] }".
    for (std::size_t i = 0; i + 1 < words.size(); ++i)
      if (words[i] == "l_ost_idx:") add(index_of(words[i + 1].substr(0, words[i + 1].find(','))));
  }
  return found;
}

std::vector<std::string> parse_beegfs_entry(const std::string& text) {
  std::vector<std::string> found;
  std::istringstream lines(text);
  bool targets = false;
  for (std::string line; std::getline(lines, line);) {
    const auto words = words_of(line);
    const bool heading = line.find("Storage targets:") != std::string::npos ||
                         line.find("Storage mirror buddy groups:") != std::string::npos;
    if (heading) targets = true;
    if (heading || !targets) continue;
    // "  + 101 @ storage01 [ID: 1]"
    if (words.size() < 4 || words[0] != "+" || index_of(words[1]) < 0 || words[2] != "@" ||
        !is_name(words[3])) {
      targets = false;
      continue;
    }
    const std::string name = words[3] + "/" + words[1];
    if (std::find(found.begin(), found.end(), name) == found.end()) found.push_back(name);
  }
  return found;
}

std::string server_of_mount(const Mount& mount) {
  const std::string& source = mount.source;
  std::string server;
  if (source.starts_with("//")) {
    server = source.substr(2, source.find('/', 2) - 2);
  } else if (source.starts_with("[")) {
    const auto end = source.find("]:");
    if (end != std::string::npos) server = source.substr(0, end + 1);
  } else if (const auto colon = source.find(":/"); colon != std::string::npos) {
    server = source.substr(0, colon);
  }
  return is_name(server) ? server : std::string();
}

bool tells_server(const Mount& mount) {
  static const std::set<std::string> types = {"nfs", "nfs4", "cifs", "smb3", "smbfs", "fuse.sshfs"};
  return types.contains(mount.type) && !server_of_mount(mount).empty();
}

void ServerFiles::place(const std::string& tool, const Site& site, std::size_t path, const std::string& name,
                        bool direct, std::size_t most, const std::string& server) {
  folders_.push_back({std::make_unique<Folder>(site.paths[path], site.run, site.file_systems[path]), {}});
  Folder& folder = *folders_.back().folder;
  if (tool == "lfs") return by_lfs(folder, name, direct, most);
  if (tool == "beegfs-ctl") return by_beegfs(folder, name, direct, most);
  folders_.back().names.push_back(name);
  Descriptor fd;
  std::string why;
  if (direct) fd = create_direct(folder, name, false, alignment, why);
  if (!fd) fd = folder.create(name, false, false);
  files_.push_back({server, folder.path() + "/data-" + name, std::move(fd), why});
}

void ServerFiles::by_lfs(Folder& folder, const std::string& name, bool direct, std::size_t most) {
  auto targets = parse_lfs_osts(output_of({"lfs", "osts", folder.path()}));
  spread(targets, most);
  for (const LustreTarget& target : targets) {
    const std::string own = fmt::format("{}-{}", name, target.index);
    const std::string path = folder.path() + "/data-" + own;
    folders_.back().names.push_back(own);
    output_of({"lfs", "setstripe", "-c", "1", "-i", std::to_string(target.index), path});
    // The file system may have taken another one, where this is full.
    if (parse_lfs_getstripe(output_of({"lfs", "getstripe", path})) == std::vector{target.index})
      files_.push_back(open_placed(target.name, path, direct));
  }
}

/// New files come to targets in turn or by chance; directories cannot be bound to one by users.
void ServerFiles::by_beegfs(Folder& folder, const std::string& name, bool direct, std::size_t most) {
  output_of({"beegfs-ctl", "--setpattern", "--numtargets=1", "--chunksize=1m", folder.path()});
  std::set<std::string> seen;
  std::size_t in_vain = 0;
  for (std::size_t i = 0; seen.size() < most && in_vain < 8 + 2 * seen.size(); ++i) {
    const std::string own = fmt::format("{}-{}", name, i);
    Descriptor fd;
    std::string why;
    if (direct) fd = create_direct(folder, own, false, alignment, why);
    if (!fd) fd = folder.create(own, false, false);
    folders_.back().names.push_back(own);
    const std::string path = folder.path() + "/data-" + own;
    const auto targets = parse_beegfs_entry(output_of({"beegfs-ctl", "--getentryinfo", path}));
    if (targets.size() == 1 && seen.insert(targets.front()).second) {
      files_.push_back({targets.front(), path, std::move(fd), why});
      in_vain = 0;
    } else {
      ++in_vain;
    }
  }
}

std::uint64_t ServerFiles::space_per_file(std::uint64_t asked, std::uint64_t clients) const {
  std::uint64_t least = ~std::uint64_t{0};
  for (const In& in : folders_)
    least = std::min(least, allowance(in.folder->space(), asked) /
                                (clients * std::max<std::uint64_t>(1, in.names.size())));
  return least;
}

void ServerFiles::drop_names() {
  for (In& in : folders_)
    for (const std::string& name : in.names) in.folder->remove(name);
}

}  // namespace assay::storage
