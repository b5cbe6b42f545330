// SPDX-License-Identifier: Apache-2.0
#include "run/controller.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <set>
#include <utility>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/exit_code.hpp"
#include "base/units.hpp"
#include "results/reader.hpp"
#include "run/arrivals.hpp"
#include "run/disk_space.hpp"
#include "run/file_start.hpp"
#include "run/launch.hpp"
#include "run/planner.hpp"
#include "run/progress.hpp"
#include "run/relaunch.hpp"
#include "run/retest.hpp"
#include "run/run_clock.hpp"
#include "run/run_file.hpp"
#include "run/run_schedule.hpp"
#include "supervisor/heartbeat.hpp"
#include "topology/discover.hpp"
#include "topology/entities.hpp"
#include "verdict/references.hpp"
#include "verdict/verdict.hpp"

namespace assay {
namespace {

/// Closes a file when it goes out of scope, whatever is thrown.
struct Closing {
  RunFile& file;
  explicit Closing(RunFile& of) : file(of) {}
  ~Closing() { file.close(); }
  Closing(const Closing&) = delete;
  Closing& operator=(const Closing&) = delete;
};

class RunController final : public supervisor::Controller {
 public:
  RunController(Config config, std::vector<std::unique_ptr<Suite>> suites, const RunHooks& hooks)
      : config_(std::move(config)), suites_(std::move(suites)), hooks_(hooks) {}

  void start(const std::string& text) override {
    const StartFacts facts = start_facts_from(text);
    config_.seed = facts.seed;
    config_.seed_given = facts.seed_given;
    config_.agreed_memory_bytes = facts.agreed_memory_bytes;
    topology_ = discover(facts.nodes, facts.places, 0, static_cast<int>(config_.threads));
    place_nics(config_, topology_);
    plan_ = make_plan(config_, topology_, suites_);
    members_ = facts.members;
    if (plan_.hash != facts.plan_hash)
      throw Error(ErrorKind::internal, "the supervisor made another plan than the ranks");
    entities_ = std::make_unique<EntityTable>(topology_);
    for (const LaunchFinding& f : facts.findings)
      if (!f.left_out.empty()) entities_->left_out(f.left_out);
    const std::uint64_t expected = plan_.file_bytes(),
                        most = most_file_bytes(config_, topology_.nodes.size());
    if (expected > most)
      throw_usage(fmt::format("--max-file: the plan needs about {}, {} are allowed", format_bytes(expected),
                              format_bytes(most)));
    if (config_.resume.empty() || config_.carries_over())
      check_disk_space(plan_, config_, file_of_segment(config_, segment_));
    references_ =
        verdict::References::load(config_.options.text("baseline"), config_.options.text("history"));
    discard();  // of a start that failed on a GPU
    file_.open(config_, *entities_, start_of_file(config_, plan_, topology_, *entities_, facts.environment),
               segment_);
    schedule_ = RunSchedule(plan_, run_deadline_s());
    retests_ = {};
    if (config_.resume.empty() || config_.carries_over())
      findings_ = facts.findings;  // else they have been told
    unfired_.assign(topology_.ranks.size(), {});
    for (const FaultSpec& fault : config_.faults)
      if (fault.kind == FaultKind::diskfull) file_.writer().inject_disk_full(fault.after_bytes);
  }

  void start_without_plan(const std::vector<std::string>& hosts) override {
    if (!config_.resume.empty()) return;  // the file that it goes on from remains
    topology_ = topology_of_hosts(hosts);
    members_.clear();
    for (std::size_t rank = 0; rank < hosts.size(); ++rank)
      if (!hosts[rank].empty()) members_.push_back(static_cast<int>(rank));
    config_.seed = seed_of(config_);
    plan_ = {};
    entities_ = std::make_unique<EntityTable>(topology_);
    const auto absent = absent_findings(config_);
    for (const LaunchFinding& f : absent) entities_->left_out(f.left_out);
    file_.open(config_, *entities_, start_of_file(config_, plan_, topology_, *entities_, {}), segment_);
    tell(absent);
    unfired_.assign(topology_.ranks.size(), {});
  }

  bool started() const noexcept override { return file_.is_open(); }

