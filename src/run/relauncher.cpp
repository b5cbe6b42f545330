// SPDX-License-Identifier: Apache-2.0
#include "run/relauncher.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <thread>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/hostlist.hpp"
#include "base/process_stat.hpp"
#include "results/described.hpp"
#include "results/disk.hpp"
#include "results/reader.hpp"
#include "results/writer.hpp"
#include "run/launch_clock.hpp"
#include "run/launch_nodes.hpp"
#include "run/launcher.hpp"
#include "run/launcher_process.hpp"
#include "run/left_behind.hpp"
#include "run/output_files.hpp"
#include "run/run_schedule.hpp"
#include "run/selection.hpp"

namespace assay {
namespace {

namespace fs = std::filesystem;
constexpr int inconclusive = static_cast<int>(ExitCode::inconclusive);

class Launches {
 public:
  Launches(const Config& config, const Relaunch& how)
      : config_(config),
        how_(how),
        begin_s_(now_s() - process_start_s(process_age_s("self"), 1)),
        given_(node_list("exclude", config.exclude)),
        files_(config),
        resume_(config.resume) {}

  ExitCode run() {
    Signals signals;
    for (;;) {
      LaunchClock clock(how_.launcher.empty());
      silent_.reset();
      dead_start_.clear();
      late_ = false;
      const Ended ended = execute(command(), signals,
                                  [&](const auto& has_ended) { return overdue(clock, signals, has_ended); });
      wait_for_writer();
      attempts_.push_back(attempt_of(ended.code));
      Attempt& last = attempts_.back();
      const bool begun = (last.file && !last.unnamed) || last.partial;
      last.told = last.told || late_ || signals.any();
      if (!begun && !last.told) ask_nodes(last, ended.code, signals);
      // A queue is no time of the level, nor is a launch in which nothing began.
      const double queued_s = starts_at_once(how_.launcher) ? 0 : clock.begun_s() - usual_start_s;
      if (!begun_) begin_s_ = begun ? std::max(begin_s_, queued_s) : now_s();
      begun_ = begun_ || begun;
      last.told = last.told || signals.any();
      // A chain of segments that has begun cannot be resumed.
      const int relaunches = config_.segments() > 1 && begun_ ? 0 : how_.relaunches;
      const NextLaunch next = next_launch(attempts_, excluded_, relaunches, config_.budget_s() - spent_s(),
                                          RunSchedule::relaunch_share * config_.budget_s());
      if (!next.wanted) return finish(ended);
      excluded_ = next.exclude;
      if (last.file) file_out_ = ended.out;
      keep_for_resume();
      std::fprintf(stderr, "assay: launching again%s, %.0f s of the level's time are left\n",
                   excluded_.empty() ? "" : fmt::format(" without {}", fmt::join(excluded_, ",")).c_str(),
                   config_.budget_s() - spent_s());
      if (!excluded_.empty() && !leaves_out())
        std::fprintf(stderr,
                     "assay: the launcher's command has no {exclude}: it starts ranks there, too, which take "
                     "no part\n");
    }
  }

 private:
  static constexpr double usual_start_s = 3;  ///< from the launcher's start to the first file of the run
  /// Of a launch that has not begun, the nodes are asked after this time. They bear it if it only takes long.
  static constexpr double patience_s = 60;
  static constexpr double answer_s = 30;  ///< for one node: batch systems repeat a request for 10 to 20 s

  double spent_s() const { return now_s() - begin_s_; }
  fs::path partial() const { return files_.partial(); }

  std::vector<std::string> command() const {
    std::vector<std::string> words =
        how_.launcher.empty() ? how_.local : launcher_words(how_.launcher, excluded_);
    words.push_back(program_of_ranks());
    words.emplace_back("run");
    words.insert(words.end(), how_.arguments.begin(), how_.arguments.end());
    words.insert(words.end(), {"--launcher", "none"});
    std::string exclude = fmt::format("{}", fmt::join(excluded_, ","));
    if (!config_.exclude.empty()) exclude = exclude.empty() ? config_.exclude : given_ + "," + exclude;
    if (exclude.size() > long_list) exclude = compress_hostlist(expand_hostlist(exclude));
    if (!exclude.empty()) words.insert(words.end(), {"--exclude", exclude});
    for (const auto& [node, why] : absent_) words.insert(words.end(), {"--absent", node + "=" + why});
    if (!resume_.empty()) words.insert(words.end(), {"--resume", resume_});
    if (resume_.empty() || !resume_.ends_with(".partial") || !exclude.empty())
      words.insert(words.end(), {"--out", config_.out});
    if (config_.force) words.emplace_back("--force");
    // So many may follow, each without the nodes that the one before it lost.
    const bool follow = config_.segments() == 1 && (how_.launcher.empty() || leaves_out());
    const int used = static_cast<int>(attempts_.size());
    words.insert(words.end(),
                 {"--relaunch", std::to_string(follow ? std::max(0, how_.relaunches - used) : 0)});
    // Never 0: the ranks leave the exit code to the file.
    words.insert(words.end(), {"--spent", fmt::format("{:.3f}s", std::max(1e-3, spent_s()))});
    return words;
  }

