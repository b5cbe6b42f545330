// SPDX-License-Identifier: Apache-2.0
#include "base/clock.hpp"
#include "device/corrupt.hpp"
#include "suites/train/train_metrics.hpp"
#include "suites/train/train_work.hpp"
#include "suites/train/vote.hpp"

namespace assay::train {
namespace {

std::vector<std::uint64_t> digests_of(Gpt& gpt) {
  std::vector<std::uint64_t> digests;
  for (std::size_t b = 0; b < gpt.table().buckets().size(); ++b) digests.push_back(gpt.gradient_digest(b));
  return digests;
}

}  // namespace

/// Real gradients, one bit of one of them flipped on purpose: a vote between this rank's digests with and
/// without it must name the wrong one, and the bucket.
void run_selftest(const Case& c, Context& context) {
  const double begin = now_s();
  Replica replica(work_from(c, context.device), context);
  Gpt& gpt = replica.gpt();
  replica.load(0);
  replica.forward();
  gpt.backward(nullptr, nullptr);
  const auto right = digests_of(gpt);

  const RandomStream stream = context.random.child("corrupt").child(std::to_string(context.world.rank()));
  const std::size_t element = stream.below(0, gpt.table().size());
  flip_bit(context.device, gpt.gradients(), element, sizeof(float),
           static_cast<unsigned>(stream.below(1, 32)));
  const auto wrong = digests_of(gpt);

  std::vector<std::uint64_t> ranks;
  for (const auto* one : {&right, &wrong, &right}) ranks.insert(ranks.end(), one->begin(), one->end());
  const auto dissents = vote(ranks, right.size());
  const bool located =
      !dissents.empty() && dissents[0].rank == 1 && dissents[0].column == gpt.table().bucket_of(element);
  results::SelftestRow row{"train",
                           1,
                           dissents.empty() ? 0 : 1,
                           located ? 1 : 0,
                           static_cast<std::int64_t>(dissents.size()),
                           context.device_entity};
  context.record.selftest(row);
  if (row.caught == 0 || row.located == 0 || row.counted != 1)
    context.record.set_state(results::CaseState::error, "the digests missed an injected error in a gradient");
  context.record.declare(metrics().of("selftest", "detected"));
  auto& reported = context.record.add_row(context.device_entity);
  reported.t = {context.since_start(begin)};
  reported.block = {0};
  reported.values["detected"] = {static_cast<double>(dissents.size())};
  context.record.add_time(0, 0, now_s() - begin);
}

}  // namespace assay::train
