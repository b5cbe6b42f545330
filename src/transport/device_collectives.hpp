// SPDX-License-Identifier: Apache-2.0
// What a transport offers for collectives on device memory beyond Communicator: buffers that it knows
// beforehand, and batches that the device starts by itself.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>

namespace assay {

/// `buffer`: registered by each rank for itself (ncclCommRegister). `window`: registered by all ranks
/// together, at the same offset (ncclCommWindowRegister, symmetric).
enum class Registration { buffer, window };

/// Memory of the device, registered as long as this object lives. Ends before its communicator.
class RegisteredMemory {
 public:
  virtual ~RegisteredMemory() = default;
  virtual std::span<std::byte> bytes() const noexcept = 0;
};

class DeviceCollectives {
 public:
  virtual ~DeviceCollectives() = default;

  /// `bytes` of device memory, beside the arena. Collective. Null on all ranks, with the reason in `why`,
  /// where the library or the machine does not register. Throws Error(mpi) on all ranks when one of them
  /// fails.
  virtual std::unique_ptr<RegisteredMemory> allocate(std::size_t bytes, Registration how,
                                                     std::string& why) = 0;

  /// Records the collectives that `calls` makes, without running them. Replaces the last record. Throws
  /// Error(device) where the device refuses.
  virtual void record(const std::function<void()>& calls) = 0;
  /// Runs what was recorded, as one graph of the device, and waits for it as Communicator::end_batch does.
  virtual void replay() = 0;
};

}  // namespace assay