  void ready(const std::string& text) override {
    const ReadyFacts facts = ready_facts_from(text);
    // Monotonic clocks of two machines have nothing in common.
    file_.all_ready(members_.front() == 0 ? facts.run_start_s : now_s() - facts.elapsed_s, facts.identity);
    // From the start of the launcher on, and of those launches before it.
    clock_.begin(segment_, config_.options.number("spent"));
    progress_ = std::make_unique<Progress>(config_.quiet ? "never" : config_.progress, plan_.budget_s);
    tell(findings_);
  }

  supervisor::Step next() override {
    for (;;) {
      schedule_.has_stored(file_.writer().bytes());
      const RunSchedule::Decision decision = schedule_.next(file_.writer().stored(), clock_.elapsed_s());
      if (decision.action == RunSchedule::Action::end) {
        if (plan_retests()) continue;
        break;
      }
      const Case& c = plan_.cases[decision.index];
      progress_->show(decision.index + 1, plan_.cases.size(), c.path());
      file_.begin_case();
      if (decision.action == RunSchedule::Action::skip) {
        file_.write_state(c, results::CaseState::skip, decision.reason);
        continue;
      }
      const Order order{decision.seconds, c.retest ? to_text(*c.retest) : std::string()};
      return {static_cast<int>(decision.index), c.deadline_s, false, to_text(order)};
    }
    progress_->clear();
    for (const std::string& what : retests_.left_out())
      if (lost_why_.empty()) event("unconfirmed", "no time left in the budget to confirm " + what, -1);
    continues_ = segment_ < config_.segments() && lost_why_.empty();
    if (continues_) ++segment_;
    return {-1, 0, continues_};
  }

  void take(int rank, const std::string& report) override { arrivals_.take(rank, report); }

  void store(int case_index, const std::vector<int>& ranks) override {
    Arrivals::Ended ended = arrivals_.end(ranks, members_);
    unfired_ = std::move(ended.unfired);
    if (!ended.any) return;
    if (!ended.all) ended.records.front().set_state(results::CaseState::incomplete, lost_why_);
    file_.write(plan_.cases[static_cast<std::size_t>(case_index)], std::move(ended.records), ended.news,
                ended.all);
  }

  std::vector<int> lost(const supervisor::Loss& loss, int case_index) override {
    progress_->clear();
    const bool at_fault = loss.kind != "stuck";
    event(loss.kind, loss.text, at_fault ? loss.rank : -1);
    if (!loss.path.empty()) event("hang", loss.text, -1);
    if (!loss.trace.empty()) event("stack", loss.trace, loss.rank);
    if (lost_why_.empty()) lost_why_ = loss.brief;
    const int node = topology_.ranks.at(static_cast<std::size_t>(place_of(loss.rank))).node;
    if (at_fault) lost_nodes_.insert(topology_.nodes[static_cast<std::size_t>(node)].hostname);
    schedule_.lose_ranks(clock_.elapsed_s(), at_fault ? restart_s() : std::nullopt);
    const bool alone = case_index >= 0 && inside_nodes(case_index);
    std::vector<int> affected;
    for (const RankPlace& place : topology_.ranks)
      if (!alone || place.node == node) affected.push_back(members_.at(static_cast<std::size_t>(place.rank)));
    return affected;
  }

  void event(const std::string& kind, const std::string& text, int rank) noexcept override {
    try {
      const int place = place_of(rank);
      file_.event(place < 0 ? entities_->cluster() : entities_->device_of_rank(place), kind, text);
    } catch (const std::exception&) {
      // The disk refuses; the text is on standard error, and the verdict is INCONCLUSIVE by what is missing.
    }
  }

  void show_alive() noexcept override {
    if (file_.is_open()) file_.writer().show_alive();
  }

  int finish(const std::string& why, int case_index) override {
    if (progress_) progress_->clear();
    std::string reason = why.empty() ? lost_why_ : why;
    const bool complete = reason.empty();
    if (!complete && segment_ < config_.segments())
      reason +=
          fmt::format("; ended in segment {} of {}, the others are not run", segment_, config_.segments());
    if (!complete) {
      event("aborted", reason, -1);
      if (case_index >= 0) mark_incomplete(plan_.cases[static_cast<std::size_t>(case_index)], reason);
    }
    tell_unfired(complete);
    arrivals_ = {};
    auto results = results::load_own_partial(file_.writer().partial());
    results.info.state = complete ? "complete" : "aborted";
    const auto verdict = verdict::judge(results, options_of(results));
    file_.writer().finish(results, verdict);
    const Closing closing{file_};  // which removes the directory that the samples of `results` are read from
    const std::string file = file_.writer().file().string();
    const double ran_s = clock_.has_begun() ? clock_.elapsed_s() : 0;
    const bool last = !std::exchange(continues_, false) || !complete;
    const int code = report({results, verdict, file, ran_s, config_.budget_s(), last});
    if (!lost_nodes_.empty() && topology_.nodes.size() > lost_nodes_.size())
      std::fprintf(stderr, "assay: command for the missing cases: %s\n",
                   relaunch_line(config_, option_specs(), lost_nodes_, file).c_str());
    return code;
  }

