// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "suite/suite.hpp"
#include "workload/exchange.hpp"

namespace assay::workload {

/// A wrong message, under the device of the rank that got it.
inline void record_payload_error(const PayloadError& bad, Context& context) {
  results::Miscompare record;
  record.entity = context.device_entity;
  record.index = bad.byte_index / 8;
  record.expected = bad.expected;
  record.actual = bad.actual;
  record.reread = bad.reread;
  record.t = context.since_start(bad.t);
  context.record.miscompare(record, bad.count);
}

/// The receiver says what it got wrong, under its own device: the sender is named by the event.
inline void report_wrong(const std::vector<PayloadError>& wrong, Context& context) {
  std::map<int, std::uint64_t> words_from;
  for (const auto& bad : wrong) {
    record_payload_error(bad, context);
    words_from[bad.source] += bad.count;
  }
  for (const auto& [source, words] : words_from)
    context.record.event("miscompare",
                         std::to_string(words) + " wrong 8-byte words in messages from " +
                             context.entities.name(context.entities.device_of_rank(source)),
                         context.device_entity);
}

}  // namespace assay::workload
