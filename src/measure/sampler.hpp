// SPDX-License-Identifier: Apache-2.0
// Warm-up, batching, stopping. A sample is one timed batch of k back-to-back repetitions.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

namespace assay {

/// Decides after each sample whether a series is long enough. Plug-ins: by_relative_ci, by_count, by_time;
/// `any_of` joins.
class StoppingCriterion {
 public:
  virtual ~StoppingCriterion() = default;
  virtual bool enough(const std::vector<double>& samples, double elapsed_s) const = 0;
  virtual std::string name() const = 0;
};
std::unique_ptr<StoppingCriterion> stop_by_relative_ci(double target, std::size_t min_samples);
std::unique_ptr<StoppingCriterion> stop_by_count(std::size_t count);
std::unique_ptr<StoppingCriterion> stop_by_time(double seconds);

/// For faults made on purpose: called at the end of every timed region, inside it, with its begin and the
/// repetitions done; returns how many times longer it made the region.
using TimedFault = std::function<double(double begin_s, std::uint64_t repetitions, bool warmup)>;

struct SamplingPlan {
  std::size_t min_samples = 5, max_samples = 1000;  ///< hard cap on samples
  double max_seconds = 1.0;       ///< hard cap on the time of the whole series, warm-up included
  double warmup_seconds = 0.05;   ///< at least one repetition whatever this says
  double relative_ci = 0.005;     ///< target of stop_by_relative_ci
  std::size_t blocks = 3;         ///< the series is cut into this many blocks
  std::uint64_t repetitions = 0;  ///< k; 0 = the least giving 100x clock resolution
  std::atomic<std::uint64_t>* batches = nullptr;  ///< counted up after every timed batch, where given
  TimedFault fault = {};                          ///< null in all runs without --inject
};

/// The samples of one series: seconds per batch and when each started (seconds on this rank's clock).
struct SampleSeries {
  std::uint64_t repetitions = 1;  ///< k
  std::vector<double> seconds;    ///< of the batch
  std::vector<double> start_s;    ///< now_s() at its start
  std::vector<std::int32_t> block;
  double warmup_s = 0, timed_s = 0, verify_s = 0;
};

/// What a rank votes after a sample. All ranks go on with the maximum of each number over them.
struct SampleVote {
  double stop = 0;       ///< 1: a cap is reached, or nothing is left to measure
  double imprecise = 0;  ///< 1: the median is not precise enough: the least precise rank decides
  double share = 0;      ///< of the time that is left, what one more sample takes
};

/// One operation to sample. `run(k)` does k repetitions and returns when they are complete; `verify(sample)`
/// is called after the clock stopped, outside the timed region; `agree` makes ranks decide alike (one
/// collective) and `sync` lines them up before each sample (null for series that involve one rank only).
struct Operation {
  std::function<void(std::uint64_t k)> run;
  std::function<void(std::size_t sample)> verify;
  std::function<SampleVote(const SampleVote& mine)> agree;  ///< the maximum of each number
  std::function<std::uint64_t(std::uint64_t)> agree_k;      ///< one batch size for all (collective maximum)
  std::function<void()> sync;
  std::function<double()> timed_elsewhere;  ///< when set, its value is the sample, not the wall time
};

/// Warm up, choose k, then sample until the criterion or a cap says stop.
SampleSeries sample(const Operation& operation, const SamplingPlan& plan);

}  // namespace assay