  /// Why the launcher is to be ended; empty while it is not.
  std::string overdue(LaunchClock& clock, Signals& signals, const std::function<bool()>& ended) {
    const bool begun = clock.begun_s() >= 0 || files_.has_begun();
    const std::string why =
        clock.overdue(files_.all_written(), begun, files_.shown_alive(),
                      config_.budget_s() * config_.segments(), [this] { return files_.bytes_to_close(); });
    if (!why.empty() || begun) return why;
    late_ = outlasts_level(clock);
    if (late_)
      return fmt::format("{:.0f} s after its start, nothing has begun, and the level's time is over",
                         clock.age_s());
    if (silent_ || clock.age_s() < patience_s || signals.any()) return dead_start_;
    const auto nodes = nodes_of_launch();
    silent_.emplace();
    if (nodes.size() < 2) return "";
    files_.look_anew();
    if (files_.has_begun()) return "";
    std::fprintf(stderr, "assay: nothing has begun in %.0f s: asking %zu nodes\n", patience_s, nodes.size());
    const auto settled = [&] { return ended() || files_.has_begun() || outlasts_level(clock); };
    ask(nodes, signals, [&, look_at_s = 0.0]() mutable {
      if (now_s() < look_at_s) return false;
      look_at_s = now_s() + 1;
      return settled();
    });
    if (signals.any()) dead_start_ = "when a signal asks for its end";
    const bool some = !silent_->empty() && silent_->size() < nodes.size();
    if (some && dead_start_.empty() && !settled())
      dead_start_ =
          fmt::format("{:.0f} s after its start, nothing has begun, and {} of {} nodes do not answer",
                      clock.age_s(), silent_->size(), nodes.size());
    return dead_start_;
  }

  /// Results that are there do not wait for a queue, or for a launcher that hangs.
  bool outlasts_level(const LaunchClock& clock) const {
    return begun_ && clock.age_s() > patience_s && spent_s() > config_.budget_s();
  }

  void ask(
      const std::set<std::string>& nodes, Signals& signals,
      const std::function<bool()>& stop = [] { return false; }) {
    const std::vector<std::string> program{program_of_ranks(), "--version"};
    silent_ = silent_nodes(how_.launcher, program, nodes, excluded_, answer_s, signals, stop);
  }

  bool leaves_out() const { return how_.launcher.find("{exclude}") != std::string::npos; }

  /// Empty where they are unknown, or none can be left out.
  std::set<std::string> nodes_of_launch() const {
    if (!leaves_out()) return {};
    std::set<std::string> nodes;
    for (const std::string& node : launch_nodes(launcher_words(how_.launcher, {})))
      if (!excluded_.contains(node) && !excluded_.contains(node_name(node))) nodes.insert(node);
    return nodes;
  }

  /// As results name a node for which hosts have a name of a domain; an address is its own name.
  static std::string node_name(const std::string& host) {
    const bool address = host.find_first_not_of("0123456789.") == std::string::npos;
    return address ? host : host.substr(0, host.find('.'));
  }

