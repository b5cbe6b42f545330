// SPDX-License-Identifier: Apache-2.0
#include "suites/storage/metadata_case.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <limits>
#include <optional>

#include "base/clock.hpp"
#include "measure/sizing.hpp"
#include "suite/work_on_files.hpp"
#include "suites/storage/engine.hpp"
#include "suites/storage/evidence.hpp"
#include "suites/storage/folder.hpp"
#include "suites/storage/group_case.hpp"
#include "suites/storage/local_file.hpp"
#include "suites/storage/refused.hpp"

namespace assay::storage {
namespace {

constexpr std::size_t file_bytes = 3901;  ///< of mdtest-hard in IO500
constexpr std::uint64_t allocated_bytes = 4096;
constexpr std::size_t file_words = (file_bytes + 7) / 8;
constexpr std::array<const char*, 5> phases{"create", "stat", "read", "rename", "delete"};
constexpr std::size_t least_rounds = 3, most_rounds = 200, probe_round = most_rounds;
constexpr std::uint64_t probe_files = 4;

class MetadataCase : GroupCase {
 public:
  MetadataCase(const Case& c, Context& context, const Site& site)
      : GroupCase(c, context, site, c.parameters.at("files").get<std::uint64_t>() * file_words),
        one_(c.parameters.at("directory") == "one"),
        files_(c.parameters.at("files").get<std::uint64_t>()) {}

  void run() {
    begin_case(case_, context_, entity_);
    const double begin = now_s();
    enter();
    fit_files();
    const double ready = now_s();
    context_.record.add_time(ready - begin, 0, 0);
    for (std::size_t round = 0; round < most_rounds; ++round) {
      t_.push_back(context_.since_start(now_s()));
      for (std::size_t phase = 0; phase < phases.size(); ++phase)
        seconds_[phase].push_back(one_phase(phase, round));
      context_.count_batch();
      if (together_.any(round + 1 >= least_rounds && now_s() - ready > case_.seconds)) break;
    }
    context_.record.add_time(0, now_s() - ready, 0);
    folder_.reset();
    report();
    together_.rethrow();
  }

 private:
  static std::string name(std::uint64_t i, int rank, bool renamed) {
    return fmt::format("data-{:06}-{}{}", rank, i, renamed ? "-r" : "");
  }
  [[noreturn]] void fail(const char* what, const std::string& file) const {
    throw Refused(fmt::format("{}/{}: cannot {}", site_.paths[path_], file, what), errno);
  }

  void enter() {
    partner_ = partner();
    together_.guarded([&] {
      folder_.emplace(site_.paths[path_], site_.run, site_.file_systems[path_]);
      const std::uint64_t most =
          allowed_bytes(context_, site_.paths[path_], folder_->space(), sharers()) / allocated_bytes;
      files_ = std::clamp<std::uint64_t>(most, 1, files_);
      keep_inodes();
      if (const auto limit = limit_of_rank(context_, sharers())) pace_.emplace(*limit);
    });
    agree_on_files();
    const auto directories = group_.all_gather_text(folder_ ? folder_->path() : "");
    const auto open = [&](int rank) {
      const std::string& path = directories[static_cast<std::size_t>(one_ ? 0 : rank)];
      Descriptor fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
      if (!fd) throw Refused(path + ": cannot open", errno);
      return fd;
    };
    together_.guarded([&] {
      mine_ = open(group_.rank());
      others_ = open(partner_);
    });
  }

  /// No more files at a time than inodes may be taken.
  void keep_inodes() {
    const Space inodes = folder_->inodes();
    const std::uint64_t planned = files_;
    files_ = std::min(planned, allowed_files(site_.paths[path_], inodes, sharers()));
    if (files_ < planned)
      few_inodes_ = fmt::format("instead of {} files: {} of {} inodes are free", planned, inodes.available,
                                inodes.total);
  }

