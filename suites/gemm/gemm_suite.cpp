// SPDX-License-Identifier: Apache-2.0
#include "suites/gemm/gemm_suite.hpp"

#include "suites/gemm/gemm_metrics.hpp"
#include "suites/gemm/gemm_plan.hpp"
#include "suites/gemm/gemm_work.hpp"

namespace assay {

std::vector<OptionSpec> GemmSuite::options() const {
  return {
      {"gemm.dtypes", OptionKind::choices, "",
       "number types to multiply (host: fp32, fp64; GPUs: all that they have, smoke bf16 only)",
       num_type_names(), "", false, false},
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
       "length of the sustained series; by level if not given (extended: 300 s, soak: a fourth of a "
       "segment, at most 30 min), 0 for none",
       {},
       "TIME",
       false,
       false},
  };
}

std::vector<results::MetricSpec> GemmSuite::metrics() const { return gemm::metrics().all(); }

std::vector<Case> GemmSuite::plan(const PlanInput& input) const { return gemm::plan_cases(input); }

void GemmSuite::prepare(const std::vector<Case>& cases, const Config& config, Device& device,
                        Communicator& world, const std::function<bool()>& go_on) {
  choices_ = gemm::choose(cases, config.seed, device, world, go_on);
}

void GemmSuite::run(const Case& c, Context& context) {
  if (c.operation == "exact") return gemm::run_exact(c, context);
  if (c.operation == "peak") return gemm::run_peak(c, context);
  const auto choice = choices_.find(c.base_path());
  gemm::run_throughput(c, choice == choices_.end() ? nullptr : &choice->second, context);
}

}  // namespace assay