  /// Of a launch that ended before anything was measured: those that do not answer, while others do, are
  /// lost.
  void ask_nodes(Attempt& a, int code, Signals& signals) {
    const auto nodes = nodes_of_launch();
    if (!how_.launcher.empty() && !leaves_out())
      std::fprintf(
          stderr,
          "assay: nothing was measured; a launcher's command with {exclude} is started again without "
          "nodes that do not answer\n");
    if (nodes.size() < 2) return;
    std::fprintf(stderr, "assay: the launcher exited with code %d and nothing was measured\n", code);
    // Of a launch that still ran, steps of a batch system may have waited for it to end.
    if (dead_start_.empty()) ask(nodes, signals);
    if (signals.any()) return;
    const bool none = silent_->size() == nodes.size();
    if (silent_->empty() || none) {
      std::fprintf(stderr, "assay: %s of its %zu nodes answers when asked alone: none is left out%s%s\n",
                   none ? "none" : "each", nodes.size(), none ? "; the first: " : "",
                   none ? silent_->begin()->second.c_str() : "");
      return;
    }
    for (const std::string& host : nodes) a.nodes.insert(node_name(host));
    const std::string only = node_list("only", config_.only);
    for (const auto& [host, why] : *silent_) {
      const std::string node = node_name(host);
      a.lost.insert(node);
      std::fprintf(stderr, "assay: %s does not answer: %s\n", host.c_str(), why.c_str());
      if (is_asked_for(node, only, given_)) absent_.emplace(node, why);
    }
  }

  /// Ranks outlive a launcher that is killed by some seconds, and may still write what they measured.
  void wait_for_writer() const {
    const double end_s = now_s() + 20;
    while (now_s() < end_s) {
      const auto owner = results::read_owner(partial());
      if (!owner || !results::is_running(*owner)) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
    }
  }

  /// What a launch left behind is its own only if it was not there before.
  Attempt attempt_of(int code) {
    Attempt a;
    std::error_code ignored;
    loss_.reset();
    if (!files_.has_begun()) files_.look_anew();
    a.told = code == static_cast<int>(ExitCode::usage) || code == static_cast<int>(ExitCode::internal);
    const int segments = config_.segments(), written = files_.written();
    if ((code != static_cast<int>(ExitCode::usage) || segments > 1) && written > 0) {
      a.file = a.complete = true;
      exit_code_ = written < segments ? inconclusive : 0;
      for (int segment = 1; segment <= written; ++segment) take_file(a, files_.file(segment));
    } else if (const auto owner = files_.new_owner()) {
      a.partial = true;
      a.nodes = {owner->host};
      const bool closing = fs::exists(partial() / "end.json", ignored);
      try {
        const auto r = results::load(partial());
        add_nodes(a, r);
        loss_ = take_left_behind(a, r, owner->host, closing);
      } catch (const Error&) {  // killed before it had written its plan, or its cases are in a spool there
        a.told = a.told || closing;
        if (!closing) a.lost = {owner->host};
      }
    }
    return a;
  }

  void take_file(Attempt& a, const fs::path& file) {
    const auto r = results::load(file);
    a.complete = a.complete && r.info.state == "complete";
    a.damaged = a.damaged || results::has_damage(r.events);
    exit_code_ = worse_code(exit_code_, r.verdict ? r.verdict->exit_code : inconclusive);
    add_nodes(a, r);
    take_losses(a, r);
  }

  void add_nodes(Attempt& a, const results::Results& r) const {
    for (const auto& e : r.entities)
      if (e.kind == "node" && !excluded_.contains(e.name)) a.nodes.insert(e.name);
  }

  /// The next launch writes the file anew and takes over what this one measured, or what it was to resume.
  void keep_for_resume() {
    const Attempt& last = attempts_.back();
    if (last.unnamed) drop(files_.file(1));
    const bool planned = last.partial && files_.partial_is_whole();
    // Killed between the file and the removal of what it was made from, or before it had a plan.
    if (const auto owner = files_.new_owner();
        (last.file || (last.partial && !planned)) && owner && !results::is_running(*owner))
      drop(partial());
    if (planned && !results::cases_are_here(partial())) return keep_apart(last);
    if (planned) results::release(partial(), loss_ && !excluded_.empty() ? &*loss_ : nullptr);
    const bool in_place = planned || (!last.file && fs::path(resume_) == partial());
    // In place only what is not taken over into a new file (Config::carries_over).
    if (in_place && excluded_.empty() && config_.exclude.empty() && config_.only.empty()) {
      resume_ = partial().string();
    } else if (in_place || (last.file && !last.unnamed)) {
      fs::path to = files_.free_name(attempts_.size());
      if (in_place) to = results::partial_of(to);
      fs::rename(in_place ? partial() : fs::path(config_.out), to);
      resume_ = to.string();
      kept_.push_back(to);
    }
    files_.remember_owner();
  }

