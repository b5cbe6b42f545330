// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cmath>

#include "base/clock.hpp"
#include "suites/train/analysis.hpp"
#include "suites/train/job.hpp"
#include "suites/train/step_log.hpp"
#include "suites/train/trust.hpp"

namespace assay::train {
namespace {

/// Data-parallel training on all ranks: different sequences, one model.
class Together {
 public:
  Together(const Case& c, Context& context)
      : case_(c),
        context_(context),
        job_(job_from(c)),
        replica_(job_, context),
        trust_(context),
        reducer_(context.world, replica_.gpt(), progress_of(context)),
        begin_s_(now_s()) {}

  void run() {
    StepLog::declare(context_.record);
    declare_analysis(context_.record);
    context_.record.declare_integers("digest_parameter", {"sample"}, {0});
    const double gemm_rate = own_gemm_rate(job_, context_);
    for (int step = 0; step < job_.steps; ++step)
      if (!train(step)) break;
    const double tokens = static_cast<double>(job_.preset.tokens());
    auto& row = log_.write(context_, tokens);
    row.integers["digest_parameter"] = digests_;
    analyse(job_, log_, frontier_, gemm_rate, row, context_);
    context_.record.parameter("progress", reducer_.progress());
    context_.record.parameter("entropy_nat", replica_.source().entropy());
    context_.record.parameter("parameters", replica_.gpt().table().size());
    context_.record.parameter("flops_per_token", job_.preset.model.flops_per_token());
    context_.record.add_time(0, timed_s_, now_s() - begin_s_ - timed_s_);
  }

 private:
  /// One step; false when it was the last one.
  bool train(int step) {
    Gpt& gpt = replica_.gpt();
    const int ranks = context_.world.size(), me = context_.world.rank();
    gpt.save();
    const double t0 = now_s();
    replica_.load((static_cast<std::uint64_t>(step) * static_cast<std::uint64_t>(ranks) +
                   static_cast<std::uint64_t>(me)) *
                  job_.preset.batch);
    const double t1 = now_s();
    replica_.forward();
    const double t2 = now_s();
    gpt.backward([&](std::size_t bucket) { reducer_.ready(bucket); }, [&] { reducer_.tick(); });
    context_.device.synchronize();
    context_.end_timed(t1, 1);
    const double t3 = now_s();
    reducer_.wait();
    const double t4 = now_s();
    gpt.update(job_.preset.rule(step, ranks));
    context_.device.synchronize();
    const double t5 = now_s();
    timed_s_ += t5 - t0;
    context_.count_batch();

    StepReport report{t1 - t0, t2 - t1, t3 - t2, t4 - t3, t5 - t4, replica_.loss_sum(), replica_.oracle_sum(),
              static_cast<double>(replica_.counted()), 0, 0, 0};
    report.squares = gpt.gradient_squares() / (static_cast<double>(ranks) * ranks);
    context_.offer("parameter", gpt.parameters(), gpt.table().size(), sizeof(float));
    report.digest = gpt.parameter_digest();
    report.stop = !job_.fixed && t5 - begin_s_ > case_.seconds ? 1 : 0;
    const auto all = exchange(context_.world, report);
    digests_.push_back(report.digest);
    frontier_.add(frontier_of(all), me);
    const Outcome replicas = check_replicas(step, all);
    log_.add(report, t0, regret_of(all), replicas.mine, reducer_.busy_s());
    check_regret(step);
    for (const StepReport& r : all)
      if (r.stop > 0) return false;
    return !replicas.lasting;
  }

  /// All replicas must hold the same parameters.
  Outcome check_replicas(int step, const std::vector<StepReport>& all) {
    Gpt& gpt = replica_.gpt();
    std::vector<std::uint64_t> digests;
    for (const StepReport& r : all) digests.push_back(r.digest);
    return trust_.check(step, digests, {"the parameters"}, false, [&] {
      gpt.restore();
      gpt.update(job_.preset.rule(step, context_.world.size()));
      return std::vector<std::uint64_t>{gpt.parameter_digest()};
    });
  }

  void check_regret(int step) {
    const BandPoint* point = job_.preset.point_at(step + 1);
    // Fewer sequences than the band was made with learn more slowly.
    const std::size_t sequences = job_.preset.batch * static_cast<std::size_t>(context_.world.size());
    if (point == nullptr || sequences < preset_named(std::string(job_.preset.name)).batch) return;
    const double regret = log_.recent_regret(band_window);
    if (regret >= point->lower && regret <= point->upper) return;
    context_.record.set_state(
        results::CaseState::fail,
        fmt::format("regret {:.4f} nat after {} steps is outside its band {:.4f} to {:.4f}", regret, step + 1,
                    point->lower, point->upper));
  }

  const Case& case_;
  Context& context_;
  Job job_;
  Replica replica_;
  Trust trust_;
  GradientReducer reducer_;
  double begin_s_, timed_s_ = 0;
  StepLog log_;
  FrontierSum frontier_;
  std::vector<std::uint64_t> digests_;
};

}  // namespace

void run_together(const Case& c, Context& context) { Together(c, context).run(); }

}  // namespace assay::train