  bool code_is_in_file() const noexcept override { return all_reported_; }

  void discard() noexcept override { file_.discard(); }

  std::string complaint(int rank) const override { return arrivals_.complaint(rank); }

  bool inside_nodes(int case_index) const override {
    return plan_.cases[static_cast<std::size_t>(case_index)].stage <= Stage::node_local;
  }

  std::string case_name(int case_index) const override {
    return plan_.cases[static_cast<std::size_t>(case_index)].path();
  }

  double phase_deadline_s(unsigned phase, std::optional<double> usual_s) const override {
    // A prolog must not wait long; elsewhere a thousand ranks may take their time to start. Touching memory
    // is as slow as small pages of an old machine: 0.2 GB/s a node.
    const auto ranks = static_cast<double>(std::max(topology_.ranks.size(), launched_ranks()));
    const double patience = config_.level == Level::smoke ? 10.0 + 0.1 * ranks : 60.0 + 0.1 * ranks;
    const bool memory = phase == static_cast<unsigned>(supervisor::Phase::memory);
    if (!memory && phase != static_cast<unsigned>(supervisor::Phase::suites)) return patience;
    const double node_bytes =
        static_cast<double>(plan_.arena_bytes) * (topology_.ranks.empty() ? 1 : topology_.max_local_size());
    // Algorithms of GPUs are chosen then, by three suites; the last product of each may take a few seconds
    // more.
    const double choosing = topology_.measures_gpus() ? 3 * (prepare_seconds(config_.level) + 5.0) : 0;
    if (!memory) return patience + choosing;
    const double at_most = patience + node_bytes / 2e8;
    // A rank that is far slower than most must leave time to measure the others.
    return usual_s ? std::min(at_most, std::max(10.0 + 4 * *usual_s, 0.15 * config_.budget_s())) : at_most;
  }

  // After an interruption of 3 s, TCP sends again 6.4 s after its first try; a busy host reports late. Only a
  // gate of 15 s has no time for that.
  double silence_s() const override { return config_.level == Level::smoke ? 6.0 : 15.0; }

  double standstill_s() const override { return config_.level == Level::smoke ? 8.0 : 20.0; }

  std::string directories(int case_index) const override {
    const Case& c = plan_.cases[static_cast<std::size_t>(case_index)];
    const auto path = c.parameters.find("path");
    return path != c.parameters.end() ? path->get<std::string>() : "";
  }

  std::string shared_path(int case_index) const override {
    const bool shared = plan_.cases[static_cast<std::size_t>(case_index)].stage >= Stage::world;
    return shared ? directories(case_index) : "";
  }

  // A file server that fails over takes up to a minute. A gate of 15 s ends before.
  double server_standstill_s() const override { return std::clamp(config_.budget_s() / 2, 65.0, 90.0); }

  void stalled(int case_index, const std::string& text) noexcept override {
    try {
      file_.event(entities_->cluster(), "launch-warn", text, "hang", case_name(case_index));
    } catch (const std::exception&) {
      // The samples show it, too.
    }
  }

  double run_deadline_s() const override {
    return RunSchedule::limit_s(config_.level, plan_.budget_s, config_.options.number("spent"));
  }

 private:
  void tell(const std::vector<LaunchFinding>& findings) {
    for (const LaunchFinding& f : findings)
      file_.writer().add_event({0.0, row_of(f), f.event_kind(), f.text, f.kind});
  }

  /// Its exit code. Where a report cannot be written, the verdict is in the file all the same.
  int report(const RunReport& run) {
    try {
      return hooks_.report ? hooks_.report(run) : run.verdict.exit_code;
    } catch (const Error& e) {
      std::fprintf(stderr, "assay: %s\n", e.what());
      all_reported_ = false;
      return worse_code(run.verdict.exit_code, static_cast<int>(ExitCode::inconclusive));
    }
  }

