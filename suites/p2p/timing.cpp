// SPDX-License-Identifier: Apache-2.0
// How many rounds and samples a case has, and how long they take.
#include <algorithm>
#include <cmath>

#include "suites/p2p/p2p_plan.hpp"
#include "topology/oversubscription.hpp"

namespace assay::p2p {
namespace {

/// What a pair fills, sends and checks per second on one core, low on purpose: it decides how many rounds are
/// planned.
constexpr double assumed_bytes_per_s = 2e9;
/// A batch of small messages with its handshake, and a barrier between rounds.
constexpr double assumed_round_s = 3e-3;

struct LevelNumbers {
  double round_latency_s, round_bandwidth_s;  ///< wanted per round
  double case_s;                              ///< hard cap of a case
  std::size_t latency_samples, bandwidth_samples, isolated_samples;
  std::size_t most_samples;  ///< of a link in a cluster of many
  std::size_t most_links;    ///< of a case across more than 64 nodes
  std::size_t all_samples;   ///< of a case with many links
};

LevelNumbers numbers(Level level) {
  switch (level) {
    case Level::smoke: return {0.1, 0.15, 0.5, 20, 9, 50, 50, 400'000, 8'000'000};
    case Level::quick: return {0.4, 0.6, 3.0, 60, 21, 200, 60, 400'000, 8'000'000};
    case Level::standard: return {0.5, 1.0, 8.0, 99, 30, 500, 60, 400'000, 8'000'000};
    case Level::extended:
    case Level::soak: return {1.0, 2.0, 60.0, 200, 60, 1000, 1000, 1'000'000, 40'000'000};
  }
  return {};
}

constexpr std::size_t usual_rounds = sampled_rounds + sampled_near_rounds;

/// All that are wanted where a part has few links. Else rules judge it by all its links: it has at least as
/// many samples of a case as in the rounds of a cluster of more than 64 nodes. Fewer than 60 of a link would
/// leave out the rule for dips.
std::size_t samples_of_link(std::size_t wanted, std::size_t most, std::size_t rounds, bool sampled,
                            std::size_t nodes) {
  constexpr std::size_t least = 60;
  if (rounds > usual_rounds)
    return std::max(std::min(wanted, least), std::min(wanted, most) * usual_rounds / rounds);
  if (sampled) return std::min(wanted, most);
  return nodes > usual_rounds + 1 ? std::min(wanted, most * usual_rounds / rounds) : wanted;
}

/// A rank has at least so many partners in a case: one slow partner of four leaves the upper quartile, by
/// which a part is judged, among the others.
constexpr std::size_t least_partners = 4;
/// A link has at least so many samples. Its median is then known to 0.28 of their spread.
constexpr std::size_t least_samples = 20;

std::size_t links_asked(const Config& config, std::int64_t usual) {
  return static_cast<std::size_t>(config.options.has("p2p.links") ? config.options.integer("p2p.links")
                                                                  : usual);
}

/// Links of each round, two of a pair.
std::size_t links_of_round(const Spec& spec, const Topology& topology) {
  return spec.nic.empty() ? topology.ranks.size() : topology.nodes.size();
}

/// What --p2p.rounds can ask for: all meetings of nodes, while their links are under a million.
std::size_t most_rounds(const Spec& spec, const Topology& topology, std::size_t usual) {
  constexpr std::size_t most_links = 1'000'000;
  const std::size_t nodes = topology.nodes.size(), ranks = topology.ranks.size();
  if (spec.scope != Scope::cross || !spec.nic.empty() || !spec.far.empty() || nodes <= max_full_nodes)
    return usual;
  return std::max(usual, std::min(nodes + nodes % 2 - 1, most_links / ranks));
}

constexpr double meetings_s = 20, most_sweep_s = 120;
constexpr std::size_t meeting_samples = 6;  ///< of a link: two in each block, one more than a rule asks for

/// A warm-up batch and some samples in each direction, and the handshakes.
double round_s(std::size_t samples, double batch_s) {
  return assumed_round_s + 2.0 * static_cast<double>(samples + 1) * batch_s;
}

/// All ranks of two nodes exchange, or, where those are too many links, one of each. Pairs of nodes that are
/// too many even so are swept. `slow`: ranks that share a core; `message_s`: of one message.
void plan_meetings(const Config& config, const Topology& topology, double slow, double least_round_s,
                   double message_s, Timing& timing) {
  const std::size_t nodes = topology.nodes.size(), all = nodes + nodes % 2 - 1;
  const std::size_t most_links = links_asked(config, default_meeting_links);
  const auto in_time = static_cast<std::size_t>(meetings_s / least_round_s);
  if (all * topology.ranks.size() > most_links) timing.lanes = Lanes::in_turn;
  const std::size_t links = timing.lanes == Lanes::all ? topology.ranks.size() : nodes;
  const std::size_t least = nodes > max_full_nodes ? usual_rounds : 1;
  timing.rounds = std::max(least, std::min({all, in_time, most_links / links}));
  timing.samples = meeting_samples;
  const double swept_round_s = slow * round_s(sweep_samples, static_cast<double>(sweep_messages) * message_s);
  timing.swept = std::min(all - timing.rounds, static_cast<std::size_t>(most_sweep_s / swept_round_s));
  timing.sweep_s = static_cast<double>(timing.swept) * swept_round_s;
}

}  // namespace

std::size_t Timing::shares() const {
  if (swept == 0) return rounds;
  const double round_s = (seconds - sweep_s) / static_cast<double>(rounds + suspect_rounds);
  return static_cast<std::size_t>(seconds / round_s);
}

Timing make_timing(const Spec& spec, const Shape& shape, const Config& config, const Topology& topology) {
  return make_timing(spec, shape, config, topology, round_count(spec.scope, topology));
}

Timing make_timing(const Spec& spec, const Shape& shape, const Config& config, const Topology& topology,
                   std::size_t all_rounds) {
  const LevelNumbers level = numbers(config.level);
  const double slow = oversubscription(topology);
  const std::int64_t wanted_rounds =
      config.options.has("p2p.rounds") ? config.options.integer("p2p.rounds") : 0;
  const double batch_s = static_cast<double>(shape.bytes * shape.repetitions) /
                         std::max(assumed_bytes_per_s, link_rate_of(spec, topology) / 8);
  const double least_round_s = slow * round_s(2, batch_s);
  const double wanted_round_s =
      std::max(least_round_s, moves_little(spec) ? level.round_latency_s : level.round_bandwidth_s);

  Timing timing;
  timing.rounds = all_rounds;
  const bool many = topology.nodes.size() > max_full_nodes;
  const std::size_t links = links_of_round(spec, topology);
  bool sampled = many;
  if (wanted_rounds > 0) {
    timing.rounds =
        std::min(most_rounds(spec, topology, all_rounds), static_cast<std::size_t>(wanted_rounds));
  } else {
    // Single messages show what a part drops now and then, which needs no more partners than these.
    if (spec.isolated && spec.scope == Scope::cross && timing.rounds > usual_rounds)
      timing.rounds = usual_rounds, sampled = true;
    if (many && spec.scope == Scope::cross)
      timing.rounds = std::min(
          timing.rounds,
          std::max(least_partners, links_asked(config, static_cast<std::int64_t>(level.most_links)) / links));
    timing.rounds = std::min(
        timing.rounds, static_cast<std::size_t>(std::max(1.0, std::floor(level.case_s / least_round_s))));
  }
  if (spec.meetings)
    plan_meetings(config, topology, slow, least_round_s, batch_s / static_cast<double>(shape.repetitions),
                  timing);
  const auto rounds = static_cast<double>(timing.rounds + (timing.swept > 0 ? suspect_rounds : 0));
  timing.min_seconds = rounds * least_round_s + timing.sweep_s;
  timing.seconds = std::max(
      timing.min_seconds,
      timing.sweep_s + std::min(spec.meetings ? meetings_s / 2 : level.case_s, rounds * wanted_round_s));
  timing.overhead_seconds = 0.02 + (rounds + static_cast<double>(timing.swept)) * 1e-3 * slow;
  timing.retest_samples = spec.isolated                ? level.isolated_samples
                          : spec.mode == Mode::latency ? level.latency_samples
                                                       : level.bandwidth_samples;
  if (!spec.meetings)
    timing.samples = std::min(samples_of_link(timing.retest_samples, level.most_samples, timing.rounds,
                                              sampled, topology.nodes.size()),
                              std::max(least_samples, level.all_samples / (links * timing.rounds)));
  return timing;
}

}  // namespace assay::p2p
