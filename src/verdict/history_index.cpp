// SPDX-License-Identifier: Apache-2.0
#include "verdict/history_index.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <sstream>
#include <utility>

#include "base/error.hpp"
#include "results/reader.hpp"
#include "verdict/pack.hpp"
#include "verdict/snapshot_archive.hpp"

namespace assay::verdict {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void bad(const std::string& message) { throw Error(ErrorKind::data, message); }

struct FileState {
  std::int64_t bytes = -1, changed_ns = 0;
};

FileState state_of(const fs::path& path) {
  struct stat s {};
  if (::stat(path.c_str(), &s) != 0 || !S_ISREG(s.st_mode)) return {};
  return {s.st_size, s.st_mtim.tv_sec * 1000000000LL + s.st_mtim.tv_nsec};
}

bool fits(const IndexedRun& run, const FileState& state) {
  return run.bytes == state.bytes && run.changed_ns == state.changed_ns;
}

std::vector<fs::path> results_files(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code code;
  for (fs::directory_iterator at(folder, code), end; !code && at != end; at.increment(code)) {
    if (at->path().extension() == ".h5" && !fs::is_directory(at->path())) files.push_back(at->path());
  }
  if (code) bad(folder.string() + ": cannot be read: " + code.message());
  std::sort(files.begin(), files.end());
  return files;
}

/// One results file, boiled down where it is read; a partial directory is read file by file.
Snapshot snapshot_read(const fs::path& file) {
  const std::string name = file.filename().string();
  std::error_code code;
  if (fs::is_directory(file, code)) return snapshot_of(results::load(file), name);
  auto runs = runs_read_confined(file.string(), [&](const InputFile& input) {
    std::vector<IndexedRun> out;
    out.push_back({name, 0, 0, snapshot_of(results::load_own(input), name)});
    return out;
  });
  if (runs.size() != 1) bad(file.string() + ": is no results file");
  return std::move(runs.front().run);
}

std::vector<IndexedRun> index_read(const fs::path& path) {
  return runs_read_confined(path.string(), [](const InputFile& input) { return parse_index(input.text()); });
}

/// Whole or not at all: readers see the old index or the new one. Nothing is lost when it cannot be written.
void store(const fs::path& folder, const std::vector<IndexedRun>& runs) {
  const fs::path to = folder / index_name;
  const std::string from = to.string() + ".tmp" + std::to_string(::getpid());
  const int out = ::open(from.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (out < 0) return;
  const std::string bytes = index_bytes(runs);
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n = ::write(out, bytes.data() + done, bytes.size() - done);
    if (n <= 0) break;
    done += static_cast<std::size_t>(n);
  }
  const bool whole = done == bytes.size() && ::fsync(out) == 0;
  ::close(out);
  if (!whole || ::rename(from.c_str(), to.c_str()) != 0) ::unlink(from.c_str());
}

/// The entries of the index of a folder; none when there is no index, or one that this assay cannot read.
std::map<std::string, IndexedRun> known_runs(const fs::path& folder) {
  std::map<std::string, IndexedRun> known;
  std::error_code code;
  if (!fs::is_regular_file(folder / index_name, code)) return known;
  try {
    for (auto& run : index_read(folder / index_name)) known[run.file] = std::move(run);
  } catch (const Error&) {
    known.clear();
  }
  return known;
}

/// Whether two files hold one run: at least one series in common, and the same values in all of these.
bool same_run(const Snapshot& a, const Snapshot& b) {
  if (a.source.run_id.empty() || a.source.run_id != b.source.run_id || a.source.started != b.source.started)
    return false;
  if (a.source.hash == b.source.hash) return true;
  std::map<std::pair<std::string, std::string>, const SnapshotSeries*> known;
  for (const auto& s : a.series) known[{s.full(), s.case_key}] = &s;
  bool common = false;
  for (const auto& s : b.series) {
    const auto at = known.find({s.full(), s.case_key});
    if (at == known.end()) continue;
    common = true;
    if (at->second->log_rate != s.log_rate) return false;
  }
  return common;
}

std::vector<Snapshot> read_folder(const fs::path& folder, IndexUse use) {
  const auto files = results_files(folder);
  if (files.empty()) {
    std::error_code code;
    if (fs::exists(folder / index_name, code)) return read_runs((folder / index_name).string(), use);
    if (use == IndexUse::update) return {};
    bad(folder.string() + ": no results file (NAME.h5) is in it");
  }
  auto known = known_runs(folder);
  bool fresh = known.size() != files.size();
  std::vector<IndexedRun> runs;
  for (const auto& file : files) {
    const FileState state = state_of(file);
    const std::string name = file.filename().string();
    const auto at = known.find(name);
    if (at != known.end() && fits(at->second, state)) {
      runs.push_back(std::move(at->second));
      continue;
    }
    fresh = true;
    runs.push_back({name, state.bytes, state.changed_ns, snapshot_read(file)});
  }
  if (fresh && use == IndexUse::update) store(folder, runs);
  std::vector<Snapshot> out;
  for (auto& run : runs) out.push_back(std::move(run.run));
  leave_out_copies(out);
  return out;
}

std::vector<Snapshot> read_index(const fs::path& path) {
  std::vector<IndexedRun> runs;
  try {
    runs = index_read(path);
  } catch (const Error& e) {
    const std::string why = e.what();
    bad(why.starts_with(path.string()) ? why : path.string() + ": " + why);
  }
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  std::map<std::string, const IndexedRun*> known;
  for (const auto& run : runs) known[run.file] = &run;
  for (const auto& file : results_files(folder)) {
    const auto at = known.find(file.filename().string());
    if (at == known.end() || !fits(*at->second, state_of(file)))
      bad(path.string() + ": is stale: " + file.filename().string() +
          " has changed since; give the directory instead");
  }
  std::vector<Snapshot> out;
  for (auto& run : runs) out.push_back(std::move(run.run));
  leave_out_copies(out);
  return out;
}

void order(std::vector<Snapshot>& runs) {
  std::stable_sort(runs.begin(), runs.end(), [](const auto& a, const auto& b) {
    return std::tie(a.source.started, a.source.file) < std::tie(b.source.started, b.source.file);
  });
}

}  // namespace