  std::vector<OptionSpec> option_specs() const {
    auto specs = run_options();
    for (const auto& suite : suites_)
      for (auto& spec : suite->options()) specs.push_back(std::move(spec));
    return specs;
  }

  /// The place of a rank of the launch among those that take part, -1 if it does not.
  int place_of(int launch_rank) const noexcept {
    const auto at = std::lower_bound(members_.begin(), members_.end(), launch_rank);
    return at != members_.end() && *at == launch_rank ? static_cast<int>(at - members_.begin()) : -1;
  }

  int row_of(const LaunchFinding& f) const {
    if (!f.left_out.empty()) return entities_->find("node", f.left_out);
    return f.node < 0 ? entities_->cluster() : entities_->node(f.node);
  }

  /// What another launch without the lost nodes takes until its first case; nothing where none follows.
  std::optional<double> restart_s() const {
    constexpr double launcher_ends_s = 2;
    const bool follows = config_.options.number("spent") > 0 && config_.options.integer("relaunch") > 0 &&
                         clock_.has_begun() && lost_nodes_.size() < topology_.nodes.size();
    return follows ? std::optional(launcher_ends_s + clock_.start_s()) : std::nullopt;
  }

  verdict::Options options_of(const results::Results& results) const {
    auto options = verdict::options_from(results);
    references_.put(options);
    return options;
  }

  /// Adds to the plan the retests that the verdict asks for; false when there are none.
  bool plan_retests() {
    if (!schedule_.time_to_judge(clock_.elapsed_s())) return false;
    const double begin_s = now_s();
    const auto results = results::load_own_partial(file_.writer().partial());
    const auto left_s = [&] {
      schedule_.was_judged(now_s() - begin_s);
      return schedule_.retest_seconds(clock_.elapsed_s()).value_or(0);
    };
    auto cases = retests_.ask(results, options_of(results), plan_, topology_, *entities_, left_s);
    for (Case& c : cases) {
      event("confirming", "retest of suspects: " + c.path(), -1);
      plan_.cases.push_back(std::move(c));
    }
    return !cases.empty();
  }

  /// An injected fault that did not occur proves nothing. Faults of a lost rank have most likely ended
  /// it.
  void tell_unfired(bool complete) noexcept {
    for (std::size_t rank = 0; rank < unfired_.size(); ++rank)
      for (const std::string& fault : unfired_[rank])
        if (complete || lost_why_.empty())
          event("inject-unfired", fmt::format("injected fault without effect on rank {}: {}", rank, fault),
                members_.at(rank));
    for (const FaultSpec& fault : config_.faults)
      if (complete && fault.kind == FaultKind::diskfull)
        event("inject-unfired", fmt::format("injected fault without effect: {}", fault.text), -1);
  }

  void mark_incomplete(const Case& c, const std::string& reason) noexcept {
    try {
      file_.write_state(c, results::CaseState::incomplete, reason);
    } catch (const std::exception&) {
      // The case stays planned and not measured, which counts the same.
    }
  }

  Config config_;
  std::vector<std::unique_ptr<Suite>> suites_;
  const RunHooks& hooks_;
  Topology topology_;
  Plan plan_;
  std::unique_ptr<EntityTable> entities_;
  verdict::References references_;
  RunFile file_;
  Arrivals arrivals_;
  std::unique_ptr<Progress> progress_;
  std::vector<LaunchFinding> findings_;
  std::vector<std::vector<std::string>> unfired_;  ///< by rank
  std::vector<int>
      members_;  ///< ranks of the launch that take part, ascending; elsewhere a rank is its place here
  std::set<std::string> lost_nodes_;
  RetestPlanner retests_;
  RunSchedule schedule_;
  int segment_ = 1;
  bool continues_ = false;  ///< another segment follows the file that is open
  RunClock clock_;
  std::string lost_why_;
  bool all_reported_ = true;
};

}  // namespace

std::unique_ptr<supervisor::Controller> make_controller(Config config,
                                                        std::vector<std::unique_ptr<Suite>> suites,
                                                        const RunHooks& hooks) {
  return std::make_unique<RunController>(std::move(config), std::move(suites), hooks);
}

}  // namespace assay
