// SPDX-License-Identifier: Apache-2.0
#include "base/clock.hpp"
#include "suites/train/step_log.hpp"
#include "suites/train/train_work.hpp"
#include "suites/train/trust.hpp"

namespace assay::train {
namespace {

/// All ranks train the same model on the same data, without communication: every gradient and every parameter
/// must have the same bits on all equal devices.
class Lockstep {
 public:
  Lockstep(const Case& c, Context& context)
      : case_(c),
        context_(context),
        work_(fitted(work_from(c, context.device), c.seconds / 8, context)),
        replica_(work_, context),
        trust_(context, Alike::equal_devices),
        begin_s_(now_s()) {
    for (const Bucket& bucket : replica_.gpt().table().buckets())
      names_.push_back("the gradients of " + bucket.name);
  }

  void run() {
    StepLog::declare(context_.record);
    context_.record.declare_integers("digest_gradient", {"sample", "bucket"}, {0, names_.size()});
    context_.record.declare_integers("digest_parameter", {"sample"}, {0});
    context_.declare_arithmetic();
    for (int step = 0; step < work_.steps; ++step)
      if (!train(step)) break;
    auto& row = log_.write(context_, static_cast<double>(work_.preset.tokens()));
    row.integers["digest_gradient"] = gradient_digests_;
    row.integers["digest_parameter"] = parameter_digests_;
    context_.tell_arithmetic(row);
    std::string buckets;
    for (const Bucket& bucket : replica_.gpt().table().buckets())
      buckets += (buckets.empty() ? "" : ",") + bucket.name;
    context_.record.parameter("buckets", buckets);
    context_.record.parameter("flops_per_token", work_.preset.model.flops_per_token());
    context_.record.add_time(0, timed_s_, now_s() - begin_s_ - timed_s_);
  }

 private:
  std::vector<std::uint64_t> digests() {
    std::vector<std::uint64_t> all;
    for (std::size_t b = 0; b < names_.size(); ++b) all.push_back(replica_.gpt().gradient_digest(b));
    return all;
  }

  void pass() {
    replica_.forward();
    replica_.gpt().backward(nullptr, nullptr);
    context_.device.synchronize();
  }

  bool train(int step) {
    Gpt& gpt = replica_.gpt();
    gpt.save();
    context_.device.synchronize();  // the copies are not part of the data stage
    const double t0 = now_s();
    replica_.load(static_cast<std::uint64_t>(step) * work_.preset.batch);
    const double t1 = now_s();
    TrainOps& ops = gpt.ops();
    ops.mark(0);
    replica_.forward();
    ops.mark(1);
    gpt.backward(nullptr, nullptr);
    end_region(context_, t1);
    ops.mark(2);
    context_.device.synchronize();
    context_.count_batch();

    context_.injection_point("gradient", gpt.gradients(), gpt.table().size(), sizeof(float));
    const auto mine = digests();
    gradient_digests_.insert(gradient_digests_.end(), mine.begin(), mine.end());
    const Outcome gradients = trust_.check(step, trust_.gather(mine), names_, true, [&] {
      pass();
      return digests();
    });
    const double squares = gpt.gradient_squares();

    ops.mark(3);
    gpt.update(work_.preset.rule(step, 1));
    ops.mark(4);
    context_.device.synchronize();
    const double forward_s = ops.elapsed_s(0, 1), backward_s = ops.elapsed_s(1, 2),
                 optimizer_s = ops.elapsed_s(3, 4);
    timed_s_ += t1 - t0 + forward_s + backward_s + optimizer_s;
    const Outcome parameters = check_parameters(step);

    StepReport report;
    report.data_s = t1 - t0;
    report.forward_s = forward_s;
    report.backward_s = backward_s;
    report.optimizer_s = optimizer_s;
    report.loss = replica_.loss_sum();
    report.oracle = replica_.oracle_sum();
    report.counted = static_cast<double>(replica_.counted());
    report.squares = squares;
    report.digest = parameter_digests_.back();
    report.stop = !work_.fixed && now_s() - begin_s_ > case_.seconds ? 1 : 0;
    const auto all = exchange(context_.world, report);
    log_.add(report, t0, regret_of(all), gradients.mine + parameters.mine);
    for (const StepReport& r : all)
      if (r.stop > 0) return false;
    return !gradients.lasting && !parameters.lasting;
  }

  Outcome check_parameters(int step) {
    Gpt& gpt = replica_.gpt();
    context_.injection_point("parameter", gpt.weights(), gpt.table().size(), gpt.element_bytes());
    parameter_digests_.push_back(gpt.parameter_digest());
    return trust_.check(step, trust_.gather({parameter_digests_.back()}), {"the parameters"}, true, [&] {
      gpt.restore();
      gpt.update(work_.preset.rule(step, 1));
      return std::vector<std::uint64_t>{gpt.parameter_digest()};
    });
  }

  const Case& case_;
  Context& context_;
  TrainWork work_;
  Replica replica_;
  Trust trust_;
  double begin_s_, timed_s_ = 0;
  std::vector<std::string> names_;
  StepLog log_;
  std::vector<std::uint64_t> gradient_digests_, parameter_digests_;
};

}  // namespace

void run_lockstep(const Case& c, Context& context) { Lockstep(c, context).run(); }

}  // namespace assay::train
