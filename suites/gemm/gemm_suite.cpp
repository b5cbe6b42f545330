// SPDX-License-Identifier: Apache-2.0
#include "suites/gemm/gemm_suite.hpp"

#include "suites/gemm/gemm_job.hpp"
#include "suites/gemm/gemm_plan.hpp"

namespace assay {

std::vector<OptionSpec> GemmSuite::options() const {
  return {
      {"gemm.dtypes",
       OptionKind::choices,
       "",
       "number types to multiply (host: fp32, fp64; GPUs: all they have, smoke bf16 alone)",
       {"fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "int8"},
       "",
       false,
       false},
      {"gemm.sizes",
       OptionKind::list,
       "",
       "matrix sizes n (n x n x n); by level if not given",
       {},
       "N",
       false,
       false},
      {"gemm.modes",
       OptionKind::choices,
       "alone,together",
       "one device of a node at a time, all at once, or both",
       {"alone", "together"},
       "",
       false,
       false},
      {"gemm.sustained",
       OptionKind::seconds,
       "",
       "length of the sustained series; by level if not given (extended: 300 s), 0 for none",
       {},
       "TIME",
       false,
       false},
  };
}

std::vector<MetricInfo> GemmSuite::metrics() const {
  return {
      {"<dtype>-n<N>", "throughput", "FLOP/s", "higher", "2 n^3 divided by the time of one multiplication"},
      {"<dtype>-n<N>", "efficiency", "1", "higher",
       "median throughput as a fraction of this device's own FMA peak"},
      {"<dtype>-n<N>", "clock", "Hz", "none", "GPUs: clock of the multiprocessors during each sample, as they count it themselves"},
      {"<dtype>-n<N>", "per_clock", "FLOP", "higher", "GPUs: operations in one cycle of that clock, median"},
      {"<dtype>-n<N>", "power", "W", "none", "GPUs: mean over the series and the checks within it, from the energy counter"},
      {"<dtype>-n<N>", "per_watt", "FLOP/J", "higher", "GPUs: throughput divided by that power"},
      {"<dtype>-best", "throughput", "FLOP/s", "higher", "GPUs: the same for the fastest of a dozen shapes"},
      {"<dtype>-sustained-n<N>", "throughput", "FLOP/s", "higher", "the same over minutes"},
      {"<dtype>-peak", "throughput", "FLOP/s", "higher",
       "multiply-adds in registers on all cores of the device"},
      {"<dtype>-exact-n512", "errors", "count", "lower",
       "elements that differ from the exact integer result"},
  };
}

std::vector<Case> GemmSuite::plan(const PlanInput& input) const { return gemm::plan_cases(input); }

void GemmSuite::prepare(const std::vector<Case>& cases, const Config& config, Device& device, Communicator& world,
                        const std::function<bool()>& go_on) {
  choices_ = gemm::choose(cases, config.seed, device, world, go_on);
}

void GemmSuite::run(const Case& c, Context& context) {
  const std::string operation = c.name.substr(c.name.find('-') + 1);
  if (operation.starts_with("exact")) return gemm::run_exact(c, context);
  if (operation.starts_with("peak")) return gemm::run_peak(c, context);
  const auto choice = choices_.find(c.base_path());
  gemm::run_throughput(c, choice == choices_.end() ? nullptr : &choice->second, context);
}

}  // namespace assay
