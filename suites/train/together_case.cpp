// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cmath>

#include "base/clock.hpp"
#include "suites/train/analysis.hpp"
#include "suites/train/audit.hpp"
#include "suites/train/step_log.hpp"
#include "suites/train/train_work.hpp"
#include "suites/train/trust.hpp"

namespace assay::train {
namespace {

/// Data-parallel training on all ranks: different sequences, one model.
class Together {
 public:
  Together(const Case& c, Context& context)
      : case_(c),
        context_(context),
        planned_(fitted(work_from(c, context.device), c.seconds / 16, context)),
        rates_(measured(planned_, context)),
        work_(with_pressure(planned_, rates_.gemm, rates_.bus, context.world.size())),
        replica_(work_, context),
        trust_(context, Alike::all),
        reducer_(replicas_of(context), replica_.gpt(), progress_of(context)),
        begin_s_(now_s()) {}

  void run() {
    StepLog::declare(context_.record);
    declare_analysis(context_.record, context_.device.nominal_peak_flops(work_.type));
    context_.record.declare_integers("digest_parameter", {"sample"}, {0});
    for (int step = 0; step < work_.steps; ++step)
      if (!train(step)) break;
    if (!lasting_) audit(log_.steps() - 1);
    tell_judged();
    auto& row = log_.write(context_, static_cast<double>(work_.tokens()));
    row.integers["digest_parameter"] = digests_;
    analyse(work_, log_, frontier_, rates_.own_gemm, row, context_);
    describe();
    context_.record.add_time(0, timed_s_, now_s() - begin_s_ - timed_s_);
  }

 private:
  /// FLOP/s of this rank, and of the slowest; bytes/s.
  struct Rates {
    double own_gemm = 0, gemm = 0, bus = 0;
  };
  static Rates measured(const TrainWork& work, Context& context) {
    Rates rates;
    rates.own_gemm = own_gemm_rate(work, context);
    if (work.pressure > 0) {
      rates.gemm = context.world.min(rates.own_gemm);
      rates.bus = own_bus_rate(work, context);
    }
    return rates;
  }

  void describe() {
    CaseRecord& record = context_.record;
    record.parameter("progress", reducer_.progress());
    record.parameter("entropy_nat", replica_.source().entropy());
    record.parameter("parameters", replica_.gpt().table().size());
    record.parameter("flops_per_token", work_.preset.model.flops_per_token());
    if (work_.pressure <= 0) return;
    record.parameter("tokens_per_reduction", work_.preset.tokens());
    record.parameter("passes_per_update", work_.passes);
    record.parameter("bus_rate", rates_.bus);
    record.parameter("gemm_rate_least", rates_.gemm);
  }

  /// One step; false when it was the last one.
  bool train(int step) {
    Gpt& gpt = replica_.gpt();
    const int ranks = context_.world.size(), me = context_.world.rank();
    gpt.save();
    context_.device.synchronize();  // the copies are not part of the data stage
    const double t0 = now_s();
    StepReport report;
    for (int pass = 0; pass < work_.passes; ++pass) run_pass(step, pass, report);
    const double t5 = now_s();
    timed_s_ += t5 - t0;
    context_.count_batch();

    const double count = static_cast<double>(ranks) * work_.passes;
    report.squares = work_.zero ? context_.world.sum(gpt.gradient_squares(me == 0)) : gpt.gradient_squares();
    report.squares /= count * count;
    context_.injection_point("parameter", gpt.weights(), gpt.table().size(), gpt.element_bytes());
    report.digest = gpt.parameter_digest();
    report.stop = !work_.fixed && t5 - begin_s_ > case_.seconds ? 1 : 0;
    const auto all = exchange(context_.world, report);
    digests_.push_back(report.digest);
    frontier_.add(frontier_of(all), me);
    const Outcome replicas = check_replicas(step, all);
    log_.add(report, t0, regret_of(all), replicas.mine);
    check_regret(step);
    lasting_ = replicas.lasting;
    for (const StepReport& r : all)
      if (r.stop > 0) return false;
    return !lasting_;
  }

  /// Forward, backward and the reduction of its gradients; after the last pass of a step the update. Adds to
  /// `report`.
  void run_pass(int step, int pass, StepReport& report) {
    Gpt& gpt = replica_.gpt();
    TrainOps& ops = gpt.ops();
    const auto ranks = static_cast<std::uint64_t>(context_.world.size()),
               me = static_cast<std::uint64_t>(context_.world.rank());
    const auto number = static_cast<std::uint64_t>(step) * static_cast<std::uint64_t>(work_.passes) +
                        static_cast<std::uint64_t>(pass);
    const double t0 = now_s();
    replica_.load((number * ranks + me) * work_.preset.batch);
    const double t1 = now_s();
    ops.mark(0);
    replica_.forward();
    ops.mark(1);
    gpt.backward([&](std::size_t bucket) { reduce(bucket); }, [&] { reducer_.tick(); });
    end_region(context_, t1);
    ops.mark(2);
    reducer_.wait();
    ops.mark(3);
    gpt.gather(pass, work_.passes);
    if (pass + 1 == work_.passes) gpt.update(broken_rule(step));
    ops.mark(4);
    if (pass + 1 == work_.passes) reducer_.share();
    ops.mark(5);
    reducer_.finish();
    context_.device.synchronize();
    report.data_s += t1 - t0;
    report.forward_s += ops.elapsed_s(0, 1);
    report.backward_s += ops.elapsed_s(1, 2);
    report.add_communication(reducer_.busy_s(), ops.elapsed_s(2, 3), work_.zero ? ops.elapsed_s(4, 5) : 0);
    report.optimizer_s += ops.elapsed_s(3, 4);
    report.loss += replica_.loss_sum();
    report.oracle += replica_.oracle_sum();
    report.counted += static_cast<double>(replica_.counted());
  }