  /// What the last launch measured is in a spool of a host that is lost: it is measured again.
  void keep_apart(const Attempt& last) {
    const std::string host = last.lost.empty() ? "another host" : *last.lost.begin();
    std::fprintf(stderr, "assay: %s has the cases that had ended in its --spool: they are measured again\n",
                 host.c_str());
    for (const std::string& node : last.lost)
      if (excluded_.contains(node))
        absent_.emplace(node, "an earlier launch lost rank 0 there, with the cases in its --spool");
    const fs::path to = results::partial_of(files_.free_name(attempts_.size()));
    if (resume_ == partial()) resume_.clear();
    fs::rename(partial(), to);
    kept_.push_back(to);
    files_.remember_owner();
  }

  static void drop(const fs::path& path) {
    std::error_code ignored;
    if (!results::remove_partial(path)) fs::remove_all(path, ignored);
  }

  void tell_missing(int code) const {
    std::error_code none;
    const std::string left =
        fs::is_directory(partial(), none) ? fmt::format("; partial results in {}", partial().string()) : "";
    std::fprintf(stderr, "assay: the launcher exited with code %d and wrote no %s%s\n", code,
                 files_.current().c_str(), left.c_str());
  }

  /// The results of the launch before stand, under the name that was asked for; all that was kept is named.
  void put_back_kept() {
    std::error_code none;
    const bool file = kept_.back().extension() == ".h5";
    const fs::path to = file ? fs::path(config_.out) : partial();
    if (!fs::exists(to, none)) {
      fs::rename(kept_.back(), to);
      kept_.back() = to;
    }
    for (const fs::path& path : kept_)
      std::fprintf(stderr, "assay: results of an earlier launch are in %s\n", path.c_str());
  }

  /// False where standard output cannot be written. The verdict stands all the same.
  static bool said(const std::function<void()>& print) {
    try {
      print();
      return true;
    } catch (const Error& e) {
      std::fprintf(stderr, "assay: %s\n", e.what());
      return false;
    }
  }

  ExitCode finish(const Ended& ended) {
    const bool printed = said([&] { how_.print(ended.out); });
    const Attempt& last = attempts_.back();
    const bool ours = ended.code >= inconclusive && ended.code <= static_cast<int>(ExitCode::internal);
    if (last.file) {
      for (const fs::path& path : kept_)
        if (!last.damaged) drop(path);
      if (last.complete && !files_.all_written()) tell_missing(ended.code);
      const double budget_s = config_.budget_s() * config_.segments();
      const bool all_said = printed && said([&] { how_.print_time(spent_s(), budget_s); });
      // A rank leaves with a code of its own where a report could not be written.
      const int code = worse_code(exit_code_, ours ? ended.code : 0);
      return static_cast<ExitCode>(all_said ? code : worse_code(code, inconclusive));
    }
    // Where an earlier launch began, the options were right.
    const bool started_before = std::any_of(attempts_.begin(), attempts_.end() - 1,
                                            [](const Attempt& a) { return a.file || a.partial; });
    if (kept_.empty() && ours && ended.code > inconclusive &&
        (ended.code == static_cast<int>(ExitCode::internal) || !started_before))
      return static_cast<ExitCode>(ended.code);
    tell_missing(ended.code);
    if (!kept_.empty()) {
      put_back_kept();
      said([&] { how_.print(file_out_); });
    }
    // What an earlier launch found stands.
    return static_cast<ExitCode>(worse_code(exit_code_, inconclusive));
  }

  const Config& config_;
  const Relaunch& how_;
  double begin_s_;
  std::string given_;  ///< the nodes of --exclude
  OutputFiles files_;
  std::vector<Attempt> attempts_;
  std::set<std::string> excluded_;
  std::map<std::string, std::string> absent_;  ///< why, by node, of those that did not answer
  std::optional<SilentNodes> silent_;          ///< of this launch, once its nodes were asked
  std::string dead_start_;                     ///< why this launch is ended before it begins
  bool begun_ = false;                         ///< some launch
  bool late_ = false;                          ///< this launch is ended since the level's time is over
  std::vector<fs::path> kept_;
  std::string file_out_;  ///< what the last launch that closed a file wrote to standard output
  std::optional<results::EventRow> loss_;  ///< of rank 0, in a partial directory
  std::string resume_;
  int exit_code_ = inconclusive;
};

}  // namespace

ExitCode run_relaunched(const Config& config, const Relaunch& how) {
  launch_with_system_libraries();
  return Launches(config, how).run();
}

}  // namespace assay
