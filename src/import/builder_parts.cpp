// SPDX-License-Identifier: Apache-2.0
// The tables that the samples of an imported case are stored in.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "base/random.hpp"
#include "import/builder.hpp"

namespace assay::imports {
namespace {

/// More sets of blocks than this are those of parts that each number their own: there only their ends count.
constexpr std::size_t most_sets_of_blocks = 64;

bool begins_with(const std::vector<std::int32_t>& all, const std::vector<std::int32_t>& first) {
  return first.size() <= all.size() && std::equal(first.begin(), first.end(), all.begin());
}

}  // namespace

/// A table has one block number for each sample of all its rows: rows whose blocks are not the first ones of
/// the others need one of their own. Most rows first.
std::vector<std::vector<const Builder::Row*>> Builder::alike_in_blocks(const Case& c) {
  std::vector<const Row*> all;
  for (const Row& row : c.rows) all.push_back(&row);
  // In a retest the suspects are compared with the other rows of their table.
  if (!c.common_blocks || c.retest > 0) return {all};
  std::vector<std::pair<std::vector<std::int32_t>, const Row*>> sorted;
  for (const Row* row : all) {
    auto& blocks = sorted.emplace_back(std::vector<std::int32_t>(), row).first;
    for (const std::size_t cell : order_of(*row)) blocks.push_back(row->cells[cell].block);
  }
  // What begins with the blocks of a row stands right before it.
  std::ranges::sort(sorted, std::greater<>());
  std::vector<std::vector<const Row*>> sets;
  const std::vector<std::int32_t>* longest = nullptr;
  for (const auto& [blocks, row] : sorted) {
    if (longest == nullptr || !begins_with(*longest, blocks)) {
      longest = &blocks;
      sets.emplace_back();
    }
    sets.back().push_back(row);
  }
  if (sets.size() > most_sets_of_blocks) return {all};
  for (auto& rows : sets) std::ranges::sort(rows);  // as in the input
  std::ranges::sort(sets, [](const auto& a, const auto& b) {
    return a.size() != b.size() ? a.size() > b.size() : a.front() < b.front();
  });
  return sets;
}

std::vector<results::CaseData> Builder::data_of(const Case& c) {
  std::vector<results::CaseData> parts;
  for (const auto& rows : alike_in_blocks(c)) add_parts(c, rows, parts);
  return parts;
}

void Builder::add_parts(const Case& c, std::vector<const Row*> rows, std::vector<results::CaseData>& parts) {
  std::size_t begin = 0;
  // A case is a full table of entities by samples. Where one has a hundred thousand samples and twenty
  // thousand have one, the table is cut, so that little of any part is empty.
  while (!rows.empty()) {
    std::size_t left = 0, most = 0;
    for (const Row* row : rows) {
      left += row->cells.size() - begin;
      most = std::max(most, row->cells.size() - begin);
    }
    const std::size_t width =
        most * rows.size() <= 4 * left ? most : std::max<std::size_t>(1, left / rows.size());
    parts.push_back(part_of(c, rows, begin, width, parts.size() + 1));
    begin += width;
    std::erase_if(rows, [&](const Row* row) { return row->cells.size() <= begin; });
  }
}

std::vector<std::size_t> Builder::order_of(const Row& row) {
  std::vector<std::size_t> order(row.cells.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::pair(row.cells[a].t, row.cells[a].sample) < std::pair(row.cells[b].t, row.cells[b].sample);
  });
  return order;
}

results::CaseData Builder::part_of(const Case& c, const std::vector<const Row*>& rows, std::size_t begin,
                                   std::size_t width, std::size_t number) {
  results::CaseData data;
  data.suite = c.suite;
  data.name = c.name;
  if (number > 1) data.name += ".p" + std::to_string(number);
  if (c.retest > 0) data.name += ".c" + std::to_string(c.retest);
  data.stage = c.stage;
  data.kind = c.kind;
  data.required = true;
  data.case_key = fmt::format("{:016x}", hash_text("imported " + c.suite + "/" + c.name));
  data.parameters["imported"] = true;
  if (c.bytes) data.parameters["bytes"] = *c.bytes;
  if (!c.failure.empty()) {
    data.state = results::CaseState::fail;
    data.reason = c.failure;
  }
  const Row* longest = *std::max_element(
      rows.begin(), rows.end(), [](const Row* a, const Row* b) { return a->cells.size() < b->cells.size(); });
  for (std::size_t s = 0; s < width; ++s) data.sample.push_back(static_cast<std::int32_t>(s));
  for (const Value& v : c.metrics)
    data.metrics.push_back({v.name, v.unit, v.better, v.role == results::Role::metric, v.role, true,
                            std::vector<double>(rows.size() * width, results::not_taken)});
  data.t.assign(rows.size() * width, results::not_taken);
  for (std::size_t e = 0; e < rows.size(); ++e) {
    const Row& row = *rows[e];
    data.entity.push_back(row.entity);
    if (row.source >= 0) {
      data.source.push_back(row.source);
      data.destination.push_back(row.destination);
    }
    const auto order = order_of(row);
    for (std::size_t s = begin; &row == longest && s < begin + width; ++s)
      data.block.push_back(row.cells[order[std::min(s, order.size() - 1)]].block);
    const std::size_t end = std::min(order.size(), begin + width);
    data.count.push_back(static_cast<std::int32_t>(end - begin));
    for (std::size_t s = begin; s < end; ++s) {
      data.t[e * width + s - begin] = row.cells[order[s]].t;
      for (std::size_t m = 0; m < c.metrics.size(); ++m)
        data.metrics[m].values[e * width + s - begin] = row.values[m][order[s]];
    }
  }
  // Of a value that some samples lack, a gap says nothing.
  for (std::size_t m = 0; m < c.metrics.size(); ++m)
    if (std::ranges::any_of(rows, [&](const Row* row) {
          return std::ranges::any_of(row->values[m], [](double v) { return std::isnan(v); });
        }))
      data.metrics[m].required = false;
  return data;
}

}  // namespace assay::imports
