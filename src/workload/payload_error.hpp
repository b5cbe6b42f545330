// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "suite/suite.hpp"
#include "workload/exchange.hpp"

namespace assay::workload {

/// A wrong message, under the device of the rank that got it.
inline void record_payload_error(const PayloadError& bad, Context& context) {
  results::Miscompare record;
  record.entity = context.device_entity;
  record.index = bad.byte_index;
  record.expected = bad.expected;
  record.actual = bad.actual;
  record.reread = bad.reread;
  record.t = context.since_start(bad.t);
  context.record.miscompare(record, bad.count);
}

}  // namespace assay::workload