  /// The fewest of any rank. Where inodes limit them, the first rank with so few tells of it.
  void agree_on_files() {
    const std::uint64_t mine = files_;
    files_ = static_cast<std::uint64_t>(group_.min(static_cast<double>(files_)));
    const bool limits = !few_inodes_.empty() && mine == files_;
    const double first = group_.min(limits ? group_.rank() : group_.size());
    if (limits && first == group_.rank())
      context_.record.event("storage-cut-short",
                            fmt::format("{}: rounds of {} {}", site_.paths[path_], files_, few_inodes_));
  }

  /// As many files as the slowest rank gets through in a round's share of the time, by a round of a few.
  void fit_files() {
    const std::uint64_t planned = files_;
    files_ = std::min(planned, probe_files);
    double seconds = 0;
    for (std::size_t phase = 0; phase < phases.size(); ++phase) seconds += one_phase(phase, probe_round);
    files_ = fitted_count(planned, group_.max(seconds) / static_cast<double>(files_),
                          case_.seconds / least_rounds);
    together_.guarded([&] {
      context_.record.parameter("files", files_);
      if (files_ < planned)
        context_.record.event("storage-cut-short", fmt::format("{}: rounds of {} instead of {} files",
                                                               site_.paths[path_], files_, planned));
    });
  }

  /// Seconds of this rank. All begin at once; a rank that failed waits for the others.
  double one_phase(std::size_t phase, std::size_t round) {
    const bool stop = together_.any(false);
    const double begin = now_s();
    if (!stop)
      together_.guarded([&] {
        for (std::uint64_t i = 0; i < files_; ++i) {
          if (pace_) pace_->begin();
          operate(phase, i, round);
          files_answered();
          if (pace_) pace_->moved(allocated_bytes);  // or a change of metadata, which is written too
        }
        context_.apply_injected_delay(begin, files_);
      });
    const double seconds = now_s() - begin;
    if (phase == 2 && !stop && round != probe_round) together_.guarded([&] { verify(round); });
    return seconds;
  }

  WordAddress address_of_file(int rank, std::uint64_t i, std::size_t round) const {
    return {site_.file(rank, path_), round + 1, i * file_words};
  }

