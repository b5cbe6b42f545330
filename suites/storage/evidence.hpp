// SPDX-License-Identifier: Apache-2.0
// What a rank can show for its rates: that storage was met, and what was found wrong.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string>

#include "measure/cold.hpp"
#include "suites/storage/cufile.hpp"
#include "suites/storage/damage_log.hpp"
#include "transport/communicator.hpp"

namespace assay::storage {

/// A share in %, to a tenth and never more than it is: 94.96 % is not the 95 % that would do.
std::string percent(double share);

struct Evidence {
  double asked = 0, verified = 0;  ///< bytes
  double moved = 0;                ///< bytes by the kernel's counters; NaN: they do not tell
  /// Bytes by the counters of the disks beneath or of the NFS client (DeviceMeter); NaN: they do not tell. Of
  /// a node.
  double device_moved = std::numeric_limits<double>::quiet_NaN();
  std::string slow_disk;       ///< of several beneath a directory (DeviceMeter)
  bool server_cached = false;  ///< servers may have cached what was moved, see --storage.cache
  double resident = 0;         ///< largest share of a part in the page cache before it was read
  /// Bytes between files and GPUs by the counters of nvidia-fs; NaN: it does not tell. Of a node.
  double module_moved = std::numeric_limits<double>::quiet_NaN();
  GpuPath gpu_path = GpuPath::direct;  ///< the worst of the ranks
  std::array<std::uint64_t, 6> damage{};

  void take(const DamageLog& log);
  /// Collective: of files of `bytes` of this rank, and as they are of the others. Servers may have cached
  /// them where they are small beside the memory that --storage.cache tells.
  void compare_with_caches(const Case& c, double bytes, Communicator& group);
  /// Collective: each rank has what was moved for it, where some moved data for others. `counts`: whether
  /// this rank counts what the disks of its node moved.
  void share_moved(Communicator& group, bool counts);
  void add(const Evidence& other);
  Json to_json() const;
  static Evidence from(const Json& json);

  /// Others who use the disks make their counts larger, never smaller.
  bool disks_were_idle() const { return device_moved < least_moved_share * asked; }
  bool cold() const {
    return asked > 0 && !server_cached && !disks_were_idle() &&
           (met_storage(moved, asked, resident) || met_storage(module_moved, asked, resident));
  }
  /// Of data that went between files and GPUs. Where the module counts, its counters decide between direct
  /// and unproven.
  GpuPath shown_path() const;
  double moved_share() const { return moved / asked; }
  void store(CaseRecord::Row& row) const;  ///< the metrics that every case has
  void tell_cached(const std::string& where, const Case& c, Context& context, int entity) const;
  /// Of data that was written and read back: `tell_cached` of what proves less, unless both are cold. Whether
  /// it told.
  static bool tell_cached_of(const Evidence& written, const Evidence& read_back, const std::string& where,
                             const Case& c, Context& context, int entity);
  void tell_path(const std::string& where, const Case& c, Context& context, int entity) const;
  /// The disk that is slower than the others beneath the directory.
  void tell_slow_disk(const std::string& where, const Case& c, Context& context, int entity) const;
  /// All of these.
  void report(CaseRecord::Row& row, const std::string& where, const Case& c, Context& context) const;
};

}  // namespace assay::storage