void leave_out_copies(std::vector<Snapshot>& runs) {
  std::map<std::string, std::vector<std::size_t>> kept;  // by run ID
  std::vector<bool> copy(runs.size());
  for (std::size_t i = 0; i < runs.size(); ++i) {
    auto& others = kept[runs[i].source.run_id];
    const auto at = std::ranges::find_if(others, [&](std::size_t k) { return same_run(runs[k], runs[i]); });
    if (at == others.end()) {
      others.push_back(i);
      continue;
    }
    const bool better = runs[i].series.size() > runs[*at].series.size();
    copy[better ? *at : i] = true;
    if (better) *at = i;
  }
  std::size_t i = 0;
  std::erase_if(runs, [&](const Snapshot&) { return copy[i++]; });
}

namespace {

bool is_folder(const std::string& path) {
  std::error_code code;
  return fs::is_directory(path, code) && !path.ends_with(".partial") && !path.ends_with(".partial/");
}

}  // namespace

std::vector<Snapshot> read_runs(const std::string& path, IndexUse use) {
  std::error_code code;
  const fs::path at(path);
  std::vector<Snapshot> runs;
  if (!fs::exists(at, code)) bad("cannot read " + path + ": No such file or directory");
  if (is_folder(path)) {
    runs = read_folder(at, use);
  } else if (at.filename() == index_name || at.extension() == ".index") {
    runs = read_index(at);
  } else {
    runs.push_back(snapshot_read(at));
  }
  order(runs);
  return runs;
}

std::vector<std::string> names_of(const std::string& list) {
  std::error_code code;
  if (fs::exists(list, code)) return {list};
  std::vector<std::string> names;
  std::istringstream stream(list);
  for (std::string name; std::getline(stream, name, ',');)
    if (!name.empty()) names.push_back(name);
  return names;
}

std::vector<Snapshot> read_run_list(const std::string& list, IndexUse use) {
  const auto names = names_of(list);
  if (names.empty()) bad("'" + list + "' names no results file");
  std::vector<Snapshot> runs;
  for (const std::string& name : names)
    for (auto& run : read_runs(name, use)) runs.push_back(std::move(run));
  // Directories may share runs; of files one that is given twice may be a mistake, which the caller tells.
  if (std::ranges::any_of(names, is_folder)) leave_out_copies(runs);
  order(runs);
  return runs;
}

}  // namespace assay::verdict