  void operate(std::size_t phase, std::uint64_t i, std::size_t round) {
    const std::string own = name(i, group_.rank(), phase == 4), other = name(i, partner_, false);
    struct stat info {};
    switch (phase) {
      case 0: return create(own, i, round);
      case 1:
        if (::fstatat(others_.get(), other.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) fail("stat", other);
        return;
      case 2: return read(other, i);
      case 3:
        if (::renameat(mine_.get(), own.c_str(), mine_.get(), name(i, group_.rank(), true).c_str()) != 0)
          fail("rename", own);
        return;
      default:
        if (::unlinkat(mine_.get(), own.c_str(), 0) != 0) fail("delete", own);
    }
  }

  void create(const std::string& file, std::uint64_t i, std::size_t round) {
    std::array<std::uint64_t, file_words> words;
    fill(log_.known().key, address_of_file(group_.rank(), i, round), words);
    Descriptor fd(
        ::openat(mine_.get(), file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!fd) fail("create", file);
    const Request whole{fd.get(), 0, reinterpret_cast<std::byte*>(words.data()), file_bytes, 0, 0};
    const std::int64_t written = move_rest(true, whole, 0);
    if (written < 0) {
      errno = static_cast<int>(-written);
      fail("write", file);
    }
    if (written < static_cast<ssize_t>(file_bytes))
      throw Refused(
          fmt::format("{}/{}: {} of {} bytes written", site_.paths[path_], file, written, file_bytes), 0,
          true);
    if (errno = fd.close(); errno != 0) fail("close", file);
  }

  void read(const std::string& file, std::uint64_t i) {
    read_.resize(files_ * file_words);
    got_.resize(files_);
    const Descriptor fd(::openat(others_.get(), file.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
    if (!fd) fail("open", file);
    auto* data = reinterpret_cast<std::byte*>(read_.data() + i * file_words);
    got_[i] = move_rest(false, {fd.get(), 0, data, file_bytes, 0, 0}, 0);
    if (got_[i] >= 0) return;
    errno = static_cast<int>(-got_[i]);
    fail("read", file);
  }

  void verify(std::size_t round) {
    log_.known().generations = round + 2;
    for (std::uint64_t i = 0; i < files_; ++i) {
      Block block;
      block.path = site_.paths[path_] + "/" + name(i, partner_, false);
      block.address = address_of_file(partner_, i, round);
      block.data = std::span(read_).subspan(i * file_words, file_words);
      block.read_words = static_cast<std::uint64_t>(got_[i]) / sizeof(std::uint64_t);
      if (got_[i] == static_cast<ssize_t>(file_bytes)) {  // the last word lies in the file in part
        const std::uint64_t last = word_of(log_.known().key, {block.address.file, block.address.generation,
                                                              block.address.word + file_words - 1});
        const std::size_t there = file_bytes % sizeof last;
        std::memcpy(reinterpret_cast<std::byte*>(&block.data.back()) + there,
                    reinterpret_cast<const std::byte*>(&last) + there, sizeof last - there);
        block.read_words = file_words;
      }
      block.reread = [this, i](std::uint64_t offset) {
        const Descriptor fd(
            ::openat(others_.get(), name(i, partner_, false).c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
        std::uint64_t word = 0;
        const auto at = static_cast<off_t>(offset - i * file_words * sizeof word);  // words go on over files
        return ::pread(fd.get(), &word, sizeof word, at) > 0 ? word : 0;
      };
      if (i == 0) corrupt(block, log_.known(), context_);
      log_.check(block);
    }
    std::fill(read_.begin(), read_.end(), 0);
    verified_ += files_;
  }

  void report() {
    Json mine{{"seconds", seconds_}, {"verified", verified_}};
    Evidence evidence;
    evidence.take(log_);
    mine["damage"] = evidence.damage;
    std::vector<Json> ranks;
    for (const std::string& text : context_.node.all_gather_text(mine.dump()))
      ranks.push_back(Json::parse(text));
    if (context_.node.rank() != 0 || together_.failed()) return;
    auto& row = context_.record.add_row(entity_);
    row.t = t_;
    for (std::size_t r = 0; r < t_.size(); ++r)
      row.block.push_back(static_cast<std::int32_t>(r * 3 / t_.size()));
    for (std::size_t phase = 0; phase < phases.size(); ++phase)
      for (std::size_t r = 0; r < t_.size(); ++r) {
        double longest = 0;
        for (const Json& rank : ranks) longest = std::max(longest, rank["seconds"][phase][r].get<double>());
        row.values[phases[phase]].push_back(static_cast<double>(files_ * ranks.size()) / longest);
      }
    double errors = 0, verified = 0;
    for (const Json& rank : ranks) verified += rank["verified"].get<double>();
    for (std::size_t kind = 0; kind < 6; ++kind) {
      double words = 0;
      for (const Json& rank : ranks) words += rank["damage"][kind].get<double>();
      row.values[to_string(static_cast<Damage>(kind))] = {words};
      errors += words;
    }
    row.values["errors"] = {errors};
    row.values["verified"] = {verified / static_cast<double>(files_ * ranks.size() * t_.size())};
  }

  bool one_;
  std::uint64_t files_, verified_ = 0;
  std::string few_inodes_;  ///< what the event tells of them; empty where there are enough
  int partner_ = 0;
  std::optional<Folder> folder_;
  Descriptor mine_, others_;
  std::vector<double> t_;
  std::array<std::vector<double>, phases.size()> seconds_;
  std::vector<std::uint64_t> read_;
  std::vector<ssize_t> got_;
  std::optional<Pace> pace_;  ///< with --storage.limit
};

}  // namespace

void run_metadata(const Case& c, Context& context, const Site& site) { MetadataCase(c, context, site).run(); }

}  // namespace assay::storage
