// SPDX-License-Identifier: Apache-2.0
#include "suites/storage/damage_log.hpp"

#include <fmt/format.h>

#include "base/clock.hpp"

namespace assay::storage {
namespace {

constexpr std::size_t word_bytes = sizeof(std::uint64_t);

std::string belongs_text(const Finding& finding) {
  if (!finding.belongs) return "";
  const WordAddress& p = *finding.belongs;
  return fmt::format("; it belongs to file {}, offset {}, generation {}", p.file, p.word * word_bytes,
                     p.generation);
}

/// A block and what must be said of it.
struct Trial {
  Damage damage;
  std::uint64_t words, first;
  std::function<void(Block&)> harm;
};

}  // namespace

std::uint64_t DamageLog::check(const Block& block, bool all) {
  if (!all && block.read_words == block.data.size() && sectors_are_right(known_, block.address, block.data))
    return block.data.size() / sector_words;
  for (const Finding& finding :
       storage::check(known_, block.address, block.data.first(block.read_words), block.data.size())) {
    counts_[static_cast<std::size_t>(finding.damage)] += finding.words;
    tell(block, finding);
  }
  return block.data.size();
}

void DamageLog::tell(const Block& block, const Finding& finding) {
  const std::uint64_t again = block.reread ? block.reread(finding.first) : 0;
  const double t = context_.since_start(now_s());
  context_.record.miscompare({"", entity_, finding.first, finding.expected, finding.actual, again, t},
                             finding.words);
  if (told_++ >= most_told) return;
  context_.record.event(
      "storage-damage",
      fmt::format(
          "{}: {} words {} from offset {} on: expected {:#018x}, found {:#018x}{}, read again {:#018x}",
          block.path, finding.words, to_string(finding.damage), finding.first, finding.expected,
          finding.actual, belongs_text(finding), again),
      entity_);
}

bool told_to(const Context& context, const char* target) {
  std::uint64_t order = 0;
  context.injection_point(target, &order, 1, sizeof order);
  return order != 0;
}

std::vector<std::string> disk_targets() {
  return {"disk",       "disk-stale", "disk-torn",   "disk-misdirect",
          "disk-short", "disk-eio",   "disk-enospc", "disk-edquot"};
}

void corrupt(Block& block, const Known& known, const Context& context) {
  if (context.injector == nullptr) return;
  context.injection_point("disk", block.data.data(), block.data.size(), word_bytes);
  const WordAddress older{block.address.file, block.address.generation - 1, block.address.word};
  if (told_to(context, "disk-stale")) fill(known.key, older, block.data);
  if (told_to(context, "disk-torn")) {
    const std::size_t half = block.data.size() / 2;
    fill(known.key, {older.file, older.generation, older.word + half}, block.data.subspan(half));
  }
  if (told_to(context, "disk-misdirect")) {
    const std::uint64_t step = block.data.size();
    const std::uint64_t elsewhere =
        block.address.word >= step ? block.address.word - step : block.address.word + step;
    fill(known.key, {block.address.file, block.address.generation, elsewhere}, block.data);
  }
  if (told_to(context, "disk-short")) block.read_words /= 2;
}

results::SelftestRow self_test(const RandomStream& random, int entity) {
  constexpr std::size_t words = 512, step = 64;
  const Known known{random.key(), 4, 4, 4 * words};
  const WordAddress address{1, 2, words};
  const std::size_t at = random.below(0, words - step);
  const auto put = [&](Block& b, std::size_t first, std::size_t count, const WordAddress& from) {
    fill(known.key, {from.file, from.generation, from.word + first}, b.data.subspan(first, count));
  };
  const std::vector<Trial> trials{
      {Damage::flip, 1, at, [&](Block& b) { b.data[at] ^= std::uint64_t{1} << random.below(1, 64); }},
      {Damage::stale, words, 0,
       [&](Block& b) {
         put(b, 0, words, {1, 1, words});
       }},
      {Damage::torn, step, at,
       [&](Block& b) {
         put(b, at, step, {1, 1, words});
       }},
      {Damage::misdirect, step, at,
       [&](Block& b) {
         put(b, at, step, {3, 2, 0});
       }},
      {Damage::short_data, words - at, at, [&](Block& b) { b.read_words = at; }},
      {Damage::foreign, step, at,
       [&](Block& b) { std::fill_n(b.data.begin() + static_cast<std::ptrdiff_t>(at), step, 0); }},
  };
  results::SelftestRow row{"storage", 0, 0, 0, 0, entity};
  std::vector<std::uint64_t> data(words);
  for (const Trial& trial : trials) {
    fill(known.key, address, data);
    Block block{"", address, data, words};
    trial.harm(block);
    const auto found = check(known, address, block.data.first(block.read_words), words);
    ++row.injected;
    if (found.empty()) continue;
    ++row.caught;
    row.located += found.size() == 1 && found[0].damage == trial.damage &&
                   found[0].first == (address.word + trial.first) * word_bytes;
    row.counted += found.size() == 1 && found[0].words == trial.words;
  }
  return row;
}

}  // namespace assay::storage