  kernels::AdamW rule(int step) const {
    return work_.preset.rule(step, context_.world.size() * work_.passes);
  }

  kernels::AdamW broken_rule(int step) const {
    kernels::AdamW adamw = rule(step);
    if (replica_.broken() == "learning") adamw.rate = 0;
    if (replica_.broken() == "rate") adamw.rate *= 0.5f;
    return adamw;
  }

  void reduce(std::size_t bucket) {
    if (replica_.broken() == "rank" && context_.world.rank() + 1 == context_.world.size()) {
      const Bucket& b = replica_.gpt().table().buckets()[bucket];
      replica_.gpt().ops().zero(replica_.gpt().gradients() + b.offset, b.size * sizeof(float));
    }
    reducer_.ready(bucket);
  }

  /// The last step, proved part by part; see audit.hpp. Collective.
  void audit(int step) {
    Gpt& gpt = replica_.gpt();
    StepAudit audit(gpt, RandomStream(context_.config.seed, "train/audit").child(std::to_string(step)));
    std::string wrong = audit.update(rule(step)), proved = "update";
    const auto add = [&](const char* what, const std::string& defect) {
      proved += std::string(", ") + what;
      if (wrong.empty()) wrong = defect;
    };
    if (gpt.storage().parts == 1) {
      gpt.restore();
      replica_.forward();  // on the sequences of the last pass, which are loaded still
      gpt.backward(nullptr, nullptr);
      context_.device.synchronize();
      if (work_.passes == 1) add("reduction", audit.reduction(context_.world));
      add("gradients", audit.gradients(replica_.counted()));
    }
    context_.record.parameter("audited", proved);
    if (!wrong.empty())
      context_.record.set_state(
          results::CaseState::fail,
          fmt::format("step {} on {}: {}", step + 1, name_of_rank(context_, context_.world.rank()), wrong));
  }

  /// A case that ends early has met no point of the band that a model which learns nothing would miss.
  void tell_judged() {
    const double untrained =
        std::log(static_cast<double>(work_.preset.model.vocabulary)) - replica_.source().entropy();
    const int from = has_band() ? work_.preset.judged_from(untrained) : 0;
    const bool judged = from > 0 && log_.steps() >= from;
    context_.record.parameter("regret_judged", judged);
    if (judged || context_.world.rank() != 0) return;
    context_.record.event(
        "loss",
        from > 0
            ? fmt::format(
                  "{}: regret not judged: {} steps; the band needs at least {} steps to reject a model that "
                  "learns nothing",
                  case_.path(), log_.steps(), from)
            : case_.path() + ": regret not judged: there is no band for this preset, number type and batch");
  }

  /// All replicas must hold the same parameters.
  Outcome check_replicas(int step, const std::vector<StepReport>& all) {
    Gpt& gpt = replica_.gpt();
    std::vector<std::uint64_t> digests;
    for (const StepReport& r : all) digests.push_back(r.digest);
    return trust_.check(step, digests, {"the parameters"}, false, [&] {
      gpt.restore();
      gpt.update(broken_rule(step));
      reducer_.share();
      return std::vector<std::uint64_t>{gpt.parameter_digest()};
    });
  }

  /// Of a step of all ranks.
  std::size_t sequences() const {
    return work_.preset.batch * static_cast<std::size_t>(work_.passes * context_.world.size());
  }

  /// Bands are made in fp32, and fewer sequences than theirs learn more slowly.
  bool has_band() const {
    return work_.type == NumType::fp32 &&
           sequences() >=
               preset_named(std::string(work_.preset.name), context_.device.has_own_memory()).batch;
  }

  void check_regret(int step) {
    const BandPoint* point = work_.preset.point_at(step + 1);
    if (point == nullptr || !has_band()) return;
    const double regret = log_.recent_regret(band_window),
                 lower = work_.preset.lower_edge(*point, sequences());
    if (regret >= lower && regret <= point->upper) return;
    context_.record.set_state(
        results::CaseState::fail,
        fmt::format("regret {:.4f} nat after {} steps is outside its band {:.4f} to {:.4f}", regret, step + 1,
                    lower, point->upper));
  }

  const Case& case_;
  Context& context_;
  TrainWork planned_;
  Rates rates_;
  TrainWork work_;
  Replica replica_;
  Trust trust_;
  GradientReducer reducer_;
  bool lasting_ = false;
  double begin_s_, timed_s_ = 0;
  StepLog log_;
  FrontierSum frontier_;
  std::vector<std::uint64_t> digests_;
};

}  // namespace

void run_together(const Case& c, Context& context) { Together(c, context).run(); }

}  // namespace assay::train
