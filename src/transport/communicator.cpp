// SPDX-License-Identifier: Apache-2.0
#include "transport/communicator.hpp"

namespace assay {

std::size_t size_of(DataType type) noexcept {
  switch (type) {
    case DataType::bf16: return 2;
    case DataType::int32:
    case DataType::fp32: return 4;
    case DataType::uint64:
    case DataType::fp64: return 8;
  }
  return 0;
}

}  // namespace assay
